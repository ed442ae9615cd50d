/* SPDX-License-Identifier: MIT
 *
 * Static files: conditional requests, ranges, and content codings that lie beside a file.
 */
#include "http-file-site.h"
#include "test-main.h"

enum { SMALL = 1000, LARGE = 200000 };

/* A small file is kept in memory, a large one is sent by sendfile. */
static const size_t sizes[] = {SMALL, LARGE};

static const char *
etag_of(const char *path)
{
    static char etag[64];

    get(path, "");
    snprintf(etag, sizeof(etag), "%s", field("ETag"));
    return etag;
}

/* A field line that ends with the value. */
static const char *
line(const char *before, const char *value)
{
    static char text[4][512];
    static unsigned turn_of;
    char *room = text[turn_of++ % 4];

    snprintf(room, sizeof(text[0]), "%s%s\r\n", before, value);
    return room;
}

/* ---- Conditions ---- */

START_TEST(who_has_it_gets_304_with_its_validators)
{
    const char *etag;

    put_large("a.txt", sizes[_i]);
    serve(NULL);
    etag = etag_of("/a.txt");
    get("/a.txt", line("If-None-Match: \"x\", W/", etag));
    ck_assert_uint_eq(reply.status, 304);
    ck_assert_str_eq(field("ETag"), etag);
    ck_assert_str_eq(field("Last-Modified"), OLD_TEXT);
    ck_assert_ptr_null(field("Content-Type"));
    ck_assert_ptr_null(field("Content-Length"));
    get("/a.txt", "If-Modified-Since: " OLD_TEXT "\r\n");
    ck_assert_uint_eq(reply.status, 304);
    ask("HEAD", "/a.txt", "If-Modified-Since: " OLD_TEXT "\r\n");
    ck_assert_uint_eq(reply.status, 304);
    get("/a.txt", "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n");
    ck_assert_uint_eq(reply.status, 200);
    get("/a.txt", "If-None-Match: \"x\"\r\nIf-Modified-Since: " OLD_TEXT "\r\n");
    ck_assert_uint_eq(reply.status, 200);
    end_site();
}
END_TEST

