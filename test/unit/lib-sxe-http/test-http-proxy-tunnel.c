/* SPDX-License-Identifier: MIT
 *
 * WebSockets through the reverse proxy: the handshake, bytes in both directions, and how they end.
 */
#include "http-proxy-site.h"

#include <errno.h>
#include <sys/socket.h>

#include "http-content.h"
#include "sxe-io.h"

static const struct sxe_http_upstream_config usual;

#define ASK                                                                          \
    "GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n\r\n"
#define ASKED                                                                                    \
    "GET /chat HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n" WHO \
    "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
#define SWITCHED                                                                        \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Accept: a\r\n\r\n"
#define ANSWERED                                                                        \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n" \
    "Sec-WebSocket-Accept: a\r\n\r\n"

/* Open a tunnel; returns the upstream's end. */
static int
open_tunnel(int peer)
{
    int server;

    say(peer, ASK);
    server = take_request(0, ASKED);
    say(server, SWITCHED);
    PEER_EXPECT(peer, ANSWERED);
    return server;
}

static unsigned
open_tunnels(void)
{
    turn(3);
    return sxe_pool_get_count(proxy_site.upstream->tunnels, SXE__HTTP_TUNNEL_OPEN);
}

START_TEST(bytes_pass_in_both_directions_until_one_end_closes)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    server = open_tunnel(peer);
    ck_assert_uint_eq(open_tunnels(), 1);
    ck_assert_uint_eq(state_of(0).under_way, 1);
    ck_assert_uint_eq(state_of(0).connections, 1);
    for (unsigned i = 0; i < 3; i++) {
        say(peer, "hello");
        PEER_EXPECT(server, "hello");
        say(server, "world");
        PEER_EXPECT(peer, "world");
    }
    say(_i == 0 ? server : peer, "bye");
    close(_i == 0 ? server : peer);
    PEER_EXPECT(_i == 0 ? peer : server, "bye");
    PEER_EXPECT_END(_i == 0 ? peer : server);
    close(_i == 0 ? peer : server);
    ck_assert_uint_eq(open_tunnels(), 0);
    ck_assert_uint_eq(state_of(0).connections, 0);
    ck_assert_uint_eq(state_of(0).failures, 0);
    end_proxy();
}
END_TEST

START_TEST(bytes_that_come_with_the_handshake_pass)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, ASK "early");
    server = take_request(0, ASKED);
    say(server, SWITCHED "first");
    PEER_EXPECT(peer, ANSWERED "first");
    PEER_EXPECT(server, "early");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(after_a_reset_of_one_end_the_other_ends)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    server = open_tunnel(peer);
    peer_reset(_i == 0 ? server : peer);
    turn(5);
    PEER_EXPECT_END(_i == 0 ? peer : server);
    close(_i == 0 ? peer : server);
    ck_assert_uint_eq(open_tunnels(), 0);
    end_proxy();
}
END_TEST

#define LONG_SIZE (8u * 1024 * 1024)

