/* SPDX-License-Identifier: MIT
 *
 * Trends in the results of a run: simulated servers, steady ones and others, and how often each is
 * reported to have a trend.
 */
#include "trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pace.h"
#include "test-main.h"
#include "test-sweep.h"

#define SECOND UINT64_C(1000000000)
#define RUNS   200u

static struct load_plan plan;
static struct load_result result;
static uint64_t dice[2];

static double
exponential(void)
{
    return -log1p(-load_random_fraction(dice));
}

static void
begin(enum load_model model, double rate)
{
    memset(&result, 0, sizeof(result));
    plan = (struct load_plan){.model = model, .stop = LOAD_STOP_TIME, .duration_ns = 60 * SECOND};
    plan.rate = plan.rate_end = model == LOAD_CLOSED ? 0 : rate;
    result.elapsed_ns = plan.duration_ns;
}

static void
reply(double at_s, double time_s)
{
    struct load_slice *slice =
        load_timeline_slice(&result.timeline, (uint64_t)((at_s + time_s) * 1e9));

    load_slice_ended(slice, true, (uint64_t)(time_s * 1e9));
}

/* ---- Servers: the service time of a request that arrives at this second ---- */

static double
steady(double at_s)
{
    (void)at_s;
    return 0.001 * exponential();
}

static double
heavy(double at_s)
{
    double normal =
        sqrt(2 * exponential()) * cos(2 * 3.14159265358979 * load_random_fraction(dice));

    (void)at_s;
    return 0.0005 * exp(normal);
}

/* A server with a JIT compiler: twice as slow at first, then faster for 20 s. */
static double
warming(double at_s)
{
    return 0.001 * exponential() * (at_s < 20 ? 2 - at_s / 20 : 1);
}

/* A server with a leak: each request takes a little more, 30 % at the end. */
static double
leaking(double at_s)
{
    return 0.001 * exponential() * (1 + 0.3 * at_s / 60);
}

/* One queue, at which requests arrive at a rate. */
static void
serve_queue(double rate, double (*takes)(double at_s))
{
    double free_s = 0;

    begin(LOAD_PARTLY_OPEN, rate);
    for (double at_s = exponential() / rate; at_s < 60; at_s += exponential() / rate) {
        free_s = fmax(free_s, at_s) + takes(at_s);
        reply(at_s, free_s - at_s);
    }
}

/* One client that sends its next request when it has its reply. */
static void
serve_closed(double rate, double (*takes)(double at_s))
{
    (void)rate;
    begin(LOAD_CLOSED, 0);
    for (double at_s = 0, time_s; at_s < 60; at_s += time_s) {
        time_s = takes(at_s);
        reply(at_s, time_s);
    }
}

/* This is pure arithmetic, which sanitizers only slow down: thin sweeps do a tenth of it. */
static unsigned
get_runs(void)
{
    return sxe_test_is_thin() ? RUNS / 10 : RUNS;
}

static unsigned
count_trends(void (*serve)(double, double (*)(double)), double rate, double (*takes)(double))
{
    struct load_trend trend;
    unsigned trends = 0;

    load_random_init(dice, 1);
    for (unsigned i = 0; i < get_runs(); i++) {
        serve(rate, takes);
        load_trend_tell(&trend, &plan, &result);
        trends += trend.figure != NULL;
    }
    return trends;
}

static const struct {
    void (*serve)(double, double (*)(double));
    double rate;
    double (*takes)(double at_s);
    unsigned from;
    unsigned to; /* of 200 runs */
} servers[] = {
    {serve_queue, 200, steady, 0, 2},      {serve_queue, 500, steady, 0, 2},
    {serve_queue, 800, steady, 0, 2},      {serve_queue, 400, heavy, 0, 2},
    {serve_closed, 0, steady, 0, 2},       {serve_closed, 0, heavy, 0, 2},
    {serve_queue, 300, warming, 190, 200}, {serve_closed, 0, warming, 198, 200},
    {serve_queue, 300, leaking, 150, 200}, {serve_closed, 0, leaking, 180, 200},
};

