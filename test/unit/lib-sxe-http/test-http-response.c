/* SPDX-License-Identifier: MIT
 *
 * Complete replies: the fields that the library adds, calls that it refuses, and replies that
 * cannot be sent.
 */
#include "http-site.h"

#include <stdlib.h>

#include "capture-log.h"

#define GET_AS(method, version, lines) method " / HTTP/" version "\r\nHost: h\r\n" lines "\r\n"
#define CLOSE                          "Connection: close\r\n"

/* ---- Complete replies ---- */

static unsigned reply_with; /* the status with which the handler replies */

static enum sxe_http_verdict
reply_hello(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    return sxe_http_reply(response, reply_with, NULL, "hello", 5);
}

static const struct whole {
    const char *request;
    unsigned status;
    const char *reply;
    bool ends;
} wholes[] = {
    {GET("/"), 200, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false},
    {GET("/"), 599, "HTTP/1.1 599 \r\nContent-Length: 5\r\n\r\nhello", false},
    {GET_AS("HEAD", "1.1", ""), 200, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false},
    {GET_AS("GET", "1.1", CLOSE), 200,
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", true},
    {GET_AS("GET", "1.0", ""), 200,
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", true},
    {GET_AS("GET", "1.0", "Connection: keep-alive\r\n"), 200,
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello", false},
    {GET("/"), 204, "HTTP/1.1 204 No Content\r\n\r\n", false},
    {GET("/"), 205, "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", false},
    {GET("/"), 304, "HTTP/1.1 304 Not Modified\r\n\r\n", false},
    {GET_AS("HEAD", "1.0", ""), 204, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", true},
};

START_TEST(rfc_9110_whole_replies_have_what_their_status_and_method_allow)
{
    const struct whole *whole = &wholes[_i];
    int peer;

    reply_with = whole->status;
    serve((struct sxe_http_config){.handler = reply_hello});
    peer = client();
    say(peer, whole->request);
    EXPECT_REPLY(peer, whole->reply);
    if (whole->ends) {
        PEER_EXPECT_END(peer);
    } else { /* the next reply follows immediately, so nothing else was sent */
        reply_with = 200;
        say(peer, GET("/"));
        EXPECT_OK(peer, "hello");
    }
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
reply_status(struct sxe_http_request *request, struct sxe_http_response *response)
{
    return sxe_http_reply_status(response, (unsigned)atol(request->path.base + 1));
}

START_TEST(rfc_9110_15_a_status_is_its_own_body_where_it_may_have_one)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_status});
    peer = client();
    say(peer, GET("/404"));
    EXPECT_STATUS(peer, "404 Not Found", LINES(TEXT, ""), "404 Not Found\n");
    say(peer, GET("/299"));
    EXPECT_STATUS(peer, "299 ", LINES(TEXT, ""), "299\n");
    say(peer, GET("/304"));
    EXPECT_REPLY(peer, "HTTP/1.1 304 Not Modified\r\n\r\n");
    say(peer, GET("/205"));
    EXPECT_REPLY(peer, "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

static const char too_long[1000];
static const struct sxe_http_page pages[] = {
    {404, "text/html", "<p>no</p>", 9},
    {400, "text/plain", "what?", 5},
    {500, "text/html", too_long, sizeof(too_long)},
};

START_TEST(a_status_has_the_page_of_the_configuration)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_status, .pages = pages, .pages_number = 2});
    peer = client();
    say(peer, GET("/404"));
    EXPECT_STATUS(peer, "404 Not Found", LINES("Content-Type: text/html\r\n", ""), "<p>no</p>");
    say(peer, GET("/403"));
    EXPECT_STATUS(peer, "403 Forbidden", LINES(TEXT, ""), "403 Forbidden\n");
    say(peer, "HEAD /404 HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_REPLY(peer, "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n"
                       "Content-Length: 9\r\n\r\n");
    say(peer, "rubbish\r\n\r\n");
    EXPECT_STATUS(peer, "400 Bad Request",
                  LINES("Content-Type: text/plain\r\n", "Connection: close\r\n"), "what?");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(where_there_is_no_room_for_a_page_a_status_is_its_own_body)
{
    const struct sxe_config config = {.output_max = 1000};
    int peer;

    serve_with((struct sxe_http_config){.handler = reply_status, .pages = pages, .pages_number = 3},
               &config);
    peer = client();
    say(peer, GET("/500"));
    EXPECT_STATUS(peer, "500 Internal Server Error", LINES(TEXT, ""),
                  "500 Internal Server Error\n");
    close(peer);
    end_site();
}
END_TEST

START_TEST(rfc_9110_15_a_reason_is_its_name_or_nothing)
{
    ck_assert_str_eq(sxe_http_reason(100), "Continue");
    ck_assert_str_eq(sxe_http_reason(431), "Request Header Fields Too Large");
    ck_assert_str_eq(sxe_http_reason(511), "Network Authentication Required");
    ck_assert_str_eq(sxe_http_reason(0), "");
    ck_assert_str_eq(sxe_http_reason(418), "");
    ck_assert_str_eq(sxe_http_reason(65536 + 200), "");
}
END_TEST

START_TEST(rfc_9110_6_6_1_date_is_the_wall_clocks_even_when_somebody_sets_it)
{
    char got[256];
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    for (unsigned i = 0; i < 3; i++) {
        static const char *const dates[] = {"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                                            "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
                                            "Date: Sun, 06 Nov 1994 07:49:39 GMT\r\n"};

        say(peer, GET_AS("HEAD", "1.1", ""));
        got[peer_receive(peer, got, 75)] = '\0';
        ck_assert_ptr_nonnull(strstr(got, dates[i]));
        fake_time_advance(SXE_NS_PER_SECOND);
        if (i == 1)
            fake_time_step_wall(-3600 * (int64_t)SXE_NS_PER_SECOND);
    }
    close(peer);
    end_site();
}
END_TEST

START_TEST(configured_lines_are_in_every_reply)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo, .fields = "Server: s\r\nX-A: b\r\n"});
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES("Server: s\r\nX-A: b\r\n", ""), "GET /");
    say(peer, "GET / HTTP/9.9\r\n\r\n");
    EXPECT_STATUS(peer, "505 HTTP Version Not Supported",
                  LINES("Server: s\r\nX-A: b\r\n" TEXT, CLOSE), "505 HTTP Version Not Supported\n");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
