/* SPDX-License-Identifier: MIT
 *
 * The search for a rate, against servers that are nothing but a curve.
 */
#include <math.h>
#include <stdlib.h>

#include "run-private.h"
#include "test-main.h"

static struct http_step steps[HTTP_STEPS_MAX];
static unsigned number;

typedef bool (*curve)(double rate, unsigned nth);

static double capacity;
static double told_from; /* below that there are too few samples */
static double highest = 1e8;

static bool
holds_up_to_capacity(double rate, unsigned nth)
{
    (void)nth;
    return rate <= capacity;
}

static void
search(curve holds, double start)
{
    double rate;

    for (number = 0; (rate = http_search_next(steps, number, start, highest)) > 0; number++) {
        ck_assert_uint_lt(number, HTTP_STEPS_MAX);
        steps[number] = (struct http_step){.rate = rate,
                                           .is_told = rate >= told_from,
                                           .holds = rate >= told_from && holds(rate, number)};
    }
}

static const struct {
    double capacity;
    double start;
} servers[] = {
    {50000, 1000}, {50000, 50000}, {50000, 49999}, {50000, 50001}, {50000, 1e6},
    {1000, 1000},  {1, 1000},      {0.6, 1000},    {3.7e6, 1000},  {123456.789, 777},
};

START_TEST(what_is_found_is_within_two_percent_below_what_the_server_can)
{
    capacity = servers[_i].capacity;
    search(holds_up_to_capacity, servers[_i].start);
    ck_assert_double_le(http_search_found(steps, number), capacity);
    ck_assert_double_ge(http_search_found(steps, number), capacity / 1.02);
    ck_assert_uint_lt(number, 30);
}
END_TEST

START_TEST(what_is_found_was_tried_last_and_held_twice)
{
    capacity = servers[_i].capacity;
    search(holds_up_to_capacity, servers[_i].start);
    ck_assert(steps[number - 1].holds);
    ck_assert_double_eq(steps[number - 1].rate, http_search_found(steps, number));
    unsigned times = 0;
    for (unsigned i = 0; i < number; i++)
        times += fabs(steps[i].rate - steps[number - 1].rate) < 1e-9;
    ck_assert_uint_eq(times, 2);
}
END_TEST

START_TEST(the_start_is_tried_first_and_doubled)
{
    capacity = 50000;
    search(holds_up_to_capacity, 1000);
    for (unsigned i = 0; i < 7; i++)
        ck_assert_double_eq(steps[i].rate, 1000 * (1 << i));
}
END_TEST

static bool
never_holds(double rate, unsigned nth)
{
    (void)rate;
    (void)nth;
    return false;
}

START_TEST(a_server_that_holds_nothing_is_given_up)
{
    search(never_holds, 1000);
    ck_assert_double_eq(http_search_found(steps, number), 0);
    ck_assert_double_le(steps[number - 1].rate, 2);
    ck_assert_uint_lt(number, 10);
}
END_TEST

static bool
always_holds(double rate, unsigned nth)
{
    (void)rate;
    (void)nth;
    return true;
}

START_TEST(a_server_that_holds_everything_ends_the_search_too)
{
    search(always_holds, 1000);
    ck_assert_double_gt(http_search_found(steps, number), 1e7);
    ck_assert_uint_lt(number, 30);
}
END_TEST

START_TEST(none_is_tried_above_the_highest)
{
    capacity = 50000;
    highest = 3000;
    search(holds_up_to_capacity, servers[_i].start);
    for (unsigned i = 0; i < number; i++)
        ck_assert_double_le(steps[i].rate, highest);
    ck_assert_double_eq(http_search_found(steps, number), highest);
    ck_assert_double_eq(steps[number - 1].rate, highest);
    ck_assert_double_eq(steps[number - 2].rate, highest);
    ck_assert_uint_lt(number, 10);
}
END_TEST

START_TEST(where_samples_are_too_few_a_higher_rate_is_tried)
{
    capacity = 50000;
    told_from = 30000;
    search(holds_up_to_capacity, 1000);
    ck_assert_double_ge(http_search_found(steps, number), capacity / 1.02);
}
END_TEST

START_TEST(where_what_holds_has_too_few_samples_the_search_ends)
{
    capacity = 1000;
    told_from = 30000;
    search(holds_up_to_capacity, 1000);
    ck_assert_double_eq(http_search_found(steps, number), 0);
    ck_assert_uint_lt(number, 10);
}
END_TEST

START_TEST(where_no_rate_has_enough_samples_the_search_ends)
{
    told_from = 1e12;
    search(always_holds, 1000);
    ck_assert_double_eq(http_search_found(steps, number), 0);
    ck_assert_uint_lt(number, 30);
}
END_TEST

/* Holds once above what it can, by luck. */
static bool
lucky_once(double rate, unsigned nth)
{
    static double lucky;

    if (nth == 0)
        lucky = 0;
    if (rate > capacity && rate < 1.05 * capacity && lucky < 1) {
        lucky = rate;
        return true;
    }
    return rate <= capacity;
}

START_TEST(luck_is_not_believed)
{
    capacity = 50000;
    search(lucky_once, 1000);
    ck_assert_double_le(http_search_found(steps, number), capacity);
    ck_assert_double_ge(http_search_found(steps, number), capacity / 1.03);
}
END_TEST

/* Near what it can, chance decides. */
static bool
by_chance(double rate, unsigned nth)
{
    (void)nth;
    return drand48() < 1 / (1 + pow(rate / capacity, 40));
}

START_TEST(chance_never_keeps_it_from_ending_near)
{
    srand48(_i);
    capacity = 20000;
    search(by_chance, 1000);
    ck_assert_double_gt(http_search_found(steps, number), 0.7 * capacity);
    ck_assert_double_lt(http_search_found(steps, number), 1.3 * capacity);
}
END_TEST

/* Nothing holds twice. */
static bool
only_once(double rate, unsigned nth)
{
    for (unsigned i = 0; i < nth; i++) {
        if (fabs(steps[i].rate - rate) < 1e-9)
            return false;
    }
    return rate < 1000;
}

START_TEST(it_ends_where_nothing_holds_twice)
{
    search(only_once, 100);
    ck_assert_uint_le(number, HTTP_STEPS_MAX);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-search");
    TCase *all = tcase_create("all");
    const int curves = sizeof(servers) / sizeof(servers[0]);

    tcase_add_loop_test(all, what_is_found_is_within_two_percent_below_what_the_server_can, 0,
                        curves);
    tcase_add_loop_test(all, what_is_found_was_tried_last_and_held_twice, 0, curves);
    tcase_add_test(all, the_start_is_tried_first_and_doubled);
    tcase_add_test(all, a_server_that_holds_nothing_is_given_up);
    tcase_add_test(all, a_server_that_holds_everything_ends_the_search_too);
    tcase_add_loop_test(all, none_is_tried_above_the_highest, 0, curves);
    tcase_add_test(all, where_samples_are_too_few_a_higher_rate_is_tried);
    tcase_add_test(all, where_what_holds_has_too_few_samples_the_search_ends);
    tcase_add_test(all, where_no_rate_has_enough_samples_the_search_ends);
    tcase_add_test(all, luck_is_not_believed);
    tcase_add_loop_test(all, chance_never_keeps_it_from_ending_near, 0, 50);
    tcase_add_test(all, it_ends_where_nothing_holds_twice);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
