/* SPDX-License-Identifier: MIT
 *
 * What: runs every schedule of a case, with every possible death, to its end, and judges the
 * result.
 *
 * Place: model.c and test-pool-model.c call model_search().
 *
 * Shape: a depth-first search. To try the second choice of a state, everything is restored as it
 * was there, stacks included. Under AddressSanitizer, which must not see stacks change, the case
 * begins again instead and makes the same choices. A state that was met before is not searched
 * again (model-run.h says when two states are the same); the search keeps how many schedules lead
 * from each state to an end, so that it knows the number of all schedules although it runs few of
 * them.
 *
 * Limits: two states are taken to be the same if their hashes of 128 bits are equal.
 */
#ifndef MODEL_SEARCH_H
#define MODEL_SEARCH_H

#include "model-history.h"

#define MODEL_DEPTH 2048u
#define MODEL_SAVED ((size_t)64 << 20) /* bytes for the states along the current path */

enum model_act { MODEL_RUN, MODEL_ARRIVE, MODEL_KILL };

struct model_choice {
    uint8_t act;
    uint8_t process;
};

struct model_state {
    uint64_t hash[2]; /* 0, 0: the entry is free */
    double schedules;
};

struct model_search {
    struct model_state *states; /* a hash table */
    uint64_t room;              /* a power of 2 */
    uint64_t count;
    uint64_t steps; /* transitions from state to state */
    uint64_t ends;
    uint64_t limit; /* the highest number of states; 0: no limit */
    unsigned deaths;
    const char *wrong; /* the first error; `path` is the way to it */
    char *saved;
    struct model_choice path[MODEL_DEPTH];
};

/* ---- States that the search has met ---- */

static void
model_hash_bytes(uint64_t hash[2], const void *bytes, size_t size)
{
    const uint64_t *words = bytes;

    for (size_t i = 0; i < size / sizeof(*words); i++) {
        hash[0] = model_mix(hash[0], words[i]);
        hash[1] = (hash[1] + words[i]) * UINT64_C(0xd6e8feb86659fd93);
        hash[1] ^= hash[1] >> 32;
    }
}

static void
model_hash_process(uint64_t hash[2], const struct model_process *process)
{
    const uint64_t words[] = {process->status | (uint64_t)process->in_call << 2 |
                                  (uint64_t)process->asleep << 7 | (uint64_t)process->call << 3 |
                                  (uint64_t)process->stored << 8,
                              process->status == MODEL_DEAD ? 0 : process->seen};

    model_hash_bytes(hash, words, sizeof(words));
    for (unsigned i = 0; i < process->stored; i++) {
        const uint64_t store[] = {(uintptr_t)process->stores[i].place, process->stores[i].value,
                                  process->stores[i].call};
        model_hash_bytes(hash, store, sizeof(store));
    }
}

static void
model_hash_world(uint64_t hash[2])
{
    struct model_waits waits;

    hash[0] = 1;
    hash[1] = 2;
    model_hash_bytes(hash, &model_world.memory, sizeof(model_world.memory));
    model_hash_bytes(hash, model_world.calls, sizeof(model_world.calls));
    model_hash_bytes(hash, model_world.locals, sizeof(model_world.locals));
    model_hash_bytes(hash, &model_world.ticks, sizeof(model_world.ticks));
    model_get_waits(&waits);
    model_hash_bytes(hash, &waits, sizeof(waits));
    for (unsigned i = 0; i < MODEL_PROCESSES; i++)
        model_hash_process(hash, &model_run.processes[i]);
    hash[0] |= 1;
}

/* The entry of a state in the hash table: its own, or a free one. */
static struct model_state *
model_state_at(const struct model_search *search, const uint64_t hash[2])
{
    uint64_t i = hash[1] & (search->room - 1);

    while (search->states[i].hash[0] != 0 &&
           (search->states[i].hash[0] != hash[0] || search->states[i].hash[1] != hash[1]))
        i = (i + 1) & (search->room - 1);
    return &search->states[i];
}

