/* SPDX-License-Identifier: MIT
 *
 * Measures what sharing a pool costs, in one process and between two processes on two cores, and
 * whether readers ever see half of a write.
 *
 *     micro-pool-shared             all of it
 *     micro-pool-shared PART...     alone, together, torn
 *
 * An element has 64 bytes here. The best of many short runs is shown. The time of the turn is set,
 * as a loop sets it. A program without a loop would have to read the clock in each change, shared
 * or not.
 */
#include <stdbool.h>
#include <string.h>

#include "parts.h"
#include "pool-two.h"

/* ---- Alone: the same program with each kind of pool ---- */

#define LOOPS      60
#define OPERATIONS 50000u

enum { ONE_THREAD, THREADS, PROCESSES, KINDS };

static const unsigned options_of[KINDS] = {SXE_POOL_OPTION_UNLOCKED, SXE_POOL_OPTION_LOCKED,
                                           SXE_POOL_OPTION_SHARED};

static void
change(const struct pool *pool, unsigned id)
{
    const unsigned state = sxe_pool_get_state(pool->array, id);

    sxe_pool_move(pool->array, id, state, state ^ 1);
}

static void
touch(const struct pool *pool, unsigned id)
{
    sxe_pool_touch(pool->array, id);
}

static void
take_and_free(const struct pool *pool, unsigned id)
{
    const unsigned taken = sxe_pool_take(pool->array, FREE, BUSY);

    SXE_UNUSED_PARAMETER(id);
    if (taken < pool->number)
        sxe_pool_move(pool->array, taken, BUSY, FREE);
}

static void
nothing(const struct pool *pool, unsigned id)
{
    SXE_UNUSED_PARAMETER(pool);
    __asm__ volatile("" : : "r"(id));
}

/* How many ns an operation takes, with ids in order, or scattered: then the ids are steps of a
 * number that has no common factor with the number of elements. */
static inline __attribute__((always_inline)) double
time_run(const struct pool *pool, void (*operate)(const struct pool *, unsigned), unsigned step)
{
    unsigned id = 0;
    const uint64_t start = sxe_time_ns();

    for (unsigned i = 0; i < OPERATIONS; i++) {
        operate(pool, id);
        id += step;
        id = id >= pool->number ? id - pool->number : id;
    }
    return (double)(sxe_time_ns() - start) / OPERATIONS;
}

#define MEASURE(what, operation, operations, step)                                                 \
    do {                                                                                           \
        double best[KINDS] = {1e9, 1e9, 1e9};                                                      \
        double loop = 1e9;                                                                         \
        for (unsigned run = 0; run < LOOPS; run++) {                                               \
            const double empty = time_run(&pools[0], nothing, step);                               \
            loop = empty < loop ? empty : loop;                                                    \
            for (unsigned kind = 0; kind < KINDS; kind++) {                                        \
                const double ns = time_run(&pools[kind], operation, step);                         \
                best[kind] = ns < best[kind] ? ns : best[kind];                                    \
            }                                                                                      \
        }                                                                                          \
        for (unsigned kind = 0; kind < KINDS; kind++)                                              \
            best[kind] = (best[kind] - loop) / (operations);                                       \
        printf("%9u  %-22s %7.1f %7.1f %9.1f    x %4.2f %9.2f\n", pools[0].number, what,           \
               best[ONE_THREAD], best[THREADS], best[PROCESSES], best[THREADS] / best[ONE_THREAD], \
               best[PROCESSES] / best[ONE_THREAD]);                                                \
    } while (0)

static void
measure_alone(unsigned number)
{
    struct pool pools[KINDS];

    for (unsigned kind = 0; kind < KINDS; kind++)
        pools[kind] = make_pool(number, options_of[kind], 1);
    MEASURE("change state, in order", change, 1, 1);
    MEASURE("change state, random", change, 1, number / 8 * 5 + 3);
    MEASURE("touch, in order", touch, 1, 1);
    MEASURE("touch, random", touch, 1, number / 8 * 5 + 3);
    MEASURE("allocate or free", take_and_free, 2, 1);
    sxe_time_set_turn_ns(0);
    MEASURE("touch, reading clock", touch, 1, 1);
    for (unsigned kind = 0; kind < KINDS; kind++)
        sxe_pool_delete(pools[kind].array);
}

static void
alone(void)
{
    printf("alone: ns          of what is shared by: one thread threads processes, and beside one\n"
           " elements\n");
    measure_alone(1000);
    measure_alone(1000000);
}

