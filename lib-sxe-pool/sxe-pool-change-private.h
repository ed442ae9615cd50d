/* SPDX-License-Identifier: MIT
 *
 * What: the change of one element's place under its shard's lock, in such a way that whoever is
 * killed at any instruction of it leaves either nothing done or an intent that says all.
 *
 * Place: included by sxe-pool-shared.c, and by the model checker (test/model), which runs these
 * very lines with every interleaving and a death at every access (SXE__POOL_STEP).
 *
 * Shape:  check the links -> write the intent, its stamp last -> do it, the shard's stamp last
 *                                                             ^ from here on it will be done, by us
 *                                                               or by who takes over our lock
 *
 * A stamp is above all before it. So an intent whose stamp is above the shard's is begun and not
 * done, and it takes no store of its own to say so, nor to take that back.
 */
#ifndef SXE_POOL_CHANGE_H
#define SXE_POOL_CHANGE_H

#include "sxe-pool-sharing-private.h"

/* All is inlined where it is used, and what is known before the lock is taken is found out before:
 * so the lock is held for as short as can be, and values stay in registers. */
#define SXE__POOL_INLINE static inline __attribute__((always_inline))

/* Where and when a change is made. */
struct sxe__pool_site {
    const struct sxe__pool_header *pool;
    const struct sxe__pool_sharing *sharing;
    uint32_t shard;
    uint64_t now_ns; /* by the pool's time */
};

/* Where an element is: its own links, read once. */
struct sxe__pool_place {
    uint32_t state;
    uint32_t prev;
    uint32_t next;
};

SXE__POOL_INLINE struct sxe__pool_site
sxe__pool_site(const struct sxe__pool_header *pool, uint32_t shard)
{
    return (struct sxe__pool_site){
        .pool = pool,
        .sharing = pool->sharing,
        .shard = shard,
        .now_ns = sxe_time_turn_ns() + pool->sharing->time_offset_ns,
    };
}

/* Read the place of an element under the lock. False: no process of ours can have written that. */
SXE__POOL_INLINE bool
sxe__pool_read_place(const struct sxe__pool_site *site, uint32_t id, struct sxe__pool_place *place)
{
    const struct sxe__pool_node *nodes = site->sharing->nodes;
    const uint32_t end = site->sharing->end;

    *place = (struct sxe__pool_place){
        .state = SXE__POOL_GET(nodes[id].state),
        .prev = SXE__POOL_GET(nodes[id].prev),
        .next = SXE__POOL_GET(nodes[id].next),
    };
    return place->state < site->pool->states && place->prev < end && place->next < end &&
           place->prev != id && place->next != id && SXE__POOL_GET(nodes[place->prev].next) == id &&
           SXE__POOL_GET(nodes[place->next].prev) == id;
}

/* Do what an intent says, from list to list: all values are final, so it does not matter how much
 * was done before. An element has its stamp before its state, for those who read without a lock. */
SXE__POOL_INLINE void
sxe__pool_apply(const struct sxe__pool_intent *intent, uint32_t from, uint32_t to,
                struct sxe__pool_shard *shard, struct sxe__pool_node *nodes)
{
    struct sxe__pool_node *node = &nodes[intent->id];

    SXE__POOL_PUT(nodes[intent->prev].next, intent->next);
    SXE__POOL_PUT(nodes[intent->next].prev, intent->prev);
    SXE__POOL_PUT_PAIR(node->next, node->prev, to, intent->tail);
    SXE__POOL_PUT(node->stamp, intent->stamp);
    if (intent->old_state != intent->new_state) {
        SXE__POOL_PUT_PAIR(node->state, node->generation, intent->new_state, intent->generation);
        SXE__POOL_PUT(nodes[from].count, intent->from_count);
        SXE__POOL_PUT(nodes[to].count, intent->to_count);
    }
    SXE__POOL_PUT(nodes[intent->tail].next, intent->id);
    SXE__POOL_PUT(nodes[to].prev, intent->id);
    SXE__POOL_PUT_LAST(shard->last_stamp, intent->stamp);
}

/* Complete what the dead owner of a lock had begun; its intent was written by one of ours only if
 * all its indexes are possible: otherwise false. */
