/* SPDX-License-Identifier: MIT
 *
 * Finding the ends of requests in the bytes that a script returned.
 */
#include "script-query.h"

#include <string.h>

#include "sxe-http-chunk.h"
#include "sxe-http-parse.h"

#define FIELDS_MAX 255

static const struct sxe_http_limits limits = {UINT16_MAX, UINT16_MAX, FIELDS_MAX};

static ssize_t
chunked_length(const char *bytes, size_t length, const char **why)
{
    struct sxe_http_chunks chunks;
    struct sxe_span data;
    size_t at = 0;

    sxe_http_chunks_init(&chunks, NULL, 0, &limits);
    while (!chunks.done) {
        ssize_t taken = sxe_http_chunks_read(&chunks, bytes + at, length - at, &data);

        if (taken <= 0) {
            *why = sxe_http_refusal_text((enum sxe_http_refusal)chunks.refusal);
            return taken;
        }
        at += (size_t)taken;
    }
    return (ssize_t)at;
}

ssize_t
load_script_query(const char *bytes, size_t length, struct load_query *query, const char **why)
{
    struct sxe_http_field fields[FIELDS_MAX];
    struct sxe_http_parser parser;
    ssize_t body;
    int head;

    query->is_head = length > 5 && memcmp(bytes, "HEAD ", 5) == 0;
    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, FIELDS_MAX, &limits);
    head = sxe_http_parse(&parser, bytes, length);
    if (head <= 0) {
        *why = sxe_http_refusal_text((enum sxe_http_refusal)parser.refusal);
        return head;
    }
    query->is_last = !parser.keep_alive;
    bytes += head;
    length -= (size_t)head;
    if (parser.body == SXE_HTTP_BODY_CHUNKED) {
        body = chunked_length(bytes, length, why);
        return body > 0 ? head + body : body;
    }
    return parser.length <= length ? head + (ssize_t)parser.length : 0;
}
