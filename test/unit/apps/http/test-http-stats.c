/* SPDX-License-Identifier: MIT
 *
 * Confidence intervals. Oracles: published tables, all permutations of small samples, and
 * simulation with fixed seeds.
 */
#include "../../../../apps/http/stats/stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define MAX          LOAD_TRIALS_MAX

static struct load_interval interval;
static double a[MAX + 50], b[MAX + 50], ratios[(MAX + 50) * (MAX + 50)];

static int
by_value(const void *left, const void *right)
{
    double x = *(const double *)left;
    double y = *(const double *)right;

    return (x > y) - (x < y);
}

static double
uniform(void)
{
    return ((double)random() + 0.5) / ((double)RAND_MAX + 1);
}

/* A lognormal value, as times typically are. */
static double
time_like(double middle)
{
    return middle * exp(0.3 * sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979 * uniform()));
}

/* ---- Median ---- */

static const struct {
    unsigned number;
    double values[6];
    double median;
} medians[] = {
    {0, {0}, 0},
    {1, {7}, 7},
    {2, {3, 1}, 2},
    {3, {9, 1, 2}, 2},
    {4, {4, 1, 3, 2}, 2.5},
    {6, {5, 5, 5, 1, 9, 6}, 5},
};

START_TEST(a_median_is_the_middle_one_or_between_the_two)
{
    ck_assert(load_stats_median(medians[_i].values, medians[_i].number) == medians[_i].median);
}
END_TEST

/* From the table of the sign test, two-sided, 0.05: the interval is from the nth smallest to the
 * nth largest value. */
static const struct {
    unsigned number;
    unsigned nth; /* 0: there is no interval */
} orders[] = {{1, 0},   {5, 0},   {6, 1},   {7, 1},   {8, 1},   {9, 2},   {10, 2},
              {11, 2},  {12, 3},  {13, 3},  {14, 3},  {15, 4},  {16, 4},  {17, 5},
              {18, 5},  {19, 5},  {20, 6},  {25, 8},  {30, 10}, {40, 14}, {50, 18},
              {60, 22}, {70, 27}, {80, 31}, {90, 36}, {100, 40}};

START_TEST(the_interval_of_a_median_is_that_of_the_table)
{
    unsigned number = orders[_i].number;
    unsigned nth = orders[_i].nth;

    for (unsigned i = 0; i < number; i++)
        /* The numbers 1 to `number` in mixed order: 7919 is prime. */
        a[i] = (i * 7919 % number) + 1;
    load_stats_median_interval(&interval, a, number);
    ck_assert(interval.middle == (number + 1) / 2.);
    ck_assert(interval.is_known == (nth > 0));
    ck_assert(interval.low == (nth > 0 ? nth : 1));
    ck_assert(interval.high == (nth > 0 ? number + 1 - nth : number));
}
END_TEST

START_TEST(the_interval_of_no_values_is_nothing)
{
    load_stats_median_interval(&interval, a, 0);
    ck_assert(!interval.is_known && interval.low == 0 && interval.high == 0);
    ck_assert(load_stats_width(&interval) == 1);
}
END_TEST

START_TEST(a_value_that_cannot_be_told_leaves_no_interval)
{
    for (unsigned i = 0; i < 8; i++)
        a[i] = b[i] = i == 3 ? (double)NAN : 1;
    load_stats_median_interval(&interval, a, 8);
    ck_assert(isnan(interval.low) && isnan(interval.middle) && isnan(interval.high));
    ck_assert(!interval.is_known && load_stats_width(&interval) == 1);
    for (unsigned i = 0; i < 2; i++) {
        a[3] = i == 0 ? (double)NAN : 1;
        b[3] = i == 1 ? (double)NAN : 1;
        load_stats_ratio_interval(&interval, a, 8, b, 8);
        ck_assert(isnan(interval.low) && isnan(interval.middle) && isnan(interval.high));
        ck_assert(!interval.is_known);
    }
}
END_TEST

START_TEST(more_values_than_the_most_are_left_out)
{
    for (unsigned i = 0; i < MAX + 50; i++)
        a[i] = b[i] = i < MAX ? 1 + i % 2 : 1000;
    load_stats_median_interval(&interval, a, MAX + 50);
    ck_assert(interval.is_known && interval.high <= 2);
    ck_assert(load_stats_median(a, MAX + 50) == 1.5);
    load_stats_ratio_interval(&interval, a, MAX + 50, b, MAX + 50);
    ck_assert(interval.is_known && interval.high <= 2);
}
END_TEST

