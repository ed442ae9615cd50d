/* SPDX-License-Identifier: MIT
 *
 * MurmurHash64A of Austin Appleby, with the seed of Redis, so that both hash alike.
 */
#include "sxe-sketch-private.h"

#include <string.h>

#define MULTIPLIER UINT64_C(0xc6a4a7935bd1e995)
#define SEED       UINT64_C(0xadc83b19)
#define SHIFT      47

/* Words are read in the byte order of the machine, because a sketch's file has that order, too. */
uint64_t
sxe__sketch_hash(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = SEED ^ ((uint64_t)size * MULTIPLIER);

    for (size_t left = size / 8; left > 0; left--, at += 8) {
        uint64_t word;

        memcpy(&word, at, sizeof(word));
        word *= MULTIPLIER;
        word ^= word >> SHIFT;
        hash = (hash ^ word * MULTIPLIER) * MULTIPLIER;
    }
    for (unsigned i = 0; i < size % 8; i++)
        hash ^= (uint64_t)at[i] << (8 * i);
    if (size % 8 != 0)
        hash *= MULTIPLIER;
    hash ^= hash >> SHIFT;
    hash *= MULTIPLIER;
    return hash ^ hash >> SHIFT;
}
