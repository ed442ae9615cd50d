/* SPDX-License-Identifier: MIT
 *
 * Requests and replies that pass through the reverse proxy, and their bodies: in parts, as fast as
 * the slower side reads.
 */
#include "http-proxy-site.h"

#include <errno.h>
#include <sys/socket.h>

#include "http-content.h"
#include "sxe-io.h"

static const struct sxe_http_upstream_config usual;

START_TEST(a_request_and_its_reply_pass_and_the_connection_is_kept)
{
    int server = -1;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    for (unsigned i = 0; i < 3; i++) {
        say(peer, GET("/a//b/../c?d=%2f"));
        if (i == 0)
            server = take_request(0, SENT("GET /a/c?d=%2f"));
        else
            PEER_EXPECT(server, SENT("GET /a/c?d=%2f"));
        say(server, OK_HEAD(5) "hello");
        EXPECT_OK(peer, "hello");
    }
    ck_assert_uint_eq(state_of(0).requests, 3);
    ck_assert_uint_eq(state_of(0).failures, 0);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* ---- Bodies of requests ---- */

START_TEST(a_body_of_known_length_passes_in_parts)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, POST("Content-Length: 10\r\n", "hel"));
    server = take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 10\r\n\r\nhel");
    say(peer, "lo wo");
    PEER_EXPECT(server, "lo wo");
    say(peer, "rl");
    PEER_EXPECT(server, "rl");
    say(server, OK_HEAD(2) "ok");
    EXPECT_OK(peer, "ok");
    say(peer, GET("/next"));
    PEER_EXPECT(server, SENT("GET /next"));
    say(server, OK_HEAD(0));
    EXPECT_OK(peer, "");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_chunked_body_passes_in_chunks_of_its_own)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, POST("Transfer-Encoding: chunked\r\n", "3;x=y\r\nhel\r\n"));
    server = take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO
                             "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n");
    say(peer, "2\r\nlo\r\n0\r\nX-Trailer: y\r\n\r\n");
    PEER_EXPECT(server, "2\r\nlo\r\n0\r\n\r\n");
    say(server, OK_HEAD(2) "ok");
    EXPECT_OK(peer, "ok");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_client_that_waits_for_100_gets_it_when_there_is_a_connection)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, POST("Content-Length: 2\r\nExpect: 100-continue\r\n", ""));
    server = take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 2\r\n\r\n");
    PEER_EXPECT(peer, "HTTP/1.1 100 Continue\r\n\r\n");
    say(peer, "ab");
    PEER_EXPECT(server, "ab");
    say(server, OK_HEAD(2) "ok");
    EXPECT_OK(peer, "ok");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* A handler of a server that does not stream gets the body as a whole. */
