/* SPDX-License-Identifier: MIT
 *
 * What: what the files of sxe.store share.
 *
 *     sxe-store.c        the module: open, get, stats; the class of a store
 *     sxe-store-call.c   its calls that write, sync, copy; how calls fail
 *     sxe-store-walk.c   its snapshots and walks, for Lua
 *     sxe-store.lua      transactions, and the bounds of walks, built on the functions above
 *     sxe-store-read.c   reading in the loop's thread: one value, snapshots, walks
 *     sxe-store-job.c    jobs: in a store's line or alone, the tasks that wait for them
 *     sxe-store-write.c  what threads do: commits, copies
 *     sxe-store-file.c   files that this process has open; the size of their maps
 *     sxe-store-check.c  whether a file that is opened has all its pages
 *
 * Results are 0, an errno, which is positive, or one of LMDB's own codes, which are negative.
 *
 * A file belongs to one thread, that of its loop. Work threads see it only in a run of a job; the
 * list of all files has a lock.
 */
#ifndef SXE_STORE_PRIVATE_H
#define SXE_STORE_PRIVATE_H

#include <ev.h>
#include <lauxlib.h>
#include <limits.h>
#include <lmdb.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sxe-work.h"

enum {
    SXE__STORE_KEY_MAX = 511,
    SXE__STORE_SNAPSHOTS = 256, /* how many snapshots may be open */
    /* how many closed snapshots keep their place in LMDB's table of readers */
    SXE__STORE_SNAPSHOTS_KEPT = 8,
    SXE__STORE_GROUP_MAX = 64,     /* how many jobs one commit does at most */
    SXE__STORE_CONFLICT = INT_MIN, /* a result: the changes have a condition that does not hold */
    SXE__STORE_NO_THREADS,         /* a result: the module was required after the loop began */
    SXE__STORE_TARGET_IN_USE,      /* a result: the target of a copy is the path of an open store */
};

struct sxe__store_file;
struct sxe__store_job;

/* A call that can fail because another process made the map larger. 0: the call is done, and its
 * result is pushed. */
typedef int (*sxe__store_attempt)(lua_State *L, struct sxe__store_file *file);

struct sxe__store_options {
    size_t map_size;
    unsigned readers;
    unsigned flags; /* flags of mdb_env_open: read-only; how commits are synced */
    mode_t mode;
    double snapshot_max_s;
};

struct sxe__store_snapshot {
    /* the first SXE__STORE_SNAPSHOTS_KEPT slots keep their transaction, after closing, for the next
     * snapshot */
    MDB_txn *txn;
    MDB_cursor *cursor;
    /* the key at which the cursor stands, in the map; NULL: the cursor stands at none */
    MDB_val at;
    uint64_t begun_ns;
    uint32_t generation;
    bool is_open;
};

struct sxe__store_line {
    struct sxe__store_job *first;
    struct sxe__store_job *last;
};

struct sxe__store_file {
    struct sxe__store_file *next; /* the next file in the process's list of open files */
    struct sxe__store_file *next_closing;
    MDB_env *env; /* NULL: the file is closed */
    MDB_dbi table;
    /* the transaction of single reads; it is reset between two reads, unless is_reading */
    MDB_txn *reader;
    dev_t device;
    ino_t inode;
    /* the inode of the lock file, on the same device; 0: there is no lock file */
    ino_t locks_inode;
    const void *owner; /* identifies the thread that the file belongs to */
    unsigned forks;    /* how many forks had happened when the file was opened */
    _Atomic unsigned users;
    unsigned commits; /* how many commits since the last look for readers that died */
    unsigned copies;  /* how many copies are under way */
    bool is_reading;
    bool is_broken;  /* the file has no map, because the system refused to map it */
    bool is_writing; /* a thread is doing the jobs in `taken` */
    unsigned snapshots;
    ev_timer ends_old;    /* fires when the oldest snapshot must be closed */
    struct ev_loop *loop; /* the loop in which ends_old runs */
    struct sxe__store_options options;
    struct sxe__store_line line;
    struct sxe__store_job *taken;
    struct sxe_work writing;
    struct sxe_work closing;
    struct sxe__store_snapshot snapshot[SXE__STORE_SNAPSHOTS];
};

