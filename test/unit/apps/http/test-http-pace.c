/* SPDX-License-Identifier: MIT
 *
 * Arrivals. The seeds are fixed, so random arrivals are the same in each run.
 */
#include "../../../../apps/http/load/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test-main.h"

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)
#define NEVER  UINT64_MAX

static struct load_plan plan;
static struct load_pace pace;

static void
begin(enum load_arrivals arrivals, double rate, double rate_end, uint64_t duration_ns)
{
    plan = (struct load_plan){.arrivals = arrivals,
                              .rate = rate,
                              .rate_end = rate_end,
                              .duration_ns = duration_ns,
                              .seed = 7};
    load_pace_init(&pace, &plan, 0, 1);
}

static uint64_t
difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* ---- Fixed arrivals ---- */

START_TEST(fixed_arrivals_begin_at_0_and_are_a_period_apart)
{
    begin(LOAD_FIXED, 3, 3, 0);
    ck_assert_uint_eq(load_pace_next(&pace), 0);
    ck_assert_uint_eq(load_pace_next(&pace), 333333333);
    ck_assert_uint_eq(load_pace_next(&pace), 666666667);
    ck_assert_uint_eq(load_pace_next(&pace), SECOND);
}
END_TEST

/* One of very many shards, so that the test sees a few arrivals of a whole day. */
START_TEST(fixed_arrivals_do_not_drift_in_a_day)
{
    unsigned shards = 100003;

    begin(LOAD_FIXED, 20000, 20000, 0);
    load_pace_init(&pace, &plan, 17, shards);
    for (uint64_t arrival = 17; arrival < UINT64_C(20000) * 86400; arrival += shards)
        ck_assert_uint_eq(load_pace_next(&pace), arrival * 50000);
}
END_TEST

static const struct {
    double rate, rate_end;
} ramps[] = {{1000, 1000}, {1000, 3000}, {3000, 1000}, {0, 2000}, {2000, 0}};
#define RAMPS ((int)(sizeof(ramps) / sizeof(ramps[0])))

START_TEST(fixed_shards_interleave_to_the_arrivals_of_a_single_run)
{
    struct load_pace shards[7];

    begin(LOAD_FIXED, ramps[_i].rate, ramps[_i].rate_end, 2 * SECOND);
    for (unsigned i = 0; i < 7; i++)
        load_pace_init(&shards[i], &plan, i, 7);
    for (unsigned i = 0; i < 2500; i++)
        ck_assert_uint_eq(load_pace_next(&shards[i % 7]), load_pace_next(&pace));
}
END_TEST

/* ---- Ramps ---- */

/* How many arrivals there must be up to a time: the area under the rate, by its definition. */
static long double
area_until(uint64_t ns)
{
    long double t = ns / 1e9L, ramp = plan.duration_ns / 1e9L, over = 0;
    long double rate = (long double)plan.rate, rate_end = (long double)plan.rate_end;

    if (t > ramp) {
        over = (t - ramp) * rate_end;
        t = ramp;
    }
    return rate * t + (rate_end - rate) * t * t / (2 * ramp) + over;
}

/* The tolerance is 1 us at the rate of that moment, plus the rounding to ns. */
START_TEST(the_nth_arrival_of_a_ramp_is_where_the_area_is_n)
{
    uint64_t last_ns = 0;

    begin(LOAD_FIXED, ramps[_i].rate, ramps[_i].rate_end, 10 * SECOND);
    for (unsigned arrival = 0; arrival < 9900; arrival++) {
        uint64_t ns = load_pace_next(&pace);

        ck_assert_uint_ge(ns, last_ns);
        ck_assert(fabsl(area_until(ns) - arrival) < 1e-5L);
        last_ns = ns;
    }
}
END_TEST

START_TEST(a_ramp_to_zero_ends)
{
    begin(LOAD_FIXED, 1000, 0, 10 * SECOND);
    for (unsigned arrival = 0; arrival < 5000; arrival++)
        ck_assert_uint_lt(load_pace_next(&pace), 10 * SECOND);
    ck_assert_uint_eq(load_pace_next(&pace), NEVER);
    ck_assert_uint_eq(load_pace_next(&pace), NEVER);
}
END_TEST

