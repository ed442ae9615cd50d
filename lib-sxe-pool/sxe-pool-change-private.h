/* SPDX-License-Identifier: MIT
 *
 * What: moves an element of a shared pool from its place in a list to the young end of a list,
 * under the lock of its shard. If the process is killed at any instruction, either nothing has
 * changed, or the *intent* in the shard says completely what the next owner of the lock has to do.
 *
 * Place: included by sxe-pool-shared.c, and by the model checker (test/model), which runs these
 * very lines in every order of processes, with a death at every access (SXE__POOL_STEP).
 *
 * Shape: three steps under the lock.
 *
 *     1. Check the links of the element: another process may have damaged them.
 *     2. Write the intent: all values that will be stored. Its stamp is written last.
 *     3. Apply the intent: store the values. The shard's last_stamp is written last.
 *
 * A death in step 1 or 2 leaves nothing done. After step 2 the change will be made, by this process
 * or by the next owner of the lock, who applies the intent again.
 *
 * Stamps only grow. An intent is pending while its stamp is greater than the shard's last_stamp: so
 * the last stores of steps 2 and 3 also begin and end it, and no flag is needed.
 */
#ifndef SXE_POOL_CHANGE_H
#define SXE_POOL_CHANGE_H

#include "sxe-pool-sharing-private.h"

/* The functions are inlined, so that values stay in registers, and their callers compute what they
 * can before they take the lock: both make the time short for which the lock is held. */
#define SXE__POOL_INLINE static inline __attribute__((always_inline))

/* The shard in which a change is made, and the time of the change. */
struct sxe__pool_site {
    const struct sxe__pool_header *pool;
    const struct sxe__pool_sharing *sharing;
    struct sxe__pool_node *nodes;
    struct sxe__pool_shard *shard;
    uint32_t shard_index;
    uint64_t now_ns; /* the pool's time when the change is made */
};

SXE__POOL_INLINE struct sxe__pool_site
sxe__pool_site(const struct sxe__pool_header *pool, uint32_t shard)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;

    return (struct sxe__pool_site){
        .pool = pool,
        .sharing = sharing,
        .nodes = sharing->nodes,
        .shard = &sharing->shards[shard],
        .shard_index = shard,
        .now_ns = sxe__time_turn_ns() + sharing->time_offset_ns,
    };
}

/* The nodes that a change writes to. */
struct sxe__pool_parts {
    struct sxe__pool_node *node;
    struct sxe__pool_node *before; /* the neighbours that the element leaves */
    struct sxe__pool_node *after;
    struct sxe__pool_node *from; /* the list nodes of the old and the new state */
    struct sxe__pool_node *to;
    /* the new list's youngest element: its neighbour in the new list */
    struct sxe__pool_node *tail;
};

/* Make the change that the shard's intent describes. The intent holds the final values, so a change
 * that was made in part can be made again from the beginning. The node's stamp is written before
 * its state, because readers without the lock read them in the other order. The values are read
 * from the intent, not passed, so that registers are free for the addresses. */
SXE__POOL_INLINE void
sxe__pool_apply(const struct sxe__pool_parts *parts, uint32_t list, bool moves,
                struct sxe__pool_shard *shard)
{
    const struct sxe__pool_intent *intent = &shard->intent;
    struct sxe__pool_node *node = parts->node;
    const uint32_t id = SXE__POOL_OWN(intent->id);
    const uint64_t stamp = SXE__POOL_OWN(intent->stamp);

    SXE__POOL_PUT(parts->before->next, SXE__POOL_OWN(intent->next));
    SXE__POOL_PUT(parts->after->prev, SXE__POOL_OWN(intent->prev));
    SXE__POOL_PUT_PAIR(node->next, node->prev, list, SXE__POOL_OWN(intent->tail));
    SXE__POOL_PUT(node->stamp, stamp);
    if (moves) {
        SXE__POOL_PUT_PAIR_LAST(node->state, node->generation, SXE__POOL_OWN(intent->new_state),
                                SXE__POOL_OWN(intent->generation));
        SXE__POOL_PUT(parts->from->count, SXE__POOL_OWN(intent->from_count));
        SXE__POOL_PUT(parts->to->count, SXE__POOL_OWN(intent->to_count));
    }
    SXE__POOL_PUT(parts->tail->next, id);
    SXE__POOL_PUT(parts->to->prev, id);
    SXE__POOL_PUT_LAST(shard->last_stamp, stamp);
}

/* Complete the change that a dead owner of the lock had begun, if there is one. False: the intent
 * has an index that is out of range, so no correct process wrote it, and nothing was changed. */
static inline bool
sxe__pool_complete(const struct sxe__pool_header *pool, const struct sxe__pool_sharing *sharing,
                   uint32_t shard_index)
{
    struct sxe__pool_node *nodes = sharing->nodes;
    struct sxe__pool_shard *shard = &sharing->shards[shard_index];
    const struct sxe__pool_intent *intent = &shard->intent;

    if (!sxe__pool_is_begun(shard))
        return true;
    const uint32_t id = SXE__POOL_GET(intent->id);
    const uint32_t prev = SXE__POOL_GET(intent->prev);
    const uint32_t next = SXE__POOL_GET(intent->next);
    const uint32_t tail = SXE__POOL_GET(intent->tail);
    const uint32_t old_state = SXE__POOL_GET(intent->old_state);
    const uint32_t new_state = SXE__POOL_GET(intent->new_state);
    if (id >= pool->number || prev >= sharing->end || next >= sharing->end ||
        tail >= sharing->end || old_state >= pool->states || new_state >= pool->states)
        return false;
    const uint32_t to = sxe__pool_shard_list(pool, sharing, new_state, shard_index);
    const struct sxe__pool_parts parts = {
        .node = &nodes[id],
        .before = &nodes[prev],
        .after = &nodes[next],
        .from = &nodes[sxe__pool_shard_list(pool, sharing, old_state, shard_index)],
        .to = &nodes[to],
        .tail = &nodes[tail],
    };
    sxe__pool_apply(&parts, to, old_state != new_state, shard);
    return true;
}

