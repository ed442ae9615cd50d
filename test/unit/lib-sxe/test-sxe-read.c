/* SPDX-License-Identifier: MIT
 *
 * Tests reading: which bytes a callback sees, which are kept, which wait; pausing and resuming.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"
#include "sxe-io.h"
#include "test-main.h"

#define CHUNK 64

/* Start a listener, with `chunks` chunks of CHUNK bytes in all; 0: as many as can be needed. */
static SXE *
start(SXE_IN_EVENT_READ read, unsigned chunks)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    config.chunk_size = CHUNK;
    config.chunks = chunks;
    plan_start_with(10, &config);
    return listen_tcp(read);
}

static void
end(SXE *s, int peer)
{
    close(peer);
    EXPECT("close", s, 0);
    plan_stop();
}

static char pattern[5000];

static void
fill_pattern(void)
{
    for (unsigned i = 0; i < sizeof(pattern); i++)
        pattern[i] = (char)('a' + i % 23 + i / 300 % 3);
}

/* ---- Bytes that a callback sees ---- */

START_TEST(consumed_bytes_are_gone_and_others_seen_again_with_the_next)
{
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);

    peer_send(peer, "one", 3);
    EXPECT_READ(s, "one");
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_READING);
    EXPECT_NOTHING();
    peer_send(peer, "two", 3);
    const struct event *event = EXPECT("read", s, 3);
    ck_assert_str_eq(event->data, "onetwo");
    sxe_consume(s, 4);
    ck_assert_int_eq(SXE_BUF_USED(s), 2);
    ck_assert_mem_eq(SXE_BUF(s), "wo", 2);
    EXPECT_NOTHING();
    peer_send(peer, "!", 1);
    event = EXPECT("read", s, 1);
    ck_assert_str_eq(event->data, "wo!");
    sxe_consume(s, 0);
    ck_assert_int_eq(SXE_BUF_USED(s), 3);
    SXE_BUF_CLEAR(s);
    ck_assert_int_eq(SXE_BUF_USED(s), 0);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_IDLE);
    SXE_BUF_CLEAR(s);
    end(s, peer);
}
END_TEST

static void
take_two(SXE *s, int length)
{
    push_read_keep(s, length);
    sxe_consume(s, SXE_BUF_USED(s) < 2 ? (unsigned)SXE_BUF_USED(s) : 2);
}

START_TEST(consuming_some_in_on_read_keeps_the_rest)
{
    int peer;
    SXE *s = accept_peer(start(take_two, 0), &peer);

    peer_send(peer, "12345", 5);
    EXPECT_READ(s, "12345");
    EXPECT_NOTHING();
    ck_assert_mem_eq(SXE_BUF(s), "345", 3);
    ck_assert_int_eq(SXE_BUF_USED(s), 3);
    peer_send(peer, "6", 1);
    EXPECT_READ(s, "3456");
    peer_send(peer, "7", 1);
    EXPECT_READ(s, "567");
    end(s, peer);
}
END_TEST

START_TEST(consuming_more_than_there_is_stops_the_program)
{
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);

    peer_send(peer, "abc", 3);
    EXPECT_READ(s, "abc");
    sxe_consume(s, 4);
}
END_TEST

START_TEST(a_message_arrives_whole_wherever_it_is_split)
{
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);

    fill_pattern();
    for (unsigned i = 1; i < CHUNK; i++) {
        peer_send(peer, pattern, i);
        EXPECT("read", s, (long)i);
        peer_send(peer, pattern + i, CHUNK - i);
        const struct event *event = EXPECT("read", s, CHUNK - (long)i);
        ck_assert_uint_eq(event->length, CHUNK);
        ck_assert_mem_eq(event->data, pattern, CHUNK);
        SXE_BUF_CLEAR(s);
    }
    end(s, peer);
}
END_TEST

START_TEST(no_bytes_of_one_connection_reach_another)
{
    SXE *listener = start(push_read_keep, 0);
    SXE *s[5];
    int peers[5];

    for (unsigned i = 0; i < 5; i++)
        s[i] = accept_peer(listener, &peers[i]);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 5; i++) {
            char text[2] = {(char)('0' + i), '\0'};
            peer_send(peers[i], text, 1);
            const struct event *event = EXPECT("read", s[i], 1);
            ck_assert_uint_eq(event->length, round + 1);
            ck_assert_uint_eq(strspn(event->data, text), round + 1);
        }
    }
    for (unsigned i = 0; i < 5; i++) {
        close(peers[i]);
        EXPECT("close", s[i], 0);
    }
    plan_stop();
}
END_TEST

