/* SPDX-License-Identifier: MIT
 *
 * Replies, as a worker scans them. The tests of the parser show which heads, chunks and trailers
 * are valid; here are the consequences for the worker.
 */
#include "../../../../apps/http/load/reply.h"

#include <stdio.h>
#include <string.h>

#include "page-edge.h"
#include "test-main.h"

#define OK_200      "HTTP/1.1 200 OK\r\n"
#define CHUNKED_200 OK_200 "Transfer-Encoding: chunked\r\n\r\n"
#define HEAD_MAX    16384
#define ROWS(table) (int)(sizeof(table) / sizeof((table)[0]))

/* One memo for all replies of a case, so that each reply is also scanned after any other. */
static struct load_reply_memo memo;

/* Offer [0, length), then `step` bytes more each time, up to size; bytes that were not taken are
 * offered again, as a connection does. Returns how many bytes were taken, or -1. */
static ssize_t
feed(struct load_reply *reply, const char *data, size_t length, size_t step, size_t size)
{
    size_t taken = 0;

    for (;;) {
        size_t unread = length - taken;
        const char *part = page_edge_bytes(data + taken, unread);
        ssize_t n = load_reply_scan(reply, part, unread, &memo, NULL);

        if (n < 0)
            return -1;
        ck_assert_uint_le((size_t)n, unread);
        taken += (size_t)n;
        if (length == size)
            return (ssize_t)taken;
        length = length + step < size ? length + step : size;
    }
}

/* ---- Good replies ---- */

static const struct {
    const char *text;
    unsigned status;
    bool keep_alive;
} good[] = {
    {OK_200 "Content-Length: 5\r\n\r\nhello", 200, true},
    {OK_200 "Content-Length: 0\r\n\r\n", 200, true},
    {OK_200 "Content-Length: 12\r\n\r\n\r\n\r\nab\r\n\r\ncd", 200, true},
    {OK_200 "Connection: close\r\nContent-Length: 1\r\n\r\n!", 200, false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n!", 200, false},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n!", 200, true},
    {"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n!", 404, true},
    {"HTTP/1.1 999 Whatever\r\nContent-Length: 1\r\n\r\n!", 999, true},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, true},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, true},
    {"HTTP/1.1 100 Continue\r\n\r\n" OK_200 "Content-Length: 1\r\n\r\n!", 200, true},
    {"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\n" OK_200
     "Content-Length: 1\r\n\r\n!",
     200, true},
    {CHUNKED_200 "0\r\n\r\n", 200, true},
    {CHUNKED_200 "5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n", 200, true},
    {CHUNKED_200 "a\r\n\r\n0\r\n\r\n\r\n!\r\n0\r\n\r\n", 200, true},
    {CHUNKED_200 "1\r\n!\r\n0\r\nDigest: x\r\nContent-Length: 7\r\n\r\n", 200, true},
    {OK_200 "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", 200, false},
};

static void
check_whole(const struct load_reply *reply, int row, ssize_t taken)
{
    ck_assert_int_eq(taken, (ssize_t)strlen(good[row].text));
    ck_assert_uint_eq(reply->part, LOAD_REPLY_WHOLE);
    ck_assert_uint_eq(reply->status, good[row].status);
    ck_assert_int_eq(reply->keep_alive, good[row].keep_alive);
}

START_TEST(a_good_reply_is_whole_with_its_last_byte_wherever_it_is_cut)
{
    size_t size = strlen(good[_i].text);

    for (size_t cut = 0; cut < size; cut++) {
        struct load_reply reply = {0};

        ck_assert_int_ge(feed(&reply, good[_i].text, cut, size, cut), 0);
        ck_assert_uint_ne(reply.part, LOAD_REPLY_WHOLE);
        reply.part = LOAD_REPLY_HEAD;
        check_whole(&reply, _i, feed(&reply, good[_i].text, cut, size, size));
    }
}
END_TEST

START_TEST(a_good_reply_may_come_byte_by_byte)
{
    struct load_reply reply = {0};

    check_whole(&reply, _i, feed(&reply, good[_i].text, 0, 1, strlen(good[_i].text)));
}
END_TEST

START_TEST(nothing_is_taken_from_behind_a_whole_reply)
{
    char text[1024];
    struct load_reply reply = {0};
    size_t size = (size_t)snprintf(text, sizeof(text), "%s%s", good[_i].text, "HTTP/1.1");

    check_whole(&reply, _i, feed(&reply, text, size, 0, size));
    ck_assert_int_eq(load_reply_scan(&reply, "HTTP/1.1", 8, &memo, NULL), 0);
}
END_TEST

