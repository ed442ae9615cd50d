/* SPDX-License-Identifier: MIT
 *
 * Tests what happens when the system fails: accept, reads, epoll, clocks; and when no socket of the
 * plan is free. Sweeps over all calls are in test-sxe-sweep.c, failing writes in test-sxe-output.c
 * and test-sxe-write.c, failing peeks in test-sxe-starved.c.
 */
#include "sxe-private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture-log.h"
#include "fake-os.h"
#include "fake-time.h"
#include "pattern.h"
#include "test-main.h"

#define START_NS UINT64_C(1000000000000)
#define MS       UINT64_C(1000000)

static SXE *listener;

static void
start(unsigned sockets, const struct sxe_config *config)
{
    fake_time_start(START_NS, START_NS);
    plan_start_with(sockets, config);
    listener = listen_tcp(push_read);
    turn(3);
    fake_os_reset();
}

static uint64_t
ms_since_start(void)
{
    return (sxe_time_ns() - START_NS) / MS;
}

static void
do_nothing(struct sxe_timer *timer)
{
    (void)timer;
}

/* Run the loop for this long; only the loop makes virtual time pass. */
static void
wait_ms(unsigned ms)
{
    struct sxe_timer timer;

    sxe_timer_init(&timer, do_nothing, ms / 1000.0, 0);
    sxe_timer_start(&timer);
    while (ev_is_active(&timer.ev))
        ev_run(sxe_loop(), EVRUN_ONCE);
}

static const SXE *
expect_connected(void)
{
    return EXPECT("connected", NULL, 0)->object;
}

/* ---- No descriptor, no memory: listeners rest ---- */

static const int shortages[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};

