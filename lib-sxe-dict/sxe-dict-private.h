/* SPDX-License-Identifier: MIT
 *
 * What: the declarations that the files of lib-sxe-dict share: the layout of cells and of the
 * control block, and the steps of which calls consist.
 * Place: included by lib-sxe-dict/sxe-dict*.c and by tests that look inside; not installed.
 *
 *     sxe-dict-hash.c       SipHash-1-3                            knows only bytes
 *     sxe-dict-cell.c       cells and chains: find, copy, fill     reads, and writes FREE cells
 *     sxe-dict-change.c     the lock, commits, their completion    all that changes entries
 *     sxe-dict-room.c       room: what is no more needed           evicts, expires, ends snapshots
 *     sxe-dict.c            the calls on one entry
 *     sxe-dict-walker.c     the walk over all
 *     sxe-dict-snapshot.c   snapshots
 *     sxe-dict-batch.c      batches
 *     sxe-dict-check.c      every invariant; the table rebuilt from its cells
 *     sxe-dict-stats.c      what was counted, and how long chains are
 *     sxe-dict-open.c       opening and closing
 *     sxe-dict-copy.c       backup, restore, resize: another file, put in place by a rename
 *
 * Shape: the pool's elements are cells; its extra bytes, zeroed when the file is made, are
 *
 *     control   the hash's key, the epoch, the snapshots
 *     record    one a shard, 64 bytes: what is being done there
 *     counts    one a shard, 64 bytes: hits, misses, evictions, expirations
 *     bucket    a power of 2 of links a shard
 *
 * A link is a cell's id + 1, or 0 for none, so zeroed memory is an empty table. A chain has the
 * current version of each key of its bucket, and the OLD versions that snapshots may see.
 *
 * How a put survives a death: the new version is written into cells whose state stays FREE; the
 * lock keeps others from taking them. One store commits: record.pending = the version's link. Any
 * later owner of the lock may repeat the steps after it from the beginning (link the version, move
 * its cells to their states, retire the old version, pending = 0), because no cell that became FREE
 * is written to before pending is 0. A removal commits by record.doomed instead. A batch uses
 * staged_puts and staged_removes of each shard, which count if record.staged equals
 * control.committed.
 *
 * How a snapshot sees the past: each new snapshot raises control.epoch by one, under the locks of
 * all shards. A version is born in one epoch and dies in another; the snapshot of epoch s sees it
 * if born <= s < died. A version that is replaced or removed becomes OLD if an active snapshot has
 * born <= s: it dies in the present epoch, which is above every s. It may be freed when no active
 * snapshot has born <= s < died. From then on that stays so: snapshots end, but none begins in a
 * past epoch.
 *
 * How OLD versions are freed: a shard is swept if a snapshot has ended since the shard's last sweep
 * began (record.swept). sxe__dict_ended computes how many snapshots have ended, from the epoch,
 * which each snapshot raised by one, and the slots of the active snapshots. That number is not
 * stored, because a process may die between ending a snapshot and counting it.
 */
#ifndef SXE_DICT_PRIVATE_H
#define SXE_DICT_PRIVATE_H

#include <errno.h>
#include <string.h>

#include "sxe-dict-internal.h"
#include "sxe-dict.h"
#include "sxe-pool-internal.h"

#define SXE__DICT_MAGIC     UINT64_C(0x3254434944455853) /* "SXEDICT2" */
#define SXE__DICT_HEAD_SIZE 64u                          /* of a cell */
#define SXE__DICT_KEY_MAX   65472u
#define SXE__DICT_VALUE_MAX INT32_MAX

enum {
    SXE__DICT_FREE,
    SXE__DICT_MORE = SXE_DICT_DIRTY + 1, /* the continuation of another cell's value */
    SXE__DICT_OLD,                       /* only snapshots see it */
    SXE__DICT_STATES
};