START_TEST(a_whole_body_passes)
{
    int server;
    int peer;

    serve_proxy_with(usual, 1, (struct sxe_http_config){.stream = false}, NULL);
    peer = client();
    say(peer, POST("Transfer-Encoding: chunked\r\n", "3\r\nhel\r\n"));
    ck_assert(!is_connected_to(0));
    say(peer, "2\r\nlo\r\n0\r\n\r\n");
    server = take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 5\r\n\r\nhello");
    say(server, OK_HEAD(2) "ok");
    EXPECT_OK(peer, "ok");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_slow_upstream_makes_the_client_wait)
{
    int window = 65536;
    ssize_t n;
    size_t sent = 0;
    int server;
    int peer;

    make_content(LONG_SIZE);
    make_upstream(usual, 1);
    __real_setsockopt(proxy_site.listeners[0], SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
    serve((struct sxe_http_config){
        .handler = sxe_http_proxy_handle, .user = &proxy_site.proxy, .stream = true});
    peer = client();
    say(peer, POST("Content-Length: 8388608\r\n", ""));
    server =
        take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 8388608\r\n\r\n");
    for (unsigned i = 0; i < 300; i++) {
        n = send(peer, content.bytes + sent, LONG_SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        turn(1);
    }
    ck_assert_uint_gt(sent, 65536);
    for (size_t got = 0; got < LONG_SIZE;) {
        static char part[65536];

        got += peer_receive(server, part, sizeof(part));
        ck_assert_mem_eq(part, content.bytes + got - sizeof(part), sizeof(part));
        n = send(peer, content.bytes + sent, LONG_SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
    }
    say(server, OK_HEAD(2) "ok");
    EXPECT_OK(peer, "ok");
    close(peer);
    close(server);
    end_proxy();
    drop_content();
}
END_TEST

#define CLOSED_413 \
    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"

START_TEST(an_early_reply_ends_the_request)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, POST("Content-Length: 10\r\n", "hel"));
    server = take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 10\r\n\r\nhel");
    say(server, OK_HEAD(2) "no");
    EXPECT_OK(peer, "no");
    say(peer, "lo worl" GET("/b"));
    PEER_EXPECT_RESET(server);
    close(server);
    server = take_request(0, SENT("GET /b"));
    say(server, OK_HEAD(0));
    EXPECT_OK(peer, "");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* The kernel resets the connection of a server that closes with bytes unread. The proxy's write
 * then fails, while the reply is unread. */
START_TEST(an_early_reply_of_a_server_that_closes_is_passed_on)
{
    int window = 4096;
    int server;
    int peer;

    make_content(LONG_SIZE);
    make_upstream(usual, 1);
    __real_setsockopt(proxy_site.listeners[0], SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
    serve((struct sxe_http_config){
        .handler = sxe_http_proxy_handle, .user = &proxy_site.proxy, .stream = true});
    peer = client();
    say(peer, _i == 0 ? POST("Content-Length: 8388608\r\n", "")
                      : POST("Transfer-Encoding: chunked\r\n", "800000\r\n"));
    server = accept_proxy(0);
    for (size_t sent = 0, idle = 0; idle < 50 && sent < LONG_SIZE;) {
        ssize_t n = send(peer, content.bytes + sent, LONG_SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        turn(1);
    }
    ck_assert_int_eq(send(server, CLOSED_413, strlen(CLOSED_413), 0), (ssize_t)strlen(CLOSED_413));
    close(server);
    EXPECT_STATUS(peer, "413 Content Too Large", LINES("", "Connection: close\r\n"), "no");
    ck_assert_uint_eq(state_of(0).failures, 0);
    close(peer);
    end_proxy();
    drop_content();
}
END_TEST

/* The server drops 64 KiB of the rest of a body, but does not know how long a chunked body is. */
static const struct {
    const char *request;
    const char *lines; /* of the reply */
} early[] = {
    {POST("Content-Length: 65539\r\n", "hel"), ""},
    {POST("Content-Length: 65540\r\n", "hel"), "Connection: close\r\n"},
    {POST("Transfer-Encoding: chunked\r\n", "3\r\nhel\r\n"), "Connection: close\r\n"},
    {POST("Transfer-Encoding: chunked\r\n", "3\r\nhel\r\n0\r\n\r\n"), ""},
};

START_TEST(an_early_reply_says_whether_the_connection_closes)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, early[_i].request);
    server = accept_proxy(0);
    say(server, OK_HEAD(2) "no");
    EXPECT_STATUS(peer, "200 OK", LINES("", early[_i].lines), "no");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* ---- Fields of a handler ---- */

static enum sxe_http_verdict
handle_with_fields(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const char *const fields[][2] = {
        {"Content-Type", "text/x"}, {"ETag", "\"mine\""}, {"Cache-Control", "no-store"},
        {"Set-Cookie", "a=1"},      {"Vary", "Cookie"},
    };

    for (unsigned i = 0; i < SXE_COUNT(fields); i++)
        ck_assert_int_eq(sxe_http_add_field(response, fields[i][0], fields[i][1]), 0);
    return sxe_http_proxy_send(request->user, request, response);
}

START_TEST(fields_of_a_handler_replace_those_of_the_upstream)
{
    int server;
    int peer;

    serve_proxy_with(usual, 1, (struct sxe_http_config){.handler = handle_with_fields}, NULL);
    peer = client();
    say(peer, GET("/a"));
    server = accept_proxy(0);
    say(server, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nETag: \"a\"\r\nX-App: 1\r\n"
                "Cache-Control: public\r\nCache-Control: max-age=60\r\nSet-Cookie: b=2\r\n"
                "Vary: Accept\r\nContent-Length: 1\r\n\r\na");
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nETag: \"mine\"\r\n"
                       "Cache-Control: no-store\r\nSet-Cookie: a=1\r\nVary: Cookie\r\nX-App: 1\r\n"
                       "Set-Cookie: b=2\r\nVary: Accept\r\nContent-Length: 1\r\n\r\na");
    say(peer, GET("/b"));
    PEER_EXPECT(server, SENT("GET /a") SENT("GET /b"));
    say(server, "nonsense\r\n\r\n");
    EXPECT_STATUS(peer, "502 Bad Gateway",
                  LINES("Cache-Control: no-store\r\nSet-Cookie: a=1\r\nVary: Cookie\r\n" TEXT, ""),
                  "502 Bad Gateway\n");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_body_that_goes_wrong_resets_the_upstream)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, POST("Transfer-Encoding: chunked\r\n", "3\r\nhel\r\n"));
    server = take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO
                             "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n");
    say(peer, "nonsense\r\n");
    EXPECT_STATUS(peer, "400 Bad Request", LINES(TEXT, "Connection: close\r\n"),
                  "400 Bad Request\n");
    PEER_EXPECT_RESET(server);
    close(peer);
    close(server);
    ck_assert_uint_eq(state_of(0).failures, 0);
    end_proxy();
}
END_TEST

