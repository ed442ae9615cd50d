/* SPDX-License-Identifier: MIT
 *
 * The calls of sxe-pool.h for pools that are shared. Each locks one shard, changes one element and
 * unlocks; calls that only read lock nothing, except the walker.
 */
#include "sxe-pool-shared.h"

#include <errno.h>

#include "sxe-pool-change-private.h"

/* A token that no process can own: the last slot's, in generation 0. */
#define NOBODY (SXE_POOL_SLOTS - 1)

/* ---- Shards ---- */

unsigned
sxe__pool_damaged(const struct sxe__pool_header *pool)
{
    struct sxe__pool_head *head = pool->sharing->head;

    if (__atomic_exchange_n(&head->damaged, 1, __ATOMIC_RELAXED) == 0)
        SXE_ERROR("pool %s is damaged: something else wrote into its memory; close it in every "
                  "program, then look at it with sxe-pool check",
                  pool->name);
    return SXE_POOL_DAMAGED;
}

/* Not inlined: inlining would cost registers in callers that find the lock free. */
static __attribute__((noinline)) unsigned
lock_slowly(const struct sxe__pool_header *pool, uint32_t shard_index)
{
    struct sxe__pool_shard *shard = &pool->sharing->shards[shard_index];
    const int got = sxe__pool_lock_slowly(pool->sharing, &shard->lock);

    if (got < 0)
        return SXE_POOL_LOCK_NOT_TAKEN;
    if (got > 0 && !sxe__pool_complete(pool, pool->sharing, shard_index)) {
        /* Leave the intent as it is: the next owner of the lock will find it, too, so no process
         * works in a half changed shard. */
        SXE__POOL_PUT_LAST(shard->lock, NOBODY);
        return sxe__pool_damaged(pool);
    }
    return SXE_POOL_LOCK_TAKEN;
}

SXE__POOL_INLINE unsigned
lock_site(const struct sxe__pool_header *pool, uint32_t shard_index)
{
    return sxe__pool_lock_at_once(pool->sharing, &pool->sharing->shards[shard_index].lock)
               ? SXE_POOL_LOCK_TAKEN
               : lock_slowly(pool, shard_index);
}

/* Lock a shard, and sleep if necessary: only for calls that hold no other lock. */
SXE__POOL_INLINE unsigned
lock_patiently(const struct sxe__pool_header *pool, uint32_t shard_index)
{
    return sxe__pool_lock_at_once(pool->sharing, &pool->sharing->shards[shard_index].lock)
               ? SXE_POOL_LOCK_TAKEN
               : sxe__pool_lock_shard_for_long(pool, shard_index);
}

SXE__POOL_INLINE void
unlock_site(const struct sxe__pool_site *site)
{
    sxe__pool_unlock(&site->shard->lock);
}

unsigned
sxe__pool_lock_shard(const struct sxe__pool_header *pool, uint32_t shard_index)
{
    return lock_site(pool, shard_index);
}

void
sxe__pool_unlock_shard(const struct sxe__pool_header *pool, uint32_t shard_index)
{
    sxe__pool_unlock(&pool->sharing->shards[shard_index].lock);
}

bool
sxe__pool_move_locked(const struct sxe__pool_header *pool, uint32_t id, uint32_t new_state)
{
    const struct sxe__pool_site site = sxe__pool_site(pool, sxe__pool_shard_of(pool->sharing, id));

    return sxe__pool_change(&site, id, SXE__POOL_ANY_STATE, &new_state) == SXE_POOL_LOCK_TAKEN;
}

/* Wake a process that watches the state; called after the lock is released. */
static inline void
tell_watchers(const struct sxe__pool_header *pool, uint32_t state)
{
    if (SXE__POOL_GET(pool->sharing->head->watching) != 0)
        sxe__pool_wake(pool, state);
}

/* ---- Changes ---- */

