/* SPDX-License-Identifier: MIT
 *
 * The search for a rate, with simulated servers that are only a curve.
 */
#include <math.h>
#include <stdlib.h>

#include "run-private.h"
#include "test-main.h"

static struct load_step steps[LOAD_STEPS_MAX];
static unsigned number;

typedef bool (*curve)(double rate, unsigned nth);

static double capacity;
static double told_from; /* below this rate there are too few samples to see that it holds */
static double miss_from; /* and below this rate, to see that it does not hold */
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
    const struct load_search what = {start, highest, told_from};
    double rate;

    for (number = 0; (rate = load_search_next(&what, steps, number)) > 0; number++) {
        bool does_hold = holds(rate, number);

        ck_assert_uint_lt(number, LOAD_STEPS_MAX);
        steps[number] =
            (struct load_step){.rate = rate,
                               .is_told = rate >= told_from || (!does_hold && rate >= miss_from),
                               .holds = rate >= told_from && does_hold};
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
    ck_assert_double_le(load_search_found(steps, number), capacity);
    ck_assert_double_ge(load_search_found(steps, number), capacity / 1.02);
    ck_assert_uint_lt(number, 30);
}
END_TEST

START_TEST(what_is_found_was_tried_last_and_held_twice)
{
    capacity = servers[_i].capacity;
    search(holds_up_to_capacity, servers[_i].start);
    ck_assert(steps[number - 1].holds);
    ck_assert_double_eq(steps[number - 1].rate, load_search_found(steps, number));
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
    ck_assert_double_eq(load_search_found(steps, number), 0);
    ck_assert_double_le(steps[number - 1].rate, 2);
    ck_assert_uint_lt(number, 20);
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
    ck_assert_double_gt(load_search_found(steps, number), 1e7);
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
    ck_assert_double_eq(load_search_found(steps, number), highest);
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
    ck_assert_double_ge(load_search_found(steps, number), capacity / 1.02);
}
END_TEST

START_TEST(where_what_holds_has_too_few_samples_it_could_not_be_told)
{
    capacity = 1000;
    told_from = 30000;
    search(holds_up_to_capacity, 1000);
    ck_assert_double_eq(load_search_found(steps, number), 0);
    ck_assert(load_search_is_untold(steps, number));
    ck_assert_double_gt(load_search_missed(steps, number), capacity);
    ck_assert_double_le(load_search_missed(steps, number), 2 * capacity);
    ck_assert_uint_lt(number, 20);
}
END_TEST

/* Steps of 4 s are too short to tell p99 below 275/s. For servers that can do 200, 201 or 290/s,
 * the search must try 275/s, the lowest rate that can be told. */
START_TEST(the_lowest_rate_that_can_be_told_is_tried)
{
    bool is_tried = false;

    capacity = _i;
    told_from = 275;
    search(holds_up_to_capacity, 1000);
    for (unsigned i = 0; i < number; i++)
        is_tried |= steps[i].rate == 275;
    ck_assert(is_tried);
    ck_assert(load_search_is_untold(steps, number) == (_i < 275));
    if (_i >= 275)
        ck_assert_double_ge(load_search_found(steps, number), _i / 1.02);
}
END_TEST

/* No rate holds. From miss_from on a step has enough samples to show that: with 0 the search
 * reports that nothing holds, with 5 that it could not tell. */
START_TEST(that_nothing_holds_is_told_by_fewer_samples)
{
    told_from = 275;
    miss_from = _i == 0 ? 0 : 5;
    search(never_holds, 1000);
    ck_assert_double_eq(load_search_found(steps, number), 0);
    ck_assert(load_search_is_untold(steps, number) == (_i > 0));
    ck_assert_double_le(load_search_missed(steps, number), _i == 0 ? 0.5 : 20);
}
END_TEST

