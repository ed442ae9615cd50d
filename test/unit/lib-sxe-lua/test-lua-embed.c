/* SPDX-License-Identifier: MIT
 *
 * A state of Lua and its scripts, as a C program uses them.
 */
#include "lua-state.h"

#include <stdlib.h>
#include <unistd.h>

#include "has.h"
#include "stops.h"
#include "sweep.h"

#include "test-main.h"

/* ---- A state ---- */

START_TEST(there_is_one_a_thread)
{
    state_start();
    errno = 0;
    ck_assert_ptr_null(sxe_lua_new(&(struct sxe_lua_config){0}));
    ck_assert_int_eq(errno, EINVAL);
    state_stop();
    state_start();
    state_stop();
    sxe_lua_delete(NULL);
}
END_TEST

static int
delete_state(lua_State *L)
{
    (void)L;
    sxe_lua_delete(lua);
    return 0;
}

static void
run_deletion(void *unused)
{
    (void)unused;
    load_text("delete()");
}

START_TEST(a_script_cannot_delete_its_state)
{
    state_start();
    add_global("delete", delete_state);
    check_has(message_of(run_deletion, NULL), "inside of a script");
}
END_TEST

START_TEST(defaults_are_filled_in)
{
    lua = sxe_lua_new(&(struct sxe_lua_config){0});
    ck_assert_ptr_nonnull(lua);
    ck_assert_uint_eq(sxe__lua_config()->memory_max, 256u << 20);
    ck_assert_uint_eq(sxe__lua_config()->tasks, 16384);
    ck_assert_uint_eq(sxe__lua_config()->ready_max, 256);
    ck_assert_uint_eq(sxe__lua_config()->cpu_ms, 1000);
    ck_assert_uint_eq(sxe__lua_config()->slice_ms, 10);
    ck_assert_ptr_eq(sxe__lua_main(lua), lua->main);
    state_stop();
}
END_TEST

