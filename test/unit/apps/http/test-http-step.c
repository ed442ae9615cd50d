/* SPDX-License-Identifier: MIT
 *
 * A step of a search, and complete searches with simulated queues whose p99 is known by theory: the
 * rate that is found must be the one at which the condition stops to hold.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "known-law.h"
#include "pace.h"
#include "run-private.h"
#include "test-main.h"
#include "test-sweep.h"

static struct load_threshold condition;
static struct load_result result;
static struct load_step step;

static void
set_up(void)
{
    memset(&result, 0, sizeof(result));
    memset(&step, 0, sizeof(step));
    ck_assert_ptr_null(load_threshold_parse(&condition, "p99<20ms"));
}

/* So many queries were offered and answered, and `late` of these took too long. */
static void
answer(unsigned number, unsigned late)
{
    result.offered += number;
    result.sent += number;
    result.ends[LOAD_END_OK] += number;
    for (unsigned i = 0; i < number; i++)
        load_histogram_record(&result.response, i < late ? 30000000 : 1000000);
}

/* ---- Steps that have enough replies ---- */

static const struct {
    const char *condition;
    unsigned number, late;
    bool is_enough, is_told, holds;
} counts[] = {
    {"p99<20ms", 0, 0, false, false, false},
    {"p99<20ms", 500, 0, false, false, false},  /* too few replies */
    {"p99<20ms", 1000, 0, true, true, true},    /* clearly below the limit */
    {"p99<20ms", 1000, 2, true, true, true},    /* two late replies, where ten are allowed */
    {"p99<20ms", 1000, 3, false, true, true},   /* it holds, but not clearly */
    {"p99<20ms", 1000, 15, false, true, false}, /* it is not clear either that it does not hold */
    {"p99<20ms", 4000, 39, true, true, true},   /* near the limit: needs more replies */
    {"p99<20ms", 4000, 41, true, true, false},
    {"p99<20ms", 100, 19, false, false, false}, /* could be a single burst */
    {"p99<20ms", 100, 20, true, true, false},   /* clear even with 100 replies */
    {"p99.9<20ms", 2000, 0, false, false, false},
    {"p99.9<20ms", 10000, 0, true, true, true},
    {"p50<20ms", 199, 0, false, false, false},
    {"p50<20ms", 200, 0, true, true, true},
    {"mean<20ms", 999, 0, false, false, false},
    {"mean<20ms", 1000, 0, false, true, true},
    {"mean<20ms", 4000, 0, true, true, true},
    {"max<20ms", 1000, 1, false, true, false},
    {"rate>100", 1000, 0, false, false, false}, /* no time has passed */
    {"errors<1%", 1000, 0, true, true, true},
    {"skipped<1%", 1000, 0, true, true, true},
    {"achieved>=99%", 1000, 0, true, true, true},
    {"p99<=30ms", 1000, 1000, true, true, true},
};

START_TEST(a_step_goes_on_until_it_is_told)
{
    ck_assert_ptr_null(load_threshold_parse(&condition, counts[_i].condition));
    answer(counts[_i].number, counts[_i].late);
    ck_assert(load_step_is_enough(&condition, &result) == counts[_i].is_enough);
    load_step_judge(&step, &condition, &result);
    ck_assert(step.is_told == counts[_i].is_told);
    ck_assert(step.holds == counts[_i].holds);
}
END_TEST

START_TEST(errors_and_what_is_skipped_are_beyond)
{
    static const char *const conditions[] = {"errors<1%", "skipped<1%", "achieved>=99%"};

    ck_assert_ptr_null(load_threshold_parse(&condition, conditions[_i]));
    answer(900, 0);
    result.offered += 100;
    if (_i == 0) {
        result.sent += 100;
        result.ends[LOAD_END_RESET] += 100;
    } else {
        result.skipped[LOAD_SKIP_NO_SOCKET] += 100;
    }
    ck_assert(load_step_is_enough(&condition, &result));
    load_step_judge(&step, &condition, &result);
    ck_assert(step.is_told && !step.holds);
    ck_assert_double_gt(step.figure, 0);
}
END_TEST

/* Of 1,000 queries, 2 % and 10 in flight may be missing; plus as many as chance allows for those
 * that were in flight before. */
static const struct {
    unsigned missing, carried;
    bool holds;
} missing[] = {{0, 0, true},    {29, 0, true},    {31, 0, false},
               {69, 100, true}, {71, 100, false}, {500, 0, false}};

START_TEST(what_is_not_answered_does_not_hold)
{
    answer(1000 - missing[_i].missing, 0);
    result.offered += missing[_i].missing;
    result.carried = missing[_i].carried;
    load_step_judge(&step, &condition, &result);
    ck_assert(step.holds == (missing[_i].holds && step.is_told));
    ck_assert(missing[_i].holds || step.is_told);
}
END_TEST

/* ---- Searches ---- */

/* The searches only compute, which sanitizers hardly check: a quarter is enough then. */
#define SEARCHES  (sxe_test_is_thin() ? 5u : 20u)
#define LONGEST_S 60.0
#define LOOK_S    2.0

enum server { MD1, CAPPED, MM1 };

static struct known_law law;
static uint64_t arrivals[2], service[2];
static double free_s;

static double
exponential(uint64_t random[2], double rate)
{
    return -log1p(-load_random_fraction(random)) / rate;
}

/* When a query that arrives now is answered. */
static double
answered_s(enum server server, double now_s)
{
    if (server != MM1)
        return (double)known_law_reply(&law, (uint64_t)(now_s * 1e9)).due_ns / 1e9;
    free_s = fmax(free_s, now_s) + exponential(service, 200);
    return free_s;
}