/* Inlined into each of its callers, so that their constant arguments cost nothing. */
SXE__POOL_INLINE unsigned
change(const struct sxe__pool_header *pool, uint32_t id, uint32_t old_state, uint32_t *new_state)
{
    const struct sxe__pool_site site = sxe__pool_site(pool, sxe__pool_shard_of(pool->sharing, id));
    unsigned result = lock_patiently(pool, site.shard_index);

    if (result != SXE_POOL_LOCK_TAKEN)
        return result;
    result = sxe__pool_change(&site, id, old_state, new_state);
    unlock_site(&site);
    if (result == SXE_POOL_LOCK_TAKEN)
        tell_watchers(pool, *new_state);
    else if (result == SXE_POOL_DAMAGED)
        sxe__pool_damaged(pool);
    return result;
}

unsigned
sxe__pool_shared_set(const struct sxe__pool_header *pool, uint32_t id, uint32_t old_state,
                     uint32_t *new_state)
{
    const unsigned result = change(pool, id, old_state, new_state);

    return result == SXE_POOL_LOCK_TAKEN ? id : result;
}

/* Among the threads of one process, a wrong old state is a mistake in the program. */
static __attribute__((noinline)) unsigned
refuse_change(const struct sxe__pool_header *pool, uint32_t id, uint32_t old_state,
              uint32_t new_state, uint32_t state)
{
    SXE_ASSERT_ID(id, pool->sharing->survives,
                  "pool %s: element %u is in state %s, not %s (to go to %s)", pool->name, id,
                  sxe_pool_state_to_string(pool + 1, state),
                  sxe_pool_state_to_string(pool + 1, old_state),
                  sxe_pool_state_to_string(pool + 1, new_state));
    return SXE_POOL_INCORRECT_STATE;
}

unsigned
sxe__pool_shared_move(const struct sxe__pool_header *pool, uint32_t id, uint32_t old_state,
                      uint32_t new_state)
{
    uint32_t state = new_state;
    const unsigned result = change(pool, id, old_state, &state);

    if (result == SXE_POOL_INCORRECT_STATE)
        return refuse_change(pool, id, old_state, new_state, state);
    return result;
}

unsigned
sxe__pool_shared_touch(const struct sxe__pool_header *pool, uint32_t id)
{
    uint32_t state = SXE__POOL_ANY_STATE;

    return change(pool, id, SXE__POOL_ANY_STATE, &state);
}

/* ---- Claims: changes that are checked, or write contents ---- */

/* Write contents before the change, so that a reader that sees the new state sees them, too. */
static inline void
write_contents(const struct sxe__pool_site *site, uint32_t id, const struct sxe__pool_claim *claim)
{
    if (claim->contents != NULL)
        sxe_pool_write_part((void *)(uintptr_t)(site->pool + 1), id, claim->offset, claim->size,
                            claim->contents);
}

/* The stamp of an element that was just changed is the last of its shard. */
static inline void
note_stamp(const struct sxe__pool_site *site, struct sxe__pool_claim *claim)
{
    claim->stamp = SXE__POOL_OWN(site->shard->last_stamp);
}

/* Under the lock: every change gives its element another stamp, so if the stamp is the expected one
 * nobody has changed the element since. */
static unsigned
claim_locked(const struct sxe__pool_site *site, struct sxe__pool_claim *claim)
{
    const struct sxe__pool_node *node = &site->nodes[claim->id];
    uint32_t state = claim->new_state;

    if (claim->stamp != 0 && SXE__POOL_GET(node->stamp) != claim->stamp)
        return SXE_POOL_LEASE_LOST;
    if (claim->old_state != SXE__POOL_ANY_STATE && SXE__POOL_GET(node->state) != claim->old_state)
        return SXE_POOL_INCORRECT_STATE;
    write_contents(site, claim->id, claim);
    if (claim->stays)
        return SXE_POOL_LOCK_TAKEN;
    const unsigned result = sxe__pool_change(site, claim->id, claim->old_state, &state);
    if (result == SXE_POOL_LOCK_TAKEN)
        note_stamp(site, claim);
    return result;
}

