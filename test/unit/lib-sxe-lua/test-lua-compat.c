/* SPDX-License-Identifier: MIT
 *
 * The names of 2010 and 2011 that do not concern sockets: sxe_register, log, timers, pools, TAP.
 */
#include "lua-net.h"

#include <stdio.h>

#include "fake-time.h"
#include "test-main.h"

/* ---- sxe_register ---- */

START_TEST(registered_functions_run_in_order_after_init)
{
    net_start("order = ''\n"
              "sxe_register(1, function() order = order .. 'a' end)\n"
              "sxe_register(0, function() order = order .. 'b' end)\n"
              "sxe_register(2, function() order = order .. 'c' end)\n"
              "assert(order == '')\n");
    ck_assert_int_eq(number("order == 'abc'"), 1);
    run_script("sxe_register(1, function() order = order .. 'd' end) assert(order == 'abcd')");
    net_stop();
}
END_TEST

START_TEST(a_registered_function_that_fails_is_logged_and_the_others_run)
{
    net_open_before = fake_os_open_fds();
    state_start();
    run_script("ran = false\n"
               "sxe_register(1, function() error 'boom' end)\n"
               "sxe_register(1, function() ran = true end)\n");
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), -EINVAL);
    ck_assert_msg(logged("boom"), "%s", log_line(0));
    ck_assert_int_eq(number("ran"), 1);
    net_stop();
}
END_TEST

START_TEST(without_memory_the_queue_is_kept)
{
    state_start();
    run_script("ran = 0 for i = 1, 10 do sxe_register(0, function() ran = ran + 1 end) end");
    for (uint64_t after = 0; number("ran") == 0; after++) {
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        int result = sxe__lua_init_compat(lua->main);
        lua->heap.fail_times = 0;
        ck_assert_int_eq(number("ran"), result == 0 ? 10 : 0);
    }
    ck_assert(logged("not enough memory"));
    state_stop();
}
END_TEST

START_TEST(registering_checks_its_arguments)
{
    state_start();
    fails_with("sxe_register()", "number expected");
    fails_with("sxe_register(-1, print)", "a number of sockets is expected");
    fails_with("sxe_register(1 << 40, print)", "a number of sockets is expected");
    fails_with("sxe_register(1, 2)", "function expected");
    fails_with("sxe_new_tcp('', 0)", "sxe_init was not called yet");
    state_stop();
}
END_TEST

/* ---- The log ---- */

START_TEST(nine_levels_write_lines)
{
    state_start();
    run_script("sxe.log_level = 9 assert(sxe.log_level == 7)\n"
               "SXEL1('one') SXEL9('nine') SXEL5(5)\n"
               "sxe.log_level = 2 SXEL3('hidden') SXEL2(setmetatable({}, {__tostring = function() "
               "return 'two' end}))\n"
               "sxe.log_level = 'warning' assert(sxe.log_level == 3)\n");
    ck_assert(logged("one") && logged("nine") && logged("5") && logged("two"));
    ck_assert(!logged("hidden"));
    fails_with("SXEL1()", "value expected");
    fails_with("sxe.log_level = 'loud'", "a log level is 0 to 9 or its name");
    state_stop();
}
END_TEST

START_TEST(the_table_sxe_has_the_names_and_takes_others)
{
    state_start();
    run_script("assert(require 'sxe' == sxe and sxe.sxe_write == sxe_write)\n"
               "sxe.mine = 1 assert(sxe.mine == 1 and sxe.yours == nil and sxe[1] == nil)\n"
               "assert(sxe.read_arg == 'content') sxe.read_arg = 'length' assert(sxe.read_arg == "
               "'length')\n");
    fails_with("sxe.read_arg = 'bytes'", "invalid option 'bytes'");
    state_stop();
}
END_TEST

/* ---- Timers ---- */

START_TEST(timers_call_after_a_delay_and_again)
{
    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    net_start("once, many = 0, 0\n"
              "sxe_register(1, function()\n"
              "    local t = sxe_timer_new(function(timer) once = once + 1 end, 0.5)\n"
              "    sxe_timer_start(t)\n"
              "    again = sxe_timer_new(function(timer) many = many + 1 assert(timer == again)\n"
              "        if many == 3 then sxe_timer_stop(timer) end end, 1, 2)\n"
              "    sxe_timer_start(again)\n"
              "    collectgarbage()\n"
              "end)\n"
              "again = false\n");
    for (int i = 0; i < 20; i++)
        ev_run(sxe_loop(), EVRUN_ONCE);
    ck_assert_int_eq(number("once"), 1);
    ck_assert_int_eq(number("many"), 3);
    run_script("sxe_timer_start(again) again = nil");
    net_stop();
}
END_TEST

START_TEST(a_timer_that_fails_is_logged)
{
    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    net_start("sxe_register(1, function()\n"
              "    sxe_timer_start(sxe_timer_new(function() error 'tick' end, 0))\n"
              "end)\n");
    ev_run(sxe_loop(), EVRUN_ONCE);
    ev_run(sxe_loop(), EVRUN_ONCE);
    ck_assert(logged("tick"));
    net_stop();
}
END_TEST

