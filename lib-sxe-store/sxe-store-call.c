/* SPDX-License-Identifier: MIT
 *
 * Calls of a store that write, sync and copy, and how calls fail. Each call copies its arguments
 * into a job and waits for the job. Arguments are strings, never numbers that become strings: a
 * conversion may run finalizers, which may close the store.
 */
#include "sxe-store-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-lua-clock.h"
#include "sxe-lua-internal.h"

#define VALUE_MAX ((size_t)1 << 30)
#define MAP_MAX   ((lua_Integer)1 << 46)

/* ---- Failures ---- */

int
sxe__store_fail(lua_State *L, int result)
{
    static const struct {
        int result;
        int code;
        const char *text;
    } texts[] = {
        {SXE__STORE_CONFLICT, EAGAIN, "conflict: others changed what the function had read"},
        {SXE__STORE_NO_THREADS, EINVAL,
         "no threads: require \"sxe.store\" where the script begins"},
        {SXE__STORE_TARGET_IN_USE, EBUSY,
         "the store at the path is open: close it in every program, or give another path"},
        {EMEDIUMTYPE, EMEDIUMTYPE,
         "the file at the path is no store: remove it, or give another path"},
        {MDB_MAP_FULL, ENOSPC, "the map is full: give it a larger map_size, or call resize"},
        {MDB_MAP_RESIZED, EBUSY,
         "another process made the map larger, and this one has snapshots or copies: try again "
         "when these are closed"},
        {MDB_READERS_FULL, EUSERS,
         "all places for readers are taken: open the store with a larger number of readers"},
        {MDB_TXN_FULL, E2BIG, "too many changes in one transaction"},
        {MDB_BAD_VALSIZE, EINVAL, "a key or value has a length that LMDB does not take"},
        {MDB_PANIC, EIO,
         "an earlier commit or resize could not be ended: close the store, and open it again"},
        {MDB_INVALID, EUCLEAN, "the file is no store, or damaged"},
        {MDB_VERSION_MISMATCH, EUCLEAN, "the file is a store of another version of LMDB"},
        {MDB_CORRUPTED, EUCLEAN, "the file is damaged"},
        {MDB_PAGE_NOTFOUND, EUCLEAN, "the file is damaged"},
        {ESTALE, ESTALE, "the snapshot is over: it was open for more than snapshot_max seconds"},
        {EMFILE, EMFILE,
         "too many snapshots, walks and transactions of this process, or files, are open"},
        {EBUSY, EBUSY,
         "in use: snapshots or copies are open, or another thread has the file, or "
         "other options"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].result != result)
            continue;
        (void)sxe__lua_fail(L, texts[i].text);
        lua_pushinteger(L, texts[i].code);
        return 3;
    }
    (void)sxe__lua_fail(L, mdb_strerror(result));
    lua_pushinteger(L, result > 0 ? result : EIO);
    return 3;
}

/* ---- Calls that read ---- */

static int
go_on_resized(lua_State *L, int status, lua_KContext context)
{
    struct sxe__store_job done;
    int result;

    if (!sxe__store_job_end(L, status, context, &done))
        return sxe__lua_fail_woken(L);
    result = done.result != 0 ? done.result : done.attempt(L, sxe__store_check(L));
    return result == 0 ? 1 : sxe__store_fail(L, result == EBUSY ? MDB_MAP_RESIZED : result);
}

int
sxe__store_attempt_call(lua_State *L, sxe__store_attempt attempt)
{
    struct sxe__store_file *file = sxe__store_check(L);
    struct sxe__store_job *job;
    const int top = lua_gettop(L);
    const int result = attempt(L, file);

    if (result == 0)
        return 1;
    if (result != MDB_MAP_RESIZED)
        return sxe__store_fail(L, result);
    lua_settop(L, top);
    job = sxe__store_job_new(file, SXE__STORE_RESIZE, 0);
    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    job->attempt = attempt;
    return sxe__store_job_begin(L, job, 0, go_on_resized);
}

/* ---- Calls that write ---- */