static void
model_make_room(struct model_search *search)
{
    struct model_search larger = *search;

    larger.room = search->room == 0 ? 1024 : 2 * search->room;
    larger.states = calloc(larger.room, sizeof(*larger.states));
    if (larger.states == NULL)
        abort();
    for (uint64_t i = 0; i < search->room; i++) {
        if (search->states[i].hash[0] != 0)
            *model_state_at(&larger, search->states[i].hash) = search->states[i];
    }
    free(search->states);
    search->states = larger.states;
    search->room = larger.room;
}

static void
model_remember(struct model_search *search, const uint64_t hash[2], double schedules)
{
    if (4 * search->count >= 3 * search->room)
        model_make_room(search);
    *model_state_at(search, hash) =
        (struct model_state){.hash = {hash[0], hash[1]}, .schedules = schedules};
    search->count++;
}

/* ---- Choices ---- */

static unsigned
model_choices(const struct model_search *search, struct model_choice *choices)
{
    unsigned count = 0;
    unsigned dead = 0;

    for (uint8_t i = 0; i < MODEL_PROCESSES; i++)
        dead += model_run.processes[i].status == MODEL_DEAD;
    for (uint8_t i = 0; i < MODEL_PROCESSES; i++) {
        const struct model_process *process = &model_run.processes[i];

        if (model_can_run(process))
            choices[count++] = (struct model_choice){MODEL_RUN, i};
        if (process->stored > 0)
            choices[count++] = (struct model_choice){MODEL_ARRIVE, i};
        if (process->status == MODEL_READY && process->in_call && dead < search->deaths)
            choices[count++] = (struct model_choice){MODEL_KILL, i};
    }
    return count;
}

static void
model_choose(struct model_choice choice)
{
    struct model_process *process = &model_run.processes[choice.process];

    switch ((enum model_act)choice.act) {
    case MODEL_RUN:
        model_go_on(process);
        break;
    case MODEL_ARRIVE:
        model_arrive(process);
        break;
    case MODEL_KILL:
        model_kill(process);
        break;
    }
    if (model_run.tell && choice.act != MODEL_RUN)
        printf("    %u: %s\n", choice.process,
               choice.act == MODEL_KILL ? "dies" : "a store arrives");
}

static void
model_copy(char **saved, void *place, size_t size, bool save)
{
    memcpy(save ? *saved : place, save ? place : *saved, size);
    *saved += size;
}

static void
model_copy_waits(char **saved, bool save)
{
    struct model_waits waits;

    model_get_waits(&waits);
    model_copy(saved, &waits, sizeof(waits), save);
    if (!save)
        model_set_waits(&waits);
}

/* Copy everything that makes up a state to `saved` (save) or from it; returns the end of the
 * copy. */
static char *
model_keep(char *saved, bool save)
{
    model_copy(&saved, &model_world.memory, sizeof(model_world.memory), save);
    model_copy(&saved, model_world.calls, sizeof(model_world.calls), save);
    model_copy(&saved, model_world.locals, sizeof(model_world.locals), save);
    model_copy(&saved, &model_world.ticks, sizeof(model_world.ticks), save);
    model_copy_waits(&saved, save);
    for (unsigned i = 0; i < MODEL_PROCESSES; i++) {
        struct model_process *process = &model_run.processes[i];

        model_copy(&saved, process, offsetof(struct model_process, stores), save);
        model_copy(&saved, process->stores, process->stored * sizeof(process->stores[0]), save);
        if (process->status == MODEL_READY)
            model_copy(
                &saved, process->stack_pointer,
                (size_t)(process->stack + MODEL_STACK_SIZE - (const char *)process->stack_pointer),
                save);
    }
    return saved;
}