START_TEST(timers_check_their_arguments)
{
    state_start();
    fails_with("sxe_timer_new(1, 2)", "function expected");
    fails_with("sxe_timer_new(print, -1)", "a number of seconds is expected");
    fails_with("sxe_timer_new(print, 0, 1e10)", "a number of seconds is expected");
    fails_with("sxe_timer_start(sxe_timer_new(print, 0))", "sxe_init was not called yet");
    fails_with("sxe_timer_stop(1)", "sxe timer expected");
    state_stop();
}
END_TEST

/* ---- Pools ---- */

START_TEST(pools_are_those_of_2011)
{
    state_start();
    run_script("local FREE, S1, S2 = 0, 1, 2\n"
               "local pool = sxe_pool_new('cars', 10, 3)\n"
               "assert(sxe_pool_get_name(pool) == 'cars')\n"
               "assert(sxe_pool_get_number_in_state(pool, FREE) == 10)\n"
               "assert(sxe_pool_get_oldest_element_index(pool, FREE) == 0)\n"
               "assert(sxe_pool_index_to_state(pool, 9) == FREE)\n"
               "assert(sxe_pool_get_oldest_element_index(pool, S1) == nil)\n"
               "sxe_pool_check_timeouts()\n"
               "sxe_pool_touch_indexed_element(pool, 0)\n"
               "assert(sxe_pool_get_oldest_element_index(pool, FREE) == 1)\n"
               "assert(sxe_pool_get_indexed_element(pool, 3).index == 3)\n"
               "sxe_pool_get_indexed_element(pool, 3).colour = 'red'\n"
               "assert(sxe_pool_get_indexed_element(pool, 3).colour == 'red')\n"
               "assert(sxe_pool_set_oldest_element_state(pool, S1, S2) == nil)\n"
               "assert(sxe_pool_set_oldest_element_state(pool, FREE, S1) == 1)\n"
               "sxe_pool_set_indexed_element_state(pool, 0, FREE, S1)\n"
               "assert(sxe_pool_get_number_in_state(pool, S1) == 2)\n"
               "pool = nil collectgarbage()\n");
    state_stop();
}
END_TEST

START_TEST(what_c_asserts_is_an_error_in_lua)
{
    state_start();
    run_script("pool = sxe_pool_new('cars', 2, 2)");
    fails_with("sxe_pool_set_indexed_element_state(pool, 1, 1, 0)",
               "pool cars: element 1 is in state 0, not 1");
    fails_with("sxe_pool_index_to_state(pool, 2)", "no such element");
    fails_with("sxe_pool_index_to_state(pool, -1)", "no such element");
    fails_with("sxe_pool_get_number_in_state(pool, 2)", "no such state");
    fails_with("sxe_pool_get_name({})", "sxe pool expected");
    fails_with("sxe_pool_new('x', 0, 1)", "1 to 10000000 elements are expected");
    fails_with("sxe_pool_new('x', 1, 0)", "1 to 10000000 states are expected");
    state_stop();
}
END_TEST

/* ---- TAP ---- */

START_TEST(tap_reports_to_stdout)
{
    char out[512] = "";
    FILE *to = tmpfile();
    int kept = dup(STDOUT_FILENO);

    fflush(stdout);
    dup2(fileno(to), STDOUT_FILENO);
    state_start();
    run_script("require 'sxe.tap'\n"
               "plan_tests(5)\n"
               "assert(ok(1, 'one') and ok1(true))\n"
               "assert(is(1, 1, 'same') and not is(1, 'x', 'other'))\n"
               "pass('passed') fail() diag('note') pass('# 7\\n8')\n"
               "assert(not pcall(plan_tests, -1))\n"
               "assert(require 'sxe.tap'.exit_status() == 1)\n");
    state_stop();
    dup2(kept, STDOUT_FILENO);
    close(kept);
    ck_assert_int_ge(pread(fileno(to), out, sizeof(out) - 1, 0), 0);
    fclose(to);
    ck_assert_str_eq(out, "1..5\nok 1 - one\nok 2\nok 3 - same\nnot ok 4 - other\n"
                          "#      got: 1\n# expected: x\nok 5 - passed\nnot ok 6\n# note\n"
                          "ok 7 - \\# 7\n# 8\n");
}
END_TEST

START_TEST(tap_has_no_globals_in_a_bare_state)
{
    state_start_with(&(struct sxe_lua_config){.tasks = 4, .is_bare = true});
    run_script("local tap = require 'sxe.tap'\n"
               "assert(rawget(_G, 'ok') == nil and tap.ok and rawget(_G, 'sxe') == nil)\n"
               "assert(tap.exit_status() == 0)\n");
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-compat");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, registered_functions_run_in_order_after_init);
    tcase_add_test(c, a_registered_function_that_fails_is_logged_and_the_others_run);
    tcase_add_test(c, without_memory_the_queue_is_kept);
    tcase_add_test(c, registering_checks_its_arguments);
    tcase_add_test(c, nine_levels_write_lines);
    tcase_add_test(c, the_table_sxe_has_the_names_and_takes_others);
    tcase_add_test(c, timers_call_after_a_delay_and_again);
    tcase_add_test(c, a_timer_that_fails_is_logged);
    tcase_add_test(c, timers_check_their_arguments);
    tcase_add_test(c, pools_are_those_of_2011);
    tcase_add_test(c, what_c_asserts_is_an_error_in_lua);
    tcase_add_test(c, tap_reports_to_stdout);
    tcase_add_test(c, tap_has_no_globals_in_a_bare_state);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
