/* SPDX-License-Identifier: MIT
 *
 * Coroutines of a script: as in plain Lua, and with tasks that wait inside of them.
 */
#include "lua-state.h"

#include "test-main.h"

START_TEST(coroutines_are_as_lua_has_them)
{
    state_start();
    run_script(
        "local co = coroutine.create(function(a, b)\n"
        "    local c, d = coroutine.yield(a + b, a * b) return c - d, 'end'\n"
        "end)\n"
        "local good, x, y = coroutine.resume(co, 3, 4) assert(good and x == 7 and y == 12)\n"
        "good, x, y = coroutine.resume(co, 9, 1) assert(good and x == 8 and y == 'end')\n"
        "good, x = coroutine.resume(co) assert(not good and x == 'cannot resume dead coroutine')\n"
        "co = coroutine.create(error) good, x = coroutine.resume(co, {5})\n"
        "assert(not good and x[1] == 5 and not coroutine.resume(co))\n"
        "co = coroutine.wrap(function() return coroutine.running() end)\n"
        "good, x = coroutine.resume(coroutine.running())\n"
        "assert(not good and x == 'cannot resume a coroutine that waits'\n"
        "    or x == 'cannot resume non-suspended coroutine')");
    state_stop();
}
END_TEST

START_TEST(wrapped_ones_raise_their_errors)
{
    state_start();
    run_script("local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)\n"
               "assert(gen() == 1 and gen() == 2 and gen() == 3 and gen() == nil)\n"
               "local good, x = pcall(gen) assert(x:find 'cannot resume dead coroutine')\n"
               "local closed = 0\n"
               "local f = coroutine.wrap(function()\n"
               "    local t <close> = setmetatable({}, {__close = function() closed = 1 end})\n"
               "    error 'x'\n"
               "end)\n"
               "good, x = pcall(f) assert(not good and x:find 'x$' and closed == 1)\n"
               "f = coroutine.wrap(function()\n"
               "    local t <close> = setmetatable({}, {__close = function() error('y', 0) end})\n"
               "    error('x', 0)\n"
               "end)\n"
               "good, x = pcall(f) assert(x:find 'y$')\n"
               "good, x = pcall(coroutine.wrap(error), {status = 404}) assert(x.status == 404)\n"
               "assert(not pcall(coroutine.wrap, 5))\n"
               "local co co = coroutine.create(function() return coroutine.resume(co) end)\n"
               "local a, b, c = coroutine.resume(co)\n"
               "assert(a and not b and c == 'cannot resume non-suspended coroutine')");
    fails_with("coroutine.resume(5)", "bad argument #1 to 'resume' (thread expected, got number)");
    state_stop();
}
END_TEST

START_TEST(too_many_values_are_an_error)
{
    state_start();
    run_script("local co = coroutine.create(function(...) return coroutine.yield() end)\n"
               "assert(coroutine.resume(co))\n"
               "local many = table.pack(coroutine.resume(co, table.unpack({}, 1, 199990)))\n"
               "assert(many.n == 199991)");
    fails_with("local function deep(n) if n > 0 then local a = deep(n - 1) return a end\n"
               "return #table.pack(coroutine.resume(coroutine.create(function()\n"
               "return table.unpack({}, 1, 900000) end))) end deep(100000)",
               "too many results to resume");
    run_script("local co = coroutine.create(function(...)\n"
               "local function deep(n) if n == 0 then coroutine.yield() return 1 end\n"
               "local a = deep(n - 1) return a end return deep(30000) end)\n"
               "assert(coroutine.resume(co))\n"
               "local good, x = coroutine.resume(co, table.unpack({}, 1, 950000))\n"
               "assert(not good and x == 'too many arguments to resume')");
    state_stop();
}
END_TEST

START_TEST(coroutines_are_closed)
{
    state_start();
    run_script(
        "local function make(f) local co = coroutine.create(function()\n"
        "    local t <close> = setmetatable({}, {__close = f}) coroutine.yield()\n"
        "end) coroutine.resume(co) return co end\n"
        "local closed local co = make(function() closed = true end)\n"
        "assert(coroutine.close(co) and closed and coroutine.status(co) == 'dead')\n"
        "assert(coroutine.close(co))\n"
        "local good, x = coroutine.close(make(function() error('y', 0) end))\n"
        "assert(not good and x == 'y')\n"
        "good, x = pcall(coroutine.close, coroutine.running()) assert(not good)\n"
        "co = coroutine.wrap(function(t) return pcall(coroutine.close, t) end)\n"
        "good, x = co(coroutine.running()) assert(not good)\n"
        "local self self = coroutine.create(function() return pcall(coroutine.close, self) end)\n"
        "local a, b, c = coroutine.resume(self)\n"
        "assert(a and not b and c == 'cannot close a running coroutine')");
    fails_with("coroutine.close(5)", "thread expected, got number");
    state_stop();
}
END_TEST

