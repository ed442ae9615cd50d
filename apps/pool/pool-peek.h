/* SPDX-License-Identifier: MIT
 *
 * What: what is known of a pool from its file's head alone, without becoming a user of it.
 * Place: list, which looks at many, and which does not wait for anybody; processes named by number.
 *
 * Shape: one file, or each pool in a place, under the name that POOL may be:
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
    char which[PATH_MAX + 32];   /* as POOL on the command line */
    char why[SXE_POOL_WHY_SIZE]; /* "": the head is good; otherwise nothing below is known */
    char name[SXE_POOL_NAME_MAX + 1];
    char state_names[SXE_POOL_NAMES_MAX + 1];
    unsigned number;
    unsigned states;
    unsigned shards;
    size_t element_size;
    unsigned users; /* processes; 0: none */
    bool is_closed; /* by the last of them */
    int process;    /* that has it open as descriptor; 0: found as a file */
    int descriptor;
    dev_t device; /* the same for the same file */
    ino_t inode;
};

/* Files that were met; what is beyond may be met twice. */
#define POOL_SEEN_MAX 4096
struct pool_seen {
    unsigned number;
    struct {
        dev_t device;
        ino_t inode;
    } file[POOL_SEEN_MAX];
};

typedef void (*POOL_PEEK_FOUND)(void *user, const struct pool_peek *peek);

/* One file; false: no pool is in it. If its head is damaged, the copy at the end of the file says
 * what its states are named. */
bool pool_peek_file(const char *path, struct pool_peek *peek);

/* Whether the cells of a dict are in it. */
bool pool_peek_is_dict(const struct pool_peek *peek);

/* Whether its file is met for the first time. */
bool pool_peek_is_new(const struct pool_peek *peek, struct pool_seen *seen);

/* For how long sxe_pool_open would wait for who opens or closes that file; 0: nobody does. */
unsigned pool_peek_busy_ms(const char *path);

/* 0, or the errno of opendir. Skips files that cannot be opened. */
int pool_peek_directory(const char *directory, POOL_PEEK_FOUND found, void *user);
int pool_peek_process(int process, POOL_PEEK_FOUND found, void *user);

#endif
