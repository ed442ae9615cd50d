/* SPDX-License-Identifier: MIT
 *
 * What: a hash table of bytes to bytes in a shared pool: for one program or many, in memory or in a
 * file, with expiry, eviction of the least recently used entry, counters, compare-and-put, batches
 * that appear at once or not at all, and snapshots. It is a cache, a session store, a rate limiter.
 *
 * Place: used by programs and by lib-sxe-lua (sxe.dict). Uses lib-sxe-pool for locks, safety from
 * kill -9 and files; the tool sxe-pool shows dicts, too.
 *
 * Shape: an entry is a pool element (a cell): its key, then its value; a longer entry continues in
 * more cells. The state of the cell is the state of the entry, and the time order of the state is
 * the order of use, so that eviction is "take the oldest".
 *
 *     bucket[hash] -> cell -> cell -> cell     FREE   cells nobody uses
 *                      |       OLD             LIVE   entries, the oldest is evicted first
 *                      +-more-> cell           PINNED, DIRTY   entries that are never evicted
 *                                              MORE   continuations; OLD   what only snapshots see
 *
 * A key belongs to a shard, with its bucket and its cells; a call locks that shard and no other. A
 * value is never changed in place, except a counter, which is one store. A new value is written
 * into free cells; then one store commits it. If the process is killed after that store, the next
 * owner of the lock completes the change. So a kill leaves the old value or the new one.
 *
 * Limits: keys of 0 to 65,472 bytes (they must fit into one cell), values up to 2^31 - 1 bytes or
 * what one shard has room for; replacing a value of several cells takes as many free cells. 16
 * snapshots, and 1,024 entries a batch. A call waits for a lock no longer than a short, bounded
 * spin, or than sxe_dict_set_wait says; then it returns -EAGAIN, and nothing was changed. Values
 * are copied in and out under the lock.
 *
 * Errors of all calls: -EAGAIN try again later; -EUCLEAN the memory is damaged; -EINVAL the key is
 * too long, or the time to live is negative or no number. Other errors are given with each call.
 *
 * Example:
 *     char why[SXE_POOL_WHY_SIZE];
 *     SXE_DICT_SPEC spec = {.name = "sessions", .cells = 100000, .evicts = true,
 *                           .file = "/var/lib/app/sessions.dict"};
 *     SXE_DICT *dict = sxe_dict_open(&spec, why);
 *     sxe_dict_put(dict, "id-1", 4, "alice", 5, 3600.0);
 *     ssize_t size = sxe_dict_get(dict, "id-1", 4, buffer, sizeof(buffer));
 */
#ifndef SXE_DICT_H
#define SXE_DICT_H

#include <stdbool.h>
#include <sys/types.h>

#include "sxe-pool-shared.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_DICT_FOREVER   0.0 /* as a time to live: the entry does not expire */
#define SXE_DICT_SNAPSHOTS 16u
#define SXE_DICT_BATCH_MAX 1024u

typedef struct sxe_dict SXE_DICT;

/* The states of an entry. */
typedef enum sxe_dict_state {
    SXE_DICT_LIVE = 1,
    SXE_DICT_PINNED = 2,
    SXE_DICT_DIRTY = 3
} SXE_DICT_STATE;

/* ---- Opening ---- */

typedef struct sxe_dict_spec {
    const char *name; /* 1 to 31 bytes */
    unsigned cells;   /* how many cells; an entry takes one or more; 0: open an existing dict */
    /* a multiple of 64 from 128 to 65,536, of which the cell's head takes 64; 0: 256 */
    unsigned cell_size;
    unsigned shards; /* how many shards divide the cells: a power of 2; 0: 1 */
    bool evicts; /* a put without room evicts the oldest LIVE entry; otherwise it returns -ENOSPC */
    unsigned options; /* SXE_POOL_OPTION_LOCKED, _SHARED or _REPAIR, as in sxe_pool_open */
    const char *file; /* a path, or a name without '/' in /dev/shm; NULL: memory */
} SXE_DICT_SPEC;

/* Open a dict, and make it if there is none. The errors are those of sxe_pool_open, and
 * EMEDIUMTYPE: a pool, but no dict. The hash is SipHash-1-3 with a random key of the dict. If all
 * its users were killed, the dict is checked. With SXE_POOL_OPTION_REPAIR a damaged dict is rebuilt
 * from its whole entries. The caller closes the dict. */
SXE_PUBLIC SXE_MUST_USE SXE_DICT *sxe_dict_open_sized(const SXE_DICT_SPEC *spec, size_t size,
                                                      char *why);
static inline SXE_MUST_USE SXE_DICT *
sxe_dict_open(const SXE_DICT_SPEC *spec_, char *why_)
{
    return sxe_dict_open_sized(spec_, sizeof(*spec_), why_);
}

