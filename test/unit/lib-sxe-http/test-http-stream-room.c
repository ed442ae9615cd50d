/* SPDX-License-Identifier: MIT
 *
 * Streamed replies to a client that reads slowly: on_room, bodies that a handler passes on, and a
 * full output buffer.
 */
#include "http-site.h"

#include <stdlib.h>

#include "http-content.h"

#define CHUNKED     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define UNKNOWN     SXE_HTTP_LENGTH_UNKNOWN
#define GET_AND_END "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

#define GOOD(call) ck_assert_int_eq(call, 0)

/* ---- Room ---- */

#define STREAM_SIZE (50u * 1024 * 1024)

static struct {
    size_t sent;
    unsigned refused;
    unsigned most_unsent;
} stream;

/* Write parts as long as there is room. */
static void
stream_more(struct sxe_http_response *response)
{
    SXE *s = SXE__HTTP_SLOT_OF_RESPONSE(response)->connection->sxe;
    int result = 0;

    while (result == 0 && stream.sent < STREAM_SIZE) {
        size_t at = stream.sent % LONG_SIZE;

        result = sxe_http_write(response, content.bytes + at, 65536);
        stream.sent += result == 0 ? 65536 : 0;
    }
    if (sxe_unsent(s) > stream.most_unsent)
        stream.most_unsent = sxe_unsent(s);
    if (result == 0) {
        GOOD(sxe_http_end(response, NULL, 0));
        return;
    }
    ck_assert_int_eq(result, -ENOBUFS);
    stream.refused++;
    GOOD(sxe_http_on_room(response, stream_more));
    ck_assert_int_eq(sxe_http_on_room(response, stream_more), -EBUSY);
}

static enum sxe_http_verdict
stream_long(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    response->on_done = push_done;
    GOOD(sxe_http_begin(response, STREAM_SIZE));
    stream_more(response);
    return SXE_HTTP_LATER;
}

START_TEST(a_slow_reader_holds_a_stream_back_in_constant_memory)
{
    static const enum fake_call memory[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC, FAKE_MMAP};
    static char got[100000];
    size_t received = 0;
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = stream_long});
    peer = client();
    say(peer, GET("/"));
    EXPECT_NOTHING();
    for (unsigned i = 0; i < 4; i++)
        fake_os_forbid(memory[i], true);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 52428800\r\n\r\n");
    while (received < STREAM_SIZE) {
        size_t at = received % LONG_SIZE;
        size_t wanted = LONG_SIZE - at < sizeof(got) ? LONG_SIZE - at : sizeof(got);

        if (wanted > STREAM_SIZE - received)
            wanted = STREAM_SIZE - received;
        ck_assert_uint_eq(peer_receive(peer, got, wanted), wanted);
        ck_assert_mem_eq(got, content.bytes + at, wanted);
        received += wanted;
    }
    ck_assert_uint_eq(fake_os_violations(), 0);
    ck_assert_uint_gt(stream.refused, 3);
    ck_assert_uint_le(stream.most_unsent, sxe_get_config()->output_max);
    fake_os_reset();
    EXPECT("done", NULL, 0);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

static void
push_room(struct sxe_http_response *response)
{
    (void)response;
    event_push("room", NULL, 0);
}

static enum sxe_http_verdict
begin_only(struct sxe_http_request *request, struct sxe_http_response *response)
{
    GOOD(sxe_http_begin(response, UNKNOWN));
    GOOD(sxe_http_on_room(response, push_room));
    return push_later(request, response);
}

START_TEST(room_is_told_once_and_later)
{
    int peer;

    serve((struct sxe_http_config){.handler = begin_only});
    peer = client();
    say(peer, GET("/"));
    EXPECT("later", NULL, 0);
    EXPECT("room", NULL, 0);
    EXPECT_NOTHING();
    GOOD(sxe_http_write(site.response, "x", 1));
    GOOD(sxe_http_on_room(site.response, push_room));
    EXPECT("room", NULL, 0);
    GOOD(sxe_http_end(site.response, NULL, 0));
    EXPECT("done", NULL, 0);
    EXPECT_REPLY(peer, CHUNKED "1\r\nx\r\n0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
end_before_room(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    response->on_done = push_done;
    GOOD(sxe_http_begin(response, LONG_SIZE / 16));
    GOOD(sxe_http_write(response, content.bytes, LONG_SIZE / 16));
    GOOD(sxe_http_on_room(response, push_room));
    GOOD(sxe_http_end(response, NULL, 0));
    return SXE_HTTP_DONE;
}

START_TEST(room_is_not_told_to_a_reply_that_has_ended)
{
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = end_before_room});
    peer = client();
    say(peer, GET("/1") GET("/2"));
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 524288\r\n\r\n");
        expect_content(peer, LONG_SIZE / 16);
        EXPECT("done", NULL, 0);
    }
    EXPECT_NOTHING();
    close(peer);
    end_site();
    drop_content();
}
END_TEST

START_TEST(a_client_that_leaves_gets_no_room)
{
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = stream_long});
    peer = client();
    say(peer, GET("/"));
    EXPECT_NOTHING();
    peer_reset(peer);
    EXPECT("done", NULL, -ECONNRESET);
    EXPECT_NOTHING();
    end_site();
    drop_content();
}
END_TEST

/* ---- A stream through a handler, from request to reply ---- */

static void
resume_reading(struct sxe_http_response *response)
{
    sxe_http_resume(sxe_http_request_of(response));
}

