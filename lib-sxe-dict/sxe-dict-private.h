/* SPDX-License-Identifier: MIT
 *
 * What: what the files of lib-sxe-dict share: the layout of cells and of the control block, and the
 * steps that calls are made of.
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
 * All links are a cell's id + 1, 0 being none, so that zeroed memory is an empty table. A chain has
 * the current version of each key of its bucket and the OLD ones that snapshots may see.
 *
 * How a put survives a death: the new version is written into cells that stay FREE, which nobody
 * else takes while the lock is held. One store, record.pending = its link, commits. The steps after
 * it (link it, move its cells to their states, retire the old version, pending = 0) may be repeated
 * from the beginning, by any later owner of the lock: cells that became FREE are not written to
 * before pending is 0. A removal is the same with record.doomed; in a batch the places are
 * staged_puts and staged_removes of each shard, and count if control.committed says so.
 *
 * How snapshots see: control.epoch grows by one with each, under the locks of all shards. A version
 * is born and dies in an epoch; snapshot s sees it if born <= s < died. A replaced or removed
 * version stays, OLD, if an active snapshot s has born <= s: it dies in this epoch, and this epoch
 * is above every s. It may go when no active snapshot has born <= s < died. That only ever becomes
 * true and never false again, since snapshots end but none begins in an epoch of the past.
 *
 * How room of OLD versions comes back: a shard is swept when a snapshot has ended since its last
 * sweep began (record.swept). The number of snapshots that have ended is not kept anywhere, because
 * a process may die between ending one and counting it: it follows from the epoch, which grew by
 * one with each, and the slots of those that are active (sxe__dict_ended).
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
    SXE__DICT_MORE = SXE_DICT_DIRTY + 1, /* the value of another cell goes on here */
    SXE__DICT_OLD,                       /* only snapshots see it */
    SXE__DICT_STATES
};

struct sxe__dict_cell {
    uint64_t hash;
    uint64_t expires_ns; /* of the pool's time; 0: never */
    uint64_t born;       /* epoch */
    uint64_t died;       /* 0: not yet */
    uint32_t chain;      /* the bucket's next cell, as a link: id + 1; 0: none */
    uint32_t more;       /* link to the cell where the value goes on */
    uint32_t replaces;   /* of a pending version: link to the version that it replaces */
    uint32_t next;       /* of a pending version: link to the next staged change */
    uint32_t value_size;
    uint16_t key_size;
    uint8_t state; /* of a pending or OLD version: the state of its entry */
    uint8_t reserved;
    uint32_t sum; /* of the value's bytes, and of what sxe__dict_head_sum covers */
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
    uint64_t swept;          /* sxe__dict_ended() when the last look through OLD began */
    uint64_t next_expiry;    /* nothing expires earlier; 0: nothing expires */
    uint64_t round_expiry;   /* next_expiry of the cells that this round has passed */
    uint32_t round_at;       /* the cell of the shard that the round comes to next; 0: no round */
    uint32_t sweep_left;     /* OLD cells still to be looked at */
    uint32_t changed;        /* link to a version that is being changed in place */
    uint32_t changed_sum;    /* the sum that this version gets */
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
    uint64_t epoch; /* what the snapshot sees; 0: no snapshot */
    uint64_t time_ns;
    uint32_t token; /* of the process that took the slot */
    uint32_t filler;
};

struct sxe__dict_control {
    uint64_t magic; /* written last */
    uint64_t hash_key[2];
    uint64_t epoch;  /* of what is written now; begins at 1 */
    uint64_t newest; /* the greatest epoch that any snapshot had */
    uint64_t reserved;
    uint64_t committed; /* the serial of the last batch that was committed */
    uint32_t batch;     /* the lock of the process that commits a batch */
    uint32_t evicts;
    struct sxe__dict_slot slots[SXE_DICT_SNAPSHOTS];
    uint32_t doubtful; /* 1: damaged, or not checked since it may be */
    uint8_t filler[60];
};
_Static_assert(sizeof(struct sxe__dict_control) == 512, "the layout is version 2's");

/* A dict as one process sees it: values that it has checked, and trusts. */
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
    bool verifies; /* values that are read are compared with their sums */
};

struct sxe_dict_snapshot {
    SXE_DICT *dict;
    uint64_t epoch;
    uint64_t time_ns;
    uint32_t slot;
    uint32_t token; /* of the process that took it */
};

/* A key and its place. */
struct sxe__dict_key {
    const void *bytes;
    size_t size;
    uint64_t hash;
    uint32_t shard;
};

/* A cell's head, read once and found possible. */
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

/* Whether a change of a shard is not complete. Under the shard's lock: a dead process began it. */
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

/* The cells of a shard: how many, and the nth. */
uint32_t sxe__dict_capacity(const SXE_DICT *dict, uint32_t shard);
uint32_t sxe__dict_nth(const SXE_DICT *dict, uint32_t shard, uint32_t nth);

/* ---- Keys ---- */

uint64_t sxe__dict_hash(const uint64_t key[2], const void *bytes, size_t size);

/* 0 or -EINVAL: too long. */
int sxe__dict_set_key(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes,
                      size_t size);

/* When an entry with that time to live expires; false: no valid time. */
bool sxe__dict_expiry(const SXE_DICT *dict, double ttl_s, uint64_t *expires_ns);
double sxe__dict_ttl(const SXE_DICT *dict, uint64_t expires_ns);

/* ---- Cells: under the lock of their shard. -EUCLEAN: damaged, and noted ---- */

