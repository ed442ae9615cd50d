/* SPDX-License-Identifier: MIT
 *
 * sxe-httpd as a whole program: starts that fail, in this process, and serving, in a child.
 */
#include "run-httpd.h"

#include <errno.h>
#include <ev.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>

static char directory[] = "/tmp/sxe-httpd-XXXXXX";
static char root[64];
static char log_path[64];
static char renamed[64];
static char socket_path[64];

static void
write_file(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void
make_directory(void)
{
    memcpy(directory, "/tmp/sxe-httpd-XXXXXX", sizeof(directory));
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(root, sizeof(root), "%s/root", directory);
    snprintf(log_path, sizeof(log_path), "%s/log", directory);
    snprintf(renamed, sizeof(renamed), "%s/log.1", directory);
    snprintf(socket_path, sizeof(socket_path), "%s/socket", directory);
    ck_assert_int_eq(mkdir(root, 0755), 0);
    write_file("hello.txt", "hello\n");
    write_file("index.html", "home\n");
    write_file("start.html", "start\n");
    write_file("a.sxe", "typed\n");
}

static void
remove_directory(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* ---- Command lines that end at once ---- */

START_TEST(the_plan_is_printed_and_nothing_served)
{
    RUN_HTTPD("-c", "99", "--plan");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "sockets ");
    check_has(ran.output, "total ");
    check_has(ran.output, "http connections         99 x");
    check_has(ran.output, "http requests            99 x");
    ck_assert_ptr_null(strstr(ran.output, "http files"));
    ck_assert_str_eq(ran.errors, "");
}
END_TEST

START_TEST(the_plan_has_files_where_there_are_any)
{
    RUN_HTTPD("-r", root, "--plan");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "http files ");
}
END_TEST

START_TEST(a_root_that_cannot_be_served_is_named)
{
    char name[128];
    const char *roots[][2] = {{"", "''"}, {name, name}, {"/nonexistent", "'/nonexistent'"}};
    const char *why[] = {"No such file or directory", "Not a directory",
                         "No such file or directory"};

    snprintf(name, sizeof(name), "%s/hello.txt", root);
    RUN_HTTPD("-p", "0", "-r", roots[_i][0]);
    ck_assert_int_eq(ran.status, 1);
    ck_assert_str_eq(ran.output, "");
    check_has(ran.errors, "sxe-httpd: cannot serve the files of '");
    check_has(ran.errors, roots[_i][1]);
    check_has(ran.errors, why[_i]);
    check_has(ran.errors, "; -r needs an existing, readable directory");
}
END_TEST

START_TEST(a_log_that_cannot_be_opened_is_named)
{
    RUN_HTTPD("-p", "0", "--access-log", "/nonexistent/log");
    ck_assert_int_eq(ran.status, 1);
    ck_assert_str_eq(ran.output, "");
    check_has(ran.errors,
              "sxe-httpd: cannot open the access log '/nonexistent/log': No such file or "
              "directory; choose another with --access-log, in a directory where");
}
END_TEST

/* A port, or a path, at which this process listens. */
static int
taken_port(unsigned short *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int
taken_path(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(who_holds_the_port_is_named)
{
    unsigned short port;
    int taken = taken_port(&port);
    char text[8];
    char says[256];

    snprintf(text, sizeof(text), "%u", port);
    RUN_HTTPD("-p", text);
    ck_assert_int_eq(ran.status, 1);
    ck_assert_str_eq(ran.output, "");
    snprintf(says, sizeof(says),
             "sxe-httpd: cannot listen on 127.0.0.1 port %u: port %u is in use by ", port, port);
    check_has(ran.errors, says);
    snprintf(says, sizeof(says), " (pid %d); stop it, or choose another port with -p\n", getpid());
    check_has(ran.errors, says);
    close(taken);
}
END_TEST

START_TEST(who_holds_the_path_is_named_and_nobody_is_told_that_it_listens)
{
    int taken = taken_path(socket_path);
    char says[256];

    RUN_HTTPD("-p", "0", "--unix", socket_path);
    ck_assert_int_eq(ran.status, 1);
    ck_assert_str_eq(ran.output, "");
    snprintf(says, sizeof(says), "sxe-httpd: cannot listen on %s: %s is in use by ", socket_path,
             socket_path);
    check_has(ran.errors, says);
    snprintf(says, sizeof(says), " (pid %d); choose another path with --unix", getpid());
    check_has(ran.errors, says);
    close(taken);
}
END_TEST

START_TEST(a_file_in_the_place_of_the_socket_is_named)
{
    FILE *file = fopen(socket_path, "w");

    fclose(file);
    RUN_HTTPD("-p", "0", "--unix", socket_path);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, ": a file of that name exists and is not a socket; choose another");
    unlink(socket_path);
}
END_TEST

START_TEST(a_path_without_a_directory_is_named)
{
    RUN_HTTPD("-p", "0", "--unix", "/nonexistent/socket");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot listen on /nonexistent/socket: No such file or "
                          "directory; choose another path with --unix");
}
END_TEST

