/* SPDX-License-Identifier: MIT
 *
 * The client of a request that a proxy forwards: which field counts, from whom, and for how many
 * connections the client counts.
 */
#include "http-site.h"

#include <arpa/inet.h>
#include <errno.h>

#include "sxe-cidr.h"

static struct sxe_cidr_list trusted;
static struct sxe_cidr_list proxies;

/* A handler whose reply is the client's address, its scheme and the host. */
static enum sxe_http_verdict
reply_client(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct sxe_span host = sxe_http_authority(request);
    const char *scheme = sxe_http_forwarded_scheme(request);
    char text[200];

    snprintf(text, sizeof(text), "%s %s %.*s", sxe_http_peer_ip(request),
             *scheme == '\0' ? "-" : scheme, (int)host.length, host.base);
    return sxe_http_reply_text(response, 200, text);
}

static void
serve_clients(struct sxe_http_config config, enum sxe_http_forwarding forwarding)
{
    trusted = (struct sxe_cidr_list){.number = 0};
    ck_assert_int_eq(sxe_cidr_add(&trusted, "127.0.0.1,10.0.0.0/8,2001:db8:1::/48", NULL), 0);
    config.trusted = &trusted;
    config.forwarding = forwarding;
    if (config.handler == NULL)
        config.handler = reply_client;
    serve(config);
}

#define EXPECT_CLIENT(peer, body) EXPECT_STATUS(peer, "200 OK", LINES(TEXT, ""), body)
#define ASK(fields)               "GET / HTTP/1.1\r\nHost: h\r\n" fields "\r\n"
#define F                         SXE_HTTP_FORWARDING_FORWARDED
#define X                         SXE_HTTP_FORWARDING_X_FORWARDED

