/* SPDX-License-Identifier: MIT
 *
 * Measures pools of different sizes: how many ns a change of state takes, a touch, and an
 * allocation with its release, of elements in the order of their ids and in random order; and how
 * many bytes the pool needs for an element, besides its own bytes. "clock" is a change of state in
 * a program in which no loop has set the time of the turn, so that each stamp reads the clock.
 *
 *     micro-pool             pools of a thousand to ten million elements, a line each
 *     micro-pool ELEMENTS    one of so many, an operation a line
 *
 * An element has 64 bytes here, which are not touched. The best of RUNS runs is shown.
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
    const unsigned state = sxe_pool_get_state(subject->array, id);

    sxe_pool_move(subject->array, id, state, state ^ 1);
}

static void
touch(struct subject *subject, unsigned id)
{
    sxe_pool_touch(subject->array, id);
}

/* The id is not used, because the pool chooses the element. Only the time for making the id
 * counts. */
static void
allocate_and_free(struct subject *subject, unsigned id)
{
    const unsigned taken = sxe_pool_take(subject->array, FREE, BUSY);

    SXE_UNUSED_PARAMETER(id);
    if (taken != SXE_POOL_NO_INDEX)
        sxe_pool_move(subject->array, taken, BUSY, FREE);
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

struct costs { /* the times are in ns */
    double change;
    double change_random;
    double touch;
    double touch_random;
    double allocate;
    double change_clock;
};

static int
measure_number(unsigned number, struct costs *costs)
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
    costs->change = measure(&pool, in_order, change) - loop;
    costs->change_random = measure(&pool, at_random, change) - random_loop;
    costs->touch = measure(&pool, in_order, touch) - loop;
    costs->touch_random = measure(&pool, at_random, touch) - random_loop;
    costs->allocate = measure(&pool, in_order, allocate_and_free) - loop;
    sxe_time_set_turn_ns(0);
    costs->change_clock = measure(&pool, in_order, change) - loop;
    sxe_pool_delete(pool.array);
    return EXIT_SUCCESS;
}

static int
show_one(unsigned number)
{
    struct costs costs;

    if (number == 0 || measure_number(number, &costs) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    printf("change %.2f\nchange_random %.2f\n", costs.change, costs.change_random);
    printf("touch %.2f\ntouch_random %.2f\n", costs.touch, costs.touch_random);
    printf("take %.2f\nclock %.2f\n", costs.allocate, costs.change_clock);
    return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
    static const unsigned numbers[] = {1000, 10000, 100000, 1000000, 10000000};

    if (argc == 2)
        return show_one((unsigned)strtoul(argv[1], NULL, 10));
    printf("ns           change state       touch       allocate  change  bytes\n"
           " elements  in order random  in order random  + free    clock  each\n");
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const unsigned number = numbers[i];
        struct costs costs;

        if (measure_number(number, &costs) != EXIT_SUCCESS)
            return EXIT_FAILURE;
        printf("%9u  %6.1f %6.1f  %6.1f %6.1f  %8.1f  %6.1f  %5.1f\n", number, costs.change,
               costs.change_random, costs.touch, costs.touch_random, costs.allocate,
               costs.change_clock,
               (double)(sxe_pool_size(number, ELEMENT_SIZE, STATES)) / number - ELEMENT_SIZE);
    }
    return EXIT_SUCCESS;
}
