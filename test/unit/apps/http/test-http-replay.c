/* SPDX-License-Identifier: MIT
 *
 * Replays: when each request is sent (order, spread, speed), times in the formats of logs, and
 * files that are no logs.
 */
#include <errno.h>

#include "fake-os.h"
#include "page-edge.h"
#include "replay-file.h"
#include "test-main.h"

#define COUNT(table)    ((int)(sizeof(table) / sizeof((table)[0])))
#define LINE(time, url) "::1 - - [" time "] \"GET " url " HTTP/1.1\" 200 1\n"
#define SECOND          UINT64_C(1000000000)

/* ---- Times ---- */

static const struct {
    bool (*read)(struct sxe_span text, uint64_t *ns);
    const char *text;
    uint64_t seconds;
    uint64_t ns;
} times[] = {
    {load_replay_log_time, "01/Jan/1970:00:00:00 +0000", 0, 0},
    {load_replay_log_time, "10/Oct/2000:13:55:36 -0700", 971211336, 0},
    {load_replay_log_time, "29/Feb/2024:23:59:60 +0530", 1709231400, 0},
    {load_replay_log_time, "31/Dec/2199:00:00:00 Z", 7258032000, 0},
    {load_replay_iso_time, "1970-01-01T00:00:00Z", 0, 0},
    {load_replay_iso_time, "2000-10-10T13:55:36-07:00", 971211336, 0},
    {load_replay_iso_time, "2000-10-10T13:55:36.5-0700", 971211336, 500000000},
    {load_replay_iso_time, "2009-04-16T12:07:25.123+01:00", 1239880045, 123000000},
    {load_replay_iso_time, "2009-04-16T12:07:25.123456789123Z", 1239883645, 123456789},
    {load_replay_iso_time, "2009-04-16T12:07:25.Z", 1239883645, 0},
};

START_TEST(times_are_read)
{
    uint64_t ns = 1;

    ck_assert(times[_i].read(page_edge(times[_i].text), &ns));
    ck_assert_uint_eq(ns, times[_i].seconds * SECOND + times[_i].ns);
}
END_TEST

/* A time that is cut off, or has a wrong byte anywhere, is refused. */
START_TEST(parts_of_times_are_none)
{
    size_t length = strlen(times[_i].text);
    uint64_t ns;

    for (size_t i = 0; i < length; i++) {
        char *copy = page_edge_bytes(times[_i].text, i);

        ck_assert_msg(!times[_i].read((struct sxe_span){copy, i}, &ns), "%.*s", (int)i, copy);
        copy = page_edge_bytes(times[_i].text, length);
        copy[i] = '?';
        ck_assert_msg(!times[_i].read((struct sxe_span){copy, length}, &ns), "%.*s", (int)length,
                      copy);
    }
}
END_TEST

static const struct {
    bool (*read)(struct sxe_span text, uint64_t *ns);
    const char *text;
} no_times[] = {
    {load_replay_log_time, ""},
    {load_replay_log_time, "00/Jan/2000:00:00:00 +0000"},
    {load_replay_log_time, "32/Jan/2000:00:00:00 +0000"},
    {load_replay_log_time, "01/jan/2000:00:00:00 +0000"},
    {load_replay_log_time, "01/Jan/1969:00:00:00 +0000"},
    {load_replay_log_time, "01/Jan/2201:00:00:00 +0000"},
    {load_replay_log_time, "01/Jan/2000:24:00:00 +0000"},
    {load_replay_log_time, "01/Jan/2000:00:60:00 +0000"},
    {load_replay_log_time, "01/Jan/2000:00:00:61 +0000"},
    {load_replay_log_time, "01/Jan/2000:00:00:00 +2400"},
    {load_replay_log_time, "01/Jan/2000:00:00:00 +0060"},
    {load_replay_log_time, "01/Jan/2000:00:00:00 0000"},
    {load_replay_log_time, "01/Jan/2000:00:00:00 +00000"},
    {load_replay_log_time, "01/Jan/1970:00:00:00 +0100"},
    {load_replay_iso_time, "2000-13-01T00:00:00Z"},
    {load_replay_iso_time, "2000-00-01T00:00:00Z"},
    {load_replay_iso_time, "2000-01-01 00:00:00Z"},
    {load_replay_iso_time, "2000-01-01T00:00:00"},
    {load_replay_iso_time, "2000-01-01T00:00:00ZZ"},
};

