/* SPDX-License-Identifier: MIT
 *
 * The functions by which handlers read a request, and which handler gets which request.
 */
#include "http-site.h"

#include <sys/un.h>

#include "sxe-cidr.h"

#define ANSWER(text) \
    sxe_http_reply(sxe_http_response_of(request), 200, NULL, (text).base, (text).length)

/* ---- The parts of a request ---- */

static enum sxe_http_verdict
say_method(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)response;
    return ANSWER(sxe_http_method_text(request));
}

static enum sxe_http_verdict
say_target(struct sxe_http_request *request, struct sxe_http_response *response)
{
    ck_assert_ptr_eq(sxe_http_request_of(response), request);
    return ANSWER(sxe_http_target(request));
}

static enum sxe_http_verdict
say_raw_path(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)response;
    return ANSWER(request->raw_path);
}

static enum sxe_http_verdict
say_path(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)response;
    return ANSWER(request->path);
}

/* Decode the path twice: the second call returns the stored result. */
static enum sxe_http_verdict
say_decoded(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_span first = sxe_http_decoded_path(request);

    (void)response;
    ck_assert_ptr_eq(first.base, sxe_http_decoded_path(request).base);
    return ANSWER(first);
}

static enum sxe_http_verdict
say_decoded_none(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const struct sxe_span none = {"", 0};

    (void)response;
    ck_assert_ptr_null(sxe_http_decoded_path(request).base);
    ck_assert_ptr_null(sxe_http_decoded_path(request).base);
    return ANSWER(none);
}

static enum sxe_http_verdict
say_query(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const struct sxe_span none = {"none", 4};

    (void)response;
    return request->query.base == NULL ? ANSWER(none) : ANSWER(request->query);
}

static enum sxe_http_verdict
say_authority(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const struct sxe_span none = {"none", 4};
    struct sxe_span authority = sxe_http_authority(request);

    (void)response;
    return authority.base == NULL ? ANSWER(none) : ANSWER(authority);
}

/* Reply with user, slash, password; or with the error. */
static enum sxe_http_verdict
say_credentials(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_http_basic basic;
    const int result = sxe_http_basic(request, &basic);
    char text[2 * SXE_HTTP_BASIC_MAX];

    if (result < 0)
        return sxe_http_reply(response, 200, NULL, result == -EINVAL ? "EINVAL" : "ENOENT", 6);
    snprintf(text, sizeof(text), "%.*s/%.*s", (int)basic.user.length, basic.user.base,
             (int)basic.password.length, basic.password.base);
    return sxe_http_reply(response, 200, NULL, text, strlen(text));
}

static enum sxe_http_verdict
say_the_user(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_http_basic basic;

    (void)response;
    ck_assert_ptr_null(sxe_http_user(request, &basic).base);
    request->is_authenticated = true;
    return ANSWER(sxe_http_user(request, &basic));
}

#define BASIC(value) "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: " value "\r\n\r\n"
#define LETTERS_16   "YTpiYTpiYTpiYTpi"
#define LETTERS_80   LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16
#define LETTERS_640 \
    LETTERS_80 LETTERS_80 LETTERS_80 LETTERS_80 LETTERS_80 LETTERS_80 LETTERS_80 LETTERS_80

