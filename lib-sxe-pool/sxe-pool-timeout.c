/* SPDX-License-Identifier: MIT
 *
 * Every list is in time order and one timeout holds for all of a state, so due elements are at the
 * old end: no timer per element, no heap, nothing to cancel.
 */
#include <errno.h>

#include "sxe-pool-sharing-private.h"

#define LOOK_NS  SXE_NS_PER_SECOND /* the longest time between two checks of a shared pool */
#define AGAIN_NS SXE_NS_PER_MS /* how long to wait after a check that other processes hindered */

/* A timeout of NaN counts as none. */
static bool
is_timeout(double seconds)
{
    return seconds >= 0.0;
}

/* Convert seconds to nanoseconds, rounded up, so that no timeout is early. A time longer than the
 * clock can count never comes. */
static uint64_t
to_ns(double seconds)
{
    const double ns = seconds * (double)SXE_NS_PER_SECOND;

    if (ns >= (double)INT64_MAX)
        return 0;
    const uint64_t whole_ns = (uint64_t)ns;
    return (double)whole_ns < ns ? whole_ns + 1 : whole_ns;
}

static bool
are_timeouts_possible(const double *timeouts, unsigned states, SXE_POOL_EVENT_TIMEOUT on_timeout)
{
    bool possible = timeouts != NULL && on_timeout != NULL;

    for (unsigned state = 0; possible && state < states; state++)
        possible = is_timeout(timeouts[state]);
    return possible;
}

int
sxe_pool_set_timeouts(void *array, const double *timeouts, SXE_POOL_EVENT_TIMEOUT on_timeout,
                      void *user)
{
    const unsigned states = sxe__pool_header(array)->states;
    struct sxe__pool_local *local = sxe__pool_local_find(array);

    if (!are_timeouts_possible(timeouts, states, on_timeout))
        return -EINVAL;
    if (local == NULL && (local = sxe__pool_local_add(array)) == NULL)
        return -ENOMEM;
    local->on_timeout = on_timeout;
    local->user = user;
    for (unsigned state = 0; state < states; state++)
        local->timeout_ns[state] = to_ns(timeouts[state]);
    return 0;
}

void *
sxe_pool_new_with_timeouts(const char *name, unsigned number, size_t element_size, unsigned states,
                           const double *timeouts, SXE_POOL_EVENT_TIMEOUT on_timeout, void *user)
{
    if (!are_timeouts_possible(timeouts, states, on_timeout)) {
        errno = EINVAL;
        return NULL;
    }
    void *array = sxe_pool_new(name, number, element_size, states, SXE_POOL_OPTION_UNLOCKED);
    if (array != NULL && sxe_pool_set_timeouts(array, timeouts, on_timeout, user) != 0) {
        sxe_pool_delete(array);
        errno = ENOMEM;
        return NULL;
    }
    return array;
}

void
sxe_pool_set_state_timeout(void *array, unsigned state, double timeout_seconds)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    struct sxe__pool_local *local = sxe__pool_local_find(array);

    sxe__pool_check_state(pool, state);
    SXE_ASSERT(is_timeout(timeout_seconds), "pool %s: the timeout of state %s cannot be %f s",
               pool->name, sxe_pool_state_to_string(array, state), timeout_seconds);
    SXE_ASSERT(local != NULL && local->on_timeout != NULL,
               "pool %s was not made with timeouts in this thread", pool->name);
    local->timeout_ns[state] = to_ns(timeout_seconds);
}

/* ---- Due elements, by the pool's time, like their stamps ---- */

/* When the oldest element of a state is due; 0: the state has no element, or no timeout. */
static uint64_t
due_ns(const struct sxe__pool_local *local, unsigned state)
{
    const uint64_t timeout_ns = local->timeout_ns[state];

    if (timeout_ns == 0)
        return 0;
    const uint64_t stamp = sxe_pool_get_oldest_time(local->array, state);
    return stamp == 0 ? 0 : stamp + timeout_ns;
}

static void
call_on_timeout(struct sxe__pool_local *local, unsigned id, uint64_t stamp)
{
    local->due = id;
    local->due_stamp = stamp;
    local->on_timeout(local->array, id, local->user);
    local->due_stamp = 0;
}

