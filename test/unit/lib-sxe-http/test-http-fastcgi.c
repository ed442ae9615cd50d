/* SPDX-License-Identifier: MIT
 *
 * Records of FastCGI and their pairs, cut in two at every place; and that what is written is read.
 */
#include "http-case.h"

#include <errno.h>

#include "sxe-http-fastcgi.h"
#include "test-main.h"

/* Records as a text:  BEGIN_REQUEST 1 "..." ; then the refusal, or what is left. */
static const char *const types[] = {"0",      "BEGIN",      "ABORT",         "END",
                                    "PARAMS", "STDIN",      "STDOUT",        "STDERR",
                                    "DATA",   "GET_VALUES", "VALUES_RESULT", "UNKNOWN"};

#define OF_CLIENT SXE_HTTP_FASTCGI_OF_CLIENT
#define OF_SERVER SXE_HTTP_FASTCGI_OF_SERVER

#define HEAD(type, id, length, padding) "\1" type "\0" id "\0" length padding "\0"

struct record_case {
    const char *title;
    enum sxe_http_fastcgi_side side;
    const char *bytes;
    size_t length;
    const char *expected;
};

#define RECORDS(title, side, bytes, expected)           \
    {                                                   \
        title, side, bytes, sizeof(bytes) - 1, expected \
    }

static const struct record_case cases[] = {
    RECORDS("BEGIN_REQUEST", OF_CLIENT, HEAD("\1", "\7", "\10", "\0") "\0\1\1\0\0\0\0\0",
            "BEGIN 7 [8];"),
    RECORDS("BEGIN_REQUEST with padding", OF_CLIENT,
            HEAD("\1", "\7", "\10", "\3") "\0\1\1\0\0\0\0\0xyz" HEAD("\2", "\7", "\0", "\0"),
            "BEGIN 7 [8]; ABORT 7 [0];"),
    RECORDS("a stream and its end", OF_CLIENT,
            HEAD("\5", "\1", "\5", "\2") "hello\0\0" HEAD("\5", "\1", "\0", "\1") "\0",
            "STDIN 1 [5]; STDIN 1 [0];"),
    RECORDS("padding without content", OF_CLIENT,
            HEAD("\4", "\1", "\0", "\3") "abc" HEAD("\10", "\1", "\1", "\0") "x",
            "PARAMS 1 [0]; DATA 1 [1];"),
    RECORDS("half of a stream's record", OF_CLIENT, HEAD("\5", "\1", "\5", "\2") "he",
            "STDIN 1 [2] ..."),
    RECORDS("a reply", OF_SERVER,
            HEAD("\6", "\1", "\2", "\0") "hi" HEAD("\7", "\1", "\1", "\0") "e" HEAD(
                "\3", "\1", "\10", "\0") "\0\0\0\0\0\0\0\0",
            "STDOUT 1 [2]; STDERR 1 [1]; END 1 [8];"),
    RECORDS("values", OF_CLIENT, HEAD("\11", "\0", "\3", "\0") "\1\0a", "GET_VALUES 0 [3];"),
    RECORDS(
        "values of a server", OF_SERVER,
        HEAD("\12", "\0", "\4", "\0") "\1\1ab" HEAD("\13", "\0", "\10", "\0") "\x63\0\0\0\0\0\0\0",
        "VALUES_RESULT 0 [4]; UNKNOWN 0 [8];"),
    RECORDS("an unknown management record", OF_CLIENT, HEAD("\143", "\0", "\3", "\1") "abc\0",
            "99 0 [3];"),
    RECORDS("version 0", OF_CLIENT, "\0\1\0\1\0\10\0\0", "BAD_VERSION"),
    RECORDS("version 2", OF_CLIENT, "\2\1\0\1\0\10\0\0", "BAD_VERSION"),
    RECORDS("type 0", OF_CLIENT, HEAD("\0", "\0", "\0", "\0"), "BAD_TYPE"),
    RECORDS("an unknown type of a request", OF_CLIENT, HEAD("\14", "\1", "\0", "\0"), "BAD_TYPE"),
    RECORDS("an unknown type of a server", OF_SERVER, HEAD("\14", "\0", "\0", "\0"), "BAD_TYPE"),
    RECORDS("a reply from a client", OF_CLIENT, HEAD("\6", "\1", "\0", "\0"), "BAD_SIDE"),
    RECORDS("a request from a server", OF_SERVER, HEAD("\5", "\1", "\0", "\0"), "BAD_SIDE"),
    RECORDS("BEGIN_REQUEST without id", OF_CLIENT, HEAD("\1", "\0", "\10", "\0"), "BAD_ID"),
    RECORDS("values with an id", OF_CLIENT, HEAD("\11", "\1", "\0", "\0"), "BAD_ID"),
    RECORDS("BEGIN_REQUEST of 7 bytes", OF_CLIENT, HEAD("\1", "\1", "\7", "\0"), "BAD_LENGTH"),
    RECORDS("BEGIN_REQUEST of 9 bytes", OF_CLIENT, HEAD("\1", "\1", "\11", "\0"), "BAD_LENGTH"),
    RECORDS("ABORT_REQUEST with content", OF_CLIENT, HEAD("\2", "\1", "\1", "\0"), "BAD_LENGTH"),
    RECORDS("END_REQUEST of no bytes", OF_SERVER, HEAD("\3", "\1", "\0", "\0"), "BAD_LENGTH"),
    RECORDS("values of 1025 bytes", OF_CLIENT, "\1\11\0\0\4\1\0\0", "BAD_LENGTH"),
    RECORDS("a refusal after a record", OF_CLIENT,
            HEAD("\5", "\1", "\1", "\1") "x\0"
                                         "GET / HTTP",
            "STDIN 1 [1]; BAD_VERSION"),
};

