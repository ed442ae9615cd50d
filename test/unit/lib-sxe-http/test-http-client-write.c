/* SPDX-License-Identifier: MIT
 *
 * The writer of request heads: its output, and which calls it refuses.
 */
#include <errno.h>
#include <stdlib.h>

#include "sxe-http-client.h"

#include "test-main.h"

#define ROOM        256
#define FIELDS_MANY 256

/* Initialisers of spans and fields, for tables of cases. */
#define TEXT(text)                \
    {                             \
        "" text, sizeof(text) - 1 \
    }
#define FIELD(name, value)      \
    {                           \
        TEXT(name), TEXT(value) \
    }
#define NO_FIELDS              \
    {                          \
        {                      \
            TEXT(""), TEXT("") \
        }                      \
    }

/* The head that the cases change. */
static const struct sxe_http_request_head plain = {.target = TEXT("/"), .host = TEXT("h")};

static const struct good {
    struct sxe_http_request_head request;
    struct sxe_http_pair fields[2];
    const char *text;
} good[] = {
    {{.target = TEXT("/")}, NO_FIELDS, "GET / HTTP/1.1\r\nHost: \r\n\r\n"},
    {{.target = TEXT("/a?b%20"), .host = TEXT("example.com:80")},
     {FIELD("Accept", "*/*"), FIELD("X", "")},
     "GET /a?b%20 HTTP/1.1\r\nHost: example.com:80\r\nAccept: */*\r\nX: \r\n\r\n"},
    {{.method = TEXT("POST"), .target = TEXT("/"), .host = TEXT("[::1]:8"), .body_length = 10},
     {FIELD("Expect", "100-continue")},
     "POST / HTTP/1.1\r\nHost: [::1]:8\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"},
    {{.method = TEXT("POST"), .target = TEXT("/")},
     NO_FIELDS,
     "POST / HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n"},
    {{.method = TEXT("PUT"), .target = TEXT("/")},
     NO_FIELDS,
     "PUT / HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n"},
    {{.method = TEXT("PATCH"), .target = TEXT("/")},
     NO_FIELDS,
     "PATCH / HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n"},
    {{.method = TEXT("DELETE"), .target = TEXT("/")},
     NO_FIELDS,
     "DELETE / HTTP/1.1\r\nHost: \r\n\r\n"},
    {{.method = TEXT("PUT"), .target = TEXT("/"), .body_length = SXE_HTTP_CHUNKED},
     {FIELD("Trailer", "Digest")},
     "PUT / HTTP/1.1\r\nHost: \r\nTrailer: Digest\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {{.method = TEXT("GET"), .target = TEXT("/"), .body_length = UINT64_MAX - 1},
     NO_FIELDS,
     "GET / HTTP/1.1\r\nHost: \r\nContent-Length: 18446744073709551614\r\n\r\n"},
    {{.method = TEXT("CONNECT"), .target = TEXT("a:1"), .host = TEXT("a:1")},
     NO_FIELDS,
     "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"},
    {{.method = TEXT("OPTIONS"), .target = TEXT("*"), .host = TEXT("h")},
     NO_FIELDS,
     "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"},
    {{.method = TEXT("PURGE"), .target = TEXT("http://a/b"), .host = TEXT("a")},
     {FIELD("Cookie", "caf\xC3\xA9; a=\"b\tc\"")},
     "PURGE http://a/b HTTP/1.1\r\nHost: a\r\nCookie: caf\xC3\xA9; a=\"b\tc\"\r\n\r\n"},
};

static struct sxe_http_request_head
with_fields(struct sxe_http_request_head request, const struct sxe_http_pair fields[2])
{
    request.fields = fields;
    while (request.fields_number < 2 && fields[request.fields_number].name.length > 0)
        request.fields_number++;
    return request;
}

START_TEST(a_valid_request_is_written_as_it_should_be)
{
    const struct good *c = &good[_i];
    struct sxe_http_request_head request = with_fields(c->request, c->fields);
    char room[ROOM];
    ssize_t length = sxe_http_request_write(&request, room, sizeof(room));

    ck_assert_int_eq(length, (ssize_t)strlen(c->text));
    ck_assert_mem_eq(room, c->text, strlen(c->text));
}
END_TEST

