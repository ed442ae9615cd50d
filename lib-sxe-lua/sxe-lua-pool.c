/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.pool": pools of lib-sxe-pool, whose elements have states with names and typed
 * fields.
 *
 * Pools live as long as the state, so a handle needs no more than a number of one, and an element
 *
 *     { class 8 | generation 24 | pool 8 | index in the pool 24 }
 *
 * An element that went back to the first state since is gone: its fields are nil, and what would
 * change it fails or raises.
 */
#include "sxe-lua-pool-private.h"

#include <string.h>

enum { POOLS_MAX = 256, STATES_MAX = 32, INDEX_BITS = 24, NUMBER_MAX = 1 << INDEX_BITS };

struct pool {
    void *array;
    uint32_t number; /* its own */
    int on_timeout;  /* in the registry; LUA_NOREF: back to the first state */
    unsigned states;
    char name[SXE__LUA_POOL_NAME_SIZE];
    char state[STATES_MAX][SXE__LUA_POOL_NAME_SIZE];
    double timeouts[STATES_MAX];
    bool is_timed;
    struct sxe__lua_pool_fields fields;
};

/* In a userdata of the state's, as is each pool. */
struct pools {
    unsigned number;
    struct pool *pool[POOLS_MAX];
};

static _Thread_local struct pools *pools;

static int
close_pools(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    for (unsigned i = 0; i < pools->number; i++)
        sxe_pool_delete(pools->pool[i]->array);
    pools = NULL;
    return 0;
}

/* ---- Elements ---- */

static void *
fields_of(const struct pool *pool, unsigned id)
{
    return (char *)pool->array + (size_t)id * pool->fields.size;
}

static uint32_t
generation_of(const struct pool *pool, unsigned id)
{
    return (uint32_t)(sxe_pool_get_handle(pool->array, id) >> 32) & SXE__LUA_GENERATION_MASK;
}

static int
push_element(lua_State *L, const struct pool *pool, unsigned id)
{
    if (id == SXE_POOL_NO_INDEX)
        lua_pushnil(L);
    else
        sxe__lua_push_handle(L, SXE__LUA_ELEMENT, pool->number << INDEX_BITS | id,
                             generation_of(pool, id));
    return 1;
}

/* The pool of an element's handle, its index there in *id; NULL: it is gone. */
static struct pool *
find_element(uint32_t index, uint32_t generation, unsigned *id)
{
    struct pool *pool;

    *id = index & (NUMBER_MAX - 1);
    if (pools == NULL)
        return NULL;
    pool = pools->pool[index >> INDEX_BITS];
    return generation_of(pool, *id) == generation ? pool : NULL;
}

static double
age_of(SXE_TIME since)
{
    return (double)(sxe_time_turn_ns() - since) / SXE_NS_PER_SECOND;
}

static int
get_of_element(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe__lua_pool_field *field;
    unsigned id;
    const struct pool *pool = find_element(index, generation, &id);

    if (pool == NULL)
        lua_pushnil(L);
    else if ((field = sxe__lua_pool_find_field(&pool->fields, name)) != NULL)
        sxe__lua_pool_push(L, field, fields_of(pool, id));
    else if (strcmp(name, "index") == 0)
        lua_pushinteger(L, id);
    else if (strcmp(name, "state") == 0)
        lua_pushstring(L, pool->state[sxe_pool_index_to_state(pool->array, id)]);
    else if (strcmp(name, "age") == 0)
        lua_pushnumber(L, age_of(sxe_pool_get_element_time_by_index(pool->array, id)));
    else
        return 0;
    return 1;
}

static int
set_of_element(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe__lua_pool_field *field;
    unsigned id;
    const struct pool *pool = find_element(index, generation, &id);

    if (pool == NULL)
        return luaL_error(L, "the element is gone, '%s' cannot be assigned", name);
    field = sxe__lua_pool_find_field(&pool->fields, name);
    if (field == NULL)
        return 0;
    sxe__lua_pool_set(L, field, fields_of(pool, id), 3);
    return 1;
}

/* ---- Arguments ---- */

static struct pool *
check_pool(lua_State *L)
{
    uint32_t generation;
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_POOL, &generation);

    luaL_argcheck(L, pools != NULL, 1, "the pool is gone");
    return pools->pool[index];
}

