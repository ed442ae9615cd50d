/* SPDX-License-Identifier: MIT
 *
 * sxe-httpd --lua: scripts that answer, are reloaded, or fail.
 */
#include "run-httpd.h"

#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <pty.h>
#include <sys/stat.h>

static char directory[] = "/tmp/sxe-script-XXXXXX";
static char script[64];
static char other[64];

static void
enter_directory(void)
{
    memcpy(directory, "/tmp/sxe-script-XXXXXX", sizeof(directory));
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    snprintf(script, sizeof(script), "app.lua");
    snprintf(other, sizeof(other), "other");
    httpd_child.prepare = NULL;
}

static void
leave_directory(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void
write_file(const char *name, const char *text)
{
    char part[80];
    FILE *file;

    snprintf(part, sizeof(part), "%s.part", name);
    file = fopen(part, "we");
    fputs(text, file);
    fclose(file);
    ck_assert_int_eq(rename(part, name), 0);
}

/* The rest of the connection's output, to its end. */
static const char *
hear(int fd)
{
    static char reply[100000];
    size_t length = 0;
    ssize_t n;

    while ((n = recv(fd, reply + length, sizeof(reply) - 1 - length, 0)) > 0)
        length += (size_t)n;
    reply[length] = '\0';
    close(fd);
    return reply;
}

#define GET_LAST(target) "GET " target " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static const char *
ask(const char *request)
{
    int fd = dial();

    say(fd, request);
    return hear(fd);
}

/* The body of the reply to GET /. */
static const char *
body(void)
{
    const char *end = strstr(ask(GET_LAST("/")), "\r\n\r\n");

    return end == NULL ? "" : end + 4;
}

/* Ask until this is the reply; for a moment the earlier process may still answer. */
static void
await_body(const char *text)
{
    const char *said = body();

    for (unsigned tries = 0; tries < 100000 && strcmp(said, text) != 0; tries++) {
        poll(NULL, 0, 5);
        said = body();
    }
    ck_assert_str_eq(said, text);
}

/* Ask on a kept connection until its process drains: then the reply says "Connection: close". */
static const char *
ask_until_last(int fd, const char *text)
{
    static char reply[1000];
    size_t length;

    do {
        length = 0;
        reply[0] = '\0';
        say(fd, GET);
        while (strstr(reply, "\r\n\r\n") == NULL || strstr(reply, text) == NULL) {
            ck_assert_int_eq(recv(fd, reply + length, 1, 0), 1);
            reply[++length] = '\0';
        }
    } while (strstr(reply, "Connection: close\r\n") == NULL);
    expect_end(fd);
    return reply;
}

static const char *
await_error(const char *part)
{
    for (unsigned tries = 0; tries < 100000 && strstr(child_errors(), part) == NULL; tries++)
        poll(NULL, 0, 5);
    check_has(child_errors(), part);
    return strstr(child_errors(), part);
}

static const char *
read_file(const char *name)
{
    static char text[1000];
    FILE *file = fopen(name, "re");

    ck_assert_msg(file != NULL, "%s", name);
    read_back(file, text, sizeof(text));
    return text;
}

/* Wait until the file is not empty. */
static void
await_file(const char *name)
{
    struct stat status = {.st_size = 0};

    while (stat(name, &status) < 0 || status.st_size == 0)
        poll(NULL, 0, 5);
}

static void
start_script(const char *text)
{
    write_file(script, text);
    START_HTTPD("--lua", script, "-c", "20", "--stop-timeout", "1");
}

/* ---- Replies of a script ---- */

START_TEST(what_the_script_returns_answers)
{
    write_file(script, "local a, b = ... "
                       "return function(req) return arg[0] .. a .. b .. #arg .. req.path end");
    START_HTTPD("--lua", script, "--", "-x", "--dev");
    ck_assert_str_eq(body(), "app.lua-x--dev2/");
    stop_httpd();
    ck_assert_str_eq(child_errors(), "");
}
END_TEST

/* Without Landlock and the filter, so that the child can write its coverage. */
static void
be_without_landlock_and_filter(void)
{
    fake_os_fail(FAKE_SYSCALL, 1, 0, ENOSYS);
}

START_TEST(a_confined_script_runs_no_program)
{
    httpd_child.prepare = be_without_landlock_and_filter;
    write_file(script, "return function() return select(2, os.execute 'true') end");
    START_HTTPD("--lua", script, "--confine");
    ck_assert_str_eq(body(), "true: Operation not permitted: --confine lets no program run");
    stop_httpd();
}
END_TEST

START_TEST(a_script_may_wait_at_its_top_level)
{
    start_script("require 'sxe.task'.sleep(0.03) return function() return 'late' end");
    ck_assert_str_eq(body(), "late");
    stop_httpd();
}
END_TEST

START_TEST(bodies_have_the_limit_of_the_server)
{
    write_file(script, "return function(req) return req:body() end");
    START_HTTPD("--lua", script, "--max-body", "3");
    check_has(
        ask("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"),
        "\r\n\r\nabc");
    check_has(ask("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"),
              "HTTP/1.1 413 ");
    stop_httpd();
}
END_TEST

/* The fields of the reply are longer than those that a script sends by itself may be. */
START_TEST(a_script_passes_requests_on)
{
    write_file(script, "local http, up = require 'sxe.http', '@' .. arg[1] "
                       "local proxy = http.proxy{servers = up} "
                       "http.serve{unix = up, handler = function(req, res) "
                       "res.headers.A, res.headers.B = ('a'):rep(5000), ('b'):rep(5000) "
                       "return 'up ' .. req.path end} return proxy");
    START_HTTPD("--lua", script, "--", directory);
    check_has(ask(GET_LAST("/a")), "aaa\r\nContent-Type: text/plain; charset=utf-8\r\n");
    check_has(ask(GET_LAST("/a")), "\r\n\r\nup /a");
    stop_httpd();
}
END_TEST

START_TEST(its_plan_has_the_script)
{
    write_file(script, "return function() end");
    RUN_HTTPD("--lua", script, "--lua-memory", "8m", "--dev", "--plan");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "Lua ");
    check_has(ran.output, " 8388608 bytes at most\n");
    ck_assert_str_eq(ran.errors, "");
}
END_TEST

