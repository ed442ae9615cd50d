/* SPDX-License-Identifier: MIT
 *
 * Errors of scripts: the log's lines about them, and their effects.
 */
#include "lua-state.h"

#include "sxe-lua-clock.h"

#include "test-main.h"

/* The nth line of the log, without its head and the error's id, which must equal the first
 * line's. */
static const char *
line_behind_id(unsigned nth)
{
    static const size_t head_length = sizeof("------ 2 - ") - 1, id_length = 16;

    ck_assert_mem_eq(log_line(nth), log_line(0), head_length + id_length);
    return log_line(nth) + head_length + id_length;
}

START_TEST(an_error_is_a_line_with_an_id_and_lines_of_traceback)
{
    state_start();
    fails_with("local function f(x)\n return x.y.z\nend\nf{}", "attempt to index a nil value");
    ck_assert_str_eq(line_behind_id(0),
                     " test: test:2: attempt to index a nil value (field 'y')\n");
    ck_assert_str_eq(line_behind_id(1), "   stack traceback:\n");
    ck_assert_str_eq(line_behind_id(2), "     test:2: in local 'f'\n");
    ck_assert_str_eq(line_behind_id(3), "     test:4: in main chunk\n");
    ck_assert_uint_eq(captured.number, 4);
    for (unsigned nth = 0; nth < 4; nth++)
        ck_assert_int_eq(captured.levels[nth], SXE_LOG_ERROR);
    state_stop();
}
END_TEST

START_TEST(a_traceback_goes_through_coroutines)
{
    state_start();
    fails_with("local inner = coroutine.wrap(function()\n"
               "    error 'deep'\n"
               "end)\n"
               "local outer = coroutine.wrap(function()\n"
               "    inner()\n"
               "end)\n"
               "outer()",
               "test:2: deep");
    ck_assert(logged("     test:2: in function <test:1>"));
    ck_assert(logged("     test:5: in function <test:4>"));
    ck_assert(logged("     test:7: in main chunk"));
    fails_with("pcall(coroutine.wrap(error), 'x') error 'y'", "test:1: y");
    ck_assert(!logged("x"));
    state_stop();
}
END_TEST

START_TEST(a_traceback_is_used_once)
{
    state_start();
    fails_with("again = setmetatable({}, {__tostring = function() return 'again' end})\n"
               "local function fail() error(again) end coroutine.wrap(fail)()",
               "again");
    ck_assert(logged("     test:2: in function <test:2>"));
    fails_with("error(again)", "again");
    ck_assert(!logged("test:2:"));
    state_stop();
}
END_TEST

START_TEST(errors_of_all_types_are_described)
{
    static const char *const scripts[][2] = {
        {"error{status = 503, message = 'full'}", " test: status 503: full\n"},
        {"error{status = 404}", " test: status 404\n"},
        {"error{message = 'x'}", " test: x\n"},
        {"error{}", " test: an error that is a table: {}\n"},
        {"error{code = 5}", " test: an error that is a table: {code = 5}\n"},
        {"error{5, 'x', print, {}}",
         " test: an error that is a table: {5, \"x\", function, table}\n"},
        {"error()", " test: an error that is a nil\n"},
        {"error(print)", " test: an error that is a function\n"},
        {"error(12, 0)", " test: 12\n"},
        {"error('two\\nlines', 0)", " test: two\n"},
        {"error(setmetatable({}, {__tostring = function() return 'mine' end}))", " test: mine\n"},
        {"error(setmetatable({}, {__index = function() error('again', 0) end}))", " test: again\n"},
        {"error(setmetatable({}, {__index = function() error() end}))", " test: an error\n"},
        {"error(setmetatable({}, {__tostring = function() error('no', 0) end}))",
         " test: an error whose __tostring failed: no\n"},
        {"error(setmetatable({}, {__tostring = function() error{} end}))",
         " test: an error whose __tostring failed: table\n"},
        {"local t = {} setmetatable(t, {__tostring = function() error(t) end}) error(t)",
         " test: an error whose __tostring failed: table\n"},
    };

    state_start();
    captured.number = 0;
    ck_assert_int_eq(load_text(scripts[_i][0]), -EINVAL);
    ck_assert_str_eq(line_behind_id(0), scripts[_i][1]);
    state_stop();
}
END_TEST

