/* SPDX-License-Identifier: MIT
 *
 * What: the memory of a top-k sketch.
 * Place: for the sources of lib-sxe-sketch: sxe-topk-open.c opens, sxe-topk.c counts and keeps.
 *
 * Shape: a head, ROWS rows of `width` counters, and twice as many slots as keys are listed. All of
 * it is shared memory, and read and written by words: a value that another process writes at the
 * same time, or damages, is an odd count or a key without the right hash, and nothing worse.
 *
 * The number of clearing is odd while a process clears, and stays so if it is killed: no floor is
 * remembered then, because counters may yet be set to 0 below it.
 */
#ifndef SXE_TOPK_PRIVATE_H
#define SXE_TOPK_PRIVATE_H

#include "sxe-sketch-private.h"
#include "sxe-topk.h"

#define SXE__TOPK_ROWS       4u
#define SXE__TOPK_FLOOR_BITS 48u
#define SXE__TOPK_CLEARING   (UINT64_C(1) << SXE__TOPK_FLOOR_BITS)

struct sxe__topk_head {
    uint64_t total;
    uint64_t floor; /* no slot with a key has a smaller count; above it, 16 bits of clearing */
    uint64_t reserved[6];
};

struct sxe__topk_slot {
    uint64_t hash; /* 0: empty */
    uint64_t size; /* of the key */
    uint64_t key[];
};

struct sxe_topk {
    struct sxe__topk_head *head; /* the pool's array */
    uint64_t *counters;
    char *slots;
    uint32_t width;    /* a power of 2 */
    uint32_t number;   /* of keys in a list */
    uint32_t key_size; /* a multiple of 8 */
};

static inline size_t
sxe__topk_slot_size(size_t key_size)
{
    return sizeof(struct sxe__topk_slot) + key_size;
}

static inline unsigned
sxe__topk_slots(unsigned number)
{
    return 2 * number;
}

/* Leave a hash the first of its slots alone. Two processes that keep one key at the same time may
 * have given it two. */
void sxe__topk_drop_doubles(const SXE_TOPK *topk, uint64_t hash);

#endif