/* The queries in flight in the order of their arrival, which is also that of their replies. */
#define IN_FLIGHT_MAX (1u << 20)
static double came_s[IN_FLIGHT_MAX], done_s[IN_FLIGHT_MAX];
static unsigned first, last;

static void
count_answered(double now_s)
{
    for (; first < last && done_s[first] <= now_s; first++) {
        result.ends[LOAD_END_OK]++;
        load_histogram_record(&result.response, (uint64_t)((done_s[first] - came_s[first]) * 1e9));
    }
}

/* Simulate a step that begins with an empty queue. As long as no rate is known that fails, a low
 * rate is passed after a second. */
static void
simulate(enum server server, double rate, bool may_pass)
{
    double at_s = 0, look_s = 1;

    memset(&result, 0, sizeof(result));
    law.free_ns = 0;
    free_s = 0;
    first = last = 0;
    while (last < IN_FLIGHT_MAX && (at_s += exponential(arrivals, rate)) < LONGEST_S) {
        if (at_s >= look_s) {
            count_answered(look_s);
            if (load_step_is_enough(&condition, &result) ||
                (may_pass && result.response.count < 1000))
                break;
            look_s += LOOK_S;
        }
        result.offered++;
        result.sent++;
        came_s[last] = at_s;
        done_s[last++] = answered_s(server, at_s);
    }
    count_answered(fmin(at_s, LONGEST_S));
    step = (struct load_step){.rate = rate};
    load_step_judge(&step, &condition, &result);
}

static double
find(enum server server, double start, unsigned seed)
{
    static struct load_step steps[LOAD_STEPS_MAX];
    const struct load_search search = {start, 1e6, 1.1 * 1000 / LONGEST_S};
    unsigned number = 0;
    double rate;

    load_random_init(arrivals, seed);
    load_random_init(service, seed + 1000);
    ck_assert(known_law_parse(&law, server == CAPPED ? "capped:200" : "md1:200"));
    while ((rate = load_search_next(&search, steps, number)) > 0) {
        simulate(server, rate, isinf(load_search_missed(steps, number)));
        steps[number++] = step;
    }
    return load_search_found(steps, number);
}

/* By Erlang and Crommelin: the probability that a query in an M/D/1 queue waits at most t, in units
 * of the service time. */
static double
md1_waits_up_to(double load, double t)
{
    long double sum = 0;

    for (unsigned i = 0; i <= (unsigned)t; i++) {
        long double x = -load * (t - i);
        long double term = expl(-x);

        for (unsigned k = 1; k <= i; k++)
            term *= x / k;
        sum += term;
    }
    return (1 - load) * (double)sum;
}

/* The rate at which 1 % of the queries wait for longer than t. */
static double
md1_rate(double t)
{
    double low = 0, high = 1;

    for (unsigned i = 0; i < 40; i++) {
        double load = (low + high) / 2;

        if (md1_waits_up_to(load, t) > 0.99)
            low = load;
        else
            high = load;
    }
    return 200 * low;
}

/* The limit for p99 50 ms and servers of 200/s: in M/D/1 a query waits 45 ms and takes 5 more; a
 * capped server lets it wait for 50 ms; in M/M/1 the response time is exponential. */
static double
theory(enum server server)
{
    if (server == MM1)
        return 200 - log(100) / 0.05;
    return md1_rate(server == CAPPED ? 10 : 9);
}

static void
check_searches(enum server server, double start)
{
    double truth = theory(server), least = 1e9, most = 0;
    unsigned near = 0;

    ck_assert_ptr_null(load_threshold_parse(&condition, "p99<50ms"));
    for (unsigned seed = 1; seed <= SEARCHES; seed++) {
        double found = find(server, start, seed) / truth;

        least = fmin(least, found);
        most = fmax(most, found);
        near += fabs(found - 1) < 0.15;
    }
    ck_assert_msg(near >= 0.9 * SEARCHES && least > 0.7 && most < 1.2,
                  "%u: %.1f/s in theory, found %.3f to %.3f of it", server, truth, least, most);
}

START_TEST(a_search_from_below_finds_what_theory_says)
{
    check_searches((enum server)_i, 10);
}
END_TEST

START_TEST(a_search_from_above_finds_what_theory_says)
{
    check_searches((enum server)_i, 1000);
}
END_TEST

/* The server's capacity is the limit for any condition, except for 2 %, and queries in flight. */
START_TEST(what_is_found_of_a_capped_server_is_its_rate)
{
    ck_assert_ptr_null(load_threshold_parse(&condition, "errors<1%"));
    for (unsigned seed = 1; seed <= SEARCHES; seed++) {
        double found = find(CAPPED, seed % 2 ? 10 : 1000, seed);

        ck_assert_msg(found > 185 && found < 220, "%f", found);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-step");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 0);
    tcase_add_checked_fixture(all, set_up, NULL);
    tcase_add_loop_test(all, a_step_goes_on_until_it_is_told, 0,
                        sizeof(counts) / sizeof(counts[0]));
    tcase_add_loop_test(all, errors_and_what_is_skipped_are_beyond, 0, 3);
    tcase_add_loop_test(all, what_is_not_answered_does_not_hold, 0,
                        sizeof(missing) / sizeof(missing[0]));
    tcase_add_loop_test(all, a_search_from_below_finds_what_theory_says, 0, 3);
    tcase_add_loop_test(all, a_search_from_above_finds_what_theory_says, 0, 3);
    tcase_add_test(all, what_is_found_of_a_capped_server_is_its_rate);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
