/* SPDX-License-Identifier: MIT
 *
 * Expectations about replies: tables of statuses and fields, and bodies cut at every place.
 */
#include "expect.h"

#include <errno.h>
#include <stdio.h>

#include "fake-os.h"
#include "page-edge.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* ---- Status ---- */

static const struct {
    const char *text;
    unsigned good[4];
    unsigned bad[4];
} statuses[] = {
    {"200", {200}, {199, 201, 0, 1200}},
    {"2xx", {200, 204, 299}, {199, 300, 404}},
    {"2XX", {200, 299}, {300}},
    {"200,304", {200, 304}, {201, 303}},
    {" 200 , 3xx ", {200, 300, 399}, {201, 400}},
    {"200-299", {200, 250, 299}, {199, 300}},
    {"1xx-3xx", {100, 250, 399}, {99, 400}},
    {"404-4xx", {404, 499}, {400, 403, 500}},
    {"200-200", {200}, {201}},
    {"999", {999}, {998, 1000}},
};

START_TEST(statuses_are_those_of_the_list)
{
    struct load_expect expect = {0};
    const char *text = statuses[_i].text;
    const char *wrong = load_expect_add_status(&expect, page_edge_bytes(text, strlen(text) + 1));

    ck_assert_msg(wrong == NULL, "%s", wrong);
    for (unsigned i = 0; i < 4 && statuses[_i].good[i] != 0; i++)
        ck_assert_msg(load_expect_accepts_status(&expect, statuses[_i].good[i]), "%u",
                      statuses[_i].good[i]);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_msg(!load_expect_accepts_status(&expect, statuses[_i].bad[i]), "%u",
                      statuses[_i].bad[i]);
}
END_TEST

static const char *const bad_statuses[] = {
    "",      "20",      "2x",   "xx",      "0xx",  "099",     "2000",
    "20x",   "200,",    ",200", "200;304", "-200", "200-",    "300-200",
    "200-2", "2xx-200", "ok",   "200 304", "+200", "200-2xy", "1000",
};

START_TEST(other_texts_are_no_statuses)
{
    struct load_expect expect = {0};
    const char *text = bad_statuses[_i];
    const char *wrong = load_expect_add_status(&expect, page_edge_bytes(text, strlen(text) + 1));

    ck_assert_msg(wrong != NULL, "'%s' is accepted", text);
    ck_assert_ptr_nonnull(strstr(wrong, "is not a list of statuses"));
}
END_TEST

START_TEST(statuses_of_several_options_are_added)
{
    struct load_expect expect = {0};

    ck_assert_ptr_null(load_expect_add_status(&expect, LOAD_EXPECT_DEFAULT_STATUS));
    ck_assert_ptr_null(load_expect_add_status(&expect, "404"));
    ck_assert(load_expect_accepts_status(&expect, 204) && load_expect_accepts_status(&expect, 404));
}
END_TEST

/* ---- Fields ---- */

#define HEAD                      \
    "HTTP/1.1 200 OK\r\n"         \
    "Content-Type: text/html\r\n" \
    "Set-Cookie: a=1\r\n"         \
    "X-Empty:\r\n"                \
    "Set-Cookie: b=2\r\n"         \
    "Content-Length: 0\r\n"       \
    "\r\n"

static const struct {
    const char *fields[3];
    bool is_good;
} expected[] = {
    {{NULL}, true},
    {{"Content-Type"}, true},
    {{"content-type"}, true},
    {{"Content-Type: text/html"}, true},
    {{"Content-Type:  text/html \t"}, true},
    {{"Content-Type: TEXT/html"}, false},
    {{"Content-Type: text"}, false},
    {{"Content-Type: text/html2"}, false},
    {{"Set-Cookie: a=1"}, true},
    {{"set-cookie: b=2"}, true},
    {{"Set-Cookie: a=1", "Set-Cookie: b=2"}, true},
    {{"Set-Cookie: a=1", "Set-Cookie: c=3"}, false},
    {{"X-Empty"}, true},
    {{"X-Empty:"}, true},
    {{"X-Empty: x"}, false},
    {{"Content-Type:"}, false},
    {{"X-None"}, false},
    {{"X-None: x"}, false},
    {{"Content-Type", "X-None"}, false},
};

START_TEST(each_expected_field_must_be_there)
{
    char *head = page_edge_bytes(HEAD, strlen(HEAD));
    struct load_expect expect = {0};
    struct sxe_http_field fields[10];
    struct sxe_http_parser parser;

    for (unsigned i = 0; i < 3 && expected[_i].fields[i] != NULL; i++)
        ck_assert_ptr_null(load_expect_add_field(&expect, expected[_i].fields[i]));
    sxe_http_parser_init(&parser, SXE_HTTP_RESPONSE, fields, 10, NULL);
    ck_assert_int_eq(sxe_http_parse(&parser, head, strlen(HEAD)), strlen(HEAD));
    ck_assert(load_expect_accepts_fields(&expect, &parser, head) == expected[_i].is_good);
}
END_TEST

