/* SPDX-License-Identifier: MIT
 *
 * sxe-http as a whole against a server in another process, which does as each test says.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "run-http.h"
#include "run.h"
#include "test-main.h"

#define SOCKETS_MAX 200
#define REPLY       "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define NOT_FOUND   "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello"
#define CHUNKED     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define UNTIL_CLOSE "HTTP/1.1 200 OK\r\n\r\nhello"

/* ---- The server ---- */

/* What to do with a socket's nth request, 1 the first: true keeps the connection. */
typedef bool (*answer_fn)(int fd, unsigned nth);

static char port[8];
static pid_t server;

static void
say(int fd, const char *text)
{
    /* A client that is gone is found when it is read from. */
    (void)!write(fd, text, strlen(text));
}

static bool
reset(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return false;
}

static int
listen_anywhere(int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, backlog), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(port, sizeof(port), "%u", ntohs(address.sin_port));
    return fd;
}

struct requests {
    unsigned number;
    unsigned matched; /* bytes of the blank line that ends the next one */
};

/* Read once, and answer each request that ends in it. */
static bool
receive(int fd, struct requests *requests, answer_fn answer)
{
    static const char blank_line[] = "\r\n\r\n";
    char bytes[4096];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    bool keep = n > 0;

    for (ssize_t i = 0; i < n && keep; i++) {
        requests->matched =
            bytes[i] == blank_line[requests->matched] ? requests->matched + 1 : bytes[i] == '\r';
        if (requests->matched < 4)
            continue;
        requests->matched = 0;
        keep = answer(fd, ++requests->number);
    }
    return keep;
}

/* Says the greeting on each connection, and answers what comes, for ever. */
static void
serve(int listener, const char *greeting, answer_fn answer)
{
    struct pollfd fds[1 + SOCKETS_MAX] = {{listener, POLLIN, 0}};
    struct requests requests[1 + SOCKETS_MAX] = {0};
    unsigned number = 1;

    for (;;) {
        poll(fds, number, -1);
        for (unsigned i = 1; i < number; i++) {
            if (fds[i].revents == 0 || receive(fds[i].fd, &requests[i], answer))
                continue;
            close(fds[i].fd);
            fds[i] = fds[--number];
            requests[i] = requests[number];
            i--;
        }
        if (fds[0].revents != 0) {
            fds[number] = (struct pollfd){accept(listener, NULL, NULL), POLLIN, 0};
            requests[number] = (struct requests){0};
            say(fds[number++].fd, greeting);
        }
    }
}

/* True in the new process, which ends with ours at the latest. */
static bool
fork_server(void)
{
    server = fork();
    ck_assert_int_ge(server, 0);
    if (server > 0)
        return false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    return true;
}

static void
start_greeting_server(const char *greeting, answer_fn answer)
{
    int listener = listen_anywhere(SOCKETS_MAX);

    if (fork_server())
        serve(listener, greeting, answer);
    close(listener);
}

static void
start_server(answer_fn answer)
{
    start_greeting_server("", answer);
}

static void
stop_server(void)
{
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
    server = 0;
}

/* ---- What is run, and what is checked ---- */

#define RUN(sockets, queries) RUN_HTTP("-p", port, "-c", #sockets, "-n", #queries, "--timeout", "5")

/* A machine that is busy with other tests makes a good result a suspect one. */
static bool
is_status(int status)
{
    return ran.status == status || (status == HTTP_EXIT_OK && ran.status == HTTP_EXIT_SUSPECT &&
                                    strstr(ran.output, "RESULT SUSPECT: ") != NULL);
}

/* The status, and parts of the report, then NULL. */
static void
check_report(int status, const char *const *parts)
{
    ck_assert_msg(is_status(status), "status %d of %s%s", ran.status, ran.output, ran.errors);
    for (; *parts != NULL; parts++)
        check_has(ran.output, *parts);
    stop_server();
}
#define CHECK(status, ...) check_report(status, (const char *const[]){__VA_ARGS__, NULL})

