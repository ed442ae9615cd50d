/* SPDX-License-Identifier: MIT
 *
 * Elements of pools: handles of lib-sxe-lua,
 *
 *     { class 8 | generation 24 | pool 8 | index in the pool 24 }
 *
 * because pools live as long as the Lua state. A handle is void after its element went back to the
 * first state: its fields are nil, and assigning one raises an error.
 */
#include <string.h>

#include "sxe-lua-pool-private.h"

#define POOLS sxe__lua_pools

static uint32_t
generation_of(const struct sxe__lua_pool *pool, unsigned id)
{
    return (uint32_t)(sxe_pool_get_handle(pool->array, id) >> 32) & SXE__LUA_GENERATION_MASK;
}

int
sxe__lua_pool_push_element(lua_State *L, const struct sxe__lua_pool *pool, unsigned id)
{
    if (id == SXE_POOL_NO_INDEX)
        lua_pushnil(L);
    else
        sxe__lua_push_handle(L, SXE__LUA_ELEMENT, pool->index << SXE__LUA_POOL_INDEX_BITS | id,
                             generation_of(pool, id));
    return 1;
}

struct sxe__lua_pool *
sxe__lua_pool_find_element(uint32_t index, uint32_t generation, unsigned *id)
{
    struct sxe__lua_pool *pool;

    *id = index & (SXE__LUA_POOL_ELEMENTS - 1);
    if (POOLS == NULL)
        return NULL;
    pool = POOLS->pool[index >> SXE__LUA_POOL_INDEX_BITS];
    return generation_of(pool, *id) == generation ? pool : NULL;
}

int
sxe__lua_pool_raise_damaged(lua_State *L, const struct sxe__lua_pool *pool)
{
    return luaL_error(L, "pool %s is damaged: something else wrote into its memory", pool->name);
}

unsigned
sxe__lua_pool_state_of(lua_State *L, const struct sxe__lua_pool *pool, unsigned id)
{
    unsigned state = sxe_pool_get_state(pool->array, id);

    if (state >= pool->states)
        sxe__lua_pool_raise_damaged(L, pool);
    return state;
}

/* The age is 0 if another process made the change after the time that this loop has cached. */
double
sxe__lua_pool_age(const struct sxe__lua_pool *pool, SXE_TIME since)
{
    SXE_TIME now = sxe_pool_get_now(pool->array);

    return now > since ? (double)(now - since) / SXE_NS_PER_SECOND : 0;
}

/* ---- Fields: an element's handle is at 1, the name at 2 ---- */

static int get_member_again(lua_State *L, int status, lua_KContext until);

static int
half_written(lua_State *L, const struct sxe__lua_pool *pool, unsigned id, lua_KContext until)
{
    if (sxe__lua_may_try_again(L, pool->wait_ns, until))
        return sxe__lua_again(L, pool->wait_ns, get_member_again, until);
    return luaL_error(L,
                      "element %d of pool %s is half written; if its writer was killed, write it "
                      "again with pool:write()",
                      (int)id, pool->name);
}

static int
get_element_member(lua_State *L, uint32_t index, uint32_t generation, const char *name,
                   lua_KContext until)
{
    unsigned id;
    const struct sxe__lua_pool *pool = sxe__lua_pool_find_element(index, generation, &id);
    const struct sxe_pool_field *field =
        pool == NULL ? NULL : sxe_pool_layout_find(&pool->fields, name);

    if (field != NULL) {
        if (sxe_pool_read_part(pool->array, id, field->offset, field->size,
                               pool->scratch + field->offset) < 0)
            return half_written(L, pool, id, until);
        /* The element may have returned to state 0 meanwhile; then its handle is void. */
        pool = sxe__lua_pool_find_element(index, generation, &id);
    }
    if (pool == NULL)
        lua_pushnil(L);
    else if (field != NULL)
        sxe__lua_pool_push(L, field, pool->scratch);
    else if (strcmp(name, "index") == 0)
        lua_pushinteger(L, id);
    else if (strcmp(name, "state") == 0)
        lua_pushstring(L, pool->state[sxe__lua_pool_state_of(L, pool, id)]);
    else if (strcmp(name, "age") == 0)
        lua_pushnumber(L, sxe__lua_pool_age(pool, sxe_pool_get_time(pool->array, id)));
    else
        return 0;
    return 1;
}

static int
get_member_again(lua_State *L, int status, lua_KContext until)
{
    uint32_t generation;
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_ELEMENT, &generation);

    if (sxe__lua_was_cancelled(L, status))
        return luaL_error(L, "cancelled");
    return get_element_member(L, index, generation, lua_tostring(L, 2), until);
}

static int
get_of_element(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    return get_element_member(L, index, generation, name, 0);
}

static int
set_of_element(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe_pool_field *field;
    unsigned id;
    const struct sxe__lua_pool *pool = sxe__lua_pool_find_element(index, generation, &id);

    if (pool == NULL)
        return luaL_error(L, "the element is gone, '%s' cannot be assigned", name);
    field = sxe_pool_layout_find(&pool->fields, name);
    if (field == NULL)
        return 0;
    sxe__lua_pool_set(L, field, pool->scratch, 3);
    sxe_pool_write_part(pool->array, id, field->offset, field->size, pool->scratch + field->offset);
    return 1;
}

const struct sxe__lua_class_spec sxe__lua_pool_element = {
    .name = "sxe.pool element", .get = get_of_element, .set = set_of_element};