START_TEST(a_state_without_memory_is_refused)
{
    for (unsigned nth = 1;; nth++) {
        capture_log();
        fake_os_sweep(allocations, ALLOCATIONS, nth, false, ENOMEM);
        lua = sxe_lua_new(&(struct sxe_lua_config){.tasks = 4});
        bool touched = fake_os_injected() > 0;
        fake_os_reset();
        if (lua == NULL)
            ck_assert_int_eq(errno, ENOMEM);
        state_stop();
        if (!touched)
            break;
    }
    ck_assert_ptr_null(sxe_lua_new(&(struct sxe_lua_config){.memory_max = 1}));
    ck_assert_ptr_null(sxe_lua_new(&(struct sxe_lua_config){.memory_max = 100000}));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

static bool
can_require(const char *module)
{
    bool is_there;

    lua_getglobal(lua->main, "require");
    lua_pushstring(lua->main, module);
    is_there = lua_pcall(lua->main, 1, 1, 0) == LUA_OK;
    lua_settop(lua->main, 0);
    return is_there;
}

/* The memory limit is reached in turn while the state is made, a module is loaded, or a script
 * runs. */
START_TEST(a_limit_of_memory_may_be_met_anywhere)
{
    struct sxe_lua_config config = {.tasks = 4, .memory_max = 512};

    capture_log();
    for (bool is_enough = false; !is_enough; config.memory_max += 512) {
        lua = sxe_lua_new(&config);
        if (lua == NULL)
            ck_assert_int_eq(errno, ENOMEM);
        is_enough = lua != NULL && can_require("sxe.task");
        state_stop();
    }
    ck_assert_uint_gt(config.memory_max, 100000);
}
END_TEST

START_TEST(a_state_without_a_watchdog_is_refused)
{
    capture_log();
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 1, EAGAIN);
    ck_assert_ptr_null(sxe_lua_new(&(struct sxe_lua_config){0}));
    ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

START_TEST(memory_is_what_it_holds_and_the_most_it_held)
{
    size_t before, after, most;

    state_start();
    /* Otherwise the next allocation may free more than it takes. */
    run_script("collectgarbage() collectgarbage()");
    before = sxe_lua_memory(lua, NULL);
    run_script("kept = ('x'):rep(1000000)");
    after = sxe_lua_memory(lua, &most);
    ck_assert_uint_ge(after, before + 1000000);
    ck_assert_uint_ge(most, after);
    run_script("kept = nil collectgarbage() collectgarbage()");
    ck_assert_uint_lt(sxe_lua_memory(lua, &most), before + 1000000);
    ck_assert_uint_ge(most, after);
    state_stop();
}
END_TEST

/* ---- Scripts ---- */

START_TEST(a_script_has_the_standard_library_and_its_arguments)
{
    char path[] = "script.lua", one[] = "one", two[] = "two";
    char *argv[] = {path, one, two};

    state_start_with(&(struct sxe_lua_config){.argc = 3, .argv = argv});
    run_script("assert(arg[0] == 'script.lua' and arg[2] == 'two' and #arg == 2)\n"
               "local a, b, c = ... assert(a == 'one' and b == 'two' and c == nil)\n"
               "assert(string.rep and table.sort and math.pi and os.time and io.open and debug)\n"
               "assert(utf8.char and coroutine.wrap and package.path and require)");
    state_stop();
}
END_TEST

START_TEST(a_script_that_fails_says_where_and_by_whom_it_was_called)
{
    state_start();
    fails_with("local function f()\n error 'boom'\n end\nf()", "test: test:2: boom");
    ck_assert(logged("stack traceback:"));
    ck_assert(logged("test:2: in local 'f'") || logged("test:2: in upvalue 'f'"));
    ck_assert(logged("test:4: in "));
    fails_with("local x =", "test:1: unexpected symbol near <eof>");
    fails_with("error{status = 503, message = 'full'}", "status 503: full");
    state_stop();
}
END_TEST

START_TEST(bytecode_is_refused_unless_asked_for)
{
    state_start();
    fails_with("\x1bLua", "attempt to load a binary chunk");
    run_script("local code = string.dump(function() return 7 end)\n"
               "assert(not load(code)) assert(not load(code, '=x', nil, {}))\n"
               "assert(load(code, '=x', 'b')() == 7) assert(load('return 7')() == 7)\n"
               "assert(load('return x', '=x', nil, {x = 5})() == 5)");
    state_stop();
}
END_TEST

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(a_script_is_a_file)
{
    char directory[] = "/tmp/lua-embed-XXXXXX";

    state_start();
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    ck_assert_int_eq(sxe_lua_load(lua, "none.lua"), -ENOENT);
    ck_assert(logged("none.lua"));
    ck_assert_int_eq(sxe_lua_load(lua, "."), -EISDIR);
    write_file("good.lua", "seen = 7 return 1");
    ck_assert_int_eq(sxe_lua_load(lua, "good.lua"), 0);
    run_script(
        "assert(seen == 7) assert(dofile 'good.lua' == 1) assert(loadfile('good.lua')() == 1)\n"
        "assert(loadfile('good.lua', 't', {})() == 1) assert(not pcall(dofile, 'none.lua'))\n"
        "local f = io.open('code', 'w') f:write(string.dump(function() end)) f:close()\n"
        "assert(not pcall(dofile, 'code')) assert(not loadfile('code'))\n"
        "assert(loadfile('code', 'b'))");
    unlink("good.lua");
    unlink("code");
    rmdir(directory);
    state_stop();
}
END_TEST

START_TEST(what_a_script_returns_is_kept)
{
    state_start();
    sxe__lua_push_script(lua->main);
    ck_assert(lua_isnil(lua->main, -1));
    run_script("return 'handler', 2");
    sxe__lua_push_script(lua->main);
    ck_assert_str_eq(lua_tostring(lua->main, -1), "handler");
    run_script("return");
    sxe__lua_push_script(lua->main);
    ck_assert_str_eq(lua_tostring(lua->main, -1), "handler");
    state_stop();
}
END_TEST

static int
refuse_memory(lua_State *L)
{
    (void)L;
    lua->heap.fail_times = UINT64_MAX;
    return 0;
}

/* With some number of keys the registry is full, so that the next key needs memory, which fails. */
START_TEST(what_cannot_be_kept_leaves_nothing)
{
    static const char keys[64];

    state_start();
    add_global("refuse_memory", refuse_memory);
    for (int i = 0; i < _i; i++) {
        lua_pushboolean(lua->main, 1);
        lua_rawsetp(lua->main, LUA_REGISTRYINDEX, &keys[i]);
    }
    ck_assert_int_eq(load_text("refuse_memory() return 1"), 0);
    lua->heap.fail_times = 0;
    ck_assert_int_eq(lua_gettop(lua->main), 0);
    state_stop();
}
END_TEST

START_TEST(a_script_may_wait_and_is_not_waited_for)
{
    state_start();
    run_script("global = 1 coroutine.yield() other = 2");
    ck_assert_uint_eq(lua->loading, 1);
    state_stop();
}
END_TEST

START_TEST(a_state_starts_with_the_loop)
{
    state_start();
    run_script("sxe_register(1, function() began = true end) began = false");
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    run_script("assert(began)");
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
}
END_TEST

START_TEST(a_state_starts_once_and_only_with_a_loop)
{
    state_start();
    ck_assert_int_eq(sxe_lua_init(lua), -EINVAL);
    ck_assert(logged("sxe_lua_init: call it after sxe_init, and once"));
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    ck_assert_int_eq(sxe_lua_init(lua), -EINVAL);
    ck_assert_int_eq(sxe_run(), 0); /* nothing keeps the loop running */
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
}
END_TEST

START_TEST(a_state_does_not_start_without_a_watchdog)
{
    state_start();
    sxe__lua_watch_stop(lua);
    until_unwatched();
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 1, EAGAIN);
    ck_assert_int_eq(sxe_lua_init(lua), -EAGAIN);
    state_stop();
}
END_TEST

