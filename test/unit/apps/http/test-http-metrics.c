/* SPDX-License-Identifier: MIT
 *
 * The metrics of a run: their text, their address, and a server that clients cannot keep busy.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "leaks.h"
#include "metrics.h"
#include "test-main.h"

#define SECOND UINT64_C(1000000000)

static struct load_plan plan;
static struct load_metrics_figures figures;
static char text[LOAD_METRICS_TEXT_MAX];

static void
set_up(void)
{
    plan = (struct load_plan){.what = "GET http://127.0.0.1:8000/", .workers = 2};
    memset(&figures, 0, sizeof(figures));
    note_what_is_open();
}

static void
tear_down(void)
{
    fake_os_reset();
    check_that_nothing_is_open();
}

/* ---- Counts ---- */

START_TEST(each_time_is_counted_below_exactly_the_bounds_that_it_does_not_pass)
{
    static struct load_result result;
    struct load_tally tally = {0};
    uint64_t expected[LOAD_TALLY_BOUNDS + 1] = {0};
    uint64_t state = 1, sum_ns = 0, count = 0;

    memset(&result, 0, sizeof(result));
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t ns;

        state = state * UINT64_C(6364136223846793005) + 1;
        ns = i < 3 * LOAD_TALLY_BOUNDS ? load_tally_bound_us(i / 3) * 1000 + i % 3 - 1
                                       : state >> (28 + state % 30);
        ns = ns < LOAD_HISTOGRAM_MAX_NS ? ns : LOAD_HISTOGRAM_MAX_NS;
        load_histogram_record(&result.response, ns);
        sum_ns += ns;
        for (unsigned k = 0; k < LOAD_TALLY_BOUNDS; k++)
            expected[k] += ns <= load_tally_bound_us(k) * 1000;
    }
    load_tally_take(&tally, &result, false);
    for (unsigned k = 0; k < LOAD_TALLY_BOUNDS; k++) {
        count += tally.response.buckets[k];
        ck_assert_uint_eq(count, expected[k]);
    }
    ck_assert_uint_gt(tally.response.buckets[LOAD_TALLY_BOUNDS], 0);
    ck_assert_uint_eq(count + tally.response.buckets[LOAD_TALLY_BOUNDS], 20000);
    ck_assert_uint_eq(tally.response.sum_ns, sum_ns);
    ck_assert_uint_eq(tally.service.sum_ns, 0);
    load_tally_take(&tally, &result, true);
    ck_assert_uint_eq(tally.service.sum_ns, sum_ns);
}
END_TEST

START_TEST(the_bounds_are_those_of_the_page)
{
    ck_assert_uint_eq(load_tally_bound_us(0), 63);
    ck_assert_uint_eq(load_tally_bound_us(1), 95);
    ck_assert_uint_eq(load_tally_bound_us(2), 127);
    ck_assert_uint_eq(load_tally_bound_us(LOAD_TALLY_BOUNDS - 1), 67108863);
}
END_TEST

START_TEST(workers_and_trials_are_added_up)
{
    static struct load_result one, two;
    struct load_tally tally = {0}, over = {0};

    /* The results are too large for the stack. */
    one.offered = 10;
    one.sent = 8;
    one.opened = 4;
    one.started_ns = 7;
    one.classes[load_status_class(204)] = 6;
    one.skipped[LOAD_SKIP_SHED] = one.skipped[LOAD_SKIP_UNSENT] = 1;
    one.ends[LOAD_END_OK] = 5;
    one.ends[LOAD_END_RESET] = 2;
    one.in_flight = 1;
    one.in_state[LOAD_SOCKET_BUSY] = 1;
    one.in_state[LOAD_SOCKET_DONE] = 2;
    one.in_state[LOAD_SOCKET_LOST] = 1;
    two.offered = two.waiting = 1;
    two.started_ns = 5;
    two.reopened = 3;
    two.unopened[LOAD_UNOPENED_REFUSED] = 9;
    load_tally_take(&tally, &one, true);
    load_tally_take(&tally, &two, true);
    ck_assert_uint_eq(tally.offered, 11);
    ck_assert_uint_eq(tally.connections, 3);
    ck_assert_uint_eq(tally.in_flight, 1);
    ck_assert_uint_eq(tally.waiting, 1);
    ck_assert_uint_eq(tally.started_ns, 5);
    ck_assert_uint_eq(load_tally_errors(&tally), 2);
    ck_assert_uint_eq(load_tally_skipped(&tally), 2);
    load_tally_add(&over, &tally);
    load_tally_add(&over, &tally);
    ck_assert_uint_eq(over.offered, 22);
    ck_assert_uint_eq(over.unopened[LOAD_UNOPENED_REFUSED], 18);
    ck_assert_uint_eq(over.reopened, 6);
    ck_assert_uint_eq(over.classes[1], 12);
    ck_assert_uint_eq(over.in_flight, 0);
}
END_TEST

