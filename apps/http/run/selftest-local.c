/* SPDX-License-Identifier: MIT
 *
 * Self-tests without a load: clocks, timer, histogram.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "pace.h"
#include "selftest-private.h"
#include "sxe-time.h"
#include "text.h"

/* ---- Clocks ---- */

#define CLOCK_BATCHES       100
#define CLOCK_READS         1000 /* how many times a batch reads the clock */
#define CLOCK_COST_MAX_NS   2000
#define CLOCK_RESOLUTION_NS 1000

/* Read the clock many times. Returns how many ns a read takes. *is_monotonic becomes false if a
 * read returns an earlier time than the one before. */
static double
read_clock(bool *is_monotonic)
{
    uint64_t begin_ns = sxe_time_ns();
    uint64_t before_ns = begin_ns;

    for (unsigned i = 0; i < CLOCK_READS; i++) {
        uint64_t now_ns = sxe_time_ns();

        *is_monotonic = *is_monotonic && now_ns >= before_ns;
        before_ns = now_ns;
    }
    return (double)(before_ns - begin_ns) / CLOCK_READS;
}

/* The time that a read takes is that of the quickest batch, because slower batches had to wait for
 * a CPU. */
bool
load_selftest_clocks(char *text, size_t size)
{
    struct timespec resolution = {0, 0};
    bool is_monotonic = true;
    double cost_ns = HUGE_VAL;

    clock_getres(CLOCK_MONOTONIC, &resolution);
    for (unsigned i = 0; i < CLOCK_BATCHES; i++)
        cost_ns = fmin(cost_ns, read_clock(&is_monotonic));
    snprintf(text, size, "%s, resolution %ld ns, a read takes %.0f ns",
             is_monotonic ? "never go back" : "GO BACK", resolution.tv_nsec, cost_ns);
    return is_monotonic && resolution.tv_sec == 0 && resolution.tv_nsec <= CLOCK_RESOLUTION_NS &&
           cost_ns <= CLOCK_COST_MAX_NS;
}

/* ---- The timer ---- */

#define TICKS   200
#define TICK_NS UINT64_C(1000000)

/* Wait for a wake-up, and record how late it was. False: it came too early, or not at all. */
static bool
wait_for_tick(int timer, uint64_t due_ns, struct load_histogram *errors)
{
    struct itimerspec due = {.it_value = {.tv_sec = (time_t)(due_ns / SXE_NS_PER_SECOND),
                                          .tv_nsec = (long)(due_ns % SXE_NS_PER_SECOND)}};
    uint64_t expirations;
    uint64_t now_ns;

    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &due, NULL) < 0 ||
        read(timer, &expirations, sizeof(expirations)) < 0)
        return false;
    now_ns = sxe_time_ns();
    load_histogram_record(errors, now_ns > due_ns ? now_ns - due_ns : 0);
    return now_ns >= due_ns;
}

bool
load_selftest_timer(char *text, size_t size)
{
    struct load_histogram *errors = calloc(1, sizeof(*errors));
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    uint64_t due_ns = sxe_time_ns();
    bool can_try = errors != NULL && timer >= 0;
    bool holds = can_try;

    if (!can_try)
        snprintf(text, size, "cannot be tried: %s", strerror(errno));
    for (unsigned i = 0; i < TICKS && holds; i++) {
        due_ns += TICK_NS;
        holds = wait_for_tick(timer, due_ns, errors);
    }
    if (can_try)
        snprintf(text, size, "%s, later than asked p50 %s p99 %s max %s",
                 holds ? "never early" : "EARLY, OR NOT AT ALL",
                 load_time_text(load_histogram_quantile(errors, 0.5)),
                 load_time_text(load_histogram_quantile(errors, 0.99)),
                 load_time_text(errors->max_ns));
    if (timer >= 0)
        close(timer);
    free(errors);
    return holds;
}

/* ---- The histogram ---- */

#define SAMPLES     20000
#define SMALLEST_NS 1e3
#define DECADES     8.0 /* the test values lie in eight powers of ten, from 1 us to 100 s */
#define PART_MAX    (1.0 / 1024)
#define ROUNDING_NS 1000.0

static int
by_size(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;

    return (*left > *right) - (*left < *right);
}

/* The largest error of any quantile, as a part of the right value. */
static double
greatest_error(const struct load_histogram *histogram, const uint64_t *sorted)
{
    static const double fractions[] = {0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
    double greatest = 0;

    for (unsigned i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++) {
        double rank = ceil(fractions[i] * SAMPLES);
        double exact = (double)sorted[rank > 0 ? (unsigned)rank - 1 : 0];
        double found = (double)load_histogram_quantile(histogram, fractions[i]);

        greatest = fmax(greatest, (fabs(found - exact) - ROUNDING_NS) / exact);
    }
    return greatest;
}

bool
load_selftest_histogram(char *text, size_t size)
{
    struct load_histogram *histogram = calloc(1, sizeof(*histogram));
    uint64_t *samples = calloc(SAMPLES, sizeof(*samples));
    uint64_t random[2];
    double error = 1;

    if (histogram != NULL && samples != NULL) {
        load_random_init(random, 1);
        for (unsigned i = 0; i < SAMPLES; i++) {
            samples[i] = (uint64_t)(SMALLEST_NS * pow(10, DECADES * load_random_fraction(random)));
            load_histogram_record(histogram, samples[i]);
        }
        qsort(samples, SAMPLES, sizeof(*samples), by_size);
        error = greatest_error(histogram, samples);
    }
    snprintf(text, size, "%u samples from 1 us to 100 s: percentiles are at most %.3f %% away",
             SAMPLES, error * 100);
    free(histogram);
    free(samples);
    return error <= PART_MAX;
}
