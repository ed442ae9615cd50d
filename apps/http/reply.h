/* SPDX-License-Identifier: MIT
 *
 * What: finds the end of one HTTP/1.x reply in the bytes of a connection as they come, by its
 * length and never by a blank line. Place: load.c calls it for what a connection has unread. Pure:
 * no I/O, no memory, nothing global; a body is counted down, never kept.
 *
 * Shape: what is between two calls is which part comes next, and how many bytes of it.
 *
 *     HEAD ---------------------------------------------.
 *      | Content-Length   | chunked          | neither   | no body
 *     BODY              CHUNK_LINE <-.     UNTIL_CLOSE   |
 *      |                  | 0   |    |       |           |
 *      |             TRAILER  CHUNK -'    the peer's end |
 *      |                  |                              |
 *      `----------------> WHOLE <------------------------'
 *
 * Limits: a head, or a line between chunks, has at most HTTP_REPLY_HEAD_MAX bytes; the caller
 * keeps that many together. A line may end in LF alone (RFC 9112, 2.2); it may not be folded.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_REPLY_HEAD_MAX 16384u

enum http_reply_part {
    HTTP_REPLY_HEAD = 0,
    HTTP_REPLY_BODY,
    HTTP_REPLY_CHUNK_LINE,
    HTTP_REPLY_CHUNK,
    HTTP_REPLY_CHUNK_END,
    HTTP_REPLY_TRAILER,
    HTTP_REPLY_UNTIL_CLOSE,
    HTTP_REPLY_WHOLE
};

/* All zero is a reply of which nothing came yet. */
struct http_reply {
    uint64_t left;   /* ro: bytes of this body or chunk still to come */
    uint16_t status; /* ro: 200 to 999; 0 before the head was whole */
    uint8_t part;    /* ro: enum http_reply_part: what comes next */
    bool keep_alive; /* ro: the connection may be used again */
};

/* Take what belongs to the reply from the front of data: bytes taken; 0 when more is needed to go
 * on; -1: this is no reply. What is not taken is offered again, with more behind it. Nothing is
 * taken from behind a reply that is WHOLE. */
ssize_t http_reply_scan(struct http_reply *reply, const char *data, size_t length);

#endif
