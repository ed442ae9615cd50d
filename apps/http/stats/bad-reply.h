/* SPDX-License-Identifier: MIT
 *
 * What: the first invalid reply: why it is invalid, and the bytes that show that. Place: a part of
 * the worker's result, which is shared memory, so it has no pointers; all zero means that no reply
 * was invalid. The summary and the JSON print it.
 */
#ifndef LOAD_BAD_REPLY_H
#define LOAD_BAD_REPLY_H

#include "sxe-http-parse.h"

#define LOAD_BAD_BYTES 40
#define LOAD_BAD_TEXT  (4 * LOAD_BAD_BYTES + 3) /* room for each byte as \x00, two quotes, a NUL */
#define LOAD_BAD_SHOWN 60                       /* how many columns the summary shows */

/* Reasons besides those of enum sxe_http_refusal. */
enum {
    LOAD_BAD_UPGRADE = SXE_HTTP_REFUSALS_END, /* status 101, which no request asked for */
    LOAD_BAD_MORE                             /* bytes follow the reply to the last request */
};

struct load_bad_reply {
    uint8_t why; /* enum sxe_http_refusal or LOAD_BAD_...; 0: no reply was invalid */
    uint8_t length;
    char bytes[LOAD_BAD_BYTES];
};

/* Keep the bytes of data around offset `at`: from the beginning of its line, but at most
 * LOAD_BAD_BYTES / 2 before `at`. */
void load_bad_reply_note(struct load_bad_reply *bad, unsigned why, const char *data, size_t length,
                         size_t at);

/* The reason, as a sentence. */
const char *load_bad_reply_why(const struct load_bad_reply *bad);

/* Write as many of the bytes as fit, in quotes; bytes that do not print become \r, \n, \t, or \x
 * and two hexadecimal digits. size is 7 or more: LOAD_BAD_TEXT for all. Returns text. */
const char *load_bad_reply_quote(const struct load_bad_reply *bad, char *text, size_t size);

/* The inverse of load_bad_reply_why and load_bad_reply_quote. *bad is not changed if no reason has
 * the text `why`, or a text is NULL. */
void load_bad_reply_read(struct load_bad_reply *bad, const char *why, const char *quoted);

#endif
