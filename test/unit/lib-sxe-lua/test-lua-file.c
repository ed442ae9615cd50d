/* SPDX-License-Identifier: MIT
 *
 * require "sxe.file": files, read and written by threads; and sxe.split.
 */
#include "lua-files.h"

#include <signal.h>

#include "sxe-lua-clock.h"
#include "test-main.h"

/* ---- The calls ---- */

START_TEST(what_is_written_is_read)
{
    start_at_once();
    run_script("assert(file.write(at 'a', 'one'))\n"
               "assert(file.read(at 'a') == 'one')\n"
               "assert(file.append(at 'a', ',two') and file.append(at 'a', ''))\n"
               "assert(file.read(at 'a') == 'one,two')\n"
               "assert(file.write(at 'a', '') and file.read(at 'a') == '')\n"
               "local long = ('x\\0'):rep(50000)\n"
               "assert(file.write(at 'a', long, {sync = true}) and file.read(at 'a') == long)\n"
               "assert(#file.read '/proc/self/status' > 100)\n"
               "assert(file.write(at 'b', 12) and file.read(at 'b') == '12')\n");
    stop_at_once();
}
END_TEST

START_TEST(a_part_is_read)
{
    char fifo[100];

    start_at_once();
    run_script(
        "assert(file.write(at 'a', '0123456789'))\n"
        "assert(file.read(at 'a', {from = 3, length = 4}) == '3456')\n"
        "assert(file.read(at 'a', {from = 8, length = 4}) == '89')\n"
        "assert(file.read(at 'a', {from = 10}) == '' and file.read(at 'a', {from = 99}) == '')\n"
        "assert(file.read(at 'a', {length = 0}) == '')\n"
        "assert(file.read(at 'a', {from = 1 << 60}) == '')\n"
        "assert(file.read(at 'a', {length = 3, max = 3}) == '012')");
    snprintf(fifo, sizeof(fifo), "%s/fifo", root);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    run_script("fails(29, file.read(at 'fifo', {from = 1}))\n"
               "assert(file.read(at 'fifo') == '')\n"
               "fails(6, file.write(at 'fifo', 'x'))");
    stop_at_once();
}
END_TEST

START_TEST(what_is_too_long_is_refused)
{
    start_at_once();
    run_script("assert(file.write(at 'a', '0123456789'))\n"
               "assert(file.read(at 'a', {max = 10}) == '0123456789')\n"
               "local why = fails(27, file.read(at 'a', {max = 9}))\n"
               "assert(why == at 'a' .. ': File too large', why)\n"
               "fails(27, file.read('/dev/zero', {max = 100000}))\n"
               "assert(#file.read('/dev/zero', {length = 100000}) == 100000)\n"
               "fails(27, file.list(arg[1], {max = 1}))\n"
               "fails(12, file.read('/dev/zero', {max = 1 << 40}))\n"
               "fails(12, file.read('/dev/zero', {max = 1 << 40}))");
    stop_at_once();
}
END_TEST

START_TEST(an_atomic_write_replaces_all_or_nothing)
{
    start_at_once();
    run_script("assert(file.write(at 'a', 'old'))\n"
               "assert(file.write(at 'a', 'new', {atomic = true, mode = tonumber('600', 8)}))\n"
               "assert(file.read(at 'a') == 'new' and file.stat(at 'a').mode == 384)\n"
               "assert(#file.list(arg[1]) == 1)\n"
               "assert(file.mkdir(at 'd') and file.mkdir(at 'd/e'))\n"
               "fails(21, file.write(at 'd', 'x', {atomic = true}))\n"
               "fails(2, file.write(at 'none/x', 'x', {atomic = true}))\n"
               "fails(36, file.write(('/x'):rep(2040), 'x', {atomic = true}))\n"
               "assert(table.concat(file.list(arg[1]), ',') == 'a,d')");
    stop_at_once();
}
END_TEST

static uint64_t
no_chance(void)
{
    return 1;
}

