/* SPDX-License-Identifier: MIT
 *
 * sxe.run of an interpreter that is not ours: copies of values, errors, and a run after them.
 */
#include "sxe-lua-host.h"

#include <check.h>
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "fake-os.h"
#include "script-module.h"
#include "sweep.h"
#include "sxe-lua.h"
#include "sxe.h"
#include "test-main.h"

static struct sxe_lua_config config;
static lua_State *host;

static void
host_start(void)
{
    sxe_log_set_level(SXE_LOG_FATAL);
    host = luaL_newstate();
    ck_assert_ptr_nonnull(host);
    luaL_openlibs(host);
    ck_assert_int_eq(sxe_lua_host_open(host, &config), 1);
    lua_setglobal(host, "sxe");
}

static void
host_stop(void)
{
    lua_close(host);
    ck_assert_ptr_null(sxe_loop());
}

/* Run a text in the interpreter: its result or error as text, until the next call. */
static const char *
said(const char *text)
{
    static char room[4096];
    bool is_loaded = luaL_loadstring(host, text) == LUA_OK;

    if (is_loaded)
        lua_pcall(host, 0, 1, 0);
    snprintf(room, sizeof(room), "%s",
             lua_isnil(host, -1) ? "nil" : luaL_tolstring(host, -1, NULL));
    lua_settop(host, 0);
    return room;
}

START_TEST(values_are_copied_both_ways)
{
    host_start();
    ck_assert_str_eq(
        said("local n, y, i, d, s, t = sxe.run(function(...) local n, y, i, d, s, t = ... "
             "t.more = {z = 's'} return n, y, i + 1, d, s .. '!', t end, "
             "nil, true, 41, 0.5, 'a\\0b', {7, [true] = {8}}) "
             "return string.format('%s %s %s %s %q %d %d %s', n, y, i, d, s, t[1], t[true][1], "
             "t.more.z)"),
        "nil true 42 0.5 \"a\\0b!\" 7 8 s");
    ck_assert_str_eq(said("return select('#', sxe.run('return nil, nil, nil'))"), "3");
    ck_assert_str_eq(said("return select('#', sxe.run(''))"), "0");
    ck_assert_str_eq(said("return #{sxe.run('return ...', table.unpack({}, 1, 0))}"), "0");
    ck_assert_str_eq(said("return sxe.version"), SXE_VERSION);
    host_stop();
}
END_TEST

START_TEST(what_cannot_be_copied_is_an_error)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"local t = {} t.t = t return sxe.run('', t)", "more than 100 deep, or is in itself"},
        {"return sxe.run('local t = {} t.t = t return t')", "more than 100 deep, or is in itself"},
        {"return sxe.run('', {print})", "a function cannot be copied"},
        {"return sxe.run('return io.stdout')", "a userdata cannot be copied"},
        {"return sxe.run(print)", "a function of C cannot be copied"},
        {"local up = 1 return sxe.run(function() return up end)", "uses 'up', a local variable"},
        {"return sxe.run({})", "string expected, got table"},
    };

    host_start();
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *answer = said(cases[i].text);

        ck_assert_msg(strstr(answer, cases[i].says) != NULL, "%s: %s", cases[i].text, answer);
        ck_assert_str_eq(said("return sxe.run('return 1')"), "1");
    }
    host_stop();
}
END_TEST

START_TEST(errors_end_the_run)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"return sxe.run('x x')", "syntax error"},
        {"return sxe.run(function() error 'oops' end)", "oops"},
        {"return sxe.run(function() require 'sxe.task'.sleep(0) error 'late' end)", "late"},
        {"return sxe.run(\"local t = require 'sxe.task' t.start(function() error 'one' end) "
         "t.start(function() error 'two' end) while true do t.sleep(1) end\")",
         "one"},
        {"return sxe.run(\"require 'sxe.task'.event():wait()\")", "nothing can wake it"},
    };

    host_start();
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *answer = said(cases[i].text);

        ck_assert_msg(strstr(answer, cases[i].says) != NULL, "%s: %s", cases[i].text, answer);
        ck_assert_str_eq(said("return sxe.run('return 1')"), "1");
    }
    host_stop();
}
END_TEST

START_TEST(a_run_waits_for_the_tasks_that_it_started)
{
    host_start();
    ck_assert_str_eq(
        said("return sxe.run(function() local task = require 'sxe.task' local t = {} "
             "task.start(function() task.sleep(0.01) t[1] = 'done' end) return t end)[1]"),
        "done");
    host_stop();
}
END_TEST

START_TEST(a_thread_with_a_loop_has_no_run)
{
    config.sockets = 100;
    host_start();
    ck_assert_str_eq(said("return sxe.run('return 1')"), "1");
    sxe_register(10, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_ptr_nonnull(strstr(said("return sxe.run('')"), "has a loop already"));
    sxe_fini();
    host_stop();
    config.memory_max = 1;
    host_start();
    ck_assert_ptr_nonnull(strstr(said("return sxe.run('')"), "cannot make a state"));
    config.memory_max = 0;
    host_stop();
}
END_TEST

/* Each call for memory fails in turn, of either state, then each that makes the loop. */
START_TEST(a_run_that_fails_leaves_nothing)
{
    static const enum fake_call others[] = {FAKE_EPOLL_CREATE1, FAKE_MMAP};
    static const char scenario[] = "return sxe.run(function(t) require 'sxe.task'.sleep(0) return "
                                   "#t, t[1] end, {'a', {1, 2, 3}})";

    host_start();
    for (unsigned nth = 1, kind = 0; kind < 2; nth++) {
        bool is_touched;

        fake_os_sweep(kind == 0 ? allocations : others, kind == 0 ? ALLOCATIONS : 2, nth, false,
                      ENOMEM);
        said(scenario);
        is_touched = fake_os_injected() > 0;
        fake_os_reset();
        ck_assert_ptr_null(sxe_loop());
        ck_assert_str_eq(said(scenario), "2");
        if (!is_touched) {
            kind++;
            nth = 0;
        }
    }
    host_stop();
}
END_TEST

START_TEST(the_module_has_all_that_scripts_have)
{
    host_start();
    lua_pushcfunction(host, luaopen_sxe);
    lua_call(host, 0, 1);
    lua_setglobal(host, "sxe");
    ck_assert_str_eq(said("return #sxe.run(\"return require 'sxe.crypto'.digest('sha256', 'a')\")"),
                     "32");
    host_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-host");
    TCase *tcase = tcase_create("host");

    tcase_add_test(tcase, values_are_copied_both_ways);
    tcase_add_test(tcase, what_cannot_be_copied_is_an_error);
    tcase_add_test(tcase, errors_end_the_run);
    tcase_add_test(tcase, a_run_waits_for_the_tasks_that_it_started);
    tcase_add_test(tcase, a_thread_with_a_loop_has_no_run);
    tcase_add_test(tcase, a_run_that_fails_leaves_nothing);
    tcase_add_test(tcase, the_module_has_all_that_scripts_have);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
