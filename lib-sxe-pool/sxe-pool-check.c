/* SPDX-License-Identifier: MIT
 *
 * Checks whether the lists of a pool are whole, and rebuilds them.
 *
 * The check goes through a shard's elements by their ids, not along the lists: so it cannot follow
 * a loop for ever, and the CPU fetches several neighbours at once. It is enough to compare each
 * element with the next one of its list. Stamps grow from each element to the next, so a chain of
 * elements ends at the list's own node. That node has only one youngest element, so all elements of
 * the state are in one chain.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "sxe-pool-sharing-private.h"
#include "sxe-time.h"

enum {
    LISTS_AT_A_TIME = 1024, /* states whose elements are counted in one pass */
    ASKED_EACH = 65536,     /* elements between two calls of is_over */
    POWERS = 32             /* chains of 2^n elements: fewer than 2^32 in all */
};

/* The part of a pool that is checked: one shard, or a whole pool of one thread. */
struct view {
    const struct sxe__pool_header *pool;
    struct sxe__pool_node *nodes;
    uint64_t last_stamp;
    uint32_t shard;
    uint32_t mask;
    uint32_t shift;
    char *why;             /* a sentence about what is wrong goes here; NULL: none is wanted */
    bool (*is_over)(void); /* NULL: the check is never cancelled */
};

static struct view
view_of(const struct sxe__pool_header *pool, uint32_t shard, char *why)
{
    const struct sxe__pool_sharing *sharing = pool->sharing;

    if (sharing == NULL)
        return (struct view){.pool = pool,
                             .nodes = sxe__pool_nodes(pool),
                             .last_stamp = pool->last_stamp,
                             .why = why};
    return (struct view){
        .pool = pool,
        .nodes = sharing->nodes,
        .last_stamp = SXE__POOL_GET(sharing->shards[shard].last_stamp),
        .shard = shard,
        .mask = sharing->shard_mask,
        .shift = sharing->shard_shift,
        .why = why,
    };
}

static inline uint32_t
list_of(const struct view *view, uint32_t state)
{
    return view->pool->number + state * (view->mask + 1) + view->shard;
}

static inline bool
is_of_shard(const struct view *view, uint64_t id)
{
    return (id >> view->shift & view->mask) == view->shard;
}

/* first_id and next_id go through a shard's ids in ascending order; after the last id they return
 * one that is too large. */
static inline uint64_t
first_id(const struct view *view)
{
    return (uint64_t)view->shard << view->shift;
}

static inline uint64_t
next_id(const struct view *view, uint64_t id)
{
    return is_of_shard(view, id + 1) ? id + 1 : id + 1 + ((uint64_t)view->mask << view->shift);
}

static const char *
state_text(const struct view *view, uint32_t state)
{
    return sxe_pool_state_to_string(view->pool + 1, state);
}

/* ---- Checking ---- */

static int SXE_PRINTF(2, 3) refuse_view(const struct view *view, const char *format, ...)
{
    va_list arguments;
    int length = 0;

    if (view->why == NULL)
        return -EUCLEAN;
    if (view->mask != 0)
        length = snprintf(view->why, SXE_POOL_WHY_SIZE, "shard %u: ", view->shard);
    va_start(arguments, format);
    vsnprintf(view->why + length, SXE_POOL_WHY_SIZE - (size_t)length, format, arguments);
    va_end(arguments);
    return -EUCLEAN;
}

/* Check that `next` is the list's own node or a younger element of the same state, and that it
 * links back. */
static int
check_next_element(const struct view *view, uint32_t id, uint32_t state, uint64_t stamp)
{
    const struct sxe__pool_node *nodes = view->nodes;
    const uint32_t next = SXE__POOL_GET(nodes[id].next);

    if (next != list_of(view, state)) {
        if (next >= view->pool->number || !is_of_shard(view, next))
            return refuse_view(view, "element %u (state %s) is followed by %u, which cannot be", id,
                               state_text(view, state), next);
        const uint32_t next_state = SXE__POOL_GET(nodes[next].state);
        if (next_state != state)
            return refuse_view(view, "element %u (state %s) is followed by element %u (state %s)",
                               id, state_text(view, state), next, state_text(view, next_state));
        if (SXE__POOL_GET(nodes[next].stamp) <= stamp)
            return refuse_view(view,
                               "element %u (state %s) is followed by element %u, which is older",
                               id, state_text(view, state), next);
    }
    const uint32_t back = SXE__POOL_GET(nodes[next].prev);
    if (back != id)
        return refuse_view(view, "element %u (state %s) is on no list, or only half: %u follows %u",
                           id, state_text(view, state), next, back);
    return 0;
}