static unsigned
find_state(const struct pool *pool, const char *name)
{
    unsigned state = 0;

    while (state < pool->states && strcmp(pool->state[state], name) != 0)
        state++;
    return state;
}

static unsigned
check_state(lua_State *L, const struct pool *pool, int argument)
{
    const char *name = luaL_checkstring(L, argument);
    unsigned state = find_state(pool, name);

    if (state == pool->states)
        luaL_argerror(L, argument,
                      lua_pushfstring(L, "pool %s has no state '%s'", pool->name, name));
    return state;
}

/* An element or an index at argument 2; SXE_POOL_NO_INDEX: the element is gone. */
static unsigned
check_element(lua_State *L, const struct pool *pool)
{
    uint32_t index, generation;
    unsigned id;

    if (lua_isinteger(L, 2)) {
        lua_Integer i = lua_tointeger(L, 2);

        luaL_argcheck(L, i >= 0 && i < sxe_pool_get_number(pool->array), 2, "no such element");
        return (unsigned)i;
    }
    index = sxe__lua_check_handle(L, 2, SXE__LUA_ELEMENT, &generation);
    luaL_argcheck(L, index >> INDEX_BITS == pool->number, 2, "an element of another pool");
    return find_element(index, generation, &id) != NULL ? id : SXE_POOL_NO_INDEX;
}

/* ---- Methods ---- */

/* A new tenant finds nothing of the one before. */
static void
clean(const struct pool *pool, unsigned id, unsigned from)
{
    if (from == 0)
        memset(fields_of(pool, id), 0, pool->fields.size);
}

static int
l_take(lua_State *L)
{
    const struct pool *pool = check_pool(L);
    unsigned from = check_state(L, pool, 2);
    unsigned id = sxe_pool_set_oldest_element_state(pool->array, from, check_state(L, pool, 3));

    if (id != SXE_POOL_NO_INDEX)
        clean(pool, id, from);
    return push_element(L, pool, id);
}

