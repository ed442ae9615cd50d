/* SPDX-License-Identifier: MIT
 *
 * Request bodies that a handler reads in parts: at once, late, with pauses, or not at all.
 */
#include "http-site.h"

#include <errno.h>

#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"
#define CHUNKED  "Transfer-Encoding: chunked\r\n"
#define EXPECTS  "Expect: 100-continue\r\n"

/* ---- Reading in parts ---- */

static void
serve_stream(sxe_http_handler handler)
{
    serve((struct sxe_http_config){.handler = handler, .stream = true, .on_reply = push_reply});
}

/* Reply, and check that the request is over. */
static void
finish(int peer)
{
    ck_assert_int_eq(sxe_http_end(site.response, "bye", 3), 0);
    EXPECT_OF("done", "/", 0);
    EXPECT_OF("reply", "/", 200);
    EXPECT_OK(peer, "bye");
}

START_TEST(parts_are_shown_as_they_come)
{
    int peer;

    serve_stream(read_later);
    peer = client();
    say(peer, POST("Content-Length: 5\r\n", "he"));
    EXPECT_OF("later", "/", 0);
    EXPECT_BODY("he", false);
    say(peer, "l");
    EXPECT_BODY("l", false);
    say(peer, "lo");
    EXPECT_BODY("lo", true);
    finish(peer);
    say(peer, POST(CHUNKED, "2\r\nhe\r\n3\r\nl"));
    EXPECT_OF("later", "/", 0);
    EXPECT_BODY("he", false);
    EXPECT_BODY("l", false);
    say(peer, "lo\r\n0\r\nX: y\r\n");
    EXPECT_BODY("lo", false);
    EXPECT_NOTHING();
    say(peer, "\r\n");
    EXPECT_BODY("", true);
    finish(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(the_end_of_an_empty_body_is_shown)
{
    static const char *const texts[] = {POST("", ""), POST("Content-Length: 0\r\n", ""),
                                        POST(CHUNKED, "0\r\n\r\n")};
    int peer;

    serve_stream(read_later);
    peer = client();
    say(peer, texts[_i]);
    EXPECT_OF("later", "/", 0);
    EXPECT_BODY("", true);
    finish(peer);
    close(peer);
    end_site();
}
END_TEST

/* Keep the parts; the test decides when they are given back. */
static void
keep_part(struct sxe_http_request *request, struct sxe_http_response *response,
          struct sxe_span part, bool last)
{
    push_body(request, response, part, last);
    ck_assert_int_eq(sxe_http_keep_body(request, part.length), part.length > 6 ? -ENOBUFS : 0);
}

static enum sxe_http_verdict
keep_parts(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, keep_part);
    return push_later(request, response);
}

START_TEST(parts_that_a_handler_keeps_are_counted_until_the_request_is_over)
{
    int peer;

    serve((struct sxe_http_config){
        .handler = keep_parts, .stream = true, .on_reply = push_reply, .body_memory_max = 8});
    peer = client();
    for (int i = 0; i < 3; i++) {
        say(peer, POST("Content-Length: 8\r\n", "he"));
        EXPECT_OF("later", "/", 0);
        EXPECT_BODY("he", false);
        say(peer, "llo..!");
        EXPECT_BODY("llo..!", true);
        ck_assert_uint_eq(site.http->body_memory, 8);
        ck_assert_int_eq(sxe_http_keep_body(site.request, 1), -ENOBUFS);
        if (i == 1)
            sxe_http_release_body(site.request);
        finish(peer);
        ck_assert_uint_eq(site.http->body_memory, 0);
    }
    close(peer);
    end_site();
}
END_TEST

START_TEST(reading_may_begin_late)
{
    int peer;

    serve_stream(push_later);
    peer = client();
    say(peer, POST("Content-Length: 5\r\n", "he"));
    EXPECT_OF("later", "/", 0);
    say(peer, "llo");
    EXPECT_NOTHING();
    sxe_http_read(site.request, push_body);
    EXPECT_BODY("he", false);
    EXPECT_BODY("llo", true);
    finish(peer);
    /* A request without a body is read like the others. */
    say(peer, POST("", ""));
    EXPECT_OF("later", "/", 0);
    EXPECT_NOTHING();
    sxe_http_read(site.request, push_body);
    EXPECT_BODY("", true);
    EXPECT_NOTHING();
    finish(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(whoever_waits_is_asked_to_go_on_when_reading_begins)
{
    int peer;

    serve_stream(push_later);
    peer = client();
    say(peer, POST("Content-Length: 5\r\n" EXPECTS, ""));
    EXPECT_OF("later", "/", 0);
    PEER_EXPECT_SILENCE(peer);
    sxe_http_read(site.request, push_body);
    PEER_EXPECT(peer, CONTINUE);
    say(peer, "hello");
    EXPECT_BODY("hello", true);
    finish(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(behind_the_head_of_a_reply_nobody_is_asked)
{
    int peer;

    serve_stream(push_later);
    peer = client();
    say(peer, POST("Content-Length: 5\r\n" EXPECTS, ""));
    EXPECT_OF("later", "/", 0);
    ck_assert_int_eq(sxe_http_begin(site.response, 2), 0);
    sxe_http_read(site.request, push_body);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
    PEER_EXPECT_SILENCE(peer);
    say(peer, "hello");
    EXPECT_BODY("hello", true);
    ck_assert_int_eq(sxe_http_end(site.response, "ok", 2), 0);
    EXPECT_REPLY(peer, "ok");
    PEER_EXPECT_END(peer);
    EXPECT_OF("done", "/", 0);
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

/* Read and begin the reply in the same turn. */
static enum sxe_http_verdict
read_and_begin(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, push_body);
    ck_assert_int_eq(sxe_http_begin(response, 3), 0);
    return push_later(request, response);
}

START_TEST(the_question_comes_before_the_head_of_a_reply_that_begins_in_the_same_turn)
{
    static const char *const framings[] = {"Content-Length: 5\r\n", CHUNKED};
    static const char *const bodies[] = {"hello", "5\r\nhello\r\n0\r\n\r\n"};
    char head[200];
    int peer;

    snprintf(head, sizeof(head), POST("%s" EXPECTS, ""), framings[_i]);
    serve_stream(read_and_begin);
    peer = client();
    for (unsigned i = 0; i < 3; i++) { /* the connection is kept open */
        unsigned writes = fake_os_calls(FAKE_SEND) + fake_os_calls(FAKE_SENDMSG);

        say(peer, head);
        EXPECT_OF("later", "/", 0);
        PEER_EXPECT(peer, CONTINUE);
        EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
        PEER_EXPECT_SILENCE(peer);
        ck_assert_uint_eq(fake_os_calls(FAKE_SEND) + fake_os_calls(FAKE_SENDMSG) - writes, 1);
        say(peer, bodies[_i]);
        EXPECT_BODY("hello", _i == 0);
        if (_i == 1)
            EXPECT_BODY("", true);
        ck_assert_int_eq(sxe_http_end(site.response, "bye", 3), 0);
        EXPECT_OF("done", "/", 0);
        EXPECT_OF("reply", "/", 200);
        PEER_EXPECT(peer, "bye");
    }
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_client_that_does_not_wait_is_not_asked_before_the_head)
{
    static const char *const texts[] = {
        POST("Content-Length: 1\r\n" EXPECTS, "x"), POST(CHUNKED EXPECTS, "1\r\nx\r\n0\r\n\r\n"),
        "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n" EXPECTS "\r\n"};
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n"};
    int peer;

    serve_stream(read_and_begin);
    peer = client();
    for (unsigned i = 0; i < 2; i++) {
        say(peer, texts[_i]);
        EXPECT_OF("later", "/", 0);
        EXPECT_REPLY(peer, heads[_i]);
        if (_i == 2)
            say(peer, "x");
        EXPECT_BODY("x", _i != 1);
        if (_i == 1)
            EXPECT_BODY("", true);
        ck_assert_int_eq(sxe_http_end(site.response, "bye", 3), 0);
        EXPECT_OF("done", "/", 0);
        EXPECT_OF("reply", "/", 200);
        PEER_EXPECT(peer, "bye");
    }
    close(peer);
    end_site();
}
END_TEST

/* A complete reply needs no body, so it must not ask for one (100), although the handler reads. */
static enum sxe_http_verdict
read_and_end(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, push_body);
    return push_later(request, response) == SXE_HTTP_LATER && end_borrowed(response) == 0
               ? SXE_HTTP_LATER
               : SXE_HTTP_DONE;
}

START_TEST(a_whole_reply_does_not_ask_for_the_body)
{
    int peer;

    serve_stream(read_and_end);
    peer = client();
    say(peer, POST("Content-Length: 5\r\n" EXPECTS, ""));
    EXPECT_OF("later", "/", 0);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n");
    close(peer);
    EXPECT_OF("done", "/", 0);
    EXPECT_OF("reply", "/", 200);
    end_site();
}
END_TEST

static int begun;

static enum sxe_http_verdict
read_and_try(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, push_body);
    begun = sxe_http_begin(response, 3);
    return push_later(request, response);
}

/* Case 0 has no room for the 25 bytes of the 100, case 1 has, but not for the 75 of the head. */
START_TEST(without_room_a_reply_begins_later_and_the_question_is_not_lost)
{
    int peer;

    serve_with(
        (struct sxe_http_config){.handler = read_and_try, .stream = true, .on_reply = push_reply},
        &(struct sxe_config){.output_max = _i == 0 ? 20 : 80});
    peer = client();
    say(peer, POST("Content-Length: 5\r\n" EXPECTS, ""));
    EXPECT_OF("later", "/", 0);
    ck_assert_int_eq(begun, -ENOBUFS);
    if (_i == 0) {
        PEER_EXPECT_SILENCE(peer);
        ck_assert_int_eq(sxe_http_begin(site.response, 3), -ENOBUFS);
    } else {
        PEER_EXPECT(peer, CONTINUE);
        ck_assert_int_eq(sxe_http_begin(site.response, 3), 0);
        EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
    }
    sxe_http_abort(site.response);
    EXPECT_OF("done", "/", -ECONNABORTED);
    EXPECT_OF("reply", "/", _i == 0 ? 0 : 200);
    close(peer);
    end_site();
}
END_TEST

START_TEST(who_is_answered_at_once_is_not_asked_to_go_on)
{
    int peer;

    serve_stream(echo);
    peer = client();
    say(peer, POST("Content-Length: 5\r\n" EXPECTS, ""));
    EXPECT_STATUS(peer, "200 OK", LINES("", "Connection: close\r\n"), "POST /");
    PEER_EXPECT_END(peer);
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

/* Record a part, and pause after it. */
static void
push_body_and_pause(struct sxe_http_request *request, struct sxe_http_response *response,
                    struct sxe_span part, bool last)
{
    push_body(request, response, part, last);
    sxe_http_pause(request);
}

static enum sxe_http_verdict
read_with_pauses(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, push_body_and_pause);
    return push_later(request, response);
}

START_TEST(a_pause_lasts_until_it_is_over)
{
    int peer;

    serve_stream(read_with_pauses);
    peer = client();
    say(peer, POST(CHUNKED, "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"));
    EXPECT_OF("later", "/", 0);
    EXPECT_BODY("he", false);
    EXPECT_NOTHING();
    sxe_http_resume(site.request);
    sxe_http_resume(site.request);
    EXPECT_BODY("llo", false);
    EXPECT_NOTHING();
    sxe_http_resume(site.request);
    EXPECT_BODY("", true);
    EXPECT_NOTHING();
    sxe_http_resume(site.request);
    EXPECT_NOTHING();
    finish(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_paused_body_waits_in_the_kernel)
{
    static char much[100000];
    size_t sent = 0;
    int peer;

    memset(much, 'x', sizeof(much));
    serve_stream(read_with_pauses);
    peer = client();
    say(peer, POST("Content-Length: 100000000\r\n", ""));
    EXPECT_OF("later", "/", 0);
    for (;;) {
        ssize_t n = send(peer, much, sizeof(much), MSG_DONTWAIT);

        turn(2);
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    ck_assert_uint_lt(sent, 20000000);
    ck_assert_str_eq(event_pop()->name, "body");
    ck_assert_uint_eq(event_count(), 0);
    peer_reset(peer);
    EXPECT_OF("done", "/", -ECONNRESET);
    EXPECT_OF("reply", "/", 0);
    end_site();
}
END_TEST

static void
end_in_body(struct sxe_http_request *request, struct sxe_http_response *response,
            struct sxe_span part, bool last)
{
    push_body(request, response, part, last);
    ck_assert_int_eq(sxe_http_end(response, "bye", 3), 0);
}

static enum sxe_http_verdict
end_at_first_part(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)response;
    sxe_http_read(request, end_in_body);
    return SXE_HTTP_LATER;
}

START_TEST(a_reply_may_end_before_the_body)
{
    int peer;

    serve_stream(end_at_first_part);
    peer = client();
    for (unsigned i = 0; i < 3; i++) {
        say(peer, POST("Content-Length: 60001\r\n", "x"));
        EXPECT_BODY("x", false);
        EXPECT_OK(peer, "bye");
        say_x(peer, 60000);
        turn(10);
        EXPECT_OF("reply", "/", 200);
    }
    say(peer, POST("Content-Length: 1\r\n", "x"));
    EXPECT_BODY("x", true);
    EXPECT_OK(peer, "bye");
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
begin_without_reading(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    ck_assert_int_eq(sxe_http_begin(response, 3), 0);
    ck_assert_int_eq(sxe_http_end(response, "bye", 3), 0);
    return SXE_HTTP_DONE;
}

START_TEST(a_reply_in_parts_says_that_a_large_body_is_not_read)
{
    int peer;

    serve_stream(begin_without_reading);
    peer = client();
    say(peer, POST("Content-Length: 65536\r\n", ""));
    EXPECT_OK(peer, "bye");
    say_x(peer, 65536);
    EXPECT_OF("reply", "/", 200);
    say(peer, POST("Content-Length: 65537\r\n", ""));
    EXPECT_STATUS(peer, "200 OK", LINES("", "Connection: close\r\n"), "bye");
    PEER_EXPECT_END(peer);
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
begin_and_end_at_first_part(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, end_in_body);
    ck_assert_int_eq(sxe_http_begin(response, 3), 0);
    return SXE_HTTP_LATER;
}

/* The head was sent while the handler was still expected to read the body to its end. */
START_TEST(a_reply_in_parts_that_ends_before_a_chunked_body_drops_as_much_as_is_worth_reading)
{
    int peer;

    serve_stream(begin_and_end_at_first_part);
    peer = client();
    for (unsigned i = 0; i < 2; i++) {
        say(peer, POST(CHUNKED, "1\r\nx\r\n10000\r\n"));
        EXPECT_BODY("x", false);
        EXPECT_OK(peer, "bye");
        say_x(peer, 65536);
        turn(10);
        EXPECT_NOTHING();
        if (i == 0) {
            say(peer, "\r\n0\r\n\r\n");
        } else {
            say(peer, "\r\n1\r\nx");
            PEER_EXPECT_END(peer);
        }
        EXPECT_OF("reply", "/", 200);
    }
    close(peer);
    end_site();
}
END_TEST

START_TEST(more_than_is_worth_reading_ends_the_connection)
{
    int peer;

    serve_stream(end_at_first_part);
    peer = client();
    say(peer, POST("Content-Length: 65538\r\n", "x"));
    EXPECT_BODY("x", false);
    EXPECT_STATUS(peer, "200 OK", LINES("", "Connection: close\r\n"), "bye");
    PEER_EXPECT_END(peer);
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

/* The length of a chunked body is not known before its last chunk. */
START_TEST(the_connection_continues_if_the_end_of_a_chunked_body_arrived_before_the_reply)
{
    static const struct {
        sxe_http_handler handler;
        const char *text;
        bool is_end_near;
    } replies[] = {
        {end_at_first_part, POST(CHUNKED, "1\r\nx\r\n0\r\n\r\n"), true},
        {end_at_first_part, POST(CHUNKED, "1\r\nx\r\n4\r\nlast\r\n0\r\nX: y\r\n\r\n"), true},
        {end_at_first_part, POST(CHUNKED, "1\r\nx\r\n"), false},
        {end_at_first_part, POST(CHUNKED, "1\r\nx\r\n100000\r\n"), false},
        {end_at_first_part, POST(CHUNKED, "1\r\nx\r\n0\r\nX: y\r\n"), false},
        {end_at_first_part, POST(CHUNKED, "1\r\nx\r\nwrong\r\n0\r\n\r\n"), false},
        {begin_without_reading, POST(CHUNKED, "1\r\nx\r\n0\r\n\r\n"), true},
        {begin_without_reading, POST(CHUNKED, "1\r\nx\r\n0\r\n"), false},
        {begin_without_reading, POST(CHUNKED, ""), false},
    };
    int peer;

    serve_stream(replies[_i].handler);
    peer = client();
    say(peer, replies[_i].text);
    if (replies[_i].handler == end_at_first_part)
        EXPECT_BODY("x", false);
    if (replies[_i].is_end_near) {
        EXPECT_OK(peer, "bye");
        EXPECT_OF("reply", "/", 200);
        say(peer, POST("Content-Length: 1\r\n", "x"));
        if (replies[_i].handler == end_at_first_part)
            EXPECT_BODY("x", true);
        EXPECT_OK(peer, "bye");
    } else {
        EXPECT_STATUS(peer, "200 OK", LINES("", "Connection: close\r\n"), "bye");
        PEER_EXPECT_END(peer);
    }
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

/* After the reply, a large body is not dropped at once if the handler reads it. */
START_TEST(a_large_body_may_be_read_up_to_its_last_bytes)
{
    size_t seen = 0;
    int peer;

    serve_stream(read_later);
    peer = client();
    say(peer, POST("Content-Length: 300000\r\n", ""));
    EXPECT_OF("later", "/", 0);
    say_x(peer, 299000);
    turn(50);
    while (event_count() > 0)
        seen += event_pop()->length;
    ck_assert_uint_eq(seen, 299000);
    ck_assert_int_eq(sxe_http_end(site.response, "bye", 3), 0);
    EXPECT_OK(peer, "bye");
    say_x(peer, 1000);
    EXPECT_OF("done", "/", 0);
    EXPECT_OF("reply", "/", 200);
    say(peer, POST("", ""));
    EXPECT_OF("later", "/", 0);
    EXPECT_BODY("", true);
    finish(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_body_that_goes_wrong_ends_the_request)
{
    static const char *const replies[] = {"", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"};
    int peer;

    serve_stream(read_later);
    peer = client();
    say(peer, POST(CHUNKED, "1\r\nx\r\n"));
    EXPECT_OF("later", "/", 0);
    EXPECT_BODY("x", false);
    if (_i == 1)
        ck_assert_int_eq(sxe_http_begin(site.response, 2), 0);
    EXPECT_REPLY(peer, replies[_i]);
    say(peer, "nonsense\r\n");
    if (_i == 0)
        EXPECT_REFUSAL(peer, "400 Bad Request");
    else
        PEER_EXPECT_RESET(peer);
    EXPECT_OF("done", "/", -EPROTO);
    EXPECT_OF("reply", "/", _i == 0 ? 400 : 200);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_body_that_goes_wrong_behind_the_reply_is_not_answered_again)
{
    int peer;

    serve_stream(end_at_first_part);
    peer = client();
    say(peer, POST(CHUNKED, "1\r\nx\r\n"));
    EXPECT_BODY("x", false);
    EXPECT_STATUS(peer, "200 OK", LINES("", "Connection: close\r\n"), "bye");
    say(peer, "nonsense\r\n");
    PEER_EXPECT_END(peer);
    EXPECT_OF("reply", "/", 200);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_body_that_was_kept_is_not_shown)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later});
    peer = client();
    say(peer, POST("Content-Length: 2\r\n", "he"));
    EXPECT_OF("later", "/", 0);
    sxe_http_read(site.request, push_body);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_http_end(site.response, "bye", 3), 0);
    EXPECT_OF("done", "/", 0);
    EXPECT_OK(peer, "bye");
    close(peer);
    end_site();
}
END_TEST

static Suite *
body_stream_suite(void)
{
    Suite *suite = suite_create("http body stream");
    TCase *shown = tcase_create("shown");
    TCase *expect = tcase_create("expect");
    TCase *dropped = tcase_create("dropped");

    tcase_add_test(shown, parts_are_shown_as_they_come);
    tcase_add_loop_test(shown, the_end_of_an_empty_body_is_shown, 0, 3);
    tcase_add_test(shown, parts_that_a_handler_keeps_are_counted_until_the_request_is_over);
    tcase_add_test(shown, reading_may_begin_late);
    tcase_add_test(shown, a_pause_lasts_until_it_is_over);
    tcase_add_test(shown, a_paused_body_waits_in_the_kernel);
    tcase_add_loop_test(shown, a_body_that_goes_wrong_ends_the_request, 0, 2);
    tcase_add_test(shown, a_body_that_was_kept_is_not_shown);
    suite_add_tcase(suite, shown);
    tcase_add_test(expect, whoever_waits_is_asked_to_go_on_when_reading_begins);
    tcase_add_test(expect, behind_the_head_of_a_reply_nobody_is_asked);
    tcase_add_loop_test(
        expect, the_question_comes_before_the_head_of_a_reply_that_begins_in_the_same_turn, 0, 2);
    tcase_add_loop_test(expect, a_client_that_does_not_wait_is_not_asked_before_the_head, 0, 3);
    tcase_add_test(expect, a_whole_reply_does_not_ask_for_the_body);
    tcase_add_loop_test(expect, without_room_a_reply_begins_later_and_the_question_is_not_lost, 0,
                        2);
    tcase_add_test(expect, who_is_answered_at_once_is_not_asked_to_go_on);
    suite_add_tcase(suite, expect);
    tcase_add_test(dropped, a_reply_may_end_before_the_body);
    tcase_add_test(dropped, a_reply_in_parts_says_that_a_large_body_is_not_read);
    tcase_add_test(
        dropped,
        a_reply_in_parts_that_ends_before_a_chunked_body_drops_as_much_as_is_worth_reading);
    tcase_add_test(dropped, more_than_is_worth_reading_ends_the_connection);
    tcase_add_loop_test(
        dropped, the_connection_continues_if_the_end_of_a_chunked_body_arrived_before_the_reply, 0,
        9);
    tcase_add_test(dropped, a_large_body_may_be_read_up_to_its_last_bytes);
    tcase_add_test(dropped, a_body_that_goes_wrong_behind_the_reply_is_not_answered_again);
    suite_add_tcase(suite, dropped);
    return suite;
}

int
main(void)
{
    return sxe_test_main(body_stream_suite());
}
