/* SPDX-License-Identifier: MIT
 *
 * Makes room for a put. It frees, in this order: OLD versions that no snapshot sees any more,
 * expired entries, OLD versions that snapshots do see (the oldest snapshot ends), and LIVE entries
 * of a dict that evicts. A long search is split: each call does a part, and the next call goes on.
 */
#include "sxe-dict-private.h"

uint32_t
sxe__dict_free_cells(const SXE_DICT *dict, uint32_t shard)
{
    return SXE__POOL_GET(sxe__dict_list(dict, shard, SXE__DICT_FREE)->count);
}

/* ---- OLD versions ---- */

/* Free the oldest OLD version, or move it to the young end. 1: it was freed; 0: a snapshot sees
 * it. */
static int
sweep_one_entry(const SXE_DICT *dict, uint32_t shard)
{
    const uint32_t id = SXE__POOL_GET(sxe__dict_list(dict, shard, SXE__DICT_OLD)->next);
    struct sxe__dict_view view;

    if (sxe__dict_read(dict, shard, id, &view) < 0)
        return -EUCLEAN;
    if (!sxe__dict_is_seen(dict, &view))
        return sxe__dict_commit_remove(dict, shard, id) < 0 ? -EUCLEAN : 1;
    return sxe__pool_move_locked(dict->pool, id, SXE__DICT_OLD) ? 0 : sxe__dict_damaged(dict);
}

uint64_t
sxe__dict_ended(const SXE_DICT *dict)
{
    const struct sxe__dict_control *control = dict->control;
    uint64_t ended = SXE__POOL_GET(control->epoch) - 1;

    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++)
        ended -= SXE__POOL_GET(control->slots[i].epoch) != 0;
    return ended;
}

/* How many OLD cells the sweep still has to look at. Begins a new sweep if a snapshot has ended
 * since the last sweep began. A death between the two stores makes the next caller sweep once more.
 */
static uint32_t
left_to_sweep(const SXE_DICT *dict, uint32_t shard)
{
    struct sxe__dict_record *record = &dict->records[shard];
    const uint32_t count = SXE__POOL_GET(sxe__dict_list(dict, shard, SXE__DICT_OLD)->count);
    const uint32_t old = count < dict->number ? count : dict->number;
    const uint32_t left = SXE__POOL_GET(record->sweep_left);

    if (left != 0 || old == 0)
        return left < old ? left : old;
    const uint64_t ended = sxe__dict_ended(dict);
    if (SXE__POOL_GET(record->swept) == ended)
        return 0;
    SXE__POOL_PUT(record->sweep_left, old);
    SXE__POOL_PUT_LAST(record->swept, ended);
    return old;
}

/* Cells that become OLD during a sweep are not examined: the snapshots that see them end after this
 * sweep began, so another sweep follows. sweep_left is lowered after a cell was examined, so after
 * a kill in between the next caller examines that cell again. */
int64_t
sxe__dict_sweep(const SXE_DICT *dict, uint32_t shard, uint32_t *steps)
{
    int64_t freed = 0;

    for (; *steps > 0; --*steps) {
        const uint32_t left = left_to_sweep(dict, shard);
        const int swept = left == 0 ? 0 : sweep_one_entry(dict, shard);

        if (left == 0 || swept < 0)
            return swept < 0 ? swept : freed;
        SXE__POOL_PUT(dict->records[shard].sweep_left, left - 1);
        freed += swept;
    }
    return freed;
}

/* ---- Snapshots that end ---- */