/* Descriptors are given back too. */
static unsigned open_before;

static void
set_up(void)
{
    open_before = fake_os_open_fds();
}

static void
tear_down(void)
{
    ck_assert_uint_eq(fake_os_open_fds(), open_before);
}

/* ---- All is well ---- */

static bool
hello(int fd, unsigned nth)
{
    (void)nth;
    say(fd, REPLY);
    return true;
}

START_TEST(every_socket_has_its_queries)
{
    start_server(hello);
    RUN(20, 5);
    CHECK(0, "sockets   20/20 open in ", "queries   100  ok 100  errors 0  in flight 0  in ");
    ck_assert_str_eq(ran.errors, "");
}
END_TEST

START_TEST(more_sockets_than_a_batch_have_theirs_too)
{
    start_server(hello);
    RUN(200, 2);
    CHECK(0, "sockets   200/200 open", "queries   400  ok 400  errors 0  in flight 0");
}
END_TEST

/* With digits as #, and the numbers that come before a unit as one. */
static const char *
shape(const char *text)
{
    static char shaped[8192];
    char *to = shaped;

    for (; *text != '\0'; text++) {
        bool is_number = *text >= '0' && *text <= '9';

        if (!is_number || to == shaped || to[-1] != '#')
            *to++ = is_number ? '#' : *text;
    }
    *to = '\0';
    return shaped;
}

START_TEST(the_report_ends_with_the_lines_of_2010)
{
    start_server(hello);
    RUN(2, 3);
    stop_server();
    check_has(shape(ran.output), "\ntime for all connections: #.# seconds or #.# per second\n"
                                 "time for all queries    : #.# seconds or #.# per second\n"
                                 "time for all            : #.# seconds or #.# per second\n");
    const char *last = strstr(ran.output, "time for all            :");
    ck_assert_ptr_eq(strchr(last, '\n') + 1, last + strlen(last));
}
END_TEST

START_TEST(the_first_line_says_the_product)
{
    start_server(hello);
    RUN(2, 3);
    stop_server();
    check_has(ran.output, "closed loop: 2 sockets * 3 queries/socket = 6 queries");
    ck_assert_ptr_eq(strstr(ran.output, "closed loop: "), ran.output);
}
END_TEST

static bool
close_after_reply(int fd, unsigned nth)
{
    (void)nth;
    say(fd, REPLY);
    return false;
}

START_TEST(a_server_may_close_after_the_last_reply)
{
    start_server(close_after_reply);
    RUN(3, 1);
    CHECK(0, "3/3 open", "queries   3  ok 3  errors 0  in flight 0");
}
END_TEST

static bool
until_close(int fd, unsigned nth)
{
    (void)nth;
    say(fd, UNTIL_CLOSE);
    return false;
}

START_TEST(a_reply_without_a_length_ends_with_its_connection)
{
    start_server(until_close);
    RUN(3, 1);
    CHECK(0, "3/3 open", "queries   3  ok 3  errors 0  in flight 0");
}
END_TEST