forget_to_reply(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    ck_assert_int_eq(sxe_http_add_field(response, "Upgrade", "x"), 0);
    return SXE_HTTP_DONE;
}

START_TEST(fields_of_a_reply_that_did_not_come_are_in_no_other)
{
    int peer;

    serve((struct sxe_http_config){.handler = forget_to_reply});
    for (unsigned i = 0; i < 2; i++) {
        peer = client();
        say(peer, GET("/"));
        EXPECT_REFUSAL(peer, "500 Internal Server Error");
        close(peer);
    }
    end_site();
}
END_TEST

/* ---- Large replies ---- */

static char large[3u * 1024 * 1024];

static enum sxe_http_verdict
reply_large(struct sxe_http_request *request, struct sxe_http_response *response)
{
    size_t length = (size_t)atol(request->path.base + 1);

    return sxe_http_reply(response, 200, NULL, large, length);
}

START_TEST(a_copied_body_may_have_any_length_that_output_max_allows)
{
    static const char *const lengths[] = {"65000", "65536", "300000", "1000000"};
    char request[100];
    char head[100];
    char *got = malloc(sizeof(large));
    int peer;

    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i * 7 + i / 251);
    serve((struct sxe_http_config){.handler = reply_large});
    peer = client();
    for (unsigned i = 0; i < 4; i++) {
        size_t length = (size_t)atol(lengths[i]);

        snprintf(request, sizeof(request), "GET /%s HTTP/1.1\r\nHost: h\r\n\r\n", lengths[i]);
        snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n", lengths[i]);
        say(peer, request);
        EXPECT_REPLY(peer, head);
        ck_assert_uint_eq(peer_receive(peer, got, length), length);
        ck_assert_mem_eq(got, large, length);
    }
    free(got);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
