/* SPDX-License-Identifier: MIT
 *
 * Tests lent output: on_sent is called exactly once for memory or a file lent to a socket.
 */
#include <fcntl.h>
#include <unistd.h>

#include "sxe-private.h"

#include "fake-os.h"
#include "pair.h"
#include "test-main.h"

static unsigned sent_chain;

/* Each on_sent sends the next byte. */
static void
send_next(SXE *s, int result)
{
    ck_assert_int_eq(result, 0);
    if (++sent_chain < 1000)
        ck_assert_int_eq(sxe_send(s, pattern(1000) + sent_chain, 1, send_next), 0);
}

START_TEST(sending_from_on_sent_keeps_nobody_waiting)
{
    open_two_pairs();
    ck_assert_int_eq(sxe_send(ours, pattern(1000), 1, send_next), 0);
    peer_send(other_peer, "x", 1);
    EXPECT_READ(other, "x");
    ck_assert_uint_lt(sent_chain, 100);
    expect_pattern(peer, 1000);
    ck_assert_uint_eq(sent_chain, 1000);
    close_two_pairs();
}
END_TEST

static void
write_more(SXE *s, int result)
{
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(sxe_write(s, " and more", 9), 0);
}

START_TEST(on_sent_may_write)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_send(ours, "sent", 4, write_more), 0);
    PEER_EXPECT(peer, "sent and more");
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_IDLE);
    close_pair();
}
END_TEST

static void
abort_when_sent(SXE *s, int result)
{
    push_sent(s, result);
    sxe_abort(s);
}

START_TEST(on_sent_may_end_the_socket_and_the_others_hear_of_it)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_send(ours, "1", 1, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, "2", 1, abort_when_sent), 0);
    ck_assert_int_eq(sxe_sendfile(ours, STDIN_FILENO, 0, 1, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, "3", 1, push_sent), 0);
    EXPECT("sent", ours, 0);
    EXPECT("sent", ours, 0);
    EXPECT("sent", ours, -ECONNABORTED);
    EXPECT("sent", ours, -ECONNABORTED);
    EXPECT("close", ours, ECONNABORTED);
    close_pair();
}
END_TEST

static void
send_in_vain(SXE *s, int result)
{
    push_sent(s, result);
    ck_assert_int_eq(sxe_send(s, "x", 1, push_sent), -ENOTCONN);
    ck_assert_int_eq(sxe_close(s), -EALREADY);
}

START_TEST(what_is_lent_comes_back_when_the_peer_resets)
{
    open_pair(NULL);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    ck_assert_int_eq(sxe_send(ours, pattern(MIB), MIB, send_in_vain), 0);
    ck_assert_int_eq(sxe_send(ours, pattern(MIB), MIB, push_sent), 0);
    turn(5);
    peer_reset(peer);
    EXPECT("sent", ours, -ECONNRESET);
    EXPECT("sent", ours, -ECONNRESET);
    EXPECT("close", ours, ECONNRESET);
    plan_stop();
}
END_TEST

START_TEST(the_end_of_the_plan_takes_back_nothing_and_calls_nobody)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_write(ours, "w", 1), 0);
    ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, "y", 1, NULL), 0);
    close_pair();
}
END_TEST

START_TEST(a_file_that_ends_early_resets_the_connection)
{
    off_t offset = _i == 0 ? 50 : 200;

    open_pair(NULL);
    int file = pattern_file(100);
    ck_assert_int_eq(sxe_sendfile(ours, file, offset, 100, push_sent), 0);
    ck_assert_int_eq(sxe_write(ours, "never", 5), 0);
    EXPECT("sent", ours, -ENODATA);
    EXPECT("close", ours, ENODATA);
    if (_i == 0)
        expect_bytes(peer, pattern(100) + 50, 50);
    PEER_EXPECT_RESET(peer);
    close(file);
    close_pair();
}
END_TEST

START_TEST(output_of_each_kind_is_seen_until_the_kernel_has_it)
{
    SXE *unused;

    open_pair(NULL);
    unused = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
    ck_assert(!sxe_io_has_output(unused));
    ck_assert_uint_eq(sxe_io_unacknowledged(unused), 0);
    sxe_close(unused);
    int file = pattern_file(100);
    ck_assert(!sxe_io_has_output(ours));
    ck_assert_int_eq(sxe_write(ours, "x", 1), 0);
    ck_assert(sxe_io_has_output(ours)); /* the byte waits until the loop sends it */
    ck_assert_uint_eq(sxe_io_unacknowledged(ours), 1);
    PEER_EXPECT(peer, "x");
    ck_assert(!sxe_io_has_output(ours));
    ck_assert_int_eq(sxe_send(ours, "y", 1, NULL), 0);
    ck_assert(sxe_io_has_output(ours));
    PEER_EXPECT(peer, "y");
    ck_assert_int_eq(sxe_sendfile(ours, file, 0, 100, NULL), 0);
    ck_assert_uint_eq(sxe_unsent(ours), 0);
    ck_assert(sxe_io_has_output(ours));
    ck_assert_int_eq(sxe_write(ours, "z", 1), 0);
    ck_assert_uint_ge(sxe_io_unacknowledged(ours), 101);
    expect_pattern(peer, 100);
    PEER_EXPECT(peer, "z");
    ck_assert(!sxe_io_has_output(ours));
    close(file);
    close_pair();
}
END_TEST

