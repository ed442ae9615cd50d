/* SPDX-License-Identifier: MIT
 *
 * Streamed replies: framing, back-pressure, lent memory and files, trailers.
 */
#include "http-site.h"

#include <stdlib.h>

#include "http-content.h"

#define CHUNKED                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define UNKNOWN                 SXE_HTTP_LENGTH_UNKNOWN
#define LONG_SIZE               (8u * 1024 * 1024)
#define HEAD_OF(version, lines) "HEAD / HTTP/" version "\r\nHost: h\r\n" lines "\r\n"
#define GET_OF(version, lines)  "GET / HTTP/" version "\r\nHost: h\r\n" lines "\r\n"

#define GOOD(call) ck_assert_int_eq(call, 0)

/* ---- Framing ---- */

static enum sxe_http_verdict
known_length(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    GOOD(sxe_http_begin(response, 10));
    GOOD(sxe_http_write(response, "hello", 5));
    ck_assert_int_eq(sxe_http_write(response, "worlds", 6), -EINVAL);
    ck_assert_int_eq(sxe_http_end(response, "worlds", 6), -EINVAL);
    GOOD(sxe_http_write(response, NULL, 0));
    GOOD(sxe_http_end(response, "world", 5));
    return SXE_HTTP_DONE;
}

static enum sxe_http_verdict
no_length(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    GOOD(sxe_http_begin(response, UNKNOWN));
    GOOD(sxe_http_write(response, "hello", 5));
    GOOD(sxe_http_write(response, NULL, 0));
    GOOD(sxe_http_write(response, "sixteen bytes...", 16));
    GOOD(sxe_http_end(response, NULL, 0));
    return SXE_HTTP_DONE;
}

static enum sxe_http_verdict
no_body(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    GOOD(sxe_http_begin(response, UNKNOWN));
    GOOD(sxe_http_end(response, NULL, 0));
    return SXE_HTTP_DONE;
}

static enum sxe_http_verdict
length_only(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    GOOD(sxe_http_begin(response, 1000));
    GOOD(sxe_http_end(response, NULL, 0));
    return SXE_HTTP_DONE;
}

static enum sxe_http_verdict
not_modified(struct sxe_http_request *request, struct sxe_http_response *response)
{
    GOOD(sxe_http_set_status(response, 304));
    return no_length(request, response);
}

static enum sxe_http_verdict
reset_content(struct sxe_http_request *request, struct sxe_http_response *response)
{
    GOOD(sxe_http_set_status(response, 205));
    return no_length(request, response);
}

static enum sxe_http_verdict
two_trailers(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const char *const refused[] = {"Content-Length", "Host",  "Trailer", "Set-Cookie",
                                          "Content-Type",   "X\r\n", ""};

    (void)request;
    GOOD(sxe_http_add_field(response, "Trailer", "Digest, ETag"));
    GOOD(sxe_http_begin(response, UNKNOWN));
    GOOD(sxe_http_add_trailer(response, "Digest", "d"));
    GOOD(sxe_http_write(response, "hello", 5));
    for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        ck_assert_int_eq(sxe_http_add_trailer(response, refused[i], "x"), -EINVAL);
    ck_assert_int_eq(sxe_http_add_trailer(response, "X", "\n"), -EINVAL);
    GOOD(sxe_http_add_trailer(response, "ETag", "e"));
    GOOD(sxe_http_end(response, "last", 4));
    return SXE_HTTP_DONE;
}