static const char *const refusals[] = {"ACCEPTED", "BAD_VERSION", "BAD_TYPE",
                                       "BAD_SIDE", "BAD_ID",      "BAD_LENGTH"};

static void
say(struct http_case_text *out, const char *text)
{
    http_case_say(out, "%s%s", out->length == 0 ? "" : " ", text);
}

struct reading {
    struct sxe_http_fastcgi reader;
    struct http_case_text text;
    size_t content; /* bytes of the present record */
    bool is_open;
};

static void
note_part(struct reading *reading, struct sxe_span content)
{
    const struct sxe_http_fastcgi *reader = &reading->reader;

    if (reader->is_first) {
        say(&reading->text, reader->type < SXE_COUNT(types) ? types[reader->type] : "99");
        http_case_say(&reading->text, " %u", reader->id);
        reading->content = 0;
        reading->is_open = true;
    }
    reading->content += content.length;
    if (reader->is_last) {
        ck_assert_uint_eq(reading->content, reader->length);
        http_case_say(&reading->text, " [%zu];", reading->content);
        reading->is_open = false;
    }
}

/* Read the bytes up to `end` from the page's edge. Returns the result of the last call. */
static ssize_t
read_until(struct reading *reading, const struct record_case *test, size_t *taken, size_t end)
{
    const char *data = http_case_at_edge(test->bytes + *taken, end - *taken);
    size_t length = end - *taken;
    struct sxe_span content;
    size_t at = 0;
    ssize_t n;

    while ((n = sxe_http_fastcgi_read(&reading->reader, data + at, length - at, &content)) > 0) {
        note_part(reading, content);
        at += (size_t)n;
        ck_assert_uint_le(at, length);
    }
    *taken += at;
    return n;
}

static void
run(const struct record_case *test, size_t cut, size_t step)
{
    struct reading reading = {.is_open = false};
    size_t taken = 0;
    struct sxe_span content;
    ssize_t n;

    sxe_http_fastcgi_init(&reading.reader, test->side);
    for (size_t end = cut;; end = end + step < test->length ? end + step : test->length) {
        n = read_until(&reading, test, &taken, end);
        if (n < 0 || end == test->length)
            break;
    }
    if (reading.is_open)
        http_case_say(&reading.text, " [%zu] ...", reading.content);
    if (n < 0) {
        say(&reading.text, refusals[reading.reader.refusal]);
        ck_assert_int_eq(sxe_http_fastcgi_read(&reading.reader, "\1\2\0\1\0\0\0\0", 8, &content),
                         -1);
    }
    ck_assert_msg(strcmp(reading.text.text, test->expected) == 0,
                  "%s, cut at %zu, by %zu:\n  is     %s\n  wanted %s", test->title, cut, step,
                  reading.text.text, test->expected);
}

