/* SPDX-License-Identifier: MIT
 *
 * The interactive shell on a pseudo-terminal: lines that the test types, and text that must appear.
 * The test waits for text, never for a time.
 */
#include "lua-count.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <histedit.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-lua-repl.h"
#include "test-main.h"

int sxe_lua_main(int argc, char **argv);

enum { WAIT_TURNS = 10000 }; /* turns of 2 ms at most; after them the test fails */

static int terminal = -1; /* our end of the pseudo-terminal */
static char screen[65536];
static size_t looked; /* the output up to here was compared already */
static size_t shown;
static unsigned ends;
static char home[64];

/* ---- libedit, whose calls can fail on demand ---- */

static bool fail_el_init;
static bool fail_history_init;

static void
find_real(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(function, &found, sizeof(found));
}

EditLine *
el_init(const char *program, FILE *in, FILE *out, FILE *err)
{
    EditLine *(*real)(const char *, FILE *, FILE *, FILE *);

    find_real("el_init", &real);
    return fail_el_init ? NULL : real(program, in, out, err);
}

History *
history_init(void)
{
    History *(*real)(void);

    find_real("history_init", &real);
    return fail_history_init ? NULL : real();
}

/* ---- A terminal ---- */

static void
open_terminal(void)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    int slave;

    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C", 1);
    snprintf(home, sizeof(home), "/tmp/sxe-repl-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(home));
    setenv("HOME", home, 1);
    ck_assert_int_eq(openpty(&terminal, &slave, NULL, NULL, &size), 0);
    ck_assert_int_eq(fcntl(terminal, F_SETFL, O_NONBLOCK), 0);
    fflush(NULL);
    dup2(slave, STDIN_FILENO);
    dup2(slave, STDOUT_FILENO);
    close(slave);
}

static void
close_terminal(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", home);
    ck_assert_int_eq(system(command), 0);
}

/* Drop the sequences "\r\033[12G", which move the cursor to the column where it is already. */
static void
drop_moves(void)
{
    char *move = screen;

    while ((move = strstr(move, "\r\033[")) != NULL) {
        size_t length = 3 + strspn(move + 3, "0123456789");

        if (move[length] != 'G') {
            move += length;
            continue;
        }
        memmove(move, move + length + 1, strlen(move + length + 1) + 1);
        shown -= length + 1;
    }
}

static void
look(void)
{
    ssize_t length = read(terminal, screen + shown, sizeof(screen) - shown - 1);

    if (length > 0)
        shown += (size_t)length;
    screen[shown] = '\0';
    drop_moves();
}

