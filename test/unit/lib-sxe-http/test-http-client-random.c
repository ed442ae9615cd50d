/* SPDX-License-Identifier: MIT
 *
 * Thousands of random calls, cancels, pauses and waits of three clients that share a loop: by a
 * name, through a proxy, and through tunnels. Servers and proxies do what they should half of the
 * time. Each call must end once, and nothing may be left over. The clock is virtual.
 */
#include "named-hosts.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

#include "fake-time.h"
#include "http-client-peer.h"
#include "sxe-io.h"

#define ROUNDS  5000
#define CALLS   64
#define PEERS   200
#define CLIENTS 3

static struct sxe_http_client *clients[CLIENTS];
static struct random_call {
    bool is_live;
    uint64_t handle;
    struct sxe_http_client *of;
} calls[CALLS];
static unsigned sent;
static unsigned ended;
static int peers[PEERS];
static unsigned peers_number;
static unsigned state; /* the state of the random numbers */

/* The client only passes this pointer on, so any address will do. */
static struct sxe_tls *const tls = (struct sxe_tls *)(uintptr_t)&clients;

static unsigned
below(unsigned limit)
{
    state = state * 1103515245u + 12345u;
    return (state >> 16) % limit;
}

static int
use_or_fail(struct sxe_tls *given, SXE *s, const char *name)
{
    (void)s;
    ck_assert_ptr_eq(given, tls);
    ck_assert_str_eq(name, "ro");
    return below(20) == 0 ? -ENOMEM : 0;
}

/* ---- Calls ---- */

static void
end_call(struct random_call *call)
{
    ck_assert(call->is_live);
    call->is_live = false;
    ended++;
}

static void
cancel_call(struct random_call *call)
{
    ck_assert_int_eq(sxe_http_client_cancel(call->of, call->handle), 0);
    end_call(call);
}

static void send_random_call(void);

static void
note_done(const struct sxe_http_exchange *e, int result)
{
    end_call(e->user);
    (void)result;
    if (below(8) == 0)
        send_random_call();
}

static void
read_part(const struct sxe_http_exchange *e, struct sxe_span part)
{
    (void)part;
    if (below(10) == 0)
        ck_assert_int_eq(sxe_http_client_pause(e->client, e->handle), 0);
    if (below(30) == 0)
        cancel_call(e->user);
}

static void
send_random_call(void)
{
    struct random_call *one = &calls[below(CALLS)];
    struct sxe_http_call call = call_of(a);

    if (one->is_live)
        return;
    call.user = one;
    call.on_done = note_done;
    call.on_body = below(3) == 0 ? read_part : NULL;
    if (below(3) == 0)
        call.request.method = sxe_http_span("POST");
    one->of = clients[below(CLIENTS)];
    if (sxe_http_client_send(one->of, &call, &one->handle) < 0)
        return;
    one->is_live = true;
    sent++;
}

/* Cancel a call, pause it or go on with it. */
static void
disturb_random_call(void)
{
    struct random_call *call = &calls[below(CALLS)];

    if (!call->is_live)
        return;
    switch (below(4)) {
    case 0:
        cancel_call(call);
        return;
    case 1:
        ck_assert_int_eq(sxe_http_client_pause(call->of, call->handle), 0);
        return;
    default:
        ck_assert_int_eq(sxe_http_client_resume(call->of, call->handle), 0);
    }
}

/* ---- The other end: the server, the proxy and the server in a tunnel ---- */

static void
accept_peers(void)
{
    struct pollfd fd = {.fd = hosts[1].listener, .events = POLLIN};

    while (peers_number < PEERS && poll(&fd, 1, 0) > 0)
        peers[peers_number++] = peer_accept(fd.fd);
}

