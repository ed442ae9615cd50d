/* SPDX-License-Identifier: MIT
 *
 * require "sxe.json", and escapes for JSON strings.
 */
#include "sxe-lua-http-private.h"

#include "sxe-json.h"

/* ---- Strings ---- */

void
sxe__lua_json_quote(luaL_Buffer *buffer, struct sxe_span text)
{
    luaL_addchar(buffer, '"');
    while (text.length > 0) {
        size_t taken = text.length;
        char *room = luaL_prepbuffer(buffer);

        luaL_addsize(buffer,
                     sxe_json_escape(room, LUAL_BUFFERSIZE, text.base, &taken, SXE_JSON_UTF8));
        text.base += taken;
        text.length -= taken;
    }
    luaL_addchar(buffer, '"');
}

/* ---- The module ---- */

/* json.encode(value): the text. Raises if a value cannot be written as JSON. */
static int
json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    sxe__lua_json_encode(L);
    return 1;
}

/* json.decode(text): the value, or nil and why */
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

/* json.array([table]): the table, which is a list even if it is empty */
static int
l_json_array(lua_State *L)
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
        {"encode", json_encode}, {"decode", json_decode}, {"array", l_json_array}, {NULL, NULL}};

    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL); /* json.null, for encode and decode */
    lua_setfield(L, -2, "null");
    return 1;
}