START_TEST(an_end_that_does_not_read_makes_the_other_wait)
{
    int window = 65536;
    size_t sent = 0;
    int ends[2]; /* ends[0] sends, ends[1] receives */

    make_content(LONG_SIZE);
    serve_proxy(usual, 1);
    ends[_i] = client();
    __real_setsockopt(ends[_i], SOL_SOCKET, _i == 0 ? SO_SNDBUF : SO_RCVBUF, &window,
                      sizeof(window));
    ends[1 - _i] = open_tunnel(ends[_i]);
    __real_setsockopt(ends[1 - _i], SOL_SOCKET, _i == 1 ? SO_SNDBUF : SO_RCVBUF, &window,
                      sizeof(window));
    for (unsigned i = 0; i < 300; i++) {
        ssize_t n =
            send(ends[0], content.bytes + sent, LONG_SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        turn(1);
        for (unsigned id = 0; id < 4; id++)
            ck_assert_uint_le(sxe_unsent(sxe_io_socket(id)), 65536);
    }
    for (size_t got = 0; got < LONG_SIZE;) {
        static char part[65536];
        ssize_t n;

        got += peer_receive(ends[1], part, sizeof(part));
        ck_assert_mem_eq(part, content.bytes + got - sizeof(part), sizeof(part));
        n = send(ends[0], content.bytes + sent, LONG_SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
    }
    close(ends[0]);
    close(ends[1]);
    ck_assert_uint_eq(open_tunnels(), 0);
    end_proxy();
    drop_content();
}
END_TEST

START_TEST(a_tunnel_without_bytes_ends)
{
    int server;
    int peer;

    serve_proxy((struct sxe_http_upstream_config){.tunnel_timeout_ms = 1000}, 1);
    peer = client();
    server = open_tunnel(peer);
    wait_ms(600);
    say(peer, "a");
    PEER_EXPECT(server, "a");
    wait_ms(600);
    ck_assert_uint_eq(open_tunnels(), 1);
    wait_ms(600);
    ck_assert_uint_eq(open_tunnels(), 0);
    PEER_EXPECT_RESET(peer);
    PEER_EXPECT_RESET(server);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_reply_that_is_not_101_passes_as_any_other)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, ASK);
    server = take_request(0, ASKED);
    say(server, OK_HEAD(2) "no");
    EXPECT_OK(peer, "no");
    say(peer, GET("/b"));
    PEER_EXPECT(server, SENT("GET /b"));
    say(server, OK_HEAD(0));
    EXPECT_OK(peer, "");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* ---- Requests that open no tunnel ---- */

static const char *const no_websockets[] = {
    "GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: websocket, h2c\r\nConnection: Upgrade\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: websockets\r\nConnection: Upgrade\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n\r\n",
};

START_TEST(other_protocols_are_not_asked_for)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, no_websockets[_i]);
    server = take_request(0, SENT("GET /a"));
    say(server, SWITCHED);
    EXPECT_REPLY(peer, bad_gateway);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_request_with_a_body_asks_for_no_websocket)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
              "Content-Length: 1\r\n\r\nx");
    server = take_request(0, "POST / HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 1\r\n\r\nx");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(without_tunnels_requests_do_not_ask_for_them)
{
    int server;
    int peer;

    serve_proxy((struct sxe_http_upstream_config){.tunnels_max = UINT32_MAX}, 1);
    peer = client();
    say(peer, "GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    server = take_request(0, SENT("GET /a"));
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(beyond_tunnels_max_the_answer_is_503)
{
    int server;
    int peers[2];

    serve_proxy((struct sxe_http_upstream_config){.tunnels_max = 1}, 1);
    peers[0] = client();
    server = open_tunnel(peers[0]);
    peers[1] = client();
    say(peers[1], ASK);
    EXPECT_REPLY(peers[1], unavailable);
    say(peers[1], GET("/b")); /* a plain request needs no place of a tunnel */
    close(take_request(0, SENT("GET /b")));
    close(peers[0]);
    close(peers[1]);
    close(server);
    ck_assert_uint_eq(open_tunnels(), 0);
    end_proxy();
}
END_TEST

/* Two requests are under way when there is a place for one tunnel only. */
START_TEST(the_last_tunnel_is_for_the_first_who_gets_101)
{
    int servers[2];
    int peers[2];

    serve_proxy((struct sxe_http_upstream_config){.tunnels_max = 1}, 1);
    for (unsigned i = 0; i < 2; i++) {
        peers[i] = client();
        say(peers[i], ASK);
        servers[i] = take_request(0, ASKED);
    }
    say(servers[1], SWITCHED);
    PEER_EXPECT(peers[1], ANSWERED);
    say(servers[0], SWITCHED);
    EXPECT_REPLY(peers[0], unavailable);
    PEER_EXPECT_RESET(servers[0]);
    for (unsigned i = 0; i < 2; i++) {
        close(peers[i]);
        close(servers[i]);
    }
    end_proxy();
}
END_TEST

/* There is no room for the fields, or for the output. */
START_TEST(a_reply_for_which_there_is_no_room_opens_no_tunnel)
{
    char text[6000];
    int server;
    int peer;

    serve_proxy_with(
        usual, 1, (struct sxe_http_config){.stream = true, .fields_max = _i == 0 ? 300 : 16384},
        _i == 0 ? NULL : &(struct sxe_config){.output_max = 4096, .output_pause = 4096});
    peer = client();
    say(peer, ASK);
    server = take_request(0, ASKED);
    snprintf(text, sizeof(text),
             "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\nX: %05000d\r\n\r\n",
             0);
    say(server, text);
    EXPECT_REPLY(peer, unavailable);
    PEER_EXPECT_RESET(server);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* The other end's output has no room: a send fails. */
START_TEST(a_write_that_fails_ends_both)
{
    int server;
    int peer;

    make_content(LONG_SIZE);
    serve_proxy_with(usual, 1, (struct sxe_http_config){.stream = true},
                     &(struct sxe_config){.output_max = 4096, .output_pause = 4096});
    peer = client();
    server = open_tunnel(peer);
    for (unsigned i = 0; i < 300 && open_tunnels() > 0; i++)
        (void)!send(peer, content.bytes, 65536, MSG_DONTWAIT | MSG_NOSIGNAL);
    ck_assert_uint_eq(open_tunnels(), 0);
    close(peer);
    close(server);
    end_proxy();
    drop_content();
}
END_TEST

static Suite *
tunnel_suite(void)
{
    Suite *suite = suite_create("http proxy tunnel");
    TCase *tunnels = tcase_create("tunnels");
    TCase *none = tcase_create("none");

    tcase_add_loop_test(tunnels, bytes_pass_in_both_directions_until_one_end_closes, 0, 2);
    tcase_add_test(tunnels, bytes_that_come_with_the_handshake_pass);
    tcase_add_loop_test(tunnels, after_a_reset_of_one_end_the_other_ends, 0, 2);
    tcase_add_loop_test(tunnels, an_end_that_does_not_read_makes_the_other_wait, 0, 2);
    tcase_add_test(tunnels, a_tunnel_without_bytes_ends);
    tcase_add_test(tunnels, a_reply_that_is_not_101_passes_as_any_other);
    tcase_add_loop_test(none, other_protocols_are_not_asked_for, 0, SXE_COUNT(no_websockets));
    tcase_add_test(none, a_request_with_a_body_asks_for_no_websocket);
    tcase_add_test(none, without_tunnels_requests_do_not_ask_for_them);
    tcase_add_test(none, beyond_tunnels_max_the_answer_is_503);
    tcase_add_test(none, the_last_tunnel_is_for_the_first_who_gets_101);
    tcase_add_loop_test(none, a_reply_for_which_there_is_no_room_opens_no_tunnel, 0, 2);
    tcase_add_test(none, a_write_that_fails_ends_both);
    suite_add_tcase(suite, tunnels);
    suite_add_tcase(suite, none);
    return suite;
}

int
main(void)
{
    return sxe_test_main(tunnel_suite());
}
