/* SPDX-License-Identifier: MIT
 *
 * The ticker, which wakes the loop at a chosen time.
 */
#include "ticker.h"

#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "sxe-time.h"
#include "test-main.h"

#define US(n)    ((uint64_t)(n)*1000)
#define BEGIN_NS UINT64_C(5000000000)

static struct load_ticker ticker;
static uint64_t ask_next_ns;
static uint64_t ask_last_ns;
static SXE *written;
static ev_prepare turn_ends;

static void
on_tick(struct load_ticker *this, uint64_t asked_ns)
{
    ck_assert_ptr_eq(this->user, &ask_next_ns);
    event_push("tick", this, (long)(asked_ns - BEGIN_NS));
    event_push("now", this, (long)(sxe_time_ns() - BEGIN_NS));
    if (ask_next_ns > 0)
        load_ticker_at(this, ask_next_ns);
    ask_next_ns = ask_last_ns;
    ask_last_ns = 0;
    if (written != NULL)
        sxe_write(written, "tick", 4);
}

/* A worker calls the ticker like this at the end of each turn. */
static void
on_turn_ends(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    load_ticker_arm(&ticker, sxe_time_ns());
}

static void
begin(void)
{
    fake_time_start(BEGIN_NS, BEGIN_NS);
    fake_time_poll_ns = US(1);
    plan_start(4);
    load_ticker_open(&ticker, on_tick, &ask_next_ns);
    ev_prepare_init(&turn_ends, on_turn_ends);
    ev_set_priority(&turn_ends, EV_MINPRI);
    ev_prepare_start(sxe_loop(), &turn_ends);
    ev_unref(sxe_loop());
}

static void
end(void)
{
    ev_ref(sxe_loop());
    ev_prepare_stop(sxe_loop(), &turn_ends);
    load_ticker_close(&ticker);
    plan_stop();
}

static void
expect_tick(uint64_t asked_ns, uint64_t now_ns)
{
    EXPECT("tick", &ticker, (long)asked_ns);
    EXPECT("now", &ticker, (long)now_ns);
}

START_TEST(it_ticks_to_the_nanosecond)
{
    begin();
    load_ticker_at(&ticker, BEGIN_NS + US(700) + 13);
    ck_assert_uint_eq(ticker.asked_ns, BEGIN_NS + US(700) + 13);
    expect_tick(US(700) + 13, US(700) + 13);
    EXPECT_NOTHING();
    ck_assert_uint_eq(ticker.asked_ns, LOAD_NEVER);
    end();
}
END_TEST

START_TEST(the_earliest_time_counts)
{
    begin();
    load_ticker_at(&ticker, BEGIN_NS + US(300));
    load_ticker_at(&ticker, BEGIN_NS + US(100));
    load_ticker_at(&ticker, BEGIN_NS + US(200));
    load_ticker_at(&ticker, LOAD_NEVER);
    expect_tick(US(100), US(100));
    EXPECT_NOTHING();
    end();
}
END_TEST

START_TEST(a_tick_may_ask_for_the_next)
{
    begin();
    ask_next_ns = BEGIN_NS + US(150);
    load_ticker_at(&ticker, BEGIN_NS + US(100));
    expect_tick(US(100), US(100));
    expect_tick(US(150), US(150));
    EXPECT_NOTHING();
    end();
}
END_TEST

START_TEST(what_is_over_is_due_now)
{
    begin();
    load_ticker_at(&ticker, _i == 0 ? 0 : BEGIN_NS - 1);
    EXPECT("tick", &ticker, _i == 0 ? 1 - (long)BEGIN_NS : -1);
    EXPECT("now", &ticker, (long)US(1)); /* one turn later */
    end();
}
END_TEST

START_TEST(what_a_tick_writes_is_on_its_way_at_once)
{
    int peer;
    SXE *listener;

    begin();
    listener = listen_tcp(push_read);
    written = accept_peer(listener, &peer);
    load_ticker_at(&ticker, sxe_time_ns() + US(100));
    pump();
    ck_assert_str_eq(event_pop()->name, "tick");
    ck_assert_str_eq(event_pop()->name, "now");
    PEER_EXPECT(peer, "tick");
    close(peer);
    EXPECT("close", written, 0);
    end();
}
END_TEST

/* libev's timers never fire early; they may be late by a millisecond. */
static void
expect_coarse_tick(uint64_t asked_ns)
{
    const struct event *now;
    long now_ns;

    EXPECT("tick", &ticker, (long)asked_ns);
    now = event_pop();
    ck_assert_str_eq(now->name, "now");
    now_ns = now->number;
    ck_assert_int_ge(now_ns, (long)asked_ns);
    ck_assert_int_le(now_ns, (long)(asked_ns + US(2000)));
}

START_TEST(without_a_timerfd_milliseconds_have_to_do)
{
    fake_os_fail(FAKE_TIMERFD_CREATE, 1, 1, EMFILE);
    begin();
    ck_assert_int_eq(ticker.fd, -1);
    ask_next_ns = BEGIN_NS + US(7000);
    load_ticker_at(&ticker, BEGIN_NS + US(3400));
    load_ticker_at(&ticker, BEGIN_NS + US(3300));
    expect_coarse_tick(US(3300));
    expect_coarse_tick(US(7000));
    EXPECT_NOTHING();
    end();
}
END_TEST

START_TEST(where_it_cannot_be_set_milliseconds_have_to_do)
{
    begin();
    ask_next_ns = BEGIN_NS + US(7000);
    fake_os_fail(FAKE_TIMERFD_SETTIME, 1, 1, EINVAL);
    load_ticker_at(&ticker, BEGIN_NS + US(3400));
    load_ticker_at(&ticker, BEGIN_NS + US(3300));
    expect_coarse_tick(US(3300));
    expect_coarse_tick(US(7000));
    EXPECT_NOTHING();
    end();
}
END_TEST