static void
look_in_front(SXE *s, int length)
{
    ck_assert_int_lt(SXE_BUF_USED(s) - 5, 0);
    for (int i = SXE_BUF_USED(s) - 4; i < 0; i++)
        ck_assert_int_eq(SXE_BUF(s)[i], '\0');
    push_read_keep(s, length);
}

/* Done twice: once the bytes are in the loop's own buffer, once in a chunk. */
START_TEST(four_zero_bytes_stand_in_front_of_the_bytes)
{
    int peer;
    SXE *s = accept_peer(start(look_in_front, 0), &peer);

    ck_assert_int_eq(SXE_BUF_USED(s), 0);
    ck_assert_int_eq(SXE_BUF(s)[SXE_BUF_USED(s) - 4], 0);
    for (unsigned round = 0; round < 3; round++) {
        peer_send(peer, "x", 1);
        EXPECT_READ(s, "x");
        peer_send(peer, "yz", 2);
        EXPECT("read", s, 2);
        ck_assert_int_eq(SXE_BUF(s)[SXE_BUF_USED(s) - 4], '\0');
        SXE_BUF_CLEAR(s);
    }
    end(s, peer);
}
END_TEST

START_TEST(text_is_found_among_the_unread_bytes)
{
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);

    peer_send(peer, "GET / \0 Host: a\r\n\r\n", 19);
    EXPECT("read", s, 19);
    ck_assert_ptr_eq(SXE_BUF_STRNSTR(s, "GET"), SXE_BUF(s));
    ck_assert_ptr_eq(SXE_BUF_STRNSTR(s, "\r\n\r\n"), SXE_BUF(s) + 15);
    ck_assert_ptr_null(SXE_BUF_STRNSTR(s, "host"));
    ck_assert_ptr_eq(SXE_BUF_STRNCASESTR(s, "hOST"), SXE_BUF(s) + 8);
    ck_assert_int_eq(SXE_BUF_ROOM(s), CHUNK - 19);
    end(s, peer);
}
END_TEST

START_TEST(an_idle_connection_owns_no_chunk)
{
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);

    ck_assert_uint_eq(s->in.chunk, SXE_NONE);
    peer_send(peer, "x", 1);
    EXPECT_READ(s, "x");
    ck_assert_uint_ne(s->in.chunk, SXE_NONE);
    SXE_BUF_CLEAR(s);
    ck_assert_uint_eq(s->in.chunk, SXE_NONE);
    end(s, peer);
}
END_TEST

START_TEST(without_callbacks_bytes_are_dropped)
{
    plan_start(3);
    SXE *listener = sxe_new_tcp(NULL, "127.0.0.1", 0, NULL, NULL, NULL);
    ck_assert_int_eq(sxe_listen(listener), 0);
    int peer = peer_connect(sxe_local_port(listener));
    turn(5);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_IDLE), 1);
    peer_send(peer, "nobody listens", 14);
    turn(5);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_IDLE), 1);
    close(peer);
    turn(5);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 2);
    plan_stop();
}
END_TEST

static void
switch_reader(SXE *s, int length)
{
    event_push("first reader", s, length);
    s->on_read = push_read;
}

START_TEST(the_reader_may_be_changed_while_it_reads)
{
    int peer;
    SXE *s = accept_peer(start(switch_reader, 0), &peer);

    peer_send(peer, "a", 1);
    EXPECT("first reader", s, 1);
    peer_send(peer, "b", 1);
    EXPECT_READ(s, "ab");
    end(s, peer);
}
END_TEST

/* ---- Messages longer than a chunk ---- */

static char got[sizeof(pattern)];
static size_t got_length;

static void
collect(SXE *s, int length)
{
    ck_assert_int_eq(SXE_BUF_USED(s), length);
    ck_assert_uint_le(got_length + (size_t)length, sizeof(got));
    memcpy(got + got_length, SXE_BUF(s), (size_t)length);
    got_length += (size_t)length;
    SXE_BUF_CLEAR(s);
    if (got_length == sizeof(got))
        event_push("all", s, (long)got_length);
}