START_TEST(a_temporary_file_of_another_is_left_alone)
{
    struct sxe_lua_clock clock = *sxe_lua_get_clock();

    clock.random = no_chance;
    sxe_lua_set_clock(&clock);
    start_at_once();
    run_script("assert(file.write(at 'a.0000000000000001', 'mine'))\n"
               "fails(17, file.write(at 'a', 'x', {atomic = true}))\n"
               "assert(file.read(at 'a.0000000000000001') == 'mine')");
    stop_at_once();
    sxe_lua_set_clock(NULL);
}
END_TEST

START_TEST(names_are_listed_in_order)
{
    start_at_once();
    run_script("assert(#file.list(arg[1]) == 0)\n"
               "for i = 300, 1, -1 do\n"
               "    assert(file.write(at(('%03d'):format(i) .. ('x'):rep(20)), '')) end\n"
               "local names = file.list(arg[1])\n"
               "assert(#names == 300)\n"
               "for i = 1, 300 do assert(names[i]:sub(1, 3) == ('%03d'):format(i)) end\n"
               "fails(2, file.list(at 'none'))");
    stop_at_once();
}
END_TEST

START_TEST(what_is_there_is_told)
{
    char link[100];

    start_at_once();
    snprintf(link, sizeof(link), "%s/link", root);
    ck_assert_int_eq(symlink("a", link), 0);
    run_script("assert(file.write(at 'a', 'one', {mode = 420}))\n"
               "local a, l, d = file.stat(at 'a'), file.stat(at 'link', {link = true}), "
               "file.stat(arg[1])\n"
               "assert(a.type == 'file' and a.size == 3 and a.mode == 420)\n"
               "assert(math.abs(a.mtime - os.time()) < 100)\n"
               "assert(l.type == 'link' and file.stat(at 'link').type == 'file')\n"
               "assert(d.type == 'directory' and file.stat('/dev/null').type == 'other')\n"
               "assert(fails(2, file.stat(at 'none')):find('none: No such file', 1, true))");
    stop_at_once();
}
END_TEST

START_TEST(names_are_made_moved_and_removed)
{
    start_at_once();
    run_script("assert(file.mkdir(at 'd') and file.mkdir(at 'd/e', {mode = 448}))\n"
               "assert(file.stat(at 'd/e').mode == 448)\n"
               "fails(17, file.mkdir(at 'd'))\n"
               "fails(2, file.mkdir(at 'x/y'))\n"
               "assert(file.mkdir(at 'x/y/z', {parents = true}) and file.mkdir(at 'x/y/z', "
               "{parents = true}))\n"
               "fails(2, file.mkdir('', {parents = true}))\n"
               "assert(file.write(at 'a', 'one'))\n"
               "fails(17, file.mkdir(at 'a', {parents = true}))\n"
               "fails(20, file.mkdir(at 'a/b', {parents = true}))\n"
               "assert(file.rename(at 'a', at 'd/b') and file.read(at 'd/b') == 'one')\n"
               "fails(2, file.rename(at 'a', at 'b'))\n"
               "fails(39, file.remove(at 'd'))\n"
               "assert(file.remove(at 'd/b') and file.remove(at 'd/e') and file.remove(at 'd'))\n"
               "fails(2, file.remove(at 'd'))");
    stop_at_once();
}
END_TEST

START_TEST(paths_are_not_trusted)
{
    start_at_once();
    run_script("assert(file.write(at 'a', 'one'))\n"
               "assert(fails(22, file.read(at 'a\\0.png')) == 'path: Invalid argument')\n"
               "fails(22, file.rename(at 'a', at 'b\\0'))\n"
               "fails(36, file.read(('x'):rep(4096)))\n"
               "fails(36, file.write(('x'):rep(4096), 'x'))\n"
               "fails(2, file.read '')");
    stop_at_once();
}
END_TEST