START_TEST(a_ramp_from_zero_begins_at_0)
{
    begin(LOAD_FIXED, 0, 1000, 10 * SECOND);
    ck_assert_uint_eq(load_pace_next(&pace), 0);
    ck_assert_uint_le(difference(load_pace_next(&pace), (uint64_t)(sqrt(2 / 100.) * 1e9)), 1);
}
END_TEST

START_TEST(behind_a_ramp_the_last_rate_holds)
{
    begin(LOAD_FIXED, 100, 300, 10 * SECOND);
    for (unsigned arrival = 0; arrival < 2000; arrival++)
        ck_assert_uint_lt(load_pace_next(&pace), 10 * SECOND);
    for (unsigned arrival = 0; arrival < 3000; arrival++)
        ck_assert_uint_le(difference(load_pace_next(&pace), 10 * SECOND + arrival * SECOND / 300),
                          1);
}
END_TEST

/* A slope near 0, where the usual solution of a quadratic equation loses precision. */
START_TEST(a_ramp_that_is_nearly_level_is_as_good_as_level)
{
    struct load_pace level;

    begin(LOAD_FIXED, 20000, 20000, HOUR);
    level = pace;
    begin(LOAD_FIXED, 20000, 20000 * (1 + 1e-12), HOUR);
    for (unsigned arrival = 0; arrival < 100000; arrival++)
        ck_assert_uint_le(difference(load_pace_next(&pace), load_pace_next(&level)), 1000);
}
END_TEST

/* A few arrivals of a ramp of many hours. */
START_TEST(a_long_ramp_stays_exact)
{
    unsigned shards = 100003;

    begin(LOAD_FIXED, _i ? 50000 : 1, _i ? 1 : 50000, 12 * HOUR);
    load_pace_init(&pace, &plan, 0, shards);
    for (uint64_t arrival = 0; arrival < UINT64_C(25000) * 12 * 3600; arrival += shards)
        ck_assert(fabsl(area_until(load_pace_next(&pace)) - arrival) < 1e-3L);
}
END_TEST

START_TEST(a_rate_of_zero_has_no_arrivals)
{
    begin(_i ? LOAD_FIXED : LOAD_POISSON, 0, 0, SECOND);
    ck_assert_uint_eq(load_pace_next(&pace), NEVER);
    ck_assert_uint_eq(load_pace_next(&pace), NEVER);
}
END_TEST

/* ---- Stages ---- */

#define S(seconds, rate)         \
    {                            \
        (seconds) * SECOND, rate \
    }

/* Points of profiles: a time, and the rate at that time. */
static const struct load_stage profiles[][7] = {
    {S(2, 0), S(12, 1000), S(20, 1000), S(25, 0)},                         /* from idle to idle */
    {S(0, 500), S(3, 500), S(3, 2000), S(4, 2000), S(4, 10), S(9, 10)},    /* steps */
    {S(1, 100), S(2, 0), S(6, 0), S(6, 300), S(7, 300), S(7, 0), S(9, 0)}, /* idle in between */
    {S(0, 100), {290000000, 100}, {290000000, 0}, S(1, 0), S(1, 7), S(3, 7)},
};
#define PROFILES ((int)(sizeof(profiles) / sizeof(profiles[0])))

static void
begin_stages(enum load_arrivals arrivals, unsigned profile)
{
    unsigned number = 7;

    while (profiles[profile][number - 1].end_ns == 0)
        number--;
    plan = (struct load_plan){.arrivals = arrivals, .stages_number = number, .seed = 7};
    memcpy(plan.stages, profiles[profile], sizeof(profiles[profile]));
    plan.rate_end = plan.stages[number - 1].rate;
    plan.duration_ns = plan.stages[number - 1].end_ns;
    load_pace_init(&pace, &plan, 0, 1);
}

/* The area of a stage, by its definition: the mean of its two rates, times its length. */
static long double
stage_area(unsigned stage)
{
    long double from = stage == 0 ? 0 : plan.stages[stage - 1].rate;
    uint64_t length_ns = plan.stages[stage].end_ns - load_plan_stage_ns(&plan, stage);

    return (from + plan.stages[stage].rate) / 2 * length_ns / 1e9L;
}

