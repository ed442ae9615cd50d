/* SPDX-License-Identifier: MIT
 *
 * What: finds the end of one reply in the bytes of a connection as they come, and shows its head
 * and its body to whoever wants to see them. Place: the worker calls it for what a connection has
 * unread; the parser of lib-sxe-http reads heads, chunks and trailers for it. Pure: no I/O, no
 * memory, nothing global; a body is counted, never kept.
 *
 * Shape: what is between two calls is which part comes next, and how far that came.
 *
 *     HEAD ----------------------------------------------.     interim responses are skipped
 *      | Content-Length   | chunked      | neither       | no body
 *     COUNTED          CHUNKED      UNTIL_CLOSE          |
 *      |                  |              | peer's end    |
 *      `-------------> WHOLE <---------------------------'
 *
 * A server's heads are mostly the same, byte for byte, and change once a second, with their Date.
 * So the last one is kept, with what it meant; one that equals it in every byte means the same.
 *
 * Limits: SXE_HTTP_LIMITS; the caller keeps as many bytes together as a head may have.
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

/* Of which nothing came yet, if the part is HEAD. */
struct load_reply {
    uint8_t part;                  /* rw: enum load_reply_part: what comes next */
    bool is_to_head;               /* rw, before the head: a reply to HEAD has no body */
    bool keep_alive;               /* ro, after the head: the connection may be used again */
    uint8_t refusal;               /* ro, after -1: enum sxe_http_refusal; 0: another protocol */
    uint16_t status;               /* ro, after the head: 200 to 999 */
    uint64_t left;                 /* ro: bytes of a COUNTED body to come; after -1 where it is */
    struct sxe_http_chunks chunks; /* private: of a CHUNKED one */
};

#define LOAD_REPLY_MEMO_MAX 1024

/* The last head that was read, of any connection. All zero: none yet. */
struct load_reply_memo {
    struct sxe_http_parser head; /* private: what it meant */
    size_t length;               /* private: 0: there is none */
    char bytes[LOAD_REPLY_MEMO_MAX];
};

/* A caller that wants to see the reply: each head that is not of an interim response, whole, then
 * each piece of the body. data is where the head's offsets are from. */
struct load_reply_viewer {
    void (*on_head)(struct load_reply_viewer *, const struct sxe_http_parser *head,
                    const char *data, size_t length);
    void (*on_body)(struct load_reply_viewer *, const char *data, size_t length);
};

/* Take the bytes of the reply from the front of data. Returns how many were taken; 0: more are
 * needed; -1: this is not a reply, and left is the offset of the error. The caller offers the rest
 * again, with more after it. Bytes after a WHOLE reply are not taken. The viewer may be NULL. */
ssize_t load_reply_view(struct load_reply *reply, const char *data, size_t length,
                        struct load_reply_viewer *viewer);

/* Like load_reply_view, but quick about a head that equals the last one: the viewer, which may be
 * NULL, gets that with head->fields NULL. */
ssize_t load_reply_scan(struct load_reply *reply, const char *data, size_t length,
                        struct load_reply_memo *memo, struct load_reply_viewer *viewer);

#endif
