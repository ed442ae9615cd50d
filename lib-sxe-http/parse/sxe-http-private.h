/* SPDX-License-Identifier: MIT
 *
 * What: what the files of lib-sxe-http share.
 *
 *     sxe-http-scan.c       which bytes are no token, no target, no value: 64 at a time
 *     sxe-http-parse.c      the lines of a head, from those marks
 *     sxe-http-field.c      names: methods, well-known fields, refusals
 *     sxe-http-target.c     whether a target or a host is valid
 *     sxe-http-framing.c    what the fields mean together: framing, keep-alive
 *     sxe-http-chunk.c      chunked bodies
 *
 * Shape: the parser asks "where does the token that begins here end?". A block holds the answers
 * for 64 bytes, a bit each, so an answer is a shift and a count of zeros, and no byte is looked at
 * twice:
 *
 *     bytes                 Host: a CR LF        not_token   ....1111
 *                           ^ at                 the answer  at + 4
 */
#ifndef SXE_HTTP_PRIVATE_H
#define SXE_HTTP_PRIVATE_H

#include "sxe-http-parse.h"

/* A function that few messages need: inlined, it would cost all of them a larger frame, and where
 * it has arrays the guard of one. */
#define SXE__HTTP_COLD __attribute__((noinline))

/* ---- sxe-http-scan.c ---- */

enum { SXE__HTTP_BLOCK = 64 };

/* Sets of bytes. The last is of no interest after the first line, and left out there. */
enum sxe__http_set {
    SXE__HTTP_TOKEN,  /* RFC 9110, 5.6.2 */
    SXE__HTTP_VALUE,  /* RFC 9110, 5.5: visible, blanks, and those of unknown encoding */
    SXE__HTTP_TARGET, /* RFC 3986, 3.3 and 3.4, without %, and []| which browsers send anywhere */
    SXE__HTTP_SETS
};

/* Bytes to read, and what is known of the 64 at base: bit i says that byte base + i is outside. */
struct sxe__http_input {
    const char *data;
    size_t end; /* of what may be looked at */
    size_t base;
    size_t sets; /* how many are of interest */
    uint64_t outside[SXE__HTTP_SETS];
};

#define SXE__HTTP_INPUT(bytes, length)                                   \
    {                                                                    \
        .data = (bytes), .end = (length), .sets = SXE__HTTP_SETS,        \
        .base = (size_t)0 - SXE__HTTP_BLOCK /* so that it has no byte */ \
    }

/* Features that a way to scan needs from the processor. */
enum { SXE__HTTP_SSE42 = 1, SXE__HTTP_AVX2 = 2 };

/* The features that this processor has. */
unsigned sxe__http_scan_features(void);

/* From now on, in all threads, scan in the fastest way that these features allow; its name. */
const char *sxe__http_scan_choose(unsigned features);

void sxe__http_input_load(struct sxe__http_input *in, size_t at);

/* The first byte from `at` on that is outside the set, or the end. */
static inline size_t
sxe__http_stop(struct sxe__http_input *in, enum sxe__http_set set, size_t at)
{
    while (at < in->end) {
        uint64_t outside;

        if (at - in->base >= SXE__HTTP_BLOCK)
            sxe__http_input_load(in, at);
        outside = in->outside[set] >> (at - in->base);
        if (outside != 0)
            return at + (size_t)__builtin_ctzll(outside);
        at = in->base + SXE__HTTP_BLOCK;
    }
    return in->end;
}

/* ---- sxe-http-parse.c ---- */

/* -1, with the reason left in the parser. */
int sxe__http_refuse(struct sxe_http_parser *parser, enum sxe_http_refusal why, size_t at);

/* ---- sxe-http-field.c ---- */

/* Letters without their case, other bytes as they are. */
bool sxe__http_is_same(const char *a, const char *b, size_t length);

enum sxe_http_method sxe__http_method_of(const char *name, size_t length);
enum sxe_http_field_id sxe__http_field_id_of(const char *token, size_t length);

/* ---- sxe-http-target.c ---- */

/* Whether two hexadecimal digits begin there (RFC 3986, 2.1). */
bool sxe__http_is_escape(const char *digits);

/* Sets the form; false: no form that the method may have. Bytes and escapes are right already. */
bool sxe__http_target(struct sxe_http_parser *parser, const char *data);

/* uri-host [ ":" port ] (RFC 9110, 7.2). */
bool sxe__http_host(const char *host, size_t length);

/* ---- sxe-http-response.c, sxe-http-stream.c ---- */

/* Bytes of memory that sxe_http_end_borrowed copies, because that is cheaper than to lend them. */
#define SXE__HTTP_COPY_MAX (16u * 1024)

struct sxe_http_response;

/* The lines of all fields that were added to a reply; and the same for another reply, which needs
 * not check them again. 0 or -ENOBUFS. */
struct sxe_span sxe__http_lines(const struct sxe_http_response *response);
SXE_MUST_USE int sxe__http_add_lines(struct sxe_http_response *response, struct sxe_span lines);

/* As sxe_http_write, but borrowed until on_done, of any length. */
SXE_MUST_USE int sxe__http_write_borrowed(struct sxe_http_response *response, const void *data,
                                          size_t length);

/* ---- sxe-http-framing.c ---- */

/* The head is whole: sets what its fields mean. 1, or -1: refused. */
int sxe__http_frame(struct sxe_http_parser *parser, const char *data);

#endif
