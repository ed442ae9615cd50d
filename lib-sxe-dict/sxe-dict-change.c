/* SPDX-License-Identifier: MIT
 *
 * Changes of entries. The steps after a commit may be repeated from the beginning: each step first
 * checks whether it is done. A change in place stores 8 bytes, then the entry's checksum; until
 * both are stored, record.changed names the version whose checksum may be wrong.
 */
#include "sxe-dict-private.h"

/* ---- Cells that a change needs ---- */

bool
sxe__dict_is_seen(const SXE_DICT *dict, const struct sxe__dict_view *view)
{
    const struct sxe__dict_control *control = dict->control;

    if (view->born > SXE__POOL_GET(control->newest))
        return false;
    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++) {
        const uint64_t epoch = SXE__POOL_GET(control->slots[i].epoch);

        if (epoch != 0 && view->born <= epoch && (view->died == 0 || epoch < view->died))
            return true;
    }
    return false;
}

/* ---- Steps ---- */

static int
move_cell_to(const SXE_DICT *dict, uint32_t id, uint32_t state)
{
    return sxe__dict_state(dict, id) == state || sxe__pool_move_locked(dict->pool, id, state)
               ? 0
               : sxe__dict_damaged(dict);
}

/* Move all cells of a version but the first to `state`: follow the links `more`, cells - 1
 * times. */
static int
move_more_entries(const SXE_DICT *dict, uint32_t shard, const struct sxe__dict_view *view,
                  uint32_t state)
{
    uint32_t id = view->id;

    for (uint32_t i = 1; i < view->cells; i++) {
        id = SXE__POOL_GET(sxe__dict_cell(dict, id)->more) - 1;
        if (!sxe__dict_has(dict, shard, id))
            return sxe__dict_damaged(dict);
        if (move_cell_to(dict, id, state) < 0)
            return -EUCLEAN;
    }
    return 0;
}

/* Take a version out of its chain, and free its cells. */
static int
free_version(const SXE_DICT *dict, uint32_t shard, const struct sxe__dict_view *view)
{
    uint32_t *link;
    const int linked = sxe__dict_link_to(dict, shard, view->hash, view->id, &link);

    if (linked < 0)
        return linked;
    if (linked == 1)
        SXE__POOL_PUT(*link, SXE__POOL_GET(sxe__dict_cell(dict, view->id)->chain));
    if (move_more_entries(dict, shard, view, SXE__DICT_FREE) < 0)
        return -EUCLEAN;
    return move_cell_to(dict, view->id, SXE__DICT_FREE);
}

/* Retire a version that is replaced, removed, or no longer seen: it becomes OLD if a snapshot sees
 * it, otherwise its cells become FREE. If this is repeated with fewer snapshots, an OLD version
 * becomes FREE. */
static int
retire_version(const SXE_DICT *dict, uint32_t shard, uint32_t id)
{
    const uint32_t state = sxe__dict_has(dict, shard, id) ? sxe__dict_state(dict, id) : 0;
    struct sxe__dict_view view;

    if (sxe__dict_read(dict, shard, id, &view) < 0)
        return -EUCLEAN;
    if (!sxe__dict_is_seen(dict, &view))
        return free_version(dict, shard, &view);
    struct sxe__dict_cell *cell = sxe__dict_cell(dict, id);

    if (sxe__dict_is_entry(state))
        SXE__POOL_PUT(cell->state, (uint8_t)state);
    SXE__POOL_PUT(cell->died, SXE__POOL_GET(dict->control->epoch));
    return move_cell_to(dict, id, SXE__DICT_OLD);
}

static int
put_entry_in(const SXE_DICT *dict, uint32_t shard, uint32_t id)
{
    struct sxe__dict_view view;
    uint32_t *link;

    if (sxe__dict_read(dict, shard, id, &view) < 0)
        return -EUCLEAN;
    struct sxe__dict_cell *cell = sxe__dict_cell(dict, id);
    const uint32_t state = SXE__POOL_GET(cell->state);
    const uint32_t replaces = SXE__POOL_GET(cell->replaces);
    const int linked = sxe__dict_link_to(dict, shard, view.hash, id, &link);

    if (linked < 0 || !sxe__dict_is_entry(state))
        return sxe__dict_damaged(dict);
    if (linked == 0) {
        link = sxe__dict_bucket(dict, shard, view.hash);
        SXE__POOL_PUT(cell->chain, SXE__POOL_GET(*link));
        SXE__POOL_PUT_LAST(*link, id + 1);
    }
    if (move_cell_to(dict, id, state) < 0 ||
        move_more_entries(dict, shard, &view, SXE__DICT_MORE) < 0)
        return -EUCLEAN;
    return replaces == 0 ? 0 : retire_version(dict, shard, replaces - 1);
}

/* Call step for each cell of a chain, linked by `next`. */
static int
each_cell_of_chain(const SXE_DICT *dict, uint32_t shard, uint32_t link,
                   int (*step)(const SXE_DICT *, uint32_t, uint32_t))
{
    for (unsigned steps = 0; link != 0; steps++) {
        if (!sxe__dict_has(dict, shard, link - 1) || steps == SXE_DICT_BATCH_MAX)
            return sxe__dict_damaged(dict);
        const uint32_t next = SXE__POOL_GET(sxe__dict_cell(dict, link - 1)->next);

        if (step(dict, shard, link - 1) < 0)
            return -EUCLEAN;
        link = next;
    }
    return 0;
}