START_TEST(a_place_at_which_it_cannot_listen_is_named)
{
    RUN_HTTPD("--listen", "0", "--listen", "/nonexistent/socket", "--listen", "0");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot listen on /nonexistent/socket: No such file");
    fake_os_fail(FAKE_LISTEN, 2, 1, EADDRINUSE);
    RUN_HTTPD("--listen", "[::1]:0", "--listen", "127.0.0.1:0", "--listen", socket_path);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot listen on 127.0.0.1 port 0: ");
    fake_os_fail(FAKE_LISTEN, 1, 1, EADDRINUSE);
    RUN_HTTPD("--fastcgi", "0");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "choose another address, port or path with --fastcgi");
}
END_TEST

START_TEST(root_is_warned_and_nobody_else)
{
    fake_os_fail(FAKE_GETEUID, 1, 0, _i == 0 ? 0 : EPERM);
    RUN_HTTPD("-p", "0", "--unix", "/nonexistent/socket");
    ck_assert_int_eq(ran.status, 1);
    ck_assert((strstr(ran.errors, "started as root: ") != NULL) == (_i == 0));
}
END_TEST

START_TEST(an_address_of_another_machine_is_named)
{
    RUN_HTTPD("-i", "192.0.2.1", "-p", "80");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot listen on 192.0.2.1 port 80: Cannot assign requested "
                          "address; choose an address of this machine with -i\n");
}
END_TEST

static const struct {
    int error;
    const char *says;
} refusals[] = {
    {EACCES, "Permission denied; choose a port from 1024 on with -p, or give the program "
             "CAP_NET_BIND_SERVICE\n"},
    {ENOMEM, "sxe-httpd: cannot listen on 127.0.0.1 port 80: Cannot allocate memory\n"},
};

/* The bind succeeded, but another process began to listen at the port before listen(). */
START_TEST(a_port_at_which_another_process_began_to_listen_is_named)
{
    fake_os_fail(FAKE_LISTEN, 1, 1, EADDRINUSE);
    RUN_HTTPD("-p", "0");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot listen on 127.0.0.1 port 0: ");
}
END_TEST

START_TEST(a_port_that_is_denied_is_named)
{
    fake_os_fail(FAKE_BIND, 1, 1, refusals[_i].error);
    RUN_HTTPD("-p", "80");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, refusals[_i].says);
}
END_TEST

/* Whatever fails at the start is reported, and no descriptor stays open. */
START_TEST(f1_whatever_fails_at_the_beginning_ends_it_with_a_reason)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC,       FAKE_POSIX_MEMALIGN,
                                           FAKE_MMAP,   FAKE_MEMFD_CREATE, FAKE_SOCKET,
                                           FAKE_BIND,   FAKE_LISTEN,       FAKE_PTHREAD_CREATE};
    unsigned open = fake_os_open_fds();
    unsigned nth = 0;

    do {
        /* If no call fails, the log cannot be opened, which ends the loop. (libev's own
         * allocations, by realloc, would end the process; it makes them at the start only.) */
        fake_os_sweep(kinds, sizeof(kinds) / sizeof(kinds[0]), ++nth, false, ENOMEM);
        RUN_HTTPD("-c", "10", "-p", "0", "-r", root, "--access-log", "/nonexistent/log");
        ck_assert_int_eq(ran.status, 1);
        check_has(ran.errors, "sxe-httpd: cannot ");
        ev_loop_destroy(ev_default_loop(EVFLAG_AUTO)); /* this loop has libev's own descriptors */
        ck_assert_uint_eq(fake_os_open_fds(), open);
    } while (strstr(ran.errors, "No such file") == NULL);
    ck_assert_uint_gt(nth, 10);
}
END_TEST

