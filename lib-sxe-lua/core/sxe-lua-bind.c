/* SPDX-License-Identifier: MIT
 *
 * A table with bound fields does not hold them itself, so that each access to one comes to its
 * metatable:
 *
 *     config = {}    its metatable   {fields = {port = <struct bound>}, __index, __newindex}
 */
#include "sxe-lua-core-private.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

struct bound {
    enum sxe_lua_type type;
    void *variable;
    size_t size; /* for a string: bytes of its char array */
};

struct request {
    const char *table;
    const char *field;
    struct bound bound;
};

static void
push_variable(lua_State *L, const struct bound *bound)
{
    switch (bound->type) {
    case SXE_LUA_BOOL:
        lua_pushboolean(L, *(bool *)bound->variable);
        break;
    case SXE_LUA_INT:
        lua_pushinteger(L, *(int *)bound->variable);
        break;
    case SXE_LUA_INT64:
        lua_pushinteger(L, *(int64_t *)bound->variable);
        break;
    case SXE_LUA_DOUBLE:
        lua_pushnumber(L, *(double *)bound->variable);
        break;
    case SXE_LUA_STRING:
        lua_pushlstring(L, bound->variable, strnlen(bound->variable, bound->size));
        break;
    }
}

static int
refuse_bound_value(lua_State *L, const char *wanted)
{
    return luaL_error(L, "field '%s' is bound to a variable of C: %s expected, got %s",
                      lua_tostring(L, 2), wanted, luaL_tolstring(L, 3, NULL));
}

static lua_Integer
check_bound_integer(lua_State *L, lua_Integer least, lua_Integer most)
{
    int is_integer;
    lua_Integer value = lua_tointegerx(L, 3, &is_integer);

    if (!is_integer || value < least || value > most)
        refuse_bound_value(L, most == INT_MAX ? "an int" : "an integer");
    return value;
}

static void
push_text_copy(lua_State *L, const struct bound *bound)
{
    size_t length;
    const char *text = lua_tolstring(L, 3, &length);

    if (text == NULL || strlen(text) != length)
        refuse_bound_value(L, "a string without zero bytes");
    if (length >= bound->size)
        length = bound->size - 1;
    memcpy(bound->variable, text, length);
    ((char *)bound->variable)[length] = '\0';
}

static void
assign_variable(lua_State *L, const struct bound *bound)
{
    switch (bound->type) {
    case SXE_LUA_BOOL:
        if (!lua_isboolean(L, 3))
            refuse_bound_value(L, "a boolean");
        *(bool *)bound->variable = lua_toboolean(L, 3) != 0;
        break;
    case SXE_LUA_INT:
        *(int *)bound->variable = (int)check_bound_integer(L, INT_MIN, INT_MAX);
        break;
    case SXE_LUA_INT64:
        *(int64_t *)bound->variable = check_bound_integer(L, LUA_MININTEGER, LUA_MAXINTEGER);
        break;
    case SXE_LUA_DOUBLE:
        if (!lua_isnumber(L, 3))
            refuse_bound_value(L, "a number");
        *(double *)bound->variable = lua_tonumber(L, 3);
        break;
    case SXE_LUA_STRING:
        push_text_copy(L, bound);
        break;
    }
}

/* The C variable to which the key at index 2 is bound, or NULL. Upvalue 1 is the table of
 * fields. */
static const struct bound *
find_bound(lua_State *L)
{
    const struct bound *bound;

    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(1));
    bound = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return bound;
}

static int
read_field(lua_State *L)
{
    const struct bound *bound = find_bound(L);

    if (bound == NULL)
        return 0;
    push_variable(L, bound);
    return 1;
}

static int
assign_field(lua_State *L)
{
    const struct bound *bound = find_bound(L);

    if (bound != NULL)
        assign_variable(L, bound);
    else
        lua_rawset(L, 1);
    return 0;
}

/* Push the fields of the table on top. A table without a metatable gets one. */
static void
push_fields(lua_State *L, const char *table)
{
    static const luaL_Reg metamethods[] = {
        {"__index", read_field}, {"__newindex", assign_field}, {NULL, NULL}};

    if (luaL_getmetafield(L, -1, "sxe.fields") == LUA_TTABLE)
        return;
    if (lua_getmetatable(L, -1))
        luaL_error(L, "%s has a metatable, no field can be bound", table);
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "sxe.fields");
    lua_insert(L, -2);
    lua_pushvalue(L, -2);
    luaL_setfuncs(L, metamethods, 1);
    lua_setmetatable(L, -3);
}

static int
l_bind(lua_State *L)
{
    const struct request *request = lua_touserdata(L, 1);

    lua_pushglobaltable(L);
    lua_pushstring(L, request->table);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_newtable(L);
        lua_pushstring(L, request->table);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    if (!lua_istable(L, -1))
        return luaL_error(L, "%s is no table, no field can be bound", request->table);
    lua_pushstring(L, request->field);
    lua_pushnil(L);
    lua_rawset(L, -3);
    push_fields(L, request->table);
    lua_pushstring(L, request->field);
    *(struct bound *)lua_newuserdatauv(L, sizeof(struct bound), 0) = request->bound;
    lua_rawset(L, -3);
    return 0;
}

static int
bind_variable(struct sxe_lua *lua, struct request *request)
{
    if (lua == NULL)
        return -EINVAL;
    return sxe__lua_protect(lua, l_bind, request, "sxe_lua_bind");
}

int
sxe_lua_bind_field(struct sxe_lua *lua, const char *table, const char *field,
                   enum sxe_lua_type type, void *variable)
{
    struct request request = {table, field, {type, variable, 0}};

    if (type == 0 || type == SXE_LUA_STRING || strchr("bild", (int)type) == NULL)
        return -EINVAL;
    return bind_variable(lua, &request);
}

int
sxe_lua_bind_string(struct sxe_lua *lua, const char *table, const char *field, char *text,
                    size_t size)
{
    struct request request = {table, field, {SXE_LUA_STRING, text, size}};

    return size == 0 ? -EINVAL : bind_variable(lua, &request);
}
