/* SPDX-License-Identifier: MIT
 *
 * Whether a server is warm, decided by simulated windows: rates, means and p99 of servers of all
 * kinds.
 */
#include "warmup.h"

#include <stdlib.h>
#include <string.h>

#include "test-main.h"

#define WINDOW_NS UINT64_C(100000000)
#define OK        1000u
#define RUNS      1000

static struct load_warmup warmup;
static struct load_histogram response;

/* A random number between -1 and 1. */
static double
noise(void)
{
    return (double)random() / (double)RAND_MAX * 2 - 1;
}

/* Add a window with 1,000 replies; each 50th reply takes ten times as long. */
static bool
add(double ms, uint64_t ok)
{
    memset(&response, 0, sizeof(response));
    for (unsigned i = 0; i < OK; i++)
        load_histogram_record(&response, (uint64_t)(ms * 1e6 * (i % 50 == 0 ? 10 : 1)));
    return load_warmup_add(&warmup, WINDOW_NS, ok, &response);
}

/* How many windows it takes until the server is warm, at most 100. */
static unsigned
windows_of(double (*ms)(unsigned))
{
    unsigned number = 0;

    memset(&warmup, 0, sizeof(warmup));
    while (number < 100 && load_warmup_problem(&warmup) != NULL)
        ck_assert(add(ms(number++), OK));
    return number;
}

static unsigned
most_windows_of(double (*ms)(unsigned))
{
    unsigned most = 0;

    for (unsigned i = 0; i < RUNS / 20; i++) {
        unsigned number = windows_of(ms);

        most = number > most ? number : most;
    }
    return most;
}

static double
steady(unsigned window)
{
    (void)window;
    return 1;
}

static double
noisy(unsigned window)
{
    (void)window;
    return 5 + 3 * noise();
}

/* A server that collects garbage in a third of the windows. */
static double
bimodal(unsigned window)
{
    (void)window;
    return random() % 3 == 0 ? 9 + noise() : 1 + 0.1 * noise();
}

static double
falling(unsigned window)
{
    return 100 - window;
}

static double
falling_in_noise(unsigned window)
{
    return 100 - window + noise();
}

static double
decaying(unsigned window)
{
    return 1 + 50.0 / (1u << (window < 31 ? window : 31)) + 0.05 * noise();
}

static double
step_after_six(unsigned window)
{
    return window < 6 ? 50 : 5;
}

static double
drifting_by_little(unsigned window)
{
    return 100 + 0.2 * window;
}

static double
stopped_once(unsigned window)
{
    return window == 3 ? 500 : 5;
}

START_TEST(what_stays_the_same_is_warm_after_ten_windows)
{
    for (unsigned i = 0; i < 9; i++) {
        ck_assert(add(1, OK));
        ck_assert_str_eq(load_warmup_problem(&warmup), "too few good replies to tell");
    }
    ck_assert(add(1, OK));
    ck_assert_ptr_null(load_warmup_problem(&warmup));
    ck_assert_uint_eq(windows_of(steady), 10);
}
END_TEST

/* Chance makes a series without a trend look like one with a trend in one of twenty cases; one
 * window later it is another series. */
START_TEST(noise_is_no_trend)
{
    unsigned at_once = 0;

    for (unsigned i = 0; i < RUNS; i++)
        at_once += windows_of(_i == 0 ? noisy : bimodal) == 10;
    ck_assert_uint_gt(at_once, RUNS * 85 / 100);
    ck_assert_uint_lt(most_windows_of(_i == 0 ? noisy : bimodal), 40);
}
END_TEST

START_TEST(what_falls_is_not_warm)
{
    ck_assert_uint_eq(windows_of(falling), 100);
    ck_assert_str_eq(load_warmup_problem(&warmup), "the mean of response times has a trend");
    ck_assert_uint_gt(windows_of(falling_in_noise), 50);
}
END_TEST

START_TEST(what_has_fallen_is_warm)
{
    for (unsigned i = 0; i < 20; i++) {
        unsigned number = windows_of(decaying);

        ck_assert_uint_gt(number, 10);
        ck_assert_uint_lt(number, 40);
    }
}
END_TEST

/* Then three of the ten windows are from before the step, too few for a trend. */
START_TEST(a_step_is_a_trend_until_most_windows_are_behind_it)
{
    ck_assert_uint_eq(windows_of(step_after_six), 13);
}
END_TEST

START_TEST(a_trend_of_less_than_two_percent_is_none)
{
    ck_assert_uint_eq(windows_of(drifting_by_little), 10);
}
END_TEST

START_TEST(one_window_that_stood_still_decides_nothing)
{
    ck_assert_uint_eq(windows_of(stopped_once), 10);
}
END_TEST

START_TEST(a_rate_may_have_a_trend_alone)
{
    for (unsigned i = 0; i < 10; i++)
        ck_assert(add(1, OK - 50 * i));
    ck_assert_str_eq(load_warmup_problem(&warmup), "the rate has a trend");
}
END_TEST

/* 20 of 1,000 replies are slow, too few to change the mean. */
START_TEST(a_p99_may_have_a_trend_alone)
{
    for (unsigned window = 0; window < 10; window++) {
        memset(&response, 0, sizeof(response));
        for (unsigned i = 0; i < OK; i++)
            load_histogram_record(&response, i % 50 == 0 ? 1000000 + 10000 * window : 900000);
        ck_assert(load_warmup_add(&warmup, WINDOW_NS, OK, &response));
    }
    ck_assert_str_eq(load_warmup_problem(&warmup), "the p99 of response times has a trend");
}
END_TEST

START_TEST(a_window_with_few_good_replies_is_none)
{
    for (unsigned i = 0; i < 20; i++) {
        ck_assert(!add(1, LOAD_WARMUP_REPLIES - 1));
        ck_assert(!add(1, 0));
    }
    ck_assert_uint_eq(warmup.number, 0);
    ck_assert_str_eq(load_warmup_problem(&warmup), "too few good replies to tell");
    ck_assert(add(1, LOAD_WARMUP_REPLIES));
    ck_assert_uint_eq(warmup.number, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-warmup");
    TCase *tcase = tcase_create("warmup");

    tcase_add_test(tcase, what_stays_the_same_is_warm_after_ten_windows);
    tcase_add_loop_test(tcase, noise_is_no_trend, 0, 2);
    tcase_add_test(tcase, what_falls_is_not_warm);
    tcase_add_test(tcase, what_has_fallen_is_warm);
    tcase_add_test(tcase, a_step_is_a_trend_until_most_windows_are_behind_it);
    tcase_add_test(tcase, a_trend_of_less_than_two_percent_is_none);
    tcase_add_test(tcase, one_window_that_stood_still_decides_nothing);
    tcase_add_test(tcase, a_rate_may_have_a_trend_alone);
    tcase_add_test(tcase, a_p99_may_have_a_trend_alone);
    tcase_add_test(tcase, a_window_with_few_good_replies_is_none);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
