/* SPDX-License-Identifier: MIT
 *
 * Values as a person reads them, and the local variables of the function that raised an error, for
 * the page that a developer's browser gets.
 */
#include "sxe-lua-core-private.h"

#include <stdio.h>
#include <string.h>

enum { LOCALS_MAX = 40, LINE_ROOM = 256, STACK_ROOM = 20 };

/* In the registry: a line for each local variable where the last error was raised. */
static const char locals_key = 0;

void
sxe__lua_show_value(lua_State *L, int index, char *room, size_t size)
{
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
        snprintf(room, size, "\"%s\"", lua_tostring(L, index));
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            snprintf(room, size, LUA_INTEGER_FMT, lua_tointeger(L, index));
        else
            snprintf(room, size, LUA_NUMBER_FMT, lua_tonumber(L, index));
        break;
    case LUA_TBOOLEAN:
        snprintf(room, size, "%s", lua_toboolean(L, index) ? "true" : "false");
        break;
    default:
        snprintf(room, size, "%s", luaL_typename(L, index));
        break;
    }
}

size_t
sxe__lua_show_fields(lua_State *L, int table, char *room, size_t size)
{
    size_t used = 0;

    *room = '\0';
    lua_pushnil(L);
    while (used < size - 1 && lua_next(L, table) != 0) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        char value[64];

        sxe__lua_show_value(L, -1, value, sizeof(value));
        used += (size_t)snprintf(room + used, size - used, "%s%s%s%s", used == 0 ? "" : ", ",
                                 name == NULL ? "" : name, name == NULL ? "" : " = ", value);
        used = used < size ? used : size - 1;
        lua_pop(L, 1);
    }
    return used;
}

/* The function of Lua that raised the error: the first one from `level` on. */
static bool
find_function(lua_State *coroutine, int level, lua_Debug *function)
{
    for (; lua_getstack(coroutine, level, function); level++) {
        lua_getinfo(coroutine, "S", function);
        if (*function->what != 'C')
            return true;
    }
    return false;
}

/* Add "name = value" for the value on top, and pop it. */
static void
add_local_line(lua_State *L, luaL_Buffer *lines, const char *name)
{
    char fields[LINE_ROOM - 64];
    char line[LINE_ROOM];

    if (lua_istable(L, -1)) {
        sxe__lua_show_fields(L, lua_gettop(L), fields, sizeof(fields));
        snprintf(line, sizeof(line), "%.40s = {%s}\n", name, fields);
    } else {
        sxe__lua_show_value(L, -1, fields, sizeof(fields));
        snprintf(line, sizeof(line), "%.40s = %s\n", name, fields);
    }
    lua_pop(L, 1);
    luaL_addstring(lines, line);
}

void
sxe__lua_keep_locals(lua_State *L, lua_State *coroutine, int level)
{
    lua_Debug function;
    luaL_Buffer lines;
    const char *name;

    luaL_checkstack(L, STACK_ROOM, NULL);
    luaL_buffinitsize(L, &lines, LOCALS_MAX * LINE_ROOM);
    if (find_function(coroutine, level, &function) && lua_checkstack(coroutine, 1)) {
        for (int i = 1; i <= LOCALS_MAX; i++) {
            name = lua_getlocal(coroutine, &function, i);
            if (name == NULL)
                break;
            if (coroutine != L)
                lua_xmove(coroutine, L, 1);
            if (*name == '(') /* not a variable, but a temporary value of Lua */
                lua_pop(L, 1);
            else
                add_local_line(L, &lines, name);
        }
    }
    luaL_pushresult(&lines);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &locals_key);
}

const char *
sxe__lua_push_locals(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &locals_key);
    return lua_tostring(L, -1);
}
