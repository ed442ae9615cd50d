/* SPDX-License-Identifier: MIT
 *
 * The bytes that a reverse proxy sends on: heads of requests, and replies, each written again.
 */
#include "http-proxy-site.h"

#include <errno.h>
#include <stdlib.h>

#include "sxe-cidr.h"

static const struct sxe_http_upstream_config usual;

#define HEAD(fields) "GET /a HTTP/1.1\r\nHost: h\r\n" fields "\r\n"
#define FOR_H                        \
    "X-Forwarded-For: 127.0.0.1\r\n" \
    "X-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n"

static const struct {
    const char *sent;
    const char *expected;
} requests[] = {
    /* RFC 9110, 7.6.1: fields that are about the connection, by their names or by Connection. */
    {HEAD("Connection: keep-alive, X-One,\r\nConnection: x-two\r\nKeep-Alive: 5\r\nX-One: 1\r\n"
          "X-Two: 2\r\nX-Three: 3\r\n"),
     HEAD("X-Three: 3\r\n" WHO)},
    {HEAD("TE: trailers\r\nTrailer: X\r\nUpgrade: h2c, websocket\r\nConnection: upgrade, te\r\n"
          "Proxy-Connection: keep-alive\r\nHTTP2-Settings: AA\r\n"),
     HEAD(WHO)},
    {HEAD("Proxy-Authorization: Basic eDp5\r\nProxy: evil\r\nAuthorization: Basic eDp5\r\n"),
     HEAD("Authorization: Basic eDp5\r\n" WHO)},
    /* A field that Connection names is dropped, but not one that the proxy adds. */
    {HEAD("Connection: X-Forwarded-For, Via, close\r\nVia: 1.1 b\r\nCookie: a=b\r\n"),
     HEAD("Cookie: a=b\r\n" WHO)},
    /* Fields by which clients say for whom they ask; and names that CGI programs take for these
     * fields. */
    {HEAD("Forwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\n"
          "X-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\nX_Forwarded_For: 1.2.3.4\r\n"
          "X-Forwarded_Proto: https\r\nX_REAL_IP: 1.2.3.4\r\nX-Forwarded-Port: 1\r\n"
          "X-Forwarded-Prefix: /x\r\nX-Forwarded-Server: x\r\nX-Forwarded-Ssl: on\r\n"
          "X-Forwarded-Scheme: https\r\nContent_Length: 7\r\nTransfer_Encoding: chunked\r\n"),
     HEAD(WHO)},
    {HEAD("X-Forwarded-User: root\r\nX-Forwarded-Email: a@b\r\nX-Forwarded-Client-Cert: x\r\n"
          "x-forwarded-by: 1\r\nX-FORWARDED-URI: /\r\nX_Forwarded_Path: /\r\n"
          "X-Forwarded_Zork: 1\r\nx_forwarded-Fo: 1\r\nX-Forwarded-: 1\r\n"
          "X.Forwarded.User: root\r\nX.Real.IP: 1.2.3.4\r\n"),
     HEAD(WHO)},
    {HEAD("X-Forwarded: 1\r\nX-Forwarde-For: 2\r\nX_Other: 3\r\nX-Real-IPs: 4\r\nMy-X-Forwarded-"
          "For: 5\r\n"),
     HEAD("X-Forwarded: 1\r\nX-Forwarde-For: 2\r\nX_Other: 3\r\nX-Real-IPs: 4\r\nMy-X-Forwarded-"
          "For: 5\r\n" WHO)},
    {HEAD("Via: 1.0 a, 1.1 b\r\nX: \r\nX: 2\r\n"),
     HEAD("Via: 1.0 a, 1.1 b\r\nX: \r\nX: 2\r\n" WHO)},
    /* The upstream gets one framing, and no expectation. */
    {"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 02\r\nContent-Length: 2\r\n"
     "Expect: 100-continue\r\n\r\nab",
     "POST /a HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 2\r\n\r\nab"},
    {"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
     "POST /a HTTP/1.1\r\nHost: h\r\n" WHO "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", HEAD(WHO)},
    {"DELETE /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
     "DELETE /a HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 1\r\n\r\nx"},
    /* Targets. */
    {"GET http://other:81/x/./y?z HTTP/1.1\r\nHost: h\r\n\r\n",
     "GET /x/y?z HTTP/1.1\r\nHost: other:81\r\nVia: 1.1 sxe\r\nX-Forwarded-For: 127.0.0.1\r\n"
     "X-Forwarded-Proto: http\r\nX-Forwarded-Host: other:81\r\n\r\n"},
    {"GET http://other HTTP/1.1\r\nHost: h\r\n\r\n",
     "GET / HTTP/1.1\r\nHost: other\r\nVia: 1.1 sxe\r\nX-Forwarded-For: 127.0.0.1\r\n"
     "X-Forwarded-Proto: http\r\nX-Forwarded-Host: other\r\n\r\n"},
    {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", SENT("OPTIONS *")},
    {"PURGE /%61%2e%25? HTTP/1.1\r\nHost: h\r\n\r\n", SENT("PURGE /a.%25?")},
    {"GET /a HTTP/1.0\r\nHost: h\r\n\r\n",
     "GET /a HTTP/1.1\r\nHost: h\r\nVia: 1.0 sxe\r\n" FOR_H "\r\n"},
};

START_TEST(a_request_is_written_again)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, requests[_i].sent);
    server = take_request(0, requests[_i].expected);
    PEER_EXPECT_SILENCE(server);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

