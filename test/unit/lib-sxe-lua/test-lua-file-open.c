/* SPDX-License-Identifier: MIT
 *
 * file.open: files that stay open, read and written by threads.
 */
#include "lua-files.h"

#include "test-main.h"

static int open_before;

static void
count_open(void)
{
    open_before = (int)fake_os_open_fds();
}

/* opened(): how many more descriptors are open now than at the start. */
static int
l_opened(lua_State *L)
{
    lua_pushinteger(L, (int)fake_os_open_fds() - open_before);
    return 1;
}

static void
begin_at_once(void)
{
    start_at_once();
    add_global("opened", l_opened);
    count_open();
}

static void
begin_loop(void)
{
    start_loop();
    add_global("opened", l_opened);
    run_script("function add(_, why) log = log .. why .. ' ' end");
    count_open();
}

/* ---- Calls of open files ---- */

START_TEST(what_is_written_in_parts_is_read_in_parts)
{
    begin_at_once();
    run_script("local f = assert(file.open(at 'a', 'w'))\n"
               "assert(f:write('one,') and f:write('') and f:write(2))\n"
               "assert(file.read(at 'a') == 'one,2' and opened() == 1)\n"
               "assert(f:close() and opened() == 0)\n"
               "f = assert(file.open(at 'a'))\n"
               "assert(f:read(3) == 'one' and f:read(0) == '' and f:read(100) == ',2')\n"
               "assert(f:read(0) == '' and f:read(1) == nil and select('#', f:read(1)) == 1)\n"
               "assert(f:close())");
    stop_at_once();
}
END_TEST

START_TEST(modes_are_those_of_fopen)
{
    begin_at_once();
    run_script(
        "local function with(mode, fn)\n"
        "    local f <close> = assert(file.open(at 'a', mode)) return fn(f) end\n"
        "local function put(f) return f:write('x') end\n"
        "local function get(f) return f:read(9) end\n"
        "fails(2, file.open(at 'a', 'r+'))\n"
        "assert(with('w', put) and with('a', put) and file.read(at 'a') == 'xx')\n"
        "assert(with('a+', get) == 'xx' and with('r', get) == 'xx')\n"
        "fails(9, with('w', get)) fails(9, with('r', put))\n"
        "assert(with('a+', put) and with('r+', get) == 'x' and with('w+', get) == nil)\n"
        "assert(file.open(at 'b', 'w', {mode = 384}):close() and file.stat(at 'b').mode == 384)");
    stop_at_once();
}
END_TEST

START_TEST(arguments_are_checked)
{
    begin_at_once();
    run_script("f = file.open(at 'a', 'w')");
    for (int i = 0; i < 5; i++) {
        static const char *const modes[] = {"", "x", "rw", "r+b", "+"};
        char text[100];

        snprintf(text, sizeof(text), "file.open(at 'a', '%s')", modes[i]);
        fails_with(text, "bad argument #2 to 'open' (r, w or a expected, perhaps with +)");
    }
    fails_with("file.open()", "bad argument #1 to 'open' (string expected");
    fails_with("file.open('a', 'w', 1)", "bad argument #3 to 'open' (table expected, got number)");
    fails_with("file.open('a', 'w', {mode = -1})", "mode: 0 to 4095 expected, got -1");
    fails_with("f:read()", "number expected, got no value");
    fails_with("f:read(-1)", "a number of bytes expected");
    fails_with("f:write()", "string expected, got no value");
    fails_with("f:write('a', 'b')", "a timeout in seconds expected");
    fails_with("f.read(1, 1)", "sxe.file.handle expected, got number");
    run_script("fails(22, file.open(at 'a\\0b'))");
    stop_at_once();
}
END_TEST

START_TEST(one_that_is_closed_says_so)
{
    begin_at_once();
    run_script("local f = file.open(at 'a', 'w+')\n"
               "assert(f:close())\n"
               "for _, name in ipairs{'read', 'write', 'close'} do\n"
               "    local data, why, code = f[name](f, 1)\n"
               "    assert(data == nil and why == 'closed' and code == nil) end\n"
               "local other = file.open(at 'b', 'w')\n"
               "assert(select(2, f:write('x')) == 'closed' and other:write('y'))\n"
               "f = nil collectgarbage() assert(other:write('z') and opened() == 1)");
    stop_at_once();
}
END_TEST