/* The log is already open when the loop cannot be made. */
START_TEST(without_a_descriptor_for_its_loop_it_does_not_start)
{
    unsigned open = fake_os_open_fds();

    fake_os_fail(FAKE_EPOLL_CREATE1, 1, 0, EMFILE);
    RUN_HTTPD("-p", "0", "--access-log", log_path);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot start: Too many open files");
    fake_os_reset();
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO)); /* this loop has libev's own descriptors */
    ck_assert_uint_eq(fake_os_open_fds(), open);
}
END_TEST

/* ---- Service ---- */

START_TEST(it_says_hello_as_often_as_asked_until_it_is_stopped)
{
    int fd;

    START_HTTPD("-c", "10");
    fd = dial();
    for (unsigned i = 0; i < 10; i++) {
        say(fd, GET);
        expect(fd, HELLO);
    }
    say(fd, GET GET GET);
    expect(fd, HELLO HELLO HELLO);
    ck_assert_int_eq(kill(httpd_child.pid, _i == 0 ? SIGTERM : SIGINT), 0);
    expect_end(fd);
    expect_exit();
    ck_assert_str_eq(child_errors(), "");
}
END_TEST

/* Ask for the greeting on this connection, and close it. */
static void
expect_hello(int fd)
{
    say(fd, GET);
    expect(fd, HELLO);
    close(fd);
}

START_TEST(it_listens_on_ipv6_too)
{
    START_HTTPD("-i", "::1");
    ck_assert(httpd_child.is_ipv6);
    expect_hello(dial());
    stop_httpd();
}
END_TEST

START_TEST(it_listens_on_a_unix_socket_too)
{
    struct stat file;

    START_HTTPD("--unix", socket_path, "--socket-mode", "604");
    ck_assert_int_eq(stat(socket_path, &file), 0);
    ck_assert_uint_eq(file.st_mode & 0777, 0604);
    expect_hello(dial_unix(socket_path));
    expect_hello(dial());
    stop_httpd();
    ck_assert_int_eq(stat(socket_path, &file), -1);
}
END_TEST

START_TEST(it_listens_at_all_places)
{
    START_HTTPD("--listen", socket_path, "--listen", "[::1]:0,plain");
    expect_hello(dial_unix(socket_path));
    expect_hello(dial());
    stop_httpd();
}
END_TEST

/* A server that was killed has left its socket's file. */
START_TEST(a_unix_socket_that_nobody_has_any_more_is_taken_over)
{
    close(taken_path(socket_path));
    START_HTTPD("--unix", socket_path);
    close(dial_unix(socket_path));
    stop_httpd();
}
END_TEST

static const struct {
    const char *request;
    const char *reply;
    bool ends;
} exchanges[] = {
    {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" GET, HEAD_OF_REPLY "\r\n" HELLO, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET,
     HEAD_OF_REPLY "Connection: close\r\n\r\n" BODY, true},
    {"GET / HTTP/1.0\r\n\r\n", HEAD_OF_REPLY "Connection: close\r\n\r\n" BODY, true},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
     HEAD_OF_REPLY "Connection: keep-alive\r\n\r\n" BODY, false},
    {"HEAD / HTTP/1.0\r\n\r\n", HEAD_OF_REPLY "Connection: close\r\n\r\n", true},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" GET, HELLO HELLO, false},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" GET,
     HELLO HELLO, false},
    {GET "rubbish", HELLO, false},
};

START_TEST(each_request_gets_its_reply)
{
    int fd;

    START_HTTPD("-c", "1");
    fd = dial();
    say(fd, exchanges[_i].request);
    expect(fd, exchanges[_i].reply);
    if (exchanges[_i].ends)
        expect_end(fd);
    else
        close(fd);
    stop_httpd();
}
END_TEST