/* Until the peer's kernel has all that was sent. */
static void
await_delivery(int fd)
{
    int unsent = 1;

    while (ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
        sched_yield();
}

static int first;  /* the connection that asked first */
static int second; /* the other one, while its reply waits */

/* The second connection is answered after the first has had both its replies; so when it asks again
 * the client has read those. */
static bool
is_answered_first(int fd, unsigned nth)
{
    static bool done;

    if (first == 0)
        first = fd;
    if (fd == first) {
        say(fd, REPLY);
        done = nth == 2;
    } else if (nth == 1) {
        second = fd;
    }
    if (done && second > 0) {
        say(second, REPLY);
        second = 0;
    }
    return fd == first || nth == 1;
}

static bool
rubbish_when_done(int fd, unsigned nth)
{
    if (!is_answered_first(fd, nth)) {
        say(first, "rubbish");
        await_delivery(first);
        say(fd, REPLY);
    }
    return true;
}

START_TEST(what_comes_when_all_is_answered_is_nobodys)
{
    start_server(rubbish_when_done);
    RUN(2, 2);
    CHECK(0, "2/2 open", "queries   4  ok 4  errors 0  in flight 0");
}
END_TEST

static bool
close_when_done(int fd, unsigned nth)
{
    if (!is_answered_first(fd, nth)) {
        shutdown(first, SHUT_WR);
        await_delivery(first);
        say(fd, REPLY);
    }
    return true;
}

START_TEST(a_server_may_close_when_all_is_answered)
{
    start_server(close_when_done);
    RUN(2, 2);
    CHECK(0, "2/2 open", "queries   4  ok 4  errors 0  in flight 0");
}
END_TEST

/* ---- Kinds of replies, two to each of two sockets ---- */

static const struct {
    const char *reply;
    int status;
    const char *queries;
    const char *errors;
} kinds[] = {
    {CHUNKED "5\r\nhello\r\n0\r\n\r\n", 0, "ok 4  errors 0  in", ""},
    {CHUNKED "0\r\nDigest: x\r\n\r\n", 0, "ok 4  errors 0  in", ""},
    {"HTTP/1.1 103 Early Hints\r\n\r\n" REPLY, 0, "ok 4  errors 0  in", ""},
    {"HTTP/1.1 204 No Content\r\n\r\n", 0, "ok 4  errors 0  in", ""},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 1, "ok 0  errors 4  in",
     "bad status 4 (first: 304)"},
    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 1, "ok 0  errors 4  in",
     "bad reply 4"},
    {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", 1, "ok 0  errors 4  in", "bad reply 4"},
    {CHUNKED "5\r\nhello!\r\n0\r\n\r\n", 1, "ok 0  errors 4  in", "bad reply 4"},
    {CHUNKED "0\r\n\r\n" REPLY, 1, "ok 0  errors 4  in", "bad reply 4"},
};

static const char *kind; /* of the server's replies */

static bool
of_that_kind(int fd, unsigned nth)
{
    (void)nth;
    say(fd, kind);
    return true;
}

START_TEST(a_reply_may_be_of_any_kind)
{
    kind = kinds[_i].reply;
    start_server(of_that_kind);
    RUN(2, 2);
    CHECK(kinds[_i].status, "2/2 open", kinds[_i].queries, kinds[_i].errors);
}
END_TEST

/* ---- Servers that fail ---- */

START_TEST(nobody_listens)
{
    close(listen_anywhere(1));
    RUN(20, 2);
    CHECK(1, "sockets   0/20 open", "  refused 20", "queries   40  ok 0  errors 0",
          "skipped   40 of 40  socket not opened 40");
}
END_TEST

static bool
not_found_once(int fd, unsigned nth)
{
    say(fd, nth == 2 ? NOT_FOUND : REPLY);
    return true;
}

START_TEST(a_bad_status_is_counted_and_the_next_query_still_comes)
{
    start_server(not_found_once);
    RUN(3, 3);
    CHECK(1, "3/3 open", "errors    3 of 9  bad status 3 (first: 404)",
          "queries   9  ok 6  errors 3");
}
END_TEST

static bool
reset_second(int fd, unsigned nth)
{
    if (nth == 2)
        return reset(fd);
    say(fd, REPLY);
    return true;
}

START_TEST(a_reset_takes_its_query_and_the_socket_is_opened_again)
{
    start_server(reset_second);
    RUN(2, 4);
    CHECK(1, "2/2 open", "errors    4 of 8  reset 4", "queries   8  ok 4  errors 4");
}
END_TEST

static bool
close_in_body(int fd, unsigned nth)
{
    (void)nth;
    say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello");
    return false;
}

