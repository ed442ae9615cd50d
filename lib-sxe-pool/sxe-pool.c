/* SPDX-License-Identifier: MIT
 *
 * The calls of sxe-pool.h: making a pool, moving and touching elements, counts, ages, handles.
 */
#include "sxe-pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-pool-sharing-private.h"

/* ---- Construction ---- */

static size_t
round_up_array(size_t size, size_t alignment)
{
    return (size + alignment - 1) & ~(alignment - 1);
}

/* Bytes of the array, rounded up so that each node after it stays within one line of cache. */
static size_t
array_size(unsigned number, size_t element_size)
{
    return round_up_array(number * element_size, sizeof(struct sxe__pool_node));
}

size_t
sxe_pool_size(unsigned number, size_t element_size, unsigned states)
{
    const uint64_t nodes = (uint64_t)number + states;
    const uint64_t others = sizeof(struct sxe__pool_header) + nodes * sizeof(struct sxe__pool_node);

    if (number == 0 || element_size == 0 || states == 0 || nodes > SXE_POOL_INCORRECT_STATE)
        return 0;
    /* PTRDIFF_MAX must leave room for both roundings, and for the alignment in sxe_pool_new. */
    if (others + 3 * SXE__POOL_ALIGNMENT > PTRDIFF_MAX ||
        element_size > (PTRDIFF_MAX - others - 3 * SXE__POOL_ALIGNMENT) / number)
        return 0;
    return round_up_array(array_size(number, element_size) + (size_t)others, SXE__POOL_ALIGNMENT);
}

static bool
is_possible_spec(const char *name, size_t size, unsigned options)
{
    return name != NULL && size != 0 && (options & ~SXE_POOL_OPTION_TIMED) == 0;
}

/* The stamp of a change: max(now, last + 1), so that it is unique in the pool, and grows even while
 * the clock stands still. */
static inline uint64_t
next_stamp(struct sxe__pool_header *pool)
{
    const uint64_t now = sxe__time_turn_ns();

    pool->last_stamp = now > pool->last_stamp ? now : pool->last_stamp + 1;
    return pool->last_stamp;
}

/* Put an element at the young end of a state's list. */
static inline void
append_node(const struct sxe__pool_header *pool, struct sxe__pool_node *nodes, unsigned id,
            unsigned state, uint64_t stamp)
{
    const unsigned list = sxe__pool_list(pool, state);
    struct sxe__pool_node *node = &nodes[id];

    node->next = list;
    node->prev = nodes[list].prev;
    node->state = state;
    node->stamp = stamp;
    nodes[node->prev].next = id;
    nodes[list].prev = id;
    nodes[list].count++;
}

/* The first generation of a pool's elements. It differs from pool to pool, so that a handle of a
 * pool is none of another pool, nor of the next pool at the same place. The multiples of this
 * number (2^32 divided by the golden ratio) are far apart. */
static uint32_t
first_generation(void)
{
    static _Atomic(uint32_t) pools;
    const uint32_t generation = atomic_fetch_add(&pools, 1) * 2654435769u + 1;

    return generation + (generation == 0);
}

static void
make_local_lists(struct sxe__pool_header *pool)
{
    struct sxe__pool_node *nodes = sxe__pool_nodes(pool);
    const uint32_t generation = first_generation();

    for (unsigned state = 0; state < pool->states; state++) {
        const unsigned list = sxe__pool_list(pool, state);
        nodes[list] = (struct sxe__pool_node){.next = list, .prev = list, .state = state};
    }
    const uint64_t stamp = next_stamp(pool);
    for (unsigned id = 0; id < pool->number; id++) {
        nodes[id].generation = generation;
        append_node(pool, nodes, id, 0, stamp + id);
    }
    pool->last_stamp = stamp + pool->number - 1;
}