static const struct {
    struct sxe_http_proxy proxy;
    const char *expected;
} options[] = {
    {{.fields = SXE_HTTP_PROXY_FORWARDED},
     HEAD("Via: 1.1 sxe\r\nForwarded: for=127.0.0.1;host=\"h\";proto=http\r\n")},
    {{.fields = SXE_HTTP_PROXY_NO_FIELDS}, HEAD("Via: 1.1 sxe\r\n")},
    {{.via = "edge", .host = "back:8"},
     "GET /a HTTP/1.1\r\nHost: back:8\r\nVia: 1.1 edge\r\n" FOR_H "\r\n"},
    {{.path = "/v1"}, SENT("GET /v1")},
    {{.path = "/v1/"}, SENT("GET /v1/")},
};

static const struct {
    const char *path;
    const char *expected;
} escaped[] = {
    {GET("/a%2fb"), SENT("GET /a%2Fb")},
    {GET("/%5c%00"), SENT("GET /%5C%00")},
};

START_TEST(a_route_may_send_escaped_slashes_on)
{
    int server;
    int peer;

    proxy_site.proxy.encoded_slash = true;
    serve_proxy(usual, 1);
    peer = client();
    say(peer, escaped[_i].path);
    server = take_request(0, escaped[_i].expected);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_route_says_how_the_request_changes)
{
    int server;
    int peer;

    proxy_site.proxy = options[_i].proxy;
    serve_proxy(usual, 1);
    peer = client();
    say(peer, GET("/a"));
    server = take_request(0, options[_i].expected);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

static const struct {
    const char *pattern;
    const char *path;
    const char *sent;
    const char *expected;
} paths[] = {
    {"/api/{rest...}", NULL, GET("/api/x"), SENT("GET /api/x")},
    {"/api/{rest...}", "/", GET("/api/x/y?z"), SENT("GET /x/y?z")},
    {"/api/{rest...}", "/", GET("/api/"), SENT("GET /")},
    {"/api/{rest...}", "/v1", GET("/api/x"), SENT("GET /v1/x")},
    {"/api/{rest...}", "/v1/", GET("/api/x"), SENT("GET /v1/x")},
    {"/api/{rest...}", "/v1/", GET("/api/../api/%2e./x"), NULL},
    {"/{a}/*", "/v1/", GET("/api/x"), SENT("GET /v1/x")},
    {"/{a}", "/v1/", GET("/api"), SENT("GET /v1/")},
    {"/v{rest...}", "/v1/", GET("/vx"), SENT("GET /v1/x")},
    {"/api", "/v1", GET("/api?x"), SENT("GET /v1?x")},
};

START_TEST(the_start_of_a_path_is_replaced)
{
    struct sxe_http_route_options route = {&proxy_site.proxy, SXE_HTTP_ROUTE_STREAM};
    struct sxe_http_router *router = sxe_http_router_new();
    int server;
    int peer;

    ck_assert_int_eq(
        sxe_http_router_add(router, "*", paths[_i].pattern, sxe_http_proxy_handle, &route), 0);
    proxy_site.proxy.path = paths[_i].path;
    serve_proxy_with(usual, 1, (struct sxe_http_config){.router = router}, NULL);
    peer = client();
    say(peer, paths[_i].sent);
    if (paths[_i].expected == NULL) { /* the path is not one of this route */
        EXPECT_STATUS(peer, "404 Not Found", LINES(TEXT, ""), "404 Not Found\n");
    } else {
        server = take_request(0, paths[_i].expected);
        close(server);
    }
    close(peer);
    end_proxy();
    sxe_http_router_delete(router);
}
END_TEST

static const char *const good_paths[] = {"/", "/v1", "/v1/", "/a%20b/%2F", "/a;b=c,d:e@f!$&'()*+~"};

static const char *const bad_paths[] = {
    "",           "v1",    "/a?b",   "/a?",   "/a#b",  "/a b", "/a\tb", "/a\r\nb", "/a\x7f",
    "/a\xc3\xa4", "/a//b", "/a/./b", "/../a", "/a%",   "/a%2", "/%41",  "/%2f",    "/a\\b",
    "/{a}",       "/a\"b", "/<a>",   "/a|b",  "/a[1]", "/a`",  "/a^",
};

static const struct sxe_http_proxy bad_proxies[] = {
    {.host = ""},          {.host = "a b"},
    {.host = "a\r\nX: y"}, {.host = "a/b"},
    {.host = "a@b"},       {.host = "a:x"},
    {.via = ""},           {.via = "a b"},
    {.via = "a\nb"},       {.fields = (enum sxe_http_proxy_fields)3},
};

START_TEST(a_route_that_cannot_be_sent_on_is_refused)
{
    struct sxe_http_proxy proxy = {.host = "a:1", .via = "edge.example:80"};
    char longer[SXE_HTTP_PROXY_PATH_MAX + 2];

    ck_assert_int_eq(sxe_http_proxy_check(&proxy), 0);
    for (unsigned i = 0; i < SXE_COUNT(good_paths); i++) {
        proxy.path = good_paths[i];
        ck_assert_msg(sxe_http_proxy_check(&proxy) == 0, "%s", proxy.path);
    }
    for (unsigned i = 0; i < SXE_COUNT(bad_paths); i++) {
        proxy.path = bad_paths[i];
        ck_assert_msg(sxe_http_proxy_check(&proxy) == -EINVAL, "%s", proxy.path);
    }
    for (unsigned i = 0; i < SXE_COUNT(bad_proxies); i++)
        ck_assert_msg(sxe_http_proxy_check(&bad_proxies[i]) == -EINVAL, "%u", i);
    snprintf(longer, sizeof(longer), "/%01023d", 0);
    proxy.path = longer;
    ck_assert_int_eq(sxe_http_proxy_check(&proxy), 0);
    snprintf(longer, sizeof(longer), "/%01024d", 0);
    ck_assert_int_eq(sxe_http_proxy_check(&proxy), -EINVAL);
    proxy = (struct sxe_http_proxy){.host = longer + 1};
    ck_assert_int_eq(sxe_http_proxy_check(&proxy), -EINVAL);
}
END_TEST

START_TEST(a_request_of_such_a_route_is_a_500)
{
    int peer;

    proxy_site.proxy.path = "/v1?key=";
    serve_proxy(usual, 1);
    peer = client();
    say(peer, GET("/a"));
    EXPECT_STATUS(peer, "500 Internal Server Error", LINES(TEXT, ""),
                  "500 Internal Server Error\n");
    close(peer);
    end_proxy();
}
END_TEST

/* ---- Fields that the route sets ---- */

static const struct {
    const char *lines[3];
    const char *sent;
    const char *expected;
} rules[] = {
    {{"X-App: shop"}, "", "X-App: shop\r\n"},
    {{"X-App:  a b\t"}, "X-App: c\r\nx_app: d\r\nX.APP: e\r\n", "X-App: a b\r\n"},
    {{"X-Client: <{client}>", "X-Real-IP:{client}"},
     "X-Real-IP: 1.2.3.4\r\n",
     "X-Client: <127.0.0.1>\r\nX-Real-IP: 127.0.0.1\r\n"},
    /* The client has given no password, so there is no user. */
    {{"X-User: {user}", "Authorization:"},
     "X-User: root\r\nX_User: root\r\nAuthorization: Basic eDp5\r\n",
     ""},
    {{"X-Name: [{user}]", "X-Name: last"}, "", "X-Name: last\r\n"},
};

START_TEST(a_route_sets_fields)
{
    char sent[500], expected[500];
    int server;
    int peer;

    proxy_site.proxy.request_header = rules[_i].lines;
    for (unsigned i = 0; i < SXE_COUNT(rules[0].lines); i++)
        proxy_site.proxy.request_header_number += rules[_i].lines[i] != NULL;
    serve_proxy(usual, 1);
    peer = client();
    snprintf(sent, sizeof(sent), HEAD("%s"), rules[_i].sent);
    snprintf(expected, sizeof(expected), HEAD(WHO "%s"), rules[_i].expected);
    say(peer, sent);
    server = take_request(0, expected);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_field_of_the_route_replaces_one_of_the_proxy)
{
    static const char *const lines[] = {"X-Forwarded-For: 192.0.2.1"};
    int server;
    int peer;

    proxy_site.proxy.request_header = lines;
    proxy_site.proxy.request_header_number = 1;
    serve_proxy(usual, 1);
    peer = client();
    say(peer, GET("/a"));
    server = take_request(0, HEAD("Via: 1.1 sxe\r\nX-Forwarded-Proto: http\r\n"
                                  "X-Forwarded-Host: h\r\nX-Forwarded-For: 192.0.2.1\r\n"));
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_field_that_is_too_long_is_a_431)
{
    static char line[80000];
    static const char *const lines[] = {line};
    int peer;

    snprintf(line, sizeof(line), "X: %070000d", 0);
    proxy_site.proxy.request_header = lines;
    proxy_site.proxy.request_header_number = 1;
    serve_proxy(usual, 1);
    peer = client();
    say(peer, GET("/a"));
    EXPECT_STATUS(peer, "431 Request Header Fields Too Large", LINES(TEXT, ""),
                  "431 Request Header Fields Too Large\n");
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_field_that_cannot_be_set_is_refused)
{
    static const char *const good[] = {"X:", "X: {user}{client} {request_id}",
                                       "Authorization: Basic eDp5", "X: \xc3\xa4"};
    static const char *const bad[] = {
        "",
        "X",
        ":a",
        "X : a",
        "X: a\r\nY: b",
        "X: {",
        "X: }",
        "X: {usr}",
        "X: {user",
        "Host: a",
        "host: a",
        "Via: a",
        "te: a",
        "Connection: close",
        "Content_Length: 1",
        "X: a\x7f",
        "Upgrade: a",
        "Expect: a",
        "Transfer.Encoding: chunked",
    };

    for (unsigned i = 0; i < SXE_COUNT(good); i++) {
        const struct sxe_http_proxy proxy = {.request_header = &good[i],
                                             .request_header_number = 1};

        ck_assert_msg(sxe_http_proxy_check(&proxy) == 0, "%s", good[i]);
    }
    for (unsigned i = 0; i < SXE_COUNT(bad); i++) {
        const struct sxe_http_proxy proxy = {.request_header = &bad[i], .request_header_number = 1};

        ck_assert_msg(sxe_http_proxy_check(&proxy) == -EINVAL, "%s", bad[i]);
    }
}
END_TEST

/* ---- The client ---- */

static const struct {
    const char *fields;
    enum sxe_http_proxy_fields kind;
    const char *expected;
} trusted[] = {
    {"X-Forwarded-For: 1.2.3.4, 192.0.2.7, 127.0.0.2\r\nX-Forwarded-Proto: https\r\n"
     "X-Forwarded-Host: shop:8\r\n",
     SXE_HTTP_PROXY_X_FORWARDED,
     "GET /a HTTP/1.1\r\nHost: shop:8\r\nVia: 1.1 sxe\r\nX-Forwarded-For: 192.0.2.7\r\n"
     "X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop:8\r\n\r\n"},
    {"X-Forwarded-For: 2001:db8::1\r\n", SXE_HTTP_PROXY_FORWARDED,
     HEAD("Via: 1.1 sxe\r\nForwarded: for=\"[2001:db8::1]\";host=\"h\";proto=http\r\n")},
};

START_TEST(the_client_of_a_trusted_proxy_is_the_one_who_asked)
{
    struct sxe_cidr_list list = {0};
    struct sxe_span wrong = {NULL, 0};
    int server;
    int peer;
    char text[500];

    ck_assert_int_eq(sxe_cidr_add(&list, "127.0.0.0/8", &wrong), 0);
    proxy_site.proxy.fields = trusted[_i].kind;
    serve_proxy_with(usual, 1,
                     (struct sxe_http_config){.stream = true,
                                              .trusted = &list,
                                              .forwarding = SXE_HTTP_FORWARDING_X_FORWARDED},
                     NULL);
    peer = client();
    snprintf(text, sizeof(text), "GET /a HTTP/1.1\r\nHost: h\r\n%s\r\n", trusted[_i].fields);
    say(peer, text);
    server = take_request(0, trusted[_i].expected);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

static uint64_t
same_number(void)
{
    return UINT64_C(0x0123456789abcdef);
}

START_TEST(the_servers_own_id_and_trace_are_sent_on)
{
    struct sxe_cidr_list list = {0};
    struct sxe_span wrong = {NULL, 0};
    int server;
    int peer;

    ck_assert_int_eq(sxe_cidr_add(&list, "127.0.0.0/8", &wrong), 0);
    serve_proxy_with(usual, 1,
                     (struct sxe_http_config){.stream = true,
                                              .request_id = "X-Request-Id",
                                              .trace = true,
                                              .random = same_number,
                                              .trusted = _i == 0 ? NULL : &list},
                     NULL);
    peer = client();
    say(peer,
        HEAD("x-request-id: 7\r\nTraceParent: "
             "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\ntracestate: a=b\r\n"));
    if (_i == 0)
        server = take_request(0, HEAD(WHO "X-Request-Id: 0123456789abcdef\r\ntraceparent: "
                                          "00-0123456789abcdef0123456789abcdef-0123456789abcdef-"
                                          "03\r\n"));
    else
        server = take_request(0, HEAD(WHO "X-Request-Id: 7\r\ntraceparent: "
                                          "00-4bf92f3577b34da6a3ce929d0e0e4736-0123456789abcdef-"
                                          "01\r\ntracestate: a=b\r\n"));
    say(server, "HTTP/1.1 200 OK\r\nx-request-id: theirs\r\nContent-Length: 0\r\n\r\n");
    EXPECT_REPLY(peer, _i == 0 ? "HTTP/1.1 200 OK\r\nX-Request-Id: 0123456789abcdef\r\n"
                                 "Content-Length: 0\r\n\r\n"
                               : "HTTP/1.1 200 OK\r\nX-Request-Id: 7\r\n"
                                 "Content-Length: 0\r\n\r\n");
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

static const struct {
    enum sxe_http_proxy_fields kind;
    const char *expected;
} at_unix[] = {
    {SXE_HTTP_PROXY_X_FORWARDED, "X-Forwarded-Proto: http\r\n"},
    {SXE_HTTP_PROXY_FORWARDED, "Forwarded: for=unknown;proto=http\r\n"},
};

START_TEST(a_client_without_address_and_host_is_passed_on_without_them)
{
    static const char path[] = "@sxe-test-http-proxy";
    char expected[300];
    SXE *s;
    int server;

    proxy_site.proxy.fields = at_unix[_i].kind;
    serve_proxy(usual, 1);
    snprintf(expected, sizeof(expected),
             "GET /a HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nVia: 1.0 sxe\r\n%s\r\n", proxy_site.ports[0],
             at_unix[_i].expected);
    ck_assert_int_eq(sxe_http_listen_unix(site.http, path), 0);
    s = sxe_new_unix(NULL, path, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_connect_unix(s), 0);
    EXPECT("connected", s, 0);
    ck_assert_int_eq(SXE_WRITE_LITERAL(s, "GET /a HTTP/1.0\r\n\r\n"), 0);
    server = take_request(0, expected);
    sxe_abort(s);
    EXPECT("close", s, ECONNABORTED);
    close(server);
    end_proxy();
}
END_TEST

/* An upstream that decodes these paths reads them as other paths, past the routes of this
 * server. */
static const char *const paths_of_two_readings[] = {
    "/a/..;/admin",    "/a/.;/b",           "/a/..;x=1/admin",
    "/a/%2e%2e;/b",    "/a/..%3b/b",        "/..;",
    "/.;/a",           "/admin%2Fx",        "/admin%2fx",
    "/%2fadmin/x",     "/a%2f..%2fadmin/x", "/x/..%2f../admin/x",
    "/a/..%5cadmin/x", "/admin%5Cx",        "/admin%00/x",
    "/admin/x%00",
};

START_TEST(a_path_with_an_escaped_slash_is_sent_on_only_if_the_route_says_so)
{
    const char *path = paths_of_two_readings[_i];
    char request[100];
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    snprintf(request, sizeof(request), "GET %s?a=%%2F HTTP/1.1\r\nHost: h\r\n\r\n", path);
    say(peer, request);
    EXPECT_STATUS(peer, "400 Bad Request", LINES(TEXT, ""), "400 Bad Request\n");
    ck_assert_uint_eq(state_of(0).requests, 0);
    say(peer, GET("/a?b=%2F%5C%00"));
    server = take_request(0, SENT("GET /a?b=%2F%5C%00"));
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

/* ---- Requests that cannot be sent on ---- */

static char *
many_names(unsigned number, bool is_reply)
{
    char *text = malloc(8000);
    size_t used = (size_t)snprintf(text, 8000, "%s\r\nConnection: x",
                                   is_reply ? "HTTP/1.1 200 OK\r\nContent-Length: 0"
                                            : "GET /a HTTP/1.1\r\nHost: h");

    for (unsigned i = 1; i < number; i++)
        used += (size_t)snprintf(text + used, 8000 - used, ",x%u", i);
    snprintf(text + used, 8000 - used, "\r\n\r\n");
    return text;
}

START_TEST(connection_names_32_fields_at_most)
{
    char *good = many_names(32, false);
    char *bad = many_names(33, false);
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, bad);
    EXPECT_STATUS(peer, "400 Bad Request", LINES(TEXT, ""), "400 Bad Request\n");
    say(peer, good);
    server = take_request(0, SENT("GET /a"));
    close(peer);
    close(server);
    ck_assert_uint_eq(state_of(0).failures, 0);
    end_proxy();
    free(good);
    free(bad);
}
END_TEST

START_TEST(a_head_that_is_too_long_with_what_the_proxy_adds_is_a_431)
{
    char text[2000];
    int peer;

    serve_proxy((struct sxe_http_upstream_config){.request_max = 1024}, 1);
    peer = client();
    snprintf(text, sizeof(text), "GET /a HTTP/1.1\r\nHost: h\r\nX: %0910d\r\n\r\n", 7);
    say(peer, text);
    EXPECT_STATUS(peer, "431 Request Header Fields Too Large", LINES(TEXT, ""),
                  "431 Request Header Fields Too Large\n");
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_head_with_too_many_fields_is_refused)
{
    static char text[20000];
    size_t used = (size_t)snprintf(text, sizeof(text), "GET /a HTTP/1.1\r\nHost: h\r\n");
    int peer;

    serve_proxy_with(usual, 1, (struct sxe_http_config){.stream = true, .head = {8192, 16384, 255}},
                     NULL);
    for (unsigned i = 0; i < (_i == 0 ? 250u : 249u); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "X: %u\r\n", i);
    snprintf(text + used, sizeof(text) - used, "\r\n");
    peer = client();
    say(peer, text);
    if (_i == 0)
        EXPECT_STATUS(peer, "431 Request Header Fields Too Large", LINES(TEXT, ""),
                      "431 Request Header Fields Too Large\n");
    else
        close(accept_proxy(0));
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_target_that_has_no_room_is_a_431)
{
    static char text[66000];
    char path[SXE_HTTP_PROXY_PATH_MAX + 1];
    char via[256];
    int peer;

    snprintf(path, sizeof(path), "/%01023d", 0);
    snprintf(via, sizeof(via), "%0255d", 0);
    proxy_site.proxy.path = path;
    proxy_site.proxy.via = via;
    serve_proxy_with(
        usual, 1,
        (struct sxe_http_config){.stream = true,
                                 .head = {.line_max = 65535, .head_max = 65535, .fields_max = 10}},
        &(struct sxe_config){.chunk_size = 65536});
    peer = client();
    snprintf(text, sizeof(text), "GET /?%065400d HTTP/1.1\r\nHost: h\r\n\r\n", 0);
    say(peer, text);
    EXPECT_STATUS(peer, "431 Request Header Fields Too Large", LINES(TEXT, ""),
                  "431 Request Header Fields Too Large\n");
    close(peer);
    end_proxy();
}
END_TEST

/* ---- Replies ---- */

static const struct {
    const char *request;
    const char *sent;
    const char *expected;
    bool is_kept; /* the connection to the upstream */
} replies[] = {
    {GET("/a"), OK_HEAD(2) "ab", OK_HEAD(2) "ab", true},
    {GET("/a"), "HTTP/1.1 404 Gone Fishing\r\nContent-Length: 02\r\nX: y\r\nx:  z \r\n\r\nab",
     "HTTP/1.1 404 Not Found\r\nX: y\r\nx: z\r\nContent-Length: 2\r\n\r\nab", true},
    {GET("/a"),
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1;x\r\na\r\n2\r\nbc\r\n"
     "0\r\nA: b\r\n\r\n",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", true},
    {GET("/a"),
     "HTTP/1.1 200 OK\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
     "Date: yesterday\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nProxy-Connection: x\r\n"
     "Set-Cookie: a=b\r\nSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n",
     "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n", true},
    {GET("/a"), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" OK_HEAD(1) "a",
     OK_HEAD(1) "a", true},
    {GET("/a"), "HTTP/1.1 204 No\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", true},
    {GET("/a"), "HTTP/1.1 304 Not\r\nETag: \"x\"\r\nContent-Length: 7\r\n\r\n",
     "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", true},
    {GET("/a"), "HTTP/1.1 205 Reset\r\nContent-Length: 2\r\n\r\nab",
     "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", true},
    {"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 7123\r\n\r\n",
     "HTTP/1.1 200 OK\r\nContent-Length: 7123\r\n\r\n", true},
    {"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nX: y\r\n\r\n",
     "HTTP/1.1 200 OK\r\nX: y\r\n\r\n", true},
    {"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
     "HTTP/1.1 200 OK\r\n\r\n", true},
    {"GET /a HTTP/1.0\r\nHost: h\r\n\r\n",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
     "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\na", true},
    {"GET /a HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", OK_HEAD(1) "a",
     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\na", true},
    {GET("/a"), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
     OK_HEAD(1) "a", false},
    {GET("/a"), "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", OK_HEAD(1) "a", false},
    {GET("/a"), OK_HEAD(1) "aHTTP/1.1 200 OK\r\n\r\nevil", OK_HEAD(1) "a", false},
};

START_TEST(a_reply_is_written_again)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, replies[_i].request);
    server = accept_proxy(0);
    say(server, replies[_i].sent);
    EXPECT_REPLY(peer, replies[_i].expected);
    if (strstr(replies[_i].expected, "Connection: close") != NULL)
        PEER_EXPECT_END(peer);
    else
        PEER_EXPECT_SILENCE(peer);
    turn(3);
    ck_assert_uint_eq(
        sxe_pool_get_count(proxy_site.upstream->addresses[0].client->links, SXE__HTTP_LINK_IDLE),
        replies[_i].is_kept);
    ck_assert_uint_eq(state_of(0).failures, 0);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_body_until_close_ends_with_the_connection)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, GET("/a"));
    server = take_request(0, SENT("GET /a"));
    say(server, "HTTP/1.1 200 OK\r\n\r\nhel");
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n");
    if (_i == 0) {
        close(server);
        PEER_EXPECT(peer, "0\r\n\r\n");
        PEER_EXPECT_SILENCE(peer);
    } else {
        peer_reset(server);
        PEER_EXPECT_RESET(peer);
    }
    close(peer);
    end_proxy();
}
END_TEST

static const char *const bad_replies[] = {
    "nonsense\r\n\r\n",
    "HTTP/2.0 200 OK\r\n\r\n",
    "HTTP/1.1 99 OK\r\n\r\n",
    "HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\na",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
};

START_TEST(a_reply_that_can_be_read_in_two_ways_is_a_502)
{
    int server;
    int peer;

    serve_proxy(usual, 1);
    peer = client();
    say(peer, GET("/a"));
    server = accept_proxy(0);
    say(server, bad_replies[_i]);
    EXPECT_REPLY(peer, bad_gateway);
    PEER_EXPECT_SILENCE(peer);
    ck_assert_uint_eq(state_of(0).failures, 1);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_head_without_end_is_a_502)
{
    static char line[1000] = "X: ";
    int server;
    int peer;

    memset(line + 3, 'y', sizeof(line) - 6);
    memcpy(line + sizeof(line) - 3, "\r\n", 3);
    serve_proxy(usual, 1);
    peer = client();
    say(peer, GET("/a"));
    server = accept_proxy(0);
    say(server, "HTTP/1.1 200 OK\r\n");
    for (unsigned i = 0; i < 17; i++) {
        (void)!send(server, line, sizeof(line) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        turn(2);
    }
    EXPECT_REPLY(peer, bad_gateway);
    close(peer);
    close(server);
    end_proxy();
}
END_TEST

START_TEST(a_head_of_a_reply_with_no_room_is_a_502)
{
    char text[3000];
    char *names = many_names(33, true);
    int server;
    int peer;

    serve_proxy_with(usual, 1, (struct sxe_http_config){.stream = true, .fields_max = 1000}, NULL);
    peer = client();
    say(peer, GET("/a"));
    server = accept_proxy(0);
    snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nA: b\r\nX: %01000d\r\n\r\n", 7);
    say(server, _i == 0 ? text : names);
    EXPECT_REPLY(peer, bad_gateway);
    close(peer);
    close(server);
    end_proxy();
    free(names);
}
END_TEST

/* ---- Replies that are cut ---- */

static const char *const cut_replies[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
};

/* The proxy's client must see 502, or a reply that is not whole and a reset. */
static void
expect_cut(int peer)
{
    char text[1000] = "";
    size_t length = 0;
    ssize_t n = -1;

    for (unsigned i = 0; i < WAIT_TURNS; i++) {
        turn(1);
        n = recv(peer, text + length, sizeof(text) - 1 - length, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
        length += n > 0 ? (size_t)n : 0;
    }
    if (strncmp(text, "HTTP/1.1 502", 12) == 0)
        return;
    ck_assert_int_eq(n, -1);
    ck_assert_int_eq(errno, ECONNRESET);
    ck_assert_ptr_null(strstr(text, "\r\n0\r\n\r\n"));
    ck_assert_ptr_null(strstr(text, "hello"));
}

START_TEST(a_reply_that_is_cut_never_looks_whole)
{
    const char *text = cut_replies[_i % 2];

    serve_proxy(usual, 1);
    for (size_t length = 0; length < strlen(text); length++) {
        int peer = client();
        int server;

        say(peer, "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        server = take_request(0, SENT("GET /a"));
        peer_send(server, text, length);
        turn(2);
        if (_i < 2)
            close(server);
        else
            peer_reset(server);
        turn(3);
        expect_cut(peer);
        close(peer);
    }
    ck_assert_uint_eq(state_of(0).failures, strlen(text));
    end_proxy();
}
END_TEST

static Suite *
head_suite(void)
{
    Suite *suite = suite_create("http proxy head");
    TCase *to = tcase_create("requests");
    TCase *from = tcase_create("replies");

    tcase_add_loop_test(to, a_request_is_written_again, 0, SXE_COUNT(requests));
    tcase_add_loop_test(to, a_route_says_how_the_request_changes, 0, SXE_COUNT(options));
    tcase_add_loop_test(to, a_route_may_send_escaped_slashes_on, 0, SXE_COUNT(escaped));
    tcase_add_loop_test(to, a_path_with_an_escaped_slash_is_sent_on_only_if_the_route_says_so, 0,
                        SXE_COUNT(paths_of_two_readings));
    tcase_add_loop_test(to, the_start_of_a_path_is_replaced, 0, SXE_COUNT(paths));
    tcase_add_test(to, a_route_that_cannot_be_sent_on_is_refused);
    tcase_add_test(to, a_request_of_such_a_route_is_a_500);
    tcase_add_loop_test(to, a_route_sets_fields, 0, SXE_COUNT(rules));
    tcase_add_test(to, a_field_of_the_route_replaces_one_of_the_proxy);
    tcase_add_test(to, a_field_that_is_too_long_is_a_431);
    tcase_add_test(to, a_field_that_cannot_be_set_is_refused);
    tcase_add_loop_test(to, the_client_of_a_trusted_proxy_is_the_one_who_asked, 0,
                        SXE_COUNT(trusted));
    tcase_add_loop_test(to, the_servers_own_id_and_trace_are_sent_on, 0, 2);
    tcase_add_loop_test(to, a_client_without_address_and_host_is_passed_on_without_them, 0, 2);
    tcase_add_test(to, connection_names_32_fields_at_most);
    tcase_add_test(to, a_head_that_is_too_long_with_what_the_proxy_adds_is_a_431);
    tcase_add_loop_test(to, a_head_with_too_many_fields_is_refused, 0, 2);
    tcase_add_test(to, a_target_that_has_no_room_is_a_431);
    tcase_add_loop_test(from, a_reply_is_written_again, 0, SXE_COUNT(replies));
    tcase_add_loop_test(from, a_body_until_close_ends_with_the_connection, 0, 2);
    tcase_add_loop_test(from, a_reply_that_can_be_read_in_two_ways_is_a_502, 0,
                        SXE_COUNT(bad_replies));
    tcase_add_test(from, a_head_without_end_is_a_502);
    tcase_add_loop_test(from, a_head_of_a_reply_with_no_room_is_a_502, 0, 2);
    tcase_add_loop_test(from, a_reply_that_is_cut_never_looks_whole, 0, 4);
    suite_add_tcase(suite, to);
    suite_add_tcase(suite, from);
    return suite;
}

int
main(void)
{
    return sxe_test_main(head_suite());
}