reply_less(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    ck_assert_int_eq(sxe_http_end(response, large, SIZE_MAX), -ENOBUFS);
    ck_assert_int_eq(sxe_http_end(response, large, sizeof(large)), -ENOBUFS);
    ck_assert_int_eq(sxe_http_add_field(response, "X", "y"), 0);
    return sxe_http_end(response, "less", 4) < 0 ? SXE_HTTP_LATER : SXE_HTTP_DONE;
}

START_TEST(a_body_that_there_is_no_room_for_leaves_the_request_unanswered)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_less});
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES("X: y\r\n", ""), "less");
    close(peer);
    end_site();
}
END_TEST

/* ---- Replies that cannot be sent ---- */

static enum sxe_http_verdict
reply_wrongly(struct sxe_http_request *request, struct sxe_http_response *response)
{
    if (request->path.base[1] != 't')
        ck_assert_int_eq(sxe_http_add_field(response, "Upgrade", "x"), 0);
    response->on_done = push_done;
    switch (request->path.base[1]) {
    case 's':
        return sxe_http_reply(response, 1000, NULL, "", 0);
    case 't':
        return sxe_http_reply(response, 200, "text/plain\r\n\r\n<script>", "", 0);
    case 'l':
        return sxe_http_reply(response, 204, NULL, large, 0) == SXE_HTTP_DONE
                   ? sxe_http_reply_status(response, 404)
                   : SXE_HTTP_LATER;
    case 'b':
        ck_assert_int_eq(sxe_http_begin(response, 5), 0);
        break;
    }
    return sxe_http_reply(response, 200, NULL, large, sizeof(large));
}

START_TEST(what_cannot_be_sent_is_answered_500)
{
    static const char *const requests[] = {GET("/status"), GET("/type"), GET("/more")};
    int peer;

    serve((struct sxe_http_config){.handler = reply_wrongly});
    peer = client();
    for (unsigned i = 0; i < 3; i++) {
        say(peer, requests[i]);
        EXPECT_STATUS(peer, "500 Internal Server Error", LINES("", ""),
                      "500 Internal Server Error\n");
        EXPECT("done", NULL, 0);
    }
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_second_reply_is_not_sent_but_logged)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_wrongly});
    peer = client();
    capture_log();
    say(peer, GET("/later"));
    EXPECT_REPLY(peer, "HTTP/1.1 204 No Content\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
    PEER_EXPECT_SILENCE(peer);
    EXPECT("done", NULL, 0);
    ck_assert_ptr_nonnull(strstr(captured.lines[0], "status 404, cannot be sent"));
    sxe_log_set_level(SXE_LOG_FATAL);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_whole_reply_behind_half_of_one_ends_the_connection)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_wrongly});
    peer = client();
    say(peer, GET("/begun"));
    PEER_EXPECT_RESET(peer);
    EXPECT("done", NULL, -ECONNABORTED);
    close(peer);
    end_site();
}
END_TEST

START_TEST(where_there_is_no_room_for_500_the_connection_ends)
{
    const struct sxe_config config = {.output_max = 100};
    int peer;

    serve_with((struct sxe_http_config){.handler = reply_wrongly, .on_reply = push_reply}, &config);
    peer = client();
    say(peer, GET("/status"));
    PEER_EXPECT_RESET(peer);
    EXPECT("done", NULL, -ECONNABORTED);
    EXPECT("reply", NULL, 0);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
begin_wrongly(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    response->on_done = push_done;
    ck_assert_int_eq(sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN), -ENOBUFS);
    return sxe_http_reply_status(response, 204);
}

START_TEST(where_there_is_no_room_for_a_head_nothing_begins)
{
    const struct sxe_config config = {.output_max = 60};
    int peer;

    serve_with((struct sxe_http_config){.handler = begin_wrongly}, &config);
    peer = client();
    say(peer, GET("/"));
    PEER_EXPECT_RESET(peer);
    EXPECT("done", NULL, -ECONNABORTED);
    close(peer);
    end_site();
}
END_TEST

/* ---- Replies that close the connection ---- */

