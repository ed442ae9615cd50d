/* SPDX-License-Identifier: MIT
 *
 * Tests UDP: datagrams are read and written one at a time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"
#include "test-main.h"

#define CHUNK   64
#define LARGEST 65507 /* the largest datagram of IPv4 */

static char sent[LARGEST];

static SXE *
new_udp(SXE_IN_EVENT_READ read)
{
    SXE *s = sxe_new_udp(NULL, "127.0.0.1", 0, read);

    ck_assert_ptr_nonnull(s);
    return s;
}

static SXE *
open_udp(SXE_IN_EVENT_READ read)
{
    SXE *s = new_udp(read);

    ck_assert_int_eq(sxe_listen(s), 0);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_LISTENING);
    return s;
}

static struct sockaddr_in
address_of(const SXE *s)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(sxe_local_port(s)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static SXE_RETURN
write_to(SXE *from, const SXE *to, const void *data, unsigned length)
{
    struct sockaddr_in address = address_of(to);

    return sxe_write_to(from, data, length, (struct sockaddr *)&address, sizeof(address));
}

static void
echo(SXE *s, int length)
{
    struct sockaddr_storage peer;
    socklen_t size;
    const struct sockaddr *sender = sxe_peer_address(s, &size);

    ck_assert_ptr_nonnull(sender);
    ck_assert_uint_eq(sxe_get_peer(s, &peer), size);
    ck_assert_mem_eq(&peer, sender, size);
    ck_assert_int_eq(sxe_write_to(s, SXE_BUF(s), (unsigned)length, sender, size), 0);
    push_read_keep(s, length);
}

START_TEST(a_datagram_is_echoed_to_its_sender)
{
    plan_start(2);
    SXE *server = open_udp(echo);
    SXE *client = open_udp(push_read);

    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(write_to(client, server, "ping", 4), 0);
        EXPECT_READ(server, "ping");
        ck_assert_str_eq(sxe_peer_ip(server), "127.0.0.1");
        ck_assert_uint_eq(sxe_peer_port(server), sxe_local_port(client));
        EXPECT_READ(client, "ping");
        ck_assert_uint_eq(sxe_peer_port(client), sxe_local_port(server));
    }
    ck_assert_int_eq(SXE_BUF_USED(server), 0);
    plan_stop();
}
END_TEST