START_TEST(half_a_reply_is_none)
{
    start_server(close_in_body);
    RUN(2, 1);
    CHECK(1, "2/2 open", "short body 2", "queries   2  ok 0  errors 2");
}
END_TEST

START_TEST(after_a_reply_without_a_length_comes_another_connection)
{
    start_server(until_close);
    RUN(2, 3);
    CHECK(0, "2/2 open", "queries   6  ok 6  errors 0");
}
END_TEST

static bool
connection_close(int fd, unsigned nth)
{
    (void)nth;
    say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    return true;
}

START_TEST(after_connection_close_comes_another_connection)
{
    start_server(connection_close);
    RUN(2, 3);
    CHECK(0, "2/2 open", "queries   6  ok 6  errors 0");
}
END_TEST

static bool
rubbish_second(int fd, unsigned nth)
{
    say(fd, nth == 2 ? "rubbish" : REPLY);
    return true;
}

START_TEST(rubbish_is_a_bad_reply)
{
    start_server(rubbish_second);
    RUN(2, 3);
    CHECK(1, "2/2 open", "bad reply 2", "queries   6  ok 4  errors 2");
}
END_TEST

static bool
two_replies(int fd, unsigned nth)
{
    (void)nth;
    say(fd, REPLY REPLY);
    return true;
}

START_TEST(more_than_was_asked_for_is_a_bad_reply)
{
    start_server(two_replies);
    RUN(2, 3);
    CHECK(1, "2/2 open", "bad reply 6", "queries   6  ok 0  errors 6");
}
END_TEST

START_TEST(a_server_that_speaks_first_gives_a_bad_reply)
{
    start_greeting_server("220 smtp.example.com\r\n", hello);
    RUN(2, 3);
    CHECK(1, "2/2 open", "bad reply 6", "queries   6  ok 0  errors 6");
}
END_TEST

START_TEST(a_silent_server_times_out)
{
    int listener = listen_anywhere(SOCKETS_MAX);

    RUN_HTTP("-p", port, "-c", "20", "-n", "2", "--timeout", "0.05");
    close(listener);
    CHECK(1, "20/20 open", "timed out 20", "queries   40  ok 0  errors 20");
}
END_TEST

/* A full backlog: the kernel ignores who wants to connect. */
START_TEST(connections_that_nobody_accepts_time_out)
{
    int listener = listen_anywhere(0);

    RUN_HTTP("-p", port, "-c", "20", "-n", "2", "--timeout", "0.2");
    close(listener);
    CHECK(1, "/20 open in ", "timed out ", "queries   40  ok 0 ", "socket not opened ");
}
END_TEST

/* ---- Interrupted ---- */

static bool
interrupt_at_third(int fd, unsigned nth)
{
    if (nth < 3)
        say(fd, REPLY);
    else
        kill(getppid(), SIGINT);
    return true;
}

START_TEST(ctrl_c_prints_what_was_done_so_far)
{
    start_server(interrupt_at_third);
    RUN_HTTP("-p", port, "-c", "1", "-n", "10", "--drain", "0");
    CHECK(130, "1/1 open", "\ninterrupted: this is what was done so far\n", "ok 2  errors 0",
          "in flight 1", "\ntime for all            : ");
}
END_TEST

/* One connection is accepted, others hang. */
START_TEST(ctrl_c_ends_the_ramp_too)
{
    int listener = listen_anywhere(0);

    if (fork_server()) {
        accept(listener, NULL, NULL);
        kill(getppid(), SIGINT);
        pause();
    }
    close(listener);
    RUN(40, 2);
    CHECK(130, "/40 open", "  not tried ", "ok 0  errors 0");
}
END_TEST

/* ---- The system fails us, in a worker ---- */

