/* SPDX-License-Identifier: MIT
 *
 * Access logs: the lines that are understood, and those that are refused.
 */
#include <errno.h>

#include "fake-os.h"
#include "replay-file.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define BEFORE       "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "
#define AFTER        " 200 2326"
#define FIELDS       "Host: h:1\r\n" REPLAY_AGENT

static const struct {
    const char *title;
    const char *line;
    const char *request;
} good[] = {
    {"common", BEFORE "\"GET /a?b HTTP/1.0\"" AFTER, "GET /a?b HTTP/1.1\r\n" FIELDS "\r\n"},
    {"combined", BEFORE "\"GET / HTTP/1.1\"" AFTER " \"http://r/\" \"agent [x] \\\"y\\\"\"",
     "GET / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"with a virtual host before", "www:80 " BEFORE "\"GET / HTTP/1.1\"" AFTER,
     "GET / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"IPv6", "::1 - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\"" AFTER,
     "GET / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"a user with blanks and brackets",
     "::1 - a [b] c [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\"" AFTER,
     "GET / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"nothing after", BEFORE "\"GET / HTTP/1.1\"", "GET / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"HTTP/2", BEFORE "\"GET / HTTP/2.0\"" AFTER, "GET / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"CR LF", BEFORE "\"GET / HTTP/1.1\"" AFTER "\r", "GET / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"HEAD", BEFORE "\"HEAD / HTTP/1.1\"" AFTER, "HEAD / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"POST has an empty body", BEFORE "\"POST /p HTTP/1.1\"" AFTER,
     "POST /p HTTP/1.1\r\n" FIELDS "Content-Length: 0\r\n\r\n"},
    {"OPTIONS of the server", BEFORE "\"OPTIONS * HTTP/1.1\"" AFTER,
     "OPTIONS * HTTP/1.1\r\n" FIELDS "\r\n"},
    {"a method of its own", BEFORE "\"PROPFIND / HTTP/1.1\"" AFTER,
     "PROPFIND / HTTP/1.1\r\n" FIELDS "\r\n"},
    {"a target in absolute form", BEFORE "\"GET http://x/a HTTP/1.1\"" AFTER,
     "GET http://x/a HTTP/1.1\r\n" FIELDS "\r\n"},
    {"escapes of nginx", BEFORE "\"GET /?a=\\x27b\\x7e HTTP/1.1\"" AFTER,
     "GET /?a='b~ HTTP/1.1\r\n" FIELDS "\r\n"},
    {"escapes in capitals", BEFORE "\"GET /\\x7E HTTP/1.1\"" AFTER,
     "GET /~ HTTP/1.1\r\n" FIELDS "\r\n"},
    {"percent signs stay", BEFORE "\"GET /%7e%2F HTTP/1.1\"" AFTER,
     "GET /%7e%2F HTTP/1.1\r\n" FIELDS "\r\n"},
};

START_TEST(lines_of_logs_are_requests)
{
    ck_assert_msg(replay_text(good[_i].line), "%s: %s", good[_i].title, replay_said);
    ck_assert_str_eq(replay_said, "");
    ck_assert_uint_eq(replay->number, 1);
    ck_assert_int_eq(replay->begin(replay, 0, 1, 1), 0);
    check_replayed(0, good[_i].request);
    load_replay_free(replay);
}
END_TEST

