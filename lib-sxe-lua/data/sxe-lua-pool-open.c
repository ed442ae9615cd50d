/* SPDX-License-Identifier: MIT
 *
 * What: pool.open: opens a pool that only this Lua state uses, or a shared pool, in a file or in
 * memory. To open an existing file as it is, a script leaves out count: the file has all other
 * options.
 *
 * Until pool.open succeeds, the pool is a to-be-closed variable, so that an error leaves nothing
 * open.
 */
#include <errno.h>
#include <string.h>

#include "sxe-lua-pool-private.h"

#define POOLS sxe__lua_pools

enum { EMPTY_ELEMENT_SIZE = 8 }; /* the size of an element in a pool without fields */

/* ---- Timeouts ---- */

/* The pool calls this when the timeout of element id ends. Without a function of the script, move
 * the element to state 0. With a function, renew the element's lease and then call the function: if
 * the function leaves the element in its state, the element stays there for another timeout. Both
 * steps check the lease, so an element that another process has taken meanwhile is not changed. In
 * a shared pool another process may hold the lock; then sxe__lua_pool_came tries again soon. */
static void
on_pool_timeout(void *array, unsigned id, void *user)
{
    struct sxe__lua_pool *pool = user;
    lua_State *L = sxe__lua_main(sxe__lua_current());
    SXE_POOL_LEASE lease;

    sxe_pool_lease_due(array, id, &lease);
    if (pool->on_timeout == LUA_NOREF) {
        if (sxe_pool_lease_move(array, &lease, 0, NULL) == SXE_POOL_LOCK_TAKEN)
            sxe__lua_pool_came(pool, 0);
        return;
    }
    if (sxe_pool_lease_renew(array, &lease) != SXE_POOL_LOCK_TAKEN)
        return;
    lua_rawgeti(L, LUA_REGISTRYINDEX, pool->on_timeout);
    (void)sxe__lua_pool_push_leased(L, pool, &lease);
    if (sxe__lua_start(L, 2, false, NULL, NULL) == 0)
        SXE_WARN("pool %s: no task is free for on_timeout of element %u", pool->name, id);
}

static void
take_pool_timeouts(lua_State *L, struct sxe__lua_pool *pool)
{
    if (lua_getfield(L, 1, "timeouts") != LUA_TNIL) {
        luaL_argcheck(L, lua_istable(L, -1), 1, "timeouts: a table of states and seconds expected");
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
            const char *name = sxe__lua_text(L, -2);
            unsigned state =
                name == NULL ? SXE__LUA_POOL_STATES : sxe__lua_pool_find_state(pool, name);

            if (state == SXE__LUA_POOL_STATES)
                luaL_error(L, "timeouts: there is no state '%s'", luaL_tolstring(L, -2, NULL));
            if (lua_type(L, -1) != LUA_TNUMBER || !(lua_tonumber(L, -1) > 0))
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
    if (lua_isfunction(L, -1))
        pool->on_timeout = luaL_ref(L, LUA_REGISTRYINDEX);
    else
        lua_pop(L, 1);
}

/* ---- Options of a new pool ---- */

/* Memory for the texts to which a spec points. */
struct texts {
    char states[SXE_POOL_NAMES_MAX + 1];
    char fields[SXE_POOL_FIELDS_MAX + 1];
};

static lua_Integer
number_of_keys(lua_State *L, int table)
{
    lua_Integer number = 0;

    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1))
        number++;
    return number;
}

static void
take_states(lua_State *L, struct sxe__lua_pool *pool)
{
    if (lua_getfield(L, 1, "states") != LUA_TTABLE || lua_rawlen(L, -1) == 0 ||
        lua_rawlen(L, -1) > SXE__LUA_POOL_STATES)
        luaL_error(L, "states: a list of 1 to %d names expected", SXE__LUA_POOL_STATES);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        sxe__lua_option_name(L, pool->state[pool->states], "a state");
        if (sxe__lua_pool_find_state(pool, lua_tostring(L, -1)) != SXE__LUA_POOL_STATES)
            luaL_error(L, "states: '%s' is there twice", lua_tostring(L, -1));
        pool->states++;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (number_of_keys(L, lua_gettop(L)) != pool->states)
        luaL_error(L, "states: a list of names without holes, and without other keys, expected");
    lua_pop(L, 1);
}

/* Write the names of all states, such as "FREE BUSY", for the file. */
static void
join_states(lua_State *L, const struct sxe__lua_pool *pool, char text[SXE_POOL_NAMES_MAX + 1])
{
    size_t used = 0;

    for (unsigned state = 0; state < pool->states; state++) {
        const char *name = pool->state[state];

        if (strpbrk(name, " \t\r\n") != NULL)
            luaL_error(L, "states: '%s' has a blank, which those of a shared pool cannot have",
                       name);
        if (used + (state > 0) + strlen(name) > SXE_POOL_NAMES_MAX)
            luaL_error(L, "states: the names of a shared pool have at most %d bytes in all",
                       (int)SXE_POOL_NAMES_MAX);
        used += (size_t)snprintf(text + used, SXE_POOL_NAMES_MAX + 1 - used, "%s%s",
                                 state > 0 ? " " : "", name);
    }
}

