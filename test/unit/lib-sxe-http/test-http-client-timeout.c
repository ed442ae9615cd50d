/* SPDX-License-Identifier: MIT
 *
 * The client's timeouts, with a virtual clock: each comes after its time and not before; progress
 * restarts it where sxe-http-client.h says so.
 */
#include "http-client-peer.h"

#include <sys/socket.h>

#include "fake-time.h"

#define SECOND  SXE_NS_PER_SECOND
#define OK_LINE "HTTP/1.1 200 OK\r\n"
#define BIG     (8u * 1024 * 1024) /* more than the kernel takes */

static char big[BIG];
static uint64_t began;

static void
serve_with_timeout(struct sxe_http_client_config config)
{
    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    serve(&config, NULL);
    began = sxe_time_ns();
}

/* A minute must have passed since `began`; timers are late by a few milliseconds. */
static void
expect_a_minute(void)
{
    uint64_t took = sxe_time_ns() - began;

    ck_assert_uint_ge(took, 60 * SECOND);
    ck_assert_uint_le(took, 61 * SECOND);
}

/* The next event must be the timeout of this call, and come by the passing of time alone. */
static void
expect_timeout(const char *user)
{
    for (unsigned i = 0; i < WAIT_TURNS && event_count() == 0; i++)
        ev_run(sxe_loop(), EVRUN_ONCE);
    EXPECT_DONE(user, -ETIMEDOUT, "");
}

/* Let half a minute pass; nothing must happen. */
static void
wait_half(void)
{
    fake_time_advance(30 * SECOND);
    EXPECT_NOTHING();
}

START_TEST(connecting_may_take_as_long_as_connect_timeout)
{
    int fill[2];

    serve_with_timeout((struct sxe_http_client_config){.connect_timeout_ms = 60000});
    /* The kernel ignores connections to a listener whose backlog is full. */
    ck_assert_int_eq(listen(listener, 0), 0);
    fill[0] = peer_connect(port);
    get(a);
    expect_timeout(a);
    expect_a_minute();
    fill[1] = peer_accept(listener);
    close(fill[0]);
    close(fill[1]);
    stop();
}
END_TEST

