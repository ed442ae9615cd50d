/* SPDX-License-Identifier: MIT
 *
 * Reading the CPU pressure that the kernel reports.
 */
#include "pressure.h"

#include <stdio.h>

#include "sxe-time.h"
#include "test-main.h"

static struct load_pressure
read_text(const char *text)
{
    FILE *file = tmpfile();
    struct load_pressure pressure;
    char path[32];

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fflush(file);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
    pressure = load_pressure_read(path);
    fclose(file);
    return pressure;
}

START_TEST(the_first_line_has_the_time_that_some_process_waited)
{
    uint64_t before_ns = sxe_time_ns();
    struct load_pressure pressure =
        read_text("some avg10=1.53 avg60=0.87 avg300=0.65 total=58761459\n"
                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");

    ck_assert_uint_eq(pressure.stalled_us, 58761459);
    ck_assert_uint_ge(pressure.at_ns, before_ns);
    ck_assert_uint_le(pressure.at_ns, sxe_time_ns());
}
END_TEST

static const char *const others[] = {"", "full avg10=1.53 avg60=0.87 avg300=0.65 total=1\n",
                                     "some avg10=1.53 avg60=0.87 avg300=0\n"};

START_TEST(where_the_kernel_does_not_say_it_is_not_known)
{
    double part = 1;
    struct load_pressure known = {.at_ns = 1};
    struct load_pressure unknown =
        _i < 3 ? read_text(others[_i]) : load_pressure_read("/none/pressure/cpu");

    ck_assert_uint_eq(unknown.at_ns, 0);
    ck_assert(!load_pressure_between(&part, &known, &unknown));
    ck_assert_double_eq(part, 0);
    ck_assert(!load_pressure_between(&part, &unknown, &known));
}
END_TEST

START_TEST(it_is_a_part_of_the_time_between_and_no_more_than_all)
{
    double part = 0;
    struct load_pressure from = {.at_ns = 5 * SXE_NS_PER_SECOND, .stalled_us = 100};
    struct load_pressure to = {.at_ns = 7 * SXE_NS_PER_SECOND, .stalled_us = 500100};

    ck_assert(load_pressure_between(&part, &from, &to));
    ck_assert_double_eq_tol(part, 0.25, 1e-9);
    to.stalled_us = 2000200;
    ck_assert(load_pressure_between(&part, &from, &to));
    ck_assert_double_eq(part, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-pressure");
    TCase *tcase = tcase_create("pressure");

    tcase_add_test(tcase, the_first_line_has_the_time_that_some_process_waited);
    tcase_add_loop_test(tcase, where_the_kernel_does_not_say_it_is_not_known, 0, 4);
    tcase_add_test(tcase, it_is_a_part_of_the_time_between_and_no_more_than_all);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
