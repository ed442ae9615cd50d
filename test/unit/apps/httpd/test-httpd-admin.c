/* SPDX-License-Identifier: MIT
 *
 * The admin process: where it listens, what it answers, and which clients may do what.
 */
#include "run-httpd.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>

#include "admin.h"
#include "has.h"
#include "options.h"
#include "sxe-log.h"

static char directory[] = "/tmp/sxe-admin-XXXXXX";
static char path[64];
static char script[64];
static unsigned short admin_port;
static char reply[1024 * 1024];

static void
make_directory(void)
{
    memcpy(directory, "/tmp/sxe-admin-XXXXXX", sizeof(directory));
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/admin", directory);
    snprintf(script, sizeof(script), "%s/app.lua", directory);
}

static void
remove_directory(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void
write_script(const char *text)
{
    FILE *file = fopen(script, "we");

    fputs(text, file);
    fclose(file);
}

/* ---- A client ---- */

static int
dial_admin(void)
{
    unsigned short port = httpd_child.port;
    int fd;

    if (admin_port == 0)
        return dial_unix(path);
    httpd_child.port = admin_port;
    fd = dial();
    httpd_child.port = port;
    return fd;
}

/* A connection to the admin process; -1: it does not listen. */
static int
try_to_dial_admin(void)
{
    unsigned short port = httpd_child.port;
    int fd;

    httpd_child.port = admin_port;
    fd = try_to_dial();
    httpd_child.port = port;
    return fd;
}

static int
try_to_dial_unix(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = patient_socket(AF_UNIX);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Send one request to the admin process; returns the whole reply. */
static const char *
ask(const char *format, ...)
{
    char request[1024];
    int fd = dial_admin();
    size_t used = 0;
    ssize_t length;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(request, sizeof(request), format, arguments);
    va_end(arguments);
    say(fd, request);
    while ((length = recv(fd, reply + used, sizeof(reply) - 1 - used, 0)) > 0)
        used += (size_t)length;
    reply[used] = '\0';
    close(fd);
    return reply;
}

#define GET_OF(target, host) \
    ask("GET " target " HTTP/1.1\r\nHost: " host "\r\nConnection: close\r\n\r\n")

static const char *
token(void)
{
    static char text[40];

    GET_OF("/token", "127.0.0.1");
    snprintf(text, sizeof(text), "%s", strstr(reply, "\r\n\r\n") + 4);
    ck_assert_uint_eq(strlen(text), 32);
    return text;
}

static const char *
post(const char *target, const char *fields, const char *body)
{
    return ask("POST %s HTTP/1.1\r\nHost: 127.0.0.1:9\r\nConnection: close\r\n%sContent-Length: "
               "%zu\r\n\r\n%s",
               target, fields, strlen(body), body);
}

static void
start_at_a_port(const char *place)
{
    char line[256];

    START_HTTPD("--admin", place);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), httpd_child.says));
    ck_assert_int_eq(strncmp(line, "status at http://", 17), 0);
    admin_port = (unsigned short)strtoul(strrchr(line, ':') + 1, NULL, 10);
    ck_assert_str_eq(strrchr(line, '/'), "/\n");
}

static void
start_at_a_path(void)
{
    char line[256];

    START_HTTPD("--admin", path);
    admin_port = 0;
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), httpd_child.says));
    ck_assert_int_eq(strncmp(line, "status at unix:/tmp/", 20), 0);
}

/* Send one request to the server. */
static void
ask_the_server(void)
{
    int fd = dial();

    say(fd, GET);
    expect(fd, HELLO);
    close(fd);
}

/* Send one request to the server; the reply must have this status. */
static void
ask_for_status(const char *request, const char *status)
{
    char line[16];
    int fd = dial();

    say(fd, request);
    snprintf(line, sizeof(line), "HTTP/1.1 %s ", status);
    expect(fd, line);
    close(fd);
}

static void
wait_for(const char *target, const char *part)
{
    do
        ask("GET %s HTTP/1.0\r\n\r\n", target);
    while (strstr(reply, part) == NULL);
}

/* ---- Addresses of the admin process ---- */