static int
check_element_links(const struct view *view, uint32_t id)
{
    const uint32_t state = SXE__POOL_GET(view->nodes[id].state);
    const uint64_t stamp = SXE__POOL_GET(view->nodes[id].stamp);

    if (state >= view->pool->states)
        return refuse_view(view, "element %u is in state %u; there are only %u", id, state,
                           view->pool->states);
    if (SXE__POOL_GET(view->nodes[id].generation) == 0)
        return refuse_view(view, "element %u (state %s) has no generation", id,
                           state_text(view, state));
    if (stamp == 0 || stamp > view->last_stamp)
        return refuse_view(view, "element %u (state %s) is of a time that has not been", id,
                           state_text(view, state));
    return check_next_element(view, id, state, stamp);
}

/* Check the old end and the count of a list; `elements` is the number of elements in its state. */
static int
check_list(const struct view *view, uint32_t state, uint32_t elements)
{
    const struct sxe__pool_node *nodes = view->nodes;
    const uint32_t list = list_of(view, state);
    const uint32_t oldest = SXE__POOL_GET(nodes[list].next);
    const uint32_t count = SXE__POOL_GET(nodes[list].count);

    if (elements == 0 && (oldest != list || SXE__POOL_GET(nodes[list].prev) != list))
        return refuse_view(view, "no element is in state %s, but its list is not empty",
                           state_text(view, state));
    if (elements != 0 &&
        (oldest >= view->pool->number || !is_of_shard(view, oldest) ||
         SXE__POOL_GET(nodes[oldest].state) != state || SXE__POOL_GET(nodes[oldest].prev) != list))
        return refuse_view(view,
                           "the list of state %s begins with %u, which is not its oldest element",
                           state_text(view, state), oldest);
    if (count != elements)
        return refuse_view(view, "%u elements are in state %s, but %u are counted", elements,
                           state_text(view, state), count);
    return 0;
}

static inline bool
is_check_time_over(const struct view *view, uint32_t *looked)
{
    return ++*looked % ASKED_EACH == 0 && view->is_over != NULL && view->is_over();
}

/* Check the lists of up to LISTS_AT_A_TIME states, from `first` on. */
static int
check_some_lists(const struct view *view, uint32_t first)
{
    uint32_t elements[LISTS_AT_A_TIME] = {0};
    const uint32_t left = view->pool->states - first;
    const uint32_t states = left < LISTS_AT_A_TIME ? left : LISTS_AT_A_TIME;
    uint32_t looked = 0;

    for (uint64_t id = first_id(view); id < view->pool->number; id = next_id(view, id)) {
        const uint32_t state = SXE__POOL_GET(view->nodes[id].state) - first;

        if (state < states)
            elements[state]++;
        if (is_check_time_over(view, &looked))
            return -ECANCELED;
    }
    for (uint32_t state = 0; state < states; state++) {
        const int result = check_list(view, first + state, elements[state]);

        if (result != 0)
            return result;
    }
    return 0;
}

static int
check_view(const struct view *view)
{
    uint32_t looked = 0;

    for (uint64_t id = first_id(view); id < view->pool->number; id = next_id(view, id)) {
        const int result = is_check_time_over(view, &looked)
                               ? -ECANCELED
                               : check_element_links(view, (uint32_t)id);

        if (result != 0)
            return result;
    }
    for (uint64_t first = 0; first < view->pool->states; first += LISTS_AT_A_TIME) {
        const int result = check_some_lists(view, (uint32_t)first);

        if (result != 0)
            return result;
    }
    return 0;
}

static int
check_pool_shard(const struct sxe__pool_header *pool, uint32_t shard, char *why, bool (*over)(void))
{
    struct view view = view_of(pool, shard, why);

    view.is_over = over;
    if (sxe__pool_is_begun(&pool->sharing->shards[shard]))
        return refuse_view(&view, "a change was begun and not completed");
    return check_view(&view);
}

