/* SPDX-License-Identifier: MIT
 *
 * Scripts that go on after their reply: the client has its whole reply, and its connection goes on;
 * what the script does later, or does not, reaches no client.
 */
#include "http-proxy-php.h"

static struct sxe_http_client *
client_of(unsigned address)
{
    return proxy_site.upstream->addresses[address].client;
}

static unsigned
links_in(enum sxe__http_link_state state)
{
    return sxe_pool_get_count(client_of(0)->links, state);
}

/* Ask, and get a whole reply from a script that goes on. Returns the application's connection. */
static int
take_late(int peer, const char *request)
{
    int server;

    say(peer, request);
    server = take_asked(0);
    put_out(server, "Content-Length: 3\n\nabc");
    EXPECT_OK(peer, "abc");
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_LATE), 1);
    return server;
}

/* The client's connection serves its next request, by another connection to the application. */
static void
expect_next(int peer)
{
    int server;

    say(peer, GET("/next"));
    server = take_asked(0);
    put_out(server, "Content-Length: 4\n\nnext");
    put_end(server);
    EXPECT_OK(peer, "next");
    close(server);
}

START_TEST(a_reply_of_known_length_does_not_wait_for_its_script)
{
    int server;
    int peer;

    serve_fastcgi(plain, 1);
    peer = client();
    server = take_late(peer, GET("/"));
    expect_next(peer);
    put_out(server, "more");
    send_record(server, SXE_HTTP_FASTCGI_STDERR, 1, "late", 4, 0);
    ck_assert(!logged("late"));
    put_end(server);
    PEER_EXPECT_END(server);
    close(server);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_LATE), 0);
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_reply_without_a_body_does_not_wait_for_its_script)
{
    int server;
    int peer;

    server = take_first(plain, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", &peer);
    put_out(server, "Content-Length: 3\n\n");
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
    expect_next(peer);
    put_out(server, "abc");
    put_end(server);
    PEER_EXPECT_END(server);
    end_both(peer, server);
}
END_TEST

START_TEST(a_kept_connection_serves_again_when_its_script_has_ended)
{
    uint16_t id;
    int server;
    int peer;

    serve_fastcgi(keeping, 1);
    peer = client();
    server = take_late(peer, GET("/"));
    id = asked.id;
    put_end(server);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 1);
    say(peer, GET("/b"));
    read_asked(server);
    ck_assert_uint_ne(asked.id, id);
    put_out(server, "Content-Length: 1\n\nb");
    put_end(server);
    EXPECT_OK(peer, "b");
    end_both(peer, server);
}
END_TEST

/* An application sends more than the reply of one request when the next one has come. */
START_TEST(a_record_of_an_earlier_request_is_no_reply)
{
    uint16_t id = 0;
    int server;
    int peer;

    serve_fastcgi(keeping, 1);
    peer = client();
    say(peer, GET("/0"));
    server = accept_proxy(0);
    for (unsigned i = 0; i < 300; i++) { /* ids begin again */
        read_asked(server);
        ck_assert_uint_ne(asked.id, id);
        ck_assert_uint_gt(asked.id, 0);
        ck_assert_uint_lt(asked.id, 256);
        id = asked.id;
        put_out(server, "Content-Length: 1\n\na");
        put_end(server);
        EXPECT_OK(peer, "a");
        say(peer, GET("/a"));
    }
    read_asked(server);
    send_record(server, SXE_HTTP_FASTCGI_STDOUT, id, "Content-Length: 1\n\nb", 21, 0);
    EXPECT_REPLY(peer, bad_gateway);
    ck_assert(logged("a record of another request: GET /a is answered 502"));
    PEER_EXPECT_RESET(server);
    end_both(peer, server);
}
END_TEST

/* 0: the application closes; 1: it sends what is wrong; 2: it takes too long */
START_TEST(a_script_that_ends_badly_after_its_reply_harms_no_client)
{
    int server;
    int peer;

    serve_fastcgi(keeping, 1);
    peer = client();
    server = take_late(peer, GET("/"));
    if (_i == 0)
        close(server);
    else if (_i == 1)
        peer_send(server, "wrong record", 12);
    else
        wait_ms(61000);
    turn(5);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_LATE), 0);
    ck_assert_uint_eq(state_of(0).failures, 0);
    if (_i != 0)
        close(server);
    if (_i == 2) { /* the client's connection was idle for too long */
        close(peer);
        peer = client();
    }
    expect_next(peer);
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_request_takes_the_place_of_a_late_script)
{
    struct sxe_http_upstream_config config = plain;
    int server;
    int peer;

    config.connections_max = 1;
    serve_fastcgi(config, 1);
    peer = client();
    server = take_late(peer, GET("/"));
    expect_next(peer);
    PEER_EXPECT_RESET(server);
    end_both(peer, server);
}
END_TEST