/* ---- Globals ---- */

START_TEST(globals_are_made_at_the_top_level_only)
{
    state_start();
    run_script("count = 0\n"
               "function good() count = count + 1 return count end\n"
               "function bad() cuont = count + 1 end\n"
               "function worse() return cuont end\n"
               "if undefined then error() end empty = nil\n"
               "function fill() if not empty then empty = 1 end end");
    ck_assert_int_eq(sxe_lua_call(lua, "good", ""), 0);
    ck_assert_int_eq(sxe_lua_call(lua, "fill", ""), 0);
    ck_assert_int_eq(sxe_lua_call(lua, "bad", ""), -EINVAL);
    ck_assert(logged("test:3: assignment to undeclared global 'cuont'"));
    ck_assert_int_eq(sxe_lua_call(lua, "worse", ""), -EINVAL);
    ck_assert(logged("test:4: undeclared global 'cuont'"));
    state_stop();
}
END_TEST

START_TEST(a_loose_state_makes_globals_at_any_time)
{
    int made;

    state_start_with(&(struct sxe_lua_config){.is_loose = true});
    run_script("function set() made = (other or 0) + 1 end function get() return made end");
    ck_assert_int_eq(sxe_lua_call(lua, "set", ""), 0);
    ck_assert_int_eq(sxe_lua_call(lua, "get", ">i", &made), 0);
    ck_assert_int_eq(made, 1);
    state_stop();
}
END_TEST

/* ---- Calls from C ---- */

START_TEST(c_calls_a_function)
{
    int i = 0, b = 0;
    int64_t l = 0;
    double d = 0;
    const char *s, *z;
    size_t length;

    state_start();
    run_script("function echo(...) return ... end t = {u = {f = function(s) return #s end}}");
    ck_assert_int_eq(sxe_lua_call(lua, "echo", "ildbsz>ildbsz", -5, INT64_C(1) << 40, 0.5, 1,
                                  "text", "a\0b", (size_t)3, &i, &l, &d, &b, &s, &z, &length),
                     0);
    ck_assert_int_eq(i, -5);
    ck_assert_int_eq(l, INT64_C(1) << 40);
    ck_assert(d == 0.5);
    ck_assert_int_eq(b, 1);
    ck_assert_str_eq(s, "text");
    ck_assert_uint_eq(length, 3);
    ck_assert_mem_eq(z, "a\0b", 3);
    ck_assert_int_eq(sxe_lua_call(lua, "t.u.f", "s>i", "four", &i), 0);
    ck_assert_int_eq(i, 4);
    ck_assert_int_eq(sxe_lua_call(lua, "echo", "s", "more than is wanted"), 0);
    ck_assert_int_eq(sxe_lua_call(lua, "echo", ">b", &b), 0);
    ck_assert_int_eq(b, 0);
    state_stop();
}
END_TEST

START_TEST(c_is_told_why_a_call_failed)
{
    static const char *const signatures[] = {">i", ">l", ">d", ">s", ">x", "x"};
    int i;

    state_start();
    run_script("function none() end function big() return 1 << 40 end n = 5");
    ck_assert_int_eq(sxe_lua_call(lua, "nothing", ""), -ENOENT);
    ck_assert_int_eq(sxe_lua_call(lua, "n.f", ""), -EINVAL);
    for (unsigned nth = 0; nth < sizeof(signatures) / sizeof(*signatures); nth++)
        ck_assert_int_eq(sxe_lua_call(lua, "none", signatures[nth], &i, &i), -EINVAL);
    ck_assert(logged("none: result 1 is nil, not an int"));
    ck_assert(logged("no type 'x' in a signature"));
    ck_assert_int_eq(sxe_lua_call(lua, "big", ">i", &i), -EINVAL);
    state_stop();
}
END_TEST