static int
l_move(lua_State *L)
{
    const struct pool *pool = check_pool(L);
    unsigned id = check_element(L, pool);
    unsigned to = check_state(L, pool, 3);
    unsigned from;

    if (id == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    from = sxe_pool_index_to_state(pool->array, id);
    sxe_pool_set_indexed_element_state(pool->array, id, from, to);
    clean(pool, id, from);
    return push_element(L, pool, id);
}

static int
l_touch(lua_State *L)
{
    const struct pool *pool = check_pool(L);
    unsigned id = check_element(L, pool);

    if (id == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    sxe_pool_touch_indexed_element(pool->array, id);
    return push_element(L, pool, id);
}

static int
l_count(lua_State *L)
{
    const struct pool *pool = check_pool(L);

    lua_pushinteger(L, sxe_pool_get_number_in_state(pool->array, check_state(L, pool, 2)));
    return 1;
}

static int
l_oldest(lua_State *L)
{
    const struct pool *pool = check_pool(L);

    return push_element(L, pool,
                        sxe_pool_get_oldest_element_index(pool->array, check_state(L, pool, 2)));
}

static int
l_age(lua_State *L)
{
    const struct pool *pool = check_pool(L);
    SXE_TIME since = sxe_pool_get_oldest_element_time(pool->array, check_state(L, pool, 2));

    if (since == 0)
        lua_pushnil(L);
    else
        lua_pushnumber(L, age_of(since));
    return 1;
}

static int
l_at(lua_State *L)
{
    const struct pool *pool = check_pool(L);

    return push_element(L, pool, check_element(L, pool));
}

static int
l_add(lua_State *L)
{
    const struct pool *pool = check_pool(L);
    unsigned id = check_element(L, pool);
    const char *name = luaL_checkstring(L, 3);
    const struct sxe__lua_pool_field *field = sxe__lua_pool_find_field(&pool->fields, name);

    if (field == NULL)
        return luaL_argerror(L, 3,
                             lua_pushfstring(L, "pool %s has no field '%s'", pool->name, name));
    lua_settop(L, 4);
    if (lua_isnil(L, 4)) {
        lua_pushinteger(L, 1);
        lua_replace(L, 4);
    }
    if (id == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    sxe__lua_pool_add(L, field, fields_of(pool, id), 4);
    return 1;
}

/* Upvalues: the walker, the pool. */
static int
next_of_each(lua_State *L)
{
    SXE_POOL_WALKER *walker = lua_touserdata(L, lua_upvalueindex(1));

    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(2));
    return push_element(L, check_pool(L), sxe_pool_walker_step(walker));
}

static int
l_each(lua_State *L)
{
    const struct pool *pool = check_pool(L);
    unsigned state = check_state(L, pool, 2);
    SXE_POOL_WALKER *walker = lua_newuserdatauv(L, sizeof(*walker), 0);

    sxe_pool_walker_construct(walker, pool->array, state);
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, next_of_each, 2);
    return 1;
}

static int
get_of_pool(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    SXE_UNUSED_PARAMETER(generation);
    if (strcmp(name, "name") != 0)
        return 0;
    if (pools == NULL)
        lua_pushnil(L);
    else
        lua_pushstring(L, pools->pool[index]->name);
    return 1;
}

static int
length_of_pool(lua_State *L, uint32_t index, uint32_t generation)
{
    SXE_UNUSED_PARAMETER(generation);
    lua_pushinteger(L, pools == NULL ? 0 : sxe_pool_get_number(pools->pool[index]->array));
    return 1;
}

/* ---- Timeouts ---- */

/* Touched first: what the script leaves where it is has as long again. */
static void
on_timeout(void *array, unsigned id, void *user)
{
    const struct pool *pool = user;
    lua_State *L = sxe__lua_main(sxe__lua_current());

    if (pool->on_timeout == LUA_NOREF) {
        sxe_pool_set_indexed_element_state(array, id, sxe_pool_index_to_state(array, id), 0);
        return;
    }
    sxe_pool_touch_indexed_element(array, id);
    lua_rawgeti(L, LUA_REGISTRYINDEX, pool->on_timeout);
    push_element(L, pool, id);
    if (sxe__lua_start(L, 1, false, NULL, NULL) == 0)
        SXE_WARN("pool %s: no task is free for on_timeout of element %u", pool->name, id);
}

/* ---- Opening ---- */

static void
take_states(lua_State *L, struct pool *pool)
{
    if (lua_getfield(L, 1, "states") != LUA_TTABLE || lua_rawlen(L, -1) == 0 ||
        lua_rawlen(L, -1) > STATES_MAX)
        luaL_error(L, "states: a list of 1 to %d names expected", STATES_MAX);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        sxe__lua_pool_take_name(L, pool->state[pool->states], "a state");
        if (find_state(pool, lua_tostring(L, -1)) < pool->states)
            luaL_error(L, "states: '%s' is there twice", lua_tostring(L, -1));
        pool->states++;
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

static void
take_fields(lua_State *L, struct pool *pool)
{
    static const char *const ours[] = {"index", "state", "age"};

    lua_getfield(L, 1, "fields");
    sxe__lua_pool_take_fields(L, &pool->fields);
    lua_pop(L, 1);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (sxe__lua_pool_find_field(&pool->fields, ours[i]) != NULL)
            luaL_error(L, "fields: '%s' is a name of ours", ours[i]);
    }
}

static void
take_timeouts(lua_State *L, struct pool *pool)
{
    if (lua_getfield(L, 1, "timeouts") != LUA_TNIL) {
        luaL_argcheck(L, lua_istable(L, -1), 1, "timeouts: a table of states and seconds expected");
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
            unsigned state =
                lua_type(L, -2) == LUA_TSTRING ? find_state(pool, lua_tostring(L, -2)) : STATES_MAX;

            if (state >= pool->states)
                luaL_error(L, "timeouts: there is no state '%s'", luaL_tolstring(L, -2, NULL));
            if (!lua_isnumber(L, -1) || !(lua_tonumber(L, -1) > 0))
                luaL_error(L, "timeouts: seconds expected for state '%s'", pool->state[state]);
            pool->timeouts[state] = lua_tonumber(L, -1);
            pool->is_timed = true;
        }
    }
    lua_pop(L, 1);
    lua_getfield(L, 1, "on_timeout");
    if (!lua_isnil(L, -1) && !lua_isfunction(L, -1))
        luaL_error(L, "on_timeout: a function expected, got %s", luaL_typename(L, -1));
    if (lua_isnil(L, -1) && pool->timeouts[0] > 0)
        luaL_error(L, "timeouts: '%s' is where elements go, so it needs on_timeout",
                   pool->state[0]);
    pool->on_timeout = LUA_NOREF;
    if (lua_isfunction(L, -1))
        pool->on_timeout = luaL_ref(L, LUA_REGISTRYINDEX);
    else
        lua_pop(L, 1);
}

