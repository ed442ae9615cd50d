/* SPDX-License-Identifier: MIT
 *
 * Leases: changes that are made only if the element was not changed since the lease began. Each
 * change is a claim (sxe-pool-private.h), which sxe-pool-shared.c checks under the lock of the
 * element's shard.
 */
#include "sxe-pool-sharing-private.h"

static struct sxe__pool_header *
header_of(void *array, unsigned old_state, unsigned new_state)
{
    struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_state(pool, old_state);
    sxe__pool_check_state(pool, new_state);
    return pool;
}

/* Like sxe__pool_shared_claim, for a pool of one thread. */
static unsigned
claim_alone(struct sxe__pool_header *pool, struct sxe__pool_claim *claim)
{
    const struct sxe__pool_node *node = &sxe__pool_nodes(pool)[claim->id];
    unsigned state = claim->new_state == SXE__POOL_ANY_STATE ? node->state : claim->new_state;

    if (claim->stamp != 0 && node->stamp != claim->stamp)
        return SXE_POOL_LEASE_LOST;
    if (claim->old_state != SXE__POOL_ANY_STATE && node->state != claim->old_state)
        return SXE_POOL_INCORRECT_STATE;
    if (claim->contents != NULL)
        sxe_pool_write_part(pool + 1, claim->id, claim->offset, claim->size, claim->contents);
    if (!claim->stays)
        sxe_pool_move(pool + 1, claim->id, node->state, state);
    claim->stamp = node->stamp;
    return SXE_POOL_LOCK_TAKEN;
}

static unsigned
make_claim(struct sxe__pool_header *pool, struct sxe__pool_claim *claim)
{
    return pool->sharing == NULL ? claim_alone(pool, claim) : sxe__pool_shared_claim(pool, claim);
}

/* ---- Taking ---- */

static unsigned
lease_oldest_alone(struct sxe__pool_header *pool, struct sxe__pool_claim *claim)
{
    claim->id = sxe_pool_get_oldest(pool + 1, claim->old_state);
    if (claim->id != SXE_POOL_NO_INDEX)
        (void)claim_alone(pool, claim);
    return claim->id;
}

static unsigned
give_lease(const struct sxe__pool_claim *claim, unsigned result, SXE_POOL_LEASE *lease)
{
    *lease = (SXE_POOL_LEASE){.id = claim->id, .stamp = claim->stamp};
    return result;
}

unsigned
sxe_pool_lease_oldest(void *array, unsigned old_state, unsigned new_state, const void *contents,
                      SXE_POOL_LEASE *lease)
{
    struct sxe__pool_header *pool = header_of(array, old_state, new_state);
    struct sxe__pool_claim claim = {.old_state = old_state,
                                    .new_state = new_state,
                                    .contents = contents,
                                    .size = pool->element_size};
    const unsigned id = pool->sharing == NULL ? lease_oldest_alone(pool, &claim)
                                              : sxe__pool_shared_lease(pool, &claim);

    return give_lease(&claim, id, lease);
}

unsigned
sxe_pool_lease_exact_oldest(void *array, unsigned old_state, unsigned new_state,
                            const void *contents, SXE_POOL_LEASE *lease)
{
    struct sxe__pool_header *pool = header_of(array, old_state, new_state);
    struct sxe__pool_claim claim = {.old_state = old_state,
                                    .new_state = new_state,
                                    .contents = contents,
                                    .size = pool->element_size};

    if (pool->sharing == NULL || pool->sharing->shard_mask == 0)
        return sxe_pool_lease_oldest(array, old_state, new_state, contents, lease);
    return give_lease(&claim, sxe__pool_shared_lease_exact(pool, &claim), lease);
}

unsigned
sxe_pool_lease_indexed(void *array, unsigned old_state, unsigned new_state, const void *contents,
                       SXE_POOL_LEASE *lease)
{
    struct sxe__pool_header *pool = header_of(array, old_state, new_state);
    struct sxe__pool_claim claim = {.id = lease->id,
                                    .old_state = old_state,
                                    .new_state = new_state,
                                    .contents = contents,
                                    .size = pool->element_size};

    sxe__pool_check_id(pool, lease->id);
    const unsigned result = make_claim(pool, &claim);
    return give_lease(&claim, result, lease);
}

/* ---- With a lease ---- */

/* Claim the lease's element, if its stamp is the lease's. A stamp of 0 is a lost lease, whatever
 * its id. */
static unsigned
claim_with_lease(void *array, SXE_POOL_LEASE *lease, struct sxe__pool_claim *claim)
{
    struct sxe__pool_header *pool = sxe__pool_header(array);

    if (lease->stamp == 0)
        return SXE_POOL_LEASE_LOST;
    sxe__pool_check_id(pool, lease->id);
    claim->id = lease->id;
    claim->stamp = lease->stamp;
    const unsigned result = make_claim(pool, claim);
    if (result == SXE_POOL_LOCK_TAKEN)
        lease->stamp = claim->stamp;
    return result;
}

unsigned
sxe_pool_lease_move(void *array, SXE_POOL_LEASE *lease, unsigned new_state, const void *contents)
{
    const struct sxe__pool_header *pool = header_of(array, new_state, new_state);
    struct sxe__pool_claim claim = {.old_state = SXE__POOL_ANY_STATE,
                                    .new_state = new_state,
                                    .contents = contents,
                                    .size = pool->element_size};

    return claim_with_lease(array, lease, &claim);
}

unsigned
sxe_pool_lease_renew(void *array, SXE_POOL_LEASE *lease)
{
    struct sxe__pool_claim claim = {.old_state = SXE__POOL_ANY_STATE,
                                    .new_state = SXE__POOL_ANY_STATE};

    return claim_with_lease(array, lease, &claim);
}

unsigned
sxe_pool_lease_write(void *array, const SXE_POOL_LEASE *lease, size_t offset, size_t size,
                     const void *value)
{
    struct sxe__pool_claim claim = {.old_state = SXE__POOL_ANY_STATE,
                                    .new_state = SXE__POOL_ANY_STATE,
                                    .stays = true,
                                    .contents = value,
                                    .offset = offset,
                                    .size = size};
    /* work with a copy: the stamp of the caller's lease must not change */
    SXE_POOL_LEASE copy = *lease;

    return claim_with_lease(array, &copy, &claim);
}

bool
sxe_pool_lease_is_held(const void *array, const SXE_POOL_LEASE *lease)
{
    return lease->stamp != 0 && sxe_pool_get_time(array, lease->id) == lease->stamp;
}