unsigned
sxe__pool_shared_claim(const struct sxe__pool_header *pool, struct sxe__pool_claim *claim)
{
    const struct sxe__pool_site site =
        sxe__pool_site(pool, sxe__pool_shard_of(pool->sharing, claim->id));
    unsigned result = lock_patiently(pool, site.shard_index);

    if (result != SXE_POOL_LOCK_TAKEN)
        return result;
    result = claim_locked(&site, claim);
    unlock_site(&site);
    if (result == SXE_POOL_LOCK_TAKEN && claim->new_state != SXE__POOL_ANY_STATE)
        tell_watchers(pool, claim->new_state);
    else if (result == SXE_POOL_DAMAGED)
        sxe__pool_damaged(pool);
    return result;
}

/* ---- The oldest of one shard ---- */

/* Move a shard's oldest element, under its lock. Returns its id, NO_INDEX or DAMAGED. The claim may
 * be NULL. */
SXE__POOL_INLINE unsigned
take_locked(const struct sxe__pool_site *site, uint32_t old_state, uint32_t new_state,
            struct sxe__pool_claim *claim)
{
    const uint32_t list =
        sxe__pool_shard_list(site->pool, site->sharing, old_state, site->shard_index);
    const uint32_t id = SXE__POOL_GET(site->nodes[list].next);

    if (id == list)
        return SXE_POOL_NO_INDEX;
    if (id >= site->pool->number || sxe__pool_shard_of(site->sharing, id) != site->shard_index)
        return SXE_POOL_DAMAGED;
    if (claim != NULL)
        write_contents(site, id, claim);
    if (sxe__pool_change(site, id, old_state, &new_state) != SXE_POOL_LOCK_TAKEN)
        return SXE_POOL_DAMAGED;
    if (claim != NULL)
        note_stamp(site, claim);
    return id;
}

SXE__POOL_INLINE unsigned
take_from(const struct sxe__pool_header *pool, uint32_t shard, uint32_t old_state,
          uint32_t new_state, struct sxe__pool_claim *claim)
{
    const struct sxe__pool_site site = sxe__pool_site(pool, shard);
    unsigned result = lock_site(pool, shard);

    if (result != SXE_POOL_LOCK_TAKEN)
        return result;
    result = take_locked(&site, old_state, new_state, claim);
    unlock_site(&site);
    if (result < pool->number)
        tell_watchers(pool, new_state);
    else if (result == SXE_POOL_DAMAGED)
        sxe__pool_damaged(pool);
    return result;
}

/* The meaning of a list's count. LOCKED: the count tells nothing, because during a change, perhaps
 * one of a dead process, an element can be between two lists and counted in neither. */
enum look { EMPTY, FILLED, LOCKED };

static inline enum look
look_at_shard(const struct sxe__pool_header *pool, uint32_t state, uint32_t shard)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;
    const uint32_t list = sxe__pool_shard_list(pool, sharing, state, shard);
    const uint32_t count = SXE__POOL_GET(sharing->nodes[list].count);

    SXE__POOL_FENCE_LOADS();
    if (SXE__POOL_GET_FIRST(sharing->shards[shard].lock) != 0)
        return LOCKED;
    return count == 0 ? EMPTY : FILLED;
}

/* The shard in which a take begins: the thread's own or, once in SXE_POOL_TAKES takes, the next one
 * of the others. Multiplying by the golden ratio puts neighbours far apart: lists of shards that
 * are next to each other share a line of cache. */
static uint32_t
first_shard(const struct sxe__pool_sharing *sharing)
{
    static uint32_t threads;
    static _Thread_local uint32_t mine;
    static _Thread_local uint32_t takes;

    if (mine == 0)
        mine = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    takes++;
    const uint32_t user = mine + (sharing->token & (SXE_POOL_SLOTS - 1));
    const uint32_t home = user * UINT32_C(2654435769) >> __builtin_clz(sharing->shard_mask | 1);
    return takes % SXE_POOL_TAKES == 0 ? home + takes / SXE_POOL_TAKES : home;
}

