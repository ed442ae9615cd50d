/* SPDX-License-Identifier: MIT
 *
 * Sending and applying the changed blocks of a copied memory.
 */
#include "delta.h"

#include <string.h>

#define ENTRY_MAX (sizeof(uint32_t) + LOAD_DELTA_BLOCK)

static size_t
block_length(size_t size, size_t at)
{
    return size - at < LOAD_DELTA_BLOCK ? size - at : LOAD_DELTA_BLOCK;
}

/* If the block at offset `at` of the memory contains the time, convert the time in `block` to the
 * other machine's clock. */
static void
move_time_back(const struct load_delta *delta, char *block, size_t at, size_t length)
{
    size_t from = delta->time_at - at;
    uint64_t time_ns;

    if (delta->time_at < at || from + sizeof(time_ns) > length)
        return;
    memcpy(&time_ns, &block[from], sizeof(time_ns));
    if (time_ns > 0)
        time_ns -= (uint64_t)delta->ahead_ns;
    memcpy(&block[from], &time_ns, sizeof(time_ns));
}

size_t
load_delta_take(struct load_delta *delta, char *bytes, size_t room)
{
    size_t used = 0;

    for (; delta->at < delta->end; delta->at += LOAD_DELTA_BLOCK) {
        size_t length = block_length(delta->size, delta->at);
        uint32_t block = (uint32_t)(delta->at / LOAD_DELTA_BLOCK);

        if (memcmp(&delta->now[delta->at], &delta->sent[delta->at], length) == 0)
            continue;
        if (room - used < ENTRY_MAX)
            return used;
        /* Copy from `now` only once, because other processes may change it: both machines must have
         * the same bytes. */
        memcpy(&delta->sent[delta->at], &delta->now[delta->at], length);
        memcpy(&bytes[used], &block, sizeof(block));
        memcpy(&bytes[used + sizeof(block)], &delta->sent[delta->at], length);
        move_time_back(delta, &bytes[used + sizeof(block)], delta->at, length);
        used += sizeof(block) + length;
    }
    return used;
}

bool
load_delta_apply(char *memory, size_t size, const char *bytes, size_t length)
{
    size_t at = 0;

    while (at < length) {
        uint32_t block;
        size_t to;

        if (length - at <= sizeof(block))
            return false;
        memcpy(&block, &bytes[at], sizeof(block));
        at += sizeof(block);
        to = (size_t)block * LOAD_DELTA_BLOCK;
        if (to >= size || length - at < block_length(size, to))
            return false;
        memcpy(&memory[to], &bytes[at], block_length(size, to));
        at += block_length(size, to);
    }
    return true;
}
