/* SPDX-License-Identifier: MIT
 *
 * Batches: notes in this process's memory, then one commit.
 *
 *     lock `batch` -> make or drop what the dead have staged -> lock the shards, ascending
 *     -> all conditions hold -> make room
 *     -> fill cells, chain them (staged_puts, staged_removes), staged = serial
 *     -> committed = serial       from here on the batch will be done, even if this process dies
 *     -> apply shard by shard -> unlock all
 *
 * A process that holds a shard's lock and finds staged changes there knows that the process that
 * staged them is dead. It makes these changes if their serial number is control.committed, and
 * drops them otherwise. So all staged changes of one batch must be made or dropped before the next
 * batch is committed.
 */
#include "sxe-dict-private.h"

#include <stdlib.h>

struct note {
    struct sxe__dict_key key;
    size_t size;
    uint64_t expires_ns;
    bool removes;
    bool expects;   /* the note is a condition, not a change */
    bool is_absent; /* the condition: the key has no entry */
    char *bytes;    /* the bytes of the key, then those of the value */
};

struct sxe_dict_batch {
    SXE_DICT *dict;
    unsigned number;
    struct note notes[SXE_DICT_BATCH_MAX];
};

/* ---- Notes ---- */

SXE_DICT_BATCH *
sxe_dict_batch_new(SXE_DICT *dict)
{
    SXE_DICT_BATCH *batch = calloc(1, sizeof(*batch));

    if (batch != NULL)
        batch->dict = dict;
    return batch;
}

/* Empty the batch. A free note must have bytes NULL, because note_change frees the bytes of the
 * note that it fills. */
static void
clear_batch(SXE_DICT_BATCH *batch)
{
    while (batch->number > 0) {
        struct note *note = &batch->notes[--batch->number];

        free(note->bytes);
        note->bytes = NULL;
    }
}

void
sxe_dict_batch_delete(SXE_DICT_BATCH *batch)
{
    if (batch != NULL)
        clear_batch(batch);
    free(batch);
}

static bool
is_same_note(const struct note *note, const struct note *other)
{
    return note->key.hash == other->key.hash && note->key.size == other->key.size &&
           note->expects == other->expects &&
           memcmp(note->key.bytes, other->key.bytes, note->key.size) == 0;
}

/* The batch's note of the same kind on the same key, or the next free note. */
static struct note *
note_of(SXE_DICT_BATCH *batch, const struct note *what)
{
    unsigned i = 0;

    while (i < batch->number && !is_same_note(&batch->notes[i], what))
        i++;
    return i < SXE_DICT_BATCH_MAX ? &batch->notes[i] : NULL;
}

static int
note_change(SXE_DICT_BATCH *batch, const struct note *what, const void *value)
{
    struct note *note = note_of(batch, what);
    char *bytes;

    if (note == NULL)
        return -E2BIG;
    bytes = malloc(what->key.size + what->size + 1);
    if (bytes == NULL)
        return -ENOMEM;
    memcpy(bytes, what->key.bytes, what->key.size);
    if (what->size != 0)
        memcpy(bytes + what->key.size, value, what->size);
    if (note == &batch->notes[batch->number])
        batch->number++;
    free(note->bytes);
    *note = *what;
    note->bytes = bytes;
    note->key.bytes = bytes;
    return 0;
}

int
sxe_dict_batch_put(SXE_DICT_BATCH *batch, const void *key, size_t key_size, const void *value,
                   size_t size, double ttl_s)
{
    struct note note = {.size = size};

    if (sxe__dict_set_key(batch->dict, &note.key, key, key_size) < 0 ||
        !sxe__dict_expiry(batch->dict, ttl_s, &note.expires_ns))
        return -EINVAL;
    return size > SXE__DICT_VALUE_MAX ? -EFBIG : note_change(batch, &note, value);
}

int
sxe_dict_batch_remove(SXE_DICT_BATCH *batch, const void *key, size_t key_size)
{
    struct note note = {.removes = true};

    if (sxe__dict_set_key(batch->dict, &note.key, key, key_size) < 0)
        return -EINVAL;
    return note_change(batch, &note, NULL);
}