START_TEST(the_interval_of_a_median_holds_it_as_often_as_it_says)
{
    static const unsigned numbers[] = {6, 9, 20, 200};
    unsigned holds = 0, times = 2000;

    srandom(1);
    for (unsigned i = 0; i < times; i++) {
        for (unsigned j = 0; j < numbers[_i]; j++)
            a[j] = time_like(5);
        load_stats_median_interval(&interval, a, numbers[_i]);
        holds += interval.low <= 5 && 5 <= interval.high;
    }
    ck_assert_double_ge(holds / (double)times, 0.94);
    ck_assert_double_le(holds / (double)times, 0.985);
}
END_TEST

/* ---- Ratio ---- */

/* How many of the ratios lie below the interval. */
static unsigned
outside(unsigned a_number, unsigned b_number)
{
    unsigned pairs = 0;

    srandom(5);
    for (unsigned i = 0; i < a_number; i++)
        a[i] = time_like(3);
    for (unsigned i = 0; i < b_number; i++)
        b[i] = time_like(2);
    for (unsigned i = 0; i < a_number; i++)
        for (unsigned j = 0; j < b_number; j++)
            ratios[pairs++] = a[i] / b[j];
    qsort(ratios, pairs, sizeof(ratios[0]), by_value);
    load_stats_ratio_interval(&interval, a, a_number, b, b_number);
    ck_assert(interval.is_known);
    for (unsigned i = 0; i < pairs; i++)
        if (ratios[i] == interval.low) {
            ck_assert(ratios[pairs - 1 - i] == interval.high);
            return i;
        }
    ck_abort_msg("the low end is no ratio");
    return 0;
}

/* Critical values of U, two-sided, 0.05 (Mann and Whitney 1947, and every textbook). */
static const struct {
    unsigned a, b;
    unsigned critical;
} tables[] = {{6, 6, 5},    {7, 7, 8},    {8, 8, 13},   {9, 9, 17},    {10, 10, 23},
              {11, 11, 30}, {12, 12, 37}, {13, 13, 45}, {14, 14, 55},  {15, 15, 64},
              {16, 16, 75}, {17, 17, 87}, {18, 18, 99}, {19, 19, 113}, {20, 20, 127},
              {6, 7, 6},    {6, 8, 8},    {6, 10, 11},  {7, 8, 10},    {7, 10, 14},
              {8, 9, 15},   {8, 10, 17},  {9, 10, 20},  {6, 20, 27},   {10, 20, 55}};

START_TEST(the_interval_of_a_ratio_leaves_out_what_the_table_of_u_says)
{
    ck_assert_uint_eq(outside(tables[_i].a, tables[_i].b), tables[_i].critical);
    ck_assert_uint_eq(outside(tables[_i].b, tables[_i].a), tables[_i].critical);
}
END_TEST

/* The probability that U is at most `most`, over all ways to deal the ranks to two samples. */
static double
chance_of_u(unsigned a_number, unsigned b_number, unsigned most)
{
    unsigned all = 0, few = 0;

    for (unsigned hand = 0; hand < 1u << (a_number + b_number); hand++) {
        unsigned of_b = 0, u = 0;

        if ((unsigned)__builtin_popcount(hand) != a_number)
            continue;
        for (unsigned rank = 0; rank < a_number + b_number; rank++)
            if (hand >> rank & 1)
                u += of_b;
            else
                of_b++;
        all++;
        few += u <= most;
    }
    return (double)few / all;
}

START_TEST(the_interval_of_a_ratio_is_the_narrowest_that_is_right)
{
    unsigned a_number = 6 + (unsigned)_i % 4;
    unsigned b_number = 6 + (unsigned)_i / 4;
    unsigned left_out = outside(a_number, b_number);

    ck_assert_double_le(chance_of_u(a_number, b_number, left_out), 0.025);
    ck_assert_double_gt(chance_of_u(a_number, b_number, left_out + 1), 0.025);
}
END_TEST

