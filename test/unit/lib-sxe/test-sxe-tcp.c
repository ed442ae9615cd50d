/* SPDX-License-Identifier: MIT
 *
 * Tests TCP: connecting, half-closing, and in which order output leaves.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"
#include "test-main.h"

#ifndef IP_BIND_ADDRESS_NO_PORT
#    define IP_BIND_ADDRESS_NO_PORT 24
#endif

static SXE *
new_client(void)
{
    return sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
}

/* A client of the library whose peer is a plain socket. */
static SXE *
connect_client(int *peer)
{
    unsigned short port;
    int raw = peer_listen(&port);
    SXE *s = new_client();

    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
    *peer = peer_accept(raw);
    close(raw);
    return s;
}

static int
option(int fd, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof(value);

    ck_assert_int_eq(getsockopt(fd, level, name, &value, &length), 0);
    return value;
}

/* ---- Connecting ---- */

START_TEST(connected_comes_later_and_never_inside_connect)
{
    int peer;

    plan_start(1);
    SXE *s = connect_client(&peer);
    ck_assert_uint_eq(event_count(), 0);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_CONNECTING);
    EXPECT("connected", s, 0);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_IDLE);
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(a_refused_connection_ends_in_close)
{
    unsigned short port;

    plan_start(1);
    close(peer_listen(&port));
    SXE *s = new_client();
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
    ck_assert_uint_eq(event_count(), 0);
    EXPECT("close", s, ECONNREFUSED);
    turn(1);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_FREE);
    plan_stop();
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
} faults[] = {
    {FAKE_SOCKET, 1, EMFILE},    {FAKE_SETSOCKOPT, 1, ENOMEM}, {FAKE_SETSOCKOPT, 2, ENOMEM},
    {FAKE_BIND, 1, EADDRINUSE},  {FAKE_CONNECT, 1, EACCES},    {FAKE_CONNECT, 1, ENETUNREACH},
    {FAKE_EPOLL_CTL, 1, ENOSPC},
};

START_TEST(a_connect_that_fails_at_once_leaves_the_socket_new_and_no_descriptor)
{
    unsigned short port;

    plan_start(1);
    int raw = peer_listen(&port);
    SXE *s = new_client();
    unsigned open = fake_os_open_fds();
    fake_os_fail(faults[_i].call, faults[_i].nth, 1, faults[_i].error);
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), -faults[_i].error);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_int_eq(sxe_fd(s), -1);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
    EXPECT("connected", s, 0);
    close(raw);
    EXPECT("close", s, ECONNRESET);
    plan_stop();
}
END_TEST

START_TEST(only_a_new_tcp_socket_connects)
{
    unsigned short port;
    int peer;

    plan_start(9);
    int raw = peer_listen(&port);
    SXE *listener = listen_tcp(push_read);
    SXE *accepted = accept_peer(listener, &peer);
    SXE *udp = sxe_new_udp(NULL, "127.0.0.1", 0, push_read);
    SXE *path = sxe_new_unix(NULL, "@nobody", push_connected, push_read, push_close);
    SXE *connecting = new_client();
    SXE *closing = new_client();

    ck_assert_int_eq(sxe_connect(connecting, "127.0.0.1", port), 0);
    ck_assert_int_eq(sxe_close(closing), 0);
    SXE *const wrong[] = {NULL, listener, accepted, udp, path, connecting, closing};
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(sxe_connect(wrong[i], "127.0.0.1", port), -EINVAL);
        if (wrong[i] != path)
            ck_assert_int_eq(sxe_connect_unix(wrong[i]), -EINVAL);
        if (wrong[i] != path && wrong[i] != udp)
            ck_assert_int_eq(sxe_listen(wrong[i]), -EINVAL);
    }
    EXPECT("connected", connecting, 0);
    close(peer);
    EXPECT("close", accepted, 0);
    close(raw);
    EXPECT("close", connecting, ECONNRESET);
    plan_stop();
}
END_TEST