static const struct {
    const char *title;
    const char *line;
} bad[] = {
    {"no time", "127.0.0.1 - - \"GET / HTTP/1.1\"" AFTER},
    {"a bracket alone", "["},
    {"a bad time", "::1 - - [10/Okt/2000:13:55:36 -0700] \"GET / HTTP/1.1\"" AFTER},
    {"a time without its end", "::1 - - [10/Oct/2000:13:55:36 -0700"},
    {"a time and more", "::1 - - [10/Oct/2000:13:55:36 -07000] \"GET / HTTP/1.1\""},
    {"no request", BEFORE},
    {"no quotes", BEFORE "GET / HTTP/1.1"},
    {"quotes without end", BEFORE "\"GET / HTTP/1.1"},
    {"an escape without end", BEFORE "\"GET / HTTP/1.1\\"},
    {"an escaped quote at the end", BEFORE "\"GET / HTTP/1.1\\\""},
    {"no request, and no end", BEFORE "\"-"},
    {"a dash and more", BEFORE "\"- HTTP/1.1\" 408 0"},
    {"TLS", BEFORE "\"\\x16\\x03\\x01\" 400 0"},
    {"HTTP/0.9", BEFORE "\"GET /\"" AFTER},
    {"no version", BEFORE "\"GET / a\"" AFTER},
    {"a version too short", BEFORE "\"GET / HTTP/\"" AFTER},
    {"no method", BEFORE "\" / HTTP/1.1\"" AFTER},
    {"a method that is none", BEFORE "\"G,T / HTTP/1.1\"" AFTER},
    {"a method too long", BEFORE "\"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF / HTTP/1.1\"" AFTER},
    {"CONNECT", BEFORE "\"CONNECT h:1 HTTP/1.1\"" AFTER},
    {"no target", BEFORE "\"GET  HTTP/1.1\"" AFTER},
    {"a blank in the target", BEFORE "\"GET /a b HTTP/1.1\"" AFTER},
    {"a byte that is no target's", BEFORE "\"GET /\\xc3\\xa9 HTTP/1.1\"" AFTER},
    {"an escaped backslash", BEFORE "\"GET /\\\\ HTTP/1.1\"" AFTER},
    {"escaped blanks", BEFORE "\"GET /\\t\\n\\b\\v\\f\\r HTTP/1.1\"" AFTER},
    {"an escaped NUL", BEFORE "\"GET /\\x00 HTTP/1.1\"" AFTER},
    {"an escaped quote", BEFORE "\"GET /\\\" HTTP/1.1\"" AFTER},
};

START_TEST(clients_that_sent_nothing_are_counted)
{
    static const char *const texts[] = {
        BEFORE "\"-\" 408 -\n" BEFORE "\"-\" 408 0 \"-\" \"-\"\n" BEFORE "\"\" 400 0\n",
        BEFORE "\"-\" 408 0\n" BEFORE "\"GET /a HTTP/1.1\" 200 5\n" BEFORE "\"-\" 408 0\n" BEFORE
               "\"\" 400 0\n"};

    ck_assert_int_eq(replay_text(texts[_i]), _i == 1);
    ck_assert_ptr_nonnull(strstr(replay_said, "': 3 lines cannot be replayed and are left out: "
                                              "their clients sent no request\n"));
    if (_i == 0)
        ck_assert_ptr_nonnull(strstr(replay_said, "it contains no requests"));
    else
        load_replay_free(replay);
}
END_TEST

static const char *
start_of(const char *line)
{
    static char text[30];

    snprintf(text, sizeof(text), "%s", line);
    return text;
}

START_TEST(other_lines_are_refused_and_shown)
{
    ck_assert_msg(!replay_text(bad[_i].line), "%s", bad[_i].title);
    ck_assert_ptr_nonnull(strstr(replay_said, "1 of 1 lines are not requests; the first is number "
                                              "1: "));
    ck_assert_ptr_nonnull(strstr(replay_said, start_of(bad[_i].line)));
}
END_TEST

/* A letter after \ that is no escape stands for itself; a target may contain "x4". */
START_TEST(half_escapes_are_letters)
{
    ck_assert(replay_text(BEFORE "\"GET /\\x4\" HTTP/1.1\"") == false);
    ck_assert(replay_text(BEFORE "\"GET /\\x4g\\xg4\\q HTTP/1.1\""));
    check_replayed(0, "GET /x4gxg4q HTTP/1.1\r\n" FIELDS "\r\n");
    load_replay_free(replay);
    ck_assert(!replay_text(BEFORE "\"GET / HTTP/1.1\\x4"));
}
END_TEST