START_TEST(globals_are_as_the_options_say)
{
    write_file(script, "return function() x = 'made late' return x end");
    START_HTTPD("--lua", script, _i == 0 ? "--loose" : "--strict");
    ck_assert_int_eq(strcmp(body(), "made late") == 0, _i == 0);
    stop_httpd();
}
END_TEST

START_TEST(computing_is_limited)
{
    write_file(script, "return function() while true do end end");
    START_HTTPD("--lua", script, "--lua-cpu", "50ms");
    check_has(ask(GET_LAST("/")), "HTTP/1.1 500 ");
    stop_httpd();
    check_has(child_errors(), "exceeded 50 ms of CPU");
}
END_TEST

/* Each process that served writes its own record of lines when it ends. */
START_TEST(lines_that_ran_are_counted)
{
    char record[200];

    snprintf(record, sizeof(record), "SF:%s/app.lua\nDA:2,2\nDA:3,0\nDA:4,1\n", directory);
    write_file(script, "return function(req)\n"
                       "    if req.path == '/' then return 'yes' end\n"
                       "    return 'no'\n"
                       "end\n");
    START_HTTPD("--lua", script, "--lua-coverage", _i == 0 ? "lua.info" : "nowhere/lua.info");
    ck_assert_str_eq(body(), "yes");
    ck_assert_str_eq(body(), "yes");
    stop_httpd();
    if (_i == 0)
        check_has(read_file("lua.info"), record);
    else
        check_has(child_errors(), "sxe-httpd: the coverage cannot be written to 'nowhere/lua.info' "
                                  "(--lua-coverage): No such file or directory\n");
}
END_TEST

/* ---- Scripts that cannot start ---- */

static const struct {
    const char *script; /* NULL: no file; "": a good script, and -i with an address of another
                         * machine */
    const char *says;
} failures[] = {
    {NULL, "error: cannot open app.lua"},
    {"local x =", "error: unexpected symbol near <eof>\n    --> app.lua:1\n     |\n"
                  "   1 | local x =\n     | ^^^^^^^^^\nhint: an `end`, a bracket or a quote is "},
    {"local x\nx()\n", "error: attempt to call a nil value (local 'x')\n    --> app.lua:2\n     |\n"
                       "   1 | local x\n   2 | x()\n     | ^\nhint: "},
    {"require 'sxe.task'.sleep(0.01)\nerror 'late'\n",
     "error: late\n    --> app.lua:2\n     |\n   1 | require 'sxe.task'.sleep(0.01)\n   2 | "
     "error "},
    {"return 'no handler'",
     "error: app.lua returned no handler and does not listen itself\nhint: end it with "},
    {"require 'sxe.http'.serve{unix = '/nonexistent/s', handler = function() end}",
     "http.serve cannot listen at /nonexistent/s: No such"},
    {"", "sxe-httpd: cannot listen on 192.0.2.1 port 0: "},
};

