/* SPDX-License-Identifier: MIT
 *
 * What: a directory, a state with sxe.store, and faults of LMDB: each of its calls that the library
 * makes can fail, with any error.
 *
 * Example:
 *     world_start();            with a loop; world_start_at_once(): without one
 *     run_script("db = open 'a' assert(db:put('k', 'v'))");
 *     mdb_fault(3, MDB_MAP_FULL);                the third call from now on fails
 *     ...
 *     world_stop();             or world_stop_at_once()
 */
#ifndef STORE_WORLD_H
#define STORE_WORLD_H

#include "lua-net.h"

#include <lmdb.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lua-count.h"
#include "sxe-store-private.h"
#include "sxe-store.h"

static char root[] = "/tmp/sxe-store-XXXXXX";

#define PRELUDE                                                                              \
    "store, task = require 'sxe.store', require 'sxe.task'\n"                                \
    "function at(name) return arg[1] .. '/' .. name end\n"                                   \
    "function open(name, options) return assert(store.open(at(name), options)) end\n"        \
    "function fails(wanted, ...) local data, why, code = ...\n"                              \
    "    assert(data == nil and code == wanted, why) return why end\n"                       \
    "function keys(one, options) local all = {}\n"                                           \
    "    for key in one:each(options) do all[#all + 1] = key end\n"                          \
    "    return table.concat(all, ' ') end\n"                                                \
    "log, number, tasks, ended = '', 0, {}, {}\n"                                            \
    "db, other, step, young, t, u, text, stats = false, false, false, false, false, false, " \
    "false, false\n"

/* ---- Faults ---- */

static struct {
    unsigned number, nth; /* calls so far, and the one that fails; 0: none */
    unsigned times;       /* how many calls after that one fail, too */
    int result;
    bool has_struck;
    const char *only; /* calls of this name alone are counted; NULL: all */
} fault;

static void (*on_mdb)(const char *name); /* called before each call, in its thread; may be NULL */

static inline bool
mdb_strikes(const char *name)
{
    if (on_mdb != NULL)
        on_mdb(name);
    if (fault.nth == 0 || (fault.only != NULL && strcmp(fault.only, name) != 0))
        return false;
    fault.number++;
    if (fault.number < fault.nth || fault.number > fault.nth + fault.times)
        return false;
    fault.has_struck = true;
    return true;
}

static inline void
mdb_fault_in(const char *name, unsigned nth, unsigned times, int result)
{
    fault.only = name;
    fault.number = fault.has_struck = 0;
    fault.nth = nth;
    fault.times = times - 1;
    fault.result = result;
}

static inline void
mdb_fault(unsigned nth, int result)
{
    mdb_fault_in(NULL, nth, 1, result);
}

#define EACH_MDB(X)                                                                            \
    X(mdb_env_create, (MDB_env * *env), (env))                                                 \
    X(mdb_env_set_mapsize, (MDB_env * env, size_t size), (env, size))                          \
    X(mdb_env_set_maxreaders, (MDB_env * env, unsigned readers), (env, readers))               \
    X(mdb_env_open, (MDB_env * env, const char *path, unsigned flags, mode_t mode),            \
      (env, path, flags, mode))                                                                \
    X(mdb_reader_check, (MDB_env * env, int *dead), (env, dead))                               \
    X(mdb_txn_begin, (MDB_env * env, MDB_txn * parent, unsigned flags, MDB_txn **txn),         \
      (env, parent, flags, txn))                                                               \
    X(mdb_txn_renew, (MDB_txn * txn), (txn))                                                   \
    X(mdb_dbi_open, (MDB_txn * txn, const char *name, unsigned flags, MDB_dbi *dbi),           \
      (txn, name, flags, dbi))                                                                 \
    X(mdb_env_get_fd, (MDB_env * env, int *fd), (env, fd))                                     \
    X(mdb_get, (MDB_txn * txn, MDB_dbi dbi, MDB_val * key, MDB_val * value),                   \
      (txn, dbi, key, value))                                                                  \
    X(mdb_put, (MDB_txn * txn, MDB_dbi dbi, MDB_val * key, MDB_val * value, unsigned flags),   \
      (txn, dbi, key, value, flags))                                                           \
    X(mdb_del, (MDB_txn * txn, MDB_dbi dbi, MDB_val * key, MDB_val * value),                   \
      (txn, dbi, key, value))                                                                  \
    X(mdb_cursor_open, (MDB_txn * txn, MDB_dbi dbi, MDB_cursor * *cursor), (txn, dbi, cursor)) \
    X(mdb_cursor_get, (MDB_cursor * cursor, MDB_val * key, MDB_val * value, MDB_cursor_op op), \
      (cursor, key, value, op))                                                                \
    X(mdb_env_sync, (MDB_env * env, int force), (env, force))                                  \
    X(mdb_env_copyfd2, (MDB_env * env, int fd, unsigned flags), (env, fd, flags))              \
    X(mdb_env_info, (MDB_env * env, MDB_envinfo * info), (env, info))                          \
    X(mdb_env_stat, (MDB_env * env, MDB_stat * stat), (env, stat))                             \
    X(mdb_stat, (MDB_txn * txn, MDB_dbi dbi, MDB_stat * stat), (txn, dbi, stat))

#define DEFINE_FAULT(name, types, names) \
    int __real_##name types;             \
    int __wrap_##name types;             \
    int __wrap_##name types              \
    {                                    \
        if (mdb_strikes(#name))          \
            return fault.result;         \
        return __real_##name names;      \
    }
EACH_MDB(DEFINE_FAULT)

/* A commit that fails has ended its transaction. */
#define WRAPPED(X) X(mdb_txn_commit, , )
int __real_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_txn_commit(MDB_txn *txn);
int
__wrap_mdb_txn_commit(MDB_txn *txn)
{
    if (!mdb_strikes("mdb_txn_commit"))
        return __real_mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return fault.result;
}

/* ---- The state ---- */

static inline void
make_root(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static inline void
remove_root(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static inline void
world_start_at_once(void)
{
    static char name[] = "test";
    static char *argv[] = {name, root, NULL};

    make_root();
    net_open_before = fake_os_open_fds();
    state_start_with(&(struct sxe_lua_config){
        .tasks = 64, .memory_max = 12 << 20, .argc = 2, .argv = argv, .store = sxe_store_open});
    /* The first script makes the coroutine in which all scripts run, and lines are counted only in
     * coroutines that are made after count_lines. */
    count_lines("build/coverage/lua/store.info");
    run_script(PRELUDE);
}

static inline void
world_stop_at_once(void)
{
    state_stop();
    ck_assert_uint_eq(fake_os_open_fds(), net_open_before);
    remove_root();
}

static unsigned world_open_before; /* descriptors with a loop, but no store */

/* Run more of a script before the loop. */
static inline void
world_start_with(const char *more)
{
    char text[2000];

    make_root();
    snprintf(text, sizeof(text), PRELUDE "arg[1] = '%s' %s", root, more);
    net_store = sxe_store_open;
    net_start(text);
    world_open_before = fake_os_open_fds();
}

static inline void
world_start(void)
{
    world_start_with("");
}

/* The state is deleted; threads that still had jobs of it close their files. */
static inline void
world_end(void)
{
    for (unsigned i = 0; i < WAIT_TURNS && fake_os_open_fds() > world_open_before; i++)
        turn_slowly(1);
    net_end();
    remove_root();
}

static inline void
world_stop(void)
{
    state_stop();
    world_end();
}

#endif