START_TEST(a_request_that_finds_no_connection_is_logged)
{
    struct sxe_http_upstream_config config = plain;
    int server;
    int peers[2];

    config.connections_max = 1;
    serve_fastcgi(config, 1);
    peers[0] = client();
    say(peers[0], GET("/"));
    server = take_asked(0);
    peers[1] = client();
    say(peers[1], GET("/b"));
    EXPECT_REPLY(peers[1], unavailable);
    ck_assert(logged("php: all connections of all addresses are in use: GET /b is answered 503"));
    close(peers[1]);
    close(peers[0]);
    close(server);
    end_proxy();
}
END_TEST

/* Read some bytes, and count those of the body. */
static size_t
read_some(int peer)
{
    static char bytes[65536];
    const ssize_t n = recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT);
    size_t count = 0;

    for (ssize_t i = 0; i < n; i++)
        count += bytes[i] == 'x';
    return count;
}

/* The client reads slowly: the script is paused when the last byte of its reply comes. */
START_TEST(a_slow_client_has_its_whole_reply_later)
{
    enum { RECORDS = 200, LENGTH = 60000 };
    static char record[LENGTH + 8];
    size_t received = 0;
    size_t sent = 0;
    int server;
    int peer;

    server = take_first(plain, GET("/"), &peer);
    put_out(server, "Content-Length: 12000000\n\n");
    memset(record, 'x', sizeof(record));
    sxe_http_fastcgi_put_head(record, SXE_HTTP_FASTCGI_STDOUT, asked.id, LENGTH, 0);
    while (sent < RECORDS * sizeof(record)) {
        const size_t at = sent % sizeof(record);
        const ssize_t n = send(server, record + at, sizeof(record) - at, MSG_DONTWAIT);

        sent += n > 0 ? (size_t)n : 0;
        turn(1);
        if (n < 0)
            received += read_some(peer);
    }
    while (links_in(SXE__HTTP_LINK_LATE) == 0) {
        received += read_some(peer);
        turn(1);
    }
    ck_assert_uint_lt(received, RECORDS * LENGTH);
    put_end(server);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_LATE), 0);
    close(server);
    for (unsigned i = 0; i < WAIT_TURNS && received < RECORDS * LENGTH; i++) {
        received += read_some(peer);
        turn(1);
    }
    ck_assert_uint_eq(received, RECORDS * LENGTH);
    expect_next(peer);
    close(peer);
    end_proxy();
}
END_TEST

/* A script replies before it has read the body, and may go on reading it. 0: it ends without
 * END_REQUEST; 1: it stalls. */
START_TEST(a_script_that_replies_before_the_end_of_a_body_may_read_on)
{
    int server;
    int peer;

    serve_fastcgi(plain, 1);
    peer = client();
    say(peer, POST("Content-Length: 5\r\n", "he"));
    server = accept_proxy(0);
    asked.id = 1;
    put_out(server, "Content-Length: 2\n\nok");
    turn(5);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_LATE), 0);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_BODY), 1);
    if (_i == 0)
        close(server);
    else
        wait_ms(61000);
    turn(5);
    EXPECT_OK(peer, "ok");
    ck_assert_uint_eq(state_of(0).failures, 0);
    if (_i == 0) {
        say(peer, "llo");
        expect_next(peer);
    } else {
        close(server);
    }
    close(peer);
    end_proxy();
}
END_TEST

static Suite *
late_suite(void)
{
    Suite *suite = suite_create("http proxy fastcgi late");
    TCase *late = tcase_create("late");

    tcase_add_test(late, a_reply_of_known_length_does_not_wait_for_its_script);
    tcase_add_test(late, a_reply_without_a_body_does_not_wait_for_its_script);
    tcase_add_test(late, a_kept_connection_serves_again_when_its_script_has_ended);
    tcase_add_test(late, a_record_of_an_earlier_request_is_no_reply);
    tcase_add_loop_test(late, a_script_that_ends_badly_after_its_reply_harms_no_client, 0, 3);
    tcase_add_test(late, a_request_takes_the_place_of_a_late_script);
    tcase_add_test(late, a_request_that_finds_no_connection_is_logged);
    tcase_add_test(late, a_slow_client_has_its_whole_reply_later);
    tcase_add_loop_test(late, a_script_that_replies_before_the_end_of_a_body_may_read_on, 0, 2);
    suite_add_tcase(suite, late);
    return suite;
}

int
main(void)
{
    return sxe_test_main(late_suite());
}
