/* SPDX-License-Identifier: MIT
 *
 * Parts of require "sxe.dict": loops over all entries, batches and snapshots.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "sxe-lua-dict-private.h"

#define SNAPSHOT "sxe.dict snapshot"
#define BATCH    "sxe.dict batch"

/* ---- Snapshots ---- */

struct snapshot {
    SXE_DICT_SNAPSHOT *snapshot; /* NULL: the snapshot is closed */
    struct sxe__lua_dict *of;
};

static SXE_DICT_SNAPSHOT *
check_dict_snapshot(lua_State *L, int argument)
{
    const struct snapshot *snapshot = luaL_checkudata(L, argument, SNAPSHOT);

    luaL_argcheck(L, snapshot->snapshot != NULL, argument, "the snapshot is closed");
    luaL_argcheck(L, !snapshot->of->is_over, argument, "the dict is closed");
    return snapshot->snapshot;
}

static int
close_dict_snapshot(lua_State *L)
{
    struct snapshot *snapshot = luaL_checkudata(L, 1, SNAPSHOT);

    if (snapshot->snapshot == NULL)
        return 0;
    sxe_dict_snapshot_release(snapshot->snapshot);
    snapshot->snapshot = NULL;
    sxe__lua_dict_end_user(snapshot->of);
    return 0;
}

static int
push_dict_snapshot(lua_State *L, int status, lua_KContext until)
{
    struct snapshot *snapshot;

    (void)sxe__lua_dict_check(L, 1);
    if (sxe__lua_was_cancelled(L, status))
        return sxe__lua_fail_woken(L);
    sxe__lua_refuse_at_end(L);
    lua_settop(L, 1);
    snapshot = lua_newuserdatauv(L, sizeof(*snapshot), 1);
    *snapshot = (struct snapshot){.of = lua_touserdata(L, 1)};
    luaL_setmetatable(L, SNAPSHOT);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 2, 1);
    snapshot->snapshot = sxe_dict_snapshot_take(sxe__lua_dict_check(L, 1));
    if (snapshot->snapshot == NULL && sxe__lua_makes_room(L, errno))
        snapshot->snapshot = sxe_dict_snapshot_take(sxe__lua_dict_check(L, 1));
    if (snapshot->snapshot == NULL)
        return sxe__lua_dict_failed(L, sxe__lua_dict_wait(L), errno, push_dict_snapshot, until);
    snapshot->of->users++;
    return 1;
}

/* dict:snapshot() */
int
sxe__lua_dict_snapshot(lua_State *L)
{
    return push_dict_snapshot(L, LUA_OK, 0);
}

static ssize_t
read_snapshot(lua_State *L, const void *key, size_t key_size, void *value, size_t size)
{
    return sxe_dict_snapshot_get(check_dict_snapshot(L, 1), key, key_size, value, size);
}

static uint64_t
wait_of_snapshot(lua_State *L)
{
    return ((const struct snapshot *)lua_touserdata(L, 1))->of->wait_ns;
}

static int
get_of_snapshot(lua_State *L, int status, lua_KContext until)
{
    int result;

    (void)check_dict_snapshot(L, 1);
    if (sxe__lua_was_cancelled(L, status))
        return sxe__lua_fail_woken(L);
    lua_settop(L, 2);
    result = sxe__lua_dict_push_value(L, read_snapshot);
    if (result == -ENOENT) {
        lua_pushnil(L);
        return 1;
    }
    return result >= 0
               ? result
               : sxe__lua_dict_failed(L, wait_of_snapshot(L), -result, get_of_snapshot, until);
}

static int
l_get_of_snapshot(lua_State *L)
{
    return get_of_snapshot(L, LUA_OK, 0);
}

/* ---- All entries ---- */

enum { FIRST_KEY_ROOM = 256, FIRST_VALUE_ROOM = 1024 };

