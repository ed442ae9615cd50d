/* SPDX-License-Identifier: MIT
 *
 * The globals are the names to which a script's top level, or a module while it was loaded,
 * assigned a value, even nil. Later any other name is a mistake: a variable that was meant to be
 * local, or a word with a letter wrong.
 */
#include "sxe-lua-core-private.h"

/* Whether the global named at index 2 exists (upvalue 1 lists all that were made), or may be made
 * now. */
static bool
is_declared(lua_State *L)
{
    const struct sxe_lua *lua = sxe__lua_current();
    bool is;

    lua_pushvalue(L, 2);
    is = lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL;
    lua_pop(L, 1);
    return is || lua->loading > 0 || lua->requiring > 0;
}

static int
refuse_global(lua_State *L, const char *what)
{
    const char *name = luaL_tolstring(L, 2, NULL);

    return luaL_error(L, "%s '%s': globals are made while the script is loaded; is it a local?",
                      what, name);
}

static int
read_global(lua_State *L)
{
    return is_declared(L) ? 0 : refuse_global(L, "undeclared global");
}

static int
assign_global(lua_State *L)
{
    if (!is_declared(L))
        return refuse_global(L, "assignment to undeclared global");
    lua_pushvalue(L, 2);
    lua_pushboolean(L, 1);
    lua_rawset(L, lua_upvalueindex(1));
    lua_rawset(L, 1);
    return 0;
}

void
sxe__lua_open_strict(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__index", read_global}, {"__newindex", assign_global}, {NULL, NULL}};

    lua_pushglobaltable(L);
    lua_createtable(L, 0, 2);
    lua_newtable(L);
    luaL_setfuncs(L, metamethods, 1);
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}