void
sxe_pool_lease_due(const void *array, unsigned id, SXE_POOL_LEASE *lease)
{
    const struct sxe__pool_local *local = sxe__pool_local_find(array);
    const bool is_due = local != NULL && local->due_stamp != 0 && local->due == id;

    *lease = (SXE_POOL_LEASE){.id = id, .stamp = is_due ? local->due_stamp : 0};
}

/* The loop ends, because an element that on_timeout moves or touches gets a stamp of now or later,
 * and so is not due, whatever its new state. */
static void
check_state_timeouts(struct sxe__pool_local *local, unsigned state, uint64_t now_ns)
{
    void *array = local->array;

    for (uint64_t due = due_ns(local, state); due != 0 && due <= now_ns;
         due = due_ns(local, state)) {
        const unsigned id = sxe_pool_get_oldest(array, state);
        const uint64_t stamp = sxe_pool_get_time(array, id);

        call_on_timeout(local, id, stamp);
        SXE_ASSERT_ID(id, sxe_pool_get_time(array, id) != stamp,
                      "pool %s: on_timeout neither moved nor touched element %u in state %s",
                      sxe_pool_get_name(array), id, sxe_pool_state_to_string(array, state));
    }
}

static void
check_own(struct sxe__pool_local *local, uint64_t now_ns)
{
    const unsigned states = sxe__pool_header(local->array)->states;

    local->checking = true;
    for (unsigned state = 0; state < states; state++)
        check_state_timeouts(local, state, now_ns);
    local->checking = false;
}

/* ---- Shared pools: other processes move due elements during a check ---- */

/* The oldest element that is due, and its stamp, of the shards that are not in `passed` (one bit
 * each). The state is read before the stamp, and each change writes the stamp first. So if state
 * and stamp come from two different changes, the stamp is that of the later change. */
static unsigned
find_due(const struct sxe__pool_local *local, unsigned state, uint64_t now_ns, uint64_t passed,
         uint64_t *found_stamp)
{
    const struct sxe__pool_header *pool = sxe__pool_header(local->array);
    const struct sxe__pool_sharing *sharing = pool->sharing;
    unsigned found = SXE_POOL_NO_INDEX;
    uint64_t oldest = now_ns;

    for (uint32_t shard = 0; shard <= sharing->shard_mask; shard++) {
        const uint32_t list = sxe__pool_shard_list(pool, sharing, state, shard);
        const uint32_t id = SXE__POOL_GET(sharing->nodes[list].next);

        if ((passed >> shard & 1) != 0 || id >= pool->number ||
            SXE__POOL_GET_FIRST(sharing->nodes[id].state) != state)
            continue;
        const uint64_t stamp = SXE__POOL_GET(sharing->nodes[id].stamp);
        if (stamp < oldest && now_ns - stamp >= local->timeout_ns[state]) {
            found = id;
            oldest = stamp;
        }
    }
    *found_stamp = oldest;
    return found;
}

/* An element that on_timeout left as it was (its shard was locked, or another process has it now)
 * waits for the next check, and so do the elements after it in its shard. Returns whether any
 * element waits. */
static bool
check_shared_state(struct sxe__pool_local *local, unsigned state, uint64_t now_ns)
{
    const struct sxe__pool_header *pool = sxe__pool_header(local->array);
    const struct sxe__pool_node *nodes = pool->sharing->nodes;
    uint64_t passed = 0;

    for (uint32_t left = pool->number; left > 0 && local->timeout_ns[state] != 0; left--) {
        uint64_t stamp;
        const unsigned id = find_due(local, state, now_ns, passed, &stamp);

        if (id == SXE_POOL_NO_INDEX)
            break;
        call_on_timeout(local, id, stamp);
        if (SXE__POOL_GET(nodes[id].stamp) == stamp)
            passed |= UINT64_C(1) << sxe__pool_shard_of(pool->sharing, id);
    }
    return passed != 0;
}

/* Try to become the one process that checks: others do not wait for it, and a dead one is
 * replaced. */
