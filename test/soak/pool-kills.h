/* SPDX-License-Identifier: MIT
 *
 * What: processes that use one pool in a file without a pause; one after the other is killed at
 * random and replaced. After each kill the pool is checked. At the end of a round all are killed,
 * and the next opening must find the pool complete.
 *
 * Place: test-pool-crash.c makes some hundred kills, soak.c (`make soak`) tens of thousands.
 *
 * Shape: elements go FREE -> BUSY -> FREE or READY -> BUSY ... A process that takes an element
 * writes its number into notes outside the pool, where no other number may stand: no element is
 * given to two. Elements of killed processes stay BUSY until the round is over.
 */
#ifndef POOL_KILLS_H
#define POOL_KILLS_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sxe-pool-shared.h"
#include "sxe-time.h"

#define KILLS_ELEMENTS  1024u
#define KILLS_SHARDS    4u
#define KILLS_PROCESSES 16u
#define KILLS_ROUND     100u

enum { KILLS_FREE, KILLS_READY, KILLS_BUSY, KILLS_STATES };

struct kills_plan {
    uint64_t seed;
    unsigned kills;   /* the round ends after this many kills, or */
    unsigned seconds; /* after this many seconds, whichever comes first */
    unsigned processes;
};

struct kills_result {
    unsigned kills;
    unsigned rounds;
    uint64_t calls;
    uint64_t busy;     /* calls that returned because a lock was held */
    uint64_t worst_ns; /* the longest time after a kill until each shard's lock could be taken */
    char wrong[400];
};

/* In memory that all processes share, but outside the pool. */
struct kills_notes {
    uint32_t owners[KILLS_ELEMENTS]; /* 0: no owner */
    uint64_t calls;
    uint64_t busy;
    uint32_t is_wrong;
    char wrong[200];
};

struct kills_element {
    uint64_t id;
    uint64_t worker;
    uint64_t both;
};

struct kills {
    struct kills_plan plan;
    struct kills_result *result;
    struct kills_notes *notes;
    char path[64];
    pid_t workers[KILLS_PROCESSES];
    uint64_t end_ns;
    uint32_t started;
    uint64_t random;
};

static uint32_t
kills_random(uint64_t *random)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (uint32_t)(*random * UINT64_C(2685821657736338717) >> 32);
}

/* Only the first error is kept. */
#define KILLS_WRONG(notes, ...)                                                \
    do {                                                                       \
        if (__atomic_exchange_n(&(notes)->is_wrong, 1, __ATOMIC_RELAXED) == 0) \
            snprintf((notes)->wrong, sizeof((notes)->wrong), __VA_ARGS__);     \
    } while (0)

static void *
kills_open(const struct kills *kills)
{
    char why[SXE_POOL_WHY_SIZE];
    const SXE_POOL_SPEC spec = {.name = "kills",
                                .number = KILLS_ELEMENTS,
                                .element_size = sizeof(struct kills_element),
                                .states = KILLS_STATES,
                                .shards = KILLS_SHARDS,
                                .file = kills->path,
                                .state_names = "FREE READY BUSY"};
    void *pool = sxe_pool_open(&spec, why);

    if (pool == NULL)
        KILLS_WRONG(kills->notes, "%.190s", why);
    return pool;
}

/* ---- The processes that are killed ---- */

struct kills_worker {
    struct kills_notes *notes;
    struct kills_element *pool;
    uint32_t number;
    uint64_t random;
};

/* Whether a call got an element; an answer that no call can give is an error. */
static bool
kills_did(const struct kills_worker *worker, const char *call, unsigned result)
{
    __atomic_add_fetch(&worker->notes->calls, 1, __ATOMIC_RELAXED);
    if (result == SXE_POOL_LOCK_NOT_TAKEN) {
        __atomic_add_fetch(&worker->notes->busy, 1, __ATOMIC_RELAXED);
        return false;
    }
    if (result >= KILLS_ELEMENTS && result != SXE_POOL_NO_INDEX)
        KILLS_WRONG(worker->notes, "%s answers %u", call, result);
    return result < KILLS_ELEMENTS;
}