START_TEST(it_listens_on_loopback_or_where_it_is_told)
{
    static const char *const places[] = {"0", "127.0.0.1:0", "[::1]:0", "::1:0"};

    start_at_a_port(places[_i]);
    httpd_child.is_ipv6 = _i >= 2;
    check_has(GET_OF("/livez", "127.0.0.1"), "HTTP/1.1 200 OK\r\n");
    httpd_child.is_ipv6 = false;
    stop_httpd();
}
END_TEST

START_TEST(it_listens_on_a_unix_socket_whose_file_goes_with_it)
{
    start_at_a_path();
    check_has(GET_OF("/readyz", "any.name"), "\r\n\r\nready\n");
    stop_httpd();
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(what_is_no_place_is_refused)
{
    static const char *const places[] = {
        "",
        "x",
        "65536",
        "1.2.3:4",
        "host:80",
        "12x",
        ":80",
        "[::1:80",
        "[::1]",
        "/a/path/that/is/longer/than/the/one/"
        "hundred/and/seven/bytes/that/the/address/of/a/unix/socket/"
        "has/room/for/on/linux",
        "1234567890123456789012345678901234"
        "5678901234567890:80"};

    RUN_HTTPD("--admin", places[_i]);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "the address of the status (--admin) is '");
    check_has(ran.errors, "it must be a port, IP:PORT, or the path of a unix socket");
}
END_TEST

START_TEST(a_place_that_is_taken_ends_the_server_at_once)
{
    char place[16];

    start_at_a_port("0");
    snprintf(place, sizeof(place), "%u", admin_port);
    RUN_HTTPD("--admin", place);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot show its status on 127.0.0.1 port ");
    check_has(ran.errors, "; choose another place with --admin\n");
    RUN_HTTPD("--admin", "/none/such");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot show its status at /none/such: No such file");
    stop_httpd();
}
END_TEST

/* ---- Faults at the start ---- */

static const struct {
    enum fake_call call;
    int error;
} faults[] = {{FAKE_MMAP, ENOMEM},     {FAKE_PIPE2, EMFILE},    {FAKE_FORK, EAGAIN},
              {FAKE_GETRANDOM, EINTR}, {FAKE_CALLOC, ENOMEM},   {FAKE_MALLOC, ENOMEM},
              {FAKE_SOCKET, EMFILE},   {FAKE_BIND, EADDRINUSE}, {FAKE_LISTEN, EADDRINUSE},
              {FAKE_READ, EINTR}};

/* The server fails, too, for its directory does not exist: so no process is left. */
START_TEST(each_fault_at_its_start_is_told_and_leaves_no_process)
{
    unsigned n = 0;

    do {
        fake_os_fail(faults[_i].call, ++n, 1, faults[_i].error);
        RUN_HTTPD("-p", "0", "--admin", "0", "-r", "/none");
        ck_assert_int_eq(ran.status, 1);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
        ck_assert_int_eq(errno, ECHILD);
        ck_assert_uint_lt(n, 300);
    } while (strstr(ran.errors, "cannot serve the files of '/none'") == NULL);
}
END_TEST

/* ---- Replies of the admin process ---- */

START_TEST(it_shows_what_the_server_has_counted)
{
    start_at_a_path();
    ask_the_server();
    ask_the_server();
    check_has(GET_OF("/metrics", "a"), "Content-Type: text/plain; version=0.0.4");
    check_has(reply, "sxe_http_replies_total{class=\"2xx\"} 2\n");
    check_has(GET_OF("/status.json", "a"), "\"requests\":{\"total\":2,");
    check_has(reply, "Cache-Control: no-store\r\n");
    check_has(GET_OF("/livez", "a"), "\r\n\r\nok\n");
    wait_for("/metrics", "state=\"IDLE\"} 0\n");
    stop_httpd();
}
END_TEST