int
sxe_dict_batch_expect(SXE_DICT_BATCH *batch, const void *key, size_t key_size, const void *expected,
                      size_t expected_size)
{
    struct note note = {.expects = true,
                        .is_absent = expected == NULL,
                        .size = expected == NULL ? 0 : expected_size};

    if (sxe__dict_set_key(batch->dict, &note.key, key, key_size) < 0)
        return -EINVAL;
    return note.size > SXE__DICT_VALUE_MAX ? -EFBIG : note_change(batch, &note, expected);
}

/* ---- Locks ---- */

/* The shards of the batch's notes, one bit each. of_changes: only the shards with changes, without
 * those that only have conditions. */
static uint64_t
shards_of(const SXE_DICT_BATCH *batch, bool of_changes)
{
    uint64_t shards = 0;

    for (unsigned i = 0; i < batch->number; i++) {
        if (!of_changes || !batch->notes[i].expects)
            shards |= UINT64_C(1) << batch->notes[i].key.shard;
    }
    return shards;
}

static void
unlock_shards(const SXE_DICT *dict, uint64_t shards)
{
    for (; shards != 0; shards &= shards - 1)
        sxe__dict_unlock(dict, (uint32_t)__builtin_ctzll(shards));
}

static int
lock_shards(const SXE_DICT *dict, uint64_t shards)
{
    uint64_t locked = 0;

    for (uint64_t left = shards; left != 0; left &= left - 1) {
        const int result = sxe__dict_lock(dict, (uint32_t)__builtin_ctzll(left));

        if (result < 0) {
            unlock_shards(dict, locked);
            return result;
        }
        locked |= left & -left;
    }
    return 0;
}

/* Commit or drop the changes that dead processes staged, by locking each shard. */
static int
settle_dict(const SXE_DICT *dict)
{
    for (uint32_t shard = 0; shard < dict->shards; shard++) {
        if (SXE__POOL_GET(dict->records[shard].staged) == 0)
            continue;
        const int locked = sxe__dict_lock(dict, shard);
        if (locked < 0)
            return locked;
        sxe__dict_unlock(dict, shard);
    }
    return 0;
}

/* ---- Commit ---- */

/* Check one condition. 0: it holds; -EEXIST: it does not. */
static int
check_note(const SXE_DICT *dict, const struct note *note)
{
    struct sxe__dict_view view;
    int holds = sxe__dict_find(dict, &note->key, 0, &view);

    if (holds == 1 && sxe__dict_verify(dict, &view) < 0)
        return -EUCLEAN;
    if (holds == 1 && sxe__dict_is_expired(dict, view.expires_ns))
        holds = 0;
    if (note->is_absent && holds >= 0)
        holds = holds == 0;
    else if (holds == 1)
        holds = sxe__dict_compare(dict, &view, note->bytes + note->key.size, note->size);
    if (holds < 0)
        return holds;
    return holds == 1 ? 0 : -EEXIST;
}

/* Check all conditions. The caller holds the locks of all shards that the batch has notes in. */
static int
check_notes(const SXE_DICT_BATCH *batch)
{
    int result = 0;

    for (unsigned i = 0; i < batch->number && result == 0; i++) {
        if (batch->notes[i].expects)
            result = check_note(batch->dict, &batch->notes[i]);
    }
    return result;
}

/* Make room for all new values in a shard; old values stay until the new ones are in. */
static int
make_value_room(const SXE_DICT_BATCH *batch, uint32_t shard)
{
    const SXE_DICT *dict = batch->dict;
    uint32_t budget = SXE__DICT_BUDGET;
    uint64_t cells = 1;

    for (unsigned i = 0; i < batch->number; i++) {
        const struct note *note = &batch->notes[i];

        if (!note->removes && !note->expects && note->key.shard == shard)
            cells += sxe__dict_cells_for(dict, note->key.size, note->size);
    }
    if (cells > sxe__dict_capacity(dict, shard))
        return -EFBIG;
    while (sxe__dict_free_cells(dict, shard) < cells) {
        const int room = sxe__dict_make_room(dict, shard, SXE_NONE, &budget);

        if (room <= 0)
            return room < 0 ? room : -ENOSPC;
    }
    return 0;
}

/* The chains of staged changes of one shard, while they are built. */
struct stage {
    uint32_t shard;
    uint32_t cursor;
    uint32_t puts;
    uint32_t removes;
};