START_TEST(f3_without_descriptors_accept_is_tried_ten_times_a_second)
{
    int peer;

    start(10, NULL);
    capture_log();
    fake_os_fail(FAKE_ACCEPT4, 1, 0, shortages[_i]);
    peer = peer_connect(sxe_local_port(listener));
    wait_ms(1000);
    ck_assert_uint_ge(fake_os_calls(FAKE_ACCEPT4), 9);
    ck_assert_uint_le(fake_os_calls(FAKE_ACCEPT4), 12);
    ck_assert_uint_lt(fake_os_calls(FAKE_EPOLL_WAIT), 100);
    ck_assert_ptr_nonnull(strstr(log_line(0), "not accepting for now: "));
    ck_assert_ptr_nonnull(strstr(log_line(0), strerror(shortages[_i])));
    ck_assert_uint_eq(captured.number, 1);
    fake_os_reset();
    wait_ms(110);
    expect_connected();
    ck_assert_ptr_nonnull(strstr(log_line(1), "accepting again: "));
    ck_assert_ptr_nonnull(strstr(log_line(1), " tries had failed: "));
    ck_assert_ptr_nonnull(strstr(log_line(1), strerror(shortages[_i])));
    ck_assert_uint_eq(captured.number, 2);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(f3_others_are_served_meanwhile)
{
    SXE *served;
    int peers[2];

    start(10, NULL);
    served = accept_peer(listener, &peers[0]);
    fake_os_fail(FAKE_ACCEPT4, 1, 0, shortages[_i]);
    peers[1] = peer_connect(sxe_local_port(listener));
    for (unsigned i = 0; i < 10; i++) {
        peer_send(peers[0], "hello", 5);
        EXPECT_READ(served, "hello");
        wait_ms(50);
    }
    close(peers[0]);
    close(peers[1]);
    EXPECT("close", served, 0);
    plan_stop();
}
END_TEST

START_TEST(f3_a_descriptor_of_ours_that_comes_free_is_used_at_once)
{
    SXE *served;
    int peers[2];
    uint64_t before;

    start(10, NULL);
    served = accept_peer(listener, &peers[0]);
    fake_os_fail(FAKE_ACCEPT4, 1, 1, shortages[_i]);
    peers[1] = peer_connect(sxe_local_port(listener));
    turn(3);
    EXPECT_NOTHING();
    before = ms_since_start();
    sxe_close(served);
    EXPECT("close", served, 0);
    expect_connected();
    ck_assert_uint_lt(ms_since_start() - before, 5);
    close(peers[0]);
    close(peers[1]);
    plan_stop();
}
END_TEST

START_TEST(f3_two_listeners_rest_together)
{
    SXE *second;
    int peers[2];

    start(10, NULL);
    second = listen_tcp(push_read);
    fake_os_fail(FAKE_ACCEPT4, 1, 2, EMFILE);
    peers[0] = peer_connect(sxe_local_port(listener));
    peers[1] = peer_connect(sxe_local_port(second));
    wait_ms(350);
    expect_connected();
    expect_connected();
    close(peers[0]);
    close(peers[1]);
    plan_stop();
}
END_TEST

/* ---- A connection that ends before it is accepted ---- */

START_TEST(f4_the_next_connection_is_served)
{
    static const int errors[] = {ECONNABORTED, EINTR,     EPROTO, EPERM,        ENETDOWN,
                                 ENOPROTOOPT,  EHOSTDOWN, ENONET, EHOSTUNREACH, ENETUNREACH};
    int peers[40];

    start(50, NULL);
    for (unsigned i = 0; i < 40; i++) {
        fake_os_fail(FAKE_ACCEPT4, 1, 1 + i % 4, errors[_i]);
        accept_peer(listener, &peers[i]);
    }
    ck_assert_uint_lt(ms_since_start(), 90);
    for (unsigned i = 0; i < 40; i++)
        close(peers[i]);
    plan_stop();
}
END_TEST

/* ---- No socket of the plan is free ---- */

START_TEST(without_a_free_socket_listeners_rest_until_one_is)
{
    SXE *served[2];
    int peers[3];

    start(3, NULL);
    served[0] = accept_peer(listener, &peers[0]);
    served[1] = accept_peer(listener, &peers[1]);
    peers[2] = peer_connect(sxe_local_port(listener));
    EXPECT_NOTHING();
    fake_os_reset();
    wait_ms(1000);
    ck_assert_uint_eq(fake_os_calls(FAKE_ACCEPT4), 0);
    ck_assert_uint_lt(fake_os_calls(FAKE_EPOLL_WAIT), 20);
    close(peers[0]);
    EXPECT("close", served[0], 0);
    ck_assert_ptr_eq(expect_connected(), served[0]);
    close(peers[1]);
    close(peers[2]);
    EXPECT("close", NULL, 0);
    EXPECT("close", NULL, 0);
    plan_stop();
}
END_TEST

START_TEST(reap_idle_closes_the_longest_idle)
{
    struct sxe_config config = {.reap_idle = true};
    SXE *served[3];
    int peers[4];

    start(4, &config);
    for (unsigned i = 0; i < 3; i++)
        served[i] = accept_peer(listener, &peers[i]);
    peer_send(peers[0], "busy", 4);
    EXPECT_READ(served[0], "busy");
    fake_os_say_unacked(_i * 100000);
    peers[3] = peer_connect(sxe_local_port(listener));
    EXPECT("close", served[1], ETIMEDOUT);
    ck_assert_ptr_eq(expect_connected(), served[1]);
    ck_assert_int_eq(peer_drain(peers[1]), _i == 0 ? 0 : ECONNRESET);
    for (unsigned i = 0; i < 4; i++)
        close(peers[i]);
    plan_stop();
}
END_TEST

START_TEST(reap_idle_waits_for_one_to_become_idle)
{
    struct sxe_config config = {.reap_idle = true};
    SXE *served;
    int peers[2];

    start(2, &config);
    served = accept_peer(listener, &peers[0]);
    served->on_read = push_read_keep;
    peer_send(peers[0], "half", 4);
    EXPECT_READ(served, "half");
    peers[1] = peer_connect(sxe_local_port(listener));
    fake_os_reset();
    wait_ms(1000);
    ck_assert_uint_eq(fake_os_calls(FAKE_ACCEPT4), 0);
    served->on_read = push_read;
    peer_send(peers[0], " whole", 6);
    EXPECT_READ(served, "half whole");
    EXPECT("close", served, ETIMEDOUT);
    expect_connected();
    close(peers[0]);
    close(peers[1]);
    plan_stop();
}
END_TEST

/* ---- Reads ---- */

START_TEST(f5_bytes_that_come_one_by_one_are_the_same_bytes)
{
    SXE *served;
    size_t total = 0;
    int peer;

    start(2, NULL);
    served = accept_peer(listener, &peer);
    fake_os_limit(FAKE_RECV, 1);
    for (; total < 10000; total++) {
        peer_send(peer, pattern(10000) + total, 1);
        ck_assert_int_eq(EXPECT("read", served, 1)->data[0], pattern(10000)[total]);
    }
    close(peer);
    EXPECT("close", served, 0);
    plan_stop();
}
END_TEST

START_TEST(f5_an_interrupted_read_is_repeated)
{
    SXE *served;
    int peer;

    start(2, NULL);
    served = accept_peer(listener, &peer);
    fake_os_fail(FAKE_RECV, 1, 5, EINTR);
    peer_send(peer, "hello", 5);
    EXPECT_READ(served, "hello");
    close(peer);
    EXPECT("close", served, 0);
    plan_stop();
}
END_TEST

START_TEST(f5_a_spurious_event_is_nothing)
{
    SXE *served;
    int peer;

    start(2, NULL);
    served = accept_peer(listener, &peer);
    fake_os_fail(FAKE_RECV, 1, 1, EAGAIN);
    peer_send(peer, "hello", 5);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_get_state(served), SXE_STATE_IDLE);
    peer_send(peer, " again", 6);
    EXPECT_READ(served, "hello again");
    close(peer);
    EXPECT("close", served, 0);
    plan_stop();
}
END_TEST

