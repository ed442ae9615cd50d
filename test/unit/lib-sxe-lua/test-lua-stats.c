/* SPDX-License-Identifier: MIT
 *
 * The Lua module sxe.stats: groups of counters.
 */
#include "lua-state.h"

#include "sxe-lua-stats.h"
#include "test-main.h"

START_TEST(counters_count)
{
    state_start();
    run_script("local s = require 'sxe.stats' {'hits', 'misses', name = 'cache'} "
               "s.hits = s.hits + 1 assert(s:inc('hits') == 2 and s:inc('hits', 5) == 7) "
               "assert(s:dec('misses') == -1 and s.misses == -1) "
               "local all = s() assert(all.hits == 7 and all.misses == -1) "
               "assert(s:uptime() >= 0 and s:uptime() < 1000) s:reset() assert(s.hits == 0) "
               "collectgarbage() assert(s.misses == 0) "
               "assert(s:inc('hits', math.maxinteger) and s:inc('hits') == math.maxinteger) "
               "assert(s:dec('hits', math.maxinteger) == 0 and s:dec('hits', 2) == -2) "
               "assert(s:inc('hits', math.mininteger) == math.mininteger)");
    state_stop();
}
END_TEST

START_TEST(what_is_no_counter_is_refused)
{
    state_start();
    fails_with("local s = require 'sxe.stats' {'a', name = '1'} return s.b",
               "sxe.stats has no field 'b'");
    fails_with("local s = require 'sxe.stats' {'a', name = '2'} s.b = 1",
               "sxe.stats has no field 'b' to assign");
    fails_with("local s = require 'sxe.stats' {'a', name = '3'} s.a = 'x'",
               "number expected, got string");
    fails_with("local s = require 'sxe.stats' {'a', name = '4'} s:inc('b')", "no such counter");
    fails_with("require 'sxe.stats' {'a', nam = 'x'}", "stats has no option 'nam'");
    fails_with("require 'sxe.stats' {'a', 'b', 'a', name = 'c'}", "the counter 'a' is there twice");
    fails_with("require 'sxe.stats' {'a\\xff', name = 'c'}", "the name of a counter is not UTF-8");
    fails_with("require 'sxe.stats' {'a', name = '\\xc3'}", "the name of a group is not UTF-8");
    fails_with("require 'sxe.stats' {'a', name = 'task'} require 'sxe.stats' {'b', name = 'task'}",
               "there is a group 'task' already");
    fails_with("require 'sxe.stats' {'a', name = ('x'):rep(32)}", "has 31 bytes at most");
    fails_with("require 'sxe.stats' {}", "a list of 1 to 1000 names expected");
    fails_with("require 'sxe.stats' {1}", "names expected");
    fails_with("require 'sxe.stats' (1)", "table expected, got number");
    fails_with("for i = 5, 65 do require 'sxe.stats' {'a', name = 'g' .. i} end",
               "there are 64 groups of counters already");
    state_stop();
}
END_TEST

START_TEST(a_group_that_is_refused_is_not_kept)
{
    state_start();
    run_script("stats, names = require 'sxe.stats', {} for i = 1, 1000 do names[i] = 'n' .. i end\n"
               "for i = 1, 64 do stats {'a', name = 'g' .. i} end\n"
               "collectgarbage() local before = collectgarbage('count')\n"
               "for i = 1, 20 do assert(not pcall(stats, names)) end\n"
               "collectgarbage() assert(collectgarbage('count') < before + 50)");
    state_stop();
}
END_TEST

static void
add_text(void *user, const char *group, const char *name, int64_t value)
{
    snprintf((char *)user + strlen(user), 200 - strlen(user), "%s.%s=%lld ", group, name,
             (long long)value);
}

START_TEST(c_sees_them_all)
{
    char text[200] = "";

    state_start();
    sxe_lua_each_stat(lua, add_text, text);
    ck_assert_str_eq(text, "");
    run_script("local s = require 'sxe.stats' {'a', 'b', name = ('x'):rep(31)} s.b = 2 "
               "require 'sxe.stats' {'c'}");
    sxe_lua_each_stat(lua, add_text, text);
    ck_assert_str_eq(text,
                     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.a=0 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.b=2 "
                     "script.c=0 ");
    state_stop();
}
END_TEST

START_TEST(each_state_has_its_own)
{
    char text[200] = "";

    for (int i = 0; i < 20; i++) {
        state_start();
        sxe_lua_each_stat(lua, add_text, text);
        run_script("local s = require 'sxe.stats' {'a'} s.a = 1");
        state_stop();
    }
    ck_assert_str_eq(text, "");
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-stats");
    TCase *t = tcase_create("stats");

    tcase_add_test(t, counters_count);
    tcase_add_test(t, what_is_no_counter_is_refused);
    tcase_add_test(t, a_group_that_is_refused_is_not_kept);
    tcase_add_test(t, c_sees_them_all);
    tcase_add_test(t, each_state_has_its_own);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