/* Scan each reply with the same parser state, as on one connection. */
START_TEST(one_reply_leaves_nothing_behind_for_the_next)
{
    struct load_reply reply = {0};

    for (int round = 0; round < 2; round++) {
        for (int row = 0; row < ROWS(good); row++) {
            size_t size = strlen(good[row].text);

            check_whole(&reply, row, feed(&reply, good[row].text, size, 0, size));
            reply.part = LOAD_REPLY_HEAD;
        }
    }
}
END_TEST

/* Replies that end only when the server closes. */
static const char *const endless[] = {
    OK_200 "\r\n",
    OK_200 "Connection: keep-alive\r\n\r\n0\r\n\r\n",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello",
};

START_TEST(without_a_length_a_reply_goes_on_until_the_peer_ends)
{
    struct load_reply reply = {0};
    size_t size = strlen(endless[_i]);

    ck_assert_int_eq(feed(&reply, endless[_i], size, 0, size), (ssize_t)size);
    ck_assert_uint_eq(reply.part, LOAD_REPLY_UNTIL_CLOSE);
    ck_assert(!reply.keep_alive);
    ck_assert_int_eq(load_reply_scan(&reply, "more", 4, &memo, NULL), 4);
    ck_assert_uint_eq(reply.part, LOAD_REPLY_UNTIL_CLOSE);
}
END_TEST

/* ---- Malformed replies ---- */

static const char *const bad[] = {
    "rubbish",
    "\r\n" OK_200 "Content-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 two OK\r\n\r\n",
    OK_200 "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    OK_200 "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    OK_200 "Transfer-Encoding: gzip, chunked\r\n\r\n",
    OK_200 "Transfer-Encoding: gzip\r\n\r\nhello",
    CHUNKED_200 "x\r\n",
    CHUNKED_200 "ffffffffffffffff0\r\n",
    CHUNKED_200 "5\r\nhello!\r\n",
    CHUNKED_200 "0\r\nDigest : x\r\n\r\n",
};

START_TEST(what_is_no_reply_is_bad_wherever_it_is_cut)
{
    size_t size = strlen(bad[_i]);

    for (size_t cut = 0; cut <= size; cut++) {
        struct load_reply reply = {0};

        ck_assert_int_eq(feed(&reply, bad[_i], cut, size, size), -1);
    }
}
END_TEST

/* ---- Limits ---- */

/* A text that begins with these bytes and goes on with x, longer than a head may be. */
static const char *
filled(const char *begin)
{
    static char text[HEAD_MAX + 1024];

    memset(text, 'x', sizeof(text));
    memcpy(text, begin, strlen(begin));
    return text;
}

START_TEST(a_head_without_an_end_is_bad_at_the_limit)
{
    struct load_reply reply = {0};
    const char *text = filled(OK_200 "X: ");

    ck_assert_int_eq(load_reply_scan(&reply, text, HEAD_MAX - 1, &memo, NULL), 0);
    ck_assert_int_eq(load_reply_scan(&reply, text, HEAD_MAX, &memo, NULL), -1);
}
END_TEST

START_TEST(a_trailer_without_an_end_is_bad_at_the_limit)
{
    struct load_reply reply = {0};
    size_t before = strlen(CHUNKED_200 "0\r\n");
    const char *text = filled(CHUNKED_200 "0\r\nX: ");

    ck_assert_int_eq(load_reply_scan(&reply, text, before + HEAD_MAX - 1, &memo, NULL),
                     (ssize_t)before);
    ck_assert_int_eq(load_reply_scan(&reply, text + before, HEAD_MAX, &memo, NULL), -1);
}
END_TEST

START_TEST(a_body_of_any_length_is_counted)
{
    static const char head[] = OK_200 "Content-Length: 18446744073709551615\r\n\r\n";
    struct load_reply reply = {0};
    size_t size = strlen(head);

    ck_assert_int_eq(load_reply_scan(&reply, filled(head), size + 1000, &memo, NULL),
                     (ssize_t)size + 1000);
    ck_assert_uint_eq(reply.left, UINT64_MAX - 1000);
    ck_assert_uint_eq(reply.part, LOAD_REPLY_COUNTED);
}
END_TEST

/* ---- Heads that repeat the last one ---- */

#define AGAIN OK_200 "Content-Length: 5\r\nDate: x\r\n\r\n"

/* Change each byte of the remembered head in turn, or cut the head there ('\0'): a scan with the
 * memo must give the same result as one without. */