START_TEST(a_script_shows_its_routes_memory_and_errors)
{
    write_script("local r = require 'sxe.http'.router()\n"
                 "r:get('/bad/{id}', function() error('wrong') end)\n"
                 "r:get('/', function() return 'Hello, World!\\n' end)\n"
                 "return r\n");
    START_HTTPD("--admin", path, "--lua", script);
    admin_port = 0;
    int fd = dial();
    say(fd, "GET /bad/7 HTTP/1.0\r\n\r\n");
    expect(fd, "HTTP/1.1 500 ");
    close(fd);
    wait_for("/metrics", "sxe_lua_errors_total 1\n");
    check_has(reply, "http_route=\"/bad/{id}\"} 1\n");
    check_has(reply, "pool=\"lua-tasks\"");
    check_has_not(reply, "sxe_lua_memory_bytes 0\n");
    wait_for("/status.json", "wrong");
    stop_httpd();
}
END_TEST

/* ---- The page ---- */

START_TEST(the_page_shows_it_as_tables)
{
    write_script("local r = require 'sxe.http'.router()\n"
                 "r:get('/bad/{id}', function() error('a <b>wrong</b> \"&\" one') end)\n"
                 "return r\n");
    START_HTTPD("--admin", path, "--lua", script);
    admin_port = 0;
    check_has(GET_OF("/", "a"), "HTTP/1.1 200 OK\r\n");
    check_has(reply, "Content-Type: text/html; charset=utf-8\r\n");
    check_has(reply, ">no request has ended yet</td>");
    check_has(reply, ">no warning, no error</td>");
    ask_for_status("GET /bad/7 HTTP/1.0\r\n\r\n", "500");
    wait_for("/", "<dd id=\"errors\">1</dd>");
    check_has(reply, "a &#60;b&#62;wrong&#60;/b&#62; &#34;&#38;&#34; one");
    check_has(reply, "<th scope=\"row\">/bad/{id}</th><td class=\"n\">1</td>");
    check_has(reply, "<tr data-state=\"IDLE\"><th scope=\"row\">IDLE</th>");
    check_has(reply, "<p id=\"state\" class=\"ready\">ready</p>");
    wait_for("/", "<th scope=\"row\">lua-tasks</th>");
    check_has_not(reply, "<!--=");
    stop_httpd();
}
END_TEST

/* The value of the first nonce="..." after a text of the reply. */
static const char *
nonce_after(const char *text)
{
    static char nonce[40];

    check_has(reply, text);
    snprintf(nonce, sizeof(nonce), "%.32s", strstr(reply, text) + strlen(text));
    return nonce;
}

START_TEST(the_page_runs_its_own_script_only)
{
    char first[40];

    start_at_a_port("0");
    GET_OF("/", "127.0.0.1");
    snprintf(first, sizeof(first), "%s", nonce_after("script-src 'nonce-"));
    ck_assert_str_eq(nonce_after("<style nonce=\""), first);
    ck_assert_str_eq(nonce_after("<script nonce=\""), first);
    check_has(reply, "Content-Security-Policy: default-src 'none'; style-src 'nonce-");
    check_has(reply, "; base-uri 'none'; frame-ancestors 'none'\r\n");
    GET_OF("/", "127.0.0.1");
    ck_assert_str_ne(nonce_after("<style nonce=\""), first);
    stop_httpd();
}
END_TEST

START_TEST(the_page_has_buttons_for_clients_that_may_use_them)
{
    char body[64];

    start_at_a_port("0");
    snprintf(body, sizeof(body), "level=debug&token=%s", token());
    check_has(GET_OF("/", "127.0.0.1"), body + sizeof("level=debug&token=") - 1);
    check_has(reply, "<p hidden>Ask for this page by address");
    check_has_not(GET_OF("/", "evil.example"), body + sizeof("level=debug&token=") - 1);
    check_has(reply, "<div class=\"actions\" hidden>");
    check_has(post("/log-level", "", body), "HTTP/1.1 303 ");
    check_has(reply, "Location: /\r\n");
    check_has(GET_OF("/", "127.0.0.1"), "<option selected>debug</option>");
    check_has(GET_OF("/status.json", "127.0.0.1"), "\"log_level\":\"debug\"");
    check_has(post("/log-level", "Origin: http://evil.example\r\n", body), "HTTP/1.1 403 ");
    stop_httpd();
}
END_TEST

/* ---- Actions ---- */

