/* SPDX-License-Identifier: MIT
 *
 * The requests of one connection are answered in order, in whatever pieces they come, however late
 * replies are, and whenever the client closes.
 */
#include "http-site.h"

#include <errno.h>

#define KEEP "Connection: keep-alive\r\n"

/* ---- Conversations, cut in two at every place ---- */

/* The input of one connection; its replies must not depend on the pieces in which it comes. */
static const char *const conversations[] = {
    GET("/a") GET("/b?c") "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
    "\r\nGET / HTTP/1.0\r\n" KEEP "\r\nGET /last HTTP/1.0\r\n\r\n",
    POST("Content-Length: 3\r\n", "abc") GET("/b"),
    POST("Transfer-Encoding: chunked\r\n", "1\r\na\r\n2;x\r\nbc\r\n0\r\nX: y\r\n\r\n") GET("/b"),
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" GET("/not"),
    GET("/a") "GET / HTTP/1.1\r\n\r\n",
    GET("/a") "GET / HTTP/2.0\r\n\r\n",
    POST("Transfer-Encoding: chunked\r\n", "1\r\nabc") GET("/not"),
    POST("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"),
    "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\nCONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n",
};
#define CONVERSATIONS (sizeof(conversations) / sizeof(conversations[0]))

/* Half-close and read all replies, without their Dates; returns their length. */
static size_t
all_replies(int peer, char *to, size_t size)
{
    peer_shutdown(peer);
    return take_dates_out(to, peer_receive(peer, to, size - 1));
}

START_TEST(the_replies_do_not_depend_on_how_the_bytes_come)
{
    const char *text = conversations[_i];
    size_t length = strlen(text);
    char whole[2000], split[2000];
    size_t whole_length;
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    say(peer, text);
    whole_length = all_replies(peer, whole, sizeof(whole));
    ck_assert_uint_gt(whole_length, 50);
    close(peer);
    for (size_t piece = 1; piece < length; piece++) {
        peer = client();
        if (piece < length / 2) /* in two pieces */
            say_in_pieces(peer, text, piece, piece);
        else /* all pieces have this length */
            say_in_pieces(peer, text, piece, length - piece);
        say_in_pieces(peer, text + piece, length - piece, length - piece);
        ck_assert_uint_eq(all_replies(peer, split, sizeof(split)), whole_length);
        ck_assert_mem_eq(split, whole, whole_length);
        close(peer);
    }
    end_site();
}
END_TEST

/* ---- Order ---- */

START_TEST(a_request_behind_one_that_is_answered_later_waits)
{
    int peer;

    serve((struct sxe_http_config){.handler = now_or_later});
    peer = client();
    say(peer, GET("/a") GET("/l1") GET("/b") GET("/l2") GET("/l3"));
    EXPECT_OF("now", "/a", 0);
    EXPECT_OF("later", "/l1", 0);
    EXPECT_OK(peer, "GET /a");
    say(peer, GET("/c"));
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_http_end(site.response, "1", 1), 0);
    EXPECT_OF("done", "/l1", 0);
    EXPECT_OF("now", "/b", 0);
    EXPECT_OF("later", "/l2", 0);
    EXPECT_OK(peer, "1");
    EXPECT_OK(peer, "GET /b");
    ck_assert_int_eq(sxe_http_end(site.response, "2", 1), 0);
    EXPECT_OF("done", "/l2", 0);
    EXPECT_OF("later", "/l3", 0);
    EXPECT_OK(peer, "2");
    PEER_EXPECT_SILENCE(peer);
    ck_assert_int_eq(sxe_http_end(site.response, "3", 1), 0);
    EXPECT_OF("done", "/l3", 0);
    EXPECT_OF("now", "/c", 0);
    EXPECT_OK(peer, "3");
    EXPECT_OK(peer, "GET /c");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_client_that_half_closes_gets_all_replies_where_half_close_is_set)
{
    int peer;

    serve((struct sxe_http_config){.handler = now_or_later, .half_close = true});
    peer = client();
    say(peer, GET("/a") GET("/l") GET("/b"));
    peer_shutdown(peer);
    EXPECT_OF("now", "/a", 0);
    EXPECT_OF("later", "/l", 0);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_http_end(site.response, "l", 1), 0);
    EXPECT_OF("done", "/l", 0);
    EXPECT_OF("now", "/b", 0);
    EXPECT_OK(peer, "GET /a");
    EXPECT_OK(peer, "l");
    EXPECT_OK(peer, "GET /b");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(the_last_request_of_a_connection_says_so)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo, .requests_max = 3});
    peer = client();
    say(peer, GET("/1") GET("/2"));
    EXPECT_OK(peer, "GET /1");
    EXPECT_OK(peer, "GET /2");
    say(peer, GET("/3") GET("/4"));
    EXPECT_STATUS(peer, "200 OK", LINES("", "Connection: close\r\n"), "GET /3");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