START_TEST(a_head_may_take_as_long_as_head_timeout_however_it_drips)
{
    int peer;

    serve_with_timeout((struct sxe_http_client_config){.head_timeout_ms = 60000});
    get(a);
    peer = take(a);
    wait_half();
    say(peer, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200");
    EXPECT_NOTHING();
    expect_timeout(a);
    expect_a_minute();
    PEER_EXPECT_RESET(peer);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_body_may_stall_as_long_as_stall_timeout)
{
    int peer;

    serve_with_timeout((struct sxe_http_client_config){.stall_timeout_ms = 60000});
    get_spans(a);
    peer = take(a);
    say(peer, OK_LINE "Content-Length: 100\r\n\r\n");
    EXPECT("response", a, 200);
    for (unsigned i = 0; i < 5; i++) {
        wait_half();
        began = sxe_time_ns();
        say(peer, "more");
        EXPECT("body", a, 4);
    }
    expect_timeout(a);
    expect_a_minute();
    close(peer);
    stop();
}
END_TEST

START_TEST(a_paused_body_has_no_timeout)
{
    uint64_t handle;
    int peer;

    serve_with_timeout((struct sxe_http_client_config){.stall_timeout_ms = 60000});
    handle = get_spans(a);
    peer = take(a);
    say(peer, OK_LINE "Content-Length: 100\r\n\r\n");
    EXPECT("response", a, 200);
    ck_assert_int_eq(sxe_http_client_pause(client, handle), 0);
    for (unsigned i = 0; i < 5; i++)
        wait_half();
    began = sxe_time_ns();
    ck_assert_int_eq(sxe_http_client_resume(client, handle), 0);
    expect_timeout(a);
    expect_a_minute();
    close(peer);
    stop();
}
END_TEST

START_TEST(sending_may_stall_as_long_as_stall_timeout)
{
    static char taken[BIG / 4];
    struct sxe_http_call call = call_of(a);
    int peer;

    call.request.method = sxe_http_span("PUT");
    call.request.body_length = BIG;
    call.body = big;
    serve_with_timeout(
        (struct sxe_http_client_config){.stall_timeout_ms = 60000, .head_timeout_ms = 1000});
    must_send(&call);
    peer = accept_client();
    for (unsigned i = 0; i < 2; i++) {
        wait_half();
        ck_assert_uint_eq(peer_receive(peer, taken, sizeof(taken)), sizeof(taken));
        began = sxe_time_ns();
    }
    expect_timeout(a);
    expect_a_minute();
    close(peer);
    stop();
}
END_TEST

START_TEST(a_connection_rests_as_long_as_idle_timeout)
{
    int peer;

    serve_with_timeout((struct sxe_http_client_config){.idle_timeout_ms = 60000});
    peer = idle_peer();
    wait_half();
    get(b);
    expect_request(peer, "GET", b);
    began = sxe_time_ns();
    answer(peer, "");
    EXPECT_DONE(b, 0, "");
    wait_half();
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 1);
    ev_run(sxe_loop(), EVRUN_ONCE);
    PEER_EXPECT_END(peer);
    expect_a_minute();
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_call_may_take_as_long_as_total_timeout_waiting_included)
{
    int peer;

    serve_with_timeout((struct sxe_http_client_config){
        .connections_max = 1, .total_timeout_ms = 60000, .head_timeout_ms = 1000000});
    get(a);
    peer = take(a);
    wait_half();
    get(b);
    get(c);
    expect_timeout(a);
    expect_a_minute();
    close(peer);
    peer = take(b);
    began += 30 * SECOND;
    expect_timeout(b);
    expect_a_minute();
    expect_timeout(c);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_timeout_of_uint32_max_is_none)
{
    int peer;

    serve_with_timeout((struct sxe_http_client_config){.head_timeout_ms = UINT32_MAX});
    get(a);
    peer = take(a);
    fake_time_advance(100 * 86400 * SECOND);
    EXPECT_NOTHING();
    answer(peer, "late");
    EXPECT_DONE(a, 0, "late");
    close(peer);
    stop();
}
END_TEST

/* Timeouts of the loop apply as well. They do not mean that the connection was stale, so the call
 * is not sent again. */
START_TEST(a_timeout_of_the_loop_is_no_reason_to_send_again)
{
    struct sxe_config config = {.timeout_ms[SXE_STATE_IDLE] = 60000};
    struct sxe_http_client_config longer = {.head_timeout_ms = 1000000, .idle_timeout_ms = 1000000};
    int peer;

    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    serve(&longer, &config);
    peer = idle_peer();
    get(b);
    expect_request(peer, "GET", b);
    expect_timeout(b);
    ck_assert(!somebody_connects());
    close(peer);
    stop();
}
END_TEST

static Suite *
timeout_suite(void)
{
    Suite *suite = suite_create("http client timeout");
    TCase *timeouts = tcase_create("timeouts");

    tcase_add_test(timeouts, connecting_may_take_as_long_as_connect_timeout);
    tcase_add_test(timeouts, a_head_may_take_as_long_as_head_timeout_however_it_drips);
    tcase_add_test(timeouts, a_body_may_stall_as_long_as_stall_timeout);
    tcase_add_test(timeouts, a_paused_body_has_no_timeout);
    tcase_add_test(timeouts, sending_may_stall_as_long_as_stall_timeout);
    tcase_add_test(timeouts, a_connection_rests_as_long_as_idle_timeout);
    tcase_add_test(timeouts, a_call_may_take_as_long_as_total_timeout_waiting_included);
    tcase_add_test(timeouts, a_timeout_of_uint32_max_is_none);
    tcase_add_test(timeouts, a_timeout_of_the_loop_is_no_reason_to_send_again);
    suite_add_tcase(suite, timeouts);
    return suite;
}

int
main(void)
{
    return sxe_test_main(timeout_suite());
}
