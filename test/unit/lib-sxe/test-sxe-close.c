/* SPDX-License-Identifier: MIT
 *
 * Tests closing a socket: in each way, from each place, and more than once.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"
#include "test-main.h"

/* ---- Three ways to close, in six places ---- */

enum way { CLOSE, LINGER, ABORT, WAYS };
enum place { CONNECTED, READ, SENT, DEFERRED, TIMER, IN_CLOSE, PLACES };

static enum way the_way;
static enum place the_place;

static SXE_RETURN
end(SXE *s, enum way way)
{
    return way == CLOSE ? sxe_close(s) : way == LINGER ? sxe_close_lingering(s) : sxe_abort(s);
}

/* Close here, twice: that is harmless, and later calls with the closed socket do nothing. */
static void
end_if_here(SXE *s, enum place here)
{
    if (the_place != here)
        return;
    if (here != IN_CLOSE)
        ck_assert_int_eq(end(s, the_way), 0);
    ck_assert_int_eq(sxe_close(s), -EALREADY);
    ck_assert_int_eq(sxe_close_lingering(s), -EALREADY);
    ck_assert_int_eq(sxe_write(s, "x", 1), -ENOTCONN);
    ck_assert_int_eq(sxe_defer(s, push_deferred), -ENOTCONN);
    SXE_BUF_CLEAR(s);
    sxe_pause(s);
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
    ck_assert_ptr_eq(sxe_from_handle(sxe_handle(s)), s);
}

static void
connected(SXE *s)
{
    push_connected(s);
    end_if_here(s, CONNECTED);
}

static void
sent(SXE *s, int result)
{
    push_sent(s, result);
    end_if_here(s, SENT);
}

static void
deferred(SXE *s)
{
    push_deferred(s);
    end_if_here(s, DEFERRED);
}

static void
closed(SXE *s)
{
    push_close(s);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_CLOSED);
    end_if_here(s, IN_CLOSE);
    ck_assert_int_eq(sxe_abort(s), -EALREADY);
}

static void
timer_fired(struct sxe_timer *timer)
{
    push_timer(timer);
    end_if_here(timer->user, TIMER);
}

static void
read_some(SXE *s, int length)
{
    static struct sxe_timer timer;

    push_read_keep(s, length);
    if (the_place == SENT)
        sxe_send(s, "bye", 3, sent);
    if (the_place == DEFERRED)
        sxe_defer(s, deferred);
    if (the_place == TIMER) {
        sxe_timer_init(&timer, timer_fired, 0, 0);
        timer.user = s;
        sxe_timer_start(&timer);
    }
    end_if_here(s, READ);
}

START_TEST(closing_works_everywhere_and_on_close_comes_once)
{
    static const char *const events[PLACES] = {
        [SENT] = "sent", [DEFERRED] = "deferred", [TIMER] = "timer"};
    int peer;

    the_place = (enum place)(_i / WAYS);
    the_way = (enum way)(_i % WAYS);
    plan_start(3);
    SXE *listener = sxe_new_tcp(NULL, "127.0.0.1", 0, connected, read_some, closed);
    ck_assert_int_eq(sxe_listen(listener), 0);
    SXE *s = accept_peer(listener, &peer);
    unsigned closes = fake_os_calls(FAKE_CLOSE);
    if (the_place != CONNECTED) {
        peer_send(peer, "bytes", 5);
        EXPECT_READ(s, "bytes");
    }
    if (events[the_place] != NULL)
        EXPECT(events[the_place], s, 0);
    if (the_place == IN_CLOSE || the_way == LINGER)
        peer_shutdown(peer);
    EXPECT("close", s, the_place != IN_CLOSE && the_way == ABORT ? ECONNABORTED : 0);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_FREE);
    if (the_place != CONNECTED)
        ck_assert_uint_eq(fake_os_calls(FAKE_CLOSE), closes + 1);
    ck_assert_int_eq(sxe_close(s), -EALREADY);
    ck_assert_int_eq(sxe_abort(s), -EALREADY);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(closing_outside_of_events_works_too)
{
    int peer;

    plan_start(3);
    SXE *s = accept_peer(listen_tcp(push_read), &peer);
    ck_assert_int_eq(end(s, (enum way)_i), 0);
    ck_assert_uint_eq(event_count(), 0);
    ck_assert_int_eq(sxe_close(s), -EALREADY);
    if (_i == LINGER)
        peer_shutdown(peer);
    EXPECT("close", s, _i == ABORT ? ECONNABORTED : 0);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(a_socket_without_a_peer_has_no_on_close)
{
    plan_start(1);
    for (unsigned listening = 0; listening < 2; listening++) {
        SXE *s = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);

        if (listening)
            ck_assert_int_eq(sxe_listen(s), 0);
        ck_assert_int_eq(end(s, (enum way)_i), 0);
        ck_assert_int_eq(sxe_close(s), -EALREADY);
        EXPECT_NOTHING();
        ck_assert_int_eq(sxe_get_state(s), SXE_STATE_FREE);
    }
    plan_stop();
}
END_TEST

