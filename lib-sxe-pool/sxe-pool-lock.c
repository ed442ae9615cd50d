/* SPDX-License-Identifier: MIT
 *
 * The slow path of a shard's lock: spin, ask whether the owner is alive, take over, wait.
 */
#include <errno.h>
#include <time.h>

#include "sxe-pool-sharing-private.h"

/* Spin for some 50 us: for 30 us on processors whose pause takes 40 cycles, 90 us where it takes
 * 140. */
#ifndef SXE__POOL_SPINS
#    define SXE__POOL_SPINS 2000u
#endif

/* The pauses between two looks at the lock double up to this number. Meanwhile the owner has the
 * lock's cache line to itself and makes several changes, which is faster for both processes than to
 * take turns. */
#define LONGEST_PAUSE 64u

/* Sleeps are doubled, too. SXE__POOL_NAPS naps are longer than the longest sleep. */
#define FIRST_SLEEP_NS   (50 * SXE_NS_PER_US)
#define LONGEST_SLEEP_NS SXE_NS_PER_MS
#define NAP_NS           (100 * SXE_NS_PER_US)
_Static_assert(SXE__POOL_NAPS *NAP_NS > LONGEST_SLEEP_NS, "a waiter must wake up meanwhile");

static inline bool
swap_owner(const struct sxe__pool_sharing *sharing, uint32_t *lock, uint32_t *owner)
{
    SXE__POOL_STEP();
    const bool taken = __atomic_compare_exchange_n(lock, owner, sharing->token, false,
                                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    SXE__POOL_FENCE_STORES();
    return taken;
}

int
sxe__pool_lock_slowly(struct sxe__pool_sharing *sharing, uint32_t *lock)
{
    uint32_t owner = 0;

    if (__atomic_load_n(&sharing->token, __ATOMIC_RELAXED) == 0 && !sxe__pool_attach_again(sharing))
        return -EAGAIN;
    for (unsigned spins = 0, pauses = 1; spins < SXE__POOL_SPINS; spins += pauses) {
        owner = SXE__POOL_GET(*lock);
        if (owner == 0 && swap_owner(sharing, lock, &owner))
            return 0;
        for (unsigned i = 0; i < pauses; i++)
            sxe__pool_pause();
        pauses = pauses < LONGEST_PAUSE ? 2 * pauses : pauses;
    }
    /* No token is given twice, so this swap can only replace the dead owner's lock. */
    if (owner == 0 || sxe__pool_is_owner_alive(sharing, owner) ||
        !swap_owner(sharing, lock, &owner))
        return -EAGAIN;
    return 1;
}

/* ---- Waiting: measured with the clock, because a turn's time stands still ---- */

int
sxe_pool_set_wait(void *array, double seconds)
{
    struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    if (!(seconds >= 0 && seconds <= SXE_POOL_WAIT_MAX))
        return -EINVAL;
    if (sharing != NULL)
        sharing->wait_ns = (uint64_t)(seconds * (double)SXE_NS_PER_SECOND);
    return 0;
}

/* The time that a call may still wait, in ns. */
static uint64_t
time_left(const struct sxe__pool_sharing *sharing, struct sxe__pool_patience *patience)
{
    if (sharing->wait_ns == 0)
        return 0;
    const uint64_t now_ns = sxe_time_ns();

    if (patience->deadline_ns == 0) {
        patience->deadline_ns = now_ns + sharing->wait_ns;
        patience->pause_ns = FIRST_SLEEP_NS;
    }
    return patience->deadline_ns > now_ns ? patience->deadline_ns - now_ns : 0;
}

bool
sxe__pool_may_go_on(const struct sxe__pool_sharing *sharing, struct sxe__pool_patience *patience)
{
    return time_left(sharing, patience) != 0;
}

bool
sxe__pool_wait(const struct sxe__pool_sharing *sharing, struct sxe__pool_patience *patience)
{
    const uint64_t left_ns = time_left(sharing, patience);
    const uint64_t pause_ns = left_ns < patience->pause_ns ? left_ns : patience->pause_ns;
    const struct timespec pause = {.tv_nsec = (long)pause_ns};

    if (left_ns == 0)
        return false;
    patience->pause_ns *= 2;
    if (patience->pause_ns > LONGEST_SLEEP_NS)
        patience->pause_ns = LONGEST_SLEEP_NS;
    nanosleep(&pause, NULL);
    return true;
}

void
sxe__pool_nap(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = (long)NAP_NS}, NULL);
}

unsigned
sxe__pool_lock_shard_for_long(const struct sxe__pool_header *pool, uint32_t shard_index)
{
    struct sxe__pool_patience patience = {0};

    return sxe__pool_lock_shard_patiently(pool, shard_index, &patience);
}

unsigned
sxe__pool_lock_shard_patiently(const struct sxe__pool_header *pool, uint32_t shard_index,
                               struct sxe__pool_patience *patience)
{
    unsigned result;

    do
        result = sxe__pool_lock_shard(pool, shard_index);
    while (result == SXE_POOL_LOCK_NOT_TAKEN && sxe__pool_wait(pool->sharing, patience));
    return result;
}
