/* SPDX-License-Identifier: MIT
 *
 * What: decides what of a representation a request is to get: all, some ranges, nothing because
 * the client has it or because a condition fails (RFC 9110, 13 and 14), and in which content coding
 * (12.5.3).
 *
 * Place: static files, and handlers that know an entity tag or a time of their answer. Pure: from
 * field values to a decision, no I/O, no allocation.
 *
 * Shape: the order is that of RFC 9110, 13.2.2; each question is asked only if the one before it
 * lets the request go on.
 *
 *     sxe_http_select_coding -> the representation
 *     sxe_http_precondition     If-Match, or else If-Unmodified-Since      -> 412
 *                               If-None-Match, or else If-Modified-Since   -> 304 or 412
 *     sxe_http_select_ranges    If-Range, Range       -> 206 with ranges, 416, or 200 with all
 *
 * Where a field is malformed, the reading is taken that changes nothing by mistake: an If-Match
 * that is no list of entity tags fails, an If-None-Match fails at any good tag that matches; dates
 * that are none are ignored, as the RFC says. Of ranges it says "ignore or reject" (14.2): those of
 * an unknown unit are ignored, and all is sent; malformed ranges of bytes are refused.
 *
 * Limits: the ranges that the caller has room for; more that are there are a reason to send all.
 * Ranges that overlap or touch are made one, so that no byte is sent twice.
 *
 * Example:
 *     struct sxe_http_representation file = {.etag = etag, .modified = mtime, .length = size};
 *     struct sxe_http_conditions conditions =
 *         sxe_http_conditions_of(&parser, data, dates.seconds);
 *     struct sxe_http_range ranges[16];
 *     unsigned status = sxe_http_precondition(&conditions, &file);
 *     int number = status == 0 ? sxe_http_select_ranges(&conditions, &file, ranges, 16) : 0;
 */
#ifndef SXE_HTTP_CONDITIONAL_H
#define SXE_HTTP_CONDITIONAL_H

#include "sxe-http-list.h"
#include "sxe-http-parse.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_HTTP_NO_DATE INT64_MIN

/* The server's representation; all of it is the caller's. */
struct sxe_http_representation {
    struct sxe_span etag;  /* "x" or W/"x" with its quotes; base NULL: it has none */
    int64_t modified;      /* Last-Modified, seconds since 1970, or SXE_HTTP_NO_DATE */
    uint64_t length;       /* bytes */
    bool is_missing;       /* there is none, as before a PUT that creates it */
    bool modified_is_weak; /* it may have changed twice in that second (RFC 9110, 8.8.2.2) */
};

/* The client's conditions. A missing field has a list of all zeros, or a span with base NULL. */
struct sxe_http_conditions {
    enum sxe_http_method method;
    struct sxe_http_list if_match;
    struct sxe_http_list if_none_match;
    struct sxe_span if_modified_since;
    struct sxe_span if_unmodified_since;
    struct sxe_span if_range;
    struct sxe_span range;
    int64_t now; /* seconds since 1970, for years of two digits */
};

/* The conditions of a request; parser and data must stay. */
SXE_PUBLIC struct sxe_http_conditions sxe_http_conditions_of(const struct sxe_http_parser *parser,
                                                             const char *data, int64_t now);

/* Whether the request has neither a condition nor a range, so that it gets all. (If-Range is but
 * about Range, RFC 9110, 13.1.5.) */
static inline bool
sxe_http_is_unconditional(const struct sxe_http_parser *parser)
{
    return sxe_http_known(parser, SXE_HTTP_FIELD_IF_MATCH) == NULL &&
           sxe_http_known(parser, SXE_HTTP_FIELD_IF_MODIFIED_SINCE) == NULL &&
           sxe_http_known(parser, SXE_HTTP_FIELD_IF_NONE_MATCH) == NULL &&
           sxe_http_known(parser, SXE_HTTP_FIELD_IF_UNMODIFIED_SINCE) == NULL &&
           sxe_http_known(parser, SXE_HTTP_FIELD_RANGE) == NULL;
}

/* ---- Entity tags (RFC 9110, 8.8.3) ---- */

enum sxe_http_comparison { SXE_HTTP_WEAK_COMPARISON, SXE_HTTP_STRONG_COMPARISON };

SXE_PUBLIC bool sxe_http_etag_is_valid(struct sxe_span etag);

/* False also if one of them is not valid. */
SXE_PUBLIC bool sxe_http_etag_matches(struct sxe_span a, struct sxe_span b,
                                      enum sxe_http_comparison comparison);

/* ---- Conditions ---- */

/* 0: go on; 304 or 412: answer that. Ask only where the answer would otherwise be 2xx or 412 (RFC
 * 9110, 13.2.1), and not for CONNECT, OPTIONS and TRACE. */
SXE_PUBLIC SXE_MUST_USE unsigned
sxe_http_precondition(const struct sxe_http_conditions *conditions,
                      const struct sxe_http_representation *selected);

/* ---- Ranges of bytes ---- */

struct sxe_http_range {
    uint64_t first;  /* offset */
    uint64_t length; /* at least 1 */
};

/* Which parts to send, once the conditions let the request go on. n > 0: 206 with n ranges, none
 * touching another, in the order of the request; 0: 200 with all (no GET, no Range or none of
 * bytes, more than max ranges that are there or more bytes than there are asked for, or If-Range
 * fails); -ERANGE: 416 (none of it is there, or the ranges are malformed). */
SXE_PUBLIC SXE_MUST_USE int sxe_http_select_ranges(const struct sxe_http_conditions *conditions,
                                                   const struct sxe_http_representation *selected,
                                                   struct sxe_http_range *ranges, unsigned max);

#define SXE_HTTP_CONTENT_RANGE_MAX 70

/* Write a Content-Range with a final NUL, "bytes 0-99/1234", or, range NULL, "bytes" and "*" with
 * the length, for 416. Returns its length, less than the room. */
SXE_PUBLIC size_t sxe_http_content_range(const struct sxe_http_range *range, uint64_t length,
                                         char room[SXE_HTTP_CONTENT_RANGE_MAX]);

/* ---- Content codings ---- */

#define SXE_HTTP_CODINGS_MAX 8

/* The coding to send: an index into the `number` names offered (at most 8 of them count), which
 * stand in the server's order of preference, or -1: as it is (identity). The client's weights
 * decide first, then that order; identity comes last among equals, and is also what a client gets
 * that accepts nothing offered. */
SXE_PUBLIC int sxe_http_select_coding(const struct sxe_http_list *accept_encoding,
                                      const char *const *offered, unsigned number);

#ifdef __cplusplus
}
#endif

#endif
