/* SPDX-License-Identifier: MIT
 *
 * What: what the files of sxe.store share.
 *
 *     sxe-store.c        the module: open, get, stats; the class of a store
 *     sxe-store-call.c   its calls that write, sync, copy; how calls fail
 *     sxe-store-walk.c   its snapshots and walks, for Lua
 *     sxe-store.lua      transactions, and the bounds of walks, of the functions above
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
    SXE__STORE_SNAPSHOTS = 256,    /* that are open */
    SXE__STORE_SNAPSHOTS_KEPT = 8, /* whose places stay this process's when they are closed */
    SXE__STORE_GROUP_MAX = 64,     /* jobs that one commit does */
    SXE__STORE_CONFLICT = INT_MIN, /* a result: a condition of the changes does not hold */
    SXE__STORE_NO_THREADS,         /* a result: the module was required after the loop began */
    SXE__STORE_TARGET_IN_USE,      /* a result: of a copy to the path of an open store */
};

struct sxe__store_file;
struct sxe__store_job;

/* A call that may find that another process made the map larger: 0, and its result is pushed. */
typedef int (*sxe__store_attempt)(lua_State *L, struct sxe__store_file *file);

struct sxe__store_options {
    size_t map_size;
    unsigned readers;
    unsigned flags; /* of mdb_env_open: read-only, how commits are synced */
    mode_t mode;
    double snapshot_max_s;
};

struct sxe__store_snapshot {
    MDB_txn *txn; /* the first are kept for the next snapshot when they are closed */
    MDB_cursor *cursor;
    MDB_val at; /* the key that the cursor is at, in the map; NULL: none */
    uint64_t begun_ns;
    uint32_t generation;
    bool is_open;
};

struct sxe__store_line {
    struct sxe__store_job *first;
    struct sxe__store_job *last;
};

struct sxe__store_file {
    struct sxe__store_file *next; /* in the process's list */
    struct sxe__store_file *next_closing;
    MDB_env *env; /* NULL: it is closed */
    MDB_dbi table;
    MDB_txn *reader; /* of single reads; reset between them, unless is_reading */
    dev_t device;
    ino_t inode;
    ino_t locks_inode; /* of the file of locks, on the same device; 0: there is none */
    const void *owner; /* the thread */
    unsigned forks;    /* that had happened when it was opened */
    _Atomic unsigned users;
    unsigned commits; /* since stale readers were looked for */
    unsigned copies;  /* under way */
    bool is_reading;
    bool is_broken;  /* it has no map, because the system refused one */
    bool is_writing; /* a thread has `taken` */
    unsigned snapshots;
    ev_timer ends_old;    /* snapshots */
    struct ev_loop *loop; /* of that timer */
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
    SXE__STORE_RESIZE, /* done by the loop, when no thread writes */
};

struct sxe__store_job {
    struct sxe_work work; /* of OPEN and COPY */
    struct sxe__store_job *next;
    struct sxe__store_job *prev;      /* in this thread's list of all */
    struct sxe__store_job *line_next; /* in the file's line */
    struct sxe__store_file *file;
    enum sxe__store_kind kind;
    uint64_t task; /* 0: no task waits */
    int result;
    sxe__store_attempt attempt; /* to make again after a RESIZE */
    bool is_done;
    bool was_there;      /* the key of the last removal */
    bool is_exact;       /* no other change may have been made since the snapshot */
    bool is_compact;     /* of a copy */
    bool says_was_there; /* the call returns was_there; otherwise it returns true */
    bool may_differ;     /* a condition that does not hold is no failure, but false */
    unsigned adoptions;  /* how often the job took over a larger map of another process */
    size_t based_on;     /* the snapshot's transaction; 0: none */
    uint64_t unique;     /* part of the name of a copy that is not whole */
    size_t map_size;     /* the size that the map shall have; 0: that of another process */
    struct sxe__store_options options;
    size_t size; /* bytes of data */
    char data[]; /* a path and its NUL; or changes, each with its head */
};

/* One change or condition, key and value after it. Heads are not aligned: memcpy them. */
struct sxe__store_change {
    uint32_t key_size;
    uint32_t size; /* of the value; NO_VALUE: none, so the key is removed, or must be missing */
    uint32_t is_condition;
};
#define SXE__STORE_NO_VALUE UINT32_MAX

/* ---- sxe-store-file.c ---- */

