/* SPDX-License-Identifier: MIT
 *
 * What: checks that a history is linearizable: whether the answers of all calls, and what is in
 * memory in the end, could result if each call happened at one moment between its begin and its
 * end.
 *
 * Place: called by model-search.h at the end of each schedule, after model_check_lists.
 *
 * Shape: a call is one event; or several events, where the library promises less:
 *
 *     take, several shards, nothing found   one event for each shard: it was empty at some moment
 *     walk                                  its begin and its end; of several shards it meets what
 *                                           was in the state when it came to the shard
 *     a call whose process was killed       one event, which may also never have happened
 *
 * Elements are compared by state, stamp and generation. The stamps follow from the order of the
 * events: each is the time that its call read, or the shard's last stamp plus 1. When the
 * processes' clocks differ, the exact take must only keep the order within its shard.
 */
#ifndef MODEL_HISTORY_H
#define MODEL_HISTORY_H

#include "model-pool.h"

#define MODEL_CALLS_ALL (MODEL_PROCESSES * MODEL_CALLS)
#define MODEL_EVENTS    (MODEL_CALLS_ALL * MODEL_SHARDS)

/* The model of the pool: plain arrays. */
struct model_plain {
    uint64_t stamp[MODEL_ELEMENTS];
    uint64_t last[MODEL_SHARDS];
    uint32_t generation[MODEL_ELEMENTS];
    uint8_t state[MODEL_ELEMENTS];
    uint8_t began[MODEL_CALLS_ALL]; /* for each walk: the elements that it may meet */
    /* For each walk: the elements of `began` that were not moved or touched since it began. */
    uint8_t stayed[MODEL_CALLS_ALL];
};

struct model_event {
    uint8_t call;
    uint8_t part; /* the shard; of a walk 0: the begin, 1: the end */
    bool optional;
};

struct model_history {
    struct model_event events[MODEL_EVENTS];
    unsigned count;
};

static const struct model_order *
model_order_of(unsigned call)
{
    return &model_world.model->orders[call / MODEL_CALLS][call % MODEL_CALLS];
}

static void
model_add_event(struct model_history *history, unsigned call, unsigned part, bool optional)
{
    history->events[history->count++] =
        (struct model_event){.call = (uint8_t)call, .part = (uint8_t)part, .optional = optional};
}

static void
model_add_events(struct model_history *history, unsigned call)
{
    const struct model_call *made = &model_world.calls[call];
    const enum model_verb verb = model_order_of(call)->verb;

    if (!made->begun || made->result == SXE_POOL_LOCK_NOT_TAKEN || verb == MODEL_WAIT)
        return;
    if (!made->ended) {
        if (verb != MODEL_WALK && made->timed)
            model_add_event(history, call, 0, true);
        return;
    }
    model_add_event(history, call, 0, false);
    if (verb == MODEL_WALK)
        model_add_event(history, call, 1, false);
    else if (made->result == SXE_POOL_NO_INDEX) {
        for (unsigned shard = 1; shard < model_world.model->shards; shard++)
            model_add_event(history, call, shard, false);
    }
}

/* Whether an event must wait for another that has not happened yet. */
static bool
model_waits(const struct model_history *history, unsigned number, uint32_t happened)
{
    const struct model_event *event = &history->events[number];

    for (unsigned i = 0; i < history->count; i++) {
        const struct model_event *other = &history->events[i];

        if ((happened & 1u << i) != 0 || i == number)
            continue;
        if ((model_world.calls[event->call].before & 1u << other->call) != 0)
            return true;
        if (other->call == event->call && other->part < event->part &&
            model_order_of(event->call)->verb == MODEL_WALK)
            return true;
    }
    return false;
}

/* ---- Calls of the model: each returns whether it would give the answer that was recorded ---- */

static unsigned
model_shard_of(unsigned id)
{
    return sxe__pool_shard_of(&model_world.pages[0].sharing, id);
}