/* ---- Replies that the client does not read ---- */

#define REQUESTS 10000
#define BODY     1024
#define REPLY_LENGTH \
    (SXE_LITERAL_LENGTH("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n") + DATE_LINE + BODY)

static unsigned handled;

static enum sxe_http_verdict
reply_kilobyte(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static char body[BODY];

    (void)request;
    handled++;
    return sxe_http_reply(response, 200, NULL, body, sizeof(body));
}

/* Send as much as the server takes; false: it takes no more. */
static bool
send_some(int peer, const char *text, size_t length, size_t *at)
{
    ssize_t n = *at < length ? send(peer, text + *at, length - *at, MSG_DONTWAIT) : -1;

    turn(3);
    if (n > 0)
        *at += (size_t)n;
    return n > 0;
}

/* A client that pipelines without reading, until the server takes no more. */
static int
stuff(const char *text, size_t length, size_t *at)
{
    int peer = client();

    do {
        while (send_some(peer, text, length, at))
            ;
        turn(1000);
    } while (send_some(peer, text, length, at));
    ck_assert_uint_lt(handled, REQUESTS);
    ck_assert_uint_eq(connections_in(SXE__HTTP_SENDING), 1);
    ck_assert_uint_gt(sxe_unsent(site.http->connections[0].sxe), 0);
    return peer;
}

#define EACH (sizeof(GET("/")) - 1)

static char many[REQUESTS * EACH];

static void
pipeline_many(void)
{
    for (unsigned i = 0; i < REQUESTS; i++)
        memcpy(many + i * EACH, GET("/"), EACH);
}

START_TEST(ten_thousand_pipelined_requests_wait_for_who_reads)
{
    static char got[65536];
    size_t expected = REQUESTS * REPLY_LENGTH;
    size_t received = 0;
    size_t at = 0;
    int peer;

    pipeline_many();
    serve((struct sxe_http_config){.handler = reply_kilobyte});
    peer = stuff(many, sizeof(many), &at);
    while (received < expected) {
        size_t n = peer_receive(peer, got, 8192 < expected - received ? 8192 : expected - received);

        ck_assert_uint_gt(n, 0);
        received += n;
        send_some(peer, many, sizeof(many), &at);
        ck_assert_uint_lt(sxe_unsent(site.http->connections[0].sxe), 200000);
    }
    ck_assert_uint_eq(handled, REQUESTS);
    PEER_EXPECT_SILENCE(peer);
    say(peer, GET("/"));
    PEER_EXPECT(peer, "HTTP/1.1 200 OK\r\n");
    close(peer);
    end_site();
}
END_TEST

/* The chunks do not suffice for the mark that resumes reading, nor for unparsed input. */
START_TEST(output_goes_on_without_chunks)
{
    static const struct sxe_config loop = {.chunks = 2, .chunk_size = 16384};
    char got[REPLY_LENGTH];
    int peer;

    pipeline_many();
    serve_with((struct sxe_http_config){.handler = reply_kilobyte}, &loop);
    peer = client();
    peer_send(peer, many, 400 * EACH);
    for (unsigned i = 0; i < 400; i++) {
        ck_assert_uint_eq(peer_receive(peer, got, sizeof(got)), sizeof(got));
        ck_assert_int_eq(strncmp(got, "HTTP/1.1 200 OK\r\n", 17), 0);
    }
    ck_assert_uint_eq(handled, 400);
    close(peer);
    end_site();
}
END_TEST

START_TEST(who_goes_while_its_output_waits_is_gone)
{
    size_t at = 0;
    int peer;

    pipeline_many();
    serve((struct sxe_http_config){.handler = reply_kilobyte});
    peer = stuff(many, sizeof(many), &at);
    if (_i == 0)
        peer_reset(peer);
    else
        wait_ms(61000); /* longer than the stall timeout, twice if acknowledgements came late */
    turn(3);
    ck_assert_uint_eq(connections_in(SXE__HTTP_FREE), 100);
    if (_i == 1)
        close(peer);
    end_site();
}
END_TEST

/* ---- Clients that disconnect ---- */

static void
leave(int peer, bool by_reset)
{
    if (by_reset) {
        peer_reset(peer);
        return;
    }
    peer_shutdown(peer);
    PEER_EXPECT_END(peer);
    close(peer);
}

static const char *const unfinished[] = {"",
                                         "\r\n",
                                         "GET / HTTP/1.1\r\nX",
                                         POST("Content-Length: 4\r\n", "ab"),
                                         POST("Transfer-Encoding: chunked\r\n", "4\r\nab"),
                                         POST("Transfer-Encoding: chunked\r\n", "0\r\nX: y\r\n")};