/* The place of an element now, and the state that it moves to. Each word was read from shared
 * memory once, so it cannot change between the check and the use. */
struct sxe__pool_place {
    uint32_t state;
    uint32_t prev;
    uint32_t next;
    uint32_t new_state;
    uint32_t tail; /* the youngest element of new_state */
};

/* Read the place of an element under the lock. False: its links are impossible, so the pool is
 * damaged. prev need not be compared with id: if prev were id, its `next` would have to be id, too,
 * and a next of id is refused. */
SXE__POOL_INLINE bool
sxe__pool_read_place(const struct sxe__pool_site *site, uint32_t id, struct sxe__pool_place *place)
{
    const struct sxe__pool_node *nodes = site->nodes;
    const uint32_t end = site->sharing->end;

    *place = (struct sxe__pool_place){
        .state = SXE__POOL_GET(nodes[id].state),
        .prev = SXE__POOL_GET(nodes[id].prev),
        .next = SXE__POOL_GET(nodes[id].next),
    };
    return place->state < site->pool->states && place->prev < end && place->next < end &&
           place->next != id && SXE__POOL_GET(nodes[place->prev].next) == id &&
           SXE__POOL_GET(nodes[place->next].prev) == id;
}

/* The generation of an element after a move to another state. It grows by one with each move to
 * state 0, where the element is free; it is never 0. */
SXE__POOL_INLINE uint32_t
sxe__pool_next_generation(const struct sxe__pool_node *node, uint32_t new_state)
{
    const uint32_t generation = SXE__POOL_GET(node->generation) + (new_state == 0);

    return generation + (generation == 0);
}

/* Write the intent, its stamp last. The fence keeps the changes of the nodes after the intent; on
 * x86 the fence binds only the compiler. */
SXE__POOL_INLINE void
sxe__pool_intend(const struct sxe__pool_site *site, uint32_t id,
                 const struct sxe__pool_place *place, const struct sxe__pool_parts *parts)
{
    struct sxe__pool_intent *intent = &site->shard->intent;

    SXE__POOL_PUT_PAIR(intent->id, intent->prev, id, place->prev);
    SXE__POOL_PUT_PAIR(intent->next, intent->tail, place->next, place->tail);
    SXE__POOL_PUT_PAIR(intent->old_state, intent->new_state, place->state, place->new_state);
    if (place->state != place->new_state) {
        SXE__POOL_PUT_PAIR(intent->from_count, intent->to_count,
                           SXE__POOL_GET(parts->from->count) - 1,
                           SXE__POOL_GET(parts->to->count) + 1);
        SXE__POOL_PUT(intent->generation, sxe__pool_next_generation(parts->node, place->new_state));
    }
    const uint64_t last = SXE__POOL_GET(site->shard->last_stamp);
    SXE__POOL_PUT_LAST(intent->stamp, site->now_ns > last ? site->now_ns : last + 1);
    SXE__POOL_FENCE_STORES();
}

/* Move an element, whose place was read under the lock, to the young end of place->new_state.
 * False: that list is damaged, and nothing was changed. */
SXE__POOL_INLINE bool
sxe__pool_move(const struct sxe__pool_site *site, uint32_t id, struct sxe__pool_place *place)
{
    struct sxe__pool_node *nodes = site->nodes;
    const uint32_t from =
        sxe__pool_shard_list(site->pool, site->sharing, place->state, site->shard_index);
    const uint32_t to =
        sxe__pool_shard_list(site->pool, site->sharing, place->new_state, site->shard_index);
    const uint32_t youngest = SXE__POOL_GET(nodes[to].prev);

    if (youngest >= site->sharing->end || SXE__POOL_GET(nodes[youngest].next) != to)
        return false;
    place->tail = youngest == id ? place->prev : youngest;
    const struct sxe__pool_parts parts = {
        .node = &nodes[id],
        .before = &nodes[place->prev],
        .after = &nodes[place->next],
        .from = &nodes[from],
        .to = &nodes[to],
        .tail = &nodes[place->tail],
    };
    sxe__pool_intend(site, id, place, &parts);
    sxe__pool_apply(&parts, to, from != to, site->shard);
    return true;
}

/* Under the lock: move an element to the young end of the list of *new_state; ANY_STATE: of its own
 * state. old_state is the state that it must have; ANY_STATE: any. *new_state becomes the state
 * that it has after the call. LOCK_TAKEN: it was moved; INCORRECT_STATE: it was not, as it had
 * another state than old_state; DAMAGED: its links, or those of a list, are impossible. */
SXE__POOL_INLINE unsigned
sxe__pool_change(const struct sxe__pool_site *site, uint32_t id, uint32_t old_state,
                 uint32_t *new_state)
{
    struct sxe__pool_place place;

    if (!sxe__pool_read_place(site, id, &place))
        return SXE_POOL_DAMAGED;
    place.new_state = *new_state == SXE__POOL_ANY_STATE ? place.state : *new_state;
    if (old_state != SXE__POOL_ANY_STATE && place.state != old_state) {
        *new_state = place.state;
        return SXE_POOL_INCORRECT_STATE;
    }
    *new_state = place.new_state;
    return sxe__pool_move(site, id, &place) ? SXE_POOL_LOCK_TAKEN : SXE_POOL_DAMAGED;
}

#endif
