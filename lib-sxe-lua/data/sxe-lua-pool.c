/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.pool": pools of lib-sxe-pool, whose elements have states with names and typed
 * fields. Pools live as long as the Lua state, so a handle needs only the index of a pool.
 *
 * A method of a shared pool may find a lock held. So its work is in a function that can also run as
 * a continuation: it begins again with the arguments, which stay in their places on the stack.
 */
#include "sxe-lua-pool-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-libc-internal.h"

_Thread_local struct sxe__lua_pools *sxe__lua_pools;

#define POOLS sxe__lua_pools

static int
close_pools(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    for (unsigned i = 0; i < POOLS->number; i++) {
        sxe__lua_pool_unwatch(POOLS->pool[i]);
        sxe_pool_delete(POOLS->pool[i]->array);
    }
    POOLS = NULL;
    return 0;
}

/* ---- Arguments ---- */

static struct sxe__lua_pool *
check_pool(lua_State *L)
{
    uint32_t generation;
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_POOL, &generation);

    luaL_argcheck(L, POOLS != NULL, 1, "the pool is gone");
    return POOLS->pool[index];
}

unsigned
sxe__lua_pool_find_state(const struct sxe__lua_pool *pool, const char *name)
{
    for (unsigned state = 0; state < pool->states; state++) {
        if (strcmp(pool->state[state], name) == 0)
            return state;
    }
    return SXE__LUA_POOL_STATES;
}

static unsigned
check_state_argument(lua_State *L, const struct sxe__lua_pool *pool, int argument)
{
    const char *name = sxe__lua_check_text(L, argument);
    unsigned state = sxe__lua_pool_find_state(pool, name);

    if (state == SXE__LUA_POOL_STATES)
        luaL_argerror(L, argument,
                      lua_pushfstring(L, "pool %s has no state '%s'", pool->name, name));
    return state;
}

/* The index of the element at argument 2, a handle or an index; SXE_POOL_NO_INDEX: the element is
 * gone. */
static unsigned
check_element_argument(lua_State *L, const struct sxe__lua_pool *pool)
{
    uint32_t index, generation;
    unsigned id;

    if (lua_isinteger(L, 2)) {
        lua_Integer i = lua_tointeger(L, 2);

        luaL_argcheck(L, i >= 0 && i < sxe_pool_get_number(pool->array), 2, "no such element");
        return (unsigned)i;
    }
    index = sxe__lua_check_handle(L, 2, SXE__LUA_ELEMENT, &generation);
    luaL_argcheck(L, index >> SXE__LUA_POOL_INDEX_BITS == pool->index, 2,
                  "an element of another pool");
    return sxe__lua_pool_find_element(index, generation, &id) != NULL ? id : SXE_POOL_NO_INDEX;
}

static const struct sxe_pool_field *
check_field_name(lua_State *L, const struct sxe__lua_pool *pool, const char *name, int argument)
{
    const struct sxe_pool_field *field = sxe_pool_layout_find(&pool->fields, name);

    if (field == NULL)
        luaL_argerror(L, argument,
                      lua_pushfstring(L, "pool %s has no field '%s'", pool->name, name));
    return field;
}

/* ---- Methods that move ---- */

/* After a call of the pool that found a lock held, try again; after a call that found damage, raise
 * an error. */
static int
retry_unless_damaged(lua_State *L, const struct sxe__lua_pool *pool, unsigned result,
                     lua_KFunction k, lua_KContext until)
{
    return result == SXE_POOL_DAMAGED ? sxe__lua_pool_raise_damaged(L, pool)
                                      : sxe__lua_again(L, pool->wait_ns, k, until);
}

/* New contents for an element that changes its state: zeros if the element was free, so that the
 * new owner sees nothing of the last owner's contents; NULL: the element keeps its contents. */
static const void *
contents_for(const struct sxe__lua_pool *pool, unsigned from, unsigned to)
{
    if (from != 0 || to == 0)
        return NULL;
    return memset(pool->scratch, 0, pool->element_size);
}

/* Push an element and its lease. In Lua a lease is a stamp without an id, because the result before
 * the stamp is the element. */
int
sxe__lua_pool_push_leased(lua_State *L, const struct sxe__lua_pool *pool,
                          const SXE_POOL_LEASE *lease)
{
    (void)sxe__lua_pool_push_element(L, pool, lease->id);
    lua_pushinteger(L, (lua_Integer)lease->stamp);
    return 2;
}