/* No single call of sendfile(2) sends as many bytes. */
START_TEST(a_length_beyond_any_file_ends_early)
{
    int file = pattern_file(100);

    open_pair(NULL);
    ck_assert_int_eq(sxe_sendfile(ours, file, 0, SIZE_MAX, push_sent), 0);
    EXPECT("sent", ours, -ENODATA);
    EXPECT("close", ours, ENODATA);
    PEER_EXPECT_RESET(peer); /* the last segment was held back by TCP_CORK */
    close_pair();
    close(file);
}
END_TEST

START_TEST(a_long_file_keeps_nobody_waiting)
{
    open_two_pairs();
    int file = pattern_file(2 * MIB);
    ck_assert_int_eq(sxe_sendfile(ours, file, 0, 2 * MIB, push_sent), 0);
    fake_os_reset();
    turn(1);
    ck_assert_uint_eq(fake_os_calls(FAKE_SENDFILE), 1);
    peer_send(other_peer, "x", 1);
    EXPECT_READ(other, "x");
    expect_pattern(peer, 2 * MIB);
    EXPECT("sent", ours, 0);
    ck_assert_uint_ge(fake_os_calls(FAKE_SENDFILE), 2 * MIB / SXE__FILE_SLICE);
    /* TCP_CORK is set once and cleared once. */
    ck_assert_uint_eq(fake_os_calls(FAKE_SETSOCKOPT), 2);
    close(file);
    close_two_pairs();
}
END_TEST

START_TEST(a_file_cut_while_it_is_sent_resets_the_connection)
{
    int result;

    open_pair(NULL);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    int file = pattern_file(MIB);
    ck_assert_int_eq(sxe_sendfile(ours, file, 0, MIB, push_sent), 0);
    turn(5);
    ck_assert_int_eq(ftruncate(file, 500 * KIB), 0);
    expect_pattern(peer, 400 * KIB);
    while ((result = peer_drain(peer)) == EAGAIN)
        turn(1);
    ck_assert_int_eq(result, ECONNRESET);
    EXPECT("sent", ours, -ENODATA);
    EXPECT("close", ours, ENODATA);
    close(file);
    close_pair();
}
END_TEST

START_TEST(a_file_that_cannot_be_read_closes)
{
    int write_only = open("/dev/null", O_WRONLY | O_CLOEXEC);

    open_pair(NULL);
    ck_assert_int_eq(sxe_sendfile(ours, write_only, 0, 100, push_sent), 0);
    EXPECT("sent", ours, -EBADF);
    EXPECT("close", ours, EBADF);
    close_pair();
    close(write_only);
}
END_TEST

/* ---- A send of length 0 marks a place in the output ---- */

START_TEST(a_mark_comes_at_the_end_of_the_event_if_nothing_waits)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_send(ours, NULL, 0, push_sent), 0);
    ck_assert_uint_eq(event_count(), 0);
    turn(1);
    ck_assert_str_eq(event_pop()->name, "sent");
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_IDLE);
    PEER_EXPECT_SILENCE(peer);
    close_pair();
}
END_TEST

/* The output before the mark is of each kind: copied, static, lent, or of a file. */
START_TEST(a_mark_comes_when_the_kernel_has_all_before_it)
{
    int file;

    open_pair(NULL);
    file = pattern_file(MIB);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    if (_i == 0)
        ck_assert_int_eq(sxe_write(ours, pattern(MIB), MIB), 0);
    else if (_i == 1)
        ck_assert_int_eq(sxe_write_static(ours, pattern(MIB), MIB), 0);
    else if (_i == 2)
        ck_assert_int_eq(sxe_send(ours, pattern(MIB), MIB, NULL), 0);
    else
        ck_assert_int_eq(sxe_sendfile(ours, file, 0, MIB, NULL), 0);
    ck_assert_int_eq(sxe_send(ours, NULL, 0, push_sent), 0);
    EXPECT_NOTHING();
    expect_pattern(peer, MIB);
    EXPECT("sent", ours, 0);
    EXPECT_NOTHING();
    close(file);
    close_pair();
}
END_TEST