struct sxe__dict_cell {
    uint64_t hash;
    uint64_t expires_ns; /* a time of the pool; 0: never */
    uint64_t born;       /* epoch */
    uint64_t died;       /* 0: not yet */
    uint32_t chain;      /* the bucket's next cell, as a link: id + 1; 0: none */
    uint32_t more;       /* link to the cell that continues the value */
    uint32_t replaces;   /* of a pending version: link to the version that it replaces */
    uint32_t next;       /* of a pending version: link to the next staged change */
    uint32_t value_size;
    uint16_t key_size;
    uint8_t state; /* of a pending or OLD version: the state of its entry */
    uint8_t reserved;
    uint32_t sum; /* checksum of the value's bytes and of what sxe__dict_head_sum covers */
    uint32_t reserved_2;
    char data[]; /* the key, then from a multiple of 8 on the value */
};
_Static_assert(sizeof(struct sxe__dict_cell) == SXE__DICT_HEAD_SIZE, "the layout is version 2's");

/* The change in progress in a shard; written under its lock. */
struct sxe__dict_record {
    uint32_t pending;        /* link to a new version to be put in */
    uint32_t doomed;         /* link to a version to be taken out */
    uint32_t staged_puts;    /* the new versions of a batch, linked by `next` */
    uint32_t staged_removes; /* the versions that a batch removes, linked by `next` */
    uint64_t staged;         /* the serial of that batch; 0: none */
    uint64_t swept;          /* sxe__dict_ended() when the last sweep of OLD cells began */
    uint64_t next_expiry;    /* no entry expires earlier; 0: none expires */
    uint64_t round_expiry;   /* the earliest expiry in the cells that this round has passed */
    uint32_t round_at;       /* the next cell of the round for expired entries; 0: no round */
    uint32_t sweep_left;     /* OLD cells that this sweep still has to look at */
    uint32_t changed;        /* link to a version that is being changed in place */
    uint32_t changed_sum;    /* the checksum that this version gets */
};
_Static_assert(sizeof(struct sxe__dict_record) == 64, "the layout is version 2's");

/* The counts of a shard since the dict was made. Each is changed under the shard's lock by a plain
 * load and a store, so no get waits for another processor. A process that is killed between a read
 * and its count leaves the read uncounted, and nothing else depends on the number. is_wanted is
 * stored without the lock; it is only a hint, and may be old. */
struct sxe__dict_counts {
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
    uint64_t expirations;
    uint64_t is_wanted; /* 1: a process could not take the lock, and nobody has taken it since */
    uint64_t reserved[3];
};
_Static_assert(sizeof(struct sxe__dict_counts) == 64, "the layout is version 2's");

struct sxe__dict_slot {
    uint64_t epoch; /* of the snapshot; 0: the slot is free */
    uint64_t time_ns;
    uint32_t token; /* of the process that took the slot */
    uint32_t filler;
};

struct sxe__dict_control {
    uint64_t magic; /* written last */
    uint64_t hash_key[2];
    uint64_t epoch;  /* the epoch in which versions are born and die now; begins at 1 */
    uint64_t newest; /* the greatest epoch that any snapshot had */
    uint64_t reserved;
    uint64_t committed; /* the serial of the last batch that was committed */
    uint32_t batch;     /* the lock of the process that commits a batch */
    uint32_t evicts;
    struct sxe__dict_slot slots[SXE_DICT_SNAPSHOTS];
    uint32_t doubtful; /* 1: the dict may be damaged, and was not checked since */
    uint8_t filler[60];
};
_Static_assert(sizeof(struct sxe__dict_control) == 512, "the layout is version 2's");

/* One process's view of a dict: copies of values that it has checked, and trusts. */
struct sxe_dict {
    void *array;
    const struct sxe__pool_header *pool;
    struct sxe__pool_sharing *sharing;
    struct sxe__dict_control *control;
    struct sxe__dict_record *records;
    struct sxe__dict_counts *counts;
    uint32_t *buckets;
    uint64_t hash_key[2];
    uint32_t number;    /* cells */
    uint32_t cell_size; /* bytes */
    uint32_t room;      /* bytes of key and value in a cell */
    uint32_t shards;
    uint32_t shard_bits;
    uint32_t bucket_mask; /* of one shard's buckets */
    bool evicts;
    bool verifies; /* compare values that are read with their checksums */
};

struct sxe_dict_snapshot {
    SXE_DICT *dict;
    uint64_t epoch;
    uint64_t time_ns;
    uint32_t slot;
    uint32_t token; /* the token of the process that took the snapshot */
};

