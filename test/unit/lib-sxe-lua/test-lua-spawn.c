/* SPDX-License-Identifier: MIT
 *
 * require "sxe.spawn": child processes, their streams and how they end.
 */
#include "lua-net.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "sxe-lua-task-private.h"
#include "test-main.h"

#define PRELUDE                                                      \
    "spawn, task = require 'sxe.spawn', require 'sxe.task'\n"        \
    "log, child, t = '', false, false\n"                             \
    "function sh(command, options)\n"                                \
    "    options = options or {}\n"                                  \
    "    options[1], options[2], options[3] = 'sh', '-c', command\n" \
    "    return assert(spawn(options)) end\n"                        \
    "function say(...) local words = table.pack(...)\n"              \
    "    for i = 1, words.n do words[i] = tostring(words[i]) end\n"  \
    "    log = table.concat(words, ' ') end\n"

static void
start(void)
{
    net_start(PRELUDE);
}

/* Start a task with this body, and wait until the log has this text. */
static void
expect(const char *body, const char *said)
{
    static char text[4000];

    snprintf(text, sizeof(text), "log = '' task.start(function() %s end)", body);
    run_script(text);
    snprintf(text, sizeof(text), "log == '%s'", said);
    until(text);
}

/* ---- Streams ---- */

START_TEST(output_is_read)
{
    start();
    expect("local c = spawn{'echo', 'hello', 'world', 5}\n"
           "say(c:read('l'), tostring(c:read()), c:wait())",
           "hello world 5 nil true exit 0");
    expect("local s = '' for line in sh('echo one; echo two'):lines() do s = s .. line .. ',' end\n"
           "say(s)",
           "one,two,");
    expect("local c = sh('printf 12345; exit 3') local s = c:read('a')\n"
           "local ok, how, code = c:wait() say(s, tostring(ok), how, code, c:read() or 'closed')",
           "12345 nil exit 3 closed");
    net_stop();
}
END_TEST

START_TEST(input_is_written)
{
    start();
    expect("local c = spawn{'cat', stdin = 'pipe'}\n"
           "assert(c:write('one\\n', 'two\\n')) local one = c:read('l')\n"
           "assert(c:close()) say(one, c:read('l'), c:read() or 'closed', c:wait())",
           "one two closed true exit 0");
    expect("local c = spawn{'cat', stdin = 'pipe', stdout = 'null'}\n"
           "assert(c:write(('x'):rep(300000)) and c:close()) say(c:wait())",
           "true exit 0");
    net_stop();
}
END_TEST

START_TEST(the_end_of_its_output_may_come_behind_its_own)
{
    unsigned unused;

    start();
    unused = sxe_number_in_state(SXE_STATE_FREE);
    expect("local c = sh('exec 3<&0; (read x <&3) & exit 3', {stdin = 'pipe'})\n"
           "say(select(3, c:wait())) child = c",
           "3");
    ck_assert_uint_lt(sxe_number_in_state(SXE_STATE_FREE), unused);
    expect("child:close() say('closed')", "closed");
    for (unsigned i = 0; i < WAIT_TURNS && sxe_number_in_state(SXE_STATE_FREE) < unused; i++)
        turn_slowly(1);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), unused);
    net_stop();
}
END_TEST

START_TEST(errors_have_a_stream)
{
    start();
    expect("local c = sh('echo out; echo err >&2', {stderr = 'pipe'})\n"
           "say(c:read('l'), c.stderr:read('l'), c:wait())",
           "out err true exit 0");
    expect("say(sh('echo err >&2', {stderr = 'stdout'}):read('l'))", "err");
    expect("local c = sh('echo err >&2', {stderr = 'pipe', stdout = 'null'})\n"
           "say(c.stderr:read('l'))",
           "err");
    expect(
        "local c = sh('echo err >&2; cat', {stderr = 'null'}) say(c:read('a'), c.stderr or 'none')",
        " none");
    expect("say(spawn{'true', stdin = 'inherit', stdout = 'inherit'}:wait())", "true exit 0");
    net_stop();
}
END_TEST

START_TEST(its_surroundings_are_chosen)
{
    start();
    expect("say(sh('pwd', {cwd = '/proc'}):read('l'))", "/proc");
    expect("local s = spawn{'env', env = {ONE = 'x', TWO = 2}}:read('a')\n"
           "assert(s:find('ONE=x', 1, true) and s:find('TWO=2', 1, true)) say(#s)",
           "12");
    ck_assert_int_eq(setenv("SXE_TEST", "ours", 1), 0);
    expect("say(sh('echo $SXE_TEST'):read('l'))", "ours");
    net_stop();
}
END_TEST

