/* SPDX-License-Identifier: MIT
 *
 * Numbers for people: three digits, also if rounding would make a fourth.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test-main.h"
#include "text.h"

static const struct {
    uint64_t ns;
    const char *expected;
} times[] = {
    {0, "0.00 us"},
    {400, "0.40 us"},
    {9994, "9.99 us"},
    {9996, "10.0 us"},
    {41000, "41.0 us"},
    {99940, "99.9 us"},
    {99960, "100 us"},
    {999400, "999 us"},
    {999600, "1.00 ms"},
    {3100000, "3.10 ms"},
    {999600000, "1.00 s"},
    {1500000000, "1.50 s"},
    {UINT64_C(3600000000000), "3600 s"},
};

START_TEST(a_time_has_three_digits_and_a_unit)
{
    ck_assert_str_eq(load_time_text(times[_i].ns), times[_i].expected);
}
END_TEST

static const struct {
    double number;
    const char *expected;
} numbers[] = {
    {0, "0"},         {7, "7"},          {999, "999"},       {2.5, "2.50"},      {999.6, "1.00k"},
    {59171, "59.2k"}, {999600, "1.00M"}, {1234567, "1.23M"}, {999.6e6, "1.00G"}, {2e9, "2.00G"},
};

START_TEST(a_number_has_three_digits_and_a_suffix)
{
    ck_assert_str_eq(load_number_text(numbers[_i].number), numbers[_i].expected);
}
END_TEST

START_TEST(a_chosen_time_is_said_as_short_as_possible)
{
    ck_assert_str_eq(load_duration_text(UINT64_C(10000000000)), "10 s");
    ck_assert_str_eq(load_duration_text(UINT64_C(1500000000)), "1.5 s");
    ck_assert_str_eq(load_duration_text(250000000), "250 ms");
    ck_assert_str_eq(load_duration_text(50000), "50 us");
}
END_TEST

START_TEST(a_text_is_good_until_the_sixteenth_call_from_now)
{
    const char *first = load_time_text(1000);

    for (unsigned i = 0; i < 15; i++)
        load_number_text(i);
    ck_assert_str_eq(first, "1.00 us");
}
END_TEST

START_TEST(a_percentile_with_fewer_than_ten_samples_beyond_is_not_told)
{
    static struct load_histogram histogram;

    ck_assert_str_eq(load_percentile_text(&histogram, 0.5), "n/a");
    for (unsigned i = 0; i < 20; i++)
        load_histogram_record(&histogram, 5000);
    ck_assert_str_eq(load_percentile_text(&histogram, 0.5), "5.00 us");
    ck_assert_str_eq(load_percentile_text(&histogram, 0.9), "n/a");
}
END_TEST

START_TEST(a_sparkline_goes_from_nothing_to_the_highest)
{
    char text[6 * LOAD_SPARK_BYTES + 1];

    load_sparkline(text, sizeof(text), (double[]){0, 0.001, 50, 100, 99.99}, 5);
    ck_assert_str_eq(text, " \u2581\u2584\u2588\u2588");
    load_sparkline(text, sizeof(text), (double[]){0, 0}, 2);
    ck_assert_str_eq(text, "  ");
    load_sparkline(text, sizeof(text), NULL, 0);
    ck_assert_str_eq(text, "");
}
END_TEST

static const struct {
    const char *text;
    unsigned columns;
    const char *expected;
} clips[] = {
    {"", 5, ""},
    {"short", 5, "short"},
    {"longer", 5, "lo..."},
    {"longer", 3, "..."},
    {"\u2588\u2588\u2588\u2588", 4, "\u2588\u2588\u2588\u2588"},
    {"\u2588\u2588\u2588\u2588\u2588", 4, "\u2588..."},
    {"ab\u2588\u2588c", 4, "a..."},
};

START_TEST(a_clipped_text_has_so_many_columns)
{
    char text[64];

    snprintf(text, sizeof(text), "%s", clips[_i].text);
    load_clip(text, clips[_i].columns);
    ck_assert_str_eq(text, clips[_i].expected);
    ck_assert_uint_le(load_columns(text), clips[_i].columns);
}
END_TEST

static const struct {
    const char *terminal, *no_colour; /* NULL: not set */
    bool can_move, wants_colour;
} terminals[] = {
    {"xterm", NULL, true, true},  {"xterm", "", true, true},  {"xterm", "1", true, false},
    {"dumb", NULL, false, false}, {NULL, NULL, false, false},
};

static void
put_variable(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

START_TEST(the_environment_says_what_a_terminal_takes)
{
    put_variable("TERM", terminals[_i].terminal);
    put_variable("NO_COLOR", terminals[_i].no_colour);
    ck_assert_int_eq(load_can_move_cursor(), terminals[_i].can_move);
    ck_assert_int_eq(load_wants_colour(), terminals[_i].wants_colour);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-text");
    TCase *tcase = tcase_create("text");

    tcase_add_loop_test(tcase, a_time_has_three_digits_and_a_unit, 0,
                        sizeof(times) / sizeof(times[0]));
    tcase_add_loop_test(tcase, a_number_has_three_digits_and_a_suffix, 0,
                        sizeof(numbers) / sizeof(numbers[0]));
    tcase_add_test(tcase, a_chosen_time_is_said_as_short_as_possible);
    tcase_add_test(tcase, a_text_is_good_until_the_sixteenth_call_from_now);
    tcase_add_test(tcase, a_percentile_with_fewer_than_ten_samples_beyond_is_not_told);
    tcase_add_test(tcase, a_sparkline_goes_from_nothing_to_the_highest);
    tcase_add_loop_test(tcase, a_clipped_text_has_so_many_columns, 0,
                        sizeof(clips) / sizeof(clips[0]));
    tcase_add_loop_test(tcase, the_environment_says_what_a_terminal_takes, 0,
                        sizeof(terminals) / sizeof(terminals[0]));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