/* A key, and where its entry belongs. */
struct sxe__dict_key {
    const void *bytes;
    size_t size;
    uint64_t hash;
    uint32_t shard;
};

/* A copy of a cell's head, whose values were checked to be possible. */
struct sxe__dict_view {
    uint32_t id;
    uint32_t cells; /* how many the version takes */
    uint32_t key_size;
    uint32_t value_size;
    uint64_t hash;
    uint64_t expires_ns;
    uint64_t born;
    uint64_t died;
};

/* The contents of a new version. */
struct sxe__dict_put {
    const struct sxe__dict_key *key;
    const void *value;
    size_t size;
    uint64_t expires_ns;
    uint32_t state;
    uint32_t replaces; /* links */
    uint32_t next;
};

#define SXE__DICT_BUDGET 1024u /* cells that one call looks at in search of room */

/* ---- Where things are ---- */

static inline struct sxe__dict_cell *
sxe__dict_cell(const SXE_DICT *dict, uint32_t id)
{
    return (void *)((char *)dict->array + (size_t)id * dict->cell_size);
}

/* Whether `id` is a cell of that shard. */
static inline bool
sxe__dict_has(const SXE_DICT *dict, uint32_t shard, uint32_t id)
{
    return id < dict->number && sxe__pool_shard_of(dict->sharing, id) == shard;
}

static inline uint32_t
sxe__dict_state(const SXE_DICT *dict, uint32_t id)
{
    return SXE__POOL_GET(dict->sharing->nodes[id].state);
}

static inline struct sxe__pool_node *
sxe__dict_list(const SXE_DICT *dict, uint32_t shard, uint32_t state)
{
    return &dict->sharing->nodes[sxe__pool_shard_list(dict->pool, dict->sharing, state, shard)];
}

static inline uint32_t *
sxe__dict_bucket(const SXE_DICT *dict, uint32_t shard, uint64_t hash)
{
    return &dict->buckets[(size_t)shard * (dict->bucket_mask + 1) + (hash & dict->bucket_mask)];
}

static inline uint32_t
sxe__dict_shard(const SXE_DICT *dict, uint64_t hash)
{
    return dict->shard_bits == 0 ? 0 : (uint32_t)(hash >> (64 - dict->shard_bits));
}

/* Where a value begins in the cell of its key. */
static inline uint32_t
sxe__dict_value_at(size_t key_size)
{
    return (uint32_t)((key_size + 7) & ~(size_t)7);
}

/* Whether a change of the shard is not complete. If the caller holds the shard's lock, the process
 * that began the change is dead. */
static inline bool
sxe__dict_is_busy(const SXE_DICT *dict, uint32_t shard)
{
    const struct sxe__dict_record *record = &dict->records[shard];

    return (SXE__POOL_GET(record->pending) | SXE__POOL_GET(record->doomed) |
            SXE__POOL_GET(record->changed)) != 0 ||
           SXE__POOL_GET(record->staged) != 0;
}

static inline bool
sxe__dict_is_entry(uint32_t state)
{
    return state >= SXE_DICT_LIVE && state <= SXE_DICT_DIRTY;
}

static inline int
sxe__dict_damaged(const SXE_DICT *dict)
{
    sxe__pool_damaged(dict->pool);
    SXE__POOL_PUT(dict->control->doubtful, 1);
    return -EUCLEAN;
}

static inline bool
sxe__dict_is_expired(const SXE_DICT *dict, uint64_t expires_ns)
{
    return expires_ns != 0 && expires_ns <= sxe_pool_get_now(dict->array);
}

