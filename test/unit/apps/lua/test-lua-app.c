/* SPDX-License-Identifier: MIT
 *
 * sxe-lua as a program that runs scripts. The shell is tested by test-lua-repl.c.
 */
#include "run-lua.h"
#include "sxe-util.h"

#include <dlfcn.h>
#include <errno.h>
#include <lauxlib.h>

/* luaL_newstate() fails while fail_states is set. */
static bool fail_states;

lua_State *
luaL_newstate(void)
{
    void *found = dlsym(RTLD_NEXT, "luaL_newstate");
    lua_State *(*real)(void);

    memcpy(&real, &found, sizeof(real));
    return fail_states ? NULL : real();
}

/* ---- Scripts ---- */

START_TEST(a_script_has_its_arguments_and_those_before_it)
{
    write_file("a.lua", "#!/usr/bin/env sxe-lua\n"
                        "print(arg[-2], arg[-1], arg[0], arg[1], arg[2], #arg, ...)\n");
    RUN_LUA("--loose", "a.lua", "--not-ours", "-x");
    ended(0, "sxe-lua\t--loose\ta.lua\t--not-ours\t-x\t2\t--not-ours\t-x\n", "");
}
END_TEST

START_TEST(a_script_may_be_behind_two_dashes)
{
    write_file("-a.lua", "print(arg[0], ...)");
    RUN_LUA("--", "-a.lua", "x");
    ended(0, "-a.lua\tx\n", "");
}
END_TEST

START_TEST(it_ends_when_nothing_is_left_to_do)
{
    write_file("a.lua", "local task, timer = require 'sxe.task', require 'sxe.timer'\n"
                        "task.start(function() task.sleep(0.02) print 'third' end)\n"
                        "timer.after(0.01, function() print 'second' end)\n"
                        "print 'first'\n");
    RUN_LUA("a.lua");
    ended(0, "first\nsecond\nthird\n", "");
}
END_TEST

START_TEST(code_of_the_command_line_runs_before_the_script)
{
    write_file("a.lua", "print(x, ...)");
    RUN_LUA("-e", "x = 1", "--execute=x = x + 1", "a.lua", "arg");
    ended(0, "2\targ\n", "");
    RUN_LUA("-e", "print(arg[0], #arg)");
    ended(0, "sxe-lua\t0\n", "");
}
END_TEST

START_TEST(os_exit_is_its_status)
{
    RUN_LUA("-e", "os.exit(7)");
    ended(7, "", "");
}
END_TEST

START_TEST(a_script_may_compute_for_as_long_as_it_likes_but_cpu_says_else)
{
    RUN_LUA("--cpu", "20ms", "-e", "while true do end");
    ended(1, "", "exceeded 20 ms of CPU");
}
END_TEST

START_TEST(tasks_and_sockets_have_limits_to_set)
{
    RUN_LUA("--tasks", "4", "--sockets", "70", "-e",
            "local task, n = require 'sxe.task', 0\n"
            "while task.start(task.sleep, 0.001) do n = n + 1 end print(n)");
    ended(0, "3\n", "");
}
END_TEST

START_TEST(memory_has_a_limit)
{
    RUN_LUA("--memory", "4m", "-e", "local x = ('x'):rep(8 << 20)");
    ended(1, "", "error: not enough memory");
}
END_TEST

START_TEST(a_connection_is_made_at_the_top_level)
{
    RUN_LUA("-e", "print((select(2, require 'sxe.tcp'.connect('127.0.0.1', 1))))");
    ended(0, "connect: Connection refused\n", "");
}
END_TEST

START_TEST(globals_are_made_by_the_top_level_unless_it_is_loose)
{
    static const char text[] = "require 'sxe.task'.start(function() late = 1 print(late) end)";

    RUN_LUA("-e", text);
    ended(1, "", "assignment to undeclared global 'late'");
    RUN_LUA("--loose", "-e", text);
    ended(0, "1\n", "");
}
END_TEST

/* ---- Standard input ---- */

static void
input_is_a_file(void)
{
    int fd = open("input", O_RDONLY | O_CLOEXEC);

    dup2(fd, STDIN_FILENO);
    close(fd);
}

