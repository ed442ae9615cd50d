/* SPDX-License-Identifier: MIT
 *
 * Heads of requests and responses, cut in two at every place.
 */
#include "http-cases.h"

#include "test-main.h"
#include "test-sweep.h"

static struct sxe_http_field fields[HTTP_CASE_FIELDS];
static struct sxe_http_parser parser;

START_TEST(each_message_means_what_the_rfc_says)
{
    http_case_run(&http_cases[_i]);
}
END_TEST
SXE_TEST_GROUPS(each_message_means_what_the_rfc_says, HTTP_CASES)

START_TEST(each_title_names_a_section)
{
    for (unsigned i = 0; i < HTTP_CASES; i++)
        ck_assert_msg(strpbrk(http_cases[i].title, "0123456789W") == http_cases[i].title, "%s",
                      http_cases[i].title);
}
END_TEST

/* ---- Every byte in every place ---- */

static bool
is_token(unsigned byte)
{
    return byte != 0 && byte < 0x80 &&
           strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                  (int)byte) != NULL;
}

static int
parse_with(const char *before, unsigned byte, const char *after)
{
    char message[256];
    size_t length = strlen(before);

    memcpy(message, before, length);
    message[length++] = (char)byte;
    memcpy(message + length, after, strlen(after));
    length += strlen(after);
    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, HTTP_CASE_FIELDS, NULL);
    return sxe_http_parse(&parser, http_case_at_edge(message, length), length);
}

START_TEST(a_method_takes_a_token_and_nothing_else)
{
    bool is_good = parse_with("G", (unsigned)_i, "T / HTTP/1.1\r\nHost: a\r\n\r\n") > 0;
    ck_assert_int_eq(is_good, is_token((unsigned)_i));
}
END_TEST
SXE_TEST_GROUPS(a_method_takes_a_token_and_nothing_else, 256)

START_TEST(a_name_takes_a_token_and_nothing_else)
{
    bool is_good = parse_with(HEAD "A", (unsigned)_i, "b: c\r\n\r\n") > 0;
    ck_assert_int_eq(is_good, is_token((unsigned)_i) || _i == ':');
}
END_TEST
SXE_TEST_GROUPS(a_name_takes_a_token_and_nothing_else, 256)

START_TEST(a_value_takes_all_but_control_bytes)
{
    bool is_good = parse_with(HEAD "A: b", (unsigned)_i, "c\r\n\r\n") > 0;
    ck_assert_int_eq(is_good, _i == '\t' || (_i >= ' ' && _i != 0x7F));
}
END_TEST
SXE_TEST_GROUPS(a_value_takes_all_but_control_bytes, 256)

START_TEST(a_path_takes_what_browsers_send)
{
    bool is_good = parse_with("GET /", (unsigned)_i, "41 HTTP/1.1\r\nHost: a\r\n\r\n") > 0;
    ck_assert_int_eq(is_good, _i > ' ' && _i < 0x7F && strchr("\"#<>\\^`{}", _i) == NULL);
}
END_TEST
SXE_TEST_GROUPS(a_path_takes_what_browsers_send, 256)

START_TEST(a_query_takes_what_browsers_send)
{
    bool is_good = parse_with("GET /?", (unsigned)_i, "41 HTTP/1.1\r\nHost: a\r\n\r\n") > 0;
    ck_assert_int_eq(is_good, _i > ' ' && _i < 0x7F && strchr("\"#<>", _i) == NULL);
}
END_TEST
SXE_TEST_GROUPS(a_query_takes_what_browsers_send, 256)

START_TEST(a_host_takes_what_rfc_3986_says)
{
    static const char others[] = "-._~!$&'()*+,;=%:";
    bool is_good = parse_with(LINE "Host: a", (unsigned)_i, "41\r\n\r\n") > 0;
    bool is_letter = _i < 0x80 && is_token((unsigned)_i) && strchr("!#$%&'*+-.^_`|~", _i) == NULL;

    ck_assert_int_eq(is_good, is_letter || (_i != 0 && strchr(others, _i) != NULL));
}
END_TEST
SXE_TEST_GROUPS(a_host_takes_what_rfc_3986_says, 256)

