/* SPDX-License-Identifier: MIT
 *
 * What: the interface among the sources that open a shared pool.
 * Place: included by sxe-pool-{head,map,slot,open,check}.c and by tests; not installed.
 *
 * Shape: one struct sxe__pool_opening goes from hand to hand. A function that finds something wrong
 * writes the sentence into it (sxe__pool_refuse) and returns the error, which all callers pass on.
 */
#ifndef SXE_POOL_OPENING_H
#define SXE_POOL_OPENING_H

#include <limits.h>

#include "sxe-pool-sharing-private.h"

#define SXE__POOL_FILE_MAGIC      "sxepool" /* with its 0, 8 bytes */
#define SXE__POOL_FILE_UNFINISHED "sxe-new" /* there while the rest is written */
#define SXE__POOL_SIZE_LIMIT      (UINT64_C(1) << 56)
#define SXE__POOL_OPEN_TRIES      1000u /* one a millisecond: a second */
#define SXE__POOL_SLOT_BITS       7u    /* of a token */
#define SXE__POOL_THREADS         1u    /* the token of a pool of threads */
_Static_assert(1u << SXE__POOL_SLOT_BITS == SXE_POOL_SLOTS, "a token has room for each slot");

/* The data in front of the header, in pages of the process's own. */
struct sxe__pool_own {
    struct sxe__pool_sharing sharing;
    char state_names[SXE_POOL_NAMES_MAX + 1]; /* each with its 0 */
    char fields[SXE_POOL_FIELDS_MAX + 1];
};

struct sxe__pool_opening {
    SXE_POOL_SPEC spec;            /* number 0: whatever is there */
    char *why;                     /* NULL: nobody wants to know */
    const char *what;              /* for sentences: the path, or the name */
    char path[PATH_MAX];           /* "": it has none */
    int fd;                        /* of this opening alone; -1: threads */
    bool is_made;                  /* the file is there because of this call */
    bool is_empty;                 /* it holds no pool as yet */
    bool has_begun;                /* and nothing else any more: its bytes are ours */
    bool is_file;                  /* it has a name, and may outlive its users */
    bool has_others;               /* use it now */
    uint64_t namespace_ns;         /* this process's monotonic clock - the machine's, wrapping */
    bool is_restored;              /* its head was made again of the copy */
    struct sxe__pool_head head;    /* the fixed part: what is there, checked, or what is to be */
    struct sxe__pool_header *pool; /* mapped */
};

/* The sentence, which begins with what is opened; -error. Error 0: not refused, only said. */
int sxe__pool_refuse(const struct sxe__pool_opening *opening, int error, const char *format, ...)
    SXE_PRINTF(3, 4);

/* Like sxe__pool_refuse, for an error of the system (errno): "cannot <do>: No space left on
 * device". */
int sxe__pool_refuse_errno(const struct sxe__pool_opening *opening, const char *what);

/* ---- The head (sxe-pool-head.c) ---- */

/* From the spec, if it has a number; -EINVAL. */
int sxe__pool_head_plan(struct sxe__pool_opening *opening);

/* From the file, whatever it holds, compared with the plan; or sets empty. -EMEDIUMTYPE, -EEXIST,
 * or what pread says. */
int sxe__pool_head_read(struct sxe__pool_opening *opening);

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

/* Where the spec says that the file is: sets path, and what. 0; -EINVAL; -ENAMETOOLONG. */
int sxe__pool_file_path(struct sxe__pool_opening *opening);

/* Open what the spec says, and make an empty file if it may. */
int sxe__pool_file_open(struct sxe__pool_opening *opening);

/* Another description of an open file, with locks of its own; -1 with errno. */
int sxe__pool_open_anew(int fd);

/* Whether it may be trusted as a pool's: a regular file of this user. Sets is_file. */
int sxe__pool_file_check(struct sxe__pool_opening *opening);

/* Whether its path leads to it no more: 0, 1 or what stat says. */
int sxe__pool_file_is_gone(const struct sxe__pool_opening *opening);

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

/* Wait for the byte of who opens or closes: a second, and one more for each 64 MB of the file, up
 * to a minute. 0; -EAGAIN, or what fcntl says. */
int sxe__pool_opening_lock(int fd);
void sxe__pool_opening_unlock(int fd);

/* Whether another user is there; -errno. The answer lasts for who holds the opening lock. */
int sxe__pool_others(int fd);

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
