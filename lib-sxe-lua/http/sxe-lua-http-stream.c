/* SPDX-License-Identifier: MIT
 *
 * Replies in parts, and server-sent events. A script that writes faster than the client reads has
 * to wait: after WINDOW bytes the next write waits until the kernel has taken all of them.
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-libc-internal.h"
#include "sxe-lua-clock.h"

enum { WINDOW = 65536, RETRY_NS = 10000000 };

int
sxe__lua_http_begin(struct sxe__lua_exchange *exchange)
{
    int result;

    if (exchange->reply != SXE__LUA_UNANSWERED)
        return 0;
    result = sxe_http_set_status(exchange->response, sxe__lua_http_status(exchange));
    if (result == 0)
        result = sxe_http_begin(exchange->response, SXE_HTTP_LENGTH_UNKNOWN);
    if (result == 0)
        exchange->reply = SXE__LUA_BEGUN;
    return result;
}

/* Push nil, and why the text cannot be sent. */
static int
fail_write(lua_State *L, int error)
{
    return sxe__lua_fail(L, error == -ENOTCONN ? "closed" : strerrordesc_np(-error));
}

static void
wake_writer(struct sxe_http_response *response)
{
    struct sxe__lua_exchange *exchange = response->user;

    exchange->unsent = 0;
    sxe__lua_http_wake(exchange);
}

/* ---- Writing ---- */

/* Write the string at index 2 from offset `at` on. Returns the offset that was reached, or
 * -errno. */
static ssize_t
write_string_rest(lua_State *L, struct sxe__lua_exchange *exchange, size_t at)
{
    size_t length;
    const char *text = lua_tolstring(L, 2, &length);
    int result = 0;

    while (at < length && exchange->unsent < WINDOW) {
        size_t room = WINDOW - exchange->unsent;
        size_t part = length - at < room ? length - at : room;

        result = sxe_http_write(exchange->response, text + at, part);
        if (result < 0)
            break;
        at += part;
        exchange->unsent += (uint32_t)part;
    }
    return result < 0 && result != -ENOBUFS ? result : (ssize_t)at;
}

static int return_written(lua_State *L, int status, lua_KContext context);

static int
go_on_with_stream(lua_State *L, struct sxe__lua_exchange *exchange, size_t from)
{
    ssize_t at = write_string_rest(L, exchange, from);
    uint64_t deadline_ns = 0;
    int result;

    if (at < 0)
        return fail_write(L, (int)at);
    if ((size_t)at == lua_rawlen(L, 2)) {
        lua_pushboolean(L, true);
        return 1;
    }
    result = sxe_http_on_room(exchange->response, wake_writer);
    if (result < 0 && result != -EBUSY) /* there is no memory to wait for room: try again soon */
        deadline_ns = sxe_lua_get_clock()->now_ns() + RETRY_NS;
    return sxe__lua_park_in(L, &exchange->line, deadline_ns, return_written, (lua_KContext)at);
}

static int
return_written(lua_State *L, int status, lua_KContext context)
{
    enum sxe__lua_reason reason = sxe__lua_woken(L);
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_RESPONSE, &generation);
    struct sxe__lua_exchange *exchange = sxe__lua_http_find(index, generation);

    SXE_UNUSED_PARAMETER(status);
    if (reason == SXE__LUA_CANCELLED)
        return sxe__lua_fail(L, "cancelled");
    if (exchange == NULL || exchange->reply != SXE__LUA_BEGUN)
        return sxe__lua_fail(L, "closed");
    return go_on_with_stream(L, exchange, (size_t)context);
}

int
sxe__lua_http_write(lua_State *L, struct sxe__lua_exchange *exchange)
{
    int result;

    sxe__lua_http_push(L, exchange, SXE__LUA_RESPONSE);
    lua_replace(L, 1);
    lua_settop(L, 2);
    if (exchange->reply == SXE__LUA_ENDED)
        return luaL_error(L, "the reply was sent already");
    result = sxe__lua_http_begin(exchange);
    if (result < 0)
        return fail_write(L, result);
    return go_on_with_stream(L, exchange, 0);
}

/* The exchange of the handle at 1; NULL: the exchange is over, and nil, "closed" are pushed. */
static struct sxe__lua_exchange *
open_argument(lua_State *L, enum sxe__lua_class class_)
{
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 1, class_, &generation);
    struct sxe__lua_exchange *exchange = sxe__lua_http_find(index, generation);

    if (exchange == NULL)
        sxe__lua_fail(L, "closed");
    return exchange;
}

/* res:write(text): true; or nil, "closed" or "cancelled" */
int
sxe__lua_http_res_write(lua_State *L)
{
    struct sxe__lua_exchange *exchange = open_argument(L, SXE__LUA_RESPONSE);

    luaL_checkstring(L, 2);
    return exchange == NULL ? 2 : sxe__lua_http_write(L, exchange);
}