static const struct framing {
    sxe_http_handler handler;
    const char *request;
    const char *reply;
    bool ends;
} framings[] = {
    {known_length, GET("/"), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhelloworld", false},
    {known_length, HEAD_OF("1.1", ""), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", false},
    {length_only, HEAD_OF("1.1", ""), "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", false},
    {no_length, GET("/"), CHUNKED "5\r\nhello\r\n10\r\nsixteen bytes...\r\n0\r\n\r\n", false},
    {no_length, GET_OF("1.0", "Connection: keep-alive\r\n"),
     "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhellosixteen bytes...", true},
    {no_length, HEAD_OF("1.1", ""), "HTTP/1.1 200 OK\r\n\r\n", false},
    {no_length, HEAD_OF("1.0", "Connection: keep-alive\r\n"),
     "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", false},
    {no_body, GET("/"), CHUNKED "0\r\n\r\n", false},
    {not_modified, GET("/"), "HTTP/1.1 304 Not Modified\r\n\r\n", false},
    {reset_content, GET("/"), "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", false},
    {two_trailers, GET("/"),
     "HTTP/1.1 200 OK\r\nTrailer: Digest, ETag\r\nTransfer-Encoding: chunked\r\n\r\n"
     "5\r\nhello\r\n4\r\nlast\r\n0\r\nDigest: d\r\nETag: e\r\n\r\n",
     false},
    {two_trailers, GET_OF("1.0", ""),
     "HTTP/1.1 200 OK\r\nTrailer: Digest, ETag\r\nConnection: close\r\n\r\nhellolast", true},
};

START_TEST(rfc_9112_6_parts_are_framed_as_version_method_and_status_want)
{
    const struct framing *framing = &framings[_i];
    int peer;

    serve((struct sxe_http_config){.handler = framing->handler});
    peer = client();
    say(peer, framing->request);
    EXPECT_REPLY(peer, framing->reply);
    if (framing->ends) {
        PEER_EXPECT_END(peer);
    } else { /* the next reply follows immediately, so nothing else was sent */
        say(peer, "? / HTTP/1.1\r\n\r\n");
        EXPECT_REFUSAL(peer, "400 Bad Request");
    }
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
end_early(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    response->on_done = push_done;
    GOOD(sxe_http_begin(response, 10));
    GOOD(sxe_http_end(response, "hello", 5));
    return SXE_HTTP_DONE;
}

START_TEST(rfc_9112_8_a_reply_that_ends_early_does_not_look_whole)
{
    int peer;

    serve((struct sxe_http_config){.handler = end_early});
    peer = client();
    say(peer, GET("/"));
    PEER_EXPECT_RESET(peer);
    EXPECT("done", NULL, -ECONNABORTED);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
fill_trailer(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    GOOD(sxe_http_add_field(response, "X", "23456"));
    GOOD(sxe_http_begin(response, UNKNOWN));
    GOOD(sxe_http_add_trailer(response, "Y", "23456"));
    ck_assert_int_eq(sxe_http_add_trailer(response, "Z", ""), -ENOBUFS);
    GOOD(sxe_http_end(response, NULL, 0));
    return SXE_HTTP_DONE;
}

START_TEST(fields_max_is_for_the_trailer_anew)
{
    int peer;

    serve((struct sxe_http_config){.handler = fill_trailer, .fields_max = 10});
    peer = client();
    say(peer, GET("/"));
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nX: 23456\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "0\r\nY: 23456\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

/* ---- 100 (Continue) ---- */

static enum sxe_http_verdict
begin_then_read(struct sxe_http_request *request, struct sxe_http_response *response)
{
    GOOD(sxe_http_begin(response, UNKNOWN));
    sxe_http_read(request, push_body);
    return push_later(request, response);
}

START_TEST(rfc_9110_10_1_1_no_100_comes_behind_the_head_of_a_reply)
{
    int peer;

    serve((struct sxe_http_config){.handler = begin_then_read, .stream = true});
    peer = client();
    say(peer, POST("Content-Length: 3\r\nExpect: 100-continue\r\n", ""));
    EXPECT("later", NULL, 0);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                       "Connection: close\r\n\r\n");
    PEER_EXPECT_SILENCE(peer);
    say(peer, "abc"); /* the client need not wait for 100 for ever */
    EXPECT_BODY("abc", true);
    GOOD(sxe_http_end(site.response, NULL, 0));
    EXPECT("done", NULL, 0);
    EXPECT_REPLY(peer, "0\r\n\r\n");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

/* ---- Lent memory ---- */

static enum sxe_http_verdict
lend_memory(struct sxe_http_request *request, struct sxe_http_response *response)
{
    size_t length = (size_t)atol(request->path.base + 1);

    response->on_done = push_done;
    GOOD(sxe_http_end_borrowed(response, content.bytes, length));
    return SXE_HTTP_DONE;
}

static enum sxe_http_verdict
lend_file(struct sxe_http_request *request, struct sxe_http_response *response)
{
    size_t length = (size_t)atol(request->path.base + 1);

    response->on_done = push_done;
    GOOD(sxe_http_end_file(response, content.file, 0, length));
    return SXE_HTTP_DONE;
}

/* Copy, send from a file, and lend memory, all in one reply. */
static enum sxe_http_verdict
lend_both(struct sxe_http_request *request, struct sxe_http_response *response)
{
    size_t length = (size_t)atol(request->path.base + 1);
    size_t copied = length < 100000 ? length / 2 : 100000;
    size_t half = copied + (length - copied) / 2;

    response->on_done = push_done;
    GOOD(sxe_http_begin(response, length));
    GOOD(sxe_http_write(response, content.bytes, copied));
    GOOD(sxe_http_write_file(response, content.file, (off_t)copied, half - copied));
    GOOD(sxe_http_end_borrowed(response, content.bytes + half, length - half));
    return SXE_HTTP_DONE;
}

static const sxe_http_handler lenders[] = {lend_memory, lend_file, lend_both};

static void
ask_for(int peer, unsigned length)
{
    char request[100];

    snprintf(request, sizeof(request), "GET /%u HTTP/1.1\r\nHost: h\r\n\r\n", length);
    say(peer, request);
}

static void
expect_so_much(int peer, unsigned length)
{
    char head[100];

    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", length);
    EXPECT_REPLY(peer, head);
    expect_content(peer, length);
}

START_TEST(what_was_lent_is_done_when_the_kernel_has_it)
{
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = lenders[_i]});
    peer = client();
    ask_for(peer, LONG_SIZE);
    ask_for(peer, 9);
    EXPECT_NOTHING();
    ck_assert_uint_eq(connections_in(SXE__HTTP_SENDING), 1);
    expect_so_much(peer, LONG_SIZE);
    EXPECT("done", NULL, 0);
    expect_so_much(peer, 9);
    EXPECT_OF("done", "/9", 0);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

START_TEST(head_lends_nothing)
{
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = lenders[_i]});
    peer = client();
    say(peer, "HEAD /100000 HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    EXPECT("done", NULL, 0);
    PEER_EXPECT_SILENCE(peer);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

static enum sxe_http_verdict
chunk_of_file(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    response->on_done = push_done;
    GOOD(sxe_http_begin(response, UNKNOWN));
    GOOD(sxe_http_write(response, "<", 1));
    GOOD(sxe_http_write_file(response, content.file, 0, 0));
    GOOD(sxe_http_write_file(response, content.file, 0, 3));
    GOOD(sxe_http_end_file(response, content.file, 3, 17));
    return SXE_HTTP_DONE;
}

START_TEST(rfc_9112_7_1_a_file_may_be_a_chunk)
{
    int peer;

    make_content(LONG_SIZE);
    memcpy(content.bytes, "abcdefghijklmnopqrstuvwxyz", 26);
    serve((struct sxe_http_config){.handler = chunk_of_file});
    peer = client();
    say(peer, GET("/"));
    EXPECT_REPLY(peer, CHUNKED "1\r\n<\r\n3\r\nabc\r\n11\r\ndefghijklmnopqrst\r\n0\r\n\r\n");
    EXPECT("done", NULL, 0);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

static enum sxe_http_verdict
more_than_the_file(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    response->on_done = push_done;
    GOOD(sxe_http_end_file(response, content.file, LONG_SIZE - 10, 20));
    return SXE_HTTP_DONE;
}

START_TEST(rfc_9112_8_a_file_that_ends_early_resets_the_connection)
{
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = more_than_the_file});
    peer = client();
    say(peer, GET("/"));
    EXPECT("done", NULL, -ENODATA);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
    ck_assert_uint_eq(peer_receive(peer, (char[20]){0}, 10), 10);
    PEER_EXPECT_RESET(peer);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

START_TEST(a_client_that_leaves_ends_what_was_lent)
{
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = lend_file, .on_reply = push_reply});
    peer = client();
    ask_for(peer, LONG_SIZE);
    EXPECT_NOTHING();
    peer_reset(peer);
    EXPECT("done", NULL, -ECONNRESET);
    EXPECT("reply", NULL, 200);
    end_site();
    drop_content();
}
END_TEST

/* The handler has ended, and the body is lent, so that no byte of it is in the library's output. */
START_TEST(a_server_that_breaks_off_resets_who_has_not_got_all_that_was_lent)
{
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = lenders[_i]});
    peer = client();
    ask_for(peer, LONG_SIZE);
    EXPECT_NOTHING();
    ck_assert_uint_eq(sxe_unsent(site.http->connections[0].sxe), 0);
    sxe_http_break_off(site.http);
    EXPECT("done", NULL, -ECONNABORTED);
    ck_assert_int_eq(peer_drain(peer), ECONNRESET);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

static void
push_sent_bytes(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    push_target("bytes", request, (long)summary->body_length);
    ck_assert_int_eq(summary->result, -ECONNRESET);
}

/* The kernel takes 1000 bytes of the body, then the client resets the connection. */
START_TEST(what_was_not_sent_is_in_no_summary)
{
    const size_t head =
        SXE_LITERAL_LENGTH("HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n") + DATE_LINE;
    int peer;

    make_content(LONG_SIZE);
    serve((struct sxe_http_config){.handler = lenders[_i], .on_reply = push_sent_bytes});
    peer = client();
    if (lenders[_i] == lend_file) {
        fake_os_limit(FAKE_SENDFILE, 1000);
        fake_os_fail(FAKE_SENDFILE, 2, 1, ECONNRESET);
    } else {
        fake_os_limit(FAKE_SENDMSG, head + 1000);
        fake_os_fail(FAKE_SEND, 1, 1, ECONNRESET);
    }
    ask_for(peer, LONG_SIZE);
    EXPECT("done", NULL, -ECONNRESET);
    EXPECT("bytes", NULL, 1000);
    close(peer);
    end_site();
    drop_content();
}
END_TEST

static Suite *
stream_suite(void)
{
    Suite *suite = suite_create("http stream");
    TCase *framed = tcase_create("framing");
    TCase *lent = tcase_create("what is lent");

    tcase_add_loop_test(framed, rfc_9112_6_parts_are_framed_as_version_method_and_status_want, 0,
                        (int)(sizeof(framings) / sizeof(framings[0])));
    tcase_add_test(framed, rfc_9112_8_a_reply_that_ends_early_does_not_look_whole);
    tcase_add_test(framed, fields_max_is_for_the_trailer_anew);
    tcase_add_test(framed, rfc_9110_10_1_1_no_100_comes_behind_the_head_of_a_reply);
    suite_add_tcase(suite, framed);
    tcase_add_loop_test(lent, what_was_lent_is_done_when_the_kernel_has_it, 0, 3);
    tcase_add_loop_test(lent, head_lends_nothing, 0, 3);
    tcase_add_test(lent, rfc_9112_7_1_a_file_may_be_a_chunk);
    tcase_add_test(lent, rfc_9112_8_a_file_that_ends_early_resets_the_connection);
    tcase_add_loop_test(lent, what_was_not_sent_is_in_no_summary, 0, 2);
    tcase_add_test(lent, a_client_that_leaves_ends_what_was_lent);
    tcase_add_loop_test(lent, a_server_that_breaks_off_resets_who_has_not_got_all_that_was_lent, 0,
                        3);
    suite_add_tcase(suite, lent);
    return suite;
}

int
main(void)
{
    return sxe_test_main(stream_suite());
}
