/* SPDX-License-Identifier: MIT
 *
 * Parameters of FastCGI become the head of an HTTP request, or are refused.
 */
#include "fastcgi-site.h"

#include <arpa/inet.h>
#include <stdlib.h>

static const struct {
    const char *params;
    const char *head;
} good[] = {
    {"REQUEST_METHOD=GET|REQUEST_URI=/", "GET / HTTP/1.1\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/a?b=c|SERVER_PROTOCOL=HTTP/1.0",
     "GET /a?b=c HTTP/1.0\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|SERVER_PROTOCOL=HTTP/2.0|HTTP_HOST=h",
     "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
    {"REQUEST_METHOD=OPTIONS|REQUEST_URI=*|SERVER_PROTOCOL=http/3", "OPTIONS * HTTP/1.1\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|SERVER_NAME=a.example|SERVER_PORT=8080",
     "GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|SERVER_NAME=a.example|SERVER_PORT=80",
     "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|SERVER_NAME=a.example|SERVER_PORT=443|HTTPS=on",
     "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|SERVER_NAME=a.example",
     "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"},
    {"HTTP_X_FORWARDED_FOR=1|HTTP_ACCEPT=*/*|HTTP_X_2A=b|REQUEST_METHOD=GET|REQUEST_URI=/",
     "GET / HTTP/1.1\r\nX-Forwarded-For: 1\r\nAccept: */*\r\nX-2a: b\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|HTTP_X=|HTTP_Y=a\tb",
     "GET / HTTP/1.1\r\nX: \r\nY: a\tb\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|HTTP_COOKIE=a|HTTP_COOKIE=b",
     "GET / HTTP/1.1\r\nCookie: a\r\nCookie: b\r\n\r\n"},
    {"REQUEST_METHOD=POST|REQUEST_URI=/|CONTENT_LENGTH=5|CONTENT_TYPE=a/b|HTTP_CONTENT_LENGTH=5|"
     "HTTP_CONTENT_TYPE=a/b",
     "POST / HTTP/1.1\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|CONTENT_LENGTH=|CONTENT_TYPE=|REMOTE_ADDR=|REMOTE_PORT=",
     "GET / HTTP/1.1\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|HTTP_CONNECTION=close|HTTP_KEEP_ALIVE=5|HTTP_TE=x|"
     "HTTP_TRAILER=x|HTTP_UPGRADE=x|HTTP_PROXY_CONNECTION=x|HTTP_EXPECT=100-continue|"
     "HTTP_TRANSFER_ENCODING=chunked",
     "GET / HTTP/1.1\r\n\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/|GATEWAY_INTERFACE=CGI/1.1|SCRIPT_NAME=/x y|HTTP_=z|http_x=y",
     "GET / HTTP/1.1\r\n\r\n"},
};

/* Parameters and their pairs in a block of their exact size. */
static size_t
pairs_of(char **pairs, const char *text)
{
    static char room[70000];
    size_t length = put_pairs(room, sizeof(room), text);

    *pairs = malloc(length + 1);
    memcpy(*pairs, room, length);
    return length;
}

START_TEST(parameters_become_a_head)
{
    struct sxe__fastcgi_params params;
    char head[1000];
    char *pairs;
    size_t length = pairs_of(&pairs, good[_i].params);

    ck_assert_ptr_null(sxe__fastcgi_params_read(&params, pairs, length));
    *sxe__fastcgi_params_write(&params, pairs, length, false, head) = '\0';
    ck_assert_str_eq(head, good[_i].head);
    ck_assert_uint_le(strlen(head), length + SXE__FASTCGI_HEAD_ROOM);
    free(pairs);
}
END_TEST

#define REQUEST "REQUEST_METHOD=GET|REQUEST_URI=/|"

static const struct {
    const char *params;
    const char *wrong;
    const char *line; /* of the head that the HTTP server refuses and logs */
} bad[] = {
    {"", "REQUEST_METHOD is not a method", "- - HTTP/1.1\r\n"},
    {"REQUEST_URI=/", "REQUEST_METHOD is not a method", "- - HTTP/1.1\r\n"},
    {"REQUEST_METHOD=G T|REQUEST_URI=/", "REQUEST_METHOD is not a method", "- - HTTP/1.1\r\n"},
    {"REQUEST_METHOD=GET", "REQUEST_URI is not a target", "- - HTTP/1.1\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=", "REQUEST_URI is not a target", "- - HTTP/1.1\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/a b", "REQUEST_URI is not a target", "- - HTTP/1.1\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/a\tb", "REQUEST_URI is not a target", "- - HTTP/1.1\r\n"},
    {"REQUEST_METHOD=GET|REQUEST_URI=/\r\nX: y", "a parameter has a control byte",
     "- - HTTP/1.1\r\n"},
    {REQUEST "SERVER_PROTOCOL=INCLUDED", "SERVER_PROTOCOL is not a version of HTTP",
     "GET / HTTP/1.1\r\n"},
    {REQUEST "SERVER_PROTOCOL=HTTP", "SERVER_PROTOCOL is not a version of HTTP",
     "GET / HTTP/1.1\r\n"},
    {REQUEST "REQUEST_METHOD=GET", "a parameter comes twice", "GET / HTTP/1.1\r\n"},
    {REQUEST "CONTENT_LENGTH=1|CONTENT_LENGTH=1", "a parameter comes twice", "GET / HTTP/1.1\r\n"},
    {REQUEST "HTTP_X=a\r\nb", "a field has a control byte", "GET / HTTP/1.1\r\n"},
    {REQUEST "HTTP_X=a\nb", "a field has a control byte", "GET / HTTP/1.1\r\n"},
    {REQUEST "HTTP_X=a\x7f", "a field has a control byte", "GET / HTTP/1.1\r\n"},
    {REQUEST "HTTP_X-Y=a", "the name of a field has other bytes than A-Z 0-9 _",
     "GET / HTTP/1.1\r\n"},
    {REQUEST "HTTP_X\r\n=a", "the name of a field has other bytes than A-Z 0-9 _",
     "GET / HTTP/1.1\r\n"},
    {REQUEST "HTTP_x=a", "the name of a field has other bytes than A-Z 0-9 _",
     "GET / HTTP/1.1\r\n"},
    {REQUEST "CONTENT_TYPE=a\r\nb", "a parameter has a control byte", "GET / HTTP/1.1\r\n"},
    {REQUEST "SERVER_NAME=a\nb", "a parameter has a control byte", "GET / HTTP/1.1\r\n"},
    {REQUEST "CONTENT_LENGTH=-1", "CONTENT_LENGTH is not a number", "GET / HTTP/1.1\r\n"},
    {REQUEST "CONTENT_LENGTH=1a", "CONTENT_LENGTH is not a number", "GET / HTTP/1.1\r\n"},
    {REQUEST "CONTENT_LENGTH=1234567890123456789", "CONTENT_LENGTH is too large",
     "GET / HTTP/1.1\r\n"},
    {REQUEST "CONTENT_LENGTH=1|HTTP_CONTENT_LENGTH=2",
     "HTTP_CONTENT_LENGTH and CONTENT_LENGTH differ", "GET / HTTP/1.1\r\n"},
    {REQUEST "HTTP_CONTENT_LENGTH=2", "HTTP_CONTENT_LENGTH and CONTENT_LENGTH differ",
     "GET / HTTP/1.1\r\n"},
    {REQUEST "CONTENT_TYPE=a|HTTP_CONTENT_TYPE=b", "HTTP_CONTENT_TYPE and CONTENT_TYPE differ",
     "GET / HTTP/1.1\r\n"},
    {REQUEST "REMOTE_ADDR=localhost", "REMOTE_ADDR is not an IP address", "GET / HTTP/1.1\r\n"},
    {REQUEST "REMOTE_ADDR=1111:1111:1111:1111:1111:1111:111.111.111.1111111111",
     "REMOTE_ADDR is not an IP address", "GET / HTTP/1.1\r\n"},
    {REQUEST "REMOTE_PORT=65536", "REMOTE_PORT is not a port", "GET / HTTP/1.1\r\n"},
    {REQUEST "REMOTE_PORT=x", "REMOTE_PORT is not a port", "GET / HTTP/1.1\r\n"},
    {"HTTP_X=\r|REQUEST_METHOD=PUT|REQUEST_URI=/z|SERVER_PROTOCOL=HTTP/1.0",
     "a field has a control byte", "PUT /z HTTP/1.0\r\n"},
};

START_TEST(parameters_that_are_wrong_are_refused)
{
    struct sxe__fastcgi_params params;
    char head[1000];
    char *pairs;
    size_t length = pairs_of(&pairs, bad[_i].params);

    ck_assert_str_eq(sxe__fastcgi_params_read(&params, pairs, length), bad[_i].wrong);
    *sxe__fastcgi_params_write_wrong(&params, head) = '\0';
    ck_assert_int_eq(strncmp(head, bad[_i].line, strlen(bad[_i].line)), 0);
    ck_assert_str_eq(head + strlen(bad[_i].line), ":\r\n\r\n");
    free(pairs);
}
END_TEST

/* A NUL, which the texts above cannot have; and lengths that lie. */
START_TEST(streams_that_are_wrong_are_refused)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *wrong;
    } streams[] = {
#define STREAM(bytes, wrong) {bytes, sizeof(bytes) - 1, wrong}
        STREAM("\6\3HTTP_Xa\0b", "a field has a control byte"),
        STREAM("\6\12HTTP_Xab", "a parameter is longer than its stream"),
        STREAM("\6\377\377\377\377HTTP_Xab", "a parameter is longer than its stream"),
        STREAM("\6", "a parameter is longer than its stream"),
        STREAM("\0\0", "a parameter has no name"),
    };

    for (size_t i = 0; i < SXE_COUNT(streams); i++) {
        struct sxe__fastcgi_params params;

        ck_assert_str_eq(sxe__fastcgi_params_read(&params, streams[i].bytes, streams[i].length),
                         streams[i].wrong);
    }
}
END_TEST

