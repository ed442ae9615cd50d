/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the sources of lib-sxe-http share.
 *
 *     sxe-http-scan.c       which bytes are no token, no target, no value: 64 at a time
 *     sxe-http-parse.c      the lines of a head, found with those bits
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

/* For functions that few messages need. If they were inlined, all messages would pay for a larger
 * stack frame and, if the functions have arrays, for a stack guard. */
#define SXE__HTTP_COLD __attribute__((noinline))

/* ---- sxe-http-scan.c ---- */

enum { SXE__HTTP_BLOCK = 64 };

/* Sets of bytes. The last set is needed only for the first line; after the first line it is not
 * computed. */
enum sxe__http_set {
    SXE__HTTP_TOKEN, /* RFC 9110, 5.6.2 */
    SXE__HTTP_VALUE, /* visible bytes, blanks, and bytes of unknown encoding (RFC 9110, 5.5) */
    /* bytes of paths and queries (RFC 3986, 3.3 and 3.4) without %, but with [ ] |, which browsers
     * send */
    SXE__HTTP_TARGET,
    SXE__HTTP_SETS
};

/* The bytes to read and, for 64 of them, which are outside each set: bit i stands for byte base +
 * i. */
struct sxe__http_input {
    const char *data;
    size_t end; /* end of the bytes that may be read */
    size_t base;
    size_t sets; /* how many sets are computed, from the first one on */
    uint64_t outside[SXE__HTTP_SETS];
};

#define SXE__HTTP_INPUT(bytes, length)                                      \
    {                                                                       \
        .data = (bytes), .end = (length), .sets = SXE__HTTP_SETS,           \
        .base = (size_t)0 - SXE__HTTP_BLOCK /* the block has no byte yet */ \
    }

/* Processor features that functions for scanning need. */
enum { SXE__HTTP_SSE42 = 1, SXE__HTTP_AVX2 = 2 };

/* The features that this processor has. */
unsigned sxe__http_scan_features(void);

/* Choose the fastest function for scanning that these features allow, for all threads. Returns its
 * name. */
const char *sxe__http_scan_choose(unsigned features);

void sxe__http_input_load(struct sxe__http_input *in, size_t at);

/* The offset of the first byte from `at` on that is outside the set; or the end. */
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

/* Store a refusal in the parser. Returns -1. */
int sxe__http_refuse(struct sxe_http_parser *parser, enum sxe_http_refusal why, size_t at);

/* ---- sxe-http-field.c ---- */

/* Whether two texts are equal, apart from the case of ASCII letters. */
bool sxe__http_is_same(const char *a, const char *b, size_t length);

enum sxe_http_method sxe__http_method_of(const char *name, size_t length);
enum sxe_http_field_id sxe__http_field_id_of(const char *token, size_t length);

/* ---- sxe-http-target.c ---- */

/* Whether `digits` begins with two hexadecimal digits (RFC 3986, 2.1). */
bool sxe__http_is_escape(const char *digits);

/* Set the form of the target. False: the method does not allow that form. Bytes and escapes were
 * checked before. */
bool sxe__http_target(struct sxe_http_parser *parser, const char *data);

/* Whether the text is uri-host [ ":" port ] (RFC 9110, 7.2). */
bool sxe__http_host(const char *host, size_t length);

/* ---- sxe-http-response.c, sxe-http-stream.c ---- */

/* sxe_http_end_borrowed copies up to this many bytes, because copying them is cheaper than lending
 * them. */
#define SXE__HTTP_COPY_MAX (16u * 1024)

struct sxe_http_response;

/* sxe__http_lines returns the field lines that were added to a reply; sxe__http_has_line: whether
 * one of them has the name; sxe__http_add_lines copies them into another reply without a second
 * check: 0 or -ENOBUFS. */
struct sxe_span sxe__http_lines(const struct sxe_http_response *response);
bool sxe__http_has_line(const struct sxe_http_response *response, struct sxe_span name);
SXE_MUST_USE int sxe__http_add_lines(struct sxe_http_response *response, struct sxe_span lines);

/* Like sxe_http_write, but the data has any length, and stays borrowed until on_done. */
SXE_MUST_USE int sxe__http_write_borrowed(struct sxe_http_response *response, const void *data,
                                          size_t length);

/* ---- sxe-http-framing.c ---- */

/* Set the members of the parser that follow from the fields together: framing, keep-alive, upgrade.
 * The head is whole. Returns 1; -1: refused. */
int sxe__http_frame(struct sxe_http_parser *parser, const char *data);

#endif