START_TEST(a_condition_that_fails_is_412)
{
    const char *etag;

    put_file("a.txt", "a");
    serve(NULL);
    etag = etag_of("/a.txt");
    get("/a.txt", "If-Match: \"x\"\r\n");
    ck_assert_uint_eq(reply.status, 412);
    ck_assert_ptr_null(field("ETag"));
    get("/a.txt", line("If-Match: ", etag));
    ck_assert_uint_eq(reply.status, 200);
    get("/a.txt", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n");
    ck_assert_uint_eq(reply.status, 412);
    get("/a.txt", "If-Unmodified-Since: " OLD_TEXT "\r\n");
    ck_assert_uint_eq(reply.status, 200);
    get("/none", "If-Match: *\r\n");
    ck_assert_uint_eq(reply.status, 404);
    end_site();
}
END_TEST

START_TEST(a_file_of_the_future_was_modified_now)
{
    const char *date;

    put_file("a.txt", "a");
    set_time("a.txt", OLD + 100 * 365 * 86400l, 0);
    serve(NULL);
    get("/a.txt", "");
    ck_assert_uint_eq(reply.status, 200);
    date = field("Date");
    ck_assert_str_eq(field("Last-Modified"), date);
    get("/a.txt", line("Range: bytes=0-0\r\nIf-Range: ", date));
    ck_assert_uint_eq(reply.status, 200);
    end_site();
}
END_TEST

START_TEST(a_file_that_changes_in_any_way_has_another_tag)
{
    char before[64];

    put_file("a.txt", "a");
    put_file("c.txt", "ab");
    serve(NULL);
    snprintf(before, sizeof(before), "%s", etag_of("/a.txt"));
    ck_assert_str_ne(etag_of("/c.txt"), before);
    set_time("a.txt", OLD, 1);
    grow_old();
    ck_assert_str_ne(etag_of("/a.txt"), before);
    end_site();
}
END_TEST

/* ---- One range ---- */

static const struct {
    const char *range;
    size_t first;
    size_t length;
} ranges[] = {
    {"0-0", 0, 1},        {"0-99", 0, 100},    {"5-", 5, SMALL - 5},
    {"-1", SMALL - 1, 1}, {"-5000", 0, SMALL}, {"999-", 999, 1},
    {"999-5000", 999, 1}, {"0-", 0, SMALL},    {"100-199,150-299", 100, 200},
};

START_TEST(one_range_is_206)
{
    char content_range[100];
    size_t first = ranges[_i].first;
    size_t length = ranges[_i].length;

    put_large("a.txt", SMALL);
    serve(&(struct sxe_http_files_config){.small_max = 500 + (_i & 1) * 1000});
    snprintf(content_range, sizeof(content_range), "bytes %zu-%zu/%d", first, first + length - 1,
             SMALL);
    get("/a.txt", line("Range: bytes=", ranges[_i].range));
    ck_assert_uint_eq(reply.status, 206);
    ck_assert_str_eq(field("Content-Range"), content_range);
    ck_assert_str_eq(field("Content-Type"), "text/plain; charset=utf-8");
    ck_assert_ptr_nonnull(field("ETag"));
    ck_assert_uint_eq(reply.length, length);
    ck_assert_uint_eq(matching(reply.body, first, length), length);
    end_site();
}
END_TEST

START_TEST(a_range_that_is_not_there_or_malformed_is_416)
{
    put_large("a.txt", SMALL);
    put_file("empty", "");
    serve(NULL);
    get("/a.txt", "Range: bytes=1000-\r\n");
    ck_assert_uint_eq(reply.status, 416);
    ck_assert_str_eq(field("Content-Range"), "bytes */1000");
    get("/a.txt", "Range: bytes=-0\r\n");
    ck_assert_uint_eq(reply.status, 416);
    get("/a.txt", "Range: bytes=5-4\r\n");
    ck_assert_uint_eq(reply.status, 416);
    get("/a.txt", "Range: bytes=x\r\n");
    ck_assert_uint_eq(reply.status, 416);
    ck_assert_str_eq(field("Content-Range"), "bytes */1000");
    get("/empty", "Range: bytes=0-\r\n");
    ck_assert_uint_eq(reply.status, 416);
    ck_assert_str_eq(field("Content-Range"), "bytes */0");
    end_site();
}
END_TEST

static const char *const ignored[] = {
    "Range: lines=1-2\r\n",
    "Range: bytes=0-,0-0\r\n",
    "Range: bytes=0-0\r\nIf-Range: \"other\"\r\n",
    "Range: bytes=0-0\r\nIf-Range: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
    "Range: bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,26-26,28-28,"
    "30-30,32-32\r\n",
};

START_TEST(what_cannot_be_had_in_ranges_is_had_whole)
{
    put_large("a.txt", SMALL);
    serve(NULL);
    get("/a.txt", ignored[_i]);
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_uint_eq(reply.length, SMALL);
    end_site();
}
END_TEST

START_TEST(if_range_with_the_right_tag_or_date_gets_the_range)
{
    put_large("a.txt", SMALL);
    serve(NULL);
    get("/a.txt", line("Range: bytes=0-0\r\nIf-Range: ", etag_of("/a.txt")));
    ck_assert_uint_eq(reply.status, 206);
    get("/a.txt", "Range: bytes=0-0\r\nIf-Range: " OLD_TEXT "\r\n");
    ck_assert_uint_eq(reply.status, 206);
    end_site();
}
END_TEST

/* ---- Several ranges ---- */

/* At `at` there must be one part with this range; returns what follows it. */
static const char *
expect_part(const char *at, const char *boundary, size_t first, size_t length, size_t size)
{
    char head[400];

    snprintf(head, sizeof(head),
             "--%s\r\nContent-Type: text/plain; charset=utf-8\r\n"
             "Content-Range: bytes %zu-%zu/%zu\r\n\r\n",
             boundary, first, first + length - 1, size);
    ck_assert_mem_eq(at, head, strlen(head));
    at += strlen(head);
    ck_assert_uint_eq(matching(at, first, length), length);
    ck_assert_mem_eq(at + length, "\r\n", 2);
    return at + length + 2;
}

START_TEST(several_ranges_are_parts)
{
    size_t size = sizes[_i];
    const char *type;
    char boundary[64];
    char last[80];
    const char *at;

    put_large("a.txt", size);
    serve(NULL);
    get("/a.txt", "Range: bytes=0-9, 100-299 ,-5\r\n");
    ck_assert_uint_eq(reply.status, 206);
    ck_assert_ptr_null(field("Content-Range"));
    ck_assert_ptr_nonnull(field("ETag"));
    type = field("Content-Type");
    ck_assert_int_eq(sscanf(type, "multipart/byteranges; boundary=%63s", boundary), 1);
    at = expect_part(reply.body, boundary, 0, 10, size);
    at = expect_part(at, boundary, 100, 200, size);
    at = expect_part(at, boundary, size - 5, 5, size);
    snprintf(last, sizeof(last), "--%s--\r\n", boundary);
    ck_assert_str_eq(at, last);
    get("/a.txt", "Range: bytes=0-9, 100-299 ,-5\r\n");
    ck_assert_str_ne(field("Content-Type"), type);
    end_site();
}
END_TEST

START_TEST(parts_of_a_file_in_memory_may_be_more_than_may_be_copied)
{
    enum { MUCH = 3000000 };
    char boundary[64];
    const char *at;

    put_large("a.txt", MUCH);
    serve(&(struct sxe_http_files_config){.small_max = MUCH});
    get("/a.txt", "Range: bytes=0-999999,1500000-2999999\r\n");
    ck_assert_uint_eq(reply.status, 206);
    ck_assert_int_eq(sscanf(field("Content-Type"), "multipart/byteranges; boundary=%63s", boundary),
                     1);
    at = expect_part(reply.body, boundary, 0, 1000000, MUCH);
    expect_part(at, boundary, 1500000, 1500000, MUCH);
    end_site();
}
END_TEST

/* ---- Limits on the number of ranges ---- */

/* A Range field with `number` ranges of five bytes each, as far apart as possible. */
static const char *
spread(unsigned number, size_t size)
{
    static char text[16000];
    size_t step = size / number;
    int length = snprintf(text, sizeof(text), "Range: bytes=");

    for (unsigned i = 0; i < number; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%zu-%zu",
                           i == 0 ? "" : ",", i * step, i * step + 4);
    snprintf(text + length, sizeof(text) - (size_t)length, "\r\n");
    return text;
}

static void
expect_parts(unsigned number, size_t size)
{
    char boundary[64];
    const char *at = reply.body;

    ck_assert_uint_eq(reply.status, 206);
    ck_assert_int_eq(sscanf(field("Content-Type"), "multipart/byteranges; boundary=%63s", boundary),
                     1);
    for (unsigned i = 0; i < number; i++)
        at = expect_part(at, boundary, i * (size / number), 5, size);
    ck_assert_int_eq(memcmp(at, "--", 2), 0);
    ck_assert_uint_eq(reply.length, (size_t)(at - reply.body) + strlen(boundary) + 6);
}

static const struct {
    uint32_t ranges_max;
    unsigned number;
} numbers[] = {{0, 16}, {2, 2}, {17, 17}, {256, 256}};

START_TEST(as_many_ranges_as_the_setting_says_are_parts_and_one_more_is_all)
{
    unsigned number = numbers[_i / 2].number;
    size_t size = _i % 2 == 0 ? 5000 : LARGE;

    put_large("a.txt", size);
    serve(&(struct sxe_http_files_config){.ranges_max = numbers[_i / 2].ranges_max});
    get("/a.txt", spread(number, size));
    expect_parts(number, size);
    get("/a.txt", spread(number + 1, size));
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_uint_eq(reply.length, size);
    end_site();
}
END_TEST

START_TEST(ranges_that_are_not_there_do_not_count)
{
    put_large("a.txt", SMALL);
    serve(&(struct sxe_http_files_config){.ranges_max = 2});
    get("/a.txt", "Range: bytes=0-4,500-504,1000-\r\n");
    expect_parts(2, SMALL);
    get("/a.txt", "Range: bytes=1000-,2000-,3000-\r\n");
    ck_assert_uint_eq(reply.status, 416);
    end_site();
}
END_TEST

START_TEST(with_one_range_at_most_two_get_all)
{
    put_large("a.txt", SMALL);
    serve(&(struct sxe_http_files_config){.ranges_max = 1});
    get("/a.txt", "Range: bytes=5-9\r\n");
    ck_assert_uint_eq(reply.status, 206);
    ck_assert_str_eq(field("Accept-Ranges"), "bytes");
    ck_assert_mem_eq(reply.body, (char[]){byte_at(5)}, 1);
    get("/a.txt", "Range: bytes=0-0,2-2\r\n");
    ck_assert_uint_eq(reply.status, 200);
    end_site();
}
END_TEST

START_TEST(without_ranges_all_is_sent_and_the_client_told)
{
    static const char *const asked[] = {"", "Range: bytes=0-0\r\n", "Range: bytes=x\r\n",
                                        "Range: bytes=1000000-\r\n",
                                        "Range: bytes=0-0\r\nIf-Range: \"x\"\r\n"};

    put_large("a.txt", sizes[_i]);
    serve(&(struct sxe_http_files_config){.no_ranges = true, .ranges_max = 5});
    for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        get("/a.txt", asked[i]);
        ck_assert_uint_eq(reply.status, 200);
        ck_assert_str_eq(field("Accept-Ranges"), "none");
        ck_assert_ptr_null(field("Content-Range"));
        ck_assert_uint_eq(reply.length, sizes[_i]);
    }
    get("/a.txt", line("Range: bytes=0-0\r\nIf-None-Match: ", etag_of("/a.txt")));
    ck_assert_uint_eq(reply.status, 304);
    get("/a.txt", "Range: bytes=0-0\r\nIf-Match: \"x\"\r\n");
    ck_assert_uint_eq(reply.status, 412);
    end_site();
}
END_TEST

