/* SPDX-License-Identifier: MIT
 *
 * What: the parts of a shared pool, and the lock of a shard.
 * Place: included by the sources of shared pools; not installed. The parts that lib-sxe-dict uses
 * too are in sxe-pool-internal.h; sxe-pool-file-internal.h has the head.
 *
 *     -change-private.h   a change under the lock, and its intent   what the model checker runs
 *     -shared.c           the calls of sxe-pool.h                   lock, change, unlock
 *     -batch.c            many elements under one lock              the same
 *     -lock.c             a lock that is not free at once           spin, ask, take over
 *     -slot.c             this process among the users              fcntl, fork
 *     -head.c             a file's head: made, read, refused        knows only bytes
 *     -sum.c              the sum of a file that is closed          knows only bytes
 *     -map.c              the memory of it all                      mmap, files
 *     -open.c             opening and closing                       all of the above, in order
 *     -check.c            every invariant; rebuilding the lists     under the locks
 *     -layout.c           the text of the fields, laid out as in C  knows only text
 *     -payload.c          elements without torn values              sequence numbers
 *     -watch.c            waking other processes                    datagrams
 *
 * Shape: the file, in bytes, all of it little-endian:
 *
 *     0               head       shape and checksum, written once; then what changes; slots
 *     shards_offset   shard[]    128 bytes each, two lines of cache that no other shard touches
 *     array_offset    array      a multiple of the page size; nodes and extra follow
 *     the last page   copy of the head's fixed part, in case the head is damaged
 *
 * Trust: another process may write anything anywhere. So this process keeps the numbers that it
 * checked when it opened the pool in its own page. A value that it reads from shared memory
 * afterwards is copied first, checked against those numbers, and only then used as an index.
 */
#ifndef SXE_POOL_SHARING_H
#define SXE_POOL_SHARING_H

#include <stddef.h>

#include "sxe-pool-file-internal.h"
#include "sxe-pool-private.h"
#include "sxe-pool-shared.h"
#include "sxe-time-internal.h"

/* Two adjacent words, which one store writes. */
typedef uint64_t __attribute__((may_alias)) sxe__pool_pair;

static inline sxe__pool_pair
sxe__pool_make_pair(uint32_t first, uint32_t second)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? first | (uint64_t)second << 32
                                                     : second | (uint64_t)first << 32;
}

static inline sxe__pool_pair *
sxe__pool_pair_at(uint32_t *first)
{
    return (sxe__pool_pair *)(void *)first;
}

#define SXE__POOL_IS_PAIR(type, first, second)                              \
    _Static_assert(offsetof(type, first) % 8 == 0 &&                        \
                       offsetof(type, second) == offsetof(type, first) + 4, \
                   "they are stored at once")

/* For values that no other process writes: the intent of a shard whose lock is held. */
#ifndef SXE__POOL_OWN
#    define SXE__POOL_OWN(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#endif

/* Write two adjacent words by one store. The next locked instruction waits for all stores: this
 * halves their number. */
#ifndef SXE__POOL_PUT_PAIR
#    define SXE__POOL_PUT_PAIR(first, second, value, next) \
        SXE__POOL_PUT(*sxe__pool_pair_at(&(first)), sxe__pool_make_pair((value), (next)))
#endif

/* Store a value that others see only after all earlier stores. */
#ifndef SXE__POOL_PUT_PAIR_LAST
#    define SXE__POOL_PUT_PAIR_LAST(first, second, value, next) \
        SXE__POOL_PUT_LAST(*sxe__pool_pair_at(&(first)), sxe__pool_make_pair((value), (next)))
#endif

#define SXE__POOL_FILE_VERSION 3u
#define SXE__POOL_BYTE_ORDER   0x01020304u

/* The change that a process is about to make to the links of a shard. All values are final, so
 * storing them twice, or from any point on, has the same result. */
struct sxe__pool_intent {
    uint32_t id;
    uint32_t prev; /* the neighbours between which the element is taken out */
    uint32_t next;
    uint32_t tail; /* the youngest of the new list, not counting the element */
    uint32_t old_state;
    uint32_t new_state;  /* if new_state equals old_state, the next three members are unused */
    uint32_t from_count; /* the count of the old state's list after the change */
    uint32_t to_count;
    uint32_t generation;
    uint32_t reserved;
    /* written last; above the shard's last_stamp: the change was begun and is not done */
    uint64_t stamp;
};

SXE__POOL_IS_PAIR(struct sxe__pool_intent, id, prev);
SXE__POOL_IS_PAIR(struct sxe__pool_intent, next, tail);
SXE__POOL_IS_PAIR(struct sxe__pool_intent, old_state, new_state);
SXE__POOL_IS_PAIR(struct sxe__pool_intent, from_count, to_count);
SXE__POOL_IS_PAIR(struct sxe__pool_node, next, prev);
SXE__POOL_IS_PAIR(struct sxe__pool_node, state, generation);

/* A shard. All that a change writes in it is in one line of cache. */
struct sxe__pool_shard {
    uint32_t lock; /* the owner's token; 0: free */
    uint32_t reserved;
    uint64_t last_stamp;
    struct sxe__pool_intent intent;
    uint8_t filler[64];
};
_Static_assert(sizeof(struct sxe__pool_shard) == 128, "the layout is that of file version 3");

/* ---- Stamps, spinning, functions of several files ---- */

/* The youngest stamp of all shards. */
static inline uint64_t
sxe__pool_last_stamp(const struct sxe__pool_sharing *sharing)
{
    uint64_t youngest = 0;

    for (uint32_t shard = 0; shard <= sharing->shard_mask; shard++) {
        const uint64_t stamp = SXE__POOL_GET(sharing->shards[shard].last_stamp);
        youngest = stamp > youngest ? stamp : youngest;
    }
    return youngest;
}

/* Pause between two looks of a spin: some 20 to 40 ns for the other thread of this core. */
static inline void
sxe__pool_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" : : : "memory");
#endif
}

/* Become a user of the pool again: a child of fork is another process. False: not possible now. */
bool sxe__pool_attach_again(struct sxe__pool_sharing *sharing);

/* Whether a change of a shard was begun and is not done: its stamp is above the last one. */
static inline bool
sxe__pool_is_begun(const struct sxe__pool_shard *shard)
{
    return SXE__POOL_GET(shard->intent.stamp) > SXE__POOL_GET(shard->last_stamp);
}

/* Like sxe__pool_lock_shard_patiently, but it may sleep for longer: the caller must hold no other
 * lock. */
unsigned sxe__pool_lock_shard_for_long(const struct sxe__pool_header *pool, uint32_t shard_index);

/* sxe_pool_check for one shard, whose lock is held (sxe-pool-check.c). 0, or -EUCLEAN and why,
 * which may be NULL. */
int sxe__pool_check_shard(const struct sxe__pool_header *pool, uint32_t shard, char *why);

/* Rebuild the lists from each element's state and stamp, while no other process uses the pool.
 * Elements with an impossible state go to state 0. Stamps later than the pool's time now are cut to
 * it, so time_offset_ns must have been set before. Returns how many elements went to state 0. After
 * a death in here sxe__pool_check_shard refuses the pool, and it can be rebuilt again. */
uint32_t sxe__pool_rebuild(const struct sxe__pool_header *pool);

/* Let go of a pool, and free this process's page (sxe-pool-open.c). */
void sxe__pool_close(struct sxe__pool_header *pool);

/* Wake one process that watches a state; call it only if a process may watch that state
 * (sxe-pool-watch.c). */
void sxe__pool_wake(const struct sxe__pool_header *pool, uint32_t state);

#endif