/* ---- Text ---- */

static void
make_text(void)
{
    size_t length = load_metrics_text(text, &plan, &figures);

    ck_assert_uint_eq(length, strlen(text));
    ck_assert_str_eq(text + length - 6, "# EOF\n");
}

START_TEST(the_text_has_every_count)
{
    figures.sum.offered = 12;
    figures.sum.skipped[LOAD_SKIP_NO_SOCKET] = 3;
    figures.sum.ends[LOAD_END_TIMED_OUT] = 4;
    figures.sum.classes[load_status_class(404)] = 21;
    figures.sum.classes[load_status_class(999)] = 22;
    figures.sum.bytes_sent = 5;
    figures.sum.unopened[LOAD_UNOPENED_NO_PORT] = 6;
    figures.sum.connections = 7;
    figures.sum.response.buckets[0] = 8;
    figures.sum.response.buckets[2] = 1;
    figures.sum.response.buckets[LOAD_TALLY_BOUNDS] = 2;
    figures.sum.response.sum_ns = 1500000000;
    figures.offered_rate = 4.5;
    figures.trial = 2;
    make_text();
    check_has(text, "# TYPE sxe_http_requests_offered counter\n"
                    "# HELP sxe_http_requests_offered Requests that were due.\n"
                    "sxe_http_requests_offered_total 12\n");
    check_has(text, "sxe_http_requests_skipped_total{reason=\"no_socket\"} 3\n");
    check_has(text, "sxe_http_requests_ended_total{account=\"timed_out\"} 4\n");
    check_has(text, "sxe_http_replies_total{class=\"4xx\"} 21\n"
                    "sxe_http_replies_total{class=\"5xx\"} 0\n"
                    "sxe_http_replies_total{class=\"other\"} 22\n");
    check_has(text, "# UNIT sxe_http_sent_bytes bytes\n");
    check_has(text, "sxe_http_sent_bytes_total 5\n");
    check_has(text, "sxe_http_connections_unopened_total{reason=\"no_port\"} 6\n");
    check_has(text, "# TYPE sxe_http_connections_open gauge\n");
    check_has(text, "sxe_http_connections_open 7\n");
    check_has(text, "sxe_http_offered_rate 4.5\n");
    check_has(text, "sxe_http_workers 2\n");
    check_has(text, "sxe_http_trial 2\n");
    check_has(text, "sxe_http_response_seconds_bucket{le=\"0.000063\"} 8\n"
                    "sxe_http_response_seconds_bucket{le=\"0.000095\"} 8\n"
                    "sxe_http_response_seconds_bucket{le=\"0.000127\"} 9\n");
    check_has(text, "sxe_http_response_seconds_bucket{le=\"67.108863\"} 9\n"
                    "sxe_http_response_seconds_bucket{le=\"+Inf\"} 11\n"
                    "sxe_http_response_seconds_count 11\n"
                    "sxe_http_response_seconds_sum 1.500000000\n");
}
END_TEST

START_TEST(a_label_is_escaped)
{
    snprintf(plan.what, sizeof(plan.what), "a\"b\\c\nd\xff\xc3\xa9");
    make_text();
    check_has(text, "model=\"closed\",what=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa9\"} 1\n");
}
END_TEST

START_TEST(the_longest_text_fits)
{
    memset(&figures, 0xff, sizeof(figures));
    memset(plan.what, '\xff', sizeof(plan.what) - 1);
    make_text();
}
END_TEST

/* ---- Address ---- */

