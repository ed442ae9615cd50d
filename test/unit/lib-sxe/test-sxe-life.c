/* SPDX-License-Identifier: MIT
 *
 * Tests the life of a loop: running, stopping, ending, starting again, one loop for each thread.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "sxe-private.h"

#include "sxe-fixture.h"
#include "test-main.h"

static SXE *
new_socket(void)
{
    return sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
}

/* ---- Running and ending ---- */

START_TEST(run_returns_when_nothing_is_left)
{
    plan_start(2);
    ck_assert_int_eq(sxe_run(), 0);
    SXE *listener = listen_tcp(push_read);
    ck_assert_int_eq(sxe_close(listener), 0);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 2);
    plan_stop();
}
END_TEST

START_TEST(a_socket_lingers_while_only_its_peers_end_is_missing)
{
    int peer, fd;
    SXE *s;

    plan_start(4);
    s = accept_peer(listen_tcp(push_read_keep), &peer);
    ck_assert(!sxe_is_lingering(s));
    ck_assert_int_eq(sxe_close_lingering(s), 0);
    while (!sxe_is_lingering(s)) /* until the peer's kernel has acknowledged our end */
        turn(1);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CLOSING), 1);
    ck_assert_uint_eq(sxe_number_waited_for(SXE_STATE_CLOSING), 0);
    fd = s->fd;
    s->fd = -1;
    ck_assert(!sxe_is_lingering(s));
    s->fd = fd;
    peer_send(peer, "more", 4);
    while (sxe_is_lingering(s))
        turn(1);
    turn(3);
    ck_assert(!sxe_is_lingering(s)); /* the bytes were dropped, but more may come */
    ck_assert_uint_eq(sxe_number_waited_for(SXE_STATE_CLOSING), 1);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(an_unref_socket_is_not_waited_for_until_it_closes)
{
    int peer[2];
    SXE *s[2];

    plan_start(4);
    SXE *listener = listen_tcp(push_read_keep);
    for (unsigned i = 0; i < 2; i++)
        s[i] = accept_peer(listener, &peer[i]);
    sxe_unref(NULL);
    sxe_unref(listener);
    sxe_unref(s[0]);
    sxe_unref(s[0]);
    ck_assert_uint_eq(sxe_number_waited_for(SXE_STATE_IDLE), 1);
    sxe_unref(s[1]);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_IDLE), 2);
    ck_assert_uint_eq(sxe_number_waited_for(SXE_STATE_IDLE), 0);
    ck_assert_int_eq(sxe_run(), 0);
    peer_send(peer[0], "seen", 4);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(sxe_close(listener), 0);
    ck_assert_int_eq(sxe_close_lingering(s[0]), 0);
    sxe_unref(s[0]);
    ck_assert_uint_eq(CONTEXT->unref, 1);
    close(peer[0]);
    ck_assert_int_eq(sxe_run(), 0); /* sxe_run returns when it has seen the peer's end */
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 3);
    sxe_unref(s[0]);
    ck_assert_uint_eq(CONTEXT->unref, 1);
    ck_assert_int_eq(sxe_abort(s[1]), 0);
    ck_assert_uint_eq(CONTEXT->unref, 0);
    ck_assert_int_eq(sxe_run(), 0);
    close(peer[1]);
    sxe_unref(new_socket());
    ck_assert_int_eq(sxe_run(), 0);
    event_reset();
    plan_stop();
}
END_TEST

static void
stop_in_timer(struct sxe_timer *timer)
{
    push_timer(timer);
    sxe_stop();
}

START_TEST(stop_stops_and_run_goes_on)
{
    struct sxe_timer timer;

    plan_start(2);
    listen_tcp(push_read);
    sxe_timer_init(&timer, stop_in_timer, 0.001, 0.001);
    timer.user = &timer;
    sxe_timer_start(&timer);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(sxe_run(), 0);
        ck_assert_str_eq(event_pop()->name, "timer");
    }
    sxe_timer_stop(&timer);
    plan_stop();
}
END_TEST