int
sxe__pool_check_shard(const struct sxe__pool_header *pool, uint32_t shard, char *why)
{
    return check_pool_shard(pool, shard, why, NULL);
}

static int
lock_and_check_pool(const struct sxe__pool_header *pool, uint32_t shard, char *why,
                    bool (*over)(void))
{
    struct sxe__pool_patience patience = {0};
    const unsigned locked = sxe__pool_lock_shard_patiently(pool, shard, &patience);

    if (locked == SXE_POOL_LOCK_NOT_TAKEN)
        return -EAGAIN;
    if (locked == SXE_POOL_DAMAGED) {
        const struct view view = view_of(pool, shard, why);
        return refuse_view(&view, "a change that a dead process began cannot be completed");
    }
    const int result = check_pool_shard(pool, shard, why, over);
    sxe__pool_unlock_shard(pool, shard);
    return result;
}

int
sxe_pool_check(void *array, char *why)
{
    return sxe_pool_check_until(array, why, NULL);
}

int
sxe_pool_check_until(void *array, char *why, bool (*over)(void))
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);

    if (pool->sharing == NULL) {
        struct view view = view_of(pool, 0, why);

        view.is_over = over;
        return check_view(&view);
    }
    for (uint32_t shard = 0; shard <= pool->sharing->shard_mask; shard++) {
        const int result =
            over != NULL && over() ? -ECANCELED : lock_and_check_pool(pool, shard, why, over);

        if (result != 0)
            return result;
    }
    return 0;
}

/* ---- New lists ---- */

/* The sort key of an element, state, then stamp; and the next element in its chain. */
struct key {
    uint32_t id;
    uint32_t state;
    uint64_t stamp;
    uint32_t next;
};

/* Sorted elements, chained by `next`. Loops count by `length`, so they end even if a stray write
 * changes the links meanwhile. */
struct chain {
    uint32_t first;
    uint32_t length; /* how many elements; 0: the chain is empty */
};

/* In place of an impossible `next` take the element itself, so that `next` is always a valid id. */
static inline struct key
key_of_element(const struct view *view, uint32_t id)
{
    const struct sxe__pool_node *node = &view->nodes[id];
    const uint32_t next = SXE__POOL_GET(node->next);

    return (struct key){
        .id = id,
        .state = SXE__POOL_GET(node->state),
        .stamp = SXE__POOL_GET(node->stamp),
        .next = next < view->pool->number ? next : id,
    };
}

static inline bool
is_key_before(const struct key *a, const struct key *b)
{
    return a->state != b->state ? a->state < b->state : a->stamp < b->stamp;
}

/* Merge two chains, neither empty; of equal keys those of `a` come first. */
static struct chain
merge_chains(const struct view *view, struct chain a, struct chain b)
{
    struct key from_a = key_of_element(view, a.first);
    struct key from_b = key_of_element(view, b.first);
    struct chain merged = {is_key_before(&from_b, &from_a) ? b.first : a.first,
                           a.length + b.length};
    uint32_t last = SXE_NONE;

    while (a.length != 0 && b.length != 0) {
        const bool takes_b = is_key_before(&from_b, &from_a);
        struct chain *chain = takes_b ? &b : &a;
        struct key *from = takes_b ? &from_b : &from_a;

        if (last != SXE_NONE)
            SXE__POOL_PUT(view->nodes[last].next, from->id);
        last = from->id;
        if (--chain->length != 0)
            *from = key_of_element(view, from->next);
    }
    SXE__POOL_PUT(view->nodes[last].next, a.length != 0 ? from_a.id : from_b.id);
    return merged;
}

/* Put an element whose state is impossible into state 0, in a new generation. The generation is
 * written first: so after a death in between it is raised twice rather than not at all. Returns
 * whether the state was impossible. */
static bool
mend_element(const struct view *view, uint32_t id)
{
    struct sxe__pool_node *node = &view->nodes[id];
    const bool lost = SXE__POOL_GET(node->state) >= view->pool->states;
    const uint32_t generation = SXE__POOL_GET(node->generation) + lost;

    SXE__POOL_PUT(node->generation, generation + (generation == 0));
    if (lost)
        SXE__POOL_PUT(node->state, 0);
    return lost;
}

