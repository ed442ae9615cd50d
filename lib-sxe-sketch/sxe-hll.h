/* SPDX-License-Identifier: MIT
 *
 * What: HyperLogLog, which counts how many different things were added, in some kilobytes whatever
 * their number, with a known error. Many processes add to one at once; sketches are merged, and
 * exchanged with Redis, whose PFADD, PFCOUNT and PFMERGE work on the same strings.
 *
 * Place: used by programs and by lib-sxe-lua (sxe.sketch). Uses lib-sxe-pool for memory and files:
 * a sketch is a pool of one element, so that sxe-pool list, show and check know it.
 *
 * Shape: 2^precision registers of one byte. A thing is hashed to 64 bits: the lowest `precision`
 * bits choose a register, and the others give a rank: 1 + the zeros before the first one.
 *
 *     hash   [ 64 - precision bits: ...0001000 -> rank 4 | precision bits: 5 ]
 *     registers  [ 0 | 2 | 0 | 1 | 3 | max(old, 4) | ... ]
 *
 * Registers only grow, each by one compare-and-swap of a byte. So no call takes a lock or waits, a
 * process may be killed at any instruction, and what is added twice, or merged twice, counts once.
 * A kill loses at most the one thing that was being added.
 *
 * Limits: precision 4 to 18; the standard error is 1.04 / sqrt(2^precision), 0.8 % for 14, from the
 * estimator of O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017),
 * which Redis has, too. The hash is Redis's, MurmurHash64A with its seed, which is no secret: a
 * client that chooses what is added can make the count wrong. Nothing can be taken out again.
 *
 * Example:
 *     char why[SXE_POOL_WHY_SIZE];
 *     SXE_HLL_SPEC spec = {.name = "visitors", .precision = 14, .file = "visitors"};
 *     SXE_HLL *visitors = sxe_hll_open(&spec, why);
 *     sxe_hll_add(visitors, "10.1.2.3", 8);
 *     printf("%.0f visitors\n", sxe_hll_count(visitors));
 */
#ifndef SXE_HLL_H
#define SXE_HLL_H

#include <stdint.h>
#include <sys/types.h>

#include "sxe-pool-shared.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_HLL_PRECISION_MIN   4u
#define SXE_HLL_PRECISION_MAX   18u
#define SXE_HLL_PRECISION_REDIS 14u
#define SXE_HLL_REDIS_MAX       12304u /* bytes of the longest string for Redis */

typedef struct sxe_hll SXE_HLL;

typedef struct sxe_hll_spec {
    const char *name;   /* 1 to 31 bytes */
    unsigned precision; /* 4 to 18, which makes 2^precision bytes; 0: take the existing sketch */
    unsigned options;   /* SXE_POOL_OPTION_LOCKED, _SHARED or _REPAIR, as in sxe_pool_open */
    const char *file; /* a path, or a name without '/' in /dev/shm; NULL: memory of this process */
} SXE_HLL_SPEC;

/* Open a sketch, and make it if there is none. NULL with errno and a sentence in why, which may be
 * NULL; the errors are those of sxe_pool_open, and EMEDIUMTYPE: a pool, but no HyperLogLog. REPAIR
 * also sets registers that hold impossible values to 0: why then says how many. The caller closes
 * the sketch. */
SXE_PUBLIC SXE_MUST_USE SXE_HLL *sxe_hll_open_sized(const SXE_HLL_SPEC *spec, size_t size,
                                                    char *why);
static inline SXE_MUST_USE SXE_HLL *
sxe_hll_open(const SXE_HLL_SPEC *spec_, char *why_)
{
    return sxe_hll_open_sized(spec_, sizeof(*spec_), why_);
}

/* Like sxe_hll_open, with an open descriptor, see sxe_pool_open_fd. The spec may be NULL. */
SXE_PUBLIC SXE_MUST_USE SXE_HLL *sxe_hll_open_fd_sized(int fd, const SXE_HLL_SPEC *spec,
                                                       size_t size, char *why);
static inline SXE_MUST_USE SXE_HLL *
sxe_hll_open_fd(int fd_, const SXE_HLL_SPEC *spec_, char *why_)
{
    return sxe_hll_open_fd_sized(fd_, spec_, sizeof(*spec_), why_);
}
SXE_PUBLIC void sxe_hll_close(SXE_HLL *hll); /* Close a sketch; NULL is allowed. A file stays. */

/* The pool of the registers, for sxe_pool_get_fd, sxe_pool_sync, sxe_pool_get_found. The sketch
 * owns it. */
SXE_PUBLIC void *sxe_hll_get_pool(const SXE_HLL *hll);
SXE_PUBLIC unsigned sxe_hll_get_precision(const SXE_HLL *hll);

/* Add a thing of `size` bytes. 1: a register grew, so the count may have grown; 0: no register
 * grew. */
SXE_PUBLIC int sxe_hll_add(SXE_HLL *hll, const void *bytes, size_t size);

/* Like sxe_hll_add, for a program with a hash of its own: all 64 bits must be as good as random.
 * Sketches of different hashes must not be merged. */
SXE_PUBLIC int sxe_hll_add_hash(SXE_HLL *hll, uint64_t hash);

/* About how many different things were added; reads all registers. Negative: -EUCLEAN, a register
 * holds an impossible value. */
SXE_PUBLIC double sxe_hll_count(const SXE_HLL *hll);

/* Add to `into` all things that `from` counts, while others go on adding to both. `from` may be
 * more precise than `into`; the result has the precision of `into`. 0; -EDOM: `from` is less
 * precise; -EUCLEAN: `from` holds an impossible value. After an error, nothing was merged. */
SXE_PUBLIC SXE_MUST_USE int sxe_hll_merge(SXE_HLL *into, const SXE_HLL *from);

/* Forget all things. If another process adds things meanwhile, they may be kept or forgotten. */
SXE_PUBLIC void sxe_hll_clear(SXE_HLL *hll);

/* ---- Redis: the value of a key, as its commands GET and SET use it ---- */

/* Write the string to bytes: its sparse form if that has at most 3,000 bytes, as Redis does,
 * else the dense one. Returns its size, at most SXE_HLL_REDIS_MAX. -ENOSPC: the string has more
 * than `size` bytes; -EDOM: the precision is below 14; -EUCLEAN: a register holds an impossible
 * value. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_hll_export(const SXE_HLL *hll, void *bytes, size_t size);

/* Merge a string of Redis, of either form. 0; -EINVAL: the bytes are no such string, and why (which
 * may be NULL) gets a sentence about it; -EDOM: the precision of the sketch is above 14. After an
 * error, nothing was merged. */
SXE_PUBLIC SXE_MUST_USE int sxe_hll_import(SXE_HLL *hll, const void *bytes, size_t size, char *why);

#ifdef __cplusplus
}
#endif

#endif
