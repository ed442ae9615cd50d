/* SPDX-License-Identifier: MIT
 *
 * Request bodies that are collected before the handler runs: their limits, their memory, and which
 * clients get 100 (Continue).
 */
#include "http-site.h"

#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"
#define CHUNKED  "Transfer-Encoding: chunked\r\n"
#define EXPECTS  "Expect: 100-continue\r\n"

/* ---- Collected bodies ---- */

/* Reply with the body's length; a NUL must follow the body. */
static enum sxe_http_verdict
reply_length(struct sxe_http_request *request, struct sxe_http_response *response)
{
    char text[20];

    ck_assert_int_eq(request->body.base[request->body.length], '\0');
    ck_assert_uint_eq(strspn(request->body.base, "x"), request->body.length);
    snprintf(text, sizeof(text), "%zu", request->body.length);
    return sxe_http_reply(response, 200, NULL, text, strlen(text));
}

static const struct message {
    const char *bytes;
    const char *body;
} messages[] = {
    {POST("Content-Length: 5\r\n", "hello"), " hello"},
    {POST("Content-Length: 0\r\n", ""), ""},
    {POST("", ""), ""},
    {POST(CHUNKED, "5\r\nhello\r\n0\r\n\r\n"), " hello"},
    {POST(CHUNKED, "0\r\n\r\n"), ""},
    {POST(CHUNKED, "2;a=b\r\nhe\r\n03\r\nllo\r\n000\r\nX: y\r\nZ: w\r\n\r\n"), " hello"},
    {POST("Content-Length: 5\r\n" EXPECTS, "hello"), " hello"},
};
#define MESSAGES (sizeof(messages) / sizeof(messages[0]))

START_TEST(a_body_is_whole_however_it_is_split)
{
    const struct message *message = &messages[_i];
    size_t length = strlen(message->bytes);
    size_t head = (size_t)(strstr(message->bytes, "\r\n\r\n") - message->bytes) + 4;
    char text[100];
    int peer;

    snprintf(text, sizeof(text), "POST /%s", message->body);
    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    for (size_t split = 1; split < length; split++) {
        peer_send(peer, message->bytes, split);
        turn(2);
        peer_send(peer, message->bytes + split, length - split);
        if (strstr(message->bytes, "Expect") != NULL && split == head)
            PEER_EXPECT(peer, CONTINUE);
        EXPECT_OK(peer, text);
    }
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_body_has_at_most_body_max_bytes)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_length, .body_max = 1000000});
    peer = client();
    for (unsigned i = 0; i < 3; i++) {
        say(peer, POST("Content-Length: 1000000\r\n", ""));
        say_x(peer, 1000000);
        EXPECT_OK(peer, "1000000");
        say(peer, POST(CHUNKED, "f423f\r\n"));
        say_x(peer, 999999);
        say(peer, "\r\n1\r\nx\r\n0\r\n\r\n");
        EXPECT_OK(peer, "1000000");
    }
    close(peer);
    end_site();
}
END_TEST

static const char *const too_much[] = {
    POST("Content-Length: 11\r\n", ""),
    POST("Content-Length: 18446744073709551615\r\n", ""),
    POST("Content-Length: 11\r\n" EXPECTS, ""),
    POST(CHUNKED, "b\r\n"),
    POST(CHUNKED, "ffffffffffffffff\r\n"),
    POST(CHUNKED, "10000000000000000\r\n"),
    POST(CHUNKED, "6\r\nxxxxxx\r\n5\r\n"),
    POST(CHUNKED, "a\r\nxxxxxxxxxx\r\n1\r\n"),
};

START_TEST(too_much_is_refused_when_it_is_announced)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo, .body_max = 10});
    peer = client();
    say(peer, too_much[_i]);
    EXPECT_REFUSAL(peer, "413 Content Too Large");
    close(peer);
    end_site();
}
END_TEST

START_TEST(bodies_that_are_not_whole_share_their_memory)
{
    int one, two;

    serve((struct sxe_http_config){.handler = reply_length, .body_memory_max = 1000});
    one = client();
    two = client();
    say(one, POST("Content-Length: 601\r\n", ""));
    say_x(one, 600);
    turn(2);
    ck_assert_uint_eq(site.http->body_memory, 600);
    say(two, POST("Content-Length: 401\r\n", ""));
    say_x(two, 401);
    EXPECT_REFUSAL(two, "503 Service Unavailable");
    close(two);
    two = client();
    say(two, POST("Content-Length: 400\r\n", ""));
    say_x(two, 400);
    EXPECT_OK(two, "400");
    ck_assert_uint_eq(site.http->body_memory, 600);
    close(one);
    turn(2);
    ck_assert_uint_eq(site.http->body_memory, 0);
    say(two, POST("Content-Length: 999\r\n", ""));
    say_x(two, 999);
    EXPECT_OK(two, "999");
    close(two);
    end_site();
}
END_TEST

/* ---- Memory that stays in use ---- */

static size_t
resident(void)
{
    size_t total = 0;

    for (uint32_t i = 0; i < site.http->free_count; i++)
        total += site.http->touched[site.http->free_slots[i]];
    ck_assert_uint_eq(total, site.http->resident);
    return total;
}