START_TEST(without_descriptors_the_run_goes_on_with_those_there_are)
{
    start_server(hello);
    fake_os_fail(FAKE_SOCKET, 6, 0, EMFILE);
    RUN(20, 2);
    CHECK(1, "sockets   5/20 open in", "  no descriptor ", "ok 10  errors 0",
          "socket not opened 30");
    check_has(ran.errors, "going on with 5 of 20 sockets");
    check_has(ran.errors, "ulimit -Hn");
}
END_TEST

static const struct {
    enum fake_call call;
    int error;
    const char *what;
} faults[] = {
    {FAKE_SOCKET, ENFILE, "  no descriptor "},
    {FAKE_CONNECT, EADDRNOTAVAIL, "  no port "},
    {FAKE_CONNECT, ECONNREFUSED, "  refused 3"},
    {FAKE_CONNECT, ENETUNREACH, "other 3  (first: Network is unreachable)"},
    {FAKE_SETSOCKOPT, ENOMEM, "other 3  (first: Cannot allocate memory)"},
    {FAKE_WRITE, EPIPE, "errors    6 of 6  reset 6"},
    {FAKE_WRITE, ECONNRESET, "errors    6 of 6  reset 6"},
    {FAKE_WRITE, EHOSTUNREACH, "other 6 (first: No route to host)"},
    {FAKE_READ, ECONNRESET, "errors    6 of 6  reset 6"},
};

START_TEST(a_failing_call_is_an_error_of_its_socket)
{
    start_server(hello);
    fake_os_fail(faults[_i].call, 1, 0, faults[_i].error);
    RUN(3, 2);
    CHECK(1, faults[_i].what, "ok 0 ");
}
END_TEST

START_TEST(a_query_may_need_many_writes)
{
    start_server(hello);
    fake_os_limit(FAKE_WRITE, 7);
    RUN(3, 2);
    CHECK(0, "3/3 open", "queries   6  ok 6  errors 0");
}
END_TEST

START_TEST(without_a_loop_there_is_no_run)
{
    fake_os_fail(FAKE_EPOLL_CREATE1, 1, 0, EMFILE);
    RUN_HTTP("-c", "10");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-http: cannot start: Too many open files\n");
}
END_TEST

START_TEST(a_report_that_cannot_be_written_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");

    start_server(hello);
    run_http_into(full, (const char *[]){"sxe-http", "-p", port, "-c", "1", NULL});
    fclose(full);
    stop_server();
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-http: the report could not be written\n");
}
END_TEST

/* ---- What main() puts together ---- */

static char directory[64];
static char path[96];

/* Load that is soon over. */
#define SHORT_RUN "sxe-http", "-p", port, "-c", "1", "--requests", "100"

START_TEST(json_on_stdout_is_alone_there)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--json", "-");
    stop_server();
    ck_assert_int_eq(ran.output[0], '{');
    ck_assert_str_eq(ran.output + strlen(ran.output) - 2, "}\n");
    ck_assert_ptr_null(strstr(ran.output, "time for all"));
}
END_TEST

START_TEST(results_go_to_files_and_are_compared)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--json", path);
    check_has(ran.output, "time for all");
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--baseline", path);
    CHECK(0, "cannot tell");
    RUN_HTTP("compare", path, path);
    CHECK(0, "cannot tell");
    RUN_HTTP("html", path, path);
    CHECK(0, "<html");
}
END_TEST

START_TEST(the_comparison_is_no_data)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--json", path);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--baseline", path, "--json", "-");
    stop_server();
    ck_assert_int_eq(ran.output[0], '{');
    check_has(ran.errors, "cannot tell");
}
END_TEST

START_TEST(a_baseline_that_is_none_is_wrong_usage)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--baseline", "/nowhere/a.json");
    stop_server();
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "/nowhere/a.json");
}
END_TEST

START_TEST(an_output_that_cannot_be_written_is_an_error)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--csv", "/nowhere/a.csv");
    stop_server();
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "/nowhere/a.csv");
}
END_TEST