START_TEST(each_record_means_what_the_specification_says)
{
    for (size_t cut = 0; cut <= cases[_i].length; cut++)
        run(&cases[_i], cut, cases[_i].length + 1);
    for (size_t step = 1; step < 4; step++)
        run(&cases[_i], 0, step);
}
END_TEST

/* A content of 65,535 bytes and a padding of 255 must not wrap. */
START_TEST(the_longest_record_is_one)
{
    static char record[8 + 65535 + 255 + 8];
    struct sxe_http_fastcgi reader;
    struct sxe_span content;

    sxe_http_fastcgi_put_head(record, SXE_HTTP_FASTCGI_STDOUT, 65535, 65535, 255);
    sxe_http_fastcgi_put_head(record + 65798, SXE_HTTP_FASTCGI_STDOUT, 65535, 0, 0);
    sxe_http_fastcgi_init(&reader, SXE_HTTP_FASTCGI_OF_SERVER);
    ck_assert_int_eq(sxe_http_fastcgi_read(&reader, record, sizeof(record), &content), 65798);
    ck_assert(reader.is_first && reader.is_last && content.base == record + 8);
    ck_assert_uint_eq(content.length, 65535);
    ck_assert_uint_eq(reader.id, 65535);
    ck_assert_int_eq(sxe_http_fastcgi_read(&reader, record + 65798, 8, &content), 8);
    ck_assert(reader.is_first && reader.is_last && content.length == 0);
}
END_TEST

START_TEST(refusals_have_texts)
{
    for (unsigned i = 0; i < SXE_COUNT(refusals); i++)
        ck_assert_uint_gt(strlen(sxe_http_fastcgi_refusal_text(i)), 5);
}
END_TEST

/* ---- Pairs ---- */

static const struct {
    const char *bytes;
    size_t length;
    ssize_t result;
    const char *name;
    size_t value; /* the length of the value */
} pairs[] = {
#define PAIR(bytes, result, name, value)              \
    {                                                 \
        bytes, sizeof(bytes) - 1, result, name, value \
    }
    PAIR("\1\1ab", 4, "a", 1),
    PAIR("\1\1abz", 4, "a", 1),
    PAIR("\1\0a", 3, "a", 0),
    PAIR("\200\0\0\1\1ab", 7, "a", 1), /* a short length in four bytes is allowed */
    PAIR("\1\200\0\0\1ab", 7, "a", 1),
    PAIR("", 0, NULL, 0),
    PAIR("\1", 0, NULL, 0),
    PAIR("\1\1", 0, NULL, 0),
    PAIR("\1\1a", 0, NULL, 0),
    PAIR("\2\177ab", 0, NULL, 0), /* longer than its stream */
    PAIR("\200\0\0", 0, NULL, 0),
    PAIR("\1\200\0\0", 0, NULL, 0),
    PAIR("\377\377\377\377\377\377\377\377ab", 0, NULL, 0), /* the sum is above 2^31 */
    PAIR("\1\377\377\377\377ab", 0, NULL, 0),
    PAIR("\0\1a", -1, NULL, 0),
    PAIR("\200\0\0\0\1a", -1, NULL, 0),
};

START_TEST(lengths_of_pairs_stay_inside_their_stream)
{
    const char *data = http_case_at_edge(pairs[_i].bytes, pairs[_i].length);
    struct sxe_span name;
    struct sxe_span value;

    ck_assert_int_eq(sxe_http_fastcgi_pair(data, pairs[_i].length, &name, &value),
                     pairs[_i].result);
    if (pairs[_i].result <= 0)
        return;
    ck_assert_uint_eq(name.length, strlen(pairs[_i].name));
    ck_assert_mem_eq(name.base, pairs[_i].name, name.length);
    ck_assert_uint_eq(value.length, pairs[_i].value);
    ck_assert_ptr_eq(value.base, name.base + name.length);
}
END_TEST

/* ---- Writing ---- */