START_TEST(closing_nothing_is_harmless)
{
    ck_assert_int_eq(sxe_close(NULL), -EALREADY);
    ck_assert_int_eq(sxe_close_lingering(NULL), -EALREADY);
    ck_assert_int_eq(sxe_abort(NULL), -EALREADY);
}
END_TEST

/* ---- Sockets and buffers that stay until the event ends ---- */

static void
close_then_look(SXE *s, int length)
{
    sxe_close(s);
    ck_assert_int_eq(SXE_BUF_USED(s), length);
    ck_assert_mem_eq(SXE_BUF(s), "bytes", 5);
    ck_assert_str_eq(sxe_peer_ip(s), "127.0.0.1");
    SXE_BUF_CLEAR(s);
    ck_assert_int_eq(SXE_BUF_USED(s), 0);
    push_read(s, length);
}

START_TEST(a_closed_socket_and_its_buffer_stay_until_the_event_ends)
{
    int peer;

    plan_start(3);
    SXE *s = accept_peer(listen_tcp(close_then_look), &peer);
    peer_send(peer, "bytes", 5);
    EXPECT("read", s, 5);
    EXPECT("close", s, 0);
    close(peer);
    plan_stop();
}
END_TEST

static void
look_at_the_end(SXE *s)
{
    ck_assert_int_eq(SXE_BUF_USED(s), 5);
    ck_assert_mem_eq(SXE_BUF(s), "bytes", 5);
    ck_assert_str_eq(sxe_peer_ip(s), "127.0.0.1");
    push_close(s);
}

START_TEST(on_close_can_look_at_what_was_unread)
{
    int peer;

    plan_start(3);
    SXE *listener = listen_tcp(push_read_keep);
    listener->on_close = look_at_the_end;
    SXE *s = accept_peer(listener, &peer);
    peer_send(peer, "bytes", 5);
    EXPECT_READ(s, "bytes");
    peer_shutdown(peer);
    EXPECT("close", s, 0);
    close(peer);
    plan_stop();
}
END_TEST

/* ---- Callbacks that close other sockets ---- */

#define CROWD 50

static SXE *crowd[CROWD];

static void
close_all(SXE *s, int length)
{
    push_read(s, length);
    for (unsigned i = 0; i < CROWD; i++)
        end(crowd[i], the_way);
}

/* All sockets of the crowd become readable in the same turn. */
START_TEST(the_first_of_a_crowd_closes_all_and_no_other_reads)
{
    int peers[CROWD];

    the_way = (enum way)_i;
    plan_start(CROWD + 1);
    SXE *listener = listen_tcp(close_all);
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = accept_peer(listener, &peers[i]);
    for (unsigned i = 0; i < CROWD; i++)
        peer_send(peers[i], "x", 1);
    EXPECT("read", NULL, 1);
    for (unsigned i = 0; i < CROWD && the_way == LINGER; i++)
        close(peers[i]);
    for (unsigned i = 0; i < CROWD; i++)
        EXPECT("close", NULL, the_way == ABORT ? ECONNABORTED : 0);
    EXPECT_NOTHING();
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), CROWD);
    for (unsigned i = 0; i < CROWD && the_way != LINGER; i++)
        close(peers[i]);
    plan_stop();
}
END_TEST

static SXE *newcomer;
static unsigned short newcomer_port;

static void
replace(SXE *s)
{
    push_close(s);
    if (newcomer != NULL)
        return;
    newcomer = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_connect(newcomer, "127.0.0.1", newcomer_port), 0);
}

/* The new socket may get the descriptor of the closed one; what epoll reported for the old socket
 * must not reach the new one. */
