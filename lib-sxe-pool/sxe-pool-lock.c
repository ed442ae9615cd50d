/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "sxe-pool-sharing-private.h"

/* Some 50 us: 30 where a pause takes 40 cycles, 90 where it takes 140. */
#ifndef SXE__POOL_SPINS
#    define SXE__POOL_SPINS 2000u
#endif

/* Pauses between two looks are doubled up to these: so the owner has the lock's line for itself
 * while it makes some changes more, which is faster for both than to take turns at each. */
#define LONGEST_PAUSE 64u

static inline bool
swap(const struct sxe__pool_sharing *sharing, uint32_t *lock, uint32_t *owner)
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
        if (owner == 0 && swap(sharing, lock, &owner))
            return 0;
        for (unsigned i = 0; i < pauses; i++)
            sxe__pool_pause();
        pauses = pauses < LONGEST_PAUSE ? 2 * pauses : pauses;
    }
    /* A token is never given twice, so what is swapped is the lock of the one who is dead. */
    if (owner == 0 || sxe__pool_owner_lives(sharing, owner) || !swap(sharing, lock, &owner))
        return -EAGAIN;
    return 1;
}
