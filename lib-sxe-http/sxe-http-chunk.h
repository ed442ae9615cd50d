/* SPDX-License-Identifier: MIT
 *
 * What: finds the data in a body of Transfer-Encoding: chunked (RFC 9112, 7.1), in place, a span a
 * call, and its trailer.
 *
 * Place: the server and the client call it for what follows a head whose body is chunked. Pure, as
 * sxe-http-parse.h, whose parser reads the trailer.
 *
 * Shape: one call takes framing, then at most one span of data.
 *
 *     5;a=b CR LF hello CR LF 0 CR LF Digest: x CR LF CR LF | the next message
 *     |---- n = 14 ---->|                                        body = "hello"
 *                       |------------- n = 21 ------------>|     body is empty, done
 *
 * Bytes that a call took are not needed again, but for the trailer's: it is taken as a whole, so
 * the caller keeps it from its first byte on until then, as it keeps a head.
 *
 *     n > 0   bytes were taken; `body` looks at those that are data, perhaps none
 *     0       more is needed                              -1   refused: `refusal` says why
 *
 * Limits: a line of size and extensions has at most line_max bytes, a trailer head_max bytes and
 * fields_max fields. A peer whose extensions are head_max bytes more than its data is refused.
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
    uint64_t left;   /* ro: of the chunk being read, bytes to come */
    uint64_t taken;  /* ro: bytes of the whole body so far; where it stopped, when refused */
    uint32_t excess; /* private: bytes of extensions that no data made up for */
    uint32_t line;   /* private: bytes of the line being read */
    uint8_t state;   /* private */
    uint8_t refusal; /* ro: enum sxe_http_refusal */
    bool done;       /* ro: the body and its trailer are whole */
    struct sxe_http_parser trailer; /* ro: its fields; offsets are from the trailer's first byte */
};

/* Ready for a body; fields, room and limits as in sxe_http_parser_init for a trailer. */
SXE_PUBLIC void sxe_http_chunks_init(struct sxe_http_chunks *chunks, struct sxe_http_field *fields,
                                     uint16_t room, const struct sxe_http_limits *limits);

/* Read the front of data: see above. `body` is set by every call. Takes nothing when done. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_chunks_read(struct sxe_http_chunks *chunks,
                                                     const char *data, size_t length,
                                                     struct sxe_span *body);

#ifdef __cplusplus
}
#endif

#endif