/* res:finish(): end the reply before its handler ends */
int
sxe__lua_http_res_finish(lua_State *L)
{
    struct sxe__lua_exchange *exchange = open_argument(L, SXE__LUA_RESPONSE);
    int result;

    if (exchange == NULL)
        return 2;
    if (exchange->reply == SXE__LUA_ENDED)
        return luaL_error(L, "the reply was sent already");
    result = sxe__lua_http_begin(exchange);
    if (result < 0)
        return fail_write(L, result);
    exchange->reply = SXE__LUA_ENDED;
    if (sxe_http_end(exchange->response, NULL, 0) < 0)
        sxe_http_abort(exchange->response);
    lua_pushboolean(L, true);
    return 1;
}

/* ---- Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) ---- */

/* Add each line of the text with the field's name before it. */
static void
add_event_lines(luaL_Buffer *buffer, const char *name, struct sxe_span text)
{
    const char *end = text.base + text.length;
    const char *line = text.base;

    for (;;) {
        size_t length = 0;

        while (line + length < end && line[length] != '\r' && line[length] != '\n')
            length++;
        luaL_addstring(buffer, name);
        luaL_addstring(buffer, ": ");
        luaL_addlstring(buffer, line, length);
        luaL_addchar(buffer, '\n');
        line += length;
        if (line >= end)
            return;
        line += line[0] == '\r' && line[1] == '\n' ? 2 : 1;
    }
}

/* Add a member of the event at 2, if the event has it. Moves the member to stack index `at`. */
static void
add_event_member(lua_State *L, luaL_Buffer *buffer, const char *name, int at)
{
    struct sxe_span text;

    if (lua_isnil(L, at))
        return;
    text.base = lua_tolstring(L, at, &text.length);
    if (text.base == NULL)
        luaL_error(L, "an event's %s cannot be a %s", name, luaL_typename(L, at));
    if (strcmp(name, "data") != 0 && text.length != strcspn(text.base, "\r\n"))
        luaL_error(L, "an event's %s cannot have more than one line", name);
    if (strcmp(name, "retry") == 0 && text.length != strspn(text.base, "0123456789"))
        luaL_error(L, "an event's retry is milliseconds, not '%s'", text.base);
    add_event_lines(buffer, name, text);
}

/* events:send(data), events:send{data =, event =, id =, retry =} */
static int
send_event(lua_State *L)
{
    static const char *const names[] = {"event", "id", "retry", "data", NULL};
    struct sxe__lua_exchange *exchange = open_argument(L, SXE__LUA_EVENTS);
    luaL_Buffer buffer;

    if (exchange == NULL)
        return 2;
    lua_settop(L, 2);
    if (!lua_istable(L, 2)) {
        luaL_checkstring(L, 2);
        lua_createtable(L, 0, 1);
        lua_insert(L, 2);
        lua_setfield(L, 2, "data");
    }
    sxe__lua_option_names(L, 2, names, "events:send");
    for (int i = 0; i < 4; i++)
        lua_getfield(L, 2, names[i]);
    luaL_buffinit(L, &buffer);
    for (int i = 0; i < 4; i++)
        add_event_member(L, &buffer, names[i], 3 + i);
    luaL_addchar(&buffer, '\n');
    luaL_pushresult(&buffer);
    lua_replace(L, 2);
    return sxe__lua_http_write(L, exchange);
}

/* events:comment([text]): clients ignore it, and proxies see that the connection is alive */
static int
send_comment(lua_State *L)
{
    struct sxe__lua_exchange *exchange = open_argument(L, SXE__LUA_EVENTS);
    struct sxe_span text;
    luaL_Buffer buffer;

    text.base = luaL_optlstring(L, 2, "", &text.length);
    if (exchange == NULL)
        return 2;
    lua_settop(L, 2);
    luaL_buffinit(L, &buffer);
    add_event_lines(&buffer, "", text);
    luaL_addchar(&buffer, '\n');
    luaL_pushresult(&buffer);
    lua_replace(L, 2);
    return sxe__lua_http_write(L, exchange);
}

static const luaL_Reg events_methods[] = {
    {"send", send_event}, {"comment", send_comment}, {NULL, NULL}};
const struct sxe__lua_class_spec sxe__lua_events_class = {.name = "sxe.http events",
                                                          .methods = events_methods};

int
sxe__lua_http_res_sse(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_RESPONSE);
    int result;

    if (exchange->reply != SXE__LUA_UNANSWERED)
        return luaL_error(L, "the reply has begun: res:sse() comes before res:write()");
    sxe_http_remove_field(exchange->response, "Content-Type");
    result = sxe_http_add_field(exchange->response, "Content-Type", "text/event-stream");
    if (result == 0 && sxe_http_added_field(exchange->response, "Cache-Control").base == NULL)
        result = sxe_http_add_field(exchange->response, "Cache-Control", "no-cache");
    if (result == 0)
        result = sxe__lua_http_begin(exchange);
    if (result < 0)
        return fail_write(L, result);
    sxe__lua_http_push(L, exchange, SXE__LUA_EVENTS);
    return 1;
}