START_TEST(a_connection_comes_from_the_address_given_at_creation)
{
    struct sockaddr_in from;
    socklen_t length = sizeof(from);
    unsigned short port;
    unsigned short source = 0;
    int peer;

    plan_start(1);
    int raw = peer_listen(&port);
    if (_i == 1)
        close(peer_listen(&source));
    SXE *s = sxe_new_tcp(NULL, "127.0.0.3", source, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
    peer = peer_accept(raw);
    ck_assert_int_eq(getpeername(peer, (struct sockaddr *)&from, &length), 0);
    ck_assert_str_eq(inet_ntoa(from.sin_addr), "127.0.0.3");
    if (_i == 1)
        ck_assert_uint_eq(ntohs(from.sin_port), source);
    ck_assert_int_eq(option(sxe_fd(s), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), _i == 0);
    close(raw);
    EXPECT("connected", s, 0);
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(a_source_of_another_family_is_refused_and_any_is_not_bound)
{
    unsigned short port;

    plan_start(2);
    int raw = peer_listen(&port);
    SXE *s = sxe_new_tcp(NULL, "::1", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), -EAFNOSUPPORT);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    fake_os_reset();
    s = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_BIND), 0);
    EXPECT("connected", s, 0);
    close(raw);
    plan_stop();
}
END_TEST

START_TEST(what_the_peer_sent_before_we_knew_of_the_connection_is_read)
{
    int peer;

    plan_start(1);
    SXE *s = connect_client(&peer);
    peer_send(peer, "early", 5);
    if (_i == 1)
        peer_shutdown(peer);
    EXPECT("connected", s, 0);
    EXPECT_READ(s, "early");
    if (_i == 0)
        EXPECT_NOTHING();
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(a_peer_that_resets_before_we_knew_of_the_connection_ends_in_close)
{
    int peer;

    plan_start(1);
    SXE *s = connect_client(&peer);
    peer_reset(peer);
    EXPECT("close", s, ECONNRESET);
    plan_stop();
}
END_TEST

static char peer_seen[64];

static void
keep_peer_ip(SXE *s)
{
    snprintf(peer_seen, sizeof(peer_seen), "%s", sxe_peer_ip(s));
    push_connected(s);
}

START_TEST(the_peer_of_a_connection_that_was_reset_before_it_was_accepted_is_known)
{
    plan_start(3);
    SXE *listener = sxe_new_tcp(NULL, "127.0.0.1", 0, keep_peer_ip, push_read, push_close);
    ck_assert_int_eq(sxe_listen(listener), 0);
    peer_reset(peer_connect(sxe_local_port(listener)));
    const SXE *s = EXPECT("connected", NULL, 0)->object;
    ck_assert_str_eq(peer_seen, "127.0.0.1");
    EXPECT("close", s, ECONNRESET);
    ck_assert_str_eq(sxe_peer_ip(s), "");
    plan_stop();
}
END_TEST

START_TEST(closing_while_connecting_is_no_connection)
{
    int peer;

    plan_start(1);
    SXE *s = connect_client(&peer);
    ck_assert_int_eq(_i == 0 ? sxe_close(s) : _i == 1 ? sxe_close_lingering(s) : sxe_abort(s), 0);
    EXPECT("close", s, _i == 2 ? ECONNABORTED : 0);
    EXPECT_NOTHING();
    close(peer);
    plan_stop();
}
END_TEST

/* ---- The order in which output leaves ---- */

static SXE *pair[2];

static void
write_to_both(SXE *s, int length)
{
    push_read(s, length);
    sxe_write(pair[0], "a1", 2);
    sxe_write(pair[1], "b1", 2);
    sxe_write(pair[0], "a2", 2);
    sxe_write(pair[1], "b2", 2);
    sxe_write(pair[0], "a3", 2);
}

START_TEST(several_sockets_written_to_in_one_event_all_get_theirs_in_order)
{
    int peers[2];

    plan_start(3);
    SXE *listener = listen_tcp(write_to_both);
    pair[0] = accept_peer(listener, &peers[0]);
    pair[1] = accept_peer(listener, &peers[1]);
    peer_send(peers[_i], "go", 2);
    EXPECT_READ(pair[_i], "go");
    PEER_EXPECT(peers[0], "a1a2a3");
    PEER_EXPECT(peers[1], "b1b2");
    PEER_EXPECT_SILENCE(peers[0]);
    PEER_EXPECT_SILENCE(peers[1]);
    close(peers[0]);
    close(peers[1]);
    EXPECT("close", NULL, 0);
    EXPECT("close", NULL, 0);
    plan_stop();
}
END_TEST

static void
write_in_timer(struct sxe_timer *timer)
{
    push_timer(timer);
    sxe_write(pair[0], "tick", 4);
}

START_TEST(what_a_timer_writes_goes_out_before_the_loop_waits)
{
    struct sxe_timer timer = {.user = NULL};
    char got[4];
    int peer;

    plan_start(2);
    pair[0] = accept_peer(listen_tcp(push_read), &peer);
    sxe_timer_init(&timer, write_in_timer, 0, 0);
    sxe_timer_start(&timer);
    EXPECT("timer", NULL, 0);
    ck_assert_int_eq(recv(peer, got, 4, MSG_DONTWAIT), 4);
    close(peer);
    EXPECT("close", pair[0], 0);
    plan_stop();
}
END_TEST

static bool may_write;

static void
write_before_waiting(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    (void)loop;
    (void)watcher;
    (void)events;
    if (may_write)
        sxe_write(pair[0], "late", 4);
}

/* Written outside events of the library: by main(), and by watchers of libev, of which one runs as
 * the last before the loop waits. */
START_TEST(what_is_written_outside_events_goes_out_before_the_loop_waits)
{
    ev_prepare watchers[2];
    char got[13];
    int peer;

    plan_start(1);
    for (unsigned i = 0; i < 2; i++)
        ev_prepare_init(&watchers[i], write_before_waiting);
    /* One watcher starts before the library's watcher, the other one after it. */
    ev_prepare_start(sxe_loop(), &watchers[0]);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_register(2, 0);
    ck_assert_int_eq(sxe_init(), 0);
    pair[0] = accept_peer(listen_tcp(push_read), &peer);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_write(pair[0], "early", 5), 0);
    ck_assert_int_eq(recv(peer, got, 5, MSG_DONTWAIT), -1);
    ev_prepare_start(sxe_loop(), &watchers[1]);
    may_write = true;
    turn(1);
    ck_assert_int_eq(recv(peer, got, 13, MSG_DONTWAIT), 13);
    ck_assert_mem_eq(got, "earlylatelate", 13);
    for (unsigned i = 0; i < 2; i++)
        ev_prepare_stop(sxe_loop(), &watchers[i]);
    close(peer);
    EXPECT("close", pair[0], 0);
    plan_stop();
}
END_TEST