static bool
may_check(struct sxe__pool_sharing *sharing)
{
    uint32_t *lock = &sharing->head->timeouts;
    const uint32_t owner = SXE__POOL_GET(*lock);

    return (owner == 0 || !sxe__pool_is_owner_alive(sharing, owner)) &&
           sxe__pool_lock(sharing, lock) >= 0;
}

/* Release the lock only if it is this process's: on_timeout may have returned in a child of
 * fork. */
static void
leave_it_to_others(struct sxe__pool_sharing *sharing)
{
    uint32_t mine = SXE__POOL_GET(sharing->token);

    SXE__POOL_STEP();
    __atomic_compare_exchange_n(&sharing->head->timeouts, &mine, 0, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

/* Complete the moves of dead processes: until then such an element may be on no list. */
static void
complete_for_the_dead(const struct sxe__pool_header *pool)
{
    for (uint32_t shard = 0; shard <= pool->sharing->shard_mask; shard++) {
        const uint32_t owner = SXE__POOL_GET(pool->sharing->shards[shard].lock);

        if (owner != 0 && !sxe__pool_is_owner_alive(pool->sharing, owner) &&
            sxe__pool_lock_shard(pool, shard) == SXE_POOL_LOCK_TAKEN)
            sxe__pool_unlock_shard(pool, shard);
    }
}

static void
check_shared(struct sxe__pool_local *local, uint64_t turn_ns)
{
    const struct sxe__pool_header *pool = sxe__pool_header(local->array);
    bool waits = true;

    if (may_check(pool->sharing)) {
        waits = false;
        complete_for_the_dead(pool);
        local->checking = true;
        for (unsigned state = 0; state < pool->states; state++)
            waits |= check_shared_state(local, state, turn_ns + pool->sharing->time_offset_ns);
        local->checking = false;
        leave_it_to_others(pool->sharing);
    }
    local->again_ns = waits ? turn_ns + AGAIN_NS : 0;
}

/* ---- All pools of this thread ---- */

void
sxe_pool_check_timeouts(void)
{
    const uint64_t turn_ns = sxe_time_turn_ns();

    for (struct sxe__pool_local *local = sxe__pool_locals; local != NULL; local = local->next) {
        if (local->on_timeout == NULL)
            continue;
        const struct sxe__pool_header *pool = sxe__pool_header(local->array);

        SXE_ASSERT(!local->checking, "timeouts checked from the on_timeout of pool %s", pool->name);
        if (pool->sharing == NULL)
            check_own(local, turn_ns);
        else
            check_shared(local, turn_ns);
    }
}

/* Other processes may add elements unnoticed, and die: check again after LOOK_NS at the latest. */
static SXE_TIME
next_shared(const struct sxe__pool_local *local, uint64_t due)
{
    const uint64_t turn_ns = sxe_time_turn_ns();
    const uint64_t now_ns = turn_ns + sxe__pool_header(local->array)->sharing->time_offset_ns;
    const uint64_t left = due > now_ns ? due - now_ns : 0;
    const SXE_TIME next = turn_ns + (due == 0 || left > LOOK_NS ? LOOK_NS : left);

    return next < local->again_ns ? local->again_ns : next;
}

/* When to check a pool; 0: never. */
static SXE_TIME
next_of(const struct sxe__pool_local *local)
{
    const struct sxe__pool_header *pool = sxe__pool_header(local->array);
    uint64_t first = 0;

    for (unsigned state = 0; state < pool->states; state++) {
        const uint64_t due = due_ns(local, state);

        if (due != 0 && (first == 0 || due < first))
            first = due;
    }
    return pool->sharing == NULL ? first : next_shared(local, first);
}

SXE_TIME
sxe_pool_get_next_timeout(void)
{
    SXE_TIME first = 0;

    for (const struct sxe__pool_local *local = sxe__pool_locals; local != NULL;
         local = local->next) {
        const SXE_TIME next = local->on_timeout == NULL ? 0 : next_of(local);

        if (next != 0 && (first == 0 || next < first))
            first = next;
    }
    return first;
}