START_TEST(a_mark_comes_back_when_the_socket_closes_first)
{
    open_pair(NULL);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    ck_assert_int_eq(sxe_write(ours, pattern(MIB), MIB), 0);
    ck_assert_int_eq(sxe_send(ours, NULL, 0, push_sent), 0);
    turn(5);
    peer_reset(peer);
    EXPECT("sent", ours, -ECONNRESET);
    EXPECT("close", ours, ECONNRESET);
    plan_stop();
}
END_TEST

static void
push_dropped(SXE *s)
{
    event_push("close", s, (long)sxe_dropped(s));
}

/* The kernel takes half of the second output, and nothing that follows it. */
START_TEST(on_close_may_ask_how_much_was_dropped)
{
    open_pair(NULL);
    ours->on_close = push_dropped;
    ck_assert_int_eq(sxe_send(ours, pattern(10000), 10000, push_sent), 0);
    EXPECT("sent", ours, 0);
    ck_assert_uint_eq(sxe_dropped(ours), 0);
    fake_os_limit(FAKE_SENDMSG, 5000);
    fake_os_fail(FAKE_SENDMSG, 2, 0, EAGAIN);
    ck_assert_int_eq(sxe_send(ours, pattern(10000), 10000, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, pattern(7000), 7000, push_sent), 0);
    ck_assert_int_eq(sxe_write(ours, "copied", 6), 0);
    turn(3);
    ck_assert_uint_eq(sxe_dropped(ours), 0);
    sxe_abort(ours);
    EXPECT("sent", ours, -ECONNABORTED);
    EXPECT("sent", ours, -ECONNABORTED);
    EXPECT("close", ours, 5000 + 7000 + 6);
    close(peer);
    plan_stop();
}
END_TEST

static size_t streamed;

static void
stream(SXE *s, int result)
{
    const size_t part = 50000;

    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(sxe_unsent(s), 0);
    if (streamed == 100 * part)
        return;
    ck_assert_int_eq(sxe_write(s, pattern(100 * part) + streamed, part), 0);
    ck_assert_int_eq(sxe_send(s, NULL, 0, stream), 0);
    streamed += part;
}

START_TEST(a_stream_goes_on_from_mark_to_mark_and_keeps_nobody_waiting)
{
    open_two_pairs();
    stream(ours, 0);
    peer_send(other_peer, "x", 1);
    EXPECT_READ(other, "x");
    ck_assert_uint_lt(streamed, 5000000);
    expect_pattern(peer, 5000000);
    ck_assert_uint_eq(sxe_unsent(ours), 0);
    close_two_pairs();
}
END_TEST

START_TEST(a_mark_without_a_free_chunk_is_refused)
{
    struct sxe_config config = {.chunks = 1};

    open_pair(&config);
    uint32_t chunk = sxe_chunks_take(CONTEXT->chunks);
    ck_assert_int_eq(sxe_send(ours, NULL, 0, push_sent), -ENOBUFS);
    sxe_chunks_give(CONTEXT->chunks, chunk);
    EXPECT_NOTHING();
    close_pair();
}
END_TEST

static Suite *
lend_suite(void)
{
    Suite *suite = suite_create("sxe lend");
    TCase *lending = tcase_create("lending");
    TCase *marks = tcase_create("marks");

    tcase_add_test(lending, sending_from_on_sent_keeps_nobody_waiting);
    tcase_add_test(lending, on_sent_may_write);
    tcase_add_test(lending, on_sent_may_end_the_socket_and_the_others_hear_of_it);
    tcase_add_test(lending, what_is_lent_comes_back_when_the_peer_resets);
    tcase_add_test(lending, the_end_of_the_plan_takes_back_nothing_and_calls_nobody);
    tcase_add_loop_test(lending, a_file_that_ends_early_resets_the_connection, 0, 2);
    tcase_add_test(lending, a_length_beyond_any_file_ends_early);
    tcase_add_test(lending, output_of_each_kind_is_seen_until_the_kernel_has_it);
    tcase_add_test(lending, a_long_file_keeps_nobody_waiting);
    tcase_add_test(lending, a_file_cut_while_it_is_sent_resets_the_connection);
    tcase_add_test(lending, a_file_that_cannot_be_read_closes);
    suite_add_tcase(suite, lending);
    tcase_add_test(marks, a_mark_comes_at_the_end_of_the_event_if_nothing_waits);
    tcase_add_loop_test(marks, a_mark_comes_when_the_kernel_has_all_before_it, 0, 4);
    tcase_add_test(marks, a_mark_comes_back_when_the_socket_closes_first);
    tcase_add_test(marks, a_stream_goes_on_from_mark_to_mark_and_keeps_nobody_waiting);
    tcase_add_test(marks, on_close_may_ask_how_much_was_dropped);
    tcase_add_test(marks, a_mark_without_a_free_chunk_is_refused);
    suite_add_tcase(suite, marks);
    return suite;
}

int
main(void)
{
    return sxe_test_main(lend_suite());
}
