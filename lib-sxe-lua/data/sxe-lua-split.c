/* SPDX-License-Identifier: MIT
 *
 * What: sxe.split(text, separator), an iterator over the parts of a text. The separator is plain
 * text, not a pattern.
 */
#include "sxe-lua-private.h"

#include <string.h>

/* Upvalues of the iterator; AT is nil after the last part. */
enum { TEXT = 1, SEPARATOR, AT };

static int
next_split_part(lua_State *L)
{
    size_t length, separator_length;
    const char *text = lua_tolstring(L, lua_upvalueindex(TEXT), &length);
    const char *separator = lua_tolstring(L, lua_upvalueindex(SEPARATOR), &separator_length);
    size_t at = (size_t)lua_tointeger(L, lua_upvalueindex(AT));
    const char *end;

    if (lua_isnil(L, lua_upvalueindex(AT)))
        return 0;
    end = memmem(text + at, length - at, separator, separator_length);
    if (end == NULL) {
        lua_pushnil(L);
        lua_replace(L, lua_upvalueindex(AT));
        lua_pushlstring(L, text + at, length - at);
        return 1;
    }
    lua_pushinteger(L, end - text + (lua_Integer)separator_length);
    lua_replace(L, lua_upvalueindex(AT));
    lua_pushlstring(L, text + at, (size_t)(end - text) - at);
    return 1;
}

int
sxe__lua_split(lua_State *L)
{
    size_t length;

    luaL_checkstring(L, TEXT);
    luaL_checklstring(L, SEPARATOR, &length);
    luaL_argcheck(L, length > 0, SEPARATOR, "a separator is expected");
    lua_settop(L, SEPARATOR);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_split_part, AT);
    return 1;
}