/* Each byte is sent alone, so that it is an event of its own, as far as the kernel allows. */
START_TEST(a_request_may_come_byte_by_byte)
{
    static const char text[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    char byte[2] = "";
    int fd;

    START_HTTPD("-c", "1");
    fd = dial();
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        byte[0] = text[i];
        say(fd, byte);
        sched_yield();
    }
    say(fd, GET);
    expect(fd, HELLO HELLO);
    shutdown(fd, SHUT_WR);
    expect_end(fd);
    stop_httpd();
}
END_TEST

/* The client is gone before the replies to its pipelined requests fit into one write. */
static void
fail_first_write(void)
{
    static const enum fake_call kinds[] = {FAKE_SEND, FAKE_SENDMSG};

    fake_os_sweep(kinds, 2, 1, false, EPIPE);
}

START_TEST(replies_that_cannot_be_sent_close_and_the_next_is_served)
{
    static char requests[640 * 25 + 1];
    int fd;

    httpd_child.prepare = fail_first_write;
    START_HTTPD("-c", "100");
    fd = dial();
    for (size_t i = 0; i + 25 <= sizeof(requests); i += 25)
        memcpy(requests + i, "GET / HTTP/1.1\r\nHost:\r\n\r\n", 25);
    say(fd, requests);
    ck_assert_int_le(recv(fd, requests, 1, 0), 0);
    close(fd);
    expect_hello(dial());
    stop_httpd();
}
END_TEST

/* The rest of the last connection's output after this request. */
static const char *
ask(const char *request)
{
    static char reply[20000];
    size_t length = 0;
    ssize_t n;
    int fd = dial();

    say(fd, request);
    while ((n = recv(fd, reply + length, sizeof(reply) - 1 - length, 0)) > 0)
        length += (size_t)n;
    ck_assert_int_eq(n, 0);
    reply[length] = '\0';
    close(fd);
    return reply;
}

#define GET_LAST(target) "GET " target " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

START_TEST(a_directory_is_served)
{
    START_HTTPD("-r", root, "--listing", "--index", "start.html", "--cache-control", "max-age=60",
                "--type", "text/x-sxe sxe", "--header", "X-One: 1", "--header", "X-Two: 2");
    check_has(ask(GET_LAST("/hello.txt")), "\r\n\r\nhello\n");
    check_has(ask(GET_LAST("/hello.txt")), "\r\nCache-Control: max-age=60\r\n");
    check_has(ask(GET_LAST("/hello.txt")), "\r\nX-One: 1\r\nX-Two: 2\r\n");
    check_has(ask(GET_LAST("/a.sxe")), "\r\nContent-Type: text/x-sxe\r\n");
    check_has(ask(GET_LAST("/")), "\r\n\r\nstart\n");
    check_has(ask(GET_LAST("/none")), "HTTP/1.1 404 Not Found\r\n");
    check_has(ask(GET_LAST("/none")), "\r\nX-One: 1\r\n");
    stop_httpd();
}
END_TEST

START_TEST(a_head_may_be_larger_than_usual)
{
    static char request[50000] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    size_t length = strlen(request);

    for (unsigned i = 0; i < 10; i++)
        length +=
            (size_t)snprintf(request + length, sizeof(request) - length, "X-%u: %04000u\r\n", i, i);
    snprintf(request + length, sizeof(request) - length, "\r\n");
    START_HTTPD("--max-header", "60k");
    check_has(ask(request), "HTTP/1.1 200 OK\r\n");
    stop_httpd();
}
END_TEST

/* ---- The address of a request's client ---- */