static const struct {
    const char *text;
    int family; /* 0: the address is refused */
} addresses[] = {
    {"9464", AF_INET},
    {"0", AF_INET},
    {"0.0.0.0:1", AF_INET},
    {"[::1]:9464", AF_INET6},
    {"/tmp/a", AF_UNIX},
    {"./a", AF_UNIX},
    {"@a", AF_UNIX},
    {"unix:a", AF_UNIX},
    {"", 0},
    {":", 0},
    {":1", 0},
    {"65536", 0},
    {"99999999999999999999", 0},
    {"-1", 0},
    {"1 ", 0},
    {"localhost:1", 0},
    {"[::1]", 0},
    {"::1:1", 0},
    {"[1.2.3.4]:1", 0},
    {"[]:1", 0},
    {"1.2.3:1", 0},
    {"11111111111111111111111111111111111111111111111111:1", 0},
};

START_TEST(an_address_is_a_port_with_or_without_an_ip_or_a_path)
{
    struct sockaddr_storage address;
    socklen_t length = 0;
    const char *problem = load_metrics_parse(addresses[_i].text, &address, &length);

    if (addresses[_i].family == 0) {
        ck_assert_ptr_nonnull(problem);
        return;
    }
    ck_assert_ptr_null(problem);
    ck_assert_int_eq(address.ss_family, addresses[_i].family);
    ck_assert_uint_gt(length, 0);
}
END_TEST