START_TEST(what_does_not_run_is_told)
{
    start();
    expect("local c, why, code = spawn{'/no/such', stdin = 'pipe', stderr = 'pipe'}\n"
           "say(tostring(c), why, code)",
           "nil /no/such: No such file or directory 2");
    expect("local c, why, code = spawn{'true', cwd = '/no/such'} say(why, code)",
           "/no/such: No such file or directory 2");
    expect("local c, why, code = spawn{'true', cwd = '/dev/null'} say(why, code)",
           "/dev/null: Not a directory 20");
    expect("local c, why, code = spawn{'/no/such', cwd = '/'} say(why, code)",
           "/no/such: No such file or directory 2");
    net_stop();
}
END_TEST

START_TEST(a_directory_that_cannot_be_entered_is_named)
{
    char path[] = "/tmp/sxe-spawn-XXXXXX", text[128], message[64];
    const uid_t user = geteuid();

    ck_assert_ptr_nonnull(mkdtemp(path));
    ck_assert_int_eq(chmod(path, 0), 0);
    snprintf(text, sizeof(text), "say(select(2, spawn{'true', cwd = '%s'}))", path);
    snprintf(message, sizeof(message), "%s: Permission denied 13", path);
    start();
    ck_assert(user != 0 || seteuid(65534) == 0);
    expect(text, message);
    ck_assert_int_eq(seteuid(user), 0);
    ck_assert_int_eq(rmdir(path), 0);
    net_stop();
}
END_TEST

START_TEST(arguments_are_checked)
{
    start();
    fails_with("spawn()", "table expected");
    fails_with("spawn{}", "a command is expected");
    fails_with("spawn{'a', {}}", "argument: text expected, got table");
    fails_with("spawn{'a\\0b'}", "argument: text expected, got zero bytes");
    fails_with("spawn{'a', env = 1}", "env: a table of names and values expected");
    fails_with("spawn{'a', env = {'x'}}", "env: names and text expected");
    fails_with("spawn{'a', env = {x = {}}}", "env: names and text expected");
    fails_with("spawn{'a', env = {['x=y'] = 'z'}}", "env: 'x=y' is no name");
    fails_with("spawn{'a', env = {[''] = 'z'}}", "env: '' is no name");
    fails_with("spawn{'a', stdinn = 'pipe'}", "spawn has no option 'stdinn'");
    fails_with("spawn{'a', cwd = {}}", "spawn: cwd must be a string, not a table");
    fails_with("spawn{'a', stdin = 'stdout'}", "stdin: \"pipe\", \"null\" or \"inherit\" expected");
    fails_with("spawn{'a', stderr = 5}",
               "stderr: \"pipe\", \"null\", \"stdout\" or \"inherit\" expected");
    expect("child = spawn{'true', stdout = 'null'} child:wait() say 'x'", "x");
    fails_with("child:read()", "stdout of this child is no pipe");
    fails_with("child:write('x')", "stdin of this child is no pipe");
    fails_with("child.lines()", "sxe.spawn child expected, got no value");
    fails_with("child:kill('NONE')", "a signal's number or name, \"TERM\", is expected");
    fails_with("return child.none", "sxe.spawn child has no field 'none'");
    net_stop();
}
END_TEST

START_TEST(a_read_that_raises_keeps_no_socket)
{
    unsigned unused;

    start();
    unused = sxe_number_in_state(SXE_STATE_FREE);
    expect("child = sh('read x; echo end', {stdin = 'pipe'})\n"
           "local ok, why = pcall(child.read, child, -1)\n"
           "assert(not ok and why:find 'a number of bytes is expected', why)\n"
           "child:write('\\n') child:wait() child:read('l') say 'end'",
           "end");
    for (int i = 0; i < WAIT_TURNS && sxe_number_in_state(SXE_STATE_FREE) < unused; i++)
        turn_slowly(1);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), unused);
    net_stop();
}
END_TEST

/* ---- The end of a child ---- */

START_TEST(who_waits_is_told_the_end)
{
    start();
    expect("local c = spawn{'cat', stdin = 'pipe'} assert(c.running and c.pid > 1)\n"
           "local ok, why = c:wait(0.01) assert(not ok and why == 'timeout')\n"
           "task.start(function() assert(c:kill()) end)\n"
           "local ok, why, code = c:wait() assert(not c.running)\n"
           "say(why, code, select(3, c:kill()), select(2, c:wait()))",
           "signal 15 3 signal 15");
    expect("local c = spawn{'cat', stdin = 'pipe'} assert(c:kill('KILL') and c:wait() == nil)\n"
           "say(select(3, c:wait()))",
           "9");
    expect("local c = spawn{'cat', stdin = 'pipe'} assert(c:kill(10)) say(select(2, c:wait()))",
           "signal 10");
    net_stop();
}
END_TEST

