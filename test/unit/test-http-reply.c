/* SPDX-License-Identifier: MIT */
#include "../../apps/http/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../fuzz/check-http-reply.h"
#include "test-main.h"

#define OK_200      "HTTP/1.1 200 OK\r\n"
#define CHUNKED_200 OK_200 "Transfer-Encoding: chunked\r\n\r\n"

/* A copy that ends where the page does, so that reading one byte too far traps. */
static const char *
at_edge(const char *data, size_t length)
{
    static char *pages;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (2 * HTTP_REPLY_HEAD_MAX + page) / page * page;

    if (pages == NULL) {
        pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(pages, MAP_FAILED);
        ck_assert_int_eq(mprotect(pages + room, page, PROT_NONE), 0);
    }
    ck_assert_uint_le(length, room);
    memcpy(pages + room - length, data, length);
    return pages + room - length;
}

/* Offer data in pieces that end at each of ends[], which ascend; what was not taken is offered
 * again, as a connection does. Bytes taken, or -1. */
static ssize_t
feed(struct http_reply *reply, const char *data, const size_t *ends, unsigned number)
{
    size_t taken = 0;

    for (unsigned i = 0; i < number; i++) {
        size_t unread = ends[i] - taken;
        ssize_t n = http_reply_scan(reply, at_edge(data + taken, unread), unread);

        if (n < 0)
            return -1;
        ck_assert_uint_le((size_t)n, unread);
        taken += (size_t)n;
    }
    return (ssize_t)taken;
}