START_TEST(only_a_head_that_is_the_same_in_every_byte_means_the_same)
{
    static const char others[] = "1:\r \0";
    char text[] = AGAIN "hello";

    for (size_t i = 0; i < strlen(AGAIN) * sizeof(others); i++) {
        struct load_reply_memo fresh = {0};
        struct load_reply replies[2] = {{0}, {0}};
        struct load_reply first = {0};
        char *byte = &text[i / sizeof(others)];
        char before = *byte;

        ck_assert_int_eq(load_reply_scan(&first, AGAIN, strlen(AGAIN), &memo, NULL), strlen(AGAIN));
        *byte = others[i % sizeof(others)];
        ck_assert_int_eq(load_reply_scan(&replies[0], text, strlen(text), &memo, NULL),
                         load_reply_scan(&replies[1], text, strlen(text), &fresh, NULL));
        ck_assert_uint_eq(replies[0].part, replies[1].part);
        ck_assert_uint_eq(replies[0].status, replies[1].status);
        *byte = before;
    }
}
END_TEST

START_TEST(a_known_head_that_is_not_there_yet_is_waited_for)
{
    struct load_reply reply = {0};

    ck_assert_int_eq(load_reply_scan(&reply, AGAIN, strlen(AGAIN), &memo, NULL), strlen(AGAIN));
    for (size_t length = 0; length < strlen(AGAIN); length++) {
        reply = (struct load_reply){0};
        ck_assert_int_eq(
            load_reply_scan(&reply, page_edge_bytes(AGAIN, length), length, &memo, NULL), 0);
        ck_assert_uint_eq(reply.part, LOAD_REPLY_HEAD);
    }
}
END_TEST

START_TEST(the_same_head_to_head_has_no_body)
{
    for (int round = 0; round < 2; round++) {
        struct load_reply to_head = {.is_to_head = true};
        struct load_reply to_get = {0};

        ck_assert_int_eq(load_reply_scan(&to_head, AGAIN "?", strlen(AGAIN) + 1, &memo, NULL),
                         strlen(AGAIN));
        ck_assert_uint_eq(to_head.part, LOAD_REPLY_WHOLE);
        ck_assert_int_eq(load_reply_scan(&to_get, AGAIN "?", strlen(AGAIN) + 1, &memo, NULL),
                         strlen(AGAIN) + 1);
        ck_assert_uint_eq(to_get.part, LOAD_REPLY_COUNTED);
        ck_assert_uint_eq(to_get.left, 4);
    }
}
END_TEST

START_TEST(a_head_too_long_to_be_kept_is_read_each_time)
{
    char text[2 * LOAD_REPLY_MEMO_MAX];
    size_t length = (size_t)snprintf(
        text, sizeof(text), OK_200 "Content-Length: 0\r\nX: %*s\r\n\r\n", LOAD_REPLY_MEMO_MAX, "x");

    for (int round = 0; round < 2; round++) {
        struct load_reply reply = {0};

        ck_assert_int_eq(load_reply_scan(&reply, text, length, &memo, NULL), (ssize_t)length);
        ck_assert_uint_eq(reply.part, LOAD_REPLY_WHOLE);
    }
    ck_assert_uint_eq(memo.length, 0);
}
END_TEST

START_TEST(bad_bytes_behind_a_known_head_are_bad)
{
    struct load_reply good_reply = {0};
    struct load_reply bad_reply = {0};
    const char *text = CHUNKED_200 "x\r\n";

    ck_assert_int_eq(load_reply_scan(&good_reply, text, strlen(CHUNKED_200), &memo, NULL),
                     strlen(CHUNKED_200));
    ck_assert_int_eq(load_reply_scan(&bad_reply, text, strlen(text), &memo, NULL), -1);
    ck_assert_uint_eq(bad_reply.refusal, SXE_HTTP_REFUSED_BAD_CHUNK_SIZE);
    ck_assert_uint_eq(bad_reply.left, strlen(CHUNKED_200));
}
END_TEST

static const struct {
    const char *good;
    const char *bad;
    enum sxe_http_refusal refusal;
} refusals[] = {
    {"", "SMTP ready\r\n\r\n", SXE_HTTP_REFUSED_BAD_VERSION},
    {"HTTP/1.1 20", " OK\r\n\r\n", SXE_HTTP_REFUSED_BAD_STATUS},
    {"HTTP/1.1 100 Continue\r\n\r\n" OK_200 "A: b\r\n", " c\r\n\r\n", SXE_HTTP_REFUSED_FOLDED_LINE},
    {CHUNKED_200 "5\r\nhello\r\n5\r\nhello", "!", SXE_HTTP_REFUSED_BAD_CHUNK_END},
    {"", "HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", SXE_HTTP_NOT_REFUSED},
};

START_TEST(what_is_bad_is_told_and_where)
{
    struct load_reply reply = {0};
    char text[200];
    int length = snprintf(text, sizeof(text), "%s%s", refusals[_i].good, refusals[_i].bad);

    ck_assert_int_eq(load_reply_view(&reply, text, (size_t)length, NULL), -1);
    ck_assert_uint_eq(reply.refusal, refusals[_i].refusal);
    ck_assert_uint_eq(reply.left, strlen(refusals[_i].good));
}
END_TEST