START_TEST(peers_and_schemes_are_read)
{
    static const struct {
        const char *params;
        const char *ip;
        unsigned port;
        bool is_https;
    } cases[] = {
        {REQUEST "REMOTE_ADDR=192.0.2.7|REMOTE_PORT=65535", "192.0.2.7", 65535, false},
        {REQUEST "REMOTE_ADDR=2001:db8::1|REMOTE_PORT=7|HTTPS=ON", "2001:db8::1", 7, true},
        {REQUEST "REMOTE_ADDR=unix:|HTTPS=off", "", 0, false},
        {REQUEST "HTTPS=1", "", 0, true},
        {REQUEST "REQUEST_SCHEME=https", "", 0, true},
        {REQUEST "REQUEST_SCHEME=http|HTTPS=", "", 0, false},
    };

    for (size_t i = 0; i < SXE_COUNT(cases); i++) {
        struct sxe__fastcgi_params params;
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)&params.peer;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&params.peer;
        char ip[INET6_ADDRSTRLEN] = "";
        char *pairs;
        size_t length = pairs_of(&pairs, cases[i].params);

        ck_assert_ptr_null(sxe__fastcgi_params_read(&params, pairs, length));
        ck_assert(params.is_https == cases[i].is_https);
        if (params.peer.ss_family != 0) {
            inet_ntop(params.peer.ss_family,
                      params.peer.ss_family == AF_INET ? (const void *)&in4->sin_addr
                                                       : (const void *)&in6->sin6_addr,
                      ip, sizeof(ip));
            ck_assert_uint_eq(ntohs(in4->sin_port), cases[i].port);
        }
        ck_assert_str_eq(ip, cases[i].ip);
        free(pairs);
    }
}
END_TEST