START_TEST(an_action_needs_the_token)
{
    static const char *const targets[] = {"/drain", "/reload", "/log-level"};

    start_at_a_port("0");
    check_has(post(targets[_i], "", ""), "HTTP/1.1 403 ");
    check_has(post(targets[_i], "X-Sxe-Token: 1\r\n", ""), "HTTP/1.1 403 ");
    check_has(post(targets[_i], "X-Sxe-Token: 00000000000000000000000000000000\r\n", ""),
              "HTTP/1.1 403 ");
    check_has(post(targets[_i], "", "token=00000000000000000000000000000000"), "HTTP/1.1 403 ");
    check_has(GET_OF("/drain", "127.0.0.1"), "HTTP/1.1 405 ");
    check_has(GET_OF("/readyz", "127.0.0.1"), "ready\n");
    stop_httpd();
}
END_TEST

START_TEST(other_sites_get_no_token_and_do_nothing)
{
    char fields[256];

    start_at_a_port("0");
    check_has(GET_OF("/token", "evil.example"), "HTTP/1.1 403 ");
    check_has(ask("GET /token HTTP/1.0\r\n\r\n"), "HTTP/1.1 403 ");
    check_has(GET_OF("/token", "[::1]:9"), "HTTP/1.1 200 ");
    check_has(GET_OF("/token", "localhost:9"), "HTTP/1.1 200 ");
    snprintf(fields, sizeof(fields), "X-Sxe-Token: %s\r\nOrigin: http://evil.example\r\n", token());
    check_has(post("/drain", fields, ""), "HTTP/1.1 403 ");
    snprintf(fields, sizeof(fields), "X-Sxe-Token: %s\r\nOrigin: null\r\n", token());
    check_has(post("/drain", fields, ""), "HTTP/1.1 403 ");
    snprintf(fields, sizeof(fields), "X-Sxe-Token: %s\r\nOrigin: http://127.0.0.1:9\r\n", token());
    check_has(post("/log-level", fields, "level=debug"), "HTTP/1.1 202 ");
    stop_httpd();
}
END_TEST

START_TEST(drain_ends_the_server_and_is_seen_by_readyz)
{
    char fields[64];
    int fd;

    START_HTTPD("--admin", "0", "--stop-timeout", "600");
    char line[256];
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), httpd_child.says));
    admin_port = (unsigned short)strtoul(strrchr(line, ':') + 1, NULL, 10);
    fd = dial();
    say(fd, "GET / HTTP/1.1\r\n");
    snprintf(fields, sizeof(fields), "X-Sxe-Token: %s\r\n", token());
    wait_for("/metrics", "state=\"HEAD\"} 1\n");
    check_has(post("/drain", fields, ""), "HTTP/1.1 202 ");
    expect_end(fd);
    expect_exit();
}
END_TEST

START_TEST(readyz_says_so_while_a_request_is_finished)
{
    int fd;

    write_script("return function() require 'sxe.task'.sleep(600) end\n");
    START_HTTPD("--admin", path, "--lua", script, "--stop-timeout", "600");
    admin_port = 0;
    fd = dial();
    say(fd, GET);
    wait_for("/metrics", "http_server_active_requests 1\n");
    ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    wait_for("/readyz", "HTTP/1.1 404 ");
    check_has(reply, "\r\n\r\ndraining\n");
    check_has(GET_OF("/livez", "a"), "HTTP/1.1 200 ");
    ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    expect_exit();
    close(fd);
}
END_TEST

START_TEST(reload_loads_the_script_again)
{
    char fields[64];

    write_script("return function() return 'Hello, World!\\n' end\n");
    START_HTTPD("--admin", path, "--lua", script);
    admin_port = 0;
    snprintf(fields, sizeof(fields), "X-Sxe-Token: %s\r\n", token());
    check_has(post("/reload", fields, ""), "HTTP/1.1 202 ");
    check_has(reply, "\r\n\r\nreloading\n");
    wait_for("/metrics", "sxe_worker_starts_total 2\n");
    stop_httpd();
}
END_TEST

START_TEST(a_level_is_one_of_the_log)
{
    char fields[64];

    start_at_a_port("0");
    snprintf(fields, sizeof(fields), "X-Sxe-Token: %s\r\n", token());
    check_has(post("/log-level", fields, "level=loud"), "HTTP/1.1 400 ");
    check_has(post("/log-level", fields, "level=a-text-that-is-longer-than-any"), " 400 ");
    check_has(post("/log-level", fields, "level=debug"), "HTTP/1.1 202 ");
    stop_httpd();
}
END_TEST