static bool
model_plain_move(struct model_plain *plain, unsigned id, unsigned to, uint64_t now)
{
    uint64_t *last = &plain->last[model_shard_of(id)];

    plain->generation[id] += to == 0 && plain->state[id] != 0;
    *last = now > *last ? now : *last + 1;
    plain->stamp[id] = *last;
    plain->state[id] = (uint8_t)to;
    for (unsigned i = 0; i < MODEL_CALLS_ALL; i++) {
        plain->stayed[i] &= (uint8_t) ~(1u << id);
        /* With several shards, a walk sees each shard as it is when the walk gets there. */
        if (model_world.model->shards > 1 && model_order_of(i)->verb == MODEL_WALK &&
            model_order_of(i)->from == to)
            plain->began[i] |= (uint8_t)(1u << id);
    }
    return true;
}

/* Whether an element is the oldest of its state, in its shard or (of_all) in all shards. */
static bool
model_plain_is_oldest(const struct model_plain *plain, unsigned id, bool of_all)
{
    for (unsigned i = 0; i < model_world.model->elements; i++) {
        if (plain->state[i] == plain->state[id] && plain->stamp[i] < plain->stamp[id] &&
            (of_all || model_shard_of(i) == model_shard_of(id)))
            return false;
    }
    return true;
}

static bool
model_plain_is_empty(const struct model_plain *plain, unsigned state, unsigned shard)
{
    for (unsigned i = 0; i < model_world.model->elements; i++) {
        if (plain->state[i] == state && model_shard_of(i) == shard)
            return false;
    }
    return true;
}

static bool
model_plain_take(struct model_plain *plain, const struct model_event *event)
{
    const struct model_call *call = &model_world.calls[event->call];
    const struct model_order *order = model_order_of(event->call);
    const bool exact = order->verb == MODEL_EXACT && model_world.model->clock == MODEL_TICKING;

    if (call->ended && call->result == SXE_POOL_NO_INDEX)
        return model_plain_is_empty(plain, order->from, event->part);
    return call->result < model_world.model->elements &&
           plain->state[call->result] == order->from &&
           model_plain_is_oldest(plain, call->result, exact) &&
           model_plain_move(plain, call->result, order->to, call->now) &&
           (order->verb != MODEL_LEASE || !call->ended ||
            plain->stamp[call->result] == call->lease_stamp);
}

static bool
model_plain_set(struct model_plain *plain, const struct model_event *event)
{
    const struct model_call *call = &model_world.calls[event->call];
    const struct model_order *order = model_order_of(event->call);

    if (order->verb == MODEL_TOUCH)
        return (!call->ended ||
                (call->result == order->id && call->state == plain->state[order->id])) &&
               model_plain_move(plain, order->id, plain->state[order->id], call->now);
    if (call->ended && call->result == SXE_POOL_INCORRECT_STATE)
        return plain->state[order->id] != order->from && plain->state[order->id] == call->state;
    return (!call->ended || call->result == order->id) && plain->state[order->id] == order->from &&
           model_plain_move(plain, order->id, order->to, call->now);
}

/* The move with a lease, namely the lease that the process had when the call began. */
static bool
model_plain_end(struct model_plain *plain, const struct model_event *event)
{
    const struct model_call *call = &model_world.calls[event->call];
    const struct model_order *order = model_order_of(event->call);
    const SXE_POOL_LEASE lease = model_lease_of(order, call);
    const bool is_held = plain->stamp[lease.id] == lease.stamp;

    if (call->ended && call->result == SXE_POOL_LEASE_LOST)
        return !is_held;
    return (!call->ended || call->result == SXE_POOL_LOCK_TAKEN) && is_held &&
           model_plain_move(plain, lease.id, order->to, call->now) &&
           (!call->ended || plain->stamp[lease.id] == call->lease_stamp);
}

static bool
model_plain_walk(struct model_plain *plain, const struct model_event *event)
{
    const struct model_call *call = &model_world.calls[event->call];
    const unsigned state = model_order_of(event->call)->from;

    if (event->part == 1)
        return call->twice == 0 && call->result == SXE_POOL_NO_INDEX &&
               (call->met & ~plain->began[event->call]) == 0 &&
               (call->cut || (plain->stayed[event->call] & ~call->met) == 0);
    for (unsigned id = 0; id < model_world.model->elements; id++)
        plain->stayed[event->call] |= (uint8_t)((plain->state[id] == state) << id);
    plain->began[event->call] = plain->stayed[event->call];
    return true;
}

