/* SPDX-License-Identifier: MIT
 *
 * Connections that leave HTTP (RFC 9110, 7.8).
 */
#include "http-site.h"

#include "sxe-cidr.h"

#define UPGRADE(protocols) \
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: " protocols "\r\n\r\n"
#define SWITCHED "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n"

static SXE *left; /* the socket that left last */

static enum sxe_http_verdict
upgrade_now(struct sxe_http_request *request, struct sxe_http_response *response)
{
    left = sxe_http_upgrade(response, "x", push_read, push_close, request->user);
    return left == NULL ? sxe_http_reply_text(response, 200, "stays") : SXE_HTTP_DONE;
}

static void
expect_upgrade(int peer)
{
    EXPECT_REPLY(peer, SWITCHED "\r\n");
    ck_assert_ptr_nonnull(left);
    ck_assert_uint_eq(connections_in(SXE__HTTP_FREE), site.http->config.connections - 1);
    ck_assert_uint_eq(connections_in(SXE__HTTP_UPGRADED), 1);
    say(peer, "more");
    EXPECT_READ(left, "more");
    ck_assert_int_eq(sxe_write(left, "own", 3), 0);
    PEER_EXPECT(peer, "own");
}

START_TEST(rfc_9110_7_8_the_connection_is_the_programs)
{
    static int user;
    int peer;

    serve((struct sxe_http_config){.handler = upgrade_now, .user = &user, .on_reply = push_reply});
    peer = client();
    say(peer, GET("/http") UPGRADE("x"));
    EXPECT_OF("reply", "/http", 200);
    EXPECT_OF("reply", "/", 101);
    EXPECT_STATUS(peer, "200 OK", LINES(TEXT, ""), "stays");
    expect_upgrade(peer);
    ck_assert_ptr_eq(SXE_USER_DATA(left), &user);
    close(peer);
    EXPECT("close", left, 0);
    end_site();
}
END_TEST

START_TEST(the_reply_after_it_has_its_own_head)
{
    int peer;
    int other;

    serve((struct sxe_http_config){.handler = upgrade_now});
    other = client();
    say(other, GET("/"));
    EXPECT_STATUS(other, "200 OK", LINES(TEXT, ""), "stays");
    peer = client();
    say(peer, UPGRADE("x"));
    EXPECT_REPLY(peer, SWITCHED "\r\n");
    say(other, GET("/"));
    EXPECT_STATUS(other, "200 OK", LINES(TEXT, ""), "stays");
    close(other);
    close(peer);
    EXPECT("close", left, 0);
    end_site();
}
END_TEST

START_TEST(rfc_9110_7_8_bytes_behind_the_request_are_shown_to_the_new_reader)
{
    int peer;

    serve((struct sxe_http_config){.handler = upgrade_now});
    peer = client();
    say(peer, UPGRADE("y, X") "first ");
    EXPECT_READ(left, "first ");
    expect_upgrade(peer);
    close(peer);
    EXPECT("close", left, 0);
    end_site();
}
END_TEST

static enum sxe_http_verdict
upgrade_with_field(struct sxe_http_request *request, struct sxe_http_response *response)
{
    ck_assert_int_eq(sxe_http_add_field(response, "Sec-WebSocket-Accept", "s3pPLMBiTxaQ9k"), 0);
    return upgrade_now(request, response);
}

START_TEST(rfc_6455_fields_that_were_added_are_in_101)
{
    int peer;

    serve((struct sxe_http_config){.handler = upgrade_with_field});
    peer = client();
    say(peer, UPGRADE("x"));
    EXPECT_REPLY(peer, SWITCHED "Sec-WebSocket-Accept: s3pPLMBiTxaQ9k\r\n\r\n");
    close(peer);
    EXPECT("close", left, 0);
    end_site();
}
END_TEST

/* ---- Later, and with other things pending ---- */

START_TEST(an_upgrade_may_come_later)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later, .handler_timeout_ms = 1000});
    peer = client();
    say(peer, UPGRADE("x") "first ");
    EXPECT("later", NULL, 0);
    EXPECT_NOTHING();
    upgrade_now(site.request, site.response);
    EXPECT_READ(left, "first ");
    expect_upgrade(peer);
    wait_ms(100000); /* HTTP's timeouts no longer apply */
    close(peer);
    EXPECT("close", left, 0);
    end_site();
}
END_TEST

