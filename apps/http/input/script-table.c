/* SPDX-License-Identifier: MIT
 *
 * Reading fields of a scenario's table, with errors that name the field.
 */
#include "script-table.h"

#include <string.h>

#include "script-lua.h"

/* Refuse unknown names, because a misspelt name would be ignored silently. */
void
load_table_refuse_others(lua_State *L, int table, const char *where, const char *const *names)
{
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        const char *name = luaL_tolstring(L, -2, NULL);
        unsigned i = 0;

        while (names[i] != NULL && strcmp(names[i], name) != 0)
            i++;
        if (names[i] == NULL || load_lua_has_zero(L, -1))
            luaL_error(L, "%s has an unknown field '%s'", where, name);
        lua_pop(L, 1);
    }
}

void
load_table_check_list(lua_State *L, int table, const char *where)
{
    lua_Integer hole = 1, number = 0;

    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1), number++)
        if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 1)
            luaL_error(L, "%s is a list, and has a key '%s'", where, luaL_tolstring(L, -2, NULL));
    for (; lua_rawgeti(L, table, hole) != LUA_TNIL; hole++)
        lua_pop(L, 1);
    lua_pop(L, 1);
    if (hole <= number)
        luaL_error(L, "%s[%I] is nil, and others come after it: is a name misspelt?", where, hole);
}

bool
load_table_field(lua_State *L, int table, const char *where, const char *name, int type)
{
    int found = lua_getfield(L, table, name);

    if (found != LUA_TNIL && found != type && !(type == LUA_TSTRING && found == LUA_TNUMBER))
        luaL_error(L, "%s.%s must be a %s, not a %s", where, name, lua_typename(L, type),
                   lua_typename(L, found));
    return found != LUA_TNIL;
}

uint64_t
load_table_number(lua_State *L, int table, const char *where, const char *name, lua_Integer max)
{
    lua_Integer value = 1;
    int is_integer = 1;

    if (load_table_field(L, table, where, name, LUA_TNUMBER))
        value = lua_tointegerx(L, -1, &is_integer);
    lua_pop(L, 1);
    if (!is_integer || value < 1 || value > max)
        luaL_error(L, "%s.%s must be a whole number from 1 to %I", where, name, max);
    return (uint64_t)value;
}

const char *
load_table_text(lua_State *L, int table, const char *where, const char *name)
{
    const char *text;

    if (!load_table_field(L, table, where, name, LUA_TSTRING)) {
        lua_pop(L, 1);
        return NULL;
    }
    text = lua_tostring(L, -1);
    if (load_lua_has_zero(L, -1))
        luaL_error(L, "%s.%s must be a text without zero bytes", where, name);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return text;
}
