/* SPDX-License-Identifier: MIT
 *
 * An error goes up through the script's own coroutines as it does through functions: where one was
 * resumed by coroutine.wrap, its traceback is kept, and comes before its parent's.
 */
#include "sxe-lua-core-private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sxe-lua-clock.h"

enum { ID_SIZE = 17, STACK_ROOM = 20, LINES_MAX = 200, SHOWN_SIZE = 200, FAILURE_SIZE = 300 };

/* In the registry: the value that last left a coroutine as an error, and its traceback. */
static const char raised_key = 0;
static const char trace_key = 0;

/* ---- Tracebacks ---- */

static bool
is_text_value(lua_State *L, int index)
{
    if (lua_type(L, index) == LUA_TSTRING)
        return true;
    if (luaL_getmetafield(L, index, "__tostring") == LUA_TNIL)
        return false;
    lua_pop(L, 1);
    return true;
}

/* Push a text that says where the error at index was raised: the calls of the coroutines that the
 * error left, then, from `level` on, the calls of the coroutine that the error is in now. */
static void
push_error_trace(lua_State *L, int error, lua_State *coroutine, int level)
{
    /* luaL_traceback of Lua 5.4.4 does not make room itself */
    luaL_checkstack(L, STACK_ROOM, NULL);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &raised_key);
    if (!lua_isnil(L, -1) && lua_rawequal(L, -1, error)) {
        lua_pushnil(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_key);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &trace_key);
        lua_pushliteral(L, "\n");
    } else {
        lua_pushliteral(L, "");
        lua_pushliteral(L, "");
    }
    luaL_traceback(L, coroutine, NULL, level);
    lua_concat(L, 3);
    lua_remove(L, -2);
}

static int
push_value_text(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    return 1;
}

/* Push the text of the error at index. The error's __tostring may fail, and an error in a message
 * handler would call that handler again, until Lua gives up with "error in error handling". */
static void
push_error_text(lua_State *L, int index)
{
    if (lua_type(L, index) == LUA_TSTRING) {
        lua_pushvalue(L, index);
        return;
    }
    lua_pushcfunction(L, push_value_text);
    lua_pushvalue(L, index);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK)
        return;
    lua_pushfstring(L, "an error whose __tostring failed: %s",
                    lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1));
    lua_remove(L, -2);
}

/* {status = 404} is a reply and no fault, so it needs no traceback. */
static bool
is_reply(lua_State *L, int index)
{
    bool has_status;

    if (!lua_istable(L, index))
        return false;
    lua_pushliteral(L, "status");
    has_status = lua_rawget(L, index) != LUA_TNIL;
    lua_pop(L, 1);
    return has_status;
}

/* Whether the error at index has left a coroutine before. */
static bool
was_raised(lua_State *L, int index)
{
    bool was;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &raised_key);
    was = !lua_isnil(L, -1) && lua_rawequal(L, -1, index);
    lua_pop(L, 1);
    return was;
}

/* Replace the error at 1 by the value to be passed on. An error that is a text gets a traceback;
 * any other value stays as it is, and its traceback is kept for the log. */
static int
add_trace(lua_State *L, lua_State *coroutine, int level)
{
    if (is_text_value(L, 1)) {
        if (sxe__lua_config()->is_dev && !was_raised(L, 1))
            sxe__lua_keep_locals(L, coroutine, level);
        push_error_text(L, 1);
        lua_pushliteral(L, "\n");
        push_error_trace(L, 1, coroutine, level);
        lua_concat(L, 3);
    } else if (!is_reply(L, 1)) {
        push_error_trace(L, 1, coroutine, level);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &trace_key);
        lua_pushvalue(L, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_key);
    }
    return 1;
}

int
sxe__lua_message_handler(lua_State *L)
{
    return add_trace(L, L, 1);
}