START_TEST(a_stage_of_fixed_arrivals_has_as_many_as_the_area_under_its_rate)
{
    unsigned counts[LOAD_STAGES_MAX + 1] = {0};
    long double area = 0;
    unsigned seen = 0;
    uint64_t ns;

    begin_stages(LOAD_FIXED, (unsigned)_i);
    while ((ns = load_pace_next(&pace)) < plan.duration_ns)
        counts[load_plan_stage_at(&plan, ns)]++;
    for (unsigned i = 0; i < plan.stages_number; i++) {
        area += stage_area(i);
        seen += counts[i];
        /* Arrival n, from 0 on, is where the area reaches n. */
        ck_assert_uint_eq(seen, (unsigned)ceill(area));
    }
    ck_assert(fabs(load_pace_expected(&plan, plan.duration_ns) - (double)area) < 1e-9);
    if (plan.rate_end == 0)
        ck_assert_uint_eq(ns, NEVER);
}
END_TEST

START_TEST(shards_of_stages_interleave_to_the_arrivals_of_a_single_run)
{
    struct load_pace shards[7];
    uint64_t ns = 0;

    begin_stages(LOAD_FIXED, (unsigned)_i);
    for (unsigned i = 0; i < 7; i++)
        load_pace_init(&shards[i], &plan, i, 7);
    for (unsigned i = 0; ns < plan.duration_ns; i++) {
        ns = load_pace_next(&pace);
        ck_assert_uint_eq(load_pace_next(&shards[i % 7]), ns);
    }
}
END_TEST

/* A count with the mean M has the deviation sqrt(M); five shards together are one process. */
START_TEST(a_stage_of_poisson_arrivals_has_the_mean_and_the_variance_of_its_area)
{
    double sum[LOAD_STAGES_MAX] = {0}, squares[LOAD_STAGES_MAX] = {0};
    enum { RUNS = 400 };

    begin_stages(LOAD_POISSON, (unsigned)_i);
    for (unsigned run = 0; run < RUNS; run++) {
        unsigned counts[LOAD_STAGES_MAX + 1] = {0};

        plan.seed++;
        for (unsigned shard = 0; shard < 5; shard++) {
            uint64_t ns;

            load_pace_init(&pace, &plan, shard, 5);
            while ((ns = load_pace_next(&pace)) < plan.duration_ns)
                counts[load_plan_stage_at(&plan, ns)]++;
        }
        for (unsigned i = 0; i < plan.stages_number; i++) {
            sum[i] += counts[i];
            squares[i] += ((double)counts[i] - (double)stage_area(i)) *
                          ((double)counts[i] - (double)stage_area(i));
        }
    }
    for (unsigned i = 0; i < plan.stages_number; i++) {
        double mean = (double)stage_area(i);

        ck_assert_double_eq_tol(sum[i] / RUNS, mean, 4 * sqrt(mean / RUNS) + 1e-9);
        ck_assert_double_eq_tol(squares[i] / RUNS, mean, 0.35 * mean + 1e-9);
    }
}
END_TEST

START_TEST(stages_are_passed_over_without_giving_out_their_arrivals)
{
    uint64_t number = 0, at_ns = 0;

    begin_stages(LOAD_FIXED, (unsigned)_i);
    for (; at_ns < plan.duration_ns; at_ns += SECOND / 4)
        number += load_pace_skip(&pace, at_ns);
    number += load_pace_skip(&pace, plan.duration_ns);
    ck_assert_uint_eq(number, (uint64_t)ceil(load_pace_expected(&plan, plan.duration_ns)));
    ck_assert_uint_ge(load_pace_next(&pace), plan.duration_ns);
    ck_assert_uint_eq(load_pace_skip(&pace, SECOND / 4), 0);
}
END_TEST

