/* SPDX-License-Identifier: MIT
 *
 * What: finds the end of one reply in the bytes of a connection as they come, and shows its head
 * and body to an optional viewer. Place: the worker calls it for a connection's unread bytes; the
 * parser of lib-sxe-http parses heads, chunks and trailers. The functions do no I/O and allocate
 * nothing; the bytes of a body are counted, not stored.
 *
 * Shape: between calls, struct load_reply keeps which part of the reply comes next, and how much of
 * it has come.
 *
 *     HEAD ----------------------------------------------.     interim responses are skipped
 *      | Content-Length   | chunked      | neither       | no body
 *     COUNTED          CHUNKED      UNTIL_CLOSE          |
 *      |                  |              | peer's end    |
 *      `-------------> WHOLE <---------------------------'
 *
 * Most heads of a server equal the one before, byte for byte, because they change only once a
 * second, with their Date. So the last head is kept with its parsed form, and an equal head is not
 * parsed again.
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
    /* rw: the part of the reply that comes next, of enum load_reply_part */
    uint8_t part;
    /* rw, before the head: whether the query's method is HEAD, so that the reply has no body */
    bool is_to_head;
    /* ro, after the head: whether the connection may be used for another query */
    bool keep_alive;
    /* ro, after a result of -1: enum sxe_http_refusal; 0: the server switched to another
     * protocol */
    uint8_t refusal;
    uint16_t status; /* ro, after the head: 200 to 999 */
    /* ro: how many bytes of a COUNTED body have not come yet; after a result of -1 the offset of
     * the error */
    uint64_t left;
    struct sxe_http_chunks chunks; /* private: state of a CHUNKED body */
};

#define LOAD_REPLY_MEMO_MAX 1024

/* The last head that was parsed, of any connection. All zero: no head was parsed yet. */
struct load_reply_memo {
    struct sxe_http_parser head; /* private: the parsed form of the head */
    size_t length;               /* private: how many bytes the head has; 0: there is none */
    char bytes[LOAD_REPLY_MEMO_MAX];
};

/* Callbacks for a caller that wants to see the reply. on_head gets the complete head, but not the
 * heads of interim responses; on_body gets each piece of the body. The head's offsets count from
 * data. */
struct load_reply_viewer {
    void (*on_head)(struct load_reply_viewer *, const struct sxe_http_parser *head,
                    const char *data, size_t length);
    void (*on_body)(struct load_reply_viewer *, const char *data, size_t length);
};

/* Take the bytes of the reply from the front of data, but no bytes after a WHOLE reply. Returns how
 * many were taken; 0: more are needed; -1: this is not a reply, and `left` is the offset of the
 * error. The caller passes bytes that were not taken again, with more bytes after them. The viewer
 * may be NULL. */
ssize_t load_reply_view(struct load_reply *reply, const char *data, size_t length,
                        struct load_reply_viewer *viewer);

/* Like load_reply_view, but do not parse a head that equals the last one: the viewer, which may be
 * NULL, then gets a head whose fields are NULL. */
ssize_t load_reply_scan(struct load_reply *reply, const char *data, size_t length,
                        struct load_reply_memo *memo, struct load_reply_viewer *viewer);

#endif
