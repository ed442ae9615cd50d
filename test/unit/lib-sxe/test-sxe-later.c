/* SPDX-License-Identifier: MIT
 *
 * Tests deferred calls, timers and signals.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "test-main.h"

#define SECOND ((int64_t)SXE_NS_PER_SECOND)
#define HOUR   (3600 * SECOND)

/* ---- Deferred calls ---- */

static SXE *
open_socket(void)
{
    SXE *s = sxe_new_udp(NULL, "127.0.0.1", 0, push_read);

    ck_assert_int_eq(sxe_listen(s), 0);
    return s;
}

START_TEST(a_deferred_call_is_made_once_before_the_loop_waits)
{
    plan_start(1);
    SXE *s = open_socket();

    ck_assert_int_eq(sxe_defer(s, push_deferred), 0);
    ck_assert_uint_eq(event_count(), 0);
    ck_assert_int_eq(sxe_defer(s, push_deferred), -EBUSY);
    turn(1);
    ck_assert_uint_eq(event_count(), 1);
    EXPECT("deferred", s, 0);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_defer(s, push_deferred), 0);
    turn(1);
    EXPECT("deferred", s, 0);
    plan_stop();
}
END_TEST

#define MANY 1000

static unsigned calls[MANY + 1];

static void
count_call(SXE *s)
{
    calls[SXE_ID(s)]++;
}

START_TEST(a_thousand_deferred_calls_are_all_made_in_one_turn)
{
    static SXE *sockets[MANY];

    plan_start(MANY);
    for (unsigned i = 0; i < MANY; i++)
        sockets[i] = open_socket();
    for (unsigned round = 1; round < 4; round++) {
        for (unsigned i = 0; i < MANY; i++)
            ck_assert_int_eq(sxe_defer(sockets[i], count_call), 0);
        turn(1);
        for (unsigned i = 0; i < MANY; i++)
            ck_assert_uint_eq(calls[i], round);
    }
    turn(3);
    ck_assert_uint_eq(calls[0], 3);
    plan_stop();
}
END_TEST

START_TEST(deferred_calls_are_made_in_order)
{
    SXE *s[3];

    plan_start(3);
    for (unsigned i = 0; i < 3; i++)
        s[i] = open_socket();
    const unsigned order[] = {1, 2, 0};
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(sxe_defer(s[order[i]], push_deferred), 0);
    for (unsigned i = 0; i < 3; i++)
        EXPECT("deferred", s[order[i]], 0);
    plan_stop();
}
END_TEST

static void
defer_again(SXE *s)
{
    push_deferred(s);
    if (event_count() < 10)
        ck_assert_int_eq(sxe_defer(s, defer_again), 0);
}

/* If the loop waited in between, the virtual clock would go on by nearly a minute. */
START_TEST(a_call_deferred_inside_a_deferred_call_is_made_without_waiting)
{
    uint64_t start;

    fake_time_start(HOUR, HOUR);
    plan_start(1);
    SXE *s = open_socket();
    start = sxe_time_ns();
    ck_assert_int_eq(sxe_defer(s, defer_again), 0);
    for (unsigned i = 1; i < 10; i++) {
        ev_run(sxe_loop(), EVRUN_ONCE);
        ck_assert_uint_eq(event_count(), i);
    }
    ck_assert_uint_lt(sxe_time_ns() - start, SXE_NS_PER_SECOND);
    turn(1);
    ck_assert_uint_eq(event_count(), 10);
    event_reset();
    plan_stop();
}
END_TEST

static SXE *other;

static void
defer_other(SXE *s)
{
    push_deferred(s);
    ck_assert_int_eq(sxe_defer(other, push_deferred), 0);
}

START_TEST(a_deferred_call_may_defer_one_of_another_socket)
{
    plan_start(2);
    SXE *s = open_socket();

    other = open_socket();
    ck_assert_int_eq(sxe_defer(s, defer_other), 0);
    EXPECT("deferred", s, 0);
    EXPECT("deferred", other, 0);
    plan_stop();
}
END_TEST

