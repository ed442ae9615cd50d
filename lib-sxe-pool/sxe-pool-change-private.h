/* SPDX-License-Identifier: MIT
 *
 * What: the change of one element's place under its shard's lock, in such a way that whoever is
 * killed at any instruction of it leaves either nothing done or an intent that says all.
 *
 * Place: included by sxe-pool-shared.c, and by the model checker (test/model), which runs these
 * very lines with every interleaving and a death at every access (SXE__POOL_STEP).
 *
 * Shape:  check the links -> write the intent -> valid = 1 -> do it -> valid = 0
 *                                                   ^ from here on it will be done, by us or by
 *                                                     who takes the lock over from us
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

/* Do what an intent says: all values are final, so it does not matter how much was done before. */
SXE__POOL_INLINE void
sxe__pool_apply(const struct sxe__pool_intent *intent, struct sxe__pool_shard *shard,
                struct sxe__pool_node *nodes)
{
    struct sxe__pool_node *node = &nodes[intent->id];

    SXE__POOL_PUT(nodes[intent->prev].next, intent->next);
    SXE__POOL_PUT(nodes[intent->next].prev, intent->prev);
    SXE__POOL_PUT(nodes[intent->from].count, intent->from_count);
    SXE__POOL_PUT(node->next, intent->to);
    SXE__POOL_PUT(node->prev, intent->tail);
    SXE__POOL_PUT(node->generation, intent->generation);
    SXE__POOL_PUT(node->stamp, intent->stamp);
    SXE__POOL_PUT(node->state, intent->state);
    SXE__POOL_PUT(nodes[intent->tail].next, intent->id);
    SXE__POOL_PUT(nodes[intent->to].prev, intent->id);
    SXE__POOL_PUT(nodes[intent->to].count, intent->to_count);
    SXE__POOL_PUT(shard->last_stamp, intent->stamp);
    SXE__POOL_PUT_LAST(shard->intent.valid, 0);
}

/* Complete what the dead owner of a lock had begun; a valid intent was written by one of ours only
 * if all its indexes are possible: otherwise false. */
static inline bool
sxe__pool_complete(const struct sxe__pool_header *pool, const struct sxe__pool_sharing *sharing,
                   uint32_t number)
{
    struct sxe__pool_shard *shard = &sharing->shards[number];

    if (SXE__POOL_GET(shard->intent.valid) == 0)
        return true;
    const struct sxe__pool_intent intent = {
        .id = SXE__POOL_GET(shard->intent.id),
        .prev = SXE__POOL_GET(shard->intent.prev),
        .next = SXE__POOL_GET(shard->intent.next),
        .from = SXE__POOL_GET(shard->intent.from),
        .to = SXE__POOL_GET(shard->intent.to),
        .tail = SXE__POOL_GET(shard->intent.tail),
        .from_count = SXE__POOL_GET(shard->intent.from_count),
        .to_count = SXE__POOL_GET(shard->intent.to_count),
        .state = SXE__POOL_GET(shard->intent.state),
        .generation = SXE__POOL_GET(shard->intent.generation),
        .stamp = SXE__POOL_GET(shard->intent.stamp),
    };
    if (intent.id >= pool->number || intent.prev >= sharing->end || intent.next >= sharing->end ||
        intent.from >= sharing->end || intent.tail >= sharing->end ||
        intent.state >= pool->states || intent.from < pool->number ||
        intent.to != sxe__pool_shard_list(pool, sharing, intent.state, number))
        return false;
    sxe__pool_apply(&intent, shard, sharing->nodes);
    return true;
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
    const uint32_t from = sxe__pool_shard_list(site->pool, sharing, place->state, site->shard);
    const uint32_t to = sxe__pool_shard_list(site->pool, sharing, new_state, site->shard);
    const uint32_t youngest = SXE__POOL_GET(nodes[to].prev);
    const uint64_t last = SXE__POOL_GET(shard->last_stamp);
    const uint32_t stays = from == to;
    const uint32_t generation =
        SXE__POOL_GET(nodes[id].generation) + (new_state == 0 && place->state != 0);

    if (youngest >= sharing->end || SXE__POOL_GET(nodes[youngest].next) != to)
        return false;
    const struct sxe__pool_intent intent = {
        .id = id,
        .prev = place->prev,
        .next = place->next,
        .from = from,
        .to = to,
        .tail = youngest == id ? place->prev : youngest,
        .from_count = SXE__POOL_GET(nodes[from].count) - !stays,
        .to_count = SXE__POOL_GET(nodes[to].count) + !stays,
        .state = new_state,
        .generation = generation + (generation == 0),
        .stamp = site->now_ns > last ? site->now_ns : last + 1,
    };
    if (sharing->survives) {
        SXE__POOL_PUT(shard->intent.id, intent.id);
        SXE__POOL_PUT(shard->intent.prev, intent.prev);
        SXE__POOL_PUT(shard->intent.next, intent.next);
        SXE__POOL_PUT(shard->intent.from, intent.from);
        SXE__POOL_PUT(shard->intent.to, intent.to);
        SXE__POOL_PUT(shard->intent.tail, intent.tail);
        SXE__POOL_PUT(shard->intent.from_count, intent.from_count);
        SXE__POOL_PUT(shard->intent.to_count, intent.to_count);
        SXE__POOL_PUT(shard->intent.state, intent.state);
        SXE__POOL_PUT(shard->intent.generation, intent.generation);
        SXE__POOL_PUT(shard->intent.stamp, intent.stamp);
        SXE__POOL_PUT_LAST(shard->intent.valid, 1);
        __atomic_thread_fence(__ATOMIC_RELEASE);
    }
    sxe__pool_apply(&intent, shard, nodes);
    return true;
}

#endif
