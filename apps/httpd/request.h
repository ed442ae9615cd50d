/* SPDX-License-Identifier: MIT
 *
 * What: finds one HTTP/1.x request in bytes, strictly (RFC 9112): where a lenient reading would let
 * two servers see different requests, it refuses. Place: httpd.c calls it for what a connection has
 * unread. Pure: no I/O, no memory, nothing global. Limits: the request line 8 KiB, the head 16 KiB,
 * a body of a length told in advance 1 MiB.
 */
#ifndef HTTPD_REQUEST_H
#define HTTPD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTPD_LINE_MAX 8192u
#define HTTPD_HEAD_MAX 16384u
#define HTTPD_BODY_MAX 1048576u

struct httpd_span {
    const char *base;
    size_t length;
};

struct httpd_request {
    bool is_head;    /* the method is HEAD: the reply has no body */
    bool keep_alive; /* the connection may be used again */
    bool is_1_0;
    uint32_t body;   /* bytes that follow the head */
    unsigned status; /* when refused: the reply's status */
};

/* The request at the front of data: its head's length in bytes; 0: more is needed; -1: refused, and
 * request->status says how (400, 413, 414, 431, 501 or 505). */
int httpd_request_parse(const char *data, size_t length, struct httpd_request *request);

#endif