static void
abort_other(SXE *s)
{
    push_deferred(s);
    ck_assert_int_eq(sxe_abort(other), 0);
}

START_TEST(a_deferred_call_is_not_made_when_the_socket_closes_first)
{
    SXE *s[3];

    plan_start(3);
    for (unsigned i = 0; i < 3; i++) {
        s[i] = open_socket();
        ck_assert_int_eq(sxe_defer(s[i], push_deferred), 0);
    }
    ck_assert_int_eq(sxe_close(s[_i]), 0);
    for (int i = 0; i < 3; i++)
        if (i != _i)
            EXPECT("deferred", s[i], 0);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

START_TEST(a_deferred_call_may_close_a_socket_whose_call_is_due)
{
    plan_start(2);
    SXE *s = open_socket();

    other = open_socket();
    ck_assert_int_eq(sxe_defer(s, abort_other), 0);
    ck_assert_int_eq(sxe_defer(other, push_deferred), 0);
    EXPECT("deferred", s, 0);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

START_TEST(only_an_open_socket_defers)
{
    plan_start(2);
    SXE *s = sxe_new_tcp(NULL, "127.0.0.1", 0, NULL, NULL, NULL);

    ck_assert_int_eq(sxe_defer(s, push_deferred), -ENOTCONN);
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_int_eq(sxe_defer(s, push_deferred), -ENOTCONN);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_defer(s, push_deferred), -ENOTCONN);
    plan_stop();
}
END_TEST

static void
write_hello(SXE *s)
{
    push_deferred(s);
    sxe_write(s, "hello", 5);
}

START_TEST(what_a_deferred_call_writes_goes_out_in_the_same_turn)
{
    char got[5];
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read), &peer);
    ck_assert_int_eq(sxe_defer(s, write_hello), 0);
    turn(1);
    EXPECT("deferred", s, 0);
    ck_assert_int_eq(recv(peer, got, 5, MSG_DONTWAIT), 5);
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

/* A oneshot listener becomes the connection; it is the same socket, so its deferred call stays. */
START_TEST(a_call_deferred_for_a_oneshot_listener_survives_the_accept)
{
    int peer;

    plan_start(1);
    SXE *s = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_listen_oneshot(s), 0);
    peer = peer_connect(sxe_local_port(s));
    ck_assert_int_eq(sxe_defer(s, push_deferred), 0);
    turn(3);
    EXPECT("deferred", s, 0);
    EXPECT("connected", s, 0);
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

/* ---- Timers ---- */

static struct sxe_timer timer;
static uint64_t began;

static void
start_timer(double after, double repeat)
{
    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    plan_start(1);
    sxe_timer_init(&timer, push_timer, after, repeat);
    timer.user = &timer;
    began = sxe_time_ns();
    sxe_timer_start(&timer);
}

/* Run until the timer fires, which must be at most 2 ms later than this. */
static void
expect_timer_at(double seconds)
{
    double elapsed;

    for (unsigned i = 0; event_count() == 0 && i < 10000; i++)
        ev_run(sxe_loop(), EVRUN_ONCE);
    EXPECT("timer", &timer, 0);
    elapsed = (double)(sxe_time_ns() - began) / (double)SXE_NS_PER_SECOND;
    ck_assert_double_ge(elapsed, seconds);
    ck_assert_double_le(elapsed, seconds + 0.003);
}

START_TEST(a_timer_fires_after_its_time_and_once)
{
    const double after[] = {0, 0.0001, 0.001, 0.5, 1, 59, 61, 3600, 86400};

    start_timer(after[_i], 0);
    expect_timer_at(after[_i]);
    for (unsigned i = 0; i < 10; i++)
        ev_run(sxe_loop(), EVRUN_NOWAIT);
    ck_assert_uint_eq(event_count(), 0);
    plan_stop();
}
END_TEST

