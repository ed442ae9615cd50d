/* SPDX-License-Identifier: MIT
 *
 * The reverse proxy in front of a server of FastCGI, which the test plays record by record: the
 * parameters of requests, their bodies, the heads and bodies of scripts, and what ends early or
 * breaks the protocol.
 */
#include "http-proxy-php.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sxe-cidr.h"

static char directory[] = "/tmp/sxe-fastcgi-XXXXXX";

static void
put_file(const char *name)
{
    char path[200];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
}

static void
put_directory(const char *name)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void
set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    put_file("index.php");
    put_file("a.php");
    put_file("picture.jpg");
    put_directory("d");
    put_directory(".git");
    put_directory(".well-known");
    put_file(".git/index.php");
    put_file(".git/a.php");
    put_file(".well-known/a.php");
    put_file(".hid.php");
    put_directory("d.php");
    put_file("d/index.php");
}

static void
tear_down(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* ---- Parameters ---- */

START_TEST(the_parameters_are_those_of_cgi)
{
    static const char *const client_names[] = {
        "HTTP_CLIENT_IP",           "HTTP_TRUE_CLIENT_IP",           "HTTP_X_CLIENT_IP",
        "HTTP_X_CLUSTER_CLIENT_IP", "HTTP_CF_CONNECTING_IP",         "HTTP_FASTLY_CLIENT_IP",
        "HTTP_X_FORWARDED",         "HTTP_X_ORIGINAL_FORWARDED_FOR", NULL};
    int server;
    int peer;

    serve_fastcgi(plain, 1);
    peer = client();
    say(peer,
        "GET /a%20b/c?d=%2f HTTP/1.1\r\nHost: example.com:81\r\nX-A: 1\r\nX_B: 2\r\nx-a: 3\r\n"
        "Cookie: a\r\ncookie: b\r\nProxy: evil\r\nContent-Type: a/b\r\nConnection: x-c\r\n"
        "X-C: 1\r\nX-Forwarded-For: 1.1.1.1\r\nX-Long9: \r\nX.D: 1\r\nclient-ip: 1\r\n"
        "True-Client-IP: 1\r\nX-Client-IP: 1\r\nX-Cluster-Client-IP: 1\r\nCF-Connecting-IP: 1\r\n"
        "Fastly-Client-IP: 1\r\nX-Forwarded: 1\r\nX-Original-Forwarded-For: 1\r\n\r\n");
    server = take_asked(0);
    EXPECT_PARAM("REQUEST_METHOD", "GET");
    EXPECT_PARAM("REQUEST_URI", "/a%20b/c?d=%2f");
    EXPECT_PARAM("QUERY_STRING", "d=%2f");
    EXPECT_PARAM("SCRIPT_NAME", "");
    EXPECT_PARAM("PATH_INFO", "/a b/c");
    EXPECT_PARAM("SCRIPT_FILENAME", "-");
    EXPECT_PARAM("SERVER_PROTOCOL", "HTTP/1.1");
    EXPECT_PARAM("GATEWAY_INTERFACE", "CGI/1.1");
    EXPECT_PARAM("SERVER_NAME", "example.com");
    EXPECT_PARAM("SERVER_PORT", "81");
    EXPECT_PARAM("SERVER_ADDR", "127.0.0.1");
    EXPECT_PARAM("REMOTE_ADDR", "127.0.0.1");
    ck_assert_int_gt(atoi(param("REMOTE_PORT")), 0);
    EXPECT_PARAM("REQUEST_SCHEME", "http");
    EXPECT_PARAM("HTTPS", "-");
    EXPECT_PARAM("REDIRECT_STATUS", "200");
    EXPECT_PARAM("CONTENT_LENGTH", "-");
    EXPECT_PARAM("CONTENT_TYPE", "a/b");
    EXPECT_PARAM("HTTP_CONTENT_TYPE", "-");
    EXPECT_PARAM("HTTP_HOST", "example.com:81");
    EXPECT_PARAM("HTTP_X_A", "1, 3");
    EXPECT_PARAM("HTTP_COOKIE", "a; b");
    EXPECT_PARAM("HTTP_X_LONG9", "");
    EXPECT_PARAM("HTTP_X_B", "-");
    EXPECT_PARAM("HTTP_X_C", "-");
    EXPECT_PARAM("HTTP_X_D", "-");
    for (const char *const *name = client_names; *name != NULL; name++)
        EXPECT_PARAM(*name, "-");
    EXPECT_PARAM("HTTP_PROXY", "-");
    EXPECT_PARAM("HTTP_CONNECTION", "-");
    EXPECT_PARAM("HTTP_X_FORWARDED_FOR", "-");
    ck_assert(!asked.keep);
    put_out(server, "Content-Type: text/x\r\nContent-Length: 5\r\n\r\nhello");
    put_end(server);
    EXPECT_STATUS(peer, "200 OK", LINES("Content-Type: text/x\r\n", ""), "hello");
    PEER_EXPECT_END(server);
    end_both(peer, server);
}
END_TEST

static enum sxe_http_verdict
handle_as_user(struct sxe_http_request *request, struct sxe_http_response *response)
{
    request->is_authenticated = true;
    return sxe_http_proxy_handle(request, response);
}

START_TEST(a_user_a_scheme_an_id_and_a_default_port_are_passed_on)
{
    struct sxe_cidr_list list = {0};
    struct sxe_span wrong_text = {NULL, 0};
    char text[16];
    int server;
    int peer;

    ck_assert_int_eq(sxe_cidr_add(&list, "127.0.0.0/8", &wrong_text), 0);
    capture_log();
    serve_proxy_with(plain, 1,
                     (struct sxe_http_config){.handler = handle_as_user,
                                              .stream = true,
                                              .request_id = "X-Request-ID",
                                              .trace = true,
                                              .trusted = &list,
                                              .forwarding = SXE_HTTP_FORWARDING_X_FORWARDED},
                     NULL);
    peer = client();
    say(peer, "GET / HTTP/1.0\r\nAuthorization: Basic YW5uOmI=\r\nX-Forwarded-For: 2001:db8::1\r\n"
              "X-Forwarded-Proto: https\r\nHost: [::1]\r\n\r\n");
    server = take_asked(0);
    EXPECT_PARAM("REMOTE_USER", "ann");
    EXPECT_PARAM("AUTH_TYPE", "Basic");
    EXPECT_PARAM("REMOTE_ADDR", "2001:db8::1");
    EXPECT_PARAM("HTTPS", "on");
    EXPECT_PARAM("SERVER_NAME", "[::1]");
    EXPECT_PARAM("SERVER_PORT", "443");
    EXPECT_PARAM("SERVER_PROTOCOL", "HTTP/1.0");
    ck_assert_uint_gt(strlen(param("HTTP_X_REQUEST_ID")), 8);
    ck_assert_uint_gt(strlen(param("HTTP_TRACEPARENT")), 8);
    close(server);
    close(peer);
    turn(5);
    peer = client();
    say(peer, "GET / HTTP/1.0\r\n\r\n");
    server = take_asked(0);
    EXPECT_PARAM("SERVER_NAME", "127.0.0.1");
    snprintf(text, sizeof(text), "%u", sxe_local_port(site.http->listeners[0]));
    EXPECT_PARAM("SERVER_PORT", text);
    EXPECT_PARAM("REMOTE_USER", "-");
    close(server);
    close(peer);
    turn(5);
    peer = client();
    say(peer, "GET / HTTP/1.1\r\nHost: a.b:\r\nClient-IP: 9.9.9.9\r\nX-Forwarded: a\r\n\r\n");
    server = take_asked(0);
    EXPECT_PARAM("SERVER_NAME", "a.b");
    EXPECT_PARAM("SERVER_PORT", "80");
    EXPECT_PARAM("HTTP_CLIENT_IP", "9.9.9.9"); /* of a trusted peer */
    EXPECT_PARAM("HTTP_X_FORWARDED", "a");
    end_both(peer, server);
}
END_TEST

START_TEST(parameters_that_do_not_fit_are_answered_431)
{
    static char text[3000];
    static struct sxe_http_upstream_config config;
    int peer;

    config = plain;
    config.request_max = _i == 0 ? 39 : 2000;
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "GET / HTTP/1.1\r\nHost: h\r\nX: ", 28);
    memcpy(text + sizeof(text) - 5, "\r\n\r\n", 4);
    serve_fastcgi(config, 1);
    peer = client();
    say(peer, text);
    EXPECT_STATUS(peer, "431 Request Header Fields Too Large", LINES(TEXT, ""),
                  "431 Request Header Fields Too Large\n");
    snprintf(text, sizeof(text),
             "the head to send on has more than %u bytes, or more than 253 "
             "fields: GET / is answered 431",
             config.request_max);
    ck_assert(logged(text));
    close(peer);
    end_proxy();
}
END_TEST