START_TEST(standard_input_is_a_script)
{
    write_file("input", "#!/usr/bin/sxe-lua\nprint(debug.getinfo(1).currentline, ...)");
    ran.prepare = input_is_a_file;
    RUN_LUA("-", "a");
    ended(0, "2\ta\n", "");
    RUN_LUA(NULL);
    ended(0, "2\n", "");
}
END_TEST

START_TEST(an_empty_input_is_a_script_that_does_nothing)
{
    const char *texts[] = {"", "#!only this"};

    write_file("input", texts[_i]);
    ran.prepare = input_is_a_file;
    RUN_LUA("-");
    ended(0, "", "");
}
END_TEST

static void
input_is_a_directory(void)
{
    int fd = open(".", O_RDONLY | O_CLOEXEC);

    dup2(fd, STDIN_FILENO);
    close(fd);
}

START_TEST(what_cannot_be_read_is_said)
{
    ran.prepare = input_is_a_directory;
    RUN_LUA("-");
    ended(1, "", "sxe-lua: cannot read standard input: Is a directory");
}
END_TEST

static void
no_memory_for_the_input(void)
{
    input_is_a_file();
    fake_os_fail(FAKE_REALLOC, 1, 0, ENOMEM);
}

START_TEST(input_without_memory_is_refused)
{
    write_file("input", "print 'never'");
    ran.prepare = no_memory_for_the_input;
    RUN_LUA("-");
    ended(1, "", "sxe-lua: standard input is too long for a script");
}
END_TEST

/* ---- Errors ---- */

START_TEST(an_error_is_told_with_its_place_and_its_lines)
{
    write_file("bad.lua", "local x = {}\nlocal function f() return x.y.z end\nf()\n");
    RUN_LUA("bad.lua");
    ended(1, "", "error: attempt to index a nil value (field 'y')\n    --> bad.lua:2\n");
    check_has(ran.errors, "   2 | local function f() return x.y.z end\n");
    check_has(ran.errors, "stack traceback:\n\tbad.lua:2: in ");
}
END_TEST

START_TEST(what_does_not_compile_is_told_with_its_place)
{
    write_file("bad.lua", "local x = = 3\n");
    RUN_LUA("bad.lua");
    ended(1, "", "error: unexpected symbol near '='\n    --> bad.lua:1\n");
}
END_TEST

START_TEST(a_script_that_is_not_there_is_told)
{
    RUN_LUA("nowhere.lua");
    ended(1, "", "error: cannot open nowhere.lua");
}
END_TEST

START_TEST(an_error_after_a_wait_ends_it_at_once)
{
    write_file("bad.lua", "local task = require 'sxe.task'\n"
                          "task.start(function() task.sleep(1000) end)\n"
                          "task.sleep(0.01)\n"
                          "error('oops')\n");
    RUN_LUA("bad.lua");
    ended(1, "", "error: oops\n    --> bad.lua:4\n");
}
END_TEST

START_TEST(others_go_on_after_the_error_of_a_task)
{
    write_file("a.lua", "local task = require 'sxe.task'\n"
                        "task.start(function() error('oops') end)\n"
                        "task.sleep(0.01) print('done')\n");
    RUN_LUA("a.lua");
    ended(1, "done\n", "error: oops\n    --> a.lua:2\n");
}
END_TEST

START_TEST(a_wait_for_what_never_comes_is_an_error)
{
    RUN_LUA("-e", "require 'sxe.task'.event():wait()");
    ended(1, "", "error: the script waits, but nothing is left that could wake it\n");
}
END_TEST

START_TEST(a_handler_that_nobody_serves_with_is_pointed_out)
{
    RUN_LUA("-e", "return function(req) end");
    ended(0, "", "hint: the script returned a handler; sxe-httpd --lua SCRIPT ");
    RUN_LUA("-e", "return 5");
    ended(0, "", "");
}
END_TEST

/* ---- Signals ---- */

