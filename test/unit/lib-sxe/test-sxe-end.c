/* SPDX-License-Identifier: MIT
 *
 * Tests the peer's end while bytes are unread or output is unsent.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"
#include "sxe-io.h"
#include "test-main.h"

#define CHUNK 64

static SXE *ours;
static int peer;

static void
push_close_and_dropped(SXE *s)
{
    push_close(s);
    event_push("dropped", s, (long)sxe_dropped(s));
}

/* Open a connection from `peer`, a plain socket, to `ours`. Chunks are small. */
static void
open_ours(SXE_IN_EVENT_READ read, bool half_close, unsigned chunks)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.chunk_size = CHUNK;
    config.chunks = chunks;
    plan_start_with(10, &config);
    ours = accept_peer(listen_tcp(read), &peer);
    sxe_set_half_close(ours, half_close);
    ours->on_close = push_close_and_dropped;
}

static void
expect_closed(int error, long dropped)
{
    EXPECT("close", ours, error);
    EXPECT("dropped", ours, dropped);
    close(peer);
    plan_stop();
}

/* ---- Unread bytes ---- */

/* Answer a line by a line, and ask for the next one. */
static void
answer_a_line(SXE *s, int length)
{
    const char *end = SXE_BUF_STRNSTR(s, "\n");

    push_read_keep(s, length);
    if (length == 0)
        sxe_close(s);
    if (end == NULL)
        return;
    length = (int)(end + 1 - SXE_BUF(s));
    ck_assert_int_eq(sxe_write(s, SXE_BUF(s), (unsigned)length), 0);
    sxe_consume(s, (unsigned)length);
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
}

START_TEST(lines_that_came_with_the_end_are_all_shown_and_answered)
{
    const bool half_close = _i == 1;

    open_ours(answer_a_line, half_close, 0);
    peer_send(peer, "a\nbc\nd\nrest", 11);
    peer_shutdown(peer);
    EXPECT_READ(ours, "a\nbc\nd\nrest");
    EXPECT_READ(ours, "bc\nd\nrest");
    EXPECT_READ(ours, "d\nrest");
    EXPECT_READ(ours, "rest");
    if (half_close)
        EXPECT("read", ours, 0);
    PEER_EXPECT(peer, "a\nbc\nd\n");
    PEER_EXPECT_END(peer);
    expect_closed(0, 0);
}
END_TEST

static void
pause_and_keep(SXE *s, int length)
{
    push_read_keep(s, length);
    sxe_pause(s);
    s->on_read = answer_a_line;
}

START_TEST(a_socket_that_is_resumed_before_the_end_is_read_shows_its_bytes)
{
    const bool half_close = _i == 1;

    open_ours(pause_and_keep, half_close, 0);
    peer_send(peer, "a\nb\n", 4);
    EXPECT_READ(ours, "a\nb\n");
    peer_shutdown(peer);
    sxe_resume(ours, SXE_RESUME_IMMEDIATE);
    EXPECT_READ(ours, "a\nb\n");
    EXPECT_READ(ours, "b\n");
    if (half_close)
        EXPECT("read", ours, 0);
    expect_closed(0, 0);
}
END_TEST

/* No chunk is free, so bytes are only peeked at. */
START_TEST(lines_that_are_peeked_at_are_all_shown)
{
    SXE *holder;
    int other;

    open_ours(answer_a_line, false, 1);
    holder = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read_keep, push_close);
    ck_assert_int_eq(sxe_listen(holder), 0);
    holder = accept_peer(holder, &other);
    peer_send(other, "mine", 4);
    EXPECT_READ(holder, "mine");
    peer_send(peer, "a\nbc\nd\n", 7);
    peer_shutdown(peer);
    EXPECT_READ(ours, "a\nbc\nd\n");
    EXPECT_READ(ours, "bc\nd\n");
    EXPECT_READ(ours, "d\n");
    PEER_EXPECT(peer, "a\nbc\nd\n");
    EXPECT("close", ours, 0);
    EXPECT("dropped", ours, 0);
    close(peer);
    close(other);
    EXPECT("close", holder, 0);
    plan_stop();
}
END_TEST