/* Skip locked shards, and wait for them only if no other shard has an element. */
SXE__POOL_INLINE unsigned
take_at_once(const struct sxe__pool_header *pool, uint32_t old_state, uint32_t new_state,
             struct sxe__pool_claim *claim)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;
    const uint32_t first = first_shard(sharing);
    uint64_t passed_by = 0;

    for (uint32_t i = 0; i <= sharing->shard_mask; i++) {
        const uint32_t shard = (first + i) & sharing->shard_mask;
        const enum look look = look_at_shard(pool, old_state, shard);

        passed_by |= (uint64_t)(look == LOCKED) << shard;
        if (look != FILLED)
            continue;
        const unsigned result = take_from(pool, shard, old_state, new_state, claim);
        if (result != SXE_POOL_NO_INDEX)
            return result;
    }
    while (passed_by != 0) {
        const uint32_t shard = (uint32_t)__builtin_ctzll(passed_by);
        const unsigned result = take_from(pool, shard, old_state, new_state, claim);

        if (result != SXE_POOL_NO_INDEX)
            return result;
        passed_by &= passed_by - 1;
    }
    return SXE_POOL_NO_INDEX;
}

static __attribute__((noinline)) unsigned
take_from_several(const struct sxe__pool_header *pool, uint32_t old_state, uint32_t new_state)
{
    return take_at_once(pool, old_state, new_state, NULL);
}

/* Repeat take_at_once, which found locks taken, while the call may wait. */
static __attribute__((noinline)) unsigned
take_element_again(const struct sxe__pool_header *pool, uint32_t old_state, uint32_t new_state,
                   struct sxe__pool_claim *claim)
{
    struct sxe__pool_patience patience = {0};
    unsigned result = SXE_POOL_LOCK_NOT_TAKEN;

    while (result == SXE_POOL_LOCK_NOT_TAKEN && sxe__pool_wait(pool->sharing, &patience))
        result = take_at_once(pool, old_state, new_state, claim);
    return result;
}

unsigned
sxe__pool_shared_take(const struct sxe__pool_header *pool, uint32_t old_state, uint32_t new_state)
{
    unsigned result = SXE_POOL_NO_INDEX;

    if (pool->sharing->shard_mask != 0)
        result = take_from_several(pool, old_state, new_state);
    else if (look_at_shard(pool, old_state, 0) != EMPTY)
        result = take_from(pool, 0, old_state, new_state, NULL);
    return SXE_LIKELY(result != SXE_POOL_LOCK_NOT_TAKEN)
               ? result
               : take_element_again(pool, old_state, new_state, NULL);
}

unsigned
sxe__pool_shared_lease(const struct sxe__pool_header *pool, struct sxe__pool_claim *claim)
{
    claim->id = take_at_once(pool, claim->old_state, claim->new_state, claim);
    if (claim->id == SXE_POOL_LOCK_NOT_TAKEN)
        claim->id = take_element_again(pool, claim->old_state, claim->new_state, claim);
    return claim->id;
}

/* ---- The oldest of all shards ---- */

struct end {
    uint32_t id; /* NO_INDEX: the list is empty */
    uint64_t stamp;
};

static inline struct end
read_end(const struct sxe__pool_header *pool, uint32_t state, uint32_t shard)
{
    const struct sxe__pool_node *nodes = pool->sharing->nodes;
    const uint32_t id =
        SXE__POOL_GET(nodes[sxe__pool_shard_list(pool, pool->sharing, state, shard)].next);

    if (id >= pool->number)
        return (struct end){.id = SXE_POOL_NO_INDEX, .stamp = UINT64_MAX};
    return (struct end){.id = id, .stamp = SXE__POOL_GET(nodes[id].stamp)};
}

/* Read the old end of a shard's list while no process changes the shard; each change raises its
 * last stamp. False: a process changed it. */
static bool
read_settled_end(const struct sxe__pool_header *pool, uint32_t state, uint32_t shard,
                 struct end *end)
{
    const struct sxe__pool_shard *place = &pool->sharing->shards[shard];
    const uint64_t last = SXE__POOL_GET(place->last_stamp);