/* Wake a task that waits for the element's new state, and push the element and its lease. */
static int
return_moved_element(lua_State *L, struct sxe__lua_pool *pool, const SXE_POOL_LEASE *lease,
                     unsigned from, unsigned to)
{
    if (to != from)
        sxe__lua_pool_came(pool, to);
    return sxe__lua_pool_push_leased(L, pool, lease);
}

/* The lease of an element, from the stamp that an argument gives; without the argument the stamp is
 * 0. */
static SXE_POOL_LEASE
check_lease(lua_State *L, unsigned id, int argument)
{
    const lua_Integer stamp = luaL_optinteger(L, argument, 0);

    /* A script gave the stamp 0, which a lost lease has. But the callers take 0 for "no lease was
     * given": so return a stamp that no element ever had, and they find the lease lost. */
    if (!lua_isnoneornil(L, argument) && stamp == 0)
        return (SXE_POOL_LEASE){.id = id, .stamp = UINT64_MAX};
    return (SXE_POOL_LEASE){.id = id, .stamp = (SXE_TIME)stamp};
}

/* Places in the stack of take. */
enum { FROM = 2, TO, SECONDS, DEADLINE };

static int
take_pool_element(lua_State *L, int status, lua_KContext until)
{
    struct sxe__lua_pool *pool = check_pool(L);
    unsigned from = check_state_argument(L, pool, FROM);
    unsigned to = check_state_argument(L, pool, TO);
    const void *contents;
    SXE_POOL_LEASE lease;
    unsigned id;

    if (sxe__lua_was_cancelled(L, status)) {
        sxe__lua_pool_waited(pool, from);
        return sxe__lua_fail_woken(L);
    }
    contents = contents_for(pool, from, to);
    id = pool->is_exact ? sxe_pool_lease_exact_oldest(pool->array, from, to, contents, &lease)
                        : sxe_pool_lease_oldest(pool->array, from, to, contents, &lease);
    if (id < sxe_pool_get_number(pool->array)) {
        if (status == LUA_YIELD)
            sxe__lua_pool_waited(pool, from);
        return return_moved_element(L, pool, &lease, from, to);
    }
    if (id == SXE_POOL_DAMAGED ||
        (id == SXE_POOL_LOCK_NOT_TAKEN &&
         (lua_isnil(L, SECONDS) || sxe__lua_may_try_again(L, pool->wait_ns, until))))
        return retry_unless_damaged(L, pool, id, take_pool_element, until);
    if (!lua_isnil(L, SECONDS))
        return sxe__lua_pool_wait(L, pool, from, (uint64_t)lua_tointeger(L, DEADLINE),
                                  take_pool_element);
    lua_pushnil(L);
    return 1;
}

/* pool:take(from, to [, timeout]) */
static int
l_take(lua_State *L)
{
    lua_settop(L, SECONDS);
    lua_pushinteger(L, (lua_Integer)sxe__lua_deadline(L, SECONDS));
    return take_pool_element(L, LUA_OK, 0);
}

/* Places in the stack of move, and of touch, which has no states. */
enum { MOVE_TO = 3, MOVE_FROM, MOVE_LEASE, TOUCH_LEASE = 3 };

/* Move an element, with its lease or out of the state `from`. Returns SXE_POOL_LOCK_TAKEN, with the
 * lease of this change in *lease, or the reason why the element was not moved. */
static unsigned
change_element(const struct sxe__lua_pool *pool, SXE_POOL_LEASE *lease, unsigned from, unsigned to)
{
    const void *contents = contents_for(pool, from, to);

    return lease->stamp != 0 ? sxe_pool_lease_move(pool->array, lease, to, contents)
                             : sxe_pool_lease_indexed(pool->array, from, to, contents, lease);
}

