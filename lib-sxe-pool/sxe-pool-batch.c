/* SPDX-License-Identifier: MIT
 *
 * Moves many elements under one lock: the lock, and the cache lines that it brings, are paid for
 * once.
 */
#include "sxe-pool-change-private.h"

/* Wake one waiting process for each element. */
static void
wake_watchers(const struct sxe__pool_header *pool, uint32_t state, unsigned number)
{
    for (; number > 0 && SXE__POOL_GET(pool->sharing->head->watching) != 0; number--)
        sxe__pool_wake(pool, state);
}

/* ---- The oldest ---- */

/* Move up to `max` of a shard's oldest elements, under its lock. Returns how many were moved. */
static unsigned
take_locked(const struct sxe__pool_site *site, uint32_t old_state, uint32_t new_state,
            unsigned *ids, unsigned max)
{
    const uint32_t list =
        sxe__pool_shard_list(site->pool, site->sharing, old_state, site->shard_index);

    for (unsigned number = 0; number < max; number++) {
        const uint32_t id = SXE__POOL_GET(site->nodes[list].next);

        if (id == list)
            return number;
        if (id >= site->pool->number ||
            sxe__pool_shard_of(site->sharing, id) != site->shard_index ||
            sxe__pool_change(site, id, old_state, &new_state) != SXE_POOL_LOCK_TAKEN) {
            sxe__pool_damaged(site->pool);
            return number;
        }
        ids[number] = id;
    }
    return max;
}

/* Take the first element like sxe_pool_take, which picks the shard; then take more of that
 * shard. */
static unsigned
take_shared(const struct sxe__pool_header *pool, uint32_t old_state, uint32_t new_state,
            unsigned *ids, unsigned max)
{
    const unsigned first = sxe__pool_shared_take(pool, old_state, new_state);

    if (first >= pool->number)
        return first == SXE_POOL_NO_INDEX ? 0 : first;
    ids[0] = first;
    const struct sxe__pool_site site =
        sxe__pool_site(pool, sxe__pool_shard_of(pool->sharing, first));
    if (max == 1 || sxe__pool_lock_shard(pool, site.shard_index) != SXE_POOL_LOCK_TAKEN)
        return 1;
    const unsigned number = take_locked(&site, old_state, new_state, ids + 1, max - 1);
    sxe__pool_unlock_shard(pool, site.shard_index);
    wake_watchers(pool, new_state, number);
    return 1 + number;
}

unsigned
sxe_pool_take_many(void *array, unsigned old_state, unsigned new_state, unsigned *ids, unsigned max)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    const unsigned limit = max < SXE_POOL_MANY ? max : SXE_POOL_MANY;
    unsigned number = 0;

    sxe__pool_check_state(pool, old_state);
    sxe__pool_check_state(pool, new_state);
    /* If the states were equal, one call could return the same element several times. */
    SXE_ASSERT(old_state != new_state,
               "pool %s: elements cannot move from state %s to the same state", pool->name,
               sxe_pool_state_to_string(array, old_state));
    if (limit == 0)
        return 0;
    if (pool->sharing != NULL)
        return take_shared(pool, old_state, new_state, ids, limit);
    while (number < limit) {
        const unsigned id = sxe_pool_take(array, old_state, new_state);

        if (id == SXE_POOL_NO_INDEX)
            break;
        ids[number++] = id;
    }
    return number;
}

/* ---- Elements by their ids ---- */

/* Move consecutive elements of one shard under its lock. Returns how many; *why is the reason why
 * the shard's next element was not moved. */
static unsigned
move_locked(const struct sxe__pool_site *site, const unsigned *ids, unsigned number,
            const uint32_t states[2], unsigned *why)
{
    unsigned moved = 0;

    for (; moved < number; moved++) {
        uint32_t state = states[1];

        if (sxe__pool_shard_of(site->sharing, ids[moved]) != site->shard_index)
            break;
        *why = sxe__pool_change(site, ids[moved], states[0], &state);
        if (*why == SXE_POOL_DAMAGED)
            sxe__pool_damaged(site->pool);
        if (*why != SXE_POOL_LOCK_TAKEN)
            break;
    }
    return moved;
}

static unsigned
move_shared(const struct sxe__pool_header *pool, const unsigned *ids, unsigned number,
            const uint32_t states[2])
{
    unsigned moved = 0;
    unsigned why = SXE_POOL_LOCK_TAKEN;
    struct sxe__pool_patience patience = {0};

    while (moved < number && why == SXE_POOL_LOCK_TAKEN) {
        const struct sxe__pool_site site =
            sxe__pool_site(pool, sxe__pool_shard_of(pool->sharing, ids[moved]));

        why = sxe__pool_lock_shard_patiently(pool, site.shard_index, &patience);
        if (why != SXE_POOL_LOCK_TAKEN)
            break;
        moved += move_locked(&site, ids + moved, number - moved, states, &why);
        sxe__pool_unlock_shard(pool, site.shard_index);
    }
    wake_watchers(pool, states[1], moved);
    return moved == 0 ? why : moved;
}

unsigned
sxe_pool_move_many(void *array, const unsigned *ids, unsigned number, unsigned old_state,
                   unsigned new_state)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    const unsigned limit = number < SXE_POOL_MANY ? number : SXE_POOL_MANY;

    sxe__pool_check_state(pool, old_state);
    sxe__pool_check_state(pool, new_state);
    for (unsigned i = 0; i < limit; i++)
        sxe__pool_check_id(pool, ids[i]);
    if (pool->sharing != NULL)
        return move_shared(pool, ids, limit, (const uint32_t[]){old_state, new_state});
    for (unsigned i = 0; i < limit; i++) {
        unsigned state = new_state;

        if (sxe_pool_try_move(array, ids[i], old_state, &state) != ids[i])
            return i == 0 ? SXE_POOL_INCORRECT_STATE : i;
    }
    return limit;
}