/* Upvalues of the iterator: the walk; memory for a key and a value; the dict or the snapshot. */
enum { WALK = 1, MEMORY, SOURCE };

struct walk {
    SXE_DICT_WALKER walker;
    size_t key_room;
    size_t value_room;
    uint64_t wait_ns;
};

static void
check_walk_source(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(SOURCE));
    if (luaL_testudata(L, 1, SNAPSHOT) != NULL)
        check_dict_snapshot(L, 1);
    else
        sxe__lua_dict_check(L, 1);
}

static void
grow_walk_room(lua_State *L, struct walk *walk, const SXE_DICT_ENTRY *entry)
{
    const size_t key_room = entry->key_size > walk->key_room ? entry->key_size : walk->key_room;
    const size_t value_room =
        entry->value_size > walk->value_room ? entry->value_size : walk->value_room;

    /* This call may raise an error, so nothing is changed before it. */
    lua_newuserdatauv(L, key_room + value_room, 0);
    lua_replace(L, lua_upvalueindex(MEMORY));
    walk->key_room = key_room;
    walk->value_room = value_room;
}

/* Read the next entry. If the memory is too small for the entry, enlarge the memory and read the
 * entry again. Returns the result of sxe_dict_walker_step. */
static int
read_next_entry_of_walk(lua_State *L, struct walk *walk, SXE_DICT_ENTRY *entry)
{
    for (;;) {
        const SXE_DICT_WALKER before = walk->walker;
        char *memory = lua_touserdata(L, lua_upvalueindex(MEMORY));
        int result;

        *entry = (SXE_DICT_ENTRY){.key = memory,
                                  .key_room = walk->key_room,
                                  .value = memory + walk->key_room,
                                  .value_room = walk->value_room};
        result = sxe_dict_walker_step(&walk->walker, entry);
        if (result != 1 ||
            (entry->key_size <= walk->key_room && entry->value_size <= walk->value_room))
            return result;
        walk->walker = before;
        grow_walk_room(L, walk, entry);
        check_walk_source(L); /* raises an error if a finalizer has closed the dict */
    }
}

/* Push key, value, seconds to live and state. A failure raises an error, because nil would look
 * like the end. */
static int
step_dict_walk(lua_State *L, int status, lua_KContext until)
{
    static const char *const states[] = {"live", "pinned", "dirty"};
    struct walk *walk = lua_touserdata(L, lua_upvalueindex(WALK));
    SXE_DICT_ENTRY entry;
    int result;

    check_walk_source(L);
    if (sxe__lua_was_cancelled(L, status))
        return luaL_error(L, "cancelled");
    result = read_next_entry_of_walk(L, walk, &entry);
    if (result == -EAGAIN && sxe__lua_may_try_again(L, walk->wait_ns, until))
        return sxe__lua_again(L, walk->wait_ns, step_dict_walk, until);
    if (result < 0)
        return luaL_error(L, "%s", sxe__lua_dict_text(-result));
    if (result == 0)
        return 0;
    /* Keep the memory on the stack: a finalizer that runs may continue this walk, and replace the
     * memory. */
    lua_pushvalue(L, lua_upvalueindex(MEMORY));
    lua_pushlstring(L, entry.key, entry.key_size);
    lua_pushlstring(L, entry.value, entry.value_size);
    lua_pushnumber(L, entry.ttl_s);
    lua_pushstring(L, states[entry.state - SXE_DICT_LIVE]);
    return 4;
}

static int
next_entry_of_each(lua_State *L)
{
    return step_dict_walk(L, LUA_OK, 0);
}

/* Push the iterator of the walk at 2, whose walker is constructed already. */
static int
push_iterator(lua_State *L, struct walk *walk, uint64_t wait_ns)
{
    walk->wait_ns = wait_ns;
    walk->key_room = FIRST_KEY_ROOM;
    walk->value_room = FIRST_VALUE_ROOM;
    lua_newuserdatauv(L, FIRST_KEY_ROOM + FIRST_VALUE_ROOM, 0);
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, next_entry_of_each, SOURCE);
    return 1;
}