START_TEST(a_port_alone_is_that_of_this_machine)
{
    struct sockaddr_in address;
    socklen_t length;

    ck_assert_ptr_null(load_metrics_parse("9464", (struct sockaddr_storage *)text, &length));
    memcpy(&address, text, sizeof(address));
    ck_assert_uint_eq(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
    ck_assert_uint_eq(ntohs(address.sin_port), 9464);
}
END_TEST

START_TEST(a_path_that_is_too_long_is_refused)
{
    char path[200] = "/";
    struct sockaddr_storage address;
    socklen_t length;

    memset(path + 1, 'a', 107);
    check_has(load_metrics_parse(path, &address, &length), "longer");
    path[107] = '\0';
    ck_assert_ptr_null(load_metrics_parse(path, &address, &length));
}
END_TEST

/* ---- Listening ---- */

static int
listen_at(const char *where)
{
    struct sockaddr_storage address;
    socklen_t length = 0;

    ck_assert_ptr_null(load_metrics_parse(where, &address, &length));
    return load_metrics_listen(&address, length);
}

static char path[64];

static void
make_path(void)
{
    snprintf(path, sizeof(path), "/tmp/sxe-metrics-%d", (int)getpid());
    unlink(path);
}

START_TEST(a_socket_file_of_nobody_is_replaced)
{
    int fd;

    make_path();
    close(listen_at(path));
    fd = listen_at(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(listen_at(path), -EADDRINUSE);
    close(fd);
    unlink(path);
}
END_TEST

START_TEST(what_is_no_socket_stays)
{
    make_path();
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ck_assert_int_eq(listen_at(path), -EADDRINUSE);
    ck_assert_int_eq(access(path, F_OK), 0);
    unlink(path);
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
} refusals[] = {
    {FAKE_SOCKET, 1, EMFILE}, {FAKE_SOCKET, 2, EMFILE}, {FAKE_BIND, 1, EACCES},
    {FAKE_UNLINK, 1, EACCES}, {FAKE_BIND, 2, EACCES},   {FAKE_LISTEN, 1, ENOBUFS},
};

START_TEST(what_fails_while_it_begins_to_listen_is_told)
{
    int error = refusals[_i].call == FAKE_UNLINK ? EADDRINUSE : refusals[_i].error;

    make_path();
    close(listen_at(path));
    fake_os_fail(refusals[_i].call, refusals[_i].nth, 1, refusals[_i].error);
    ck_assert_int_eq(listen_at(path), -error);
    unlink(path);
}
END_TEST

/* ---- Serving ---- */

static struct load_metrics *metrics;
static uint64_t now_ns;

static void
open_metrics(const char *where)
{
    metrics = calloc(1, sizeof(*metrics));
    ck_assert_ptr_nonnull(metrics);
    plan.metrics = where;
    now_ns = SECOND;
    ck_assert_int_eq(load_metrics_open(metrics, &plan), 0);
}

static void
close_metrics(void)
{
    load_metrics_close(metrics);
    free(metrics);
}

/* An abstract socket name that no other run of this test uses. */
static const char *
abstract(void)
{
    static char name[40];

    snprintf(name, sizeof(name), "@sxe-metrics-%d", (int)getpid());
    return name;
}

/* A new connection to the metrics. */
static int
connected(void)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(getsockname(metrics->fd, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, length), 0);
    return fd;
}

/* Serve until there is nothing left to do; returns whether there was anything. */
static bool
serve(void)
{
    struct pollfd fds[LOAD_METRICS_FDS];
    bool has_served = false;

    for (;;) {
        load_metrics_poll(metrics, fds);
        if (poll(fds, LOAD_METRICS_FDS, 0) <= 0)
            return has_served;
        load_metrics_serve(metrics, fds, now_ns, &figures);
        has_served = true;
    }
}

static void
say(int fd, const char *words)
{
    ck_assert_int_eq(send(fd, words, strlen(words), MSG_NOSIGNAL), (ssize_t)strlen(words));
}

static unsigned
in_use(void)
{
    unsigned number = 0;

    for (unsigned i = 0; i < LOAD_METRICS_CONNECTIONS; i++)
        number += metrics->connections[i].fd >= 0;
    return number;
}

static char reply[LOAD_METRICS_TEXT_MAX + 1024];

/* Receive all bytes that have come; returns whether the peer has closed. */
static bool
hear(int fd)
{
    size_t used = strlen(reply);
    ssize_t got;

    while ((got = recv(fd, reply + used, sizeof(reply) - 1 - used, 0)) > 0)
        used += (size_t)got;
    reply[used] = '\0';
    return got == 0;
}

static const char *
asked(const char *request)
{
    int fd = connected();

    reply[0] = '\0';
    say(fd, request);
    serve();
    ck_assert(hear(fd));
    close(fd);
    serve();
    ck_assert_uint_eq(in_use(), 0);
    return reply;
}

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

START_TEST(a_request_has_the_text)
{
    open_metrics(abstract());
    figures.sum.offered = 4711;
    check_has(asked(GET("/metrics")),
              "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
              "charset=utf-8\r\nContent-Length: ");
    check_has(reply, "\r\nConnection: close\r\n\r\n# TYPE sxe_http_run info\n");
    check_has(reply, "sxe_http_requests_offered_total 4711\n");
    ck_assert_uint_eq(strtoul(strstr(reply, "Length: ") + 8, NULL, 10),
                      strlen(strstr(reply, "\r\n\r\n") + 4));
    /* Within the same second the page is not made again. */
    figures.sum.offered = 4712;
    check_has(asked(GET("/metrics?a=b")), "sxe_http_requests_offered_total 4711\n");
    load_metrics_tick(metrics, now_ns);
    check_has(asked(GET("/metrics")), "sxe_http_requests_offered_total 4712\n");
    close_metrics();
}
END_TEST

static const struct {
    const char *request;
    const char *expected;
} replies[] = {
    {"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
    {"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405 "},
    {GET("/"), "HTTP/1.1 404 Not Found\r\n"},
    {GET("/metricsx"), "HTTP/1.1 404 Not Found\r\n"},
    {"GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
    {"\x16\x03\x01", "HTTP/1.1 400 Bad Request\r\n"},
    {GET("/metrics") GET("/metrics"), "HTTP/1.1 200 OK\r\n"},
    {"GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
};

START_TEST(each_request_has_one_reply)
{
    open_metrics(abstract());
    ck_assert_ptr_eq(strstr(asked(replies[_i].request), replies[_i].expected), reply);
    ck_assert_ptr_null(strstr(reply, "\nHTTP/1.1"));
    if (_i == 0)
        ck_assert_str_eq(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
    close_metrics();
}
END_TEST

START_TEST(a_head_that_is_too_large_is_refused)
{
    char request[LOAD_METRICS_HEAD_MAX + 1] = "GET /metrics HTTP/1.1\r\nA: ";

    open_metrics(abstract());
    memset(request + strlen(request), 'b', LOAD_METRICS_HEAD_MAX - strlen(request));
    check_has(asked(request), "HTTP/1.1 431 ");
    close_metrics();
}
END_TEST

START_TEST(a_request_may_come_byte_by_byte)
{
    static const char request[] = GET("/metrics");
    int fd;

    open_metrics(abstract());
    fd = connected();
    reply[0] = '\0';
    for (unsigned i = 0; request[i] != '\0'; i++) {
        ck_assert(!hear(fd));
        say(fd, (const char[]){request[i], '\0'});
        serve();
    }
    ck_assert(hear(fd));
    check_has(reply, "# EOF\n");
    close(fd);
    serve();
    close_metrics();
}
END_TEST

START_TEST(a_reply_may_go_in_pieces)
{
    int fd;

    open_metrics(abstract());
    fd = connected();
    reply[0] = '\0';
    say(fd, GET("/metrics"));
    fake_os_limit(FAKE_SEND, 1000);
    fake_os_fail(FAKE_SEND, 2, 1, EAGAIN);
    serve();
    fake_os_reset();
    ck_assert(hear(fd));
    check_has(reply, "# EOF\n");
    close(fd);
    serve();
    close_metrics();
}
END_TEST

/* Closing with unread bytes would reset the connection, and the peer might lose its reply. */
START_TEST(what_follows_the_reply_is_thrown_away)
{
    int fd;

    open_metrics(abstract());
    fd = connected();
    reply[0] = '\0';
    say(fd, GET("/metrics"));
    serve();
    say(fd, GET("/metrics"));
    serve();
    ck_assert_uint_eq(in_use(), 1);
    ck_assert(hear(fd));
    check_has(reply, "# EOF\n");
    close(fd);
    serve();
    ck_assert_uint_eq(in_use(), 0);
    close_metrics();
}
END_TEST

static const struct {
    enum fake_call call;
    int error;
    unsigned left; /* how many connections are left */
} troubles[] = {
    {FAKE_SEND, EPIPE, 0},
    {FAKE_RECV, ECONNRESET, 0},
    {FAKE_RECV, EINTR, 1},
    {FAKE_ACCEPT4, EMFILE, 1},
};

START_TEST(what_fails_costs_a_connection_at_most)
{
    int fd;

    open_metrics(abstract());
    fd = connected();
    say(fd, GET("/metrics"));
    fake_os_fail(troubles[_i].call, 1, 1, troubles[_i].error);
    serve();
    ck_assert_uint_eq(in_use(), troubles[_i].left);
    close(fd);
    serve();
    ck_assert_uint_eq(in_use(), 0);
    check_has(asked(GET("/metrics")), "# EOF\n");
    close_metrics();
}
END_TEST

START_TEST(one_that_goes_early_is_forgotten)
{
    int fd;

    open_metrics(abstract());
    fd = connected();
    say(fd, "GET /met");
    serve();
    ck_assert_uint_eq(in_use(), 1);
    close(fd);
    serve();
    ck_assert_uint_eq(in_use(), 0);
    close_metrics();
}
END_TEST

START_TEST(those_that_say_nothing_make_room_after_a_while)
{
    int fds[LOAD_METRICS_CONNECTIONS + 1];

    open_metrics(abstract());
    for (unsigned i = 0; i <= LOAD_METRICS_CONNECTIONS; i++)
        fds[i] = connected();
    serve();
    ck_assert_uint_eq(in_use(), LOAD_METRICS_CONNECTIONS);
    say(fds[LOAD_METRICS_CONNECTIONS], GET("/metrics"));
    load_metrics_tick(metrics, now_ns + LOAD_METRICS_PATIENCE_NS - 1);
    ck_assert(!serve());
    now_ns += LOAD_METRICS_PATIENCE_NS;
    load_metrics_tick(metrics, now_ns);
    ck_assert_uint_eq(in_use(), 0);
    serve();
    reply[0] = '\0';
    ck_assert(hear(fds[LOAD_METRICS_CONNECTIONS]));
    check_has(reply, "# EOF\n");
    for (unsigned i = 0; i <= LOAD_METRICS_CONNECTIONS; i++)
        close(fds[i]);
    serve();
    close_metrics();
}
END_TEST

/* However many requests come, the server spends a limited number of system calls a second. */
START_TEST(those_that_ask_all_the_time_wait_for_the_next_second)
{
    unsigned replies_number = 0;

    open_metrics(abstract());
    for (unsigned i = 0; i < LOAD_METRICS_EVENTS; i++) {
        int fd = connected();

        reply[0] = '\0';
        say(fd, GET("/metrics"));
        serve();
        replies_number += hear(fd);
        close(fd);
        if (metrics->events == 0)
            break;
    }
    ck_assert_uint_gt(replies_number, 10);
    ck_assert_uint_le(replies_number, LOAD_METRICS_EVENTS / 2);
    ck_assert_uint_eq(metrics->events, 0);
    ck_assert(!serve());
    load_metrics_tick(metrics, now_ns);
    serve();
    check_has(asked(GET("/metrics")), "# EOF\n");
    close_metrics();
}
END_TEST

START_TEST(a_worker_forgets_it_and_the_file_is_removed_at_the_end)
{
    struct stat found;
    int fd;

    make_path();
    open_metrics(path);
    fd = connected();
    serve();
    load_metrics_forget(metrics);
    load_metrics_forget(metrics);
    ck_assert_int_eq(stat(path, &found), 0);
    close_metrics();
    ck_assert_int_lt(stat(path, &found), 0);
    close(fd);
}
END_TEST

static const struct {
    const char *where;
    const char *before;
    const char *after;
} names[] = {
    {"0", "http://127.0.0.1:", "/metrics"},
    {"[::1]:0", "http://[::1]:", "/metrics"},
    {NULL, "@sxe-metrics-", ""}, /* an abstract name */
};

START_TEST(it_says_where_it_is)
{
    char name[128];

    open_metrics(names[_i].where != NULL ? names[_i].where : abstract());
    load_metrics_name(metrics, name, sizeof(name));
    ck_assert_ptr_eq(strstr(name, names[_i].before), name);
    ck_assert_str_eq(name + strlen(name) - strlen(names[_i].after), names[_i].after);
    close_metrics();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-metrics");
    TCase *tcase = tcase_create("metrics");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, each_time_is_counted_below_exactly_the_bounds_that_it_does_not_pass);
    tcase_add_test(tcase, the_bounds_are_those_of_the_page);
    tcase_add_test(tcase, workers_and_trials_are_added_up);
    tcase_add_test(tcase, the_text_has_every_count);
    tcase_add_test(tcase, a_label_is_escaped);
    tcase_add_test(tcase, the_longest_text_fits);
    tcase_add_loop_test(tcase, an_address_is_a_port_with_or_without_an_ip_or_a_path, 0,
                        SXE_COUNT(addresses));
    tcase_add_test(tcase, a_port_alone_is_that_of_this_machine);
    tcase_add_test(tcase, a_path_that_is_too_long_is_refused);
    tcase_add_test(tcase, a_socket_file_of_nobody_is_replaced);
    tcase_add_test(tcase, what_is_no_socket_stays);
    tcase_add_loop_test(tcase, what_fails_while_it_begins_to_listen_is_told, 0,
                        SXE_COUNT(refusals));
    tcase_add_test(tcase, a_request_has_the_text);
    tcase_add_loop_test(tcase, each_request_has_one_reply, 0, SXE_COUNT(replies));
    tcase_add_test(tcase, a_head_that_is_too_large_is_refused);
    tcase_add_test(tcase, a_request_may_come_byte_by_byte);
    tcase_add_test(tcase, a_reply_may_go_in_pieces);
    tcase_add_test(tcase, what_follows_the_reply_is_thrown_away);
    tcase_add_loop_test(tcase, what_fails_costs_a_connection_at_most, 0, SXE_COUNT(troubles));
    tcase_add_test(tcase, one_that_goes_early_is_forgotten);
    tcase_add_test(tcase, those_that_say_nothing_make_room_after_a_while);
    tcase_add_test(tcase, those_that_ask_all_the_time_wait_for_the_next_second);
    tcase_add_test(tcase, a_worker_forgets_it_and_the_file_is_removed_at_the_end);
    tcase_add_loop_test(tcase, it_says_where_it_is, 0, SXE_COUNT(names));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
