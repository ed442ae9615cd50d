/* SPDX-License-Identifier: MIT
 *
 * What: the declarations that the files of lib-sxe-dict share: the layout of cells and of the
 * control block, and the steps that the public calls are made of.
 * Place: included by lib-sxe-dict/sxe-dict*.c and by tests that look inside; not installed. In
 * reading order:
 *
 *     sxe-dict-hash.c       hashes a key: SipHash-1-3
 *     sxe-dict-cell.c       finds, copies and fills cells; writes to FREE cells only
 *     sxe-dict-change.c     the lock of a shard; everything that changes the table
 *     sxe-dict-room.c       makes room: evicts, expires, ends snapshots
 *     sxe-dict.c            the calls on one entry
 *     sxe-dict-walker.c     walks over all entries
 *     sxe-dict-snapshot.c   snapshots
 *     sxe-dict-batch.c      batches
 *     sxe-dict-check.c      checks every invariant; rebuilds the table from its cells
 *     sxe-dict-stats.c      reports the counts, and how long the chains are
 *     sxe-dict-open.c       opens and closes a dict
 *     sxe-dict-copy.c       backup, restore, resize: makes another file, then renames it
 *
 * Shape: a dict is a pool with several shards, and each shard has a lock. The pool's elements are
 * cells. A *version* is one value of one key: a put makes a new version, and the value is in the
 * version's first cell and, if it is long, in further ones. The pool's extra bytes, which are zero
 * when the file is made, hold:
 *
 *     control   one block: the hash's key, the epoch, the snapshots
 *     record    one for each shard, 64 bytes: the change in progress
 *     counts    one for each shard, 64 bytes: hits, misses, evictions, expirations
 *     bucket    a power of 2 of links for each shard: the heads of the chains
 *
 * A link is a cell's id + 1, or 0 for none, so zeroed memory is an empty table. A chain links the
 * versions whose keys hash to the same bucket: the current version of each key, and OLD versions
 * that snapshots may still read.
 *
 * How a put survives the death of its process, in three steps under the shard's lock:
 *   1. Write the new version into FREE cells. Their state stays FREE, so after a death here nothing
 *      has changed.
 *   2. Commit, by one store: record.pending = the version's link.
 *   3. Link the version into its chain, move its cells to their states, retire the version that it
 *      replaces, and store pending = 0. After a death here the next owner of the lock finds pending
 *      set, and does all of step 3 again.
 * Step 3 may be repeated because no call writes to a cell that became FREE before pending is 0. A
 * removal works likewise, with record.doomed. A batch stages its changes in several shards
 * (staged_puts, staged_removes) and commits them together, by storing its serial number in
 * control.committed: a shard's staged changes count if its record.staged equals that number.
 *
 * How a snapshot sees the past: control.epoch counts snapshots. Each new snapshot takes the present
 * epoch as its own and raises control.epoch by one, under the locks of all shards. A version notes
 * the epoch in which it was born, and the one in which it died, that is, was replaced or removed.
 * The snapshot of epoch s reads the versions with born <= s < died. A version that dies becomes OLD
 * if an active snapshot reads it, otherwise FREE. An OLD version that no active snapshot reads can
 * be freed: no later snapshot will read it, because each new one has a higher epoch.
 *
 * How OLD versions are freed: after a snapshot has ended, each shard is swept, which looks at all
 * its OLD cells. record.swept is the number of ended snapshots when the shard's last sweep began; a
 * greater number now means that a sweep is due. sxe__dict_ended computes the number of ended
 * snapshots: all that were ever taken (the epoch counts them) minus those that are active. The
 * number is computed and not stored, because a process may die between ending a snapshot and
 * counting it.
 */
#ifndef SXE_DICT_PRIVATE_H
#define SXE_DICT_PRIVATE_H

#include <errno.h>
#include <string.h>

#include "sxe-dict-internal.h"
#include "sxe-dict.h"
#include "sxe-pool-internal.h"

#define SXE__DICT_MAGIC     UINT64_C(0x3254434944455853) /* "SXEDICT2" */
#define SXE__DICT_HEAD_SIZE 64u                          /* bytes of a cell's head */
#define SXE__DICT_KEY_MAX   65472u
#define SXE__DICT_VALUE_MAX INT32_MAX

enum {
    SXE__DICT_FREE,
    SXE__DICT_MORE = SXE_DICT_DIRTY + 1, /* the cell continues the value of another cell */
    /* the version is no longer current: only snapshots read it */
    SXE__DICT_OLD,
    SXE__DICT_STATES
};

