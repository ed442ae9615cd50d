/* SPDX-License-Identifier: MIT
 *
 * The histogram. Oracle: all recorded values in a sorted array.
 */
#include "../../../../apps/http/stats/histogram.h"

#include <math.h>
#include <stdlib.h>

#include "test-main.h"

#define US   UINT64_C(1000)
#define HOUR LOAD_HISTOGRAM_MAX_NS

static struct load_histogram histogram;

static void
record_many(struct load_histogram *to, uint64_t ns, unsigned times)
{
    while (times-- > 0)
        load_histogram_record(to, ns);
}

/* ---- Values ---- */

START_TEST(an_empty_histogram_answers_zero)
{
    struct load_bucket found;
    unsigned bucket = 0;

    ck_assert_uint_eq(load_histogram_quantile(&histogram, 0), 0);
    ck_assert_uint_eq(load_histogram_quantile(&histogram, 0.5), 0);
    ck_assert_uint_eq(load_histogram_quantile(&histogram, 1), 0);
    ck_assert(load_histogram_mean_ns(&histogram) == 0);
    ck_assert(load_histogram_deviation_ns(&histogram) == 0);
    ck_assert(!load_histogram_can_tell(&histogram, 0.5));
    ck_assert(!load_histogram_next(&histogram, &bucket, &found));
    ck_assert(!load_histogram_next(&histogram, &bucket, &found));
}
END_TEST

/* Values around each power of two of a us, where the widths of buckets change. */
START_TEST(a_value_is_answered_at_most_a_1024th_and_1_us_too_long)
{
    uint64_t edge = US << _i;

    for (uint64_t ns = edge - US - 501; ns <= edge + US + 501; ns += 167) {
        uint64_t answer;

        histogram = (struct load_histogram){0};
        load_histogram_record(&histogram, ns);
        ck_assert_uint_eq(load_histogram_quantile(&histogram, 1), ns);
        load_histogram_record(&histogram, HOUR);
        answer = load_histogram_quantile(&histogram, 0.5);
        ck_assert_uint_ge(answer, ns);
        ck_assert_uint_le(answer - ns, ns / 1024 + US);
    }
}
END_TEST

START_TEST(buckets_are_a_us_wide_and_durations_rounded_up)
{
    static const uint64_t ns[] = {0, 1, 1000, 1001, 2000, 2047000, 2047001};
    static const struct load_bucket expected[] = {
        {0, 0, 1}, {1, 1000, 2}, {1001, 2000, 2}, {2046001, 2047000, 1}, {2047001, 2047001, 1},
    };
    struct load_bucket found;
    unsigned bucket = 0;

    for (unsigned i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
        load_histogram_record(&histogram, ns[i]);
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        ck_assert(load_histogram_next(&histogram, &bucket, &found));
        ck_assert_uint_eq(found.from_ns, expected[i].from_ns);
        ck_assert_uint_eq(found.to_ns, expected[i].to_ns);
        ck_assert_uint_eq(found.count, expected[i].count);
    }
    ck_assert(!load_histogram_next(&histogram, &bucket, &found));
}
END_TEST

/* One value in each bucket: buckets do not overlap, and leave no gap. */
START_TEST(each_bucket_begins_where_the_one_before_it_ends)
{
    struct load_bucket found;
    unsigned bucket = 0, number = 0;
    uint64_t next_ns = 0;

    for (uint64_t us = 0; us <= HOUR / US;) {
        load_histogram_record(&histogram, us * US);
        us += us < 2048 ? 1 : UINT64_C(1) << (53 - __builtin_clzll(us));
    }
    load_histogram_record(&histogram, HOUR);
    while (load_histogram_next(&histogram, &bucket, &found)) {
        ck_assert_uint_eq(found.from_ns, next_ns);
        next_ns = found.to_ns + 1;
        number++;
    }
    ck_assert_uint_eq(next_ns, HOUR + 1);
    ck_assert_uint_le(number, LOAD_HISTOGRAM_BUCKETS);
    ck_assert_uint_ge(number, LOAD_HISTOGRAM_BUCKETS * 9 / 10);
}
END_TEST

START_TEST(what_takes_longer_than_an_hour_is_counted_as_an_hour)
{
    struct load_bucket found;
    unsigned bucket = 0;

    load_histogram_record(&histogram, HOUR);
    load_histogram_record(&histogram, HOUR * 3);
    load_histogram_record(&histogram, HOUR * 1000);
    ck_assert(load_histogram_next(&histogram, &bucket, &found));
    ck_assert_uint_eq(found.count, 3);
    ck_assert_uint_le(found.from_ns, HOUR);
    ck_assert_uint_eq(found.to_ns, HOUR * 1000);
    ck_assert(!load_histogram_next(&histogram, &bucket, &found));
    ck_assert_uint_eq(histogram.min_ns, HOUR);
    ck_assert_uint_eq(histogram.max_ns, HOUR * 1000);
    ck_assert_uint_eq(histogram.sum_ns, HOUR * 1004);
}
END_TEST

/* ---- Quantiles ---- */

