/* SPDX-License-Identifier: MIT
 *
 * The walk goes from bucket to bucket, and in a bucket from the least hash to the greatest. When a
 * value changes, its key keeps its place in that order, though it may get another place in the
 * chain. Of two keys with equal 64-bit hashes the walk would return only one.
 */
#include "sxe-dict-private.h"

void
sxe_dict_walker_construct(SXE_DICT_WALKER *walker, SXE_DICT *dict)
{
    *walker = (SXE_DICT_WALKER){.dict = dict};
}

/* Whether the walk returns this version. */
static bool
is_met(const SXE_DICT_WALKER *walker, const struct sxe__dict_view *view)
{
    const uint64_t epoch = walker->snapshot == NULL ? 0 : walker->snapshot->epoch;

    if (epoch == 0)
        return view->died == 0 && !sxe__dict_is_expired(walker->dict, view->expires_ns);
    return view->born <= epoch && (view->died == 0 || view->died > epoch) &&
           (view->expires_ns == 0 || view->expires_ns > walker->snapshot->time_ns);
}

/* Whether the walk may skip its bucket without a lock. An entry that stays is in its chain at every
 * moment, unless the change that puts it in is still to be completed for a dead process. Check for
 * such a change first, because it may be completed in between. */
static bool
is_passed_by(const SXE_DICT_WALKER *walker, uint32_t shard)
{
    if (sxe__dict_is_busy(walker->dict, shard))
        return false;
    SXE__POOL_FENCE_LOADS();
    return SXE__POOL_GET(walker->dict->buckets[walker->bucket]) == 0;
}

/* Find the version of the bucket with the least hash that is not below `after`. 1: found; 0: there
 * is none. */
static int
find_next_entry(const SXE_DICT_WALKER *walker, uint32_t shard, struct sxe__dict_view *found)
{
    const SXE_DICT *dict = walker->dict;
    uint32_t link = SXE__POOL_GET(dict->buckets[walker->bucket]);
    int any = 0;

    for (uint32_t steps = 0; link != 0; steps++) {
        struct sxe__dict_view view;

        if (steps > dict->number)
            return sxe__dict_damaged(dict);
        if (sxe__dict_read(dict, shard, link - 1, &view) < 0)
            return -EUCLEAN;
        if (view.hash >= walker->after && (any == 0 || view.hash < found->hash) &&
            is_met(walker, &view)) {
            *found = view;
            any = 1;
        }
        link = SXE__POOL_GET(sxe__dict_cell(dict, link - 1)->chain);
    }
    return any;
}

static int
copy_entry(const SXE_DICT *dict, const struct sxe__dict_view *view, SXE_DICT_ENTRY *entry)
{
    const uint32_t state = sxe__dict_state(dict, view->id);

    entry->key_size = view->key_size;
    entry->value_size = view->value_size;
    entry->ttl_s = sxe__dict_ttl(dict, view->expires_ns);
    entry->state = (SXE_DICT_STATE)(state == SXE__DICT_OLD
                                        ? SXE__POOL_GET(sxe__dict_cell(dict, view->id)->state)
                                        : state);
    if (!sxe__dict_is_entry(entry->state))
        return sxe__dict_damaged(dict);
    if (dict->verifies && (sxe__dict_hash(dict->hash_key, sxe__dict_cell(dict, view->id)->data,
                                          view->key_size) != view->hash ||
                           sxe__dict_is_sound(dict, view) != 1))
        return sxe__dict_damaged(dict);
    sxe__dict_copy_key(dict, view, entry->key, entry->key_room);
    return sxe__dict_copy_value(dict, view, entry->value, entry->value_room);
}

static int
step_locked_dict(SXE_DICT_WALKER *walker, uint32_t shard, SXE_DICT_ENTRY *entry)
{
    struct sxe__dict_view view;

    if (walker->snapshot != NULL && !sxe__dict_is_active(walker->snapshot))
        return -ESTALE;
    const int found = find_next_entry(walker, shard, &view);
    if (found == 1 && copy_entry(walker->dict, &view, entry) < 0)
        return -EUCLEAN;
    /* No hash is greater than UINT64_MAX, so the bucket has no further entry. */
    if (found == 0 || (found == 1 && view.hash == UINT64_MAX)) {
        walker->bucket++;
        walker->after = 0;
    } else if (found == 1)
        walker->after = view.hash + 1;
    return found;
}

int
sxe_dict_walker_step(SXE_DICT_WALKER *walker, SXE_DICT_ENTRY *entry)
{
    const SXE_DICT *dict = walker->dict;
    const uint64_t end = (uint64_t)dict->shards * (dict->bucket_mask + 1);
    struct sxe__pool_patience patience = {0};

    while (walker->bucket < end) {
        const uint32_t shard = (uint32_t)(walker->bucket / (dict->bucket_mask + 1));

        if (is_passed_by(walker, shard)) {
            walker->bucket++;
            walker->after = 0;
            continue;
        }
        int result = sxe__dict_lock_patiently(dict, shard, &patience);
        if (result < 0)
            return result;
        result = step_locked_dict(walker, shard, entry);
        sxe__dict_unlock(dict, shard);
        if (result != 0)
            return result;
    }
    return 0;
}