/* Like sxe_dict_open, with an open descriptor, see sxe_pool_open_fd. The spec may be NULL. */
SXE_PUBLIC SXE_MUST_USE SXE_DICT *sxe_dict_open_fd_sized(int fd, const SXE_DICT_SPEC *spec,
                                                         size_t size, char *why);
static inline SXE_MUST_USE SXE_DICT *
sxe_dict_open_fd(int fd_, const SXE_DICT_SPEC *spec_, char *why_)
{
    return sxe_dict_open_fd_sized(fd_, spec_, sizeof(*spec_), why_);
}
SXE_PUBLIC void sxe_dict_close(SXE_DICT *dict); /* Close a dict; NULL is allowed. A file stays. */

/* The pool of cells, for sxe_pool_get_fd, sxe_pool_check and sxe_pool_get_found. The dict owns
 * it. */
SXE_PUBLIC void *sxe_dict_get_pool(const SXE_DICT *dict);

/* Set how long each call of this process on this dict may wait for a lock, see sxe_pool_set_wait:
 * from 0 seconds, the default, to SXE_POOL_WAIT_MAX. A put that would return -EAGAIN while it makes
 * room then continues by itself. 0; -EINVAL: the time is out of range. */
SXE_PUBLIC SXE_MUST_USE int sxe_dict_set_wait(SXE_DICT *dict, double seconds);

/* Write the dict to its disk, like sxe_pool_sync. */
SXE_PUBLIC SXE_MUST_USE int sxe_dict_sync(SXE_DICT *dict);

/* Check that each cell has exactly one place in the table, which sxe_pool_check does not check, and
 * that no cell is lost: each is free, belongs to an entry, is seen by a snapshot, or will be freed
 * by the next put that lacks room. Locks one shard after the other. 0; -EUCLEAN with a sentence in
 * why, which may be NULL; -EAGAIN; -ENOMEM. */
SXE_PUBLIC SXE_MUST_USE int sxe_dict_check(SXE_DICT *dict, char *why);

/* Like sxe_dict_check, but calls is_over before each shard, and after every 65,536 cells and
 * buckets in it. When is_over returns true, the check ends with -ECANCELED, and holds no lock. */
SXE_PUBLIC SXE_MUST_USE int sxe_dict_check_until(SXE_DICT *dict, char *why, bool (*is_over)(void));

/* ---- One entry ---- */

/* Copy up to `size` bytes of the value, and make the entry the youngest of its state. Returns the
 * value's whole size, or -ENOENT. */
SXE_PUBLIC ssize_t sxe_dict_get(SXE_DICT *dict, const void *key, size_t key_size, void *value,
                                size_t size);

/* Like sxe_dict_get, but keeps the entry's age. */
SXE_PUBLIC ssize_t sxe_dict_peek(SXE_DICT *dict, const void *key, size_t key_size, void *value,
                                 size_t size);

/* Insert or replace a value, for ttl_s seconds (FOREVER: until it is removed or evicted). The entry
 * keeps its state; a new one is LIVE. 0; -ENOSPC; -EFBIG: the value is larger than a shard of the
 * dict could ever hold. */
SXE_PUBLIC int sxe_dict_put(SXE_DICT *dict, const void *key, size_t key_size, const void *value,
                            size_t size, double ttl_s);

/* Like sxe_dict_put, but only if the present value is `expected` (NULL: only if the key has no
 * value). Also returns -EEXIST: the key has another value. */
SXE_PUBLIC int sxe_dict_compare_and_put(SXE_DICT *dict, const void *key, size_t key_size,
                                        const void *expected, size_t expected_size,
                                        const void *value, size_t size, double ttl_s);

/* Add to a counter, an entry whose value is an int64_t; a new counter begins at 0 and lives for
 * ttl_s seconds; an existing one keeps its time to live. 0; -ENOSPC; -EDOM: the value is no
 * counter; -EOVERFLOW: the sum would not fit, and the counter stays as it is. sum may be NULL. */
SXE_PUBLIC int sxe_dict_add(SXE_DICT *dict, const void *key, size_t key_size, int64_t addend,
                            double ttl_s, int64_t *sum);

/* Remove an entry. Returns 0 or -ENOENT. */
SXE_PUBLIC int sxe_dict_remove(SXE_DICT *dict, const void *key, size_t key_size);

/* sxe_dict_touch makes an entry the youngest of its state. sxe_dict_expire gives it another time to
 * live, sxe_dict_set_state another state (-EINVAL: there is no such state). Each returns 0 or
 * -ENOENT. */