void *
sxe_pool_construct(void *base, const char *name, unsigned number, size_t element_size,
                   unsigned states, unsigned options)
{
    struct sxe__pool_header *pool = base;

    if ((uintptr_t)base % SXE__POOL_ALIGNMENT != 0 || base == NULL ||
        !is_possible_spec(name, sxe_pool_size(number, element_size, states), options)) {
        errno = EINVAL;
        return NULL;
    }
    *pool = (struct sxe__pool_header){
        .magic = SXE__POOL_MAGIC,
        .version = SXE__POOL_VERSION,
        .header_size = sizeof(*pool),
        .number = number,
        .states = states,
        .element_size = element_size,
        .nodes_offset = array_size(number, element_size),
        .slack = SXE__POOL_BORROWED,
    };
    memcpy(pool->name, name, strnlen(name, SXE_POOL_NAME_MAX));
    sxe__pool_local_remove(pool + 1);
    make_local_lists(pool);
    return pool + 1;
}

void *
sxe_pool_new(const char *name, unsigned number, size_t element_size, unsigned states,
             unsigned options)
{
    const size_t size = sxe_pool_size(number, element_size, states);
    char cut[SXE_POOL_NAME_MAX + 1] = "";

    if ((options & (SXE_POOL_OPTION_LOCKED | SXE_POOL_OPTION_SHARED)) != 0) {
        if (name != NULL)
            memcpy(cut, name, strnlen(name, SXE_POOL_NAME_MAX));
        const SXE_POOL_SPEC spec = {
            .name = cut,
            .number = number,
            .element_size = element_size,
            .states = states,
            .options = options & ~SXE_POOL_OPTION_TIMED,
        };
        return size == 0 ? (errno = EINVAL, NULL) : sxe_pool_open(&spec, NULL);
    }
    if (!is_possible_spec(name, size, options)) {
        errno = EINVAL;
        return NULL;
    }
    /* Not aligned_alloc: calloc need not touch the memory of a large pool to clear it. */
    char *memory = calloc(1, size + SXE__POOL_ALIGNMENT - 1);
    if (memory == NULL)
        return NULL;
    const size_t slack = -(uintptr_t)memory % SXE__POOL_ALIGNMENT;
    void *array = sxe_pool_construct(memory + slack, name, number, element_size, states, options);
    sxe__pool_header(array)->slack = (uint32_t)slack;
    return array;
}

void
sxe_pool_delete(void *array)
{
    if (array == NULL)
        return;
    struct sxe__pool_header *pool = sxe__pool_header(array);

    if (pool->sharing != NULL) {
        sxe__pool_close(pool);
        return;
    }
    SXE_ASSERT(pool->slack < SXE__POOL_ALIGNMENT, "pool %s is not from sxe_pool_new", pool->name);
    sxe__pool_local_remove(array);
    pool->magic = 0;
    free((char *)pool - pool->slack);
}

void *
sxe_pool_from_base(void *base)
{
    const struct sxe__pool_header *pool = base;

    if (pool->magic != SXE__POOL_MAGIC || pool->version != SXE__POOL_VERSION ||
        pool->header_size != sizeof(*pool)) {
        errno = EINVAL;
        return NULL;
    }
    return (struct sxe__pool_header *)base + 1;
}

void *
sxe_pool_to_base(void *array)
{
    return sxe__pool_header(array);
}

unsigned
sxe_pool_get_number(const void *array)
{
    return sxe__pool_header(array)->number;
}

/* ---- States ---- */

void
sxe__pool_fail_new_state(const struct sxe__pool_header *pool, unsigned id, unsigned state)
{
    SXE_LOG_ASSERT_AT(1, id, "state < pool->states", false,
                      "pool %s has no state %u, only %u, for element %u which is in state %s",
                      pool->name, state, pool->states, id,
                      sxe_pool_state_to_string(pool + 1, sxe__pool_nodes(pool)[id].state));
}

/* Whether both neighbours of a node link back to it. A write past the array's end would damage the
 * nodes. */
static inline bool
is_linked(const struct sxe__pool_header *pool, const struct sxe__pool_node *nodes, unsigned id)
{
    const struct sxe__pool_node *node = &nodes[id];
    const unsigned end = pool->number + pool->states;

    return node->prev < end && node->next < end && node->next != id &&
           nodes[node->prev].next == id && nodes[node->next].prev == id;
}

