/* SPDX-License-Identifier: MIT
 *
 * What: the interface among the sources that open a shared pool.
 * Place: included by sxe-pool-{head,map,slot,open,check}.c and by tests; not installed. The struct
 * that they pass to each other is in sxe-pool-file-internal.h.
 */
#ifndef SXE_POOL_OPENING_H
#define SXE_POOL_OPENING_H

#include "sxe-pool-sharing-private.h"

/* stands in place of the magic while the rest of the head is written */
#define SXE__POOL_FILE_UNFINISHED "sxe-new"
#define SXE__POOL_SIZE_LIMIT      (UINT64_C(1) << 56)
#define SXE__POOL_SLOT_BITS       7u /* how many bits of a token are the slot's index */
#define SXE__POOL_THREADS         1u /* the token of a pool of threads */
_Static_assert(1u << SXE__POOL_SLOT_BITS == SXE_POOL_SLOTS, "a token has room for each slot");

/* This process's own data, in private pages before the array's header. */
struct sxe__pool_own {
    struct sxe__pool_sharing sharing;
    char state_names[SXE_POOL_NAMES_MAX + 1]; /* each name ends with a 0 */
    char fields[SXE_POOL_FIELDS_MAX + 1];
};

/* ---- The head (sxe-pool-head.c) ---- */

/* Fill in opening->head from the spec, if its number is not 0. 0 or -EINVAL. */
int sxe__pool_head_plan(struct sxe__pool_opening *opening);

/* Set the hash `layout`, then the checksum over all fixed fields, from the head's other fields. */
void sxe__pool_head_seal(struct sxe__pool_head *head);

/* Write opening->head and its copy into the mapped file. The head's magic stays "unfinished" until
 * enter_as_first_user writes it, when the pool is whole. */
void sxe__pool_head_write(const struct sxe__pool_opening *opening);

/* is_whole: whether the head's copy in the mapped file equals the head; write: write that copy. */
bool sxe__pool_copy_is_whole(const struct sxe__pool_sharing *sharing);
void sxe__pool_copy_write(const struct sxe__pool_sharing *sharing);

/* log2 of how many consecutive ids are in the same shard. */
uint32_t sxe__pool_shard_shift(uint32_t number, uint32_t shards);

/* ---- Time (sxe-pool-time.c): offsets are added to the monotonic clock of this process ---- */

uint64_t sxe__pool_wall_ns(void);

/* The offset after a reboot: the pool's time goes on by the wall clock, but never goes back before
 * the youngest stamp. */
uint64_t sxe__pool_carry_time_over(const struct sxe__pool_sharing *sharing, uint64_t youngest);

/* The offset for a first user whose clock has not reached the youngest stamp yet, because the clock
 * of an earlier user was ahead. The pool's time goes on from that stamp: otherwise nothing would
 * time out until the clock has caught up. */
uint64_t sxe__pool_catch_up(const struct sxe__pool_sharing *sharing, uint64_t youngest);

/* This process's monotonic clock minus the machine's, wrapping: the offset of its time namespace;
 * 0: the kernel has none. sxe__pool_parse_namespace parses the kernel's text of that offset. */
uint64_t sxe__pool_namespace_ns(void);
uint64_t sxe__pool_parse_namespace(const char *text);

/* ---- Sums (sxe-pool-sum.c) ---- */

/* The checksum of the bytes that nobody writes while the pool is closed: of the head and the shards
 * (head_size bytes) from the field `boot` on, without `sum` and the fields up to `damaged`; and of
 * `size` bytes from the array on. If `closed` says that an earlier release closed the pool, the
 * rest of the head after `sum` is left out, because that release left it out. */
uint64_t sxe__pool_sum(const struct sxe__pool_head *head, size_t head_size, const void *array,
                       size_t size);

/* Like sxe__pool_sum, for a mapped pool. */
uint64_t sxe__pool_sum_of(const struct sxe__pool_header *pool);

/* Compare the pool with the checksum of when it was closed. Returns a sentence about the
 * difference; NULL: there is none, or the pool was not closed, so there is no checksum. */
const char *sxe__pool_what_changed(const struct sxe__pool_header *pool);

/* The number that the kernel gives a disk when it is attached, and that no other disk gets before
 * the next boot. 0: there is no such number, for example because the file system is in memory. */
uint64_t sxe__pool_disk(int fd);
extern const char *sxe__pool_disks; /* the directory of these numbers; tests change it */

/* ---- Files and memory (sxe-pool-map.c) ---- */

/* Open the file of fd once more. The new descriptor has its own open file description, so that
 * locks taken with it are its own. -1 with errno. */
int sxe__pool_open_anew(int fd);

/* Give an empty file its size. */
int sxe__pool_file_fill(struct sxe__pool_opening *opening);

/* Allocate all blocks of the file: a store to a block that a full disk cannot give is a SIGBUS. */
int sxe__pool_file_allocate(const struct sxe__pool_opening *opening);

/* After a failed open: remove or empty the file, if this call made or began to fill it. */
void sxe__pool_file_undo(const struct sxe__pool_opening *opening);

/* Map the file, or memory, by opening->head; sets opening->pool. */
int sxe__pool_map(struct sxe__pool_opening *opening);

/* Mark the mapped file as unfinished, on the disk before its other bytes: a file that begins with
 * zeros and holds data after them is taken for a foreign one. 0, or the error of msync. */
int sxe__pool_file_mark(const struct sxe__pool_opening *opening);

void sxe__pool_unmap(struct sxe__pool_header *pool);

/* ---- This process among the users (sxe-pool-slot.c) ---- */

/* Become a user: sets sharing->token. 0; -EUSERS; or the error of fcntl. */
int sxe__pool_slot_claim(struct sxe__pool_sharing *sharing);
void sxe__pool_slot_release(struct sxe__pool_sharing *sharing);

/* Keep other threads from forking between these two calls: a child would inherit a descriptor that
 * the fork handler does not know, and could not close. */
void sxe__pool_fork_hold(void);
void sxe__pool_fork_allow(void);

/* Add a pool to those that the fork handler knows (0 or -ENOMEM), or remove it. Call both while
 * forks are held. */
int sxe__pool_slot_remember(struct sxe__pool_sharing *sharing);
void sxe__pool_slot_forget(struct sxe__pool_sharing *sharing);

#endif
