/* SPDX-License-Identifier: MIT
 *
 * What: a scanner of Redis replies, RESP2 and RESP3. It takes the elements of a reply one by one,
 * and finds the reply's end, or that it is invalid. It needs no memory for elements that a reply
 * has announced and not sent.
 *
 * Place: sxe-lua-redis-reader.c, which makes values of the elements as they come. The scanner knows
 * nothing of Lua.
 *
 * Shape: a stack of how many elements each open list still wants. An element is taken when all of
 * it is there, so the bytes of the elements before it need not be kept. `seen` is where the search
 * for the end of the element's line goes on.
 *
 *     *2 CRLF $3 CRLF a b c CRLF :1 CRLF
 *                                ^bytes       left[0] = 1, depth = 1
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

/* The beginning of an element: its type, and its value if the type has one. */
struct sxe__resp_element {
    /* The rest of the line after the type; for a type with a length, the bytes that the length
     * counts. */
    const char *text;
    size_t length; /* bytes of `text` */
    int64_t value; /* the integer, length or count of the element; -1: null */
    char type;
};

enum sxe__resp_result {
    SXE__RESP_BAD = -1, /* the bytes are no valid reply; `why` is the reason */
    SXE__RESP_MORE,     /* more bytes must come */
    SXE__RESP_ELEMENT,
    SXE__RESP_REPLY /* an element was taken, the last one of its reply */
};

struct sxe__resp {
    size_t max;                     /* read-only: the most bytes that a reply may have */
    size_t size;                    /* private: bytes of this reply's elements that were taken */
    size_t seen;                    /* private: bytes that were searched for the end of the line */
    size_t used;                    /* read-only: bytes of the last element that was taken */
    unsigned depth;                 /* private */
    uint64_t left[SXE__RESP_DEPTH]; /* private */
    const char *why; /* read-only: the reason for BAD; NULL: the reply has more than max bytes */
};

void sxe__resp_init(struct sxe__resp *resp, size_t max);

/* Take the next element from `bytes`, which begin after the last element that was taken. After
 * MORE, call again with the same bytes and the bytes that came since. */
enum sxe__resp_result sxe__resp_take(struct sxe__resp *resp, const char *bytes, size_t length,
                                     struct sxe__resp_element *element);

/* Whether an element of this type is a list: it has a count, and as many elements or pairs follow
 * it. */
bool sxe__resp_is_list(char type);
bool sxe__resp_is_pairs(char type); /* whether the elements of such a list are pairs */

#endif