static void
kills_use(const struct kills_worker *worker, unsigned id)
{
    struct kills_element value = {id, worker->number, id ^ worker->number};
    struct kills_element copy;

    sxe_pool_write_element(worker->pool, id, &value);
    if (sxe_pool_read_element(worker->pool, id, &copy) != 0 ||
        memcmp(&copy, &value, sizeof(copy)) != 0)
        KILLS_WRONG(worker->notes, "element %u has other contents than its owner wrote", id);
}

static void
kills_take(struct kills_worker *worker, unsigned from, unsigned to, bool exactly)
{
    const unsigned id = exactly ? sxe_pool_take_exact(worker->pool, from, KILLS_BUSY)
                                : sxe_pool_take(worker->pool, from, KILLS_BUSY);

    if (!kills_did(worker, "take", id))
        return;
    uint32_t owner =
        __atomic_exchange_n(&worker->notes->owners[id], worker->number, __ATOMIC_ACQ_REL);
    if (owner != 0)
        KILLS_WRONG(worker->notes, "element %u is given to %u while %u has it", id, worker->number,
                    owner);
    kills_use(worker, id);
    owner = __atomic_exchange_n(&worker->notes->owners[id], 0, __ATOMIC_ACQ_REL);
    if (owner != worker->number)
        KILLS_WRONG(worker->notes, "element %u of %u is now of %u", id, worker->number, owner);
    unsigned result;
    do
        result = sxe_pool_move(worker->pool, id, KILLS_BUSY, to);
    while (!kills_did(worker, "set", result) && result == SXE_POOL_LOCK_NOT_TAKEN);
}

static void
kills_walk(struct kills_worker *worker)
{
    SXE_POOL_WALKER walker;
    unsigned steps = 0;

    sxe_pool_walker_construct(&walker, worker->pool, KILLS_READY);
    while (kills_did(worker, "walk", sxe_pool_walker_step(&walker)) && steps <= KILLS_ELEMENTS)
        steps++;
    if (steps > KILLS_ELEMENTS)
        KILLS_WRONG(worker->notes, "a walk meets more elements than there are");
}

static void
kills_work(struct kills_worker *worker)
{
    while (__atomic_load_n(&worker->notes->is_wrong, __ATOMIC_RELAXED) == 0) {
        const uint32_t bits = kills_random(&worker->random);
        const unsigned from = bits & 1 ? KILLS_READY : KILLS_FREE;
        const unsigned to = bits & 2 ? KILLS_READY : KILLS_FREE;
        const unsigned id = (bits >> 8) % KILLS_ELEMENTS;

        if ((bits & 0xe0) == 0)
            kills_did(worker, "touch", sxe_pool_touch(worker->pool, id));
        else if ((bits & 0xfc) == 0x20)
            kills_walk(worker);
        else
            kills_take(worker, from, to, (bits & 0x1c) == 0);
    }
}

static void
kills_start(struct kills *kills, unsigned place)
{
    const uint32_t number = ++kills->started;
    const uint64_t random = kills->plan.seed + number * UINT64_C(0x9e3779b97f4a7c15);
    const pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct kills_worker worker = {
            .notes = kills->notes, .pool = kills_open(kills), .number = number, .random = random};
        if (worker.pool != NULL)
            kills_work(&worker);
        _exit(0);
    }
    if (child == -1)
        KILLS_WRONG(kills->notes, "fork: %s", strerror(errno));
    kills->workers[place] = child;
}

/* ---- The process that kills ---- */

static void
kills_kill(struct kills *kills, unsigned place)
{
    if (kills->workers[place] > 0) {
        kill(kills->workers[place], SIGKILL);
        waitpid(kills->workers[place], NULL, 0);
        kills->result->kills++;
    }
    kills->workers[place] = 0;
}

