/* SPDX-License-Identifier: MIT
 *
 * What: finds where a reply of Redis ends, and whether it is one: RESP2 and RESP3, without a byte
 * of memory for what it promises and did not send. A reader makes Lua's values of whole replies.
 *
 * Place: sxe-lua-redis-reader.c, and the fuzzer. The scanner knows nothing of Lua.
 *
 * Shape: a stack of how many elements each open list still wants. Bytes are looked at once,
 * however they are cut: `at` is where the next element begins, `seen` where the search for its end
 * goes on.
 *
 *     *2 CRLF $3 CRLF a b c CRLF :1 CRLF
 *                            ^at          left[0] = 1, depth = 1
 *
 * Limits: lists in lists SXE__RESP_DEPTH deep; a line SXE__RESP_LINE_MAX bytes; a reply `max`
 * bytes.
 *
 * Source: the protocol specification of Redis, RESP versions 2 and 3, without streamed types, which
 * no server sends.
 */
#ifndef SXE_LUA_RESP_PRIVATE_H
#define SXE_LUA_RESP_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SXE__RESP_DEPTH = 32, SXE__RESP_LINE_MAX = 65536 };

/* The beginning of an element: its type, and a number if the type has one. */
struct sxe__resp_element {
    const char *text; /* a line's text after its type, or the text of a text with a length */
    size_t length;    /* of text, in bytes */
    int64_t number;   /* an integer, a length, a count; -1: null */
    char type;
};

struct sxe__resp {
    size_t max;                     /* read-only: the most bytes of one reply */
    size_t at;                      /* read-only: bytes of the reply that are known to be good */
    size_t seen;                    /* private: bytes that were searched for a line's end */
    unsigned depth;                 /* private */
    uint64_t left[SXE__RESP_DEPTH]; /* private */
    const char *why;                /* read-only: after a refusal, what is wrong */
};

void sxe__resp_init(struct sxe__resp *resp, size_t max);

/* Read on. bytes are all bytes of one reply so far, from its first one: those of the last call, and
 * those that came since. 1: the reply is whole, and `at` is its length; 0: more bytes must come;
 * -1: it is no reply, see why. After 1 the next reply begins with sxe__resp_next. */
int sxe__resp_scan(struct sxe__resp *resp, const char *bytes, size_t length);

void sxe__resp_next(struct sxe__resp *resp);

/* Read the element at these bytes of a whole reply. Returns the place after it. */
const char *sxe__resp_element(const char *bytes, struct sxe__resp_element *element);

bool sxe__resp_is_text(char type);  /* an element with a length, and as many bytes */
bool sxe__resp_is_list(char type);  /* an element with a count, and as many elements or pairs */
bool sxe__resp_is_pairs(char type); /* a list of pairs */

#endif