static void
write_hello(SXE *s)
{
    push_connected(s);
    ck_assert_int_eq(SXE_WRITE_LITERAL(s, "hello"), 0);
}

START_TEST(connected_may_write)
{
    int peer;

    plan_start(2);
    SXE *listener = listen_tcp(push_read);
    listener->on_connected = write_hello;
    SXE *s = accept_peer(listener, &peer);
    PEER_EXPECT(peer, "hello");
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

/* ---- Ends ---- */

static void
reply(SXE *s, int length)
{
    push_read(s, length);
    if (length > 0)
        sxe_write(s, "reply", 5);
}

START_TEST(bytes_and_end_in_one_segment_are_read_answered_and_closed)
{
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(reply), &peer);
    peer_send(peer, "request", 7);
    peer_shutdown(peer);
    EXPECT_READ(s, "request");
    EXPECT("close", s, 0);
    PEER_EXPECT(peer, "reply");
    PEER_EXPECT_END(peer);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(a_half_close_is_seen_and_answered)
{
    int peer;

    plan_start(2);
    SXE *listener = listen_tcp(push_read);
    sxe_set_half_close(listener, true);
    SXE *s = accept_peer(listener, &peer);
    if (_i == 1)
        peer_send(peer, "request", 7);
    peer_shutdown(peer);
    if (_i == 1)
        EXPECT_READ(s, "request");
    EXPECT("read", s, 0);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_write(s, "part 1 ", 7), 0);
    PEER_EXPECT(peer, "part 1 ");
    ck_assert_int_eq(sxe_write(s, "part 2", 6), 0);
    ck_assert_int_eq(sxe_close(s), 0);
    PEER_EXPECT(peer, "part 2");
    PEER_EXPECT_END(peer);
    EXPECT("close", s, 0);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(a_half_close_shows_the_unread_bytes_again)
{
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read_keep), &peer);
    sxe_set_half_close(s, true);
    peer_send(peer, "unread", 6);
    EXPECT_READ(s, "unread");
    peer_shutdown(peer);
    const struct event *event = EXPECT("read", s, 0);
    ck_assert_str_eq(event->data, "unread");
    sxe_set_half_close(s, false);
    EXPECT_NOTHING();
    close(peer);
    ck_assert_int_eq(sxe_abort(s), 0);
    EXPECT("close", s, ECONNABORTED);
    plan_stop();
}
END_TEST

