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
    uint64_t from;   /* offset of the first byte to read */
    uint64_t length; /* how many bytes to read at most; UINT64_MAX: the whole file */
    uint64_t max;    /* a longer file is refused */
    uint32_t mode;   /* permissions of a file or directory that is made */
    int flags;       /* flags of open(2); 0 is O_RDONLY */
    bool is_atomic;  /* write a new file, then rename it */
    bool has_mode;   /* the script named the mode */
    bool keeps_mode; /* `mode` is that of the file to be replaced: the umask does not change it */
    bool is_synced;
    bool is_link;      /* stat(2) the link itself, not its target */
    bool with_parents; /* also make the directories above the new directory */
};

struct sxe__lua_file_job {
    struct sxe_work work;
    const struct sxe__lua_file_call *call;
    /* Called when no thread and no task uses the job any more. */
    void (*give)(struct sxe__lua_file_job *job);
    struct sxe__lua_file_wish wish;
    uint64_t task; /* the task that waits for the job; 0: none */
    int fd;        /* descriptor of the open file; -1: no file is open */
    int result;    /* what `run` returned */
    /* Bytes to write, or that were read; for a directory, the names, each with its zero byte. */
    char *data;
    size_t length;     /* how many bytes `data` has */
    size_t size;       /* how many bytes `data` has memory for */
    uint64_t held_max; /* the most bytes that all jobs may hold */
    uint64_t *held;    /* the bytes that all jobs hold now, atomic */
    uint64_t unique;   /* part of a temporary name */
    struct stat status;
    char path[PATH_MAX];
    char to[PATH_MAX]; /* the new path, for a rename */
};

enum sxe__lua_file_arguments { SXE__LUA_FILE_PATH, SXE__LUA_FILE_DATA, SXE__LUA_FILE_PATHS };

struct sxe__lua_file_call {
    const char *name;
    enum sxe__lua_file_arguments arguments;
    int (*run)(struct sxe__lua_file_job *job); /* do the job in a thread; return 0 or -errno */
    /* Push the result of the job; NULL: the result is true. Stack index 2 has the first argument of
     * the call. */
    void (*push)(lua_State *L, const struct sxe__lua_file_job *job);
    const char *const *options; /* names that the call's table of options may have */
};

/* ---- sxe-lua-file.c ---- */

/* Run a job, then give it back. The caller has set its call, give, wish, path and data. If setting
 * them failed, `error` is the -errno, and the job is not run. The caller returns this function's
 * result. */
int sxe__lua_file_begin(lua_State *L, struct sxe__lua_file_job *job, int error,
                        uint64_t deadline_ns);

/* No task waits for the job any more: give the job back, now or when its thread is done. */
void sxe__lua_file_forget(void *job);

/* Set the members that are the same for all jobs. */
void sxe__lua_file_prepare(struct sxe__lua_file_job *job, const struct sxe__lua_file_call *call,
                           void (*give)(struct sxe__lua_file_job *job));

/* Check the path at an argument, which may come from a client: 0 or an errno. */
int sxe__lua_file_check_path(lua_State *L, int argument);

/* The field `name` of the table at the stack index `table`, a whole number of at most `most`;
 * `value` if the field is missing. Raises for anything else. */
lua_Integer sxe__lua_file_number(lua_State *L, int table, const char *name, lua_Integer value,
                                 lua_Integer most);

/* ---- sxe-lua-file-open.c ---- */

/* Call this once for each state: it makes the class of the files that file.open returns, and memory
 * for such files. Raises an error if memory is missing. */
void sxe__lua_file_plan_open(lua_State *L);
int sxe__lua_file_l_open(lua_State *L); /* file.open */

/* Close all open files, because the state ends, or a new one begins. A file that a thread uses is
 * closed when the thread is done. */
void sxe__lua_file_close_all(void);

/* ---- sxe-lua-file-run.c ---- */

/* Make room for `size` bytes of data: 0, or -ENOMEM. Any thread may call this. */
SXE_MUST_USE int sxe__lua_file_reserve(struct sxe__lua_file_job *job, size_t size);
void sxe__lua_file_release(struct sxe__lua_file_job *job);

int sxe__lua_file_read(struct sxe__lua_file_job *job);

/* Read a short file from the kernel's caches in the loop's thread, which never waits for the disk.
 * False: the file is too long or not cached, or an error came; then a thread has to read the file,
 * perhaps from the open fd. */
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
int sxe__lua_file_get(struct sxe__lua_file_job *job); /* read wish.length bytes, or up to the end */
int sxe__lua_file_put(struct sxe__lua_file_job *job);
int sxe__lua_file_close(struct sxe__lua_file_job *job);

#endif
