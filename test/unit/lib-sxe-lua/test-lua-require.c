/* SPDX-License-Identifier: MIT
 *
 * require: modules whose top level waits, and those where it may not.
 */
#include "lua-state.h"

#include "test-main.h"

START_TEST(a_module_is_loaded_once_and_keeps_its_value)
{
    state_start();
    run_script("local n = 0\n"
               "package.preload.a = function(name, data) n = n + 1 return {name, data} end\n"
               "local a, data = require 'a'\n"
               "assert(a == require 'a' and n == 1 and a[1] == 'a' and data == ':preload:')\n"
               "package.preload.b = function() end assert(require 'b' == true)\n"
               "package.preload.c = function(name) package.loaded[name] = 5 end\n"
               "assert(require 'c' == 5 and require 'string' == string)");
    state_stop();
}
END_TEST

START_TEST(a_module_that_is_not_there_is_an_error)
{
    state_start();
    fails_with("require 'none'", "module 'none' not found:");
    ck_assert(logged("no field package.preload['none']"));
    ck_assert(logged("no module of libsxe 'none'"));
    ck_assert(logged("no file './none.lua'"));
    ck_assert(logged("no file './none/init.lua'"));
    ck_assert(logged("no file './rocks/share/lua/5.4/none.lua'"));
    ck_assert(logged("no file './rocks/share/lua/5.4/none/init.lua'"));
    ck_assert(logged("no file './rocks/lib/lua/5.4/none.so'"));
    run_script("table.insert(package.searchers, 1, function() return nil end)\n"
               "assert(not pcall(require, 'none'))");
    fails_with("require()", "bad argument #1 to 'require' (string expected, got no value)");
    state_stop();
}
END_TEST

START_TEST(ours_are_named_even_if_they_are_not_there_yet)
{
    state_start();
    fails_with("require 'sxe.fcgi'", "sxe.fcgi is not there yet");
    run_script("package.preload['sxe.fcgi'] = function() return 'a program\\'s own' end\n"
               "assert(require 'sxe.fcgi' == 'a program\\'s own')\n"
               "assert(require 'sxe.task'.sleep) local _, data = require 'sxe.task'");
    state_stop();
}
END_TEST

START_TEST(a_module_may_wait)
{
    state_start();
    run_script("package.preload.slow = function() coroutine.yield() return 'slow' end\n"
               "result = require 'slow'");
    ck_assert_uint_eq(lua->loading, 1);
    for (unsigned turns = 0; turns < 5; turns++)
        turn_tasks();
    run_script("assert(result == 'slow' and require 'slow' == 'slow')");
    state_stop();
}
END_TEST

START_TEST(a_module_may_make_globals_whenever_it_is_loaded)
{
    state_start();
    run_script("local task = require 'sxe.task'\n"
               "package.preload.late = function()\n"
               "    made = unpack == nil coroutine.yield() again = made return 'late'\n"
               "end\n"
               "package.preload.bad = function() error 'bad' end\n"
               "package.preload.inner = function() return require 'late' end\n"
               "task.start(function()\n"
               "    assert(not pcall(require, 'bad') and require 'inner' == 'late')\n"
               "    assert(made and again)\n"
               "    assert(not pcall(function() other = 1 end))\n"
               "    package.loaded.done = true\n"
               "end)");
    for (unsigned turns = 0; turns < 9; turns++)
        turn_tasks();
    run_script("assert(package.loaded.done)");
    ck_assert_uint_eq(lua->requiring, 0);
    state_stop();
}
END_TEST

START_TEST(others_wait_for_a_module_that_waits)
{
    state_start();
    run_script("n, result = 0, {}\n"
               "package.preload.slow = function() n = n + 1 coroutine.yield() return 'slow' end\n"
               "function use(i) result[i] = require 'slow' end");
    ck_assert_int_eq(sxe_lua_call(lua, "use", "i", 1), -EINPROGRESS);
    ck_assert_int_eq(sxe_lua_call(lua, "use", "i", 2), -EINPROGRESS);
    ck_assert_int_eq(sxe_lua_call(lua, "use", "i", 3), -EINPROGRESS);
    for (unsigned turns = 0; turns < 5; turns++)
        turn_tasks();
    run_script("assert(n == 1 and #result == 3 and result[3] == 'slow')");
    state_stop();
}
END_TEST