START_TEST(an_error_that_is_a_table_has_its_traceback_in_the_log)
{
    state_start();
    fails_with("local function fail() error{code = 5} end\nfail()",
               "an error that is a table: {code = 5}");
    ck_assert(logged("     test:1: in upvalue 'fail'") || logged("test:1: in local 'fail'"));
    fails_with("error{status = 404}", "status 404");
    ck_assert(!logged("stack traceback:"));
    fails_with("error{name = ('x'):rep(100), why = ('y'):rep(100), ('z'):rep(100)}",
               "an error that is a table: {\"zzzz");
    state_stop();
}
END_TEST

START_TEST(a_task_that_fails_with_a_table_has_its_traceback_in_the_log)
{
    state_start();
    run_script("local task = require 'sxe.task'\n"
               "task.start(function()\n"
               "    error{code = 6} end)");
    turn_tasks();
    ck_assert(logged("an error that is a table: {code = 6}"));
    ck_assert(logged("test:3: in function"));
    state_stop();
}
END_TEST

static int
raise_table(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, 404);
    lua_setfield(L, -2, "status");
    return lua_error(L);
}

START_TEST(an_error_that_is_a_table_is_kept)
{
    lua_State *L;

    state_start();
    L = lua_newthread(lua->main);
    lua_pushcfunction(L, raise_table);
    ck_assert_int_eq(lua_pcall(L, 0, 0, 0), LUA_ERRRUN);
    sxe__lua_add_traceback(L);
    ck_assert_int_eq(lua_gettop(L), 1);
    ck_assert(lua_istable(L, 1));
    lua_pushcfunction(L, sxe__lua_message_handler);
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    ck_assert(lua_istable(L, 1));
    state_stop();
}
END_TEST

START_TEST(without_memory_an_error_is_logged_all_the_same)
{
    lua_State *L;
    const char *id;

    state_start();
    L = lua_newthread(lua->main);
    lua_pushliteral(L, "the error");
    for (uint64_t after = 0; after < 6; after++) {
        lua_gc(lua->main, LUA_GCCOLLECT);
        lua->heap.fail_after = after;
        lua->heap.fail_times = UINT64_MAX;
        captured.number = 0;
        id = sxe__lua_log_error(L, "here");
        sxe__lua_add_traceback(L);
        lua->heap.fail_times = 0;
        ck_assert_uint_eq(strlen(id), 16);
        ck_assert(logged(id));
        ck_assert(logged("here: "));
        ck_assert_int_eq(lua_gettop(L), 1);
        ck_assert_int_eq(strncmp(lua_tostring(L, 1), "the error", 9), 0);
    }
    state_stop();
}
END_TEST

/* Fill the stack as far as it is allocated, so that the next push has to allocate. */
static void
fill_stack(lua_State *L)
{
    lua->heap.fail_times = UINT64_MAX;
    lua->heap.fail_after = 0;
    while (lua_checkstack(L, 1))
        lua_pushnil(L);
}

START_TEST(without_room_on_a_stack_nothing_is_lost)
{
    lua_State *L;
    int top;

    state_start();
    L = lua_newthread(lua->main);
    lua_pushliteral(L, "the error");
    fill_stack(lua->main);
    top = lua_gettop(lua->main);
    captured.number = 0;
    sxe__lua_log_error(L, "here");
    ck_assert(logged("here: not enough memory"));
    sxe__lua_add_traceback(L);
    ck_assert_str_eq(lua_tostring(L, -1), "the error");
    ck_assert_int_eq(sxe__lua_protect(lua, raise_table, NULL, "here"), -ENOMEM);
    ck_assert_int_eq(sxe__lua_prepare(lua, raise_table, NULL, "here"), -ENOMEM);
    ck_assert_int_eq(sxe_lua_call(lua, "f", ""), -ENOMEM);
    ck_assert_int_eq(lua_gettop(lua->main), top);
    lua->heap.fail_times = 0;
    state_stop();
}
END_TEST