SXE_PUBLIC int sxe_dict_touch(SXE_DICT *dict, const void *key, size_t key_size);
SXE_PUBLIC int sxe_dict_expire(SXE_DICT *dict, const void *key, size_t key_size, double ttl_s);
SXE_PUBLIC int sxe_dict_set_state(SXE_DICT *dict, const void *key, size_t key_size,
                                  SXE_DICT_STATE state);

/* Seconds until the entry expires; HUGE_VAL: never; negative: an error, -ENOENT or one that all
 * calls have. */
SXE_PUBLIC double sxe_dict_get_ttl(SXE_DICT *dict, const void *key, size_t key_size);
/* how many entries there are, expired ones included */
SXE_PUBLIC size_t sxe_dict_get_count(const SXE_DICT *dict);

/* ---- Metrics ---- */

/* The numbers are those of all processes together, from the making of the dict on; a dict's file
 * keeps them. A hit is a get, peek or get_ttl that found its key, a miss one that did not. An
 * expiration is an entry that was removed because its time was over; a put over an expired entry
 * counts as none. */
typedef struct sxe_dict_stats {
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
    uint64_t expirations;
} SXE_DICT_STATS;

/* Add up the numbers of all shards. They are read without a lock, so others may go on counting. */
SXE_PUBLIC void sxe_dict_get_stats_sized(const SXE_DICT *dict, SXE_DICT_STATS *stats, size_t size);
static inline void
sxe_dict_get_stats(const SXE_DICT *dict_, SXE_DICT_STATS *stats_)
{
    sxe_dict_get_stats_sized(dict_, stats_, sizeof(*stats_));
}

typedef struct sxe_dict_chains {
    size_t buckets;      /* how many buckets the table has */
    size_t buckets_used; /* how many buckets have a chain */
    /* how many versions all chains have: entries, and versions that only snapshots see */
    size_t versions;
    size_t longest; /* how many versions the longest chain has: a miss may look at as many cells */
} SXE_DICT_CHAINS;

/* Read each chain, with a lock held for 1,024 buckets at a time: this takes as long as a walk over
 * all entries. 0; -EAGAIN; -EUCLEAN: nothing was written to chains. */
SXE_PUBLIC SXE_MUST_USE int sxe_dict_get_chains_sized(SXE_DICT *dict, SXE_DICT_CHAINS *chains,
                                                      size_t size);
static inline SXE_MUST_USE int
sxe_dict_get_chains(SXE_DICT *dict_, SXE_DICT_CHAINS *chains_)
{
    return sxe_dict_get_chains_sized(dict_, chains_, sizeof(*chains_));
}

/* ---- All entries ---- The walk has no particular order. An entry that exists from the first step
 * to the last is met exactly once; an entry that is put or removed meanwhile may be met or not. */

typedef struct sxe_dict_walker {
    SXE_DICT *dict; /* all members are private */
    const struct sxe_dict_snapshot *snapshot;
    uint64_t bucket;
    uint64_t after;
} SXE_DICT_WALKER;

typedef struct sxe_dict_entry {
    void *key; /* where to copy the key; the caller sets key, key_room, value and value_room */
    size_t key_room;
    void *value;
    size_t value_room;
    /* the step sets the whole sizes of key and value, and copies as much of them as fits */
    size_t key_size;
    size_t value_size;
    double ttl_s; /* how many seconds the entry still lives; HUGE_VAL: for ever */
    SXE_DICT_STATE state;
} SXE_DICT_ENTRY;

/* Begin a walk. The walker has nothing to free: it may be left at any step, or constructed again.
 */
SXE_PUBLIC void sxe_dict_walker_construct(SXE_DICT_WALKER *walker, SXE_DICT *dict);

/* Go to the next entry. 1: an entry; 0: the end; -EAGAIN: step again later; -ESTALE: the walk's
 * snapshot has ended, see below. */
SXE_PUBLIC int sxe_dict_walker_step(SXE_DICT_WALKER *walker, SXE_DICT_ENTRY *entry);

/* ---- Batches: every reader, and every crash, sees all changes of a batch or none ---- */

typedef struct sxe_dict_batch SXE_DICT_BATCH;

/* Make an empty batch; NULL: no memory. */
SXE_PUBLIC SXE_MUST_USE SXE_DICT_BATCH *sxe_dict_batch_new(SXE_DICT *dict);
SXE_PUBLIC void sxe_dict_batch_delete(SXE_DICT_BATCH *batch);

/* Note a change of the batch; the bytes are copied. Of several changes of a key the last one
 * counts; the time to live begins now. 0; -ENOMEM; -EFBIG; -E2BIG: more than SXE_DICT_BATCH_MAX. */
SXE_PUBLIC int sxe_dict_batch_put(SXE_DICT_BATCH *batch, const void *key, size_t key_size,
                                  const void *value, size_t size, double ttl_s);
