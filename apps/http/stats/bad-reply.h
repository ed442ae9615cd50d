/* SPDX-License-Identifier: MIT
 *
 * What: what is wrong with the first reply that is none, and the bytes that show it. Place: the
 * worker notes it in its result, which is shared memory: no pointers, all zero is none. The summary
 * and the JSON say it.
 */
#ifndef LOAD_BAD_REPLY_H
#define LOAD_BAD_REPLY_H

#include "sxe-http-parse.h"

#define LOAD_BAD_BYTES 40
#define LOAD_BAD_TEXT  (4 * LOAD_BAD_BYTES + 3) /* each as \x00, the quotes, the zero byte */
#define LOAD_BAD_SHOWN 60                       /* columns in the summary */

/* Beyond enum sxe_http_refusal. */
enum {
    LOAD_BAD_UPGRADE = SXE_HTTP_REFUSALS_END, /* 101, for which nobody asked */
    LOAD_BAD_MORE                             /* there is more than was asked for */
};

struct load_bad_reply {
    uint8_t why; /* enum sxe_http_refusal, or one of these; 0: there was none */
    uint8_t length;
    char bytes[LOAD_BAD_BYTES];
};

/* Keep the line of data in which at is, from its beginning if that is near. */
void load_bad_reply_note(struct load_bad_reply *bad, unsigned why, const char *data, size_t length,
                         size_t at);

/* A sentence. */
const char *load_bad_reply_why(const struct load_bad_reply *bad);

/* Write the bytes that fit in quotes; bytes that do not print become \r, \n, \t, or \x and two
 * hexadecimal digits. size is 7 or more: LOAD_BAD_TEXT for all. Returns text. */
const char *load_bad_reply_quote(const struct load_bad_reply *bad, char *text, size_t size);

/* The inverse of both: *bad stays as it is if no reason has that text, or a text is NULL. */
void load_bad_reply_read(struct load_bad_reply *bad, const char *why, const char *quoted);

#endif