/* ---- Completing a change that was committed ---- */

static int
apply_intent(const SXE_DICT *dict, uint32_t shard, uint32_t *place,
             int (*step)(const SXE_DICT *, uint32_t, uint32_t))
{
    const uint32_t link = SXE__POOL_GET(*place);

    if (link == 0)
        return 0;
    if (!sxe__dict_has(dict, shard, link - 1))
        return sxe__dict_damaged(dict);
    if (step(dict, shard, link - 1) < 0)
        return -EUCLEAN;
    SXE__POOL_PUT_LAST(*place, 0);
    return 0;
}

int
sxe__dict_commit_put(const SXE_DICT *dict, uint32_t shard, uint32_t id)
{
    struct sxe__dict_record *record = &dict->records[shard];

    SXE__POOL_PUT_LAST(record->pending, id + 1);
    SXE__POOL_FENCE_STORES();
    return apply_intent(dict, shard, &record->pending, put_entry_in);
}

int
sxe__dict_commit_remove(const SXE_DICT *dict, uint32_t shard, uint32_t id)
{
    struct sxe__dict_record *record = &dict->records[shard];

    SXE__POOL_PUT_LAST(record->doomed, id + 1);
    SXE__POOL_FENCE_STORES();
    return apply_intent(dict, shard, &record->doomed, retire_version);
}

int
sxe__dict_apply_staged(const SXE_DICT *dict, uint32_t shard)
{
    struct sxe__dict_record *record = &dict->records[shard];
    const uint64_t staged = SXE__POOL_GET(record->staged);

    if (staged != 0 && staged == SXE__POOL_GET(dict->control->committed) &&
        (each_cell_of_chain(dict, shard, SXE__POOL_GET(record->staged_puts), put_entry_in) < 0 ||
         each_cell_of_chain(dict, shard, SXE__POOL_GET(record->staged_removes), retire_version) <
             0))
        return -EUCLEAN;
    SXE__POOL_PUT_LAST(record->staged, 0);
    return 0;
}

/* ---- Changes in place ---- */

void
sxe__dict_change(const SXE_DICT *dict, uint32_t shard, uint32_t id, uint64_t *place, uint64_t value,
                 uint32_t difference)
{
    struct sxe__dict_record *record = &dict->records[shard];
    struct sxe__dict_cell *cell = sxe__dict_cell(dict, id);
    const uint32_t sum = SXE__POOL_GET(cell->sum) ^ difference;

    SXE__POOL_PUT(record->changed_sum, sum);
    SXE__POOL_PUT_LAST(record->changed, id + 1);
    SXE__POOL_FENCE_STORES();
    SXE__POOL_PUT(*place, value);
    SXE__POOL_PUT(cell->sum, sum);
    SXE__POOL_PUT_LAST(record->changed, 0);
}

/* Whether a version fits its checksum or, if not, record.changed_sum, which then becomes its
 * checksum: a death in sxe__dict_change may leave new bytes with the old checksum. */
static bool
is_sound_now(const SXE_DICT *dict, uint32_t shard, const struct sxe__dict_view *view)
{
    struct sxe__dict_cell *cell = sxe__dict_cell(dict, view->id);

    if (sxe__dict_is_sound(dict, view) == 1)
        return true;
    SXE__POOL_PUT(cell->sum, SXE__POOL_GET(dict->records[shard].changed_sum));
    return sxe__dict_is_sound(dict, view) == 1;
}

static int
finish_change(const SXE_DICT *dict, uint32_t shard, uint32_t id)
{
    struct sxe__dict_view view;

    if (sxe__dict_read(dict, shard, id, &view) < 0)
        return -EUCLEAN;
    return is_sound_now(dict, shard, &view) ? 0 : sxe__dict_damaged(dict);
}

void
sxe__dict_settle_change(const SXE_DICT *dict, uint32_t shard)
{
    const uint32_t link = SXE__POOL_GET(dict->records[shard].changed);

    if (sxe__dict_has(dict, shard, link - 1))
        finish_change(dict, shard, link - 1);
}

/* ---- Locks ---- */

static int
complete_change(const SXE_DICT *dict, uint32_t shard)
{
    struct sxe__dict_record *record = &dict->records[shard];

    if (apply_intent(dict, shard, &record->changed, finish_change) < 0 ||
        apply_intent(dict, shard, &record->pending, put_entry_in) < 0 ||
        apply_intent(dict, shard, &record->doomed, retire_version) < 0)
        return -EUCLEAN;
    return SXE__POOL_GET(record->staged) == 0 ? 0 : sxe__dict_apply_staged(dict, shard);
}