START_TEST(a_threshold_that_is_missed_has_a_status_of_its_own)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--threshold", "p50<0.001us");
    stop_server();
    ck_assert(ran.status == 3 || ran.status == 4);
    check_has(ran.errors, "sxe-http: threshold p50<0.001us is missed\n");
}
END_TEST

/* One on errors decides about them. */
START_TEST(errors_may_be_allowed)
{
    start_server(not_found_once);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--threshold", "errors<2%");
    CHECK(0, "bad status 1");
    start_server(not_found_once);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "--threshold", "errors<1%");
    stop_server();
    ck_assert(ran.status == 3 || ran.status == 4);
}
END_TEST

static void
write_script(const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(a_script_has_its_last_word)
{
    write_script("function done(summary) print('requests: ' .. summary.requests) end\n");
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "-s", path);
    CHECK(0, "requests: 100\n");
}
END_TEST

START_TEST(a_script_that_fails_at_the_end_is_an_error)
{
    write_script("function done() error('no more') end\n");
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "1", "--requests", "100", "-s", path);
    stop_server();
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "no more");
}
END_TEST

START_TEST(two_workers_share_the_load)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "5", "-n", "7", "-t", "2");
    CHECK(0, "sockets   5/5 open", "queries   35  ok 35  errors 0", "2 workers");
}
END_TEST

START_TEST(a_rate_is_kept)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "5", "-R", "1000", "-d", "0.3s", "--arrivals", "fixed");
    CHECK(0, "partly open: 1000/s fixed", "queries   300  ok 300  errors 0");
}
END_TEST

START_TEST(what_is_wrong_on_the_command_line_is_said)
{
    RUN_HTTP("--nonsense");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "--nonsense");
}
END_TEST

START_TEST(the_selftest_has_a_line_a_check)
{
    RUN_HTTP("--selftest");
    for (unsigned i = 0; i < 7; i++)
        check_has(ran.output, (const char *[]){" clocks ", " timer ", " histogram ", " accounts ",
                                               " merge ", " stall ", " delay "}[i]);
}
END_TEST

START_TEST(the_log_has_the_level_that_is_asked_for)
{
    setenv("SXE_LOG_LEVEL", "5", 1);
    start_server(hello);
    RUN(1, 1);
    CHECK(0, "ok 1");
}
END_TEST

static void
make_directory(void)
{
    snprintf(directory, sizeof(directory), "/tmp/test-http-app-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/file", directory);
}

static void
remove_directory(void)
{
    unlink(path);
    rmdir(directory);
}

/* ---- On a terminal ---- */

/* What is printed when stdout is a terminal. */
static void
run_on_terminal(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    FILE *out;

    ck_assert_int_ge(terminal, 0);
    ck_assert_int_eq(grantpt(terminal), 0);
    ck_assert_int_eq(unlockpt(terminal), 0);
    fcntl(terminal, F_SETFL, O_NONBLOCK);
    out = fopen(ptsname(terminal), "w");
    ck_assert_ptr_nonnull(out);
    start_server(not_found_once);
    run_http_into(out, (const char *[]){SHORT_RUN, NULL});
    stop_server();
    ssize_t got = read(terminal, ran.output, sizeof(ran.output) - 1);
    ran.output[got > 0 ? got : 0] = '\0';
    fclose(out);
    close(terminal);
}