static enum sxe_http_verdict
reply_and_close(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    sxe_http_close(response);
    return sxe_http_reply(response, 200, NULL, "bye", 3);
}

START_TEST(rfc_9112_9_6_a_handler_may_close_the_connection)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_and_close});
    peer = client();
    say(peer, GET("/1") GET("/2"));
    EXPECT_STATUS(peer, "200 OK", LINES("", CLOSE), "bye");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(rfc_9112_9_3_a_reply_before_a_long_body_says_that_it_closes)
{
    static const char *const lengths[] = {"65536", "65537"};
    char request[100];
    int peer;

    reply_with = 200;
    serve((struct sxe_http_config){.handler = reply_hello, .stream = true});
    peer = client();
    snprintf(request, sizeof(request), POST("Content-Length: %s\r\n", ""), lengths[_i]);
    say(peer, request);
    EXPECT_STATUS(peer, "200 OK", LINES("", _i == 0 ? "" : CLOSE), "hello");
    if (_i == 1)
        PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
give_up(struct sxe_http_request *request, struct sxe_http_response *response)
{
    response->on_done = push_done;
    if (request->path.length > 1)
        ck_assert_int_eq(sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    sxe_http_abort(response);
    ck_assert_int_eq(sxe_http_end(response, "", 0), -EINVAL);
    return SXE_HTTP_DONE;
}

START_TEST(a_reply_that_is_given_up_is_no_reply)
{
    int peer;

    serve((struct sxe_http_config){.handler = give_up, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/"));
    PEER_EXPECT_RESET(peer);
    EXPECT_OF("done", "/", -ECONNABORTED);
    EXPECT_OF("reply", "/", 0);
    close(peer);
    peer = client();
    say(peer, GET("/begun"));
    PEER_EXPECT_RESET(peer);
    EXPECT_OF("done", "/begun", -ECONNABORTED);
    EXPECT_OF("reply", "/begun", 200);
    close(peer);
    end_site();
}
END_TEST

static Suite *
response_suite(void)
{
    Suite *suite = suite_create("http response");
    TCase *whole = tcase_create("whole replies");
    TCase *failed = tcase_create("what cannot be sent");

    tcase_add_loop_test(whole, rfc_9110_whole_replies_have_what_their_status_and_method_allow, 0,
                        (int)(sizeof(wholes) / sizeof(wholes[0])));
    tcase_add_test(whole, rfc_9110_15_a_status_is_its_own_body_where_it_may_have_one);
    tcase_add_test(whole, a_status_has_the_page_of_the_configuration);
    tcase_add_test(whole, where_there_is_no_room_for_a_page_a_status_is_its_own_body);
    tcase_add_test(whole, rfc_9110_15_a_reason_is_its_name_or_nothing);
    tcase_add_test(whole, rfc_9110_6_6_1_date_is_the_wall_clocks_even_when_somebody_sets_it);
    tcase_add_test(whole, configured_lines_are_in_every_reply);
    tcase_add_test(whole, fields_of_a_reply_that_did_not_come_are_in_no_other);
    tcase_add_test(whole, a_copied_body_may_have_any_length_that_output_max_allows);
    tcase_add_test(whole, rfc_9112_9_6_a_handler_may_close_the_connection);
    tcase_add_loop_test(whole, rfc_9112_9_3_a_reply_before_a_long_body_says_that_it_closes, 0, 2);
    suite_add_tcase(suite, whole);
    tcase_add_test(whole, a_body_that_there_is_no_room_for_leaves_the_request_unanswered);
    tcase_add_test(failed, what_cannot_be_sent_is_answered_500);
    tcase_add_test(failed, a_second_reply_is_not_sent_but_logged);
    tcase_add_test(failed, a_whole_reply_behind_half_of_one_ends_the_connection);
    tcase_add_test(failed, where_there_is_no_room_for_500_the_connection_ends);
    tcase_add_test(failed, where_there_is_no_room_for_a_head_nothing_begins);
    tcase_add_test(failed, a_reply_that_is_given_up_is_no_reply);
    suite_add_tcase(suite, failed);
    return suite;
}

int
main(void)
{
    return sxe_test_main(response_suite());
}