static int
stage_note(const SXE_DICT *dict, struct stage *stage, const struct note *note)
{
    struct sxe__dict_view old;
    const int found = sxe__dict_find(dict, &note->key, 0, &old);

    if (found < 0)
        return found;
    if (note->removes) {
        if (found == 1) {
            SXE__POOL_PUT(sxe__dict_cell(dict, old.id)->next, stage->removes);
            stage->removes = old.id + 1;
        }
        return 0;
    }
    const struct sxe__dict_put put = {
        .key = &note->key,
        .value = note->bytes + note->key.size,
        .size = note->size,
        .expires_ns = note->expires_ns,
        .state = sxe__dict_state_after(dict, found, &old),
        .replaces = found == 1 ? old.id + 1 : 0,
        .next = stage->puts,
    };
    const int64_t id = sxe__dict_fill(dict, &put, &stage->cursor);
    if (id < 0)
        return (int)id;
    sxe__dict_note_expiry(dict, stage->shard, note->expires_ns);
    stage->puts = (uint32_t)id + 1;
    return 0;
}

static int
stage_shard(const SXE_DICT_BATCH *batch, uint32_t shard, uint64_t serial)
{
    const SXE_DICT *dict = batch->dict;
    struct sxe__dict_record *record = &dict->records[shard];
    struct stage stage = {
        .shard = shard,
        .cursor = SXE__POOL_GET(sxe__dict_list(dict, shard, SXE__DICT_FREE)->next),
    };

    for (unsigned i = 0; i < batch->number; i++) {
        const struct note *note = &batch->notes[i];

        if (note->key.shard == shard && !note->expects && stage_note(dict, &stage, note) < 0)
            return -EUCLEAN;
    }
    SXE__POOL_PUT(record->staged_puts, stage.puts);
    SXE__POOL_PUT(record->staged_removes, stage.removes);
    SXE__POOL_PUT_LAST(record->staged, serial);
    return 0;
}

/* The caller holds the locks of the shards. If the commit fails, drop what was staged now, so that
 * the next owner of each lock need not. */
static int
commit_locked(const SXE_DICT_BATCH *batch)
{
    const SXE_DICT *dict = batch->dict;
    const uint64_t shards = shards_of(batch, true);
    const uint64_t serial = SXE__POOL_GET(dict->control->committed) + 1;
    int result = check_notes(batch);

    for (uint64_t left = shards; left != 0 && result == 0; left &= left - 1)
        result = make_value_room(batch, (uint32_t)__builtin_ctzll(left));
    for (uint64_t left = shards; left != 0 && result == 0; left &= left - 1)
        result = stage_shard(batch, (uint32_t)__builtin_ctzll(left), serial);
    if (result == 0)
        SXE__POOL_PUT_LAST(dict->control->committed, serial);
    SXE__POOL_FENCE_STORES();
    for (uint64_t left = shards; left != 0; left &= left - 1) {
        const int applied = sxe__dict_apply_staged(dict, (uint32_t)__builtin_ctzll(left));
        result = result == 0 ? applied : result;
    }
    return result;
}

static int
commit_batch(const SXE_DICT_BATCH *batch)
{
    const uint64_t shards = shards_of(batch, false);
    int result = settle_dict(batch->dict);

    if (result == 0)
        result = lock_shards(batch->dict, shards);
    if (result < 0)
        return result;
    result = commit_locked(batch);
    unlock_shards(batch->dict, shards);
    return result;
}

static int
lock_and_commit(const SXE_DICT_BATCH *batch)
{
    const SXE_DICT *dict = batch->dict;

    if (sxe__pool_lock(dict->sharing, &dict->control->batch) < 0)
        return -EAGAIN;
    const int result = commit_batch(batch);
    sxe__pool_unlock(&dict->control->batch);
    return result;
}

int
sxe_dict_batch_commit(SXE_DICT_BATCH *batch)
{
    struct sxe__pool_patience patience = {0};
    int result;

    do
        result = lock_and_commit(batch);
    while (result == -EAGAIN && sxe__pool_wait(batch->dict->sharing, &patience));
    if (result == 0)
        clear_batch(batch);
    return result;
}
