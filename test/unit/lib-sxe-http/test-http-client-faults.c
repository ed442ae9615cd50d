/* SPDX-License-Identifier: MIT
 *
 * The client while system calls fail (sweep.h): each call ends exactly once, and no memory or
 * descriptor is left over. And only sxe_http_client_new allocates.
 */
#include "http-client-peer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "fake-time.h"
#include "sweep.h"

#define CALLS 6
#define TURNS 400 /* each of a millisecond at most */
#define PEERS 40

int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
ssize_t __real_recv(int fd, void *data, size_t length, int flags);
ssize_t __real_send(int fd, const void *data, size_t length, int flags);
int __real_close(int fd);

/* ---- A server whose own calls do not fail ---- */

static const char *const answers[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    "2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
};

static struct {
    int fds[PEERS];
    size_t received[PEERS]; /* bytes of the request that is being read */
    unsigned number;
    unsigned answered;
} server;

static char body[20000];

/* Whether a request is complete: its head, and for PUT also the body, which is always the same. */
static bool
is_whole(const char *data, size_t length, size_t received)
{
    if (received > length)
        return received >= sizeof(body);
    return strncmp(data, "PUT", 3) != 0 && length > 4 &&
           memcmp(data + length - 4, "\r\n\r\n", 4) == 0;
}