START_TEST(what_is_still_to_follow_in_http_does_not)
{
    int peer;

    serve((struct sxe_http_config){.handler = read_later, .stream = true});
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n"
              "Content-Length: 3\r\n\r\nabc");
    EXPECT("later", NULL, 0);
    EXPECT_BODY("abc", true);
    sxe_http_pause(site.request);
    sxe_http_resume(site.request);
    upgrade_now(site.request, site.response);
    expect_upgrade(peer);
    close(peer);
    EXPECT("close", left, 0);
    end_site();
}
END_TEST

static void
upgrade_at_end(struct sxe_http_request *request, struct sxe_http_response *response,
               struct sxe_span part, bool last)
{
    ck_assert(last);
    ck_assert_uint_eq(part.length, 0);
    upgrade_now(request, response);
}

static enum sxe_http_verdict
read_to_upgrade(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)response;
    sxe_http_read(request, upgrade_at_end);
    return SXE_HTTP_LATER;
}

START_TEST(an_upgrade_may_come_from_the_bodys_callback)
{
    int peer;

    serve((struct sxe_http_config){.handler = read_to_upgrade, .stream = true});
    peer = client();
    say(peer, UPGRADE("x") "first ");
    EXPECT_READ(left, "first ");
    expect_upgrade(peer);
    close(peer);
    EXPECT("close", left, 0);
    end_site();
}
END_TEST

/* ---- Connections that left are still open ---- */

static struct sxe_cidr_list loopback;

/* Serve with one connection for an address. _i 0: clients have PROXY headers; 1: a trusted proxy
 * names the client of each request. */
static void
serve_one_each(int _i)
{
    struct sxe_http_config config = {.handler = upgrade_now, .address_max = 1};

    loopback = (struct sxe_cidr_list){0};
    ck_assert_int_eq(sxe_cidr_add(&loopback, "127.0.0.1", NULL), 0);
    if (_i == 0) {
        config.proxies = &loopback;
    } else {
        config.trusted = &loopback;
        config.forwarding = SXE_HTTP_FORWARDING_X_FORWARDED;
    }
    serve(config);
}

/* Connect, and send a request of that client for x. */
static int
ask_for_x(int _i, const char *ip)
{
    int peer = client();
    char text[200];

    snprintf(text, sizeof(text),
             _i == 0 ? "PROXY TCP4 %s 192.0.2.1 1 2\r\n" UPGRADE("x")
                     : "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: %s\r\n"
                       "Connection: upgrade\r\nUpgrade: x\r\n\r\n",
             ip);
    say(peer, text);
    turn(2);
    return peer;
}

START_TEST(a_connection_that_left_counts_for_its_client_until_it_closes)
{
    int one, two, refused, again;
    SXE *first, *second;

    serve_one_each(_i);
    one = ask_for_x(_i, "192.0.2.7");
    expect_upgrade(one);
    first = left;
    refused = ask_for_x(_i, "192.0.2.7");
    EXPECT_REFUSAL(refused, "503 Service Unavailable");
    two = ask_for_x(_i, "192.0.2.8");
    EXPECT_REPLY(two, SWITCHED "\r\n");
    second = left;
    close(refused);
    close(one);
    EXPECT("close", first, 0);
    again = ask_for_x(_i, "192.0.2.7");
    EXPECT_REPLY(again, SWITCHED "\r\n");
    close(two);
    EXPECT("close", second, 0);
    close(again);
    EXPECT("close", left, 0);
    end_site();
}
END_TEST

START_TEST(a_connection_that_left_has_a_place_and_gives_it_to_nobody)
{
    int peer, other;

    serve((struct sxe_http_config){.handler = upgrade_now, .connections = 1});
    peer = client();
    say(peer, UPGRADE("x"));
    expect_upgrade(peer);
    other = client();
    PEER_EXPECT(other, "HTTP/1.1 503 Service Unavailable\r\n");
    close(other);
    close(peer);
    EXPECT("close", left, 0);
    turn(2);
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES(TEXT, ""), "stays");
    close(peer);
    end_site();
}
END_TEST

static bool has_ended;

static void
note_end(struct sxe_http *http)
{
    has_ended = http == site.http;
}

