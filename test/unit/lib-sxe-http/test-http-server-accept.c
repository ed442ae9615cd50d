/* SPDX-License-Identifier: MIT
 *
 * Accepting connections: which ones get a free connection, which ones are closed to make room, the
 * limit for each address, and proxies that send the client's address.
 */
#include "http-site.h"

#include <arpa/inet.h>
#include <errno.h>

#include "pattern.h"
#include "sxe-cidr.h"
#include "sxe-proxy.h"

/* ---- Free connections ---- */

#define NO_PLACE                                  \
    "HTTP/1.1 503 Service Unavailable\r\n"        \
    "Content-Type: text/plain; charset=utf-8\r\n" \
    "Content-Length: 24\r\n"                      \
    "Connection: close\r\n\r\n"                   \
    "503 Service Unavailable\n"

/* This reply is a constant, so it has no Date, which a 503 may leave out (RFC 9110, 6.6.1). */
static void
expect_no_place(int peer)
{
    PEER_EXPECT(peer, NO_PLACE);
    PEER_EXPECT_END(peer);
    close(peer);
}

static void
expect_served(int peer)
{
    say(peer, GET("/"));
    EXPECT_OK(peer, "GET /");
}

START_TEST(the_longest_idle_makes_room)
{
    int peers[4];

    serve((struct sxe_http_config){.handler = echo, .connections = 3});
    for (unsigned i = 0; i < 3; i++)
        peers[i] = client();
    expect_served(peers[1]);
    expect_served(peers[0]);
    expect_served(peers[2]);
    peers[3] = client();
    expect_served(peers[3]);
    PEER_EXPECT_END(peers[1]);
    expect_served(peers[0]);
    expect_served(peers[2]);
    for (unsigned i = 0; i < 4; i++)
        close(peers[i]);
    end_site();
}
END_TEST

START_TEST(the_longest_silent_makes_room_if_nobody_is_idle_for_longer)
{
    int silent[2], idle, newcomers[2];

    serve((struct sxe_http_config){.handler = echo, .connections = 3});
    silent[0] = client();
    idle = client();
    expect_served(idle);
    silent[1] = client();
    newcomers[0] = client();
    PEER_EXPECT_END(silent[0]);
    expect_served(newcomers[0]);
    newcomers[1] = client();
    PEER_EXPECT_END(idle);
    expect_served(newcomers[1]);
    expect_served(silent[1]);
    for (unsigned i = 0; i < 2; i++) {
        close(silent[i]);
        close(newcomers[i]);
    }
    close(idle);
    end_site();
}
END_TEST

#define CLOSING "GET /c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

