/* SPDX-License-Identifier: MIT
 *
 * What: the memory of a sketch, which is the only element of a pool with one state.
 * Place: for the sources of lib-sxe-sketch. Uses the public headers of lib-sxe-pool alone.
 *
 * Shape: the name of the pool's state says what the sketch is and which numbers it was made with,
 * "HLL_14". It stands in the head of the file, which is complete before the pool is used and under
 * a checksum from then on: a process that dies while it makes a sketch leaves none, or a whole one.
 *
 *     pool: 1 element, 1 state "HLL_14"     element: registers, words or buckets, zeros at first
 */
#ifndef SXE_SKETCH_PRIVATE_H
#define SXE_SKETCH_PRIVATE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "sxe-pool-shared.h"

struct sxe__sketch_plan {
    const char *what; /* the kind of sketch for messages: "Bloom filter" */
    const char *name;
    const char *state; /* the name of the pool's state: "HLL_14" */
    size_t size;       /* bytes of the pool's element; 0: take the existing pool */
    unsigned options;  /* the options of the spec */
    const char *file;  /* the file of the spec */
    const int *fd;     /* an open descriptor of the pool; NULL: open the file, or use memory */
};

/* Write a sentence to why, unless it is NULL. Returns -error; error 0: the sentence is only a
 * note. */
int sxe__sketch_refuse(char *why, int error, const char *format, ...) SXE_PRINTF(3, 4);

/* Copy a program's spec, see sxe__sized_take. 0; -E2BIG, also in errno, with a sentence in why. */
int sxe__sketch_take(void *own, size_t own_size, const void *given, size_t size, char *why);

/* Open the pool of a plan. NULL with errno, as sxe_pool_open; EMEDIUMTYPE: another kind of pool. */
void *sxe__sketch_open(const struct sxe__sketch_plan *plan, char *why);

/* Make the object of a sketch, `size` bytes, for the opened pool `array` (NULL: opening failed, and
 * so does this call). NULL with errno: EMEDIUMTYPE: is_right is false, the pool holds something
 * else than `what` ("Bloom filter"); ENOMEM. After an error the pool is closed. */
void *sxe__sketch_new(void *array, size_t size, bool is_right, const char *what, char *why);

/* Read the numbers that follow `kind` in the name of the pool's state: "TOPK_10_64" has two after
 * "TOPK". All of them become 0 if the pool has another name or shape. */
void sxe__sketch_numbers(const void *array, const char *kind, unsigned *numbers, unsigned count);

/* The hash of Redis's HyperLogLog: MurmurHash64A, seed 0xadc83b19. All sketches use it. */
uint64_t sxe__sketch_hash(const void *bytes, size_t size);

/* Hash a hash again (the end of splitmix64): each bit of the result depends on each bit of the
 * hash. Different hashes have different results. */
static inline uint64_t
sxe__sketch_scatter(uint64_t hash)
{
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

#endif