/* dict:each() */
int
sxe__lua_dict_each(lua_State *L)
{
    struct walk *walk;

    lua_settop(L, 1);
    walk = lua_newuserdatauv(L, sizeof(*walk), 0);
    sxe_dict_walker_construct(&walk->walker, sxe__lua_dict_check(L, 1));
    return push_iterator(L, walk, sxe__lua_dict_wait(L));
}

static int
l_each_of_snapshot(lua_State *L)
{
    struct walk *walk;

    lua_settop(L, 1);
    walk = lua_newuserdatauv(L, sizeof(*walk), 0);
    sxe_dict_snapshot_walk(&walk->walker, check_dict_snapshot(L, 1));
    return push_iterator(L, walk, wait_of_snapshot(L));
}

/* ---- Batches ---- */

/* Places in the stack of batch. */
enum { WHAT = 2, TTL, NOTES };

struct notes {
    SXE_DICT_BATCH *batch; /* NULL: the batch is over */
    struct sxe__lua_dict *of;
};

static int
close_notes(lua_State *L)
{
    struct notes *notes = luaL_checkudata(L, 1, BATCH);

    if (notes->batch == NULL)
        return 0;
    sxe_dict_batch_delete(notes->batch);
    notes->batch = NULL;
    sxe__lua_dict_end_user(notes->of);
    return 0;
}

static SXE_DICT_BATCH *
check_batch(lua_State *L, int argument)
{
    const struct notes *notes = luaL_checkudata(L, argument, BATCH);

    luaL_argcheck(L, notes->batch != NULL, argument, "the batch is over");
    luaL_argcheck(L, !notes->of->is_over, argument, "the dict is closed");
    return notes->batch;
}

/* Raise an error if a change could not be noted, so that no batch is committed without the change.
 */
static int
check_noted(lua_State *L, int result)
{
    return result < 0 ? luaL_error(L, "%s", sxe__lua_dict_text(-result)) : 0;
}

/* batch:put(key, value [, ttl]) */
static int
l_batch_put(lua_State *L)
{
    SXE_DICT_BATCH *batch = check_batch(L, 1);
    size_t key_size, size;
    const char *key = sxe__lua_dict_key(L, &key_size);
    const char *value = luaL_checklstring(L, 3, &size);

    return check_noted(
        L, sxe_dict_batch_put(batch, key, key_size, value, size, sxe__lua_dict_ttl(L, 4)));
}

/* batch:remove(key) */
static int
l_remove(lua_State *L)
{
    SXE_DICT_BATCH *batch = check_batch(L, 1);
    size_t key_size;
    const char *key = sxe__lua_dict_key(L, &key_size);

    return check_noted(L, sxe_dict_batch_remove(batch, key, key_size));
}

/* batch:expect(key, value); value nil: expect that there is no such entry */
static int
l_expect(lua_State *L)
{
    SXE_DICT_BATCH *batch = check_batch(L, 1);
    size_t key_size, size = 0;
    const char *key = sxe__lua_dict_key(L, &key_size);
    const char *value = luaL_optlstring(L, 3, NULL, &size);

    return check_noted(L, sxe_dict_batch_expect(batch, key, key_size, value, size));
}

/* Note the changes in the table at WHAT. The value false means that its key is removed. */
static void
note_table(lua_State *L, SXE_DICT_BATCH *batch, double ttl)
{
    for (lua_pushnil(L); lua_next(L, WHAT) != 0; lua_pop(L, 1)) {
        size_t key_size, size;
        const char *key, *value;

        luaL_argcheck(L, lua_type(L, -2) == LUA_TSTRING, WHAT, "keys are strings");
        key = lua_tolstring(L, -2, &key_size);
        value = lua_tolstring(L, -1, &size);
        if (value != NULL)
            check_noted(L, sxe_dict_batch_put(batch, key, key_size, value, size, ttl));
        else if (lua_isboolean(L, -1) && !lua_toboolean(L, -1))
            check_noted(L, sxe_dict_batch_remove(batch, key, key_size));
        else
            luaL_argerror(L, WHAT, "values are strings, or false");
    }
}

