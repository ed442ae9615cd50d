/* SPDX-License-Identifier: MIT
 *
 * The global wrk: its fields, wrk.format, wrk.init.
 */
#include "script-wrk.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "script-address.h"
#include "script-compat.h"
#include "script-lua.h"
#include "script.h"

static const char wrk_key[] = "sxe-http wrk";
static const char names_key[] = "sxe-http names";

void
load_wrk_push(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, wrk_key);
}

void
load_wrk_push_names(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, names_key);
}

/* ---- wrk.format ---- */

enum { METHOD = 1, PATH, HEADERS, BODY, WRK };

static void
put_wrk_text(lua_State *L, const char *text)
{
    load_lua_put(L, text, strlen(text));
}

/* Append the value at the index, as tostring() converts it. */
static void
put_value(lua_State *L, int index)
{
    bool is_text = lua_type(L, index) == LUA_TSTRING;
    size_t length;
    const char *text =
        is_text ? lua_tolstring(L, index, &length) : luaL_tolstring(L, index, &length);

    load_lua_put(L, text, length);
    lua_pop(L, is_text ? 0 : 1);
}

static void
put_line(lua_State *L, int name, int value)
{
    put_value(L, name);
    put_wrk_text(L, ": ");
    put_value(L, value);
    put_wrk_text(L, "\r\n");
}

static bool
is_named(lua_State *L, int index, const char *name)
{
    return lua_type(L, index) == LUA_TSTRING && lua_rawlen(L, index) == strlen(name) &&
           strcasecmp(lua_tostring(L, index), name) == 0;
}

/* Push the value of a header, or nil. The case of its name does not matter. */
static bool
push_header(lua_State *L, int headers, const char *name)
{
    headers = lua_absindex(L, headers);
    if (lua_getfield(L, headers, name) != LUA_TNIL)
        return true;
    lua_pop(L, 1);
    for (lua_pushnil(L); lua_next(L, headers) != 0; lua_pop(L, 1)) {
        if (is_named(L, -2, name)) {
            lua_remove(L, -2);
            return true;
        }
    }
    lua_pushnil(L);
    return false;
}

/* Write the head; Host comes first (RFC 9110, 7.2). */
static void
put_host(lua_State *L)
{
    bool is_found = push_header(L, HEADERS, "Host");

    if (!is_found && lua_getfield(L, WRK, "headers") == LUA_TTABLE)
        is_found = push_header(L, -1, "Host");
    if (!is_found)
        lua_getfield(L, WRK, "authority");
    put_wrk_text(L, "Host: ");
    put_value(L, -1);
    put_wrk_text(L, "\r\n");
    lua_settop(L, WRK);
}

