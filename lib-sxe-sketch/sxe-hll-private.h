/* SPDX-License-Identifier: MIT
 *
 * What: the registers of a HyperLogLog.
 * Place: for the sources of lib-sxe-sketch: sxe-hll.c adds, counts and merges, sxe-hll-redis.c
 * imports and exports.
 */
#ifndef SXE_HLL_PRIVATE_H
#define SXE_HLL_PRIVATE_H

#include "sxe-hll.h"
#include "sxe-sketch-private.h"

struct sxe_hll {
    /* the array of the pool: shared memory, so each value is checked when it is read */
    uint8_t *registers;
    unsigned precision;
};

/* The largest rank that a hash can give. */
static inline unsigned
sxe__hll_rank_max(unsigned precision)
{
    return 64 - precision + 1;
}

static inline size_t
sxe__hll_size(unsigned precision)
{
    return (size_t)1 << precision;
}

/* The rank in a register. An impossible value, which another process may write at any time, counts
 * as 0. */
static inline uint8_t
sxe__hll_read(const SXE_HLL *hll, size_t at)
{
    const uint8_t rank = __atomic_load_n(&hll->registers[at], __ATOMIC_RELAXED);

    return rank > sxe__hll_rank_max(hll->precision) ? 0 : rank;
}

/* Raise a register to the rank. True: the register was lower before. */
static inline bool
sxe__hll_raise(uint8_t *at, uint8_t rank)
{
    uint8_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (old < rank && !__atomic_compare_exchange_n(at, &old, rank, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
    }
    return old < rank;
}

/* Convert the index and rank of a register for a sketch of another precision, which must not be
 * higher. The upper bits of the old index, which the new one lacks, become the first bits of the
 * rank. */
static inline void
sxe__hll_fold(unsigned from, unsigned to, size_t *at, uint8_t *rank)
{
    const size_t upper = *at >> to;

    *at &= sxe__hll_size(to) - 1;
    if (*rank > 0)
        *rank = (uint8_t)(upper > 0 ? 1u + (unsigned)__builtin_ctzl(upper) : *rank + from - to);
}

/* Check all registers. 0; -EUCLEAN: a register holds an impossible value. */
int sxe__hll_check(const SXE_HLL *hll);

#endif