START_TEST(a_request_that_was_not_whole_was_none)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later});
    peer = client();
    say(peer, unfinished[_i / 2]);
    leave(peer, _i % 2 == 1);
    turn(3);
    ck_assert_uint_eq(connections_in(SXE__HTTP_FREE), 100);
    end_site();
}
END_TEST

START_TEST(a_handler_hears_that_its_body_will_not_be_whole)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later, .stream = true, .on_reply = push_reply});
    peer = client();
    say(peer, POST("Content-Length: 4\r\n", "ab"));
    EXPECT_OF("later", "/", 0);
    sxe_http_read(site.request, push_body);
    EXPECT("body", NULL, false);
    leave(peer, _i == 1);
    EXPECT_OF("done", "/", -ECONNRESET);
    EXPECT_OF("reply", "/", 0);
    end_site();
}
END_TEST

START_TEST(a_handler_hears_that_its_client_is_gone)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/a"));
    EXPECT_OF("later", "/a", 0);
    if (_i == 1) {
        ck_assert_int_eq(sxe_http_begin(site.response, 10), 0);
        EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    }
    peer_reset(peer);
    EXPECT_OF("done", "/a", -ECONNRESET);
    EXPECT_OF("reply", "/a", _i == 0 ? 0 : 200);
    end_site();
}
END_TEST

/* Lent memory, longer than the kernel buffers. */
static char lent[8 * 1024 * 1024];

START_TEST(memory_is_lent_until_the_client_is_gone)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/a") GET("/b"));
    EXPECT_OF("later", "/a", 0);
    ck_assert_int_eq(sxe_http_end_borrowed(site.response, lent, sizeof(lent)), 0);
    EXPECT_NOTHING();
    ck_assert_uint_eq(connections_in(SXE__HTTP_SENDING), 1);
    if (_i == 0)
        peer_reset(peer);
    else
        wait_ms(31000);
    EXPECT_OF("done", "/a", _i == 0 ? -ECONNRESET : -ETIMEDOUT);
    EXPECT_OF("reply", "/a", 200);
    if (_i == 1)
        close(peer);
    end_site();
}
END_TEST

START_TEST(the_request_behind_lent_memory_waits_for_its_end)
{
    static char got[65536];
    size_t left =
        sizeof(lent) + sizeof("HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n") - 1 + DATE_LINE;
    int peer;

    serve((struct sxe_http_config){.handler = push_later});
    peer = client();
    say(peer, GET("/a") GET("/b"));
    EXPECT_OF("later", "/a", 0);
    ck_assert_int_eq(sxe_http_end_borrowed(site.response, lent, sizeof(lent)), 0);
    EXPECT_NOTHING();
    while (left > 0)
        left -= peer_receive(peer, got, left < sizeof(got) ? left : sizeof(got));
    EXPECT_OF("done", "/a", 0);
    EXPECT_OF("later", "/b", 0);
    ck_assert_int_eq(sxe_http_end(site.response, "b", 1), 0);
    EXPECT_OF("done", "/b", 0);
    EXPECT_OK(peer, "b");
    close(peer);
    end_site();
}
END_TEST

static Suite *
session_suite(void)
{
    Suite *suite = suite_create("http session");
    TCase *splits = tcase_create("splits");
    TCase *order = tcase_create("order");
    TCase *output = tcase_create("output");
    TCase *clients = tcase_create("clients that go");

    tcase_add_loop_test(splits, the_replies_do_not_depend_on_how_the_bytes_come, 0, CONVERSATIONS);
    suite_add_tcase(suite, splits);
    tcase_add_test(order, a_request_behind_one_that_is_answered_later_waits);
    tcase_add_test(order, a_client_that_half_closes_gets_all_replies_where_half_close_is_set);
    tcase_add_test(order, the_last_request_of_a_connection_says_so);
    suite_add_tcase(suite, order);
    tcase_add_test(output, ten_thousand_pipelined_requests_wait_for_who_reads);
    tcase_add_test(output, output_goes_on_without_chunks);
    tcase_add_loop_test(output, who_goes_while_its_output_waits_is_gone, 0, 2);
    suite_add_tcase(suite, output);
    tcase_add_loop_test(clients, a_request_that_was_not_whole_was_none, 0, 12);
    tcase_add_loop_test(clients, a_handler_hears_that_its_body_will_not_be_whole, 0, 2);
    tcase_add_loop_test(clients, a_handler_hears_that_its_client_is_gone, 0, 2);
    tcase_add_loop_test(clients, memory_is_lent_until_the_client_is_gone, 0, 2);
    tcase_add_test(clients, the_request_behind_lent_memory_waits_for_its_end);
    suite_add_tcase(suite, clients);
    return suite;
}

int
main(void)
{
    return sxe_test_main(session_suite());
}