START_TEST(a_message_longer_than_a_chunk_comes_in_pieces)
{
    int peer;
    SXE *s = accept_peer(start(collect, 0), &peer);

    fill_pattern();
    peer_send(peer, pattern, sizeof(pattern));
    EXPECT("all", s, sizeof(pattern));
    ck_assert_mem_eq(got, pattern, sizeof(pattern));
    end(s, peer);
}
END_TEST

/* Consume n bytes at a time from outside any event, whenever the chunk is full. */
START_TEST(a_full_chunk_is_not_read_further_until_it_is_consumed)
{
    const unsigned each = (unsigned)_i;
    unsigned taken = 0;
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);

    fill_pattern();
    peer_send(peer, pattern, 300);
    pump();
    while (taken + CHUNK < 300) {
        unsigned reads;

        turn(4);
        event_reset();
        ck_assert_int_eq(SXE_BUF_USED(s), CHUNK);
        ck_assert_mem_eq(SXE_BUF(s), pattern + taken, CHUNK);
        reads = fake_os_calls(FAKE_RECV);
        EXPECT_NOTHING();
        ck_assert_uint_eq(fake_os_calls(FAKE_RECV), reads);
        sxe_consume(s, each);
        taken += each;
    }
    turn(5);
    event_reset();
    ck_assert_int_eq(SXE_BUF_USED(s), (int)(300 - taken));
    SXE_BUF_CLEAR(s);
    end(s, peer);
}
END_TEST

/* ---- Reading into the program's own memory ---- */

START_TEST(more_than_a_chunk_is_read_at_once_into_other_memory)
{
    static char into[1000];
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);
    unsigned reads;

    fill_pattern();
    peer_send(peer, pattern, 300);
    pump();
    turn(4);
    event_reset();
    ck_assert_uint_eq(sxe_io_take(s, into, 10), 10);
    ck_assert_uint_eq(sxe_io_take(s, into + 10, CHUNK - 10), CHUNK - 10);
    ck_assert_uint_eq(sxe_io_take(s, into + CHUNK, 100), 100);
    ck_assert_uint_eq(sxe_io_take(s, into + CHUNK + 100, sizeof(into) - CHUNK - 100),
                      300 - CHUNK - 100);
    ck_assert_mem_eq(into, pattern, 300);
    reads = fake_os_calls(FAKE_RECV);
    ck_assert_uint_eq(sxe_io_take(s, into, sizeof(into)), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_RECV), reads);
    EXPECT_NOTHING();
    peer_send(peer, "next", 4);
    EXPECT_READ(s, "next");
    ck_assert_uint_eq(sxe_io_take(s, into, sizeof(into)), 4);
    end(s, peer);
}
END_TEST

START_TEST(an_error_after_the_chunk_ends_the_socket)
{
    static char into[1000];
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);

    peer_send(peer, pattern, 300);
    pump();
    turn(4);
    event_reset();
    fake_os_fail(FAKE_RECV, 1, 1, ECONNRESET);
    ck_assert_uint_eq(sxe_io_take(s, into, sizeof(into)), CHUNK);
    EXPECT("close", s, ECONNRESET);
    close(peer);
    plan_stop();
}
END_TEST

/* ---- Pausing ---- */

START_TEST(a_paused_socket_reads_nothing)
{
    int peer;
    SXE *s = accept_peer(start(push_read_keep, 0), &peer);

    sxe_pause(s);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_HANDLING);
    peer_send(peer, "patience", 8);
    EXPECT_NOTHING();
    sxe_resume(s, _i == 0 ? SXE_RESUME_WHEN_MORE : SXE_RESUME_IMMEDIATE);
    ck_assert_uint_eq(event_count(), 0);
    EXPECT_READ(s, "patience");
    EXPECT_NOTHING();
    SXE_BUF_CLEAR(s);
    end(s, peer);
}
END_TEST

static void
pause_and_keep(SXE *s, int length)
{
    push_read_keep(s, length);
    sxe_pause(s);
}

START_TEST(resuming_when_more_waits_for_more)
{
    int peer;
    SXE *s = accept_peer(start(pause_and_keep, 0), &peer);

    peer_send(peer, "request", 7);
    EXPECT_READ(s, "request");
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_HANDLING);
    sxe_resume(s, SXE_RESUME_WHEN_MORE);
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_READING);
    EXPECT_NOTHING();
    peer_send(peer, "s", 1);
    const struct event *event = EXPECT("read", s, 1);
    ck_assert_str_eq(event->data, "requests");
    sxe_resume(s, SXE_RESUME_WHEN_MORE);
    end(s, peer);
}
END_TEST

