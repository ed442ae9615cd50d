/* SPDX-License-Identifier: MIT
 *
 * What: gives access to the file of a pool, for programs that look into the file or replace it
 * without opening the pool.
 * Place: the friend interface of lib-sxe-pool, for its own sources, for lib-sxe-dict (backup,
 * restore, resize) and for the tool sxe-pool (list, which); not installed. sxe-pool-internal.h is
 * its other half: a pool that is open.
 *
 * Shape: all functions of an opening work on one struct sxe__pool_opening. A function that finds
 * something wrong writes a sentence to the struct's `why` (sxe__pool_refuse) and returns the error,
 * which all callers pass on.
 *
 * A process that opens, closes or replaces a file holds the byte SXE__POOL_OPEN_BYTE of it locked;
 * each user of the pool holds one from SXE__POOL_SLOT_BYTE on.
 */
#ifndef SXE_POOL_FILE_INTERNAL_H
#define SXE_POOL_FILE_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sxe-pool-shared.h"

#define SXE__POOL_FILE_MAGIC "sxepool" /* 8 bytes with its final 0 */
#define SXE__POOL_OPEN_TRIES 1000u     /* how often to try: once each millisecond, for a second */

/* The values of `closed`. One flipped bit cannot turn IN_USE into CLOSED_MARK, or back. */
#define SXE__POOL_IN_USE        0u
#define SXE__POOL_CLOSED_BEFORE 1u /* closed by an earlier release, whose checksum covers less */
#define SXE__POOL_CLOSED_MARK   0x9d5ac3e6u /* closed; an older library takes it for IN_USE */

/* A process that uses the pool. It holds one byte of the file locked: SXE__POOL_SLOT_BYTE + its
 * index. */
struct sxe__pool_slot {
    uint32_t generation; /* grows with each user of this slot; never 0 once the slot was used */
    uint32_t process;    /* process id, for messages only; 0: the process closed the pool */
    uint64_t watched;    /* one bit per state; the last bit is for all states from 63 on */
};

#define SXE__POOL_SLOT_BYTE ((off_t)1 << 60)
#define SXE__POOL_OPEN_BYTE (SXE__POOL_SLOT_BYTE - 1) /* locked by a process that opens or closes */

struct sxe__pool_head {
    /* The fields down to `checksum` are written once, when the file is made, the magic last. */
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint32_t fixed_size; /* bytes that the checksum covers: up to `checksum` */
    uint32_t number;
    uint32_t states;
    uint32_t shards;
    uint64_t element_size;
    uint64_t shards_offset;
    uint64_t array_offset;
    uint64_t nodes_offset; /* an offset from the array, like extra_offset */
    uint64_t extra_offset;
    uint64_t extra_size;
    uint64_t file_size;
    uint64_t layout; /* a hash of the numbers, names and fields on which a program must agree */
    /* page size of the machine that made the file: offsets are multiples of it */
    uint32_t page_size;
    uint32_t reserved;
    uint8_t identity[16];
    char name[SXE_POOL_NAME_MAX + 1];
    char state_names[SXE_POOL_NAMES_MAX + 1];
    char fields[SXE_POOL_FIELDS_MAX + 1];
    uint64_t checksum;
    /* Fields that change. They are written under the lock of SXE__POOL_OPEN_BYTE, except `damaged`,
     * `timeouts`, `watching` and the `watched` of slots. */
    uint8_t boot[16]; /* id of the boot in which the pool was opened last */
    uint64_t disk; /* the number that the kernel gave the pool's disk in that boot; 0: not known */
    uint64_t time_offset_ns; /* the pool's time minus the monotonic clock; wraps */
    /* the wall clock minus the pool's time, when the pool was opened last */
    uint64_t wall_offset_ns;
    /* at the last close: checksum of all that sxe__pool_sum covers */
    uint64_t sum;
    /* not SXE__POOL_IN_USE: all users closed the pool, and the file is complete on the disk */
    uint32_t closed;
    uint32_t is_summed; /* equal to `closed`: the last close wrote `sum`; 0: it did not */
    uint32_t damaged;   /* 1: some process found impossible values */
    uint32_t timeouts;  /* the lock of the process that runs on_timeout */
    /* bits as in `watched` of the slots; a clear bit: no slot watches the state */
    uint64_t watching;
    struct sxe__pool_slot slots[SXE_POOL_SLOTS];
};