START_TEST(steady_servers_have_no_trend_and_others_have_one)
{
    unsigned trends = count_trends(servers[_i].serve, servers[_i].rate, servers[_i].takes);

    ck_assert_uint_ge(trends, servers[_i].from * get_runs() / RUNS);
    ck_assert_uint_le(trends, servers[_i].to);
}
END_TEST

/* ---- Trends that are reported ---- */

START_TEST(it_tells_the_figure_and_its_values_at_both_ends)
{
    struct load_trend trend;

    load_random_init(dice, 7);
    serve_closed(0, warming);
    load_trend_tell(&trend, &plan, &result);
    ck_assert_str_eq(trend.figure, "rate");
    ck_assert_double_eq_tol(trend.first, 530, 50);
    ck_assert_double_eq_tol(trend.last, 1000, 50);

    load_random_init(dice, 7);
    serve_queue(300, warming);
    load_trend_tell(&trend, &plan, &result);
    ck_assert_str_eq(trend.figure, "response.mean");
    ck_assert_double_gt(trend.first, 2 * trend.last);
}
END_TEST

/* Only the p99 has a trend: 2 % of the replies become slower. */
static double
tail(double at_s)
{
    return load_random_fraction(dice) < 0.02 ? 0.0004 + at_s * 0.000001 : 0.0003;
}

START_TEST(a_tail_that_grows_is_seen)
{
    struct load_trend trend;

    load_random_init(dice, 7);
    serve_closed(0, tail);
    load_trend_tell(&trend, &plan, &result);
    ck_assert_str_eq(trend.figure, "response.p99");
    ck_assert_double_gt(trend.last, trend.first);
}
END_TEST

/* ---- Runs that are not judged ---- */

static void
no_time(void)
{
    plan.stop = LOAD_STOP_TOTAL;
}

static void
a_ramp(void)
{
    plan.rate_end = 500;
}

static void
a_search(void)
{
    plan.find = "p99<10ms";
}

static void
nothing(void)
{
    memset(&result.timeline, 0, sizeof(result.timeline));
}

static void
a_moment(void)
{
    result.elapsed_ns = SECOND / 4;
}

static void
little(void)
{
    for (unsigned i = 0; i < 4; i++)
        memset(&result.timeline.slices[60 + i], 0, sizeof(result.timeline.slices[0]));
}

static void
interrupted_at_once(void)
{
    result.timeline.used = 1;
    result.timeline.offset_ns = 1;
    result.elapsed_ns = 0;
}

START_TEST(what_cannot_be_judged_is_not)
{
    static void (*const spoil[])(void) = {
        no_time, a_ramp, a_search, nothing, a_moment, little, interrupted_at_once,
    };
    struct load_trend trend;

    load_random_init(dice, 7);
    serve_queue(300, warming);
    spoil[_i]();
    load_trend_tell(&trend, &plan, &result);
    ck_assert_ptr_null(trend.figure);
}
END_TEST

START_TEST(the_first_slice_does_not_count_if_it_began_in_the_warm_up)
{
    struct load_trend trend;

    load_random_init(dice, 7);
    serve_queue(300, warming);
    result.timeline.offset_ns = 1;
    load_trend_tell(&trend, &plan, &result);
    ck_assert_ptr_nonnull(trend.figure);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-trend");
    TCase *t = tcase_create("trend");

    tcase_add_loop_test(t, steady_servers_have_no_trend_and_others_have_one, 0, 10);
    tcase_add_test(t, it_tells_the_figure_and_its_values_at_both_ends);
    tcase_add_test(t, a_tail_that_grows_is_seen);
    tcase_add_loop_test(t, what_cannot_be_judged_is_not, 0, 7);
    tcase_add_test(t, the_first_slice_does_not_count_if_it_began_in_the_warm_up);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