/* States of a connection that has no request under way, each with the bytes that lead to it. */
static const struct {
    enum sxe__http_state state;
    const char *bytes;
} waits[] = {
    {SXE__HTTP_FRESH, ""},
    {SXE__HTTP_HEAD, "GET / HTTP/1.1\r\nX"},
    {SXE__HTTP_IDLE, GET("/")},
    {SXE__HTTP_BODY, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc"},
    {SXE__HTTP_CLOSING, CLOSING},
    {SXE__HTTP_CLOSING, "rubbish\r\n\r\n"},
};

enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

static int
client_that_waits(unsigned how)
{
    int peer = client();

    say(peer, waits[how].bytes);
    return peer;
}

static unsigned
number_like(unsigned how)
{
    return connections_in(waits[how].state);
}

/* Of each pair of states, the connection that came first into its state is closed first, and both
 * are closed before a newcomer. */
START_TEST(whatever_they_wait_for_the_longest_waiting_makes_room)
{
    unsigned older = (unsigned)_i / WAITS, younger = (unsigned)_i % WAITS;
    int peers[2], newcomers[2];

    serve((struct sxe_http_config){.handler = echo, .connections = 2, .body_gives_way = true});
    peers[0] = client_that_waits(older);
    peers[1] = client_that_waits(younger);
    newcomers[0] = client();
    ck_assert_uint_eq(number_like(younger), waits[younger].state == SXE__HTTP_FRESH ? 2 : 1);
    newcomers[1] = client();
    ck_assert_uint_eq(connections_in(SXE__HTTP_FRESH), 2);
    for (unsigned i = 0; i < 2; i++) {
        expect_served(newcomers[i]);
        close(peers[i]);
        close(newcomers[i]);
    }
    end_site();
}
END_TEST

#define ATTACKERS 20

/* All connections but one wait in the same way, and as many newcomers come and wait in that way: a
 * client that came before the newcomers is served. */
START_TEST(a_newcomer_is_the_last_to_go)
{
    int held[ATTACKERS], more[ATTACKERS], good;

    serve((struct sxe_http_config){
        .handler = echo, .connections = ATTACKERS + 1, .body_gives_way = true});
    for (unsigned i = 0; i < ATTACKERS; i++)
        held[i] = client_that_waits((unsigned)_i);
    good = client();
    for (unsigned i = 0; i < ATTACKERS; i++)
        more[i] = client_that_waits((unsigned)_i);
    expect_served(good);
    for (unsigned i = 0; i < ATTACKERS; i++) {
        close(held[i]);
        close(more[i]);
    }
    close(good);
    end_site();
}
END_TEST

static enum sxe_http_verdict
drain_and_echo(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_drain(site.http, NULL);
    return echo(request, response);
}

/* Draining accepts a client that waits in the kernel, while the only connection runs a handler. */
START_TEST(a_handler_that_drains_keeps_its_connection)
{
    int good, late;

    serve((struct sxe_http_config){.handler = drain_and_echo, .connections = 1});
    good = client();
    peer_send(good, GET("/"), strlen(GET("/")));
    late = peer_connect(sxe_http_port(site.http));
    turn(3);
    EXPECT_STATUS(good, "200 OK", LINES("", "Connection: close\r\n"), "GET /");
    close(good);
    close(late);
    turn(3);
    end_site();
}
END_TEST

START_TEST(who_has_not_got_all_of_a_last_reply_makes_no_room)
{
    static char much[900000];
    int reader;

    serve((struct sxe_http_config){.handler = push_later, .connections = 1});
    reader = client();
    shrink_kernel_buffers(sxe_fd(site.http->connections[0].sxe), reader);
    say(reader, CLOSING);
    EXPECT_OF("later", "/c", 0);
    sxe_http_reply(site.response, 200, NULL, much, sizeof(much));
    EXPECT_OF("done", "/c", 0);
    expect_no_place(client());
    ck_assert_int_eq(peer_drain(reader), EAGAIN);
    close(reader);
    turn(5);
    end_site();
}
END_TEST

START_TEST(exactly_as_many_clients_as_places_stay)
{
    int peers[3];

    serve((struct sxe_http_config){.handler = echo, .connections = 3});
    for (unsigned i = 0; i < 3; i++)
        peers[i] = client();
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 3; i++)
            expect_served(peers[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    end_site();
}
END_TEST

START_TEST(who_has_a_request_under_way_makes_no_room)
{
    struct sxe_http_response *later;
    int body, handling, newcomer;

    serve((struct sxe_http_config){.handler = push_later, .connections = 2, .half_close = true});
    body = client();
    say(body, POST("Content-Length: 2\r\n", "x"));
    handling = client();
    say(handling, GET("/l"));
    EXPECT_OF("later", "/l", 0);
    later = site.response;
    expect_no_place(client());
    expect_no_place(client());
    ck_assert_int_eq(sxe_http_end(later, "x", 1), 0);
    EXPECT_OF("done", "/l", 0);
    EXPECT_OK(handling, "x");
    newcomer = client();
    PEER_EXPECT_END(handling);
    say(body, "x");
    EXPECT_OF("later", "/", 0);
    close(body);
    close(handling);
    close(newcomer);
    turn(3);
    ck_assert_int_eq(sxe_http_end(site.response, "x", 1), 0);
    EXPECT_OF("done", "/", 0);
    end_site();
}
END_TEST

/* The refused clients keep their ends open, and time stands still. */
START_TEST(who_is_told_that_there_is_no_place_takes_none)
{
    int peers[3 * SXE__HTTP_SPARE];
    const unsigned number = sizeof(peers) / sizeof(peers[0]);
    int busy, newcomer;

    serve((struct sxe_http_config){.handler = echo, .connections = 1});
    busy = client();
    say(busy, POST("Content-Length: 2\r\n", "x"));
    for (unsigned i = 0; i < number; i++) {
        peers[i] = client();
        PEER_EXPECT(peers[i], NO_PLACE);
    }
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CLOSING), SXE__HTTP_REFUSED_MAX);
    say(busy, "x");
    EXPECT_OK(busy, "POST / xx");
    newcomer = client();
    expect_served(newcomer);
    PEER_EXPECT_END(busy);
    for (unsigned i = 0; i < number; i++)
        close(peers[i]);
    close(newcomer);
    close(busy);
    end_site();
}
END_TEST