START_TEST(a_task_that_is_cancelled_kills_its_child)
{
    start();
    run_script("t = task.start(function() child = spawn{'cat', stdin = 'pipe'} child:wait() end)");
    until("child");
    turn(3);
    run_script("t:cancel()");
    expect("say(select(3, child:wait()))", "9");
    run_script("child = false\n"
               "t = task.start(function() child = spawn{'cat', stdin = 'pipe'} child:read() end)");
    until("child");
    turn(3);
    run_script("t:cancel()");
    expect("say(select(3, child:wait()))", "9");
    net_stop();
}
END_TEST

START_TEST(a_child_to_be_closed_is_killed)
{
    start();
    expect("do local c <close> = spawn{'cat', stdin = 'pipe'} child = c end\n"
           "say(select(3, child:wait()), select(2, child:read()), select(2, child:write 'x'))",
           "9 closed closed");
    net_stop();
}
END_TEST

START_TEST(children_end_with_the_state)
{
    start();
    expect("child = spawn{'cat', stdin = 'pipe', stderr = 'pipe'} say 'x'", "x");
    long pid = number("child.pid");
    net_stop();
    ck_assert_int_eq(kill((pid_t)pid, 0), -1);
    ck_assert_int_eq(errno, ESRCH);
}
END_TEST

START_TEST(a_state_may_outlive_its_loop)
{
    unsigned before = fake_os_open_fds();

    start();
    expect("child = spawn{'cat', stdin = 'pipe', stderr = 'pipe'} say 'x'", "x");
    ck_assert_int_eq(sxe_fini(), 0);
    state_stop();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
    ck_assert_uint_eq(fake_os_open_fds(), before);
}
END_TEST

START_TEST(in_another_loop_the_pidfd_tells_the_end)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.loop = ev_loop_new(EVFLAG_AUTO);
    net_start_with(&config, PRELUDE);
    expect("local ok, how, code = spawn{'false'}:wait() say(how, code)", "exit 1");
    fake_os_fail(FAKE_WAITPID, 1, 1, ECHILD);
    expect("local ok, how, code = spawn{'false'}:wait() say(how, code)", "No child processes 10");
    fake_os_reset();
    state_stop();
    turn(2);
    ck_assert_int_eq(sxe_fini(), 0);
    ev_loop_destroy(config.loop);
}
END_TEST

/* ---- Children at the end of the program ---- */

START_TEST(a_child_that_nobody_waits_for_is_waited_for_at_last)
{
    start();
    expect("child = spawn{'cat', stdin = 'pipe', stderr = 'pipe'} spawn{'true'} say 'x'", "x");
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(number("child.running"), 1);
    sxe_lua_finish(lua);
    sxe_lua_finish(lua);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(number("child.running"), 0);
    sxe_lua_finish(lua);
    ck_assert_int_eq(sxe_run(), 0);
    expect("child = spawn{'sleep', '1000'} say 'x'", "x");
    sxe_lua_finish(lua);
    net_stop();
}
END_TEST

START_TEST(what_was_written_is_sent_at_last)
{
    struct sxe_config config = {.output_pause = 1000000};

    net_start_with(&config, PRELUDE);
    run_script("name = os.tmpname()");
    expect("child = sh('sleep 0.1; wc -c > ' .. name, {stdin = 'pipe'})\n"
           "for i = 1, 60 do assert(child:write(('x'):rep(10000))) end say 'x'",
           "x");
    ck_assert_int_eq(sxe_run(), 0);
    sxe_lua_finish(lua);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(number("io.open(name):read('n')"), 600000);
    run_script("os.remove(name)");
    net_stop();
}
END_TEST

START_TEST(a_task_that_waits_for_a_child_when_the_state_ends_keeps_no_loop)
{
    start();
    expect("task.start(function() say 'x' spawn{'sleep', '1000'}:read() end)", "x");
    turn_slowly(5);
    ck_assert_uint_eq(SCHEDULER->outside, 1);
    net_stop();
}
END_TEST

/* ---- Calls that the system refuses ---- */

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
} refusals[] = {
    {FAKE_SOCKET, 1, EMFILE},      {FAKE_SOCKET, 2, EMFILE},  {FAKE_SOCKET, 3, EMFILE},
    {FAKE_SOCKET, 4, EMFILE},      {FAKE_BIND, 1, EACCES},    {FAKE_LISTEN, 1, EACCES},
    {FAKE_GETSOCKNAME, 1, EACCES}, {FAKE_CONNECT, 1, EACCES}, {FAKE_ACCEPT4, 1, EMFILE},
    {FAKE_SYSCALL, 1, EMFILE},
};

