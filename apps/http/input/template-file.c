/* SPDX-License-Identifier: MIT
 *
 * Request files: raw requests one after another.
 *
 *     # anything
 *     POST /item/{SEQ} HTTP/1.1 LF
 *     Content-Length: 2 LF
 *     LF
 *     {}LF
 *     ###
 *     GET / HTTP/1.1 ...
 */
#include "template-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "whole-file.h"
#include "wrong.h"

enum { FIELDS_MAX = 255, NAME_MAX_BYTES = 200, DIGITS_MAX = 9 };

/* A file that is being read. */
struct reading {
    const char *at;
    const char *end;
    unsigned line; /* the line that `at` is in, from 1 */
};

struct raw_request {
    struct sxe_span head; /* the lines of the head, without the empty line that ends it */
    struct sxe_span body;
    bool has_host;
};

/* Read a line, and return it without its end. */
static struct sxe_span
take_file_line(struct reading *reading)
{
    const char *line = reading->at;
    const char *end = memchr(line, '\n', (size_t)(reading->end - line));
    size_t length = (size_t)((end == NULL ? reading->end : end) - line);

    reading->at = end == NULL ? reading->end : end + 1;
    reading->line++;
    if (length > 0 && line[length - 1] == '\r')
        length--;
    return (struct sxe_span){line, length};
}

/* Skip empty lines and comments before the next request. False: the file has no further request. */
static bool
find_request(struct reading *reading)
{
    while (reading->at < reading->end) {
        struct reading before = *reading;
        struct sxe_span line = take_file_line(reading);

        if (line.length > 0 && *line.base != '#') {
            *reading = before;
            return true;
        }
    }
    return false;
}

static bool
is_field_line(struct sxe_span line, const char *name)
{
    size_t length = strlen(name);

    return line.length > length && line.base[length] == ':' &&
           load_template_is_name((struct sxe_span){line.base, length}, name);
}

/* Read the value of a Content-Length. False: it is no number, or too large. */
static bool
read_length(struct sxe_span line, size_t *length)
{
    char digits[DIGITS_MAX + 1] = "";
    const char *value = memchr(line.base, ':', line.length);
    size_t blanks;
    size_t number;

    value++;
    number = (size_t)(line.base + line.length - value);
    for (blanks = 0; blanks < number && value[blanks] == ' '; blanks++)
        continue;
    number -= blanks;
    if (number < 1 || number > DIGITS_MAX)
        return false;
    memcpy(digits, value + blanks, number);
    *length = strtoul(digits, NULL, 10);
    return strspn(digits, "0123456789") == number && *length <= LOAD_TEMPLATE_BODY_MAX;
}

/* Read one request, whose placeholders are not replaced yet. NULL, or what is wrong. */
static const char *
read_raw_request(struct reading *reading, struct raw_request *raw)
{
    size_t length = 0;

    raw->head.base = reading->at;
    while (reading->at < reading->end) {
        struct sxe_span line = take_file_line(reading);

        if (line.length == 0)
            break;
        raw->head.length = (size_t)(reading->at - raw->head.base);
        raw->has_host |= is_field_line(line, "Host");
        if (is_field_line(line, "Content-Length") && !read_length(line, &length))
            return load_wrong("'%.*s' is not a number of bytes that can be sent", (int)line.length,
                              line.base);
    }
    raw->body = (struct sxe_span){reading->at, (size_t)(reading->end - reading->at)};
    if (length > raw->body.length)
        return load_wrong("its body should have %zu bytes, and %zu follow", length,
                          raw->body.length);
    raw->body.length = length;
    reading->at += length;
    for (size_t i = 0; i < length; i++)
        reading->line += raw->body.base[i] == '\n';
    return NULL;
}

/* Add the request's head to the draft. Each line gets CRLF, and Content-Length gets the length that
 * the body has after its placeholders were replaced. */
static const char *
draft_head(struct load_draft *draft, const struct raw_request *raw, size_t body_length,
           const char *authority)
{
    struct reading head = {raw->head.base, raw->head.base + raw->head.length, 0};
    const char *wrong = NULL;
    char text[64];

    while (head.at < head.end && wrong == NULL) {
        struct sxe_span line = take_file_line(&head);

        if (raw->body.length != body_length && is_field_line(line, "Content-Length")) {
            snprintf(text, sizeof(text), "Content-Length: %zu", body_length);
            line = sxe_http_span(text);
        }
        wrong = load_draft_expand(draft, line);
        load_draft_add(draft, sxe_http_span("\r\n"));
        if (head.line == 1 && !raw->has_host) {
            load_draft_add(draft, sxe_http_span("Host: "));
            load_draft_add(draft, sxe_http_span(authority));
            load_draft_add(draft, sxe_http_span("\r\n"));
        }
    }
    load_draft_add(draft, sxe_http_span("\r\n"));
    return wrong;
}