static int
move_element(lua_State *L, int status, lua_KContext until)
{
    struct sxe__lua_pool *pool = check_pool(L);
    unsigned id = check_element_argument(L, pool);
    unsigned to = check_state_argument(L, pool, MOVE_TO);
    SXE_POOL_LEASE lease = check_lease(L, id, MOVE_LEASE);
    unsigned state, from, result;

    if (sxe__lua_was_cancelled(L, status))
        return sxe__lua_fail_woken(L);
    if (id == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    state = sxe__lua_pool_state_of(L, pool, id);
    from = lua_isnoneornil(L, MOVE_FROM) ? state : check_state_argument(L, pool, MOVE_FROM);
    if (lease.stamp != 0 && from != state)
        return sxe__lua_fail(L, sxe_pool_lease_is_held(pool->array, &lease) ? "moved" : "lost");
    result = change_element(pool, &lease, from, to);
    if (result == SXE_POOL_LOCK_TAKEN)
        return return_moved_element(L, pool, &lease, from, to);
    if (result == SXE_POOL_LEASE_LOST)
        return sxe__lua_fail(L, "lost");
    if (result == SXE_POOL_INCORRECT_STATE && !lua_isnoneornil(L, MOVE_FROM))
        return sxe__lua_fail(L, "moved");
    return retry_unless_damaged(L, pool, result, move_element, until);
}

/* pool:move(element, to [, from [, lease]]) */
static int
l_move(lua_State *L)
{
    return move_element(L, LUA_OK, 0);
}

static int
touch_element(lua_State *L, int status, lua_KContext until)
{
    const struct sxe__lua_pool *pool = check_pool(L);
    unsigned id = check_element_argument(L, pool);
    SXE_POOL_LEASE lease = check_lease(L, id, TOUCH_LEASE);
    unsigned state, result;

    if (sxe__lua_was_cancelled(L, status))
        return sxe__lua_fail_woken(L);
    if (id == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    state = sxe__lua_pool_state_of(L, pool, id);
    result = lease.stamp != 0 ? sxe_pool_lease_renew(pool->array, &lease)
                              : sxe_pool_lease_indexed(pool->array, state, state, NULL, &lease);
    if (result == SXE_POOL_LOCK_TAKEN)
        return sxe__lua_pool_push_leased(L, pool, &lease);
    if (result == SXE_POOL_LEASE_LOST)
        return sxe__lua_fail(L, "lost");
    return retry_unless_damaged(L, pool, result, touch_element, until);
}

/* pool:touch(element [, lease]) */
static int
l_touch(lua_State *L)
{
    return touch_element(L, LUA_OK, 0);
}

/* ---- To the disk ---- */

int
sxe__lua_pool_push_synced(lua_State *L, int result)
{
    if (result < 0) {
        (void)sxe__lua_fail(L, result == -EINVAL ? "there is no file" : strerrordesc_np(-result));
        lua_pushinteger(L, -result);
        return 3;
    }
    lua_pushboolean(L, 1);
    return 1;
}

static int
l_pool_sync(lua_State *L)
{
    return sxe__lua_pool_push_synced(L, sxe_pool_sync(check_pool(L)->array));
}

/* ---- Methods that look ---- */

static int
l_pool_count(lua_State *L)
{
    const struct sxe__lua_pool *pool = check_pool(L);

    lua_pushinteger(L, sxe_pool_get_count(pool->array, check_state_argument(L, pool, 2)));
    return 1;
}

static int
l_oldest(lua_State *L)
{
    const struct sxe__lua_pool *pool = check_pool(L);
    unsigned state = check_state_argument(L, pool, 2);

    return sxe__lua_pool_push_element(L, pool, sxe_pool_get_oldest(pool->array, state));
}

static int
l_age(lua_State *L)
{
    const struct sxe__lua_pool *pool = check_pool(L);
    SXE_TIME since = sxe_pool_get_oldest_time(pool->array, check_state_argument(L, pool, 2));

    if (since == 0)
        lua_pushnil(L);
    else
        lua_pushnumber(L, sxe__lua_pool_age(pool, since));
    return 1;
}

static int
l_at(lua_State *L)
{
    const struct sxe__lua_pool *pool = check_pool(L);

    return sxe__lua_pool_push_element(L, pool, check_element_argument(L, pool));
}

/* The upvalues are the walker and the pool. */
static int
step_pool_walk(lua_State *L, int status, lua_KContext until)
{
    SXE_POOL_WALKER *walker = lua_touserdata(L, lua_upvalueindex(1));
    const struct sxe__lua_pool *pool;
    unsigned id;

    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(2));
    pool = check_pool(L);
    if (sxe__lua_was_cancelled(L, status))
        return luaL_error(L, "cancelled");
    id = sxe_pool_walker_step(walker);
    if (id < sxe_pool_get_number(pool->array) || id == SXE_POOL_NO_INDEX)
        return sxe__lua_pool_push_element(L, pool, id);
    /* This raises an error, because nil would look like the end. */
    if (id == SXE_POOL_LOCK_NOT_TAKEN && !sxe__lua_may_try_again(L, pool->wait_ns, until))
        return luaL_error(L, "pool %s is busy", pool->name);
    return retry_unless_damaged(L, pool, id, step_pool_walk, until);
}

static int
next_element_of_each(lua_State *L)
{
    return step_pool_walk(L, LUA_OK, 0);
}

static int
l_pool_each(lua_State *L)
{
    const struct sxe__lua_pool *pool = check_pool(L);
    unsigned state = check_state_argument(L, pool, 2);
    SXE_POOL_WALKER *walker = lua_newuserdatauv(L, sizeof(*walker), 0);

    sxe_pool_walker_construct(walker, pool->array, state);
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, next_element_of_each, 2);
    return 1;
}