START_TEST(without_randomness_several_ranges_get_all)
{
    put_large("a.txt", SMALL);
    serve(NULL);
    fake_os_fail(FAKE_GETRANDOM, 1, 0, EAGAIN);
    get("/a.txt", "Range: bytes=0-9,100-199\r\n");
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_uint_eq(reply.length, SMALL);
    end_site();
}
END_TEST

/* ---- Files in a content coding ---- */

START_TEST(a_sibling_is_sent_to_those_who_accept_it)
{
    char plain[64];

    put_file("a.js", "plain");
    put_file("a.js.gz", "gz bytes");
    put_file("a.js.br", "br bytes");
    put_file("a.js.zst", "zst bytes");
    serve(NULL);
    EXPECT_FILE("/a.js", "plain");
    ck_assert_str_eq(field("Vary"), "Accept-Encoding");
    ck_assert_ptr_null(field("Content-Encoding"));
    snprintf(plain, sizeof(plain), "%s", field("ETag"));
    get("/a.js", "Accept-Encoding: gzip, deflate, br, zstd\r\n");
    ck_assert_str_eq(reply.body, "br bytes");
    ck_assert_str_eq(field("Content-Encoding"), "br");
    ck_assert_str_eq(field("Content-Type"), "text/javascript; charset=utf-8");
    ck_assert_str_eq(field("Vary"), "Accept-Encoding");
    ck_assert_str_ne(field("ETag"), plain);
    get("/a.js", "Accept-Encoding: gzip, zstd\r\n");
    ck_assert_str_eq(reply.body, "zst bytes");
    ck_assert_str_eq(field("Content-Encoding"), "zstd");
    get("/a.js", "Accept-Encoding: gzip;q=1, br;q=0.5\r\n");
    ck_assert_str_eq(reply.body, "gz bytes");
    ck_assert_str_eq(field("Content-Encoding"), "gzip");
    get("/a.js", "Accept-Encoding: identity, br;q=0\r\n");
    ck_assert_str_eq(reply.body, "plain");
    get("/a.js", "Accept-Encoding: deflate\r\n");
    ck_assert_str_eq(reply.body, "plain");
    get("/a.js.gz", "Accept-Encoding: gzip\r\n");
    ck_assert_str_eq(reply.body, "gz bytes");
    ck_assert_str_eq(field("Content-Type"), "application/gzip");
    ck_assert_ptr_null(field("Content-Encoding"));
    end_site();
}
END_TEST