enum sxe__store_kind {
    SXE__STORE_OPEN,
    SXE__STORE_COPY,
    SXE__STORE_CHANGES,
    SXE__STORE_SYNC,
    SXE__STORE_RESIZE, /* the loop does this job, while no thread writes */
};

struct sxe__store_job {
    struct sxe_work work; /* the work of an OPEN or COPY */
    struct sxe__store_job *next;
    struct sxe__store_job *prev;      /* the previous job in the list of all jobs of this thread */
    struct sxe__store_job *line_next; /* the next job in the file's line */
    struct sxe__store_file *file;
    enum sxe__store_kind kind;
    uint64_t task; /* the task that waits; 0: none */
    int result;
    sxe__store_attempt attempt; /* the call to make again after a RESIZE */
    bool is_done;
    bool was_there;      /* whether the last removal found its key in the store */
    bool is_exact;       /* whether any other change since the snapshot makes a conflict */
    bool is_compact;     /* whether a copy leaves out free pages */
    bool says_was_there; /* whether the call returns was_there; false: the call returns true */
    /* whether a condition that does not hold makes the call return false, not fail */
    bool may_differ;
    unsigned adoptions; /* how often the job mapped a larger size that another process had made */
    /* the number of the snapshot's transaction; 0: the job depends on no snapshot */
    size_t based_on;
    /* a number in the name of the unfinished copy, so that no two copies have the same name */
    uint64_t unique;
    size_t map_size; /* the size that the map is to have; 0: the size that another process made */
    struct sxe__store_options options;
    size_t size; /* how many bytes data has */
    char data[]; /* a path with its final zero; or changes, each with its head */
};

/* The head of a change or condition, which its key and value follow. Heads are not aligned: memcpy
 * them. */
struct sxe__store_change {
    uint32_t key_size;
    /* bytes of the value; NO_VALUE: there is none: the key is to be removed, or must be missing */
    uint32_t size;
    uint32_t is_condition;
};
#define SXE__STORE_NO_VALUE UINT32_MAX

/* ---- sxe-store-file.c ---- */

/* In a work thread: open the file of a job. If the file is open already, add a user to it. */
int sxe__store_file_open(struct sxe__store_job *job);

/* Add a user to a file; call it in the file's thread. */
struct sxe__store_file *sxe__store_file_use(struct sxe__store_file *file);

/* A user leaves the file. The last user closes the file, in a work thread if there are any. */
void sxe__store_file_leave(struct sxe__store_file *file);

/* In a work thread: replace the file at a path by a copy, unless that file is no store, or is
 * open. */
int sxe__store_file_replace(const char *copy, const char *path);

/* Call this when a state of this thread ends, or begins. While a state is ending, files are closed
 * at once, otherwise by a work thread. */
void sxe__store_file_set_ending(bool is_ending);

/* Whether the file was opened before a fork, by a parent of this process. */
bool sxe__store_file_is_parents(const struct sxe__store_file *file);

/* Map another size of the file, while no thread writes. map_size 0: the size that another process
 * gave it. */
int sxe__store_file_resize(struct sxe__store_file *file, size_t map_size);

/* Call this once in a process, so that children of fork(2) know that they have no file open. False:
 * no memory. */
bool sxe__store_file_watch_forks(void);

/* ---- sxe-store-check.c ---- */

/* Check that the file has each page that the transaction may read. 0 or an error. */
int sxe__store_check_pages(MDB_env *env, MDB_txn *txn, MDB_dbi table);

/* ---- sxe-store-read.c ---- */

/* Read a value. It stays valid until sxe__store_read_end. */
int sxe__store_read(struct sxe__store_file *file, MDB_val *key, MDB_val *value);
void sxe__store_read_end(struct sxe__store_file *file);

