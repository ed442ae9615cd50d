/* SPDX-License-Identifier: MIT
 *
 * The figures of several trials together, for a server that is known by theory: an M/M/1 queue
 * (Poisson arrivals, one reply after the other, exponential service times). Its response times are
 * exponential with the mean 1 / (MU - LAMBDA). The arrivals are those of the load generator, with
 * the seeds of its trials.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pace.h"
#include "run-private.h"
#include "test-main.h"
#include "test-sweep.h"

#define LAMBDA   1000.0
#define MU       2000.0
#define SECONDS  4.0
#define ARRIVALS 6000

/* They only compute, which sanitizers hardly check: a tenth is enough then. */
#define EXPERIMENTS (sxe_test_is_thin() ? 20u : 200u)

static double times[ARRIVALS];
static uint64_t server[2]; /* random numbers of the server */

static int
by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Simulate a trial: its rate, and the p99 of its response times in seconds. */
static void
measure(uint64_t seed, double *rate, double *p99)
{
    const struct load_plan plan = {.seed = seed, .rate = LAMBDA, .rate_end = LAMBDA};
    struct load_pace pace;
    double free_s = 0, at_s;
    unsigned number = 0;

    load_pace_init(&pace, &plan, 0, 1);
    while ((at_s = (double)load_pace_next(&pace) / 1e9) < SECONDS && number < ARRIVALS) {
        free_s = fmax(free_s, at_s) - log1p(-load_random_fraction(server)) / MU;
        times[number++] = free_s - at_s;
    }
    qsort(times, number, sizeof(times[0]), by_value);
    *rate = number / SECONDS;
    *p99 = times[(unsigned)(0.99 * number)];
}

static bool
holds(const double *values, unsigned number, double truth)
{
    struct load_interval interval;

    load_stats_median_interval(&interval, values, number);
    return interval.is_known && interval.low <= truth && truth <= interval.high;
}

/* The confidence is 97 % with six trials, 96 % with nine and with twelve. So many of 200
 * experiments must contain the true value, give or take 2.4 %, two standard deviations. The numbers
 * are the same in each run. */
static const unsigned trials[] = {6, 9, 12};

START_TEST(intervals_hold_the_truth_as_often_as_they_say)
{
    const double p99 = log(100) / (MU - LAMBDA);
    double rates[16], p99s[16];
    unsigned rate_held = 0, p99_held = 0;

    for (unsigned experiment = 0; experiment < EXPERIMENTS; experiment++) {
        const struct load_plan plan = {.seed = 1000 + experiment};

        load_random_init(server, experiment);
        for (unsigned i = 0; i < trials[_i]; i++)
            measure(load_trial_seed(&plan, i), &rates[i], &p99s[i]);
        rate_held += holds(rates, trials[_i], LAMBDA);
        p99_held += holds(p99s, trials[_i], p99);
    }
    ck_assert_msg(rate_held >= 0.93 * EXPERIMENTS, "the rate: %u of %u", rate_held, EXPERIMENTS);
    ck_assert_msg(p99_held >= 0.93 * EXPERIMENTS, "p99: %u of %u", p99_held, EXPERIMENTS);
}
END_TEST

/* The two sides of a pair have the same seed; no other pair, shard or probe has it. */
START_TEST(no_two_trials_have_the_same_arrivals)
{
    const struct load_plan plan = {.seed = 1, .rate = LAMBDA, .rate_end = LAMBDA};

    for (unsigned i = 0; i < LOAD_TRIALS_MAX; i++)
        for (unsigned k = 0; k < i; k++) {
            struct load_plan a = plan, b = plan;
            struct load_pace pace_a, pace_b;

            a.seed = load_trial_seed(&plan, i);
            b.seed = load_trial_seed(&plan, k);
            load_pace_init(&pace_a, &a, 0, 4);
            load_pace_init(&pace_b, &b, i % 4, 4);
            ck_assert_uint_ne(load_pace_next(&pace_a), load_pace_next(&pace_b));
        }
}
END_TEST

START_TEST(a_rate_is_a_result_unless_it_is_given)
{
    struct load_plan plan = {.model = LOAD_CLOSED};

    ck_assert(load_figure_is_result(&plan, LOAD_FIGURE_RATE));
    plan.model = LOAD_PARTLY_OPEN;
    ck_assert(!load_figure_is_result(&plan, LOAD_FIGURE_RATE));
    ck_assert(load_figure_is_result(&plan, LOAD_FIGURE_RESPONSE_P99));
    plan.model = LOAD_OPEN;
    ck_assert(!load_figure_is_result(&plan, LOAD_FIGURE_RATE));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-trials");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, intervals_hold_the_truth_as_often_as_they_say, 0, 3);
    tcase_add_test(all, no_two_trials_have_the_same_arrivals);
    tcase_add_test(all, a_rate_is_a_result_unless_it_is_given);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