static void
serve_peer(unsigned i)
{
    static char data[2 * sizeof(body)];
    ssize_t n = __real_recv(server.fds[i], data, sizeof(data), MSG_DONTWAIT);

    if (n <= 0)
        return;
    server.received[i] += (size_t)n;
    if (is_whole(data, (size_t)n, server.received[i]) || server.received[i] > sizeof(body)) {
        const char *text = answers[server.answered++ % 3];

        server.received[i] = 0;
        __real_send(server.fds[i], text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void
turn_server(void)
{
    int fd = server.number < PEERS ? __real_accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;

    if (fd >= 0)
        server.fds[server.number++] = fd;
    for (unsigned i = 0; i < server.number; i++)
        serve_peer(i);
}

static void
close_server(void)
{
    for (unsigned i = 0; i < server.number; i++)
        __real_close(server.fds[i]);
    memset(&server, 0, sizeof(server));
}

/* ---- The calls ---- */

static struct {
    unsigned sent;
    unsigned refused;
    unsigned done;
    unsigned good;
    bool is_over[CALLS];
} run;

static void
count_done(const struct sxe_http_exchange *e, int result)
{
    bool *is_over = e->user;

    ck_assert(!*is_over);
    *is_over = true;
    run.done++;
    if (result == 0) {
        run.good++;
        ck_assert_uint_eq(e->response->status, 200);
        ck_assert_uint_eq(e->body.length, 2);
        ck_assert_mem_eq(e->body.base, "ok", 2);
    }
}

static void
send_one(unsigned i)
{
    struct sxe_http_call call = call_of(a);

    call.user = &run.is_over[i];
    call.on_done = count_done;
    if (i % 2 == 1) {
        call.request.method = sxe_http_span("PUT");
        call.request.body_length = sizeof(body);
        call.body = body;
    }
    if (sxe_http_client_send(client, &call, NULL) == 0)
        run.sent++;
    else
        run.refused++;
}

static void
turn_both(unsigned times)
{
    for (unsigned i = 0; i < times && (run.done < run.sent || i < 10); i++) {
        turn(1);
        turn_server();
    }
}

/* Make calls, two at a time: on new connections, on idle ones, and waiting for a connection. */
static void
scenario(void)
{
    for (unsigned i = 0; i < CALLS; i++) {
        send_one(i);
        if (i % 3 == 2)
            turn_both(TURNS);
    }
    turn_both(TURNS);
}

static void
start(void)
{
    static const struct sxe_config small = {.chunk_size = 256, .chunks = 16};
    struct sxe_http_client_config config = {.ip = "127.0.0.1",
                                            .connections_max = 2,
                                            .head_timeout_ms = 100,
                                            .stall_timeout_ms = 100,
                                            .connect_timeout_ms = 100};

    config.port = port;
    memset(&run, 0, sizeof(run));
    client = sxe_http_client_new(&config);
    ck_assert_ptr_nonnull(client);
    sxe_configure(&small);
    ck_assert_int_eq(sxe_init(), 0);
    turn(1);
}

static void
finish(void)
{
    sxe_http_client_delete(client);
    ck_assert_int_eq(sxe_fini(), 0);
}

/* ---- System calls ---- */

static const struct fault faults[] = {
    {FAKE_SOCKET, {EMFILE, ENOBUFS}},
    {FAKE_CONNECT, {ECONNREFUSED, EADDRNOTAVAIL, ENETUNREACH, EAGAIN}},
    {FAKE_GETSOCKOPT, {ENOBUFS}},
    {FAKE_SETSOCKOPT, {ENOBUFS}},
    {FAKE_RECV, {EINTR, ECONNRESET, ETIMEDOUT}},
    {FAKE_SEND, {EINTR, ENOBUFS, EPIPE, ECONNRESET}},
    {FAKE_SENDMSG, {EINTR, ENOBUFS, EPIPE, ECONNRESET}},
    {FAKE_CLOSE, {EINTR, EIO}},
    {FAKE_EPOLL_CTL, {ENOMEM, ENOSPC}},
    {FAKE_EPOLL_WAIT, {EINTR}},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static bool
run_once(const struct strike *strike)
{
    unsigned before = fake_os_open_fds();
    bool touched;

    start();
    sweep_arm(strike);
    scenario();
    touched = sweep_disarm();
    turn_both(TURNS);
    ck_assert_uint_eq(run.sent + run.refused, CALLS);
    ck_assert_uint_eq(run.done, run.sent);
    if (!touched)
        ck_assert_uint_eq(run.good, CALLS);
    turn(10);
    ck_assert_uint_eq(sxe_pool_get_count(client->jobs, SXE__HTTP_JOB_LIVE), 0);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE) + links_in(SXE__HTTP_LINK_IDLE), 2);
    finish();
    close_server();
    ck_assert_uint_eq(fake_os_open_fds(), before);
    return touched;
}

START_TEST(every_failing_call_is_survived)
{
    fake_time_start(UINT64_C(1000000000000), 0);
    ev_run(ev_default_loop(EVFLAG_AUTO), EVRUN_NOWAIT);
    sxe_log_set_level(SXE_LOG_FATAL);
    listener = peer_listen(&port);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    sweep(&faults[_i], run_once);
    close(listener);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

/* ---- Room for output ---- */

START_TEST(a_request_that_finds_no_room_for_output_fails)
{
    static const struct sxe_config configs[] = {{.output_max = 16},
                                                {.chunk_size = 64, .chunks = 1}};
    struct sxe_http_call call = call_of(a);
    int peer;

    call.request.body_length = sizeof(body);
    call.body = body;
    serve(NULL, &configs[_i]);
    must_send(&call);
    EXPECT_DONE(a, -ENOBUFS, "");
    peer = peer_accept(listener);
    PEER_EXPECT_RESET(peer);
    close(peer);
    stop();
}
END_TEST

/* ---- Memory ---- */

START_TEST(f1_a_client_without_memory_is_not_made)
{
    struct sxe_http_client_config config = {.ip = "127.0.0.1", .port = 1};
    unsigned nth = 0;

    sxe_log_set_level(SXE_LOG_FATAL);
    do {
        fake_os_reset();
        fake_os_sweep(allocations, ALLOCATIONS, ++nth, _i == 1, ENOMEM);
        errno = 0;
        client = sxe_http_client_new(&config);
        ck_assert((client == NULL) == (fake_os_injected() > 0));
        if (client == NULL)
            ck_assert_int_eq(errno, ENOMEM);
    } while (client == NULL);
    ck_assert_uint_gt(nth, 6);
    fake_os_reset();
    sxe_http_client_delete(client);
}
END_TEST

static void
do_nothing(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
}

/* Let timers fire: libev allocates its list of due timers when the first ones are due. */
static void
let_timers_fire(void)
{
    ev_timer timers[4];

    for (unsigned i = 0; i < 4; i++) {
        ev_timer_init(&timers[i], do_nothing, 0, 0);
        ev_timer_start(sxe_loop(), &timers[i]);
    }
    turn(3);
    for (unsigned i = 0; i < 4; i++)
        ck_assert(!ev_is_active(&timers[i]));
}

START_TEST(calls_allocate_nothing)
{
    fake_time_start(UINT64_C(1000000000000), 0);
    ev_run(ev_default_loop(EVFLAG_AUTO), EVRUN_NOWAIT);
    listener = peer_listen(&port);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    sxe_log_set_level(SXE_LOG_FATAL);
    start();
    let_timers_fire();
    forbid_allocations();
    for (unsigned i = 0; i < 20; i++) {
        memset(&run, 0, sizeof(run));
        scenario();
        ck_assert_uint_eq(run.good, CALLS);
        close_server();
    }
    ck_assert_uint_eq(fake_os_violations(), 0);
    fake_os_reset();
    finish();
    close(listener);
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
}
END_TEST

static Suite *
faults_suite(void)
{
    Suite *suite = suite_create("http client faults");
    TCase *calls = tcase_create("calls");

    tcase_add_loop_test(calls, every_failing_call_is_survived, 0, FAULTS);
    tcase_add_loop_test(calls, a_request_that_finds_no_room_for_output_fails, 0, 2);
    tcase_add_loop_test(calls, f1_a_client_without_memory_is_not_made, 0, 2);
    tcase_add_test(calls, calls_allocate_nothing);
    suite_add_tcase(suite, calls);
    return suite;
}

int
main(void)
{
    return sxe_test_main(faults_suite());
}