START_TEST(a_call_that_waits_is_in_progress)
{
    int i = 7;

    state_start();
    run_script("function wait() coroutine.yield() return 5 end\n"
               "function fail() coroutine.yield() error 'late' end\n"
               "function stop() coroutine.yield(); (nil)() end");
    ck_assert_int_eq(sxe_lua_call(lua, "wait", ">i", &i), -EINPROGRESS);
    ck_assert_int_eq(sxe_lua_call(lua, "fail", ""), -EINPROGRESS);
    ck_assert_int_eq(i, 7);
    state_stop();
}
END_TEST

START_TEST(results_may_be_too_many_for_the_memory)
{
    state_start();
    add_global("refuse_memory", refuse_memory);
    run_script(
        "local unpack, none = table.unpack, {} unpack(none, 1, 500)\n"
        "function many() unpack(none, 1, 500) refuse_memory() return unpack(none, 1, 400) end");
    ck_assert_int_eq(sxe_lua_call(lua, "many", ""), -EINVAL);
    lua->heap.fail_times = 0;
    ck_assert(logged("many: not enough memory for its results"));
    state_stop();
}
END_TEST

/* A C function of a program that calls Lua and lets other tasks run. */
static int
call_back(lua_State *L)
{
    int result;

    ck_assert_int_eq(sxe_lua_call(lua, "inner", ">i", &result), 0);
    turn_tasks();
    lua_pushinteger(L, result);
    return 1;
}

START_TEST(calls_may_be_inside_of_calls)
{
    int result;

    state_start();
    add_global("call_back", call_back);
    run_script("function inner() return 5 end function outer() return call_back() + 1 end\n"
               "function wait() coroutine.yield() ended = true end ended = false");
    ck_assert_int_eq(sxe_lua_call(lua, "wait", ""), -EINPROGRESS);
    ck_assert_int_eq(sxe_lua_call(lua, "outer", ">i", &result), 0);
    ck_assert_int_eq(result, 6);
    run_script("assert(ended)");
    state_stop();
}
END_TEST

START_TEST(no_call_without_a_free_task)
{
    state_start_with(&(struct sxe_lua_config){.tasks = 1});
    run_script("function wait() coroutine.yield() end");
    ck_assert_int_eq(sxe_lua_call(lua, "wait", ""), -EINPROGRESS);
    ck_assert_int_eq(sxe_lua_call(lua, "wait", ""), -ENOMEM);
    ck_assert_int_eq(load_text("return 1"), -ENOMEM);
    ck_assert_uint_eq(lua->loading, 0);
    state_stop();
}
END_TEST

/* ---- Modules and variables of C ---- */

static int
twice(lua_State *L)
{
    lua_pushinteger(L, 2 * luaL_checkinteger(L, 1));
    return 1;
}

START_TEST(a_module_of_c_is_required_by_name)
{
    static const luaL_Reg functions[] = {{"twice", twice}, {NULL, NULL}};

    state_start();
    ck_assert_int_eq(sxe_lua_module(lua, "my.numbers", functions), 0);
    run_script("assert(require('my.numbers').twice(21) == 42)");
    state_stop();
}
END_TEST

START_TEST(variables_of_c_are_fields)
{
    bool b = true;
    int i = 8000;
    int64_t l = 1;
    double d = 0.5;
    char s[6] = "hello";

    state_start();
    ck_assert_int_eq(sxe_lua_bind_field(lua, "config", "b", SXE_LUA_BOOL, &b), 0);
    ck_assert_int_eq(sxe_lua_bind_field(lua, "config", "i", SXE_LUA_INT, &i), 0);
    ck_assert_int_eq(sxe_lua_bind_field(lua, "config", "l", SXE_LUA_INT64, &l), 0);
    ck_assert_int_eq(sxe_lua_bind_field(lua, "config", "d", SXE_LUA_DOUBLE, &d), 0);
    ck_assert_int_eq(sxe_lua_bind_string(lua, "config", "s", s, sizeof(s)), 0);
    run_script(
        "local c = config\n"
        "assert(c.b == true and c.i == 8000 and c.l == 1 and c.d == 0.5 and c.s == 'hello')\n"
        "c.b, c.i, c.l, c.d, c.s = false, -1, 1 << 40, 2, 'good day' assert(c.s == 'good ')\n"
        "assert(c.other == nil) c.other = 5 assert(c.other == 5)\n"
        "for _, k in ipairs{'b', 'i', 'l', 'd', 's'} do\n"
        "    assert(not pcall(function() c[k] = {} end))\n"
        "end\n"
        "assert(not pcall(function() c.i = 1 << 40 end))\n"
        "assert(not pcall(function() c.s = 'a\\0b' end))");
    ck_assert(!b);
    ck_assert_int_eq(i, -1);
    ck_assert_int_eq(l, INT64_C(1) << 40);
    ck_assert(d == 2.0);
    ck_assert_str_eq(s, "good ");
    i = 99;
    run_script("assert(config.i == 99)");
    state_stop();
}
END_TEST

