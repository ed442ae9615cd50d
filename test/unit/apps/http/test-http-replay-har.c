/* SPDX-License-Identifier: MIT
 *
 * HAR files: entries that become requests, with their fields and bodies, and those that do not.
 */
#include <errno.h>

#include "fake-os.h"
#include "replay-file.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define HAR(entries) "{\"log\": {\"version\": \"1.2\", \"entries\": [" entries "]}}"
#define AT           "{\"startedDateTime\": \"2026-01-02T03:04:05.678Z\", \"request\": "
#define GET(url)     AT "{\"method\": \"GET\", \"url\": \"" url "\"}}"
#define FIELDS(list) AT "{\"method\": \"GET\", \"url\": \"http://h/\", \"headers\": [" list "]}}"

static const struct {
    const char *title;
    const char *entry;
    const char *request;
} good[] = {
    {"a GET", GET("http://www.example.com/a?b"),
     "GET /a?b HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "\r\n"},
    {"https is sent as http", GET("HTTPS://www:444/a"),
     "GET /a HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "\r\n"},
    {"a fragment stays here", GET("http://h/a?b#c/d"),
     "GET /a?b HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "\r\n"},
    {"no path", GET("http://h"), "GET / HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "\r\n"},
    {"no path but a fragment", GET("http://h#/a"),
     "GET / HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "\r\n"},
    {"escapes of JSON", GET("http://h/\\u0061\\/b"),
     "GET /a/b HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "\r\n"},
    {"its fields",
     FIELDS("{\"name\": \"X-A\", \"value\": \"1\"}, {\"name\": \"x-b\", \"value\": \"\"}"),
     "GET / HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "X-A: 1\r\nx-b: \r\n\r\n"},
    {"instead of ours",
     FIELDS("{\"name\": \"accept\", \"value\": \"a/b\"}, "
            "{\"name\": \"User-agent\", \"value\": \"me\"}"),
     "GET / HTTP/1.1\r\nHost: h:1\r\naccept: a/b\r\nUser-agent: me\r\n\r\n"},
    {"not those of a connection",
     FIELDS("{\"name\": \"Connection\", \"value\": \"close\"}, {\"name\": \"TE\", \"value\": \"a\"}"
            ", {\"name\": \"upgrade\", \"value\": \"h2c\"}, {\"name\": \"Host\", \"value\": \"w\"}"
            ", {\"name\": \"Content-Length\", \"value\": \"9\"}"
            ", {\"name\": \"Transfer-Encoding\", \"value\": \"chunked\"}"
            ", {\"name\": \"HTTP2-Settings\", \"value\": \"a\"}"
            ", {\"name\": \"Expect\", \"value\": \"100-continue\"}"),
     "GET / HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "\r\n"},
    {"not those of HTTP/2",
     FIELDS("{\"name\": \":method\", \"value\": \"GET\"}, {\"name\": \":path\", \"value\": \"/\"}"
            ", {\"name\": \"a\", \"value\": \"b\"}"),
     "GET / HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "a: b\r\n\r\n"},
    {"a body",
     AT "{\"method\": \"POST\", \"url\": \"http://h/p\", \"postData\": "
        "{\"mimeType\": \"a\", \"text\": \"x\\u0000\\u00e9\"}}}",
     "POST /p HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT
     "Content-Type: a\r\nContent-Length: 4\r\n\r\nx"},
    {"a body's type that the fields say",
     AT
     "{\"method\": \"POST\", \"url\": \"http://h/p\", \"headers\": [{\"name\": \"X-A\", \"value\": "
     "\"1\"}, {\"name\": \"content-type\", \"value\": \"b\"}], \"postData\": {\"mimeType\": \"a\", "
     "\"text\": \"x\"}}}",
     "POST /p HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT
     "X-A: 1\r\ncontent-type: b\r\nContent-Length: 1\r\n\r\nx"},
    {"params of a form",
     AT "{\"method\": \"POST\", \"url\": \"http://h/p\", \"postData\": "
        "{\"mimeType\": \"Application/x-www-form-urlencoded; charset=UTF-8\", \"text\": \"\", "
        "\"params\": [{\"name\": \"a b\", \"value\": \"1&2=%\\u00e9*-._\"}, {\"name\": \"c\"}, "
        "{\"name\": \"\", \"value\": \"\\u0001\"}]}}}",
     "POST /p HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT
     "Content-Type: Application/x-www-form-urlencoded; charset=UTF-8\r\nContent-Length: 33\r\n\r\n"
     "a+b=1%262%3D%25%C3%A9*-._&c=&=%01"},
    {"text, and not the params beside it",
     AT "{\"method\": \"POST\", \"url\": \"http://h/p\", \"postData\": "
        "{\"text\": \"a=b\", \"params\": [{\"name\": \"c\", \"value\": \"d\"}]}}}",
     "POST /p HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "Content-Length: 3\r\n\r\na=b"},
    {"an empty body", AT "{\"method\": \"PUT\", \"url\": \"http://h/p\", \"postData\": {}}}",
     "PUT /p HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "Content-Length: 0\r\n\r\n"},
    {"HEAD", AT "{\"method\": \"HEAD\", \"url\": \"http://h/p\"}}",
     "HEAD /p HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT "\r\n"},
    {"braces are no placeholders here",
     AT "{\"method\": \"PUT\", \"url\": \"http://h/\", \"headers\": [{\"name\": \"a\", "
        "\"value\": \"{SEQ}\"}], \"postData\": {\"text\": \"{UUID}{SEQ:0}\"}}}",
     "PUT / HTTP/1.1\r\nHost: h:1\r\n" REPLAY_AGENT
     "a: {SEQ}\r\nContent-Length: 13\r\n\r\n{UUID}{SEQ:0}"},
};

/* The body contains a NUL, so it is compared by its length, not as text. */
START_TEST(entries_are_requests)
{
    char text[4096];
    struct load_query query;
    size_t length = strlen(good[_i].request);

    snprintf(text, sizeof(text), HAR("%s"), good[_i].entry);
    ck_assert_msg(replay_text(text), "%s: %s", good[_i].title, replay_said);
    ck_assert_str_eq(replay_said, "");
    ck_assert_uint_eq(replay->number, 1);
    ck_assert_int_eq(replay->begin(replay, 0, 1, 1), 0);
    ck_assert_int_eq(replay->next(replay, 0, &query), 0);
    if (strstr(good[_i].entry, "u0000") == NULL)
        check_replayed(0, good[_i].request);
    else
        ck_assert(query.length == length + 3 &&
                  memcmp(query.bytes, good[_i].request, length) == 0 &&
                  memcmp(query.bytes + length, "\0\xc3\xa9", 3) == 0);
    load_replay_free(replay);
}
END_TEST

static const struct {
    const char *entry;
    const char *says;
} bad[] = {
    {"1", "it has no startedDateTime, or no request"},
    {"{}", "it has no startedDateTime, or no request"},
    {"{\"startedDateTime\": 1, \"request\": {\"method\": \"GET\", \"url\": \"http://h/\"}}",
     "it has no startedDateTime"},
    {"{\"startedDateTime\": \"1 Jan\", \"request\": {\"method\": \"GET\", \"url\": \"http://h/\"}}",
     "it has no startedDateTime"},
    {AT "{\"url\": \"http://h/\"}}", "it has no method"},
    {AT "{\"method\": \"\", \"url\": \"http://h/\"}}", "it has no method"},
    {AT "{\"method\": \"GET\"}}", "or no request"},
    {AT "{\"method\": \"CONNECT\", \"url\": \"http://h/\"}}", "CONNECT makes a tunnel"},
    {AT "{\"method\": \"G T\", \"url\": \"http://h/\"}}", "'G T' is no method"},
    {AT "{\"method\": \"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF\", \"url\": \"http://h/\"}}",
     "it has one method too many"},
    {AT "{\"method\": \"POST\", \"url\": \"http://h/\", \"postData\": {\"mimeType\": "
        "\"multipart/form-data\", \"params\": [{\"name\": \"a\", \"value\": \"b\"}]}}}",
     "its body is params that are no HTML form's, without text"},
    {AT "{\"method\": \"POST\", \"url\": \"http://h/\", \"postData\": {\"params\": [{}]}}}",
     "its body is params that are no HTML form's, without text"},
    {AT "{\"method\": \"POST\", \"url\": \"http://h/\", \"postData\": {\"mimeType\": "
        "\"application/x-www-form-urlencoded\", \"params\": [{\"value\": \"b\"}]}}}",
     "a param of its body has no name"},
    {GET("http://h/a b"), "'/a b' is no target"},
    {GET("http://h/\\u0000"), "is no target"},
    {FIELDS("{\"name\": \"a b\", \"value\": \"1\"}"), "'a b: 1' is no header"},
    {FIELDS("{\"name\": \"\", \"value\": \"1\"}"), "': 1' is no header"},
    {FIELDS("{\"name\": \"a\"}"), "or fields without name and value"},
    {FIELDS("{\"value\": \"a\"}"), "or fields without name and value"},
    {FIELDS("1"), "or fields without name and value"},
    {GET(""), "its url is none of http:// or https://, with a host"},
    {GET("/a"), "its url is none of"},
    {GET("htp://h/a"), "its url is none of"},
    {GET("http:/h/a"), "its url is none of"},
    {GET("http://"), "its url is none of"},
    {GET("http:///a"), "its url is none of"},
    {GET("http://?a"), "its url is none of"},
    {GET("https://h?a=/b"), "its url is none of"},
    {GET("dat"), "its url is none of"},
};

START_TEST(other_entries_are_refused_and_named)
{
    char text[4096];

    snprintf(text, sizeof(text), HAR("%s"), bad[_i].entry);
    ck_assert_msg(!replay_text(text), "%s", bad[_i].entry);
    ck_assert_ptr_nonnull(strstr(replay_said,
                                 "1 of 1 entries are not requests; the first is number "
                                 "1: "));
    ck_assert_msg(strstr(replay_said, bad[_i].says) != NULL, "%s: %s", bad[_i].entry, replay_said);
}
END_TEST

/* Print a HAR file up to the fields of its only entry, `number` of them. */
static int
print_fields(char *text, size_t room, unsigned number)
{
    int length = snprintf(text, room,
                          "{\"log\": {\"entries\": [" AT "{\"method\": \"POST\", \"url\": "
                          "\"http://h/\", \"headers\": [");

    for (unsigned i = 0; i < number; i++)
        length += snprintf(text + length, room - (size_t)length,
                           "%s{\"name\": \"a\", \"value\": \"1\"}", i > 0 ? ", " : "");
    return length;
}

/* With 254 fields there is no room for a Content-Type, which would be the 255th. */
START_TEST(an_entry_with_all_fields_has_no_room_for_a_type)
{
    char text[16000] = "";
    int length = print_fields(text, sizeof(text), 254);

    snprintf(text + length, sizeof(text) - (size_t)length,
             "], \"postData\": {\"mimeType\": \"a\", \"text\": \"x\"}}}]}}");
    ck_assert(!replay_text(text));
    ck_assert_ptr_nonnull(strstr(replay_said, "1 of 1 entries are not requests"));
}
END_TEST

START_TEST(what_was_not_sent_over_http_is_passed_over)
{
    ck_assert(replay_text(HAR(GET("data:image/png;base64,AA") "," GET("ws://h/") "," GET(
        "moz-extension://a/") "," GET("http://h/a") "," GET("blob:http://h/a"))));
    ck_assert_ptr_nonnull(strstr(replay_said,
                                 "': 4 entries cannot be replayed and are left out: their URLs "
                                 "name no HTTP server (data:, blob:, ws: ...)\n"));
    ck_assert_uint_eq(replay->number, 1);
    load_replay_free(replay);
}
END_TEST

static const struct {
    const char *text;
    const char *says;
} no_har[] = {
    {"{", "it begins as HAR, but line 1 is not JSON: "},
    {"{\n\"a\": \xff}", "it begins as HAR, but line 2 is not JSON: "},
    {"{} x", "it begins as HAR, but line 1 is not JSON: "},
    {"{}", "it is JSON, but not HAR: there is no log.entries"},
    {"{\"log\": {}}", "there is no log.entries"},
    {"{\"log\": [{\"entries\": []}]}", "there is no log.entries"},
    {"{\"log\": {\"entries\": {}}}", "there is no log.entries"},
    {HAR(""), "it contains no requests"},
    {"\xef\xbb\xbf\r\n " HAR(""), "it contains no requests"},
};

START_TEST(what_is_not_har_says_why)
{
    ck_assert(!replay_text(no_har[_i].text));
    ck_assert_msg(strstr(replay_said, no_har[_i].says) != NULL, "%s", replay_said);
}
END_TEST

START_TEST(entries_are_in_order_of_their_times)
{
    static const char *const times[] = {
        "2026-01-02T00:00:00.500+00:00", "2026-01-02T01:00:00.25+01:00",
        "2026-01-01T20:00:00.750123456-0400", "2026-01-02T00:00:00.500Z", "2026-01-02T00:01:00Z"};
    static const unsigned order[] = {1, 0, 3, 2, 4};
    static const uint64_t due[] = {0, 250000000, 250000000, 500123456, UINT64_C(59750000000)};
    char text[2048] = "";
    char wanted[20];
    struct load_query query;

    for (unsigned i = 0; i < 5; i++)
        snprintf(text + strlen(text), 200,
                 "%s{\"startedDateTime\": \"%s\", \"request\": {\"method\": "
                 "\"GET\", \"url\": \"http://h/%u\"}}",
                 i == 0 ? "{\"log\": {\"entries\": [" : ",", times[i], i);
    snprintf(text + strlen(text), 20, "]}}");
    ck_assert_msg(replay_text(text), "%s", replay_said);
    for (unsigned i = 0; i < 5; i++) {
        snprintf(wanted, sizeof(wanted), "GET /%u ", order[i]);
        ck_assert_int_eq(replay->next(replay, i, &query), 0);
        ck_assert_mem_eq(query.bytes, wanted, strlen(wanted));
        ck_assert_uint_eq(replay->times_ns[i], due[i]);
    }
    load_replay_free(replay);
}
END_TEST

START_TEST(the_command_lines_fields_replace_those_of_the_file)
{
    static const char *const fields[] = {"X-A: {SEQ:2}", "Accept:", "Host: w"};
    const struct load_template_options options = {.fields = fields, .fields_number = 3};
    static const char text[] = HAR(
        FIELDS("{\"name\": \"x-a\", \"value\": \"1\"}, {\"name\": \"accept\", \"value\": \"2\"}, "
               "{\"name\": \"User-Agent\", \"value\": \"3\"}"));

    ck_assert(replay_bytes(text, strlen(text), &options, 1, 10));
    ck_assert_int_eq(replay->begin(replay, 0, 1, 1), 0);
    check_replayed(0, "GET / HTTP/1.1\r\nHost: w\r\nUser-Agent: 3\r\nX-A: 00\r\n\r\n");
    load_replay_free(replay);
}
END_TEST

/* ---- Large ones ---- */

enum { ENTRIES = 600 };

static char *
many_entries(void)
{
    char *text = malloc(ENTRIES * 200);
    size_t length = 0;

    for (unsigned i = 0; i < ENTRIES; i++)
        length += (size_t)snprintf(text + length, 200, "%s" GET("http://h/%u"),
                                   i == 0 ? "{\"log\": {\"entries\": [" : ",", i);
    memcpy(text + length, "]}}", 4);
    return text;
}

START_TEST(blocks_of_any_size_are_put_together)
{
    char *text = many_entries();
    struct load_query query;

    for (size_t limit = 5; limit < 5000; limit += 999) {
        fake_os_limit(FAKE_READ, limit);
        ck_assert(replay_text(text));
        ck_assert_uint_eq(replay->number, ENTRIES);
        ck_assert_int_eq(replay->next(replay, ENTRIES - 1, &query), 0);
        ck_assert_mem_eq(query.bytes, "GET /599 ", 9);
        load_replay_free(replay);
    }
    free(text);
}
END_TEST

START_TEST(what_follows_the_limit_is_left_out)
{
    static const struct load_template_options options = {0};
    char *text = many_entries();

    ck_assert(replay_bytes(text, strlen(text), &options, 1, 500));
    ck_assert_uint_eq(replay->number, 500);
    ck_assert_ptr_nonnull(strstr(replay_said, "the requests after the first 500 are left out"));
    load_replay_free(replay);
    free(text);
}
END_TEST

START_TEST(there_are_as_many_fields_as_a_request_may_have)
{
    static char text[300 * 40];
    size_t length;

    for (unsigned number = 251; number <= 256; number++) {
        length = (size_t)snprintf(text, 200,
                                  "{\"log\": {\"entries\": [" AT
                                  "{\"method\": \"GET\", \"url\": \"http://h/\", "
                                  "\"headers\": [");
        for (unsigned i = 0; i < number; i++)
            length += (size_t)snprintf(text + length, 40, "%s{\"name\": \"a\", \"value\": \"b\"}",
                                       i == 0 ? "" : ",");
        snprintf(text + length, 40, "]}}]}}");
        ck_assert(replay_text(text) == (number <= 252)); /* sxe-http adds two fields */
        if (number <= 252)
            load_replay_free(replay);
    }
}
END_TEST

START_TEST(a_file_that_cannot_be_read_says_so)
{
    char *text = many_entries();

    fake_os_limit(FAKE_READ, 4096);
    for (unsigned nth = 1; nth < 5; nth++) {
        fake_os_fail(FAKE_READ, nth, 1, EIO);
        ck_assert(!replay_text(text));
        ck_assert_ptr_nonnull(strstr(replay_said, "cannot be replayed: Input/output error"));
    }
    free(text);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    static const enum fake_call allocations[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC};
    static const char text[] =
        HAR(AT "{\"method\": \"POST\", \"url\": \"http://h/\", \"postData\": {\"mimeType\": "
               "\"application/x-www-form-urlencoded\", \"params\": [{\"name\": \"b\"}]}}}");
    bool is_there;
    unsigned nth = 0;

    do {
        fake_os_reset();
        fake_os_sweep(allocations, 3, ++nth, false, ENOMEM);
        is_there = replay_text(text);
        ck_assert(is_there == (fake_os_injected() == 0));
        ck_assert(is_there || strstr(replay_said, "out of memory") != NULL);
    } while (!is_there);
    load_replay_free(replay);
    ck_assert_uint_gt(nth, 8);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-replay-har");
    TCase *tcase = tcase_create("har");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, entries_are_requests, 0, COUNT(good));
    tcase_add_loop_test(tcase, other_entries_are_refused_and_named, 0, COUNT(bad));
    tcase_add_test(tcase, an_entry_with_all_fields_has_no_room_for_a_type);
    tcase_add_test(tcase, what_was_not_sent_over_http_is_passed_over);
    tcase_add_loop_test(tcase, what_is_not_har_says_why, 0, COUNT(no_har));
    tcase_add_test(tcase, entries_are_in_order_of_their_times);
    tcase_add_test(tcase, the_command_lines_fields_replace_those_of_the_file);
    tcase_add_test(tcase, blocks_of_any_size_are_put_together);
    tcase_add_test(tcase, what_follows_the_limit_is_left_out);
    tcase_add_test(tcase, there_are_as_many_fields_as_a_request_may_have);
    tcase_add_test(tcase, a_file_that_cannot_be_read_says_so);
    tcase_add_test(tcase, each_allocation_may_fail);
    return sxe_test_main(suite);
}