static unsigned
take_count(lua_State *L)
{
    int is_integer;
    lua_Integer count;

    lua_getfield(L, 1, "count");
    count = lua_tointegerx(L, -1, &is_integer);
    if (!is_integer || count < 1 || count > NUMBER_MAX)
        luaL_error(L, "count: 1 to %d elements expected", NUMBER_MAX);
    lua_pop(L, 1);
    return (unsigned)count;
}

static void
check_place(lua_State *L)
{
    static const char *const later[] = {"file", "shared"};

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, pools != NULL, 1, "the state is closed");
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        if (lua_getfield(L, 1, later[i]) != LUA_TNIL)
            luaL_error(L,
                       "%s: pools that processes share come with a later version; without it "
                       "the pool is this process's own",
                       later[i]);
    }
    if (pools->number == POOLS_MAX)
        luaL_error(L, "%d pools are open already", POOLS_MAX);
    lua_settop(L, 1);
}

static void
take_name(lua_State *L, struct pool *pool)
{
    lua_getfield(L, 1, "name");
    sxe__lua_pool_take_name(L, pool->name, "the pool");
    for (unsigned i = 0; i < pools->number; i++) {
        if (strcmp(pools->pool[i]->name, pool->name) == 0)
            luaL_error(L, "pool %s is open already", pool->name);
    }
    lua_pop(L, 1);
}

static int
l_open(lua_State *L)
{
    struct pool *pool;
    unsigned count;
    int reference;

    check_place(L);
    pool = lua_newuserdatauv(L, sizeof(*pool), 0);
    memset(pool, 0, sizeof(*pool));
    take_name(L, pool);
    count = take_count(L);
    take_states(L, pool);
    take_fields(L, pool);
    take_timeouts(L, pool);
    reference = luaL_ref(L, LUA_REGISTRYINDEX);
    pool->array = pool->is_timed
                      ? sxe_pool_new_with_timeouts(pool->name, count, pool->fields.size,
                                                   pool->states, pool->timeouts, on_timeout, pool)
                      : sxe_pool_new(pool->name, count, pool->fields.size, pool->states,
                                     SXE_POOL_OPTION_UNLOCKED);
    if (pool->array == NULL) {
        lua_pushstring(L, pool->name);
        luaL_unref(L, LUA_REGISTRYINDEX, pool->on_timeout);
        luaL_unref(L, LUA_REGISTRYINDEX, reference);
        return luaL_error(L, "not enough memory for pool %s", lua_tostring(L, -1));
    }
    pool->number = pools->number;
    pools->pool[pools->number++] = pool;
    sxe__lua_push_handle(L, SXE__LUA_POOL, pool->number, 0);
    return 1;
}

static void
open_pools(lua_State *L)
{
    lua_newuserdatauv(L, sizeof(*pools), 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_pools);
    lua_setfield(L, -2, "__gc");
    lua_pushvalue(L, -2);
    luaL_ref(L, LUA_REGISTRYINDEX);
    pools = lua_touserdata(L, -2);
    pools->number = 0;
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

int
sxe__lua_open_pool(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", l_open}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"take", l_take},   {"move", l_move},     {"touch", l_touch},
                                       {"count", l_count}, {"oldest", l_oldest}, {"age", l_age},
                                       {"at", l_at},       {"add", l_add},       {"each", l_each},
                                       {NULL, NULL}};
    static const struct sxe__lua_class_spec pool_spec = {
        .name = "sxe.pool", .methods = methods, .get = get_of_pool, .length = length_of_pool};
    static const struct sxe__lua_class_spec element_spec = {
        .name = "sxe.pool element", .get = get_of_element, .set = set_of_element};

    sxe__lua_register_class(L, SXE__LUA_POOL, &pool_spec);
    sxe__lua_register_class(L, SXE__LUA_ELEMENT, &element_spec);
    luaL_newlib(L, functions);
    if (pools == NULL)
        open_pools(L);
    return 1;
}
