/* SPDX-License-Identifier: MIT
 *
 * Tests limits of output: output_pause, output_max, and output for which there is no chunk.
 */
#include "sxe-private.h"

#include "capture-log.h"
#include "fake-os.h"
#include "pair.h"
#include "test-main.h"

START_TEST(output_max_refuses_and_takes_nothing)
{
    struct sxe_config config = {.output_max = 100 * KIB, .output_pause = 10 * KIB};
    unsigned before;
    size_t total = 0;

    open_pair(&config);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    while (sxe_write(ours, pattern(PATTERN_MAX) + total, 1000) == 0) {
        total += 1000;
        turn(1);
    }
    before = sxe_unsent(ours);
    ck_assert_uint_gt(before, 100 * KIB - 1000);
    ck_assert_int_eq(sxe_write(ours, "x", 1000), -ENOBUFS);
    ck_assert_int_eq(sxe_write(ours, pattern(MIB), MIB), -ENOBUFS);
    ck_assert_uint_eq(sxe_unsent(ours), before);
    expect_pattern(peer, total);
    ck_assert_uint_eq(sxe_unsent(ours), 0);
    ck_assert_int_eq(sxe_write(ours, pattern(1000), 1000), 0);
    expect_pattern(peer, 1000);
    close_pair();
}
END_TEST

START_TEST(a_write_at_once_may_be_output_max_and_no_more)
{
    struct sxe_config config = {.output_max = 200 * KIB};

    open_pair(&config);
    ck_assert_int_eq(sxe_write(ours, pattern(MIB), 200 * KIB + 1), -ENOBUFS);
    ck_assert_int_eq(sxe_write(ours, pattern(200 * KIB), 200 * KIB), 0);
    expect_pattern(peer, 200 * KIB);
    close_pair();
}
END_TEST

/* Reading goes on when half of output_pause is left, so that it does not stop again at once. */
static void
read_below_half(SXE *s, int length)
{
    ck_assert_uint_le(sxe_unsent(s), 50 * KIB);
    push_read_keep(s, length);
}

START_TEST(output_above_output_pause_stops_reading_until_half_of_it_is_gone)
{
    struct sxe_config config = {.output_pause = 100 * KIB};

    open_pair(&config);
    ours->on_read = read_below_half;
    fake_os_limit(FAKE_SENDMSG, 500);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    ck_assert_int_eq(sxe_write(ours, pattern(700 * KIB), 700 * KIB), 0);
    turn(5);
    ck_assert_uint_gt(sxe_unsent(ours), 100 * KIB);
    peer_send(peer, "hello", 5);
    EXPECT_NOTHING();
    expect_pattern(peer, 700 * KIB);
    EXPECT_READ(ours, "hello");
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_READING);
    close_pair();
}
END_TEST

static void
flood(SXE *s, int length)
{
    push_read_keep(s, length);
    if (length == 5)
        ck_assert_int_eq(sxe_write(s, pattern(700 * KIB), 700 * KIB), 0);
}

START_TEST(what_was_unread_when_output_stopped_reading_is_shown_again)
{
    struct sxe_config config = {.output_pause = 100 * KIB};

    open_pair(&config);
    ours->on_read = flood;
    shrink_kernel_buffers(sxe_fd(ours), peer);
    peer_send(peer, "hello", 5);
    EXPECT_READ(ours, "hello");
    peer_send(peer, " again", 6);
    EXPECT_NOTHING();
    ours->on_read = push_read;
    expect_pattern(peer, 700 * KIB);
    EXPECT_READ(ours, "hello again");
    close_pair();
}
END_TEST

/* ---- By default there are enough chunks ---- */

enum { MANY = 200 };

/* Clients that stop in the middle of a request, or do not read, take no chunk that others need. */
START_TEST(each_socket_can_keep_unread_and_unsent_bytes)
{
    int peers[MANY];
    SXE *listener;

    plan_start(MANY + 1);
    listener = listen_tcp(push_read_keep);
    for (unsigned i = 0; i < MANY; i++) {
        SXE *s = accept_peer(listener, &peers[i]);

        shrink_kernel_buffers(sxe_fd(s), peers[i]);
        peer_send(peers[i], "GET", 3);
        EXPECT_READ(s, "GET");
        ck_assert_int_eq(sxe_send(s, pattern(MIB), MIB, NULL), 0);
        turn(1);
        ck_assert_uint_eq(sxe_get_state(s), SXE_STATE_WRITING);
    }
    EXPECT_NOTHING();
    for (unsigned i = 0; i < MANY; i++)
        close(peers[i]);
    plan_stop();
}
END_TEST