START_TEST(so_many_are_expected_up_to_any_time)
{
    begin_stages(LOAD_POISSON, 0);
    ck_assert_double_eq(load_pace_expected(&plan, 0), 0);
    ck_assert_double_eq(load_pace_expected(&plan, 2 * SECOND), 0);
    ck_assert_double_eq_tol(load_pace_expected(&plan, 7 * SECOND), 1250, 1e-9);
    ck_assert_double_eq_tol(load_pace_expected(&plan, 12 * SECOND), 5000, 1e-9);
    ck_assert_double_eq_tol(load_pace_expected(&plan, 15 * SECOND), 8000, 1e-9);
    ck_assert_double_eq_tol(load_pace_expected(&plan, HOUR), 15500, 1e-9);
}
END_TEST

/* ---- Poisson ---- */

#define GAPS 20000

static double gaps[GAPS];

static int
by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The test of Kolmogorov and Smirnov: the largest distance to the exponential distribution, times
 * sqrt(n), is above 1.95 in one of a thousand cases. */
static void
check_exponential(double mean)
{
    double sum = 0, squares = 0, distance = 0;

    for (unsigned i = 0; i < GAPS; i++) {
        gaps[i] /= mean;
        sum += gaps[i];
        squares += (gaps[i] - 1) * (gaps[i] - 1);
    }
    ck_assert_double_eq_tol(sum / GAPS, 1, 0.02);
    ck_assert_double_eq_tol(squares / GAPS, 1, 0.07);
    qsort(gaps, GAPS, sizeof(gaps[0]), by_value);
    for (unsigned i = 0; i < GAPS; i++) {
        double probability = -expm1(-gaps[i]);

        distance = fmax(distance, fabs(probability - (double)i / GAPS));
        distance = fmax(distance, fabs(probability - (double)(i + 1) / GAPS));
    }
    ck_assert_double_lt(distance * sqrt(GAPS), 1.95);
}

START_TEST(poisson_gaps_are_exponential)
{
    uint64_t last_ns = 0;

    begin(LOAD_POISSON, 1000, 1000, 0);
    for (unsigned i = 0; i < GAPS; i++) {
        uint64_t ns = load_pace_next(&pace);

        ck_assert_uint_ge(ns, last_ns);
        gaps[i] = (double)(ns - last_ns);
        last_ns = ns;
    }
    check_exponential(1e6);
}
END_TEST

START_TEST(poisson_shards_are_together_a_process_of_the_whole_rate)
{
    struct load_pace shards[3];
    uint64_t next_ns[3];
    uint64_t last_ns = 0;

    begin(LOAD_POISSON, 1000, 1000, 0);
    for (unsigned i = 0; i < 3; i++) {
        load_pace_init(&shards[i], &plan, i, 3);
        next_ns[i] = load_pace_next(&shards[i]);
    }
    for (unsigned i = 0; i < GAPS; i++) {
        unsigned first = 0;

        for (unsigned j = 1; j < 3; j++)
            if (next_ns[j] < next_ns[first])
                first = j;
        gaps[i] = (double)(next_ns[first] - last_ns);
        last_ns = next_ns[first];
        next_ns[first] = load_pace_next(&shards[first]);
    }
    check_exponential(1e6);
}
END_TEST

/* Measured in area under the rate, the arrivals are a Poisson process of rate 1. */
START_TEST(poisson_arrivals_follow_a_ramp)
{
    long double last = 0;

    begin(LOAD_POISSON, ramps[_i].rate, ramps[_i].rate_end, 30 * SECOND);
    for (unsigned i = 0; i < GAPS; i++) {
        long double area = area_until(load_pace_next(&pace));

        gaps[i] = (double)(area - last);
        last = area;
    }
    check_exponential(1);
}
END_TEST

START_TEST(the_same_seed_has_the_same_arrivals_and_another_has_others)
{
    struct load_pace same, other;

    begin(LOAD_POISSON, 1000, 1000, 0);
    same = pace;
    plan.seed++;
    load_pace_init(&other, &plan, 0, 1);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t ns = load_pace_next(&pace);

        ck_assert_uint_eq(load_pace_next(&same), ns);
        ck_assert_uint_ne(load_pace_next(&other), ns);
    }
}
END_TEST

/* ---- Changing the rate ---- */