/* ---- Methods about contents ---- */

static int
add_element_at_once(lua_State *L, const struct sxe__lua_pool *pool, unsigned id,
                    const struct sxe_pool_field *field)
{
    if ((field->kind != 'u' && field->kind != 'i') || field->size != sizeof(uint64_t) ||
        pool->element_size % sizeof(uint64_t) != 0)
        return luaL_error(L, "field %s: shared pools add to aligned u64 and i64 only", field->name);
    lua_pushinteger(L, (lua_Integer)sxe_pool_add_u64(pool->array, id, field->offset,
                                                     (uint64_t)luaL_checkinteger(L, 4)));
    return 1;
}

static int
l_pool_add(lua_State *L)
{
    const struct sxe__lua_pool *pool = check_pool(L);
    unsigned id = check_element_argument(L, pool);
    const struct sxe_pool_field *field = check_field_name(L, pool, sxe__lua_check_text(L, 3), 3);
    char *element;

    lua_settop(L, 4);
    if (lua_isnil(L, 4)) {
        lua_pushinteger(L, 1);
        lua_replace(L, 4);
    }
    if (id == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    if (pool->is_shared)
        return add_element_at_once(L, pool, id, field);
    element = (char *)pool->array + id * pool->element_size;
    sxe__lua_pool_add(L, field, element, 4);
    sxe__lua_pool_push(L, field, element);
    return 1;
}

static int
push_whole_element(lua_State *L, int status, lua_KContext until)
{
    const struct sxe__lua_pool *pool = check_pool(L);
    unsigned id = check_element_argument(L, pool);
    void *element;

    if (sxe__lua_was_cancelled(L, status))
        return sxe__lua_fail_woken(L);
    lua_settop(L, 2);
    /* Do not use the scratch: a finalizer that runs meanwhile may use it. */
    element = lua_newuserdatauv(L, pool->element_size, 0);
    if (id != SXE_POOL_NO_INDEX && sxe_pool_read_element(pool->array, id, element) < 0)
        return sxe__lua_again(L, pool->wait_ns, push_whole_element, until);
    /* The element may have returned to state 0 meanwhile; then its handle is void. */
    if (check_element_argument(L, pool) == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    lua_createtable(L, 0, (int)pool->fields.number);
    for (unsigned i = 0; i < pool->fields.number; i++) {
        sxe__lua_pool_push(L, &pool->fields.field[i], element);
        lua_setfield(L, -2, pool->fields.field[i].name);
    }
    return 1;
}

/* pool:read(element): a table of all its fields at one moment */
static int
l_pool_read(lua_State *L)
{
    return push_whole_element(L, LUA_OK, 0);
}

/* The element to write is at WRITTEN, in its own memory: the scratch may change while a task waits.
 */
enum { WRITE_FIELDS = 3, WRITE_LEASE, WRITTEN };

static int
write_leased(lua_State *L, int status, lua_KContext until)
{
    const struct sxe__lua_pool *pool = check_pool(L);
    unsigned id = check_element_argument(L, pool);
    SXE_POOL_LEASE lease = check_lease(L, id, WRITE_LEASE);
    unsigned result;

    if (sxe__lua_was_cancelled(L, status))
        return sxe__lua_fail_woken(L);
    if (id == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    result = sxe_pool_lease_write(pool->array, &lease, 0, pool->element_size,
                                  lua_touserdata(L, WRITTEN));
    if (result == SXE_POOL_LOCK_TAKEN)
        return sxe__lua_pool_push_leased(L, pool, &lease);
    if (result == SXE_POOL_LEASE_LOST)
        return sxe__lua_fail(L, "lost");
    return retry_unless_damaged(L, pool, result, write_leased, until);
}

/* pool:write(element, {field = value, ...} [, lease]): fields without a value become 0 */
static int
l_pool_write(lua_State *L)
{
    const struct sxe__lua_pool *pool = check_pool(L);
    unsigned id = check_element_argument(L, pool);
    void *element;

    luaL_checktype(L, WRITE_FIELDS, LUA_TTABLE);
    lua_settop(L, WRITE_LEASE);
    element = lua_newuserdatauv(L, pool->element_size, 0);
    memset(element, 0, pool->element_size);
    for (lua_pushnil(L); lua_next(L, WRITE_FIELDS) != 0; lua_pop(L, 1)) {
        const char *name = sxe__lua_text(L, -2);

        luaL_argcheck(L, name != NULL, WRITE_FIELDS, "names of fields expected");
        sxe__lua_pool_set(L, check_field_name(L, pool, name, WRITE_FIELDS), element, lua_gettop(L));
    }
    if (!lua_isnil(L, WRITE_LEASE))
        return write_leased(L, LUA_OK, 0);
    if (id == SXE_POOL_NO_INDEX)
        return sxe__lua_fail(L, "gone");
    sxe_pool_write_element(pool->array, id, element);
    return sxe__lua_pool_push_element(L, pool, id);
}

/* ---- Properties ---- */

int
sxe__lua_pool_push_found(lua_State *L, const void *array)
{
    static const char *const found[] = {[SXE_POOL_CREATED] = "created",
                                        [SXE_POOL_JOINED] = "joined",
                                        [SXE_POOL_CLOSED] = "closed",
                                        [SXE_POOL_COMPLETED] = "completed",
                                        [SXE_POOL_REBUILT] = "rebuilt"};

    lua_pushstring(L, found[sxe_pool_get_found(array)]);
    return 1;
}

static int
get_of_pool(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    SXE_UNUSED_PARAMETER(generation);
    if (strcmp(name, "name") != 0 && strcmp(name, "found") != 0)
        return 0;
    if (POOLS == NULL)
        lua_pushnil(L);
    else if (*name == 'n')
        lua_pushstring(L, POOLS->pool[index]->name);
    else
        sxe__lua_pool_push_found(L, POOLS->pool[index]->array);
    return 1;
}

static int
length_of_pool(lua_State *L, uint32_t index, uint32_t generation)
{
    SXE_UNUSED_PARAMETER(generation);
    lua_pushinteger(L, POOLS == NULL ? 0 : sxe_pool_get_number(POOLS->pool[index]->array));
    return 1;
}

/* ---- The module ---- */

static void
open_pools(lua_State *L)
{
    struct sxe__lua_pools *pools = lua_newuserdatauv(L, sizeof(*pools), 0);

    pools->number = 0;
    luaL_ref(L, LUA_REGISTRYINDEX);
    sxe__lua_at_end(L, close_pools);
    POOLS = pools;
}

int
sxe__lua_open_pool(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", sxe__lua_pool_open}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"take", l_take},
                                       {"move", l_move},
                                       {"touch", l_touch},
                                       {"count", l_pool_count},
                                       {"oldest", l_oldest},
                                       {"age", l_age},
                                       {"at", l_at},
                                       {"each", l_pool_each},
                                       {"add", l_pool_add},
                                       {"read", l_pool_read},
                                       {"write", l_pool_write},
                                       {"sync", l_pool_sync},
                                       {NULL, NULL}};
    static const struct sxe__lua_class_spec pool_spec = {
        .name = "sxe.pool", .methods = methods, .get = get_of_pool, .length = length_of_pool};

    sxe__lua_register_class(L, SXE__LUA_POOL, &pool_spec);
    sxe__lua_register_class(L, SXE__LUA_ELEMENT, &sxe__lua_pool_element);
    luaL_newlibtable(L, functions);
    sxe__lua_pool_push_guard(L);
    luaL_setfuncs(L, functions, 1);
    if (POOLS == NULL)
        open_pools(L);
    return 1;
}
