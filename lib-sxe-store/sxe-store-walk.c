/* SPDX-License-Identifier: MIT
 *
 * Snapshots and walks, for Lua. A walk is a function that a for loop calls with the previous key.
 * So a walk has no state of its own, and any number of walks can go through one snapshot. If the
 * snapshot's cursor still stands at the previous key, the walk only moves the cursor.
 */
#include "sxe-store-private.h"

#include <errno.h>

#include "sxe-lua-internal.h"

struct handle {
    struct sxe__store_file *file; /* NULL: the snapshot is closed */
    unsigned index;
    uint32_t generation;
};

void
sxe__store_check_key(lua_State *L, int argument, MDB_val *key)
{
    luaL_checktype(L, argument, LUA_TSTRING);
    key->mv_data = (void *)(uintptr_t)lua_tolstring(L, argument, &key->mv_size);
    luaL_argcheck(L, key->mv_size > 0 && key->mv_size <= SXE__STORE_KEY_MAX, argument,
                  "a key of 1 to 511 bytes expected");
}

/* ---- Snapshots ---- */

/* If there is no place for another snapshot, collect garbage, which closes snapshots that the
 * script forgot. (That may close the store's last handle, too.) */
static int
open_snapshot(lua_State *L, struct sxe__store_file *file)
{
    struct handle *handle = lua_newuserdatauv(L, sizeof(*handle), 0);
    int result;

    *handle = (struct handle){NULL, 0, 0};
    luaL_setmetatable(L, SXE__STORE_SNAPSHOT);
    handle->file = sxe__store_file_use(file);
    result = sxe__store_snapshot_open(file, &handle->index);
    if (result == EMFILE && lua_gc(L, LUA_GCCOLLECT) == 0 && file->users > 1)
        result = sxe__store_snapshot_open(file, &handle->index);
    if (result == 0) {
        handle->generation = file->snapshot[handle->index].generation;
        return 0;
    }
    handle->file = NULL;
    sxe__store_file_leave(file);
    return result;
}

int
sxe__store_l_snapshot(lua_State *L)
{
    sxe__lua_refuse_at_end(L);
    lua_settop(L, 1);
    return sxe__store_attempt_call(L, open_snapshot);
}

static bool
is_open(const struct handle *handle)
{
    return handle->file->snapshot[handle->index].generation == handle->generation;
}

static int
close_store_snapshot(lua_State *L)
{
    struct handle *handle = luaL_checkudata(L, 1, SXE__STORE_SNAPSHOT);
    struct sxe__store_file *file = handle->file;

    if (file == NULL)
        return 0;
    handle->file = NULL;
    if (file->snapshot[handle->index].generation == handle->generation &&
        !sxe__store_file_is_parents(file))
        sxe__store_snapshot_close(file, handle->index);
    sxe__store_file_leave(file);
    return 0;
}

static const struct handle *
check_usable(lua_State *L, const struct handle *handle, int argument)
{
    luaL_argcheck(L, handle->file != NULL, argument, "the snapshot is closed");
    luaL_argcheck(L, !sxe__store_file_is_parents(handle->file), argument,
                  "the snapshot is of the process that forked this one");
    return handle;
}

static const struct handle *
check_store_snapshot(lua_State *L, int argument)
{
    return check_usable(L, luaL_checkudata(L, argument, SXE__STORE_SNAPSHOT), argument);
}

/* The snapshot at index 1. The class is an upvalue of the function, because luaL_checkudata looks
 * for it by its name, which is a tenth of the instructions of a call of get. */
static const struct handle *
check_self(lua_State *L)
{
    const struct handle *handle = lua_touserdata(L, 1);

    if (handle == NULL || !lua_getmetatable(L, 1) || !lua_rawequal(L, -1, lua_upvalueindex(1)))
        handle = luaL_checkudata(L, 1, SXE__STORE_SNAPSHOT); /* raises the error */
    lua_pop(L, 1);
    return check_usable(L, handle, 1);
}

static int
get_snapshot_value(lua_State *L)
{
    const struct handle *handle = check_self(L);
    MDB_val key, value;
    int result;

    sxe__store_check_key(L, 2, &key);
    if (!is_open(handle))
        return sxe__store_fail(L, ESTALE);
    result = mdb_get(handle->file->snapshot[handle->index].txn, handle->file->table, &key, &value);
    if (result != 0 && result != MDB_NOTFOUND)
        return sxe__store_fail(L, result);
    if (result == 0)
        lua_pushlstring(L, value.mv_data, value.mv_size);
    else
        lua_pushnil(L);
    return 1;
}

int
sxe__store_l_based_on(lua_State *L)
{
    const struct handle *handle = check_store_snapshot(L, 1);

    if (!is_open(handle))
        return sxe__store_fail(L, ESTALE);
    lua_pushinteger(L, (lua_Integer)mdb_txn_id(handle->file->snapshot[handle->index].txn));
    return 1;
}

/* ---- Walks ---- */

enum { SNAPSHOT = 1, LOW, HIGH, IS_REVERSE };

static void
take_bound(lua_State *L, int index, MDB_val *bound)
{
    bound->mv_data = (void *)(uintptr_t)lua_tolstring(L, lua_upvalueindex(index), &bound->mv_size);
}

/* step(_, key): the next key and its value, or nil */
static int
step_store_walk(lua_State *L)
{
    const struct handle *handle = lua_touserdata(L, lua_upvalueindex(SNAPSHOT));
    struct sxe__store_walk walk;
    MDB_val before, key, value;
    int result;

    if (handle->file == NULL)
        return luaL_error(L, "the snapshot of this walk is closed");
    if (sxe__store_file_is_parents(handle->file) || !is_open(handle))
        return luaL_error(L, "the snapshot of this walk is over: it was open for more than "
                             "snapshot_max seconds, or this process was forked meanwhile");
    before.mv_data = (void *)(uintptr_t)lua_tolstring(L, 2, &before.mv_size);
    take_bound(L, LOW, &walk.low);
    take_bound(L, HIGH, &walk.high);
    walk.is_reverse = lua_toboolean(L, lua_upvalueindex(IS_REVERSE));
    result = sxe__store_walk_step(handle->file, handle->index, &walk,
                                  before.mv_data != NULL ? &before : NULL, &key, &value);
    if (result == MDB_NOTFOUND)
        return 0;
    if (result != 0) {
        (void)sxe__store_fail(L, result);
        return luaL_error(L, "%s", lua_tostring(L, -2));
    }
    lua_pushlstring(L, key.mv_data, key.mv_size);
    lua_pushlstring(L, value.mv_data, value.mv_size);
    return 2;
}

int
sxe__store_l_walk(lua_State *L)
{
    (void)check_store_snapshot(L, SNAPSHOT);
    lua_settop(L, IS_REVERSE);
    lua_pushcclosure(L, step_store_walk, IS_REVERSE);
    return 1;
}

void
sxe__store_add_snapshot_class(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__gc", close_store_snapshot}, {"__close", close_store_snapshot}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"get", get_snapshot_value}, {"close", close_store_snapshot}, {NULL, NULL}};

    sxe__lua_new_class(L, SXE__STORE_SNAPSHOT);
    luaL_setfuncs(L, metamethods, 0);
    luaL_newlibtable(L, methods);
    lua_pushvalue(L, -2);
    luaL_setfuncs(L, methods, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__index");
    lua_remove(L, -2);
}