static const struct {
    enum sxe_http_forwarding forwarding;
    const char *request;
    const char *reply;
} requests[] = {
    {SXE_HTTP_FORWARDING_NONE, ASK("Forwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\n"),
     "127.0.0.1 - h"},
    /* Only the field that is configured counts. */
    {F, ASK("X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: i\r\nX-Forwarded-Proto: https\r\n"),
     "127.0.0.1 - h"},
    {X, ASK("Forwarded: for=1.2.3.4;host=i;proto=https\r\n"), "127.0.0.1 - h"},
    {F, ASK(""), "127.0.0.1 - h"},
    {F, ASK("Forwarded:\r\n"), "127.0.0.1 - h"},
    {F, ASK("forwarded: For=1.2.3.4;Host=i;Proto=HTTPS\r\n"), "1.2.3.4 https i"},
    {F, "GET http://j/ HTTP/1.1\r\nHost: j\r\nForwarded: for=1.2.3.4;proto=http;host=i\r\n\r\n",
     "1.2.3.4 http i"},
    {F, ASK("Forwarded: for=1.2.3.4;proto=wss\r\n"), "1.2.3.4 - h"},
    /* The walk over trusted addresses. */
    {F, ASK("Forwarded: for=5.6.7.8;host=lie, for=1.2.3.4;host=i, for=10.0.0.1;host=j\r\n"),
     "1.2.3.4 - i"},
    {F, ASK("Forwarded: for=1.2.3.4;host=i\r\nVia: x\r\nForwarded: for=10.0.0.1;host=j\r\n"),
     "1.2.3.4 - i"},
    {F, ASK("Forwarded: for=1.2.3.4\r\nForwarded:\r\nForwarded: ,\r\n"), "1.2.3.4 - h"},
    {F, ASK("Forwarded: for=\"[2001:db8:2::1]:80\",for=\"[2001:db8:1::1]\"\r\n"),
     "2001:db8:2::1 - h"},
    {F, ASK("Forwarded: for=10.0.0.3, for=10.0.0.2;proto=https, for=10.0.0.1;proto=http\r\n"),
     "10.0.0.3 - h"},
    {F, ASK("Forwarded: for=1.2.3.4, for=\"[::ffff:10.0.0.1]\"\r\n"), "1.2.3.4 - h"},
    /* The walk ends at a hidden element, and before a text that is no element. */
    {F, ASK("Forwarded: for=1.2.3.4, for=_a;host=i;proto=https\r\n"), "127.0.0.1 https i"},
    {F, ASK("Forwarded: for=1.2.3.4, for=unknown, for=10.0.0.1\r\n"), "10.0.0.1 - h"},
    {F, ASK("Forwarded: for=1.2.3.4, host=i\r\n"), "127.0.0.1 - i"},
    {F, ASK("Forwarded: for=1.2.3.4, rubbish, for=10.0.0.1;host=i\r\n"), "10.0.0.1 - i"},
    {F, ASK("Forwarded: for=1.2.3.4, rubbish\r\n"), "127.0.0.1 - h"},
    {F, ASK("Forwarded: for=1.2.3.4\r\nForwarded: rubbish\r\n"), "127.0.0.1 - h"},
    {F, ASK("Forwarded: for=\", for=1.2.3.4\r\n"), "1.2.3.4 - h"},
    /* X-Forwarded. */
    {X, ASK("X-Forwarded-For: 5.6.7.8, 1.2.3.4, 10.0.0.1\r\n"), "1.2.3.4 - h"},
    {X, ASK("X-Forwarded-For: 5.6.7.8\r\nX-Forwarded-For: 2001:db8:2::1\r\n"), "2001:db8:2::1 - h"},
    {X,
     ASK("x-forwarded-for: 1.2.3.4:80\r\nX-Forwarded-Host: i:81\r\nX-Forwarded-Proto: https\r\n"),
     "1.2.3.4 https i:81"},
    {X, ASK("X-Forwarded-For: 1.2.3.4, rubbish, 10.0.0.1\r\n"), "10.0.0.1 - h"},
    {X, ASK("X-Forwarded-For: 1.2.3.4, unknown\r\n"), "127.0.0.1 - h"},
    {X, ASK("X-Forwarded-Proto: https\r\nX-Forwarded-Host: i\r\n"), "127.0.0.1 https i"},
    /* Addresses of each length. */
    {X, ASK("X-Forwarded-For: 0.9.10.99\r\n"), "0.9.10.99 - h"},
    {X, ASK("X-Forwarded-For: 100.109.200.255\r\n"), "100.109.200.255 - h"},
    {X, ASK("X-Forwarded-For: ::ffff:1.20.255.0\r\n"), "::ffff:1.20.255.0 - h"},
    {X, ASK("X-Forwarded-For: ::ffff:0:102:304\r\n"), "::ffff:0:102:304 - h"},
    {X, ASK("X-Forwarded-For: 2001:db8:222:3333:4444:5555:6666:7777\r\n"),
     "2001:db8:222:3333:4444:5555:6666:7777 - h"},
    /* Proto and host: the only one, or the one at the place of the address. */
    {X,
     ASK("X-Forwarded-For: 1.2.3.4, 10.0.0.1\r\nX-Forwarded-Proto: http, https, http\r\n"
         "X-Forwarded-Host: a, b\r\nX-Forwarded-Host: c\r\n"),
     "1.2.3.4 https b"},
    {X, ASK("X-Forwarded-For: 1.2.3.4, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n"),
     "1.2.3.4 https h"},
    {X, ASK("X-Forwarded-For: 1.2.3.4, 10.0.0.2, 10.0.0.1\r\nX-Forwarded-Proto: https, http\r\n"),
     "1.2.3.4 - h"},
    {X, ASK("X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto:\r\nX-Forwarded-Host:\r\n"),
     "1.2.3.4 - h"},
    {X,
     ASK("X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: \"https\"\r\nX-Forwarded-Host: a/b\r\n"),
     "1.2.3.4 - h"},
};