static const struct saying {
    const char *request;
    sxe_http_handler handler;
    struct sxe_span answer;
} sayings[] = {
    {GET("/"), say_method, {"GET", 3}},
    {"PURGE / HTTP/1.1\r\nHost: h\r\n\r\n", say_method, {"PURGE", 5}},
    {GET("/a%2f?b=c"), say_target, {"/a%2f?b=c", 9}},
    {GET("http://h/a?b"), say_target, {"http://h/a?b", 12}},
    {GET("/a%2f/./%61?b=c"), say_raw_path, {"/a%2f/./%61", 11}},
    {GET("http://h"), say_raw_path, {"/", 1}},
    {GET("/a%2f/../%61%7E?b=c"), say_path, {"/a~", 3}},
    {GET("/a%2f/./b/%2e%2e/c"), say_path, {"/a%2F/c", 7}},
    {GET("/a/b/../../x"), say_path, {"/x", 2}},
    {GET("/plain"), say_decoded, {"/plain", 6}},
    {GET("/a%2Fb%00c%20/../d%41"), say_decoded, {"/dA", 3}},
    {GET("/ab%25c%20%C3%A9"), say_decoded, {"/ab%c \xC3\xA9", 8}},
    {GET("/a%2Fb"), say_decoded_none, {"", 0}},
    {GET("/a%5Cb"), say_decoded_none, {"", 0}},
    {GET("/a%00"), say_decoded_none, {"", 0}},
    {GET("//a//%40/..///b%3f//"), say_path, {"/a/b%3F/", 8}},
    {GET("/a"), say_query, {"none", 4}},
    {GET("/a?"), say_query, {"", 0}},
    {GET("/a?b=%20?c"), say_query, {"b=%20?c", 7}},
    {GET("http://h?b"), say_query, {"b", 1}},
    {GET("/"), say_authority, {"h", 1}},
    {GET("http://other:81/"), say_authority, {"other:81", 8}},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", say_authority, {"none", 4}},
    /* RFC 7617, 2 */
    {BASIC("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), say_credentials, {"Aladdin/open sesame", 19}},
    {BASIC("Basic dGVzdDoxMjPCow=="), say_credentials, {"test/123\xC2\xA3", 10}},
    {BASIC("bASIC  YTpi"), say_credentials, {"a/b", 3}},
    {BASIC("Basic YTpiOmM"), say_credentials, {"a/b:c", 5}},
    {BASIC("Basic YTo="), say_credentials, {"a/", 2}},
    {BASIC("Basic Og"), say_credentials, {"/", 1}},
    {BASIC("Basic YTo/Pz8+"), say_credentials, {"a/?\?\?>", 6}},
    {BASIC("Basic YTr7+/8="), say_credentials, {"a/\xFB\xFB\xFF", 5}},
    {BASIC("Basic YTo9"), say_credentials, {"a/=", 3}},
    {GET("/"), say_credentials, {"ENOENT", 6}},
    {BASIC("Bearer YTpi"), say_credentials, {"ENOENT", 6}},
    {BASIC("Basic"), say_credentials, {"ENOENT", 6}},
    {BASIC("Basic Og\r\nAuthorization: Basic Og"), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic YTpi="), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic Og==="), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic ===="), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic YT pi"), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic YTpi-_"), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic YWI"), say_credentials, {"EINVAL", 6}}, /* no colon */
    {BASIC("Basic OgA"), say_credentials, {"EINVAL", 6}}, /* a NUL in the user's name */
    {BASIC("Basic On8"), say_credentials, {"EINVAL", 6}}, /* DEL */
    /* Surplus bits after the last byte. */
    {BASIC("Basic Oh"), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic YTr7Zg9="), say_credentials, {"EINVAL", 6}}, /* surplus bits */
    /* A single digit, which makes no byte. */
    {BASIC("Basic YTpiY"), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic " LETTERS_640 LETTERS_16 LETTERS_16 LETTERS_16), say_credentials, {"EINVAL", 6}},
    {BASIC("Basic YTpi"), say_the_user, {"a", 1}},
};

START_TEST(a_request_says_what_it_is_for)
{
    const struct saying *saying = &sayings[_i];
    char head[100];
    char got[100];
    int peer;

    serve((struct sxe_http_config){.handler = saying->handler});
    peer = client();
    say(peer, saying->request);
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n%s\r\n",
             saying->answer.length,
             strstr(saying->request, "/1.0") == NULL ? "" : "Connection: keep-alive\r\n");
    EXPECT_REPLY(peer, head);
    ck_assert_uint_eq(peer_receive(peer, got, saying->answer.length), saying->answer.length);
    ck_assert_mem_eq(got, saying->answer.base, saying->answer.length);
    PEER_EXPECT_SILENCE(peer);
    close(peer);
    end_site();
}
END_TEST