/* The text of a file, once it has `wanted` lines. */
static const char *
wait_for_lines(const char *path, unsigned wanted)
{
    static char text[300000];

    for (unsigned tries = 0; tries < 100000; tries++) {
        FILE *file = fopen(path, "re");
        unsigned number = 0;

        if (file != NULL) {
            read_back(file, text, sizeof(text));
            for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
                number++;
        }
        if (number >= wanted)
            return text;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    ck_abort_msg("no %u lines in %s: %.500s", wanted, path, text);
    return NULL;
}

START_TEST(a_proxy_that_is_trusted_says_who_asks)
{
    START_HTTPD("--proxy-from", "127.0.0.0/8", "--access-log", log_path);
    check_has(ask("PROXY TCP4 192.0.2.7 198.51.100.1 56324 80\r\n" GET_LAST("/1")), BODY);
    check_has(ask("PROXY TCP6 2001:db8::7 2001:db8::1 1 80\r\n" GET_LAST("/2")), BODY);
    stop_httpd();
    check_has(wait_for_lines(log_path, 2), "192.0.2.7 - - [");
    check_has(wait_for_lines(log_path, 2), "\n2001:db8::7 - - [");
}
END_TEST

START_TEST(who_is_no_proxy_is_not_believed)
{
    START_HTTPD("--proxy-from", "192.0.2.0/24", "--access-log", log_path);
    check_has(ask("PROXY TCP4 192.0.2.7 198.51.100.1 56324 80\r\n" GET_LAST("/1")),
              "HTTP/1.1 400 Bad Request\r\n");
    stop_httpd();
    check_has(wait_for_lines(log_path, 1), "127.0.0.1 - - [");
}
END_TEST

/* ---- The access log ---- */

START_TEST(lines_are_written_within_a_second_or_so)
{
    START_HTTPD("--access-log", log_path, "--access-log-format", "json", "--access-log-sample",
                "1");
    ask(GET_LAST("/a"));
    check_has(wait_for_lines(log_path, 1), "\"target\":\"/a\"");
    stop_httpd();
}
END_TEST

START_TEST(after_a_signal_a_renamed_log_is_begun_again)
{
    START_HTTPD("--access-log", log_path);
    ask(GET_LAST("/1"));
    wait_for_lines(log_path, 1);
    ck_assert_int_eq(rename(log_path, renamed), 0);
    ck_assert_int_eq(kill(httpd_child.pid, _i == 0 ? SIGHUP : SIGUSR1), 0);
    wait_for_lines(log_path, 0);
    while (access(log_path, F_OK) < 0)
        sched_yield();
    ask(GET_LAST("/2"));
    stop_httpd();
    check_has(wait_for_lines(renamed, 1), "GET /1 ");
    check_has(wait_for_lines(log_path, 1), "GET /2 ");
}
END_TEST

static void
wait_for_error(const char *part)
{
    for (unsigned tries = 0; tries < 100000 && strstr(child_errors(), part) == NULL; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    check_has(child_errors(), part);
}

START_TEST(a_log_that_cannot_be_opened_again_goes_on)
{
    START_HTTPD("--access-log", log_path);
    ck_assert_int_eq(rename(log_path, renamed), 0);
    ck_assert_int_eq(mkdir(log_path, 0755), 0);
    ck_assert_int_eq(kill(httpd_child.pid, SIGHUP), 0);
    wait_for_error("cannot open the access log again: Is a directory; writing continues to the "
                   "file that is open\n");
    ask(GET_LAST("/a"));
    stop_httpd();
    check_has(wait_for_lines(renamed, 1), "GET /a ");
}
END_TEST

START_TEST(without_a_log_the_signals_do_nothing)
{
    int fd;

    START_HTTPD("-c", "1");
    fd = dial();
    ck_assert_int_eq(kill(httpd_child.pid, SIGHUP), 0);
    ck_assert_int_eq(kill(httpd_child.pid, SIGUSR1), 0);
    expect_hello(fd);
    stop_httpd();
}
END_TEST

/* If the log goes to standard output, no other text goes there. */
START_TEST(the_log_may_be_the_standard_output)
{
    FILE *output = tmpfile();
    char text[1000];
    int was = dup(STDOUT_FILENO);

    fflush(NULL);
    dup2(fileno(output), STDOUT_FILENO);
    start_httpd((const char *[]){"sxe-httpd", "-p", "0", "--access-log", "-", NULL}, STDERR_FILENO);
    dup2(was, STDOUT_FILENO);
    close(was);
    ask(GET_LAST("/a"));
    stop_httpd();
    read_back(output, text, sizeof(text));
    ck_assert_int_eq(strncmp(text, "127.0.0.1 - - [", 15), 0);
    check_has(text, "] \"GET /a HTTP/1.1\" 200 14 \"-\" \"-\"\n");
}
END_TEST

START_TEST(f13_a_storm_of_signals_loses_no_request)
{
    static const int storm[] = {SIGHUP, SIGUSR1, SIGHUP, SIGCHLD, SIGPIPE, SIGWINCH, SIGURG};
    int fd;

    START_HTTPD("--access-log", log_path);
    fd = dial();
    for (unsigned i = 0; i < 2000; i++) {
        ck_assert_int_eq(kill(httpd_child.pid, storm[i % (sizeof(storm) / sizeof(storm[0]))]), 0);
        say(fd, GET);
        expect(fd, HELLO);
    }
    close(fd);
    stop_httpd();
    wait_for_lines(log_path, 2000);
    ck_assert_str_eq(child_errors(), "");
}
END_TEST

/* ---- Workers ---- */

START_TEST(without_memory_for_the_limits_of_all_workers_it_does_not_start)
{
    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    RUN_HTTPD("-w", "2");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-httpd: cannot start: Cannot allocate memory; give fewer workers");
}
END_TEST

START_TEST(workers_serve_with_and_without_a_limit_of_addresses)
{
    START_HTTPD("-w", "2", "--connections-per-address", _i == 0 ? "0" : "1");
    expect_hello(dial());
    stop_httpd();
}
END_TEST

START_TEST(a_worker_says_in_the_log_which_it_is)
{
    int fd;

    START_HTTPD("-w", "1", "--access-log", log_path, "--access-log-format", "worker $worker");
    fd = dial();
    say(fd, GET);
    expect(fd, HELLO);
    check_has(wait_for_lines(log_path, 1), "worker 0\n");
    close(fd);
    stop_httpd();
}
END_TEST

/* ---- Stopping ---- */

static void
wait_until_nobody_listens(void)
{
    int fd;

    while ((fd = try_to_dial()) >= 0)
        close(fd);
}

#define HALF_A_POST "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345"

START_TEST(told_to_end_it_closes_who_is_idle_and_finishes_what_is_under_way)
{
    int idle;
    int busy;

    START_HTTPD("-c", "10");
    idle = dial();
    busy = dial();
    say(idle, GET);
    expect(idle, HELLO);
    say(busy, GET HALF_A_POST);
    expect(busy, HELLO);
    ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    expect_end(idle);
    wait_until_nobody_listens();
    say(busy, "67890");
    expect(busy, HEAD_OF_REPLY "Connection: close\r\n\r\n" BODY);
    expect_end(busy);
    expect_exit();
}
END_TEST

START_TEST(what_is_under_way_has_a_time_to_end)
{
    int busy;

    START_HTTPD("--stop-timeout", "0.05");
    busy = dial();
    say(busy, GET HALF_A_POST);
    expect(busy, HELLO);
    stop_httpd();
    close(busy);
}
END_TEST

START_TEST(told_twice_it_ends_at_once)
{
    int busy;

    START_HTTPD("--stop-timeout", "1h");
    busy = dial();
    say(busy, GET HALF_A_POST);
    expect(busy, HELLO);
    ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    wait_until_nobody_listens();
    ck_assert_int_eq(kill(httpd_child.pid, _i == 0 ? SIGTERM : SIGINT), 0);
    expect_exit();
    close(busy);
}
END_TEST

static void
raise_stop_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};

    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        raise(numbers[i]);
}