static bool
model_happen(struct model_plain *plain, const struct model_event *event)
{
    switch (model_order_of(event->call)->verb) {
    case MODEL_NOTHING:
    case MODEL_WAIT:
        break;
    case MODEL_SET:
    case MODEL_TOUCH:
        return model_plain_set(plain, event);
    case MODEL_TAKE:
    case MODEL_LEASE:
    case MODEL_EXACT:
        return model_plain_take(plain, event);
    case MODEL_END:
        return model_plain_end(plain, event);
    case MODEL_WALK:
        return model_plain_walk(plain, event);
    }
    return false;
}

/* A take whose process died has no recorded answer: try one possible answer, `way`. */
static bool
model_happen_somehow(struct model_plain *plain, const struct model_event *event, unsigned way)
{
    struct model_call *call = &model_world.calls[event->call];
    const enum model_verb verb = model_order_of(event->call)->verb;

    if (!event->optional || (verb != MODEL_TAKE && verb != MODEL_EXACT && verb != MODEL_LEASE))
        return way == 0 && model_happen(plain, event);
    call->result = way;
    const bool could = model_happen(plain, event);
    call->result = 0;
    return could;
}

/* ---- The search for an order ---- */

static bool
model_plain_is_memory(const struct model_plain *plain)
{
    const struct model_memory *memory = &model_world.memory;

    for (unsigned id = 0; id < model_world.model->elements; id++) {
        if (plain->state[id] != memory->nodes[id].state ||
            plain->stamp[id] != memory->nodes[id].stamp ||
            plain->generation[id] != memory->nodes[id].generation)
            return false;
    }
    for (unsigned shard = 0; shard < model_world.model->shards; shard++) {
        if (plain->last[shard] != memory->shards[shard].last_stamp)
            return false;
    }
    return true;
}

static bool
model_find_order(const struct model_history *history, const struct model_plain *plain,
                 uint32_t happened)
{
    bool all = true;

    for (unsigned i = 0; i < history->count; i++) {
        const struct model_event *event = &history->events[i];

        if ((happened & 1u << i) != 0)
            continue;
        all = all && event->optional;
        if (model_waits(history, i, happened))
            continue;
        for (unsigned way = 0; way < model_world.model->elements; way++) {
            struct model_plain next = *plain;

            if (model_happen_somehow(&next, event, way) &&
                model_find_order(history, &next, happened | 1u << i))
                return true;
        }
    }
    return all && model_plain_is_memory(plain);
}

static void
model_plain_begin(struct model_plain *plain)
{
    *plain = (struct model_plain){0};
    for (unsigned id = 0; id < model_world.model->elements; id++) {
        plain->state[id] = (uint8_t)model_world.first.nodes[id].state;
        plain->stamp[id] = model_world.first.nodes[id].stamp;
        plain->generation[id] = 1;
    }
    for (unsigned shard = 0; shard < model_world.model->shards; shard++)
        plain->last[shard] = model_world.first.shards[shard].last_stamp;
}

static void
model_say_calls(char *text, size_t size)
{
    for (unsigned i = 0; i < MODEL_CALLS_ALL; i++) {
        const struct model_call *call = &model_world.calls[i];
        const size_t length = strlen(text);

        if (call->begun)
            snprintf(text + length, size - length, " %u.%u=%d/%u%s", i / MODEL_CALLS,
                     i % MODEL_CALLS, call->ended ? (int)call->result : -9, call->state,
                     call->twice ? " twice" : "");
    }
}

/* NULL: some order of the events explains the answers; otherwise the history as a text. */
static const char *
model_check_history(void)
{
    struct model_history history = {.count = 0};
    struct model_plain plain;

    for (unsigned i = 0; i < MODEL_CALLS_ALL; i++)
        model_add_events(&history, i);
    model_plain_begin(&plain);
    if (model_find_order(&history, &plain, 0))
        return NULL;
    MODEL_SAY("no order of the calls explains their answers:");
    model_say_calls(model_world.said, sizeof(model_world.said));
    return model_world.said;
}

#endif