static int
go_on_after_store_job(lua_State *L, int status, lua_KContext context)
{
    struct sxe__store_job done;

    if (!sxe__store_job_end(L, status, context, &done))
        return sxe__lua_fail_woken(L);
    if (done.result != 0 && !(done.may_differ && done.result == SXE__STORE_CONFLICT))
        return sxe__store_fail(L, done.result);
    lua_pushboolean(L, done.says_was_there ? done.was_there : done.result == 0);
    return 1;
}

/* Get the value at a stack index: a string of any length that fits. If may_be_missing is set, nil
 * and false are allowed, too, and make data NULL. */
static void
check_value(lua_State *L, int argument, bool may_be_missing, MDB_val *value)
{
    *value = (MDB_val){0, NULL};
    if (may_be_missing && !lua_toboolean(L, argument))
        return;
    luaL_checktype(L, argument, LUA_TSTRING);
    value->mv_data = (void *)(uintptr_t)lua_tolstring(L, argument, &value->mv_size);
    luaL_argcheck(L, value->mv_size < VALUE_MAX, argument, "a value below 1 GiB expected");
}

static size_t
size_of_pair(const MDB_val *key, const MDB_val *value)
{
    return sizeof(struct sxe__store_change) + key->mv_size + value->mv_size;
}

static char *
add_change(char *at, const MDB_val *key, const MDB_val *value, bool is_condition)
{
    const struct sxe__store_change change = {
        (uint32_t)key->mv_size,
        value->mv_data != NULL ? (uint32_t)value->mv_size : SXE__STORE_NO_VALUE, is_condition};

    memcpy(at, &change, sizeof(change));
    at += sizeof(change);
    memcpy(at, key->mv_data, key->mv_size);
    at += key->mv_size;
    if (value->mv_size > 0)
        memcpy(at, value->mv_data, value->mv_size);
    return at + value->mv_size;
}

/* store:put(key, value [, timeout]) */
int
sxe__store_l_put(lua_State *L)
{
    struct sxe__store_file *file = sxe__store_check(L);
    struct sxe__store_job *job;
    MDB_val key, value;
    uint64_t deadline_ns;

    sxe__store_check_key(L, 2, &key);
    check_value(L, 3, false, &value);
    deadline_ns = sxe__lua_deadline(L, 4);
    job = sxe__store_job_new(file, SXE__STORE_CHANGES, size_of_pair(&key, &value));
    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    (void)add_change(job->data, &key, &value, false);
    return sxe__store_job_begin(L, job, deadline_ns, go_on_after_store_job);
}

/* store:del(key [, timeout]) */
int
sxe__store_l_del(lua_State *L)
{
    struct sxe__store_file *file = sxe__store_check(L);
    const MDB_val none = {0, NULL};
    struct sxe__store_job *job;
    MDB_val key;
    uint64_t deadline_ns;

    sxe__store_check_key(L, 2, &key);
    deadline_ns = sxe__lua_deadline(L, 3);
    job = sxe__store_job_new(file, SXE__STORE_CHANGES, size_of_pair(&key, &none));
    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    job->says_was_there = true;
    (void)add_change(job->data, &key, &none, false);
    return sxe__store_job_begin(L, job, deadline_ns, go_on_after_store_job);
}

/* store:cas(key, expected, value [, timeout]) */
int
sxe__store_l_cas(lua_State *L)
{
    struct sxe__store_file *file = sxe__store_check(L);
    struct sxe__store_job *job;
    MDB_val key, expected, value;
    uint64_t deadline_ns;

    sxe__store_check_key(L, 2, &key);
    check_value(L, 3, true, &expected);
    check_value(L, 4, true, &value);
    deadline_ns = sxe__lua_deadline(L, 5);
    job = sxe__store_job_new(file, SXE__STORE_CHANGES,
                             size_of_pair(&key, &expected) + size_of_pair(&key, &value));
    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    job->may_differ = true;
    (void)add_change(add_change(job->data, &key, &expected, true), &key, &value, false);
    return sxe__store_job_begin(L, job, deadline_ns, go_on_after_store_job);
}