void
sxe__dict_end_snapshot(const SXE_DICT *dict, uint32_t slot, uint64_t epoch)
{
    uint64_t expected = epoch;

    SXE__POOL_STEP();
    (void)__atomic_compare_exchange_n(&dict->control->slots[slot].epoch, &expected, 0, false,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool
sxe__dict_end_dead(const SXE_DICT *dict)
{
    bool any = false;

    for (uint32_t i = 0; i < SXE_DICT_SNAPSHOTS; i++) {
        const uint64_t epoch = SXE__POOL_GET(dict->control->slots[i].epoch);
        const uint32_t token = SXE__POOL_GET(dict->control->slots[i].token);

        if (epoch != 0 && !sxe__pool_is_owner_alive(dict->sharing, token)) {
            sxe__dict_end_snapshot(dict, i, epoch);
            any = true;
        }
    }
    return any;
}

bool
sxe__dict_end_oldest(const SXE_DICT *dict)
{
    uint64_t oldest = UINT64_MAX;
    uint32_t slot = 0;

    if (sxe__dict_end_dead(dict))
        return true;
    for (uint32_t i = 0; i < SXE_DICT_SNAPSHOTS; i++) {
        const uint64_t epoch = SXE__POOL_GET(dict->control->slots[i].epoch);

        if (epoch != 0 && epoch < oldest) {
            oldest = epoch;
            slot = i;
        }
    }
    if (oldest == UINT64_MAX)
        return false;
    sxe__dict_end_snapshot(dict, slot, oldest);
    return true;
}

/* ---- Expired entries ---- */

static void
note_earlier(uint64_t *place, uint64_t expires_ns)
{
    const uint64_t known = SXE__POOL_GET(*place);

    if (known == 0 || expires_ns < known)
        SXE__POOL_PUT(*place, expires_ns);
}

void
sxe__dict_note_expiry(const SXE_DICT *dict, uint32_t shard, uint64_t expires_ns)
{
    struct sxe__dict_record *record = &dict->records[shard];

    if (expires_ns == 0)
        return;
    note_earlier(&record->next_expiry, expires_ns);
    if (SXE__POOL_GET(record->round_at) != 0)
        note_earlier(&record->round_expiry, expires_ns);
}

/* Remove an entry that has expired. 1: it was removed; 0: it has not expired. */
static int
expire_one_entry(const SXE_DICT *dict, uint32_t shard, uint32_t id, uint64_t now)
{
    const uint64_t expires_ns = SXE__POOL_GET(sxe__dict_cell(dict, id)->expires_ns);
    struct sxe__dict_view view;

    if (expires_ns == 0 || !sxe__dict_is_entry(sxe__dict_state(dict, id)))
        return 0;
    if (expires_ns > now) {
        note_earlier(&dict->records[shard].round_expiry, expires_ns);
        return 0;
    }
    if (sxe__dict_read(dict, shard, id, &view) < 0 || sxe__dict_verify(dict, &view) < 0)
        return -EUCLEAN;
    sxe__dict_count(&dict->counts[shard].expirations);
    return sxe__dict_commit_remove(dict, shard, id) < 0 ? -EUCLEAN : 1;
}

/* If an entry may have expired, go on with the round over all cells of the shard until an entry is
 * removed. 1: an entry was removed; 0: no entry had expired; -EAGAIN: the round is not over. */
static int
expire_entries(const SXE_DICT *dict, uint32_t shard, uint32_t *budget)
{
    struct sxe__dict_record *record = &dict->records[shard];
    const uint32_t capacity = sxe__dict_capacity(dict, shard);
    const uint64_t next = SXE__POOL_GET(record->next_expiry);
    const uint64_t now = next == 0 ? 0 : sxe_pool_get_now(dict->array);
    uint32_t at = SXE__POOL_GET(record->round_at);
    int gone = 0;

    if (at == 0 && (next == 0 || next > now))
        return 0;
    if (at == 0)
        SXE__POOL_PUT(record->round_expiry, 0);
    for (; at < capacity && gone == 0 && *budget > 0; at++, --*budget) {
        gone = expire_one_entry(dict, shard, sxe__dict_nth(dict, shard, at), now);
        SXE__POOL_PUT(record->round_at, at + 1);
    }
    if (gone < 0)
        return gone;
    if (at >= capacity) {
        SXE__POOL_PUT(record->next_expiry, SXE__POOL_GET(record->round_expiry));
        SXE__POOL_PUT(record->round_at, 0);
        return gone;
    }
    return gone > 0 ? gone : -EAGAIN;
}

/* ---- Eviction ---- */

/* Find the LIVE entry that was not used for longest, other than `keep`. SXE_NONE: there is none. */
static uint32_t
find_least_recent(const SXE_DICT *dict, uint32_t shard, uint32_t keep)
{
    const struct sxe__pool_node *nodes = dict->sharing->nodes;
    uint32_t id = SXE__POOL_GET(sxe__dict_list(dict, shard, SXE_DICT_LIVE)->next);

    if (id == keep && id < dict->number)
        id = SXE__POOL_GET(nodes[id].next);
    return id < dict->number ? id : SXE_NONE;
}

/* Evict the oldest LIVE entry, but not `keep`. 1: evicted; 0: there is none, or the dict does not
 * evict. */
static int
evict_entry(const SXE_DICT *dict, uint32_t shard, uint32_t keep)
{
    const uint32_t id = dict->evicts ? find_least_recent(dict, shard, keep) : SXE_NONE;
    struct sxe__dict_view view;

    if (id == SXE_NONE)
        return 0;
    if (sxe__dict_read(dict, shard, id, &view) < 0)
        return -EUCLEAN;
    if (sxe__dict_state(dict, id) != SXE_DICT_LIVE)
        return sxe__dict_damaged(dict);
    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS && sxe__dict_is_seen(dict, &view); i++)
        sxe__dict_end_oldest(dict);
    sxe__dict_count(&dict->counts[shard].evictions);
    return sxe__dict_commit_remove(dict, shard, id) < 0 ? -EUCLEAN : 1;
}

/* If a shard has OLD versions, end the oldest snapshot, so that a sweep can free some. 1: there is
 * something to sweep; 0: there is not; -EAGAIN: the budget is used up. */
static int
give_up_a_past(const SXE_DICT *dict, uint32_t shard, const uint32_t *budget)
{
    if (SXE__POOL_GET(sxe__dict_list(dict, shard, SXE__DICT_OLD)->count) == 0)
        return 0;
    if (*budget == 0)
        return -EAGAIN;
    /* If there is no snapshot to end, another process may have released one since the last sweep.
     */
    return sxe__dict_end_oldest(dict) ||
           SXE__POOL_GET(dict->records[shard].swept) != sxe__dict_ended(dict);
}

int
sxe__dict_make_room(const SXE_DICT *dict, uint32_t shard, uint32_t keep, uint32_t *budget)
{
    const int64_t swept = sxe__dict_sweep(dict, shard, budget);

    if (swept != 0)
        return swept < 0 ? (int)swept : 1;
    int room = *budget == 0 ? -EAGAIN : expire_entries(dict, shard, budget);
    if (room == 0)
        room = give_up_a_past(dict, shard, budget);
    if (room > 0 || (room < 0 && room != -EAGAIN))
        return room;
    /* If nothing can be evicted, the search for expired entries or OLD versions may not be over
     * (-EAGAIN), and find room later. */
    const int evicted = evict_entry(dict, shard, keep);
    return evicted == 0 ? room : evicted;
}