/* In a thread: open the file of a job, or take one more user of one that is open already. */
int sxe__store_file_open(struct sxe__store_job *job);

/* Take one more user of a file, in its thread. */
struct sxe__store_file *sxe__store_file_use(struct sxe__store_file *file);

/* Leave it; the last user's leaving closes the file, in a thread if there are any. */
void sxe__store_file_leave(struct sxe__store_file *file);

/* In a thread: put a copy in the place of the file at a path, unless that is no store, or open. */
int sxe__store_file_replace(const char *copy, const char *path);

/* A state of this thread ends, or begins: files are closed at once, or by a thread. */
void sxe__store_file_set_ending(bool is_ending);

/* Whether this process is a child of the one that opened it. */
bool sxe__store_file_is_parents(const struct sxe__store_file *file);

/* No thread writes. Map more, or less, of it; 0: as much as another process made it. */
int sxe__store_file_resize(struct sxe__store_file *file, size_t map_size);

/* Once a process: children of fork(2) learn that they have no file open. False: no memory. */
bool sxe__store_file_watch_forks(void);

/* ---- sxe-store-check.c ---- */

/* Whether the file has each page that the transaction may read: 0 or an error. */
int sxe__store_check_pages(MDB_env *env, MDB_txn *txn, MDB_dbi table);

/* ---- sxe-store-read.c ---- */

/* Read a value that stays as it is until sxe__store_read_end. */
int sxe__store_read(struct sxe__store_file *file, MDB_val *key, MDB_val *value);
void sxe__store_read_end(struct sxe__store_file *file);

/* Open one; *index is its number. */
int sxe__store_snapshot_open(struct sxe__store_file *file, unsigned *index);
void sxe__store_snapshot_close(struct sxe__store_file *file, unsigned index);
void sxe__store_snapshot_close_all(struct sxe__store_file *file);

/* Where a walk goes. Bytes that are NULL: no bound. */
struct sxe__store_walk {
    MDB_val low;  /* no smaller key */
    MDB_val high; /* no key that is not smaller */
    bool is_reverse;
};

/* Read the next entry; the walk was at the key before, or begins if that is NULL. */
int sxe__store_walk_step(struct sxe__store_file *file, unsigned index,
                         const struct sxe__store_walk *walk, const MDB_val *before, MDB_val *key,
                         MDB_val *value);

/* Compare as LMDB does: negative, 0, positive. */
int sxe__store_compare(const MDB_val *a, const MDB_val *b);

/* ---- sxe-store-job.c ---- */

/* A new job, or NULL: no memory, or more than all jobs may hold. It is a user of the file, which
 * may be NULL. */
struct sxe__store_job *sxe__store_job_new(struct sxe__store_file *file, enum sxe__store_kind kind,
                                          size_t size);

/* Begin a job, and park the task until it is done; k gets it as its context, and must give it to
 * sxe__store_job_end before all else. Return what this returns. */
int sxe__store_job_begin(lua_State *L, struct sxe__store_job *job, uint64_t deadline_ns,
                         lua_KFunction k);

/* In k: free the job. False: its task was cancelled, or timed out, and nothing else is known of it.
 * *done is the job as it was, without its data; a file that was opened is the caller's to leave. */
bool sxe__store_job_end(lua_State *L, int status, lua_KContext context,
                        struct sxe__store_job *done);

/* Once a state: no task waits for a job of another state. */
void sxe__store_job_forget_all(void);
void sxe__store_job_plan(void); /* threads, before the loop runs */

void sxe__store_job_free(struct sxe__store_job *job);

/* ---- sxe-store-write.c: in a thread ---- */

void sxe__store_write(struct sxe__store_file *file); /* do what was taken of its line */
int sxe__store_copy(struct sxe__store_job *job);

/* ---- sxe-store-call.c: calls of the store, with the store at 1 ---- */

#define SXE__STORE_CLASS    "sxe.store"
#define SXE__STORE_SNAPSHOT "sxe.store.snapshot"

/* The file of the store at 1; raises if it is closed. */
struct sxe__store_file *sxe__store_check(lua_State *L);

/* nil, message, code */
int sxe__store_fail(lua_State *L, int result);

/* Make a call; if another process made the map larger, once more after this process did. */
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
int sxe__store_l_based_on(lua_State *L); /* based_on(snapshot): its transaction's number */

/* A key at an argument: a string of 1 to 511 bytes. */
void sxe__store_check_key(lua_State *L, int argument, MDB_val *key);

#endif
