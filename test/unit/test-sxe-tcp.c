/* SPDX-License-Identifier: MIT
 *
 * TCP: connecting, listening, accepting, half-closing, and whose output goes out when.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
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

/* A client whose peer is a raw socket. */
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
    int raw = peer_listen(&port);

    plan_start(1);
    SXE *s = new_client();
    unsigned open = fake_os_open_fds();
    close(raw);
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
    ck_assert_uint_eq(event_count(), 0);
    EXPECT("close", s, ECONNREFUSED);
    turn(1);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_FREE);
    ck_assert_uint_eq(fake_os_open_fds(), open - 1);
    open_fds_are_as_before:
    ck_assert_int_eq(sxe_run(), 0);
    event_reset();
    (void)&&open_fds_are_as_before;
    sxe_fini();
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
} faults[] = {
    {FAKE_SOCKET, 1, EMFILE},     {FAKE_SETSOCKOPT, 1, ENOMEM}, {FAKE_SETSOCKOPT, 2, ENOMEM},
    {FAKE_BIND, 1, EADDRINUSE},   {FAKE_CONNECT, 1, EACCES},    {FAKE_CONNECT, 1, ENETUNREACH},
    {FAKE_EPOLL_CTL, 1, ENOSPC},
};

START_TEST(a_connect_that_fails_at_once_leaves_the_socket_new_and_no_descriptor)
{
    unsigned short port;
    int raw = peer_listen(&port);

    plan_start(1);
    SXE *s = new_client();
    unsigned open = fake_os_open_fds();
    turn(1);
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
    int raw = peer_listen(&port);
    int peer;

    plan_start(9);
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
    int raw = peer_listen(&port);
    int peer;

    if (_i == 1)
        close(peer_listen(&source));
    plan_start(1);
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

/* ---- Listening ---- */

START_TEST(accepted_sockets_inherit_from_the_listener)
{
    int peers[3];

    plan_start(4);
    SXE *listener = listen_tcp(push_read);
    SXE_USER_DATA(listener) = &peers[1];
    for (unsigned i = 0; i < 3; i++) {
        SXE *s = accept_peer(listener, &peers[i]);
        ck_assert_uint_eq(SXE_ID(s), i + 1);
        ck_assert_ptr_eq(SXE_USER_DATA(s), &peers[1]);
        ck_assert(s->on_read == push_read && s->on_close == push_close);
        ck_assert(s->on_connected == push_connected);
        SXE_USER_DATA(s) = NULL;
        s->on_read = push_read_keep;
    }
    ck_assert_ptr_eq(SXE_USER_DATA(listener), &peers[1]);
    for (unsigned i = 0; i < 3; i++) {
        close(peers[i]);
        EXPECT("close", NULL, 0);
    }
    plan_stop();
}
END_TEST

START_TEST(both_ends_are_non_blocking_closed_on_exec_and_without_delay)
{
    int peer;

    plan_start(3);
    SXE *listener = listen_tcp(push_read);
    SXE *client = new_client();
    ck_assert_int_eq(sxe_connect(client, "127.0.0.1", sxe_local_port(listener)), 0);
    SXE *const open[] = {client, accept_peer(listener, &peer) == client ? NULL : listener};
    (void)open;
    event_reset();
    for (unsigned id = 0; id < 3; id++) {
        SXE *s = (SXE *)((char *)listener + id * ((size_t)((char *)client - (char *)listener)));
        ck_assert_int_ne(fcntl(sxe_fd(s), F_GETFL) & O_NONBLOCK, 0);
        ck_assert_int_ne(fcntl(sxe_fd(s), F_GETFD) & FD_CLOEXEC, 0);
        ck_assert_int_eq(option(sxe_fd(s), IPPROTO_TCP, TCP_NODELAY), 1);
    }
    close(peer);
    plan_stop();
}
END_TEST
