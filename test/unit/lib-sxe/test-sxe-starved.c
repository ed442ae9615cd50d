/* SPDX-License-Identifier: MIT
 *
 * Tests more sockets with half a request than chunks to keep them in: whole requests are still
 * answered, the other bytes wait in the kernel for a chunk, and nothing is lost. Also tests the
 * library with the smallest possible configuration.
 */
#include "sxe-private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture-log.h"
#include "fake-os.h"
#include "fake-time.h"
#include "pattern.h"
#include "test-main.h"

#define PEERS 8

static SXE *ours[PEERS];
static int peers[PEERS];

/* Answer each whole line with the same line; leave the rest unread. */
static void
echo_lines(SXE *s, int length)
{
    char *end;

    ck_assert_int_gt(length, 0);
    while ((end = memchr(SXE_BUF(s), '\n', (size_t)SXE_BUF_USED(s))) != NULL) {
        unsigned line = (unsigned)(end + 1 - SXE_BUF(s));
        ck_assert_int_eq(sxe_write(s, SXE_BUF(s), line), 0);
        sxe_consume(s, line);
    }
}

static void
open_peers(struct sxe_config config, SXE_IN_EVENT_READ read)
{
    SXE *listener;

    plan_start_with(PEERS + 1, &config);
    listener = listen_tcp(read);
    for (unsigned i = 0; i < PEERS; i++)
        ours[i] = accept_peer(listener, &peers[i]);
}

static void
close_peers(void)
{
    for (unsigned i = 0; i < PEERS; i++)
        close(peers[i]);
    turn(30);
    while (event_count() > 0)
        ck_assert_str_eq(event_pop()->name, "close");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), PEERS);
    ck_assert_uint_eq(sxe_chunks_free(CONTEXT->chunks), sxe_chunks_number(CONTEXT->chunks));
    plan_stop();
}

static void
say(unsigned i, const char *text)
{
    peer_send(peers[i], text, strlen(text));
    turn(3);
}

#define EXPECT_STATE(i, state) ck_assert_int_eq(sxe_get_state(ours[i]), SXE_STATE_##state)

static const struct sxe_config one_chunk = {.chunk_size = 64, .chunks = 1};
static const struct sxe_config two_chunks = {.chunk_size = 64, .chunks = 2};

START_TEST(whole_requests_are_answered_while_others_hold_all_chunks)
{
    open_peers(two_chunks, echo_lines);
    say(0, "half");
    say(1, "half");
    EXPECT_STATE(0, READING);
    EXPECT_STATE(1, READING);
    ck_assert_uint_eq(sxe_chunks_free(CONTEXT->chunks), 0);
    for (unsigned i = 2; i < PEERS; i++) {
        say(i, "whole\n");
        PEER_EXPECT(peers[i], "whole\n");
        EXPECT_STATE(i, IDLE);
    }
    close_peers();
}
END_TEST

START_TEST(all_halves_become_whole_in_the_end)
{
    open_peers(_i == 0 ? one_chunk : two_chunks, echo_lines);
    for (unsigned i = 0; i < PEERS; i++)
        say(i, "first half, ");
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_STARVED), PEERS - 1 - (unsigned)_i);
    for (unsigned i = 0; i < PEERS; i++)
        say(i, "second half\n");
    for (unsigned i = 0; i < PEERS; i++)
        PEER_EXPECT(peers[i], "first half, second half\n");
    for (unsigned i = 0; i < PEERS; i++)
        EXPECT_STATE(i, IDLE);
    close_peers();
}
END_TEST

START_TEST(the_longest_starved_is_fed_first)
{
    open_peers(one_chunk, echo_lines);
    for (unsigned i = 0; i < 4; i++)
        say(i, "half ");
    say(3, "a line\n");
    say(2, "a line\n");
    EXPECT_STATE(1, STARVED);
    say(0, "a line\n");
    EXPECT_STATE(1, READING);
    say(1, "a line\n");
    for (unsigned i = 0; i < 4; i++)
        PEER_EXPECT(peers[i], "half a line\n");
    close_peers();
}
END_TEST