START_TEST(what_is_no_field_is_refused)
{
    static const char *const bad[] = {"", ":", ": a", "a b", "a b: c", "a\r\n", "\xc3\xa9: a"};
    struct load_expect expect = {0};

    ck_assert_ptr_nonnull(
        strstr(load_expect_add_field(&expect, bad[_i]), "not the name of a header"));
    ck_assert_uint_eq(expect.fields, 0);
}
END_TEST

START_TEST(the_last_field_that_fits_is_taken)
{
    struct load_expect expect = {0};
    char texts[LOAD_EXPECT_FIELDS + 1][8];

    for (unsigned i = 0; i < LOAD_EXPECT_FIELDS + 1; i++) {
        snprintf(texts[i], sizeof(texts[i]), "X-%u", i);
        ck_assert((load_expect_add_field(&expect, texts[i]) == NULL) == (i < LOAD_EXPECT_FIELDS));
    }
}
END_TEST

/* ---- Body ---- */

/* Whether a body that comes in three pieces, cut at these places, meets the expectation. */
static bool
feed(const struct load_expect *expect, const char *body, size_t cut, size_t other)
{
    struct load_expect_body state = {0};
    struct sxe_span text = page_edge(body);
    bool is_possible = true;

    is_possible &= load_expect_body_piece(expect, &state, text.base, cut);
    is_possible &= load_expect_body_piece(expect, &state, text.base + cut, other - cut);
    is_possible &= load_expect_body_piece(expect, &state, text.base + other, text.length - other);
    ck_assert(is_possible || !load_expect_accepts_body(expect, &state));
    return load_expect_accepts_body(expect, &state);
}

/* Check the body with every pair of cuts. */
static void
check_body(const struct load_expect *expect, const char *body, bool is_good)
{
    size_t length = strlen(body);

    for (size_t cut = 0; cut <= length; cut++) {
        for (size_t other = cut; other <= length; other++)
            ck_assert_msg(feed(expect, body, cut, other) == is_good, "'%s' cut at %zu and %zu",
                          body, cut, other);
    }
}

static const struct {
    const char *text;
    const char *body;
} searches[] = {
    {"hello", "hello"},
    {"hello", "say hello twice, hello"},
    {"hello", "hhhello"},
    {"hello", "hellhellhell"},
    {"aab", "aaaab"},
    {"aabaaab", "aabaabaaab"},
    {"aabaaab", "aabaabaaac"},
    {"abcabd", "abcabcabd"},
    {"a", "bbba"},
    {"a", "bbb"},
    {"hello", ""},
    {"hello", "hell"},
    {"", ""},
    {"", "anything"},
    {"abababac", "ababababac"},
    {"x", "x"},
};

START_TEST(a_text_is_found_across_pieces)
{
    struct load_expect expect = {0};

    ck_assert_ptr_null(load_expect_set_body(&expect, searches[_i].text));
    check_body(&expect, searches[_i].body, strstr(searches[_i].body, searches[_i].text) != NULL);
    load_expect_clear_body(&expect);
}
END_TEST

/* All words of two letters, so that the searched text repeats its own beginning in every way. */
START_TEST(all_short_texts_are_found_as_strstr_does)
{
    char text[6] = "";
    char body[11] = "";
    struct load_expect_body state;

    for (unsigned t = 2; t < 64; t++) {
        struct load_expect expect = {0};
        unsigned length = 31 - (unsigned)__builtin_clz(t);

        for (unsigned i = 0; i < length; i++)
            text[i] = (char)('a' + (t >> i & 1));
        text[length] = '\0';
        ck_assert_ptr_null(load_expect_set_body(&expect, text));
        for (unsigned b = 0; b < 1024; b++) {
            for (unsigned i = 0; i < 10; i++)
                body[i] = (char)('a' + (b >> i & 1));
            state = (struct load_expect_body){0};
            for (unsigned i = 0; i < 10; i++)
                load_expect_body_piece(&expect, &state, &body[i], 1);
            if (load_expect_accepts_body(&expect, &state) != (strstr(body, text) != NULL))
                ck_abort_msg("'%s' in '%s'", text, body);
        }
        load_expect_clear_body(&expect);
    }
}
END_TEST

static const char *
write_file(const char *bytes, size_t length)
{
    static char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/test-http-expect-%d", (int)getpid());
    file = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
    return path;
}