static void
take_field_options(lua_State *L, struct sxe__lua_pool *pool, char text[SXE_POOL_FIELDS_MAX + 1])
{
    static const char *const ours[] = {"index", "state", "age"};

    lua_getfield(L, 1, "fields");
    sxe__lua_pool_take_fields(L, &pool->fields, text);
    lua_pop(L, 1);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (sxe_pool_layout_find(&pool->fields, ours[i]) != NULL)
            luaL_error(L, "fields: '%s' is a name of ours", ours[i]);
    }
    pool->element_size = pool->fields.number == 0 ? EMPTY_ELEMENT_SIZE : pool->fields.size;
    if (pool->is_shared && pool->fields.number != 0 && *text == '\0')
        luaL_error(L, "fields: the text of those of a shared pool has at most %d bytes",
                   (int)SXE_POOL_FIELDS_MAX);
}

static void
take_pool_name(lua_State *L, struct sxe__lua_pool *pool)
{
    lua_getfield(L, 1, "name");
    sxe__lua_option_name(L, pool->name, "the pool");
    for (unsigned i = 0; i < POOLS->number && !pool->is_shared; i++) {
        if (strcmp(POOLS->pool[i]->name, pool->name) == 0)
            luaL_error(L, "pool %s is open already", pool->name);
    }
    lua_pop(L, 1);
}

/* ---- A pool of this state's own ---- */

static void
open_own(lua_State *L, struct sxe__lua_pool *pool)
{
    struct texts texts;
    unsigned count;

    take_pool_name(L, pool);
    count = sxe__lua_option_count(L, "count", 1, SXE__LUA_POOL_ELEMENTS, "elements");
    /* Only check the option: a pool that is not shared has one shard. */
    (void)sxe__lua_option_count(L, "shards", 0, SXE_POOL_SHARDS_MAX, "shards");
    take_states(L, pool);
    take_field_options(L, pool, texts.fields);
    take_pool_timeouts(L, pool);
    pool->array = pool->is_timed ? sxe_pool_new_with_timeouts(pool->name, count, pool->element_size,
                                                              pool->states, pool->timeouts,
                                                              on_pool_timeout, pool)
                                 : sxe_pool_new(pool->name, count, pool->element_size, pool->states,
                                                SXE_POOL_OPTION_UNLOCKED);
    if (pool->array == NULL)
        luaL_error(L, "not enough memory for pool %s", pool->name);
}

/* ---- A shared pool ---- */

/* Read states and fields from the pool itself. Returns 0, or, if scripts cannot use the pool, the
 * number of Lua results. */
static int
learn_layout(lua_State *L, struct sxe__lua_pool *pool)
{
    snprintf(pool->name, sizeof(pool->name), "%s", sxe_pool_get_name(pool->array));
    if (sxe_pool_get_states(pool->array) > SXE__LUA_POOL_STATES ||
        sxe_pool_get_number(pool->array) > SXE__LUA_POOL_ELEMENTS ||
        sxe_pool_layout_parse(&pool->fields, sxe_pool_get_fields(pool->array), NULL) < 0)
        return sxe__lua_option_refused(
            L,
            lua_pushfstring(L, "pool %s is not for scripts: they take %d states, %d elements",
                            pool->name, SXE__LUA_POOL_STATES, SXE__LUA_POOL_ELEMENTS),
            E2BIG);
    for (; pool->states < sxe_pool_get_states(pool->array); pool->states++)
        snprintf(pool->state[pool->states], SXE__LUA_POOL_NAME_SIZE, "%s",
                 sxe_pool_state_to_string(pool->array, pool->states));
    pool->element_size = sxe_pool_get_element_size(pool->array);
    return 0;
}

/* Take the options of a new pool: count, shards, states and fields. A call with a file and without
 * count opens an existing pool, whose file has all these options; so giving one of them raises an
 * error. */
static void
take_pool_spec(lua_State *L, struct sxe__lua_pool *pool, SXE_POOL_SPEC *spec, struct texts *texts)
{
    static const char *const said[] = {"states", "fields", "shards", NULL};
    bool is_said = !sxe__lua_option_is_nil(L, "count") || spec->file == NULL;

    if (!is_said) {
        sxe__lua_option_unsaid(L, said, "count");
        return;
    }
    take_pool_name(L, pool);
    spec->number = sxe__lua_option_count(L, "count", 1, SXE__LUA_POOL_ELEMENTS, "elements");
    spec->shards = sxe__lua_option_count(L, "shards", 0, SXE_POOL_SHARDS_MAX, "shards");
    take_states(L, pool);
    join_states(L, pool, texts->states);
    take_field_options(L, pool, texts->fields);
}