    SXE__POOL_FENCE_LOADS();
    if (SXE__POOL_GET_FIRST(place->lock) != 0)
        return false;
    *end = read_end(pool, state, shard);
    SXE__POOL_FENCE_LOADS();
    return SXE__POOL_GET_FIRST(place->lock) == 0 && SXE__POOL_GET(place->last_stamp) == last;
}

/* Read the oldest element of each shard, one shard after the other, and find the oldest of these.
 * LOCK_TAKEN, or why not. */
static unsigned
find_oldest(const struct sxe__pool_header *pool, uint32_t state, struct end *oldest)
{
    *oldest = (struct end){.id = SXE_POOL_NO_INDEX, .stamp = UINT64_MAX};
    for (uint32_t shard = 0; shard <= pool->sharing->shard_mask; shard++) {
        struct end end;

        if (!read_settled_end(pool, state, shard, &end)) {
            const unsigned locked = sxe__pool_lock_shard(pool, shard);

            if (locked != SXE_POOL_LOCK_TAKEN)
                return locked;
            end = read_end(pool, state, shard);
            sxe__pool_unlock_shard(pool, shard);
        }
        *oldest = end.stamp < oldest->stamp ? end : *oldest;
    }
    return SXE_POOL_LOCK_TAKEN;
}

/* Whether `oldest`, whose shard is locked, is still the oldest element of all shards. An element
 * may be older that came into another shard after find_oldest had read that shard. */
static bool
is_still_oldest(const struct sxe__pool_header *pool, uint32_t state, const struct end *oldest)
{
    const uint32_t mine = sxe__pool_shard_of(pool->sharing, oldest->id);
    struct end end = read_end(pool, state, mine);
    bool still = end.id == oldest->id && end.stamp == oldest->stamp;

    for (uint32_t shard = 0; still && shard <= pool->sharing->shard_mask; shard++)
        still = shard == mine ||
                (read_settled_end(pool, state, shard, &end) && end.stamp >= oldest->stamp);
    return still;
}

/* Try once to take the oldest element. False: another process changed the element before it was
 * taken. */
static bool
try_take_oldest(const struct sxe__pool_header *pool, struct sxe__pool_claim *claim,
                unsigned *result)
{
    struct end oldest;

    *result = find_oldest(pool, claim->old_state, &oldest);
    if (*result == SXE_POOL_LOCK_TAKEN && oldest.id == SXE_POOL_NO_INDEX)
        *result = SXE_POOL_NO_INDEX;
    if (*result != SXE_POOL_LOCK_TAKEN)
        return true;
    const struct sxe__pool_site site =
        sxe__pool_site(pool, sxe__pool_shard_of(pool->sharing, oldest.id));
    *result = lock_site(pool, site.shard_index);
    const bool locked = *result == SXE_POOL_LOCK_TAKEN;
    const bool still = locked && is_still_oldest(pool, claim->old_state, &oldest);
    if (still)
        *result = take_locked(&site, claim->old_state, claim->new_state, claim);
    if (locked)
        unlock_site(&site);
    if (still && *result < pool->number)
        tell_watchers(pool, claim->new_state);
    else if (still && *result == SXE_POOL_DAMAGED)
        sxe__pool_damaged(pool);
    return still || !locked;
}

unsigned
sxe__pool_shared_lease_exact(const struct sxe__pool_header *pool, struct sxe__pool_claim *claim)
{
    struct sxe__pool_patience patience = {0};

    do {
        bool done = false;

        for (unsigned attempt = 0; attempt < SXE_POOL_SHARDS_MAX && !done; attempt++)
            done = try_take_oldest(pool, claim, &claim->id);
        claim->id = done ? claim->id : SXE_POOL_LOCK_NOT_TAKEN;
    } while (claim->id == SXE_POOL_LOCK_NOT_TAKEN && sxe__pool_wait(pool->sharing, &patience));
    return claim->id;
}

/* ---- Reading ---- */