static inline bool
sxe__pool_is_closed(const struct sxe__pool_head *head)
{
    return head->closed == SXE__POOL_CLOSED_MARK || head->closed == SXE__POOL_CLOSED_BEFORE;
}

struct sxe__pool_opening {
    SXE_POOL_SPEC spec;  /* a number of 0: open the existing pool */
    char *why;           /* NULL: no sentence is wanted */
    const char *what;    /* for sentences: the path or, if there is none, the pool's name */
    char path[PATH_MAX]; /* "": no path */
    /* This call's own open file description; -1: a pool of threads, without a file. */
    int fd;
    bool is_made;          /* whether this call made the file */
    bool is_empty;         /* whether the file holds no pool yet */
    bool has_begun;        /* whether this call fills the file, and may empty it on failure */
    bool is_file;          /* whether the pool has a name, and may outlive its users */
    bool has_others;       /* whether other processes use the pool now */
    uint64_t namespace_ns; /* this process's monotonic clock minus the machine's; wraps */
    bool is_restored;      /* whether the file's damaged head was replaced by its copy */
    /* the fixed part of the head: read from the file and checked, or planned from the spec */
    struct sxe__pool_head head;
    struct sxe__pool_header *pool; /* the mapped pool */
};

/* Write a sentence about the pool (opening->what) to opening->why. Returns -error; error 0: the
 * sentence is a note, not a failure. */
int sxe__pool_refuse(const struct sxe__pool_opening *opening, int error, const char *format, ...)
    SXE_PRINTF(3, 4);

/* Like sxe__pool_refuse, for an error of the system (errno): "cannot <do>: No space left on
 * device". */
int sxe__pool_refuse_errno(const struct sxe__pool_opening *opening, const char *what);

/* ---- The head (sxe-pool-head.c) ---- */

/* Read the head from the file and compare it with the spec; or set is_empty. 0; -EMEDIUMTYPE,
 * -EEXIST, -EUCLEAN, or the error of pread. */
int sxe__pool_head_read(struct sxe__pool_opening *opening);

/* Read the copy of the head at the end of the file; false: there is no whole copy. */
bool sxe__pool_head_read_copy(int fd, struct sxe__pool_head *copy);

/* ---- The file (sxe-pool-map.c) ---- */

/* Set path and what from spec.file. 0; -EINVAL; -ENAMETOOLONG. */
int sxe__pool_file_path(struct sxe__pool_opening *opening);

/* Open the file of the spec, or memory; an empty file is made if spec.number is not 0. */
int sxe__pool_file_open(struct sxe__pool_opening *opening);

/* Check that the file may be trusted: a regular file of this user that no other may write to. Sets
 * is_file. 0 or -errno. */
int sxe__pool_file_check(struct sxe__pool_opening *opening);

/* 1: the path no longer leads to the open file; 0: it does; or the error of stat. */
int sxe__pool_file_is_gone(const struct sxe__pool_opening *opening);

/* ---- The lock of opening (sxe-pool-slot.c) ---- */

/* Lock SXE__POOL_OPEN_BYTE. Waits a second, and one more for each 64 MB of the file, up to a
 * minute. 0; -EAGAIN, or the error of fcntl. */
int sxe__pool_opening_lock(int fd);
void sxe__pool_opening_unlock(int fd);

/* Whether another process uses the pool: 1 or 0, or -errno. The answer stays true while the caller
 * holds the opening lock. */
int sxe__pool_others(int fd);

#endif