START_TEST(conditions_and_ranges_are_those_of_the_sibling)
{
    put_file("a.js", "plain");
    put_large("a.js.gz", LARGE);
    serve(NULL);
    get("/a.js", "Accept-Encoding: gzip\r\nRange: bytes=100000-100009\r\n");
    ck_assert_uint_eq(reply.status, 206);
    ck_assert_str_eq(field("Content-Range"), "bytes 100000-100009/200000");
    ck_assert_str_eq(field("Content-Encoding"), "gzip");
    ck_assert_uint_eq(matching(reply.body, 100000, 10), 10);
    get("/a.js", line("Accept-Encoding: gzip\r\nIf-None-Match: ", etag_of("/a.js")));
    ck_assert_uint_eq(reply.status, 200);
    get("/a.js", line("Accept-Encoding: gzip\r\nIf-None-Match: ", field("ETag")));
    ck_assert_uint_eq(reply.status, 304);
    ck_assert_str_eq(field("Vary"), "Accept-Encoding");
    get("/a.js", line("If-None-Match: ", field("ETag")));
    ck_assert_uint_eq(reply.status, 200);
    end_site();
}
END_TEST

START_TEST(an_index_has_siblings_too)
{
    put_file("index.html", "home");
    put_file("index.html.gz", "home gz");
    put_directory("d");
    put_file("d/index.html", "d");
    put_file("d/index.html.br", "d br");
    serve(NULL);
    get("/", "Accept-Encoding: gzip\r\n");
    ck_assert_str_eq(reply.body, "home gz");
    get("/d/", "Accept-Encoding: br\r\n");
    ck_assert_str_eq(reply.body, "d br");
    end_site();
}
END_TEST