START_TEST(what_the_system_refuses_is_told)
{
    static char body[400];

    start();
    snprintf(body, sizeof(body),
             "local c, why, code = spawn{'cat', stdin = 'pipe', stderr = 'pipe'}\n"
             "assert(c == nil and code == %d, why) say 'told'",
             refusals[_i].error);
    fake_os_fail(refusals[_i].call, refusals[_i].nth, 1, refusals[_i].error);
    expect(body, "told");
    ck_assert_uint_eq(fake_os_injected(), 1);
    fake_os_reset();
    net_stop();
}
END_TEST

START_TEST(a_socket_that_somebody_else_took_is_refused)
{
    start();
    fake_os_fail(FAKE_GETSOCKOPT, 1, 1, ENOTCONN);
    expect("say(select(3, spawn{'cat'}))", "111");
    fake_os_reset();
    net_stop();
}
END_TEST

START_TEST(without_a_free_socket_none_is_run)
{
    start();
    run_script("while sxe_new_tcp('', 0) do end");
    expect("say(select(3, spawn{'cat'}))", "23");
    expect("say(spawn{'true', stdout = 'null'}:wait())", "true exit 0");
    net_stop();
}
END_TEST

START_TEST(who_is_cancelled_before_it_begins_runs_nothing)
{
    start();
    run_script("t = task.start(function()\n"
               "    t:cancel() local c, why = spawn{'cat'} log = tostring(c) .. why end)");
    until("log == 'nilcancelled'");
    run_script("t = task.start(function() child = spawn{'cat'} end)\n");
    net_stop();
}
END_TEST

START_TEST(outside_of_a_task_nothing_is_run)
{
    start();
    fails_with("sxe_register(0, function() spawn{'cat'} end)",
               "cannot wait inside of sxe_register");
    net_stop();
}
END_TEST

START_TEST(before_the_loop_it_is_waited_for)
{
    net_start(PRELUDE "say(spawn{'echo', 'hello'}:read('l'))");
    until("log == 'hello'");
    net_stop();
    state_start();
    run_script(PRELUDE "say(spawn{'echo', 'hello'}) print(log)");
    state_stop();
}
END_TEST

START_TEST(no_allocation_that_fails_leaves_a_socket_or_a_child)
{
    start();
    sweep_allocations(
        "child = spawn{'cat', stdin = 'pipe', stderr = 'pipe', env = {A = '1'}, cwd = '/'}\n"
        "child:write('x\\n') child:read('l') child:close() child:wait()",
        "for i, t in ipairs(task.all()) do if t ~= task.self() then t:cancel() end end\n"
        "if child then child:kill(9) child = false end\n"
        "task.start(function() for _ = 1, 50 do collectgarbage() task.sleep(0.002) end end)");
    net_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-spawn");
    TCase *c = tcase_create("all");

    signal(SIGPIPE, SIG_IGN);
    suite_add_tcase(s, c);
    tcase_add_test(c, output_is_read);
    tcase_add_test(c, input_is_written);
    tcase_add_test(c, the_end_of_its_output_may_come_behind_its_own);
    tcase_add_test(c, errors_have_a_stream);
    tcase_add_test(c, its_surroundings_are_chosen);
    tcase_add_test(c, what_does_not_run_is_told);
    tcase_add_test(c, a_directory_that_cannot_be_entered_is_named);
    tcase_add_test(c, arguments_are_checked);
    tcase_add_test(c, a_read_that_raises_keeps_no_socket);
    tcase_add_test(c, who_waits_is_told_the_end);
    tcase_add_test(c, a_task_that_is_cancelled_kills_its_child);
    tcase_add_test(c, a_child_to_be_closed_is_killed);
    tcase_add_test(c, children_end_with_the_state);
    tcase_add_test(c, a_state_may_outlive_its_loop);
    tcase_add_test(c, in_another_loop_the_pidfd_tells_the_end);
    tcase_add_test(c, a_child_that_nobody_waits_for_is_waited_for_at_last);
    tcase_add_test(c, what_was_written_is_sent_at_last);
    tcase_add_test(c, a_task_that_waits_for_a_child_when_the_state_ends_keeps_no_loop);
    tcase_add_loop_test(c, what_the_system_refuses_is_told, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(c, a_socket_that_somebody_else_took_is_refused);
    tcase_add_test(c, without_a_free_socket_none_is_run);
    tcase_add_test(c, who_is_cancelled_before_it_begins_runs_nothing);
    tcase_add_test(c, outside_of_a_task_nothing_is_run);
    tcase_add_test(c, before_the_loop_it_is_waited_for);
    tcase_add_test(c, no_allocation_that_fails_leaves_a_socket_or_a_child);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