/* Open a snapshot; *index becomes its number. */
int sxe__store_snapshot_open(struct sxe__store_file *file, unsigned *index);
void sxe__store_snapshot_close(struct sxe__store_file *file, unsigned index);
void sxe__store_snapshot_close_all(struct sxe__store_file *file);

/* The bounds of a walk. A bound without bytes (NULL) is no bound. */
struct sxe__store_walk {
    MDB_val low;  /* the walk has no smaller key */
    MDB_val high; /* the walk has only smaller keys */
    bool is_reverse;
};

/* Read the walk's next entry after `key`; if its bytes are NULL, the walk begins. */
int sxe__store_walk_step(struct sxe__store_file *file, unsigned index,
                         const struct sxe__store_walk *walk, const MDB_val *before, MDB_val *key,
                         MDB_val *value);

/* Compare two keys as LMDB does: the result is negative, 0 or positive. */
int sxe__store_compare(const MDB_val *a, const MDB_val *b);

/* ---- sxe-store-job.c ---- */

/* Make a job. NULL: no memory, or all jobs together would have too many bytes. The job is a user of
 * the file, which may be NULL. */
struct sxe__store_job *sxe__store_job_new(struct sxe__store_file *file, enum sxe__store_kind kind,
                                          size_t size);

/* Begin a job, and park the task until the job is done. The continuation k gets the job as its
 * context, and must call sxe__store_job_end with it before anything else. Return the result of this
 * function. */
int sxe__store_job_begin(lua_State *L, struct sxe__store_job *job, uint64_t deadline_ns,
                         lua_KFunction k);

/* In the continuation k: free the job. False: the task was cancelled, or timed out, and the outcome
 * is unknown. *done becomes a copy of the job without its data; if it opened a file, the caller is
 * now the user of that file. */
bool sxe__store_job_end(lua_State *L, int status, lua_KContext context,
                        struct sxe__store_job *done);

/* Call this once for each state, at its end: no task waits for the jobs of another state. */
void sxe__store_job_forget_all(void);
void sxe__store_job_plan(void); /* Register threads; call this before the loop runs. */

void sxe__store_job_free(struct sxe__store_job *job);

/* ---- sxe-store-write.c: in a work thread ---- */

void sxe__store_write(struct sxe__store_file *file); /* do the jobs in file->taken */
int sxe__store_copy(struct sxe__store_job *job);

/* ---- sxe-store-call.c: calls of the store at argument 1 ---- */

#define SXE__STORE_CLASS    "sxe.store"
#define SXE__STORE_SNAPSHOT "sxe.store.snapshot"

/* The file of the store at argument 1; raises an error if the store is closed. */
struct sxe__store_file *sxe__store_check(lua_State *L);

/* Push nil, a message and a code. */
int sxe__store_fail(lua_State *L, int result);

/* Make a call. If it fails because another process made the map larger, map the new size and make
 * the call again. */
int sxe__store_attempt_call(lua_State *L, sxe__store_attempt attempt);

int sxe__store_l_put(lua_State *L);
int sxe__store_l_del(lua_State *L);
int sxe__store_l_cas(lua_State *L);
int sxe__store_l_commit(lua_State *L);
int sxe__store_l_sync(lua_State *L);
int sxe__store_l_resize(lua_State *L);
int sxe__store_l_copy(lua_State *L);

/* ---- sxe-store-walk.c: snapshots and walks ---- */

void sxe__store_add_snapshot_class(lua_State *L);
int sxe__store_l_snapshot(lua_State *L); /* store:snapshot() */

/* walk(snapshot, low, high, is_reverse): a function for a for loop */
int sxe__store_l_walk(lua_State *L);
int sxe__store_l_based_on(lua_State *L); /* based_on(snapshot): the number of its transaction */

/* Get the key at an argument: a string of 1 to 511 bytes. */
void sxe__store_check_key(lua_State *L, int argument, MDB_val *key);

#endif
