/* SPDX-License-Identifier: MIT
 *
 * Tables that json.array marked: they are lists even if they are empty.
 */
#include "sxe-lua-http-private.h"

/* Key of the registry: the metatable of lists, which has only a name. */
static const char list_key = 0;

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

void
sxe__lua_json_mark_class(lua_State *L)
{
    lua_pushboolean(L, 1);
    lua_rawsetp(L, -2, &list_key);
}

bool
sxe__lua_json_is_marked(lua_State *L)
{
    bool is_marked;

    if (lua_getmetatable(L, -1) == 0)
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &list_key);
    lua_rawgetp(L, -2, &list_key);
    is_marked = lua_rawequal(L, -2, -3) || lua_toboolean(L, -1);
    lua_pop(L, 3);
    return is_marked;
}
