/* SPDX-License-Identifier: MIT
 *
 * What: finds the end of one reply in the bytes of a connection as they come, and shows its head
 * and body to an optional viewer. Place: the worker calls it for a connection's unread bytes; the
 * parser of lib-sxe-http parses heads, chunks and trailers. Pure: no I/O, no allocation, no global
 * state; a body is counted, never stored.
 *
 * Shape: struct load_reply keeps, between calls, which part comes next and how far it came.
 *
 *     HEAD ----------------------------------------------.     interim responses are skipped
 *      | Content-Length   | chunked      | neither       | no body
 *     COUNTED          CHUNKED      UNTIL_CLOSE          |
 *      |                  |              | peer's end    |
 *      `-------------> WHOLE <---------------------------'
 *
 * A server's heads are mostly the same, byte for byte, and change once a second, with their Date.
 * So the last head is kept with its parsed form, and a head with the same bytes is not parsed.
 *
 * Limits: SXE_HTTP_LIMITS; the caller's buffer must have room for the longest head.
 */
#ifndef LOAD_REPLY_H
#define LOAD_REPLY_H

#include "sxe-http-chunk.h"

enum load_reply_part {
    LOAD_REPLY_HEAD = 0,
    LOAD_REPLY_COUNTED,
    LOAD_REPLY_CHUNKED,
    LOAD_REPLY_UNTIL_CLOSE,
    LOAD_REPLY_WHOLE
};

/* A reply. part is LOAD_REPLY_HEAD before its first byte. */
struct load_reply {
    uint8_t part;                  /* rw: enum load_reply_part: the part that comes next */
    bool is_to_head;               /* rw, before the head: a reply to HEAD has no body */
    bool keep_alive;               /* ro, after the head: the connection may be used again */
    uint8_t refusal;               /* ro, after -1: enum sxe_http_refusal; 0: another protocol */
    uint16_t status;               /* ro, after the head: 200 to 999 */
    uint64_t left;                 /* ro: rest of a COUNTED body; after -1 the error's offset */
    struct sxe_http_chunks chunks; /* private: state of a CHUNKED body */
};

#define LOAD_REPLY_MEMO_MAX 1024

/* The last head that was parsed, of any connection. All zero: no head was parsed yet. */
struct load_reply_memo {
    struct sxe_http_parser head; /* private: the parsed form of the head */
    size_t length;               /* private: how many bytes the head has; 0: there is none */
    char bytes[LOAD_REPLY_MEMO_MAX];
};

/* Callbacks for a caller that wants to see the reply: on_head gets the complete head (not of
 * interim responses), on_body each piece of the body. The head's offsets count from data. */
struct load_reply_viewer {
    void (*on_head)(struct load_reply_viewer *, const struct sxe_http_parser *head,
                    const char *data, size_t length);
    void (*on_body)(struct load_reply_viewer *, const char *data, size_t length);
};

/* Take the bytes of the reply from the front of data. Returns how many were taken; 0: more are
 * needed; -1: this is not a reply, and left is the offset of the error. The caller passes the bytes
 * that were not taken again, with more after them. Bytes after a WHOLE reply are not taken. The
 * viewer may be NULL. */
ssize_t load_reply_view(struct load_reply *reply, const char *data, size_t length,
                        struct load_reply_viewer *viewer);

/* Like load_reply_view, but a head that equals the last one is not parsed: the viewer, which may be
 * NULL, then gets it with head->fields NULL. */
ssize_t load_reply_scan(struct load_reply *reply, const char *data, size_t length,
                        struct load_reply_memo *memo, struct load_reply_viewer *viewer);

#endif