START_TEST(a_trusted_peer_says_whose_request_it_is)
{
    int peer;

    serve_clients((struct sxe_http_config){0}, requests[_i].forwarding);
    peer = client();
    say(peer, requests[_i].request);
    EXPECT_CLIENT(peer, requests[_i].reply);
    close(peer);
    end_site();
}
END_TEST

START_TEST(another_peer_says_nothing)
{
    int peer;

    serve_clients((struct sxe_http_config){0}, F);
    trusted.number = 0;
    peer = client();
    say(peer, ASK("Forwarded: for=1.2.3.4;host=i\r\n"));
    EXPECT_CLIENT(peer, "127.0.0.1 - h");
    close(peer);
    end_site();
    serve_clients((struct sxe_http_config){0}, F);
    site.http->config.trusted = NULL;
    peer = client();
    say(peer, ASK("Forwarded: for=1.2.3.4;host=i\r\n"));
    EXPECT_CLIENT(peer, "127.0.0.1 - h");
    close(peer);
    end_site();
}
END_TEST

START_TEST(the_same_head_of_another_peer_means_another_client)
{
    unsigned number;
    int peer;

    serve_clients((struct sxe_http_config){0}, F);
    number = trusted.number;
    for (unsigned i = 0; i < 3; i++) {
        trusted.number = i == 1 ? number : 0;
        peer = client();
        say(peer, ASK("Forwarded: for=1.2.3.4\r\n"));
        EXPECT_CLIENT(peer, i == 1 ? "1.2.3.4 - h" : "127.0.0.1 - h");
        close(peer);
        turn(5);
    }
    end_site();
}
END_TEST

START_TEST(each_request_of_a_connection_has_its_own_client)
{
    int peer;

    serve_clients((struct sxe_http_config){0}, F);
    peer = client();
    say(peer, ASK("Forwarded: for=1.2.3.4;proto=https;host=i\r\n") ASK("")
                  ASK("Forwarded: for=\"[2001:db8:2::1]\"\r\n"));
    EXPECT_CLIENT(peer, "1.2.3.4 https i");
    EXPECT_CLIENT(peer, "127.0.0.1 - h");
    EXPECT_CLIENT(peer, "2001:db8:2::1 - h");
    /* A head that repeats the last one. */
    say(peer, ASK("Forwarded: for=\"[2001:db8:2::1]\"\r\n"));
    EXPECT_CLIENT(peer, "2001:db8:2::1 - h");
    close(peer);
    end_site();
}
END_TEST

static const struct {
    const char *header;
    const char *reply;
} headers[] = {
    {"PROXY TCP4 10.1.1.1 192.0.2.8 1 2\r\n", "1.2.3.4 - h"},
    {"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n", "192.0.2.7 - h"}, /* a client forges a field */
    {"PROXY UNKNOWN\r\n", "1.2.3.4 - h"},
};

START_TEST(behind_a_proxy_header_its_address_must_be_trusted)
{
    int peer;

    proxies = (struct sxe_cidr_list){.number = 0};
    ck_assert_int_eq(sxe_cidr_add(&proxies, "127.0.0.1", NULL), 0);
    serve_clients((struct sxe_http_config){.proxies = &proxies}, F);
    peer = client();
    say(peer, headers[_i].header);
    say(peer, ASK("Forwarded: for=1.2.3.4\r\n"));
    EXPECT_CLIENT(peer, headers[_i].reply);
    close(peer);
    end_site();
}
END_TEST

static char logged[64];

static void
log_client(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    snprintf(logged, sizeof(logged), "%u %s", summary->status, sxe_http_peer_ip(request));
}