/* Check that each shard's lock can be taken, and that the pool is in order. */
static void
kills_look(struct kills *kills)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    void *pool = kills_open(kills);
    int result = -EAGAIN;

    if (pool == NULL)
        return;
    const uint64_t begin = sxe_time_ns();
    for (unsigned shard = 0; shard < KILLS_SHARDS; shard++) {
        const unsigned id = shard * (KILLS_ELEMENTS / KILLS_SHARDS);
        while (sxe_pool_touch(pool, id) == SXE_POOL_LOCK_NOT_TAKEN &&
               sxe_time_ns() - begin < 10 * SXE_NS_PER_SECOND) {
        }
    }
    const uint64_t ns = sxe_time_ns() - begin;
    if (ns > kills->result->worst_ns)
        kills->result->worst_ns = ns;
    for (unsigned tries = 0; tries < 10000 && result == -EAGAIN; tries++)
        result = sxe_pool_check(pool, why);
    if (result != 0)
        KILLS_WRONG(kills->notes, "after %u kills: %d, %.150s", kills->result->kills, result, why);
    sxe_pool_delete(pool);
}

/* No process uses the pool now: it must be found complete, and BUSY elements become free again. */
static void
kills_begin_round(struct kills *kills)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    unsigned total = 0;
    void *pool = kills_open(kills);

    if (pool == NULL)
        return;
    const SXE_POOL_FOUND found = sxe_pool_get_found(pool);
    if (found != (kills->result->rounds == 0 ? SXE_POOL_CREATED : SXE_POOL_COMPLETED))
        KILLS_WRONG(kills->notes, "round %u: found %d", kills->result->rounds, (int)found);
    while (sxe_pool_take(pool, KILLS_BUSY, KILLS_FREE) < KILLS_ELEMENTS) {
    }
    for (unsigned state = 0; state < KILLS_STATES; state++)
        total += sxe_pool_get_count(pool, state);
    if (total != KILLS_ELEMENTS || sxe_pool_check(pool, why) != 0)
        KILLS_WRONG(kills->notes, "round %u: %u elements, %.100s", kills->result->rounds, total,
                    why);
    memset(kills->notes->owners, 0, sizeof(kills->notes->owners));
    sxe_pool_delete(pool);
}

static bool
kills_go_on(const struct kills *kills)
{
    return kills->notes->is_wrong == 0 && kills->result->kills < kills->plan.kills &&
           sxe_time_ns() < kills->end_ns;
}

static void
kills_round(struct kills *kills)
{
    kills_begin_round(kills);
    for (unsigned i = 0; i < kills->plan.processes; i++)
        kills_start(kills, i);
    for (unsigned i = 0; i < KILLS_ROUND && kills_go_on(kills); i++) {
        const struct timespec pause = {.tv_nsec = kills_random(&kills->random) % 4000000};
        const unsigned place = kills_random(&kills->random) % kills->plan.processes;

        nanosleep(&pause, NULL);
        kills_kill(kills, place);
        kills_look(kills);
        kills_start(kills, place);
    }
    for (unsigned i = 0; i < kills->plan.processes; i++)
        kills_kill(kills, i);
    kills->result->rounds++;
}

static inline void
kills_run(const struct kills_plan *plan, struct kills_result *result)
{
    struct kills kills = {.plan = *plan,
                          .result = result,
                          .end_ns = sxe_time_ns() + plan->seconds * SXE_NS_PER_SECOND,
                          .random = plan->seed};

    *result = (struct kills_result){.kills = 0};
    snprintf(kills.path, sizeof(kills.path), "/dev/shm/sxe-kills-%d", (int)getpid());
    kills.notes =
        mmap(NULL, sizeof(*kills.notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (kills.notes == MAP_FAILED) {
        snprintf(result->wrong, sizeof(result->wrong), "mmap: %s", strerror(errno));
        return;
    }
    while (kills_go_on(&kills))
        kills_round(&kills);
    if (kills.notes->is_wrong == 0 && result->rounds > 0)
        kills_begin_round(&kills);
    result->calls = kills.notes->calls;
    result->busy = kills.notes->busy;
    snprintf(result->wrong, sizeof(result->wrong), "%s", kills.notes->wrong);
    if (result->wrong[0] == '\0')
        unlink(kills.path);
    munmap(kills.notes, sizeof(*kills.notes));
}

static inline void
kills_print(const struct kills_result *result, uint64_t seed)
{
    printf("seed %llu: %u kills in %u rounds, %llu calls, %llu met a lock; after a kill all locks "
           "were had in %.3f ms at most\n",
           (unsigned long long)seed, result->kills, result->rounds,
           (unsigned long long)result->calls, (unsigned long long)result->busy,
           (double)result->worst_ns / 1e6);
}

#endif
