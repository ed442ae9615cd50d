/* SPDX-License-Identifier: MIT
 *
 * What: threads that use one pool without a pause: they move elements from state to state, and
 * write fields that only the owner of an element may touch; they also touch, walk, count, add and
 * copy.
 *
 * Place: test-pool-threads.c runs it in every build, and once more under ThreadSanitizer
 * (threads.c), which checks that each owner sees the writes of the owner before it.
 */
#ifndef POOL_THREADS_H
#define POOL_THREADS_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sxe-pool-shared.h"

#define THREADS_ELEMENTS 64u
#define THREADS_MAX      8u

enum { THREADS_FREE, THREADS_READY, THREADS_BUSY, THREADS_STATES };

struct threads_element {
    uint64_t plain;  /* only the owner of the element reads and writes this member */
    uint64_t copied; /* accessed by read_part and write_part, together with its complement */
    uint64_t complement;
    uint64_t sum; /* accessed by add_u64 */
};

struct threads_plan {
    unsigned options;
    unsigned shards;
    unsigned threads;
    unsigned calls; /* how many calls each thread makes */
};

struct threads {
    struct threads_plan plan;
    struct threads_element *pool;
    uint32_t owners[THREADS_ELEMENTS];
    uint64_t added;
    uint64_t done; /* calls that changed something */
    uint64_t busy; /* calls that returned because a lock was held */
    uint32_t is_wrong;
    char wrong[200];
};

struct threads_one {
    struct threads *all;
    uint32_t number;
    uint64_t random;
    pthread_t thread;
};

#define THREADS_WRONG(all, ...)                                              \
    do {                                                                     \
        if (__atomic_exchange_n(&(all)->is_wrong, 1, __ATOMIC_RELAXED) == 0) \
            snprintf((all)->wrong, sizeof((all)->wrong), __VA_ARGS__);       \
    } while (0)

static uint32_t
threads_random(uint64_t *random)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (uint32_t)(*random * UINT64_C(2685821657736338717) >> 32);
}

static bool
threads_did(struct threads *all, const char *call, unsigned result)
{
    if (result == SXE_POOL_LOCK_NOT_TAKEN)
        __atomic_add_fetch(&all->busy, 1, __ATOMIC_RELAXED);
    else if (result < THREADS_ELEMENTS)
        __atomic_add_fetch(&all->done, 1, __ATOMIC_RELAXED);
    else if (result != SXE_POOL_NO_INDEX)
        THREADS_WRONG(all, "%s answers %u", call, result);
    return result < THREADS_ELEMENTS;
}

/* Use the fields of an element that this thread has taken. */
static void
threads_use(const struct threads_one *one, unsigned id)
{
    struct threads *all = one->all;
    struct threads_element *element = &all->pool[id];
    const uint64_t value[2] = {one->random, ~one->random};
    uint64_t copy[2];

    uint32_t owner = __atomic_exchange_n(&all->owners[id], one->number, __ATOMIC_RELAXED);
    if (owner != 0)
        THREADS_WRONG(all, "element %u is given to %u while %u has it", id, one->number, owner);
    element->plain++;
    sxe_pool_write_part(all->pool, id, offsetof(struct threads_element, copied), sizeof(value),
                        value);
    if (sxe_pool_read_part(all->pool, id, offsetof(struct threads_element, copied), sizeof(copy),
                           copy) != 0 ||
        memcmp(copy, value, sizeof(copy)) != 0)
        THREADS_WRONG(all, "element %u has not what its owner wrote", id);
    owner = __atomic_exchange_n(&all->owners[id], 0, __ATOMIC_RELAXED);
    if (owner != one->number)
        THREADS_WRONG(all, "element %u of %u is now of %u", id, one->number, owner);
}

static void
threads_take(struct threads_one *one, uint32_t bits)
{
    struct threads *all = one->all;
    const unsigned from = bits & 1 ? THREADS_READY : THREADS_FREE;
    const unsigned to = bits & 2 ? THREADS_READY : THREADS_FREE;
    const unsigned id = bits & 4 ? sxe_pool_take(all->pool, from, THREADS_BUSY)
                                 : sxe_pool_take_exact(all->pool, from, THREADS_BUSY);

    if (!threads_did(all, "take", id))
        return;
    threads_use(one, id);
    while (!threads_did(all, "set", sxe_pool_move(all->pool, id, THREADS_BUSY, to)) &&
           __atomic_load_n(&all->is_wrong, __ATOMIC_RELAXED) == 0) {
    }
}