START_TEST(a_task_waits_inside_of_coroutines)
{
    state_start();
    run_script(
        "local task = require 'sxe.task'\n"
        "local gen = coroutine.wrap(function()\n"
        "    for i = 1, 3 do task.sleep(0) coroutine.yield(i) end\n"
        "end)\n"
        "local co = coroutine.create(function(a)\n"
        "    local sum = a for i in gen do sum = sum + i coroutine.yield() end return sum\n"
        "end)\n"
        "local good, sum repeat good, sum = coroutine.resume(co, 10) assert(good) until sum\n"
        "result = sum");
    ck_assert_uint_eq(lua->loading, 1);
    for (unsigned turns = 0; turns < 20; turns++)
        turn_tasks();
    ck_assert_uint_eq(lua->loading, 0);
    run_script("assert(result == 16)");
    state_stop();
}
END_TEST

START_TEST(nobody_else_resumes_or_closes_one_in_which_a_task_waits)
{
    state_start();
    run_script("local task = require 'sxe.task'\n"
               "co = coroutine.create(function() task.sleep(0) return 'slept' end)\n"
               "local good, x = coroutine.resume(co) result = x");
    run_script("local good, x = coroutine.resume(co)\n"
               "assert(not good and x == 'cannot resume a coroutine that waits')\n"
               "good, x = pcall(coroutine.close, co)\n"
               "assert(not good and x:find 'cannot close a coroutine that waits')");
    for (unsigned turns = 0; turns < 20; turns++)
        turn_tasks();
    run_script("assert(result == 'slept' and coroutine.close(co))");
    state_stop();
}
END_TEST

START_TEST(no_wait_where_a_function_of_c_is_in_between)
{
    static const char *const scripts[] = {
        "table.sort({2, 1}, function() sleep(0) end)",
        "table.sort({2, 1}, function() coroutine.wrap(function() sleep(0) end)() end)",
        "table.sort({2, 1}, function() coroutine.wrap(coroutine.wrap(function() sleep(0) end))() "
        "end)",
    };

    state_start();
    run_script("sleep = require 'sxe.task'.sleep");
    fails_with(scripts[_i], "cannot wait");
    state_stop();
}
END_TEST

/* ---- Finalizers ---- */

START_TEST(finalizers_run_and_are_used_again)
{
    state_start();
    run_script("local n = 0\n"
               "for i = 1, 10 do setmetatable({}, {__gc = function(t) n = n + 1 end}) end\n"
               "collectgarbage() assert(n == 10)\n"
               "local mt = {__gc = true, __index = {x = 5}} local t = setmetatable({}, mt)\n"
               "assert(t.x == 5 and getmetatable(t) == mt) mt.__gc = function() n = 11 end\n"
               "t = nil collectgarbage() assert(n == 11)\n"
               "setmetatable(setmetatable({}, {}), nil)\n"
               "mt = {__gc = function() end} setmetatable({}, mt) setmetatable({}, mt)");
    state_stop();
}
END_TEST

START_TEST(a_finalizer_that_fails_is_a_warning_and_others_go_on)
{
    state_start();
    run_script(
        "local n = 0\n"
        "setmetatable({}, {__gc = function() n = n + 1 error('one', 0) end})\n"
        "setmetatable({}, {__gc = function() n = n + 1 coroutine.yield() end})\n"
        "setmetatable({}, {__gc = function() n = n + 1 require 'sxe.task'.sleep(1) end})\n"
        "collectgarbage() assert(n == 3)\n"
        "setmetatable({}, {__gc = function() n = n + 1 end}) collectgarbage() assert(n == 4)");
    ck_assert(logged("one"));
    ck_assert(logged("a finalizer cannot yield"));
    ck_assert(logged("cannot wait"));
    state_stop();
}
END_TEST

START_TEST(metatables_are_refused_as_lua_does)
{
    state_start();
    fails_with("setmetatable(5, {})",
               "bad argument #1 to 'setmetatable' (table expected, got number)");
    fails_with("setmetatable({}, 5)",
               "bad argument #2 to 'setmetatable' (nil or table expected, got number)");
    fails_with("setmetatable({})",
               "bad argument #2 to 'setmetatable' (nil or table expected, got no value)");
    fails_with("setmetatable(setmetatable({}, {__metatable = 1}), {})",
               "cannot change a protected metatable");
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-coroutine");
    TCase *tcase = tcase_create("coroutine");

    tcase_add_test(tcase, coroutines_are_as_lua_has_them);
    tcase_add_test(tcase, wrapped_ones_raise_their_errors);
    tcase_add_test(tcase, too_many_values_are_an_error);
    tcase_add_test(tcase, coroutines_are_closed);
    tcase_add_test(tcase, a_task_waits_inside_of_coroutines);
    tcase_add_test(tcase, nobody_else_resumes_or_closes_one_in_which_a_task_waits);
    tcase_add_loop_test(tcase, no_wait_where_a_function_of_c_is_in_between, 0, 3);
    tcase_add_test(tcase, finalizers_run_and_are_used_again);
    tcase_add_test(tcase, a_finalizer_that_fails_is_a_warning_and_others_go_on);
    tcase_add_test(tcase, metatables_are_refused_as_lua_does);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
