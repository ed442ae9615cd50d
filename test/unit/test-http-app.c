/* SPDX-License-Identifier: MIT
 *
 * sxe-http as a whole against a server in another process, which does as each test says.
 */
#include <errno.h>
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

#include "fake-time.h"
#include "run-http.h"
#include "sxe.h"
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
    if (write(fd, text, strlen(text)) < 0)
        _exit(1);
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

/* Accepts all sockets, says the greeting on each, then answers until all are closed. */
static void
serve(int listener, unsigned sockets, const char *greeting, answer_fn answer)
{
    struct pollfd fds[SOCKETS_MAX];
    struct requests requests[SOCKETS_MAX] = {0};

    for (unsigned i = 0; i < sockets; i++) {
        fds[i] = (struct pollfd){accept(listener, NULL, NULL), POLLIN, 0};
        if (fds[i].fd < 0)
            _exit(1);
        say(fds[i].fd, greeting);
    }
    for (unsigned open = sockets; open > 0;) {
        poll(fds, sockets, -1);
        for (unsigned i = 0; i < sockets; i++) {
            if (fds[i].fd < 0 || fds[i].revents == 0)
                continue;
            if (receive(fds[i].fd, &requests[i], answer))
                continue;
            close(fds[i].fd);
            fds[i].fd = -1;
            open--;
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
start_greeting_server(unsigned sockets, const char *greeting, answer_fn answer)
{
    int listener = listen_anywhere(SOCKETS_MAX);

    if (fork_server()) {
        serve(listener, sockets, greeting, answer);
        _exit(0);
    }
    close(listener);
}

static void
start_server(unsigned sockets, answer_fn answer)
{
    start_greeting_server(sockets, "", answer);
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

#define RUN(sockets, queries) RUN_HTTP("-p", port, "-c", #sockets, "-n", #queries)

/* The line of the report that begins so, up to where its times begin. */
static const char *
line(const char *name)
{
    static char text[1024];
    const char *at = strstr(ran.output, name);

    ck_assert_msg(at != NULL, "no %s in %s", name, ran.output);
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\n"), at);
    return text;
}

static void
check_counts(int status, const char *sockets, const char *queries)
{
    check_has(line("sockets   "), sockets);
    check_has(line("queries   "), queries);
    ck_assert_msg(ran.status == status, "status %d of %s%s", ran.status, ran.output, ran.errors);
    stop_server();
}

/* Descriptors are given back too; the default loop's are its own. */
static unsigned open_before;

static void
set_up(void)
{
    open_before = fake_os_open_fds();
}

static void
tear_down(void)
{
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
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
    start_server(20, hello);
    RUN(20, 5);
    check_counts(0, "sockets   20/20 open in ", "queries   100  ok 100  errors 0  in ");
    ck_assert_str_eq(ran.errors, "");
}
END_TEST

START_TEST(more_sockets_than_a_batch_have_theirs_too)
{
    start_server(SOCKETS_MAX, hello);
    RUN(200, 2);
    check_counts(0, "sockets   200/200 open", "queries   400  ok 400  errors 0  in");
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
    start_server(2, hello);
    RUN(2, 3);
    stop_server();
    ck_assert_str_eq(
        shape(ran.output),
        "# sockets * # queries/socket = # queries, GET http://#.#.#.#:#/ (HTTP/#.#, closed loop)\n"
        "sockets   #/# open in #.# s  #/s  connect p# #.# p# #.# max #.# ms\n"
        "queries   #  ok #  errors #  in #.# s  #/s\n"
        "service   p# #.# p# #.# max #.# ms\n"
        "client    cpu #.# s user #.# s system\n"
        "time for all connections: #.# seconds or #.# per second\n"
        "time for all queries    : #.# seconds or #.# per second\n"
        "time for all            : #.# seconds or #.# per second\n");
}
END_TEST

START_TEST(a_query_costs_one_read_and_one_write_and_nothing_else)
{
    static const enum fake_call none[] = {FAKE_RECV, FAKE_WRITEV, FAKE_SETSOCKOPT, FAKE_MALLOC,
                                          FAKE_REALLOC};
    unsigned few[FAKE_CALLS];

    start_server(10, hello);
    RUN(10, 100);
    stop_server();
    memcpy(few, ran.calls, sizeof(few));
    start_server(10, hello);
    RUN(10, 200);
    stop_server();
    ck_assert_uint_eq(ran.calls[FAKE_READ] - few[FAKE_READ], 1000);
    ck_assert_uint_eq(ran.calls[FAKE_WRITE] - few[FAKE_WRITE], 1000);
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_assert_msg(ran.calls[none[i]] <= few[none[i]], "%s", fake_os_name(none[i]));
    /* A loop has some each time it becomes busy, or calm, and when that is nobody can say. */
    ck_assert_uint_lt(ran.calls[FAKE_EPOLL_CTL], few[FAKE_EPOLL_CTL] + 20);
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
    start_server(3, close_after_reply);
    RUN(3, 1);
    check_counts(0, "3/3 open", "queries   3  ok 3  errors 0  in");
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
    start_server(3, until_close);
    RUN(3, 1);
    check_counts(0, "3/3 open", "queries   3  ok 3  errors 0  in");
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
    start_server(2, rubbish_when_done);
    RUN(2, 2);
    check_counts(0, "2/2 open", "queries   4  ok 4  errors 0  in");
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
    start_server(2, close_when_done);
    RUN(2, 2);
    check_counts(0, "2/2 open", "queries   4  ok 4  errors 0  in");
}
END_TEST

/* ---- Kinds of replies, two to each of two sockets ---- */

static const struct {
    const char *reply;
    int status;
    const char *queries;
} kinds[] = {
    {CHUNKED "5\r\nhello\r\n0\r\n\r\n", 0, "ok 4  errors 0  in"},
    {CHUNKED "0\r\nDigest: x\r\n\r\n", 0, "ok 4  errors 0  in"},
    {"HTTP/1.1 103 Early Hints\r\n\r\n" REPLY, 0, "ok 4  errors 0  in"},
    {"HTTP/1.1 204 No Content\r\n\r\n", 0, "ok 4  errors 0  in"},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 1,
     "ok 0  errors 4  bad status 4 (first: 304)  in"},
    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 1,
     "ok 0  errors 4  bad reply 4  in"},
    {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", 1, "ok 0  errors 4  bad reply 4  in"},
    {CHUNKED "5\r\nhello!\r\n0\r\n\r\n", 1, "ok 0  errors 4  bad reply 4  in"},
    {CHUNKED "0\r\n\r\n" REPLY, 1, "ok 0  errors 4  bad reply 4  in"},
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
    start_server(2, of_that_kind);
    RUN(2, 2);
    check_counts(kinds[_i].status, "2/2 open", kinds[_i].queries);
}
END_TEST

/* ---- Servers that fail ---- */

START_TEST(nobody_listens)
{
    close(listen_anywhere(1));
    RUN(20, 2);
    check_counts(1, "  0/s  refused 20", "queries   40  ok 0  errors 40  not opened 40  in");
    ck_assert_ptr_null(strstr(ran.output, "service"));
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
    start_server(3, not_found_once);
    RUN(3, 3);
    check_counts(1, "3/3 open", "queries   9  ok 6  errors 3  bad status 3 (first: 404)  in");
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

START_TEST(a_reset_takes_the_queries_that_are_left_with_it)
{
    start_server(2, reset_second);
    RUN(2, 4);
    check_counts(1, "2/2 open", "queries   8  ok 2  errors 6  reset 6  in");
}
END_TEST

START_TEST(a_server_that_closes_early_is_counted_as_that)
{
    start_server(2, close_after_reply);
    RUN(2, 4);
    check_counts(1, "2/2 open", "queries   8  ok 2  errors 6");
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
    start_server(2, close_in_body);
    RUN(2, 1);
    check_counts(1, "2/2 open", "queries   2  ok 0  errors 2  closed early 2  in");
}
END_TEST

START_TEST(after_a_reply_without_a_length_no_query_can_follow)
{
    start_server(2, until_close);
    RUN(2, 3);
    check_counts(1, "2/2 open", "queries   6  ok 2  errors 4  closed early 4  in");
}
END_TEST

static bool
connection_close(int fd, unsigned nth)
{
    (void)nth;
    say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    return true;
}

START_TEST(after_connection_close_no_query_is_sent)
{
    start_server(2, connection_close);
    RUN(2, 3);
    check_counts(1, "2/2 open", "queries   6  ok 2  errors 4  closed early 4  in");
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
    start_server(2, rubbish_second);
    RUN(2, 3);
    check_counts(1, "2/2 open", "queries   6  ok 2  errors 4  bad reply 4  in");
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
    start_server(2, two_replies);
    RUN(2, 3);
    check_counts(1, "2/2 open", "queries   6  ok 0  errors 6  bad reply 6  in");
}
END_TEST

START_TEST(a_server_that_speaks_first_gives_a_bad_reply)
{
    start_greeting_server(2, "220 smtp.example.com\r\n", hello);
    RUN(2, 3);
    check_counts(1, "2/2 open", "queries   6  ok 0  errors 6  bad reply 6  in");
}
END_TEST

/* Time is virtual where nobody would ever answer. */
START_TEST(a_silent_server_times_out)
{
    int listener = listen_anywhere(SOCKETS_MAX);

    fake_time_start(1, 1);
    RUN(20, 2);
    fake_time_stop();
    close(listener);
    check_counts(1, "20/20 open", "queries   40  ok 0  errors 40  timed out 40  in 10.");
}
END_TEST

/* A full backlog: the kernel ignores who wants to connect. */
START_TEST(connections_that_nobody_accepts_time_out)
{
    int listener = listen_anywhere(0);

    fake_time_start(1, 1);
    RUN_HTTP("-p", port, "-c", "40", "--timeout", "5");
    fake_time_stop();
    close(listener);
    check_has(line("sockets   "), "/40 open in 5.");
    check_has(line("sockets   "), "timed out 3");
    check_has(line("queries   "), "queries   40  ok 0  errors 40  timed out ");
    check_has(line("queries   "), "not opened 3");
    ck_assert_int_eq(ran.status, 1);
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
    start_server(1, interrupt_at_third);
    RUN(1, 10);
    check_has(ran.output, "\ninterrupted: this is what was done so far\n");
    check_counts(130, "1/1 open", "queries   10  ok 2  errors 0  in flight 1  not sent 7  in");
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
    check_counts(130, "/40 open", "queries   80  ok 0  errors 0  not sent 80  in ");
    check_has(line("sockets   "), "  not tried ");
}
END_TEST

/* ---- The system fails us ---- */

START_TEST(without_descriptors_the_run_goes_on_with_those_there_are)
{
    start_server(5, hello);
    fake_os_fail(FAKE_SOCKET, 6, 0, EMFILE);
    RUN(20, 2);
    check_counts(1, "sockets   5/20 open in", "queries   40  ok 10  errors 30  not opened 30  in");
    check_has(line("sockets   "), "  no descriptor 15");
    check_has(ran.errors, "going on with 5 of 20 sockets");
    check_has(ran.errors, "ulimit -Hn");
}
END_TEST

static const struct {
    enum fake_call call;
    int error;
    const char *sockets;
    const char *queries;
} faults[] = {
    {FAKE_SOCKET, ENFILE, "  0/s  no descriptor 3", "not opened 6"},
    {FAKE_CONNECT, EADDRNOTAVAIL, "  0/s  no port 3", "not opened 6"},
    {FAKE_CONNECT, ECONNREFUSED, "  0/s  refused 3", "not opened 6"},
    {FAKE_CONNECT, ENETUNREACH, "other 3 (first: Network is unreachable)", "not opened 6"},
    {FAKE_SETSOCKOPT, ENOMEM, "other 3 (first: Cannot allocate memory)", "not opened 6"},
    {FAKE_GETSOCKOPT, EIO, "other 3 (first: Input/output error)", "not opened 6"},
    {FAKE_WRITE, EPIPE, "3/3 open", "errors 6  reset 6"},
    {FAKE_WRITE, ECONNRESET, "3/3 open", "errors 6  reset 6"},
    {FAKE_WRITE, EHOSTUNREACH, "3/3 open", "errors 6  other 6 (first: No route to host)"},
    {FAKE_READ, ECONNRESET, "3/3 open", "errors 6  reset 6"},
    {FAKE_READ, ETIMEDOUT, "3/3 open", "errors 6  timed out 6"},
};

START_TEST(a_failing_call_is_an_error_of_its_socket)
{
    start_server(3, hello);
    fake_os_fail(faults[_i].call, 1, 0, faults[_i].error);
    RUN(3, 2);
    check_counts(1, faults[_i].sockets, faults[_i].queries);
}
END_TEST

START_TEST(a_query_may_need_many_writes)
{
    start_server(3, hello);
    fake_os_limit(FAKE_WRITE, 7);
    RUN(3, 2);
    check_counts(0, "3/3 open", "queries   6  ok 6  errors 0");
    ck_assert_uint_gt(ran.calls[FAKE_WRITE] + ran.calls[FAKE_WRITEV], 6 * 10);
}
END_TEST

START_TEST(without_memory_there_is_no_run)
{
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    RUN_HTTP("-c", "10");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-http: cannot start: Cannot allocate memory\n");
}
END_TEST

START_TEST(without_a_loop_there_is_no_run)
{
    ev_default_loop(EVFLAG_AUTO);
    fake_os_fail(FAKE_EPOLL_CREATE1, 1, 1, EMFILE);
    RUN_HTTP("-c", "10");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-http: cannot start: Too many open files\n");
}
END_TEST

START_TEST(a_report_that_cannot_be_written_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");

    start_server(1, hello);
    run_http_into(full, (const char *[]){"sxe-http", "-p", port, "-c", "1", NULL});
    fclose(full);
    stop_server();
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-http: the report could not be written\n");
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
    TCase *all[] = {good, servers, interrupted, calls};

    tcase_add_test(good, every_socket_has_its_queries);
    tcase_add_test(good, more_sockets_than_a_batch_have_theirs_too);
    tcase_add_test(good, the_report_ends_with_the_lines_of_2010);
    tcase_add_test(good, a_query_costs_one_read_and_one_write_and_nothing_else);
    tcase_add_test(good, a_server_may_close_after_the_last_reply);
    tcase_add_test(good, a_reply_without_a_length_ends_with_its_connection);
    tcase_add_test(good, what_comes_when_all_is_answered_is_nobodys);
    tcase_add_test(good, a_server_may_close_when_all_is_answered);
    tcase_add_loop_test(servers, a_reply_may_be_of_any_kind, 0, sizeof(kinds) / sizeof(kinds[0]));
    tcase_add_test(servers, nobody_listens);
    tcase_add_test(servers, a_bad_status_is_counted_and_the_next_query_still_comes);
    tcase_add_test(servers, a_reset_takes_the_queries_that_are_left_with_it);
    tcase_add_test(servers, a_server_that_closes_early_is_counted_as_that);
    tcase_add_test(servers, half_a_reply_is_none);
    tcase_add_test(servers, after_a_reply_without_a_length_no_query_can_follow);
    tcase_add_test(servers, after_connection_close_no_query_is_sent);
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
    tcase_add_test(calls, without_memory_there_is_no_run);
    tcase_add_test(calls, without_a_loop_there_is_no_run);
    tcase_add_test(calls, a_report_that_cannot_be_written_is_an_error);
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        tcase_add_checked_fixture(all[i], set_up, tear_down);
        suite_add_tcase(suite, all[i]);
    }
    return sxe_test_main(suite);
}