START_TEST(arguments_are_checked)
{
    start_at_once();
    fails_with("file.read()", "bad argument #1 to 'read' (string expected, got no value)");
    fails_with("file.write('a')", "bad argument #2 to 'write' (string expected");
    fails_with("file.rename('a', {})", "bad argument #2 to 'rename' (string expected");
    fails_with("file.read('a', 5)", "bad argument #2 to 'read' (table expected, got number)");
    fails_with("file.write('a', '', 5)", "bad argument #3 to 'write' (table expected, got number)");
    fails_with("file.read('a', {max = -1})", "max: 0 to 1099511627776 expected, got -1");
    fails_with("file.read('a', {from = {}})", "from: 0 to 9223372036854775807 expected, got table");
    fails_with("file.write('a', '', {mode = 8 ^ 4})", "mode: 0 to 4095 expected, got 4096.0");
    fails_with("file.read('a', {maxx = 1})", "file.read has no option 'maxx'");
    fails_with("file.open('a', 'r', {timeot = 1})", "file.open has no option 'timeot'");
    fails_with("file.read('a', {timeout = -1})", "a timeout in seconds expected");
    stop_at_once();
}
END_TEST

/* ---- Calls that the system refuses ---- */

static const struct {
    enum fake_call call;
    unsigned nth;
    const char *script;
} refusals[] = {
    {FAKE_OPEN, 1, "fails(5, file.read(at 'a'))"},
    {FAKE_READ, 1, "fails(5, file.read(at 'a'))"},
    {FAKE_READ, 2, "fails(5, file.read(at 'a'))"},
    {FAKE_FSTAT, 1, "assert(file.read(at 'a') == 'one')"},
    {FAKE_LSEEK, 1, "fails(5, file.read(at 'a', {from = 1}))"},
    {FAKE_OPEN, 1, "fails(5, file.write(at 'a', 'x'))"},
    {FAKE_WRITE, 1, "fails(5, file.write(at 'a', 'x'))"},
    {FAKE_FSYNC, 1, "fails(5, file.write(at 'a', 'x', {sync = true}))"},
    {FAKE_CLOSE, 1, "fails(5, file.append(at 'a', 'x'))"},
    {FAKE_FSYNC, 1, "fails(5, file.write(at 'a', 'x', {atomic = true})) one()"},
    {FAKE_RENAME, 1, "fails(5, file.write(at 'a', 'x', {atomic = true})) one()"},
    {FAKE_WRITE, 1, "fails(5, file.write(at 'a', 'x', {atomic = true})) one()"},
    {FAKE_FSTATAT, 1, "fails(5, file.write(at 'a', 'x', {atomic = true})) one()"},
    {FAKE_FCHMOD, 1, "fails(5, file.write(at 'a', 'x', {atomic = true})) one()"},
    {FAKE_OPENDIR, 1, "fails(5, file.list(arg[1]))"},
    {FAKE_FSTATAT, 1, "fails(5, file.stat(at 'a'))"},
    {FAKE_RENAME, 1, "fails(5, file.rename(at 'a', at 'b'))"},
    {FAKE_MALLOC, 1, "fails(12, file.list(arg[1]))"},
    {FAKE_REALLOC, 1, "fails(12, file.list(arg[1]))"},
    {FAKE_REALLOC, 1, "fails(12, file.read(at 'a'))"},
    {FAKE_REALLOC, 1, "fails(12, file.read('/proc/self/status'))"},
    {FAKE_REALLOC, 1, "fails(12, file.write(at 'a', 'x')) one()"},
};

START_TEST(what_the_system_refuses_is_told)
{
    start_at_once();
    run_script("assert(file.write(at 'a', 'one'))\n"
               "function one() assert(file.read(at 'a') == 'one' and #file.list(arg[1]) == 1) end");
    fake_os_fail(refusals[_i].call, refusals[_i].nth, 1, EIO);
    run_script(refusals[_i].script);
    ck_assert_uint_eq(fake_os_injected(), 1);
    fake_os_reset();
    stop_at_once();
}
END_TEST

START_TEST(short_writes_go_on)
{
    start_at_once();
    fake_os_limit(FAKE_WRITE, 3);
    fake_os_limit(FAKE_READ, 2);
    run_script("assert(file.write(at 'a', '0123456789'))\n"
               "assert(file.read(at 'a') == '0123456789')");
    fake_os_reset();
    stop_at_once();
}
END_TEST

/* ---- By threads ---- */