START_TEST(a_byte_of_a_host_counts_at_every_place)
{
    bool is_name = _i != 0 && _i < 0x80 && strchr("-._~!$&'()*+,;=", _i) != NULL;
    char host[24];

    is_name |= is_token((unsigned)_i) && strchr("!#$%&'*+-.^_`|~", _i) == NULL;
    for (size_t length = 1; length <= sizeof(host); length++) {
        for (size_t at = 0; at < length; at++) {
            bool is_port = _i == ':' && at > 0 && at == length - 1;
            bool is_escape = _i == '%' && length - at > 2;
            bool is_empty_label = _i == '.' && at == 0;

            memset(host, 'a', sizeof(host));
            host[at] = (char)_i;
            ck_assert_int_eq(sxe__http_host(http_case_at_edge(host, length), length),
                             (is_name && !is_empty_label) || is_port || is_escape);
        }
    }
}
END_TEST
SXE_TEST_GROUPS(a_byte_of_a_host_counts_at_every_place, 256)

/* ---- Limits ---- */

static const struct sxe_http_limits small = {24, 48, 2};

#define LIMITED(title, bytes, expected) HTTP_CASE(title, HTTP_REQUEST, bytes, expected)
static const struct http_case limited[] = {
    LIMITED("a line as long as may be", "GET /34567890 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET origin /34567890 1.1 [Host: a] none keep"),
    LIMITED("a line one byte too long", "GET /345678901 HTTP/1.1\r\nHost: a\r\n\r\n",
            "LINE_TOO_LONG@24"),
    LIMITED("an empty line in front is not counted",
            "\r\nGET /34567890 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET origin /34567890 1.1 [Host: a] none keep"),
    LIMITED("nor are three of them", "\r\n\r\n\r\nGET /34567890 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET origin /34567890 1.1 [Host: a] none keep"),
    LIMITED("empty lines without an end",
            "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
            "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
            "HEAD_TOO_LARGE@48"),
    LIMITED("nor does it make room", "\r\nGET /345678901 HTTP/1.1\r\nHost: a\r\n\r\n",
            "LINE_TOO_LONG@26"),
    LIMITED("a target without an end", "GET /345678901234567890123456789012345678901234567890",
            "LINE_TOO_LONG@24"),
    LIMITED("what is wrong after the limit is not seen", "GET /34567890123456789012345\n",
            "LINE_TOO_LONG@24"),
    LIMITED("what is wrong before it is", "GET /345678901234567\n HTTP/1.1\r\n", "BAD_TARGET@20"),
    LIMITED("a method without an end", "GETTTTTTTTTTTTTTTTTTTTTTTTTTTT", "METHOD_TOO_LONG@24"),
    LIMITED("a method that ends after the limit", "GETTTTTTTTTTTTTTTTTTTTTTTT / HTTP/1.1\r\n",
            "METHOD_TOO_LONG@24"),
    LIMITED("a head as long as may be", LINE "Host: 7890123456789012345678\r\n\r\n",
            "GET origin / 1.1 [Host: 7890123456789012345678] none keep"),
    LIMITED("a head as long as may be, and a body", LINE "Host: 7890123456789012345678\r\n\r\nBODY",
            "GET origin / 1.1 [Host: 7890123456789012345678] none keep rest 4"),
    LIMITED("a head one byte too long", LINE "Host: 78901234567890123456789\r\n\r\n",
            "HEAD_TOO_LARGE@48"),
    LIMITED("a value without an end", LINE "Host: 78901234567890123456789012345678901234567890",
            "HEAD_TOO_LARGE@48"),
    LIMITED("a name without an end", LINE "Hostttttttttttttttttttttttttttttttttttttttttttttt",
            "HEAD_TOO_LARGE@48"),
    LIMITED("blanks without an end",
            LINE "Host:                                    "
                 "             ",
            "HEAD_TOO_LARGE@48"),
    LIMITED("as many fields as may be", LINE "Host: a\r\nB: c\r\n\r\n",
            "GET origin / 1.1 [Host: a] [B: c] none keep"),
    LIMITED("one field too many", LINE "Host: a\r\nB: c\r\nD: e\r\n\r\n", "TOO_MANY_FIELDS@31"),
    LIMITED("one bad field too many", LINE "Host: a\r\nB: c\r\n\n", "TOO_MANY_FIELDS@31"),
};

START_TEST(limits_hold_at_every_split)
{
    http_case_run_limited(&limited[_i], &small);
}
END_TEST

START_TEST(a_line_limit_above_the_head_limit_is_the_head_limit)
{
    static const struct sxe_http_limits odd = {100, 20, 9};
    static const struct http_case test =
        HTTP_CASE("x", HTTP_REQUEST, "GET /34567890123456789", "HEAD_TOO_LARGE@20");

    http_case_run_limited(&test, &odd);
}
END_TEST