void
sxe__lua_keep_trace(lua_State *L, lua_State *coroutine)
{
    if (sxe__lua_config()->is_dev)
        sxe__lua_keep_locals(L, coroutine, 0);
    push_error_trace(L, lua_gettop(L), coroutine, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &trace_key);
}

void
sxe__lua_keep_raised(lua_State *L)
{
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_key);
}

/* Arguments: the error, its coroutine. */
static int
with_trace(lua_State *L)
{
    lua_State *coroutine = lua_touserdata(L, 2);

    lua_settop(L, 1);
    return add_trace(L, coroutine, 0);
}

void
sxe__lua_add_traceback(lua_State *coroutine)
{
    lua_State *L = sxe__lua_current()->main;

    if (!lua_checkstack(L, 4))
        return;
    lua_pushcfunction(L, with_trace);
    lua_xmove(coroutine, L, 1);
    lua_pushvalue(L, -1);
    lua_insert(L, -3);
    lua_pushlightuserdata(L, coroutine);
    if (lua_pcall(L, 2, 1, 0) == LUA_OK)
        lua_remove(L, -2);
    else
        lua_pop(L, 1);
    lua_xmove(L, coroutine, 1);
}

/* ---- The log ---- */

struct report {
    const char *where;
    const char *prefix; /* text before each line: "ID ", or "" if the log itself shows the id */
    char id[SXE_LOG_REQUEST_MAX + 1];
    char room[ID_SIZE + 1];
};

static bool
tell_program(const char *where, const char *text)
{
    bool (*on_error)(const char *, const char *) = sxe__lua_config()->on_error;

    return on_error != NULL && on_error(where, text);
}

static void
log_lines(const struct report *report, const char *text)
{
    size_t length = strcspn(text, "\n");

    if (tell_program(report->where, text))
        return;
    SXE_ERROR("%s%s: %.*s", report->prefix, report->where, (int)length, text);
    text += length;
    for (unsigned lines = 1; *text == '\n' && lines < LINES_MAX; lines++, text += length) {
        text++;
        length = strcspn(text, "\n");
        SXE_ERROR("%s  %s%.*s", report->prefix, *text == '\t' ? "  " : "",
                  (int)length - (*text == '\t'), text + (*text == '\t'));
    }
}

/* ---- Describing an error ---- */

/* Push "an error that is a table: {code = 5}". No metamethod is called. */
static const char *
describe_table(lua_State *L, int error)
{
    char shown[SHOWN_SIZE];

    sxe__lua_show_fields(L, error, shown, sizeof(shown));
    return lua_pushfstring(L, "an error that is a table: {%s}", shown);
}

/* Push a field of the error. Returns the field's text, or "" if the field is no string. */
static const char *
push_error_field(lua_State *L, int error, const char *name)
{
    return lua_getfield(L, error, name) == LUA_TSTRING ? lua_tostring(L, -1) : "";
}

/* Push the description of an error, also of {status = 404, message = "no such page", detail =}. */
static const char *
describe_error(lua_State *L, int error)
{
    const char *message;
    const char *detail;

    if (is_text_value(L, error) || lua_type(L, error) == LUA_TNUMBER) {
        push_error_text(L, error);
        return lua_tostring(L, -1);
    }
    if (!lua_istable(L, error))
        return lua_pushfstring(L, "an error that is a %s", luaL_typename(L, error));
    message = push_error_field(L, error, "message");
    detail = push_error_field(L, error, "detail");
    if (lua_getfield(L, error, "status") == LUA_TNUMBER)
        return lua_pushfstring(L, "status %s%s%s%s%s", lua_tostring(L, -1), *message ? ": " : "",
                               message, *detail ? ": " : "", detail);
    return *message ? message : describe_table(L, error);
}

/* The description, and below it the traceback that was kept for an error that is no text. The
 * result is on the stack. */
static const char *
describe_with_trace(lua_State *L, int error)
{
    const char *text = describe_error(L, error);

    if (!was_raised(L, error) || is_text_value(L, error))
        return text;
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_key);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &trace_key);
    return lua_pushfstring(L, "%s\n%s", text, lua_tostring(L, -1));
}