START_TEST(a_new_rate_goes_on_from_where_the_old_one_was)
{
    begin(LOAD_FIXED, 10, 10, 0);
    ck_assert_uint_eq(load_pace_next(&pace), 0);
    ck_assert_uint_eq(load_pace_next(&pace), SECOND / 10);
    /* Three quarters of the interval are over; the last quarter now takes a quarter of 2 s. */
    load_pace_set_rate(&pace, SECOND * 175 / 1000, 0.5, 1);
    ck_assert_uint_le(difference(load_pace_next(&pace), SECOND * 675 / 1000), 1);
    ck_assert_uint_le(difference(load_pace_next(&pace), SECOND * 2675 / 1000), 1);
}
END_TEST

START_TEST(an_arrival_that_was_given_out_stays_and_the_new_rate_begins_with_it)
{
    begin(LOAD_FIXED, 1, 1, 0);
    ck_assert_uint_eq(load_pace_next(&pace), 0);
    ck_assert_uint_eq(load_pace_next(&pace), SECOND);
    load_pace_set_rate(&pace, SECOND / 2, 1000, 1);
    ck_assert_uint_le(difference(load_pace_next(&pace), SECOND + SECOND / 1000), 1);
    ck_assert_uint_le(difference(load_pace_next(&pace), SECOND + 2 * SECOND / 1000), 1);
}
END_TEST

START_TEST(arrivals_that_were_due_before_a_new_rate_still_come)
{
    uint64_t last_ns = 0;

    begin(LOAD_FIXED, 1000, 1000, 0);
    ck_assert_uint_eq(load_pace_next(&pace), 0);
    load_pace_set_rate(&pace, SECOND, _i * 10, 1);
    for (unsigned arrival = 1; arrival < 1000; arrival++) {
        uint64_t ns = load_pace_next(&pace);

        ck_assert(ns >= last_ns && ns < SECOND);
        last_ns = ns;
    }
    ck_assert_uint_eq(load_pace_next(&pace), _i ? SECOND : NEVER);
    ck_assert_uint_eq(load_pace_next(&pace), _i ? SECOND + SECOND / 10 : NEVER);
}
END_TEST

START_TEST(a_new_rate_ends_a_ramp)
{
    begin(_i ? LOAD_FIXED : LOAD_POISSON, 1000, 2000, SECOND);
    for (uint64_t ns = 0; ns < SECOND / 2;)
        ns = load_pace_next(&pace);
    load_pace_set_rate(&pace, SECOND / 2, 500, 1);
    for (unsigned i = 0; i < 10000; i++)
        load_pace_next(&pace);
    ck_assert_uint_le(difference(load_pace_next(&pace), SECOND / 2 + 20 * SECOND), SECOND);
}
END_TEST

START_TEST(a_new_rate_may_be_zero_and_then_another)
{
    begin(LOAD_FIXED, 1000, 1000, 0);
    load_pace_next(&pace);
    load_pace_set_rate(&pace, 0, 0, 1);
    ck_assert_uint_eq(load_pace_next(&pace), NEVER);
    load_pace_set_rate(&pace, SECOND, 1, 1);
    ck_assert_uint_eq(load_pace_next(&pace), 2 * SECOND);
}
END_TEST

START_TEST(a_pause_withdraws_what_was_still_to_come)
{
    begin(LOAD_FIXED, 1, 1, 0);
    ck_assert_uint_eq(load_pace_next(&pace), 0);
    ck_assert_uint_eq(load_pace_next(&pace), SECOND);
    load_pace_pause(&pace, SECOND / 2);
    ck_assert_uint_eq(load_pace_next(&pace), NEVER);
    /* The next arrival was half a second away at 1/s; at 10/s it is 50 ms away. */
    load_pace_set_rate(&pace, 5 * SECOND, 10, 1);
    ck_assert_uint_le(difference(load_pace_next(&pace), 5 * SECOND + SECOND / 20), 1);
    ck_assert_uint_le(difference(load_pace_next(&pace), 5 * SECOND + 3 * SECOND / 20), 1);
}
END_TEST