static void
type(const char *text)
{
    size_t length = strlen(text);

    while (length > 0) {
        ssize_t written = write(terminal, text, length);

        text += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
}

static void
on_tick(struct ev_loop *loop, ev_timer *tick, int events)
{
    (void)loop;
    (void)tick;
    (void)events;
}

/* Turn the loop once; it waits for a short while. */
static void
turn_once(void)
{
    ev_timer tick;

    ev_timer_init(&tick, on_tick, 0.002, 0);
    ev_timer_start(sxe_loop(), &tick);
    ev_run(sxe_loop(), EVRUN_ONCE);
    ev_timer_stop(sxe_loop(), &tick);
    look();
}

/* Turn the loop until this text appears, after the text that was expected before. */
static void
expect(const char *text)
{
    const char *found;

    for (unsigned i = 0; (found = strstr(screen + looked, text)) == NULL; i++) {
        ck_assert_msg(i < WAIT_TURNS, "no \"%s\" after \"%.*s\" in \"%s\"", text, (int)looked,
                      screen, screen + looked);
        turn_once();
    }
    looked = (size_t)(found - screen) + strlen(text);
}

static bool
has_shown(const char *text)
{
    return strstr(screen, text) != NULL;
}

/* Type a line; this answer must appear, then the prompt. */
static void
answers(const char *line, const char *answer)
{
    type(line);
    type("\n");
    if (*answer != '\0')
        expect(answer);
    expect("> ");
}

static void
on_end(void)
{
    ends++;
}

/* ---- A shell ---- */

static int
l_ctrl_c(lua_State *L)
{
    (void)L;
    return raise(SIGINT) == 0 ? 0 : luaL_error(L, "raise");
}

/* starve(n, ...): let the state's next n allocations fail; returns the other arguments. */
static int
l_starve(lua_State *L)
{
    lua->heap.fail_after = 0;
    lua->heap.fail_times = (uint64_t)luaL_checkinteger(L, 1);
    return lua_gettop(L) - 1;
}

static void
start_shell_with(const struct sxe_lua_config *config, const char *script)
{
    open_terminal();
    state_start_with(config);
    sxe_log_set_level(SXE_LOG_WARNING);
    add_global("ctrl_c", l_ctrl_c);
    add_global("starve", l_starve);
    count_lines("build/coverage/lua/repl.info");
    ck_assert_int_eq(sxe_lua_repl_plan(lua), 0);
    run_script(script);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    ck_assert_int_eq(sxe_lua_repl_start(lua, NULL, on_end), 0);
    expect("> ");
}

static void
start_shell(void)
{
    start_shell_with(&(struct sxe_lua_config){.tasks = 64}, "");
}

static void
stop_shell(void)
{
    sxe_lua_repl_stop();
    sxe_lua_repl_stop();
    sxe_fini();
    state_stop();
    close_terminal();
}

/* ---- Lines of input ---- */

START_TEST(values_are_shown)
{
    static const char *const lines[][2] = {
        {"1 + 1", "\n2\r\n"},
        {"= 7 // 2, 1.5", "\n3  1.5\r\n"},
        {"nil", "\nnil\r\n"},
        {"'a\\n\\0\"b'", "\n\"a\\n\\0\\\"b\"\r\n"},
        {"{}", "\n{}\r\n"},
        {"{10, 20, {}, {1}, x = 'y', ['a b'] = true, [2.5] = 1, [-1] = 2, [print == 0] = 3}",
         "\n{10, 20, {}, {...}, [-1] = 2, [2.5] = 1, [\"a b\"] = true, x = \"y\", [false] = "
         "3}\r\n"},
        {"{[true] = 1, [false] = 2, a = 1, [1] = 0, [0] = 1}",
         "\n{0, [0] = 1, a = 1, [false] = 2, [true] = 1}\r\n"},
        {"next({[io.stdout] = 1}) == io.stdout", "\ntrue\r\n"},
        {"setmetatable({}, {__tostring = function() return 'mine' end})", "\nmine\r\n"},
        {"{setmetatable({}, {__name = 'Name'})}", "\n{Name: 0x"},
        {"{('x'):rep(300)}", "xxx\" ... 300 bytes\r\n}\r\n"},
        {"(function() local t = {} for i = 1, 150 do t[i] = i end return t end)()",
         "    100,\r\n    ... 50 more\r\n}\r\n"},
        {"(function() local t = {} for i = 1, 150 do t['k' .. i] = i end return t end)()",
         "    ... 50 more\r\n}\r\n"},
        {"{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa = 1, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb = 2}",
         "\n{\r\n    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa = 1,\r\n    bbb"},
        {"print('a', 1, nil)", "\na\t1\tnil\r\n"},
    };

    start_shell();
    answers(lines[_i][0], lines[_i][1]);
    stop_shell();
}
END_TEST

START_TEST(keys_without_an_order_have_one)
{
    start_shell();
    answers("f, t = print, {} ; x = {[f] = 1, [t] = 2, [1.5] = 3, b = 4, [true] = 5}", "");
    answers("x", "\n{[1.5] = 3, b = 4, [true] = 5, [function: ");
    answers("{[t] = 1, b = 2}", "\n{b = 2, [{}] = 1}\r\n");
    stop_shell();
}
END_TEST

START_TEST(a_chunk_may_have_several_lines)
{
    start_shell();
    type("for i = 1, 2 do\n");
    expect(">> ");
    answers("print(i * 100) end", "\n100\r\n200\r\n");
    type("= {\n");
    expect(">> ");
    type("1,\n");
    expect(">> ");
    answers("2}", "\n{1, 2}\r\n");
    type("[[a\n");
    expect(">> ");
    answers("b]]", "\n\"a\\nb\"\r\n");
    stop_shell();
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
    start_shell();
    answers("x = = 3", "stdin:1: unexpected symbol near '='\r\n");
    answers("nothing.x", "error: attempt to index a nil value (global 'nothing')\r\n");
    expect("stdin:1");
    answers("error({code = 7})", "error: {code = 7}\r\n");
    answers("", "");
    stop_shell();
}
END_TEST

START_TEST(globals_may_be_made_and_stay)
{
    start_shell();
    answers("fresh = 41", "");
    answers("fresh + 1", "\n42\r\n");
    answers("undeclared", "\nnil\r\n");
    stop_shell();
}
END_TEST

START_TEST(text_beyond_ascii_can_be_typed_and_bytes_that_are_none_are_not)
{
    start_shell();
    type("x = 'h\xc3\xa9\xff");
    expect("h\xc3\xa9");
    answers("llo'", "");
    answers("#x", "\n6\r\n");
    stop_shell();
}
END_TEST

/* ---- Tasks ---- */

START_TEST(what_waits_brings_the_prompt_back_when_it_has_ended)
{
    start_shell();
    answers("task.sleep(0.01)", "\ntrue\r\n");
    answers("task.sleep(0.01) print 'slept'", "\nslept\r\n");
    stop_shell();
}
END_TEST

START_TEST(others_go_on_between_prompts_and_print_above_the_line)
{
    start_shell_with(&(struct sxe_lua_config){.tasks = 64}, "go = require 'sxe.task'.event()");
    answers("t = task.start(function() go:wait() print 'ticked' end)", "");
    type("12345");
    expect("12345");
    lua_getglobal(lua->main, "go");
    lua_getfield(lua->main, -1, "set");
    lua_insert(lua->main, -2);
    ck_assert_int_eq(lua_pcall(lua->main, 1, 0, 0), LUA_OK);
    expect("\r\033[Jticked\r\n");
    expect("12345");
    answers("6", "\n123456\r\n");
    stop_shell();
}
END_TEST

START_TEST(a_line_that_is_wrapped_is_cleared_from_its_first_row)
{
    char line[101];

    start_shell();
    memset(line, '1', sizeof(line) - 1);
    line[98] = 'z';
    line[sizeof(line) - 1] = '\0';
    type(line);
    expect("z");
    SXE_WARN("logged");
    look();
    sxe_lua_repl_stop();
    look();
    ck_assert(has_shown("\033[1A\r\033[J"));
    stop_shell();
}
END_TEST

static void *
log_a_line(void *unused)
{
    SXE_WARN("from a thread");
    return unused;
}

START_TEST(the_log_is_written_above_the_line)
{
    pthread_t thread;
    int pipes[2];
    char text[1024];

    start_shell();
    ck_assert_int_eq(pipe(pipes), 0);
    dup2(pipes[1], STDERR_FILENO);
    SXE_WARN("from here");
    pthread_create(&thread, NULL, log_a_line, NULL);
    pthread_join(thread, NULL);
    text[read(pipes[0], text, sizeof(text) - 1)] = '\0';
    ck_assert_ptr_nonnull(strstr(text, "from here\n"));
    expect("\r\033[J");
    expect("> ");
    ck_assert_msg(strstr(text, "from a thread\n") != NULL, "%s", text);
    stop_shell();
}
END_TEST

START_TEST(without_a_free_task_that_is_said)
{
    start_shell_with(&(struct sxe_lua_config){.tasks = 1}, "require 'sxe.task'.event():wait()");
    answers("1", "no task is free, or there is no memory for one\r\n");
    stop_shell();
}
END_TEST

START_TEST(it_may_be_stopped_while_something_waits)
{
    start_shell();
    type("task.sleep(1000)\n");
    expect("task.sleep(1000)\r\n");
    stop_shell();
}
END_TEST

/* ---- Ctrl-C ---- */

START_TEST(ctrl_c_drops_the_line)
{
    start_shell();
    type("for i = 1, 2 do\n");
    expect(">> ");
    type("abc");
    expect("abc");
    raise(SIGINT);
    expect("\r\n");
    expect("> ");
    answers("1 + 1", "\n2\r\n");
    stop_shell();
}
END_TEST

START_TEST(ctrl_c_cancels_a_wait)
{
    start_shell();
    type("task.sleep(1000)\n");
    expect("task.sleep(1000)\r\n");
    raise(SIGINT);
    expect("nil  \"cancelled\"\r\n");
    expect("> ");
    type("while true do task.sleep(1000) end\n");
    expect("end\r\n");
    raise(SIGINT);
    expect("cancelled\r\n");
    expect("> ");
    stop_shell();
}
END_TEST

START_TEST(ctrl_c_interrupts_what_computes)
{
    start_shell();
    answers("ctrl_c() while true do end", "error: interrupted\r\n");
    answers("coroutine.wrap(function() ctrl_c() while true do end end)()", "error: ");
    answers("pcall(function() ctrl_c() while true do end end)", "\nfalse  \"");
    /* A script that catches the interrupt is interrupted again until it ends. */
    answers("while true do pcall(function() ctrl_c() while true do end end) end",
            "error: interrupted\r\n");
    answers("1 + 1", "\n2\r\n");
    stop_shell();
}
END_TEST

START_TEST(only_the_second_ctrl_c_interrupts_other_tasks)
{
    start_shell();
    answers("one, two = 0, 0", "");
    answers("t = task.start(function() ctrl_c() one = 1 ctrl_c() two = 2 end)", "");
    answers("one, two", "\n1  0\r\n");
    answers("t.status", "\n\"failed\"\r\n");
    stop_shell();
}
END_TEST

/* ---- Leaving the shell ---- */

START_TEST(ctrl_d_ends_it)
{
    start_shell();
    type("\004");
    while (ends == 0)
        turn_once();
    ck_assert_uint_eq(ends, 1);
    stop_shell();
}
END_TEST

START_TEST(a_terminal_that_is_gone_ends_it)
{
    start_shell();
    close(terminal);
    while (ends == 0)
        turn_once();
    sxe_lua_repl_stop();
    sxe_fini();
    state_stop();
    close_terminal();
}
END_TEST

START_TEST(it_takes_the_terminal_again_when_it_is_continued)
{
    struct winsize size = {.ws_row = 24, .ws_col = 40};

    start_shell();
    type("abc");
    expect("abc");
    raise(SIGCONT);
    expect("> ");
    ioctl(terminal, TIOCSWINSZ, &size);
    raise(SIGWINCH);
    answers("2 + 2", "\n4\r\n");
    type("task.sleep(1000)\n");
    expect("task.sleep(1000)\r\n");
    raise(SIGCONT);
    turn_once();
    raise(SIGINT);
    expect("cancelled");
    stop_shell();
}
END_TEST

/* ---- History ---- */

static const char *
history_path(void)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/.sxe_lua_history", home);
    return path;
}