START_TEST(unread_bytes_stay_when_both_sides_have_ended)
{
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read_keep), &peer);
    sxe_set_half_close(s, true);
    peer_send(peer, "unread", 6);
    EXPECT_READ(s, "unread");
    peer_shutdown(peer);
    EXPECT("read", s, 0);
    ck_assert_int_eq(sxe_shutdown(s), 0);
    PEER_EXPECT_END(peer);
    EXPECT_NOTHING();
    ck_assert_uint_eq(SXE_BUF_USED(s), 6);
    ck_assert_int_eq(sxe_close(s), 0);
    EXPECT("close", s, 0);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(after_a_half_close_a_reset_still_ends_the_connection)
{
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read), &peer);
    sxe_set_half_close(s, true);
    peer_shutdown(peer);
    EXPECT("read", s, 0);
    peer_reset(peer);
    EXPECT("close", s, EPIPE); /* the error that Linux gives after the peer's end was seen */
    plan_stop();
}
END_TEST

/* Both the write and the reset report the end. */
START_TEST(after_a_half_close_a_reset_ends_the_output_once)
{
    static char output[8000000];
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read), &peer);
    sxe_set_half_close(s, true);
    peer_shutdown(peer);
    EXPECT("read", s, 0);
    ck_assert_int_eq(sxe_send(s, output, sizeof(output), push_sent), 0);
    turn(3);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_WRITING);
    peer_reset(peer);
    EXPECT("sent", s, -EPIPE);
    EXPECT("close", s, EPIPE);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

START_TEST(after_shutdown_the_peer_sees_our_end_and_is_still_read)
{
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(push_read), &peer);
    ck_assert_int_eq(sxe_write(s, "last words", 10), 0);
    ck_assert_int_eq(sxe_shutdown(s), 0);
    PEER_EXPECT(peer, "last words");
    PEER_EXPECT_END(peer);
    peer_send(peer, "I heard", 7);
    EXPECT_READ(s, "I heard");
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(a_reset_ends_any_connection_once)
{
    int peer;

    plan_start(2);
    SXE *s = accept_peer(listen_tcp(_i == 2 ? push_read_keep : push_read), &peer);
    if (_i == 1)
        sxe_pause(s);
    if (_i == 2) {
        peer_send(peer, "unread", 6);
        EXPECT_READ(s, "unread");
    }
    peer_reset(peer);
    EXPECT("close", s, ECONNRESET);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-tcp");
    TCase *connecting = tcase_create("connecting");
    TCase *writing = tcase_create("writing");
    TCase *ends = tcase_create("ends");

    tcase_add_test(connecting, connected_comes_later_and_never_inside_connect);
    tcase_add_test(connecting, a_refused_connection_ends_in_close);
    tcase_add_loop_test(connecting,
                        a_connect_that_fails_at_once_leaves_the_socket_new_and_no_descriptor, 0,
                        sizeof(faults) / sizeof(faults[0]));
    tcase_add_test(connecting, only_a_new_tcp_socket_connects);
    tcase_add_loop_test(connecting, a_connection_comes_from_the_address_given_at_creation, 0, 2);
    tcase_add_test(connecting, a_source_of_another_family_is_refused_and_any_is_not_bound);
    tcase_add_loop_test(connecting, what_the_peer_sent_before_we_knew_of_the_connection_is_read, 0,
                        2);
    tcase_add_test(connecting, a_peer_that_resets_before_we_knew_of_the_connection_ends_in_close);
    tcase_add_test(connecting,
                   the_peer_of_a_connection_that_was_reset_before_it_was_accepted_is_known);
    tcase_add_loop_test(connecting, closing_while_connecting_is_no_connection, 0, 3);
    suite_add_tcase(suite, connecting);
    tcase_add_loop_test(writing, several_sockets_written_to_in_one_event_all_get_theirs_in_order, 0,
                        2);
    tcase_add_test(writing, what_a_timer_writes_goes_out_before_the_loop_waits);
    tcase_add_test(writing, what_is_written_outside_events_goes_out_before_the_loop_waits);
    tcase_add_test(writing, connected_may_write);
    suite_add_tcase(suite, writing);
    tcase_add_test(ends, bytes_and_end_in_one_segment_are_read_answered_and_closed);
    tcase_add_loop_test(ends, a_half_close_is_seen_and_answered, 0, 2);
    tcase_add_test(ends, a_half_close_shows_the_unread_bytes_again);
    tcase_add_test(ends, unread_bytes_stay_when_both_sides_have_ended);
    tcase_add_test(ends, after_a_half_close_a_reset_still_ends_the_connection);
    tcase_add_test(ends, after_a_half_close_a_reset_ends_the_output_once);
    tcase_add_test(ends, after_shutdown_the_peer_sees_our_end_and_is_still_read);
    tcase_add_loop_test(ends, a_reset_ends_any_connection_once, 0, 3);
    suite_add_tcase(suite, ends);
    return sxe_test_main(suite);
}
