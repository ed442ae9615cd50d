/* SPDX-License-Identifier: MIT */
#include "../../apps/http/histogram.h"

#include <stdlib.h>

#include "test-main.h"

static struct http_histogram histogram;

START_TEST(an_empty_histogram_answers_zero)
{
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 0), 0);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 0.5), 0);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 1), 0);
}
END_TEST

/* Around each power of two, the edges of all buckets' widths. */
START_TEST(a_value_is_answered_at_most_a_64th_too_long)
{
    uint64_t edge = _i == 64 ? 0 : UINT64_C(1) << _i;

    for (uint64_t value = edge - 2; value != edge + 3; value++) {
        uint64_t answer;

        histogram = (struct http_histogram){0};
        http_histogram_record(&histogram, value);
        ck_assert_uint_eq(http_histogram_quantile(&histogram, 1), value);
        http_histogram_record(&histogram, UINT64_MAX);
        answer = http_histogram_quantile(&histogram, 0.5);
        ck_assert_uint_ge(answer, value);
        ck_assert_uint_le(answer - value, value / 64);
        ck_assert_uint_eq(http_histogram_quantile(&histogram, 1), UINT64_MAX);
    }
}
END_TEST

START_TEST(the_longest_is_exact)
{
    http_histogram_record(&histogram, 1000003);
    http_histogram_record(&histogram, 1000001);
    ck_assert_uint_eq(histogram.max_ns, 1000003);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 0.5), 1000003);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 1), 1000003);
}
END_TEST

START_TEST(a_quantile_is_the_first_value_that_so_many_do_not_exceed)
{
    for (uint64_t value = 1; value <= 100; value++)
        http_histogram_record(&histogram, value);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 0.001), 1);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 0.5), 50);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 0.501), 51);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 0.99), 99);
    ck_assert_uint_eq(http_histogram_quantile(&histogram, 1), 100);
}
END_TEST

#define VALUES 5000

static int
by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* Oracle: all values, sorted. */
START_TEST(quantiles_of_many_are_those_of_a_sorted_array)
{
    static uint64_t values[VALUES];

    srandom((unsigned)_i + 1);
    for (unsigned i = 0; i < VALUES; i++) {
        values[i] = (uint64_t)random() << (random() % 20) >> (random() % 30);
        http_histogram_record(&histogram, values[i]);
    }
    qsort(values, VALUES, sizeof(values[0]), by_value);
    for (unsigned i = 1; i <= VALUES; i++) {
        uint64_t answer = http_histogram_quantile(&histogram, (i - 0.5) / VALUES);

        ck_assert_uint_ge(answer, values[i - 1]);
        ck_assert_uint_le(answer - values[i - 1], values[i - 1] / 64);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-histogram");
    TCase *tcase = tcase_create("histogram");

    tcase_add_test(tcase, an_empty_histogram_answers_zero);
    tcase_add_loop_test(tcase, a_value_is_answered_at_most_a_64th_too_long, 1, 65);
    tcase_add_test(tcase, the_longest_is_exact);
    tcase_add_test(tcase, a_quantile_is_the_first_value_that_so_many_do_not_exceed);
    tcase_add_loop_test(tcase, quantiles_of_many_are_those_of_a_sorted_array, 0, 5);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