START_TEST(a_signal_ends_all_tasks)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    char number[8];

    write_file("a.lua", "local task, timer = require 'sxe.task', require 'sxe.timer'\n"
                        "local closed <close> = setmetatable({}, {__close = function()\n"
                        "    print 'closed' end})\n"
                        "timer.after(0.01, function() io.popen('kill -' .. arg[1] ..\n"
                        "    ' $PPID'):close() end)\n"
                        "task.sleep(1000)\n");
    snprintf(number, sizeof(number), "%d", signals[_i]);
    RUN_LUA("a.lua", number);
    ended(128 + signals[_i], "closed\n", "");
}
END_TEST

/* ---- Scripts that cannot start ---- */

static void
no_state(void)
{
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
}

START_TEST(no_memory_for_a_state_is_said)
{
    ran.prepare = no_state;
    RUN_LUA("-e", "print 'never'");
    ended(1, "", "sxe-lua: cannot start: Cannot allocate memory");
}
END_TEST

static void
no_loop(void)
{
    fake_os_fail(FAKE_EPOLL_CREATE1, 1, 0, EMFILE);
}

START_TEST(a_loop_that_cannot_be_made_is_said)
{
    ran.prepare = no_loop;
    RUN_LUA("-e", "print 'planned'");
    ended(1, "planned\n", "sxe_init: cannot open a loop for 64 sockets");
}
END_TEST

static unsigned sweep_nth;

static void
fail_nth(void)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_ALIGNED_ALLOC,
                                           FAKE_PTHREAD_CREATE, FAKE_EPOLL_CREATE1};

    fake_os_sweep(kinds, sizeof(kinds) / sizeof(kinds[0]), sweep_nth, false, ENOMEM);
}

START_TEST(whatever_call_fails_it_ends_with_a_status)
{
    write_file("a.lua", "require 'sxe.task'.sleep(0) print 'done'");
    ran.prepare = fail_nth;
    do {
        sweep_nth++;
        RUN_LUA("a.lua");
        ck_assert_msg(ran.status == 0 || ran.status == 1, "call %u: status %d, %s", sweep_nth,
                      ran.status, ran.errors);
        if (ran.status == 0)
            ck_assert_str_eq(ran.output, "done\n");
        else
            ck_assert_str_ne(ran.errors, "");
    } while (ran.injected > 0);
}
END_TEST

/* ---- --check ---- */

START_TEST(check_only_compiles)
{
    write_file("good.lua", "print 'never'");
    write_file("bad.lua", "x =\n");
    RUN_LUA("--check", "good.lua");
    ended(0, "", "");
    RUN_LUA("--check", "bad.lua", "good.lua", "nowhere.lua");
    ended(1, "", "error: unexpected symbol near <eof>\n    --> bad.lua:2\n");
    check_has(ran.errors, "error: cannot open nowhere.lua");
}
END_TEST

static void
no_states(void)
{
    fail_states = true;
}

START_TEST(check_without_memory_is_said)
{
    write_file("good.lua", "");
    ran.prepare = no_states;
    RUN_LUA("--check", "good.lua");
    ended(1, "", "sxe-lua: cannot start: Cannot allocate memory");
}
END_TEST

/* ---- --rocks, --new ---- */

START_TEST(a_project_is_made_and_its_modules_are_listed)
{
    RUN_LUA("--new", "shop");
    ended(0, "made shop: type  cd shop && make test run\n", "");
    RUN_LUA("--new", "shop");
    ended(1, "", "sxe-lua: --new: shop: File exists\n");
    RUN_LUA("--rocks", "shop/app.lua");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "\nsxe.http      libsxe  " SXE_VERSION "    built in\n");
    RUN_LUA("--rocks");
    ended(0, "MODULE  ROCK  VERSION  FILE\n", "");
}
END_TEST

/* ---- Options ---- */