int
sxe__dict_lock(const SXE_DICT *dict, uint32_t shard)
{
    const unsigned locked = sxe__pool_lock_shard(dict->pool, shard);
    uint64_t *is_wanted = &dict->counts[shard].is_wanted;

    if (locked != SXE_POOL_LOCK_TAKEN) {
        SXE__POOL_PUT(*is_wanted, 1);
        return locked == SXE_POOL_LOCK_NOT_TAKEN ? -EAGAIN : -EUCLEAN;
    }
    if (SXE_UNLIKELY(SXE__POOL_GET(*is_wanted) != 0))
        SXE__POOL_PUT(*is_wanted, 0);
    if (SXE_LIKELY(!sxe__dict_is_busy(dict, shard)))
        return 0;
    const int done = complete_change(dict, shard);
    if (done < 0)
        sxe__dict_unlock(dict, shard);
    return done;
}

int
sxe__dict_lock_patiently(const SXE_DICT *dict, uint32_t shard, struct sxe__pool_patience *patience)
{
    int result;

    do
        result = sxe__dict_lock(dict, shard);
    while (result == -EAGAIN && sxe__pool_wait(dict->sharing, patience));
    return result;
}

void
sxe__dict_unlock(const SXE_DICT *dict, uint32_t shard)
{
    sxe__pool_unlock_shard(dict->pool, shard);
}

int
sxe__dict_lock_next_slice(const SXE_DICT *dict, uint32_t shard)
{
    int result = -EAGAIN;

    for (unsigned naps = 0; result == -EAGAIN && naps <= SXE__POOL_NAPS; naps++) {
        if (naps == SXE__POOL_NAPS || SXE__POOL_GET(dict->counts[shard].is_wanted) == 0)
            result = sxe__dict_lock(dict, shard);
        else
            sxe__pool_nap();
    }
    return result;
}

int
sxe__dict_lock_all(const SXE_DICT *dict)
{
    for (uint32_t shard = 0; shard < dict->shards; shard++) {
        const int locked = sxe__dict_lock(dict, shard);

        if (locked < 0) {
            while (shard > 0)
                sxe__dict_unlock(dict, --shard);
            return locked;
        }
    }
    return 0;
}

void
sxe__dict_unlock_all(const SXE_DICT *dict)
{
    for (uint32_t shard = 0; shard < dict->shards; shard++)
        sxe__dict_unlock(dict, shard);
}

/* ---- One put ---- */

uint32_t
sxe__dict_state_after(const SXE_DICT *dict, int found, const struct sxe__dict_view *old)
{
    return found == 1 && !sxe__dict_is_expired(dict, old->expires_ns)
               ? sxe__dict_state(dict, old->id)
               : SXE_DICT_LIVE;
}

/* How many cells must be FREE for a put. One cell of each shard stays in reserve, so that the
 * entries of a full table can be replaced. */
static uint32_t
cells_wanted(const SXE_DICT *dict, uint32_t cells, int found, const struct sxe__dict_view *old)
{
    return found == 1 && !sxe__dict_is_seen(dict, old) ? cells : cells + 1;
}

/* If a put finds no room only because a snapshot sees the old version, end a snapshot. Returns
 * whether a snapshot was ended. */
static bool
is_unseen_by_one(const SXE_DICT *dict, uint32_t shard, uint32_t cells, int found,
                 const struct sxe__dict_view *old)
{
    return found == 1 && sxe__dict_free_cells(dict, shard) >= cells &&
           sxe__dict_is_seen(dict, old) && sxe__dict_end_oldest(dict);
}

int
sxe__dict_put(const SXE_DICT *dict, struct sxe__dict_put *put)
{
    const uint32_t shard = put->key->shard;
    const uint32_t cells = sxe__dict_cells_for(dict, put->key->size, put->size);
    uint32_t budget = SXE__DICT_BUDGET;
    uint32_t cursor = SXE__POOL_GET(sxe__dict_list(dict, shard, SXE__DICT_FREE)->next);
    struct sxe__dict_view old;
    int found;

    /* Prefetch the new cell, so that it and the old one come from memory at the same time. */
    if (cursor < dict->number)
        __builtin_prefetch(sxe__dict_cell(dict, cursor), 1);
    if (put->size > SXE__DICT_VALUE_MAX || cells >= sxe__dict_capacity(dict, shard))
        return -EFBIG;
    for (;;) {
        found = sxe__dict_find(dict, put->key, 0, &old);
        if (found < 0)
            return found;
        if (sxe__dict_free_cells(dict, shard) >= cells_wanted(dict, cells, found, &old))
            break;
        const int room = sxe__dict_make_room(dict, shard, found == 1 ? old.id : SXE_NONE, &budget);
        if (room < 0)
            return room;
        if (room == 0 && !is_unseen_by_one(dict, shard, cells, found, &old))
            return -ENOSPC;
    }
    put->replaces = found == 1 ? old.id + 1 : 0;
    put->state = sxe__dict_state_after(dict, found, &old);
    cursor = SXE__POOL_GET(sxe__dict_list(dict, shard, SXE__DICT_FREE)->next);
    const int64_t id = sxe__dict_fill(dict, put, &cursor);
    if (id < 0)
        return (int)id;
    sxe__dict_note_expiry(dict, shard, put->expires_ns);
    return sxe__dict_commit_put(dict, shard, (uint32_t)id);
}