START_TEST(a_body_without_a_length_is_chunked)
{
    struct sxe__fastcgi_params params;
    char head[1000];
    char *pairs;
    size_t length = pairs_of(&pairs, REQUEST "CONTENT_TYPE=a/b");

    ck_assert_ptr_null(sxe__fastcgi_params_read(&params, pairs, length));
    *sxe__fastcgi_params_write(&params, pairs, length, true, head) = '\0';
    ck_assert_str_eq(head,
                     "GET / HTTP/1.1\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n");
    free(pairs);
}
END_TEST

/* ---- Management records ---- */

START_TEST(values_are_answered)
{
    static char pairs[1000];
    static char content[65536];
    size_t length = put_pairs(pairs, sizeof(pairs),
                              "FCGI_MAX_CONNS=|FCGI_MPXS_CONNS=|OTHER=|"
                              "FCGI_MAX_REQS=");
    static struct records out;
    uint16_t id;
    int peer;

    serve_fastcgi((struct sxe_http_config){.handler = echo}, 12);
    peer = fastcgi_client();
    out.length = 0;
    add_record(&out, SXE_HTTP_FASTCGI_GET_VALUES, 0, pairs, length);
    send_records(peer, &out);
    ck_assert_uint_eq(next_record(peer, &id, content, &length), SXE_HTTP_FASTCGI_GET_VALUES_RESULT);
    ck_assert_uint_eq(
        put_pairs(pairs, sizeof(pairs), "FCGI_MAX_CONNS=12|FCGI_MPXS_CONNS=1|FCGI_MAX_REQS=12"),
        length);
    ck_assert_mem_eq(content, pairs, length);

    /* more pairs than the answer has room for */
    out.length = 0;
    for (unsigned i = 0; i < 50; i++)
        memcpy(pairs + i * 15, "\15\0FCGI_MAX_REQS", 15);
    add_record(&out, SXE_HTTP_FASTCGI_GET_VALUES, 0, pairs, 750);
    send_records(peer, &out);
    ck_assert_uint_eq(next_record(peer, &id, content, &length), SXE_HTTP_FASTCGI_GET_VALUES_RESULT);
    ck_assert_uint_le(length, 256);
    close(peer);
    end_site();
}
END_TEST