static inline bool
sxe__pool_complete(const struct sxe__pool_header *pool, const struct sxe__pool_sharing *sharing,
                   uint32_t number)
{
    struct sxe__pool_shard *shard = &sharing->shards[number];

    if (!sxe__pool_is_begun(shard))
        return true;
    const struct sxe__pool_intent intent = {
        .id = SXE__POOL_GET(shard->intent.id),
        .prev = SXE__POOL_GET(shard->intent.prev),
        .next = SXE__POOL_GET(shard->intent.next),
        .tail = SXE__POOL_GET(shard->intent.tail),
        .old_state = SXE__POOL_GET(shard->intent.old_state),
        .new_state = SXE__POOL_GET(shard->intent.new_state),
        .from_count = SXE__POOL_GET(shard->intent.from_count),
        .to_count = SXE__POOL_GET(shard->intent.to_count),
        .generation = SXE__POOL_GET(shard->intent.generation),
        .stamp = SXE__POOL_GET(shard->intent.stamp),
    };
    if (intent.id >= pool->number || intent.prev >= sharing->end || intent.next >= sharing->end ||
        intent.tail >= sharing->end || intent.old_state >= pool->states ||
        intent.new_state >= pool->states)
        return false;
    sxe__pool_apply(&intent, sxe__pool_shard_list(pool, sharing, intent.old_state, number),
                    sxe__pool_shard_list(pool, sharing, intent.new_state, number), shard,
                    sharing->nodes);
    return true;
}

/* Write down what will be done: the stamp after all else, and all of it before anything is done.
 * On x86 that binds only the compiler. */
SXE__POOL_INLINE void
sxe__pool_intend(const struct sxe__pool_intent *intent, struct sxe__pool_shard *shard)
{
    SXE__POOL_PUT_PAIR(shard->intent.id, shard->intent.prev, intent->id, intent->prev);
    SXE__POOL_PUT_PAIR(shard->intent.next, shard->intent.tail, intent->next, intent->tail);
    SXE__POOL_PUT_PAIR(shard->intent.old_state, shard->intent.new_state, intent->old_state,
                       intent->new_state);
    if (intent->old_state != intent->new_state) {
        SXE__POOL_PUT_PAIR(shard->intent.from_count, shard->intent.to_count, intent->from_count,
                           intent->to_count);
        SXE__POOL_PUT(shard->intent.generation, intent->generation);
    }
    SXE__POOL_PUT_LAST(shard->intent.stamp, intent->stamp);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The generation of an element that comes to a state from another; never 0. */
SXE__POOL_INLINE uint32_t
sxe__pool_next_generation(const struct sxe__pool_node *node, uint32_t new_state)
{
    const uint32_t generation = SXE__POOL_GET(node->generation) + (new_state == 0);

    return generation + (generation == 0);
}

/* Move an element, whose place was read under the lock, to the young end of a state. False: the
 * list that it should go to is damaged; nothing was changed. */
SXE__POOL_INLINE bool
sxe__pool_change(const struct sxe__pool_site *site, uint32_t id,
                 const struct sxe__pool_place *place, uint32_t new_state)
{
    const struct sxe__pool_sharing *sharing = site->sharing;
    struct sxe__pool_node *nodes = sharing->nodes;
    struct sxe__pool_shard *shard = &sharing->shards[site->shard];
    const uint32_t to = sxe__pool_shard_list(site->pool, sharing, new_state, site->shard);
    const uint32_t youngest = SXE__POOL_GET(nodes[to].prev);

    if (youngest >= sharing->end || SXE__POOL_GET(nodes[youngest].next) != to)
        return false;
    const uint32_t from = sxe__pool_shard_list(site->pool, sharing, place->state, site->shard);
    const uint64_t last = SXE__POOL_GET(shard->last_stamp);
    struct sxe__pool_intent intent = {
        .id = id,
        .prev = place->prev,
        .next = place->next,
        .tail = youngest == id ? place->prev : youngest,
        .old_state = place->state,
        .new_state = new_state,
        .stamp = site->now_ns > last ? site->now_ns : last + 1,
    };
    if (place->state != new_state) {
        intent.from_count = SXE__POOL_GET(nodes[from].count) - 1;
        intent.to_count = SXE__POOL_GET(nodes[to].count) + 1;
        intent.generation = sxe__pool_next_generation(&nodes[id], new_state);
    }
    if (sharing->survives)
        sxe__pool_intend(&intent, shard);
    sxe__pool_apply(&intent, from, to, shard, nodes);
    return true;
}

#endif