static void
raise_stop_signals_at_exit(void)
{
    atexit(raise_stop_signals);
}

START_TEST(a_signal_after_its_end_does_not_change_its_exit_status)
{
    httpd_child.prepare = raise_stop_signals_at_exit;
    if (_i == 0)
        START_HTTPD("-c", "10");
    else
        START_HTTPD("-c", "10", "-w", "1");
    stop_httpd();
}
END_TEST

static Suite *
app_suite(void)
{
    Suite *suite = suite_create("httpd app");
    TCase *start = tcase_create("start");
    TCase *service = tcase_create("service");
    TCase *access_log = tcase_create("access log");
    TCase *end = tcase_create("end");

    tcase_add_checked_fixture(start, make_directory, remove_directory);
    tcase_add_test(start, the_plan_is_printed_and_nothing_served);
    tcase_add_test(start, the_plan_has_files_where_there_are_any);
    tcase_add_loop_test(start, a_root_that_cannot_be_served_is_named, 0, 3);
    tcase_add_test(start, a_log_that_cannot_be_opened_is_named);
    tcase_add_test(start, who_holds_the_port_is_named);
    tcase_add_test(start, who_holds_the_path_is_named_and_nobody_is_told_that_it_listens);
    tcase_add_test(start, a_file_in_the_place_of_the_socket_is_named);
    tcase_add_test(start, a_path_without_a_directory_is_named);
    tcase_add_test(start, a_place_at_which_it_cannot_listen_is_named);
    tcase_add_loop_test(start, root_is_warned_and_nobody_else, 0, 2);
    tcase_add_test(start, an_address_of_another_machine_is_named);
    tcase_add_test(start, a_port_at_which_another_process_began_to_listen_is_named);
    tcase_add_loop_test(start, a_port_that_is_denied_is_named, 0, 2);
    tcase_add_test(start, f1_whatever_fails_at_the_beginning_ends_it_with_a_reason);
    tcase_add_test(start, without_a_descriptor_for_its_loop_it_does_not_start);
    suite_add_tcase(suite, start);
    tcase_add_checked_fixture(service, make_directory, remove_directory);
    tcase_add_loop_test(service, it_says_hello_as_often_as_asked_until_it_is_stopped, 0, 2);
    tcase_add_test(service, it_listens_on_ipv6_too);
    tcase_add_test(service, it_listens_on_a_unix_socket_too);
    tcase_add_test(service, it_listens_at_all_places);
    tcase_add_test(service, a_unix_socket_that_nobody_has_any_more_is_taken_over);
    tcase_add_loop_test(service, each_request_gets_its_reply, 0,
                        (int)(sizeof(exchanges) / sizeof(exchanges[0])));
    tcase_add_test(service, a_request_may_come_byte_by_byte);
    tcase_add_test(service, replies_that_cannot_be_sent_close_and_the_next_is_served);
    tcase_add_test(service, a_directory_is_served);
    tcase_add_test(service, a_head_may_be_larger_than_usual);
    tcase_add_test(service, a_proxy_that_is_trusted_says_who_asks);
    tcase_add_test(service, who_is_no_proxy_is_not_believed);
    suite_add_tcase(suite, service);
    tcase_add_checked_fixture(access_log, make_directory, remove_directory);
    tcase_add_test(access_log, lines_are_written_within_a_second_or_so);
    tcase_add_loop_test(access_log, after_a_signal_a_renamed_log_is_begun_again, 0, 2);
    tcase_add_test(access_log, a_log_that_cannot_be_opened_again_goes_on);
    tcase_add_test(access_log, without_a_log_the_signals_do_nothing);
    tcase_add_test(access_log, the_log_may_be_the_standard_output);
    tcase_add_test(access_log, f13_a_storm_of_signals_loses_no_request);
    suite_add_tcase(suite, access_log);
    tcase_add_checked_fixture(end, make_directory, remove_directory);
    tcase_add_test(end, without_memory_for_the_limits_of_all_workers_it_does_not_start);
    tcase_add_test(end, a_worker_says_in_the_log_which_it_is);
    tcase_add_loop_test(end, workers_serve_with_and_without_a_limit_of_addresses, 0, 2);
    tcase_add_test(end, told_to_end_it_closes_who_is_idle_and_finishes_what_is_under_way);
    tcase_add_test(end, what_is_under_way_has_a_time_to_end);
    tcase_add_loop_test(end, told_twice_it_ends_at_once, 0, 2);
    tcase_add_loop_test(end, a_signal_after_its_end_does_not_change_its_exit_status, 0, 2);
    suite_add_tcase(suite, end);
    return suite;
}

int
main(void)
{
    return sxe_test_main(app_suite());
}