START_TEST(resuming_immediately_shows_the_unread_bytes_in_this_turn)
{
    int peer;
    SXE *s = accept_peer(start(pause_and_keep, 0), &peer);

    peer_send(peer, "request", 7);
    EXPECT_READ(s, "request");
    for (unsigned i = 0; i < 5; i++) {
        sxe_resume(s, SXE_RESUME_IMMEDIATE);
        sxe_resume(s, SXE_RESUME_IMMEDIATE);
        ck_assert_uint_eq(event_count(), 0);
        turn(1);
        EXPECT_READ(s, "request");
        EXPECT_NOTHING();
    }
    sxe_consume(s, 5);
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
    sxe_pause(s);
    EXPECT_NOTHING();
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
    EXPECT_READ(s, "st");
    SXE_BUF_CLEAR(s);
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
    EXPECT_NOTHING();
    end(s, peer);
}
END_TEST

static void
take_one_and_read_on(SXE *s, int length)
{
    push_read_keep(s, length);
    sxe_consume(s, 1);
    sxe_pause(s);
    if (SXE_BUF_USED(s) > 0)
        sxe_resume(s, SXE_RESUME_IMMEDIATE);
    else
        sxe_resume(s, SXE_RESUME_WHEN_MORE);
}

START_TEST(resuming_inside_on_read_reads_on)
{
    int peer;
    SXE *s = accept_peer(start(take_one_and_read_on, 0), &peer);

    peer_send(peer, "abcd", 4);
    EXPECT_READ(s, "abcd");
    EXPECT_READ(s, "bcd");
    EXPECT_READ(s, "cd");
    EXPECT_READ(s, "d");
    EXPECT_NOTHING();
    peer_send(peer, "e", 1);
    EXPECT_READ(s, "e");
    end(s, peer);
}
END_TEST

START_TEST(a_paused_socket_hears_of_the_end_when_it_resumes)
{
    int peer;
    SXE *s = accept_peer(start(pause_and_keep, 0), &peer);

    peer_send(peer, "bye", 3);
    EXPECT_READ(s, "bye");
    close(peer);
    EXPECT_NOTHING();
    sxe_resume(s, _i == 0 ? SXE_RESUME_WHEN_MORE : SXE_RESUME_IMMEDIATE);
    if (_i == 1) {
        EXPECT_READ(s, "bye");
        EXPECT_NOTHING();
        sxe_resume(s, SXE_RESUME_WHEN_MORE);
    }
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

static void
pause_at_once(SXE *s)
{
    push_connected(s);
    sxe_pause(s);
}

START_TEST(connected_may_pause)
{
    SXE *listener = start(push_read, 0);
    int peer;

    listener->on_connected = pause_at_once;
    SXE *s = accept_peer(listener, &peer);
    peer_send(peer, "wait", 4);
    EXPECT_NOTHING();
    sxe_resume(s, SXE_RESUME_WHEN_MORE);
    EXPECT_READ(s, "wait");
    end(s, peer);
}
END_TEST

START_TEST(a_paused_socket_still_writes)
{
    int peer;
    SXE *s = accept_peer(start(pause_and_keep, 0), &peer);

    peer_send(peer, "?", 1);
    EXPECT_READ(s, "?");
    ck_assert_int_eq(sxe_write(s, "!", 1), 0);
    PEER_EXPECT(peer, "!");
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_HANDLING);
    peer_reset(peer);
    EXPECT("close", s, ECONNRESET);
    plan_stop();
}
END_TEST

#define MANY 1000