START_TEST(other_texts_are_no_times)
{
    uint64_t ns;

    ck_assert_msg(!no_times[_i].read(page_edge(no_times[_i].text), &ns), "%s", no_times[_i].text);
}
END_TEST

/* ---- The order of requests ---- */

static const char log_text[] = LINE("10/Oct/2000:13:55:37 -0700", "/2")
    LINE("10/Oct/2000:13:55:36 -0700", "/0") LINE("10/Oct/2000:20:55:37 +0000", "/3")
        LINE("10/Oct/2000:13:55:36 -0700", "/1") LINE("10/Oct/2000:13:55:37 -0700", "/4")
            LINE("10/Oct/2000:13:55:37 -0700", "/5") LINE("10/Oct/2000:13:56:36 -0700", "/6");

enum { LOG_LINES = 7 };

START_TEST(lines_are_in_order_and_spread_over_their_second)
{
    static const uint64_t due_ms[LOG_LINES] = {0, 500, 1000, 1250, 1500, 1750, 60000};
    struct load_query query;

    ck_assert(replay_text(log_text));
    ck_assert_uint_eq(replay->number, LOG_LINES);
    ck_assert_uint_eq(replay->kinds, 1);
    ck_assert_int_eq(replay->begin(replay, 0, 2, 1), 0);
    for (unsigned i = 0; i < LOG_LINES; i++) {
        ck_assert_int_eq(replay->next(replay, i, &query), 0);
        ck_assert_int_eq(query.bytes[5], '0' + (int)i);
        ck_assert_uint_eq(replay->times_ns[i], due_ms[i] * 1000000);
    }
    ck_assert_int_eq(replay->next(replay, LOG_LINES, &query), -1);
    ck_assert(!replay->wants_replies && replay->replied == NULL);
    ck_assert(replay->end == NULL);
    replay->free(replay);
    load_replay_free(NULL);
}
END_TEST

static const struct {
    double speed;
    uint64_t last_ns;
} speeds[] = {
    {1, 60 * SECOND},
    {2, 30 * SECOND},
    {0.5, 120 * SECOND},
    {1000, 60000000},
    {1e-30, UINT64_C(9000000000000000000)},
};

START_TEST(a_log_is_sent_faster_or_slower)
{
    static const struct load_template_options options = {0};

    ck_assert(replay_bytes(log_text, strlen(log_text), &options, speeds[_i].speed, 100));
    ck_assert_uint_eq(replay->times_ns[0], 0);
    ck_assert_uint_eq(replay->times_ns[LOG_LINES - 1], speeds[_i].last_ns);
    load_replay_free(replay);
}
END_TEST

START_TEST(what_follows_the_limit_is_left_out)
{
    static const struct load_template_options options = {0};

    ck_assert(replay_bytes(log_text, strlen(log_text), &options, 1, 3));
    ck_assert_uint_eq(replay->number, 3);
    ck_assert_ptr_nonnull(strstr(replay_said, "the requests after the first 3 are left out"));
    load_replay_free(replay);
    ck_assert(replay_bytes(log_text, strlen(log_text), &options, 1, LOG_LINES));
    ck_assert_str_eq(replay_said, "");
    load_replay_free(replay);
}
END_TEST

/* ---- Bad lines ---- */

/* Replay `good` valid lines, then `bad` malformed ones. */
static bool
replay_mixed(unsigned good, unsigned bad)
{
    static char text[4096];
    size_t length = 0;

    for (unsigned i = 0; i < good; i++)
        length +=
            (size_t)snprintf(text + length, 100, "\n" LINE("10/Oct/2000:13:55:36 -0700", "/"));
    for (unsigned i = 0; i < bad; i++)
        length += (size_t)snprintf(text + length, 100, "bad\t\xc3\xa9line %u\n", i);
    return replay_text(text);
}

