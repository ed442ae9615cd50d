/* SPDX-License-Identifier: MIT
 *
 * Tests the clocks, and the dates that the log makes of their times.
 */
#include "sxe-time.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-log-private.h"
#include "test-main.h"

/* ---- Clocks ---- */

START_TEST(the_monotonic_clock_is_in_nanoseconds)
{
    fake_time_start(5 * SXE_NS_PER_SECOND + 7, 0);
    ck_assert_uint_eq(sxe_time_ns(), 5 * SXE_NS_PER_SECOND + 7);
    fake_time_advance(3 * SXE_NS_PER_MS);
    ck_assert_uint_eq(sxe_time_ns(), 5 * SXE_NS_PER_SECOND + 7 + 3 * SXE_NS_PER_MS);
}
END_TEST

START_TEST(setting_the_wall_clock_does_not_move_the_monotonic_one)
{
    fake_time_start(1000, 1000 * SXE_NS_PER_SECOND);
    fake_time_step_wall(-500 * (int64_t)SXE_NS_PER_SECOND);
    ck_assert_uint_eq(sxe_time_ns(), 1000);
    ck_assert_double_eq(sxe_get_time_in_seconds(), 500.0);
}
END_TEST

START_TEST(wall_time_has_fractions_of_a_second)
{
    fake_time_start(0, UINT64_C(1286043102250) * SXE_NS_PER_MS);
    ck_assert_double_eq_tol(sxe_get_time_in_seconds(), 1286043102.25, 1e-6);
}
END_TEST

START_TEST(without_a_loop_the_turn_is_now)
{
    fake_time_start(100, 0);
    ck_assert_uint_eq(sxe_time_turn_ns(), 100);
    fake_time_advance(11);
    ck_assert_uint_eq(sxe_time_turn_ns(), 111);
}
END_TEST

START_TEST(the_time_of_a_turn_stands_still_and_costs_no_call)
{
    fake_time_start(100, 0);
    sxe_time_set_turn_ns(77);
    unsigned calls = fake_os_calls(FAKE_CLOCK_GETTIME);
    fake_time_advance(11);
    ck_assert_uint_eq(sxe_time_turn_ns(), 77);
    ck_assert_uint_eq(fake_os_calls(FAKE_CLOCK_GETTIME), calls);
    sxe_time_set_turn_ns(0);
    ck_assert_uint_eq(sxe_time_turn_ns(), 111);
}
END_TEST

static void *
turn_of_this_thread(void *answer)
{
    *(uint64_t *)answer = sxe_time_turn_ns();
    return NULL;
}

START_TEST(each_thread_has_its_own_turn)
{
    uint64_t answer = 0;
    pthread_t thread;

    fake_time_start(100, 0);
    sxe_time_set_turn_ns(77);
    ck_assert_int_eq(pthread_create(&thread, NULL, turn_of_this_thread, &answer), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(answer, 100);
}
END_TEST

START_TEST(the_real_clock_never_goes_back)
{
    uint64_t last = sxe_time_ns();

    for (int i = 0; i < 1000; i++) {
        uint64_t now = sxe_time_ns();

        ck_assert_uint_ge(now, last);
        last = now;
    }
}
END_TEST

/* ---- Dates ---- */

static void
check_date(int64_t second)
{
    time_t time = second;
    struct tm tm;
    char expected[64];
    char digits[15] = "";

    gmtime_r(&time, &tm);
    strftime(expected, sizeof(expected), "%Y%m%d%H%M%S", &tm);
    sxe__log_date(digits, second);
    ck_assert_str_eq(digits, expected);
}

START_TEST(dates_are_those_of_libc_each_day_of_four_centuries)
{
    for (int64_t day = -366; day < 146097 + 366; day++)
        check_date(day * 86400 + day * 7919 % 86400);
}
END_TEST

static const int64_t seconds[] = {
    0,          -1,         86399,      86400,       951782399,   951782400,    951868800,
    1286043102, 4107542399, 4107542400, 13574563200, -2203891200, 253402300799, -62135596800,
};

START_TEST(dates_at_the_edges_are_those_of_libc)
{
    char year[16];
    time_t time = seconds[_i];
    struct tm tm;

    gmtime_r(&time, &tm);
    ck_assert_uint_lt(strftime(year, sizeof(year), "%Y", &tm), sizeof(year));
    if (strlen(year) == 4)
        check_date(seconds[_i]);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("time");
    TCase *tcase = tcase_create("clocks");

    tcase_add_test(tcase, the_monotonic_clock_is_in_nanoseconds);
    tcase_add_test(tcase, setting_the_wall_clock_does_not_move_the_monotonic_one);
    tcase_add_test(tcase, wall_time_has_fractions_of_a_second);
    tcase_add_test(tcase, without_a_loop_the_turn_is_now);
    tcase_add_test(tcase, the_time_of_a_turn_stands_still_and_costs_no_call);
    tcase_add_test(tcase, each_thread_has_its_own_turn);
    tcase_add_test(tcase, the_real_clock_never_goes_back);
    tcase_add_test(tcase, dates_are_those_of_libc_each_day_of_four_centuries);
    tcase_add_loop_test(tcase, dates_at_the_edges_are_those_of_libc, 0,
                        (int)(sizeof(seconds) / sizeof(seconds[0])));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