START_TEST(bytes_for_which_nobody_asks_do_not_keep_the_socket_open)
{
    open_ours(push_read_keep, false, 0);
    peer_send(peer, "abc", 3);
    EXPECT_READ(ours, "abc");
    peer_shutdown(peer);
    expect_closed(0, 0);
}
END_TEST

static unsigned calls;

/* Consume nothing, and ask for the same bytes again. */
static void
ask_again(SXE *s, int length)
{
    calls++;
    if (length == 0)
        event_push("end", s, 0);
    if (length == 0)
        sxe_close(s);
    else
        sxe_resume(s, SXE_RESUME_IMMEDIATE);
}

START_TEST(a_program_that_consumes_nothing_is_not_asked_for_ever)
{
    const bool half_close = _i == 1;

    open_ours(ask_again, half_close, 0);
    calls = 0;
    peer_send(peer, "abc", 3);
    turn(20);
    ck_assert_uint_gt(calls, 10); /* more bytes may come */
    peer_shutdown(peer);
    turn(1);
    calls = 0;
    turn(5);
    ck_assert_uint_le(calls, 2);
    if (half_close)
        EXPECT("end", ours, 0);
    expect_closed(0, 0);
}
END_TEST

START_TEST(a_full_buffer_of_which_nothing_is_consumed_ends_the_socket)
{
    char bytes[CHUNK + 10] = "";

    open_ours(ask_again, _i == 1, 0);
    peer_send(peer, bytes, sizeof(bytes));
    peer_shutdown(peer);
    expect_closed(EMSGSIZE, 0);
}
END_TEST

/* Ask again, but pause. */
static void
ask_and_pause(SXE *s, int length)
{
    push_read_keep(s, length);
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
    sxe_pause(s);
}

START_TEST(a_socket_that_pauses_in_a_full_buffer_goes_on)
{
    char bytes[CHUNK + 2];

    memset(bytes, 'x', sizeof(bytes));
    open_ours(ask_and_pause, false, 0);
    peer_send(peer, bytes, sizeof(bytes));
    peer_shutdown(peer);
    EXPECT("read", ours, CHUNK);
    sxe_resume(ours, SXE_RESUME_IMMEDIATE);
    EXPECT("read", ours, CHUNK);
    EXPECT_NOTHING();
    ours->on_read = push_read;
    sxe_resume(ours, SXE_RESUME_IMMEDIATE);
    EXPECT("read", ours, CHUNK);
    EXPECT_READ(ours, "xx");
    expect_closed(0, 0);
}
END_TEST

/* ---- Unsent output ---- */

/* The first line is answered when it comes. The second one is answered in the call that the first
 * one asked for, and then the kernel is full. */
START_TEST(output_that_the_kernel_takes_after_the_end_is_sent)
{
    open_ours(answer_a_line, false, 0);
    peer_send(peer, "a\nb\n", 4);
    peer_shutdown(peer);
    fake_os_fail(FAKE_SEND, 2, 1, EAGAIN);
    EXPECT_READ(ours, "a\nb\n");
    EXPECT_READ(ours, "b\n");
    turn(2);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_CLOSING);
    ck_assert_int_eq(sxe_write(ours, "late", 4), -ENOTCONN);
    /* epoll reports that there is room when the peer has acknowledged bytes */
    sxe_io_write_again(ours);
    PEER_EXPECT(peer, "a\nb\n");
    PEER_EXPECT_END(peer);
    expect_closed(0, 0);
}
END_TEST

