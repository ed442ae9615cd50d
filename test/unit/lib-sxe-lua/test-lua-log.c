/* SPDX-License-Identifier: MIT
 *
 * The Lua module sxe.log: log lines of each level.
 */
#include "lua-state.h"

#include "test-main.h"

START_TEST(lines_have_a_level)
{
    state_start();
    captured.number = 0;
    run_script(
        "local log = require 'sxe.log' log.fatal('a %d', 1) log.error('100%') log.warn({} ~= nil) "
        "log.info('%s|%5.1f', nil, 2) log.debug('d') log.trace('t')");
    ck_assert_str_eq(log_line(0), "------ 1 - a 1\n");
    ck_assert_str_eq(log_line(1), "------ 2 - 100%\n");
    ck_assert_str_eq(log_line(2), "------ 3 - true\n");
    ck_assert_str_eq(log_line(3), "------ 4 - nil|  2.0\n");
    ck_assert_str_eq(log_line(4), "------ 5 - d\n");
    ck_assert_str_eq(log_line(5), "");
    state_stop();
}
END_TEST

START_TEST(lines_that_are_hidden_are_not_formatted)
{
    state_start();
    run_script("local log = require 'sxe.log' log.level = 'error' assert(log.level == 'error') "
               "log.info('%d', 'not a number') log.level = 'warn' assert(log.level == 'warn') "
               "log.level = 'info' assert(log.level == 'info') "
               "log.level = 'none' assert(log.level == 'none') log.level = 'debug'");
    state_stop();
}
END_TEST

START_TEST(what_is_no_line_is_refused)
{
    state_start();
    fails_with("require 'sxe.log'.info('%d', 'x')", "number expected, got string");
    fails_with("require 'sxe.log'.info()", "value expected");
    fails_with("require 'sxe.log'.level = 'loud'", "sxe.log: the level cannot be 'loud'");
    fails_with("require 'sxe.log'.levle = 'info'", "sxe.log has no field 'levle'");
    fails_with("return require 'sxe.log'.inof", "sxe.log has no field 'inof'");
    state_stop();
}
END_TEST

START_TEST(a_level_without_a_place_is_refused)
{
    char name[16] = "library-";

    state_start();
    for (char c = 'a'; name[8] = c, sxe_log_set_library_level(name, 1) == 0; c++)
        continue;
    fails_with("require 'sxe.log'.level = 'info'", "sxe.log: too many levels are set");
    state_stop();
}
END_TEST

START_TEST(in_json_they_name_file_and_line)
{
    state_start();
    sxe_log_set_format(SXE_LOG_JSON);
    captured.number = 0;
    run_script("local log = require 'sxe.log'\nlog.error('here')\nrequire "
               "'sxe.task'.start(log.error, 'x')");
    ck_assert_msg(strstr(captured.lines[0], "\"file\":\"test\",\"line\":2}") != NULL, "%s",
                  captured.lines[0]);
    sxe_log_set_format(SXE_LOG_TEXT);
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-log");
    TCase *t = tcase_create("log");

    tcase_add_test(t, lines_have_a_level);
    tcase_add_test(t, lines_that_are_hidden_are_not_formatted);
    tcase_add_test(t, what_is_no_line_is_refused);
    tcase_add_test(t, a_level_without_a_place_is_refused);
    tcase_add_test(t, in_json_they_name_file_and_line);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