START_TEST(a_thousand_resumes_in_one_turn_are_all_delivered)
{
    static SXE *sockets[MANY];
    static int peers[MANY];

    plan_start(MANY + 1);
    SXE *listener = listen_tcp(pause_and_keep);
    for (unsigned i = 0; i < MANY; i++) {
        sockets[i] = accept_peer(listener, &peers[i]);
        peer_send(peers[i], "x", 1);
        EXPECT_READ(sockets[i], "x");
    }
    for (unsigned round = 0; round < 3; round++) {
        unsigned seen = 0;

        for (unsigned i = 0; i < MANY; i++)
            sockets[i]->on_read = collect;
        got_length = 0;
        for (unsigned i = 0; i < MANY; i++)
            sxe_resume(sockets[i], SXE_RESUME_IMMEDIATE);
        turn(1);
        ck_assert_uint_eq(got_length, round == 0 ? MANY : 0);
        for (unsigned i = 0; i < MANY; i++)
            seen += sxe_get_state(sockets[i]) == SXE_STATE_IDLE;
        ck_assert_uint_eq(seen, MANY);
    }
    for (unsigned i = 0; i < MANY; i++) {
        close(peers[i]);
        EXPECT("close", sockets[i], 0);
    }
    plan_stop();
}
END_TEST

/* ---- Without a free chunk: more in test-sxe-starved.c ---- */

static SXE *holders[2];

static void
abort_holders(SXE *s)
{
    push_deferred(s);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(sxe_abort(holders[i]), 0);
}

START_TEST(two_chunks_at_once_feed_the_one_that_starves)
{
    SXE *listener = start(push_read_keep, 2);
    int peers[3];

    for (unsigned i = 0; i < 2; i++) {
        holders[i] = accept_peer(listener, &peers[i]);
        peer_send(peers[i], "mine", 4);
        EXPECT_READ(holders[i], "mine");
    }
    SXE *s = accept_peer(listener, &peers[2]);
    peer_send(peers[2], "hungry", 6);
    EXPECT_READ(s, "hungry");
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_STARVED);
    ck_assert_int_eq(sxe_defer(listener, abort_holders), 0);
    EXPECT("deferred", listener, 0);
    EXPECT("close", holders[0], ECONNABORTED);
    EXPECT("close", holders[1], ECONNABORTED);
    EXPECT_READ(s, "hungry");
    ck_assert_int_eq(sxe_get_state(s), SXE_STATE_READING);
    EXPECT_NOTHING();
    close(peers[0]);
    close(peers[1]);
    end(s, peers[2]);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-read");
    TCase *shown = tcase_create("shown");
    TCase *pausing = tcase_create("pausing");

    tcase_add_test(shown, consumed_bytes_are_gone_and_others_seen_again_with_the_next);
    tcase_add_test(shown, consuming_some_in_on_read_keeps_the_rest);
    tcase_add_test_raise_signal(shown, consuming_more_than_there_is_stops_the_program, SIGABRT);
    tcase_add_test(shown, a_message_arrives_whole_wherever_it_is_split);
    tcase_add_test(shown, no_bytes_of_one_connection_reach_another);
    tcase_add_test(shown, four_zero_bytes_stand_in_front_of_the_bytes);
    tcase_add_test(shown, text_is_found_among_the_unread_bytes);
    tcase_add_test(shown, an_idle_connection_owns_no_chunk);
    tcase_add_test(shown, without_callbacks_bytes_are_dropped);
    tcase_add_test(shown, the_reader_may_be_changed_while_it_reads);
    tcase_add_test(shown, a_message_longer_than_a_chunk_comes_in_pieces);
    tcase_add_loop_test(shown, a_full_chunk_is_not_read_further_until_it_is_consumed, 1, CHUNK + 1);
    suite_add_tcase(suite, shown);
    tcase_add_test(shown, more_than_a_chunk_is_read_at_once_into_other_memory);
    tcase_add_test(shown, an_error_after_the_chunk_ends_the_socket);
    tcase_add_loop_test(pausing, a_paused_socket_reads_nothing, 0, 2);
    tcase_add_test(pausing, resuming_when_more_waits_for_more);
    tcase_add_test(pausing, resuming_immediately_shows_the_unread_bytes_in_this_turn);
    tcase_add_test(pausing, resuming_inside_on_read_reads_on);
    tcase_add_loop_test(pausing, a_paused_socket_hears_of_the_end_when_it_resumes, 0, 2);
    tcase_add_test(pausing, connected_may_pause);
    tcase_add_test(pausing, a_paused_socket_still_writes);
    tcase_add_test(pausing, a_thousand_resumes_in_one_turn_are_all_delivered);
    tcase_add_test(pausing, two_chunks_at_once_feed_the_one_that_starves);
    suite_add_tcase(suite, pausing);
    return sxe_test_main(suite);
}