/* ---- Fields ---- */

static void
expect_field(const struct sxe_http_request *request, const char *name, const char *value)
{
    struct sxe_span got = sxe_http_field_value(request, name);

    ck_assert_int_eq(got.base == NULL, value == NULL);
    if (value != NULL) {
        ck_assert_uint_eq(got.length, strlen(value));
        ck_assert_mem_eq(got.base, value, got.length);
    }
}

static enum sxe_http_verdict
look_at_fields(struct sxe_http_request *request, struct sxe_http_response *response)
{
    expect_field(request, "hOST", "h");
    expect_field(request, "x-one", "1");
    expect_field(request, "X-Empty", "");
    expect_field(request, "User-Agent", "first");
    expect_field(request, "Cookie", NULL);
    expect_field(request, "X-On", NULL);
    expect_field(request, "", NULL);
    ck_assert_uint_eq(sxe_http_known_value(request, SXE_HTTP_FIELD_HOST).length, 1);
    ck_assert_ptr_null(sxe_http_known_value(request, SXE_HTTP_FIELD_RANGE).base);
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(a_field_is_found_by_its_name_in_any_case)
{
    int peer;

    serve((struct sxe_http_config){.handler = look_at_fields});
    peer = client();
    say(peer, "GET / HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nX-Empty:\r\nUser-Agent: first\r\n"
              "User-Agent: second\r\n\r\n");
    EXPECT_OK(peer, "");
    close(peer);
    end_site();
}
END_TEST

/* ---- Values ---- */

static enum sxe_http_verdict
look_at_values(struct sxe_http_request *request, struct sxe_http_response *response)
{
    char room[8] = "1234567";

    ck_assert_int_eq(sxe_http_query_value(request, "a", room, sizeof(room)), 3);
    ck_assert_str_eq(room, "1 2");
    ck_assert_int_eq(sxe_http_query_value(request, "a", room, 4), 3);
    ck_assert_int_eq(sxe_http_query_value(request, "a", room, 3), -ENOBUFS);
    ck_assert_int_eq(sxe_http_query_value(request, "a", room, 0), -ENOBUFS);
    ck_assert_int_eq(sxe_http_query_value(request, "b", room, sizeof(room)), 0);
    ck_assert_str_eq(room, "");
    ck_assert_int_eq(sxe_http_query_value(request, "c", room, sizeof(room)), -ENOENT);
    ck_assert_int_eq(sxe_http_parameter(request, "bad", room, sizeof(room)), -EINVAL);
    ck_assert_int_eq(sxe_http_parameter(request, "id", room, sizeof(room)), 3);
    ck_assert_str_eq(room, "x y");
    ck_assert_int_eq(sxe_http_parameter(request, "id", room, 4), 3);
    ck_assert_int_eq(sxe_http_parameter(request, "id", room, 3), -ENOBUFS);
    ck_assert_int_eq(sxe_http_parameter(request, "id", room, 0), -ENOBUFS);
    ck_assert_int_eq(sxe_http_parameter(request, "other", room, sizeof(room)), -ENOENT);
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(parameters_of_route_and_query_are_decoded_into_room_with_a_nul)
{
    struct sxe_http_router *router = sxe_http_router_new();
    int peer;

    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/u/{id}/{bad}", look_at_values, NULL), 0);
    serve((struct sxe_http_config){.router = router});
    peer = client();
    say(peer, GET("/u/x%20y/a%2Fb?a=1+2&b"));
    EXPECT_OK(peer, "");
    close(peer);
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

/* ---- Requests without a route ---- */

static enum sxe_http_verdict
answer_unrouted(struct sxe_http_request *request, struct sxe_http_response *response)
{
    ck_assert_ptr_nonnull(request->user);
    ck_assert_int_eq(sxe_http_add_field(response, "X", "1"), 0);
    return sxe_http_reply_unrouted(request, response);
}

START_TEST(a_handler_may_answer_what_has_no_route)
{
    static const char *const replies[][2] = {
        {GET("/none"), "HTTP/1.1 404 Not Found\r\nX: 1\r\n"},
        {"PUT /a HTTP/1.1\r\nHost: h\r\n\r\n",
         "HTTP/1.1 405 Method Not Allowed\r\nX: 1\r\nAllow: GET, HEAD, OPTIONS\r\n"},
        {"OPTIONS /a HTTP/1.1\r\nHost: h\r\n\r\n",
         "HTTP/1.1 204 No Content\r\nX: 1\r\nAllow: GET, HEAD, OPTIONS\r\n"},
    };
    struct sxe_http_router *router = sxe_http_router_new();
    int user;

    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/a", say_method, NULL), 0);
    serve((struct sxe_http_config){
        .router = router, .handler = say_method, .unrouted = answer_unrouted, .user = &user});
    for (unsigned i = 0; i < 3; i++) {
        int peer = client();

        say(peer, replies[i][0]);
        EXPECT_REPLY(peer, replies[i][1]);
        close(peer);
    }
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

/* ---- Peers ---- */

/* Direct clients have a port that the kernel chose; clients that a proxy names have small ports. */
static enum sxe_http_verdict
say_peer(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sockaddr_storage address;
    socklen_t length = sxe_http_peer(request, &address);
    const char *ip = sxe_http_peer_ip(request);
    unsigned port = 0;
    char text[80];

    ck_assert_int_eq(length == 0, *ip == '\0');
    if (length == sizeof(struct sockaddr_in))
        port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    else if (length == sizeof(struct sockaddr_in6))
        port = ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    snprintf(text, sizeof(text), "%s %s", ip, port == 0 ? "none" : port < 1000 ? "small" : "large");
    return sxe_http_reply(response, 200, NULL, text, strlen(text));
}

START_TEST(a_peer_over_ipv4_is_its_socket)
{
    int peer;

    serve((struct sxe_http_config){.handler = say_peer, .address_max = UINT32_MAX});
    peer = client();
    say(peer, GET("/"));
    EXPECT_OK(peer, "127.0.0.1 large");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_peer_over_ipv6_is_its_socket)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int peer;

    serve((struct sxe_http_config){.handler = say_peer});
    ck_assert_int_eq(sxe_http_listen(site.http, "::1", 0), 0);
    address.sin6_port = htons(sxe_http_port(site.http));
    peer = socket(AF_INET6, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
    turn(2);
    say(peer, GET("/"));
    EXPECT_OK(peer, "::1 large");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_peer_over_a_unix_socket_has_no_address)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int peer;

    serve((struct sxe_http_config){.handler = say_peer});
    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/sxe-http-request-%d", (int)getpid());
    ck_assert_int_eq(sxe_http_listen_unix(site.http, address.sun_path), 0);
    peer = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&address, sizeof(address)), 0);
    turn(2);
    say(peer, GET("/"));
    EXPECT_OK(peer, " none");
    close(peer);
    end_site();
    unlink(address.sun_path);
}
END_TEST

START_TEST(a_peer_behind_a_proxy_is_whom_the_proxy_names)
{
    static const char *const headers[][2] = {
        {"PROXY TCP4 192.0.2.1 192.0.2.2 999 80\r\n", "192.0.2.1 small"},
        {"PROXY TCP6 2001:db8::1 2001:db8::2 2000 80\r\n", "2001:db8::1 large"},
        {"PROXY UNKNOWN\r\n", "127.0.0.1 large"},
    };
    struct sxe_cidr_list proxies = {0};
    int peer;

    ck_assert_int_eq(sxe_cidr_add(&proxies, "127.0.0.0/8", NULL), 0);
    serve((struct sxe_http_config){.handler = say_peer, .proxies = &proxies});
    for (unsigned i = 0; i < 3; i++) {
        peer = client();
        say(peer, headers[i][0]);
        say(peer, GET("/"));
        EXPECT_OK(peer, headers[i][1]);
        close(peer);
    }
    end_site();
}
END_TEST

/* ---- Handlers that answer ---- */

static enum sxe_http_verdict
say_user(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const char *user = request->user;

    return sxe_http_reply(response, 200, NULL, user, strlen(user));
}

static struct sxe_http_router *
routes(void)
{
    struct sxe_http_router *router = sxe_http_router_new();

    const struct sxe_http_route_options a = {.user = (void *)(uintptr_t) "a"};
    const struct sxe_http_route_options any = {.user = (void *)(uintptr_t) "*"};

    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/a", say_user, &a), 0);
    ck_assert_int_eq(sxe_http_router_add(router, "PUT,PURGE", "/b", say_user, NULL), 0);
    ck_assert_int_eq(sxe_http_router_add(router, "*", "/any", say_user, &any), 0);
    return router;
}

static void
serve_routes(struct sxe_http_config config)
{
    config.user = (void *)(uintptr_t) "none";
    serve(config);
}

static const struct routed {
    const char *request;
    const char *reply;
} routed[] = {
    {GET("/a"), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"},
    {GET("/%61?x"), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"},
    {"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"},
    {"BREW /any HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n*"},
    {"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
     "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD, OPTIONS\r\n" TEXT
     "Content-Length: 23\r\n\r\n405 Method Not Allowed\n"},
    {GET("/b"), "HTTP/1.1 405 Method Not Allowed\r\nAllow: PUT, OPTIONS, PURGE\r\n" TEXT
                "Content-Length: 23\r\n\r\n405 Method Not Allowed\n"},
    {"OPTIONS /a HTTP/1.1\r\nHost: h\r\n\r\n",
     "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, OPTIONS\r\n\r\n"},
    {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
     "HTTP/1.1 204 No Content\r\n"
     "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH, PURGE\r\n\r\n"},
};

static enum sxe_http_verdict
say_nothing(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    (void)response;
    ck_abort_msg("the handler is called");
    return SXE_HTTP_DONE;
}

START_TEST(rfc_9110_9_the_route_answers_and_else_the_library)
{
    struct sxe_http_router *router = routes();
    int peer;

    serve_routes((struct sxe_http_config){.router = router, .handler = say_nothing});
    peer = client();
    say(peer, routed[_i].request);
    EXPECT_REPLY(peer, routed[_i].reply);
    say(peer, GET("/a"));
    EXPECT_OK(peer, "a");
    close(peer);
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(what_no_route_takes_is_the_handlers)
{
    struct sxe_http_router *router = routes();
    int peer;

    serve_routes((struct sxe_http_config){.router = router, .handler = say_user});
    peer = client();
    say(peer, GET("/c") GET("/a"));
    EXPECT_OK(peer, "none");
    EXPECT_OK(peer, "a");
    close(peer);
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(rfc_9110_15_5_5_what_nobody_takes_is_not_found)
{
    struct sxe_http_router *router = _i == 0 ? NULL : routes();
    int peer;

    serve_routes((struct sxe_http_config){.router = router});
    peer = client();
    say(peer, GET("/c") "POST /c HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    EXPECT_STATUS(peer, "404 Not Found", LINES(TEXT, ""), "404 Not Found\n");
    EXPECT_STATUS(peer, "404 Not Found", LINES(TEXT, ""), "404 Not Found\n");
    close(peer);
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(without_room_for_allow_it_is_left_out)
{
    struct sxe_http_router *router = routes();
    int peer;

    serve_routes((struct sxe_http_config){.router = router, .fields_max = 50});
    peer = client();
    say(peer, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_REPLY(peer, "HTTP/1.1 204 No Content\r\n\r\n");
    say(peer, "GET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_STATUS(peer, "500 Internal Server Error", LINES("", "Connection: close\r\n"),
                  "500 Internal Server Error\n");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(rfc_9110_9_3_6_connect_is_not_implemented)
{
    int peer;

    serve((struct sxe_http_config){.handler = say_nothing});
    peer = client();
    say(peer, "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_REFUSAL(peer, "501 Not Implemented");
    close(peer);
    end_site();
}
END_TEST

START_TEST(rfc_3986_5_4_2_a_path_above_the_root_is_refused)
{
    int peer;

    serve((struct sxe_http_config){.handler = say_nothing});
    peer = client();
    say(peer, GET("/a/../%2e%2E/b"));
    EXPECT_REFUSAL(peer, "400 Bad Request");
    close(peer);
    end_site();
}
END_TEST

static void
push_part(struct sxe_http_request *request, struct sxe_http_response *response,
          struct sxe_span part, bool last)
{
    (void)request;
    event_push_data("part", NULL, last, part.base, part.length);
    if (last)
        (void)!sxe_http_reply(response, 200, NULL, "streamed", 8);
}

static enum sxe_http_verdict
read_parts(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)response;
    ck_assert_ptr_null(request->body.base);
    sxe_http_read(request, push_part);
    return SXE_HTTP_LATER;
}

START_TEST(a_route_may_have_its_bodies_streamed)
{
    struct sxe_http_router *router = sxe_http_router_new();
    const struct sxe_http_route_options stream = {.flags = SXE_HTTP_ROUTE_STREAM};
    int peer;

    ck_assert_int_eq(sxe_http_router_add(router, "POST", "/whole", echo, NULL), 0);
    ck_assert_int_eq(sxe_http_router_add(router, "POST", "/parts", read_parts, &stream), 0);
    serve((struct sxe_http_config){.router = router});
    peer = client();
    say(peer, "POST /parts HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
    EXPECT("part", NULL, false);
    say(peer, "def");
    EXPECT("part", NULL, true);
    EXPECT_OK(peer, "streamed");
    say(peer, "POST /whole HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
    EXPECT_NOTHING();
    say(peer, "def");
    EXPECT_OK(peer, "POST /whole abcdef");
    close(peer);
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

static Suite *
request_suite(void)
{
    Suite *suite = suite_create("http request");
    TCase *asked = tcase_create("what a request says");
    TCase *routing = tcase_create("who answers");

    tcase_add_loop_test(asked, a_request_says_what_it_is_for, 0,
                        (int)(sizeof(sayings) / sizeof(sayings[0])));
    tcase_add_test(asked, a_field_is_found_by_its_name_in_any_case);
    tcase_add_test(asked, parameters_of_route_and_query_are_decoded_into_room_with_a_nul);
    tcase_add_test(asked, a_handler_may_answer_what_has_no_route);
    tcase_add_test(asked, a_peer_over_ipv4_is_its_socket);
    tcase_add_test(asked, a_peer_over_ipv6_is_its_socket);
    tcase_add_test(asked, a_peer_over_a_unix_socket_has_no_address);
    tcase_add_test(asked, a_peer_behind_a_proxy_is_whom_the_proxy_names);
    suite_add_tcase(suite, asked);
    tcase_add_loop_test(routing, rfc_9110_9_the_route_answers_and_else_the_library, 0,
                        (int)(sizeof(routed) / sizeof(routed[0])));
    tcase_add_test(routing, what_no_route_takes_is_the_handlers);
    tcase_add_loop_test(routing, rfc_9110_15_5_5_what_nobody_takes_is_not_found, 0, 2);
    tcase_add_test(routing, without_room_for_allow_it_is_left_out);
    tcase_add_test(routing, rfc_9110_9_3_6_connect_is_not_implemented);
    tcase_add_test(routing, rfc_3986_5_4_2_a_path_above_the_root_is_refused);
    tcase_add_test(routing, a_route_may_have_its_bodies_streamed);
    suite_add_tcase(suite, routing);
    return suite;
}

int
main(void)
{
    return sxe_test_main(request_suite());
}