unsigned
sxe__pool_shared_count(const struct sxe__pool_header *pool, uint32_t state)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;
    const uint32_t list = sxe__pool_shard_list(pool, sharing, state, 0);
    unsigned count = 0;

    for (uint32_t shard = 0; shard <= sharing->shard_mask; shard++)
        count += SXE__POOL_GET(sharing->nodes[list + shard].count);
    return count;
}

/* If stamps change while they are compared, the result is at worst a neighbour of the end. */
unsigned
sxe__pool_shared_end(const struct sxe__pool_header *pool, uint32_t state, bool youngest)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;
    unsigned found = SXE_POOL_NO_INDEX;
    uint64_t found_stamp = 0;

    for (uint32_t shard = 0; shard <= sharing->shard_mask; shard++) {
        const struct sxe__pool_node *list =
            &sharing->nodes[sxe__pool_shard_list(pool, sharing, state, shard)];
        const uint32_t id = youngest ? SXE__POOL_GET(list->prev) : SXE__POOL_GET(list->next);

        if (id >= pool->number)
            continue;
        const uint64_t stamp = SXE__POOL_GET(sharing->nodes[id].stamp);
        if (found == SXE_POOL_NO_INDEX || (stamp < found_stamp) != youngest) {
            found = id;
            found_stamp = stamp;
        }
    }
    return found;
}

/* ---- Walking ---- */

/* The first element of a shard's list that is younger than a stamp, under its lock; the list's own
 * node if there is none, or if the links form a loop or are impossible. */
static uint32_t
younger_than(const struct sxe__pool_header *pool, uint32_t list, uint64_t stamp)
{
    const struct sxe__pool_node *nodes = pool->sharing->nodes;
    uint32_t id = SXE__POOL_GET(nodes[list].next);

    for (uint32_t steps = 0; steps < pool->number && id < pool->number; steps++) {
        if (SXE__POOL_GET(nodes[id].stamp) > stamp)
            return id;
        id = SXE__POOL_GET(nodes[id].next);
    }
    return list;
}

static uint32_t
step_locked_pool(const struct sxe__pool_header *pool, SXE_POOL_WALKER *walker)
{
    const struct sxe__pool_node *nodes = pool->sharing->nodes;
    const uint32_t list = sxe__pool_shard_list(pool, pool->sharing, walker->state, walker->shard);
    uint32_t id;

    /* Stamps of different shards run apart, so each shard gets its own limit. */
    if (walker->stamp == 0 && pool->sharing->shard_mask != 0)
        walker->limit = SXE__POOL_GET(pool->sharing->shards[walker->shard].last_stamp);
    if (walker->id < pool->number && SXE__POOL_GET(nodes[walker->id].stamp) == walker->stamp)
        id = SXE__POOL_GET(nodes[walker->id].next);
    else
        id = younger_than(pool, list, walker->stamp);
    if (id >= pool->number)
        return SXE_POOL_NO_INDEX;
    const uint64_t stamp = SXE__POOL_GET(nodes[id].stamp);
    if (stamp > walker->limit)
        return SXE_POOL_NO_INDEX;
    /* A list with a loop would be walked for ever. */
    if (stamp <= walker->stamp)
        return sxe__pool_damaged(pool);
    walker->id = id;
    walker->stamp = stamp;
    return id;
}

/* The walk goes through one shard after the other, and begins with the oldest element of each. */
unsigned
sxe__pool_shared_step(const struct sxe__pool_header *pool, SXE_POOL_WALKER *walker)
{
    struct sxe__pool_patience patience = {0};

    while (walker->shard <= pool->sharing->shard_mask) {
        const unsigned locked = sxe__pool_lock_shard_patiently(pool, walker->shard, &patience);

        if (locked != SXE_POOL_LOCK_TAKEN)
            return locked;
        const uint32_t id = step_locked_pool(pool, walker);
        sxe__pool_unlock_shard(pool, walker->shard);
        if (id != SXE_POOL_NO_INDEX)
            return id;
        walker->shard++;
        walker->id = SXE_NONE;
        walker->stamp = 0;
    }
    return SXE_POOL_NO_INDEX;
}
