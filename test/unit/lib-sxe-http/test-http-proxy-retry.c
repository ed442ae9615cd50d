/* SPDX-License-Identifier: MIT
 *
 * Addresses of an upstream that fail: which requests go to another one, and which do not.
 */
#include "http-proxy-site.h"

#include <errno.h>

static const struct sxe_http_upstream_config usual;

/* The one of two addresses that the proxy has connected to. */
static unsigned
find_first(void)
{
    return is_connected_to(0) ? 0 : 1;
}

START_TEST(a_request_that_was_not_sent_goes_to_another_address)
{
    static const char *const asked[] = {GET("/a"), POST("Content-Length: 2\r\n", "ab")};
    static const char *const sent[] = {SENT("GET /a"), "POST / HTTP/1.1\r\nHost: h\r\n" WHO
                                                       "Content-Length: 2\r\n\r\nab"};
    int server;
    int peer;

    serve_proxy(usual, 3);
    close(proxy_site.listeners[0]);
    close(proxy_site.listeners[1]);
    peer = client();
    say(peer, asked[_i]);
    server = take_request(2, sent[_i]);
    say(server, OK_HEAD(2) "ok");
    EXPECT_OK(peer, "ok");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(state_of(i).failures, 1);
        proxy_site.listeners[i] = peer_listen(&proxy_site.ports[i]);
    }
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(when_all_addresses_refuse_the_answer_is_502)
{
    int peer;

    serve_proxy(usual, 3);
    for (unsigned i = 0; i < 3; i++)
        close(proxy_site.listeners[i]);
    peer = client();
    say(peer, GET("/a"));
    EXPECT_REPLY(peer, bad_gateway);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(state_of(i).failures, 1);
        proxy_site.listeners[i] = peer_listen(&proxy_site.ports[i]);
    }
    close(peer);
    end_proxy();
}
END_TEST

static const struct {
    const char *method;
    bool is_sent_again;
} methods[] = {
    {"GET", true},   {"HEAD", true},   {"OPTIONS", true}, {"DELETE", true},
    {"POST", false}, {"PATCH", false}, {"PURGE", false},
};