START_TEST(a_script_that_cannot_begin_ends_it_with_a_reason)
{
    bool is_good = failures[_i].script != NULL && *failures[_i].script == '\0';

    if (failures[_i].script != NULL)
        write_file(script, is_good ? "return function() end" : failures[_i].script);
    RUN_HTTPD("--lua", script, "-i", is_good ? "192.0.2.1" : "127.0.0.1", "-p", "0", "-c", "10");
    ck_assert_int_eq(ran.status, 1);
    ck_assert_str_eq(ran.output, "");
    check_has(ran.errors, failures[_i].says);
}
END_TEST

/* --plan makes the plan in this process and serves nothing. */
START_TEST(without_memory_or_threads_it_says_so)
{
    write_file(script, "return function() end");
    /* The first calloc() is for the command line. */
    fake_os_fail(_i == 0 ? FAKE_PTHREAD_CREATE : FAKE_CALLOC, _i == 0 ? 1 : 2, 1, EAGAIN);
    RUN_HTTPD("--lua", script, "--plan");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot start Lua: ");
}
END_TEST

/* ---- Reloading the script ---- */

START_TEST(sighup_loads_it_again_and_connections_are_answered_once_more)
{
    int kept;

    start_script("return function() return 'one' end");
    kept = dial();
    say(kept, GET);
    ck_assert_str_eq(body(), "one");
    write_file(script, "return function() return 'two' end");
    ck_assert_int_eq(kill(httpd_child.pid, SIGHUP), 0);
    await_body("two");
    check_has(ask_until_last(kept, "one"), "Connection: close\r\n\r\none");
    stop_httpd();
    check_has(child_errors(), "app.lua was loaded again, into process ");
}
END_TEST

START_TEST(one_that_does_not_load_leaves_the_old_one)
{
    start_script("return function() return 'one' end");
    write_file(script, "return function(");
    ck_assert_int_eq(kill(httpd_child.pid, SIGHUP), 0);
    await_error("app.lua could not be loaded again; the version loaded before goes on");
    check_has(child_errors(), "expected near <eof>\n    --> app.lua:1\n");
    ck_assert_str_eq(body(), "one");
    stop_httpd();
}
END_TEST

START_TEST(with_dev_a_change_of_a_module_loads_it_again)
{
    write_file("m.lua", "return 'one'");
    write_file(script,
               "local m = require 'm' pcall(require, 'none') return function() return m end");
    START_HTTPD("--lua", script, "--dev");
    ck_assert_str_eq(body(), "one");
    write_file("m.lua", "return");
    write_file("m.lua", "return 'two'");
    await_body("two");
    stop_httpd();
}
END_TEST

START_TEST(with_dev_replies_explain_errors)
{
    write_file(script, "return function()\n    error 'boom'\nend\n");
    START_HTTPD("--lua", script, "--dev");
    check_has(body(), "error: boom\n    --> app.lua:2\n     |\n   1 | return function()\n");
    stop_httpd();
}
END_TEST

START_TEST(one_that_dies_is_replaced)
{
    start_script("return function(req) if req.path == '/die' then os.exit(3) end return 'one' end");
    ask(GET_LAST("/die"));
    ck_assert_str_eq(body(), "one");
    stop_httpd();
    check_has(child_errors(), "which served, ended with exit status 3");
}
END_TEST

START_TEST(one_whose_memory_is_full_is_replaced)
{
    write_file(script, "local kept, n = {}, 0\n"
                       "return function(req)\n"
                       "    if req.path == '/' then return n == 0 and 'empty' or 'full' end\n"
                       "    while collectgarbage 'count' < 7450 do\n"
                       "        n = n + 1 kept[n] = ('x'):rep(1000)\n"
                       "    end\n"
                       "    return 'filled'\n"
                       "end");
    START_HTTPD("--lua", script, "--lua-memory", "8m", "--access-log", "log");
    ck_assert_str_eq(body(), "empty");
    await_file("log"); /* the log is flushed once a second, so a second has passed then */
    check_has(ask(GET_LAST("/fill")), "\r\n\r\nfilled");
    await_body("empty");
    stop_httpd();
    check_has(child_errors(), "app.lua uses more than nine tenths of its memory");
}
END_TEST