/* Open the pool. Returns 0, or, after a failure, the number of Lua results. */
static int
open_shared(lua_State *L, struct sxe__lua_pool *pool)
{
    struct texts texts = {.states = ""};
    char why[SXE_POOL_WHY_SIZE];
    SXE_POOL_SPEC spec = {.name = pool->name, .options = SXE_POOL_OPTION_SHARED};
    int results = 0;

    spec.file = sxe__lua_option_file(L);
    take_pool_spec(L, pool, &spec, &texts);
    spec.options |= sxe__lua_option_file_options(L);
    spec.element_size = pool->element_size;
    spec.states = pool->states;
    spec.state_names = texts.states;
    spec.fields = pool->fields.number == 0 ? NULL : texts.fields;
    pool->array = sxe_pool_open(&spec, why);
    if (pool->array == NULL && sxe__lua_makes_room(L, errno))
        pool->array = sxe_pool_open(&spec, why);
    if (pool->array == NULL)
        return sxe__lua_option_refused(L, why, errno);
    if (spec.number == 0)
        results = learn_layout(L, pool);
    if (results > 0)
        return results;
    take_pool_timeouts(L, pool);
    if (pool->is_timed &&
        sxe_pool_set_timeouts(pool->array, pool->timeouts, on_pool_timeout, pool) < 0)
        luaL_error(L, "not enough memory for pool %s", pool->name);
    return 0;
}

/* ---- Opening ---- */

/* The __close of pool.open's userdata, which Lua calls at the end of pool.open, also after an
 * error: free a pool that did not become open. */
static int
close_guarded(lua_State *L)
{
    struct sxe__lua_pool *pool = lua_touserdata(L, 1);

    if (pool->is_open)
        return 0;
    sxe_pool_delete(pool->array);
    luaL_unref(L, LUA_REGISTRYINDEX, pool->on_timeout);
    return 0;
}

void
sxe__lua_pool_push_guard(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_guarded);
    lua_setfield(L, -2, "__close");
}

static int
do_nothing(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    return 0;
}

/* When a function of C calls another function for the first time, Lua may allocate a record for
 * such calls, which may fail. Make a call now, so that the call of __close cannot fail when the
 * pool is open. */
static struct sxe__lua_pool *
push_pool(lua_State *L)
{
    struct sxe__lua_pool *pool = lua_newuserdatauv(L, sizeof(*pool), 1);

    memset(pool, 0, sizeof(*pool));
    pool->on_timeout = LUA_NOREF;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_setmetatable(L, -2);
    lua_toclose(L, -1);
    lua_pushcfunction(L, do_nothing);
    lua_call(L, 0, 0);
    return pool;
}

/* Keep the pool, whose userdata is at 2, for as long as the Lua state lives. */
static void
keep_pool(lua_State *L, struct sxe__lua_pool *pool)
{
    pool->scratch = lua_newuserdatauv(L, pool->element_size, 0);
    lua_setiuservalue(L, 2, 1);
    /* The number of pools was checked before, but metamethods of the options, and finalizers, may
     * have opened pools since. */
    if (POOLS->number == SXE__LUA_POOLS)
        luaL_error(L, "%d pools are open already", SXE__LUA_POOLS);
    lua_pushvalue(L, 2);
    luaL_ref(L, LUA_REGISTRYINDEX);
    pool->index = POOLS->number;
    pool->is_open = true;
    POOLS->pool[POOLS->number++] = pool;
    sxe__lua_push_handle(L, SXE__LUA_POOL, pool->index, 0);
}

int
sxe__lua_pool_open(lua_State *L)
{
    static const char *const names[] = {"name",       "count", "states",   "fields", "timeouts",
                                        "on_timeout", "file",  "shared",   "shards", "exact",
                                        "repair",     "wait",  "verified", NULL};
    struct sxe__lua_pool *pool;
    int results = 0;

    sxe__lua_option_names(L, 1, names, "pool.open");
    luaL_argcheck(L, POOLS != NULL, 1, "the state is closed");
    lua_settop(L, 1);
    pool = push_pool(L);
    pool->wait_ns = sxe__lua_option_wait(L);
    pool->is_exact = sxe__lua_option_flag(L, "exact");
    pool->is_shared = sxe__lua_option_flag(L, "shared") || !sxe__lua_option_is_nil(L, "file");
    if (pool->is_shared)
        results = open_shared(L, pool);
    else
        open_own(L, pool);
    if (results > 0)
        return results;
    keep_pool(L, pool);
    return 1;
}