static char *
many_fields(unsigned number)
{
    static char message[65536];
    size_t length = (size_t)snprintf(message, sizeof(message), "%s", LINE "Host: a\r\n");

    for (unsigned i = 1; i < number; i++)
        length += (size_t)snprintf(message + length, sizeof(message) - length, "A%u: %u\r\n", i, i);
    snprintf(message + length, sizeof(message) - length, "\r\n");
    return message;
}

START_TEST(no_limits_are_the_usual_ones)
{
    static char line[9000];
    char *message;

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, HTTP_CASE_FIELDS, NULL);
    message = many_fields(100);
    ck_assert_int_eq(sxe_http_parse(&parser, message, strlen(message)), (int)strlen(message));
    ck_assert_uint_eq(parser.number, 100);
    sxe_http_parser_next(&parser);
    message = many_fields(101);
    ck_assert_int_eq(sxe_http_parse(&parser, message, strlen(message)), -1);
    ck_assert_uint_eq(parser.refusal, SXE_HTTP_REFUSED_TOO_MANY_FIELDS);
    sxe_http_parser_next(&parser);
    memset(line, 'a', sizeof(line));
    memcpy(line, "GET /", 5);
    ck_assert_int_eq(sxe_http_parse(&parser, line, 8191), 0);
    ck_assert_int_eq(sxe_http_parse(&parser, line, 8192), -1);
    ck_assert_uint_eq(parser.refusal, SXE_HTTP_REFUSED_LINE_TOO_LONG);
}
END_TEST

START_TEST(there_are_never_more_than_255_fields)
{
    static const struct sxe_http_limits wide = {8192, 65535, 65535};
    char *message = many_fields(255);

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, HTTP_CASE_FIELDS, &wide);
    ck_assert_int_gt(sxe_http_parse(&parser, message, strlen(message)), 0);
    ck_assert_uint_eq(parser.number, 255);
    message = many_fields(256);
    sxe_http_parser_next(&parser);
    ck_assert_int_eq(sxe_http_parse(&parser, message, strlen(message)), -1);
    ck_assert_uint_eq(parser.refusal, SXE_HTTP_REFUSED_TOO_MANY_FIELDS);
}
END_TEST

START_TEST(room_for_fields_is_a_limit_too)
{
    char *message = many_fields(4);

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, 3, NULL);
    ck_assert_int_eq(sxe_http_parse(&parser, message, strlen(message)), -1);
    ck_assert_uint_eq(parser.refusal, SXE_HTTP_REFUSED_TOO_MANY_FIELDS);
}
END_TEST

START_TEST(a_head_may_have_65535_bytes)
{
    static const struct sxe_http_limits wide = {65535, 65535, 255};
    static char message[65600];
    size_t begin = (size_t)snprintf(message, sizeof(message), "%s", HEAD "A: ");

    for (unsigned way = 0; way < HTTP_CASE_WAYS; way++) {
        http_case_choose(way);
        memset(message + begin, 'x', sizeof(message) - begin);
        memcpy(message + 65535 - 4, "\r\n\r\n", 4);
        sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, HTTP_CASE_FIELDS, &wide);
        ck_assert_int_eq(sxe_http_parse(&parser, message, 65000), 0);
        ck_assert_int_eq(sxe_http_parse(&parser, message, sizeof(message)), 65535);
        ck_assert_uint_eq(fields[1].value_length, 65535 - 4 - begin);
        message[65535 - 4] = 'x';
        sxe_http_parser_next(&parser);
        ck_assert_int_eq(sxe_http_parse(&parser, message, sizeof(message)), -1);
    }
}
END_TEST

/* ---- Results of parsing ---- */

static const char *
parse(const char *message)
{
    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, HTTP_CASE_FIELDS, NULL);
    ck_assert_int_gt(sxe_http_parse(&parser, message, strlen(message)), 0);
    return message;
}