START_TEST(a_request_that_does_not_fit_is_refused_at_each_size)
{
    struct sxe_http_request_head request = with_fields(good[1].request, good[1].fields);
    size_t length = strlen(good[1].text);

    for (size_t size = 0; size <= length; size++) {
        char *room = malloc(size + 1);

        room[size] = 'x';
        ck_assert_int_eq(sxe_http_request_write(&request, room, size),
                         size < length ? -EMSGSIZE : (ssize_t)length);
        ck_assert_int_eq(room[size], 'x');
        free(room);
    }
}
END_TEST

START_TEST(a_head_has_at_most_65535_bytes)
{
    static char target[UINT16_MAX + 1];
    static char room[2 * sizeof(target)];
    struct sxe_http_request_head request = plain;
    size_t others = strlen("GET  HTTP/1.1\r\nHost: h\r\n\r\n");

    memset(target, '/', sizeof(target));
    request.target = (struct sxe_span){target, UINT16_MAX - others};
    ck_assert_int_eq(sxe_http_request_write(&request, room, sizeof(room)), UINT16_MAX);
    request.target.length++;
    ck_assert_int_eq(sxe_http_request_write(&request, room, sizeof(room)), -EMSGSIZE);
}
END_TEST

START_TEST(there_are_at_most_255_fields)
{
    static struct sxe_http_pair fields[FIELDS_MANY];
    struct sxe_http_request_head request = plain;
    char room[16 * FIELDS_MANY];

    for (unsigned i = 0; i < FIELDS_MANY; i++)
        fields[i] = (struct sxe_http_pair)FIELD("a", "b");
    request.fields = fields;
    request.fields_number = FIELDS_MANY - 2; /* two less, because Host is a field, too */
    ck_assert_int_gt(sxe_http_request_write(&request, room, sizeof(room)), 0);
    request.fields_number++;
    ck_assert_int_eq(sxe_http_request_write(&request, room, sizeof(room)), -EINVAL);
}
END_TEST

static const struct bad {
    const char *why;
    struct sxe_http_request_head request;
    struct sxe_http_pair fields[2];
} bad[] = {
    {"no target", {.method = TEXT("GET")}, NO_FIELDS},
    {"a blank in the method", {.method = TEXT("GET /x"), .target = TEXT("/")}, NO_FIELDS},
    {"a line end in the method", {.method = TEXT("A\r\n"), .target = TEXT("/")}, NO_FIELDS},
    {"a blank in the target", {.target = TEXT("/ /")}, NO_FIELDS},
    {"a version in the target", {.target = TEXT("/ HTTP/1.1")}, NO_FIELDS},
    {"a line end in the target", {.target = TEXT("/ HTTP/1.1\r\nA: b\r\nC:")}, NO_FIELDS},
    {"NUL in the target", {.target = TEXT("/\0")}, NO_FIELDS},
    {"half an escape", {.target = TEXT("/%2")}, NO_FIELDS},
    {"no form of a target", {.target = TEXT("a/b")}, NO_FIELDS},
    {"a line end in Host", {.target = TEXT("/"), .host = TEXT("a\r\nB: c")}, NO_FIELDS},
    {"a path in Host", {.target = TEXT("/"), .host = TEXT("a/b")}, NO_FIELDS},
    {"a port out of range", {.target = TEXT("/"), .host = TEXT("a:65536")}, NO_FIELDS},
    {"a blank in a name", {.target = TEXT("/")}, {FIELD("A B", "c")}},
    {"a colon in a name", {.target = TEXT("/")}, {FIELD("A:", "c")}},
    {"a line end in a name", {.target = TEXT("/")}, {FIELD("A: b\r\nC", "d")}},
    {"CR in a value", {.target = TEXT("/")}, {FIELD("A", "b\rc")}},
    {"LF in a value", {.target = TEXT("/")}, {FIELD("A", "b\nC: d")}},
    {"NUL in a value", {.target = TEXT("/")}, {FIELD("A", "b\0c")}},
    {"CR LF at a value's end", {.target = TEXT("/")}, {FIELD("A", "b"), FIELD("C", "d\r\n")}},
    {"a second Host", {.target = TEXT("/")}, {FIELD("host", "a")}},
    {"a length of the caller's", {.target = TEXT("/")}, {FIELD("content-LENGTH", "3")}},
    {"a coding of the caller's", {.target = TEXT("/")}, {FIELD("Transfer-Encoding", "chunked")}},
    {"TRACE with a body, RFC 9110 9.3.8",
     {.method = TEXT("TRACE"), .target = TEXT("/"), .body_length = 1},
     NO_FIELDS},
    {"CONNECT with a body, RFC 9110 9.3.6",
     {.method = TEXT("CONNECT"), .target = TEXT("a:1"), .body_length = 1},
     NO_FIELDS},
    {"CONNECT to a path", {.method = TEXT("CONNECT"), .target = TEXT("/")}, NO_FIELDS},
    {"Expect without a body, RFC 9110 10.1.1",
     {.target = TEXT("/")},
     {FIELD("Expect", "100-continue")}},
};

