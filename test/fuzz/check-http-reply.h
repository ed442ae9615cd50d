/* SPDX-License-Identifier: MIT
 *
 * What: a reply that comes in pieces is the reply that comes at once. Input: the first byte seeds
 * the lengths of the pieces, the others are what the peer sends. Place: the fuzzer and the unit
 * test.
 */
#ifndef CHECK_HTTP_REPLY_H
#define CHECK_HTTP_REPLY_H

#include <stdlib.h>
#include <string.h>

#include "../../apps/http/reply.h"

/* In memory of its own that has no byte more. */
static inline ssize_t
scan_copy(struct http_reply *reply, const uint8_t *data, size_t length)
{
    char *copy = malloc(length > 0 ? length : 1);
    ssize_t n;

    memcpy(copy, data, length);
    n = http_reply_scan(reply, copy, length);
    free(copy);
    return n;
}

/* What differs, or NULL. */
static inline const char *
check_http_reply(const uint8_t *data, size_t size)
{
    struct http_reply at_once = {0};
    struct http_reply in_pieces = {0};
    unsigned seed = size > 0 ? *data : 0;
    size_t length = size > 0 ? size - 1 : 0;
    ssize_t wanted;
    size_t taken = 0;
    size_t offered = 0;
    ssize_t n = 0;

    if (length == 0)
        return NULL;
    wanted = scan_copy(&at_once, data + 1, length);
    while (offered < length && n >= 0) {
        seed = seed * 1103515245u + 12345u;
        offered += 1 + (seed >> 16) % 40;
        offered = offered < length ? offered : length;
        n = scan_copy(&in_pieces, data + 1 + taken, offered - taken);
        if (n > (ssize_t)(offered - taken))
            return "more was taken than offered";
        taken += n > 0 ? (size_t)n : 0;
    }
    if ((wanted < 0) != (n < 0))
        return "the verdict";
    if (wanted < 0)
        return NULL;
    if ((size_t)wanted != taken)
        return "the number of bytes taken";
    if (at_once.part != in_pieces.part || at_once.left != in_pieces.left)
        return "what comes next";
    if (at_once.status != in_pieces.status || at_once.keep_alive != in_pieces.keep_alive)
        return "what the head said";
    return NULL;
}

#endif