struct sxe__dict_cell {
    uint64_t hash;
    uint64_t expires_ns; /* a time of the pool's clock; 0: never */
    uint64_t born;       /* the epoch in which the version was put */
    /* the epoch in which the version was replaced or removed; 0: it was neither */
    uint64_t died;
    uint32_t chain;    /* the bucket's next cell, as a link: id + 1; 0: this is the last cell */
    uint32_t more;     /* link to the cell that continues the value */
    uint32_t replaces; /* if the version is pending: link to the version that it replaces */
    uint32_t next;     /* if the version is staged by a batch: link to the next staged one */
    uint32_t value_size;
    uint16_t key_size;
    uint8_t state; /* if the version is pending or OLD: the state of its entry */
    uint8_t reserved;
    uint32_t sum; /* checksum of the value and of the fields that sxe__dict_head_sum covers */
    uint32_t reserved_2;
    char data[]; /* the key, then the value, at the next multiple of 8 */
};
_Static_assert(sizeof(struct sxe__dict_cell) == SXE__DICT_HEAD_SIZE, "the layout is version 2's");

/* The change in progress in a shard. Written under the shard's lock. */
struct sxe__dict_record {
    uint32_t pending;        /* link to a new version that is being put in; 0: there is none */
    uint32_t doomed;         /* link to a version that is being taken out; 0: there is none */
    uint32_t staged_puts;    /* the new versions of a batch, linked by `next` */
    uint32_t staged_removes; /* the versions that a batch removes, linked by `next` */
    /* the serial number of the batch that staged them; 0: nothing is staged */
    uint64_t staged;
    uint64_t swept; /* what sxe__dict_ended() was when the last sweep of OLD cells began */
    /* no entry of the shard expires before this time; 0: no entry expires */
    uint64_t next_expiry;
    uint64_t round_expiry; /* the earliest expiry among the cells below round_at */
    /* the cell at which the search for expired entries goes on; 0: no search is in progress */
    uint32_t round_at;
    uint32_t sweep_left;  /* OLD cells that this sweep still has to look at */
    uint32_t changed;     /* link to a version that is being changed in place */
    uint32_t changed_sum; /* the checksum that the version `changed` gets */
};
_Static_assert(sizeof(struct sxe__dict_record) == 64, "the layout is version 2's");

/* The counts of a shard since the dict was made. A process changes them under the shard's lock, by
 * a plain load and a store, so that a get need not wait for other processors. If a process is
 * killed between a read and its count, the read is not counted; nothing depends on the counts.
 * is_wanted is stored without the lock, so it may be out of date: it is only a hint. */
struct sxe__dict_counts {
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
    uint64_t expirations;
    uint64_t is_wanted; /* 1: a process waits for the lock, and no process has taken it since */
    uint64_t reserved[3];
};
_Static_assert(sizeof(struct sxe__dict_counts) == 64, "the layout is version 2's");

struct sxe__dict_slot {
    uint64_t epoch; /* the epoch of the snapshot; 0: the slot is free */
    uint64_t time_ns;
    uint32_t token; /* the token of the process that took the slot */
    uint32_t filler;
};

struct sxe__dict_control {
    uint64_t magic; /* SXE__DICT_MAGIC; written last, when the table is complete */
    uint64_t hash_key[2];
    uint64_t epoch;  /* the present epoch; the first is 1 */
    uint64_t newest; /* the epoch of the latest snapshot */
    uint64_t reserved;
    uint64_t committed; /* the serial number of the last batch that was committed */
    uint32_t batch;     /* the lock of the process that commits a batch */
    uint32_t evicts;
    struct sxe__dict_slot slots[SXE_DICT_SNAPSHOTS];
    uint32_t doubtful; /* 1: damage was seen, and the dict was not checked since */
    uint8_t filler[60];
};
_Static_assert(sizeof(struct sxe__dict_control) == 512, "the layout is version 2's");

/* A dict as one process has it open. The sizes are private copies, checked at opening: another
 * process cannot change them. */
