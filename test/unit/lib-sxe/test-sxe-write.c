/* SPDX-License-Identifier: MIT
 *
 * Tests writing: to several sockets in one event, in which states it is possible, half-closing, and
 * the end of a socket whose output fails.
 */
#include "sxe-private.h"

#include "fake-os.h"
#include "pair.h"
#include "test-main.h"

/* ---- Several sockets in one event ---- */

static void
ping_pong(SXE *s)
{
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(sxe_write(s, pattern(4) + i, 1), 0);
        ck_assert_int_eq(sxe_write(other, pattern(4) + i, 1), 0);
    }
}

START_TEST(each_change_of_socket_in_one_event_costs_one_write)
{
    open_two_pairs();
    fake_os_reset();
    in_event(ping_pong);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 8);
    expect_pattern(peer, 4);
    expect_pattern(other_peer, 4);
    close_two_pairs();
}
END_TEST

static void
lend_to_one_write_to_the_other(SXE *s)
{
    ck_assert_int_eq(sxe_send(s, "lent", 4, push_sent), 0);
    ck_assert_int_eq(sxe_write(other, "copied", 6), 0);
}

START_TEST(what_was_lent_to_one_socket_goes_out_though_another_wrote)
{
    open_two_pairs();
    in_event(lend_to_one_write_to_the_other);
    EXPECT("sent", ours, 0);
    PEER_EXPECT(peer, "lent");
    PEER_EXPECT(other_peer, "copied");
    close_two_pairs();
}
END_TEST

static void
close_all_kinds(SXE *s)
{
    ck_assert_int_eq(sxe_send(s, "lent", 4, push_sent), 0);
    ck_assert_int_eq(sxe_write(other, "copied", 6), 0);
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_int_eq(sxe_close(other), 0);
}

START_TEST(closing_both_still_sends_what_they_were_given)
{
    open_two_pairs();
    in_event(close_all_kinds);
    PEER_EXPECT(peer, "lent");
    PEER_EXPECT_END(peer);
    PEER_EXPECT(other_peer, "copied");
    PEER_EXPECT_END(other_peer);
    EXPECT("close", other, 0);
    EXPECT("sent", ours, 0);
    EXPECT("close", ours, 0);
    close_two_pairs();
}
END_TEST

static void
close_then_write_to_the_other(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "last", 4), 0);
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_int_eq(sxe_write(other, "next", 4), 0);
}

START_TEST(a_closing_socket_that_makes_way_closes)
{
    open_two_pairs();
    in_event(close_then_write_to_the_other);
    EXPECT("close", ours, 0);
    PEER_EXPECT(peer, "last");
    PEER_EXPECT_END(peer);
    PEER_EXPECT(other_peer, "next");
    close_two_pairs();
}
END_TEST

START_TEST(a_socket_that_cannot_make_way_is_closed_alone)
{
    open_two_pairs();
    fake_os_fail(FAKE_SEND, 1, 1, EPIPE);
    ck_assert_int_eq(sxe_write(ours, "lost", 4), 0);
    ck_assert_int_eq(sxe_write(other, "next", 4), 0);
    EXPECT("close", ours, EPIPE);
    PEER_EXPECT(other_peer, "next");
    close_two_pairs();
}
END_TEST

/* ---- Sockets that may be written to ---- */

static void
expect_no_writing(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "x", 1), -ENOTCONN);
    ck_assert_int_eq(sxe_write_static(s, pattern(2000), 2000), -ENOTCONN);
    ck_assert_int_eq(sxe_send(s, "x", 1, push_sent), -ENOTCONN);
    ck_assert_int_eq(sxe_sendfile(s, 0, 0, 1, push_sent), -ENOTCONN);
    ck_assert_int_eq(sxe_shutdown(s), -ENOTCONN);
}

START_TEST(only_the_connected_write)
{
    SXE *listener;
    SXE *fresh;
    unsigned short port;
    int raw;

    plan_start(10);
    raw = peer_listen(&port);
    listener = listen_tcp(push_read);
    ck_assert_uint_eq(sxe_unsent(sxe_new_tcp(NULL, "::1", 65535, NULL, NULL, NULL)), 0);
    fresh = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
    expect_no_writing(NULL);
    expect_no_writing(listener);
    expect_no_writing(fresh);
    ck_assert_int_eq(sxe_connect(fresh, "127.0.0.1", port), 0);
    expect_no_writing(fresh);
    ck_assert_int_eq(sxe_close(fresh), 0);
    expect_no_writing(fresh);
    close(raw);
    plan_stop();
}
END_TEST

START_TEST(a_udp_socket_has_nobody_to_write_to)
{
    SXE *udp;

    plan_start(2);
    udp = sxe_new_udp(NULL, "127.0.0.1", 0, push_read);
    ck_assert_int_eq(sxe_listen(udp), 0);
    ck_assert_int_eq(sxe_write(udp, "x", 1), -ENOTCONN);
    plan_stop();
}
END_TEST