START_TEST(f5_a_failed_read_closes_with_its_error)
{
    static const int errors[] = {ECONNRESET, ETIMEDOUT, EIO, EHOSTUNREACH};
    SXE *served;
    int peer;

    start(2, NULL);
    served = accept_peer(listener, &peer);
    fake_os_fail(FAKE_RECV, 1, 1, errors[_i]);
    peer_send(peer, "hello", 5);
    EXPECT("close", served, errors[_i]);
    close(peer);
    plan_stop();
}
END_TEST

/* ---- epoll ---- */

START_TEST(f7_a_connection_that_epoll_refuses_is_closed_and_the_next_is_served)
{
    int errors[] = {ENOMEM, ENOSPC, EEXIST};
    int peers[2];

    start(10, NULL);
    capture_log();
    fake_os_fail(FAKE_EPOLL_CTL, 1, 1, errors[_i]);
    peers[0] = peer_connect(sxe_local_port(listener));
    PEER_EXPECT_END(peers[0]);
    ck_assert_uint_eq(captured.number, 1);
    ck_assert_ptr_nonnull(strstr(log_line(0), "closing: epoll_ctl refused it: "));
    accept_peer(listener, &peers[1]);
    close(peers[0]);
    close(peers[1]);
    plan_stop();
}
END_TEST

START_TEST(f7_connecting_and_listening_may_be_tried_again)
{
    SXE *s;
    unsigned short port = 0;
    int raw = peer_listen(&port);

    start(10, NULL);
    s = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
    fake_os_fail(FAKE_EPOLL_CTL, 1, 2, ENOMEM);
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), -ENOMEM);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_int_eq(sxe_listen(s), -ENOMEM);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_int_eq(sxe_fd(s), -1);
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
    EXPECT("connected", s, 0);
    plan_stop();
    close(raw);
}
END_TEST

START_TEST(f7_a_listener_that_epoll_refuses_to_rest_is_closed)
{
    int peer;

    start(10, NULL);
    capture_log();
    fake_os_fail(FAKE_ACCEPT4, 1, 1, EMFILE);
    fake_os_fail(FAKE_EPOLL_CTL, 1, 1, ENOMEM);
    peer = peer_connect(sxe_local_port(listener));
    turn(3);
    ck_assert_int_eq(sxe_get_state(listener), SXE_STATE_FREE);
    ck_assert_ptr_nonnull(strstr(log_line(1), "closing: epoll_ctl refused it: "));
    close(peer);
    plan_stop();
}
END_TEST

/* The epoll_wait of libev and the one of the library fail in turn. */
START_TEST(f7_waiting_that_fails_loses_no_event)
{
    int error = _i < 5 ? EINTR : EBADF;
    SXE *served;
    int peer;

    start(10, NULL);
    capture_log();
    fake_os_fail(FAKE_EPOLL_WAIT, 1 + (unsigned)_i % 5, 3, error);
    served = accept_peer(listener, &peer);
    for (unsigned i = 0; i < 20; i++) {
        if (i % 5 == 0)
            fake_os_fail(FAKE_EPOLL_WAIT, 1 + (unsigned)_i % 5, 2, error);
        peer_send(peer, "hello", 5);
        EXPECT_READ(served, "hello");
        ck_assert_int_eq(sxe_write(served, "bye", 3), 0);
        PEER_EXPECT(peer, "bye");
    }
    ck_assert_int_eq(captured.number > 0, error == EBADF);
    if (error == EBADF)
        ck_assert_str_eq(line_without_numbers(0),
                         "------ 2 - (libev) epoll_wait: Bad file descriptor\n");
    close(peer);
    EXPECT("close", served, 0);
    plan_stop();
}
END_TEST