/* For a family of three, each interval may be wrong in one of sixty cases: 0.05 / 3, two-sided. */
START_TEST(the_intervals_of_a_family_are_wider)
{
    struct load_interval one;

    for (unsigned i = 0; i < 8; i++) {
        a[i] = time_like(3);
        b[i] = time_like(2);
    }
    load_stats_ratio_interval(&one, a, 8, b, 8);
    load_stats_family_interval(&interval, a, 8, b, 8, 3);
    ck_assert(interval.is_known);
    ck_assert_double_lt(interval.low, one.low);
    ck_assert_double_gt(interval.high, one.high);
    ck_assert(interval.middle == one.middle);
}
END_TEST

/* With six values on each side, 2 of the 924 ways to deal the ranks have U = 0, one for each end:
 * 0.05 / 23 is more than that, 0.05 / 24 less. */
START_TEST(a_family_may_be_too_large_for_so_few_trials)
{
    for (unsigned i = 0; i < 70; i++)
        a[i] = b[i] = 5 + i;
    load_stats_family_interval(&interval, a, 6, b, 6, 23);
    ck_assert(interval.is_known);
    load_stats_family_interval(&interval, a, 6, b, 6, 24);
    ck_assert(!interval.is_known);
    load_stats_family_interval(&interval, a, 6, b, 70, 1);
    ck_assert(interval.is_known);
    load_stats_family_interval(&interval, a, 6, b, 70, 1000000);
    ck_assert(!interval.is_known);
}
END_TEST

START_TEST(all_intervals_of_a_family_hold_together)
{
    unsigned hold = 0, times = 500;

    srandom(4);
    for (unsigned i = 0; i < times; i++) {
        unsigned held = 0;

        for (unsigned figure = 0; figure < 4; figure++) {
            for (unsigned j = 0; j < 8; j++) {
                a[j] = time_like(5.5);
                b[j] = time_like(5);
            }
            load_stats_family_interval(&interval, a, 8, b, 8, 4);
            held += interval.low <= 1.1 && 1.1 <= interval.high;
        }
        hold += held == 4;
    }
    ck_assert_double_ge(hold / (double)times, 0.93);
}
END_TEST

/* Where the exact distribution ends, the normal approximation is equally good. */
START_TEST(the_normal_approximation_goes_on_where_the_exact_one_ends)
{
    ck_assert_uint_eq(outside(20, 20), 127);
    ck_assert_uint_ge(outside(20, 21), 131);
    ck_assert_uint_le(outside(20, 21), 135);
    ck_assert_uint_ge(outside(21, 21), 140);
    ck_assert_uint_le(outside(21, 21), 144);
    ck_assert_uint_le(outside(6, 67), 6 * 67 / 2);
}
END_TEST

START_TEST(the_interval_of_a_ratio_holds_it_as_often_as_it_says)
{
    static const unsigned numbers[] = {6, 8, 20, 30};
    unsigned holds = 0, times = _i < 3 ? 1500 : 500;

    srandom(3);
    for (unsigned i = 0; i < times; i++) {
        for (unsigned j = 0; j < numbers[_i]; j++) {
            a[j] = time_like(5.5);
            b[j] = time_like(5);
        }
        load_stats_ratio_interval(&interval, a, numbers[_i], b, numbers[_i]);
        holds += interval.low <= 1.1 && 1.1 <= interval.high;
    }
    ck_assert_double_ge(holds / (double)times, 0.935);
    ck_assert_double_le(holds / (double)times, 0.985);
}
END_TEST

START_TEST(the_ratio_turned_round_is_its_inverse)
{
    struct load_interval turned;

    outside(8, 11);
    load_stats_ratio_interval(&turned, b, 11, a, 8);
    ck_assert_double_eq_tol(turned.low, 1 / interval.high, 1e-12);
    ck_assert_double_eq_tol(turned.middle, 1 / interval.middle, 1e-12);
    ck_assert_double_eq_tol(turned.high, 1 / interval.low, 1e-12);
}
END_TEST

START_TEST(the_ratio_does_not_depend_on_the_unit)
{
    struct load_interval scaled;

    outside(8, 8);
    for (unsigned i = 0; i < 8; i++) {
        a[i] *= 1000;
        b[i] *= 1000;
    }
    load_stats_ratio_interval(&scaled, a, 8, b, 8);
    ck_assert_double_eq_tol(scaled.low, interval.low, 1e-12);
    ck_assert_double_eq_tol(scaled.high, interval.high, 1e-12);
}
END_TEST