START_TEST(nor_where_it_cannot_be_watched)
{
    begin();
    /* The first two calls are for lib-sxe's own set and for libev's pipe. */
    fake_os_fail(FAKE_EPOLL_CTL, 3, 1, ENOSPC);
    load_ticker_at(&ticker, BEGIN_NS + US(3300));
    expect_coarse_tick(US(3300));
    ck_assert_int_eq(ticker.fd, -1);
    EXPECT_NOTHING();
    end();
}
END_TEST

/* ---- Spinning until a time that is near ---- */

START_TEST(what_is_near_is_spun)
{
    unsigned set;
    unsigned waits;

    begin();
    set = fake_os_calls(FAKE_TIMERFD_SETTIME);
    waits = fake_os_calls(FAKE_EPOLL_WAIT);
    ask_next_ns = BEGIN_NS + US(70);
    load_ticker_at(&ticker, BEGIN_NS + US(30));
    expect_tick(US(30), US(30));
    expect_tick(US(70), US(70));
    ck_assert_uint_eq(fake_os_calls(FAKE_TIMERFD_SETTIME), set);
    ck_assert_uint_ge(fake_os_calls(FAKE_EPOLL_WAIT), waits + 70);
    end();
}
END_TEST

/* The loop sleeps: it wakes up five times, not once for each microsecond. */
START_TEST(what_is_far_is_slept)
{
    unsigned set;
    unsigned waits;

    begin();
    set = fake_os_calls(FAKE_TIMERFD_SETTIME);
    waits = fake_os_calls(FAKE_EPOLL_WAIT);
    ask_next_ns = BEGIN_NS + US(150);
    load_ticker_at(&ticker, BEGIN_NS + US(50));
    expect_tick(US(50), US(50));
    expect_tick(US(150), US(150));
    EXPECT_NOTHING();
    ck_assert_uint_eq(fake_os_calls(FAKE_TIMERFD_SETTIME), set + 3);
    ck_assert_uint_lt(fake_os_calls(FAKE_EPOLL_WAIT), waits + 50);
    ck_assert(!ticker.is_spinning);
    end();
}
END_TEST

START_TEST(only_the_last_word_of_a_turn_is_set)
{
    unsigned set;

    begin();
    set = fake_os_calls(FAKE_TIMERFD_SETTIME);
    load_ticker_at(&ticker, BEGIN_NS + US(300));
    load_ticker_at(&ticker, BEGIN_NS + US(100));
    load_ticker_move(&ticker, BEGIN_NS + US(200));
    pump();
    ck_assert_uint_eq(fake_os_calls(FAKE_TIMERFD_SETTIME), set + 1);
    expect_tick(US(200), US(200));
    end();
}
END_TEST

/* This time is set while the timerfd sleeps until a later one, which then passes while it spins. */
START_TEST(a_time_that_was_set_and_is_over_while_it_spins_does_no_harm)
{
    begin();
    load_ticker_at(&ticker, BEGIN_NS + US(100));
    load_ticker_arm(&ticker, sxe_time_ns());
    ask_next_ns = BEGIN_NS + US(75);
    ask_last_ns = BEGIN_NS + US(110);
    load_ticker_at(&ticker, BEGIN_NS + US(40));
    expect_tick(US(40), US(40));
    expect_tick(US(75), US(75));
    expect_tick(US(110), US(110));
    EXPECT_NOTHING();
    end();
}
END_TEST

START_TEST(it_may_be_told_not_to_tick)
{
    if (_i == 1)
        fake_os_fail(FAKE_TIMERFD_CREATE, 1, 1, EMFILE);
    begin();
    load_ticker_at(&ticker, BEGIN_NS + US(_i == 2 ? 10 : 3000));
    load_ticker_arm(&ticker, sxe_time_ns());
    ck_assert_int_eq(ticker.is_spinning, _i == 2);
    load_ticker_move(&ticker, LOAD_NEVER);
    EXPECT_NOTHING();
    end();
}
END_TEST

START_TEST(it_may_be_closed_while_it_spins)
{
    begin();
    load_ticker_at(&ticker, BEGIN_NS + US(10));
    load_ticker_arm(&ticker, sxe_time_ns());
    ck_assert(ticker.is_spinning);
    end();
    ck_assert(!ticker.is_spinning);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-ticker");
    TCase *t = tcase_create("ticker");

    tcase_add_test(t, it_ticks_to_the_nanosecond);
    tcase_add_test(t, the_earliest_time_counts);
    tcase_add_test(t, a_tick_may_ask_for_the_next);
    tcase_add_loop_test(t, what_is_over_is_due_now, 0, 2);
    tcase_add_test(t, what_a_tick_writes_is_on_its_way_at_once);
    tcase_add_test(t, without_a_timerfd_milliseconds_have_to_do);
    tcase_add_test(t, where_it_cannot_be_set_milliseconds_have_to_do);
    tcase_add_test(t, nor_where_it_cannot_be_watched);
    suite_add_tcase(s, t);
    t = tcase_create("spin");
    tcase_add_test(t, what_is_near_is_spun);
    tcase_add_test(t, what_is_far_is_slept);
    tcase_add_test(t, only_the_last_word_of_a_turn_is_set);
    tcase_add_test(t, a_time_that_was_set_and_is_over_while_it_spins_does_no_harm);
    tcase_add_loop_test(t, it_may_be_told_not_to_tick, 0, 3);
    tcase_add_test(t, it_may_be_closed_while_it_spins);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