static void
model_begin_again(const struct model_search *search, unsigned depth)
{
    model_reset_world();
    for (unsigned i = 0; i < depth; i++)
        model_choose(search->path[i]);
}

#ifdef __SANITIZE_ADDRESS__
#    define MODEL_REPLAY true
#else
#    define MODEL_REPLAY false
#endif

/* Save the state for model_go_back(). Returns where it is. */
static char *
model_remember_way(struct model_search *search)
{
    char *saved = search->saved;

    if (!MODEL_REPLAY)
        search->saved = model_keep(saved, true);
    return saved;
}

static void
model_go_back(const struct model_search *search, unsigned depth, char *saved)
{
    if (MODEL_REPLAY)
        model_begin_again(search, depth);
    else
        model_keep(saved, false);
}

/* ---- The search ---- */

/* Judge the end of a schedule: NULL, or an error. */
static const char *
model_judge(void)
{
    const struct model_memory memory = model_world.memory;
    const char *wrong = model_check_sleepers();

    if (wrong == NULL)
        wrong = model_check_takes();

    model_world.memory = memory;
    if (wrong == NULL)
        wrong = model_check_lists();
    return wrong == NULL ? model_check_history() : wrong;
}

/* Returns the number of schedules from this state on; the search ends at the first error. */
static double
model_explore(struct model_search *search, unsigned depth)
{
    struct model_choice choices[3 * MODEL_PROCESSES];
    const unsigned count = model_choices(search, choices);
    double schedules = count == 0;
    uint64_t hash[2];

    model_hash_world(hash);
    const struct model_state *met = search->room == 0 ? NULL : model_state_at(search, hash);
    if (met != NULL && met->hash[0] != 0)
        return met->schedules;
    if (count == 0) {
        search->ends++;
        search->wrong = model_judge();
    }
    if (depth == MODEL_DEPTH - 1)
        search->wrong = "a schedule without end";
    if (search->wrong != NULL)
        search->path[depth].process = UINT8_MAX;
    char *saved = model_remember_way(search);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            model_go_back(search, depth, saved);
        search->path[depth] = choices[i];
        search->steps++;
        model_choose(choices[i]);
        schedules += model_explore(search, depth + 1);
        if (search->wrong != NULL || (search->limit != 0 && search->count >= search->limit))
            return 0;
    }
    search->saved = saved;
    if (search->wrong == NULL)
        model_remember(search, hash, schedules);
    return schedules;
}

static void
model_tell_path(struct model_search *search)
{
    unsigned depth = 0;

    while (search->path[depth].process != UINT8_MAX)
        depth++;
    printf("  %s; the schedule:\n", search->wrong);
    model_run.tell = true;
    model_begin_again(search, depth);
    model_run.tell = false;
}

/* Search a case and print a line about it. Returns whether every schedule is right; a search that
 * reaches `limit` states has failed, too. */
static bool
model_search(const struct model_case *model, const struct model_mutant *mutant, uint64_t limit,
             bool tell)
{
    struct model_search search = {.deaths = model->deaths, .limit = limit};
    double schedules;

    model_make_world(model);
    model_run.mutant = mutant;
    char *saved = malloc(MODEL_SAVED);
    if (saved == NULL)
        abort();
    search.saved = saved;
    model_begin_again(&search, 0);
    schedules = model_explore(&search, 0);
    const bool complete = limit == 0 || search.count < limit;
    const bool good = search.wrong == NULL && complete;
    if (tell) {
        printf("%s: %llu states, %llu steps, %llu ends, %.3g schedules: %s\n", model->name,
               (unsigned long long)search.count, (unsigned long long)search.steps,
               (unsigned long long)search.ends, schedules,
               search.wrong != NULL ? search.wrong
               : complete           ? "all right"
                                    : "too many states");
        if (search.wrong != NULL)
            model_tell_path(&search);
        fflush(stdout);
    }
    model_run.mutant = NULL;
    free(search.states);
    free(saved);
    return good;
}

#endif