START_TEST(what_would_not_be_valid_is_refused)
{
    const struct bad *c = &bad[_i];
    struct sxe_http_request_head request = with_fields(c->request, c->fields);
    char room[ROOM];

    ck_assert_msg(sxe_http_request_write(&request, room, sizeof(room)) == -EINVAL, "%s", c->why);
}
END_TEST

START_TEST(a_field_without_a_name_is_refused)
{
    static const struct sxe_http_pair field = FIELD("", "a");
    struct sxe_http_request_head request = plain;
    char room[ROOM];

    request.fields = &field;
    request.fields_number = 1;
    ck_assert_int_eq(sxe_http_request_write(&request, room, sizeof(room)), -EINVAL);
}
END_TEST

/* Put each byte value into each text of a request. The writer refuses it, or the result parses as
 * one request with exactly these fields. */
START_TEST(no_byte_in_any_text_makes_another_request)
{
    char byte = (char)_i;
    char text[] = {'a', byte, 'a'};
    char room[ROOM];

    for (unsigned place = 0; place < 5; place++) {
        struct sxe_http_pair field = FIELD("a", "b");
        struct sxe_http_request_head request = plain;
        struct sxe_span *const places[] = {&request.method, &request.target, &request.host,
                                           &field.name, &field.value};
        struct sxe_http_parser parser;
        struct sxe_http_field fields[4];
        ssize_t length;

        request.fields = &field;
        request.fields_number = 1;
        *places[place] = (struct sxe_span){text, sizeof(text)};
        if (place == 1)
            text[0] = '/';
        length = sxe_http_request_write(&request, room, sizeof(room));
        text[0] = 'a';
        if (length == -EINVAL)
            continue;
        sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, 4, NULL);
        ck_assert_int_eq(sxe_http_parse(&parser, room, (size_t)length), length);
        ck_assert_uint_eq(parser.number, 2);
        ck_assert_uint_eq(fields[1].name_length, field.name.length);
        ck_assert_uint_eq(parser.target.length, request.target.length);
    }
}
END_TEST

static Suite *
write_suite(void)
{
    Suite *suite = suite_create("http client write");
    TCase *requests = tcase_create("requests");

    tcase_add_loop_test(requests, a_valid_request_is_written_as_it_should_be, 0,
                        sizeof(good) / sizeof(good[0]));
    tcase_add_test(requests, a_request_that_does_not_fit_is_refused_at_each_size);
    tcase_add_test(requests, a_head_has_at_most_65535_bytes);
    tcase_add_test(requests, there_are_at_most_255_fields);
    tcase_add_loop_test(requests, what_would_not_be_valid_is_refused, 0,
                        sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(requests, a_field_without_a_name_is_refused);
    tcase_add_loop_test(requests, no_byte_in_any_text_makes_another_request, 0, 256);
    suite_add_tcase(suite, requests);
    return suite;
}

int
main(void)
{
    return sxe_test_main(write_suite());
}