START_TEST(those_that_are_left_are_closed)
{
    begin_at_once();
    run_script("do local f <close> = file.open(at 'a', 'w') assert(opened() == 1) end\n"
               "assert(opened() == 0)\n"
               "do local f = file.open(at 'a', 'w') f = nil end\n"
               "collectgarbage() assert(opened() == 0)\n"
               "kept = file.open(at 'a')");
    stop_at_once();
}
END_TEST

START_TEST(there_are_256_at_most)
{
    begin_at_once();
    run_script("for i = 1, 1000 do assert(file.open(at 'a', 'w')) end\n"
               "all = {}\n"
               "collectgarbage()\n"
               "for i = 1, 256 do all[i] = assert(file.open(at 'a', 'w')) end\n"
               "local why = fails(24, file.open(at 'a', 'w'))\n"
               "assert(why == at 'a' .. ': Too many open files')\n"
               "assert(all[7]:close() and file.open(at 'a', 'w'))");
    stop_at_once();
}
END_TEST

/* ---- Calls that the system refuses ---- */

static const struct {
    enum fake_call call;
    int error;
    const char *script;
} refusals[] = {
    {FAKE_OPEN, EIO, "fails(5, file.open(at 'a'))"},
    {FAKE_READ, EIO, "fails(5, f:read(1)) assert(f:read(1) == 'o')"},
    {FAKE_WRITE, ENOSPC, "assert(fails(28, f:write('x')):find '^/.*: No space left on device$')"},
    {FAKE_CLOSE, EIO, "fails(5, f:close()) assert(select(2, f:close()) == 'closed')"},
    {FAKE_REALLOC, EIO, "fails(12, f:write('x')) assert(f:write 'y')"},
    {FAKE_REALLOC, EIO, "fails(12, f:read(1)) assert(f:read(1) == 'o')"},
};

START_TEST(what_the_system_refuses_is_told)
{
    begin_at_once();
    run_script("assert(file.write(at 'a', 'one')) f = file.open(at 'a', 'r+')");
    fake_os_fail(refusals[_i].call, 1, 1, refusals[_i].error);
    run_script(refusals[_i].script);
    ck_assert_uint_eq(fake_os_injected(), 1);
    fake_os_reset();
    run_script("fails(12, file.open('/dev/zero'):read(1 << 40))");
    stop_at_once();
}
END_TEST

START_TEST(what_comes_in_pieces_goes_on)
{
    begin_at_once();
    fake_os_limit(FAKE_WRITE, 3);
    fake_os_limit(FAKE_READ, 2);
    run_script("local f = file.open(at 'a', 'w+')\n"
               "assert(f:write('0123456789'))\n"
               "f = file.open(at 'a') assert(f:read(7) == '0123456' and f:read(7) == '789')");
    fake_os_reset();
    stop_at_once();
}
END_TEST

/* ---- Calls that threads run ---- */

START_TEST(tasks_take_turns)
{
    begin_loop();
    run_script("f = assert(file.open(at 'a', 'w'))\n"
               "for i = 1, 50 do task.start(function()\n"
               "    assert(f:write(i .. ',')) assert(f:write(i .. ';'))\n"
               "    number = number + 1 end) end");
    until("number == 50");
    run_script("assert(f:close())\n"
               "f = assert(file.open(at 'a')) local all = f:read(1000)\n"
               "for i = 1, 50 do local _, n = all:gsub('%f[%d]' .. i .. '[,;]', '')\n"
               "    assert(n == 2, all) end\n"
               "assert(all:sub(1, 6) == '1,2,3,' and not all:find(';.*,'))\n"
               "assert(f:close()) log = 'read'");
    until("log == 'read'");
    ck_assert_int_eq(number("opened()"), 0);
    stop_loop();
}
END_TEST