START_TEST(a_quantile_is_the_first_value_that_so_many_do_not_exceed)
{
    for (uint64_t us = 1; us <= 100; us++)
        load_histogram_record(&histogram, us * US);
    for (unsigned i = 1; i <= 100; i++)
        ck_assert_uint_eq(load_histogram_quantile(&histogram, i / 100.), i * US);
    ck_assert_uint_eq(load_histogram_quantile(&histogram, 0), 1 * US);
    ck_assert_uint_eq(load_histogram_quantile(&histogram, 0.001), 1 * US);
    ck_assert_uint_eq(load_histogram_quantile(&histogram, 0.501), 51 * US);
}
END_TEST

static const struct {
    double fraction;
    unsigned needed;
} told[] = {{0.5, 20}, {0.9, 100}, {0.99, 1000}, {0.999, 10000}, {0.9999, 100000}};

START_TEST(a_percentile_takes_ten_samples_beyond_it)
{
    record_many(&histogram, 7 * US, told[_i].needed - 1);
    ck_assert(!load_histogram_can_tell(&histogram, told[_i].fraction));
    record_many(&histogram, 7 * US, 1);
    ck_assert(load_histogram_can_tell(&histogram, told[_i].fraction));
    ck_assert(!load_histogram_can_tell(&histogram, 1));
}
END_TEST

/* ---- Oracle ---- */

#define VALUES 5000

static int
by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* A random value of any magnitude from 0 to an hour. */
static uint64_t
random_ns(void)
{
    uint64_t ns = ((uint64_t)random() << 31 | (uint64_t)random()) >> (20 + random() % 42);

    return ns < HOUR ? ns : HOUR;
}

START_TEST(many_values_are_told_as_a_sorted_array_tells_them)
{
    static uint64_t values[VALUES];
    uint64_t sum = 0;

    srandom((unsigned)_i + 1);
    for (unsigned i = 0; i < VALUES; i++) {
        values[i] = random_ns();
        sum += values[i];
        load_histogram_record(&histogram, values[i]);
    }
    qsort(values, VALUES, sizeof(values[0]), by_value);
    ck_assert_uint_eq(histogram.count, VALUES);
    ck_assert_uint_eq(histogram.sum_ns, sum);
    ck_assert_uint_eq(histogram.min_ns, values[0]);
    ck_assert_uint_eq(histogram.max_ns, values[VALUES - 1]);
    for (unsigned i = 1; i <= VALUES; i++) {
        uint64_t answer = load_histogram_quantile(&histogram, (i - 0.5) / VALUES);

        ck_assert_uint_ge(answer, values[i - 1]);
        ck_assert_uint_le(answer - values[i - 1], values[i - 1] / 1024 + US);
    }
}
END_TEST

START_TEST(mean_is_exact_and_deviation_nearly)
{
    double squares = 0;

    record_many(&histogram, 100 * US, 3000);
    record_many(&histogram, 50000 * US, 1000);
    ck_assert(load_histogram_mean_ns(&histogram) == 12575 * US);
    squares = 3000 * pow((12575 - 100) * US, 2) + 1000 * pow((50000 - 12575) * US, 2);
    ck_assert_double_eq_tol(load_histogram_deviation_ns(&histogram), sqrt(squares / 4000),
                            sqrt(squares / 4000) / 1000);
}
END_TEST

/* Waiting times of 584 years in total, as an overload of hours can cause. */
START_TEST(a_sum_beyond_its_type_stays_there_and_the_mean_comes_from_the_buckets)
{
    static struct load_histogram earlier;

    record_many(&histogram, HOUR * 2000000, 2);
    earlier = histogram;
    ck_assert(load_histogram_mean_ns(&histogram) == (double)HOUR * 2000000);
    record_many(&histogram, HOUR, 2);
    record_many(&histogram, HOUR * 2000000, 1);
    ck_assert_uint_eq(histogram.sum_ns, UINT64_MAX);
    record_many(&histogram, HOUR / 2, 5);
    ck_assert_double_eq_tol(load_histogram_mean_ns(&histogram), HOUR * 0.75, HOUR / 1000.);
    load_histogram_subtract(&histogram, &earlier);
    ck_assert_uint_eq(histogram.sum_ns, UINT64_MAX);
    load_histogram_add(&earlier, &histogram);
    ck_assert_uint_eq(earlier.sum_ns, UINT64_MAX);
}
END_TEST

/* ---- Sum and difference ---- */

START_TEST(adding_is_recording_all_in_one)
{
    static struct load_histogram parts[3], sum;

    srandom((unsigned)_i + 1);
    for (unsigned i = 0; i < VALUES; i++) {
        uint64_t ns = random_ns();

        load_histogram_record(&parts[random() % 2], ns);
        load_histogram_record(&histogram, ns);
    }
    for (unsigned i = 0; i < 3; i++) {
        load_histogram_add(&sum, &parts[i]);
        load_histogram_add(&sum, &(struct load_histogram){0});
    }
    ck_assert_mem_eq(&sum, &histogram, sizeof(sum));
}
END_TEST