/* A reply that is too long for the kernel's buffers, so its end waits until the client reads. */
static char large[400000];

static enum sxe_http_verdict
reply_large(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    return sxe_http_reply(response, 200, NULL, large, sizeof(large));
}

/* A client that does not read. The server's send buffer is small, so output stays in the
 * library. */
static int
blind_client(void)
{
    int peer = client();
    int room = 4096;
    unsigned id = sxe_pool_get_oldest(site.http->connections, SXE__HTTP_FRESH);

    __real_setsockopt(sxe_fd(site.http->connections[id].sxe), SOL_SOCKET, SO_SNDBUF, &room,
                      sizeof(room));
    return peer;
}

START_TEST(who_does_not_read_its_last_reply_makes_room_at_once)
{
    int blind, newcomer;

    serve((struct sxe_http_config){.handler = reply_large, .connections = 1});
    blind = blind_client();
    say(blind, GET("/"));
    ck_assert_uint_gt(sxe_unsent(site.http->connections[0].sxe), 0);
    ck_assert_uint_eq(connections_in(SXE__HTTP_IDLE), 1);
    newcomer = client();
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CLOSING), 0);
    say(newcomer, GET("/"));
    PEER_EXPECT(newcomer, "HTTP/1.1 200 OK\r\n");
    close(blind);
    close(newcomer);
    end_site();
}
END_TEST

/* ---- Attacks: all connections except one are slow ---- */

#define SLOW 20

static enum sxe_http_verdict
large_or_echo(struct sxe_http_request *request, struct sxe_http_response *response)
{
    if (sxe_http_target(request).length > 1)
        return reply_large(request, response);
    return echo(request, response);
}

static enum sxe_http_verdict
reply_90_kb(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    return sxe_http_reply(response, 200, NULL, large, 90000);
}

/* The server examines sixteen connections at a time. Connections that must not be closed hide the
 * others only once. */
