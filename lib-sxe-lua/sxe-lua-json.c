/* SPDX-License-Identifier: MIT
 *
 * require "sxe.json". Texts are decoded by lua-cjson, an instance of our own, so that what scripts
 * set in theirs changes nothing here. Of its numbers, which are all floats, those that are whole
 * become integers.
 */
#include "sxe-lua-http-private.h"

#include <math.h>
#include <string.h>

static const char decode_key = 0; /* in the registry: cjson's */

static void
load_cjson(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "cjson");
    if (lua_pcall(L, 1, 1, 0) != LUA_OK)
        luaL_error(L, "decoding JSON needs the module cjson, which is not here (Debian: apt "
                      "install lua-cjson)");
    lua_getfield(L, -1, "new");
    lua_call(L, 0, 1);
    lua_getfield(L, -1, "decode");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &decode_key);
    lua_pop(L, 2);
}

static void
push_decode(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &decode_key) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    load_cjson(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &decode_key);
}

/* A float that is an integer of Lua's without loss. */
static bool
is_whole(lua_State *L)
{
    double value;

    if (lua_type(L, -1) != LUA_TNUMBER || lua_isinteger(L, -1))
        return false;
    value = lua_tonumber(L, -1);
    return floor(value) == value && fabs(value) <= 9007199254740992.0;
}

/* Everywhere in the table on top. Its levels, as many as cjson allows, are on the stack: each a
 * table and the key where it goes on. */
static void
make_integers(lua_State *L)
{
    int bottom = lua_gettop(L);

    lua_pushnil(L);
    while (lua_gettop(L) > bottom) {
        luaL_checkstack(L, 4, "JSON");
        if (lua_next(L, -2) == 0) {
            if (lua_gettop(L) == bottom)
                return;
            lua_pop(L, 1); /* back to the table around it, whose key is on top now */
        } else if (lua_istable(L, -1)) {
            lua_pushnil(L);
        } else if (is_whole(L)) {
            lua_Integer value = lua_tointeger(L, -1);

            lua_pop(L, 1);
            lua_pushvalue(L, -1);
            lua_pushinteger(L, value);
            lua_rawset(L, -4);
        } else {
            lua_pop(L, 1);
        }
    }
}

bool
sxe__lua_json_decode(lua_State *L)
{
    push_decode(L);
    lua_insert(L, -2);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK)
        return false;
    if (lua_istable(L, -1)) {
        make_integers(L);
    } else if (is_whole(L)) {
        lua_pushinteger(L, lua_tointeger(L, -1));
        lua_remove(L, -2);
    }
    return true;
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
encode(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    sxe__lua_json_encode(L);
    return 1;
}

/* json.decode(text): the value, or nil, why not */
static int
decode(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_settop(L, 1);
    if (sxe__lua_json_decode(L))
        return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

int
sxe__lua_open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {{"encode", encode}, {"decode", decode}, {NULL, NULL}};

    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL); /* what null is, in both directions */
    lua_setfield(L, -2, "null");
    return 1;
}
