/* SPDX-License-Identifier: MIT
 *
 * The report about the first malformed reply: the reason, and the bytes that are shown.
 */
#include "bad-reply.h"

#include <string.h>

#include "page-edge.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static struct load_bad_reply bad;
static char text[LOAD_BAD_TEXT];

static const struct {
    const char *data;
    size_t at;
    const char *shown;
} lines[] = {
    {"220 ready\r\n", 0, "\"220 ready\\r\\n\""},
    {"220 ready\r\n", 11, "\"\""},
    {"220 ready\r\n", 99, "\"\""},
    {"", 0, "\"\""},
    {"one\r\ntwo: 2\r\nthree", 5, "\"two: 2\\r\\nthree\""},
    {"one\r\ntwo: 2\r\nthree", 10, "\"two: 2\\r\\nthree\""},
    {"one\r\ntwo: 2\r\nthree", 11, "\"two: 2\\r\\nthree\""},
    {"0123456789012345678901234567890123456789012345", 30,
     "\"012345678901234567890123456789012345\""},
    {"0123456789012345678901234567890123456789012345", 20,
     "\"0123456789012345678901234567890123456789\""},
    {"a\"b\\c\t\x01\x7f\x80\xff", 0, "\"a\\\"b\\\\c\\t\\x01\\x7f\\x80\\xff\""},
};

START_TEST(the_line_is_shown_from_its_beginning_if_that_is_near)
{
    size_t length = strlen(lines[_i].data);

    load_bad_reply_note(&bad, SXE_HTTP_REFUSED_BAD_NAME, page_edge_bytes(lines[_i].data, length),
                        length, lines[_i].at);
    ck_assert_str_eq(load_bad_reply_quote(&bad, text, sizeof(text)), lines[_i].shown);
    ck_assert_str_eq(load_bad_reply_why(&bad), sxe_http_refusal_text(SXE_HTTP_REFUSED_BAD_NAME));
}
END_TEST

START_TEST(the_longest_text_has_room)
{
    char zeros[100] = {0};

    load_bad_reply_note(&bad, LOAD_BAD_MORE, zeros, sizeof(zeros), 0);
    ck_assert_uint_eq(strlen(load_bad_reply_quote(&bad, text, sizeof(text))), LOAD_BAD_TEXT - 1);
    ck_assert_str_eq(load_bad_reply_why(&bad), "there is more than was asked for");
    ck_assert_str_eq(load_bad_reply_quote(&bad, text, 7), "\"\\x00\"");
    ck_assert_str_eq(load_bad_reply_quote(&bad, text, 10), "\"\\x00\"");
    ck_assert_str_eq(load_bad_reply_quote(&bad, text, 11), "\"\\x00\\x00\"");
    load_bad_reply_note(&bad, LOAD_BAD_UPGRADE, zeros, 1, 0);
    ck_assert_str_eq(load_bad_reply_quote(&bad, text, sizeof(text)), "\"\\x00\"");
    ck_assert_str_eq(load_bad_reply_why(&bad), "it begins another protocol");
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-bad-reply");
    TCase *t = tcase_create("all");

    suite_add_tcase(s, t);
    tcase_add_loop_test(t, the_line_is_shown_from_its_beginning_if_that_is_near, 0, COUNT(lines));
    tcase_add_test(t, the_longest_text_has_room);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
