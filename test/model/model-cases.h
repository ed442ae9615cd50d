/* SPDX-License-Identifier: MIT
 *
 * What: the cases of which every schedule is run, and the faults that the search must notice.
 * Place: used by test-pool-model.c (those that take seconds) and by model.c (all).
 */
#ifndef MODEL_CASES_H
#define MODEL_CASES_H

#include "model-search.h"

#define MODEL_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define SET(id, from, to)       \
    {                           \
        MODEL_SET, id, from, to \
    }
#define TAKE(from, to)          \
    {                           \
        MODEL_TAKE, 0, from, to \
    }
#define EXACT(from, to)          \
    {                            \
        MODEL_EXACT, 0, from, to \
    }
#define TOUCH(id)             \
    {                         \
        MODEL_TOUCH, id, 0, 0 \
    }
#define WAIT(state)             \
    {                           \
        MODEL_WAIT, 0, state, 0 \
    }
#define WALK(state)             \
    {                           \
        MODEL_WALK, 0, state, 0 \
    }
#define LEASE(from, to)          \
    {                            \
        MODEL_LEASE, 0, from, to \
    }
#define END(call, to)          \
    {                          \
        MODEL_END, call, 0, to \
    }

/* Cases of a few thousand states each, which are run in every build. */
static const struct model_case model_small[] = {
    {.name = "two processes set the same element, both may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .orders = {{SET(0, 0, 1)}, {SET(0, 0, 1)}}},
    {.name = "a set and a take, one may die",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .orders = {{SET(0, 0, 1)}, {TAKE(0, 1)}}},
    {.name = "two takes of the only element, both may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .orders = {{TAKE(0, 1)}, {TAKE(0, 1)}}},
    {.name = "a touch of the oldest and a take, both may die",
     .elements = 3,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .orders = {{TOUCH(0)}, {TAKE(0, 1)}}},
    {.name = "two elements change places, one process may die",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .begin = {0, 1},
     .orders = {{SET(0, 0, 1)}, {SET(1, 1, 0)}}},
    {.name = "threads: a set, a take and a touch",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .threads = true,
     .orders = {{SET(0, 0, 1)}, {TAKE(0, 1)}, {TOUCH(0)}}},
    {.name = "two shards, one take each, one process may die",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .deaths = 1,
     .orders = {{TAKE(0, 1)}, {TAKE(0, 1)}}},
    {.name = "one waits for what the other sets",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .orders = {{WAIT(1), TAKE(1, 0)}, {SET(0, 0, 1)}}},
};

/* Cases of some 100,000 states each, which are run in optimized builds without sanitizers. */
static const struct model_case model_medium[] = {
    {.name = "a lease, and a touch of another that voids it, both may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .orders = {{LEASE(0, 1), END(0, 0)}, {TOUCH(0)}}},
    {.name = "two processes hand an element to and fro, both may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .orders = {{TAKE(0, 1), TAKE(1, 0)}, {TAKE(1, 0), TAKE(0, 1)}}},
    {.name = "two sets and two takes, one process may die",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .orders = {{SET(0, 0, 1), SET(1, 0, 1)}, {TAKE(0, 1), TAKE(1, 0)}}},
    {.name = "a walk, while others touch and take, clocks apart, one process may die",
     .elements = 3,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .clock = MODEL_SKEWED,
     .orders = {{WALK(0)}, {TOUCH(0), SET(1, 0, 1)}}},
    {.name = "a walk of two shards, clocks apart",
     .elements = 4,
     .states = 2,
     .shards = 2,
     .clock = MODEL_SKEWED,
     .orders = {{WALK(0)}, {TOUCH(0), TOUCH(3)}}},
    {.name = "two shards, a set and a touch; is the third told there is nothing?",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .orders = {{TAKE(0, 1)}, {SET(1, 0, 1)}, {TOUCH(0)}}},
    {.name = "the oldest of two shards, while both fill",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .clock = MODEL_TICKING,
     .begin = {1, 1},
     .orders = {{EXACT(0, 1)}, {SET(0, 1, 0), SET(1, 1, 0)}}},
    {.name = "stores arrive late (TSO): a set and a take, one process may die",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .tso = true,
     .orders = {{SET(0, 0, 1)}, {TAKE(0, 1)}}},
    {.name = "three processes set the same element, two may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .orders = {{SET(0, 0, 1)}, {SET(0, 0, 1)}, {SET(0, 1, 0)}}},
    {.name = "one waits for what the other sets; one may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .orders = {{WAIT(1), TAKE(1, 0)}, {SET(0, 0, 1), SET(0, 1, 0)}}},
    {.name = "stores arrive late (TSO): one waits for what the other sets",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .tso = true,
     .orders = {{WAIT(1), TAKE(1, 0)}, {SET(0, 0, 1)}}},
    {.name = "a job is taken back from its worker and leased to another, one may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .orders = {{LEASE(0, 1), END(0, 0)}, {SET(0, 1, 0), LEASE(0, 1), END(1, 0)}}},
    {.name = "stores arrive late (TSO): two lease the same element, and end with it",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .tso = true,
     .orders = {{LEASE(0, 1), END(0, 0)}, {LEASE(0, 1), END(0, 0)}}},
};

/* Cases that take minutes each. */
static const struct model_case model_large[] = {
    {.name = "two touches and a take, two of three processes may die",
     .elements = 3,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .orders = {{TOUCH(0)}, {TOUCH(1)}, {TAKE(0, 1)}}},
    {.name = "three states in a row, a worker for each step, two may die",
     .elements = 2,
     .states = 3,
     .shards = 1,
     .deaths = 2,
     .orders = {{TAKE(0, 1)}, {TAKE(1, 2)}, {TAKE(2, 0)}}},
    {.name = "two calls of one and one each of two processes, one may die",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .orders = {{SET(0, 0, 1), TAKE(1, 0)}, {TAKE(0, 1)}, {TOUCH(0)}}},
    {.name = "a walk among two processes that set and touch",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .clock = MODEL_SKEWED,
     .orders = {{WALK(0)}, {TOUCH(0)}, {SET(1, 0, 1)}}},
    {.name = "three threads, two of them with two calls",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .threads = true,
     .orders = {{SET(0, 0, 1), TAKE(1, 0)}, {TAKE(0, 1), TOUCH(1)}, {TOUCH(0)}}},
    {.name = "a producer and two consumers of two shards, two may die",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .deaths = 2,
     .orders = {{TAKE(0, 1)}, {TAKE(1, 0)}, {TAKE(1, 0)}}},
    {.name = "four elements, three processes, two may die",
     .elements = 4,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .begin = {0, 0, 1, 1},
     .orders = {{SET(1, 0, 1)}, {TAKE(1, 0)}, {SET(3, 1, 0)}}},
    {.name = "two shards, three takes, one process may die",
     .elements = 4,
     .states = 2,
     .shards = 2,
     .deaths = 1,
     .orders = {{TAKE(0, 1), TAKE(0, 1)}, {TAKE(0, 1)}}},
    {.name = "the oldest of two shards, while others touch and set; one may die",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .deaths = 1,
     .clock = MODEL_TICKING,
     .begin = {0, 1},
     .orders = {{EXACT(0, 1)}, {TOUCH(0), SET(1, 1, 0)}}},
    {.name = "the oldest of two shards, three processes",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .clock = MODEL_TICKING,
     .begin = {0, 1},
     .orders = {{EXACT(0, 1)}, {TOUCH(0)}, {SET(1, 1, 0)}}},
    {.name = "two take the oldest of two shards, one may die",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .deaths = 1,
     .clock = MODEL_TICKING,
     .orders = {{EXACT(0, 1)}, {EXACT(0, 1)}}},
    {.name = "stores arrive late (TSO): two calls each, one process may die",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .tso = true,
     .orders = {{SET(0, 0, 1), TAKE(1, 0)}, {TAKE(0, 1), SET(0, 1, 0)}}},
    {.name = "stores arrive late (TSO): a walk and two changes, one process may die",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .tso = true,
     .orders = {{WALK(0)}, {TOUCH(0), SET(1, 0, 1)}}},
    {.name = "stores arrive late (TSO): two shards, the oldest and two sets",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .tso = true,
     .clock = MODEL_TICKING,
     .begin = {1, 1},
     .orders = {{EXACT(0, 1)}, {SET(0, 1, 0), SET(1, 1, 0)}}},
    {.name = "stores arrive late (TSO): three processes, two may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .tso = true,
     .orders = {{SET(0, 0, 1)}, {TAKE(0, 1)}, {TAKE(1, 0)}}},
    {.name = "stores arrive late (TSO): each takes what the other has set",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .tso = true,
     .begin = {0, 1},
     .orders = {{SET(0, 0, 1), TAKE(0, 1)}, {SET(1, 1, 0), TAKE(1, 0)}}},
    {.name = "two workers with leases, and one that takes the job back, two may die",
     .elements = 1,
     .states = 3,
     .shards = 1,
     .deaths = 2,
     .begin = {1},
     .orders = {{LEASE(1, 2), END(0, 0)}, {LEASE(1, 2), END(0, 0)}, {SET(0, 2, 1)}}},
    {.name = "leases in two shards, and touches, one may die",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .deaths = 1,
     .orders = {{LEASE(0, 1), END(0, 0)}, {TOUCH(0), LEASE(0, 1), END(1, 1)}}},
    {.name = "two wait, one of them may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .orders = {{WAIT(1)}, {WAIT(1)}, {SET(0, 0, 1)}}},
    {.name = "one waits, two set",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .orders = {{WAIT(1)}, {SET(0, 0, 1)}, {SET(1, 0, 1)}}},
    {.name = "one waits for two shards",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .orders = {{WAIT(1), TAKE(1, 0), WAIT(1)}, {SET(0, 0, 1), SET(1, 0, 1)}}},
    {.name = "stores arrive late (TSO): three threads",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .threads = true,
     .tso = true,
     .orders = {{SET(0, 0, 1)}, {TAKE(0, 1)}, {TOUCH(1)}}},
};

#define MODEL_FIRST_STAMP MODEL_TIME /* the stamp of a call while the clock stands still */

/* Each fault is tried with the first case, and with the next if that does not show the fault. */
static const struct model_case model_for_mutants[] = {
#ifndef __SANITIZE_ADDRESS__
    {.name = "a lease and a touch",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .orders = {{LEASE(0, 1), END(0, 0)}, {TOUCH(0)}}},
#endif
    {.name = "one element, one process may die",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .orders = {{TAKE(0, 1)}, {TAKE(1, 0), TAKE(0, 1)}}},
    {.name = "one waits",
     .elements = 1,
     .states = 2,
     .shards = 1,
     .orders = {{WAIT(1), TAKE(1, 0)}, {SET(0, 0, 1)}}},
    {.name = "two shards, a touch",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .clock = MODEL_TICKING,
     .begin = {0, 1},
     .orders = {{EXACT(0, 1)}, {TOUCH(0)}}},
    {.name = "three elements, two processes, one may die",
     .elements = 3,
     .states = 2,
     .shards = 1,
     .deaths = 1,
     .orders = {{SET(1, 0, 1), SET(1, 1, 0)}, {TAKE(0, 1), TOUCH(2)}}},
    {.name = "three processes, two may die",
     .elements = 2,
     .states = 2,
     .shards = 1,
     .deaths = 2,
     .orders = {{SET(0, 0, 1)}, {TAKE(0, 1)}, {TAKE(1, 0)}}},
    {.name = "two shards",
     .elements = 2,
     .states = 2,
     .shards = 2,
     .clock = MODEL_TICKING,
     .begin = {1, 1},
     .orders = {{EXACT(0, 1)}, {SET(0, 1, 0), SET(1, 1, 0)}}},
};

#define DROPPED(site)                                  \
    {                                                  \
        "no store to " site, MODEL_DROP, site, NULL, 0 \
    }

static const struct model_mutant model_mutants[] = {
    {"locks that do not lock", MODEL_UNLOCKED, NULL, NULL, 0},
    {"the living are taken for dead", MODEL_BLIND, NULL, NULL, 0},
    {"no unlock", MODEL_DROP, "*lock", NULL, 0},
    {"unlocked before the first store", MODEL_HOIST, "*lock", "parts->before->next", 0},
    {"unlocked before the last count", MODEL_HOIST, "*lock", "parts->to->count", 0},
    {"unlocked before the last link", MODEL_HOIST, "*lock", "parts->to->prev", 0},
    {"unlocked before the last stamp", MODEL_HOIST, "*lock", "shard->last_stamp", 0},
    {"begun before the intent", MODEL_HOIST, "intent->stamp", "intent->id", 0},
    {"begun before the intent's state", MODEL_HOIST, "intent->stamp", "intent->new_state", 0},
    {"begun before the intent's last word", MODEL_HOIST, "intent->stamp", "intent->generation", 0},
    {"done before the first store", MODEL_HOIST, "shard->last_stamp", "parts->before->next", 0},
    {"done before the element's state", MODEL_HOIST, "shard->last_stamp", "node->state", 0},
    {"done before the last count", MODEL_HOIST, "shard->last_stamp", "parts->to->count", 0},
    {"done before the last link", MODEL_HOIST, "shard->last_stamp", "parts->to->prev", 0},
    {"never begun", MODEL_DROP, "intent->stamp", NULL, 0},
    {"begun for ever", MODEL_DROP, "shard->last_stamp", NULL, 0},
    {"what the dead had begun is left", MODEL_READ, "shard->intent.stamp", NULL, 0},
    {"the old state is not looked at", MODEL_READ, "nodes[id].state", NULL, 0},
    {"a count is believed under the lock", MODEL_READ, "sharing->shards[shard].lock", NULL, 0},
    {"nobody is woken", MODEL_READ, "pool->sharing->head->watching", NULL, 0},
    {"ends are read during changes", MODEL_READ, "place->lock", NULL, 0},
/* With AddressSanitizer each step back replays the case, which takes minutes. */
#ifndef __SANITIZE_ADDRESS__
    {"a lease's stamp is not looked at", MODEL_READ, "node->stamp", NULL, MODEL_FIRST_STAMP},
    {"all leases are lost", MODEL_READ, "node->stamp", NULL, 1},
#endif
    DROPPED("intent->id"),
    DROPPED("intent->prev"),
    DROPPED("intent->next"),
    DROPPED("intent->tail"),
    DROPPED("intent->old_state"),
    DROPPED("intent->new_state"),
    DROPPED("intent->from_count"),
    DROPPED("intent->to_count"),
    DROPPED("intent->generation"),
    DROPPED("parts->before->next"),
    DROPPED("parts->after->prev"),
    DROPPED("node->next"),
    DROPPED("node->prev"),
    DROPPED("node->stamp"),
    DROPPED("node->state"),
    DROPPED("node->generation"),
    DROPPED("parts->from->count"),
    DROPPED("parts->to->count"),
    DROPPED("parts->tail->next"),
    DROPPED("parts->to->prev"),
};

/* Whether one of the cases shows a fault; model_world.said then has the message. */
static bool
model_catches(const struct model_mutant *mutant)
{
    for (size_t i = 0; i < MODEL_LENGTH(model_for_mutants); i++) {
        model_world.said[0] = '\0';
        model_search(&model_for_mutants[i], mutant, 100000, false);
        if (model_world.said[0] != '\0')
            return true;
    }
    return false;
}

#endif