uint32_t sxe__dict_cells_for(const SXE_DICT *dict, size_t key_size, size_t value_size);
int sxe__dict_read(const SXE_DICT *dict, uint32_t shard, uint32_t id, struct sxe__dict_view *view);

/* 1: that cell is in the chain of its hash, and *link leads to it; 0: it is not. */
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

/* 1: key, value, sizes and expiry are those that were written; 0: they are not. */
int sxe__dict_is_sound(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* 0; -EUCLEAN: the dict verifies what it reads, and this version is not sound. */
static inline int
sxe__dict_verify(const SXE_DICT *dict, const struct sxe__dict_view *view)
{
    return SXE_LIKELY(!dict->verifies) || sxe__dict_is_sound(dict, view) == 1
               ? 0
               : sxe__dict_damaged(dict);
}

/* The two parts of a version's sum, which is their XOR: one part can be changed without reading the
 * other, and a bit that flipped in the other before is still found later. The head's part includes
 * the hash of the key and the cell's generation: a page of the file that is older than the others
 * has an older generation, and is found, too. */
uint32_t sxe__dict_head_sum(const SXE_DICT *dict, const struct sxe__dict_view *view);
uint32_t sxe__dict_value_sum(const char *value, size_t size);

/* The place of an entry's 8 bytes of value; NULL: damaged. */
uint64_t *sxe__dict_counter(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* Write a version into FREE cells from *cursor on (set it to the FREE list's oldest), which moves
 * past them. Returns its first cell, or -EUCLEAN. */
int64_t sxe__dict_fill(const SXE_DICT *dict, const struct sxe__dict_put *put, uint32_t *cursor);

/* ---- Changes: under the lock of their shard ---- */

/* Lock a shard, and complete what is pending there. 0; -EAGAIN; -EUCLEAN. The second function may
 * sleep for all the time that its call has left: do not call it while another lock is held. */
int sxe__dict_lock(const SXE_DICT *dict, uint32_t shard);
int sxe__dict_lock_patiently(const SXE_DICT *dict, uint32_t shard,
                             struct sxe__pool_patience *patience);
void sxe__dict_unlock(const SXE_DICT *dict, uint32_t shard);

/* Lock a shard for the next slice of a call that has had the lock before. If other processes want
 * the lock, leave it free until one of them has taken it, or for SXE__POOL_NAPS naps: a process
 * that sleeps between its tries would otherwise never find it free. 0; -EAGAIN; -EUCLEAN. */
int sxe__dict_lock_next_slice(const SXE_DICT *dict, uint32_t shard);

/* Lock all shards, in ascending order, or none. 0; -EAGAIN; -EUCLEAN. */
int sxe__dict_lock_all(const SXE_DICT *dict);
void sxe__dict_unlock_all(const SXE_DICT *dict);

/* Whether an active snapshot sees that version. */
bool sxe__dict_is_seen(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* Put a filled version into the table; take a version out, which becomes OLD if a snapshot sees it.
 * 0. */
int sxe__dict_commit_put(const SXE_DICT *dict, uint32_t shard, uint32_t id);
int sxe__dict_commit_remove(const SXE_DICT *dict, uint32_t shard, uint32_t id);

/* Change 8 bytes of a version in place, its value or its expiry, and its sum: `difference` is the
 * sum before XOR after. A death in here may leave new bytes with the old sum, which the next owner
 * of the lock mends. */
void sxe__dict_change(const SXE_DICT *dict, uint32_t shard, uint32_t id, uint64_t *place,
                      uint64_t value, uint32_t difference);

/* For a rebuild, which completes nothing else: give a version that was being changed when all users
 * died its new sum, if the old one does not match. */
void sxe__dict_settle_change(const SXE_DICT *dict, uint32_t shard);

/* Do what a batch has staged in a shard, if it was committed; then forget it. 0. */
int sxe__dict_apply_staged(const SXE_DICT *dict, uint32_t shard);

/* The state that a new version gets: that of the entry that was found, or LIVE. */
uint32_t sxe__dict_state_after(const SXE_DICT *dict, int found, const struct sxe__dict_view *old);

/* Put one entry in, replacing the one with its key. 0; -ENOSPC; -EFBIG; -EAGAIN: room is being
 * made. */
int sxe__dict_put(const SXE_DICT *dict, struct sxe__dict_put *put);

/* ---- Room ---- */

uint32_t sxe__dict_free_cells(const SXE_DICT *dict, uint32_t shard);

/* Free some cells of a shard, but not of `keep`. 1: some are; 0: there are none to be had; -EAGAIN:
 * the budget is used up, look on with the next call. */
int sxe__dict_make_room(const SXE_DICT *dict, uint32_t shard, uint32_t keep, uint32_t *budget);

/* Before an entry is given that expiry: note it in its shard. */
void sxe__dict_note_expiry(const SXE_DICT *dict, uint32_t shard, uint64_t expires_ns);

/* ---- Snapshots ---- */

/* Whether the snapshot was not ended, and so still sees what it saw; asked under the lock of the
 * shard that is looked at. */
bool sxe__dict_is_active(const struct sxe_dict_snapshot *snapshot);

/* How many snapshots have ended, with those that a dead process did not finish taking. Asked under
 * the lock of a shard, so that none begins meanwhile; the number never falls. */
uint64_t sxe__dict_ended(const SXE_DICT *dict);

/* End the snapshot in a slot, if it still has that epoch. */
void sxe__dict_end_snapshot(const SXE_DICT *dict, uint32_t slot, uint64_t epoch);

/* End the oldest snapshot, those of the dead before any other. False: there is none. */
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
