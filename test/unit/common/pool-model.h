/* SPDX-License-Identifier: MIT
 *
 * What: a pool, and beside it the simplest thing that should behave like it: an array of {state,
 * order}, where order is the number of the element's last move. Each step does the same to both and
 * compares what can be seen; pool_model_check compares all.
 *
 * Place: used by test-pool-oracle.c with random numbers, by a fuzzer in fuzz-pool.c, and by
 * test-pool-differential.c on pools of all other kinds.
 *
 * Shape: a step has 4 bytes: operation, id (2 bytes), states (the old one in the low half, the new
 * one in the high half); each is taken modulo the number of operations, elements or states.
 *
 * Limits: one walk at a time; the oldest element is found by looking at all. In a pool of several
 * shards "the oldest" is the oldest of any one shard (by moves), or the oldest of all (by stamps);
 * and a walk is made in one step.
 */
#ifndef POOL_MODEL_H
#define POOL_MODEL_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-pool-sharing-private.h"
#include "sxe-time.h"

#define POOL_MODEL_STEP_SIZE 4

struct pool_model {
    char *pool; /* each element is one byte, its own id */
    unsigned number;
    unsigned states;
    uint64_t moves;
    struct {
        unsigned state;
        uint64_t order;
        uint64_t handle; /* a handle that was taken at some time */
        bool is_good;    /* the handle is still valid */
    } * elements;
    uint64_t now_ns;
    SXE_POOL_WALKER walker;
    unsigned walk_state;
    uint64_t walk_last;  /* the order of the element that the walk met last */
    uint64_t walk_limit; /* the number of moves when the walk began */
    /* how the pool was opened; if it has no name, it is a pool of one thread */
    SXE_POOL_SPEC spec;
    unsigned shards;
};

struct pool_model_step {
    unsigned id;
    unsigned old_state;
    unsigned new_state;
};

static inline void
pool_model_move(struct pool_model *model, unsigned id, unsigned new_state)
{
    if (model->elements[id].state != 0 && new_state == 0)
        model->elements[id].is_good = false;
    model->elements[id].state = new_state;
    model->elements[id].order = ++model->moves;
}

static inline unsigned
pool_model_shard_of(const struct pool_model *model, unsigned id)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(model->pool)->sharing;

    return sharing == NULL ? 0 : sxe__pool_shard_of(sharing, id);
}

/* The oldest element of a state among those whose last move came after `after` and up to
 * `limit`. */
static inline unsigned
pool_model_oldest_of(const struct pool_model *model, unsigned shard, unsigned state, uint64_t after,
                     uint64_t limit)
{
    uint64_t oldest = UINT64_MAX;
    unsigned found = SXE_POOL_NO_INDEX;

    for (unsigned id = 0; id < model->number; id++) {
        const uint64_t order = model->elements[id].order;

        if (model->elements[id].state == state && order > after && order <= limit &&
            order < oldest &&
            (shard == SXE_POOL_NO_INDEX || pool_model_shard_of(model, id) == shard)) {
            oldest = order;
            found = id;
        }
    }
    return found;
}

static inline unsigned
pool_model_oldest(const struct pool_model *model, unsigned state, uint64_t after, uint64_t limit)
{
    return pool_model_oldest_of(model, SXE_POOL_NO_INDEX, state, after, limit);
}

/* Whether the element is the oldest of its shard; for no element: whether the state is empty. */
static inline bool
pool_model_is_oldest(const struct pool_model *model, unsigned state, unsigned id)
{
    for (unsigned shard = 0; shard < model->shards; shard++) {
        const unsigned oldest = pool_model_oldest_of(model, shard, state, 0, UINT64_MAX);

        if (id == SXE_POOL_NO_INDEX ? oldest != id : oldest == id && id < model->number)
            return id != SXE_POOL_NO_INDEX;
    }
    return id == SXE_POOL_NO_INDEX;
}

/* Whether, in addition, no element of the state has an older stamp in any shard. */
static inline bool
pool_model_is_oldest_of_all(const struct pool_model *model, unsigned state, unsigned id)
{
    if (!pool_model_is_oldest(model, state, id))
        return false;
    for (unsigned other = 0; other < model->number && id != SXE_POOL_NO_INDEX; other++) {
        if (model->elements[other].state == state &&
            sxe_pool_get_time(model->pool, other) < sxe_pool_get_time(model->pool, id))
            return false;
    }
    return true;
}

/* ---- Operations: each returns whether pool and model agree ---- */

static inline bool
pool_model_set(struct pool_model *model, const struct pool_model_step *step)
{
    const unsigned state = model->elements[step->id].state;

    pool_model_move(model, step->id, step->new_state);
    return sxe_pool_get_state(model->pool, step->id) == state &&
           sxe_pool_move(model->pool, step->id, state, step->new_state) == SXE_POOL_LOCK_TAKEN;
}

