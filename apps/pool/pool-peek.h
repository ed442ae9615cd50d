/* SPDX-License-Identifier: MIT
 *
 * What: information about a pool, read only from the head of its file, without opening the pool.
 * Place: pool-list.c uses it, because it reads many pools and must never wait; pool-which.c uses it
 * to find the pools of a process.
 *
 * Shape: three functions read one file, or each pool in a place. The member `which` is the argument
 * POOL with which sxe-pool would open the pool:
 *
 *     pool_peek_file        a path; links are followed
 *     pool_peek_directory   regular files in a directory, not below it
 *     pool_peek_process     what a process has open: files and memfds
 */
#ifndef POOL_PEEK_H
#define POOL_PEEK_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "sxe-pool-shared.h"

struct pool_peek {
    char which[PATH_MAX + 32]; /* the argument POOL that opens this pool on the command line */
    /* "": the head is sound. Otherwise the text says what is wrong, and the members up to is_closed
     * are unset. */
    char why[SXE_POOL_WHY_SIZE];
    char name[SXE_POOL_NAME_MAX + 1];
    char state_names[SXE_POOL_NAMES_MAX + 1];
    unsigned number;
    unsigned states;
    unsigned shards;
    size_t element_size;
    unsigned users; /* how many processes use the pool; 0: none */
    /* whether the last process that used the pool closed it; false: that process was killed, or the
     * pool is in use */
    bool is_closed;
    /* a process that has the pool open as `descriptor`; 0: the pool was found as a file */
    int process;
    int descriptor;
    dev_t device; /* device and inode together identify the file */
    ino_t inode;
};

/* The pools that were found so far, so that none is listed twice. Pools beyond this number are not
 * remembered, and may be listed twice. */
#define POOL_SEEN_MAX 4096
struct pool_seen {
    unsigned number;
    struct {
        dev_t device;
        ino_t inode;
    } file[POOL_SEEN_MAX];
};

typedef void (*POOL_PEEK_FOUND)(void *user, const struct pool_peek *peek);

/* Read one file. False: it holds no pool. If the head is damaged, state_names come from its copy at
 * the end of the file. */
bool pool_peek_file(const char *path, struct pool_peek *peek);

/* Whether the pool holds the cells of a dict. */
bool pool_peek_is_dict(const struct pool_peek *peek);

/* Whether the pool's file is not in *seen yet; adds the file to *seen. */
bool pool_peek_is_new(const struct pool_peek *peek, struct pool_seen *seen);

/* How many milliseconds sxe_pool_open would wait for a process that opens or closes the file; 0: no
 * process does. */
unsigned pool_peek_busy_ms(const char *path);

/* Call found for each pool in the directory, or of the process. 0, or the errno of opendir. Skip
 * files that cannot be opened. */
int pool_peek_directory(const char *directory, POOL_PEEK_FOUND found, void *user);
int pool_peek_process(int process, POOL_PEEK_FOUND found, void *user);

#endif