START_TEST(what_is_older_or_no_file_is_no_sibling)
{
    put_file("a.js", "plain");
    set_time("a.js", OLD, 5);
    put_file("a.js.br", "br");
    set_time("a.js.br", OLD, 4);
    put_directory("a.js.gz");
    put_file("a.js.zst", "zst");
    set_time("a.js.zst", OLD - 1, 9);
    put_file("b.js", "plain");
    put_file("b.js.br", "br");
    set_time("b.js.br", OLD + 1, 0);
    put_link("c.js.br", "/etc/passwd");
    put_file("c.js", "plain");
    serve(NULL);
    get("/a.js", "Accept-Encoding: gzip, br, zstd\r\n");
    ck_assert_str_eq(reply.body, "plain");
    ck_assert_ptr_null(field("Vary"));
    get("/b.js", "Accept-Encoding: gzip, br, zstd\r\n");
    ck_assert_str_eq(reply.body, "br");
    get("/c.js", "Accept-Encoding: gzip, br, zstd\r\n");
    ck_assert_str_eq(reply.body, "plain");
    end_site();
}
END_TEST

START_TEST(a_sibling_that_goes_or_ages_meanwhile_is_not_sent)
{
    put_file("a.js", "plain");
    put_file("a.js.br", "br");
    serve(NULL);
    EXPECT_FILE("/a.js", "plain");
    ck_assert_int_eq(unlink(path_of("a.js.br")), 0);
    get("/a.js", "Accept-Encoding: br\r\n");
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_str_eq(reply.body, "plain");
    put_file("a.js.br", "old");
    set_time("a.js.br", OLD - 1, 0);
    get("/a.js", "Accept-Encoding: br\r\n");
    ck_assert_str_eq(reply.body, "plain");
    ck_assert_ptr_null(field("Content-Encoding"));
    end_site();
}
END_TEST

START_TEST(siblings_are_not_looked_for_when_that_is_not_wanted)
{
    put_file("a.js", "plain");
    put_file("a.js.br", "br");
    serve(&(struct sxe_http_files_config){.no_siblings = true});
    get("/a.js", "Accept-Encoding: br\r\n");
    ck_assert_str_eq(reply.body, "plain");
    ck_assert_ptr_null(field("Vary"));
    end_site();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-file-part");
    TCase *tcase = tcase_create("http-file-part");

    tcase_add_checked_fixture(tcase, begin_site, NULL);
    tcase_add_loop_test(tcase, who_has_it_gets_304_with_its_validators, 0, 2);
    tcase_add_test(tcase, a_condition_that_fails_is_412);
    tcase_add_test(tcase, a_file_of_the_future_was_modified_now);
    tcase_add_test(tcase, a_file_that_changes_in_any_way_has_another_tag);
    tcase_add_loop_test(tcase, one_range_is_206, 0, sizeof(ranges) / sizeof(ranges[0]));
    tcase_add_test(tcase, a_range_that_is_not_there_or_malformed_is_416);
    tcase_add_loop_test(tcase, what_cannot_be_had_in_ranges_is_had_whole, 0,
                        sizeof(ignored) / sizeof(ignored[0]));
    tcase_add_test(tcase, if_range_with_the_right_tag_or_date_gets_the_range);
    tcase_add_loop_test(tcase, several_ranges_are_parts, 0, 2);
    tcase_add_test(tcase, parts_of_a_file_in_memory_may_be_more_than_may_be_copied);
    tcase_add_loop_test(tcase, as_many_ranges_as_the_setting_says_are_parts_and_one_more_is_all, 0,
                        2 * sizeof(numbers) / sizeof(numbers[0]));
    tcase_add_test(tcase, ranges_that_are_not_there_do_not_count);
    tcase_add_test(tcase, with_one_range_at_most_two_get_all);
    tcase_add_loop_test(tcase, without_ranges_all_is_sent_and_the_client_told, 0, 2);
    tcase_add_test(tcase, without_randomness_several_ranges_get_all);
    tcase_add_test(tcase, a_sibling_is_sent_to_those_who_accept_it);
    tcase_add_test(tcase, conditions_and_ranges_are_those_of_the_sibling);
    tcase_add_test(tcase, an_index_has_siblings_too);
    tcase_add_test(tcase, what_is_older_or_no_file_is_no_sibling);
    tcase_add_test(tcase, a_sibling_that_goes_or_ages_meanwhile_is_not_sent);
    tcase_add_test(tcase, siblings_are_not_looked_for_when_that_is_not_wanted);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
