/* SPDX-License-Identifier: MIT
 *
 * Strings of Lua, which may have zero bytes, as texts of C, which end at the first: none is cut.
 */
#include "sxe-lua-private.h"

#include <string.h>

const char *
sxe__lua_text(lua_State *L, int index)
{
    const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : NULL;

    return text != NULL && strlen(text) == lua_rawlen(L, index) ? text : NULL;
}

const char *
sxe__lua_check_text(lua_State *L, int argument)
{
    size_t length;
    const char *text = luaL_checklstring(L, argument, &length);

    luaL_argcheck(L, strlen(text) == length, argument, "text without zero bytes expected");
    return text;
}

const char *
sxe__lua_push_shown(lua_State *L, int index)
{
    size_t length;
    const char *text = luaL_tolstring(L, index, &length);
    luaL_Buffer shown;

    if (strlen(text) == length)
        return text;
    luaL_buffinit(L, &shown);
    luaL_addstring(&shown, text);
    for (size_t at = strlen(text); at < length; at += 1 + strlen(text + at + 1)) {
        luaL_addstring(&shown, "\\0");
        luaL_addstring(&shown, text + at + 1);
    }
    luaL_pushresult(&shown);
    return lua_tostring(L, -1);
}
