/* SPDX-License-Identifier: MIT
 *
 * What: a message, and the parser's expected result as one line of text. http_case_run() parses it
 * with each set of processor features: whole, cut in two at every place, and byte by byte. After
 * each piece the bytes move, so that they end at a page that cannot be read.
 *
 *     GET origin /a?b 1.1 [Host: x] length 5 keep upgrade rest 7
 *     1.1 200 OK [Server: x] chunked keep
 *     FOLDED_LINE@27
 */
#ifndef HTTP_CASE_H
#define HTTP_CASE_H

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../lib-sxe-http/parse/sxe-http-private.h"

enum { HTTP_CASE_TEXT_MAX = 4096, HTTP_CASE_FIELDS = 300, HTTP_CASE_EDGE = 1 << 17 };

enum http_case_kind {
    HTTP_REQUEST,
    HTTP_RESPONSE,
    HTTP_TO_HEAD,    /* a response to HEAD */
    HTTP_TO_CONNECT, /* a response to CONNECT */
    HTTP_TRAILER
};

struct http_case {
    const char *title; /* begins with the section's number in RFC 9110 or 9112 */
    enum http_case_kind kind;
    const char *bytes;
    size_t length;
    const char *expected;
};

#define HTTP_CASE(title, kind, bytes, expected)         \
    {                                                   \
        title, kind, bytes, sizeof(bytes) - 1, expected \
    }

/* Processor features to scan with; if this processor lacks one, the parser uses the next set. */
static const unsigned http_case_ways[] = {SXE__HTTP_AVX2 | SXE__HTTP_SSE42, SXE__HTTP_SSE42, 0};
enum { HTTP_CASE_WAYS = 3 };

static inline const char *
http_case_choose(unsigned way)
{
    return sxe__http_scan_choose(http_case_ways[way] & sxe__http_scan_features());
}

/* A copy of the bytes that ends at a page without access. */
static inline const char *
http_case_at_edge(const char *bytes, size_t length)
{
    static char *memory;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (memory == NULL) {
        memory = mmap(NULL, HTTP_CASE_EDGE + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory + HTTP_CASE_EDGE, page, PROT_NONE) != 0)
            abort();
    }
    memset(memory, '#', HTTP_CASE_EDGE - length);
    if (length > 0)
        memcpy(memory + HTTP_CASE_EDGE - length, bytes, length);
    return memory + HTTP_CASE_EDGE - length;
}

struct http_case_text {
    char text[HTTP_CASE_TEXT_MAX];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static inline void
http_case_say(struct http_case_text *out, const char *format, ...)
{
    va_list args;
    int said;

    va_start(args, format);
    said = vsnprintf(out->text + out->length, sizeof(out->text) - out->length, format, args);
    va_end(args);
    out->length += (size_t)said;
    if (out->length >= sizeof(out->text))
        out->length = sizeof(out->text) - 1;
}

#define HTTP_CASE_REFUSAL(id, status, why) #id,
static const char *const http_case_refusals[] = {"NOT_REFUSED",
                                                 SXE_HTTP_REFUSALS(HTTP_CASE_REFUSAL)};

static inline void
http_case_describe_line(struct http_case_text *out, const struct sxe_http_parser *parser,
                        const char *data)
{
    static const char *const forms[] = {"origin", "absolute", "authority", "asterisk"};

    if (parser->kind == SXE_HTTP_REQUEST)
        http_case_say(out, "%.*s%s %s %.*s 1.%u", parser->method_name.length,
                      data + parser->method_name.offset,
                      parser->method == SXE_HTTP_OTHER ? "?" : "", forms[parser->form],
                      parser->target.length, data + parser->target.offset, parser->minor);
    else if (parser->kind == SXE_HTTP_RESPONSE)
        http_case_say(out, "1.%u %u %.*s", parser->minor, parser->status, parser->reason.length,
                      data + parser->reason.offset);
}

/* Describe what the parser found in `length` bytes. `result` is that of sxe_http_parse. */
static inline void
http_case_describe(struct http_case_text *out, const struct sxe_http_parser *parser,
                   const char *data, size_t length, int result)
{
    static const char *const bodies[] = {"none", "length", "chunked", "until-close"};

    out->length = 0;
    out->text[0] = '\0';
    if (result < 0) {
        http_case_say(out, "%s@%u", http_case_refusals[parser->refusal], parser->refused_at);
        return;
    }
    if (result == 0) {
        http_case_say(out, "more");
        return;
    }
    http_case_describe_line(out, parser, data);
    for (unsigned i = 0; i < parser->number; i++) {
        const struct sxe_http_field *field = &parser->fields[i];
        http_case_say(out, " [%.*s: %.*s]", field->name_length, data + field->name,
                      field->value_length, data + field->value);
    }
    if (parser->kind != SXE_HTTP_TRAILER) {
        http_case_say(out, " %s", bodies[parser->body]);
        if (parser->body == SXE_HTTP_BODY_LENGTH)
            http_case_say(out, " %llu", (unsigned long long)parser->length);
        http_case_say(out, " %s%s%s", parser->keep_alive ? "keep" : "close",
                      parser->expect_continue ? " continue" : "",
                      parser->upgrade ? " upgrade" : "");
    }
    if ((size_t)result < length)
        http_case_say(out, " rest %zu", length - (size_t)result);
}

static inline void
http_case_start(struct sxe_http_parser *parser, struct sxe_http_field *fields,
                enum http_case_kind kind, const struct sxe_http_limits *limits)
{
    static const enum sxe_http_kind kinds[] = {SXE_HTTP_REQUEST, SXE_HTTP_RESPONSE,
                                               SXE_HTTP_RESPONSE, SXE_HTTP_RESPONSE,
                                               SXE_HTTP_TRAILER};