START_TEST(tasks_wait_for_threads)
{
    start_loop();
    run_script("for i = 1, 200 do if i <= 50 then task.start(function()\n"
               "    assert(file.append(at 'a', i .. ','))\n"
               "    log = log .. '.' end) end end");
    until("#log == 50");
    run_script("local n = 0 for _ in sxe.split(file.read(at 'a'), ',') do n = n + 1 end\n"
               "log = n");
    until("log == 51");
    run_script("fails(2, file.read(at 'none')) log = 'told'");
    until("log == 'told'");
    stop_loop();
}
END_TEST

START_TEST(more_calls_than_jobs_wait_in_a_line)
{
    start_loop();
    keep_threads();
    run_script("for i = 1, 50 do task.start(function()\n"
               "    local status, why = file.stat(arg[1], i > 40 and {timeout = 0.001} or nil)\n"
               "    if status then number = number + 1 else log = log .. why end end) end");
    until("log == ('timeout'):rep(10)");
    let_threads_go();
    until("number == 40");
    stop_loop();
}
END_TEST

START_TEST(a_call_times_out)
{
    start_loop();
    keep_threads();
    run_script(
        "task.start(function()\n"
        "    local data, why = file.read(at 'a', {timeout = 0.001}) log = why end)\n"
        "t = task.start(function() log2, why = file.write(at 'a', 'x') end) log2, why = 0, 0");
    until("log == 'timeout'");
    run_script("t:cancel()");
    until("log2 == nil and why == 'cancelled'");
    let_threads_go();
    run_script("fails(2, file.stat(at 'a')) log = 'never begun'");
    until("log == 'never begun'");
    stop_loop();
}
END_TEST

START_TEST(what_a_thread_did_for_nobody_is_forgotten)
{
    start_loop();
    run_script("t = task.self() log = select(2, file.mkdir(at 'a'))");
    wait_for_file("a");
    run_script("t:cancel()");
    until("log == 'cancelled'");
    turn_slowly(3);
    run_script("for i = 1, 40 do assert(file.stat(at 'a')) end log = 'all jobs are there'");
    until("log == 'all jobs are there'");
    stop_loop();
}
END_TEST

START_TEST(the_state_may_go_before_the_thread_is_done)
{
    start_loop();
    run_script("file.mkdir(at 'a')");
    wait_for_file("a");
    stop_loop();
    memset(root + strlen(root) - 6, 'X', 6);
    start_loop();
    run_script("for i = 1, 40 do assert(file.stat(arg[1])) end log = 'all jobs are there'");
    until("log == 'all jobs are there'");
    stop_loop();
}
END_TEST

/* Finalizers run in the reverse order of their marking, so this one runs after the module's. */
START_TEST(a_finalizer_behind_the_end_of_all_jobs_is_refused)
{
    make_root();
    state_start();
    run_script(
        "file = 1 kept = setmetatable({}, {__gc = function()\n"
        "    local ok, why = file.write('/dev/null', 'x') assert(not ok and why == 'closed')\n"
        "end})");
    run_script("file = require 'sxe.file'");
    captured.number = 0;
    state_stop();
    ck_assert_msg(captured.number == 0, "%s", log_line(0));
    remove_root();
}
END_TEST

START_TEST(without_threads_it_is_told)
{
    make_root();
    net_start("task = require 'sxe.task'");
    run_script("file = require 'sxe.file'\n"
               "local data, why, code = file.read('/etc/passwd')\n"
               "assert(data == nil and why:find 'no threads' and code == nil)");
    net_stop();
    state_start();
    run_script("file = require 'sxe.file'");
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 0, EAGAIN);
    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    run_script("local data, why, code = file.read('/') assert(code == 11, why)");
    fake_os_reset();
    sxe_fini();
    state_stop();
    remove_root();
}
END_TEST