START_TEST(a_terminal_has_colours_unless_somebody_minds)
{
    static const struct {
        const char *no_color;
        const char *terminal;
        bool is_colored;
    } cases[] = {
        {"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}, {"", NULL, false}};

    setenv("NO_COLOR", cases[_i].no_color, 1);
    if (cases[_i].terminal != NULL)
        setenv("TERM", cases[_i].terminal, 1);
    else
        unsetenv("TERM");
    run_on_terminal();
    check_has(ran.output, "bad status 1");
    ck_assert_int_eq(strchr(ran.output, '\033') != NULL, cases[_i].is_colored);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-app");
    TCase *good = tcase_create("good");
    TCase *servers = tcase_create("servers");
    TCase *interrupted = tcase_create("interrupted");
    TCase *calls = tcase_create("calls");
    TCase *parts = tcase_create("parts");
    TCase *all[] = {good, servers, interrupted, calls, parts};

    tcase_add_test(good, every_socket_has_its_queries);
    tcase_add_test(good, more_sockets_than_a_batch_have_theirs_too);
    tcase_add_test(good, the_report_ends_with_the_lines_of_2010);
    tcase_add_test(good, the_first_line_says_the_product);
    tcase_add_test(good, a_server_may_close_after_the_last_reply);
    tcase_add_test(good, a_reply_without_a_length_ends_with_its_connection);
    tcase_add_test(good, what_comes_when_all_is_answered_is_nobodys);
    tcase_add_test(good, a_server_may_close_when_all_is_answered);
    tcase_add_loop_test(servers, a_reply_may_be_of_any_kind, 0, sizeof(kinds) / sizeof(kinds[0]));
    tcase_add_test(servers, nobody_listens);
    tcase_add_test(servers, a_bad_status_is_counted_and_the_next_query_still_comes);
    tcase_add_test(servers, a_reset_takes_its_query_and_the_socket_is_opened_again);
    tcase_add_test(servers, half_a_reply_is_none);
    tcase_add_test(servers, after_a_reply_without_a_length_comes_another_connection);
    tcase_add_test(servers, after_connection_close_comes_another_connection);
    tcase_add_test(servers, rubbish_is_a_bad_reply);
    tcase_add_test(servers, more_than_was_asked_for_is_a_bad_reply);
    tcase_add_test(servers, a_server_that_speaks_first_gives_a_bad_reply);
    tcase_add_test(servers, a_silent_server_times_out);
    tcase_add_test(servers, connections_that_nobody_accepts_time_out);
    tcase_add_test(interrupted, ctrl_c_prints_what_was_done_so_far);
    tcase_add_test(interrupted, ctrl_c_ends_the_ramp_too);
    tcase_add_test(calls, without_descriptors_the_run_goes_on_with_those_there_are);
    tcase_add_loop_test(calls, a_failing_call_is_an_error_of_its_socket, 0,
                        sizeof(faults) / sizeof(faults[0]));
    tcase_add_test(calls, a_query_may_need_many_writes);
    tcase_add_test(calls, without_a_loop_there_is_no_run);
    tcase_add_test(calls, a_report_that_cannot_be_written_is_an_error);
    tcase_add_test(parts, json_on_stdout_is_alone_there);
    tcase_add_test(parts, results_go_to_files_and_are_compared);
    tcase_add_test(parts, the_comparison_is_no_data);
    tcase_add_test(parts, a_baseline_that_is_none_is_wrong_usage);
    tcase_add_test(parts, an_output_that_cannot_be_written_is_an_error);
    tcase_add_test(parts, a_threshold_that_is_missed_has_a_status_of_its_own);
    tcase_add_test(parts, errors_may_be_allowed);
    tcase_add_test(parts, a_script_has_its_last_word);
    tcase_add_test(parts, a_script_that_fails_at_the_end_is_an_error);
    tcase_add_test(parts, two_workers_share_the_load);
    tcase_add_test(parts, a_rate_is_kept);
    tcase_add_test(parts, what_is_wrong_on_the_command_line_is_said);
    tcase_add_test(parts, the_selftest_has_a_line_a_check);
    tcase_add_test(parts, the_log_has_the_level_that_is_asked_for);
    tcase_add_loop_test(parts, a_terminal_has_colours_unless_somebody_minds, 0, 4);
    tcase_add_checked_fixture(parts, make_directory, remove_directory);
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        tcase_add_checked_fixture(all[i], set_up, tear_down);
        suite_add_tcase(suite, all[i]);
    }
    return sxe_test_main(suite);
}
