/* SPDX-License-Identifier: MIT
 *
 * require "sxe.json", and texts that are strings of JSON.
 */
#include "sxe-lua-http-private.h"

#include <string.h>

/* In the registry: the metatable of lists. It has nothing but its name. */
static const char list_key = 0;

/* ---- Lists ---- */

static void
push_list_metatable(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &list_key) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "sxe.json list");
    lua_setfield(L, -2, "__name");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &list_key);
}

void
sxe__lua_json_mark(lua_State *L)
{
    push_list_metatable(L);
    lua_setmetatable(L, -2);
}

bool
sxe__lua_json_is_marked(lua_State *L)
{
    bool is_marked;

    if (lua_getmetatable(L, -1) == 0)
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &list_key);
    is_marked = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is_marked;
}

/* ---- Strings ---- */

/* How many bytes of UTF-8 begin there; 0: none (RFC 3629, 4). */
static size_t
utf8_length(const unsigned char *at, size_t left)
{
    size_t length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;

    if (length == 0 || *at > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
        (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

void
sxe__lua_json_quote(luaL_Buffer *buffer, struct sxe_span text)
{
    const char *end = text.base + text.length;

    luaL_addchar(buffer, '"');
    for (const char *at = text.base; at < end;) {
        size_t length = utf8_length((const unsigned char *)at, (size_t)(end - at));
        unsigned char c = (unsigned char)*at;
        char escape[8];

        if (length == 0) {
            luaL_addstring(buffer, "\\ufffd");
            length = 1;
        } else if (c == '"' || c == '\\') {
            luaL_addchar(buffer, '\\');
            luaL_addchar(buffer, *at);
        } else if (c < 0x20) {
            snprintf(escape, sizeof(escape), c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\u%04x", c);
            luaL_addstring(buffer, escape);
        } else {
            luaL_addlstring(buffer, at, length);
        }
        at += length;
    }
    luaL_addchar(buffer, '"');
}

/* ---- The module ---- */

/* json.encode(value): text; raises where a value has no JSON. */
static int
json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    sxe__lua_json_encode(L);
    return 1;
}

/* json.decode(text): the value, or nil, why not */
static int
json_decode(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_settop(L, 1);
    if (sxe__lua_json_decode(L))
        return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

/* json.array([table]): the table, a list also when it is empty */
static int
array(lua_State *L)
{
    lua_settop(L, 1);
    if (lua_isnil(L, 1)) {
        lua_newtable(L);
        lua_replace(L, 1);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!sxe__lua_json_is_marked(L)) {
        if (lua_getmetatable(L, 1) != 0)
            return luaL_argerror(L, 1, "a table without a metatable expected");
        sxe__lua_json_mark(L);
    }
    return 1;
}

int
sxe__lua_open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"encode", json_encode}, {"decode", json_decode}, {"array", array}, {NULL, NULL}};

    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL); /* what null is, in both directions */
    lua_setfield(L, -2, "null");
    return 1;
}