/* ---- Servers that a script opens itself ---- */

/* Start a script that opens its own listener, so that sxe-httpd opens none for -p. */
static void
start_own(const char *text)
{
    static const char *argv[] = {"sxe-httpd", "--lua", "app.lua", "--stop-timeout", "1", NULL};

    write_file(script, text);
    httpd_child.errors = fileno(tmpfile());
    httpd_child.is_ipv6 = false;
    fflush(NULL);
    httpd_child.pid = fork();
    if (httpd_child.pid == 0)
        be_httpd(argv, STDERR_FILENO, httpd_child.errors);
    httpd_child.port =
        (unsigned short)strtoul(strchr(await_error("listens at 127.0.0.1:"), ':') + 1, NULL, 10);
}

#define OWN(text)                                                     \
    "require 'sxe.http'.serve{ip = '127.0.0.1', port = 0, handler = " \
    "function() return '" text "' end}"

START_TEST(its_own_servers_are_handed_over_too)
{
    start_own(OWN("one"));
    ck_assert_str_eq(body(), "one");
    write_file(script, OWN("two"));
    ck_assert_int_eq(kill(httpd_child.pid, SIGHUP), 0);
    await_body("two");
    stop_httpd();
}
END_TEST

/* A request to the script's own server never ends: SIGTERM cuts it off after --stop-timeout. */
START_TEST(its_own_servers_break_off_what_takes_too_long)
{
    int fd;

    start_own("require 'sxe.http'.serve{ip = '127.0.0.1', port = 0, handler = function()\n"
              "    io.stderr:write 'it is asked\\n'\n"
              "    require 'sxe.task'.sleep(3600)\n"
              "end}");
    fd = dial();
    say(fd, GET);
    await_error("it is asked");
    ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    expect_exit();
    close(fd);
}
END_TEST

/* The ending process waits for an open tcp connection: until the client closes it (0), or until
 * --stop-timeout is over (1). */
START_TEST(a_connection_of_another_kind_may_end_by_itself)
{
    char byte;
    int fd;

    write_file(script, "local tcp, task = require 'sxe.tcp', require 'sxe.task'\n"
                       "local server = tcp.serve('127.0.0.1', 0, function(c)\n"
                       "    for data in c:chunks() do c:write(data) end\n"
                       "end)\n"
                       "return function() return tostring(server.port) end");
    START_HTTPD("--lua", script, "--stop-timeout", _i == 0 ? "1h" : "0.1");
    httpd_child.port = (unsigned short)strtoul(body(), NULL, 10);
    fd = dial();
    say(fd, "a");
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
    ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    if (_i == 0) {
        while (close(try_to_dial()) == 0)
            poll(NULL, 0, 5);
        for (char next = 'b'; next <= 'd'; next++) {
            poll(NULL, 0, 50); /* long enough for several checks of the drain's progress */
            ck_assert_int_eq(send(fd, &next, 1, MSG_NOSIGNAL), 1);
            ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
            ck_assert_int_eq(byte, next);
        }
        close(fd);
    }
    expect_exit();
}
END_TEST

START_TEST(a_request_that_takes_too_long_is_cut_at_the_end)
{
    int fd;

    write_file(script, "return function(req) require 'sxe.task'.sleep(3600) end");
    START_HTTPD("--lua", script, "--stop-timeout", _i == 0 ? "0.1" : "1h");
    fd = dial();
    say(fd, GET);
    poll(NULL, 0, 20);
    ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    if (_i == 1) {
        while (close(try_to_dial()) == 0)
            poll(NULL, 0, 5);
        ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    }
    expect_exit();
    close(fd);
}
END_TEST

START_TEST(without_its_supervisor_it_ends)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    start_script("return function() return 'one' end");
    ck_assert_str_eq(body(), "one");
    ck_assert_int_eq(kill(httpd_child.pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(httpd_child.pid, NULL, 0), httpd_child.pid);
    httpd_child.pid = -1;
    ck_assert_int_gt(waitpid(-1, NULL, 0), 0);
    ck_assert_int_eq(try_to_dial(), -1);
}
END_TEST