START_TEST(after_a_pause_arrivals_are_those_of_the_new_rate)
{
    unsigned arrivals = 0;

    begin(_i ? LOAD_FIXED : LOAD_POISSON, 1000, 1000, 0);
    while (load_pace_next(&pace) < SECOND)
        ;
    load_pace_pause(&pace, SECOND);
    ck_assert_uint_eq(load_pace_next(&pace), NEVER);
    load_pace_set_rate(&pace, 10 * SECOND, 5000, 1);
    for (uint64_t ns; (ns = load_pace_next(&pace)) < 12 * SECOND; arrivals++)
        ck_assert_uint_ge(ns, 10 * SECOND);
    ck_assert_uint_ge(arrivals, 9600);
    ck_assert_uint_le(arrivals, 10400);
}
END_TEST

START_TEST(shards_of_a_new_rate_each_have_their_part_of_it)
{
    struct load_pace shards[4];
    unsigned arrivals = 0;

    begin(_i ? LOAD_FIXED : LOAD_POISSON, 1000, 1000, 0);
    for (unsigned i = 0; i < 4; i++) {
        load_pace_init(&shards[i], &plan, i, 4);
        load_pace_next(&shards[i]);
        load_pace_set_rate(&shards[i], 0, 4000, 4);
        while (load_pace_next(&shards[i]) < 10 * SECOND)
            arrivals++;
    }
    ck_assert_uint_ge(arrivals, 39000);
    ck_assert_uint_le(arrivals, 41000);
}
END_TEST

/* ---- Random numbers ---- */

START_TEST(fractions_are_spread_evenly_from_0_to_1)
{
    uint64_t state[2];

    load_random_init(state, (uint64_t)_i);
    for (unsigned i = 0; i < GAPS; i++) {
        double fraction = load_random_fraction(state);

        ck_assert(fraction >= 0 && fraction < 1);
        gaps[i] = -log1p(-fraction);
    }
    check_exponential(1);
}
END_TEST

START_TEST(numbers_below_n_are_all_there_about_as_often)
{
    static const uint64_t limits[] = {1, 2, 3, 10, 1000};
    unsigned times[1000] = {0};
    uint64_t state[2];
    unsigned each = 100;

    load_random_init(state, 1);
    for (unsigned i = 0; i < each * limits[_i]; i++) {
        uint64_t number = load_random_below(state, limits[_i]);

        ck_assert_uint_lt(number, limits[_i]);
        times[number]++;
    }
    for (unsigned i = 0; i < limits[_i]; i++)
        ck_assert(times[i] > each / 2 && times[i] < each * 2);
    ck_assert_uint_eq(load_random_below(state, 0), 0);
}
END_TEST

START_TEST(numbers_below_the_largest_n_are_as_large)
{
    uint64_t state[2];
    uint64_t all = 0;

    load_random_init(state, 2);
    for (unsigned i = 0; i < 100; i++)
        all |= load_random_below(state, UINT64_MAX);
    ck_assert_uint_eq(all, UINT64_MAX);
}
END_TEST

/* ---- Skipping many arrivals ---- */

START_TEST(fixed_arrivals_are_passed_over_exactly)
{
    begin(LOAD_FIXED, 1000, 1000, 0);
    load_pace_init(&pace, &plan, 1, 3);
    ck_assert_uint_eq(load_pace_next(&pace), 1000000);
    ck_assert_uint_eq(load_pace_skip(&pace, 4000000), 0);
    /* The arrivals at 4, 7 ... 998 ms. */
    ck_assert_uint_eq(load_pace_skip(&pace, SECOND), 332);
    ck_assert_uint_eq(load_pace_skip(&pace, SECOND), 0);
    ck_assert_uint_eq(load_pace_next(&pace), SECOND);
    ck_assert_uint_eq(load_pace_next(&pace), SECOND + 3000000);
}
END_TEST

START_TEST(random_ones_are_passed_over_as_many_as_are_to_be_expected)
{
    uint64_t number;

    begin(LOAD_POISSON, 0, 2e9, HOUR);
    number = load_pace_skip(&pace, HOUR);
    ck_assert_uint_le(difference(number, 3600 * SECOND), 10);
    ck_assert_uint_le(difference(load_pace_next(&pace), HOUR), 10);
}
END_TEST