/* Answer well, badly or not at all. False: close instead. */
static bool
answer_at_random(int peer, bool is_connect)
{
    static const char *const bad[] = {
        "garbage\r\n\r\n",
        "HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 2",
        "HTTP/1.1 100 Go on\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nearly",
        "",
    };
    const unsigned chosen = below(16);
    const char *text =
        is_connect ? "HTTP/1.1 200 OK\r\n\r\n" : "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd";

    if (chosen < sizeof(bad) / sizeof(bad[0]))
        text = bad[chosen];
    (void)send(peer, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
    return chosen != 15;
}

static void
serve_peers(void)
{
    accept_peers();
    for (unsigned i = 0; i < peers_number;) {
        char text[4096];
        ssize_t n = recv(peers[i], text, sizeof(text), MSG_DONTWAIT);
        bool is_open = n < 0 && errno == EAGAIN;

        if (n > 0)
            is_open = answer_at_random(peers[i], text[0] == 'C');
        if (is_open) {
            i++;
            continue;
        }
        if (below(2) == 0)
            peer_reset(peers[i]);
        else
            close(peers[i]);
        peers[i] = peers[--peers_number];
    }
}

/* ---- The test ---- */

static void
make_clients(unsigned short port_of_hosts)
{
    char url[64];
    struct sxe_http_client_config config = {.name = "rod",
                                            .port = port_of_hosts,
                                            .connections_max = 4,
                                            .calls_max = CALLS,
                                            .idle_max = 2,
                                            .connect_timeout_ms = 2000,
                                            .head_timeout_ms = 1000,
                                            .stall_timeout_ms = 1000,
                                            .total_timeout_ms = 8000,
                                            .idle_timeout_ms = 500};

    snprintf(url, sizeof(url), "u:p@rod.example:%u", (unsigned)port_of_hosts);
    clients[0] = sxe_http_client_new(&config);
    config.name = "ro";
    config.proxy = url;
    config.connections_max = 1;
    clients[1] = sxe_http_client_new(&config);
    config.tls = tls;
    config.use_tls = config.start_tls = use_or_fail;
    clients[2] = sxe_http_client_new(&config);
    ck_assert(clients[0] != NULL && clients[1] != NULL && clients[2] != NULL);
}

static void
play_a_round(void)
{
    if (below(3) == 0)
        send_random_call();
    if (below(3) == 0)
        disturb_random_call();
    if (below(5) == 0)
        fake_time_advance(below(300) * SXE_NS_PER_MS);
    turn(1);
    sched_yield(); /* let the threads of look-ups run */
    serve_peers();
}

/* total_timeout ends the calls that are left, but not the pauses. */
static void
expect_all_calls_to_end(void)
{
    while (ended < sent) {
        fake_time_advance(100 * SXE_NS_PER_MS);
        turn(1);
        serve_peers();
    }
    while (peers_number > 0)
        close(peers[--peers_number]);
    for (unsigned i = 0; i < 50; i++) {
        fake_time_advance(100 * SXE_NS_PER_MS);
        turn(1);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        ck_assert_uint_eq(sxe_pool_get_count(clients[i]->links, SXE__HTTP_LINK_FREE),
                          clients[i]->config.connections_max);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), sxe_io_sockets());
}

START_TEST(random_calls_end_once_and_leave_nothing_over)
{
    unsigned short port_of_hosts;

    state = (unsigned)_i + 1;
    hosts_open("rod", &port_of_hosts);
    fake_time_start(SXE_NS_PER_SECOND, 0);
    make_clients(port_of_hosts);
    plan_start(0);
    for (unsigned i = 0; i < ROUNDS; i++)
        play_a_round();
    /* Some clients are deleted with calls under way, before sxe_fini or after it. */
    if (_i < 2)
        expect_all_calls_to_end();
    while (peers_number > 0)
        close(peers[--peers_number]);
    for (unsigned i = 0; _i != 3 && i < CLIENTS; i++)
        sxe_http_client_delete(clients[i]);
    plan_stop();
    for (unsigned i = 0; _i == 3 && i < CLIENTS; i++)
        sxe_http_client_delete(clients[i]);
    fake_time_stop();
    hosts_close();
}
END_TEST

static Suite *
random_suite(void)
{
    Suite *suite = suite_create("http client random");
    TCase *tcase = tcase_create("calls");

    tcase_add_loop_test(tcase, random_calls_end_once_and_leave_nothing_over, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(random_suite());
}
