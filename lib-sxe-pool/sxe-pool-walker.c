/* SPDX-License-Identifier: MIT
 *
 * Stamps are unique in a pool, and a node keeps its stamp until its element is moved or touched. So
 * a node that still has its stamp is still in its place, and the walk is over where stamps pass the
 * limit.
 */
#include "sxe-pool-sharing-private.h"

void
sxe_pool_walker_construct(SXE_POOL_WALKER *walker, void *array, unsigned state)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_state(pool, state);
    /* A list's own node always has stamp 0: the walk begins as if it had just met that node. */
    *walker = (SXE_POOL_WALKER){
        .array = array,
        .limit = pool->sharing == NULL ? pool->last_stamp : sxe__pool_last_stamp(pool->sharing),
        .state = state,
        .id = sxe__pool_list(pool, state),
    };
}

/* Search from the old end for the first element that is younger than the one last met. */
static unsigned
find_element_again(const SXE_POOL_WALKER *walker, const struct sxe__pool_header *pool)
{
    const struct sxe__pool_node *nodes = sxe__pool_nodes(pool);
    unsigned id = nodes[sxe__pool_list(pool, walker->state)].next;

    while (id < pool->number && nodes[id].stamp < walker->stamp)
        id = nodes[id].next;
    return id;
}

unsigned
sxe_pool_walker_step(SXE_POOL_WALKER *walker)
{
    const struct sxe__pool_header *pool = sxe__pool_header(walker->array);
    const struct sxe__pool_node *nodes = sxe__pool_nodes(pool);
    unsigned id;

    if (pool->sharing != NULL)
        return sxe__pool_shared_step(pool, walker);
    if (nodes[walker->id].stamp == walker->stamp)
        id = nodes[walker->id].next;
    else if (nodes[walker->next].stamp == walker->next_stamp)
        id = walker->next;
    else
        id = find_element_again(walker, pool);
    if (id >= pool->number || nodes[id].stamp > walker->limit)
        return SXE_POOL_NO_INDEX;
    walker->id = id;
    walker->stamp = nodes[id].stamp;
    walker->next = nodes[id].next;
    walker->next_stamp = nodes[walker->next].stamp;
    return id;
}