/* ---- The shell ---- */

/* Read from the terminal until this text appears. */
static void
await_on(int terminal, const char *text)
{
    static char screen[20000];
    static size_t shown;
    struct pollfd wait = {.fd = terminal, .events = POLLIN};

    while (strstr(screen, text) == NULL) {
        ck_assert_msg(poll(&wait, 1, 600000) == 1, "no \"%s\" in \"%s\"", text, screen);
        shown += (size_t)read(terminal, screen + shown, sizeof(screen) - 1 - shown);
    }
    httpd_child.port =
        (unsigned short)strtoul(strstr(screen, "127.0.0.1:") + strlen("127.0.0.1:"), NULL, 10);
}

START_TEST(with_repl_there_is_a_shell_in_it)
{
    static const char *argv[] = {"sxe-httpd", "--lua", "app.lua", "-p", "0", "--repl", NULL};
    int terminal;

    write_file(script, "said = 'nothing' return function() return said end");
    ck_assert_int_eq(setenv("HOME", directory, 1), 0);
    httpd_child.is_ipv6 = false;
    fflush(NULL);
    httpd_child.pid = forkpty(&terminal, NULL, NULL, NULL);
    if (httpd_child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exit(main_of(sxe_httpd_main, argv));
    }
    await_on(terminal, "listening on http://127.0.0.1:");
    await_on(terminal, "> ");
    ck_assert_str_eq(body(), "nothing");
    ck_assert_int_eq(write(terminal, "said = 'a' .. 'b' return said\r", 30), 30);
    await_on(terminal, "\"ab\"");
    ck_assert_str_eq(body(), "ab");
    ck_assert_int_eq(write(terminal, "\4", 1), 1);
    expect_exit();
    close(terminal);
}
END_TEST

START_TEST(a_shell_needs_a_terminal)
{
    ck_assert_ptr_nonnull(freopen("/dev/null", "r", stdin));
    write_file(script, "return function() end");
    RUN_HTTPD("--lua", script, "-p", "0", "--repl");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors,
              "sxe-httpd: cannot start a shell: Inappropriate ioctl for device; --repl");
}
END_TEST

/* ---- The log, and counters ---- */

START_TEST(the_log_is_opened_again)
{
    write_file(script, "return function() return 'one' end");
    START_HTTPD("--lua", script, "--access-log", "log");
    ask(GET_LAST("/1"));
    ck_assert_int_eq(rename("log", "log.1"), 0);
    ck_assert_int_eq(kill(httpd_child.pid, SIGUSR1), 0);
    while (access("log", F_OK) < 0)
        poll(NULL, 0, 5);
    ask(GET_LAST("/2"));
    stop_httpd();
    await_file("log");
}
END_TEST

START_TEST(counters_are_shown_to_this_machine)
{
    write_file(script, "local stats = require 'sxe.stats'{'hits', 'a\"\\1', name = 'cache'}\n"
                       "return function() stats:inc 'hits' return 404 end");
    START_HTTPD("--lua", script, "--stats", "/stats", "--unix", other);
    ask(GET_LAST("/"));
    check_has(ask(GET_LAST("/stats")), "\"connections\":1,\"requests\":1,\"status\":{\"1xx\":0,"
                                       "\"2xx\":0,\"3xx\":0,\"4xx\":1,\"5xx\":0},\"unanswered\":0,"
                                       "\"bytes\":");
    check_has(ask(GET_LAST("/stats")), ",\"lua\":{\"memory\":");
    check_has(ask(GET_LAST("/stats")), "\"script\":{\"http\":{\"requests\":1,\"errors\":0,");
    check_has(ask(GET_LAST("/stats")), "},\"cache\":{\"hits\":1,\"a\\\"\\u0001\":0}}}\n");
    ck_assert_int_eq(kill(httpd_child.pid, SIGQUIT), 0);
    await_error("stats: cache.hits 1");
    stop_httpd();
}
END_TEST

START_TEST(counters_are_shown_without_a_script)
{
    int fd;

    START_HTTPD("--stats", "/stats", "--unix", other);
    check_has(ask(GET_LAST("/stats")), ",\"bytes\":0,\"log_lines_lost\":0}}\n");
    fd = dial_unix(other);
    say(fd, GET_LAST("/stats"));
    check_has(hear(fd), "\"2xx\":1,");
    ck_assert_int_eq(kill(httpd_child.pid, SIGQUIT), 0);
    await_error("stats: httpd.bytes ");
    stop_httpd();
}
END_TEST

