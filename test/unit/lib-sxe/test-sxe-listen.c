/* SPDX-License-Identifier: MIT
 *
 * Tests listening and accepting, also when no socket or no descriptor is free.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "sxe-io.h"
#include "test-main.h"

static SXE *
new_socket(void)
{
    return sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read, push_close);
}

/* ---- Listeners and accepted sockets ---- */

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

static void
check_options(const SXE *s)
{
    int delay_off = 0;
    socklen_t length = sizeof(delay_off);

    ck_assert_int_ne(fcntl(sxe_fd(s), F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(sxe_fd(s), F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_eq(getsockopt(sxe_fd(s), IPPROTO_TCP, TCP_NODELAY, &delay_off, &length), 0);
    ck_assert_int_eq(delay_off, 1);
}

START_TEST(every_socket_is_non_blocking_closed_on_exec_and_without_delay)
{
    plan_start(3);
    SXE *listener = listen_tcp(push_read);
    SXE *client = new_socket();
    ck_assert_int_eq(sxe_connect(client, "127.0.0.1", sxe_local_port(listener)), 0);
    check_options(listener);
    check_options(EXPECT("connected", NULL, 0)->object);
    check_options(EXPECT("connected", NULL, 0)->object);
    plan_stop();
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
} listen_faults[] = {
    {FAKE_SOCKET, 1, EMFILE},   {FAKE_SETSOCKOPT, 1, ENOMEM}, {FAKE_SETSOCKOPT, 2, ENOMEM},
    {FAKE_BIND, 1, EADDRINUSE}, {FAKE_LISTEN, 1, EADDRINUSE}, {FAKE_EPOLL_CTL, 1, ENOSPC},
};

START_TEST(a_listen_that_fails_leaves_the_socket_new_and_no_descriptor)
{
    int peer;

    plan_start(2);
    SXE *s = new_socket();
    unsigned open = fake_os_open_fds();
    fake_os_fail(listen_faults[_i].call, listen_faults[_i].nth, 1, listen_faults[_i].error);
    ck_assert_int_eq(sxe_listen(s), -listen_faults[_i].error);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_NEW);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    ck_assert_int_eq(sxe_listen(s), 0);
    SXE *accepted = accept_peer(s, &peer);
    close(peer);
    EXPECT("close", accepted, 0);
    plan_stop();
}
END_TEST

START_TEST(a_port_that_is_taken_is_refused_until_it_is_free)
{
    unsigned short port;

    plan_start(2);
    int raw = peer_listen(&port);
    SXE *s = sxe_new_tcp(NULL, "127.0.0.1", port, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_listen(s), -EADDRINUSE);
    ck_assert_int_eq(sxe_listen_oneshot(s), -EADDRINUSE);
    close(raw);
    ck_assert_int_eq(sxe_listen(s), 0);
    ck_assert_uint_eq(sxe_local_port(s), port);
    plan_stop();
}
END_TEST

/* The side that closes first keeps the port in TIME_WAIT; here that is the listener's side. */
START_TEST(a_port_can_be_listened_at_again_at_once)
{
    int peer;

    plan_start(2);
    SXE *listener = listen_tcp(push_read);
    unsigned short port = sxe_local_port(listener);
    SXE *s = accept_peer(listener, &peer);
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_int_eq(sxe_close(listener), 0);
    EXPECT("close", s, 0);
    PEER_EXPECT_END(peer);
    close(peer);
    turn(2);
    s = sxe_new_tcp(NULL, "127.0.0.1", port, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_listen(s), 0);
    plan_stop();
}
END_TEST

/* ---- Listening sockets that outlive a process ---- */

static int kept = -1;
static struct sockaddr_storage kept_address;
static socklen_t kept_length;

static int
find_kept(const struct sockaddr *address, socklen_t length)
{
    int fd = kept;

    event_push("find", NULL, address->sa_family);
    if (length != kept_length || memcmp(address, &kept_address, length) != 0)
        return -1;
    kept = -1;
    return fd;
}

static void
keep(const struct sockaddr *address, socklen_t length, int fd)
{
    event_push("keep", NULL, address->sa_family);
    memcpy(&kept_address, address, length);
    kept_length = length;
    kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static const struct sxe_listeners listeners = {.find = find_kept, .keep = keep};

/* The socket is kept as if an earlier process had listened there. */
START_TEST(a_socket_that_was_kept_is_found_with_all_who_wait_there)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    unsigned short port;
    int peer;

    config.listeners = &listeners;
    plan_start_with(3, &config);
    SXE *first = new_socket();
    ck_assert_int_eq(sxe_listen(first), 0);
    EXPECT("find", NULL, AF_INET);
    EXPECT("keep", NULL, AF_INET);
    port = sxe_local_port(first);
    ck_assert_int_eq(sxe_close(first), 0);
    turn(2);
    peer = peer_connect(port);
    SXE *second = new_socket();
    ck_assert_int_eq(sxe_listen(second), 0);
    EXPECT("find", NULL, AF_INET);
    ck_assert_int_eq(kept, -1);
    ck_assert_uint_eq(sxe_local_port(second), port);
    EXPECT("connected", NULL, 0);
    close(peer);
    EXPECT("close", NULL, 0);
    plan_stop();
}
END_TEST

START_TEST(one_that_fails_is_not_kept)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.listeners = &listeners;
    plan_start_with(3, &config);
    SXE *s = new_socket();
    fake_os_fail(FAKE_LISTEN, 1, 1, EADDRINUSE);
    ck_assert_int_eq(sxe_listen(s), -EADDRINUSE);
    EXPECT("find", NULL, AF_INET);
    SXE *udp = sxe_new_udp(NULL, "127.0.0.1", 0, push_read);
    ck_assert_int_eq(sxe_listen(udp), 0);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

START_TEST(a_parent_that_keeps_nothing_needs_no_functions)
{
    static const struct sxe_listeners none = {0};
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.listeners = &none;
    plan_start_with(3, &config);
    ck_assert_int_eq(sxe_listen(new_socket()), 0);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

/* ---- Connections that another process should accept ---- */

static bool is_ours;
static unsigned asked;

static bool
may_accept(void)
{
    asked++;
    return is_ours;
}

static int
find_nothing(const struct sockaddr *address, socklen_t length)
{
    (void)address;
    (void)length;
    return -1;
}

static void
keep_nothing(const struct sockaddr *address, socklen_t length, int fd)
{
    (void)address;
    (void)length;
    (void)fd;
}

static const struct sxe_listeners shared = {
    .find = find_nothing, .keep = keep_nothing, .may_accept = may_accept};

static SXE *
start_sharing(void)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.listeners = &shared;
    config.accept_batch = 4;
    plan_start_with(30, &config);
    return listen_tcp(push_read);
}

/* The other process hangs: the listener accepts one, then 2, then 4, the limit of a batch. */
START_TEST(what_nobody_else_accepts_is_accepted_in_the_end)
{
    int peers[20];

    SXE *listener = start_sharing();
    SXE *udp = sxe_new_udp(NULL, "127.0.0.1", 0, push_read);
    ck_assert_int_eq(sxe_listen(udp), 0);
    for (unsigned i = 0; i < 20; i++)
        peers[i] = peer_connect(sxe_local_port(listener));
    for (unsigned i = 0; i < 20; i++)
        EXPECT("connected", NULL, 0);
    /* may_accept says no once before each pause, and in each look of a pause. Pauses have 20 looks
     * first, and then one. After them 1, 2, 4, 4, 4, 4 and 1 are accepted. */
    ck_assert_uint_le(asked, 20 + 7 + 1 + 20 + 6);
    turn(2);
    for (unsigned i = 0; i < 20; i++) {
        close(peers[i]);
        EXPECT("close", NULL, 0);
    }
    plan_stop();
}
END_TEST

/* Connect, and wait until the connection is accepted. Returns after how many milliseconds. */
static unsigned
accepted_after(SXE *listener, int *peer)
{
    uint64_t since = sxe_time_ns();

    *peer = peer_connect(sxe_local_port(listener));
    EXPECT("connected", NULL, 0);
    return (unsigned)((sxe_time_ns() - since) / SXE_NS_PER_MS);
}

START_TEST(others_have_20_ms_until_they_seem_to_hang)
{
    int peers[5];

    fake_time_start(SXE_NS_PER_SECOND, SXE_NS_PER_SECOND);
    SXE *listener = start_sharing();
    ck_assert_uint_ge(accepted_after(listener, &peers[0]), 19);
    ck_assert_uint_lt(accepted_after(listener, &peers[1]), 10);
    /* Another process accepts one. */
    asked = 0;
    peers[2] = peer_connect(sxe_local_port(listener));
    while (asked == 0)
        turn(1);
    close(accept(sxe_fd(listener), NULL, NULL));
    turn(4); /* takes 4 ms */
    EXPECT_NOTHING();
    ck_assert_uint_ge(accepted_after(listener, &peers[3]), 19);
    /* The rule allows it while the connection waits. */
    peers[4] = peer_connect(sxe_local_port(listener));
    asked = 0;
    while (asked < 2)
        turn(1);
    is_ours = true;
    EXPECT("connected", NULL, 0);
    ck_assert_uint_lt(asked, 8);
    for (unsigned i = 0; i < 5; i++) {
        close(peers[i]);
        if (i != 2)
            EXPECT("close", NULL, 0);
    }
    plan_stop();
    fake_time_stop();
}
END_TEST

START_TEST(what_is_ours_is_accepted_at_once_and_trust_is_back)
{
    int peers[2];

    SXE *listener = start_sharing();
    is_ours = true;
    peers[0] = peer_connect(sxe_local_port(listener));
    EXPECT("connected", NULL, 0);
    /* may_accept was asked once more, but then no connection was waiting */
    ck_assert_uint_eq(asked, 2);
    is_ours = false;
    peers[1] = peer_connect(sxe_local_port(listener));
    EXPECT("connected", NULL, 0);
    for (unsigned i = 0; i < 2; i++) {
        close(peers[i]);
        EXPECT("close", NULL, 0);
    }
    plan_stop();
}
END_TEST

START_TEST(what_another_process_accepts_is_not_waited_for)
{
    int peer;
    int taken = -1;

    SXE *listener = start_sharing();
    peer = peer_connect(sxe_local_port(listener));
    while (asked == 0)
        turn(1);
    ck_assert_int_ge(taken = accept(sxe_fd(listener), NULL, NULL), 0);
    EXPECT_NOTHING();
    close(taken);
    close(peer);
    plan_stop();
}
END_TEST

START_TEST(all_that_accept_can_be_closed_at_once)
{
    int peer;

    plan_start(5);
    SXE *listener = listen_tcp(push_read);
    unsigned short port = sxe_local_port(listener);
    SXE *udp = sxe_new_udp(NULL, "127.0.0.1", 0, push_read);
    ck_assert_int_eq(sxe_listen(udp), 0);
    listen_tcp(push_read);
    SXE *s = accept_peer(listener, &peer);
    sxe_stop_listening();
    turn(2);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 1);
    ck_assert_int_eq(sxe_get_state(udp), SXE_STATE_LISTENING);
    SXE *again = sxe_new_tcp(NULL, "127.0.0.1", port, NULL, push_read, NULL);
    ck_assert_int_eq(sxe_listen(again), 0);
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(all_that_wait_are_accepted_whatever_the_batch)
{
    const unsigned batches[] = {0, 1, 2, 3, 99, 100, 101};
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    int peers[100];

    config.accept_batch = batches[_i];
    plan_start_with(101, &config);
    SXE *listener = listen_tcp(push_read);
    for (unsigned i = 0; i < 100; i++)
        peers[i] = peer_connect(sxe_local_port(listener));
    for (unsigned i = 0; i < 100; i++)
        ck_assert_uint_eq(SXE_ID((const SXE *)EXPECT("connected", NULL, 0)->object), i + 1);
    EXPECT_NOTHING();
    for (unsigned i = 0; i < 100; i++) {
        close(peers[i]);
        EXPECT("close", NULL, 0);
    }
    plan_stop();
}
END_TEST

/* One row for each limit: the peers, free sockets, config.backlog, and a failure of accept4(2). */
static const struct {
    unsigned sockets;
    uint32_t backlog;
    unsigned fails_at; /* which call of accept4 fails; 0: none */
    unsigned accepted;
} rests[] = {{10, 100, 0, 4}, {3, 100, 0, 2}, {10, 3, 0, 3}, {10, 100, 2, 1}};

START_TEST(what_waits_is_accepted_before_the_listener_closes)
{
    struct sxe_config config = {.backlog = rests[_i].backlog};
    int peers[4];

    plan_start_with(rests[_i].sockets, &config);
    SXE *listener = listen_tcp(push_read);
    for (unsigned i = 0; i < 4; i++) {
        peers[i] = peer_connect(sxe_local_port(listener));
        peer_send(peers[i], "x", 1);
    }
    if (rests[_i].fails_at > 0)
        fake_os_fail(FAKE_ACCEPT4, rests[_i].fails_at, 1, EMFILE);
    sxe_io_accept_rest(listener);
    sxe_close(listener);
    for (unsigned i = 0; i < rests[_i].accepted; i++)
        EXPECT("connected", NULL, 0);
    for (unsigned i = 0; i < rests[_i].accepted; i++)
        EXPECT("read", NULL, 1);
    EXPECT_NOTHING();
    for (unsigned i = rests[_i].accepted; i < 4; i++)
        PEER_EXPECT_RESET(peers[i]);
    sxe_io_accept_rest(listener); /* the listener is closed: nothing happens */
    for (unsigned i = 0; i < 4; i++)
        close(peers[i]);
    for (unsigned i = 0; i < rests[_i].accepted; i++)
        EXPECT("close", NULL, 0);
    plan_stop();
}
END_TEST

START_TEST(without_a_free_socket_newcomers_wait_and_nothing_spins)
{
    int peers[3];
    SXE *s[3];

    plan_start(3);
    SXE *listener = listen_tcp(push_read);
    s[0] = accept_peer(listener, &peers[0]);
    s[1] = accept_peer(listener, &peers[1]);
    peers[2] = peer_connect(sxe_local_port(listener));
    peer_send(peers[2], "me too", 6);
    EXPECT_NOTHING();
    unsigned calls = fake_os_calls(FAKE_EPOLL_WAIT);
    EXPECT_NOTHING();
    ck_assert_uint_le(fake_os_calls(FAKE_EPOLL_WAIT) - calls, 20);
    close(peers[0]);
    EXPECT("close", s[0], 0);
    EXPECT("connected", s[0], 0);
    EXPECT_READ(s[0], "me too");
    close(peers[1]);
    EXPECT("close", s[1], 0);
    close(peers[2]);
    EXPECT("close", s[0], 0);
    plan_stop();
}
END_TEST

START_TEST(without_a_free_socket_the_longest_idle_one_goes_if_so_configured)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    int peers[4];
    SXE *s[2];

    config.reap_idle = true;
    plan_start_with(3, &config);
    SXE *listener = listen_tcp(push_read);
    s[0] = accept_peer(listener, &peers[0]);
    s[1] = accept_peer(listener, &peers[1]);
    peer_send(peers[0], "I live", 6);
    EXPECT_READ(s[0], "I live");
    peers[2] = peer_connect(sxe_local_port(listener));
    EXPECT("close", s[1], ETIMEDOUT);
    EXPECT("connected", s[1], 0);
    PEER_EXPECT_END(peers[1]);
    peers[3] = peer_connect(sxe_local_port(listener));
    EXPECT("close", s[0], ETIMEDOUT);
    EXPECT("connected", s[0], 0);
    for (unsigned i = 0; i < 4; i++)
        close(peers[i]);
    EXPECT("close", NULL, 0);
    EXPECT("close", NULL, 0);
    plan_stop();
}
END_TEST

START_TEST(one_that_becomes_idle_later_goes_too)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    int peers[2];

    config.reap_idle = true;
    plan_start_with(2, &config);
    SXE *listener = listen_tcp(push_read_keep);
    SXE *s = accept_peer(listener, &peers[0]);
    peer_send(peers[0], "unread", 6);
    EXPECT_READ(s, "unread");
    peers[1] = peer_connect(sxe_local_port(listener));
    EXPECT_NOTHING();
    SXE_BUF_CLEAR(s);
    EXPECT("close", s, ETIMEDOUT);
    EXPECT("connected", s, 0);
    close(peers[0]);
    close(peers[1]);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(without_a_descriptor_newcomers_wait_and_nothing_spins)
{
    const int errors[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
    int peer;

    plan_start(2);
    SXE *listener = listen_tcp(push_read);
    fake_os_fail(FAKE_ACCEPT4, 1, 0, errors[_i]);
    peer = peer_connect(sxe_local_port(listener));
    EXPECT_NOTHING();
    ck_assert_uint_eq(fake_os_injected(), 1);
    fake_os_fail(FAKE_ACCEPT4, 0, 0, 0);
    EXPECT("connected", NULL, 0);
    close(peer);
    EXPECT("close", NULL, 0);
    plan_stop();
}
END_TEST

START_TEST(a_oneshot_listener_becomes_the_connection)
{
    int peers[2];

    plan_start(1);
    SXE *s = new_socket();
    ck_assert_int_eq(sxe_listen_oneshot(s), 0);
    SXE_USER_DATA(s) = &peers[0];
    unsigned short port = sxe_local_port(s);
    int listening = sxe_fd(s);
    peers[0] = peer_connect(port);
    peers[1] = peer_connect(port);
    unsigned closes = fake_os_calls(FAKE_CLOSE);
    EXPECT("connected", s, 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_CLOSE), closes + 1);
    ck_assert_int_ne(sxe_fd(s), listening);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_IDLE);
    ck_assert_ptr_eq(SXE_USER_DATA(s), &peers[0]);
    PEER_EXPECT_RESET(peers[1]);
    close(peers[1]);
    peer_send(peers[0], "hello", 5);
    EXPECT_READ(s, "hello");
    ck_assert_int_eq(sxe_write(s, "you", 3), 0);
    PEER_EXPECT(peers[0], "you");
    close(peers[0]);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

/* The child keeps the listener open and registered with epoll; the second peer connects to it. */
START_TEST(a_forked_child_with_the_listener_does_not_make_the_connection_spin)
{
    int peers[2];
    unsigned reads;
    pid_t child;

    plan_start(1);
    SXE *s = new_socket();
    ck_assert_int_eq(sxe_listen_oneshot(s), 0);
    peers[0] = peer_connect(sxe_local_port(s));
    peers[1] = peer_connect(sxe_local_port(s));
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    EXPECT("connected", s, 0);
    EXPECT_NOTHING();
    reads = fake_os_calls(FAKE_RECV);
    EXPECT_NOTHING();
    ck_assert_uint_eq(fake_os_calls(FAKE_RECV), reads);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(peers[0]);
    EXPECT("close", s, 0);
    close(peers[1]);
    plan_stop();
}
END_TEST

START_TEST(a_closed_listener_leaves_its_connections_alone)
{
    int peer;

    plan_start(2);
    SXE *listener = listen_tcp(push_read);
    SXE *s = accept_peer(listener, &peer);
    ck_assert_int_eq(sxe_close(listener), 0);
    EXPECT_NOTHING();
    peer_send(peer, "still here", 10);
    EXPECT_READ(s, "still here");
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-listen");
    TCase *listening = tcase_create("listening");

    tcase_add_test(listening, accepted_sockets_inherit_from_the_listener);
    tcase_add_test(listening, every_socket_is_non_blocking_closed_on_exec_and_without_delay);
    tcase_add_loop_test(listening, a_listen_that_fails_leaves_the_socket_new_and_no_descriptor, 0,
                        sizeof(listen_faults) / sizeof(listen_faults[0]));
    tcase_add_test(listening, a_port_that_is_taken_is_refused_until_it_is_free);
    tcase_add_test(listening, a_port_can_be_listened_at_again_at_once);
    tcase_add_test(listening, a_socket_that_was_kept_is_found_with_all_who_wait_there);
    tcase_add_test(listening, one_that_fails_is_not_kept);
    tcase_add_test(listening, a_parent_that_keeps_nothing_needs_no_functions);
    tcase_add_test(listening, what_nobody_else_accepts_is_accepted_in_the_end);
    tcase_add_test(listening, others_have_20_ms_until_they_seem_to_hang);
    tcase_add_test(listening, what_is_ours_is_accepted_at_once_and_trust_is_back);
    tcase_add_test(listening, what_another_process_accepts_is_not_waited_for);
    tcase_add_test(listening, all_that_accept_can_be_closed_at_once);
    tcase_add_loop_test(listening, what_waits_is_accepted_before_the_listener_closes, 0,
                        (int)(sizeof(rests) / sizeof(rests[0])));
    tcase_add_loop_test(listening, all_that_wait_are_accepted_whatever_the_batch, 0, 7);
    tcase_add_test(listening, without_a_free_socket_newcomers_wait_and_nothing_spins);
    tcase_add_test(listening, without_a_free_socket_the_longest_idle_one_goes_if_so_configured);
    tcase_add_test(listening, one_that_becomes_idle_later_goes_too);
    tcase_add_loop_test(listening, without_a_descriptor_newcomers_wait_and_nothing_spins, 0, 4);
    tcase_add_test(listening, a_oneshot_listener_becomes_the_connection);
    tcase_add_test(listening, a_forked_child_with_the_listener_does_not_make_the_connection_spin);
    tcase_add_test(listening, a_closed_listener_leaves_its_connections_alone);
    suite_add_tcase(suite, listening);
    return sxe_test_main(suite);
}