START_TEST(output_that_the_kernel_refuses_after_the_end_counts_as_dropped)
{
    open_ours(answer_a_line, false, 0);
    peer_send(peer, "a\nbcd\n", 6);
    peer_shutdown(peer);
    fake_os_fail(FAKE_SEND, 2, 0, EPIPE);
    EXPECT_READ(ours, "a\nbcd\n");
    EXPECT_READ(ours, "bcd\n");
    expect_closed(EPIPE, 4);
}
END_TEST

static void
write_nothing_more(SXE *s, int length)
{
    push_read(s, length);
    ck_assert_int_eq(sxe_send(s, "lent", 4, push_sent), 0);
}

START_TEST(a_socket_that_only_wants_the_rest_does_not_wait_for_its_output)
{
    open_ours(write_nothing_more, false, 0);
    sxe_io_read_rest(ours, true);
    fake_os_fail(FAKE_SEND, 1, 0, EAGAIN);
    peer_send(peer, "reply", 5);
    peer_shutdown(peer);
    EXPECT_READ(ours, "reply");
    EXPECT("sent", ours, -ECONNRESET);
    expect_closed(0, 4);
}
END_TEST

static void
write_and_abort(SXE *s)
{
    static char lent[2000];

    push_deferred(s);
    ck_assert_int_eq(sxe_write(s, "copied", 6), 0);
    ck_assert_int_eq(sxe_write_static(s, lent, sizeof(lent)), 0);
    ck_assert_int_eq(sxe_abort(s), 0);
}

START_TEST(output_that_was_not_offered_to_the_kernel_counts_as_dropped)
{
    open_ours(push_read, false, 0);
    ck_assert_int_eq(sxe_defer(ours, write_and_abort), 0);
    EXPECT("deferred", ours, 0);
    expect_closed(ECONNABORTED, 2006);
}
END_TEST

static void
write_much(SXE *s)
{
    static const char bytes[10 * CHUNK];

    push_deferred(s);
    ck_assert_int_eq(sxe_write(s, bytes, sizeof(bytes)), 0);
}

/* The kernel takes 100 bytes, and there is no chunk for all others. */
START_TEST(output_for_which_there_is_no_chunk_counts_as_dropped)
{
    open_ours(push_read, false, 4);
    fake_os_limit(FAKE_SEND, 100);
    ck_assert_int_eq(sxe_defer(ours, write_much), 0);
    EXPECT("deferred", ours, 0);
    expect_closed(ENOBUFS, 10 * CHUNK - 100);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-end");
    TCase *unread = tcase_create("unread");
    TCase *unsent = tcase_create("unsent");

    tcase_add_loop_test(unread, lines_that_came_with_the_end_are_all_shown_and_answered, 0, 2);
    tcase_add_loop_test(unread, a_socket_that_is_resumed_before_the_end_is_read_shows_its_bytes, 0,
                        2);
    tcase_add_test(unread, lines_that_are_peeked_at_are_all_shown);
    tcase_add_test(unread, bytes_for_which_nobody_asks_do_not_keep_the_socket_open);
    tcase_add_loop_test(unread, a_program_that_consumes_nothing_is_not_asked_for_ever, 0, 2);
    tcase_add_loop_test(unread, a_full_buffer_of_which_nothing_is_consumed_ends_the_socket, 0, 2);
    tcase_add_test(unread, a_socket_that_pauses_in_a_full_buffer_goes_on);
    suite_add_tcase(suite, unread);
    tcase_add_test(unsent, output_that_the_kernel_takes_after_the_end_is_sent);
    tcase_add_test(unsent, output_that_the_kernel_refuses_after_the_end_counts_as_dropped);
    tcase_add_test(unsent, a_socket_that_only_wants_the_rest_does_not_wait_for_its_output);
    tcase_add_test(unsent, output_that_was_not_offered_to_the_kernel_counts_as_dropped);
    tcase_add_test(unsent, output_for_which_there_is_no_chunk_counts_as_dropped);
    suite_add_tcase(suite, unsent);
    return sxe_test_main(suite);
}
