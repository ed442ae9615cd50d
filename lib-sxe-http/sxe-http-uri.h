/* SPDX-License-Identifier: MIT
 *
 * What: takes request targets apart (RFC 9112, 3.2) and puts paths and queries into the forms that
 * routes, files and handlers want (RFC 3986); and escapes names for links and pages.
 *
 * Place: the server, between the parser and the router; handlers; static files. Pure: no
 * allocation, the caller gives the room.
 *
 * Shape: the bytes that the peer sent stay as they are; each form is made from them when it is
 * needed.
 *
 *     http://host:80/a/%7Eb/%2e%2E/c%20d?x=1+2&y      target
 *            ^authority           ^path  ^query       sxe_http_split_target
 *     /a/c%20d                                        sxe_http_normalise_path, to route by
 *     a/c d                                           sxe_http_path_to_file, to open
 *     x: "1 2"   y: none                              sxe_http_query_next, sxe_http_query_find
 *
 * A decoded byte is never a delimiter: %2F separates no segments, and %26 ends no parameter.
 *
 * Paths have one normal form, made by sxe_http_normalise_path and by nothing else. Routes, filters,
 * mounts and files all work on it, so no two of them can disagree about a path:
 *
 *     //a///b       /a/b       empty segments go
 *     /a/./b        /a/b       so do dots, escaped ones too: %2e is "."
 *     /a/x/../b     /a/b       above "/" they are refused; empty segments go first: /x//../b is /b
 *     /%61%21%40    /a!@       a byte that needs no escape has none
 *     /%c3%a9%20    /%C3%A9%20 other escapes stay, with capitals; so do %2F, %5C and %00
 *     /a/           /a/        a slash at the end stays
 *
 * sxe_http_decode_path decodes such a path, and refuses all that would read as another path: an
 * escaped slash, a backslash, a NUL.
 *
 * Limits: the caller's room. A result is never longer than its source, so it may overwrite it;
 * except in the functions that escape.
 *
 *     -EILSEQ   a % without two hexadecimal digits, in a path     -ENOBUFS   there is no room
 *
 * Example:
 *     struct sxe_http_target target;
 *     char name[80];
 *     ssize_t length = -ENOENT;
 *     if (sxe_http_split_target(text, &target) == 0)
 *         length = sxe_http_query_find(target.query, "name", name, sizeof(name));
 *     if (length >= 0)
 *         greet(name, (size_t)length);
 */
#ifndef SXE_HTTP_URI_H
#define SXE_HTTP_URI_H

#include <stdbool.h>
#include <sys/types.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Targets ---- */

struct sxe_http_target {
    struct sxe_span authority; /* host and port; base NULL: the target has no authority */
    struct sxe_span path;      /* begins with "/" (added if the target has no path), or is "*" */
    struct sxe_span query;     /* after the "?"; base NULL: there is no "?" */
};

/* Take apart a target that the parser let through, in origin, absolute or asterisk form. -EINVAL:
 * another form, such as CONNECT's, which has no path. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_split_target(struct sxe_span target,
                                                  struct sxe_http_target *parts);

/* ---- Paths ---- */

/* Put a path into the normal form above. If the path is in that form already, as most paths are,
 * *normal is the path itself and nothing is copied; otherwise *normal is in room, which needs
 * path.length bytes and may be path's own memory. 0; -EINVAL: the path does not begin with "/", or
 * ".." leads above it; -EILSEQ; -ENOBUFS. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_normalise_path(struct sxe_span path, char *room, size_t size,
                                                    struct sxe_span *normal);

/* Decode a path in its normal form, or a part of such a path, for example the value of a {name}.
 * -EINVAL: the result would have a slash where the path has none, a backslash, a NUL, or a segment
 * "." or "..". room may be path's own memory. Returns the length; -EILSEQ or -ENOBUFS. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_decode_path(struct sxe_span path, char *room, size_t size);

/* The path as the name of a file, for openat2(): in its normal form, decoded, without the first
 * slash, with a final NUL. "/" is "."; a slash at the end stays, because it names a directory. room
 * needs path.length + 1 bytes, and may be path's own memory if that has one byte more. Returns the
 * length without the NUL; -EINVAL, -EILSEQ or -ENOBUFS, as from sxe_http_normalise_path and
 * sxe_http_decode_path. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_path_to_file(struct sxe_span path, char *room,
                                                      size_t size);

/* Decode every escape in a text that is not a path. room may be the text's own memory. Returns the
 * length of the result, which can hold any byte, NUL and "/" too; -EILSEQ or -ENOBUFS. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_decode(struct sxe_span text, char *room, size_t size);

/* Like sxe_http_decode, but a % without two hexadecimal digits is a %. Returns the length of the
 * result, or -ENOBUFS. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_decode_lenient(struct sxe_span text, char *room,
                                                        size_t size);

/* ---- Queries, and bodies of application/x-www-form-urlencoded ---- */

/* Decode a name or value of a query: "+" is a blank, and a % without two hexadecimal digits is a %,
 * as it is for browsers. Returns the length of the result, or -ENOBUFS. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_decode_form(struct sxe_span text, char *room, size_t size);

struct sxe_http_query {
    struct sxe_span rest;  /* private */
    struct sxe_span name;  /* ro: not decoded */
    struct sxe_span value; /* ro: not decoded; base NULL: there is no "=" */
};

/* Start before the first parameter; sxe_http_query_next goes to the first parameter. */
static inline void
sxe_http_query_start(struct sxe_http_query *query, struct sxe_span text)
{
    query->rest = text;
}

/* Go to the next parameter that is not empty. False: there are no more parameters. */
SXE_PUBLIC bool sxe_http_query_next(struct sxe_http_query *query);

/* Whether the parameter's decoded name is `name`. */
SXE_PUBLIC bool sxe_http_query_is(const struct sxe_http_query *query, const char *name);

/* Decode the value of the first parameter of that name. Returns the length of the value, which is 0
 * if the parameter has no "="; -ENOENT (no such parameter) or -ENOBUFS. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_query_find(struct sxe_span text, const char *name,
                                                    char *room, size_t size);

/* ---- Writing links and pages: each returns the length of the result, or -ENOBUFS ---- */

/* Escape all but letters, digits and -._~, so that a name is one segment of a path or one part of a
 * query and may stand in HTML and in a field. The result is at most three times as long. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_encode_segment(struct sxe_span text, char *room,
                                                        size_t size);

/* Like sxe_http_encode_segment, but slashes stay. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_encode_path(struct sxe_span text, char *room, size_t size);

/* Escape & < > " ' in text for an element or a quoted attribute of HTML. The result is at most six
 * times as long. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_escape_html(struct sxe_span text, char *room, size_t size);

#ifdef __cplusplus
}
#endif

#endif
