/* SPDX-License-Identifier: MIT
 *
 * Parts of modules that are written in Lua.
 */
#include "sxe-lua-part-internal.h"

#include <lauxlib.h>

#include "sxe-lua-clock.h"

void
sxe__lua_push_part(lua_State *L, const struct sxe__lua_part *part)
{
    if (luaL_loadbufferx(L, part->begin, (size_t)(part->end - part->begin), part->name, "t") !=
        LUA_OK)
        lua_error(L);
}

int
sxe__lua_now_s(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)sxe_lua_get_clock()->now_ns() / 1e9);
    return 1;
}
