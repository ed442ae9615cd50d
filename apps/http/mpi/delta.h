/* SPDX-License-Identifier: MIT
 *
 * What: keeps a remote copy of memory up to date by sending only blocks that have changed. Place:
 * rank 0 needs a copy of each worker's result, which has 4 MB, but changes little in a tenth of a
 * second.
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
    /* the memory to send; if other processes change it meanwhile, the next delta has their
     * changes */
    const char *now;
    char *sent;  /* a copy of what the other end has; all copies begin with zeros */
    size_t size; /* the size of the memory, in bytes */
    size_t at;   /* offset of the next block to compare; load_delta_take moves it */
    size_t end;  /* the offset at which the part to send ends */
    /* the offset of a uint64_t in the memory that is a time by this machine's clock (0: no time
     * yet) */
    size_t time_at;
    /* how far this machine's clock is ahead of the other's; this is subtracted from the time before
     * it is sent */
    int64_t ahead_ns;
};

/* Write changed blocks to `bytes`, which has `room` bytes. Returns how many bytes were written; 0:
 * no further block has changed. */
size_t load_delta_take(struct load_delta *delta, char *bytes, size_t room);

/* Write the blocks into the memory. False: the bytes were not made by load_delta_take for this
 * size. */
bool load_delta_apply(char *memory, size_t size, const char *bytes, size_t length);

#endif