START_TEST(fini_closes_all_without_callbacks)
{
    int peers[2];
    SXE *s[2];
    unsigned short port;
    int raw;

    plan_start(8);
    SXE *listener = listen_tcp(push_read_keep);
    for (unsigned i = 0; i < 2; i++)
        s[i] = accept_peer(listener, &peers[i]);
    peer_send(peers[0], "unread", 6);
    EXPECT_READ(s[0], "unread");
    raw = peer_listen(&port);
    ck_assert_int_eq(sxe_connect(new_socket(), "127.0.0.1", port), 0);
    ck_assert_int_eq(sxe_send(s[0], "staged", 6, push_sent), 0);
    ck_assert_int_eq(sxe_defer(s[0], push_deferred), 0);
    ck_assert_int_eq(sxe_close(s[1]), 0);
    new_socket();
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_uint_eq(event_count(), 0);
    close(raw);
    close(peers[0]);
    close(peers[1]);
    sxe_register(1, 0);
    ck_assert_int_eq(sxe_init(), 0);
    plan_stop();
}
END_TEST

START_TEST(after_fini_everything_begins_anew_on_the_same_loop)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    int peer;

    config.chunk_size = 64;
    plan_start_with(3, &config);
    for (unsigned life = 0; life < 5; life++) {
        SXE *s = accept_peer(listen_tcp(push_read), &peer);

        ck_assert_uint_eq(SXE_ID(s), 1);
        peer_send(peer, "?", 1);
        EXPECT_READ(s, "?");
        ck_assert_int_eq(sxe_fini(), 0);
        ck_assert_int_eq(recv(peer, &(char){0}, 1, MSG_DONTWAIT), 0);
        close(peer);
        ck_assert_int_eq(sxe_run(), -EINVAL);
        sxe_register(2 + life, 0);
        ck_assert_int_eq(sxe_init(), 0);
        ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 2 + life);
    }
    plan_stop();
}
END_TEST

/* ---- Sustained load ---- */

enum { CROWD = 20 };

static SXE *listener;
static SXE *crowd[CROWD];
static int peers[CROWD];
static unsigned reads;

static void
count_read(SXE *s, int length)
{
    reads += (unsigned)length;
    SXE_BUF_CLEAR(s);
}

static void
everybody_sends(void)
{
    for (unsigned i = 0; i < CROWD; i++)
        peer_send(peers[i], "x", 1);
}

/* All peers send in every turn, until the loop polls instead of waiting. */
static void
load(void)
{
    unsigned rounds = 0;

    listener = listen_tcp(count_read);
    reads = 0;
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = accept_peer(listener, &peers[i]);
    for (; !CONTEXT->is_busy && rounds < 1000; rounds++) {
        everybody_sends();
        turn(1);
        ck_assert_uint_eq(reads, (rounds + 1) * CROWD);
    }
    ck_assert(CONTEXT->is_busy);
}

START_TEST(under_sustained_load_everybody_is_read_and_timers_fire)
{
    struct sxe_timer timer = {.user = &timer};

    plan_start(CROWD + 1);
    load();
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 100; i++) {
            reads = 0;
            everybody_sends();
            turn(1);
            ck_assert_uint_eq(reads, CROWD);
        }
        sxe_timer_init(&timer, push_timer, 0.001, 0);
        timer.user = &timer;
        sxe_timer_start(&timer);
        while (event_count() == 0) {
            everybody_sends();
            turn(1);
        }
        EXPECT("timer", &timer, 0);
        EXPECT_NOTHING();
        ck_assert(!CONTEXT->is_busy);
    }
    reads = 0;
    everybody_sends();
    ev_run(sxe_loop(), EVRUN_ONCE);
    ck_assert_uint_eq(reads, CROWD);
    for (unsigned i = 0; i < CROWD; i++) {
        close(peers[i]);
        EXPECT("close", crowd[i], 0);
    }
    plan_stop();
}
END_TEST

START_TEST(after_the_load_the_loop_ends_as_ever)
{
    plan_start(CROWD + 1);
    load();
    for (unsigned i = 0; i < CROWD; i++)
        ck_assert_int_eq(sxe_abort(crowd[i]), 0);
    ck_assert_int_eq(sxe_close(listener), 0);
    if (_i == 0) {
        ck_assert_int_eq(sxe_run(), 0);
        for (unsigned i = 0; i < CROWD; i++)
            EXPECT("close", NULL, ECONNABORTED);
    }
    for (unsigned i = 0; i < CROWD; i++)
        close(peers[i]);
    plan_stop();
}
END_TEST