static SXE_DICT_BATCH *
notes_to_commit(lua_State *L)
{
    const struct notes *notes = lua_touserdata(L, NOTES);

    sxe__lua_dict_check(L, 1);
    if (notes->batch == NULL)
        luaL_error(L, "the batch is over: it was closed before the function returned");
    return notes->batch;
}

static int
commit_lua_batch(lua_State *L, int status, lua_KContext until)
{
    SXE_DICT_BATCH *batch;
    int result;

    if (sxe__lua_was_cancelled(L, status))
        return sxe__lua_fail_woken(L);
    lua_settop(L, NOTES);
    /* The script's function had the batch, and may have closed it with a <close> variable. */
    batch = notes_to_commit(L);
    result = sxe_dict_batch_commit(batch);
    if (result < 0 && result != -EEXIST)
        return sxe__lua_dict_failed(L, sxe__lua_dict_wait(L), -result, commit_lua_batch, until);
    lua_pushboolean(L, result == 0);
    return 1;
}

/* Called when the script's function, which noted the changes, has returned, perhaps after a
 * wait. */
static int
commit_after_call(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return commit_lua_batch(L, LUA_OK, 0);
}

/* dict:batch(function(batch) ... end), dict:batch({key = value, other = false} [, ttl]) */
int
sxe__lua_dict_batch(lua_State *L)
{
    double ttl = sxe__lua_dict_ttl(L, TTL);
    struct notes *notes;

    (void)sxe__lua_dict_check(L, 1);
    luaL_argcheck(L, lua_istable(L, WHAT) || lua_isfunction(L, WHAT), WHAT,
                  "a table or a function expected");
    lua_settop(L, TTL);
    notes = lua_newuserdatauv(L, sizeof(*notes), 1);
    *notes = (struct notes){.of = lua_touserdata(L, 1)};
    luaL_setmetatable(L, BATCH);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, NOTES, 1);
    lua_toclose(L, NOTES);
    notes->batch = sxe_dict_batch_new(sxe__lua_dict_check(L, 1));
    if (notes->batch == NULL)
        return luaL_error(L, "not enough memory for a batch");
    notes->of->users++;
    if (lua_istable(L, WHAT)) {
        note_table(L, notes->batch, ttl);
        return commit_lua_batch(L, LUA_OK, 0);
    }
    lua_pushvalue(L, WHAT);
    lua_pushvalue(L, NOTES);
    lua_callk(L, 1, 0, 0, commit_after_call);
    return commit_after_call(L, LUA_OK, 0);
}

/* ---- The module ---- */

void
sxe__lua_dict_open_batch(lua_State *L)
{
    static const luaL_Reg snapshot_ends[] = {
        {"__gc", close_dict_snapshot}, {"__close", close_dict_snapshot}, {NULL, NULL}};
    static const luaL_Reg of_snapshot[] = {{"get", l_get_of_snapshot},
                                           {"each", l_each_of_snapshot},
                                           {"close", close_dict_snapshot},
                                           {NULL, NULL}};
    static const luaL_Reg batch_ends[] = {
        {"__gc", close_notes}, {"__close", close_notes}, {NULL, NULL}};
    static const luaL_Reg of_batch[] = {
        {"put", l_batch_put}, {"remove", l_remove}, {"expect", l_expect}, {NULL, NULL}};

    sxe__lua_dict_class(L, SNAPSHOT, snapshot_ends, of_snapshot);
    sxe__lua_dict_class(L, BATCH, batch_ends, of_batch);
}
