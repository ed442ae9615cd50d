/* SPDX-License-Identifier: MIT
 *
 * What: sxe_pool_...: the pools of 2011. Elements are numbers, each with a table of the script's.
 *
 * Where the C library asserts, this raises an error in the script, so that no script can end the
 * process.
 */
#include "sxe-lua-compat-private.h"

static const char class_name[] = "sxe pool";

enum { ALIGNMENT = 64, NUMBER_MAX = 10000000 };

/* A userdata, which has room for the pool's memory after this struct. Its user value is a table:
 * an element's index -> the script's table for that element. */
struct pool {
    void *array;
    unsigned states;
};

static struct pool *
check_compat_pool(lua_State *L)
{
    return luaL_checkudata(L, 1, class_name);
}

static unsigned
check_index(lua_State *L, const struct pool *pool, int argument)
{
    lua_Integer index = luaL_checkinteger(L, argument);

    luaL_argcheck(L, index >= 0 && index < sxe_pool_get_number(pool->array), argument,
                  "no such element");
    return (unsigned)index;
}

static unsigned
check_compat_state(lua_State *L, const struct pool *pool, int argument)
{
    lua_Integer state = luaL_checkinteger(L, argument);

    luaL_argcheck(L, state >= 0 && state < pool->states, argument, "no such state");
    return (unsigned)state;
}

static int
push_index(lua_State *L, unsigned index)
{
    if (index == SXE_POOL_NO_INDEX)
        lua_pushnil(L);
    else
        lua_pushinteger(L, index);
    return 1;
}

static int
l_new(lua_State *L)
{
    const char *name = sxe__lua_check_text(L, 1);
    lua_Integer number = luaL_checkinteger(L, 2);
    lua_Integer states = luaL_checkinteger(L, 3);
    struct pool *pool;
    char *memory;

    luaL_argcheck(L, number > 0 && number <= NUMBER_MAX, 2, "1 to 10000000 elements are expected");
    luaL_argcheck(L, states > 0 && states <= NUMBER_MAX, 3, "1 to 10000000 states are expected");
    pool = lua_newuserdatauv(
        L, sizeof(*pool) + ALIGNMENT + sxe_pool_size((unsigned)number, 1, (unsigned)states), 1);
    pool->states = (unsigned)states;
    memory = (char *)(pool + 1);
    memory += -(uintptr_t)memory % ALIGNMENT;
    pool->array = sxe_pool_construct(memory, name, (unsigned)number, 1, pool->states,
                                     SXE_POOL_OPTION_UNLOCKED);
    luaL_setmetatable(L, class_name);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

static int
l_get_name(lua_State *L)
{
    lua_pushstring(L, sxe_pool_get_name(check_compat_pool(L)->array));
    return 1;
}

static int
l_get_number_in_state(lua_State *L)
{
    const struct pool *pool = check_compat_pool(L);

    lua_pushinteger(L, sxe_pool_get_count(pool->array, check_compat_state(L, pool, 2)));
    return 1;
}

static int
l_get_oldest_element_index(lua_State *L)
{
    const struct pool *pool = check_compat_pool(L);

    return push_index(L, sxe_pool_get_oldest(pool->array, check_compat_state(L, pool, 2)));
}

static int
l_index_to_state(lua_State *L)
{
    const struct pool *pool = check_compat_pool(L);

    lua_pushinteger(L, sxe_pool_get_state(pool->array, check_index(L, pool, 2)));
    return 1;
}

static int
l_set_indexed_element_state(lua_State *L)
{
    const struct pool *pool = check_compat_pool(L);
    unsigned index = check_index(L, pool, 2);
    unsigned from = check_compat_state(L, pool, 3);
    unsigned to = check_compat_state(L, pool, 4);

    if (sxe_pool_try_move(pool->array, index, from, &to) != index)
        return luaL_error(L, "pool %s: element %d is in state %d, not %d",
                          sxe_pool_get_name(pool->array), (int)index, (int)to, (int)from);
    return 0;
}

static int
l_set_oldest_element_state(lua_State *L)
{
    const struct pool *pool = check_compat_pool(L);
    unsigned from = check_compat_state(L, pool, 2);

    return push_index(L, sxe_pool_take(pool->array, from, check_compat_state(L, pool, 3)));
}

static int
l_touch_indexed_element(lua_State *L)
{
    const struct pool *pool = check_compat_pool(L);

    sxe_pool_touch(pool->array, check_index(L, pool, 2));
    return 0;
}

static int
l_get_indexed_element(lua_State *L)
{
    unsigned index = check_index(L, check_compat_pool(L), 2);

    lua_getiuservalue(L, 1, 1);
    if (lua_rawgeti(L, -1, index) != LUA_TNIL)
        return 1;
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, index);
    lua_setfield(L, -2, "index");
    lua_pushvalue(L, -1);
    lua_rawseti(L, -4, index);
    return 1;
}

/* This is for pools made in C: pools of scripts have no timeouts. */
static int
l_check_timeouts(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    sxe_pool_check_timeouts();
    return 0;
}

void
sxe__lua_open_compat_pool(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"sxe_pool_new", l_new},
        {"sxe_pool_get_name", l_get_name},
        {"sxe_pool_get_number_in_state", l_get_number_in_state},
        {"sxe_pool_get_oldest_element_index", l_get_oldest_element_index},
        {"sxe_pool_index_to_state", l_index_to_state},
        {"sxe_pool_set_indexed_element_state", l_set_indexed_element_state},
        {"sxe_pool_set_oldest_element_state", l_set_oldest_element_state},
        {"sxe_pool_touch_indexed_element", l_touch_indexed_element},
        {"sxe_pool_check_timeouts", l_check_timeouts},
        {"sxe_pool_get_indexed_element", l_get_indexed_element},
        {NULL, NULL}};

    sxe__lua_new_class(L, class_name);
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