struct sxe_dict {
    void *array;
    const struct sxe__pool_header *pool;
    struct sxe__pool_sharing *sharing;
    struct sxe__dict_control *control;
    struct sxe__dict_record *records;
    struct sxe__dict_counts *counts;
    uint32_t *buckets;
    uint64_t hash_key[2];
    uint32_t number;    /* how many cells */
    uint32_t cell_size; /* bytes of a cell */
    uint32_t room;      /* how many bytes of key and value a cell holds */
    uint32_t shards;
    uint32_t shard_bits;
    uint32_t bucket_mask; /* the number of buckets of one shard, less 1 */
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

/* A key, and the place of its entry: the shard and the bucket. */
struct sxe__dict_key {
    const void *bytes;
    size_t size;
    uint64_t hash;
    uint32_t shard;
};

/* A copy of the head of a version's first cell. The sizes in it were checked: they fit the dict. */
struct sxe__dict_view {
    uint32_t id;
    uint32_t cells; /* how many cells the version takes */
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
    uint32_t replaces; /* link to the version that this one replaces; 0: it replaces none */
    uint32_t next;
};

#define SXE__DICT_BUDGET 1024u /* the most cells that one call looks at to find room */

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

/* Add 1 to a count. The caller holds the lock of the count's shard; processes that read counts have
 * no lock. */
static inline void
sxe__dict_count(uint64_t *count)
{
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* capacity: how many cells a shard has; nth: the id of its nth cell. */
uint32_t sxe__dict_capacity(const SXE_DICT *dict, uint32_t shard);
uint32_t sxe__dict_nth(const SXE_DICT *dict, uint32_t shard, uint32_t nth);

/* ---- Keys ---- */

uint64_t sxe__dict_hash(const uint64_t key[2], const void *bytes, size_t size);

/* Fill in the key, its hash and its place. 0; -EINVAL: the key is too long. */
int sxe__dict_set_key(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes,
                      size_t size);

/* Compute when an entry with this time to live expires. False: ttl_s is negative or no number. */
bool sxe__dict_expiry(const SXE_DICT *dict, double ttl_s, uint64_t *expires_ns);
double sxe__dict_ttl(const SXE_DICT *dict, uint64_t expires_ns);

/* ---- Cells: under their shard's lock. -EUCLEAN: a cell is damaged, and that was noted ---- */

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

/* Copy up to `size` bytes of the key or of the value to the caller's memory. The second function
 * returns 0 or -EUCLEAN. */
void sxe__dict_copy_key(const SXE_DICT *dict, const struct sxe__dict_view *view, void *key,
                        size_t size);
int sxe__dict_copy_value(const SXE_DICT *dict, const struct sxe__dict_view *view, void *value,
                         size_t size);

/* 1: the value equals `expected`; 0: it does not. */
int sxe__dict_compare(const SXE_DICT *dict, const struct sxe__dict_view *view, const void *expected,
                      size_t size);

/* 1: key, value, sizes and expiry fit the checksum; 0: they do not. */
int sxe__dict_is_sound(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* Check a version before it is used. 0; -EUCLEAN: the dict verifies, and this version does not fit
 * its checksum. */
static inline int
sxe__dict_verify(const SXE_DICT *dict, const struct sxe__dict_view *view)
{
    return SXE_LIKELY(!dict->verifies) || sxe__dict_is_sound(dict, view) == 1
               ? 0
               : sxe__dict_damaged(dict);
}

/* The two parts of a version's checksum, which is their XOR. After a change of one part only that
 * part is computed again, and a flipped bit in the other part is still found. The head's part also
 * covers the key's hash and the cell's generation. So a page of the file that is older than the
 * other pages, as after a crash of the machine, is found by its older generations. */
uint32_t sxe__dict_head_sum(const SXE_DICT *dict, const struct sxe__dict_view *view);
uint32_t sxe__dict_value_sum(const char *value, size_t size);

/* Where a counter's value of 8 bytes is; NULL: damaged. */
uint64_t *sxe__dict_counter(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* Write a version into FREE cells. *cursor is the first FREE cell to use, at first the oldest one,
 * and is moved past the cells that were used. Returns the version's first cell, or -EUCLEAN. */
int64_t sxe__dict_fill(const SXE_DICT *dict, const struct sxe__dict_put *put, uint32_t *cursor);

/* ---- Changes: under the lock of their shard ---- */

/* Lock a shard, and complete the change that a dead process left there. 0; -EAGAIN: other processes
 * held the lock for too long; -EUCLEAN: the dict is damaged. sxe__dict_lock_patiently may sleep for
 * all the time that `patience` has left: do not call it while another lock is held. */
int sxe__dict_lock(const SXE_DICT *dict, uint32_t shard);
int sxe__dict_lock_patiently(const SXE_DICT *dict, uint32_t shard,
                             struct sxe__pool_patience *patience);
void sxe__dict_unlock(const SXE_DICT *dict, uint32_t shard);

/* Lock a shard again, for a call that works in slices and unlocks between them. If other processes
 * want the lock, first wait until one of them has taken it, or for SXE__POOL_NAPS naps at most:
 * they sleep between their tries, and would otherwise never find the lock free. 0; -EAGAIN;
 * -EUCLEAN. */
int sxe__dict_lock_next_slice(const SXE_DICT *dict, uint32_t shard);

/* Lock all shards, in ascending order, or none. 0; -EAGAIN; -EUCLEAN. */
int sxe__dict_lock_all(const SXE_DICT *dict);
void sxe__dict_unlock_all(const SXE_DICT *dict);

/* Whether an active snapshot reads that version. */
bool sxe__dict_is_seen(const SXE_DICT *dict, const struct sxe__dict_view *view);

/* Put a version, whose cells are filled, into the table; or take a version out of it. A version
 * that was taken out or replaced becomes OLD if a snapshot reads it, otherwise FREE. Both return
 * 0. */
int sxe__dict_commit_put(const SXE_DICT *dict, uint32_t shard, uint32_t id);
int sxe__dict_commit_remove(const SXE_DICT *dict, uint32_t shard, uint32_t id);

/* Change 8 bytes of a version in place, its value or its expiry, and its checksum: `difference` is
 * the old checksum XOR the new one. If the process dies in this function, the new bytes may have
 * the old checksum; the next owner of the lock corrects it. */
void sxe__dict_change(const SXE_DICT *dict, uint32_t shard, uint32_t id, uint64_t *place,
                      uint64_t value, uint32_t difference);

/* If a process died in sxe__dict_change, give the version its new checksum, unless the old one
 * fits. Only a rebuild calls this; other calls complete such a change when they lock the shard. */
void sxe__dict_settle_change(const SXE_DICT *dict, uint32_t shard);

/* Do the changes that a batch has staged in a shard, if the batch was committed; then forget them.
 * Returns 0. */
int sxe__dict_apply_staged(const SXE_DICT *dict, uint32_t shard);

/* The state that a new version gets: LIVE, or the state of the entry that it replaces. `found` is
 * the result of sxe__dict_find. */
uint32_t sxe__dict_state_after(const SXE_DICT *dict, int found, const struct sxe__dict_view *old);

/* Put an entry into the table; it replaces the entry with the same key. 0; -ENOSPC; -EFBIG;
 * -EAGAIN: room is being made. */
int sxe__dict_put(const SXE_DICT *dict, struct sxe__dict_put *put);

/* ---- Room ---- */

uint32_t sxe__dict_free_cells(const SXE_DICT *dict, uint32_t shard);

/* Free some cells of a shard, but not those of the entry `keep`. *budget is the number of cells
 * that may still be looked at. 1: some were freed; 0: none can be freed; -EAGAIN: the budget is
 * used up, and the next call goes on from here. */
int sxe__dict_make_room(const SXE_DICT *dict, uint32_t shard, uint32_t keep, uint32_t *budget);

/* Note in the shard's record that an entry will expire at expires_ns. Call it before the entry gets
 * that expiry. */
void sxe__dict_note_expiry(const SXE_DICT *dict, uint32_t shard, uint64_t expires_ns);

/* ---- Snapshots ---- */

/* Whether the snapshot is active: no process has ended it. A caller that reads a shard asks under
 * that shard's lock: while it holds the lock, no version that the snapshot reads is freed there. */
bool sxe__dict_is_active(const struct sxe_dict_snapshot *snapshot);

/* How many snapshots have ended. A snapshot that was being taken when its process died counts as
 * ended. Call this under the lock of a shard, so that no snapshot begins meanwhile. The number
 * never falls. */
uint64_t sxe__dict_ended(const SXE_DICT *dict);

/* End the snapshot in a slot, if the slot still has that epoch. */
void sxe__dict_end_snapshot(const SXE_DICT *dict, uint32_t slot, uint64_t epoch);

/* End the snapshots of dead processes or, if there are none, the oldest snapshot. False: there is
 * no snapshot. */
bool sxe__dict_end_oldest(const SXE_DICT *dict);

/* End the snapshots of dead processes. Returns whether there were any. */
bool sxe__dict_end_dead(const SXE_DICT *dict);

/* Look at up to *steps OLD cells of a shard, and free those that no snapshot sees. Returns how many
 * were freed, or -EUCLEAN. *steps becomes the number of steps left, which is above 0 only if all
 * cells were looked at. */
int64_t sxe__dict_sweep(const SXE_DICT *dict, uint32_t shard, uint32_t *steps);

/* ---- As a whole ---- */

/* Write a sentence to why, unless it is NULL. Returns -error; error is a positive errno. */
int sxe__dict_refuse(char *why, int error, const char *format, ...) SXE_PRINTF(3, 4);

/* Rebuild the table from the whole cells; under the locks of all shards. 0 or -ENOMEM. */
int sxe__dict_rebuild(SXE_DICT *dict);

#endif