static void
kill_nobody(void)
{
    fake_os_fail(FAKE_KILL, 1, 1, EPERM);
}

START_TEST(a_signal_that_cannot_be_sent_is_told)
{
    char fields[64];

    httpd_child.prepare = kill_nobody;
    start_at_a_port("0");
    snprintf(fields, sizeof(fields), "X-Sxe-Token: %s\r\n", token());
    check_has(post("/drain", fields, ""), "HTTP/1.1 500 ");
    stop_httpd();
}
END_TEST

/* ---- Limits ---- */

START_TEST(more_replies_than_there_are_texts_are_refused_until_one_is_read)
{
    int slow[4];
    int fd;

    write_script(
        "return function(req) return tonumber(req.path:sub(2)) or 'Hello, World!\\n' end\n");
    START_HTTPD("--admin", path, "--lua", script);
    admin_port = 0;
    fd = dial();
    for (unsigned status = 400; status < 520; status++) {
        char request[64];

        snprintf(request, sizeof(request), "GET /%u HTTP/1.1\r\nHost: a\r\n\r\n", status);
        say(fd, request);
    }
    wait_for("/metrics", "code=\"519\"");
    for (unsigned i = 0; i < 4; i++) {
        slow[i] = dial_admin();
        say(slow[i], "GET /metrics HTTP/1.0\r\n\r\n");
        ck_assert_int_eq(recv(slow[i], reply, 1, MSG_PEEK), 1);
    }
    check_has(GET_OF("/metrics", "a"), "HTTP/1.1 503 ");
    check_has(GET_OF("/livez", "a"), "HTTP/1.1 200 ");
    close(slow[2]);
    wait_for("/metrics", "HTTP/1.1 200 ");
    for (unsigned i = 0; i < 4; i++)
        close(i == 2 ? fd : slow[i]);
    stop_httpd();
}
END_TEST