START_TEST(who_waits_for_one_that_is_closed_is_told)
{
    begin_loop();
    run_script("f = assert(file.open(at 'a', 'w')) log = 'open'");
    until("log == 'open'");
    keep_threads();
    run_script("log = ''\n"
               "for i = 1, 3 do task.start(function()\n"
               "    local ok, why = f:write('x') add(nil, i .. tostring(why)) end) end\n"
               "task.start(function() add(f:close()) end)\n"
               "task.start(function() local g <close> = f end)");
    until("log == '2closed 3closed closed '");
    ck_assert_int_eq(number("opened()"), 3); /* this file, and two of the pipe */
    let_threads_go();
    until("log:find '1nil' and opened() == 0");
    run_script("assert(file.read(at 'a') == 'x') log = 'written'");
    until("log == 'written'");
    stop_loop();
}
END_TEST

/* Two writes wait for the file; the first task closes it, so the second gets "closed". */
START_TEST(one_that_is_kept_may_be_closed)
{
    begin_loop();
    run_script("f = assert(file.open(at 'a', 'w')) log = 'open'");
    until("log == 'open'");
    run_script("log = ''\n"
               "task.start(function() f:write('x') do local g <close> = f end end)\n"
               "task.start(function() log = select(2, f:write('y')) end)");
    until("log == 'closed' and opened() == 0");
    stop_loop();
}
END_TEST

START_TEST(a_call_may_be_cancelled)
{
    begin_loop();
    run_script("f = assert(file.open(at 'a', 'w')) log = 'open'");
    until("log == 'open'");
    keep_threads();
    run_script("log = ''\n"
               "t = task.start(function() add(f:write('x')) end)\n"
               "u = task.start(function() add(f:write('y')) end)\n"
               "v = task.start(function() assert(f:write('z', {timeout = 10})) number = 1 end)\n"
               "o = task.start(function() add(file.open(at 'b', 'w')) end)");
    turn_slowly(3);
    run_script("u:cancel() t:cancel() o:cancel()");
    until("log == 'cancelled cancelled cancelled '");
    let_threads_go();
    until("number == 1");
    run_script("assert(f:close() and file.read(at 'a') == 'z')\n"
               "fails(2, file.stat(at 'b')) log = 'one was written'");
    until("log == 'one was written'");
    ck_assert_int_eq(number("opened()"), 0);
    stop_loop();
}
END_TEST

/* A thread has opened the file, but its task was cancelled, so no variable refers to the file. */
START_TEST(one_that_was_opened_for_nobody_is_collected)
{
    begin_loop();
    run_script("t = task.self() log = select(2, file.open(at 'a', 'w'))");
    wait_for_file("a");
    run_script("t:cancel()");
    until("log == 'cancelled'");
    turn_slowly(3);
    run_script("t = nil collectgarbage() collectgarbage()");
    until("opened() == 0");
    stop_loop();
}
END_TEST

START_TEST(who_cannot_wait_does_nothing)
{
    begin_loop();
    fails_with("sxe_register(0, function() file.open(at 'a', 'w') end)",
               "cannot wait inside of sxe_register, a C function");
    run_script("fails(2, file.stat(at 'a')) f = file.open(at 'b', 'w')\n"
               "task.start(function() task.self():cancel()\n"
               "    log = select(2, f:write('x')) .. tostring(pcall(f.write, f, 'x')) end)");
    until("log == 'cancelledfalse'");
    run_script("assert(f:close() and file.read(at 'b') == '') log = 'empty'");
    until("log == 'empty'");
    stop_loop();
}
END_TEST

START_TEST(without_threads_they_are_closed_all_the_same)
{
    begin_at_once();
    run_script("f = file.open(at 'a', 'w')");
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 0, EAGAIN);
    sxe_register(8, 0);
    ck_assert_int_eq(sxe_init(), 0);
    run_script("fails(11, f:write('x')) fails(11, f:close()) fails(11, file.open(at 'b', 'w'))\n"
               "local n = opened() do local g <close> = f end assert(opened() == n - 1)");
    fake_os_reset();
    sxe_fini();
    state_stop();
    remove_root();
}
END_TEST