/* ---- No chunk for what the kernel does not take ---- */

#define OUTPUT_CHUNKS 4u

/* Input has as many chunks as output. */
static struct sxe_config few_chunks = {.chunk_size = 64, .chunks = 2 * OUTPUT_CHUNKS};

START_TEST(output_that_can_neither_go_nor_stay_closes)
{
    open_pair(&few_chunks);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    capture_log();
    while (event_count() == 0) {
        ck_assert_int_eq(sxe_write(ours, pattern(60 * KIB), 60 * KIB), 0);
        turn(1);
    }
    EXPECT("close", ours, ENOBUFS);
    ck_assert_uint_eq(captured.number, 1);
    ck_assert_str_eq(line_without_numbers(0),
                     "     1 3 - closing: its peer does not read, and no chunk is free to keep the "
                     "output; configure more than 8 chunks\n");
    ck_assert_int_eq(peer_drain(peer), ECONNRESET);
    close_pair();
}
END_TEST

START_TEST(a_write_that_chunks_could_not_keep_is_refused_whole)
{
    open_pair(&few_chunks);
    ck_assert_int_eq(sxe_write(ours, pattern(MIB), 100 * KIB), -ENOBUFS);
    ck_assert_int_eq(sxe_write(ours, pattern(64 * KIB), 64 * KIB), 0);
    ck_assert_int_eq(sxe_write(ours, "x", 1), -ENOBUFS);
    ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), -ENOBUFS);
    ck_assert_int_eq(sxe_shutdown(ours), -ENOBUFS);
    ck_assert_uint_eq(sxe_unsent(ours), 64 * KIB);
    expect_pattern(peer, 64 * KIB);
    close_pair();
}
END_TEST

START_TEST(without_a_chunk_nothing_is_lent)
{
    open_pair(&few_chunks);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    for (unsigned i = 0; i < OUTPUT_CHUNKS; i++)
        ck_assert_int_eq(sxe_send(ours, pattern(MIB), MIB, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), -ENOBUFS);
    ck_assert_int_eq(sxe_sendfile(ours, 0, 0, 1, push_sent), -ENOBUFS);
    ck_assert_int_eq(sxe_shutdown(ours), -ENOBUFS);
    ck_assert_int_eq(sxe_write(ours, "x", 1), -ENOBUFS);
    ck_assert_int_eq(sxe_write_static(ours, pattern(2000), 2000), -ENOBUFS);
    for (unsigned i = 0; i < OUTPUT_CHUNKS; i++)
        expect_pattern(peer, MIB);
    for (unsigned i = 0; i < OUTPUT_CHUNKS; i++)
        EXPECT("sent", ours, 0);
    close_pair();
}
END_TEST

/* More pieces than one call can send, and no chunk for those that the kernel does not take. */
START_TEST(static_pieces_that_can_neither_go_nor_stay_close)
{
    int result = 0;

    open_pair(&few_chunks);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    for (unsigned i = 0; result == 0 && i < 100; i++)
        result = sxe_write_static(ours, pattern(100 * KIB), 100 * KIB);
    ck_assert_int_eq(result, -ENOBUFS);
    EXPECT("close", ours, ENOBUFS);
    close_pair();
}
END_TEST

static Suite *
limits_suite(void)
{
    Suite *suite = suite_create("sxe limits");
    TCase *configured = tcase_create("configured");
    TCase *chunks = tcase_create("chunks");

    tcase_add_test(configured, output_max_refuses_and_takes_nothing);
    tcase_add_test(configured, a_write_at_once_may_be_output_max_and_no_more);
    tcase_add_test(configured, output_above_output_pause_stops_reading_until_half_of_it_is_gone);
    tcase_add_test(configured, what_was_unread_when_output_stopped_reading_is_shown_again);
    tcase_add_test(chunks, each_socket_can_keep_unread_and_unsent_bytes);
    tcase_add_test(chunks, output_that_can_neither_go_nor_stay_closes);
    tcase_add_test(chunks, a_write_that_chunks_could_not_keep_is_refused_whole);
    tcase_add_test(chunks, without_a_chunk_nothing_is_lent);
    tcase_add_test(chunks, static_pieces_that_can_neither_go_nor_stay_close);
    suite_add_tcase(suite, configured);
    suite_add_tcase(suite, chunks);
    return suite;
}

int
main(void)
{
    return sxe_test_main(limits_suite());
}
