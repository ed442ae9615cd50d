/* SPDX-License-Identifier: MIT
 *
 * sxe-http as a whole, with a server in another process that behaves as each case says.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "http-app-server.h"
#include "test-main.h"
#include "worker.h"

/* ---- Runs without errors ---- */

START_TEST(every_socket_has_its_queries)
{
    start_server(hello);
    RUN(20, 5);
    CHECK(0, "opened    20/20 connections in ",
          "requests  100  ok 100  errors 0  in flight 0  in ");
    ck_assert_ptr_null(strstr(ran.errors, "sxe-http: "));
}
END_TEST

START_TEST(more_sockets_than_a_batch_have_theirs_too)
{
    start_server(hello);
    RUN(200, 2);
    CHECK(0, "opened    200/200 connections", "requests  400  ok 400  errors 0  in flight 0");
}
END_TEST

/* The output with "#" for each digit, and one "#" for a number before a unit. */
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
    check_has(ran.output, "closed loop: 2 connections * 3 requests each = 6 requests");
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
    CHECK(0, "3/3 connections", "requests  3  ok 3  errors 0  in flight 0");
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
    CHECK(0, "3/3 connections", "requests  3  ok 3  errors 0  in flight 0");
}
END_TEST

/* Wait until the peer's kernel has acknowledged all bytes. */
static void
await_delivery(int fd)
{
    int unsent = 1;

    while (ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
        sched_yield();
}

static int first;  /* the connection whose request came first */
static int second; /* the other connection, whose reply waits */

/* Answer the second connection only after the first one has had both replies. So when the second
 * one sends its next request, the client has read those replies. */
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
    CHECK(0, "2/2 connections", "requests  4  ok 4  errors 0  in flight 0");
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
    CHECK(0, "2/2 connections", "requests  4  ok 4  errors 0  in flight 0");
}
END_TEST

/* ---- Kinds of replies, two of each to two sockets ---- */

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
    {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", 1, "ok 0  errors 4  in",
     "bad reply 4 (first: an LF does not follow a CR"},
    {CHUNKED "5\r\nhello!\r\n0\r\n\r\n", 1, "ok 0  errors 4  in", "bad reply 4"},
    {CHUNKED "0\r\n\r\n" REPLY, 1, "ok 0  errors 4  in", "bad reply 4"},
};

static const char *kind; /* the kind of the server's replies */

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
    CHECK(kinds[_i].status, "2/2 connections", kinds[_i].queries, kinds[_i].errors);
}
END_TEST

/* ---- Servers that fail ---- */

START_TEST(nobody_listens)
{
    close(listen_anywhere(1));
    RUN(20, 2);
    CHECK(1, "opened    0/20 connections", "  refused 20", "requests  40  ok 0  errors 0",
          "skipped   40 of 40  connection not opened 40");
}
END_TEST

START_TEST(a_bad_status_is_counted_and_the_next_query_still_comes)
{
    start_server(not_found_once);
    RUN(3, 3);
    CHECK(1, "3/3 connections", "errors    3 of 9  bad status 3 (first: 404)",
          "requests  9  ok 6  errors 3");
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
    CHECK(1, "2/2 connections", "errors    4 of 8  reset 4", "requests  8  ok 4  errors 4");
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
    CHECK(1, "2/2 connections", "short body 2", "requests  2  ok 0  errors 2");
}
END_TEST

START_TEST(after_a_reply_without_a_length_comes_another_connection)
{
    start_server(until_close);
    RUN(2, 3);
    CHECK(0, "2/2 connections", "requests  6  ok 6  errors 0");
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
    CHECK(0, "2/2 connections", "requests  6  ok 6  errors 0");
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
    CHECK(1, "2/2 connections", "bad reply 2", "requests  6  ok 4  errors 2");
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
    CHECK(1, "2/2 connections", "bad reply 6", "requests  6  ok 0  errors 6");
}
END_TEST

START_TEST(a_server_that_speaks_first_gives_a_bad_reply)
{
    start_greeting_server("220 smtp.example.com\r\n", hello);
    RUN(2, 3);
    CHECK(1, "2/2 connections", "bad reply 6", "requests  6  ok 0  errors 6");
}
END_TEST

START_TEST(a_silent_server_times_out)
{
    int listener = listen_anywhere(SOCKETS_MAX);

    RUN_HTTP("-p", port, "-c", "20", "-n", "1", "--timeout", "1");
    close(listener);
    CHECK(1, "20/20 connections", "timed out 20", "requests  20  ok 0  errors 20");
}
END_TEST