START_TEST(the_state_may_go_while_a_thread_is_at_one)
{
    begin_loop();
    run_script(
        "f = assert(file.open(at 'a', 'w')) g = assert(file.open(at 'b', 'w')) log = 'open'");
    until("log == 'open'");
    keep_threads();
    run_script("task.start(function() f:write('x') end)\n"
               "task.start(function() f:write('y') end)\n"
               "task.start(function() local h <close> = g end)");
    turn_slowly(3);
    state_stop();
    let_threads_go();
    state_start();
    run_script(PRELUDE);
    run_script("fails(2, file.open('/no/such'))");
    stop_loop();
}
END_TEST

/* A thread has written, but the state is deleted before the task can continue. */
START_TEST(the_state_may_go_before_the_task_is_told)
{
    begin_loop();
    run_script("f = assert(file.open(at 'a', 'w'))\n"
               "assert(f:write('x'))");
    turn_slowly((unsigned)_i);
    state_stop();
    ev_run(sxe_loop(), 0); /* until no thread has any work */
    stop_loop();
}
END_TEST

START_TEST(a_finalizer_behind_the_end_finds_it_closed)
{
    state_start();
    run_script("f, open = 1, 1 kept = setmetatable({}, {__gc = function()\n"
               "    assert(select(2, open('/dev/null')) == 'closed')\n"
               "    assert(select(2, f:read(1)) == 'closed')\n"
               "end})");
    run_script("open = require 'sxe.file'.open f = open('/dev/null')");
    captured.number = 0;
    state_stop();
    ck_assert_msg(captured.number == 0, "%s", log_line(0));
}
END_TEST

START_TEST(no_allocation_that_fails_leaves_one_open)
{
    begin_loop();
    run_script("assert(file.write(at 'a', ('x'):rep(5000))) log = 'there'");
    until("log == 'there'");
    sweep_allocations(
        "local f <close> = assert(file.open(at 'a', 'r+'))\n"
        "f:read(1000) f:write(('y'):rep(1000)) f:close()",
        "for i, t in ipairs(task.all()) do if t ~= task.self() then t:cancel() end end\n"
        "collectgarbage()");
    turn_slowly(3);
    run_script("collectgarbage() log = 'swept'");
    until("log == 'swept' and opened() == 0");
    stop_loop();
}
END_TEST

START_TEST(without_memory_there_is_no_module)
{
    state_start();
    fake_os_fail(FAKE_CALLOC, 2, 1, ENOMEM);
    fails_with("require 'sxe.file'", "not enough memory");
    fake_os_reset();
    run_script("assert(require 'sxe.file'.open('/dev/null'))");
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-file-open");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, what_is_written_in_parts_is_read_in_parts);
    tcase_add_test(c, modes_are_those_of_fopen);
    tcase_add_test(c, arguments_are_checked);
    tcase_add_test(c, one_that_is_closed_says_so);
    tcase_add_test(c, those_that_are_left_are_closed);
    tcase_add_test(c, there_are_256_at_most);
    tcase_add_loop_test(c, what_the_system_refuses_is_told, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(c, what_comes_in_pieces_goes_on);
    tcase_add_test(c, tasks_take_turns);
    tcase_add_test(c, who_waits_for_one_that_is_closed_is_told);
    tcase_add_test(c, one_that_is_kept_may_be_closed);
    tcase_add_test(c, a_call_may_be_cancelled);
    tcase_add_test(c, one_that_was_opened_for_nobody_is_collected);
    tcase_add_test(c, who_cannot_wait_does_nothing);
    tcase_add_test(c, without_threads_they_are_closed_all_the_same);
    tcase_add_test(c, the_state_may_go_while_a_thread_is_at_one);
    tcase_add_loop_test(c, the_state_may_go_before_the_task_is_told, 0, 5);
    tcase_add_test(c, a_finalizer_behind_the_end_finds_it_closed);
    tcase_add_test(c, no_allocation_that_fails_leaves_one_open);
    tcase_add_test(c, without_memory_there_is_no_module);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
