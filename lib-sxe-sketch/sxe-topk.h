/* SPDX-License-Identifier: MIT
 *
 * What: the keys that were added most often, of any number of keys, and about how often each was:
 * never less than it was, and rarely more than a chosen share of all. Many processes add to one at
 * once.
 *
 * Place: used by programs and by lib-sxe-lua (sxe.sketch). Uses lib-sxe-pool for memory and files:
 * a sketch is a pool of one element, so that sxe-pool list, show and check know it.
 *
 * Shape: four rows of counters (a count-min sketch), and slots that hold keys. A key has one
 * counter in each row, which it shares with others; the smallest of its four is its count. A key
 * whose count is above the smallest in the slots takes that slot.
 *
 *     rows   [ 0 3 9 . . ]    slots   [ hash | size | key ]   count 9
 *            [ 4 0 . 9 . ]            [ hash | size | key ]   count 7
 *            [ . 9 . 1 . ]            [ hash | ...            twice as many as keys are listed
 *            [ 12 . . .  ]
 *
 * A counter is changed by one atomic addition. A slot is taken by one compare-and-swap of its hash;
 * its key is then written, and it is a key only while it has that hash. So no call takes a lock or
 * waits. A process that is killed loses the one update that it was making; if it was writing a key,
 * the key is missing in the list until it is added again. A key may also be missing if one process
 * takes its slot while another adds the key.
 *
 * Limits: lists of 1 to 1,000 keys of up to 256 bytes, and a total below 2^64, after which counts
 * begin at 0 again. Apart from these two cases, each key that the list lacks was added at most as
 * often as the smallest count in the list says. The hash is no secret: a client that chooses the
 * keys can make counts too high.
 *
 * Example:
 *     char why[SXE_POOL_WHY_SIZE];
 *     SXE_TOPK_ENTRY entries[10];
 *     SXE_TOPK_SPEC spec = {.name = "paths", .number = 10, .file = "paths"};
 *     SXE_TOPK *paths = sxe_topk_open(&spec, why);
 *     sxe_topk_add(paths, "/index.html", 11, 1);
 *     for (unsigned i = 0, n = sxe_topk_list(paths, entries, 10); i < n; i++)
 *         printf("%.*s: %llu\n", (int)entries[i].size, entries[i].key,
 *                (unsigned long long)entries[i].count);
 */
#ifndef SXE_TOPK_H
#define SXE_TOPK_H

#include <stdint.h>

#include "sxe-pool-shared.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_TOPK_NUMBER_MAX 1000u
#define SXE_TOPK_KEY_MAX    256u
#define SXE_TOPK_ERROR_MIN  1e-6
#define SXE_TOPK_ERROR_MAX  0.1

typedef struct sxe_topk SXE_TOPK;

typedef struct sxe_topk_spec {
    const char *name;  /* 1 to 31 bytes */
    unsigned number;   /* how many keys a list has, 1 to 1,000; 0: take the existing sketch */
    double error;      /* by how much a count may be too high, as a share of the total; 0: 0.001 */
    unsigned key_size; /* how many bytes the longest key has, a multiple of 8 up to 256; 0: 64 */
    unsigned options;  /* SXE_POOL_OPTION_LOCKED, _SHARED or _REPAIR, as in sxe_pool_open */
    const char *file;  /* a path, or a name without '/' in /dev/shm; NULL: memory of this process */
} SXE_TOPK_SPEC;

typedef struct sxe_topk_entry {
    uint64_t count;
    size_t size; /* how many bytes the key has */
    char key[SXE_TOPK_KEY_MAX];
} SXE_TOPK_ENTRY;

/* Open a sketch, and make it if there is none: it takes 32 bytes for each column of four counters,
 * and has e / error columns, rounded up to a power of 2. NULL with errno and a sentence in why,
 * which may be NULL; the errors are those of sxe_pool_open, and EMEDIUMTYPE: a pool, but no top-k
 * sketch. The caller closes the sketch. */
SXE_PUBLIC SXE_MUST_USE SXE_TOPK *sxe_topk_open_sized(const SXE_TOPK_SPEC *spec, size_t size,
                                                      char *why);
static inline SXE_MUST_USE SXE_TOPK *
sxe_topk_open(const SXE_TOPK_SPEC *spec_, char *why_)
{
    return sxe_topk_open_sized(spec_, sizeof(*spec_), why_);
}

/* Like sxe_topk_open, with an open descriptor, see sxe_pool_open_fd. The spec may be NULL. */
SXE_PUBLIC SXE_MUST_USE SXE_TOPK *sxe_topk_open_fd_sized(int fd, const SXE_TOPK_SPEC *spec,
                                                         size_t size, char *why);
static inline SXE_MUST_USE SXE_TOPK *
sxe_topk_open_fd(int fd_, const SXE_TOPK_SPEC *spec_, char *why_)
{
    return sxe_topk_open_fd_sized(fd_, spec_, sizeof(*spec_), why_);
}
SXE_PUBLIC void sxe_topk_close(SXE_TOPK *topk); /* Close a sketch; NULL is allowed. A file stays. */

/* The pool of the counters and slots, for sxe_pool_get_fd, sxe_pool_sync, sxe_pool_get_found. The
 * sketch owns it. */
SXE_PUBLIC void *sxe_topk_get_pool(const SXE_TOPK *topk);
SXE_PUBLIC unsigned sxe_topk_get_number(const SXE_TOPK *topk);
SXE_PUBLIC unsigned sxe_topk_get_key_size(const SXE_TOPK *topk);

/* Add a key `times` times. 0; -EINVAL: the key is longer than key_size. */
SXE_PUBLIC int sxe_topk_add(SXE_TOPK *topk, const void *key, size_t size, uint64_t times);

/* How often a key was added. The result is never too low, and for 98 % of the keys at most error *
 * total too high. Any key may be asked for, also one that is not in the list. */
SXE_PUBLIC uint64_t sxe_topk_count(const SXE_TOPK *topk, const void *key, size_t size);

/* How often all keys together were added. */
SXE_PUBLIC uint64_t sxe_topk_get_total(const SXE_TOPK *topk);

/* Write the keys with the highest counts to entries, the highest first, at most max and at most as
 * many as the sketch's number. Returns how many. */
SXE_PUBLIC unsigned sxe_topk_list(const SXE_TOPK *topk, SXE_TOPK_ENTRY *entries, unsigned max);

/* Add the counts and keys of `from` to `into`, while others go on adding to both. Merging twice
 * counts twice, and a kill leaves a part merged. 0; -EDOM: they differ in error or key_size, and
 * nothing was merged. */
SXE_PUBLIC SXE_MUST_USE int sxe_topk_merge(SXE_TOPK *into, const SXE_TOPK *from);

/* Forget all keys. If another process adds keys meanwhile, they may be kept, counted in part or
 * forgotten. If this process is killed meanwhile, only a part is forgotten. */
SXE_PUBLIC void sxe_topk_clear(SXE_TOPK *topk);

#ifdef __cplusplus
}
#endif

#endif