START_TEST(what_was_typed_is_there_the_next_time)
{
    struct stat status;

    start_shell();
    answers("first = 1", "");
    answers("   ", "");
    type("first + 1\n");
    expect("\n2\r\n");
    sxe_lua_repl_stop();
    ck_assert_int_eq(stat(history_path(), &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    ck_assert_int_eq(sxe_lua_repl_start(lua, history_path(), on_end), 0);
    expect("> ");
    answers("\020\005 + 10 - first", "\n11\r\n");
    stop_shell();
}
END_TEST

START_TEST(a_line_that_is_too_long_is_not_remembered)
{
    static char line[5001];

    start_shell();
    memset(line, ' ', sizeof(line) - 1);
    line[0] = '3';
    for (size_t i = 0; i < sizeof(line) - 1; i += 100) {
        char piece[101];

        memcpy(piece, line + i, 100);
        piece[100] = '\0';
        type(piece);
        turn_once();
    }
    answers("", "\n3\r\n");
    sxe_lua_repl_stop();
    ck_assert_int_eq(access(history_path(), F_OK), 0);
    stop_shell();
}
END_TEST

START_TEST(a_history_that_cannot_be_saved_is_named)
{
    FILE *errors = tmpfile();
    char text[256];

    open_terminal();
    state_start();
    ck_assert_int_eq(sxe_lua_repl_plan(lua), 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_repl_start(lua, "/nowhere/history", on_end), 0);
    expect("> ");
    dup2(fileno(errors), STDERR_FILENO);
    sxe_log_set_level(SXE_LOG_WARNING);
    stop_shell();
    fflush(NULL);
    text[pread(fileno(errors), text, sizeof(text) - 1, 0)] = '\0';
    ck_assert_str_eq(text, "the history cannot be saved in /nowhere/history\n");
}
END_TEST

/* ---- Completion ---- */

START_TEST(names_are_completed)
{
    static const char *const lines[][2] = {
        {"string.forma\t('%d', 5)", "\n\"5\"\r\n"},
        {"task.pa\t ~= nil", "task.parallel ~= nil\r\ntrue\r\n"},
        {"a.b.lon\t", "a.b.longname\r\n7\r\n"},
        {"text:uppe\t()", "text:upper()\r\n\"ABC\"\r\n"},
        {"heir.inheri\t", "heir.inherited\r\n8\r\n"},
        {"server:clo\t()", "server:close()\r\ntrue\r\n"},
        {"lock:acq\t()", "lock:acquire()"},
        {"io.stdout:wri\t", "io.stdout:write"},
        {"#require 'sxe.htt\t'", "#require 'sxe.http'"},
        {"repea\t until true", "repeat until true\r\n"},
        {"\t3", "3\r\n3\r\n"},
        {"nowhere.x\ty", "nowhere.x\ay"},
        {"a.b.longname.x\t", "\a"},
    };

    start_shell();
    answers("a, text = {b = {longname = 7, [1] = 2}}, 'abc'", "");
    answers("heir = setmetatable({}, {__index = {inherited = 8}})", "");
    answers("lock, server = task.lock(), tcp.serve('127.0.0.1', 0, print)", "");
    type(lines[_i][0]);
    type("\n");
    expect(lines[_i][1]);
    expect("> ");
    stop_shell();
}
END_TEST

START_TEST(names_that_could_follow_are_listed)
{
    start_shell();
    type("string.re\t");
    expect("string.re");
    expect("\r\nrep      reverse\r\n");
    expect("> string.re");
    type("\025require 'sxe.t\t");
    expect("\r\nsxe.tap       sxe.task      sxe.tcp       sxe.template  sxe.timer\r\n");
    raise(SIGINT);
    expect("> ");
    answers("many = {} for i = 1, 300 do many['name_' .. i .. '_x'] = 1 end", "");
    type("many.\t");
    expect("many.name_");
    type("\t");
    expect("300 names\r\n");
    raise(SIGINT);
    expect("> ");
    answers("long = {[('a'):rep(90)] = 1, [('b'):rep(90)] = 2}", "");
    type("long.\t");
    expect("aaa\r\nbbb");
    stop_shell();
}
END_TEST

/* ---- Failing allocations ---- */

START_TEST(a_line_without_memory_is_lost_but_not_the_shell)
{
    char line[512];

    start_shell();
    type("1 + 1 -- ");
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    type(line);
    for (int i = 0; i < 50; i++)
        turn_once();
    captured.number = 0;
    lua->heap.fail_after = 0;
    lua->heap.fail_times = 2;
    answers("", "");
    lua->heap.fail_times = 0;
    answers("1 + 1", "\n2\r\n");
    stop_shell();
}
END_TEST

START_TEST(results_without_memory_are_lost_but_not_the_shell)
{
    start_shell();
    answers("many = {} for i = 1, 5000 do many[i] = i end", "");
    answers("starve(2, table.unpack(many))", "not enough memory");
    lua->heap.fail_times = 0;
    answers("1 + 1", "\n2\r\n");
    stop_shell();
}
END_TEST

/* ---- Output that cannot be written ---- */

START_TEST(output_goes_on_after_an_interruption_and_ends_with_an_error)
{
    start_shell();
    fake_os_limit(FAKE_WRITE, 2);
    fake_os_fail(FAKE_WRITE, 2, 1, EINTR);
    answers("'output that goes out in pieces'", "\n\"output that goes out in pieces\"\r\n");
    fake_os_reset();
    fake_os_fail(FAKE_WRITE, 1, 0, EIO);
    SXE_WARN("lost");
    fake_os_reset();
    answers("1", "\n1\r\n");
    stop_shell();
}
END_TEST

/* ---- Shells that cannot start ---- */

START_TEST(it_is_planned_first_and_needs_a_terminal)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    state_start();
    ck_assert_int_eq(sxe_lua_repl_start(lua, NULL, on_end), -EINVAL);
    ck_assert_int_eq(sxe_lua_repl_plan(lua), 0);
    ck_assert_int_eq(sxe_lua_repl_start(lua, NULL, on_end), -EINVAL);
    ck_assert_int_eq(sxe_init(), 0);
    dup2(null, STDIN_FILENO);
    ck_assert_int_eq(sxe_lua_repl_start(lua, NULL, on_end), -ENOTTY);
    sxe_fini();
    state_stop();
}
END_TEST

START_TEST(without_memory_it_does_not_start)
{
    open_terminal();
    state_start();
    ck_assert_int_eq(sxe_lua_repl_plan(lua), 0);
    ck_assert_int_eq(sxe_init(), 0);
    fail_el_init = _i == 0;
    fail_history_init = _i == 1;
    ck_assert_int_eq(sxe_lua_repl_start(lua, NULL, on_end), -ENOMEM);
    fail_el_init = fail_history_init = false;
    setenv("HOME", "", 1);
    ck_assert_int_eq(sxe_lua_repl_start(lua, "", on_end), 0);
    stop_shell();
}
END_TEST

START_TEST(a_home_that_is_too_long_has_no_history)
{
    static char path[5000];

    open_terminal();
    memset(path, 'x', sizeof(path) - 1);
    setenv("HOME", path, 1);
    state_start();
    ck_assert_int_eq(sxe_lua_repl_plan(lua), 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_repl_start(lua, NULL, on_end), 0);
    stop_shell();
}
END_TEST

START_TEST(a_plan_without_memory_fails)
{
    state_start();
    for (uint64_t after = 0; lua->heap.fail_times == 0; after++) {
        int result;

        captured.number = 0;
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        result = sxe_lua_repl_plan(lua);
        ck_assert(result == 0 || result == -ENOMEM);
        ck_assert(result == 0 || logged("not enough memory"));
        if (lua->heap.fail_times < 2)
            lua->heap.fail_times = 0;
        if (after > 100000)
            break;
    }
    lua->heap.fail_times = 0;
    state_stop();
    ck_assert_int_eq(sxe_init(), 0);
    sxe_fini();
}
END_TEST

/* ---- The program sxe-lua ---- */

static pid_t program;

static void
start_program(const char **argv)
{
    int argc = 0;

    open_terminal();
    while (argv[argc] != NULL)
        argc++;
    fflush(NULL);
    program = fork();
    if (program == 0)
        exit(sxe_lua_main(argc, (char **)(uintptr_t)argv));
}
#define START_PROGRAM(...) start_program((const char *[]){"sxe-lua", __VA_ARGS__, NULL})

static void
expect_of_program(const char *text)
{
    const char *found;

    while ((found = strstr(screen + looked, text)) == NULL) {
        usleep(1000);
        look();
    }
    looked = (size_t)(found - screen) + strlen(text);
}

static void
program_ended(int wanted)
{
    int status;

    ck_assert_int_eq(waitpid(program, &status, 0), program);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == wanted, "%x", (unsigned)status);
    close_terminal();
}

