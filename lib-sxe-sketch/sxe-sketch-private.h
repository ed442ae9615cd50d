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
    const char *name;
    const char *state; /* "HLL_14" */
    size_t size;       /* bytes of the element; 0: take the existing pool */
    unsigned options;  /* as in the specs */
    const char *file;  /* as in the specs */
    const int *fd;     /* the pool is in this descriptor; NULL: in the file, or in memory */
};

/* Write a sentence to why (NULL: none is wanted). Returns -error; 0: the sentence is a note. */
int sxe__sketch_refuse(char *why, int error, const char *format, ...) SXE_PRINTF(3, 4);

/* Open the pool of a plan. NULL with errno, as sxe_pool_open. */
void *sxe__sketch_open(const struct sxe__sketch_plan *plan, char *why);

/* The number that the state's name ends with, if it begins with `kind` ("HLL_") and the pool has
 * the shape of a sketch of `kind`; 0: it is another pool. */
unsigned sxe__sketch_number(const void *array, const char *kind);

/* The hash of Redis's HyperLogLog: MurmurHash64A, seed 0xadc83b19. */
uint64_t sxe__sketch_hash(const void *bytes, size_t size);

#endif