START_TEST(of_whole_and_half_only_the_half_waits)
{
    open_peers(one_chunk, echo_lines);
    say(0, "half");
    say(1, "whole\nwhole too\nand half");
    PEER_EXPECT(peers[1], "whole\nwhole too\n");
    EXPECT_STATE(1, STARVED);
    say(0, "\n");
    PEER_EXPECT(peers[0], "half\n");
    EXPECT_STATE(1, READING);
    say(1, "\n");
    PEER_EXPECT(peers[1], "and half\n");
    close_peers();
}
END_TEST

/* More bytes wait in the kernel than one peek can show. */
START_TEST(a_starved_socket_loses_nothing_of_a_long_input)
{
    char line[1001];

    memset(line, 'x', sizeof(line));
    for (unsigned i = 1; i <= 20; i++)
        line[50 * i - 1] = '\n';
    line[1000] = '\0';
    open_peers(one_chunk, echo_lines);
    say(0, "half");
    say(1, line);
    PEER_EXPECT(peers[1], line);
    say(0, "\n");
    PEER_EXPECT(peers[0], "half\n");
    close_peers();
}
END_TEST

/* ---- Output takes no chunk that input needs ---- */

/* Write as much as is accepted to a peer that does not read. */
static void
fill_output(unsigned i)
{
    unsigned taken = 0;

    shrink_kernel_buffers(sxe_fd(ours[i]), peers[i]);
    while (sxe_send(ours[i], pattern(MIB), MIB, NULL) == 0)
        taken++;
    ck_assert_uint_gt(taken, 0);
    ck_assert_int_eq(sxe_write(ours[i], "x", 1), -ENOBUFS);
    turn(3);
    EXPECT_STATE(i, WRITING);
}

START_TEST(a_peer_that_does_not_read_starves_no_other)
{
    static const struct sxe_config one_each = {.chunk_size = 64, .chunks = 2 * (PEERS + 1)};

    open_peers(one_each, echo_lines);
    fill_output(0);
    for (unsigned i = 1; i < PEERS; i++) {
        say(i, "half ");
        EXPECT_STATE(i, READING);
    }
    for (unsigned i = 1; i < PEERS; i++) {
        say(i, "a line\n");
        PEER_EXPECT(peers[i], "half a line\n");
    }
    close_peers();
}
END_TEST

START_TEST(of_few_chunks_input_has_half)
{
    open_peers(two_chunks, echo_lines);
    fill_output(0);
    say(1, "half ");
    say(2, "half ");
    EXPECT_STATE(1, READING);
    EXPECT_STATE(2, STARVED);
    say(1, "a line\n");
    say(2, "a line\n");
    PEER_EXPECT(peers[1], "half a line\n");
    PEER_EXPECT(peers[2], "half a line\n");
    close_peers();
}
END_TEST

/* ---- A starved socket is closed, or paused ---- */

static void
starve(unsigned i)
{
    say(0, "half");
    say(i, "half");
    EXPECT_STATE(i, STARVED);
}

START_TEST(a_starved_socket_can_be_closed)
{
    open_peers(one_chunk, echo_lines);
    starve(1);
    if (_i == 0)
        sxe_close(ours[1]);
    else
        sxe_abort(ours[1]);
    EXPECT("close", ours[1], _i == 0 ? 0 : ECONNABORTED);
    say(2, "half");
    EXPECT_STATE(2, STARVED);
    say(0, "\n");
    EXPECT_STATE(2, READING);
    close_peers();
}
END_TEST

START_TEST(a_starved_sockets_peer_can_reset)
{
    open_peers(one_chunk, echo_lines);
    starve(1);
    peer_reset(peers[1]);
    EXPECT("close", ours[1], ECONNRESET);
    peers[1] = dup(peers[2]);
    close_peers();
}
END_TEST

START_TEST(what_a_starved_sockets_peer_said_before_its_end_is_not_lost)
{
    open_peers(one_chunk, push_read_keep);
    starve(1);
    EXPECT("read", ours[0], 4);
    EXPECT("read", ours[1], 4);
    peer_shutdown(peers[1]);
    EXPECT_NOTHING();
    sxe_consume(ours[0], 4);
    EXPECT_READ(ours[1], "half");
    EXPECT("close", ours[1], 0);
    close_peers();
}
END_TEST