START_TEST(where_none_come_none_are_passed_over)
{
    begin((enum load_arrivals)_i, 0, 0, 0);
    ck_assert_uint_eq(load_pace_skip(&pace, HOUR), 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-pace");
    TCase *fixed = tcase_create("fixed");
    TCase *stages = tcase_create("stages");
    TCase *poisson = tcase_create("poisson");
    TCase *rates = tcase_create("rates");

    tcase_add_test(fixed, fixed_arrivals_begin_at_0_and_are_a_period_apart);
    tcase_add_test(fixed, fixed_arrivals_do_not_drift_in_a_day);
    tcase_add_loop_test(fixed, fixed_shards_interleave_to_the_arrivals_of_a_single_run, 0, RAMPS);
    tcase_add_loop_test(fixed, the_nth_arrival_of_a_ramp_is_where_the_area_is_n, 0, RAMPS);
    tcase_add_test(fixed, a_ramp_to_zero_ends);
    tcase_add_test(fixed, a_ramp_from_zero_begins_at_0);
    tcase_add_test(fixed, behind_a_ramp_the_last_rate_holds);
    tcase_add_test(fixed, a_ramp_that_is_nearly_level_is_as_good_as_level);
    tcase_add_loop_test(fixed, a_long_ramp_stays_exact, 0, 2);
    tcase_add_loop_test(fixed, a_rate_of_zero_has_no_arrivals, 0, 2);
    tcase_add_test(poisson, poisson_gaps_are_exponential);
    tcase_add_test(poisson, poisson_shards_are_together_a_process_of_the_whole_rate);
    tcase_add_loop_test(poisson, poisson_arrivals_follow_a_ramp, 0, RAMPS);
    tcase_add_test(poisson, the_same_seed_has_the_same_arrivals_and_another_has_others);
    tcase_add_test(rates, a_new_rate_goes_on_from_where_the_old_one_was);
    tcase_add_test(rates, an_arrival_that_was_given_out_stays_and_the_new_rate_begins_with_it);
    tcase_add_loop_test(rates, arrivals_that_were_due_before_a_new_rate_still_come, 0, 2);
    tcase_add_loop_test(rates, a_new_rate_ends_a_ramp, 0, 2);
    tcase_add_test(rates, a_new_rate_may_be_zero_and_then_another);
    tcase_add_test(rates, a_pause_withdraws_what_was_still_to_come);
    tcase_add_loop_test(rates, after_a_pause_arrivals_are_those_of_the_new_rate, 0, 2);
    tcase_add_loop_test(rates, shards_of_a_new_rate_each_have_their_part_of_it, 0, 2);
    tcase_add_loop_test(rates, fractions_are_spread_evenly_from_0_to_1, 0, 3);
    tcase_add_loop_test(rates, numbers_below_n_are_all_there_about_as_often, 0, 5);
    tcase_add_test(rates, numbers_below_the_largest_n_are_as_large);
    tcase_add_test(fixed, fixed_arrivals_are_passed_over_exactly);
    tcase_add_test(poisson, random_ones_are_passed_over_as_many_as_are_to_be_expected);
    tcase_add_loop_test(rates, where_none_come_none_are_passed_over, 0, 2);
    tcase_add_loop_test(stages, a_stage_of_fixed_arrivals_has_as_many_as_the_area_under_its_rate, 0,
                        PROFILES);
    tcase_add_loop_test(stages, shards_of_stages_interleave_to_the_arrivals_of_a_single_run, 0,
                        PROFILES);
    tcase_add_loop_test(
        stages, a_stage_of_poisson_arrivals_has_the_mean_and_the_variance_of_its_area, 0, PROFILES);
    tcase_add_loop_test(stages, stages_are_passed_over_without_giving_out_their_arrivals, 0,
                        PROFILES);
    tcase_add_test(stages, so_many_are_expected_up_to_any_time);
    suite_add_tcase(suite, stages);
    suite_add_tcase(suite, fixed);
    suite_add_tcase(suite, poisson);
    suite_add_tcase(suite, rates);
    return sxe_test_main(suite);
}