/* The server closes, or resets, a new connection without a byte of a reply. */
START_TEST(an_idempotent_request_is_sent_again_once)
{
    const bool is_reset = _i / SXE_COUNT(methods) == 1;
    const char *method = methods[(unsigned)_i % SXE_COUNT(methods)].method;
    char text[300];
    unsigned first;
    int server;
    int peer;

    serve_proxy(usual, 2);
    peer = client();
    snprintf(text, sizeof(text), "%s /a HTTP/1.1\r\nHost: h\r\n\r\n", method);
    say(peer, text);
    first = find_first();
    server = accept_proxy(first);
    snprintf(text, sizeof(text), "%s /a HTTP/1.1\r\nHost: h\r\n" WHO, method);
    PEER_EXPECT(server, text);
    peer_receive(server, text, method[0] == 'P' && method[1] != 'U' ? 21 : 2);
    if (is_reset)
        peer_reset(server);
    else
        close(server);
    if (methods[(unsigned)_i % SXE_COUNT(methods)].is_sent_again) {
        server = accept_proxy(1 - first);
        snprintf(text, sizeof(text), "%s /a HTTP/1.1\r\nHost: h\r\n" WHO "\r\n", method);
        PEER_EXPECT(server, text);
        say(server, "HTTP/1.1 204 No\r\n\r\n");
        EXPECT_REPLY(peer, "HTTP/1.1 204 No Content\r\n\r\n");
        close(server);
    } else {
        EXPECT_REPLY(peer, bad_gateway);
        ck_assert(!is_connected_to(1 - first));
    }
    ck_assert_uint_eq(state_of(first).failures, 1);
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_request_is_never_sent_to_a_third_address)
{
    unsigned got = 0;
    int peer;

    serve_proxy(usual, 3);
    peer = client();
    say(peer, GET("/a"));
    for (unsigned turns = 0; turns < 10; turns++) {
        for (unsigned i = 0; i < 3; i++) {
            if (is_connected_to(i)) {
                close(take_request(i, SENT("GET /a")));
                got++;
            }
        }
    }
    ck_assert_uint_eq(got, 2);
    EXPECT_REPLY(peer, bad_gateway);
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_whole_body_is_sent_again_and_parts_are_not)
{
    static const char sent[] = "PUT / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 2\r\n\r\nab";
    const bool is_whole = _i == 0;
    unsigned first;
    int server;
    int peer;

    serve_proxy_with(usual, 2, (struct sxe_http_config){.stream = !is_whole}, NULL);
    peer = client();
    say(peer, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
    first = find_first();
    close(take_request(first, sent));
    if (is_whole) {
        server = take_request(1 - first, sent);
        say(server, OK_HEAD(2) "ok");
        EXPECT_OK(peer, "ok");
        close(server);
    } else {
        EXPECT_REPLY(peer, bad_gateway);
        ck_assert(!is_connected_to(1 - first));
    }
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(after_a_byte_of_a_reply_no_request_is_sent_again)
{
    unsigned first;
    int server;
    int peer;

    serve_proxy(usual, 2);
    peer = client();
    say(peer, GET("/a"));
    first = find_first();
    server = take_request(first, SENT("GET /a"));
    say(server, "H");
    close(server);
    EXPECT_REPLY(peer, bad_gateway);
    ck_assert(!is_connected_to(1 - first));
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_request_that_timed_out_is_not_sent_again)
{
    unsigned first;
    int server;
    int peer;

    serve_proxy((struct sxe_http_upstream_config){.first_byte_timeout_ms = 1000}, 2);
    peer = client();
    say(peer, GET("/a"));
    first = find_first();
    server = take_request(first, SENT("GET /a"));
    wait_ms(1100);
    EXPECT_REPLY(peer, timed_out);
    ck_assert(!is_connected_to(1 - first));
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* ---- Kept connections that the upstream closes ---- */

/* Make a connection that is idle; returns the upstream's end. */
static int
keep_connection(int peer)
{
    int server;

    say(peer, GET("/first"));
    server = take_request(0, SENT("GET /first"));
    say(server, OK_HEAD(0));
    EXPECT_OK(peer, "");
    return server;
}

START_TEST(a_get_on_a_connection_that_was_just_closed_succeeds)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    server = keep_connection(peer);
    peer_send(peer, GET("/a"), strlen(GET("/a")));
    if (_i == 0)
        close(server);
    else
        peer_reset(server);
    server = take_request(0, SENT("GET /a"));
    say(server, OK_HEAD(2) "ok");
    EXPECT_OK(peer, "ok");
    ck_assert_uint_eq(state_of(0).failures, 0);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_post_on_a_connection_that_was_just_closed_is_not_sent_again)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    server = keep_connection(peer);
    say(peer, POST("", ""));
    PEER_EXPECT(server, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 0\r\n\r\n");
    close(server);
    EXPECT_REPLY(peer, bad_gateway);
    ck_assert(!is_connected_to(0));
    close(peer);
    end_proxy();
}
END_TEST

static const struct {
    const char *sent;
    const char *expected;
} unrepeatable[] = {
    {POST("", ""), "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 0\r\n\r\n"},
    /* A method that is idempotent, but with a body that passes in parts. */
    {"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
     "PUT / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 1\r\n\r\nx"},
    {"DELETE / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
     "DELETE / HTTP/1.1\r\nHost: h\r\n" WHO
     "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
};

START_TEST(a_request_that_cannot_be_repeated_takes_no_connection_that_was_idle_for_long)
{
    int servers[2];
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    servers[0] = keep_connection(peer);
    wait_ms(600);
    say(peer, unrepeatable[_i].sent);
    servers[1] = take_request(0, unrepeatable[_i].expected);
    PEER_EXPECT_SILENCE(servers[0]);
    say(servers[1], OK_HEAD(0));
    EXPECT_OK(peer, "");
    close(peer);
    close(servers[0]);
    close(servers[1]);
    end_proxy();
}
END_TEST

static Suite *
proxy_retry_suite(void)
{
    Suite *suite = suite_create("http proxy retry");
    TCase *again = tcase_create("other addresses");
    TCase *kept = tcase_create("kept connections");

    tcase_add_loop_test(again, a_request_that_was_not_sent_goes_to_another_address, 0, 2);
    tcase_add_test(again, when_all_addresses_refuse_the_answer_is_502);
    tcase_add_loop_test(again, an_idempotent_request_is_sent_again_once, 0, 2 * SXE_COUNT(methods));
    tcase_add_test(again, a_request_is_never_sent_to_a_third_address);
    tcase_add_loop_test(again, a_whole_body_is_sent_again_and_parts_are_not, 0, 2);
    tcase_add_test(again, after_a_byte_of_a_reply_no_request_is_sent_again);
    tcase_add_test(again, a_request_that_timed_out_is_not_sent_again);
    tcase_add_loop_test(kept, a_get_on_a_connection_that_was_just_closed_succeeds, 0, 2);
    tcase_add_test(kept, a_post_on_a_connection_that_was_just_closed_is_not_sent_again);
    tcase_add_loop_test(
        kept, a_request_that_cannot_be_repeated_takes_no_connection_that_was_idle_for_long, 0,
        SXE_COUNT(unrepeatable));
    suite_add_tcase(suite, again);
    suite_add_tcase(suite, kept);
    return suite;
}

int
main(void)
{
    return sxe_test_main(proxy_retry_suite());
}
