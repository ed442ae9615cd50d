/* SPDX-License-Identifier: MIT
 *
 * What: keeps a remote copy of memory up to date by sending only blocks that have changed. Place:
 * for a worker's result, of which rank 0 needs a copy: it has 4 MB, and changes little in a tenth
 * of a second.
 *
 * Shape: the bytes are a list of blocks: a block's number, then its content. The last block of the
 * memory may be shorter.
 *
 * Example:
 *     struct load_delta delta = {.now = result, .sent = copy, .size = size, .end = size};
 *     while ((length = load_delta_take(&delta, bytes, sizeof(bytes))) > 0)
 *         send(bytes, length);
 */
#ifndef LOAD_DELTA_H
#define LOAD_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_DELTA_BLOCK 64

struct load_delta {
    const char *now;  /* the memory; others may change it: the next delta has their changes */
    char *sent;       /* a copy of the other end's copy; all copies begin as zero */
    size_t size;      /* of the memory */
    size_t at;        /* offset of the next block to look at, which load_delta_take moves */
    size_t end;       /* offset at which to end */
    size_t time_at;   /* offset of a uint64_t, a time by this end's clock (0: none yet) */
    int64_t ahead_ns; /* how far this end's clock is ahead; subtracted from the time */
};

/* Write changed blocks into at most `room` bytes. Returns the bytes written; 0: no more changes. */
size_t load_delta_take(struct load_delta *delta, char *bytes, size_t room);

/* Write the blocks into the memory. False: the bytes are not from load_delta_take of this size. */
bool load_delta_apply(char *memory, size_t size, const char *bytes, size_t length);

#endif