/* ---- Clients that leave ---- */

START_TEST(when_the_client_is_gone_the_upstream_is_reset)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, GET("/a"));
    server = take_request(0, SENT("GET /a"));
    if (_i > 0) {
        say(server, OK_HEAD(10) "hello");
        EXPECT_REPLY(peer, OK_HEAD(10) "hello");
    }
    if (_i == 2)
        peer_reset(peer);
    else
        close(peer);
    PEER_EXPECT_RESET(server);
    close(server);
    ck_assert_uint_eq(state_of(0).failures, 0);
    end_proxy();
}
END_TEST

/* ---- Bodies of replies ---- */

/* Keep the kernel from letting the buffers of a socket grow until they hold a whole body. */
static void
limit_buffers(int fd)
{
    int size = 262144;

    __real_setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    __real_setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

START_TEST(a_slow_reader_makes_the_upstream_wait)
{
    int window = 65536;
    ssize_t n;
    size_t sent = 0;
    int server;
    int peer;

    make_content(LONG_SIZE);
    serve_proxy(usual, 1);
    peer = client();
    __real_setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
    say(peer, GET("/a"));
    server = take_request(0, SENT("GET /a"));
    limit_buffers(server);
    for (unsigned id = 0; id < 4; id++)
        limit_buffers(sxe_fd(sxe_io_socket(id)));
    say(server,
        _i == 0 ? "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n" : "HTTP/1.0 200 OK\r\n\r\n");
    for (unsigned i = 0; i < 300; i++) {
        n = send(server, content.bytes + sent, LONG_SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        turn(1);
        for (unsigned id = 0; id < 4; id++)
            ck_assert_uint_le(sxe_unsent(sxe_io_socket(id)), 32768);
    }
    ck_assert_uint_lt(sent, LONG_SIZE);
    if (_i == 0) {
        EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
        for (size_t got = 0; got < LONG_SIZE;) {
            static char part[65536];

            got += peer_receive(peer, part, sizeof(part));
            ck_assert_mem_eq(part, content.bytes + got - sizeof(part), sizeof(part));
            n = send(server, content.bytes + sent, LONG_SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0)
                sent += (size_t)n;
        }
        say(peer, GET("/b"));
        PEER_EXPECT(server, SENT("GET /b"));
        say(server, OK_HEAD(0));
        EXPECT_OK(peer, "");
    }
    close(peer);
    close(server);
    end_proxy();
    drop_content();
}
END_TEST

START_TEST(a_reply_that_ends_while_its_reader_is_slow_is_whole)
{
    int window = 16384;
    static char body[1000000];
    static char got[sizeof(body)];
    int server;
    int peer;

    memset(body, 'b', sizeof(body));
    serve_proxy((struct sxe_http_upstream_config){.idle_timeout_ms = UINT32_MAX}, 1);
    peer = client();
    __real_setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
    say(peer, GET("/a"));
    server = take_request(0, SENT("GET /a"));
    say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    for (size_t sent = 0, read = 0; read < sizeof(body);) {
        ssize_t n = send(server, body + sent, sizeof(body) - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        read += peer_receive(peer, got, 1000);
    }
    say(peer, GET("/b"));
    PEER_EXPECT(server, SENT("GET /b"));
    say(server, OK_HEAD(0));
    EXPECT_OK(peer, "");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* ---- Timeouts ---- */

static const struct sxe_http_upstream_config timeouts = {
    .connect_timeout_ms = 1000, .first_byte_timeout_ms = 2000, .stall_timeout_ms = 3000};

START_TEST(an_upstream_that_does_not_reply_is_a_504)
{
    int server;
    int peer;

    serve_proxy(timeouts, 1);
    peer = client();
    say(peer, GET("/a"));
    server = take_request(0, SENT("GET /a"));
    say(server, "HTTP/1.1 103 Early Hints\r\n\r\nHTT");
    wait_ms(1900);
    ck_assert_uint_eq(state_of(0).failures, 0);
    wait_ms(200);
    EXPECT_REPLY(peer, timed_out);
    PEER_EXPECT_RESET(server);
    ck_assert_uint_eq(state_of(0).failures, 1);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(an_upstream_that_is_not_reached_in_time_is_a_504)
{
    int fill[2];
    int peer;

    serve_proxy(timeouts, 1);
    ck_assert_int_eq(listen(proxy_site.listeners[0], 0), 0);
    fill[0] = peer_connect(proxy_site.ports[0]);
    peer = client();
    say(peer, GET("/a"));
    wait_ms(1100);
    EXPECT_REPLY(peer, timed_out);
    close(peer);
    fill[1] = peer_accept(proxy_site.listeners[0]);
    close(fill[0]);
    close(fill[1]);
    end_proxy();
}
END_TEST

START_TEST(a_reply_that_stalls_resets_the_client)
{
    int server;
    int peer;

    serve_proxy(timeouts, 1);
    peer = client();
    say(peer, GET("/a"));
    server = take_request(0, SENT("GET /a"));
    say(server, OK_HEAD(10) "hello");
    EXPECT_REPLY(peer, OK_HEAD(10) "hello");
    wait_ms(2900);
    say(server, "h");
    PEER_EXPECT(peer, "h");
    wait_ms(2900);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(200);
    PEER_EXPECT_RESET(peer);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* Serve a client whose body has filled the kernel's buffers up to the upstream, which has not read.
 * Returns the upstream's socket. */
static int
fill_upstream(int *peer)
{
    int window = 65536;
    int server;

    make_upstream(timeouts, 1);
    __real_setsockopt(proxy_site.listeners[0], SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
    serve((struct sxe_http_config){.handler = sxe_http_proxy_handle,
                                   .user = &proxy_site.proxy,
                                   .stream = true,
                                   .body_timeout_ms = 60000});
    *peer = client();
    say(*peer, POST("Content-Length: 100000000\r\n", ""));
    server = accept_proxy(0);
    for (unsigned i = 0; i < 400; i++) {
        static char much[100000];

        (void)!send(*peer, much, sizeof(much), MSG_DONTWAIT | MSG_NOSIGNAL);
        turn(1);
    }
    return server;
}

START_TEST(an_upstream_that_does_not_read_the_body_is_a_504)
{
    int peer;
    int server = fill_upstream(&peer);

    wait_ms(3100);
    EXPECT_STATUS(peer, "504 Gateway Timeout", LINES(TEXT, "Connection: close\r\n"),
                  "504 Gateway Timeout\n");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* The upstream reads much less than our kernel's buffer, so that our kernel reports no room. Its
 * kernel acknowledges the bytes that it reads when the next ones have come. */
START_TEST(an_upstream_that_reads_slowly_does_not_stall)
{
    static char taken[131072];
    int peer;
    int server = fill_upstream(&peer);

    for (unsigned i = 0; i < 15; i++) {
        struct pollfd fd = {.fd = server, .events = POLLIN};

        wait_ms(1000);
        ck_assert_int_eq(poll(&fd, 1, 60000), 1);
        ck_assert_int_gt(recv(server, taken, sizeof(taken), MSG_DONTWAIT), 0);
        ck_assert_uint_eq(state_of(0).failures, 0);
    }
    PEER_EXPECT_SILENCE(peer);
    wait_ms(6100);
    EXPECT_STATUS(peer, "504 Gateway Timeout", LINES(TEXT, "Connection: close\r\n"),
                  "504 Gateway Timeout\n");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_client_that_sends_slowly_does_not_time_the_upstream_out)
{
    int server;
    int peer;

    serve_proxy_with(timeouts, 1,
                     (struct sxe_http_config){.stream = true, .body_timeout_ms = 60000}, NULL);
    peer = client();
    say(peer, POST("Content-Length: 4\r\n", "ab"));
    server = take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 4\r\n\r\nab");
    wait_ms(30000);
    say(peer, "cd");
    PEER_EXPECT(server, "cd");
    say(server, OK_HEAD(0));
    EXPECT_OK(peer, "");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* ---- Limits ---- */

START_TEST(with_all_connections_in_use_the_answer_is_503)
{
    struct sxe_http_upstream_config one = {.connections_max = 1};
    int server;
    int peers[2];

    serve_proxy(one, 1);
    peers[0] = client();
    peers[1] = client();
    say(peers[0], GET("/a"));
    server = take_request(0, SENT("GET /a"));
    say(peers[1], GET("/b"));
    EXPECT_REPLY(peers[1], unavailable);
    say(server, OK_HEAD(0));
    EXPECT_OK(peers[0], "");
    say(peers[1], GET("/b"));
    PEER_EXPECT(server, SENT("GET /b"));
    say(server, OK_HEAD(0));
    EXPECT_OK(peers[1], "");
    ck_assert_uint_eq(state_of(0).failures, 0);
    close(peers[0]);
    close(peers[1]);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(an_address_that_is_full_is_left_to_others)
{
    struct sxe_http_upstream_config one = {.connections_max = 1, .balance = SXE_HTTP_BALANCE_PATH};
    int servers[2];
    int peers[3];
    unsigned first;

    serve_proxy(one, 2);
    for (unsigned i = 0; i < 3; i++)
        peers[i] = client();
    say(peers[0], GET("/a"));
    first = is_connected_to(0) ? 0 : 1;
    servers[0] = take_request(first, SENT("GET /a"));
    say(peers[1], GET("/a"));
    servers[1] = take_request(1 - first, SENT("GET /a"));
    say(peers[2], GET("/a"));
    EXPECT_REPLY(peers[2], unavailable);
    for (unsigned i = 0; i < 2; i++) {
        say(servers[i], OK_HEAD(0));
        EXPECT_OK(peers[i], "");
        close(servers[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    end_proxy();
}
END_TEST

START_TEST(trace_is_not_implemented)
{
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_STATUS(peer, "501 Not Implemented", LINES(TEXT, ""), "501 Not Implemented\n");
    close(peer);
    end_proxy();
}
END_TEST

static Suite *
proxy_suite(void)
{
    Suite *suite = suite_create("http proxy");
    TCase *requests = tcase_create("requests");
    TCase *replies = tcase_create("replies");
    TCase *times = tcase_create("timeouts");
    TCase *limits = tcase_create("limits");

    tcase_add_test(requests, a_request_and_its_reply_pass_and_the_connection_is_kept);
    tcase_add_test(requests, a_body_of_known_length_passes_in_parts);
    tcase_add_test(requests, a_chunked_body_passes_in_chunks_of_its_own);
    tcase_add_test(requests, a_client_that_waits_for_100_gets_it_when_there_is_a_connection);
    tcase_add_test(requests, a_whole_body_passes);
    tcase_add_test(requests, a_slow_upstream_makes_the_client_wait);
    tcase_add_test(requests, an_early_reply_ends_the_request);
    tcase_add_loop_test(requests, an_early_reply_of_a_server_that_closes_is_passed_on, 0, 2);
    tcase_add_loop_test(requests, an_early_reply_says_whether_the_connection_closes, 0,
                        SXE_COUNT(early));
    tcase_add_test(requests, a_body_that_goes_wrong_resets_the_upstream);
    tcase_add_loop_test(requests, when_the_client_is_gone_the_upstream_is_reset, 0, 3);
    tcase_add_loop_test(replies, a_slow_reader_makes_the_upstream_wait, 0, 2);
    tcase_add_test(replies, a_reply_that_ends_while_its_reader_is_slow_is_whole);
    tcase_add_test(replies, fields_of_a_handler_replace_those_of_the_upstream);
    tcase_add_test(times, an_upstream_that_does_not_reply_is_a_504);
    tcase_add_test(times, an_upstream_that_is_not_reached_in_time_is_a_504);
    tcase_add_test(times, a_reply_that_stalls_resets_the_client);
    tcase_add_test(times, an_upstream_that_does_not_read_the_body_is_a_504);
    tcase_add_test(times, an_upstream_that_reads_slowly_does_not_stall);
    tcase_add_test(times, a_client_that_sends_slowly_does_not_time_the_upstream_out);
    tcase_add_test(limits, with_all_connections_in_use_the_answer_is_503);
    tcase_add_test(limits, an_address_that_is_full_is_left_to_others);
    tcase_add_test(limits, trace_is_not_implemented);
    suite_add_tcase(suite, requests);
    suite_add_tcase(suite, replies);
    suite_add_tcase(suite, times);
    suite_add_tcase(suite, limits);
    return suite;
}

int
main(void)
{
    return sxe_test_main(proxy_suite());
}
