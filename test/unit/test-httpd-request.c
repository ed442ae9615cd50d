/* SPDX-License-Identifier: MIT
 *
 * The request parser against RFC 9112: every message at the edge of a page, at every split point.
 */
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sxe-util.h"
#include "test-main.h"

#define AREA (64u * 1024)

/* Bytes that end where memory ends. */
static char *
at_the_edge(const char *bytes, size_t length)
{
    static char *area;

    if (area == NULL) {
        area = mmap(NULL, AREA + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(area, MAP_FAILED);
        ck_assert_int_eq(mprotect(area + AREA, 4096, PROT_NONE), 0);
    }
    ck_assert_uint_le(length, AREA);
    memcpy(area + AREA - length, bytes, length);
    return area + AREA - length;
}

static int
parse(const char *bytes, size_t length, struct httpd_request *request)
{
    return httpd_request_parse(at_the_edge(bytes, length), length, request);
}

/* ---- Good ones ---- */

#define HOST           "Host: a\r\n"
#define BIT(condition) ((condition) ? 1u : 0u)

enum { CLOSES = 1, IS_HEAD = 2, IS_1_0 = 4 };

static const struct good {
    const char *head;
    unsigned is; /* CLOSES ... */
    uint32_t body;
} good[] = {
    {"GET / HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"GET / HTTP/1.0\r\n\r\n", CLOSES | IS_1_0, 0},
    {"GET / HTTP/1.0\r\n" HOST "\r\n", CLOSES | IS_1_0, 0},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", IS_1_0, 0},
    {"GET / HTTP/1.0\r\nConnection: KEEP-Alive\r\n\r\n", IS_1_0, 0},
    {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", CLOSES | IS_1_0, 0},
    {"GET / HTTP/1.2\r\n" HOST "\r\n", 0, 0},
    {"GET / HTTP/1.9\r\n" HOST "\r\n", 0, 0},
    {"HEAD / HTTP/1.1\r\n" HOST "\r\n", IS_HEAD, 0},
    {"HEADS / HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"head / HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"CONNECT a.b:443 HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"GET http://a/b?c=d#e HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"GET /~!@#$%^&*()_+{}|:\"<>?[];',./` HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\n" HOST "\r\n", 0, 0},
    {"GET / HTTP/1.1\r\nhOsT: a\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\nHost:a\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\nHost: \t a \t \r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\nHost: a.b-c_d~e:80\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", CLOSES, 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection: Close\r\n\r\n", CLOSES, 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection: x,close\r\n\r\n", CLOSES, 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection: , ,close ,\r\n\r\n", CLOSES, 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection: x\r\nConnection: close\r\n\r\n", CLOSES, 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection:\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "Proxy-Connection: close\r\n\r\n", 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", 0, 5},
    {"POST / HTTP/1.1\r\n" HOST "CONTENT-LENGTH:5\r\n\r\n", 0, 5},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0000000005\r\n\r\n", 0, 5},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 0, 5},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1048575\r\n\r\n", 0, 1048575},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1048576\r\n\r\n", 0, 1048576},
    {"POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n", CLOSES | IS_1_0, 5},
    {"GET / HTTP/1.1\r\n" HOST "X-Empty:\r\nX-Blank: \t \r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "X: a\tb  c\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "X: \x80\xff\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "X: a:b::\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "!#$%&'*+-.^_`|~09azAZ: x\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "Transfer-Encodin: chunked\r\n\r\n", 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "abcd: 1\r\nabcdefghij: 2\r\nabcdefghijklmn: 3\r\n"
     "abcdefghijklmnopq: 4\r\n\r\n",
     0, 0},
};

static void
check_good(const struct good *expected, const struct httpd_request *request)
{
    unsigned is = BIT(!request->keep_alive) * CLOSES + BIT(request->is_head) * IS_HEAD +
                  BIT(request->is_1_0) * IS_1_0;

    ck_assert_uint_eq(is, expected->is);
    ck_assert_uint_eq(request->body, expected->body);
    ck_assert_uint_eq(request->status, 0);
}

START_TEST(a_good_request_is_complete_with_its_last_byte)
{
    const struct good *expected = &good[_i];
    int length = (int)strlen(expected->head);
    struct httpd_request request;

    for (int i = 0; i < length; i++)
        ck_assert_int_eq(parse(expected->head, (size_t)i, &request), 0);
    ck_assert_int_eq(parse(expected->head, (size_t)length, &request), length);
    check_good(expected, &request);
}
END_TEST

START_TEST(what_follows_a_request_is_not_its)
{
    const struct good *expected = &good[_i];
    int length = (int)strlen(expected->head);
    struct httpd_request request;
    char text[1024];
    static const char *const next[] = {"GET", "\r\n", "\n", "hello", " folded"};

    for (unsigned i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
        int both = snprintf(text, sizeof(text), "%s%s", expected->head, next[i]);
        ck_assert_int_eq(parse(text, (size_t)both, &request), length);
        check_good(expected, &request);
    }
}
END_TEST

/* ---- Bad ones; NUL is written as \1 ---- */

static const struct bad {
    const char *head;
    unsigned status;
} bad[] = {
    /* The request line. */
    {" GET / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /  HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1 \r\n" HOST "\r\n", 400},
    {"GET\t/ HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\tHTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\r\n" HOST "\r\n", 400},
    {"GET\r\n" HOST "\r\n", 400},
    {"GET / \r\n" HOST "\r\n", 400},
    {"G(T / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET\x80 / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"G\x01T / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\x01 HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\x7f HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\x80 HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\xff HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1\r" HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\r\n" HOST "\r\n", 400},
    {"GET / http/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/11\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.10\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1,1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/a.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.a\r\n" HOST "\r\n", 400},
    {"GET / HTTP/-1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP\r\n" HOST "\r\n", 400},
    {"GET / XHTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/0.9\r\n" HOST "\r\n", 505},
    {"GET / HTTP/2.0\r\n" HOST "\r\n", 505},
    {"GET / HTTP/3.1\r\n" HOST "\r\n", 505},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"\nGET / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"\rGET / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"\x16\x03\x01\x02", 400},
    /* Header fields. */
    {"GET / HTTP/1.1\r\n" HOST "X : 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X\t: 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST ": 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X Y: 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X(: 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X\x80: 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X\x01: 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: 1\r\n folded\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: 1\r\n\tfolded\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n " HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: 1\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: 1\nY: 2\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: 1\rY: 2\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "\rX", 400},
    {"GET / HTTP/1.1\r\n" HOST "\n\r\n", 400},
    /* Host. */
    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nX-Host: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Host: b\r\n\r\n", 400},
    {"GET / HTTP/1.0\r\n" HOST "host: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a?b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a#b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: \x80\r\n\r\n", 400},
    /* The body's length, and who might see another one. */
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 6\r\nContent-Length: 5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\nContent-Length: 5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5 5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5a\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5.0\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: \r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: \"5\"\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551621\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999999\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n", 413},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 4294967296\r\n\r\n", 413},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 4294967301\r\n\r\n", 413},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 184467440737095516\r\n\r\n", 413},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" HOST "transfer-ENCODING: gzip, chunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding\r\n: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: x\r\n\r\n", 400},
    {"POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Connection: close;x\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "Connection: \x80\r\n\r\n", 400},
};

/* Complete or not, a bad message is never a request; and once it is refused, it stays so. */
START_TEST(a_bad_request_is_refused_and_stays_refused)
{
    char text[1024] = "";
    size_t length = strlen(bad[_i].head);
    struct httpd_request request;
    int result = 0;

    memcpy(text, bad[_i].head, length);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\x01')
            text[i] = '\0';
    }
    for (size_t i = 0; i <= length; i++) {
        int before = result;
        result = parse(text, i, &request);
        ck_assert_int_le(result, 0);
        ck_assert_int_le(result, before);
        if (result < 0)
            ck_assert_uint_eq(request.status, bad[_i].status);
    }
    ck_assert_int_eq(result, -1);
}
END_TEST

/* ---- Limits ---- */

/* A request whose line and head have these lengths. */
static size_t
make(char *text, size_t line, size_t head)
{
    size_t used = (size_t)snprintf(text, 16, "GET /");

    while (used < line - 11)
        text[used++] = 'a';
    used += (size_t)snprintf(text + used, 32, " HTTP/1.1\r\nHost: a\r\nX: ");
    while (used < head - 4)
        text[used++] = 'b';
    memcpy(text + used, "\r\n\r\n", 4);
    return used + 4;
}

static const struct limit {
    size_t line;
    size_t head;
    unsigned status; /* 0: good */
} limits[] = {
    {HTTPD_LINE_MAX - 1, 10000, 0},
    {HTTPD_LINE_MAX, 10000, 0},
    {HTTPD_LINE_MAX + 1, 10000, 414},
    {HTTPD_LINE_MAX + 2, 10000, 414},
    {20000, 30000, 414},
    {100, HTTPD_HEAD_MAX - 1, 0},
    {100, HTTPD_HEAD_MAX, 0},
    {100, HTTPD_HEAD_MAX + 1, 431},
    {100, HTTPD_HEAD_MAX + 2, 431},
    {HTTPD_LINE_MAX, HTTPD_HEAD_MAX, 0},
    {100, 30000, 431},
};

START_TEST(limits_are_exact_at_every_split)
{
    static char text[AREA];
    const struct limit *limit = &limits[_i];
    size_t length = make(text, limit->line, limit->head);
    struct httpd_request request;
    int result = 0;

    ck_assert_uint_eq(length, limit->head);
    for (size_t i = 0; i < length && result == 0; i += i < 8100 ? 60 : 1)
        result = parse(text, i, &request);
    if (limit->status == 0)
        ck_assert_int_eq(result, 0);
    if (result == 0)
        result = parse(text, length, &request);
    ck_assert_int_eq(result, limit->status == 0 ? (int)length : -1);
    ck_assert_uint_eq(request.status, limit->status);
    ck_assert_int_eq(parse(text, length, &request), result);
    ck_assert_uint_eq(request.status, limit->status);
}
END_TEST

/* Nothing longer is ever waited for. */
START_TEST(a_head_without_an_end_is_refused_at_the_limit)
{
    static char text[AREA];
    struct httpd_request request;

    memset(text, 'a', sizeof(text));
    ck_assert_int_eq(parse(text, HTTPD_LINE_MAX - 1, &request), 0);
    ck_assert_int_eq(parse(text, HTTPD_LINE_MAX, &request), -1);
    ck_assert_uint_eq(request.status, 414);
    memcpy(text, "GET / HTTP/1.1\r\n", 16);
    ck_assert_int_eq(parse(text, HTTPD_HEAD_MAX - 1, &request), 0);
    ck_assert_int_eq(parse(text, HTTPD_HEAD_MAX, &request), -1);
    ck_assert_uint_eq(request.status, 431);
}
END_TEST

/* ---- Every byte everywhere ---- */

static bool
is_token(int c)
{
    return c != 0 && strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                            c) != NULL;
}

/* Whether the request with c between the two is good. */
static bool
takes(const char *before, int c, const char *after)
{
    struct httpd_request request;
    char text[128];
    int length = snprintf(text, sizeof(text), "%s%c%s", before, c, after);

    return parse(text, (size_t)length, &request) > 0;
}

START_TEST(each_byte_is_what_rfc_9110_says)
{
    for (int c = 16 * _i; c < 16 * _i + 16; c++) {
        bool is_visible = c > ' ' && c < 0x7f;

        ck_assert_int_eq(takes("G", c, "T / HTTP/1.1\r\nHost: a\r\n\r\n"), is_token(c));
        ck_assert_int_eq(takes("GET /", c, " HTTP/1.1\r\nHost: a\r\n\r\n"), is_visible);
        ck_assert_int_eq(takes("GET / HTTP/1.1\r\nHost: a\r\nX", c, ": a\r\n\r\n"),
                         is_token(c) || c == ':');
        ck_assert_int_eq(takes("GET / HTTP/1.1\r\nHost: a\r\nX: a", c, "b\r\n\r\n"),
                         c == '\t' || c == ' ' || is_visible || c >= 0x80);
        ck_assert_int_eq(takes("GET / HTTP/1.1\r\nHost: a", c, "b\r\n\r\n"),
                         is_visible && strchr("\"#/<>?@\\^`{|}", c) == NULL);
    }
}
END_TEST

static Suite *
request_suite(void)
{
    Suite *suite = suite_create("httpd request");
    TCase *messages = tcase_create("messages");
    int goods = (int)(sizeof(good) / sizeof(good[0]));

    tcase_add_loop_test(messages, a_good_request_is_complete_with_its_last_byte, 0, goods);
    tcase_add_loop_test(messages, what_follows_a_request_is_not_its, 0, goods);
    tcase_add_loop_test(messages, a_bad_request_is_refused_and_stays_refused, 0,
                        (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_loop_test(messages, limits_are_exact_at_every_split, 0,
                        (int)(sizeof(limits) / sizeof(limits[0])));
    tcase_add_test(messages, a_head_without_an_end_is_refused_at_the_limit);
    tcase_add_loop_test(messages, each_byte_is_what_rfc_9110_says, 0, 16);
    suite_add_tcase(suite, messages);
    return suite;
}

int
main(void)
{
    return sxe_test_main(request_suite());
}