/* ---- Together: two processes that only change the same pool ---- */

static uint64_t
take_and_free_all_the_time(struct board *board, void *subject)
{
    const struct pool *pool = subject;
    uint64_t done = 0;
    uint64_t refused = 0;

    sxe_time_set_turn_ns(sxe_time_ns());
    while (goes_on(board)) {
        const unsigned id = sxe_pool_take(pool->array, FREE, BUSY);

        if (id >= pool->number) {
            refused++;
            continue;
        }
        while (sxe_pool_move(pool->array, id, BUSY, FREE) != SXE_POOL_LOCK_TAKEN)
            refused++;
        done += 2;
    }
    note_other(board, refused);
    return done;
}

static void
together(void)
{
    static const unsigned shards[] = {1, 8, 64};
    const worker workers[] = {take_and_free_all_the_time, take_and_free_all_the_time};

    printf("together: millions of changes/s\n   shards  by one      by two (~: disturbed)\n");
    for (unsigned i = 0; i < sizeof(shards) / sizeof(shards[0]); i++) {
        struct pool pool = make_pool(4096, SXE_POOL_OPTION_SHARED, shards[i]);

        printf("%9u ", shards[i]);
        print_rate(1, run_together(workers, 1, &pool));
        print_rate(1, run_together(workers, 2, &pool));
        printf("\n");
        sxe_pool_delete(pool.array);
    }
}

/* ---- Torn: two processes read the elements that a third one writes ---- */

#define TORN_ELEMENTS 16u
#define TORN_READS    UINT64_C(50000000) /* how often each of the two processes reads */
#define TORN_WORDS    (MESSAGE_SIZE / sizeof(uint64_t))

static uint64_t
write_until_read(struct board *board, void *subject)
{
    const struct pool *pool = subject;
    uint64_t words[TORN_WORDS];
    uint64_t done = 0;

    for (; __atomic_load_n(&board->phase, __ATOMIC_RELAXED) == 1; done++) {
        for (unsigned i = 0; i < TORN_WORDS; i++)
            words[i] = done;
        sxe_pool_write_element(pool->array, (unsigned)(done * 7 % TORN_ELEMENTS), words);
    }
    return done;
}

/* Count torn values as `other`. Elements that are being written are read again. */
static uint64_t
read_many(struct board *board, void *subject)
{
    const struct pool *pool = subject;
    uint64_t words[TORN_WORDS];
    uint64_t torn = 0;
    uint64_t done = 0;

    for (uint64_t i = 0; done < TORN_READS; i++) {
        if (sxe_pool_read_element(pool->array, (unsigned)(i % TORN_ELEMENTS), words) != 0)
            continue;
        for (unsigned word = 1; word < TORN_WORDS; word++)
            torn += words[word] != words[0];
        done++;
    }
    note_other(board, torn);
    return done;
}

static void
torn(void)
{
    struct pool pool = make_pool(TORN_ELEMENTS, SXE_POOL_OPTION_SHARED, 1);
    struct board *board = shared_memory(sizeof(*board));
    const worker workers[] = {read_many, read_many, write_until_read};
    pid_t children[3];

    fflush(stdout);
    for (unsigned i = 0; i < 3; i++)
        children[i] = start_worker(board, workers[i], i, &pool);
    const uint64_t start = sxe_time_ns();
    __atomic_store_n(&board->phase, 1, __ATOMIC_RELEASE);
    waitpid(children[0], NULL, 0);
    waitpid(children[1], NULL, 0);
    const double taken = (double)(sxe_time_ns() - start) / 1e9;
    __atomic_store_n(&board->phase, 2, __ATOMIC_RELEASE);
    waitpid(children[2], NULL, 0);
    printf("torn: %.0f million reads of %u bytes by two in %.1f s, beside %.0f million writes: %lu "
           "torn\n",
           (double)(board->counts[0].done + board->counts[1].done) / 1e6, MESSAGE_SIZE, taken,
           (double)board->counts[2].done / 1e6,
           (unsigned long)(board->counts[0].other + board->counts[1].other));
    sxe_pool_delete(pool.array);
}

static const struct part parts[] = {
    {"alone", alone},
    {"together", together},
    {"torn", torn},
};

int
main(int argc, char **argv)
{
    setlinebuf(stdout);
    run_parts(parts, SXE_COUNT(parts), argc, argv);
    return EXIT_SUCCESS;
}