START_TEST(the_same_values_are_no_difference)
{
    for (unsigned i = 0; i < 6; i++)
        a[i] = b[i] = 42;
    load_stats_ratio_interval(&interval, a, 6, b, 6);
    ck_assert(interval.is_known);
    ck_assert(interval.low == 1 && interval.middle == 1 && interval.high == 1);
    ck_assert(load_stats_width(&interval) == 0);
}
END_TEST

/* ---- Unknown values ---- */

static const struct {
    unsigned a, b;
    bool is_known;
} sizes[] = {{0, 0, false}, {0, 6, false}, {6, 0, false}, {1, 1, false},
             {5, 5, false}, {5, 9, false}, {9, 5, false}, {6, 6, true}};

START_TEST(fewer_than_six_on_a_side_say_nothing)
{
    for (unsigned i = 0; i < 9; i++) {
        a[i] = 10 + i;
        b[i] = 20 + i;
    }
    load_stats_ratio_interval(&interval, a, sizes[_i].a, b, sizes[_i].b);
    ck_assert(interval.is_known == sizes[_i].is_known);
    if (interval.is_known || sizes[_i].a == 0 || sizes[_i].b == 0)
        return;
    ck_assert(interval.low == 10 / (20. + sizes[_i].b - 1));
    ck_assert(interval.high == (10. + sizes[_i].a - 1) / 20);
    ck_assert(load_stats_width(&interval) == 1);
}
END_TEST

START_TEST(there_is_no_ratio_to_nothing)
{
    for (unsigned i = 0; i < 6; i++)
        a[i] = b[i] = 3;
    b[2] = 0;
    load_stats_ratio_interval(&interval, a, 6, b, 6);
    ck_assert(!interval.is_known);
    ck_assert(interval.low == 1 && interval.high == DBL_MAX);
    load_stats_ratio_interval(&interval, b, 6, a, 6);
    ck_assert(!interval.is_known);
    ck_assert(interval.low == 0 && interval.high == 1);
    a[0] = 0;
    load_stats_ratio_interval(&interval, a, 1, b + 2, 1);
    ck_assert(interval.low == 1 && interval.high == 1);
}
END_TEST

START_TEST(the_width_is_a_part_of_the_middle)
{
    interval = (struct load_interval){.low = 9, .middle = 10, .high = 12, .is_known = true};
    ck_assert_double_eq_tol(load_stats_width(&interval), 0.3, 1e-12);
    interval.middle = 0;
    ck_assert(load_stats_width(&interval) == 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-stats");
    TCase *tcase = tcase_create("stats");

    tcase_add_loop_test(tcase, a_median_is_the_middle_one_or_between_the_two, 0, COUNT(medians));
    tcase_add_loop_test(tcase, the_interval_of_a_median_is_that_of_the_table, 0, COUNT(orders));
    tcase_add_test(tcase, the_interval_of_no_values_is_nothing);
    tcase_add_test(tcase, a_value_that_cannot_be_told_leaves_no_interval);
    tcase_add_test(tcase, more_values_than_the_most_are_left_out);
    tcase_add_loop_test(tcase, the_interval_of_a_median_holds_it_as_often_as_it_says, 0, 4);
    tcase_add_loop_test(tcase, the_interval_of_a_ratio_leaves_out_what_the_table_of_u_says, 0,
                        COUNT(tables));
    tcase_add_loop_test(tcase, the_interval_of_a_ratio_is_the_narrowest_that_is_right, 0, 16);
    tcase_add_test(tcase, the_intervals_of_a_family_are_wider);
    tcase_add_test(tcase, a_family_may_be_too_large_for_so_few_trials);
    tcase_add_test(tcase, all_intervals_of_a_family_hold_together);
    tcase_add_test(tcase, the_normal_approximation_goes_on_where_the_exact_one_ends);
    tcase_add_loop_test(tcase, the_interval_of_a_ratio_holds_it_as_often_as_it_says, 0, 4);
    tcase_add_test(tcase, the_ratio_turned_round_is_its_inverse);
    tcase_add_test(tcase, the_ratio_does_not_depend_on_the_unit);
    tcase_add_test(tcase, the_same_values_are_no_difference);
    tcase_add_loop_test(tcase, fewer_than_six_on_a_side_say_nothing, 0, COUNT(sizes));
    tcase_add_test(tcase, there_is_no_ratio_to_nothing);
    tcase_add_test(tcase, the_width_is_a_part_of_the_middle);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
