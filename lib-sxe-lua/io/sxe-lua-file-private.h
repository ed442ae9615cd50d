/* SPDX-License-Identifier: MIT
 *
 * What: a job of sxe.file, as the loop (sxe-lua-file.c, -open.c) and the thread that does it
 * (sxe-lua-file-run.c) share it. Until the thread is done the job belongs to the thread, except for
 * the member `task`.
 */
#ifndef SXE_LUA_FILE_PRIVATE_H
#define SXE_LUA_FILE_PRIVATE_H

#include <limits.h>
#include <sys/stat.h>

#include "sxe-lua-private.h"
#include "sxe-work.h"

struct sxe__lua_file_wish {
    uint64_t from;   /* where to begin to read */
    uint64_t length; /* bytes to read at most; UINT64_MAX: the whole file */
    uint64_t max;    /* a longer file is refused */
    uint32_t mode;   /* of a file or directory that is made */
    int flags;       /* of open(2); 0 is O_RDONLY */
    bool is_atomic;  /* write a new file, then rename it */
    bool has_mode;   /* the script named the mode */
    bool keeps_mode; /* mode is that of the file that is replaced, whatever the umask */
    bool is_synced;
    bool is_link;      /* stat(2) the link itself, not its target */
    bool with_parents; /* make the directories above, too */
};

struct sxe__lua_file_job {
    struct sxe_work work;
    const struct sxe__lua_file_call *call;
    void (*give)(struct sxe__lua_file_job *job); /* when no thread or task has it any more */
    struct sxe__lua_file_wish wish;
    uint64_t task;     /* the task that waits; 0: none */
    int fd;            /* of the open file; -1: none is open */
    int result;        /* of run */
    char *data;        /* to write, or read; of a directory the names, each with its zero byte */
    size_t length;     /* bytes of data */
    size_t size;       /* bytes that data has room for */
    uint64_t held_max; /* the most bytes that all jobs may hold */
    uint64_t *held;    /* the bytes that all jobs hold now, atomic */
    uint64_t unique;   /* part of a temporary name */
    struct stat status;
    char path[PATH_MAX];
    char to[PATH_MAX]; /* to rename to */
};

enum sxe__lua_file_arguments { SXE__LUA_FILE_PATH, SXE__LUA_FILE_DATA, SXE__LUA_FILE_PATHS };

struct sxe__lua_file_call {
    const char *name;
    enum sxe__lua_file_arguments arguments;
    int (*run)(struct sxe__lua_file_job *job); /* in a thread: 0 or -errno */
    /* Push the result; NULL: the result is true. Stack index 2 has the call's first argument. */
    void (*push)(lua_State *L, const struct sxe__lua_file_job *job);
    const char *const *options; /* names that its table of options may have */
};

/* ---- sxe-lua-file.c ---- */

/* Run a job whose call, give, wish, path and data are set, or, for error -errno, one that could not
 * be filled in; then give it back. Return what this returns. */
int sxe__lua_file_begin(lua_State *L, struct sxe__lua_file_job *job, int error,
                        uint64_t deadline_ns);

/* No task waits for the job any more: give it back, now or when its thread is done. */
void sxe__lua_file_forget(void *job);

/* Set the members that are the same for all jobs. */
void sxe__lua_file_prepare(struct sxe__lua_file_job *job, const struct sxe__lua_file_call *call,
                           void (*give)(struct sxe__lua_file_job *job));

/* Check the path at an argument, which may come from a client: 0 or an errno. */
int sxe__lua_file_check_path(lua_State *L, int argument);

/* A whole number in a field of the table there, or value if it is missing; raises beyond most. */
lua_Integer sxe__lua_file_number(lua_State *L, int table, const char *name, lua_Integer value,
                                 lua_Integer most);

/* ---- sxe-lua-file-open.c ---- */

/* Once a state: the class of what file.open returns, and room for it. Raises. */
void sxe__lua_file_plan_open(lua_State *L);
int sxe__lua_file_l_open(lua_State *L); /* file.open */

/* Close all open files, now or when a thread is done with them: the state ends, or a new one
 * begins. */
void sxe__lua_file_close_all(void);

/* ---- sxe-lua-file-run.c ---- */

/* Make room for size bytes of data: 0, or -ENOMEM. In any thread. */
SXE_MUST_USE int sxe__lua_file_reserve(struct sxe__lua_file_job *job, size_t size);
void sxe__lua_file_release(struct sxe__lua_file_job *job);

int sxe__lua_file_read(struct sxe__lua_file_job *job);

/* Read a short file that the kernel has in its caches, in the loop's thread, without waiting for a
 * disk. False: the file is not short or not cached, or there is an error; fd may then be open for
 * the thread. */
bool sxe__lua_file_read_cached(struct sxe__lua_file_job *job);
int sxe__lua_file_write(struct sxe__lua_file_job *job);
int sxe__lua_file_append(struct sxe__lua_file_job *job);
int sxe__lua_file_list(struct sxe__lua_file_job *job);
int sxe__lua_file_stat(struct sxe__lua_file_job *job);
int sxe__lua_file_remove(struct sxe__lua_file_job *job);
int sxe__lua_file_rename(struct sxe__lua_file_job *job);
int sxe__lua_file_mkdir(struct sxe__lua_file_job *job);

/* Jobs of a file that stays open. */
int sxe__lua_file_open(struct sxe__lua_file_job *job);
int sxe__lua_file_get(struct sxe__lua_file_job *job); /* wish.length bytes, or up to the end */
int sxe__lua_file_put(struct sxe__lua_file_job *job);
int sxe__lua_file_close(struct sxe__lua_file_job *job);

#endif