START_TEST(many_that_make_no_room_do_not_hide_one_that_does)
{
    enum { READERS = 17 };
    int readers[READERS], lingering, newcomer;
    int room = 4096;

    serve((struct sxe_http_config){.handler = reply_90_kb, .connections = READERS + 1});
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = blind_client();
        __real_setsockopt(readers[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
        say(readers[i], CLOSING);
    }
    lingering = client_that_waits(WAITS - 1);
    ck_assert_uint_eq(connections_in(SXE__HTTP_CLOSING), READERS + 1);
    expect_no_place(client());
    newcomer = client();
    ck_assert_uint_eq(connections_in(SXE__HTTP_FRESH), 1);
    for (unsigned i = 0; i < READERS; i++)
        close(readers[i]);
    close(lingering);
    close(newcomer);
    turn(5);
    end_site();
}
END_TEST

static const char *const slow[] = {"", "GET / HTTP/1.1\r\nX", POST("Content-Length: 10\r\n", "x"),
                                   POST("Transfer-Encoding: chunked\r\n", "5\r\n"),
                                   GET("/large") GET("/large") GET("/large")};

/* The server need not wait for the slow clients: the reply comes within the same few turns. */
START_TEST(the_remaining_one_is_served_at_once)
{
    int peers[SLOW];
    int remaining;
    SXE_TIME before;

    serve((struct sxe_http_config){.handler = large_or_echo, .connections = SLOW + 1});
    for (unsigned i = 0; i < SLOW; i++) {
        peers[i] = client();
        say(peers[i], slow[_i]);
    }
    before = sxe_time_ns();
    remaining = client();
    expect_served(remaining);
    expect_served(remaining);
    ck_assert_uint_lt(sxe_time_ns() - before, 100 * MS);
    close(remaining);
    for (unsigned i = 0; i < SLOW; i++)
        close(peers[i]);
    end_site();
}
END_TEST

/* ---- The limit for each address, which a proxy sends ---- */

static struct sxe_cidr_list proxies;

static void
serve_proxies(struct sxe_http_config config)
{
    struct sxe_span wrong;

    proxies = (struct sxe_cidr_list){0};
    ck_assert_int_eq(sxe_cidr_add(&proxies, "127.0.0.1", &wrong), 0);
    config.proxies = &proxies;
    serve(config);
}

static int
client_from(const char *ip)
{
    int peer = client();
    char text[200];

    snprintf(text, sizeof(text), "PROXY TCP%c %s %s 1 2\r\n", strchr(ip, ':') ? '6' : '4', ip, ip);
    say(peer, text);
    return peer;
}

START_TEST(one_more_than_an_address_may_have_is_refused)
{
    int peers[3];
    int refused, other;

    serve_proxies((struct sxe_http_config){
        .handler = echo, .address_max = 3, .on_reply = push_reply, .requests_max = 1});
    for (unsigned i = 0; i < 3; i++)
        peers[i] = client_from("192.0.2.7");
    refused = client_from("192.0.2.7");
    EXPECT_REFUSAL(refused, "503 Service Unavailable");
    other = client_from("192.0.2.8");
    say(other, GET("/"));
    EXPECT_STATUS(other, "200 OK", LINES("", "Connection: close\r\n"), "GET /");
    EXPECT_OF("reply", "/", 200);
    close(other);
    /* The refused connection does not count, though its client keeps its end open. */
    ck_assert_uint_eq(connections_in(SXE__HTTP_REFUSED), 1);
    close(peers[0]);
    turn(5);
    peers[0] = client_from("192.0.2.7");
    say(peers[0], GET("/"));
    EXPECT_STATUS(peers[0], "200 OK", LINES("", "Connection: close\r\n"), "GET /");
    EXPECT_OF("reply", "/", 200);
    close(refused);
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    end_site();
}
END_TEST

/* A client that has its connections, and opens further ones, shuts nobody else out. */
START_TEST(who_is_refused_takes_no_place_of_others)
{
    int one, two, refused, three;

    serve((struct sxe_http_config){.handler = echo, .connections = 3, .address_max = 1});
    fake_os_say_peer("192.0.2.1");
    one = client();
    expect_served(one);
    refused = client();
    EXPECT_REFUSAL(refused, "503 Service Unavailable");
    ck_assert_uint_eq(connections_in(SXE__HTTP_REFUSED), 1);
    fake_os_say_peer("192.0.2.2");
    two = client();
    expect_served(two);
    /* All places are taken: the next client gets the place of the refused one. */
    fake_os_say_peer("192.0.2.3");
    three = client();
    expect_served(three);
    ck_assert_uint_eq(connections_in(SXE__HTTP_REFUSED), 0);
    /* Nobody makes room for one more that is refused. */
    for (unsigned i = 0; i < 2 * SXE__HTTP_REFUSED_MAX; i++) {
        fake_os_say_peer("192.0.2.1");
        expect_no_place(client());
    }
    expect_served(one);
    expect_served(two);
    expect_served(three);
    close(one);
    turn(5);
    one = client();
    expect_served(one);
    close(one);
    close(two);
    close(three);
    close(refused);
    turn(5);
    fake_os_say_peer(NULL);
    end_site();
}
END_TEST

/* As in a handshake that does not go on: the reply cannot leave. */
START_TEST(who_is_refused_makes_room_before_the_kernel_has_the_reply)
{
    int one, refused, two;
    unsigned id;

    serve((struct sxe_http_config){.handler = echo, .connections = 2, .address_max = 1});
    fake_os_say_peer("192.0.2.1");
    one = client();
    expect_served(one);
    fake_os_fail(FAKE_SEND, 1, 0, EAGAIN);
    refused = client();
    ck_assert_uint_eq(connections_in(SXE__HTTP_REFUSED), 1);
    id = sxe_pool_get_oldest(site.http->connections, SXE__HTTP_REFUSED);
    ck_assert_uint_gt(sxe_unsent(site.http->connections[id].sxe), 0);
    fake_os_say_peer("192.0.2.2");
    two = client();
    ck_assert_uint_eq(connections_in(SXE__HTTP_REFUSED), 0);
    fake_os_fail(FAKE_SEND, 0, 1, 0);
    expect_served(two);
    expect_served(one);
    close(one);
    close(two);
    close(refused);
    turn(5);
    fake_os_say_peer(NULL);
    end_site();
}
END_TEST

/* The refusal must not use an earlier request in the same memory, which was a HEAD. */
START_TEST(a_refusal_has_a_body_whoever_came_before)
{
    int one, refused;

    serve_proxies((struct sxe_http_config){.handler = echo, .address_max = 1});
    one = client_from("192.0.2.7");
    say(one, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_REPLY(one, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
    refused = client_from("192.0.2.7");
    EXPECT_REFUSAL(refused, "503 Service Unavailable");
    close(one);
    close(refused);
    end_site();
}
END_TEST

START_TEST(a_network_of_ipv6_counts_as_one)
{
    int one, two, other;

    serve_proxies((struct sxe_http_config){.handler = echo, .address_max = 1});
    one = client_from("2001:db8::1");
    two = client_from("2001:db8::2");
    EXPECT_REFUSAL(two, "503 Service Unavailable");
    other = client_from("2001:db8:0:1::1");
    expect_served(one);
    expect_served(other);
    close(one);
    close(two);
    close(other);
    end_site();
}
END_TEST

START_TEST(this_machine_is_not_counted)
{
    int peers[3];

    serve((struct sxe_http_config){.handler = echo, .address_max = 1});
    for (unsigned i = 0; i < 3; i++)
        peers[i] = client();
    for (unsigned i = 0; i < 3; i++)
        expect_served(peers[i]);
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    end_site();
}
END_TEST

START_TEST(without_a_limit_nobody_is_counted)
{
    int peers[3];

    serve_proxies((struct sxe_http_config){.handler = echo, .address_max = UINT32_MAX});
    ck_assert_ptr_null(site.http->clients);
    for (unsigned i = 0; i < 3; i++)
        peers[i] = client_from("192.0.2.7");
    for (unsigned i = 0; i < 3; i++)
        expect_served(peers[i]);
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    end_site();
    /* Without a limit, the address of a direct client is not even asked for. */
    serve((struct sxe_http_config){.handler = echo, .address_max = UINT32_MAX});
    fake_os_forbid(FAKE_GETPEERNAME, true);
    peers[0] = client();
    expect_served(peers[0]);
    ck_assert_uint_eq(fake_os_violations(), 0);
    close(peers[0]);
    end_site();
}
END_TEST

/* ---- Proxies ---- */

static enum sxe_http_verdict
reply_peer(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const char *ip = sxe_http_peer_ip(request);

    return sxe_http_reply(response, 200, NULL, ip, strlen(ip));
}

/* A version 2 header with its twelve bytes of signature, from sxe_proxy_write. */
static size_t
make_header(char *to, size_t size, unsigned version, const char *ip)
{
    struct sxe_proxy proxy = {.version = version, .command = SXE_PROXY_LOCAL};
    struct sockaddr_in *source = (struct sockaddr_in *)&proxy.source;
    ssize_t length;

    if (ip != NULL) {
        proxy.command = SXE_PROXY_PROXY;
        source->sin_family = AF_INET;
        source->sin_port = htons(1234);
        ck_assert_int_eq(inet_pton(AF_INET, ip, &source->sin_addr), 1);
        proxy.destination = proxy.source;
    }
    length = sxe_proxy_write(&proxy, to, size);
    ck_assert_int_gt(length, 0);
    return (size_t)length;
}

static const struct header {
    unsigned version;
    const char *ip;
    const char *peer;
} headers[] = {
    {1, "192.0.2.7", "192.0.2.7"},
    {2, "192.0.2.7", "192.0.2.7"},
    {1, NULL, "127.0.0.1"},
    {2, NULL, "127.0.0.1"},
};

START_TEST(a_proxy_says_whose_connection_it_is_however_it_is_split)
{
    const struct header *header = &headers[_i];
    char text[SXE_PROXY_WRITE_MAX + 100];
    size_t length = make_header(text, sizeof(text), header->version, header->ip);

    memcpy(text + length, GET("/"), sizeof(GET("/")));
    length += sizeof(GET("/")) - 1;
    serve_proxies((struct sxe_http_config){.handler = reply_peer});
    for (size_t split = 1; split <= length; split++) {
        int peer = client();

        peer_send(peer, text, split);
        turn(2);
        peer_send(peer, text + split, length - split);
        EXPECT_OK(peer, header->peer);
        say(peer, GET("/"));
        EXPECT_OK(peer, header->peer);
        close(peer);
    }
    end_site();
}
END_TEST

START_TEST(who_is_no_proxy_has_no_header)
{
    struct sxe_span wrong;
    int peer;

    proxies = (struct sxe_cidr_list){0};
    ck_assert_int_eq(sxe_cidr_add(&proxies, "192.0.2.0/24", &wrong), 0);
    serve((struct sxe_http_config){.handler = reply_peer, .proxies = &proxies});
    peer = client();
    say(peer, GET("/"));
    EXPECT_OK(peer, "127.0.0.1");
    say(peer, "PROXY TCP4 192.0.2.7 192.0.2.7 1 2\r\n");
    EXPECT_REFUSAL(peer, "400 Bad Request");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_proxy_that_begins_otherwise_is_dropped)
{
    static const char *const texts[] = {GET("/"), "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n", "\r\n\r\n",
                                        "\r\n\r\n\0\r\nQUIX\n"};
    int peer;

    serve_proxies((struct sxe_http_config){.handler = echo, .on_reply = push_reply});
    peer = client();
    peer_send(peer, texts[_i], _i == 3 ? 12 : strlen(texts[_i]));
    if (_i == 2) { /* these bytes could also begin a version 2 header */
        PEER_EXPECT_SILENCE(peer);
        say(peer, "x");
    }
    PEER_EXPECT_RESET(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_proxy_that_says_nothing_or_half_of_it_is_not_waited_for)
{
    int peer;

    serve_proxies((struct sxe_http_config){.handler = echo, .head_timeout_ms = 2000});
    peer = client();
    if (_i == 1)
        say(peer, "PROXY TCP4 192.");
    wait_ms(1900);
    PEER_EXPECT_SILENCE(peer);
    wait_ms(200);
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

static Suite *
accept_suite(void)
{
    Suite *suite = suite_create("http server accept");
    TCase *places = tcase_create("places");
    TCase *addresses = tcase_create("addresses");
    TCase *proxy = tcase_create("proxies");

    tcase_add_test(places, the_longest_idle_makes_room);
    tcase_add_test(places, the_longest_silent_makes_room_if_nobody_is_idle_for_longer);
    tcase_add_loop_test(places, whatever_they_wait_for_the_longest_waiting_makes_room, 0,
                        WAITS * WAITS);
    tcase_add_loop_test(places, a_newcomer_is_the_last_to_go, 0, WAITS);
    tcase_add_test(places, a_handler_that_drains_keeps_its_connection);
    tcase_add_test(places, many_that_make_no_room_do_not_hide_one_that_does);
    tcase_add_test(places, who_has_not_got_all_of_a_last_reply_makes_no_room);
    tcase_add_test(places, exactly_as_many_clients_as_places_stay);
    tcase_add_test(places, who_has_a_request_under_way_makes_no_room);
    tcase_add_test(places, who_is_told_that_there_is_no_place_takes_none);
    tcase_add_test(places, who_does_not_read_its_last_reply_makes_room_at_once);
    tcase_add_loop_test(places, the_remaining_one_is_served_at_once, 0, 5);
    suite_add_tcase(suite, places);
    tcase_add_test(addresses, one_more_than_an_address_may_have_is_refused);
    tcase_add_test(addresses, who_is_refused_takes_no_place_of_others);
    tcase_add_test(addresses, who_is_refused_makes_room_before_the_kernel_has_the_reply);
    tcase_add_test(addresses, a_refusal_has_a_body_whoever_came_before);
    tcase_add_test(addresses, a_network_of_ipv6_counts_as_one);
    tcase_add_test(addresses, this_machine_is_not_counted);
    tcase_add_test(addresses, without_a_limit_nobody_is_counted);
    suite_add_tcase(suite, addresses);
    tcase_add_loop_test(proxy, a_proxy_says_whose_connection_it_is_however_it_is_split, 0, 4);
    tcase_add_test(proxy, who_is_no_proxy_has_no_header);
    tcase_add_loop_test(proxy, a_proxy_that_begins_otherwise_is_dropped, 0, 4);
    tcase_add_loop_test(proxy, a_proxy_that_says_nothing_or_half_of_it_is_not_waited_for, 0, 2);
    suite_add_tcase(suite, proxy);
    return suite;
}

int
main(void)
{
    return sxe_test_main(accept_suite());
}