static void
pass_on(struct sxe_http_request *request, struct sxe_http_response *response, struct sxe_span part,
        bool last)
{
    GOOD(sxe_http_write(response, part.base, part.length));
    if (last) {
        GOOD(sxe_http_end(response, NULL, 0));
        return;
    }
    sxe_http_pause(request);
    GOOD(sxe_http_on_room(response, resume_reading));
}

static enum sxe_http_verdict
pass_through(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, pass_on);
    GOOD(sxe_http_begin(response, request->head.length));
    response->on_done = push_done;
    return SXE_HTTP_LATER;
}

START_TEST(a_body_goes_through_as_fast_as_the_client_reads_it)
{
    char request[100];
    size_t sent = 0;
    size_t received = 0;
    char *got = malloc(LONG_SIZE);
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = pass_through, .stream = true});
    peer = client();
    snprintf(request, sizeof(request), "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n\r\n",
             LONG_SIZE);
    say(peer, request);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
    while (received < LONG_SIZE) {
        size_t piece = LONG_SIZE - sent < 100000 ? LONG_SIZE - sent : 100000;

        peer_send(peer, content.bytes + sent, piece);
        sent += piece;
        piece = sent - received > 300000 || sent == LONG_SIZE ? sent - received : 0;
        ck_assert_uint_eq(peer_receive(peer, got + received, piece), piece);
        received += piece;
    }
    ck_assert_mem_eq(got, content.bytes, LONG_SIZE);
    EXPECT("done", NULL, 0);
    free(got);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

/* ---- When output is full ---- */

static enum sxe_http_verdict
fill_output(struct sxe_http_request *request, struct sxe_http_response *response)
{
    size_t piece = 65536;

    (void)request;
    response->on_done = push_done;
    GOOD(sxe_http_begin(response, UNKNOWN));
    GOOD(sxe_http_add_trailer(response, "X", "y"));
    fake_os_fail(FAKE_SEND, 1, 0, EAGAIN);
    fake_os_fail(FAKE_SENDMSG, 1, 0, EAGAIN);
    for (; piece > 0; piece /= 2) {
        while (sxe_http_write(response, content.bytes, piece) == 0)
            continue;
    }
    ck_assert_int_eq(sxe_http_write(response, "x", 1), -ENOBUFS);
    ck_assert_int_eq(sxe_http_write(response, "x", SIZE_MAX), -ENOBUFS);
    ck_assert_int_eq(sxe_http_end(response, "x", 1), -ENOBUFS);
    GOOD(sxe_http_end(response, NULL, 0));
    fake_os_reset();
    return SXE_HTTP_DONE;
}

START_TEST(who_filled_the_output_can_end_the_reply)
{
    static char got[1200000];
    struct sxe_http_chunks chunks;
    struct sxe_span part;
    size_t length;
    size_t at;
    ssize_t n;
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = fill_output});
    peer = client();
    say(peer, GET_AND_END);
    EXPECT("done", NULL, 0);
    length = peer_receive(peer, got, sizeof(got));
    ck_assert_uint_gt(length, 1040000);
    sxe_http_chunks_init(&chunks, NULL, 0, NULL);
    at = (size_t)((char *)memmem(got, length, "\r\n\r\n", 4) - got) + 4;
    while ((n = sxe_http_chunks_read(&chunks, got + at, length - at, &part)) > 0)
        at += (size_t)n;
    ck_assert(chunks.done);
    ck_assert_uint_eq(at, length);
    ck_assert_mem_eq(got + length - 11, "0\r\nX: y\r\n\r\n", 11);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

static void
end_now(struct sxe_http_response *response)
{
    GOOD(sxe_http_end(response, NULL, 0));
}

static enum sxe_http_verdict
trail_too_late(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static char value[8000];

    (void)request;
    memset(value, 'v', sizeof(value) - 1);
    response->on_done = push_done;
    GOOD(sxe_http_begin(response, UNKNOWN));
    fake_os_fail(FAKE_SEND, 1, 10, EINTR);
    fake_os_fail(FAKE_SENDMSG, 1, 10, EINTR);
    while (sxe_http_write(response, content.bytes, 4096) == 0)
        continue;
    GOOD(sxe_http_add_trailer(response, "X", value));
    ck_assert_int_eq(sxe_http_end(response, NULL, 0), -ENOBUFS);
    GOOD(sxe_http_on_room(response, end_now));
    return SXE_HTTP_LATER;
}

START_TEST(a_trailer_that_there_is_no_room_for_may_be_sent_later)
{
    char *got = malloc(LONG_SIZE);
    size_t length;
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = trail_too_late});
    peer = client();
    say(peer, GET_AND_END);
    length = peer_receive(peer, got, LONG_SIZE);
    ck_assert_uint_gt(length, 1000000);
    ck_assert_mem_eq(got + length - 9, "vvvvv\r\n\r\n", 9);
    EXPECT("done", NULL, 0);
    free(got);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

static Suite *
stream_room_suite(void)
{
    Suite *suite = suite_create("http stream room");
    TCase *room = tcase_create("room");

    tcase_add_test(room, a_slow_reader_holds_a_stream_back_in_constant_memory);
    tcase_add_test(room, room_is_told_once_and_later);
    tcase_add_test(room, room_is_not_told_to_a_reply_that_has_ended);
    tcase_add_test(room, a_client_that_leaves_gets_no_room);
    tcase_add_test(room, a_body_goes_through_as_fast_as_the_client_reads_it);
    tcase_add_test(room, who_filled_the_output_can_end_the_reply);
    tcase_add_test(room, a_trailer_that_there_is_no_room_for_may_be_sent_later);
    suite_add_tcase(suite, room);
    return suite;
}

int
main(void)
{
    return sxe_test_main(stream_room_suite());
}