/* ---- Many lines ---- */

enum { LINES = 3000 };

static char *
many_lines(const char *end)
{
    char *text = malloc(LINES * 100);
    size_t length = 0;

    for (unsigned i = 0; i < LINES; i++)
        length += (size_t)snprintf(text + length, 100, BEFORE "\"GET /%u HTTP/1.1\"" AFTER "%s",
                                   i % 2000, end);
    return text;
}

START_TEST(each_target_is_kept_once)
{
    char *text = many_lines("\n");
    char wanted[200];

    ck_assert(replay_text(text));
    ck_assert_uint_eq(replay->number, LINES);
    ck_assert_uint_eq(((struct load_replay *)replay)->texts.number, 2000);
    for (unsigned i = 0; i < LINES; i++) {
        snprintf(wanted, sizeof(wanted), "GET /%u HTTP/1.1\r\n" FIELDS "\r\n", i % 2000);
        check_replayed(i, wanted);
    }
    load_replay_free(replay);
    free(text);
}
END_TEST

START_TEST(pieces_of_any_size_are_put_together)
{
    enum { PART = 20000 };
    char *text = many_lines("\r\n\n");
    unsigned lines = 0;
    char last[200];

    *(strchr(text + PART, '\r') + 1) = '\0';
    for (const char *p = text; (p = strchr(p, '\r')) != NULL; p++)
        lines++;
    snprintf(last, sizeof(last), "GET /%u HTTP/1.1\r\n" FIELDS "\r\n", lines - 1);
    for (size_t limit = 1; limit < 300; limit += 17) {
        fake_os_limit(FAKE_READ, limit);
        ck_assert(replay_text(text));
        ck_assert_uint_eq(replay->number, lines);
        check_replayed(lines - 1, last);
        load_replay_free(replay);
    }
    free(text);
}
END_TEST

/* A line with a request at its beginning, then `length` bytes, then `after`. */
static char *
long_line(size_t length, const char *after)
{
    char *text = malloc(length + 300);
    size_t front = (size_t)snprintf(text, 200, BEFORE "\"GET /long HTTP/1.1\"" AFTER " \"");

    memset(text + front, 'a', length - front);
    memcpy(text + length, after, strlen(after) + 1);
    return text;
}

START_TEST(of_a_line_that_is_too_long_the_front_counts)
{
    static const size_t lengths[] = {LOAD_READER_ROOM - 1, LOAD_READER_ROOM, LOAD_READER_ROOM + 1,
                                     3 * LOAD_READER_ROOM, 3 * LOAD_READER_ROOM + 5};
    char *text = long_line(lengths[_i], "\n" BEFORE "\"GET /b HTTP/1.1\"");

    ck_assert_msg(replay_text(text), "%s", replay_said);
    ck_assert_uint_eq(replay->number, 2);
    check_replayed(0, "GET /long HTTP/1.1\r\n" FIELDS "\r\n");
    check_replayed(1, "GET /b HTTP/1.1\r\n" FIELDS "\r\n");
    load_replay_free(replay);
    free(text);
    text = long_line(lengths[_i], "");
    ck_assert(replay_text(text));
    ck_assert_uint_eq(replay->number, 1);
    load_replay_free(replay);
    free(text);
}
END_TEST

/* A line whose target has this many bytes. */
static const char *
line_of_target(size_t length)
{
    static char text[2 * LOAD_READER_ROOM];
    size_t front = (size_t)snprintf(text, 100, BEFORE "\"GET /");

    memset(text + front, 'a', length - 1);
    snprintf(text + front + length - 1, 100, " HTTP/1.1\"" AFTER);
    return text;
}