static void
put_header(lua_State *L, int name, int value)
{
    if (lua_type(L, value) != LUA_TTABLE) {
        put_line(L, name, value);
        return;
    }
    for (lua_Integer i = 1; lua_rawgeti(L, value, i) != LUA_TNIL; i++) {
        put_line(L, name, lua_gettop(L));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void
put_headers(lua_State *L)
{
    bool is_coded = false;

    for (lua_pushnil(L); lua_next(L, HEADERS) != 0; lua_pop(L, 1)) {
        int name = lua_gettop(L) - 1;

        is_coded |= is_named(L, name, "Transfer-Encoding");
        if (!is_named(L, name, "Host") && !is_named(L, name, "Content-Length"))
            put_header(L, name, name + 1);
    }
    if (!is_coded && !lua_isnil(L, BODY)) {
        size_t length;

        luaL_checklstring(L, BODY, &length);
        lua_pushinteger(L, (lua_Integer)length);
        put_wrk_text(L, "Content-Length: ");
        put_value(L, -1);
        put_wrk_text(L, "\r\n");
        lua_pop(L, 1);
    } else if (!is_coded && *lua_tostring(L, METHOD) == 'P') {
        /* a POST, PUT or PATCH without a body needs this field (RFC 9110, 8.6) */
        put_wrk_text(L, "Content-Length: 0\r\n");
    }
}

static int
wrk_format(lua_State *L)
{
    static const char *const names[] = {NULL, "method", "path", "headers", "body"};

    lua_settop(L, BODY);
    load_wrk_push(L);
    for (int i = METHOD; i <= BODY; i++) {
        if (lua_isnil(L, i)) {
            lua_getfield(L, WRK, names[i]);
            lua_replace(L, i);
        }
    }
    luaL_checkstring(L, METHOD);
    luaL_checkstring(L, PATH);
    luaL_checktype(L, HEADERS, LUA_TTABLE);
    load_lua_of(L)->length = 0;
    put_value(L, METHOD);
    put_wrk_text(L, " ");
    put_value(L, PATH);
    put_wrk_text(L, " HTTP/");
    lua_getfield(L, WRK, "version");
    put_value(L, -1);
    lua_pop(L, 1);
    put_wrk_text(L, "\r\n");
    put_host(L);
    put_headers(L);
    put_wrk_text(L, "\r\n");
    if (!lua_isnil(L, BODY))
        put_value(L, BODY);
    lua_pushlstring(L, load_lua_of(L)->text, load_lua_of(L)->length);
    return 1;
}

void
load_wrk_format(lua_State *L)
{
    lua_pushcfunction(L, wrk_format);
    lua_insert(L, -5);
    lua_call(L, 4, 1);
}

/* ---- The initial table wrk ---- */

static void
set_wrk_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

/* Add a header to the table on top of the stack. If the same name was added before, its value
 * becomes a list. "Name:" is a header without a value: it gets none. */
static void
add_header(lua_State *L, const char *field)
{
    const char *colon = strchr(field, ':');
    const char *value = colon == NULL ? "" : colon + 1 + strspn(colon + 1, " \t");
    int headers = lua_gettop(L);

    if (*value == '\0')
        return;
    lua_pushlstring(L, field, (size_t)(colon - field));
    lua_pushvalue(L, -1);
    if (lua_rawget(L, headers) == LUA_TSTRING) {
        lua_createtable(L, 2, 0);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 1);
    }
    lua_pushstring(L, value);
    if (lua_type(L, -2) == LUA_TTABLE) {
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    } else {
        lua_remove(L, -2);
    }
    lua_rawset(L, headers);
}

static void
set_wrk_request(lua_State *L, const struct load_template_options *request)
{
    bool has_connection;

    set_wrk_text(L, "version", request->is_http_1_0 ? "1.0" : "1.1");
    set_wrk_text(L, "method", request->method);
    if (request->body != NULL) {
        lua_pushlstring(L, request->body, request->body_length);
        lua_setfield(L, -2, "body");
    }
    lua_newtable(L);
    for (unsigned i = 0; i < request->fields_number; i++)
        add_header(L, request->fields[i]);
    has_connection = push_header(L, -1, "Connection");
    lua_pop(L, 1);
    if (request->is_http_1_0 && !has_connection)
        add_header(L, "Connection: keep-alive");
    lua_setfield(L, -2, "headers");
}

static void
remember_names(lua_State *L)
{
    lua_newtable(L);
    lua_pushglobaltable(L);
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushboolean(L, true);
        lua_rawset(L, -6);
    }
    lua_pop(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, names_key);
}

/* The function wrk.init(), which scripts for wrk 3 call in their init(). It has nothing to do
 * here. */
static int
l_wrk_init(lua_State *L)
{
    (void)L;
    return 0;
}

int
load_wrk_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"init", l_wrk_init},
                                         {"format", wrk_format},
                                         {"lookup", load_address_lookup},
                                         {"connect", load_address_connect},
                                         {0}};
    const struct load_script_options *options = lua_touserdata(L, 1);

    load_address_open(L);
    load_compat_open(L);
    luaL_newlib(L, functions);
    set_wrk_text(L, "scheme", "http");
    set_wrk_text(L, "host", options->host);
    lua_pushfstring(L, "%d", (int)options->port);
    lua_setfield(L, -2, "port");
    set_wrk_text(L, "path", options->target);
    set_wrk_text(L, "authority", options->authority);
    set_wrk_request(L, options->request);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, wrk_key);
    lua_setglobal(L, "wrk");
    remember_names(L);
    return 0;
}