START_TEST(counters_are_shown_to_those_who_are_named)
{
    START_HTTPD("--stats", "/stats", "--stats-from", "192.0.2.0/24");
    check_has(ask(GET_LAST("/stats")), "HTTP/1.1 403 ");
    stop_httpd();
}
END_TEST

START_TEST(counters_that_do_not_fit_are_left_out)
{
    write_file(script, "local names = {}\n"
                       "for i = 1, 1000 do names[i] = ('x'):rep(100) .. i end\n"
                       "require 'sxe.stats'(names)\n"
                       "require 'sxe.stats'{'last', name = 'last'}\n"
                       "return function() end");
    START_HTTPD("--lua", script, "--stats", "/stats");
    check_has(ask(GET_LAST("/stats")), ":0}}}\n");
    ck_assert_ptr_null(strstr(ask(GET_LAST("/stats")), "last"));
    stop_httpd();
}
END_TEST

START_TEST(without_memory_for_the_path_of_counters_it_says_so)
{
    unsigned nth = 0;

    do {
        fake_os_fail(_i == 0 ? FAKE_MALLOC : FAKE_CALLOC, ++nth, 1, ENOMEM);
        RUN_HTTPD("--stats", "/stats", "--plan");
        if (ran.status != 0)
            check_has(ran.errors, "sxe-httpd: cannot start: Cannot allocate memory");
    } while (ran.status != 0);
    ck_assert_uint_ge(nth, 2);
}
END_TEST

static Suite *
script_suite(void)
{
    Suite *suite = suite_create("httpd script");
    TCase *t = tcase_create("script");

    tcase_add_checked_fixture(t, enter_directory, leave_directory);
    tcase_add_test(t, what_the_script_returns_answers);
    tcase_add_test(t, a_confined_script_runs_no_program);
    tcase_add_test(t, a_script_may_wait_at_its_top_level);
    tcase_add_test(t, bodies_have_the_limit_of_the_server);
    tcase_add_test(t, a_script_passes_requests_on);
    tcase_add_test(t, its_plan_has_the_script);
    tcase_add_loop_test(t, globals_are_as_the_options_say, 0, 2);
    tcase_add_test(t, computing_is_limited);
    tcase_add_loop_test(t, lines_that_ran_are_counted, 0, 2);
    tcase_add_loop_test(t, a_script_that_cannot_begin_ends_it_with_a_reason, 0,
                        (int)(sizeof(failures) / sizeof(failures[0])));
    tcase_add_loop_test(t, without_memory_or_threads_it_says_so, 0, 2);
    tcase_add_test(t, sighup_loads_it_again_and_connections_are_answered_once_more);
    tcase_add_test(t, one_that_does_not_load_leaves_the_old_one);
    tcase_add_test(t, with_dev_a_change_of_a_module_loads_it_again);
    tcase_add_test(t, with_dev_replies_explain_errors);
    tcase_add_test(t, one_that_dies_is_replaced);
    tcase_add_test(t, one_whose_memory_is_full_is_replaced);
    tcase_add_test(t, its_own_servers_are_handed_over_too);
    tcase_add_test(t, its_own_servers_break_off_what_takes_too_long);
    tcase_add_loop_test(t, a_connection_of_another_kind_may_end_by_itself, 0, 2);
    tcase_add_loop_test(t, a_request_that_takes_too_long_is_cut_at_the_end, 0, 2);
    tcase_add_test(t, without_its_supervisor_it_ends);
    tcase_add_test(t, with_repl_there_is_a_shell_in_it);
    tcase_add_test(t, a_shell_needs_a_terminal);
    tcase_add_test(t, the_log_is_opened_again);
    tcase_add_test(t, counters_are_shown_to_this_machine);
    tcase_add_test(t, counters_are_shown_without_a_script);
    tcase_add_test(t, counters_are_shown_to_those_who_are_named);
    tcase_add_test(t, counters_that_do_not_fit_are_left_out);
    tcase_add_loop_test(t, without_memory_for_the_path_of_counters_it_says_so, 0, 2);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(script_suite());
}
