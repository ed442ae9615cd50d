/* SPDX-License-Identifier: MIT
 *
 * What: a Bloom filter, which says whether a thing was added: "no" is certain, and "yes" is wrong
 * with a rate that is chosen when it is made. Many processes add to one and ask at once; filters of
 * one shape are merged.
 *
 * Place: used by programs and by lib-sxe-lua (sxe.sketch). Uses lib-sxe-pool for memory and files:
 * a filter is a pool of one element, so that sxe-pool list, show and check know it.
 *
 * Shape: an array of bits. A thing is hashed to 64 bits, from which as many places as the filter
 * has hashes are made; adding sets these bits, asking reads them.
 *
 *     capacity n, error p:   hashes k = log2(1/p), rounded    bits = k n / -ln(1 - p^(1/k))
 *     bits  [ 0 1 0 0 1 0 0 0 0 1 ... ]     n = 1,000,000, p = 0.01: 1.2 MB, 7 hashes
 *
 * Bits are only set, each by one atomic OR. So no call takes a lock or waits, and a process may be
 * killed at any instruction: at worst some bits of the thing that it was adding are set, and the
 * filter does not have that thing.
 *
 * Limits: 1 to 2^36 things, errors from 1e-9 to 0.5. With more things than the capacity the error
 * rises, see sxe_bloom_get_error. Nothing can be taken out again. The hash is no secret: a client
 * that chooses what is added can make the answer to another question wrong. Where that matters, use
 * the calls with a hash, and compute the hash with a secret key.
 *
 * Example:
 *     char why[SXE_POOL_WHY_SIZE];
 *     SXE_BLOOM_SPEC spec = {.name = "seen", .capacity = 1000000, .error = 0.01, .file = "seen"};
 *     SXE_BLOOM *seen = sxe_bloom_open(&spec, why);
 *     if (!sxe_bloom_has(seen, url, strlen(url)))
 *         sxe_bloom_add(seen, url, strlen(url));
 */
#ifndef SXE_BLOOM_H
#define SXE_BLOOM_H

#include <stdbool.h>
#include <stdint.h>

#include "sxe-pool-shared.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_BLOOM_CAPACITY_MAX (UINT64_C(1) << 36)
#define SXE_BLOOM_ERROR_MIN    1e-9
#define SXE_BLOOM_ERROR_MAX    0.5

typedef struct sxe_bloom SXE_BLOOM;

typedef struct sxe_bloom_spec {
    const char *name; /* 1 to 31 bytes */
    /* how many different things the filter should hold with this error; 0: take the existing
     * filter */
    uint64_t capacity;
    double error; /* the share of wrong answers "yes" among things that were not added; 0: 0.01 */
    unsigned options; /* SXE_POOL_OPTION_LOCKED, _SHARED or _REPAIR, as in sxe_pool_open */
    const char *file; /* a path, or a name without '/' in /dev/shm; NULL: memory of this process */
} SXE_BLOOM_SPEC;

/* Open a filter, and make it if there is none. NULL with errno and a sentence in why, which may be
 * NULL; the errors are those of sxe_pool_open, and EMEDIUMTYPE: a pool, but no Bloom filter. The
 * caller closes the filter. */
SXE_PUBLIC SXE_MUST_USE SXE_BLOOM *sxe_bloom_open_sized(const SXE_BLOOM_SPEC *spec, size_t size,
                                                        char *why);
static inline SXE_MUST_USE SXE_BLOOM *
sxe_bloom_open(const SXE_BLOOM_SPEC *spec_, char *why_)
{
    return sxe_bloom_open_sized(spec_, sizeof(*spec_), why_);
}

/* Like sxe_bloom_open, with an open descriptor, see sxe_pool_open_fd. The spec may be NULL. */
SXE_PUBLIC SXE_MUST_USE SXE_BLOOM *sxe_bloom_open_fd_sized(int fd, const SXE_BLOOM_SPEC *spec,
                                                           size_t size, char *why);
static inline SXE_MUST_USE SXE_BLOOM *
sxe_bloom_open_fd(int fd_, const SXE_BLOOM_SPEC *spec_, char *why_)
{
    return sxe_bloom_open_fd_sized(fd_, spec_, sizeof(*spec_), why_);
}
/* Close a filter; NULL is allowed. A file stays. */
SXE_PUBLIC void sxe_bloom_close(SXE_BLOOM *bloom);

/* The pool of the bits, for sxe_pool_get_fd, sxe_pool_sync, sxe_pool_get_found. The filter owns
 * it. */
SXE_PUBLIC void *sxe_bloom_get_pool(const SXE_BLOOM *bloom);
SXE_PUBLIC uint64_t sxe_bloom_get_bits(const SXE_BLOOM *bloom);
SXE_PUBLIC unsigned sxe_bloom_get_hashes(const SXE_BLOOM *bloom);

/* Add a thing of `size` bytes. Returns whether it is new. The result is false for a new thing, too,
 * if sxe_bloom_has would have been wrong about it. If two processes add one thing at the same time,
 * both may be told true. */
SXE_PUBLIC bool sxe_bloom_add(SXE_BLOOM *bloom, const void *bytes, size_t size);

/* Whether a thing was added: false is certain, true may be wrong. */
SXE_PUBLIC bool sxe_bloom_has(const SXE_BLOOM *bloom, const void *bytes, size_t size);

/* Like sxe_bloom_add and sxe_bloom_has, for a program with a hash of its own: all 64 bits must be
 * as good as random. */
SXE_PUBLIC bool sxe_bloom_add_hash(SXE_BLOOM *bloom, uint64_t hash);
SXE_PUBLIC bool sxe_bloom_has_hash(const SXE_BLOOM *bloom, uint64_t hash);

/* sxe_bloom_count estimates from the share of bits that are set how many different things were
 * added; sxe_bloom_get_error estimates the share of wrong answers "yes" (see SXE_BLOOM_SPEC), which
 * rises with each thing. Both read all bits. */
SXE_PUBLIC double sxe_bloom_count(const SXE_BLOOM *bloom);
SXE_PUBLIC double sxe_bloom_get_error(const SXE_BLOOM *bloom);

/* Add to `into` all that `from` has, while others go on adding to both. 0; -EDOM: they differ in
 * the number of bits or hashes, and nothing was merged. */
SXE_PUBLIC SXE_MUST_USE int sxe_bloom_merge(SXE_BLOOM *into, const SXE_BLOOM *from);

/* Forget all things. If another process adds things meanwhile, they may be kept or forgotten. */
SXE_PUBLIC void sxe_bloom_clear(SXE_BLOOM *bloom);

#ifdef __cplusplus
}
#endif

#endif