START_TEST(the_request_must_be_in_the_front)
{
    const size_t longest = LOAD_READER_ROOM - strlen(BEFORE "\"GET  HTTP/1.1\"");
    struct load_query query;

    ck_assert(replay_text(line_of_target(longest)));
    ck_assert_int_eq(replay->next(replay, 0, &query), 0);
    ck_assert_uint_eq(query.length, longest + strlen("GET  HTTP/1.1\r\n" FIELDS "\r\n"));
    load_replay_free(replay);
    ck_assert(!replay_text(line_of_target(longest + 1)));
}
END_TEST

START_TEST(a_seventeenth_method_is_one_too_many)
{
    static char text[20 * 100];
    size_t length = 0;

    for (unsigned i = 0; i < LOAD_KINDS_MAX + 1; i++)
        length += (size_t)snprintf(text + length, 100, BEFORE "\"M%02u / HTTP/1.1\"\n", i);
    ck_assert(replay_text(text));
    ck_assert_uint_eq(replay->kinds, LOAD_KINDS_MAX);
    ck_assert_ptr_nonnull(strstr(replay_said,
                                 "1 of 17 lines are not requests and are left out; the "
                                 "first is number 17: "));
    load_replay_free(replay);
}
END_TEST

/* ---- The request options of the command line ---- */

START_TEST(the_command_lines_fields_are_sent)
{
    static const char *const fields[] = {"Host: www", "Accept:", "User-Agent:", "X-Id: {SEQ:3}"};
    const struct load_template_options options = {
        .fields = fields, .fields_number = 4, .is_http_1_0 = true};
    const char *text = BEFORE "\"GET /a HTTP/1.1\"\n" BEFORE "\"POST /b HTTP/1.1\"\n";

    ck_assert(replay_bytes(text, strlen(text), &options, 1, 10));
    ck_assert_int_eq(replay->begin(replay, 0, 1, 1), 0);
    check_replayed(0,
                   "GET /a HTTP/1.0\r\nHost: www\r\nConnection: keep-alive\r\nX-Id: 000\r\n\r\n");
    check_replayed(1, "POST /b HTTP/1.0\r\nHost: www\r\nConnection: keep-alive\r\nX-Id: 001\r\n"
                      "Content-Length: 0\r\n\r\n");
    load_replay_free(replay);
}
END_TEST

START_TEST(a_bad_field_is_not_the_logs_fault)
{
    static const char *const fields[] = {"X Y: a"};
    const struct load_template_options options = {.fields = fields, .fields_number = 1};
    const char *text = BEFORE "\"GET / HTTP/1.1\"";

    ck_assert(!replay_bytes(text, strlen(text), &options, 1, 10));
    ck_assert_ptr_nonnull(strstr(replay_said, "'X Y: a' is no header that can be sent"));
}
END_TEST

/* ---- Failing allocations ---- */

START_TEST(each_allocation_may_fail)
{
    static const enum fake_call allocations[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC};
    char *text = many_lines("\n");
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
    fake_os_reset();
    free(text);
    ck_assert_uint_gt(nth, 12);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-replay-log");
    TCase *tcase = tcase_create("log");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, lines_of_logs_are_requests, 0, COUNT(good));
    tcase_add_loop_test(tcase, clients_that_sent_nothing_are_counted, 0, 2);
    tcase_add_loop_test(tcase, other_lines_are_refused_and_shown, 0, COUNT(bad));
    tcase_add_test(tcase, half_escapes_are_letters);
    tcase_add_test(tcase, each_target_is_kept_once);
    tcase_add_test(tcase, pieces_of_any_size_are_put_together);
    tcase_add_loop_test(tcase, of_a_line_that_is_too_long_the_front_counts, 0, 5);
    tcase_add_test(tcase, the_request_must_be_in_the_front);
    tcase_add_test(tcase, a_seventeenth_method_is_one_too_many);
    tcase_add_test(tcase, the_command_lines_fields_are_sent);
    tcase_add_test(tcase, a_bad_field_is_not_the_logs_fault);
    tcase_add_test(tcase, each_allocation_may_fail);
    return sxe_test_main(suite);
}