START_TEST(each_well_known_field_is_found_by_its_id)
{
    enum sxe_http_field_id id = (enum sxe_http_field_id)_i;
    const struct sxe_http_field *field;
    char message[256];
    const char *name = sxe_http_field_name(id);
    const char *value = id == SXE_HTTP_FIELD_CONTENT_LENGTH      ? "1"
                        : id == SXE_HTTP_FIELD_TRANSFER_ENCODING ? "chunked"
                                                                 : "x";

    snprintf(message, sizeof(message), "GET / HTTP/1.1\r\nX: y\r\n%s%s: %s\r\n\r\n",
             id == SXE_HTTP_FIELD_HOST ? "" : "Host: a\r\n", name, value);
    parse(message);
    field = sxe_http_known(&parser, id);
    ck_assert_ptr_eq(field, &fields[id == SXE_HTTP_FIELD_HOST ? 1 : 2]);
    ck_assert_ptr_eq(field, sxe_http_field(&parser, message, name));
    ck_assert_mem_eq(message + field->value, value, strlen(value));
    for (unsigned other = 1; other < SXE_HTTP_FIELD_IDS; other++)
        ck_assert(other == id || other == SXE_HTTP_FIELD_HOST ||
                  sxe_http_known(&parser, (enum sxe_http_field_id)other) == NULL);
}
END_TEST

START_TEST(a_known_name_with_one_byte_changed_is_not_known)
{
    const char *name = sxe_http_field_name((enum sxe_http_field_id)_i);
    char other[64];

    for (size_t at = 0; at < strlen(name); at++) {
        snprintf(other, sizeof(other), "%s", name);
        ck_assert_uint_eq(sxe__http_field_id_of(other, strlen(other)), (unsigned)_i);
        if (name[at] != '-')
            other[at] ^= 0x20;
        ck_assert_uint_eq(sxe__http_field_id_of(other, strlen(other)), (unsigned)_i);
        other[at] ^= 0x01;
        ck_assert_uint_ne(sxe__http_field_id_of(other, strlen(other)), (unsigned)_i);
    }
}
END_TEST

START_TEST(any_field_is_found_by_its_name)
{
    const char *data = parse(HEAD "X-A: 1\r\nx-b: 2\r\nx-a: 3\r\nX-A^: 4\r\nX-A: 5\r\n\r\n");
    const struct sxe_http_field *field = sxe_http_field(&parser, data, "x-A");

    ck_assert_ptr_eq(field, &fields[1]);
    field = sxe_http_field_next(&parser, data, field);
    ck_assert_ptr_eq(field, &fields[3]);
    field = sxe_http_field_next(&parser, data, field);
    ck_assert_ptr_eq(field, &fields[5]);
    ck_assert_ptr_null(sxe_http_field_next(&parser, data, field));
    ck_assert_ptr_null(sxe_http_field(&parser, data, "x-c"));
    ck_assert_ptr_null(sxe_http_field(&parser, data, "x-a~"));
    ck_assert_ptr_null(sxe_http_field(&parser, data, ""));
    ck_assert_ptr_null(sxe_http_known(&parser, SXE_HTTP_FIELD_DATE));
}
END_TEST

START_TEST(of_a_repeated_field_the_first_is_known)
{
    const char *data = parse(HEAD "Cookie: a\r\nB: c\r\ncookie: d\r\n\r\n");
    const struct sxe_http_field *field = sxe_http_known(&parser, SXE_HTTP_FIELD_COOKIE);

    ck_assert_ptr_eq(field, &fields[1]);
    ck_assert_ptr_eq(sxe_http_field_next(&parser, data, field), &fields[3]);
}
END_TEST

START_TEST(each_refusal_has_a_status_and_a_sentence)
{
    unsigned status = sxe_http_refusal_status((enum sxe_http_refusal)_i);

    ck_assert(status == 400 || status == 413 || status == 414 || status == 431 || status == 501 ||
              status == 505);
    ck_assert_uint_gt(strlen(sxe_http_refusal_text((enum sxe_http_refusal)_i)), 10);
}
END_TEST

START_TEST(each_method_has_its_name)
{
    const char *name = sxe_http_method_name((enum sxe_http_method)_i);

    ck_assert_uint_eq(sxe__http_method_of(name, strlen(name)), (unsigned)_i);
    ck_assert_str_eq(sxe_http_method_name(SXE_HTTP_OTHER), "");
    ck_assert_str_eq(sxe_http_field_name(SXE_HTTP_FIELD_OTHER), "");
}
END_TEST