/* ---- Calls outside of tasks ---- */

START_TEST(a_protected_call_has_results_or_a_line_in_the_log)
{
    lua_State *L;

    state_start();
    L = lua->main;
    ck_assert_int_eq(luaL_loadstring(L, "return ..., 2"), LUA_OK);
    lua_pushinteger(L, 1);
    ck_assert_int_eq(sxe__lua_pcall(L, 1, LUA_MULTRET, "on_read"), 0);
    ck_assert_int_eq(lua_gettop(L), 2);
    lua_settop(L, 0);
    ck_assert_int_eq(luaL_loadstring(L, "local x\n return x.y"), LUA_OK);
    captured.number = 0;
    ck_assert_int_eq(sxe__lua_pcall(L, 0, 2, "on_read of 0.0.0.0:80"), -EINVAL);
    ck_assert_int_eq(lua_gettop(L), 0);
    ck_assert(strstr(line_behind_id(0), " on_read of 0.0.0.0:80: ") != NULL);
    ck_assert_str_eq(line_behind_id(1), "   stack traceback:\n");
    state_stop();
}
END_TEST

static int
two(lua_State *L)
{
    return lua_toboolean(L, 1)
               ? sxe__lua_fail(L, "timeout")
               : sxe__lua_fail_errno(L, (int)luaL_checkinteger(L, 2), lua_tostring(L, 3));
}

START_TEST(calls_that_may_fail_return_nil_and_why)
{
    state_start();
    add_global("fail", two);
    run_script("local a, b, c = fail(true) assert(a == nil and b == 'timeout' and c == nil)\n"
               "a, b, c = fail(false, 2, 'open x')\n"
               "assert(a == nil and b == 'open x: No such file or directory' and c == 2)\n"
               "a, b, c = fail(false, 2) assert(b == 'No such file or directory')\n"
               "a, b, c = fail(false, 99999) assert(b == 'unknown error' and c == 99999)");
    state_stop();
}
END_TEST

START_TEST(warnings_are_lines)
{
    state_start();
    run_script("warn('@on') warn('one ', 'two') warn('@', 'x')\n"
               "setmetatable({}, {__gc = function() error('in gc', 0) end}) collectgarbage()");
    ck_assert(strstr(log_line(0), "one two") != NULL);
    ck_assert(strstr(log_line(1), "@x") != NULL);
    ck_assert(strstr(log_line(2), "in gc") != NULL);
    ck_assert_int_eq(captured.levels[0], SXE_LOG_WARNING);
    run_script("warn(('x'):rep(3000), 'y') warn('z')");
    ck_assert(logged(" z"));
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-error");
    TCase *tcase = tcase_create("error");

    tcase_add_test(tcase, an_error_is_a_line_with_an_id_and_lines_of_traceback);
    tcase_add_test(tcase, a_traceback_goes_through_coroutines);
    tcase_add_test(tcase, a_traceback_is_used_once);
    tcase_add_loop_test(tcase, errors_of_all_types_are_described, 0, 16);
    tcase_add_test(tcase, an_error_that_is_a_table_has_its_traceback_in_the_log);
    tcase_add_test(tcase, a_task_that_fails_with_a_table_has_its_traceback_in_the_log);
    tcase_add_test(tcase, an_error_that_is_a_table_is_kept);
    tcase_add_test(tcase, without_memory_an_error_is_logged_all_the_same);
    tcase_add_test(tcase, without_room_on_a_stack_nothing_is_lost);
    tcase_add_test(tcase, a_protected_call_has_results_or_a_line_in_the_log);
    tcase_add_test(tcase, calls_that_may_fail_return_nil_and_why);
    tcase_add_test(tcase, warnings_are_lines);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
