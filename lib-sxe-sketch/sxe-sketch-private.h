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
    const char *what; /* "Bloom filter", for messages */
    const char *name;
    const char *state; /* "HLL_14" */
    size_t size;       /* bytes of the element; 0: take the existing pool */
    unsigned options;  /* as in the specs */
    const char *file;  /* as in the specs */
    const int *fd;     /* the pool is in this descriptor; NULL: in the file, or in memory */
};

/* Write a sentence to why (NULL: none is wanted). Returns -error; 0: the sentence is a note. */
int sxe__sketch_refuse(char *why, int error, const char *format, ...) SXE_PRINTF(3, 4);

/* Open the pool of a plan. NULL with errno, as sxe_pool_open; EMEDIUMTYPE: another kind of pool. */
void *sxe__sketch_open(const struct sxe__sketch_plan *plan, char *why);

/* Make the object of a sketch, `size` bytes, for the pool that was opened (NULL: it was not). NULL
 * with errno: EMEDIUMTYPE if the pool is not right (`what`, "Bloom filter", is what was wanted), or
 * ENOMEM; the pool is then closed. */
void *sxe__sketch_new(void *array, size_t size, bool is_right, const char *what, char *why);

/* Read the numbers that the state's name has after `kind`: "TOPK_10_64" has two after "TOPK". 0 in
 * all of them if the pool has another name or shape. */
void sxe__sketch_numbers(const void *array, const char *kind, unsigned *numbers, unsigned count);

/* The hash of Redis's HyperLogLog: MurmurHash64A, seed 0xadc83b19. All sketches use it. */
uint64_t sxe__sketch_hash(const void *bytes, size_t size);

/* Another hash of a hash: each bit of the result depends on each bit of the number (the end of
 * splitmix64). No two numbers have the same. */
static inline uint64_t
sxe__sketch_scatter(uint64_t number)
{
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

#endif