static const struct {
    const char *text;
    unsigned status;
    bool keep_alive;
} good[] = {
    {OK_200 "Content-Length: 5\r\n\r\nhello", 200, true},
    {OK_200 "Content-Length: 0\r\n\r\n", 200, true},
    {OK_200 "content-LENGTH:5\r\n\r\nhello", 200, true},
    {OK_200 "Content-Length: \t 5 \t \r\n\r\nhello", 200, true},
    {OK_200 "Content-Length: 005\r\n\r\nhello", 200, true},
    {OK_200 "Content-Length: 5\r\nContent-Length: 05\r\n\r\nhello", 200, true},
    {OK_200 "Content-Length: 12\r\n\r\n\r\n\r\nab\r\n\r\ncd", 200, true},
    {OK_200 "Content-Length-: x\r\nX-Content-Length: y\r\nContent-Length: 1\r\n\r\n!", 200, true},
    {OK_200 "Empty:\r\nColons: a:b:c\r\nContent-Length: 1\r\n\r\n!", 200, true},
    {OK_200 "Connection: close\r\nContent-Length: 1\r\n\r\n!", 200, false},
    {OK_200 "Connection: x, CLOSE ,y\r\nContent-Length: 1\r\n\r\n!", 200, false},
    {OK_200 "Connection: closed\r\nContent-Length: 1\r\n\r\n!", 200, true},
    {OK_200 "Connection: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n!", 200, false},
    {OK_200 "Connection: keep-alive\r\nConnection: close\r\nContent-Length: 1\r\n\r\n!", 200,
     false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n!", 200, false},
    {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\n!", 200, true},
    {"HTTP/1.9 200 OK\r\nContent-Length: 1\r\n\r\n!", 200, true},
    {"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\n!", 200, true},
    {"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n!", 200, true},
    {"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n!", 404, true},
    {"HTTP/1.1 999 Whatever\r\nContent-Length: 1\r\n\r\n!", 999, true},
    {"HTTP/1.1 200 OK\nContent-Length: 1\n\n!", 200, true},
    {"HTTP/1.1 200 OK\nContent-Length: 1\r\n\n!", 200, true},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, true},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, true},
    {"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", 304, true},
    {"HTTP/1.1 100 Continue\r\n\r\n" OK_200 "Content-Length: 1\r\n\r\n!", 200, true},
    {"HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\nHTTP/1.1 103 Early\r\nLink: "
     "x\r\n\r\n" OK_200 "Content-Length: 1\r\n\r\n!",
     200, true},
    {CHUNKED_200 "0\r\n\r\n", 200, true},
    {CHUNKED_200 "5\r\nhello\r\n0\r\n\r\n", 200, true},
    {CHUNKED_200 "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", 200, true},
    {CHUNKED_200 "0000a\r\n\r\n\r\n0\r\n\r\n\r\r\n000\r\n\r\n", 200, true},
    {CHUNKED_200 "A;x=y;z=\"0\"\r\n0123456789\r\n0\r\n\r\n", 200, true},
    {CHUNKED_200 "f \t; x\r\n0123456789abcde\r\n0 \r\n\r\n", 200, true},
    {CHUNKED_200 "1\n!\n0\n\n", 200, true},
    {CHUNKED_200 "0\r\nTrailer: 1\r\nContent-Length: 7\r\n\r\n", 200, true},
    {OK_200 "TRANSFER-encoding:gzip, ,CHUNKED\r\n\r\n0\r\n\r\n", 200, true},
    {OK_200 "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, true},
    {OK_200 "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", 200, false},
};
#define GOOD (int)(sizeof(good) / sizeof(good[0]))

static void
check_whole(const struct http_reply *reply, int row, ssize_t taken)
{
    ck_assert_int_eq(taken, (ssize_t)strlen(good[row].text));
    ck_assert_uint_eq(reply->part, HTTP_REPLY_WHOLE);
    ck_assert_uint_eq(reply->status, good[row].status);
    ck_assert_int_eq(reply->keep_alive, good[row].keep_alive);
}

START_TEST(a_good_reply_is_whole_with_its_last_byte)
{
    struct http_reply reply = {0};
    size_t length = strlen(good[_i].text);

    check_whole(&reply, _i, feed(&reply, good[_i].text, &length, 1));
}
END_TEST

START_TEST(a_good_reply_may_come_in_two_pieces_cut_anywhere)
{
    size_t length = strlen(good[_i].text);

    for (size_t cut = 0; cut <= length; cut++) {
        struct http_reply reply = {0};
        size_t ends[] = {cut, length};

        check_whole(&reply, _i, feed(&reply, good[_i].text, ends, 2));
    }
}
END_TEST

START_TEST(a_good_reply_may_come_byte_by_byte)
{
    struct http_reply reply = {0};
    size_t length = strlen(good[_i].text);
    size_t ends[1024];

    for (size_t i = 0; i < length; i++)
        ends[i] = i + 1;
    check_whole(&reply, _i, feed(&reply, good[_i].text, ends, (unsigned)length));
}
END_TEST

START_TEST(no_part_of_a_good_reply_is_whole_or_bad)
{
    for (size_t length = 0; length < strlen(good[_i].text); length++) {
        struct http_reply reply = {0};

        ck_assert_int_ge(feed(&reply, good[_i].text, &length, 1), 0);
        ck_assert_uint_ne(reply.part, HTTP_REPLY_WHOLE);
    }
}
END_TEST

START_TEST(nothing_is_taken_from_behind_a_whole_reply)
{
    char text[1024];
    struct http_reply reply = {0};
    size_t length = (size_t)snprintf(text, sizeof(text), "%s%s", good[_i].text, "HTTP/1.1");

    check_whole(&reply, _i, feed(&reply, text, &length, 1));
    ck_assert_int_eq(http_reply_scan(&reply, "HTTP/1.1", 8), 0);
}
END_TEST

static const char *const bad[] = {
    "I do not speak HTTP, sorry.\r\n\r\n",
    "\r\n" OK_200 "Content-Length: 0\r\n\r\n",
    "http/1.1 200 OK\r\n\r\n",
    "HTTP/2.0 200 OK\r\n\r\n",
    "HTTP/1.x 200 OK\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/1.1 two OK\r\n\r\n",
    "HTTP/1.1 099 OK\r\n\r\n",
    "HTTP/1.1  200 OK\r\n\r\n",
    "HTTP/1.1 200\tOK\r\n\r\n",
    "HTTP/1.1\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    OK_200 "no colon\r\n\r\n",
    OK_200 ": no name\r\n\r\n",
    OK_200 "Blank : x\r\n\r\n",
    OK_200 "Folded: x\r\n y: z\r\n\r\n",
    OK_200 "Content-Length: five\r\n\r\n",
    OK_200 "Content-Length: 5x\r\n\r\n",
    OK_200 "Content-Length: -5\r\n\r\n",
    OK_200 "Content-Length: +5\r\n\r\n",
    OK_200 "Content-Length: 0x5\r\n\r\n",
    OK_200 "Content-Length: 5 5\r\n\r\n",
    OK_200 "Content-Length: 5, 5\r\n\r\n",
    OK_200 "Content-Length:\r\n\r\n",
    OK_200 "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    OK_200 "Content-Length: 18446744073709551616\r\n\r\n",
    OK_200 "Content-Length: 99999999999999999999999\r\n\r\n",
    OK_200 "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    OK_200 "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\n",
    OK_200 "Transfer-Encoding: chunked, chunked\r\n\r\n",
    OK_200 "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    CHUNKED_200 "\r\n",
    CHUNKED_200 "x\r\n",
    CHUNKED_200 "g\r\n",
    CHUNKED_200 "5x\r\n",
    CHUNKED_200 "5 x\r\n",
    CHUNKED_200 " 5\r\n",
    CHUNKED_200 "-5\r\n",
    CHUNKED_200 "0x5\r\n",
    CHUNKED_200 "10000000000000000\r\n",
    CHUNKED_200 "ffffffffffffffff\r\n",
    CHUNKED_200 "5\r\nhello!\r\n",
    CHUNKED_200 "5\r\nhello 0\r\n\r\n",
};
#define BADS (int)(sizeof(bad) / sizeof(bad[0]))

START_TEST(what_is_no_reply_is_bad)
{
    struct http_reply reply = {0};
    size_t length = strlen(bad[_i]);

    ck_assert_int_eq(feed(&reply, bad[_i], &length, 1), -1);
}
END_TEST

START_TEST(what_is_no_reply_is_bad_wherever_it_is_cut)
{
    size_t length = strlen(bad[_i]);

    for (size_t cut = 0; cut <= length; cut++) {
        struct http_reply reply = {0};
        size_t ends[] = {cut, length};

        ck_assert_int_eq(feed(&reply, bad[_i], ends, 2), -1);
    }
}
END_TEST

/* Replies that only the peer's end finishes. */
static const char *const endless[] = {
    OK_200 "\r\n",
    OK_200 "\r\nhello",
    OK_200 "Connection: keep-alive\r\n\r\n0\r\n\r\n",
    OK_200 "Transfer-Encoding: gzip\r\n\r\nhello",
    OK_200 "Transfer-Encoding:\r\n\r\nhello",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello",
};
#define ENDLESS (int)(sizeof(endless) / sizeof(endless[0]))

START_TEST(without_a_length_a_reply_goes_on_until_the_peer_ends)
{
    struct http_reply reply = {0};
    size_t length = strlen(endless[_i]);

    ck_assert_int_eq(feed(&reply, endless[_i], &length, 1), (ssize_t)length);
    ck_assert_uint_eq(reply.part, HTTP_REPLY_UNTIL_CLOSE);
    ck_assert(!reply.keep_alive);
    ck_assert_int_eq(http_reply_scan(&reply, "more", 4), 4);
    ck_assert_uint_eq(reply.part, HTTP_REPLY_UNTIL_CLOSE);
}
END_TEST

/* A head of this length with its blank line. */
static char *
head_of_length(size_t length)
{
    static const char start[] = OK_200 "Content-Length: 0\r\nX: ";
    static char text[2 * HTTP_REPLY_HEAD_MAX];

    memset(text, 'x', length);
    memcpy(text, start, strlen(start));
    memcpy(text + length - 4, "\r\n\r\n", 4);
    return text;
}

START_TEST(a_head_may_be_as_long_as_the_limit)
{
    struct http_reply reply = {0};
    size_t length = HTTP_REPLY_HEAD_MAX;

    ck_assert_int_eq(feed(&reply, head_of_length(length), &length, 1), (ssize_t)length);
    ck_assert_uint_eq(reply.part, HTTP_REPLY_WHOLE);
}
END_TEST

START_TEST(a_longer_head_is_bad)
{
    struct http_reply reply = {0};
    size_t length = HTTP_REPLY_HEAD_MAX + 1;
    size_t ends[] = {length - 2, length};

    ck_assert_int_eq(feed(&reply, head_of_length(length), &length, 1), -1);
    ck_assert_int_eq(feed(&reply, head_of_length(length), ends, 2), -1);
}
END_TEST

START_TEST(a_head_that_does_not_end_is_bad_at_the_limit)
{
    struct http_reply reply = {0};
    char *text = head_of_length(HTTP_REPLY_HEAD_MAX + 10);
    size_t length = HTTP_REPLY_HEAD_MAX;

    ck_assert_int_eq(http_reply_scan(&reply, text, length - 1), 0);
    ck_assert_int_eq(http_reply_scan(&reply, text, length), -1);
}
END_TEST

START_TEST(a_head_of_many_lines_that_does_not_end_is_bad_at_the_limit)
{
    struct http_reply reply = {0};
    char *text = head_of_length(HTTP_REPLY_HEAD_MAX + 10);

    for (size_t at = 100; at < HTTP_REPLY_HEAD_MAX; at += 100)
        memcpy(text + at, "\r\nx: ", 5);
    ck_assert_int_eq(http_reply_scan(&reply, text, HTTP_REPLY_HEAD_MAX - 1), 0);
    ck_assert_int_eq(http_reply_scan(&reply, text, HTTP_REPLY_HEAD_MAX), -1);
}
END_TEST

START_TEST(a_line_between_chunks_that_does_not_end_is_bad_at_the_limit)
{
    static char line[HTTP_REPLY_HEAD_MAX];
    struct http_reply reply = {0};
    size_t length = strlen(CHUNKED_200);

    memset(line, '0', sizeof(line));
    ck_assert_int_eq(feed(&reply, CHUNKED_200, &length, 1), (ssize_t)length);
    ck_assert_int_eq(http_reply_scan(&reply, line, sizeof(line) - 1), 0);
    ck_assert_int_eq(http_reply_scan(&reply, line, sizeof(line)), -1);
}
END_TEST

START_TEST(a_body_of_any_length_is_counted_down)
{
    static const char head[] = OK_200 "Content-Length: 1000000000000000000\r\n\r\n";
    static char body[HTTP_REPLY_HEAD_MAX];
    struct http_reply reply = {0};
    size_t length = strlen(head);

    ck_assert_int_eq(feed(&reply, head, &length, 1), (ssize_t)length);
    ck_assert_int_eq(http_reply_scan(&reply, body, sizeof(body)), sizeof(body));
    ck_assert_uint_eq(reply.left, UINT64_C(1000000000000000000) - sizeof(body));
    ck_assert_uint_eq(reply.part, HTTP_REPLY_BODY);
}
END_TEST

/* A good reply with a few bytes changed, in pieces of any length: the verdict is that of the whole.
 */
START_TEST(pieces_make_no_difference_to_changed_replies)
{
    srandom((unsigned)_i + 1);
    for (unsigned round = 0; round < 300; round++) {
        uint8_t input[1024];
        size_t length = strlen(good[_i].text);

        memcpy(input + 1, good[_i].text, length);
        input[0] = (uint8_t)random();
        for (long changes = random() % 4; changes > 0; changes--)
            input[1 + (size_t)random() % length] = (uint8_t) "\r\n :;05afx\0"[random() % 11];
        ck_assert_ptr_null(check_http_reply(input, length + 1));
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-reply");
    TCase *whole = tcase_create("good");
    TCase *refused = tcase_create("bad");
    TCase *limits = tcase_create("limits");

    tcase_add_loop_test(whole, a_good_reply_is_whole_with_its_last_byte, 0, GOOD);
    tcase_add_loop_test(whole, a_good_reply_may_come_in_two_pieces_cut_anywhere, 0, GOOD);
    tcase_add_loop_test(whole, a_good_reply_may_come_byte_by_byte, 0, GOOD);
    tcase_add_loop_test(whole, no_part_of_a_good_reply_is_whole_or_bad, 0, GOOD);
    tcase_add_loop_test(whole, nothing_is_taken_from_behind_a_whole_reply, 0, GOOD);
    tcase_add_loop_test(whole, pieces_make_no_difference_to_changed_replies, 0, GOOD);
    tcase_add_loop_test(whole, without_a_length_a_reply_goes_on_until_the_peer_ends, 0, ENDLESS);
    suite_add_tcase(suite, whole);
    tcase_add_loop_test(refused, what_is_no_reply_is_bad, 0, BADS);
    tcase_add_loop_test(refused, what_is_no_reply_is_bad_wherever_it_is_cut, 0, BADS);
    suite_add_tcase(suite, refused);
    tcase_add_test(limits, a_head_may_be_as_long_as_the_limit);
    tcase_add_test(limits, a_longer_head_is_bad);
    tcase_add_test(limits, a_head_that_does_not_end_is_bad_at_the_limit);
    tcase_add_test(limits, a_head_of_many_lines_that_does_not_end_is_bad_at_the_limit);
    tcase_add_test(limits, a_line_between_chunks_that_does_not_end_is_bad_at_the_limit);
    tcase_add_test(limits, a_body_of_any_length_is_counted_down);
    suite_add_tcase(suite, limits);
    return sxe_test_main(suite);
}