START_TEST(when_it_fails_the_next_one_tries_again)
{
    state_start();
    run_script("n = 0\n"
               "package.preload.slow = function()\n"
               "    n = n + 1 coroutine.yield() if n == 1 then error 'first' end return n\n"
               "end\n"
               "function use() assert(require 'slow' == 2) done = true end done = false");
    ck_assert_int_eq(sxe_lua_call(lua, "use", ""), -EINPROGRESS);
    ck_assert_int_eq(sxe_lua_call(lua, "use", ""), -EINPROGRESS);
    ck_assert_int_eq(sxe_lua_call(lua, "use", ""), -EINPROGRESS);
    for (unsigned turns = 0; turns < 9; turns++)
        turn_tasks();
    ck_assert(logged("first"));
    run_script("assert(done)");
    state_stop();
}
END_TEST

START_TEST(one_that_waits_for_a_module_may_be_cancelled)
{
    state_start();
    run_script("local task = require 'sxe.task' message = nil\n"
               "package.preload.slow = function() task.sleep(1000) end\n"
               "task.start(function() require 'slow' end) coroutine.yield()\n"
               "local t = task.start(function() local good, why = pcall(require, 'slow')\n"
               "message = why end) coroutine.yield() t:cancel()");
    for (unsigned turns = 0; turns < 9; turns++)
        turn_tasks();
    run_script("assert(message == 'cancelled')");
    state_stop();
}
END_TEST

START_TEST(a_module_that_requires_itself_is_an_error)
{
    state_start();
    run_script("package.preload.a = function() return require 'b' end\n"
               "package.preload.b = function() return require 'a' end");
    fails_with("require 'a'", "module 'a' requires itself");
    fails_with("require 'b'", "module 'b' requires itself");
    state_stop();
}
END_TEST

/* Each of three tasks loads a module, waits, and requires the module that the next task loads. */
START_TEST(modules_of_several_tasks_that_require_each_other_are_an_error)
{
    state_start();
    run_script("local task = require 'sxe.task' errors, number = {}, 0\n"
               "for i, next in ipairs{'b', 'c', 'a'} do\n"
               "    package.preload[('abc'):sub(i, i)] = function()\n"
               "        task.sleep(0) return require(next)\n"
               "    end\n"
               "end\n"
               "for name in ('abcabc'):gmatch '.' do task.start(function()\n"
               "    local good, why = pcall(require, name)\n"
               "    assert(not good and why:find 'requires itself', why)\n"
               "    number = number + 1\n"
               "end) end");
    for (unsigned turns = 0; turns < 99; turns++)
        turn_tasks();
    run_script("assert(number == 6)");
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-require");
    TCase *tcase = tcase_create("require");

    tcase_add_test(tcase, a_module_is_loaded_once_and_keeps_its_value);
    tcase_add_test(tcase, a_module_that_is_not_there_is_an_error);
    tcase_add_test(tcase, ours_are_named_even_if_they_are_not_there_yet);
    tcase_add_test(tcase, a_module_may_wait);
    tcase_add_test(tcase, a_module_may_make_globals_whenever_it_is_loaded);
    tcase_add_test(tcase, others_wait_for_a_module_that_waits);
    tcase_add_test(tcase, when_it_fails_the_next_one_tries_again);
    tcase_add_test(tcase, one_that_waits_for_a_module_may_be_cancelled);
    tcase_add_test(tcase, a_module_that_requires_itself_is_an_error);
    tcase_add_test(tcase, modules_of_several_tasks_that_require_each_other_are_an_error);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
