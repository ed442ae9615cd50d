/* SPDX-License-Identifier: MIT
 *
 * Tests output composed in place: sxe_reserve and sxe_commit, mixed with the other ways to write.
 */
#include "sxe-private.h"

#include <signal.h>
#include <string.h>

#include "fake-os.h"
#include "pair.h"
#include "test-main.h"

static void
compose(SXE *s, const char *text, unsigned reserved)
{
    char *at = sxe_reserve(s, reserved);

    ck_assert_ptr_nonnull(at);
    memset(at, '#', reserved);
    memcpy(at, text, strlen(text));
    sxe_commit(s, (unsigned)strlen(text));
}

/* ---- Committed bytes are written ---- */

static void
mix(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "a", 1), 0);
    compose(s, "bc", 2);
    compose(s, "d", 100);
    ck_assert_int_eq(sxe_write(s, "e", 1), 0);
    compose(s, "", 10);
    compose(s, "fgh", 3);
    ck_assert_uint_eq(sxe_unsent(s), 8);
}

START_TEST(what_is_committed_goes_out_in_order_in_one_write)
{
    open_pair(NULL);
    fake_os_reset();
    in_event(mix);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 1);
    ck_assert_uint_eq(fake_os_calls(FAKE_SENDMSG), 0);
    PEER_EXPECT(peer, "abcdefgh");
    PEER_EXPECT_SILENCE(peer);
    close_pair();
}
END_TEST

static void
mix_with_the_others(SXE *s)
{
    compose(s, "one", 64);
    ck_assert_int_eq(sxe_write_static(s, pattern(2000), 2000), 0);
    compose(s, "two", 64);
    ck_assert_int_eq(sxe_send(s, "lent", 4, push_sent), 0);
    ck_assert_ptr_null(sxe_reserve(s, 1));
    ck_assert_int_eq(sxe_write(s, "three", 5), 0);
}

START_TEST(it_keeps_its_place_among_static_and_lent_bytes)
{
    open_pair(NULL);
    in_event(mix_with_the_others);
    EXPECT("sent", ours, 0);
    PEER_EXPECT(peer, "one");
    expect_pattern(peer, 2000);
    PEER_EXPECT(peer, "twolentthree");
    close_pair();
}
END_TEST

static void
reserve_only(SXE *s)
{
    ck_assert_ptr_nonnull(sxe_reserve(s, 100));
    ck_assert_uint_eq(sxe_unsent(s), 0);
    if (other_peer >= 0)
        ck_assert_int_eq(sxe_write(other, "other", 5), 0);
}

START_TEST(what_is_not_committed_is_nothing)
{
    open_pair(NULL);
    in_event(reserve_only);
    PEER_EXPECT_SILENCE(peer);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_IDLE);
    compose(ours, "afterwards", 10);
    PEER_EXPECT(peer, "afterwards");
    close_pair();
}
END_TEST

START_TEST(it_goes_back_when_another_socket_writes)
{
    open_two_pairs();
    in_event(reserve_only);
    PEER_EXPECT(other_peer, "other");
    PEER_EXPECT_SILENCE(peer);
    close_two_pairs();
}
END_TEST

static void
compose_for_both(SXE *s)
{
    for (unsigned i = 0; i < 3; i++) {
        compose(s, "mine", 10);
        compose(other, "yours", 10);
    }
}

START_TEST(one_socket_makes_way_for_another)
{
    open_two_pairs();
    in_event(compose_for_both);
    PEER_EXPECT(peer, "mineminemine");
    PEER_EXPECT(other_peer, "yoursyoursyours");
    close_two_pairs();
}
END_TEST

static void
compose_and_close(SXE *s)
{
    compose(s, "last", 64 * KIB);
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_ptr_null(sxe_reserve(s, 1));
}