/* ---- Scripts ---- */

static const struct {
    const char *path;
    const char *name; /* NULL: the request is answered 404 */
    const char *info;
} paths[] = {
    {"/a.php", "/a.php", "-"},
    {"/a.php/b/c", "/a.php", "/b/c"},
    {"/a.php/", "/a.php", "/"},
    {"/", "/index.php", "-"},
    {"/d/", "/d/index.php", "-"},
    {"/d.php/", NULL, ""},
    {"/d.php", NULL, ""},
    {"/b.php", NULL, ""},
    {"/picture.jpg", NULL, ""},
    {"/picture.jpg/x.php", NULL, ""},
    {"/%61.php", "/a.php", "-"},
    {"/d", NULL, ""},
    {"/.php", NULL, ""},
    {"/none/", NULL, ""},
    {"/a.PHP", NULL, ""},
    {"/.hid.php", NULL, ""},
    {"/.git/", NULL, ""},
    {"/.git/a.php", NULL, ""},
    {"/.well-known/a.php", "/.well-known/a.php", "-"},
    {"/a.php/.b", "/a.php", "/.b"},
};

START_TEST(a_script_is_a_file_with_the_suffix)
{
    const struct sxe_http_scripts_config config = {.root = directory};
    char text[200];
    int server;
    int peer;

    proxy_site.proxy.scripts = sxe_http_scripts_new(&config);
    ck_assert_ptr_nonnull(proxy_site.proxy.scripts);
    struct sxe_http_scripts *scripts = (void *)(uintptr_t)proxy_site.proxy.scripts;
    serve_fastcgi(plain, 1);
    peer = client();
    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", paths[_i].path);
    say(peer, text);
    if (paths[_i].name == NULL) {
        EXPECT_STATUS(peer, "404 Not Found", LINES(TEXT, ""), "404 Not Found\n");
    } else {
        server = take_asked(0);
        EXPECT_PARAM("SCRIPT_NAME", paths[_i].name);
        EXPECT_PARAM("PATH_INFO", paths[_i].info);
        EXPECT_PARAM("DOCUMENT_ROOT", directory);
        snprintf(text, sizeof(text), "%s%s", directory, paths[_i].name);
        EXPECT_PARAM("SCRIPT_FILENAME", text);
        close(server);
    }
    close(peer);
    end_proxy();
    sxe_http_scripts_delete(scripts);
}
END_TEST

