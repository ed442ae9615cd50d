/* SPDX-License-Identifier: MIT
 *
 * Snapshots. A snapshot is active from the store of its epoch into a slot, under the locks of all
 * shards, until any process ends it by a compare-and-swap of that slot.
 *
 * A reader needs only the lock of the shard that it reads. Versions that the snapshot sees in that
 * shard are freed under the same lock, and only after the snapshot was ended. So while the reader
 * holds the lock and the slot has the snapshot's epoch, nothing that the snapshot sees there has
 * been freed.
 */
#include "sxe-dict-private.h"

#include <stdlib.h>

bool
sxe__dict_is_active(const struct sxe_dict_snapshot *snapshot)
{
    return SXE__POOL_GET(snapshot->dict->control->slots[snapshot->slot].epoch) == snapshot->epoch;
}

/* ---- Taking ---- */

/* The caller holds all locks. A process that dies in here leaves an epoch that nobody uses. */
static int
begin_snapshot(struct sxe_dict_snapshot *snapshot)
{
    struct sxe__dict_control *control = snapshot->dict->control;
    uint32_t slot = 0;

    while (slot < SXE_DICT_SNAPSHOTS && SXE__POOL_GET(control->slots[slot].epoch) != 0)
        slot++;
    if (slot == SXE_DICT_SNAPSHOTS)
        return -EUSERS;
    snapshot->slot = slot;
    snapshot->epoch = SXE__POOL_GET(control->epoch);
    snapshot->time_ns = sxe_pool_get_now(snapshot->dict->array);
    snapshot->token = snapshot->dict->sharing->token;
    SXE__POOL_PUT(control->epoch, snapshot->epoch + 1);
    SXE__POOL_PUT(control->newest, snapshot->epoch);
    SXE__POOL_PUT(control->slots[slot].token, snapshot->token);
    SXE__POOL_PUT(control->slots[slot].time_ns, snapshot->time_ns);
    SXE__POOL_PUT_LAST(control->slots[slot].epoch, snapshot->epoch);
    return 0;
}

static int
take_dict_snapshot(struct sxe_dict_snapshot *snapshot)
{
    const SXE_DICT *dict = snapshot->dict;
    int result = sxe__dict_lock_all(dict);

    if (result < 0)
        return result;
    result = begin_snapshot(snapshot);
    sxe__dict_unlock_all(dict);
    return result;
}

SXE_DICT_SNAPSHOT *
sxe_dict_snapshot_take(SXE_DICT *dict)
{
    struct sxe_dict_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    struct sxe__pool_patience patience = {0};
    int result;

    if (snapshot == NULL)
        return NULL;
    snapshot->dict = dict;
    do
        result = take_dict_snapshot(snapshot);
    while (result == -EAGAIN && sxe__pool_wait(dict->sharing, &patience));
    if (result == -EUSERS && sxe__dict_end_dead(dict))
        result = take_dict_snapshot(snapshot);
    if (result == 0)
        return snapshot;
    free(snapshot);
    errno = -result;
    return NULL;
}

/* ---- Releasing ---- */

/* Sweep a shard, unless it is locked: then the next put in it that needs room sweeps it. */
static void
sweep_shard(const SXE_DICT *dict, uint32_t shard)
{
    int result = sxe__dict_lock(dict, shard);

    while (result == 0) {
        uint32_t steps = SXE__DICT_BUDGET;
        const int64_t swept = sxe__dict_sweep(dict, shard, &steps);

        sxe__dict_unlock(dict, shard);
        if (swept < 0 || steps > 0)
            return;
        result = sxe__dict_lock_next_slice(dict, shard);
    }
}

void
sxe_dict_snapshot_release(SXE_DICT_SNAPSHOT *snapshot)
{
    if (snapshot == NULL)
        return;
    const SXE_DICT *dict = snapshot->dict;

    /* In a child of fork the snapshot still belongs to the parent. */
    if (snapshot->token == dict->sharing->token) {
        sxe__dict_end_snapshot(dict, snapshot->slot, snapshot->epoch);
        for (uint32_t shard = 0; shard < dict->shards; shard++)
            sweep_shard(dict, shard);
    }
    free(snapshot);
}

/* ---- Reading ---- */

static ssize_t
get_locked(const struct sxe_dict_snapshot *snapshot, const struct sxe__dict_key *key, void *value,
           size_t size)
{
    const SXE_DICT *dict = snapshot->dict;
    struct sxe__dict_view view;

    if (!sxe__dict_is_active(snapshot))
        return -ESTALE;
    const int found = sxe__dict_find(dict, key, snapshot->epoch, &view);
    if (found < 0)
        return found;
    if (found == 1 && sxe__dict_verify(dict, &view) < 0)
        return -EUCLEAN;
    if (found == 0 || (view.expires_ns != 0 && view.expires_ns <= snapshot->time_ns))
        return -ENOENT;
    return sxe__dict_copy_value(dict, &view, value, size) < 0 ? -EUCLEAN : (ssize_t)view.value_size;
}

ssize_t
sxe_dict_snapshot_get(const SXE_DICT_SNAPSHOT *snapshot, const void *key, size_t key_size,
                      void *value, size_t size)
{
    const SXE_DICT *dict = snapshot->dict;
    struct sxe__pool_patience patience = {0};
    struct sxe__dict_key place;
    ssize_t result = sxe__dict_set_key(dict, &place, key, key_size);

    if (result < 0)
        return result;
    result = sxe__dict_lock_patiently(dict, place.shard, &patience);
    if (result < 0)
        return result;
    result = get_locked(snapshot, &place, value, size);
    sxe__dict_unlock(dict, place.shard);
    return result;
}

void
sxe_dict_snapshot_walk(SXE_DICT_WALKER *walker, SXE_DICT_SNAPSHOT *snapshot)
{
    *walker = (SXE_DICT_WALKER){.dict = snapshot->dict, .snapshot = snapshot};
}