/* Arguments: the error, the report. */
static int
log_report(lua_State *L)
{
    const struct report *report = lua_touserdata(L, 2);

    luaL_checkstack(L, STACK_ROOM, NULL);
    log_lines(report, describe_with_trace(L, 1));
    return 0;
}

/* An error in a request has the request's id; any other error gets an id of its own. */
static void
set_id(struct report *report)
{
    const char *request = sxe_log_get_request();

    report->prefix = "";
    if (request != NULL) {
        snprintf(report->id, sizeof(report->id), "%s", request);
        return;
    }
    snprintf(report->id, sizeof(report->id), "%016" PRIx64, sxe_lua_get_clock()->random());
    snprintf(report->room, sizeof(report->room), "%.*s ", ID_SIZE - 1, report->id);
    report->prefix = report->room;
}

const char *
sxe__lua_log_error(lua_State *from, const char *where)
{
    static _Thread_local struct report report;
    lua_State *L = sxe__lua_current()->main;
    struct sxe__lua_watched watched;
    uint64_t spent_ns = 0;
    int status;

    sxe__lua_current()->errors++;
    set_id(&report);
    report.where = where;
    if (!lua_checkstack(L, 4) || !lua_checkstack(from, 1)) {
        log_lines(&report, "not enough memory");
        return report.id;
    }
    lua_pushvalue(from, -1);
    lua_xmove(from, L, from != L ? 1 : 0);
    lua_pushcfunction(L, log_report);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, &report);
    /* to describe an error, metamethods may be called */
    sxe__lua_watch_enter(&watched, L, &spent_ns);
    status = lua_pcall(L, 2, 0, 0);
    sxe__lua_watch_leave(&watched);
    if (status != LUA_OK) {
        log_lines(&report, lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "an error");
        lua_pop(L, 1);
    }
    return report.id;
}

void
sxe__lua_log_failure(const char *call, const char *text)
{
    char whole[FAILURE_SIZE];

    snprintf(whole, sizeof(whole), "%s %s", call, text);
    if (!tell_program(call, whole))
        SXE_ERROR("%s", whole);
}

uint64_t
sxe_lua_errors(const struct sxe_lua *lua)
{
    return lua->errors;
}

/* ---- Protected calls ---- */

int
sxe__lua_pcall_handled(lua_State *L, int arguments, int results, const char *where)
{
    struct sxe__lua_watched watched;
    uint64_t spent_ns = 0;
    unsigned mark = sxe_log_trace_mark();
    int status;

    sxe__lua_watch_enter(&watched, L, &spent_ns);
    status = lua_pcall(L, arguments, results, lua_gettop(L) - arguments - 1);
    sxe__lua_watch_leave(&watched);
    sxe_log_trace_release(mark);
    if (SXE_LIKELY(status == LUA_OK))
        return 0;
    sxe__lua_log_error(L, where);
    lua_pop(L, 1);
    return -EINVAL;
}

int
sxe__lua_pcall(lua_State *L, int arguments, int results, const char *where)
{
    int handler = lua_gettop(L) - arguments;
    int result;

    lua_pushcfunction(L, sxe__lua_message_handler);
    lua_insert(L, handler);
    result = sxe__lua_pcall_handled(L, arguments, results, where);
    lua_remove(L, handler);
    return result;
}

int
sxe__lua_protect(struct sxe_lua *lua, lua_CFunction function, void *argument, const char *where)
{
    lua_State *L = lua->main;
    int status;

    if (!lua_checkstack(L, 4))
        return -ENOMEM;
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    status = lua_pcall(L, 1, 0, 0);
    if (status == LUA_OK)
        return 0;
    sxe__lua_log_error(L, where);
    lua_pop(L, 1);
    return status == LUA_ERRMEM ? -ENOMEM : -EINVAL;
}