/* The caller has checked id and new_state. Forced inline: a call would be a quarter of its cost. */
static inline __attribute__((always_inline)) void
move_node(struct sxe__pool_header *pool, struct sxe__pool_node *nodes, unsigned id,
          unsigned new_state)
{
    const uint64_t stamp = next_stamp(pool); /* call this first, while no register must be saved */
    struct sxe__pool_node *node = &nodes[id];
    const unsigned old_state = node->state;

    SXE_TRACE_ID(id, "pool %s: %s -> %s", pool->name, sxe_pool_state_to_string(pool + 1, old_state),
                 sxe_pool_state_to_string(pool + 1, new_state));
    SXE_ASSERT_ID(id, is_linked(pool, nodes, id), "pool %s: the node of element %u was overwritten",
                  pool->name, id);
    nodes[node->prev].next = node->next;
    nodes[node->next].prev = node->prev;
    nodes[sxe__pool_list(pool, old_state)].count--;
    /* Add conditions as numbers instead of branching: the CPU could not predict the branches. */
    const uint32_t generation = node->generation + (new_state == 0 && old_state != 0);
    node->generation = generation + (generation == 0);
    append_node(pool, nodes, id, new_state, stamp);
}

unsigned
sxe_pool_get_count(const void *array, unsigned state)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_state(pool, state);
    if (pool->sharing != NULL)
        return sxe__pool_shared_count(pool, state);
    return sxe__pool_nodes(pool)[sxe__pool_list(pool, state)].count;
}

/* The node of an element; asserts that the element exists. */
static inline const struct sxe__pool_node *
element_node(const void *array, unsigned id)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_id(pool, id);
    return &sxe__pool_nodes(pool)[id];
}

unsigned
sxe_pool_get_state(const void *array, unsigned id)
{
    /* A reader that meets a state also sees the contents that were written before it. */
    return __atomic_load_n(&element_node(array, id)->state, __ATOMIC_ACQUIRE);
}

static __attribute__((noinline)) unsigned
move_alone(struct sxe__pool_header *pool, unsigned id, unsigned old_state, unsigned new_state)
{
    struct sxe__pool_node *nodes = sxe__pool_nodes(pool);

    SXE_ASSERT_ID(id, nodes[id].state == old_state,
                  "pool %s: element %u is in state %s, not %s (to go to %s)", pool->name, id,
                  sxe_pool_state_to_string(pool + 1, nodes[id].state),
                  sxe_pool_state_to_string(pool + 1, old_state),
                  sxe_pool_state_to_string(pool + 1, new_state));
    move_node(pool, nodes, id, new_state);
    return SXE_POOL_LOCK_TAKEN;
}

unsigned
sxe_pool_move(void *array, unsigned id, unsigned old_state, unsigned new_state)
{
    struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_id(pool, id);
    sxe__pool_check_new_state(pool, id, new_state);
    return pool->sharing != NULL ? sxe__pool_shared_move(pool, id, old_state, new_state)
                                 : move_alone(pool, id, old_state, new_state);
}

unsigned
sxe_pool_try_move(void *array, unsigned id, unsigned old_state, unsigned *new_state)
{
    struct sxe__pool_header *pool = sxe__pool_header(array);
    struct sxe__pool_node *nodes = sxe__pool_nodes(pool);

    sxe__pool_check_id(pool, id);
    sxe__pool_check_new_state(pool, id, old_state);
    sxe__pool_check_new_state(pool, id, *new_state);
    if (pool->sharing != NULL)
        return sxe__pool_shared_set(pool, id, old_state, new_state);
    if (nodes[id].state != old_state) {
        *new_state = nodes[id].state;
        return SXE_POOL_INCORRECT_STATE;
    }
    move_node(pool, nodes, id, *new_state);
    return id;
}