/* The backlog is full, so the kernel ignores further attempts to connect. */
START_TEST(connections_that_nobody_accepts_time_out)
{
    int listener = listen_anywhere(0);

    RUN_HTTP("-p", port, "-c", "20", "-n", "2", "--timeout", "0.2");
    close(listener);
    CHECK(1, "/20 connections in ", "timed out ", "requests  40  ok 0 ", "connection not opened ");
}
END_TEST

/* ---- Interrupts ---- */

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
    CHECK(130, "1/1 connections", "\ninterrupted: this is what was done so far\n", "ok 2  errors 1",
          "unanswered 1", "\ntime for all            : ");
}
END_TEST

/* One connection is accepted, the others wait in the backlog. */
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
    CHECK(130, "/40 connections", "  not tried ", "ok 0  errors 0");
}
END_TEST

/* ---- System calls that fail in a worker ---- */

START_TEST(without_descriptors_the_run_goes_on_with_those_there_are)
{
    start_server(hello);
    fake_os_fail(FAKE_SOCKET, 6, 0, EMFILE);
    RUN(20, 2);
    CHECK(1, "opened    5/20 connections in", "  no descriptor ", "ok 10  errors 0",
          "connection not opened 30");
    check_has(ran.errors, "going on with 5 of 20 connections");
    check_has(ran.errors, "ulimit -Hn");
}
END_TEST

/* nth counts the calls of one worker: its first send(2) says that it is ready, its second one that
 * it runs. Its queries begin with the third. */
static const struct {
    enum fake_call call;
    unsigned nth;
    unsigned number;
    int error;
    const char *what;
} faults[] = {
    {FAKE_SOCKET, 1, 0, ENFILE, "  no descriptor "},
    {FAKE_CONNECT, 1, 0, EADDRNOTAVAIL, "  no port "},
    {FAKE_CONNECT, 1, 0, ECONNREFUSED, "  refused 3"},
    {FAKE_CONNECT, 1, 0, ENETUNREACH, "other 3  (first: Network is unreachable)"},
    {FAKE_SETSOCKOPT, 1, 0, ENOMEM, "other 3  (first: Cannot allocate memory)"},
    {FAKE_SEND, 3, 6, EPIPE, "errors    6 of 6  reset 6"},
    {FAKE_SEND, 3, 6, ECONNRESET, "errors    6 of 6  reset 6"},
    {FAKE_SEND, 3, 6, EHOSTUNREACH, "other 6 (first: No route to host)"},
};

START_TEST(a_failing_call_is_an_error_of_its_socket)
{
    start_server(hello);
    fake_os_fail(faults[_i].call, faults[_i].nth, faults[_i].number, faults[_i].error);
    RUN(3, 2);
    CHECK(1, faults[_i].what, "ok 0 ");
}
END_TEST

/* A signal was lost. It may have reported the end of a worker, so the parent must look. */
START_TEST(workers_that_ended_are_seen_without_their_signals)
{
    start_server(hello);
    fake_os_fail(FAKE_READ, 1, 0, EIO);
    RUN(3, 2);
    CHECK(0, "3/3 connections", "requests  6  ok 6  errors 0");
}
END_TEST

START_TEST(a_query_may_need_many_writes)
{
    start_server(hello);
    fake_os_limit(FAKE_SEND, sizeof(struct load_message));
    RUN(3, 2);
    CHECK(0, "3/3 connections", "requests  6  ok 6  errors 0");
}
END_TEST

START_TEST(without_a_loop_there_is_no_run)
{
    fake_os_fail(FAKE_EPOLL_CREATE1, 1, 0, EMFILE);
    RUN_HTTP("-c", "10");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors,
              "sxe-http: cannot start: Too many open files; allow more open files (ulimit -n)\n");
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
    tcase_add_test(calls, workers_that_ended_are_seen_without_their_signals);
    tcase_add_test(calls, a_query_may_need_many_writes);
    tcase_add_test(calls, without_a_loop_there_is_no_run);
    tcase_add_test(calls, a_report_that_cannot_be_written_is_an_error);
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        tcase_add_checked_fixture(all[i], note_what_is_open, check_that_nothing_is_open);
        suite_add_tcase(suite, all[i]);
    }
    return sxe_test_main(suite);
}