/* ---- A transaction: tables of keys with their new values, or false for a removal ---- */

enum { STORE = 1, BASED_ON, IS_EXACT, CHANGES, READS, DEADLINE };

/* How many bytes the changes of a table take. If `at` is not NULL, also write the changes there. */
static size_t
take_table(lua_State *L, int table, char *at)
{
    size_t size = 0;

    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        MDB_val key, value = {0, NULL};

        key.mv_data = (void *)(uintptr_t)lua_tolstring(L, -2, &key.mv_size);
        if (lua_toboolean(L, -1))
            value.mv_data = (void *)(uintptr_t)lua_tolstring(L, -1, &value.mv_size);
        size += size_of_pair(&key, &value);
        if (at != NULL)
            at = add_change(at, &key, &value, table == READS);
    }
    return size;
}

/* commit(store, based_on, is_exact, changes, reads, deadline): true; or false, because another
 * transaction changed what this transaction read */
int
sxe__store_l_commit(lua_State *L)
{
    struct sxe__store_file *file = sxe__store_check(L);
    const size_t changes_size = take_table(L, CHANGES, NULL);
    struct sxe__store_job *job =
        sxe__store_job_new(file, SXE__STORE_CHANGES, changes_size + take_table(L, READS, NULL));

    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    job->may_differ = true;
    job->based_on = (size_t)lua_tointeger(L, BASED_ON);
    job->is_exact = lua_toboolean(L, IS_EXACT);
    (void)take_table(L, CHANGES, job->data);
    (void)take_table(L, READS, job->data + changes_size);
    return sxe__store_job_begin(L, job, (uint64_t)lua_tointeger(L, DEADLINE),
                                go_on_after_store_job);
}

/* ---- The file ---- */

/* store:sync([timeout]) */
int
sxe__store_l_sync(lua_State *L)
{
    struct sxe__store_file *file = sxe__store_check(L);
    const uint64_t deadline_ns = sxe__lua_deadline(L, 2);
    struct sxe__store_job *job = sxe__store_job_new(file, SXE__STORE_SYNC, 0);

    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    return sxe__store_job_begin(L, job, deadline_ns, go_on_after_store_job);
}

/* store:resize(map_size [, timeout]) */
int
sxe__store_l_resize(lua_State *L)
{
    struct sxe__store_file *file = sxe__store_check(L);
    const lua_Integer map_size = luaL_checkinteger(L, 2);
    const uint64_t deadline_ns = sxe__lua_deadline(L, 3);
    struct sxe__store_job *job;

    luaL_argcheck(L, map_size > 0 && map_size <= MAP_MAX, 2, "a number of bytes expected");
    job = sxe__store_job_new(file, SXE__STORE_RESIZE, 0);
    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    job->map_size = (size_t)map_size;
    return sxe__store_job_begin(L, job, deadline_ns, go_on_after_store_job);
}

/* store:copy(path [, {compact =, timeout =}]) */
int
sxe__store_l_copy(lua_State *L)
{
    static const char *const names[] = {"compact", "timeout", NULL};
    struct sxe__store_file *file = sxe__store_check(L);
    const char *path = sxe__lua_check_text(L, 2);
    const uint64_t deadline_ns = sxe__lua_option_deadline(L, 3);
    bool is_compact = false;
    struct sxe__store_job *job;

    luaL_argcheck(L, strlen(path) < PATH_MAX, 2, "the path is too long");
    if (!lua_isnoneornil(L, 3)) {
        sxe__lua_option_names(L, 3, names, "store:copy");
        is_compact = sxe__lua_option_bool(L, 3, "store:copy", "compact", false);
    }
    job = sxe__store_job_new(file, SXE__STORE_COPY, strlen(path) + 1);
    if (job == NULL)
        return sxe__store_fail(L, ENOMEM);
    job->is_compact = is_compact;
    job->unique = sxe_lua_get_clock()->random();
    memcpy(job->data, path, strlen(path) + 1);
    return sxe__store_job_begin(L, job, deadline_ns, go_on_after_store_job);
}