START_TEST(a_server_ends_before_the_connections_that_left_it)
{
    int peer;

    serve((struct sxe_http_config){.handler = upgrade_now});
    peer = client();
    say(peer, UPGRADE("x"));
    expect_upgrade(peer);
    sxe_http_stop(site.http, note_end);
    ck_assert(has_ended);
    ck_assert(sxe_http_all_is_sent(site.http));
    sxe_http_break_off(site.http);
    turn(2);
    sxe_http_delete(site.http);
    say(peer, "more");
    EXPECT_READ(left, "more");
    close(peer);
    EXPECT("close", left, 0);
    turn(2);
    plan_stop();
}
END_TEST

/* ---- Upgrades that are refused ---- */

#define LONG_16  "0123456789abcdef"
#define LONG_257 LONG_64 LONG_64 LONG_64 LONG_64 "x"
#define LONG_64  LONG_16 LONG_16 LONG_16 LONG_16

static const struct refusal {
    const char *request;
    const char *protocol;
} refusals[] = {
    {GET("/"), "x"},
    {GET("/"), ""},
    {UPGRADE("y"), "x"},
    {UPGRADE("xx, y/x"), "x"},
    {UPGRADE("x"), "x\r\nSet-Cookie: y"},
    {UPGRADE("x"), ""},
    {UPGRADE(LONG_257), LONG_257},
    {"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\n\r\n", "x"},
    {"GET / HTTP/1.0\r\nConnection: upgrade, keep-alive\r\nUpgrade: x\r\n\r\n", "x"},
    {"POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n"
     "Content-Length: 3\r\n\r\n",
     "x"},
};

static enum sxe_http_verdict
upgrade_wrongly(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct refusal *refusal = request->user;

    ck_assert_ptr_null(sxe_http_upgrade(response, refusal->protocol, NULL, NULL, NULL));
    return sxe_http_reply(response, 204, NULL, NULL, 0);
}

START_TEST(rfc_9110_7_8_no_upgrade_without_a_whole_request_that_names_it)
{
    char got[100];
    int peer;

    serve((struct sxe_http_config){
        .handler = upgrade_wrongly, .stream = true, .user = (void *)(uintptr_t)&refusals[_i]});
    peer = client();
    say(peer, refusals[_i].request);
    ck_assert_uint_eq(peer_receive(peer, got, 25), 25);
    ck_assert_mem_eq(got, "HTTP/1.1 204 No Content\r\n", 25);
    close(peer);
    end_site();
}
END_TEST

START_TEST(an_upgrade_of_a_client_that_is_gone_fails)
{
    int peer;

    serve((struct sxe_http_config){.handler = push_later});
    peer = client();
    say(peer, UPGRADE("x"));
    EXPECT("later", NULL, 0);
    sxe_abort(SXE__HTTP_SLOT_OF_RESPONSE(site.response)->connection->sxe);
    upgrade_now(site.request, site.response);
    ck_assert_ptr_null(left);
    EXPECT("done", NULL, -ECONNABORTED);
    close(peer);
    end_site();
}
END_TEST

static Suite *
upgrade_suite(void)
{
    Suite *suite = suite_create("http upgrade");
    TCase *upgrades = tcase_create("upgrades");

    tcase_add_test(upgrades, rfc_9110_7_8_the_connection_is_the_programs);
    tcase_add_test(upgrades, the_reply_after_it_has_its_own_head);
    tcase_add_test(upgrades, rfc_9110_7_8_bytes_behind_the_request_are_shown_to_the_new_reader);
    tcase_add_test(upgrades, rfc_6455_fields_that_were_added_are_in_101);
    tcase_add_test(upgrades, an_upgrade_may_come_later);
    tcase_add_test(upgrades, what_is_still_to_follow_in_http_does_not);
    tcase_add_test(upgrades, an_upgrade_may_come_from_the_bodys_callback);
    tcase_add_loop_test(upgrades, a_connection_that_left_counts_for_its_client_until_it_closes, 0,
                        2);
    tcase_add_test(upgrades, a_connection_that_left_has_a_place_and_gives_it_to_nobody);
    tcase_add_test(upgrades, a_server_ends_before_the_connections_that_left_it);
    tcase_add_loop_test(upgrades, rfc_9110_7_8_no_upgrade_without_a_whole_request_that_names_it, 0,
                        (int)(sizeof(refusals) / sizeof(refusals[0])));
    tcase_add_test(upgrades, an_upgrade_of_a_client_that_is_gone_fails);
    suite_add_tcase(suite, upgrades);
    return suite;
}

int
main(void)
{
    return sxe_test_main(upgrade_suite());
}
