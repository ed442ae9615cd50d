/* SPDX-License-Identifier: MIT
 *
 * What: finds the data of a chunked body (RFC 9112, 7.1) in place, one span per call, and parses
 * the trailer.
 *
 * Place: the server and the client call it after a head that announces a chunked body. Pure, like
 * sxe-http-parse.h, whose parser reads the trailer.
 *
 * Shape: one call takes framing, then at most one span of data.
 *
 *     5;a=b CR LF hello CR LF 0 CR LF Digest: x CR LF CR LF | the next message
 *     |---- n = 14 ---->|                                        body = "hello"
 *                       |------------- n = 21 ------------>|     body is empty, done
 *
 * The caller may drop the bytes that a call took. One call takes the whole trailer: until then the
 * caller keeps the trailer from its first byte on, as it keeps a head.
 *
 *     n > 0   bytes were taken; `body` looks at those that are data, perhaps none
 *     0       more is needed                              -1   refused: `refusal` says why
 *
 * Limits: a line of size and extensions has at most line_max bytes, a trailer head_max bytes and
 * fields_max fields. A peer is refused when its extensions have head_max bytes more than its data.
 *
 * Example:
 *     struct sxe_http_chunks chunks;
 *     sxe_http_chunks_init(&chunks, NULL, 0, NULL);
 *     while ((n = sxe_http_chunks_read(&chunks, data, length, &body)) > 0) {
 *         use(body.base, body.length);
 *         data += n, length -= n;
 *         if (chunks.done) ...
 *     }
 */
#ifndef SXE_HTTP_CHUNK_H
#define SXE_HTTP_CHUNK_H

#include <sys/types.h>

#include "sxe-http-parse.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sxe_http_chunks {
    uint64_t left;   /* ro: bytes to come of the chunk being read */
    uint64_t taken;  /* ro: bytes taken so far, with framing; refused: offset of the bad byte */
    uint32_t excess; /* private: bytes of extensions so far, less bytes of data; at least 0 */
    uint32_t line;   /* private: bytes of the current line so far */
    uint8_t state;   /* private */
    uint8_t refusal; /* ro: enum sxe_http_refusal */
    bool done;       /* ro: the body and its trailer are whole */
    /* ro: the trailer's fields; offsets count from the trailer's first byte */
    struct sxe_http_parser trailer;
};

/* Prepare for a body. fields, room and limits are for the trailer, see sxe_http_parser_init. */
SXE_PUBLIC void sxe_http_chunks_init(struct sxe_http_chunks *chunks, struct sxe_http_field *fields,
                                     uint16_t room, const struct sxe_http_limits *limits);

/* Read the front of data. "Shape" at the top of this file says what is returned. Every call sets
 * `body`. When `done` is set, further calls return 0. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_chunks_read(struct sxe_http_chunks *chunks,
                                                     const char *data, size_t length,
                                                     struct sxe_span *body);

#ifdef __cplusplus
}
#endif

#endif