START_TEST(closing_sends_it_first)
{
    open_pair(NULL);
    in_event(compose_and_close);
    PEER_EXPECT(peer, "last");
    PEER_EXPECT_END(peer);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(what_the_kernel_leaves_is_kept)
{
    static const int errors[] = {0, EAGAIN, EINTR, ENOBUFS};

    open_pair(NULL);
    if (_i == 0)
        fake_os_limit(FAKE_SEND, 7);
    else
        fake_os_fail(FAKE_SEND, 1, 1, errors[_i]);
    for (unsigned i = 0; i < 10; i++) {
        memcpy(sxe_reserve(ours, KIB), pattern(10 * KIB) + i * KIB, KIB);
        sxe_commit(ours, KIB);
    }
    expect_pattern(peer, 10 * KIB);
    close_pair();
}
END_TEST

/* ---- When there is no room in place ---- */

static void
fill_the_buffer(SXE *s)
{
    char *all = sxe_reserve(s, 64 * KIB);

    ck_assert_ptr_nonnull(all);
    ck_assert_ptr_null(sxe_reserve(s, 64 * KIB + 1));
    ck_assert_ptr_null(sxe_reserve(s, UINT32_MAX));
    memcpy(all, pattern(70 * KIB), 60 * KIB);
    sxe_commit(s, 60 * KIB);
    ck_assert_ptr_null(sxe_reserve(s, 4 * KIB + 1));
    ck_assert_int_eq(sxe_write(s, pattern(70 * KIB) + 60 * KIB, 5 * KIB), 0);
    ck_assert_ptr_nonnull(all = sxe_reserve(s, 5 * KIB));
    memcpy(all, pattern(70 * KIB) + 65 * KIB, 5 * KIB);
    sxe_commit(s, 5 * KIB);
}

START_TEST(the_buffer_has_64_kib_and_writing_empties_it)
{
    open_pair(NULL);
    in_event(fill_the_buffer);
    expect_pattern(peer, 70 * KIB);
    close_pair();
}
END_TEST

static void
fill_the_vector(SXE *s)
{
    for (unsigned i = 0; i < SXE__STAGE_VECTOR; i++)
        ck_assert_int_eq(sxe_write_static(s, pattern(40000) + 2000 * i, 2000), 0);
    memcpy(sxe_reserve(s, 1000), pattern(40000) + 32000, 1000);
    sxe_commit(s, 1000);
    ck_assert_int_eq(sxe_write_static(s, pattern(40000) + 33000, 2000), 0);
    ck_assert_int_eq(sxe_write(s, pattern(40000) + 35000, 1), 0);
}

START_TEST(many_static_pieces_leave_a_place_behind_them)
{
    open_pair(NULL);
    fake_os_reset();
    in_event(fill_the_vector);
    ck_assert_uint_eq(fake_os_calls(FAKE_SENDMSG), 2);
    expect_pattern(peer, 35001);
    close_pair();
}
END_TEST

START_TEST(output_max_counts)
{
    struct sxe_config config = {.output_max = 100};

    open_pair(&config);
    ck_assert_ptr_null(sxe_reserve(ours, 101));
    compose(ours, "1234567890", 100);
    ck_assert_ptr_null(sxe_reserve(ours, 91));
    ck_assert_ptr_nonnull(sxe_reserve(ours, 90));
    PEER_EXPECT(peer, "1234567890");
    close_pair();
}
END_TEST

START_TEST(only_the_connected_reserve)
{
    plan_start(3);
    ck_assert_ptr_null(sxe_reserve(NULL, 0));
    ck_assert_ptr_null(sxe_reserve(NULL, 1));
    ck_assert_ptr_null(sxe_reserve(listen_tcp(push_read), 1));
    ck_assert_ptr_null(sxe_reserve(sxe_new_udp(NULL, "", 0, push_read), 1));
    plan_stop();
}
END_TEST

static void
compose_and_shut_down(SXE *s)
{
    compose(s, "last", 10);
    ck_assert_int_eq(sxe_shutdown(s), 0);
    ck_assert_ptr_null(sxe_reserve(s, 1));
}

START_TEST(nothing_is_reserved_behind_our_half_close)
{
    open_pair(NULL);
    in_event(compose_and_shut_down);
    PEER_EXPECT(peer, "last");
    PEER_EXPECT_END(peer);
    close_pair();
}
END_TEST

/* ---- Misuse ---- */

START_TEST(committing_what_is_not_reserved_stops_the_program)
{
    open_two_pairs();
    ck_assert_ptr_nonnull(sxe_reserve(ours, 10));
    if (_i == 0)
        sxe_commit(ours, 11);
    sxe_commit(ours, 10 - (_i == 1));
    if (_i > 1) {
        ck_assert_ptr_nonnull(sxe_reserve(ours, 10));
        if (_i == 2)
            ck_assert_int_eq(sxe_write(ours, "x", 1), 0);
        else if (_i == 3)
            ck_assert_int_eq(sxe_write_static(ours, pattern(2000), 2000), 0);
        else if (_i == 4)
            ck_assert_int_eq(sxe_send(ours, "lent", 4, push_sent), 0);
        else if (_i == 5)
            ck_assert_int_eq(sxe_write(other, "x", 1), 0);
        else
            turn(1);
    }
    sxe_commit(ours, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-reserve");
    TCase *commit = tcase_create("commit");
    TCase *room = tcase_create("room");
    TCase *misuse = tcase_create("misuse");

    tcase_add_test(commit, what_is_committed_goes_out_in_order_in_one_write);
    tcase_add_test(commit, it_keeps_its_place_among_static_and_lent_bytes);
    tcase_add_test(commit, what_is_not_committed_is_nothing);
    tcase_add_test(commit, it_goes_back_when_another_socket_writes);
    tcase_add_test(commit, one_socket_makes_way_for_another);
    tcase_add_test(commit, closing_sends_it_first);
    tcase_add_loop_test(commit, what_the_kernel_leaves_is_kept, 0, 4);
    suite_add_tcase(suite, commit);
    tcase_add_test(room, the_buffer_has_64_kib_and_writing_empties_it);
    tcase_add_test(room, many_static_pieces_leave_a_place_behind_them);
    tcase_add_test(room, output_max_counts);
    tcase_add_test(room, only_the_connected_reserve);
    tcase_add_test(room, nothing_is_reserved_behind_our_half_close);
    suite_add_tcase(suite, room);
    tcase_add_loop_test_raise_signal(misuse, committing_what_is_not_reserved_stops_the_program,
                                     SIGABRT, 0, 7);
    suite_add_tcase(suite, misuse);
    return sxe_test_main(suite);
}