SXE_PUBLIC int sxe_dict_batch_remove(SXE_DICT_BATCH *batch, const void *key, size_t key_size);

/* A condition: the batch is committed only if the value is `expected` at that moment (NULL: only if
 * the key has no value). The condition may be on any key, also of one that the batch changes; the
 * last condition on a key counts. Conditions count among the entries of SXE_DICT_BATCH_MAX. The
 * errors are those of sxe_dict_batch_put. */
SXE_PUBLIC int sxe_dict_batch_expect(SXE_DICT_BATCH *batch, const void *key, size_t key_size,
                                     const void *expected, size_t expected_size);

/* Make all changes of the batch, and empty it, so that it can be used again. 0, or nothing was done
 * and the batch is as it was, so that the next commit does it: -EAGAIN; -EEXIST: a condition does
 * not hold (all are checked, and all changes made, under the same locks); -ENOSPC: a shard has no
 * room for the new values beside the old ones; -EFBIG: no shard could ever have room for them. */
SXE_PUBLIC int sxe_dict_batch_commit(SXE_DICT_BATCH *batch);

/* ---- Snapshots: the whole table as it was at one moment, while writers go on ---- Taking a
 * snapshot costs the same for a dict of any size: it only takes the number of an epoch. From then
 * on a value that is replaced or removed stays in its cells as long as a snapshot can see it. Where
 * that leaves no room, writers win: the oldest snapshot ends, and its calls return -ESTALE; so does
 * a snapshot whose process is dead. Entries that had expired when it was taken are not in the
 * snapshot; times to live and states are the current ones. */

typedef struct sxe_dict_snapshot SXE_DICT_SNAPSHOT;

/* Take a snapshot; NULL with errno: EAGAIN, EUCLEAN, EUSERS (16 are in use) or ENOMEM. The caller
 * releases it before the dict is closed. Releasing takes time for each version that only this
 * snapshot saw; NULL is allowed. */
SXE_PUBLIC SXE_MUST_USE SXE_DICT_SNAPSHOT *sxe_dict_snapshot_take(SXE_DICT *dict);
SXE_PUBLIC void sxe_dict_snapshot_release(SXE_DICT_SNAPSHOT *snapshot);

/* Like sxe_dict_peek; also returns -ESTALE: the snapshot has ended. */
SXE_PUBLIC ssize_t sxe_dict_snapshot_get(const SXE_DICT_SNAPSHOT *snapshot, const void *key,
                                         size_t key_size, void *value, size_t size);
SXE_PUBLIC void sxe_dict_snapshot_walk(SXE_DICT_WALKER *walker, SXE_DICT_SNAPSHOT *snapshot);

/* ---- Copies in files: backup, restore, resize ---- Each call writes a new file beside its target
 * (FILE.XXXXXX), syncs it to the disk, and renames it over the target: a process that is killed at
 * any moment leaves the old file or the new one, and perhaps a FILE.XXXXXX to be removed. Keys,
 * values, states, times to live and the metrics are copied; the order of use is not: the order of
 * entries in the copy says nothing about earlier reads.
 *
 * The replaced file must be empty, or have a dict, even a damaged one, and no process may have it
 * open; processes that open it meanwhile wait, and get the new file, which gets the old one's mode.
 *
 * Files are named as in sxe_dict_open. is_over, unless NULL, is asked at least every 256 entries:
 * once it says true, the call returns -ECANCELED. After an error the old file is as it was, and
 * why, unless NULL, has a sentence. Also -EBUSY: the file to be replaced is in use; -EMEDIUMTYPE:
 * it has no dict; -EAGAIN: a lock was held for a second, or for as long as sxe_dict_set_wait says
 * if that is longer; and the errors of sxe_dict_open and of the system. */

/* Write the dict, as it is at one moment, to a file, while other processes go on. 0; also -ESTALE:
 * three snapshots ended before all was copied, because writers needed the room; and -EUSERS: 16
 * snapshots are in use. */
SXE_PUBLIC SXE_MUST_USE int sxe_dict_backup(SXE_DICT *dict, const char *file, bool (*is_over)(void),
                                            char *why);

/* Copy a backup, or any dict's file, to the dict in `file`; the backup stays. Times to live go on
 * in a backup: entries that expired there are not restored. */
SXE_PUBLIC SXE_MUST_USE int sxe_dict_restore(const char *backup, const char *file,
                                             bool (*is_over)(void), char *why);

/* Give a dict another number of cells, in as many shards. 0; also -ENOSPC or -EFBIG: the entries do
 * not fit; none is evicted for that. */
SXE_PUBLIC SXE_MUST_USE int sxe_dict_resize(const char *file, unsigned cells, bool (*is_over)(void),
                                            char *why);

#ifdef __cplusplus
}
#endif

#endif