START_TEST(subtracting_leaves_what_came_later)
{
    static struct load_histogram earlier, later;
    struct load_bucket lowest = {0}, found;
    unsigned bucket = 0;

    srandom((unsigned)_i + 1);
    for (unsigned i = 0; i < VALUES; i++) {
        uint64_t ns = random_ns();

        if (i == VALUES / 2)
            earlier = histogram;
        if (i >= VALUES / 2)
            load_histogram_record(&later, ns);
        load_histogram_record(&histogram, ns);
    }
    load_histogram_subtract(&histogram, &earlier);
    ck_assert_uint_eq(histogram.count, later.count);
    ck_assert_uint_eq(histogram.sum_ns, later.sum_ns);
    ck_assert_mem_eq(histogram.buckets, later.buckets, sizeof(later.buckets));
    ck_assert(load_histogram_next(&later, &bucket, &lowest));
    ck_assert_uint_le(histogram.min_ns, later.min_ns);
    ck_assert_uint_ge(histogram.min_ns, lowest.from_ns);
    while (load_histogram_next(&later, &bucket, &found))
        ;
    ck_assert_uint_ge(histogram.max_ns, later.max_ns);
    ck_assert_uint_le(histogram.max_ns - later.max_ns, later.max_ns / 1024 + US);
}
END_TEST

START_TEST(subtracting_leaves_the_extremes_of_the_buckets)
{
    static struct load_histogram earlier;

    load_histogram_record(&histogram, 2 * US);
    load_histogram_record(&histogram, 9000 * US);
    earlier = histogram;
    load_histogram_record(&histogram, 70 * US);
    load_histogram_record(&histogram, 80 * US);
    load_histogram_subtract(&histogram, &earlier);
    ck_assert_uint_eq(histogram.min_ns, 69001);
    ck_assert_uint_eq(histogram.max_ns, 80000);
}
END_TEST

START_TEST(subtracting_nothing_leaves_the_extremes_exact)
{
    load_histogram_record(&histogram, 1234567);
    load_histogram_subtract(&histogram, &(struct load_histogram){0});
    ck_assert_uint_eq(histogram.min_ns, 1234567);
    ck_assert_uint_eq(histogram.max_ns, 1234567);
}
END_TEST

START_TEST(subtracting_all_leaves_an_empty_one)
{
    static struct load_histogram copy;

    record_many(&histogram, 1234567, 9);
    copy = histogram;
    load_histogram_subtract(&histogram, &copy);
    ck_assert_mem_eq(&histogram, &(struct load_histogram){0}, sizeof(histogram));
}
END_TEST

/* Another process records while this one reads, so the count may be ahead of the buckets. */
START_TEST(a_count_that_is_ahead_of_its_buckets_does_no_harm)
{
    record_many(&histogram, 5 * US, 3);
    histogram.count += 2;
    ck_assert_uint_eq(load_histogram_quantile(&histogram, 1), 5 * US);
}
END_TEST

static struct load_histogram copy;

START_TEST(a_copy_is_brought_up_to_date)
{
    for (unsigned i = 0; i < 3; i++) {
        load_histogram_update(&copy, &histogram);
        ck_assert_mem_eq(&copy, &histogram, sizeof(copy));
        record_many(&histogram, (70 - 30 * i) * US, 3);
        load_histogram_record(&histogram, HOUR + i);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-histogram");
    TCase *values = tcase_create("values");
    TCase *sums = tcase_create("sums");

    tcase_add_test(values, an_empty_histogram_answers_zero);
    tcase_add_loop_test(values, a_value_is_answered_at_most_a_1024th_and_1_us_too_long, 1, 32);
    tcase_add_test(values, buckets_are_a_us_wide_and_durations_rounded_up);
    tcase_add_test(values, each_bucket_begins_where_the_one_before_it_ends);
    tcase_add_test(values, what_takes_longer_than_an_hour_is_counted_as_an_hour);
    tcase_add_test(values, a_quantile_is_the_first_value_that_so_many_do_not_exceed);
    tcase_add_loop_test(values, a_percentile_takes_ten_samples_beyond_it, 0, 5);
    tcase_add_loop_test(values, many_values_are_told_as_a_sorted_array_tells_them, 0, 5);
    tcase_add_test(values, mean_is_exact_and_deviation_nearly);
    tcase_add_test(values, a_sum_beyond_its_type_stays_there_and_the_mean_comes_from_the_buckets);
    tcase_add_loop_test(sums, adding_is_recording_all_in_one, 0, 5);
    tcase_add_loop_test(sums, subtracting_leaves_what_came_later, 0, 5);
    tcase_add_test(sums, subtracting_leaves_the_extremes_of_the_buckets);
    tcase_add_test(sums, subtracting_nothing_leaves_the_extremes_exact);
    tcase_add_test(sums, subtracting_all_leaves_an_empty_one);
    tcase_add_test(sums, a_count_that_is_ahead_of_its_buckets_does_no_harm);
    tcase_add_test(sums, a_copy_is_brought_up_to_date);
    suite_add_tcase(suite, values);
    suite_add_tcase(suite, sums);
    return sxe_test_main(suite);
}