static const char *
draft_request(struct load_draft *draft, const struct raw_request *raw, const char *authority)
{
    struct load_draft body = {0};
    const char *wrong = load_draft_expand(&body, raw->body);

    if (wrong == NULL)
        wrong = draft_head(draft, raw, body.length, authority);
    load_draft_append(draft, &body);
    load_draft_free(&body);
    return wrong;
}

/* Parse the head as a server would, and set is_head and is_last of *found. NULL, or what is
 * wrong. */
static const char *
check_template_request(const struct load_draft *draft, struct load_query *found)
{
    static const struct sxe_http_limits widest = {UINT16_MAX, UINT16_MAX, FIELDS_MAX};
    struct sxe_http_field fields[FIELDS_MAX];
    struct sxe_http_parser parser;

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, FIELDS_MAX, &widest);
    if (sxe_http_parse(&parser, draft->bytes, draft->length) <= 0)
        return sxe_http_refusal_text((enum sxe_http_refusal)parser.refusal);
    if (parser.method == SXE_HTTP_CONNECT)
        return "CONNECT makes a tunnel: there are no requests through it";
    if (parser.body == SXE_HTTP_BODY_CHUNKED)
        return "a body of chunks cannot be read from a file: give it a Content-Length";
    found->is_head = parser.method == SXE_HTTP_HEAD;
    found->is_last = !parser.keep_alive;
    return NULL;
}

/* Write the name of the request's kind, such as "GET /a", with the target as it stands in the
 * file. */
static void
name_request(const struct raw_request *raw, char *name, size_t size)
{
    const char *end = raw->head.base + raw->head.length;
    const char *p = raw->head.base;
    unsigned blanks = 0;

    while (p < end && *p != '\n' && *p != '\r' && (*p != ' ' || blanks++ == 0))
        p++;
    snprintf(name, size, "%.*s", (int)(p - raw->head.base), raw->head.base);
}

static const char *
add_request_template(struct load_requests *requests, const struct raw_request *raw,
                     const char *authority)
{
    struct load_template template = {0};
    struct load_draft draft = {0};
    char name[NAME_MAX_BYTES];
    struct load_query found = {0};
    const char *wrong = draft_request(&draft, raw, authority);

    if (wrong == NULL && draft.is_out_of_memory)
        wrong = "out of memory";
    if (wrong == NULL)
        wrong = check_template_request(&draft, &found);
    if (wrong == NULL)
        wrong = load_template_take(&template, &draft);
    if (wrong == NULL) {
        template.is_head = found.is_head;
        template.is_last = found.is_last;
        name_request(raw, name, sizeof(name));
        wrong = load_templates_take(requests, &template, name);
    }
    load_draft_free(&draft);
    return wrong;
}

/* Put the names of the file and the line before a message. The message may be in the buffer of
 * load_wrong, which is overwritten. */
static const char *
in_line(const char *path, unsigned line, const char *wrong)
{
    char text[LOAD_WRONG_MAX];

    snprintf(text, sizeof(text), "%s", wrong);
    return load_wrong("'%s', the request in line %u: %s", path, line, text);
}

const char *
load_templates_add_file(struct load_requests *requests, const char *path, const char *authority)
{
    size_t length = 0;
    char *text = load_whole_file(path, &length);
    struct reading reading = {text, text, 1};
    const char *wrong = NULL;
    bool is_empty = true;

    if (text == NULL)
        return load_wrong("'%s': %s", path, strerror(errno));
    reading.end += length;
    while (wrong == NULL && find_request(&reading)) {
        struct raw_request raw = {0};
        unsigned line = reading.line;

        is_empty = false;
        wrong = read_raw_request(&reading, &raw);
        if (wrong == NULL)
            wrong = add_request_template(requests, &raw, authority);
        if (wrong != NULL)
            wrong = in_line(path, line, wrong);
    }
    free(text);
    return is_empty ? load_wrong("'%s' has no requests", path) : wrong;
}
