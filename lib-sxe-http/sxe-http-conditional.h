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
 * A malformed field is read so that nothing is changed by mistake: an If-Match that is no list of
 * entity tags fails; an If-None-Match fails if any valid tag in it matches; invalid dates are
 * ignored, as the RFC says. Ranges the RFC allows to ignore or to reject (14.2): those of an
 * unknown unit are ignored, and all is sent; malformed byte ranges are refused with 416.
 *
 * Limits: the ranges that the caller has room for; if more are satisfiable, all is sent. Ranges
 * that overlap or touch are made one, so that no byte is sent twice.
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

/* The server's representation, as the caller describes it. */
struct sxe_http_representation {
    struct sxe_span etag;  /* "x" or W/"x" with its quotes; base NULL: no etag */
    int64_t modified;      /* Last-Modified, seconds since 1970, or SXE_HTTP_NO_DATE */
    uint64_t length;       /* size in bytes */
    bool is_missing;       /* the representation does not exist, as before a PUT that creates it */
    bool modified_is_weak; /* a change in the second of `modified` may follow (RFC 9110, 8.8.2.2) */
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
    int64_t now; /* the present time in seconds since 1970, for years of two digits */
};

/* Read the conditions of a request; parser and data must stay. */
SXE_PUBLIC struct sxe_http_conditions sxe_http_conditions_of(const struct sxe_http_parser *parser,
                                                             const char *data, int64_t now);

/* Whether the request has neither a condition nor a range, so that it gets all. (If-Range matters
 * only with Range, RFC 9110, 13.1.5.) */
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

/* Whether the text is an entity tag: quoted, perhaps with W/ before it. */
SXE_PUBLIC bool sxe_http_etag_is_valid(struct sxe_span etag);

/* Whether two tags match. Also false if one of them is not valid. */
SXE_PUBLIC bool sxe_http_etag_matches(struct sxe_span a, struct sxe_span b,
                                      enum sxe_http_comparison comparison);

/* ---- Conditions ---- */

/* Evaluate the conditions. 0: go on; 304 or 412: answer with that status. Call this only if the
 * answer would otherwise be 2xx or 412 (RFC 9110, 13.2.1), and not for CONNECT, OPTIONS and
 * TRACE. */
SXE_PUBLIC SXE_MUST_USE unsigned
sxe_http_precondition(const struct sxe_http_conditions *conditions,
                      const struct sxe_http_representation *selected);

/* ---- Ranges of bytes ---- */

struct sxe_http_range {
    uint64_t first;  /* offset of the first byte */
    uint64_t length; /* how many bytes; at least 1 */
};

/* Which parts to send, after sxe_http_precondition returned 0. n > 0: 206 with n ranges that do not
 * touch each other, in the order of the request. 0: 200 with all, because the request is no GET, or
 * has no byte ranges, or If-Range fails, or more than max ranges are satisfiable, or together they
 * are longer than the representation. -ERANGE: 416: no range is satisfiable, or the ranges are
 * malformed. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_select_ranges(const struct sxe_http_conditions *conditions,
                                                   const struct sxe_http_representation *selected,
                                                   struct sxe_http_range *ranges, unsigned max);

#define SXE_HTTP_CONTENT_RANGE_MAX 70

/* Write a Content-Range with a final NUL: "bytes 0-99/1234"; range NULL, for 416: "bytes", "*" and
 * the length. Returns the length of the text, which is less than the room. */
SXE_PUBLIC size_t sxe_http_content_range(const struct sxe_http_range *range, uint64_t length,
                                         char room[SXE_HTTP_CONTENT_RANGE_MAX]);

/* ---- Content codings ---- */

#define SXE_HTTP_CODINGS_MAX 8

/* The coding to send: an index into the `number` names offered (the first 8 count), which are in
 * the server's order of preference; -1: identity, no coding. The client's weights decide first,
 * then the server's order. Identity comes last among codings of equal weight, and is sent to a
 * client that accepts none of the codings offered. */
SXE_PUBLIC int sxe_http_select_coding(const struct sxe_http_list *accept_encoding,
                                      const char *const *offered, unsigned number);

#ifdef __cplusplus
}
#endif

#endif
