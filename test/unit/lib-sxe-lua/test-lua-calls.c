/* SPDX-License-Identifier: MIT
 *
 * The calls of a running script, as a profiler gets them. ask() plays the profiler's signal
 * handler.
 */
#include "lua-state.h"

#include "has.h"
#include "test-main.h"

static char told[16384]; /* all texts that were told, one after the other */
static unsigned times;

static void
take_told(const char *calls, size_t length)
{
    strncat(told, calls, length);
    times++;
}

static int
ask(lua_State *L)
{
    (void)L;
    ck_assert(sxe_lua_ask_for_calls(take_told));
    return 0;
}

static int
ask_and_yield(lua_State *L)
{
    ask(L);
    return lua_yield(L, 0);
}

static void
calls_start(void)
{
    state_start();
    add_global("ask", ask);
    add_global("ask_and_yield", ask_and_yield);
    told[0] = '\0';
    times = 0;
}

START_TEST(the_calls_of_the_moment_are_told_once)
{
    calls_start();
    run_script("local function inner() ask() end\n"
               "local function outer()\n"
               "  inner()\n"
               "  return 1\n"
               "end\n"
               "outer()\n"
               "assert(not debug.gethook())");
    ck_assert_str_eq(told, "ask\t[C]\ninner\ttest:1\nouter\ttest:2\nmain chunk\ttest:1\n"
                           "function of C\t[C]\n");
    ck_assert_uint_eq(times, 1);
    state_stop();
}
END_TEST

START_TEST(a_function_without_a_name_has_its_place)
{
    calls_start();
    run_script("local list = {}\n"
               "list[1] = function() ask() end\n"
               "for _, f in ipairs(list) do pcall(f) end");
    check_has(told, "ask\t[C]\nfunction\ttest:2\npcall\t[C]\nmain chunk\ttest:1\n");
    state_stop();
}
END_TEST

START_TEST(coroutines_stand_on_those_that_resumed_them)
{
    calls_start();
    run_script("local function work() ask() end\n"
               "local function resume(co) co() end\n"
               "resume(coroutine.wrap(work))");
    check_has(told, "ask\t[C]\nfunction\ttest:1\nco\t[C]\nresume\ttest:2\nmain chunk\ttest:1\n");
    ck_assert_uint_eq(times, 1);
    state_stop();
}
END_TEST

START_TEST(a_script_that_yields_has_told_before)
{
    calls_start();
    run_script("local function wait() ask_and_yield() end\n"
               "local co = coroutine.create(wait)\n"
               "coroutine.resume(co)\n"
               "assert(not debug.gethook(co))");
    check_has(told, "ask_and_yield\t[C]\nfunction\ttest:1\n");
    ck_assert_uint_eq(times, 1);
    state_stop();
}
END_TEST

START_TEST(the_outermost_calls_of_a_deep_script_are_left_out)
{
    static const char text[] =
        "local function a_function_with_a_name_of_some_fifty_bytes_in_length(n)\n"
        "  if n == 0 then return ask() end\n"
        "  a_function_with_a_name_of_some_fifty_bytes_in_length(n - 1)\n"
        "  return n\n"
        "end\n"
        "local function nest(n)\n"
        "  if n == 0 then return a_function_with_a_name_of_some_fifty_bytes_in_length(100) end\n"
        "  coroutine.wrap(function() nest(n - 1) return n end)()\n"
        "  return n\n"
        "end\n"
        "nest(40)\n";

    calls_start();
    ck_assert_int_eq(
        sxe_lua_load_text(lua, "=a_script_whose_name_is_as_long_as_it_is_cut", text, strlen(text)),
        0);
    ck_assert_uint_eq(times, 1);
    ck_assert_uint_gt(strlen(told), 7500);
    ck_assert_uint_le(strlen(told), 8192);
    state_stop();
}
END_TEST

START_TEST(no_script_runs)
{
    ck_assert(!sxe_lua_ask_for_calls(take_told));
    calls_start();
    ck_assert(!sxe_lua_ask_for_calls(take_told));
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-calls");
    TCase *all = tcase_create("all");

    tcase_add_test(all, the_calls_of_the_moment_are_told_once);
    tcase_add_test(all, a_function_without_a_name_has_its_place);
    tcase_add_test(all, coroutines_stand_on_those_that_resumed_them);
    tcase_add_test(all, a_script_that_yields_has_told_before);
    tcase_add_test(all, the_outermost_calls_of_a_deep_script_are_left_out);
    tcase_add_test(all, no_script_runs);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