/* The id at the old or young end, or SXE_POOL_NO_INDEX. */
static inline unsigned
list_end(const struct sxe__pool_header *pool, unsigned state, bool youngest)
{
    sxe__pool_check_state(pool, state);
    if (pool->sharing != NULL)
        return sxe__pool_shared_end(pool, state, youngest);
    const struct sxe__pool_node *list = &sxe__pool_nodes(pool)[sxe__pool_list(pool, state)];
    const unsigned id = youngest ? list->prev : list->next;
    return id < pool->number ? id : SXE_POOL_NO_INDEX;
}

static __attribute__((noinline)) unsigned
take_alone(struct sxe__pool_header *pool, unsigned old_state, unsigned new_state)
{
    struct sxe__pool_node *nodes = sxe__pool_nodes(pool);
    const unsigned id = nodes[sxe__pool_list(pool, old_state)].next;

    if (id >= pool->number)
        return SXE_POOL_NO_INDEX;
    move_node(pool, nodes, id, new_state);
    return id;
}

unsigned
sxe_pool_take(void *array, unsigned old_state, unsigned new_state)
{
    struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_state(pool, old_state);
    sxe__pool_check_state(pool, new_state);
    return pool->sharing != NULL ? sxe__pool_shared_take(pool, old_state, new_state)
                                 : take_alone(pool, old_state, new_state);
}

unsigned
sxe_pool_take_exact(void *array, unsigned old_state, unsigned new_state)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    struct sxe__pool_claim claim = {.old_state = old_state, .new_state = new_state};

    if (pool->sharing == NULL || pool->sharing->shard_mask == 0)
        return sxe_pool_take(array, old_state, new_state);
    sxe__pool_check_state(pool, old_state);
    sxe__pool_check_state(pool, new_state);
    return sxe__pool_shared_lease_exact(pool, &claim);
}

static __attribute__((noinline)) unsigned
touch_alone(struct sxe__pool_header *pool, unsigned id)
{
    struct sxe__pool_node *nodes = sxe__pool_nodes(pool);

    move_node(pool, nodes, id, nodes[id].state);
    return SXE_POOL_LOCK_TAKEN;
}

unsigned
sxe_pool_touch(void *array, unsigned id)
{
    struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_id(pool, id);
    return pool->sharing != NULL ? sxe__pool_shared_touch(pool, id) : touch_alone(pool, id);
}

unsigned
sxe_pool_get_oldest(const void *array, unsigned state)
{
    return list_end(sxe__pool_header(array), state, false);
}

unsigned
sxe_pool_get_youngest(const void *array, unsigned state)
{
    return list_end(sxe__pool_header(array), state, true);
}

SXE_TIME
sxe_pool_get_oldest_time(const void *array, unsigned state)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    const struct sxe__pool_node *nodes = sxe__pool_nodes(pool);

    sxe__pool_check_state(pool, state);
    /* Of an empty list this is the list's own node, whose stamp is 0. */
    if (pool->sharing == NULL)
        return nodes[nodes[sxe__pool_list(pool, state)].next].stamp;
    const unsigned id = sxe__pool_shared_end(pool, state, false);
    return id == SXE_POOL_NO_INDEX ? 0 : sxe_pool_get_time(array, id);
}

SXE_TIME
sxe_pool_get_time(const void *array, unsigned id)
{
    return __atomic_load_n(&element_node(array, id)->stamp, __ATOMIC_RELAXED);
}

/* ---- Handles ---- */

uint64_t
sxe_pool_get_handle(const void *array, unsigned id)
{
    return (uint64_t)__atomic_load_n(&element_node(array, id)->generation, __ATOMIC_RELAXED) << 32 |
           id;
}

unsigned
sxe_pool_handle_to_index(const void *array, uint64_t handle)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    const unsigned id = (unsigned)handle;

    if (id >= pool->number ||
        __atomic_load_n(&sxe__pool_nodes(pool)[id].generation, __ATOMIC_RELAXED) != handle >> 32)
        return SXE_POOL_NO_INDEX;
    return id;
}