START_TEST(one_parser_reads_pipelined_requests)
{
    static const char data[] = HEAD "Connection: close\r\n\r\n"
                                    "\r\nPUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
                                    "DELETE /c HTTP/1.1\r\nHost: c\r\n\r\n";
    const char *at = data;
    const char *end = data + sizeof(data) - 1;
    static const char *const wanted[] = {
        GOT " [Connection: close] none close",
        "PUT origin /b 1.1 [Host: a] [Content-Length: 5] length 5 keep",
        "DELETE origin /c 1.1 [Host: c] none keep"};

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, HTTP_CASE_FIELDS, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct http_case_text out;
        int n = sxe_http_parse(&parser, at, (size_t)(end - at));

        ck_assert_int_gt(n, 0);
        http_case_describe(&out, &parser, at, (size_t)n, n);
        ck_assert_str_eq(out.text, wanted[i]);
        at += n;
        sxe_http_parser_next(&parser);
    }
    ck_assert_ptr_eq(at, end);
}
END_TEST

START_TEST(a_slow_sender_is_not_read_twice)
{
    static char message[16384];
    size_t begin = (size_t)snprintf(message, sizeof(message), "%s", HEAD "A: ");

    memset(message + begin, 'x', sizeof(message) - begin);
    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, HTTP_CASE_FIELDS, NULL);
    ck_assert_int_eq(sxe_http_parse(&parser, message, 8000), 0);
    /* Overwrite bytes that were parsed before: the parser may only look back within a block. */
    memset(message + begin, '\n', 8000 - begin - 64);
    ck_assert_int_eq(sxe_http_parse(&parser, message, 8001), 0);
    memcpy(message + 8001, "\r\n\r\n", 4);
    ck_assert_int_eq(sxe_http_parse(&parser, message, sizeof(message)), 8005);
}
END_TEST

START_TEST(a_trailer_may_be_checked_and_forgotten)
{
    sxe_http_parser_init(&parser, SXE_HTTP_TRAILER, NULL, 0, NULL);
    ck_assert_int_eq(sxe_http_parse(&parser, "Date: b\r\nDate: d\r\n\r\n", 20), 20);
    ck_assert_uint_eq(parser.number, 2);
    ck_assert_ptr_null(sxe_http_known(&parser, SXE_HTTP_FIELD_DATE));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-parse");
    TCase *cases = tcase_create("messages");
    TCase *bytes = tcase_create("bytes");
    TCase *limits = tcase_create("limits");
    TCase *found = tcase_create("found");

    sxe_test_add_groups(cases, each_message_means_what_the_rfc_says, HTTP_CASES);
    tcase_add_test(cases, each_title_names_a_section);
    sxe_test_add_groups(bytes, a_method_takes_a_token_and_nothing_else, 256);
    sxe_test_add_groups(bytes, a_name_takes_a_token_and_nothing_else, 256);
    sxe_test_add_groups(bytes, a_value_takes_all_but_control_bytes, 256);
    sxe_test_add_groups(bytes, a_path_takes_what_browsers_send, 256);
    sxe_test_add_groups(bytes, a_query_takes_what_browsers_send, 256);
    sxe_test_add_groups(bytes, a_host_takes_what_rfc_3986_says, 256);
    sxe_test_add_groups(bytes, a_byte_of_a_host_counts_at_every_place, 256);
    tcase_add_loop_test(limits, limits_hold_at_every_split, 0,
                        sizeof(limited) / sizeof(limited[0]));
    tcase_add_test(limits, a_line_limit_above_the_head_limit_is_the_head_limit);
    tcase_add_test(limits, no_limits_are_the_usual_ones);
    tcase_add_test(limits, there_are_never_more_than_255_fields);
    tcase_add_test(limits, room_for_fields_is_a_limit_too);
    tcase_add_test(limits, a_head_may_have_65535_bytes);
    tcase_add_loop_test(found, each_well_known_field_is_found_by_its_id, 1, SXE_HTTP_FIELD_IDS);
    tcase_add_loop_test(found, a_known_name_with_one_byte_changed_is_not_known, 1,
                        SXE_HTTP_FIELD_IDS);
    tcase_add_test(found, any_field_is_found_by_its_name);
    tcase_add_test(found, of_a_repeated_field_the_first_is_known);
    tcase_add_loop_test(found, each_refusal_has_a_status_and_a_sentence, 1, SXE_HTTP_REFUSALS_END);
    tcase_add_loop_test(found, each_method_has_its_name, 1, SXE_HTTP_PATCH + 1);
    tcase_add_test(found, one_parser_reads_pipelined_requests);
    tcase_add_test(found, a_slow_sender_is_not_read_twice);
    tcase_add_test(found, a_trailer_may_be_checked_and_forgotten);
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, bytes);
    suite_add_tcase(suite, limits);
    suite_add_tcase(suite, found);
    return sxe_test_main(suite);
}