START_TEST(on_close_may_make_a_socket_and_that_gets_no_event_of_the_old_one)
{
    int peers[2];

    newcomer = NULL;
    plan_start(4);
    int raw = peer_listen(&newcomer_port);
    SXE *listener = listen_tcp(push_read);
    listener->on_close = replace;
    for (unsigned i = 0; i < 2; i++)
        crowd[i] = accept_peer(listener, &peers[i]);
    peer_shutdown(peers[0]);
    peer_shutdown(peers[1]);
    EXPECT("close", NULL, 0);
    EXPECT("close", NULL, 0);
    EXPECT("connected", newcomer, 0);
    EXPECT_NOTHING();
    close(raw);
    EXPECT("close", newcomer, ECONNRESET);
    close(peers[0]);
    close(peers[1]);
    plan_stop();
}
END_TEST

static void
say_goodbye(SXE *s, int result)
{
    push_sent(s, result);
    ck_assert_int_eq(sxe_write(s, "goodbye", 7), 0);
    ck_assert_int_eq(end(s, the_way), 0);
}

START_TEST(what_on_sent_writes_before_it_closes_is_sent)
{
    int peer;

    the_way = (enum way)_i;
    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read), &peer);
    ck_assert_int_eq(sxe_send(s, "hello ", 6, say_goodbye), 0);
    PEER_EXPECT(peer, "hello goodbye");
    PEER_EXPECT_END(peer);
    EXPECT("sent", s, 0);
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

/* ---- A callback that ends the process ---- */

static void
leave(SXE *s, int length)
{
    (void)s;
    exit(length);
}

START_TEST(a_callback_may_exit)
{
    int peer;

    plan_start(2);
    accept_peer(listen_tcp(leave), &peer);
    peer_send(peer, "12345", 5);
    pump();
}
END_TEST

static void
stop(SXE *s)
{
    push_close(s);
    sxe_stop();
}

static void
pause_after_close(SXE *s)
{
    push_close(s);
    sxe_pause(s);
}

static void
close_now(SXE *s, int length)
{
    push_read(s, length);
    ck_assert_int_eq(sxe_close(s), 0);
}

static void
close_and_pause(SXE *s, int length)
{
    close_now(s, length);
    sxe_pause(s);
}

/* A deferred call would otherwise show the end of this peer for a free socket, or for another
 * connection. */
START_TEST(a_pause_after_the_end_shows_no_end)
{
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read), &peer);

    sxe_watch_end(s, true);
    s->on_read = _i == 0 ? close_now : close_and_pause;
    if (_i == 0)
        s->on_close = pause_after_close;
    peer_send(peer, "hello", 5);
    peer_shutdown(peer);
    EXPECT("read", s, 5);
    EXPECT("close", s, 0);
    EXPECT_NOTHING();
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(on_close_may_stop_the_loop)
{
    int peer;

    plan_start(2);
    SXE *listener = listen_tcp(push_read);
    listener->on_close = stop;
    SXE *s = accept_peer(listener, &peer);
    close(peer);
    ck_assert_int_eq(sxe_run(), 0);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-close");
    TCase *closing = tcase_create("closing");

    tcase_add_loop_test(closing, closing_works_everywhere_and_on_close_comes_once, 0,
                        PLACES * WAYS);
    tcase_add_loop_test(closing, closing_outside_of_events_works_too, 0, WAYS);
    tcase_add_loop_test(closing, a_socket_without_a_peer_has_no_on_close, 0, WAYS);
    tcase_add_test(closing, closing_nothing_is_harmless);
    tcase_add_test(closing, a_closed_socket_and_its_buffer_stay_until_the_event_ends);
    tcase_add_test(closing, on_close_can_look_at_what_was_unread);
    tcase_add_loop_test(closing, the_first_of_a_crowd_closes_all_and_no_other_reads, 0, WAYS);
    tcase_add_test(closing, on_close_may_make_a_socket_and_that_gets_no_event_of_the_old_one);
    tcase_add_loop_test(closing, what_on_sent_writes_before_it_closes_is_sent, 0, 2);
    tcase_add_exit_test(closing, a_callback_may_exit, 5);
    tcase_add_loop_test(closing, a_pause_after_the_end_shows_no_end, 0, 2);
    tcase_add_test(closing, on_close_may_stop_the_loop);
    suite_add_tcase(suite, closing);
    return sxe_test_main(suite);
}