START_TEST(who_cannot_wait_does_nothing)
{
    start_loop();
    fails_with("sxe_register(0, function() file.mkdir(at 'a') end)",
               "cannot wait inside of sxe_register, a C function");
    run_script(
        "task.start(function() task.self():cancel()\n"
        "    log = select(2, file.mkdir(at 'a')) .. tostring(pcall(file.mkdir, at 'a')) end)");
    until("log == 'cancelledfalse'");
    run_script("fails(2, file.stat(at 'a')) log = 'nothing is there'");
    until("log == 'nothing is there'");
    stop_loop();
}
END_TEST

START_TEST(no_allocation_that_fails_leaves_a_job)
{
    start_loop();
    run_script("assert(file.write(at 'a', ('x'):rep(5000))) log = 'there'");
    until("log == 'there'");
    sweep_allocations(
        "local all = {file.list(arg[1]), file.stat(at 'a'), file.read(at 'a')}\n"
        "file.write(at 'a', ('y'):rep(5000)) package.loaded['sxe.file'] = nil\n"
        "require 'sxe.file'",
        "for i, t in ipairs(task.all()) do if t ~= task.self() then t:cancel() end end");
    turn_slowly(3);
    run_script("for i = 1, 40 do assert(file.stat(at 'a')) end log = 'all jobs are there'");
    until("log == 'all jobs are there'");
    stop_loop();
}
END_TEST

START_TEST(no_allocation_that_fails_opens_half_of_it)
{
    uint64_t after = 0;

    state_start();
    while (runs_out_of_memory("require 'sxe.file'", after))
        after++;
    run_script("assert(require 'sxe.file'.stat('/'))");
    state_stop();
    state_start();
    fake_os_fail(FAKE_CALLOC, 1, 0, ENOMEM);
    fails_with("require 'sxe.file'", "not enough memory");
    fake_os_reset();
    run_script("assert(require 'sxe.file'.stat('/'))");
    state_stop();
}
END_TEST

/* ---- sxe.split ---- */

static const char *const splits[] = {
    "split('a,b,,c', ',') == 'a|b||c|'", "split('', ',') == '|'",
    "split(',', ',') == '||'",           "split('a--b-c', '--') == 'a|b-c|'",
    "split('a.b', '.') == 'a|b|'",       "split('a\\0b\\0', '\\0') == 'a|b||'",
    "split('ab', 'abc') == 'ab|'",
};

START_TEST(texts_are_split)
{
    char text[400];

    state_start();
    snprintf(text, sizeof(text),
             "function split(...) local s = '' for p in sxe.split(...) do s = s .. p .. '|' end\n"
             "return s end assert(require 'sxe'.split == sxe.split and %s)",
             splits[_i]);
    run_script(text);
    fails_with("sxe.split('a', '')", "a separator is expected");
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-file");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, what_is_written_is_read);
    tcase_add_test(c, a_part_is_read);
    tcase_add_test(c, what_is_too_long_is_refused);
    tcase_add_test(c, an_atomic_write_replaces_all_or_nothing);
    tcase_add_test(c, a_temporary_file_of_another_is_left_alone);
    tcase_add_test(c, names_are_listed_in_order);
    tcase_add_test(c, what_is_there_is_told);
    tcase_add_test(c, names_are_made_moved_and_removed);
    tcase_add_test(c, paths_are_not_trusted);
    tcase_add_test(c, arguments_are_checked);
    tcase_add_loop_test(c, what_the_system_refuses_is_told, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(c, short_writes_go_on);
    tcase_add_test(c, tasks_wait_for_threads);
    tcase_add_test(c, more_calls_than_jobs_wait_in_a_line);
    tcase_add_test(c, a_call_times_out);
    tcase_add_test(c, what_a_thread_did_for_nobody_is_forgotten);
    tcase_add_test(c, the_state_may_go_before_the_thread_is_done);
    tcase_add_test(c, a_finalizer_behind_the_end_of_all_jobs_is_refused);
    tcase_add_test(c, without_threads_it_is_told);
    tcase_add_test(c, who_cannot_wait_does_nothing);
    tcase_add_test(c, no_allocation_that_fails_leaves_a_job);
    tcase_add_test(c, no_allocation_that_fails_opens_half_of_it);
    tcase_add_loop_test(c, texts_are_split, 0, sizeof(splits) / sizeof(splits[0]));
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
