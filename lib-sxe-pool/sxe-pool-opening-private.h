/* SPDX-License-Identifier: MIT
 *
 * What: the interface among the sources that open a shared pool.
 * Place: included by sxe-pool-{head,map,slot,open,check}.c and by tests; not installed. The
 * struct that goes from hand to hand among them is in sxe-pool-file-internal.h.
 */
#ifndef SXE_POOL_OPENING_H
#define SXE_POOL_OPENING_H

#include "sxe-pool-sharing-private.h"

#define SXE__POOL_FILE_UNFINISHED "sxe-new" /* there while the rest is written */
#define SXE__POOL_SIZE_LIMIT      (UINT64_C(1) << 56)
#define SXE__POOL_SLOT_BITS       7u /* of a token */
#define SXE__POOL_THREADS         1u /* the token of a pool of threads */
_Static_assert(1u << SXE__POOL_SLOT_BITS == SXE_POOL_SLOTS, "a token has room for each slot");

/* The data in front of the header, in pages of the process's own. */
struct sxe__pool_own {
    struct sxe__pool_sharing sharing;
    char state_names[SXE_POOL_NAMES_MAX + 1]; /* each with its 0 */
    char fields[SXE_POOL_FIELDS_MAX + 1];
};

/* ---- The head (sxe-pool-head.c) ---- */

/* From the spec, if it has a number; -EINVAL. */
int sxe__pool_head_plan(struct sxe__pool_opening *opening);

/* Hashes over what it says now: the layout, and the checksum over all. */
void sxe__pool_head_seal(struct sxe__pool_head *head);

/* Put it into a file that is mapped: all but the magic, which follows when the pool is whole; and
 * its copy. */
void sxe__pool_head_write(const struct sxe__pool_opening *opening);

/* Whether the copy of the head in a file that is mapped says what the head says; and write it. */
bool sxe__pool_copy_is_whole(const struct sxe__pool_sharing *sharing);
void sxe__pool_copy_write(const struct sxe__pool_sharing *sharing);

/* How many ids in turn, as a power of 2, are in the same shard. */
uint32_t sxe__pool_shard_shift(uint32_t number, uint32_t shards);

/* ---- Time (sxe-pool-time.c): offsets are added to the monotonic clock of this process ---- */

uint64_t sxe__pool_wall_ns(void);

/* The offset after a reboot: the pool's time goes on by the wall clock, but never goes back before
 * the youngest stamp. */
uint64_t sxe__pool_carry_time_over(const struct sxe__pool_sharing *sharing, uint64_t youngest);

/* The offset where all have gone and one of them had a clock that was ahead: time goes on from the
 * youngest stamp, or no time-out would come until the clocks have caught up with it. */
uint64_t sxe__pool_catch_up(const struct sxe__pool_sharing *sharing, uint64_t youngest);

/* This process's monotonic clock minus the machine's, wrapping: of its time namespace; 0 where the
 * kernel has none. And that of the text in which the kernel says it. */
uint64_t sxe__pool_namespace_ns(void);
uint64_t sxe__pool_parse_namespace(const char *text);

/* ---- Sums (sxe-pool-sum.c) ---- */

/* The checksum of what nobody writes while the pool is closed: the head from its own checksum on
 * without `sum` and `closed`, the shards, and `size` bytes from the array on. Where `closed` is of
 * an earlier release, the head counts up to `sum` only, as it did then. */
uint64_t sxe__pool_sum(const struct sxe__pool_head *head, size_t head_size, const void *array,
                       size_t size);

/* The same for a pool that is mapped. */
uint64_t sxe__pool_sum_of(const struct sxe__pool_header *pool);

/* NULL; or it was closed, and what is in it now is something else: what. */
const char *sxe__pool_what_changed(const struct sxe__pool_header *pool);

/* The number that the kernel gives a disk when it is attached, and that no other disk gets before
 * the next boot; 0: it has none, as where a file system is in memory. */
uint64_t sxe__pool_disk(int fd);
extern const char *sxe__pool_disks; /* where the kernel says it; tests have their own */

/* ---- Files and memory (sxe-pool-map.c) ---- */

/* Another description of an open file, with locks of its own; -1 with errno. */
int sxe__pool_open_anew(int fd);

/* Give an empty file its size. */
int sxe__pool_file_fill(struct sxe__pool_opening *opening);

/* Have all of it on the disk, so that no store can fail: that would be a signal. */
int sxe__pool_file_allocate(const struct sxe__pool_opening *opening);

/* Undo what was made of it. */
void sxe__pool_file_undo(const struct sxe__pool_opening *opening);

/* Map it as opening->head says: opening->pool. */
int sxe__pool_map(struct sxe__pool_opening *opening);

/* Mark a file that is mapped as half made, on the disk before anything else is there: a file that
 * begins with zeros and holds data after them is not taken for ours. 0, or what msync says. */
int sxe__pool_file_mark(const struct sxe__pool_opening *opening);

void sxe__pool_unmap(struct sxe__pool_header *pool);

/* ---- This process among the users (sxe-pool-slot.c) ---- */

/* Become a user: sets sharing->token. -EUSERS, or what fcntl says. */
int sxe__pool_slot_claim(struct sxe__pool_sharing *sharing);
void sxe__pool_slot_release(struct sxe__pool_sharing *sharing);

/* No fork between these: a child would inherit a descriptor that nobody told it to close. */
void sxe__pool_fork_hold(void);
void sxe__pool_fork_allow(void);

/* Be told of forks, and no more; while they are held. -ENOMEM. */
int sxe__pool_slot_remember(struct sxe__pool_sharing *sharing);
void sxe__pool_slot_forget(struct sxe__pool_sharing *sharing);

#endif