    sxe_http_parser_init(parser, kinds[kind], fields, HTTP_CASE_FIELDS, limits);
    if (kind == HTTP_TO_HEAD)
        parser->method = SXE_HTTP_HEAD;
    if (kind == HTTP_TO_CONNECT)
        parser->method = SXE_HTTP_CONNECT;
}

/* Parse the message in growing pieces: first `first` bytes, then `step` more each time. */
static inline void
http_case_feed(struct http_case_text *out, const struct http_case *test, size_t first, size_t step,
               const struct sxe_http_limits *limits)
{
    static struct sxe_http_field fields[HTTP_CASE_FIELDS];
    struct sxe_http_parser parser;
    const char *data = test->bytes;
    size_t length = first;
    int result;

    http_case_start(&parser, fields, test->kind, limits);
    for (;;) {
        data = http_case_at_edge(test->bytes, length);
        result = sxe_http_parse(&parser, data, length);
        ck_assert_msg(result <= (int)length, "%s: more than there is", test->title);
        if (result != 0 || length == test->length)
            break;
        length = length + step < test->length ? length + step : test->length;
    }
    /* Bytes after the head must not change the result. */
    http_case_describe(out, &parser, data, result > 0 ? test->length : length, result);
    ck_assert_int_eq(sxe_http_parse(&parser, data, length), result);
}

static inline void
http_case_run_limited(const struct http_case *test, const struct sxe_http_limits *limits)
{
    struct http_case_text out;

    for (unsigned way = 0; way < HTTP_CASE_WAYS; way++) {
        const char *name = http_case_choose(way);

        http_case_feed(&out, test, test->length, 1, limits);
        ck_assert_msg(strcmp(out.text, test->expected) == 0, "%s (%s):\n  is     %s\n  wanted %s",
                      test->title, name, out.text, test->expected);
        for (size_t first = 0; first < test->length; first++) {
            http_case_feed(&out, test, first, test->length, limits);
            ck_assert_msg(strcmp(out.text, test->expected) == 0,
                          "%s (%s), cut at %zu:\n  is     %s\n  wanted %s", test->title, name,
                          first, out.text, test->expected);
        }
        http_case_feed(&out, test, 0, 1, limits);
        ck_assert_msg(strcmp(out.text, test->expected) == 0,
                      "%s (%s), byte by byte:\n  is     %s\n  wanted %s", test->title, name,
                      out.text, test->expected);
    }
}

static inline void
http_case_run(const struct http_case *test)
{
    http_case_run_limited(test, NULL);
}

#endif