START_TEST(a_starved_socket_that_is_paused_takes_no_chunk)
{
    open_peers(one_chunk, echo_lines);
    starve(1);
    sxe_pause(ours[1]);
    EXPECT_STATE(1, HANDLING);
    say(0, "\n");
    ck_assert_uint_eq(sxe_chunks_free(CONTEXT->chunks), 1);
    say(2, "half");
    EXPECT_STATE(2, READING);
    sxe_resume(ours[1], SXE_RESUME_WHEN_MORE);
    EXPECT_STATE(1, STARVED);
    say(1, "\n");
    say(2, "\n");
    PEER_EXPECT(peers[1], "half\n");
    close_peers();
}
END_TEST

static void
pause_at_once(SXE *s, int length)
{
    push_read_keep(s, length);
    sxe_pause(s);
}

START_TEST(pausing_while_starved_bytes_are_shown_keeps_them)
{
    open_peers(one_chunk, push_read_keep);
    ours[1]->on_read = pause_at_once;
    say(0, "half");
    say(1, "more");
    EXPECT_STATE(1, HANDLING);
    EXPECT_READ(ours[0], "half");
    EXPECT_READ(ours[1], "more");
    ours[1]->on_read = push_read;
    sxe_consume(ours[0], 4);
    EXPECT_NOTHING();
    sxe_resume(ours[1], SXE_RESUME_IMMEDIATE);
    EXPECT_READ(ours[1], "more");
    close_peers();
}
END_TEST

START_TEST(a_starved_socket_has_its_own_timeout)
{
    struct sxe_config config = one_chunk;

    config.timeout_ms[SXE_STATE_STARVED] = 1000;
    fake_time_start(UINT64_C(1000000000), 0);
    open_peers(config, echo_lines);
    starve(1);
    EXPECT("close", ours[1], ETIMEDOUT);
    EXPECT_STATE(0, READING);
    close_peers();
}
END_TEST

/* ---- Failures while bytes are peeked at ---- */

START_TEST(f5_an_interrupted_look_is_repeated)
{
    open_peers(one_chunk, echo_lines);
    say(0, "half");
    fake_os_fail(FAKE_RECV, 1, 2, EINTR);
    say(1, "whole\n");
    PEER_EXPECT(peers[1], "whole\n");
    close_peers();
}
END_TEST

START_TEST(f5_a_look_that_finds_nothing_waits_for_the_next_event)
{
    open_peers(one_chunk, echo_lines);
    say(0, "half");
    fake_os_fail(FAKE_RECV, 1, 1, EAGAIN);
    say(1, "who");
    say(1, "le\n");
    PEER_EXPECT(peers[1], "whole\n");
    close_peers();
}
END_TEST

START_TEST(f5_bytes_that_cannot_be_taken_from_the_kernel_close)
{
    open_peers(one_chunk, push_read);
    ours[0]->on_read = push_read_keep;
    say(0, "half");
    EXPECT("read", ours[0], 4);
    /* The first call of recv peeks at the bytes, and the second one, which receives them, fails. */
    fake_os_fail(FAKE_RECV, 2, 1, _i == 0 ? ECONNRESET : EINTR);
    say(1, "whole");
    EXPECT_READ(ours[1], "whole");
    if (_i == 0)
        EXPECT("close", ours[1], EPIPE);
    else
        EXPECT_NOTHING();
    close_peers();
}
END_TEST

/* Take the last chunk for the output of another socket, while the input of this one is only in the
 * loop's buffer. */
static void
flood_another(SXE *s, int length)
{
    (void)s;
    (void)length;
    ck_assert_int_eq(sxe_send(ours[2], pattern(MIB), MIB, NULL), 0);
}

START_TEST(unread_bytes_that_cannot_be_kept_close)
{
    open_peers(one_chunk, flood_another);
    shrink_kernel_buffers(sxe_fd(ours[2]), peers[2]);
    capture_log();
    say(1, "half");
    EXPECT("close", ours[1], ENOBUFS);
    ck_assert_str_eq(line_without_numbers(0), "     2 3 - closing: no chunk is free to keep its "
                                              "unread bytes; configure more than 1\n");
    expect_pattern(peers[2], MIB);
    close_peers();
}
END_TEST

/* ---- The smallest configuration ---- */

struct hostile {
    unsigned sockets;
    unsigned chunks;
    size_t send;  /* how many bytes a peer sends at a time */
    size_t write; /* how many bytes the kernel takes at a time; 0: all */
};