START_TEST(what_cannot_be_tied_is_refused)
{
    int i;
    char s[1];

    state_start();
    run_script("number = 5 meta = setmetatable({}, {}) filled = {i = 3}");
    ck_assert_int_eq(sxe_lua_bind_field(lua, "number", "i", SXE_LUA_INT, &i), -EINVAL);
    ck_assert_int_eq(sxe_lua_bind_field(lua, "meta", "i", SXE_LUA_INT, &i), -EINVAL);
    ck_assert_int_eq(sxe_lua_bind_field(lua, "config", "i", SXE_LUA_STRING, &i), -EINVAL);
    ck_assert_int_eq(sxe_lua_bind_field(lua, "config", "i", (enum sxe_lua_type)'x', &i), -EINVAL);
    ck_assert_int_eq(sxe_lua_bind_field(lua, "config", "i", (enum sxe_lua_type)0, &i), -EINVAL);
    ck_assert_int_eq(sxe_lua_bind_field(NULL, "config", "i", SXE_LUA_INT, &i), -EINVAL);
    ck_assert_int_eq(sxe_lua_bind_string(lua, "config", "s", s, 0), -EINVAL);
    ck_assert_int_eq(sxe_lua_bind_field(lua, "filled", "i", SXE_LUA_INT, &i), 0);
    i = 4;
    run_script("assert(filled.i == 4)");
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-embed");
    TCase *tcase = tcase_create("embed");

    tcase_add_test(tcase, there_is_one_a_thread);
    tcase_add_test(tcase, a_script_cannot_delete_its_state);
    tcase_add_test(tcase, defaults_are_filled_in);
    tcase_add_test(tcase, a_state_without_memory_is_refused);
    tcase_add_test(tcase, a_limit_of_memory_may_be_met_anywhere);
    tcase_add_test(tcase, a_state_without_a_watchdog_is_refused);
    tcase_add_test(tcase, memory_is_what_it_holds_and_the_most_it_held);
    tcase_add_test(tcase, a_script_has_the_standard_library_and_its_arguments);
    tcase_add_test(tcase, a_script_that_fails_says_where_and_by_whom_it_was_called);
    tcase_add_test(tcase, bytecode_is_refused_unless_asked_for);
    tcase_add_test(tcase, a_script_is_a_file);
    tcase_add_test(tcase, what_a_script_returns_is_kept);
    tcase_add_loop_test(tcase, what_cannot_be_kept_leaves_nothing, 0, 64);
    tcase_add_test(tcase, a_script_may_wait_and_is_not_waited_for);
    tcase_add_test(tcase, a_state_starts_with_the_loop);
    tcase_add_test(tcase, a_state_starts_once_and_only_with_a_loop);
    tcase_add_test(tcase, a_state_does_not_start_without_a_watchdog);
    tcase_add_test(tcase, globals_are_made_at_the_top_level_only);
    tcase_add_test(tcase, a_loose_state_makes_globals_at_any_time);
    tcase_add_test(tcase, c_calls_a_function);
    tcase_add_test(tcase, c_is_told_why_a_call_failed);
    tcase_add_test(tcase, a_call_that_waits_is_in_progress);
    tcase_add_test(tcase, results_may_be_too_many_for_the_memory);
    tcase_add_test(tcase, calls_may_be_inside_of_calls);
    tcase_add_test(tcase, no_call_without_a_free_task);
    tcase_add_test(tcase, a_module_of_c_is_required_by_name);
    tcase_add_test(tcase, variables_of_c_are_fields);
    tcase_add_test(tcase, what_cannot_be_tied_is_refused);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