static inline bool
pool_model_try(struct pool_model *model, const struct pool_model_step *step)
{
    const unsigned actual = model->elements[step->id].state;
    unsigned state = step->new_state;
    const unsigned result = sxe_pool_try_move(model->pool, step->id, step->old_state, &state);

    if (step->old_state != actual)
        return result == SXE_POOL_INCORRECT_STATE && state == actual;
    pool_model_move(model, step->id, step->new_state);
    return result == step->id && state == step->new_state;
}

static inline bool
pool_model_take_oldest(struct pool_model *model, const struct pool_model_step *step)
{
    const unsigned id = sxe_pool_take(model->pool, step->old_state, step->new_state);
    const bool agrees = pool_model_is_oldest(model, step->old_state, id);

    if (agrees && id != SXE_POOL_NO_INDEX)
        pool_model_move(model, id, step->new_state);
    return agrees;
}

/* Which element must be taken is determined before the call, which changes its stamp. */
static inline bool
pool_model_take_exactly(struct pool_model *model, const struct pool_model_step *step)
{
    const unsigned oldest = sxe_pool_get_oldest(model->pool, step->old_state);
    const bool agrees = pool_model_is_oldest_of_all(model, step->old_state, oldest);
    const unsigned id = sxe_pool_take_exact(model->pool, step->old_state, step->new_state);

    if (agrees && id == oldest && id != SXE_POOL_NO_INDEX)
        pool_model_move(model, id, step->new_state);
    return agrees && id == oldest;
}

static inline bool
pool_model_touch(struct pool_model *model, const struct pool_model_step *step)
{
    pool_model_move(model, step->id, model->elements[step->id].state);
    return sxe_pool_touch(model->pool, step->id) == SXE_POOL_LOCK_TAKEN;
}

static inline bool
pool_model_look(struct pool_model *model, const struct pool_model_step *step)
{
    const unsigned id = sxe_pool_get_oldest(model->pool, step->old_state);
    const SXE_TIME time = id == SXE_POOL_NO_INDEX ? 0 : sxe_pool_get_time(model->pool, id);

    return pool_model_is_oldest_of_all(model, step->old_state, id) &&
           sxe_pool_get_oldest_time(model->pool, step->old_state) == time;
}

static inline bool
pool_model_take_handle(struct pool_model *model, const struct pool_model_step *step)
{
    model->elements[step->id].handle = sxe_pool_get_handle(model->pool, step->id);
    model->elements[step->id].is_good = true;
    return model->elements[step->id].handle != 0;
}

static inline bool
pool_model_use_handle(struct pool_model *model, const struct pool_model_step *step)
{
    return sxe_pool_handle_to_index(model->pool, model->elements[step->id].handle) ==
           (model->elements[step->id].is_good ? step->id : SXE_POOL_NO_INDEX);
}

static inline bool
pool_model_walk(struct pool_model *model, const struct pool_model_step *step)
{
    sxe_pool_walker_construct(&model->walker, model->pool, step->old_state);
    model->walk_state = step->old_state;
    model->walk_last = 0;
    model->walk_limit = model->moves;
    return true;
}

static inline bool
pool_model_walk_on(struct pool_model *model, const struct pool_model_step *step)
{
    const unsigned id =
        pool_model_oldest(model, model->walk_state, model->walk_last, model->walk_limit);

    (void)step;
    if (model->shards > 1)
        return true;
    if (id != SXE_POOL_NO_INDEX)
        model->walk_last = model->elements[id].order;
    return sxe_pool_walker_step(&model->walker) == id;
}

/* Let time stand still, go on, or go back (which a clock must not do). */
static inline bool
pool_model_turn(struct pool_model *model, const struct pool_model_step *step)
{
    model->now_ns += step->new_state == 0 ? step->id * 1000 : step->new_state;
    model->now_ns -= step->old_state == 1 ? model->now_ns / 2 : 0;
    sxe_time_set_turn_ns(model->now_ns + 1);
    return true;
}

/* Move the pool to another address, by copying it or by closing and opening it. */
static inline bool
pool_model_hop(struct pool_model *model, const struct pool_model_step *step)
{
    void *old = model->pool;

    if (model->spec.name == NULL) {
        const size_t size = sxe_pool_size(model->number, 1, model->states);
        void *base = sxe_pool_to_base(old);
        void *block = aligned_alloc(64, size);

        if (block == NULL)
            abort();
        memcpy(block, base, size);
        memset(base, 0xf0, size);
        free(base);
        model->pool = sxe_pool_from_base(block);
    } else if (model->spec.file != NULL) {
        sxe_pool_delete(old);
        model->pool = sxe_pool_open(&model->spec, NULL);
    } else if (sxe_pool_get_fd(old) != -1) {
        model->pool = sxe_pool_open_fd(sxe_pool_get_fd(old), &model->spec, NULL);
        sxe_pool_delete(old);
    }
    return model->pool != NULL && pool_model_walk(model, step);
}