static const struct hostile hostile[] = {
    {2, 2, 1, 0},   {2, 2, 7, 0},   {2, 2, 1000, 0},  {3, 2, 1, 0},   {3, 2, 7, 0},
    {3, 2, 63, 0},  {3, 2, 64, 0},  {3, 2, 1000, 0},  {2, 1, 1, 0},   {3, 1, 1, 0},
    {3, 1, 65, 0},  {3, 3, 1, 0},   {3, 3, 9, 0},     {3, 200, 1, 1}, {3, 200, 64, 1},
    {3, 200, 7, 7}, {2, 200, 1, 3}, {3, 200, 65, 63},
};

static unsigned
line_of(unsigned peer, unsigned number, char *line)
{
    return (unsigned)snprintf(line, 64, "peer %u says %u%.*s\n", peer, number, (int)(number % 30),
                              "------------------------------");
}

START_TEST(the_least_of_everything_echoes_the_same_bytes)
{
    const struct hostile *with = &hostile[_i];
    struct sxe_config config = {.chunk_size = 1, .chunks = with->chunks, .accept_batch = 1};
    char said[PEERS][4 * KIB];
    size_t length = 0;
    SXE *listener;

    plan_start_with(with->sockets, &config);
    listener = listen_tcp(echo_lines);
    for (unsigned i = 0; i + 1 < with->sockets; i++) {
        accept_peer(listener, &peers[i]);
        length = 0;
        for (unsigned number = 0; number < 60; number++)
            length += line_of(i, number, said[i] + length);
    }
    fake_os_limit(FAKE_SEND, with->write);
    fake_os_limit(FAKE_SENDMSG, with->write);
    for (size_t at = 0; at < length; at += with->send) {
        size_t step = length - at < with->send ? length - at : with->send;
        for (unsigned i = 0; i + 1 < with->sockets; i++)
            peer_send(peers[i], said[i] + at, step);
        turn(1);
    }
    for (unsigned i = 0; i + 1 < with->sockets; i++) {
        expect_bytes(peers[i], said[i], length);
        close(peers[i]);
        EXPECT("close", NULL, 0);
    }
    plan_stop();
}
END_TEST

static Suite *
starved_suite(void)
{
    Suite *suite = suite_create("sxe starved");
    TCase *waiting = tcase_create("waiting");
    TCase *least = tcase_create("least");

    tcase_add_test(waiting, whole_requests_are_answered_while_others_hold_all_chunks);
    tcase_add_loop_test(waiting, all_halves_become_whole_in_the_end, 0, 2);
    tcase_add_test(waiting, the_longest_starved_is_fed_first);
    tcase_add_test(waiting, of_whole_and_half_only_the_half_waits);
    tcase_add_test(waiting, a_starved_socket_loses_nothing_of_a_long_input);
    tcase_add_test(waiting, a_peer_that_does_not_read_starves_no_other);
    tcase_add_test(waiting, of_few_chunks_input_has_half);
    tcase_add_loop_test(waiting, a_starved_socket_can_be_closed, 0, 2);
    tcase_add_test(waiting, a_starved_sockets_peer_can_reset);
    tcase_add_test(waiting, what_a_starved_sockets_peer_said_before_its_end_is_not_lost);
    tcase_add_test(waiting, a_starved_socket_that_is_paused_takes_no_chunk);
    tcase_add_test(waiting, pausing_while_starved_bytes_are_shown_keeps_them);
    tcase_add_test(waiting, a_starved_socket_has_its_own_timeout);
    tcase_add_test(waiting, f5_an_interrupted_look_is_repeated);
    tcase_add_test(waiting, f5_a_look_that_finds_nothing_waits_for_the_next_event);
    tcase_add_loop_test(waiting, f5_bytes_that_cannot_be_taken_from_the_kernel_close, 0, 2);
    tcase_add_test(waiting, unread_bytes_that_cannot_be_kept_close);
    tcase_add_loop_test(least, the_least_of_everything_echoes_the_same_bytes, 0,
                        (int)(sizeof(hostile) / sizeof(hostile[0])));
    suite_add_tcase(suite, waiting);
    suite_add_tcase(suite, least);
    return suite;
}

int
main(void)
{
    return sxe_test_main(starved_suite());
}