START_TEST(a_tenth_of_bad_lines_is_left_out)
{
    char wanted[512];

    ck_assert(replay_mixed(18, 2));
    ck_assert_uint_eq(replay->number, 18);
    snprintf(wanted, sizeof(wanted),
             "sxe-http: '%s': 2 of 20 lines are not requests and are left "
             "out; the first is number 37: bad???line 0\n",
             replay_path());
    ck_assert_str_eq(replay_said, wanted);
    load_replay_free(replay);
}
END_TEST

START_TEST(more_bad_lines_refuse_the_file)
{
    char wanted[512];

    ck_assert(!replay_mixed(17, 2));
    snprintf(
        wanted, sizeof(wanted),
        "sxe-http: '%s' cannot be replayed: 2 of 19 lines are not requests; the first is number "
        "35: bad???line 0; an access log in common or combined format is needed, or a HAR file\n",
        replay_path());
    ck_assert_str_eq(replay_said, wanted);
}
END_TEST

START_TEST(a_file_with_nothing_is_refused)
{
    static const char *const texts[] = {"", "\n\n", "\r\n", " "};

    ck_assert(!replay_text(texts[_i]));
    ck_assert_ptr_nonnull(
        strstr(replay_said, _i < 3 ? "it contains no requests" : "1 of 1 lines are not requests"));
}
END_TEST

START_TEST(a_compressed_file_says_what_to_do)
{
    ck_assert(!replay_text("\x1f\x8b\x08"));
    ck_assert_ptr_nonnull(strstr(replay_said, "it is compressed: give it to --replay - by zcat"));
}
END_TEST

START_TEST(a_file_that_cannot_be_read_says_so)
{
    static const struct load_template_options options = {0};

    ck_assert_ptr_null(load_replay_new("/none/there", 1, "h", &options, stderr));
    fake_os_fail(FAKE_READ, 1, 1, EIO);
    ck_assert(!replay_text(log_text));
    ck_assert_ptr_nonnull(strstr(replay_said, "cannot be replayed: Input/output error"));
    fake_os_limit(FAKE_READ, 100);
    fake_os_fail(FAKE_READ, 3, 1, EIO);
    ck_assert(!replay_text(log_text));
    ck_assert_ptr_nonnull(strstr(replay_said, "cannot be replayed: Input/output error"));
}
END_TEST

START_TEST(a_log_may_come_from_stdin)
{
    static const struct load_template_options options = {0};
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], log_text, strlen(log_text)), strlen(log_text));
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    replay = load_replay_new("-", 1, "h:1", &options, stderr);
    ck_assert_ptr_nonnull(replay);
    ck_assert_uint_eq(replay->number, LOG_LINES);
    load_replay_free(replay);
    close(ends[0]);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-replay");
    TCase *tcase = tcase_create("replay");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, times_are_read, 0, COUNT(times));
    tcase_add_loop_test(tcase, parts_of_times_are_none, 0, COUNT(times));
    tcase_add_loop_test(tcase, other_texts_are_no_times, 0, COUNT(no_times));
    tcase_add_test(tcase, lines_are_in_order_and_spread_over_their_second);
    tcase_add_loop_test(tcase, a_log_is_sent_faster_or_slower, 0, COUNT(speeds));
    tcase_add_test(tcase, what_follows_the_limit_is_left_out);
    tcase_add_test(tcase, a_tenth_of_bad_lines_is_left_out);
    tcase_add_test(tcase, more_bad_lines_refuse_the_file);
    tcase_add_loop_test(tcase, a_file_with_nothing_is_refused, 0, 4);
    tcase_add_test(tcase, a_compressed_file_says_what_to_do);
    tcase_add_test(tcase, a_file_that_cannot_be_read_says_so);
    tcase_add_test(tcase, a_log_may_come_from_stdin);
    return sxe_test_main(suite);
}