/* ---- Our half-close ---- */

static void
write_and_shut_down(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "bye", 3), 0);
    ck_assert_int_eq(sxe_send(s, "bye", 3, push_sent), 0);
    ck_assert_int_eq(sxe_shutdown(s), 0);
    expect_no_writing(s);
}

START_TEST(the_half_close_follows_the_output_and_reading_goes_on)
{
    open_pair(NULL);
    in_event(write_and_shut_down);
    EXPECT("sent", ours, 0);
    PEER_EXPECT(peer, "byebye");
    PEER_EXPECT_END(peer);
    peer_send(peer, "still here", 10);
    EXPECT_READ(ours, "still here");
    peer_shutdown(peer);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(the_half_close_waits_for_a_slow_peer)
{
    open_pair(NULL);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    ck_assert_int_eq(sxe_write(ours, pattern(500 * KIB), 500 * KIB), 0);
    ck_assert_int_eq(sxe_shutdown(ours), 0);
    turn(10);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_WRITING);
    expect_pattern(peer, 500 * KIB);
    PEER_EXPECT_END(peer);
    close_pair();
}
END_TEST

START_TEST(a_half_close_that_fails_closes)
{
    open_pair(NULL);
    fake_os_fail(FAKE_SHUTDOWN, 1, 1, ENOTCONN);
    ck_assert_int_eq(sxe_shutdown(ours), 0);
    EXPECT("close", ours, ENOTCONN);
    close_pair();
}
END_TEST

/* ---- Writing fails ---- */

START_TEST(f6_a_failed_write_closes_with_its_error)
{
    static const int errors[] = {EPIPE, ECONNRESET, ETIMEDOUT, EIO};
    int error = errors[_i % 4];

    open_pair(NULL);
    if (_i < 4) {
        fake_os_fail(FAKE_SEND, 1, 1, error);
        ck_assert_int_eq(sxe_write(ours, "x", 1), 0);
    } else if (_i < 8) {
        fake_os_fail(FAKE_SEND, 1, 1, error);
        ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), 0);
        EXPECT("sent", ours, -error);
    } else {
        fake_os_fail(FAKE_SENDFILE, 1, 1, error);
        ck_assert_int_eq(sxe_sendfile(ours, 0, 0, 1, push_sent), 0);
        EXPECT("sent", ours, -error);
    }
    EXPECT("close", ours, error);
    close_pair();
}
END_TEST

START_TEST(a_large_write_that_fails_half_way_closes)
{
    open_pair(NULL);
    fake_os_fail(FAKE_SEND, 2, 1, EPIPE);
    ck_assert_int_eq(sxe_write(ours, pattern(300 * KIB), 300 * KIB), -EPIPE);
    EXPECT("close", ours, EPIPE);
    expect_pattern(peer, 64 * KIB);
    close_pair();
}
END_TEST

START_TEST(f6_writing_to_a_peer_that_is_gone_raises_no_signal)
{
    open_pair(NULL);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    while (sxe_unsent(ours) == 0) {
        ck_assert_int_eq(sxe_write(ours, pattern(64 * KIB), 64 * KIB), 0);
        turn(2);
    }
    peer_reset(peer);
    EXPECT("close", ours, ECONNRESET);
    plan_stop();
}
END_TEST

static Suite *
write_suite(void)
{
    Suite *suite = suite_create("sxe write");
    TCase *several = tcase_create("several");
    TCase *allowed = tcase_create("allowed");
    TCase *half_close = tcase_create("half_close");
    TCase *failing = tcase_create("failing");

    tcase_add_test(several, each_change_of_socket_in_one_event_costs_one_write);
    tcase_add_test(several, what_was_lent_to_one_socket_goes_out_though_another_wrote);
    tcase_add_test(several, closing_both_still_sends_what_they_were_given);
    tcase_add_test(several, a_closing_socket_that_makes_way_closes);
    tcase_add_test(several, a_socket_that_cannot_make_way_is_closed_alone);
    tcase_add_test(allowed, only_the_connected_write);
    tcase_add_test(allowed, a_udp_socket_has_nobody_to_write_to);
    tcase_add_test(half_close, the_half_close_follows_the_output_and_reading_goes_on);
    tcase_add_test(half_close, the_half_close_waits_for_a_slow_peer);
    tcase_add_test(half_close, a_half_close_that_fails_closes);
    tcase_add_loop_test(failing, f6_a_failed_write_closes_with_its_error, 0, 12);
    tcase_add_test(failing, a_large_write_that_fails_half_way_closes);
    tcase_add_test(failing, f6_writing_to_a_peer_that_is_gone_raises_no_signal);
    suite_add_tcase(suite, several);
    suite_add_tcase(suite, allowed);
    suite_add_tcase(suite, half_close);
    suite_add_tcase(suite, failing);
    return suite;
}

int
main(void)
{
    return sxe_test_main(write_suite());
}