static void
abort_first(struct ev_loop *loop, ev_check *watcher, int events)
{
    (void)events;
    ck_assert_int_eq(sxe_abort(crowd[0]), 0);
    ev_check_stop(loop, watcher);
}

/* The event of the socket was already found; it must reach nobody once the socket is closed. */
START_TEST(a_watcher_of_the_programs_may_close_a_socket_that_has_an_event)
{
    ev_check watcher;

    plan_start(2);
    crowd[0] = accept_peer(listen_tcp(push_read), &peers[0]);
    peer_send(peers[0], "x", 1);
    ev_check_init(&watcher, abort_first);
    ev_set_priority(&watcher, EV_MAXPRI);
    ev_check_start(sxe_loop(), &watcher);
    EXPECT("close", crowd[0], ECONNABORTED);
    EXPECT_NOTHING();
    close(peers[0]);
    plan_stop();
}
END_TEST

/* ---- Threads ---- */

static pthread_barrier_t both;

static void *
echo_in_a_loop_of_its_own(void *unused)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    unsigned short port;
    int raw = peer_listen(&port);
    int peer;
    char byte;

    config.loop = ev_loop_new(EVFLAG_AUTO);
    sxe_configure(&config);
    sxe_register(2, 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_ptr_eq(sxe_loop(), config.loop);
    pthread_barrier_wait(&both);
    SXE *s = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
    ck_assert_uint_eq(SXE_ID(s), 0);
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
    peer = peer_accept(raw);
    for (unsigned i = 0; i < 500; i++) {
        while (sxe_get_state(s) != SXE_STATE_IDLE)
            turn(1);
        ck_assert_int_eq(sxe_write(s, "x", 1), 0);
        turn(1);
        ck_assert_int_eq(recv(peer, &byte, 1, 0), 1);
    }
    ck_assert_int_eq(sxe_fini(), 0);
    ev_loop_destroy(config.loop);
    close(peer);
    close(raw);
    return unused;
}

START_TEST(two_threads_have_a_loop_each)
{
    pthread_t thread;
    int peer;
    char byte;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read), &peer);
    pthread_barrier_init(&both, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, echo_in_a_loop_of_its_own, NULL), 0);
    pthread_barrier_wait(&both);
    for (unsigned i = 0; i < 500; i++) {
        ck_assert_int_eq(sxe_write(s, "y", 1), 0);
        turn(1);
        ck_assert_int_eq(recv(peer, &byte, 1, 0), 1);
        ck_assert_int_eq(byte, 'y');
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&both);
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

static void *
init_with_the_default_loop(void *result)
{
    sxe_register(1, 0);
    *(int *)result = sxe_init();
    if (*(int *)result == 0)
        sxe_fini();
    return NULL;
}

static int
init_in_a_thread(void)
{
    pthread_t thread;
    int result = 1;

    ck_assert_int_eq(pthread_create(&thread, NULL, init_with_the_default_loop, &result), 0);
    pthread_join(thread, NULL);
    return result;
}

START_TEST(the_default_loop_is_for_one_thread_at_a_time)
{
    plan_start(1);
    ck_assert_int_eq(init_in_a_thread(), -EBUSY);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_int_eq(init_in_a_thread(), 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-life");
    TCase *life = tcase_create("life");

    tcase_add_test(life, run_returns_when_nothing_is_left);
    tcase_add_test(life, a_socket_lingers_while_only_its_peers_end_is_missing);
    tcase_add_test(life, an_unref_socket_is_not_waited_for_until_it_closes);
    tcase_add_test(life, stop_stops_and_run_goes_on);
    tcase_add_test(life, fini_closes_all_without_callbacks);
    tcase_add_test(life, after_fini_everything_begins_anew_on_the_same_loop);
    tcase_add_test(life, under_sustained_load_everybody_is_read_and_timers_fire);
    tcase_add_loop_test(life, after_the_load_the_loop_ends_as_ever, 0, 2);
    tcase_add_test(life, a_watcher_of_the_programs_may_close_a_socket_that_has_an_event);
    tcase_add_test(life, two_threads_have_a_loop_each);
    tcase_add_test(life, the_default_loop_is_for_one_thread_at_a_time);
    suite_add_tcase(suite, life);
    return sxe_test_main(suite);
}