/* Expect exactly this body. */
static void
expect_whole(struct load_expect *expect, const char *bytes, size_t length)
{
    const char *path = write_file(bytes, length);
    char text[80];

    snprintf(text, sizeof(text), "@%s", path);
    ck_assert_ptr_null(load_expect_set_body(expect, text));
    unlink(path);
}

START_TEST(a_whole_body_is_equal_to_the_file)
{
    struct load_expect expect = {0};

    expect_whole(&expect, "hello", 5);
    check_body(&expect, "hello", true);
    check_body(&expect, "hell", false);
    check_body(&expect, "hello!", false);
    check_body(&expect, "jello", false);
    check_body(&expect, "", false);
    expect_whole(&expect, "", 0);
    check_body(&expect, "", true);
    check_body(&expect, "a", false);
    load_expect_clear_body(&expect);
}
END_TEST

START_TEST(a_file_may_be_large_and_have_any_byte)
{
    enum { LARGE = 100000, PIECE = 7777 };
    static char bytes[LARGE];
    struct load_expect expect = {0};
    struct load_expect_body state = {0};

    for (unsigned i = 0; i < LARGE; i++)
        bytes[i] = (char)(i * 31);
    expect_whole(&expect, bytes, LARGE);
    ck_assert_uint_eq(expect.body_length, LARGE);
    for (unsigned i = 0; i < LARGE; i += PIECE)
        ck_assert(load_expect_body_piece(&expect, &state, bytes + i,
                                         LARGE - i < PIECE ? LARGE - i : PIECE));
    ck_assert(load_expect_accepts_body(&expect, &state));
    load_expect_clear_body(&expect);
}
END_TEST

START_TEST(any_body_is_good_if_nothing_is_expected)
{
    struct load_expect expect = {0};

    check_body(&expect, "anything", true);
}
END_TEST

START_TEST(the_longest_text_is_taken_and_no_longer_one)
{
    static char text[LOAD_EXPECT_TEXT_MAX + 2];
    struct load_expect expect = {0};

    memset(text, 'a', sizeof(text) - 1);
    ck_assert_ptr_nonnull(strstr(load_expect_set_body(&expect, text), "longer than 65535 bytes"));
    text[LOAD_EXPECT_TEXT_MAX] = '\0';
    ck_assert_ptr_null(load_expect_set_body(&expect, text));
    ck_assert(feed(&expect, text, 1, 60000));
    text[0] = 'b';
    ck_assert(!feed(&expect, text + 1, 1, 60000));
    load_expect_clear_body(&expect);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_says_why)
{
    struct load_expect expect = {0};

    ck_assert_str_eq(load_expect_set_body(&expect, "@/none/there"),
                     "'/none/there': No such file or directory");
    ck_assert_str_eq(load_expect_set_body(&expect, "@/"), "'/': Is a directory");
    ck_assert(expect.body == NULL);
}
END_TEST

START_TEST(without_memory_nothing_is_expected)
{
    char text[80];
    struct load_expect expect = {0};
    static char bytes[40000];

    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_str_eq(load_expect_set_body(&expect, "hello"), "out of memory");
    snprintf(text, sizeof(text), "@%s", write_file(bytes, sizeof(bytes)));
    fake_os_fail(FAKE_MALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_nonnull(strstr(load_expect_set_body(&expect, text), "Cannot allocate memory"));
    fake_os_fail(FAKE_REALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_nonnull(strstr(load_expect_set_body(&expect, text), "Cannot allocate memory"));
    ck_assert(expect.body == NULL);
    unlink(text + 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-expect");
    TCase *tcase = tcase_create("expect");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, statuses_are_those_of_the_list, 0, COUNT(statuses));
    tcase_add_loop_test(tcase, other_texts_are_no_statuses, 0, COUNT(bad_statuses));
    tcase_add_test(tcase, statuses_of_several_options_are_added);
    tcase_add_loop_test(tcase, each_expected_field_must_be_there, 0, COUNT(expected));
    tcase_add_loop_test(tcase, what_is_no_field_is_refused, 0, 7);
    tcase_add_test(tcase, the_last_field_that_fits_is_taken);
    tcase_add_loop_test(tcase, a_text_is_found_across_pieces, 0, COUNT(searches));
    tcase_add_test(tcase, all_short_texts_are_found_as_strstr_does);
    tcase_add_test(tcase, a_whole_body_is_equal_to_the_file);
    tcase_add_test(tcase, a_file_may_be_large_and_have_any_byte);
    tcase_add_test(tcase, any_body_is_good_if_nothing_is_expected);
    tcase_add_test(tcase, the_longest_text_is_taken_and_no_longer_one);
    tcase_add_test(tcase, a_file_that_cannot_be_read_says_why);
    tcase_add_test(tcase, without_memory_nothing_is_expected);
    return sxe_test_main(suite);
}