/* ---- The clock ---- */

START_TEST(f10_the_wall_clock_moves_no_timeout)
{
    static const int64_t hours[] = {1, -1, 24, -24, 100000};
    struct sxe_config config = {.timeout_ms[SXE_STATE_IDLE] = 10000};
    SXE *served;
    int peer;

    start(10, &config);
    served = accept_peer(listener, &peer);
    wait_ms(4000);
    fake_time_step_wall(hours[_i] * 3600 * (int64_t)SXE_NS_PER_SECOND);
    wait_ms(5000);
    ck_assert_int_eq(sxe_get_state(served), SXE_STATE_IDLE);
    while (event_count() == 0)
        ev_run(sxe_loop(), EVRUN_ONCE);
    EXPECT("close", served, ETIMEDOUT);
    ck_assert_uint_ge(ms_since_start(), 10000);
    ck_assert_uint_lt(ms_since_start(), 10100);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(f10_a_turn_that_took_long_costs_nobody_its_time)
{
    struct sxe_config config = {.timeout_ms[SXE_STATE_IDLE] = 10000};
    SXE *served;
    int peer;

    start(10, &config);
    served = accept_peer(listener, &peer);
    wait_ms(1000);
    fake_time_advance(20000 * MS);
    peer_send(peer, "late", 4);
    EXPECT_READ(served, "late");
    wait_ms(9000);
    ck_assert_int_eq(sxe_get_state(served), SXE_STATE_IDLE);
    close(peer);
    EXPECT("close", served, 0);
    plan_stop();
}
END_TEST

static Suite *
faults_suite(void)
{
    Suite *suite = suite_create("sxe faults");
    TCase *accepting = tcase_create("accepting");
    TCase *reading = tcase_create("reading");
    TCase *loop = tcase_create("loop");

    tcase_add_loop_test(accepting, f3_without_descriptors_accept_is_tried_ten_times_a_second, 0, 4);
    tcase_add_loop_test(accepting, f3_others_are_served_meanwhile, 0, 4);
    tcase_add_loop_test(accepting, f3_a_descriptor_of_ours_that_comes_free_is_used_at_once, 0, 4);
    tcase_add_test(accepting, f3_two_listeners_rest_together);
    tcase_add_loop_test(accepting, f4_the_next_connection_is_served, 0, 10);
    tcase_add_test(accepting, without_a_free_socket_listeners_rest_until_one_is);
    tcase_add_loop_test(accepting, reap_idle_closes_the_longest_idle, 0, 2);
    tcase_add_test(accepting, reap_idle_waits_for_one_to_become_idle);
    tcase_add_test(reading, f5_bytes_that_come_one_by_one_are_the_same_bytes);
    tcase_add_test(reading, f5_an_interrupted_read_is_repeated);
    tcase_add_test(reading, f5_a_spurious_event_is_nothing);
    tcase_add_loop_test(reading, f5_a_failed_read_closes_with_its_error, 0, 4);
    tcase_add_loop_test(loop, f7_a_connection_that_epoll_refuses_is_closed_and_the_next_is_served,
                        0, 3);
    tcase_add_test(loop, f7_connecting_and_listening_may_be_tried_again);
    tcase_add_test(loop, f7_a_listener_that_epoll_refuses_to_rest_is_closed);
    tcase_add_loop_test(loop, f7_waiting_that_fails_loses_no_event, 0, 10);
    tcase_add_loop_test(loop, f10_the_wall_clock_moves_no_timeout, 0, 5);
    tcase_add_test(loop, f10_a_turn_that_took_long_costs_nobody_its_time);
    suite_add_tcase(suite, accepting);
    suite_add_tcase(suite, reading);
    suite_add_tcase(suite, loop);
    return suite;
}

int
main(void)
{
    return sxe_test_main(faults_suite());
}
