/* SPDX-License-Identifier: MIT
 *
 * What: the memory of a top-k sketch.
 * Place: for the sources of lib-sxe-sketch: sxe-topk-open.c opens, sxe-topk.c counts and keeps.
 *
 * Shape: a head, ROWS rows of `width` counters, and twice as many slots as keys are listed. All of
 * it is shared memory, and read and written by words: a value that another process writes at the
 * same time, or damages, makes a wrong count or a key that does not fit its hash, and nothing
 * worse.
 *
 * The floor is a count that no slot is below, kept so that most additions need not look at the
 * slots. Its upper 16 bits count clearings: the number is odd while a process clears, and stays odd
 * if that process is killed. While it is odd no floor is remembered, because the counters may still
 * be set to 0.
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
    /* no slot with a key has a lower count than this; the upper 16 bits are the number of
     * clearings */
    uint64_t floor;
    uint64_t reserved[6];
};

struct sxe__topk_slot {
    uint64_t hash; /* 0: the slot is empty */
    uint64_t size; /* how many bytes the key has */
    uint64_t key[];
};

struct sxe_topk {
    struct sxe__topk_head *head; /* the array of the pool */
    uint64_t *counters;
    char *slots;
    uint32_t width;    /* a power of 2 */
    uint32_t number;   /* how many keys a list has */
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

/* Two processes that added one key at the same time may have given it two slots. Keep the first
 * slot of this hash, and empty the others. */
void sxe__topk_drop_doubles(const SXE_TOPK *topk, uint64_t hash);

#endif