/* ---- All of the pool ---- */

/* Make the array for a pool that was just made. */
static inline void
pool_model_begin(struct pool_model *model)
{
    model->elements = calloc(model->number, sizeof(model->elements[0]));
    if (model->pool == NULL || model->elements == NULL)
        abort();
    for (unsigned id = 0; id < model->number; id++) {
        pool_model_move(model, id, 0);
        model->pool[id] = (char)id;
    }
    pool_model_walk(model, &(struct pool_model_step){0});
}

static inline void
pool_model_open(struct pool_model *model, unsigned number, unsigned states)
{
    void *block = aligned_alloc(64, sxe_pool_size(number, 1, states));

    *model = (struct pool_model){.number = number, .states = states, .now_ns = 1000, .shards = 1};
    sxe_time_set_turn_ns(model->now_ns);
    model->pool = sxe_pool_construct(block, "model", number, 1, states, SXE_POOL_OPTION_UNLOCKED);
    pool_model_begin(model);
}

/* Open a shared pool, one byte an element; the spec must stay valid. */
static inline void
pool_model_open_shared(struct pool_model *model, const SXE_POOL_SPEC *spec)
{
    *model = (struct pool_model){.number = spec->number,
                                 .states = spec->states,
                                 .now_ns = 1000,
                                 .shards = spec->shards,
                                 .spec = *spec};
    sxe_time_set_turn_ns(model->now_ns);
    model->pool = sxe_pool_open(spec, NULL);
    pool_model_begin(model);
}

static inline void
pool_model_close(struct pool_model *model)
{
    if (model->spec.name != NULL)
        sxe_pool_delete(model->pool);
    else
        free(sxe_pool_to_base(model->pool));
    free(model->elements);
    sxe_time_set_turn_ns(0);
}

/* Do one step. NULL, or the name of the operation whose result differs between pool and model. */
static inline const char *
pool_model_step(struct pool_model *model, const uint8_t bytes[POOL_MODEL_STEP_SIZE])
{
    static const struct {
        const char *name;
        bool (*run)(struct pool_model *, const struct pool_model_step *);
    } operations[] = {
        {"set", pool_model_set},
        {"set", pool_model_set},
        {"set", pool_model_set},
        {"try", pool_model_try},
        {"take oldest", pool_model_take_oldest},
        {"take exactly", pool_model_take_exactly},
        {"touch", pool_model_touch},
        {"touch", pool_model_touch},
        {"look", pool_model_look},
        {"take handle", pool_model_take_handle},
        {"use handle", pool_model_use_handle},
        {"use handle", pool_model_use_handle},
        {"turn", pool_model_turn},
        {"walk on", pool_model_walk_on},
        {"walk on", pool_model_walk_on},
        {"walk on", pool_model_walk_on},
        {"walk on", pool_model_walk_on},
        {"walk", pool_model_walk},
        {"hop", pool_model_hop},
    };
    const struct pool_model_step step = {
        .id = (unsigned)(bytes[1] | bytes[2] << 8) % model->number,
        .old_state = (bytes[3] & 15u) % model->states,
        .new_state = (bytes[3] >> 4u) % model->states,
    };
    const size_t operation = bytes[0] % (sizeof(operations) / sizeof(operations[0]));

    return operations[operation].run(model, &step) ? NULL : operations[operation].name;
}

/* Walk one state: check its length, its order, and that each element met is in that state. */
static inline bool
pool_model_check_state(struct pool_model *model, unsigned state, unsigned *total)
{
    unsigned number = 0;
    unsigned shard = 0;
    uint64_t order = 0;
    SXE_TIME stamp = 0;
    SXE_POOL_WALKER walker;

    sxe_pool_walker_construct(&walker, model->pool, state);
    for (unsigned id = sxe_pool_walker_step(&walker); id != SXE_POOL_NO_INDEX;
         id = sxe_pool_walker_step(&walker)) {
        const SXE_TIME time = sxe_pool_get_time(model->pool, id);

        /* The walk meets one shard after the other. */
        if (pool_model_shard_of(model, id) != shard) {
            shard = pool_model_shard_of(model, id);
            order = 0;
            stamp = 0;
        }
        if (model->elements[id].state != state || model->elements[id].order <= order ||
            time <= stamp || sxe_pool_get_state(model->pool, id) != state ||
            model->pool[id] != (char)id)
            return false;
        order = model->elements[id].order;
        stamp = time;
        number++;
    }
    *total += number;
    return number == sxe_pool_get_count(model->pool, state) &&
           sxe_pool_walker_step(&walker) == SXE_POOL_NO_INDEX;
}

static inline bool
pool_model_check(struct pool_model *model)
{
    unsigned total = 0;

    for (unsigned state = 0; state < model->states; state++) {
        if (!pool_model_check_state(model, state, &total))
            return false;
    }
    return total == model->number;
}

#endif