START_TEST(a_head_that_is_refused_says_nothing)
{
    static const char *const rest[] = {"rubbish\r\n\r\n", ""};
    int peer;

    serve_clients((struct sxe_http_config){.on_reply = log_client, .head_timeout_ms = 100}, F);
    for (unsigned i = 0; i < 2; i++) {
        peer = client();
        say(peer, "GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=1.2.3.4\r\n");
        say(peer, rest[i]);
        wait_ms(200);
        close(peer);
        turn(5);
        ck_assert_str_eq(logged, i == 0 ? "400 127.0.0.1" : "408 127.0.0.1");
    }
    peer = client();
    say(peer, "GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=1.2.3.4\r\nExpect: x\r\n\r\n");
    turn(5);
    ck_assert_str_eq(logged, "417 1.2.3.4");
    close(peer);
    end_site();
}
END_TEST

/* ---- The limit of an address ---- */

#define FROM(ip) ASK("Forwarded: for=" ip "\r\n")

START_TEST(a_client_has_so_many_requests_under_way)
{
    int peers[4];

    serve_clients((struct sxe_http_config){.handler = push_later, .address_max = 2}, F);
    for (unsigned i = 0; i < 4; i++)
        peers[i] = client(); /* connections of the proxy are not limited */
    for (unsigned i = 0; i < 2; i++) {
        say(peers[i], FROM("1.2.3.4"));
        EXPECT_OF("later", "/", 0);
    }
    say(peers[2], FROM("1.2.3.4"));
    EXPECT_REFUSAL(peers[2], "503 Service Unavailable");
    close(peers[2]);
    say(peers[3], FROM("1.2.3.5"));
    EXPECT_OF("later", "/", 0);
    for (unsigned i = 0; i < 4; i++) {
        if (i == 2)
            continue;
        close(peers[i]);
        EXPECT_OF("done", "/", -ECONNRESET);
    }
    end_site();
}
END_TEST

START_TEST(a_client_counts_until_its_request_is_over)
{
    int peers[2];

    serve_clients((struct sxe_http_config){.address_max = 1}, F);
    for (unsigned i = 0; i < 2; i++)
        peers[i] = client();
    for (unsigned i = 0; i < 6; i++) { /* idle connections do not count */
        say(peers[i % 2], FROM("1.2.3.4"));
        EXPECT_CLIENT(peers[i % 2], "1.2.3.4 - h");
    }
    say(peers[0], FROM("1.2.3.4") FROM("1.2.3.4") FROM("1.2.3.5"));
    EXPECT_CLIENT(peers[0], "1.2.3.4 - h");
    EXPECT_CLIENT(peers[0], "1.2.3.4 - h");
    EXPECT_CLIENT(peers[0], "1.2.3.5 - h");
    close(peers[0]);
    close(peers[1]);
    end_site();
}
END_TEST

START_TEST(without_a_limit_nobody_is_counted)
{
    int peer;

    serve_clients((struct sxe_http_config){.address_max = UINT32_MAX}, F);
    peer = client();
    say(peer, FROM("1.2.3.4"));
    EXPECT_CLIENT(peer, "1.2.3.4 - h");
    close(peer);
    end_site();
}
END_TEST

static Suite *
client_address_suite(void)
{
    Suite *suite = suite_create("http client address");
    TCase *tcase = tcase_create("forwarded");

    tcase_add_loop_test(tcase, a_trusted_peer_says_whose_request_it_is, 0,
                        (int)(sizeof(requests) / sizeof(requests[0])));
    tcase_add_test(tcase, another_peer_says_nothing);
    tcase_add_test(tcase, the_same_head_of_another_peer_means_another_client);
    tcase_add_test(tcase, each_request_of_a_connection_has_its_own_client);
    tcase_add_loop_test(tcase, behind_a_proxy_header_its_address_must_be_trusted, 0,
                        (int)(sizeof(headers) / sizeof(headers[0])));
    tcase_add_test(tcase, a_head_that_is_refused_says_nothing);
    tcase_add_test(tcase, a_client_has_so_many_requests_under_way);
    tcase_add_test(tcase, a_client_counts_until_its_request_is_over);
    tcase_add_test(tcase, without_a_limit_nobody_is_counted);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(client_address_suite());
}
