/* SPDX-License-Identifier: MIT
 *
 * What: processes that work at the same time, each on a core of its own.
 *
 *     static uint64_t take(struct board *board, void *subject) { uint64_t done = 0;
 *         while (goes_on(board)) ...done++; return done; }
 *     double a_second = run_together((worker[]){take, take}, 2, pool);
 *
 * If other processes use the machine, too, most runs are spoilt: one of the workers is not on its
 * core, and the other has the pool for itself. So there are many short runs, and the workers
 * themselves read the clock. The result is the best of the runs in which no worker was taken off
 * its core. If there is no such run, it is the middle one of all, and print_rate shows it with a
 * '~'.
 */
#ifndef POOL_TWO_H
#define POOL_TWO_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sxe-pool-shared.h"
#include "sxe-time.h"

#define TWO_RUNS    80
#define TWO_RUN_NS  (4 * SXE_NS_PER_MS)
#define TWO_WORKERS 4

#define MESSAGE_SIZE 64u /* the size of an element, in bytes */

struct board {
    uint32_t ready; /* how many workers wait for the start */
    uint32_t phase; /* 0: wait, 1: go on, 2: stop */
    uint64_t end_ns;
    uint8_t filler[48];
    struct {
        uint64_t done;
        /* a second count of the worker: of operations that failed, or of wrong values */
        uint64_t other;
        uint64_t ns; /* how many ns the worker took */
        uint64_t spoilt;
        uint8_t filler[32];
    } counts[TWO_WORKERS];
};

typedef uint64_t (*worker)(struct board *board, void *subject);

static unsigned two_self; /* the number of the worker that this process is */

/* Like goes_on, but reads the clock in each call, for operations that take long. */
static inline bool
goes_on_slowly(struct board *board)
{
    if (sxe_time_ns() >= __atomic_load_n(&board->end_ns, __ATOMIC_RELAXED))
        __atomic_store_n(&board->phase, 2, __ATOMIC_RELAXED);
    return __atomic_load_n(&board->phase, __ATOMIC_RELAXED) == 1;
}

static inline bool
goes_on(struct board *board)
{
    static unsigned calls;

    if (++calls % 64 == 0)
        return goes_on_slowly(board);
    return __atomic_load_n(&board->phase, __ATOMIC_RELAXED) == 1;
}

/* Called when there was nothing to take. It lets the other thread of the core work, and after a
 * while also the other process, which may be on the same core. */
static inline void
wait_for_other(unsigned *tries)
{
    if (++*tries % 8192 == 0)
        sched_yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static inline void
note_other(struct board *board, uint64_t number)
{
    board->counts[two_self].other = number;
}

static inline void *
shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static inline void
pin(unsigned number)
{
    const unsigned cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(number % cores, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static inline uint64_t
times_sent_off(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_nivcsw;
}

static inline pid_t
start_worker(struct board *board, worker work, unsigned number, void *subject)
{
    const pid_t child = fork();

    if (child != 0)
        return child;
    two_self = number;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(number);
    __atomic_add_fetch(&board->ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&board->phase, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    const uint64_t sent_off = times_sent_off();
    const uint64_t start = sxe_time_ns();
    board->counts[number].done = work(board, subject);
    board->counts[number].ns = sxe_time_ns() - start;
    board->counts[number].spoilt = times_sent_off() - sent_off;
    _exit(0);
}

static inline void
start_run(struct board *board, unsigned workers)
{
    while (__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE) < workers)
        sched_yield();
    __atomic_store_n(&board->end_ns, sxe_time_ns() + TWO_RUN_NS, __ATOMIC_RELAXED);
    __atomic_store_n(&board->phase, 1, __ATOMIC_RELEASE);
}

/* Run the workers once. Returns the operations a second of all of them together; negative if the
 * run was disturbed. */
static inline double
run_once(struct board *board, const worker *workers, unsigned number, void *subject)
{
    pid_t children[TWO_WORKERS];
    uint64_t done = 0;
    uint64_t longest = 0;
    bool spoilt = false;

    *board = (struct board){0};
    for (unsigned i = 0; i < number; i++)
        children[i] = start_worker(board, workers[i], i, subject);
    start_run(board, number);
    for (unsigned i = 0; i < number; i++) {
        waitpid(children[i], NULL, 0);
        done += board->counts[i].done;
        longest = board->counts[i].ns > longest ? board->counts[i].ns : longest;
        spoilt = spoilt || board->counts[i].spoilt != 0 ||
                 board->counts[i].ns < TWO_RUN_NS * 9 / 10 || board->counts[i].ns > TWO_RUN_NS * 3;
    }
    const double rate = (double)done * 1e9 / (double)longest;
    return spoilt ? -rate : rate;
}

static inline int
compare_rates(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The best rate of many runs. Negative: all runs were spoilt; then it is the middle rate of all. */
static inline double
run_together(const worker *workers, unsigned number, void *subject)
{
    struct board *board = shared_memory(sizeof(*board));
    double rates[TWO_RUNS];

    fflush(stdout);
    for (unsigned run = 0; run < TWO_RUNS; run++)
        rates[run] = run_once(board, workers, number, subject);
    munmap(board, sizeof(*board));
    qsort(rates, TWO_RUNS, sizeof(rates[0]), compare_rates);
    return rates[TWO_RUNS - 1] > 0 ? rates[TWO_RUNS - 1] : rates[TWO_RUNS / 2];
}

/* Print a rate in millions a second. */
static inline void
print_rate(int digits, double rate)
{
    printf(" %10.*f%c", digits, (rate < 0 ? -rate : rate) / 1e6, rate < 0 ? '~' : ' ');
}

/* ---- Pools ---- */

enum { FREE, FILLING, READY, BUSY, STATES };

struct pool {
    char *array;
    unsigned number;
    unsigned shards;
};

static inline struct pool
make_pool(unsigned number, unsigned options, unsigned shards)
{
    const SXE_POOL_SPEC spec = {
        .name = "bench",
        .number = number,
        .element_size = MESSAGE_SIZE,
        .states = STATES,
        .options = options,
        .shards = shards,
    };
    char why[SXE_POOL_WHY_SIZE];
    char *array = options == SXE_POOL_OPTION_UNLOCKED
                      ? sxe_pool_new("bench", number, MESSAGE_SIZE, STATES, options)
                      : sxe_pool_open(&spec, why);

    if (array == NULL) {
        fprintf(stderr, "%s\n", why);
        exit(EXIT_FAILURE);
    }
    sxe_time_set_turn_ns(sxe_time_ns());
    return (struct pool){array, number, shards};
}

#endif