static enum sxe_http_verdict
answer_teapot(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    return sxe_http_reply_status(response, 418);
}

START_TEST(other_requests_go_to_another_handler_or_to_the_fallback)
{
    const struct sxe_http_scripts_config config = {
        .root = "/", .fallback = "/front.php", .is_remote = true};
    struct sxe_http_scripts *scripts = sxe_http_scripts_new(&config);
    int server;
    int peer;

    proxy_site.proxy.scripts = scripts;
    proxy_site.proxy.without_script = answer_teapot;
    serve_fastcgi(plain, 1);
    peer = client();
    say(peer, GET("/style.css"));
    EXPECT_STATUS(peer, "418 ", LINES(TEXT, ""), "418\n");
    say(peer, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_STATUS(peer, "400 Bad Request", LINES(TEXT, ""), "400 Bad Request\n");
    say(peer, GET("/far.php"));
    server = take_asked(0);
    EXPECT_PARAM("SCRIPT_NAME", "/far.php");
    put_out(server, "Content-Length: 0\n\n");
    put_end(server);
    EXPECT_OK(peer, "");
    close(server);
    say(peer, POST("Content-Length: 0\r\n", ""));
    server = take_asked(0);
    EXPECT_PARAM("SCRIPT_NAME", "/index.php");
    EXPECT_PARAM("DOCUMENT_ROOT", "/");
    EXPECT_PARAM("CONTENT_LENGTH", "0");
    put_out(server, "Location: /x\n\n");
    put_end(server);
    EXPECT_REPLY(peer, "HTTP/1.1 302 Found\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "0\r\n\r\n");
    close(server);
    say(peer, "POST /other HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    server = take_asked(0);
    EXPECT_PARAM("SCRIPT_NAME", "/front.php");
    EXPECT_PARAM("SCRIPT_FILENAME", "/front.php");
    end_both(peer, server);
    sxe_http_scripts_delete(scripts);
}
END_TEST

START_TEST(a_route_has_its_scripts_below_its_prefix)
{
    char root[100];
    const struct sxe_http_scripts_config config = {.root = root};

    snprintf(root, sizeof(root), "%s//", directory);
    struct sxe_http_scripts *scripts = sxe_http_scripts_new(&config);
    struct sxe_http_router *router = sxe_http_router_new();
    const struct sxe_http_route_options options = {.user = &proxy_site.proxy,
                                                   .flags = SXE_HTTP_ROUTE_STREAM};
    int server;
    int peer;

    proxy_site.proxy.scripts = scripts;
    capture_log();
    ck_assert_int_eq(
        sxe_http_router_add(router, "*", "/s%20p/{rest...}", sxe_http_proxy_handle, &options), 0);
    serve_proxy_with(plain, 1, (struct sxe_http_config){.router = router}, NULL);
    peer = client();
    say(peer, GET("/s%20p/a.php/b"));
    server = take_asked(0);
    EXPECT_PARAM("SCRIPT_NAME", "/s p/a.php");
    EXPECT_PARAM("DOCUMENT_ROOT", directory);
    EXPECT_PARAM("PATH_INFO", "/b");
    end_both(peer, server);
    sxe_http_scripts_delete(scripts);
    sxe_http_router_delete(router);
}
END_TEST

/* Before the request goes to the second address, another request has used the memory for
 * scripts. */
START_TEST(a_script_is_looked_for_again_for_another_address)
{
    const struct sxe_http_scripts_config config = {.root = directory};
    struct sxe_http_scripts *scripts = sxe_http_scripts_new(&config);
    char path[200];
    int servers[2];
    int peers[2];

    proxy_site.proxy.scripts = scripts;
    serve_fastcgi(plain, 2);
    peers[0] = client();
    peers[1] = client();
    say(peers[0], GET("/a.php"));
    servers[0] = take_asked(0);
    say(peers[1], GET("/"));
    servers[1] = take_asked(1);
    if (_i == 1) {
        snprintf(path, sizeof(path), "%s/a.php", directory);
        ck_assert_int_eq(unlink(path), 0);
    }
    close(servers[0]);
    if (_i == 0) {
        servers[0] = take_asked(1);
        EXPECT_PARAM("SCRIPT_NAME", "/a.php");
        put_out(servers[0], "A: b\n\n");
        put_end(servers[0]);
        close(servers[0]);
    } else {
        EXPECT_STATUS(peers[0], "400 Bad Request", LINES(TEXT, ""), "400 Bad Request\n");
    }
    close(servers[1]);
    close(peers[0]);
    close(peers[1]);
    end_proxy();
    sxe_http_scripts_delete(scripts);
}
END_TEST

static char long_text[1025];

static const struct sxe_http_scripts_config wrong_scripts[] = {
    {.root = NULL},
    {.root = ""},
    {.root = long_text},
    {.root = "/", .suffix = ""},
    {.root = "/", .suffix = "/php"},
    {.root = "/", .index = ""},
    {.root = "/", .index = "index.html"},
    {.root = "/", .index = "a/b.php"},
    {.root = "/", .fallback = ""},
    {.root = "/", .fallback = "index.php"},
    {.root = "/", .fallback = "/index.html"},
};

START_TEST(wrong_scripts_are_refused)
{
    memset(long_text, 'x', sizeof(long_text) - 1);
    for (unsigned i = 0; i < SXE_COUNT(wrong_scripts); i++) {
        errno = 0;
        ck_assert_ptr_null(sxe_http_scripts_new(&wrong_scripts[i]));
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_ptr_null(sxe_http_scripts_new(&(struct sxe_http_scripts_config){.root = "/none"}));
    ck_assert_int_eq(errno, ENOENT);
    fake_os_fail(FAKE_CALLOC, 1, 0, ENOMEM);
    ck_assert_ptr_null(sxe_http_scripts_new(&(struct sxe_http_scripts_config){.root = "/"}));
    fake_os_reset();
    sxe_http_scripts_delete(NULL);
}
END_TEST

START_TEST(without_memory_no_upstream_of_fastcgi_is_made)
{
    static const enum fake_call kinds[] = {FAKE_CALLOC, FAKE_MALLOC, FAKE_POSIX_MEMALIGN,
                                           FAKE_ALIGNED_ALLOC};
    static const struct sxe_http_upstream_address address = {.ip = "127.0.0.1", .port = 1};
    struct sxe_http_upstream_config config = plain;
    struct sxe_http_upstream *upstream = NULL;

    config.addresses = &address;
    config.addresses_number = 1;
    for (unsigned nth = 1; upstream == NULL; nth++) {
        fake_os_reset();
        fake_os_sweep(kinds, SXE_COUNT(kinds), nth, false, ENOMEM);
        upstream = sxe_http_upstream_new(&config);
        ck_assert(upstream != NULL || errno == ENOMEM);
        ck_assert_uint_lt(nth, 100);
    }
    fake_os_reset();
    sxe_http_upstream_delete(upstream);
    config.check_path = "/a";
    ck_assert_ptr_null(sxe_http_upstream_new(&config));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* ---- Bodies ---- */

START_TEST(a_body_in_parts_becomes_records)
{
    struct sxe_http_upstream_config config = keeping;
    int server;
    int peer;

    config.request_max = 100000;
    serve_fastcgi(config, 1);
    peer = client();
    say(peer, POST("Content-Length: 40000\r\n", ""));
    server = accept_proxy(0);
    say_x(peer, 40000);
    read_asked(server);
    ck_assert_uint_eq(asked.input_length, 40000);
    ck_assert(asked.keep);
    EXPECT_PARAM("CONTENT_LENGTH", "40000");
    put_out(server, "Status: 201 Made\nContent-Length: 2\n\nok");
    put_end(server);
    EXPECT_STATUS(peer, "201 Created", LINES("", ""), "ok");
    say(peer, GET("/b"));
    read_asked(server);
    EXPECT_PARAM("REQUEST_URI", "/b");
    put_out(server, "Content-Length: 0\n\n");
    put_end(server);
    EXPECT_OK(peer, "");
    end_both(peer, server);
}
END_TEST

/* Without config.stream the body is whole, and can be sent to another address. */
START_TEST(a_whole_body_goes_to_another_address)
{
    static char text[40000];
    int server;
    int peer;

    capture_log();
    serve_proxy_with(plain, 2, (struct sxe_http_config){.body_max = 50000}, NULL);
    peer = client();
    snprintf(text, sizeof(text), "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n");
    say(peer, text);
    say_x(peer, 20000);
    server = take_asked(0);
    ck_assert_uint_eq(asked.input_length, 20000);
    close(server);
    server = take_asked(1);
    ck_assert_uint_eq(asked.input_length, 20000);
    put_out(server, "Content-Length: 0\n\n");
    put_end(server);
    EXPECT_OK(peer, "");
    end_both(peer, server);
}
END_TEST

START_TEST(a_whole_body_that_finds_no_room_is_a_502)
{
    static const struct sxe_config loop = {.output_max = 5000};
    int server;
    int peer;

    capture_log();
    serve_proxy_with(plain, 1, (struct sxe_http_config){.body_max = 50000}, &loop);
    peer = client();
    say(peer, POST("Content-Length: 20000\r\n", ""));
    say_x(peer, 20000);
    server = accept_proxy(0);
    EXPECT_REPLY(peer, bad_gateway);
    end_both(peer, server);
}
END_TEST

START_TEST(a_body_of_unknown_length_is_answered_411)
{
    int peer;

    serve_fastcgi(plain, 1);
    peer = client();
    say(peer, POST("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n"));
    EXPECT_STATUS(peer, "411 Length Required", LINES(TEXT, ""), "411 Length Required\n");
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(a_path_that_cannot_be_decoded_is_answered_400)
{
    int peer;

    proxy_site.proxy.encoded_slash = true;
    serve_fastcgi(plain, 1);
    peer = client();
    say(peer, GET("/a%2fb"));
    EXPECT_STATUS(peer, "400 Bad Request", LINES(TEXT, ""), "400 Bad Request\n");
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(connect_is_not_sent_on)
{
    struct sxe__http_asked found;
    char room[200];
    const struct sxe_http_request_head head = {.method = {"CONNECT", 7}};

    ck_assert_int_eq(sxe__http_records_write(&head, false, room, sizeof(room), &found), -EINVAL);
}
END_TEST

/* ---- Replies ---- */

#define CHUNKED_OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *out;
    const char *reply;
} replies[] = {
    {"A: b\n\nhello",
     CHUNKED_OK "A: b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
    {"A: b\r\nTransfer-Encoding: chunked\r\n\r\nx",
     CHUNKED_OK "A: b\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
    {"status:\t404 No\n\nx",
     "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
     "0\r\n\r\n"},
    {"Status: 304\n\nx", "HTTP/1.1 304 Not Modified\r\n\r\n"},
    {"Status: 204\n\n", "HTTP/1.1 204 No Content\r\n\r\n"},
    {"Content-Length: 2\n\nabcd", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"},
    {"Location: /\nStatus: 200 OK\n\n",
     CHUNKED_OK "Location: /\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
};

/* The reply is the same if a byte comes at a time. */
START_TEST(the_head_of_a_script_becomes_a_head)
{
    static char bytes[1000];
    size_t length = 0;
    int server;
    int peer;

    for (unsigned i = 0; i < SXE_COUNT(replies); i++) {
        serve_fastcgi(plain, 1);
        peer = client();
        say(peer, GET("/"));
        server = take_asked(0);
        length = strlen(replies[i].out);
        sxe_http_fastcgi_put_head(bytes, SXE_HTTP_FASTCGI_STDOUT, 1, (uint16_t)length, 5);
        memcpy(bytes + 8, replies[i].out, length);
        memset(bytes + 8 + length, 0, 5);
        sxe_http_fastcgi_put_head(bytes + 13 + length, SXE_HTTP_FASTCGI_STDOUT, 1, 0, 0);
        sxe_http_fastcgi_put_end(bytes + 21 + length, 1, 3, SXE_HTTP_FASTCGI_REQUEST_COMPLETE);
        if (_i == 0)
            peer_send(server, bytes, length + 37);
        else
            say_in_pieces(server, bytes, length + 37, (size_t)_i);
        if (_i == 0 || i > 0) /* the pieces of the first body are chunks of their own */
            EXPECT_REPLY(peer, replies[i].reply);
        close(peer);
        close(server);
        end_proxy();
    }
}
END_TEST

START_TEST(head_has_no_body)
{
    int server;
    int peer;

    server = take_first(plain, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", &peer);
    put_out(server, "Content-Length: 7\n\nunasked");
    put_end(server);
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
    end_both(peer, server);
}
END_TEST

/* ---- Wrong replies ---- */

#define RECORD(type, id, length) "\1" type "\0" id "\0" length "\0\0"
#define BAD(text)                         \
    {                                     \
        text, sizeof(text) - 1, NULL, 502 \
    }
#define BAD_OUT(text, says)               \
    {                                     \
        text, sizeof(text) - 1, says, 502 \
    }

static const struct {
    const char *bytes;
    size_t length;
    const char *says;
    unsigned status;
} wrong[] = {
    BAD_OUT("\2\6\0\1\0\0\0\0", "a record whose version is not 1"),
    BAD_OUT(RECORD("\6", "\2", "\1") "x", "a record of another request"),
    BAD_OUT(RECORD("\13", "\0", "\10") "\0\0\0\0\0\0\0\0", "a record that answers no question"),
    BAD_OUT(RECORD("\1", "\1", "\10") "\0\0\0\0\0\0\0\0", "a record that only the other side may"),
    BAD_OUT(RECORD("\14", "\1", "\0"), "a record of a type that does not exist"),
    BAD_OUT(RECORD("\3", "\1", "\7") "\0\0\0\0\0\0\0", "a record whose length does not fit"),
    BAD_OUT(RECORD("\6", "\0", "\1") "x", "a record whose id does not fit its type"),
    BAD_OUT(RECORD("\6", "\1", "\0") RECORD("\6", "\1", "\1") "x",
            "a stream goes on after its end"),
    BAD_OUT(RECORD("\7", "\1", "\0") RECORD("\7", "\1", "\1") "x",
            "a stream goes on after its end"),
    BAD_OUT(RECORD("\3", "\1", "\10") "\0\0\0\0\0\0\0\0", "ended before its head was whole"),
    BAD_OUT(RECORD("\6", "\1", "\1") "\n", "its head has no field"),
    BAD_OUT(RECORD("\6", "\1", "\14") "Status: 20x\n", "its Status is not one from 200 to 599"),
    BAD_OUT(RECORD("\6", "\1", "\14") "Status: 2000", NULL),
    BAD_OUT(RECORD("\6", "\1", "\14") "Status: 101\n", "its Status is not one from 200 to 599"),
    BAD_OUT(RECORD("\6", "\1", "\14") "Status: 600\n", "its Status is not one from 200 to 599"),
    BAD_OUT(RECORD("\6", "\1", "\11") "Status: \n", "its Status is not one from 200 to 599"),
    BAD_OUT(RECORD("\6", "\1", "\30") "Status: 200\nStatus: 200\n",
            "its Status is not one from 200"),
    BAD_OUT(RECORD("\6", "\1", "\5") "a b\n\n", NULL),
    BAD_OUT(RECORD("\6", "\1", "\6") "a: \1\n\n", NULL),
    {RECORD("\3", "\1", "\10") "\0\0\0\0\2\0\0\0", 16, "it is overloaded", 503},
    {RECORD("\3", "\1", "\10") "\0\0\0\0\1\0\0\0", 16, "it is overloaded", 503},
    {RECORD("\3", "\1", "\10") "\0\0\0\0\3\0\0\0", 16, "it refuses the role of a responder", 503},
};

START_TEST(what_breaks_the_protocol_is_a_502)
{
    int server;
    int peer;

    server = take_first(plain, GET("/"), &peer);
    peer_send(server, wrong[_i].bytes, wrong[_i].length);
    turn(3);
    close(server);
    EXPECT_REPLY(peer, wrong[_i].status == 503 ? unavailable : bad_gateway);
    if (wrong[_i].says != NULL)
        ck_assert_msg(logged(wrong[_i].says), "%s", captured.lines[0]);
    close(peer);
    end_proxy();
}
END_TEST

START_TEST(an_overloaded_server_has_another_address_asked_once)
{
    int server;
    int peer;

    serve_fastcgi(plain, 2);
    peer = client();
    say(peer, GET("/"));
    server = take_asked(0);
    send_record(server, SXE_HTTP_FASTCGI_END_REQUEST, 1, "\0\0\0\0\2\0\0\0", 8, 0);
    close(server);
    server = take_asked(1);
    put_out(server, "Content-Length: 0\n\n");
    put_end(server);
    EXPECT_OK(peer, "");
    ck_assert(logged("it is overloaded: GET / is sent to another address"));
    end_both(peer, server);
}
END_TEST

/* A head of each length up to the limit, and one beyond it, with lines of every form. */
START_TEST(a_head_is_as_long_as_the_limit_at_most)
{
    static const char *const texts[] = {"A: b\n\n", "A: b\nC: d\n\n", "A:bb\r\nStatus: 200\n\n"};
    struct sxe__http_records records;
    const char *complaint;
    char room[100];
    bool is_whole;

    for (unsigned i = 0; i < SXE_COUNT(texts); i++) {
        const struct sxe_span text = {texts[i], strlen(texts[i])};
        unsigned size = 0;

        for (;; size++) {
            memset(room, '!', sizeof(room));
            sxe__http_records_begin(&records, false, NULL, 0);
            if (sxe__http_records_head(&records, text, room, size, &is_whole, &complaint) >= 0)
                break;
            ck_assert_str_eq(complaint, "its head is too long");
            for (unsigned j = size; j < sizeof(room); j++)
                ck_assert_int_eq(room[j], '!');
            ck_assert_uint_lt(size, sizeof(room));
        }
        ck_assert(is_whole);
        ck_assert_uint_le(records.used, size);
    }
}
END_TEST

/* A reply has begun, and then the connection is reset. */
static void
expect_cut(int peer)
{
    char got[400];

    for (unsigned i = 0; i < WAIT_TURNS; i++) {
        if (recv(peer, got, sizeof(got), MSG_DONTWAIT) < 0 && errno != EAGAIN)
            break;
        turn(1);
    }
    ck_assert_int_eq(errno, ECONNRESET);
}

/* The reply is cut after each of its bytes: the client sees a whole reply only if it was whole. */
START_TEST(a_reply_that_is_cut_never_looks_whole)
{
    static const char whole[] =
        RECORD("\6", "\1", "\32") "Content-Length: 5\r\n\r\nhello" RECORD("\6", "\1", "\0")
            RECORD("\3", "\1", "\10") "\0\0\0\0\0\0\0\0";
    int server;
    int peer;

    for (size_t length = 0; length < sizeof(whole) - 1; length++) {
        serve_fastcgi(plain, 1);
        peer = client();
        say(peer, GET("/"));
        server = take_asked(0);
        peer_send(server, whole, length);
        turn(3);
        close(server);
        turn(3);
        if (length < 8 + 21) {
            EXPECT_REPLY(peer, bad_gateway);
        } else if (length < 8 + 26) {
            expect_cut(peer);
        } else {
            EXPECT_OK(peer, "hello");
        }
        close(peer);
        end_proxy();
    }
}
END_TEST

START_TEST(a_body_that_is_too_short_resets_the_client)
{
    int server;
    int peer;

    server = take_first(plain, GET("/"), &peer);
    put_out(server, "Content-Length: 5\n\nhell");
    put_end(server);
    expect_cut(peer);
    ck_assert(logged("the script ended before its body was whole: GET / is cut"));
    end_both(peer, server);
}
END_TEST

START_TEST(a_server_that_stalls_is_a_504)
{
    int server;
    int peer;

    server = take_first(plain, GET("/"), &peer);
    put_out(server, "A: b\n");
    wait_ms(61000);
    EXPECT_REPLY(peer, timed_out);
    end_both(peer, server);
}
END_TEST

START_TEST(a_client_that_leaves_ends_the_script)
{
    int server;
    int peer;

    server = take_first(plain, GET("/"), &peer);
    close(peer);
    turn(5);
    PEER_EXPECT_RESET(server);
    close(server);
    end_proxy();
}
END_TEST

/* The connection is not used again if it has bytes after the reply, or padding to come. */
START_TEST(a_kept_connection_with_bytes_left_is_closed)
{
    static const char end[24] = "\1\3\0\1\0\10\4";
    int server;
    int peer;

    server = take_first(keeping, GET("/"), &peer);
    put_out(server, "Content-Length: 0\n\n");
    peer_send(server, end, _i == 0 ? 18 : 20);
    turn(2);
    if (_i == 1)
        peer_send(server, end, 8);
    EXPECT_OK(peer, "");
    say(peer, GET("/b"));
    close(server);
    server = take_asked(0);
    end_both(peer, server);
}
END_TEST

/* A client that does not read makes the script wait. */
START_TEST(a_slow_client_pauses_the_script)
{
    static char part[60000];
    size_t sent = 0;
    size_t read = 0;
    ssize_t n;
    int server;
    int peer;

    server = take_first(plain, GET("/"), &peer);
    put_out(server, "A: b\n\n");
    memset(part, 'x', sizeof(part));
    while (sent < 20000000) {
        char head[8];

        sxe_http_fastcgi_put_head(head, SXE_HTTP_FASTCGI_STDOUT, 1, sizeof(part), 0);
        if (sent % (sizeof(part) + 8) == 0 && send(server, head, 8, MSG_DONTWAIT) == 8)
            sent += 8;
        if (sent % (sizeof(part) + 8) == 0)
            break;
        n = send(server, part, sizeof(part) - (sent % (sizeof(part) + 8) - 8), MSG_DONTWAIT);
        if (n <= 0)
            break;
        sent += (size_t)n;
        turn(3);
    }
    ck_assert_uint_lt(sent, 20000000);
    ck_assert_uint_eq(
        sxe_pool_get_count(proxy_site.upstream->addresses[0].client->links, SXE__HTTP_LINK_PAUSED),
        1);
    for (unsigned i = 0; i < 200; i++) {
        n = recv(peer, part, sizeof(part), MSG_DONTWAIT);
        read += n > 0 ? (size_t)n : 0;
        turn(1);
    }
    ck_assert_uint_gt(read, 1000000);
    end_both(peer, server);
}
END_TEST

/* ---- STDERR ---- */

static void
put_error(int server, const char *text)
{
    send_record(server, SXE_HTTP_FASTCGI_STDERR, asked.id, text, strlen(text), 0);
}

START_TEST(what_a_script_writes_to_stderr_is_logged)
{
    char text[800];
    int server;
    int peer;

    server = take_first(plain, GET("/a"), &peer);
    put_error(server, "one\n\nt");
    ck_assert(logged(": STDERR of /a: one\n"));
    put_error(server, "w");
    put_error(server, "o\33[1m\n");
    ck_assert(logged(": STDERR of /a: two [1m\n"));
    memset(text, 'y', sizeof(text));
    text[600] = '\0';
    put_error(server, text);
    put_error(server, "z\n");
    text[512] = '\0';
    ck_assert_uint_eq(captured.number, 3);
    ck_assert(logged(text));
    ck_assert(!logged("z"));
    memset(text, '\n', 200);
    for (unsigned i = 0; i < 200; i += 2)
        text[i] = 'x';
    send_record(server, SXE_HTTP_FASTCGI_STDERR, 1, text, 200, 0);
    ck_assert(logged(": STDERR of /a: further lines are not logged\n"));
    ck_assert_uint_eq(captured.number, 32);
    send_record(server, SXE_HTTP_FASTCGI_STDERR, 1, "", 0, 0);
    put_out(server, "Content-Length: 0\n\n");
    put_end(server);
    EXPECT_OK(peer, "");
    end_both(peer, server);
}
END_TEST

/* The beginning of a line is logged when another script writes, or when the script ends. */
START_TEST(a_line_of_stderr_may_have_no_end)
{
    int servers[2];
    int peers[2];

    serve_fastcgi(plain, 1);
    for (unsigned i = 0; i < 2; i++) {
        peers[i] = client();
        say(peers[i], i == 0 ? GET("/a") : GET("/b"));
        servers[i] = take_asked(0);
    }
    put_error(servers[0], "first");
    ck_assert_uint_eq(captured.number, 0);
    put_error(servers[1], "second");
    ck_assert(logged(": STDERR of /a: first\n"));
    ck_assert_uint_eq(captured.number, 1);
    put_out(servers[1], "Content-Length: 0\n\n");
    put_end(servers[1]);
    EXPECT_OK(peers[1], "");
    ck_assert(logged(": STDERR of /b: second\n"));
    put_error(servers[0], "third");
    close(peers[0]);
    turn(5);
    ck_assert(logged(": STDERR of /a: third\n"));
    close(peers[1]);
    close(servers[0]);
    close(servers[1]);
    end_proxy();
}
END_TEST

static Suite *
fastcgi_suite(void)
{
    Suite *suite = suite_create("http proxy fastcgi");
    TCase *params = tcase_create("parameters");
    TCase *scripts = tcase_create("scripts");
    TCase *bodies = tcase_create("bodies");
    TCase *bad = tcase_create("wrong");

    tcase_add_test(params, the_parameters_are_those_of_cgi);
    tcase_add_test(params, a_user_a_scheme_an_id_and_a_default_port_are_passed_on);
    tcase_add_loop_test(params, parameters_that_do_not_fit_are_answered_431, 0, 2);
    tcase_add_unchecked_fixture(scripts, set_up, tear_down);
    tcase_add_loop_test(scripts, a_script_is_a_file_with_the_suffix, 0, SXE_COUNT(paths));
    tcase_add_test(scripts, other_requests_go_to_another_handler_or_to_the_fallback);
    tcase_add_test(scripts, a_route_has_its_scripts_below_its_prefix);
    tcase_add_loop_test(scripts, a_script_is_looked_for_again_for_another_address, 0, 2);
    tcase_add_test(scripts, wrong_scripts_are_refused);
    tcase_add_test(scripts, without_memory_no_upstream_of_fastcgi_is_made);
    tcase_add_test(bodies, a_body_in_parts_becomes_records);
    tcase_add_test(bodies, a_whole_body_goes_to_another_address);
    tcase_add_test(bodies, a_whole_body_that_finds_no_room_is_a_502);
    tcase_add_test(bodies, a_body_of_unknown_length_is_answered_411);
    tcase_add_test(bodies, a_path_that_cannot_be_decoded_is_answered_400);
    tcase_add_test(bodies, connect_is_not_sent_on);
    tcase_add_loop_test(bodies, the_head_of_a_script_becomes_a_head, 0, 3);
    tcase_add_test(bodies, head_has_no_body);
    tcase_add_test(bodies, a_slow_client_pauses_the_script);
    tcase_add_loop_test(bad, what_breaks_the_protocol_is_a_502, 0, SXE_COUNT(wrong));
    tcase_add_test(bad, an_overloaded_server_has_another_address_asked_once);
    tcase_add_test(bad, a_head_is_as_long_as_the_limit_at_most);
    tcase_add_test(bad, a_reply_that_is_cut_never_looks_whole);
    tcase_add_test(bad, a_body_that_is_too_short_resets_the_client);
    tcase_add_test(bad, a_server_that_stalls_is_a_504);
    tcase_add_test(bad, a_client_that_leaves_ends_the_script);
    tcase_add_loop_test(bad, a_kept_connection_with_bytes_left_is_closed, 0, 2);
    tcase_add_test(bad, what_a_script_writes_to_stderr_is_logged);
    tcase_add_test(bad, a_line_of_stderr_may_have_no_end);
    suite_add_tcase(suite, params);
    suite_add_tcase(suite, scripts);
    suite_add_tcase(suite, bodies);
    suite_add_tcase(suite, bad);
    return suite;
}

int
main(void)
{
    return sxe_test_main(fastcgi_suite());
}