static void
threads_look(struct threads_one *one, unsigned id)
{
    struct threads *all = one->all;
    uint64_t copy[2];
    SXE_POOL_WALKER walker;
    unsigned met;

    if (sxe_pool_read_part(all->pool, id, offsetof(struct threads_element, copied), sizeof(copy),
                           copy) == 0 &&
        (copy[0] | copy[1]) != 0 && copy[0] != ~copy[1])
        THREADS_WRONG(all, "a reader sees half of what is written to element %u", id);
    sxe_pool_walker_construct(&walker, all->pool, THREADS_READY);
    for (unsigned i = 0; i < THREADS_ELEMENTS; i++) {
        met = sxe_pool_walker_step(&walker);
        if (!threads_did(all, "walk", met))
            break;
    }
    if (sxe_pool_get_count(all->pool, THREADS_FREE) > THREADS_ELEMENTS + THREADS_MAX)
        THREADS_WRONG(all, "more elements are counted than there are");
    (void)sxe_pool_get_state(all->pool, id);
    (void)sxe_pool_get_oldest_time(all->pool, THREADS_FREE);
    (void)sxe_pool_get_handle(all->pool, id);
}

static void *
threads_work(void *argument)
{
    struct threads_one *one = argument;
    struct threads *all = one->all;

    for (unsigned i = 0; i < all->plan.calls; i++) {
        const uint32_t bits = threads_random(&one->random);
        const unsigned id = (bits >> 8) % THREADS_ELEMENTS;

        if (__atomic_load_n(&all->is_wrong, __ATOMIC_RELAXED) != 0)
            break;
        if ((bits & 0x70) == 0)
            threads_look(one, id);
        else if ((bits & 0x70) == 0x10) {
            const unsigned result = sxe_pool_touch(all->pool, id);
            threads_did(all, "touch", result == SXE_POOL_LOCK_TAKEN ? id : result);
            sxe_pool_add_u64(all->pool, id, offsetof(struct threads_element, sum), bits);
            __atomic_add_fetch(&all->added, bits, __ATOMIC_RELAXED);
        } else
            threads_take(one, bits);
    }
    return NULL;
}

static void
threads_check(struct threads *all)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    unsigned total = 0;
    uint64_t sum = 0;

    for (unsigned state = 0; state < THREADS_STATES; state++)
        total += sxe_pool_get_count(all->pool, state);
    for (unsigned id = 0; id < THREADS_ELEMENTS; id++)
        sum += all->pool[id].sum;
    if (total != THREADS_ELEMENTS || sxe_pool_get_count(all->pool, THREADS_BUSY) != 0)
        THREADS_WRONG(all, "%u elements are counted", total);
    if (sum != all->added)
        THREADS_WRONG(all, "additions were lost");
    if (sxe_pool_check(all->pool, why) != 0)
        THREADS_WRONG(all, "%.190s", why);
}

/* Run the threads and print a line about it. NULL, or the first error. */
static const char *
threads_run(const struct threads_plan *plan)
{
    static struct threads all;
    struct threads_one ones[THREADS_MAX];
    char why[SXE_POOL_WHY_SIZE];
    const SXE_POOL_SPEC spec = {.name = "threads",
                                .number = THREADS_ELEMENTS,
                                .element_size = sizeof(struct threads_element),
                                .states = THREADS_STATES,
                                .options = plan->options,
                                .shards = plan->shards};

    all = (struct threads){.plan = *plan, .pool = sxe_pool_open(&spec, why)};
    if (all.pool == NULL)
        return snprintf(all.wrong, sizeof(all.wrong), "%.190s", why), all.wrong;
    for (uint32_t i = 0; i < plan->threads; i++) {
        ones[i] =
            (struct threads_one){.all = &all, .number = i + 1, .random = 88172645463325252u + i};
        if (pthread_create(&ones[i].thread, NULL, threads_work, &ones[i]) != 0)
            return "no thread can be made";
    }
    for (uint32_t i = 0; i < plan->threads; i++)
        pthread_join(ones[i].thread, NULL);
    threads_check(&all);
    sxe_pool_delete(all.pool);
    printf("%u threads, %u shards, %s: %llu changes, %llu met a lock\n", plan->threads,
           plan->shards, plan->options == SXE_POOL_OPTION_LOCKED ? "LOCKED" : "SHARED",
           (unsigned long long)all.done, (unsigned long long)all.busy);
    return all.is_wrong != 0 ? all.wrong : NULL;
}

static const unsigned threads_options[] = {SXE_POOL_OPTION_LOCKED, SXE_POOL_OPTION_SHARED};
static const unsigned threads_shards[] = {1, 4};

#endif