/* Add 1. The caller holds the lock of the count's shard; readers have no lock. */
static inline void
sxe__dict_count(uint64_t *count)
{
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* How many cells a shard has, and its nth cell. */
uint32_t sxe__dict_capacity(const SXE_DICT *dict, uint32_t shard);
uint32_t sxe__dict_nth(const SXE_DICT *dict, uint32_t shard, uint32_t nth);

/* ---- Keys ---- */

uint64_t sxe__dict_hash(const uint64_t key[2], const void *bytes, size_t size);

/* 0 or -EINVAL: too long. */
int sxe__dict_set_key(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes,
                      size_t size);

/* Compute when an entry with this time to live expires. False: ttl_s is negative or no number. */
bool sxe__dict_expiry(const SXE_DICT *dict, double ttl_s, uint64_t *expires_ns);
double sxe__dict_ttl(const SXE_DICT *dict, uint64_t expires_ns);

/* ---- Cells: under the lock of their shard. -EUCLEAN: damaged, and noted ---- */

uint32_t sxe__dict_cells_for(const SXE_DICT *dict, size_t key_size, size_t value_size);
int sxe__dict_read(const SXE_DICT *dict, uint32_t shard, uint32_t id, struct sxe__dict_view *view);

/* Find the link that leads to cell `id` in the chain of `hash`. 1: found; 0: the cell is not in
 * that chain. */
int sxe__dict_link_to(const SXE_DICT *dict, uint32_t shard, uint64_t hash, uint32_t id,
                      uint32_t **link);

/* Find a key's current version (epoch 0), or the version that a snapshot of that epoch sees. 1:
 * found; 0: there is none. */
int sxe__dict_find(const SXE_DICT *dict, const struct sxe__dict_key *key, uint64_t epoch,
                   struct sxe__dict_view *view);

/* Copy up to `size` bytes of the key or of the value out. The second function returns 0 or
 * -EUCLEAN. */
void sxe__dict_copy_key(const SXE_DICT *dict, const struct sxe__dict_view *view, void *key,
                        size_t size);
int sxe__dict_copy_value(const SXE_DICT *dict, const struct sxe__dict_view *view, void *value,
                         size_t size);

/* 1: the value equals `expected`; 0: it does not. */
int sxe__dict_compare(const SXE_DICT *dict, const struct sxe__dict_view *view, const void *expected,
                      size_t size);

/* 1: key, value, sizes and expiry fit the checksum; 0: they do not. */
int sxe__dict_is_sound(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* 0; -EUCLEAN: the dict verifies, and this version does not fit its checksum. */
static inline int
sxe__dict_verify(const SXE_DICT *dict, const struct sxe__dict_view *view)
{
    return SXE_LIKELY(!dict->verifies) || sxe__dict_is_sound(dict, view) == 1
               ? 0
               : sxe__dict_damaged(dict);
}

/* A version's checksum is the XOR of two parts. So a change of one part need not compute the other
 * part again, and a flipped bit in the other part is still found. The head's part also covers the
 * key's hash and the cell's generation: so a page of the file that is older than the other pages is
 * found by its older generations. */
uint32_t sxe__dict_head_sum(const SXE_DICT *dict, const struct sxe__dict_view *view);
uint32_t sxe__dict_value_sum(const char *value, size_t size);

/* Where a counter's value of 8 bytes is; NULL: damaged. */
uint64_t *sxe__dict_counter(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* Write a version into FREE cells, from *cursor on, which then moves past them; before the first
 * call set *cursor to the oldest FREE cell. Returns the version's first cell, or -EUCLEAN. */
int64_t sxe__dict_fill(const SXE_DICT *dict, const struct sxe__dict_put *put, uint32_t *cursor);

/* ---- Changes: under the lock of their shard ---- */

/* Lock a shard, and complete what is pending there. 0; -EAGAIN; -EUCLEAN. sxe__dict_lock_patiently
 * may sleep for all the time that `patience` has left: do not call it while another lock is
 * held. */
int sxe__dict_lock(const SXE_DICT *dict, uint32_t shard);
int sxe__dict_lock_patiently(const SXE_DICT *dict, uint32_t shard,
                             struct sxe__pool_patience *patience);
void sxe__dict_unlock(const SXE_DICT *dict, uint32_t shard);

/* Lock a shard again, for a call that works in slices and unlocks between them. If other processes
 * want the lock, leave it free until one of them has taken it, or for SXE__POOL_NAPS naps: a
 * process that sleeps between its tries would otherwise never find it free. 0; -EAGAIN;
 * -EUCLEAN. */
int sxe__dict_lock_next_slice(const SXE_DICT *dict, uint32_t shard);

/* Lock all shards, in ascending order, or none. 0; -EAGAIN; -EUCLEAN. */
int sxe__dict_lock_all(const SXE_DICT *dict);
void sxe__dict_unlock_all(const SXE_DICT *dict);

/* Whether an active snapshot sees that version. */
bool sxe__dict_is_seen(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* Put a filled version into the table; or take a version out, which then becomes OLD if a snapshot
 * sees it, otherwise FREE. 0. */
int sxe__dict_commit_put(const SXE_DICT *dict, uint32_t shard, uint32_t id);
int sxe__dict_commit_remove(const SXE_DICT *dict, uint32_t shard, uint32_t id);

/* Change 8 bytes of a version in place, its value or its expiry, and its checksum: `difference` is
 * the checksum before XOR after. A death in here may leave new bytes with the old checksum, which
 * the next owner of the lock mends. */
void sxe__dict_change(const SXE_DICT *dict, uint32_t shard, uint32_t id, uint64_t *place,
                      uint64_t value, uint32_t difference);

/* For a rebuild, which completes no other change: if all users died while one of them changed a
 * version in place, give that version its new checksum, unless the old one fits. */
void sxe__dict_settle_change(const SXE_DICT *dict, uint32_t shard);

/* Do the changes that a batch has staged in a shard, if the batch was committed; then forget them.
 * Returns 0. */
int sxe__dict_apply_staged(const SXE_DICT *dict, uint32_t shard);

/* The state that a new version gets: that of the entry that was found, or LIVE. */
uint32_t sxe__dict_state_after(const SXE_DICT *dict, int found, const struct sxe__dict_view *old);

/* Put an entry in, in place of the entry with the same key. 0; -ENOSPC; -EFBIG; -EAGAIN: room is
 * being made. */
int sxe__dict_put(const SXE_DICT *dict, struct sxe__dict_put *put);

/* ---- Room ---- */

uint32_t sxe__dict_free_cells(const SXE_DICT *dict, uint32_t shard);

/* Free some cells of a shard, but not those of the entry `keep`. 1: some were freed; 0: none can
 * be; -EAGAIN: the budget is used up, and the next call goes on. */
int sxe__dict_make_room(const SXE_DICT *dict, uint32_t shard, uint32_t keep, uint32_t *budget);

/* Note in the shard's record that an entry will expire at expires_ns. Call it before the entry gets
 * that expiry. */
void sxe__dict_note_expiry(const SXE_DICT *dict, uint32_t shard, uint64_t expires_ns);

/* ---- Snapshots ---- */

/* Whether the snapshot has not been ended. Ask under the lock of the shard that is read: then what
 * the snapshot sees there is not freed. */
bool sxe__dict_is_active(const struct sxe_dict_snapshot *snapshot);

/* How many snapshots have ended, including those that a process died while taking. Call it under
 * the lock of a shard, so that no snapshot begins meanwhile. The number never falls. */
uint64_t sxe__dict_ended(const SXE_DICT *dict);

/* End the snapshot in a slot, if it still has that epoch. */
void sxe__dict_end_snapshot(const SXE_DICT *dict, uint32_t slot, uint64_t epoch);

/* End the snapshots of dead processes or, if there are none, the oldest snapshot. False: there is
 * no snapshot. */
bool sxe__dict_end_oldest(const SXE_DICT *dict);

/* End the snapshots of dead processes. Returns whether there were any. */
bool sxe__dict_end_dead(const SXE_DICT *dict);

/* Look at up to *steps OLD cells of a shard, and free those that no snapshot sees. Returns how many
 * were freed, or -EUCLEAN; *steps becomes the number of steps left: not 0 when all cells were
 * looked at. */
int64_t sxe__dict_sweep(const SXE_DICT *dict, uint32_t shard, uint32_t *steps);

/* ---- As a whole ---- */

/* Write a sentence to why, unless it is NULL. Returns -error; error is a positive errno. */
int sxe__dict_refuse(char *why, int error, const char *format, ...) SXE_PRINTF(3, 4);

/* Rebuild the table from the whole cells; under the locks of all shards. 0 or -ENOMEM. */
int sxe__dict_rebuild(SXE_DICT *dict);

#endif