START_TEST(options_that_are_wrong_are_refused)
{
    static const char *const lines[][4] = {
        {"--memory", "1k", "the memory (--memory)"},
        {"--cpu", "1ms", "the time (--cpu)"},
        {"--tasks", "0", "the number of tasks (--tasks)"},
        {"--sockets", "many", "the number of sockets (--sockets)"},
        {"--check", NULL, "sxe-lua: --check needs a script. Try --help."},
        {"--new=a", "b", "sxe-lua: --new takes one directory. Try --help."},
        {"--new=a", "--rocks", "sxe-lua: --new goes without --rocks, --check, -e and -i. Try"},
        {"--new=a", "-ex=1", "sxe-lua: --new goes without --rocks, --check, -e and -i. Try"},
        {"--rocks", "-i", "sxe-lua: --rocks goes without --check, -e and -i. Try --help."},
        {"-i", NULL, "sxe-lua: -i needs a terminal. Try --help."},
        {"--nonsense", NULL, "unknown option --nonsense"},
    };

    RUN_LUA(lines[_i][0], lines[_i][1]);
    ended(2, "", lines[_i][2]);
}
END_TEST

START_TEST(more_code_than_fits_is_refused)
{
    const char *argv[36] = {"sxe-lua"};

    for (int i = 0; i < 17; i++) {
        argv[2 * i + 1] = "-e";
        argv[2 * i + 2] = "x = 1";
    }
    run_lua(argv);
    ended(2, "", "sxe-lua: -e may be given 16 times at most. Try --help.");
}
END_TEST

START_TEST(versions_are_told)
{
    RUN_LUA("-v");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, ", Lua 5.4.");
    RUN_LUA("--help");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "usage: sxe-lua [options] [SCRIPT [ARGUMENT...]]\n");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-app");
    TCase *scripts = tcase_create("scripts");
    TCase *errors = tcase_create("errors");

    tcase_add_checked_fixture(scripts, make_directory, remove_directory);
    tcase_add_test(scripts, a_script_has_its_arguments_and_those_before_it);
    tcase_add_test(scripts, a_script_may_be_behind_two_dashes);
    tcase_add_test(scripts, it_ends_when_nothing_is_left_to_do);
    tcase_add_test(scripts, code_of_the_command_line_runs_before_the_script);
    tcase_add_test(scripts, os_exit_is_its_status);
    tcase_add_test(scripts, a_script_may_compute_for_as_long_as_it_likes_but_cpu_says_else);
    tcase_add_test(scripts, tasks_and_sockets_have_limits_to_set);
    tcase_add_test(scripts, memory_has_a_limit);
    tcase_add_test(scripts, a_connection_is_made_at_the_top_level);
    tcase_add_test(scripts, globals_are_made_by_the_top_level_unless_it_is_loose);
    tcase_add_test(scripts, standard_input_is_a_script);
    tcase_add_loop_test(scripts, an_empty_input_is_a_script_that_does_nothing, 0, 2);
    tcase_add_test(scripts, what_cannot_be_read_is_said);
    tcase_add_test(scripts, input_without_memory_is_refused);
    tcase_add_loop_test(scripts, a_signal_ends_all_tasks, 0, 3);
    suite_add_tcase(suite, scripts);

    tcase_add_checked_fixture(errors, make_directory, remove_directory);
    tcase_add_test(errors, an_error_is_told_with_its_place_and_its_lines);
    tcase_add_test(errors, what_does_not_compile_is_told_with_its_place);
    tcase_add_test(errors, a_script_that_is_not_there_is_told);
    tcase_add_test(errors, an_error_after_a_wait_ends_it_at_once);
    tcase_add_test(errors, others_go_on_after_the_error_of_a_task);
    tcase_add_test(errors, a_wait_for_what_never_comes_is_an_error);
    tcase_add_test(errors, a_handler_that_nobody_serves_with_is_pointed_out);
    tcase_add_test(errors, no_memory_for_a_state_is_said);
    tcase_add_test(errors, a_loop_that_cannot_be_made_is_said);
    tcase_add_test(errors, whatever_call_fails_it_ends_with_a_status);
    tcase_add_test(errors, check_only_compiles);
    tcase_add_test(errors, check_without_memory_is_said);
    tcase_add_test(errors, a_project_is_made_and_its_modules_are_listed);
    tcase_add_loop_test(errors, options_that_are_wrong_are_refused, 0, 11);
    tcase_add_test(errors, more_code_than_fits_is_refused);
    tcase_add_test(errors, versions_are_told);
    suite_add_tcase(suite, errors);
    return sxe_test_main(suite);
}