/* ---- Viewers of replies ---- */

static char seen[1024];

static void
see_head(struct load_reply_viewer *viewer, const struct sxe_http_parser *head, const char *data,
         size_t length)
{
    (void)viewer;
    ck_assert_mem_eq(data + length - 4, "\r\n\r\n", 4);
    snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "[%u %zu]", head->status, length);
}

static void
see_body(struct load_reply_viewer *viewer, const char *data, size_t length)
{
    (void)viewer;
    ck_assert_uint_gt(length, 0);
    snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%.*s", (int)length, data);
}

static const struct {
    const char *text;
    const char *seen;
} shown[] = {
    {OK_200 "Content-Length: 5\r\n\r\nhello", "[200 38]hello"},
    {OK_200 "Content-Length: 0\r\n\r\n", "[200 38]"},
    {"HTTP/1.1 103 Early Hints\r\n\r\n" OK_200 "Content-Length: 1\r\n\r\n!", "[200 38]!"},
    {CHUNKED_200 "5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nDigest: x\r\n\r\n", "[200 47]hello!"},
    {OK_200 "\r\nuntil the end", "[200 19]until the end"},
};

START_TEST(a_viewer_sees_the_head_and_all_of_the_body_wherever_it_is_cut)
{
    struct load_reply_viewer viewer = {see_head, see_body};
    size_t size = strlen(shown[_i].text);

    for (size_t cut = 0; cut <= size; cut++) {
        struct load_reply reply = {0};
        ssize_t taken = load_reply_view(&reply, shown[_i].text, cut, &viewer);

        ck_assert_int_ge(taken, 0);
        taken += load_reply_view(&reply, shown[_i].text + taken, size - (size_t)taken, &viewer);
        ck_assert_int_eq(taken, (ssize_t)size);
        ck_assert_str_eq(seen, shown[_i].seen);
        seen[0] = '\0';
    }
}
END_TEST

START_TEST(a_reply_to_head_ends_with_its_head)
{
    struct load_reply reply = {.is_to_head = true};
    const char *text = OK_200 "Content-Length: 5\r\n\r\n";

    ck_assert_int_eq(load_reply_scan(&reply, text, strlen(text), &memo, NULL),
                     (ssize_t)strlen(text));
    ck_assert_uint_eq(reply.part, LOAD_REPLY_WHOLE);
    ck_assert(reply.keep_alive);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-reply");
    TCase *viewers = tcase_create("viewers");
    TCase *whole = tcase_create("good");
    TCase *refused = tcase_create("bad");
    TCase *limits = tcase_create("limits");
    TCase *again = tcase_create("again");

    tcase_add_loop_test(whole, a_good_reply_is_whole_with_its_last_byte_wherever_it_is_cut, 0,
                        ROWS(good));
    tcase_add_loop_test(whole, a_good_reply_may_come_byte_by_byte, 0, ROWS(good));
    tcase_add_loop_test(whole, nothing_is_taken_from_behind_a_whole_reply, 0, ROWS(good));
    tcase_add_test(whole, one_reply_leaves_nothing_behind_for_the_next);
    tcase_add_loop_test(whole, without_a_length_a_reply_goes_on_until_the_peer_ends, 0,
                        ROWS(endless));
    suite_add_tcase(suite, whole);
    tcase_add_loop_test(refused, what_is_no_reply_is_bad_wherever_it_is_cut, 0, ROWS(bad));
    suite_add_tcase(suite, refused);
    tcase_add_test(limits, a_head_without_an_end_is_bad_at_the_limit);
    tcase_add_test(limits, a_trailer_without_an_end_is_bad_at_the_limit);
    tcase_add_test(limits, a_body_of_any_length_is_counted);
    suite_add_tcase(suite, limits);
    tcase_add_test(again, only_a_head_that_is_the_same_in_every_byte_means_the_same);
    tcase_add_test(again, a_known_head_that_is_not_there_yet_is_waited_for);
    tcase_add_test(again, the_same_head_to_head_has_no_body);
    tcase_add_test(again, a_head_too_long_to_be_kept_is_read_each_time);
    tcase_add_test(again, bad_bytes_behind_a_known_head_are_bad);
    tcase_add_loop_test(again, what_is_bad_is_told_and_where, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    suite_add_tcase(suite, again);
    tcase_add_loop_test(viewers, a_viewer_sees_the_head_and_all_of_the_body_wherever_it_is_cut, 0,
                        ROWS(shown));
    tcase_add_test(viewers, a_reply_to_head_ends_with_its_head);
    suite_add_tcase(suite, viewers);
    return sxe_test_main(suite);
}
