/* SPDX-License-Identifier: MIT
 *
 * What a pool costs, by its size: ns for a change of state, a touch, and an allocation with its
 * release, of elements in the order of their ids and in random order; and bytes for an element
 * beside its own. "clock" is what a change costs where no loop has set the turn's time, so that
 * each stamp reads the clock.
 *
 *     gcc -O2 -Ilib-sxe-log -Ilib-sxe-pool bench/micro-pool.c build/release/libsxe.a
 *
 * An element is 64 bytes here and is not touched itself. The best of RUNS is shown.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sxe-pool.h"
#include "sxe-time.h"

#define RUNS         3
#define OPERATIONS   2000000u
#define ELEMENT_SIZE 64u

enum { FREE, BUSY, STATES };

struct subject {
    char *array;
    unsigned number;
    uint32_t random;
    unsigned next;
};

static unsigned
in_order(struct subject *subject)
{
    const unsigned id = subject->next;

    subject->next = id + 1 == subject->number ? 0 : id + 1;
    return id;
}

/* xorshift32 */
static unsigned
at_random(struct subject *subject)
{
    subject->random ^= subject->random << 13;
    subject->random ^= subject->random >> 17;
    subject->random ^= subject->random << 5;
    return (unsigned)((uint64_t)subject->random * subject->number >> 32);
}

static void
change(struct subject *subject, unsigned id)
{
    const unsigned state = sxe_pool_index_to_state(subject->array, id);

    sxe_pool_set_indexed_element_state(subject->array, id, state, state ^ 1);
}

static void
touch(struct subject *subject, unsigned id)
{
    sxe_pool_touch_indexed_element(subject->array, id);
}

/* The id only costs its making: which element is taken is for the pool to say. */
static void
allocate_and_free(struct subject *subject, unsigned id)
{
    const unsigned taken = sxe_pool_set_oldest_element_state(subject->array, FREE, BUSY);

    SXE_UNUSED_PARAMETER(id);
    if (taken != SXE_POOL_NO_INDEX)
        sxe_pool_set_indexed_element_state(subject->array, taken, BUSY, FREE);
}

static void
nothing(struct subject *subject, unsigned id)
{
    SXE_UNUSED_PARAMETER(subject);
    __asm__ volatile("" : : "r"(id));
}

static inline __attribute__((always_inline)) double
measure(struct subject *subject, unsigned (*choose)(struct subject *),
        void (*operate)(struct subject *, unsigned))
{
    uint64_t best = UINT64_MAX;

    for (unsigned run = 0; run < RUNS; run++) {
        const uint64_t start = sxe_time_ns();

        for (unsigned i = 0; i < OPERATIONS; i++)
            operate(subject, choose(subject));
        const uint64_t taken = sxe_time_ns() - start;
        best = taken < best ? taken : best;
    }
    return (double)best / OPERATIONS;
}

static int
measure_number(unsigned number)
{
    struct subject pool = {.number = number, .random = 2463534242u};

    pool.array = sxe_pool_new("bench", number, ELEMENT_SIZE, STATES, SXE_POOL_OPTION_UNLOCKED);
    if (pool.array == NULL) {
        perror("sxe_pool_new");
        return EXIT_FAILURE;
    }
    const double loop = measure(&pool, in_order, nothing);
    const double random_loop = measure(&pool, at_random, nothing);

    sxe_time_set_turn_ns(sxe_time_ns());
    printf("%9u  %6.1f %6.1f  ", number, measure(&pool, in_order, change) - loop,
           measure(&pool, at_random, change) - random_loop);
    printf("%6.1f %6.1f  ", measure(&pool, in_order, touch) - loop,
           measure(&pool, at_random, touch) - random_loop);
    printf("%8.1f  ", measure(&pool, in_order, allocate_and_free) - loop);
    sxe_time_set_turn_ns(0);
    printf("%6.1f  ", measure(&pool, in_order, change) - loop);
    printf("%5.1f\n",
           (double)(sxe_pool_size(number, ELEMENT_SIZE, STATES)) / number - ELEMENT_SIZE);
    sxe_pool_delete(pool.array);
    return EXIT_SUCCESS;
}

int
main(void)
{
    static const unsigned numbers[] = {1000, 10000, 100000, 1000000, 10000000};

    printf("ns           change state       touch       allocate  change  bytes\n"
           " elements  in order random  in order random  + free    clock  each\n");
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (measure_number(numbers[i]) != EXIT_SUCCESS)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