/* The pid of the admin process, which is the first child that the parent forked. */
static pid_t
admin_of(pid_t parent)
{
    char name[64];
    FILE *file;
    int pid = 0;

    snprintf(name, sizeof(name), "/proc/%d/task/%d/children", parent, parent);
    file = fopen(name, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

static void
on_lose_memory(int number)
{
    (void)number;
    fake_os_fail(FAKE_REALLOC, 1, 0, ENOMEM);
}

static void
lose_memory_when_told(void)
{
    signal(SIGRTMIN + 9, on_lose_memory);
}

static void
on_lose_random(int number)
{
    (void)number;
    fake_os_fail(FAKE_GETRANDOM, 1, 1, EINTR);
}

static void
lose_random_when_told(void)
{
    signal(SIGRTMIN + 9, on_lose_random);
}

START_TEST(a_page_without_a_nonce_is_an_error)
{
    httpd_child.prepare = lose_random_when_told;
    start_at_a_port("0");
    ck_assert_int_eq(kill(admin_of(httpd_child.pid), SIGRTMIN + 9), 0);
    check_has(GET_OF("/", "a"), "HTTP/1.1 500 ");
    check_has(GET_OF("/", "a"), "HTTP/1.1 200 ");
    stop_httpd();
}
END_TEST

START_TEST(a_reply_for_which_there_is_no_memory_is_an_error)
{
    httpd_child.prepare = lose_memory_when_told;
    start_at_a_port("0");
    ck_assert_int_eq(kill(admin_of(httpd_child.pid), SIGRTMIN + 9), 0);
    check_has(GET_OF("/metrics", "a"), "HTTP/1.1 500 ");
    check_has(reply, "\r\n\r\nthere is no memory for the reply\n");
    check_has(GET_OF("/livez", "a"), "HTTP/1.1 200 ");
    stop_httpd();
}
END_TEST

/* ---- The end of the admin process ---- */

START_TEST(another_one_takes_its_place_and_the_server_goes_on)
{
    pid_t before;
    int fd;

    if (_i == 0)
        start_at_a_port("0");
    else
        start_at_a_path();
    before = admin_of(httpd_child.pid);
    ask_the_server();
    ck_assert_int_eq(kill(before, SIGKILL), 0);
    while (kill(before, 0) == 0)
        sched_yield();
    do
        fd = admin_port == 0 ? try_to_dial_unix(path) : try_to_dial_admin();
    while (fd < 0);
    close(fd);
    check_has(GET_OF("/metrics", "a"), "sxe_http_replies_total{class=\"2xx\"} 1\n");
    check_has(GET_OF("/status.json", "a"), "which showed the status, ended with signal 9");
    ask_the_server();
    check_has(child_errors(), ": another one is started in ");
    stop_httpd();
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(one_that_is_stopped_does_not_keep_the_server_from_ending)
{
    start_at_a_port("0");
    ck_assert_int_eq(kill(admin_of(httpd_child.pid), SIGSTOP), 0);
    stop_httpd();
}
END_TEST

/* ---- The supervisor's part, in this process ---- */

static struct httpd_options options = {.admin_is_on = true, .admin_ip = "127.0.0.1"};
static char logged[4096];

static void
keep_log(void *user, int level, const char *line, size_t length)
{
    size_t used = strlen(logged);

    (void)user;
    (void)level;
    snprintf(logged + used, sizeof(logged) - used, "%.*s", (int)length, line);
}

static void
end_admin(void)
{
    pid_t pid = admin_of(getpid());
    siginfo_t info;

    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    logged[0] = '\0';
}

#define SECONDS(n) ((n)*SXE_NS_PER_SECOND)

START_TEST(processes_that_end_at_once_are_replaced_later_and_later)
{
    static const char *const delays[] = {"100", "200", "400", "800", "1600", "3200", "6400"};
    uint64_t now_ns = sxe_time_ns();

    unsetenv("SXE_LOG_LEVEL");
    sxe_log_to_function(keep_log, NULL);
    ck_assert_int_eq(admin_begin(&options, 1), 0);
    for (unsigned i = 0; i < 9; i++) {
        char text[32];

        snprintf(text, sizeof(text), "is started in %s ms", i < 7 ? delays[i] : "10000");
        end_admin();
        ck_assert_uint_eq(admin_look(now_ns, NULL), now_ns + SECONDS(1) / 4);
        check_has(logged, text);
        now_ns += SECONDS(10);
        admin_look(now_ns, NULL);
        ck_assert_int_gt(admin_of(getpid()), 0);
    }
    end_admin();
    admin_look(now_ns + SECONDS(10), NULL);
    check_has(logged, "is started in 0 ms");
    ck_assert_int_gt(admin_of(getpid()), 0);
    admin_end();
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
END_TEST

START_TEST(a_process_that_cannot_be_forked_is_tried_again)
{
    unsetenv("SXE_LOG_LEVEL");
    sxe_log_to_function(keep_log, NULL);
    ck_assert_int_eq(admin_begin(&options, 1), 0);
    end_admin();
    admin_look(sxe_time_ns(), NULL);
    fake_os_fail(FAKE_FORK, 1, 1, EAGAIN);
    admin_look(sxe_time_ns() + SECONDS(1), NULL);
    check_has(logged, "cannot start a process that shows the status: Resource temporarily");
    check_has(logged, ": it is tried again in 200 ms");
    admin_look(sxe_time_ns() + SECONDS(5), NULL);
    ck_assert_int_gt(admin_of(getpid()), 0);
    admin_end();
}
END_TEST

/* For the new admin process: its log goes to this pipe. */
static int log_ends[2];

static void
log_into_the_pipe(void)
{
    sxe_log_to_fd(log_ends[1]);
    fake_os_fail(FAKE_BIND, 1, 1, EADDRINUSE);
}

START_TEST(one_that_cannot_listen_any_more_says_so)
{
    char text[512] = "";
    siginfo_t info;

    unsetenv("SXE_LOG_LEVEL");
    sxe_log_to_function(keep_log, NULL);
    ck_assert_int_eq(pipe(log_ends), 0);
    ck_assert_int_eq(admin_begin(&options, 1), 0);
    end_admin();
    admin_look(sxe_time_ns(), log_into_the_pipe);
    admin_look(sxe_time_ns() + SECONDS(1), log_into_the_pipe);
    while (strstr(text, "cannot show the status on 127.0.0.1 port ") == NULL)
        ck_assert_int_gt(read(log_ends[0], text, sizeof(text) - 1), 0);
    ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0); /* the child ended by itself */
    ck_assert_int_eq(info.si_code, CLD_EXITED);
    admin_end();
}
END_TEST

START_TEST(one_that_cannot_become_the_user_of_the_server_ends)
{
    options.user = (struct become){.is_given = true, .user = geteuid(), .group = getegid()};
    fake_os_fail(FAKE_SETGID, 1, 1, ENOSYS);
    ck_assert_int_eq(admin_begin(&options, 1), -EPERM);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(one_that_may_not_be_signalled_is_not_waited_for)
{
    pid_t pid;

    ck_assert_int_eq(admin_begin(&options, 1), 0);
    pid = admin_of(getpid());
    fake_os_fail(FAKE_KILL, 1, 1, EPERM);
    admin_end();
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(without_the_option_there_is_nothing_to_look_at)
{
    struct httpd_options none = {.admin_ip = "127.0.0.1"};

    ck_assert_int_eq(admin_begin(&none, 1), 0);
    ck_assert_uint_eq(admin_look(1, NULL), UINT64_MAX);
    admin_end();
    RUN_HTTPD("--admin", "0", "--repl", "--lua", "x");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "--repl is a shell in a single process: leave out --admin.");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("httpd-admin");
    TCase *tcase = tcase_create("admin");

    tcase_add_checked_fixture(tcase, make_directory, remove_directory);
    tcase_add_loop_test(tcase, it_listens_on_loopback_or_where_it_is_told, 0, 4);
    tcase_add_test(tcase, it_listens_on_a_unix_socket_whose_file_goes_with_it);
    tcase_add_loop_test(tcase, what_is_no_place_is_refused, 0, 11);
    tcase_add_test(tcase, a_place_that_is_taken_ends_the_server_at_once);
    tcase_add_loop_test(tcase, each_fault_at_its_start_is_told_and_leaves_no_process, 0,
                        (int)(sizeof(faults) / sizeof(faults[0])));
    tcase_add_test(tcase, it_shows_what_the_server_has_counted);
    tcase_add_test(tcase, a_script_shows_its_routes_memory_and_errors);
    tcase_add_test(tcase, the_page_shows_it_as_tables);
    tcase_add_test(tcase, the_page_runs_its_own_script_only);
    tcase_add_test(tcase, the_page_has_buttons_for_clients_that_may_use_them);
    tcase_add_loop_test(tcase, an_action_needs_the_token, 0, 3);
    tcase_add_test(tcase, other_sites_get_no_token_and_do_nothing);
    tcase_add_test(tcase, drain_ends_the_server_and_is_seen_by_readyz);
    tcase_add_test(tcase, readyz_says_so_while_a_request_is_finished);
    tcase_add_test(tcase, reload_loads_the_script_again);
    tcase_add_test(tcase, a_level_is_one_of_the_log);
    tcase_add_test(tcase, a_signal_that_cannot_be_sent_is_told);
    tcase_add_test(tcase, more_replies_than_there_are_texts_are_refused_until_one_is_read);
    tcase_add_test(tcase, a_reply_for_which_there_is_no_memory_is_an_error);
    tcase_add_test(tcase, a_page_without_a_nonce_is_an_error);
    tcase_add_loop_test(tcase, another_one_takes_its_place_and_the_server_goes_on, 0, 2);
    tcase_add_test(tcase, one_that_is_stopped_does_not_keep_the_server_from_ending);
    tcase_add_test(tcase, processes_that_end_at_once_are_replaced_later_and_later);
    tcase_add_test(tcase, a_process_that_cannot_be_forked_is_tried_again);
    tcase_add_test(tcase, one_that_cannot_listen_any_more_says_so);
    tcase_add_test(tcase, one_that_cannot_become_the_user_of_the_server_ends);
    tcase_add_test(tcase, one_that_may_not_be_signalled_is_not_waited_for);
    tcase_add_test(tcase, without_the_option_there_is_nothing_to_look_at);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