/* Rates that were passed on the way up are tried again, as often as necessary. */
START_TEST(what_was_passed_is_tried_again)
{
    const struct load_search what = {10, 1e6, 17};

    for (unsigned i = 0; i < 4; i++)
        steps[i] = (struct load_step){.rate = 10 * (1 << i), .is_told = i == 3};
    steps[4] = steps[3];
    ck_assert_double_eq(load_search_next(&what, steps, 5), 40);
    steps[5] = steps[6] = (struct load_step){.rate = 40, .is_told = true};
    ck_assert_double_eq(load_search_next(&what, steps, 6), 40);
    ck_assert_double_eq(load_search_next(&what, steps, 7), 20);
    steps[7] = (struct load_step){.rate = 20, .is_told = true, .holds = true};
    ck_assert_double_eq_tol(load_search_next(&what, steps, 8), sqrt(20 * 40), 1e-9);
}
END_TEST

START_TEST(where_no_rate_has_enough_samples_the_search_ends)
{
    told_from = 1e12;
    search(always_holds, 1000);
    ck_assert_double_eq(load_search_found(steps, number), 0);
    ck_assert(load_search_is_untold(steps, number));
    ck_assert(isinf(load_search_missed(steps, number)));
    ck_assert_uint_lt(number, 30);
}
END_TEST

/* Miss at the first try of each rate up to 2,000/s, as if the machine had been busy then. */
static bool
disturbed(double rate, unsigned nth)
{
    for (unsigned i = 0; i < nth; i++) {
        if (fabs(steps[i].rate - rate) < 1e-9)
            return rate <= capacity;
    }
    return rate > 2000 && rate <= capacity;
}

START_TEST(a_single_miss_is_not_believed)
{
    capacity = 50000;
    search(disturbed, 1000);
    ck_assert_double_le(load_search_found(steps, number), capacity);
    ck_assert_double_ge(load_search_found(steps, number), capacity / 1.02);
}
END_TEST

START_TEST(what_held_and_then_does_not_is_missed)
{
    steps[0] = (struct load_step){.rate = 100, .is_told = true, .holds = true};
    ck_assert(isinf(load_search_missed(steps, 1)));
    steps[1] = (struct load_step){.rate = 100, .is_told = true};
    ck_assert_double_eq(load_search_missed(steps, 2), 100);
    ck_assert_double_eq(load_search_found(steps, 2), 0);
}
END_TEST

/* A server that once, by luck, holds a rate above its capacity. */
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
    ck_assert_double_le(load_search_found(steps, number), capacity);
    ck_assert_double_ge(load_search_found(steps, number), capacity / 1.03);
}
END_TEST

/* Near the capacity, chance decides whether a rate holds. */
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
    ck_assert_double_gt(load_search_found(steps, number), 0.7 * capacity);
    ck_assert_double_lt(load_search_found(steps, number), 1.3 * capacity);
}
END_TEST

/* A server below 1000/s that holds each rate only once, so a repeated step fails. */
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
    ck_assert_uint_le(number, LOAD_STEPS_MAX);
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
    tcase_add_test(all, where_what_holds_has_too_few_samples_it_could_not_be_told);
    tcase_add_loop_test(all, the_lowest_rate_that_can_be_told_is_tried, 200, 202);
    tcase_add_loop_test(all, the_lowest_rate_that_can_be_told_is_tried, 290, 291);
    tcase_add_loop_test(all, that_nothing_holds_is_told_by_fewer_samples, 0, 2);
    tcase_add_test(all, what_was_passed_is_tried_again);
    tcase_add_test(all, where_no_rate_has_enough_samples_the_search_ends);
    tcase_add_test(all, luck_is_not_believed);
    tcase_add_test(all, a_single_miss_is_not_believed);
    tcase_add_test(all, what_held_and_then_does_not_is_missed);
    tcase_add_loop_test(all, chance_never_keeps_it_from_ending_near, 0, 50);
    tcase_add_test(all, it_ends_where_nothing_holds_twice);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
