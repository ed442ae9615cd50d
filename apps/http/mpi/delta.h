/* SPDX-License-Identifier: MIT
 *
 * What: a copy of memory that follows it: only blocks that have changed are sent. Place: a worker's
 * result, which rank 0 adds up, is 4 MB, of which a tenth of a second changes little.
 *
 * Shape: bytes are a list of blocks: the number of the block, then what is in it now. The last
 * block of the memory may be shorter.
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
    const char *now; /* others may write in it meanwhile: then the next delta has that */
    char *sent;      /* what the other end has; both begin as zero */
    size_t size;
    size_t at;        /* from this block on: a multiple of LOAD_DELTA_BLOCK, which take moves */
    size_t end;       /* to here */
    size_t time_at;   /* here it has a uint64_t, a time by a clock (0: none yet) that is so far */
    int64_t ahead_ns; /* ahead of the other end's, which gets it by its own */
};

/* Blocks that have changed, into at most so many bytes: how many; 0: there are no more. */
size_t load_delta_take(struct load_delta *delta, char *bytes, size_t room);

/* Write the blocks into that memory. False: they are not from load_delta_take of as much. */
bool load_delta_apply(char *memory, size_t size, const char *bytes, size_t length);

#endif
