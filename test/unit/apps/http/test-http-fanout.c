/* SPDX-License-Identifier: MIT
 *
 * Pages that wait for the slowest of several queries. Oracle: if times of 1 to N us are equally
 * likely, the slowest of K is at most m with the probability (m/N)^K.
 */
#include "fanout.h"

#include <math.h>

#include "http-run-fixture.h"
#include "output.h"
#include "test-main.h"

#define TIMES 100000u
#define US    UINT64_C(1000)

static struct made made;
static struct load_fanout fanout;

/* Record one query for each time from 1 us on. */
static void
record_each(struct load_histogram *histogram, unsigned times)
{
    for (uint64_t us = 1; us <= times; us++)
        load_histogram_record(histogram, us * US);
}

static void
tell(unsigned queries)
{
    made.plan.fanout = queries;
    load_fanout_tell(&fanout, &made.run);
}

/* The lowest m, in us, such that a page takes at most m with this probability. */
static uint64_t
expected_us(double probability, unsigned queries)
{
    uint64_t m = 1;

    while (queries * log((double)m / TIMES) < log(probability))
        m++;
    return m;
}

static const unsigned sizes[] = {2, 3, 10, 100, 1000};

START_TEST(a_page_is_as_slow_as_the_slowest_of_its_queries)
{
    unsigned told = 0;

    make_run(&made, 0);
    record_each(&made.run.total->service, TIMES);
    tell(sizes[_i]);
    for (unsigned i = 0; i < LOAD_FANOUT_LEVELS; i++) {
        const struct load_fanout_level *level = &fanout.levels[i];
        uint64_t us = expected_us(load_percentiles[i].fraction, sizes[_i]);

        ck_assert_str_eq(level->name, load_percentiles[i].name);
        ck_assert_double_eq_tol(pow(level->of_one, sizes[_i]), load_percentiles[i].fraction, 1e-12);
        ck_assert_int_eq(level->is_told, TIMES - us >= 10);
        if (!level->is_told)
            continue;
        ck_assert_uint_ge(level->ns, us * US);
        ck_assert_uint_le(level->ns, us * US + us * US / 1000);
        told++;
    }
    ck_assert_uint_ge(told, 2);
    free_run(&made);
}
END_TEST

START_TEST(what_few_samples_lie_beyond_is_not_told)
{
    static const bool is_told[LOAD_FANOUT_LEVELS] = {true, true, false, false};

    make_run(&made, 0);
    record_each(&made.run.total->service, 10000);
    tell(100);
    for (unsigned i = 0; i < LOAD_FANOUT_LEVELS; i++) {
        ck_assert_int_eq(fanout.levels[i].is_told, is_told[i]);
        ck_assert_int_eq(fanout.levels[i].ns > 0, is_told[i]);
    }
    free_run(&made);
}
END_TEST

START_TEST(of_no_query_nothing_is_told)
{
    make_run(&made, 0);
    tell(2);
    for (unsigned i = 0; i < LOAD_FANOUT_LEVELS; i++)
        ck_assert(!fanout.levels[i].is_told);
    free_run(&made);
}
END_TEST

/* The example of "The Tail at Scale": if 1 % of the queries are slow, 63 % of the pages with 100
 * queries have a slow one. */
START_TEST(of_a_hundred_queries_63_percent_have_one_beyond_the_p99)
{
    make_run(&made, 0);
    tell(100);
    ck_assert_double_eq_tol(fanout.beyond_p99, 0.634, 0.0005);
    tell(2);
    ck_assert_double_eq_tol(fanout.beyond_p99, 0.0199, 1e-12);
    free_run(&made);
}
END_TEST

START_TEST(times_are_those_of_response_unless_the_loop_is_closed)
{
    make_run(&made, 0);
    for (unsigned i = 0; i < 100; i++) {
        load_histogram_record(&made.run.total->service, 1000 * US);
        load_histogram_record(&made.run.total->response, 2000 * US);
    }
    tell(2);
    ck_assert_str_eq(fanout.times, "service");
    ck_assert_uint_eq(fanout.levels[0].ns, 1000 * US);
    made.plan.model = LOAD_OPEN;
    tell(2);
    ck_assert_str_eq(fanout.times, "response");
    ck_assert_uint_eq(fanout.levels[0].ns, 2000 * US);
    free_run(&made);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-fanout");
    TCase *tcase = tcase_create("fanout");

    tcase_add_loop_test(tcase, a_page_is_as_slow_as_the_slowest_of_its_queries, 0,
                        sizeof(sizes) / sizeof(sizes[0]));
    tcase_add_test(tcase, what_few_samples_lie_beyond_is_not_told);
    tcase_add_test(tcase, of_no_query_nothing_is_told);
    tcase_add_test(tcase, of_a_hundred_queries_63_percent_have_one_beyond_the_p99);
    tcase_add_test(tcase, times_are_those_of_response_unless_the_loop_is_closed);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