START_TEST(pairs_are_read_as_they_were_written)
{
    static const size_t lengths[] = {0, 1, 127, 128, 300, 70000};
    static char text[70000];
    static char room[140100];
    struct sxe_span name = {text, 0};
    struct sxe_span value = {text, 0};
    struct sxe_span found[2];
    ssize_t n;

    memset(text, 'x', sizeof(text));
    for (size_t i = 1; i < SXE_COUNT(lengths); i++) {
        for (size_t k = 0; k < SXE_COUNT(lengths); k++) {
            name.length = lengths[i];
            value.length = lengths[k];
            n = sxe_http_fastcgi_put_pair(room, sizeof(room), name, value);
            ck_assert_int_gt(n, (ssize_t)(name.length + value.length));
            ck_assert_int_eq(sxe_http_fastcgi_pair(room, (size_t)n, &found[0], &found[1]), n);
            ck_assert_uint_eq(found[0].length, name.length);
            ck_assert_uint_eq(found[1].length, value.length);
            ck_assert_int_eq(sxe_http_fastcgi_put_pair(room, (size_t)n - 1, name, value), -ENOBUFS);
        }
    }
}
END_TEST

START_TEST(pairs_that_cannot_be_written_are_refused)
{
    char room[8];
    const struct sxe_span a = {"a", 1};

    ck_assert_int_eq(sxe_http_fastcgi_put_pair(room, 8, (struct sxe_span){"", 0}, a), -EINVAL);
    ck_assert_int_eq(sxe_http_fastcgi_put_pair(room, 8, (struct sxe_span){"a", 1u << 31}, a),
                     -EINVAL);
    ck_assert_int_eq(sxe_http_fastcgi_put_pair(room, 8, a, (struct sxe_span){"a", 1u << 31}),
                     -EINVAL);
}
END_TEST

START_TEST(records_are_read_as_they_were_written)
{
    char record[16];
    struct sxe_http_fastcgi reader;
    struct sxe_span content;
    uint16_t role = 0;
    uint32_t application = 0;
    uint8_t protocol = 0;
    bool keep = false;

    sxe_http_fastcgi_put_begin(record, 258, SXE_HTTP_FASTCGI_FILTER, true);
    sxe_http_fastcgi_init(&reader, SXE_HTTP_FASTCGI_OF_CLIENT);
    ck_assert_int_eq(sxe_http_fastcgi_read(&reader, record, 16, &content), 16);
    sxe_http_fastcgi_get_begin(content.base, &role, &keep);
    ck_assert(reader.id == 258 && role == SXE_HTTP_FASTCGI_FILTER && keep);
    sxe_http_fastcgi_put_begin(record, 1, SXE_HTTP_FASTCGI_RESPONDER, false);
    sxe_http_fastcgi_get_begin(record + 8, &role, &keep);
    ck_assert(role == SXE_HTTP_FASTCGI_RESPONDER && !keep);

    sxe_http_fastcgi_put_end(record, 3, 0xA1B2C3D4, SXE_HTTP_FASTCGI_OVERLOADED);
    sxe_http_fastcgi_init(&reader, SXE_HTTP_FASTCGI_OF_SERVER);
    ck_assert_int_eq(sxe_http_fastcgi_read(&reader, record, 16, &content), 16);
    sxe_http_fastcgi_get_end(content.base, &application, &protocol);
    ck_assert(reader.id == 3 && application == 0xA1B2C3D4 &&
              protocol == SXE_HTTP_FASTCGI_OVERLOADED);

    sxe_http_fastcgi_put_unknown(record, 99);
    ck_assert_int_eq(sxe_http_fastcgi_read(&reader, record, 16, &content), 16);
    ck_assert(reader.type == SXE_HTTP_FASTCGI_UNKNOWN_TYPE && content.base[0] == 99);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-fastcgi");
    TCase *records = tcase_create("records");
    TCase *names = tcase_create("pairs");

    tcase_add_loop_test(records, each_record_means_what_the_specification_says, 0,
                        SXE_COUNT(cases));
    tcase_add_test(records, the_longest_record_is_one);
    tcase_add_test(records, refusals_have_texts);
    tcase_add_test(records, records_are_read_as_they_were_written);
    tcase_add_loop_test(names, lengths_of_pairs_stay_inside_their_stream, 0, SXE_COUNT(pairs));
    tcase_add_test(names, pairs_are_read_as_they_were_written);
    tcase_add_test(names, pairs_that_cannot_be_written_are_refused);
    suite_add_tcase(suite, records);
    suite_add_tcase(suite, names);
    return sxe_test_main(suite);
}