START_TEST(datagrams_come_one_at_a_time_and_are_gone_afterwards)
{
    plan_start(2);
    SXE *server = open_udp(push_read_keep);
    SXE *client = open_udp(push_read);

    ck_assert_int_eq(write_to(client, server, "one", 3), 0);
    ck_assert_int_eq(write_to(client, server, "", 0), 0);
    ck_assert_int_eq(write_to(client, server, "three", 5), 0);
    EXPECT_READ(server, "one");
    EXPECT_READ(server, "");
    EXPECT_READ(server, "three");
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

static void
push_same(SXE *s, int length)
{
    ck_assert_mem_eq(SXE_BUF(s), sent, (size_t)length);
    event_push("same", s, length);
}

START_TEST(a_datagram_longer_than_a_chunk_is_whole)
{
    const unsigned lengths[] = {CHUNK - 1, CHUNK, CHUNK + 1, 16385, LARGEST};
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.chunk_size = CHUNK;
    plan_start_with(2, &config);
    SXE *server = open_udp(push_same);
    SXE *client = open_udp(push_read);
    for (unsigned i = 0; i < LARGEST; i++)
        sent[i] = (char)(i / 3);
    ck_assert_int_eq(write_to(client, server, sent, lengths[_i]), 0);
    EXPECT("same", server, (long)lengths[_i]);
    ck_assert_int_eq(write_to(client, server, sent, 4), 0);
    EXPECT("same", server, 4);
    ck_assert_int_eq(write_to(client, server, sent, LARGEST + 1), -EMSGSIZE);
    plan_stop();
}
END_TEST

START_TEST(the_peer_is_the_last_sender_to_that_socket)
{
    socklen_t length;

    plan_start(3);
    SXE *server = open_udp(push_read);
    SXE *other = open_udp(push_read);
    SXE *client = open_udp(push_read);
    ck_assert_ptr_null(sxe_peer_address(server, &length));
    ck_assert_uint_eq(length, 0);
    ck_assert_str_eq(sxe_peer_ip(server), "");
    ck_assert_uint_eq(sxe_peer_port(server), 0);
    ck_assert_int_eq(write_to(client, other, "x", 1), 0);
    EXPECT_READ(other, "x");
    ck_assert_ptr_null(sxe_peer_address(server, &length));
    ck_assert_str_eq(sxe_peer_ip(server), "");
    ck_assert_uint_eq(sxe_peer_port(other), sxe_local_port(client));
    plan_stop();
}
END_TEST

START_TEST(a_read_that_fails_changes_nothing)
{
    const int errors[] = {EAGAIN, EINTR, ECONNREFUSED, ENOMEM};
    socklen_t length;

    plan_start(2);
    SXE *server = open_udp(push_read);
    SXE *client = open_udp(push_read);
    fake_os_fail(FAKE_RECVFROM, 1, 2, errors[_i]);
    ck_assert_int_eq(write_to(client, server, "x", 1), 0);
    turn(1);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert_ptr_null(sxe_peer_address(server, &length));
    EXPECT_READ(server, "x");
    ck_assert_int_eq(sxe_get_state(server), SXE_STATE_LISTENING);
    plan_stop();
}
END_TEST

/* The ICMP error comes with a later call, and must not end the socket. */
START_TEST(writing_to_nobody_does_not_end_the_socket)
{
    struct sockaddr_in nobody;

    plan_start(3);
    SXE *client = open_udp(push_read);
    SXE *gone = open_udp(push_read);
    nobody = address_of(gone);
    ck_assert_int_eq(sxe_close(gone), 0);
    turn(1);
    ck_assert_int_eq(sxe_write_to(client, "x", 1, (struct sockaddr *)&nobody, sizeof(nobody)), 0);
    EXPECT_NOTHING();
    SXE *server = open_udp(echo);
    ck_assert_int_eq(write_to(client, server, "x", 1), 0);
    EXPECT_READ(server, "x");
    EXPECT_READ(client, "x");
    plan_stop();
}
END_TEST

START_TEST(a_datagram_that_cannot_be_sent_is_an_error)
{
    const int errors[] = {EAGAIN, ENETUNREACH, EPERM};
    static char large[66000];

    plan_start(2);
    SXE *client = open_udp(push_read);
    SXE *server = open_udp(push_read);
    fake_os_fail(FAKE_SENDTO, 1, 1, errors[_i]);
    ck_assert_int_eq(write_to(client, server, "x", 1), -errors[_i]);
    ck_assert_int_eq(write_to(client, server, large, sizeof(large)), -EMSGSIZE);
    ck_assert_int_eq(sxe_get_state(client), SXE_STATE_LISTENING);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

START_TEST(only_an_open_udp_socket_writes_to)
{
    plan_start(4);
    SXE *server = open_udp(push_read);
    SXE *unopened = new_udp(push_read);
    SXE *tcp = listen_tcp(push_read);

    ck_assert_int_eq(write_to(NULL, server, "x", 1), -ENOTCONN);
    ck_assert_int_eq(write_to(unopened, server, "x", 1), -ENOTCONN);
    ck_assert_int_eq(write_to(tcp, server, "x", 1), -ENOTCONN);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

static void
close_itself(SXE *s, int length)
{
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_int_eq(sxe_close(s), -EALREADY);
    push_read(s, length);
}

START_TEST(a_datagram_may_close_its_socket)
{
    plan_start(2);
    SXE *server = open_udp(close_itself);
    SXE *client = open_udp(push_read);

    ck_assert_int_eq(write_to(client, server, "one", 3), 0);
    ck_assert_int_eq(write_to(client, server, "two", 3), 0);
    EXPECT_READ(server, "one");
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_get_state(server), SXE_STATE_FREE);
    plan_stop();
}
END_TEST

START_TEST(a_paused_udp_socket_reads_nothing_and_does_not_spin)
{
    plan_start(2);
    SXE *server = open_udp(push_read);
    SXE *client = open_udp(push_read);

    sxe_pause(server);
    ck_assert_int_eq(write_to(client, server, "wait", 4), 0);
    EXPECT_NOTHING();
    ck_assert_uint_eq(fake_os_calls(FAKE_RECVFROM), 0);
    sxe_resume(server, (enum sxe_resume)_i);
    EXPECT_READ(server, "wait");
    plan_stop();
}
END_TEST

START_TEST(a_port_of_another_socket_is_refused)
{
    plan_start(3);
    SXE *first = open_udp(push_read);
    SXE *second = sxe_new_udp(NULL, "127.0.0.1", sxe_local_port(first), push_read);

    ck_assert_int_eq(sxe_listen(second), -EADDRINUSE);
    ck_assert_int_eq(sxe_get_state(second), SXE_STATE_NEW);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

/* A program of several processes, which keep listeners for each other. */
START_TEST(sockets_of_one_program_share_a_port)
{
    static const struct sxe_listeners listeners = {0};
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.listeners = &listeners;
    plan_start_with(3, &config);
    SXE *first = open_udp(push_read);
    SXE *second = sxe_new_udp(NULL, "127.0.0.1", sxe_local_port(first), push_read);

    fake_os_fail(FAKE_SETSOCKOPT, 1, 1, ENOMEM);
    ck_assert_int_eq(sxe_listen(second), -ENOMEM);
    ck_assert_int_eq(sxe_listen(second), 0);
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

START_TEST(a_deferred_call_of_a_udp_socket_is_made)
{
    plan_start(1);
    SXE *server = open_udp(push_read);

    ck_assert_int_eq(sxe_defer(server, push_deferred), 0);
    EXPECT("deferred", server, 0);
    plan_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-udp");
    TCase *udp = tcase_create("udp");

    tcase_add_test(udp, a_datagram_is_echoed_to_its_sender);
    tcase_add_test(udp, datagrams_come_one_at_a_time_and_are_gone_afterwards);
    tcase_add_loop_test(udp, a_datagram_longer_than_a_chunk_is_whole, 0, 5);
    tcase_add_test(udp, the_peer_is_the_last_sender_to_that_socket);
    tcase_add_loop_test(udp, a_read_that_fails_changes_nothing, 0, 4);
    tcase_add_test(udp, writing_to_nobody_does_not_end_the_socket);
    tcase_add_loop_test(udp, a_datagram_that_cannot_be_sent_is_an_error, 0, 3);
    tcase_add_test(udp, only_an_open_udp_socket_writes_to);
    tcase_add_test(udp, a_datagram_may_close_its_socket);
    tcase_add_loop_test(udp, a_paused_udp_socket_reads_nothing_and_does_not_spin, 0, 2);
    tcase_add_test(udp, a_port_of_another_socket_is_refused);
    tcase_add_test(udp, sockets_of_one_program_share_a_port);
    tcase_add_test(udp, a_deferred_call_of_a_udp_socket_is_made);
    suite_add_tcase(suite, udp);
    return sxe_test_main(suite);
}