START_TEST(a_time_that_is_none_is_0)
{
    const double none[] = {NAN, -1, -INFINITY};

    start_timer(none[_i], none[_i]);
    expect_timer_at(0);
    for (unsigned i = 0; i < 10; i++)
        ev_run(sxe_loop(), EVRUN_NOWAIT);
    ck_assert_uint_eq(event_count(), 0);
    plan_stop();
}
END_TEST

START_TEST(a_timer_repeats_until_it_is_stopped)
{
    start_timer(5, 10);
    expect_timer_at(5);
    expect_timer_at(15);
    expect_timer_at(25);
    sxe_timer_stop(&timer);
    sxe_timer_stop(&timer);
    fake_time_advance(HOUR);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

START_TEST(a_timer_started_again_begins_anew)
{
    start_timer(10, _i == 0 ? 0 : 7);
    expect_timer_at(10);
    sxe_timer_stop(&timer);
    fake_time_advance(5 * SECOND);
    began = sxe_time_ns();
    sxe_timer_start(&timer);
    expect_timer_at(10);
    sxe_timer_stop(&timer);
    began = sxe_time_ns();
    sxe_timer_start(&timer);
    fake_time_advance(9 * SECOND);
    EXPECT_NOTHING();
    sxe_timer_start(&timer);
    expect_timer_at(10);
    sxe_timer_stop(&timer);
    plan_stop();
}
END_TEST

static void
work_long_then_start(SXE *s)
{
    push_deferred(s);
    fake_time_advance(5 * SECOND);
    began = sxe_time_ns();
    sxe_timer_init(&timer, push_timer, 2, 0);
    timer.user = &timer;
    sxe_timer_start(&timer);
}

START_TEST(a_timer_started_late_in_a_long_turn_does_not_fire_early)
{
    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    plan_start(1);
    SXE *s = open_socket();

    ck_assert_int_eq(sxe_defer(s, work_long_then_start), 0);
    turn(1);
    EXPECT("deferred", s, 0);
    expect_timer_at(2);
    plan_stop();
}
END_TEST

START_TEST(stepping_the_wall_clock_fires_no_timer)
{
    const int64_t steps[] = {HOUR, -HOUR, 1000 * HOUR, -250 * HOUR};

    start_timer(60, 0);
    for (unsigned i = 0; i < 20; i++) {
        fake_time_step_wall(steps[_i] / 10);
        turn(1);
        ck_assert_uint_eq(event_count(), 0);
    }
    expect_timer_at(60);
    plan_stop();
}
END_TEST

static void
restart(struct sxe_timer *fired)
{
    push_timer(fired);
    sxe_timer_start(fired);
}

START_TEST(a_timer_may_start_itself_again)
{
    start_timer(3, 0);
    timer.on_timer = restart;
    expect_timer_at(3);
    began = sxe_time_ns();
    expect_timer_at(3);
    sxe_timer_stop(&timer);
    plan_stop();
}
END_TEST

START_TEST(run_waits_for_timers)
{
    start_timer(3600, 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(event_count(), 1);
    expect_timer_at(3600);
    plan_stop();
}
END_TEST

/* ---- Signals ---- */

static struct sxe_signal watches[2];

static void
push_signal(struct sxe_signal *watch)
{
    event_push("signal", watch->user, 0);
}

static void
start_signals(void)
{
    plan_start(2);
    for (unsigned i = 0; i < 2; i++) {
        watches[i].user = &watches[i];
        sxe_signal_start(&watches[i], i == 0 ? SIGUSR1 : SIGUSR2, push_signal);
    }
}

START_TEST(a_signal_comes_through_the_loop)
{
    start_signals();
    for (unsigned i = 0; i < 4; i++) {
        raise(i % 2 == 0 ? SIGUSR1 : SIGUSR2);
        ck_assert_uint_eq(event_count(), 0);
        EXPECT("signal", &watches[i % 2], 0);
        EXPECT_NOTHING();
    }
    sxe_signal_stop(&watches[0]);
    sxe_signal_stop(&watches[1]);
    plan_stop();
}
END_TEST

START_TEST(a_stopped_signal_is_as_before)
{
    struct sigaction now;

    start_signals();
    for (unsigned i = 0; i < 3; i++) {
        sxe_signal_stop(&watches[0]);
        sxe_signal_stop(&watches[0]);
        ck_assert_int_eq(sigaction(SIGUSR1, NULL, &now), 0);
        ck_assert(now.sa_handler == SIG_DFL);
        sxe_signal_start(&watches[0], SIGUSR1, push_signal);
        raise(SIGUSR1);
        EXPECT("signal", &watches[0], 0);
    }
    sxe_signal_stop(&watches[0]);
    sxe_signal_stop(&watches[1]);
    plan_stop();
}
END_TEST

static void
handle_otherwise(int number)
{
    (void)number;
}

/* Two watches of one signal, which was ignored or had a handler: stopped by hand, or by
 * sxe_fini. */
START_TEST(the_last_watch_of_a_signal_restores_its_action)
{
    struct sigaction action = {.sa_handler = _i % 2 == 0 ? SIG_IGN : handle_otherwise,
                               .sa_flags = SA_RESTART};
    struct sxe_signal second = {.user = NULL};
    struct sigaction now;

    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    start_signals();
    sxe_signal_start(&second, SIGUSR1, push_signal);
    if (_i < 2) {
        sxe_signal_stop(&watches[0]);
        raise(SIGUSR1);
        EXPECT("signal", NULL, 0);
        sxe_signal_stop(&second);
        sxe_signal_stop(&watches[1]);
    } else {
        plan_stop();
    }
    ck_assert_int_eq(sigaction(SIGUSR1, NULL, &now), 0);
    ck_assert(now.sa_handler == action.sa_handler);
    ck_assert_int_eq(now.sa_flags & SA_RESTART, SA_RESTART);
    raise(SIGUSR1);
    if (_i < 2)
        plan_stop();
    signal(SIGUSR1, SIG_DFL);
}
END_TEST

START_TEST(signals_do_not_keep_the_loop_running)
{
    start_signals();
    ck_assert_int_eq(sxe_run(), 0);
    sxe_signal_stop(&watches[0]);
    ck_assert_int_eq(sxe_run(), 0);
    sxe_signal_stop(&watches[1]);
    ck_assert_int_eq(sxe_run(), 0);
    plan_stop();
}
END_TEST

static void
stop_the_other(struct sxe_timer *fired)
{
    push_timer(fired);
    sxe_timer_stop(fired->user);
}

/* libev stops both timers of a turn before it calls the first callback. */
START_TEST(a_timer_that_is_due_can_still_be_stopped)
{
    struct sxe_timer both[2];

    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    plan_start(1);
    for (unsigned i = 0; i < 2; i++) {
        sxe_timer_init(&both[i], stop_the_other, 1, 0);
        both[i].user = &both[1 - i];
        sxe_timer_start(&both[i]);
    }
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(event_count(), 1);
    event_pop();
    plan_stop();
}
END_TEST

static void
start_the_other_if_first(struct sxe_timer *fired)
{
    if (event_count() == 0)
        sxe_timer_start(fired->user);
    push_timer(fired);
}

START_TEST(a_timer_that_is_due_runs_already)
{
    struct sxe_timer both[2];

    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    plan_start(1);
    for (unsigned i = 0; i < 2; i++) {
        sxe_timer_init(&both[i], start_the_other_if_first, 1, 0);
        both[i].user = &both[1 - i];
        sxe_timer_start(&both[i]);
    }
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(event_count(), 2);
    event_pop();
    event_pop();
    plan_stop();
}
END_TEST

/* libev's default loop goes on after sxe_fini, and so would its timers and signals. */
START_TEST(fini_stops_timers_and_signals)
{
    struct sxe_timer hourly;
    struct sigaction now;

    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    start_signals();
    sxe_timer_init(&hourly, push_timer, 3600, 3600);
    sxe_timer_start(&hourly);
    sxe_timer_init(&timer, push_timer, 1, 0);
    sxe_timer_start(&timer);
    plan_stop();
    ck_assert_int_eq(sigaction(SIGUSR1, NULL, &now), 0);
    ck_assert(now.sa_handler == SIG_DFL);
    sxe_timer_stop(&hourly);
    sxe_signal_stop(&watches[0]);
    plan_start(1);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(event_count(), 0);
    sxe_timer_start(&timer);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(event_count(), 1);
    event_pop();
    plan_stop();
}
END_TEST

static SXE *connection;

static void
say_so(struct sxe_signal *watch)
{
    push_signal(watch);
    sxe_write(connection, "signal", 6);
    sxe_close(connection);
}

START_TEST(a_signal_may_write_and_close)
{
    int peer;

    start_signals();
    sxe_signal_stop(&watches[0]);
    sxe_signal_start(&watches[0], SIGUSR1, say_so);
    connection = accept_peer(listen_tcp(push_read), &peer);
    raise(SIGUSR1);
    EXPECT("signal", &watches[0], 0);
    EXPECT("close", connection, 0);
    PEER_EXPECT(peer, "signal");
    PEER_EXPECT_END(peer);
    close(peer);
    sxe_signal_stop(&watches[0]);
    sxe_signal_stop(&watches[1]);
    plan_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-later");
    TCase *deferred = tcase_create("deferred");
    TCase *timers = tcase_create("timers");
    TCase *signals = tcase_create("signals");

    tcase_add_test(deferred, a_deferred_call_is_made_once_before_the_loop_waits);
    tcase_add_test(deferred, a_thousand_deferred_calls_are_all_made_in_one_turn);
    tcase_add_test(deferred, deferred_calls_are_made_in_order);
    tcase_add_test(deferred, a_call_deferred_inside_a_deferred_call_is_made_without_waiting);
    tcase_add_test(deferred, a_deferred_call_may_defer_one_of_another_socket);
    tcase_add_loop_test(deferred, a_deferred_call_is_not_made_when_the_socket_closes_first, 0, 3);
    tcase_add_test(deferred, a_deferred_call_may_close_a_socket_whose_call_is_due);
    tcase_add_test(deferred, only_an_open_socket_defers);
    tcase_add_test(deferred, what_a_deferred_call_writes_goes_out_in_the_same_turn);
    tcase_add_test(deferred, a_call_deferred_for_a_oneshot_listener_survives_the_accept);
    suite_add_tcase(suite, deferred);
    tcase_add_loop_test(timers, a_timer_fires_after_its_time_and_once, 0, 9);
    tcase_add_loop_test(timers, a_time_that_is_none_is_0, 0, 3);
    tcase_add_test(timers, a_timer_repeats_until_it_is_stopped);
    tcase_add_loop_test(timers, a_timer_started_again_begins_anew, 0, 2);
    tcase_add_test(timers, a_timer_started_late_in_a_long_turn_does_not_fire_early);
    tcase_add_loop_test(timers, stepping_the_wall_clock_fires_no_timer, 0, 4);
    tcase_add_test(timers, a_timer_may_start_itself_again);
    tcase_add_test(timers, run_waits_for_timers);
    suite_add_tcase(suite, timers);
    tcase_add_test(signals, a_signal_comes_through_the_loop);
    tcase_add_test(signals, a_stopped_signal_is_as_before);
    tcase_add_loop_test(signals, the_last_watch_of_a_signal_restores_its_action, 0, 4);
    tcase_add_test(signals, signals_do_not_keep_the_loop_running);
    tcase_add_test(signals, a_timer_that_is_due_can_still_be_stopped);
    tcase_add_test(signals, a_timer_that_is_due_runs_already);
    tcase_add_test(signals, fini_stops_timers_and_signals);
    tcase_add_test(signals, a_signal_may_write_and_close);
    suite_add_tcase(suite, signals);
    return sxe_test_main(suite);
}
