/* SPDX-License-Identifier: MIT
 *
 * What: parse a request that is made of field lines, and representations that it may select, for
 * the tests of sxe-http-conditional.h.
 */
#ifndef CONDITIONAL_REQUEST_H
#define CONDITIONAL_REQUEST_H

#include <stdio.h>

#include "page-edge.h"
#include "sxe-http-conditional.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

#define MODIFIED INT64_C(784111777)
#define EARLIER  "Sun, 06 Nov 1994 08:49:36 GMT"
#define SAME     "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER    "Sun, 06 Nov 1994 08:49:38 GMT"

enum { ROOM = 512, FIELDS = 40, RANGES = 16 };

static struct {
    struct sxe_http_parser parser;
    struct sxe_http_field fields[FIELDS];
    const char *data;
} request;

/* Parse a request with these field lines. It ends at an unreadable page, so that reading past it
 * crashes. */
static inline void
parse(const char *method, const char *lines)
{
    char text[8 * ROOM];
    int length = snprintf(text, sizeof(text), "%s / HTTP/1.1\r\nHost: x\r\n%s\r\n", method, lines);

    ck_assert_int_lt(length, (int)sizeof(text));
    request.data = page_edge(text).base;
    sxe_http_parser_init(&request.parser, SXE_HTTP_REQUEST, request.fields, FIELDS, NULL);
    ck_assert_msg(sxe_http_parse(&request.parser, request.data, (size_t)length) == length, "%s",
                  lines);
}

static inline struct sxe_http_conditions
conditions_of(const char *method, const char *lines)
{
    parse(method, lines);
    return sxe_http_conditions_of(&request.parser, request.data, MODIFIED);
}

enum { STRONG, WEAK, NO_ETAG, NO_DATE, NOTHING, MISSING };

static inline struct sxe_http_representation
representation(int kind)
{
    struct sxe_http_representation made = {
        .etag = {"\"x\"", 3}, .modified = MODIFIED, .length = 1000};

    if (kind == WEAK)
        made.etag = (struct sxe_span){"W/\"x\"", 5};
    if (kind == NO_ETAG || kind == NOTHING || kind == MISSING)
        made.etag = (struct sxe_span){NULL, 0};
    if (kind == NO_DATE || kind == NOTHING || kind == MISSING)
        made.modified = SXE_HTTP_NO_DATE;
    made.is_missing = kind == MISSING;
    return made;
}

#endif