START_TEST(what_a_large_body_touched_goes_back_to_the_kernel)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_length});
    peer = client();
    say(peer, POST("Content-Length: 10\r\n", ""));
    say_x(peer, 10);
    EXPECT_OK(peer, "10");
    ck_assert_uint_ge(resident(), site.http->head_at + 10);
    fake_os_reset();
    for (unsigned i = 0; i < 3; i++) {
        say(peer, POST("Content-Length: 1000000\r\n", ""));
        say_x(peer, 1000000);
        EXPECT_OK(peer, "1000000");
        ck_assert_uint_eq(fake_os_calls(FAKE_MADVISE), i + 1);
        ck_assert_uint_le(resident(), 65536);
    }
    /* A small body after a large one on the same connection. */
    say(peer, POST("Content-Length: 1000000\r\n", ""));
    say_x(peer, 1000000);
    say(peer, POST("Content-Length: 1\r\n", "x"));
    EXPECT_OK(peer, "1000000");
    EXPECT_OK(peer, "1");
    ck_assert_uint_eq(fake_os_calls(FAKE_MADVISE), 4);
    ck_assert_uint_le(resident(), 65536);
    close(peer);
    end_site();
}
END_TEST

#define MANY 300

START_TEST(free_slots_keep_eight_megabytes)
{
    int peers[MANY];

    serve((struct sxe_http_config){.handler = reply_length, .connections = MANY});
    for (unsigned i = 0; i < MANY; i++) {
        peers[i] = client();
        say(peers[i], POST("Content-Length: 60000\r\n", ""));
        say_x(peers[i], 59999);
        turn(2);
    }
    ck_assert_uint_eq(resident(), 0);
    for (unsigned i = 0; i < MANY; i++) {
        say(peers[i], "x");
        EXPECT_OK(peers[i], "60000");
        close(peers[i]);
    }
    turn(3);
    ck_assert_uint_gt(resident(), 7 * 1024 * 1024);
    ck_assert_uint_le(resident(), 8 * 1024 * 1024);
    end_site();
}
END_TEST

/* ---- Expect (RFC 9110, 10.1.1) ---- */

START_TEST(the_client_that_waits_is_asked_to_go_on_once)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    say(peer, POST("Content-Length: 4\r\n" EXPECTS, ""));
    PEER_EXPECT(peer, CONTINUE);
    say(peer, "ab");
    PEER_EXPECT_SILENCE(peer);
    say(peer, "cd");
    EXPECT_OK(peer, "POST / abcd");
    say(peer, POST(CHUNKED EXPECTS, ""));
    PEER_EXPECT(peer, CONTINUE);
    say(peer, "1\r\nx\r\n0\r\n\r\n");
    EXPECT_OK(peer, "POST / x");
    close(peer);
    end_site();
}
END_TEST

START_TEST(who_does_not_wait_is_not_asked)
{
    static const char *const texts[][2] = {
        {POST("Content-Length: 4\r\n" EXPECTS, "ab"), "cd"},
        {POST(CHUNKED EXPECTS, "4"), "\r\nabcd\r\n0\r\n\r\n"},
        {"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 4\r\n" EXPECTS "\r\n",
         "abcd"},
        {"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 4\r\nExpect: x\r\n\r\n",
         "abcd"},
    };
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    say(peer, texts[_i][0]);
    PEER_EXPECT_SILENCE(peer);
    say(peer, texts[_i][1]);
    EXPECT_STATUS(peer, "200 OK", LINES("", _i < 2 ? "" : "Connection: keep-alive\r\n"),
                  "POST / abcd");
    close(peer);
    end_site();
}
END_TEST

START_TEST(only_who_announces_a_body_is_asked_for_it)
{
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    for (unsigned i = 0; i < 2; i++) { /* the second head repeats the first */
        say(peer, POST(EXPECTS, ""));
        EXPECT_OK(peer, "POST /");
        say(peer, POST("Content-Length: 0\r\n" EXPECTS, ""));
        PEER_EXPECT(peer, CONTINUE);
        EXPECT_OK(peer, "POST /");
    }
    close(peer);
    end_site();
}
END_TEST

START_TEST(other_expectations_are_not_met)
{
    static const char *const expects[] = {
        POST("Content-Length: 1\r\nExpect: 200-ok\r\n", ""),
        POST("Content-Length: 1\r\nExpect: 100-continue, x\r\n", ""),
        POST("Content-Length: 1\r\nExpect: x,100-Continue\r\n", ""),
        POST("Content-Length: 1\r\n" EXPECTS "Expect: 100-continued\r\n", ""),
        POST("Expect: 100-continu\xe9\r\n", ""),
    };
    int peer;

    serve((struct sxe_http_config){.handler = echo});
    peer = client();
    say(peer, expects[_i]);
    EXPECT_REFUSAL(peer, "417 Expectation Failed");
    close(peer);
    end_site();
}
END_TEST

static Suite *
body_suite(void)
{
    Suite *suite = suite_create("http body");
    TCase *kept = tcase_create("kept");
    TCase *touched = tcase_create("touched");
    TCase *expect = tcase_create("expect");

    tcase_add_loop_test(kept, a_body_is_whole_however_it_is_split, 0, MESSAGES);
    tcase_add_test(kept, a_body_has_at_most_body_max_bytes);
    tcase_add_loop_test(kept, too_much_is_refused_when_it_is_announced, 0, 8);
    tcase_add_test(kept, bodies_that_are_not_whole_share_their_memory);
    suite_add_tcase(suite, kept);
    tcase_add_test(touched, what_a_large_body_touched_goes_back_to_the_kernel);
    tcase_add_test(touched, free_slots_keep_eight_megabytes);
    suite_add_tcase(suite, touched);
    tcase_add_test(expect, the_client_that_waits_is_asked_to_go_on_once);
    tcase_add_loop_test(expect, who_does_not_wait_is_not_asked, 0, 4);
    tcase_add_test(expect, only_who_announces_a_body_is_asked_for_it);
    tcase_add_loop_test(expect, other_expectations_are_not_met, 0, 5);
    suite_add_tcase(suite, expect);
    return suite;
}

int
main(void)
{
    return sxe_test_main(body_suite());
}
