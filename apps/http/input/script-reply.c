/* SPDX-License-Identifier: MIT
 *
 * Passing replies to a script's response() and check().
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "script-private.h"
#include "sxe-http-list.h"

static const char type_name[] = "wrk.headers";

#define ARGUMENTS_MAX 4

/* The metamethod __index of the table of headers. Names of fields have no case (RFC 9110, 5.1), so
 * headers["x-token"] finds the value of X-Token. */
static int
find_ignoring_case(lua_State *L)
{
    const char *name = lua_tostring(L, 2);

    if (name == NULL)
        return 0;
    for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING && strcasecmp(lua_tostring(L, -2), name) == 0)
            return 1;
    }
    return 0;
}

void
load_reply_open(lua_State *L)
{
    luaL_newmetatable(L, type_name);
    lua_pushcfunction(L, find_ignoring_case);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

/* Store a header line, without its LF, in the table on top of the stack. If the same name comes
 * again, the last value counts, as in wrk. */
static void
add_reply_header(lua_State *L, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);
    const char *end = line + length;
    struct sxe_span value;

    if (colon == NULL)
        return;
    end -= end[-1] == '\r';
    value = sxe_http_without_blanks((struct sxe_span){colon + 1, (size_t)(end - colon - 1)});
    lua_pushlstring(L, line, (size_t)(colon - line));
    lua_pushlstring(L, value.base, value.length);
    lua_rawset(L, -3);
}

static void
push_reply_headers(lua_State *L, const char *head, size_t length)
{
    const char *end = head + length;
    /* first the end of the status line, then of each header line */
    const char *line = length == 0 ? NULL : memchr(head, '\n', length);

    lua_createtable(L, 0, 8);
    while (line != NULL) {
        const char *next;

        line++;
        next = memchr(line, '\n', (size_t)(end - line));
        add_reply_header(L, line, (size_t)((next == NULL ? end : next) - line));
        line = next;
    }
    luaL_setmetatable(L, type_name);
}

/* Call a function with the arguments of response(): status, headers, body and kind. Push only as
 * many as the function declares, because making them takes time. */
static void
call_response(lua_State *L, struct load_script *script, const struct load_exchange *exchange,
              int results)
{
    lua_Debug function;
    int number;

    lua_pushvalue(L, -1);
    lua_getinfo(L, ">u", &function);
    number =
        function.isvararg || function.nparams > ARGUMENTS_MAX ? ARGUMENTS_MAX : function.nparams;
    if (number > 0)
        lua_pushinteger(L, exchange->status);
    if (number > 1)
        push_reply_headers(L, exchange->head, exchange->head_length);
    if (number > 2)
        lua_pushlstring(L, exchange->body, exchange->body_length);
    if (number > 3)
        lua_pushstring(L, script->names[exchange->kind]);
    lua_call(L, number, results);
}

void
load_reply_respond(lua_State *L, struct load_script *script, const struct load_exchange *exchange)
{
    call_response(L, script, exchange, 0);
}

/* Call check(). If it returns no value at all, the reply has passed. If its first value is nil or
 * false, the reply has failed; body:find("x") returns nil if the body has no x. */
bool
load_reply_check(lua_State *L, struct load_script *script, const struct load_exchange *exchange)
{
    struct load_script_slot *slot = &script->slots[script->shard];
    int before = lua_gettop(L) - 1;
    bool is_passed;

    call_response(L, script, exchange, LUA_MULTRET);
    is_passed = lua_gettop(L) == before || lua_toboolean(L, before + 1);
    if (!is_passed && slot->failed_checks++ == 0) {
        if (lua_isnoneornil(L, before + 2))
            snprintf(slot->reason, sizeof(slot->reason), "no reason given, status %u",
                     exchange->status);
        else
            snprintf(slot->reason, sizeof(slot->reason), "%s", luaL_tolstring(L, before + 2, NULL));
    }
    lua_settop(L, before);
    return is_passed;
}