/* A merge sort without recursion or memory: chains[n] holds 2^n elements or none, like the bits of
 * a binary counter. Adds the number of mended elements to *mended. */
static struct chain
sort_chain(const struct view *view, uint32_t *mended)
{
    struct chain chains[POWERS] = {{0}};
    struct chain sorted = {0};

    for (uint64_t id = first_id(view); id < view->pool->number; id = next_id(view, id)) {
        struct chain chain = {(uint32_t)id, 1};
        unsigned power = 0;

        *mended += mend_element(view, (uint32_t)id);
        for (; chains[power].length != 0; power++) {
            chain = merge_chains(view, chains[power], chain);
            chains[power].length = 0;
        }
        chains[power] = chain;
    }
    for (unsigned power = 0; power < POWERS; power++) {
        if (chains[power].length != 0)
            sorted = sorted.length == 0 ? chains[power] : merge_chains(view, chains[power], sorted);
    }
    return sorted;
}

static void
empty_lists(const struct view *view)
{
    for (uint32_t state = 0; state < view->pool->states; state++) {
        const uint32_t list = list_of(view, state);
        struct sxe__pool_node *node = &view->nodes[list];

        SXE__POOL_PUT(node->next, list);
        SXE__POOL_PUT(node->prev, list);
        SXE__POOL_PUT(node->state, state);
        SXE__POOL_PUT(node->count, 0);
        SXE__POOL_PUT(node->stamp, 0);
    }
}

/* Put an element at the young end of its state's list. Returns its stamp: its old one, but at most
 * `now`, and greater than the stamp of the element before it. */
static uint64_t
append_key(const struct view *view, const struct key *key, uint64_t now)
{
    struct sxe__pool_node *nodes = view->nodes;
    const uint32_t list = list_of(view, key->state < view->pool->states ? key->state : 0);
    const uint32_t end = list_of(view, view->pool->states - 1) + 1;
    const uint32_t prev = SXE__POOL_GET(nodes[list].prev);
    const uint32_t youngest = prev < end ? prev : list;
    const uint64_t older = SXE__POOL_GET(nodes[youngest].stamp);
    const uint64_t wanted = key->stamp < now ? key->stamp : now;
    const uint64_t stamp = wanted > older ? wanted : older + 1;

    SXE__POOL_PUT(nodes[key->id].next, list);
    SXE__POOL_PUT(nodes[key->id].prev, youngest);
    SXE__POOL_PUT(nodes[key->id].stamp, stamp);
    SXE__POOL_PUT(nodes[youngest].next, key->id);
    SXE__POOL_PUT(nodes[list].prev, key->id);
    SXE__POOL_PUT(nodes[list].count, SXE__POOL_GET(nodes[list].count) + 1);
    return stamp;
}

static uint32_t
rebuild_pool_shard(const struct sxe__pool_header *pool, uint32_t shard_index, uint64_t now)
{
    const struct view view = view_of(pool, shard_index, NULL);
    struct sxe__pool_shard *shard = &pool->sharing->shards[shard_index];
    uint32_t mended = 0;
    uint64_t youngest = 0;

    SXE__POOL_PUT(shard->intent.stamp, 0);
    const struct chain sorted = sort_chain(&view, &mended);
    uint32_t id = sorted.first;
    empty_lists(&view);
    for (uint32_t i = 0; i < sorted.length; i++) {
        const struct key key = key_of_element(&view, id);

        id = key.next;
        const uint64_t stamp = append_key(&view, &key, now);
        youngest = stamp > youngest ? stamp : youngest;
    }
    SXE__POOL_PUT(shard->last_stamp, youngest);
    return mended;
}

uint32_t
sxe__pool_rebuild(const struct sxe__pool_header *pool)
{
    const uint64_t now = sxe_time_turn_ns() + pool->sharing->time_offset_ns;
    uint32_t mended = 0;

    for (uint32_t shard = 0; shard <= pool->sharing->shard_mask; shard++)
        mended += rebuild_pool_shard(pool, shard, now);
    return mended;
}