START_TEST(the_program_without_a_script_is_a_shell)
{
    START_PROGRAM(NULL);
    expect_of_program("sxe-lua ");
    expect_of_program("> ");
    type("6 * 7\n");
    expect_of_program("\n42\r\n");
    expect_of_program("> ");
    type("task.start(function() error 'oops' end)\n");
    expect_of_program("> ");
    type("\004");
    program_ended(0);
}
END_TEST

START_TEST(a_script_may_come_first)
{
    START_PROGRAM("-i", "-e", "x = 42 print 'ready'");
    expect_of_program("ready\r\n");
    expect_of_program("> ");
    type("x + 1\n");
    expect_of_program("\n43\r\n");
    type("os.exit(3)\n");
    program_ended(3);
}
END_TEST

START_TEST(a_script_that_fails_leaves_the_shell)
{
    START_PROGRAM("-i", "-e", "error 'oops'");
    expect_of_program("> ");
    type("1\n");
    expect_of_program("\n1\r\n");
    kill(program, SIGTERM);
    program_ended(128 + SIGTERM);
}
END_TEST

START_TEST(a_shell_that_cannot_start_is_said)
{
    fail_el_init = true;
    START_PROGRAM("-i");
    program_ended(0);
    fail_el_init = false;
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-repl");
    TCase *lines = tcase_create("lines");
    TCase *tasks = tcase_create("tasks");
    TCase *edit = tcase_create("edit");
    TCase *faults = tcase_create("faults");
    TCase *whole = tcase_create("program");

    tcase_add_loop_test(lines, values_are_shown, 0, 15);
    tcase_add_test(lines, keys_without_an_order_have_one);
    tcase_add_test(lines, a_chunk_may_have_several_lines);
    tcase_add_test(lines, what_is_wrong_is_said);
    tcase_add_test(lines, globals_may_be_made_and_stay);
    tcase_add_test(lines, text_beyond_ascii_can_be_typed_and_bytes_that_are_none_are_not);
    suite_add_tcase(suite, lines);

    tcase_add_test(tasks, what_waits_brings_the_prompt_back_when_it_has_ended);
    tcase_add_test(tasks, others_go_on_between_prompts_and_print_above_the_line);
    tcase_add_test(tasks, a_line_that_is_wrapped_is_cleared_from_its_first_row);
    tcase_add_test(tasks, the_log_is_written_above_the_line);
    tcase_add_test(tasks, without_a_free_task_that_is_said);
    tcase_add_test(tasks, it_may_be_stopped_while_something_waits);
    tcase_add_test(tasks, ctrl_c_drops_the_line);
    tcase_add_test(tasks, ctrl_c_cancels_a_wait);
    tcase_add_test(tasks, ctrl_c_interrupts_what_computes);
    tcase_add_test(tasks, only_the_second_ctrl_c_interrupts_other_tasks);
    suite_add_tcase(suite, tasks);

    tcase_add_test(edit, ctrl_d_ends_it);
    tcase_add_test(edit, a_terminal_that_is_gone_ends_it);
    tcase_add_test(edit, it_takes_the_terminal_again_when_it_is_continued);
    tcase_add_test(edit, what_was_typed_is_there_the_next_time);
    tcase_add_test(edit, a_line_that_is_too_long_is_not_remembered);
    tcase_add_test(edit, a_history_that_cannot_be_saved_is_named);
    tcase_add_loop_test(edit, names_are_completed, 0, 13);
    tcase_add_test(edit, names_that_could_follow_are_listed);
    suite_add_tcase(suite, edit);

    tcase_add_test(faults, a_line_without_memory_is_lost_but_not_the_shell);
    tcase_add_test(faults, results_without_memory_are_lost_but_not_the_shell);
    tcase_add_test(faults, output_goes_on_after_an_interruption_and_ends_with_an_error);
    tcase_add_test(faults, it_is_planned_first_and_needs_a_terminal);
    tcase_add_loop_test(faults, without_memory_it_does_not_start, 0, 2);
    tcase_add_test(faults, a_home_that_is_too_long_has_no_history);
    tcase_add_test(faults, a_plan_without_memory_fails);
    suite_add_tcase(suite, faults);

    tcase_add_test(whole, the_program_without_a_script_is_a_shell);
    tcase_add_test(whole, a_script_may_come_first);
    tcase_add_test(whole, a_script_that_fails_leaves_the_shell);
    tcase_add_test(whole, a_shell_that_cannot_start_is_said);
    suite_add_tcase(suite, whole);
    return sxe_test_main(suite);
}
