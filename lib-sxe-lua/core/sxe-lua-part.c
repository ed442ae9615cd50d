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

static int
call_atomic(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

int
sxe__lua_atomic(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushcclosure(L, call_atomic, 1);
    return 1;
}

static int
call_insisting(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK)
        return 0;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 0);
    return lua_error(L);
}

int
sxe__lua_insist(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushcclosure(L, call_insisting, 1);
    return 1;
}