START_TEST(unknown_types_are_answered_once)
{
    static char content[65536];
    static struct records out;
    size_t length;
    uint16_t id;
    int peer;

    serve_fastcgi((struct sxe_http_config){.handler = echo}, 0);
    peer = fastcgi_client();
    out.length = 0;
    add_record(&out, 99, 0, "abc", 3);
    for (size_t i = 0; i < out.length; i++) {
        peer_send(peer, out.bytes + i, 1);
        turn(2);
    }
    ck_assert_uint_eq(next_record(peer, &id, content, &length), SXE_HTTP_FASTCGI_UNKNOWN_TYPE);
    ck_assert_int_eq(content[0], 99);
    send_record(peer, SXE_HTTP_FASTCGI_DATA, 1, "of no request");
    begin(peer, 1, GET_PARAMS("/a"));
    send_record(peer, SXE_HTTP_FASTCGI_DATA, 1, "ignored");
    send_record(peer, SXE_HTTP_FASTCGI_STDIN, 1, "");
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /a"));
    close(peer);
    end_site();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-fastcgi-params");
    TCase *cases = tcase_create("params");

    tcase_add_loop_test(cases, parameters_become_a_head, 0, SXE_COUNT(good));
    tcase_add_loop_test(cases, parameters_that_are_wrong_are_refused, 0, SXE_COUNT(bad));
    tcase_add_test(cases, streams_that_are_wrong_are_refused);
    tcase_add_test(cases, peers_and_schemes_are_read);
    tcase_add_test(cases, a_body_without_a_length_is_chunked);
    tcase_add_test(cases, values_are_answered);
    tcase_add_test(cases, unknown_types_are_answered_once);
    suite_add_tcase(suite, cases);
    return sxe_test_main(suite);
}
