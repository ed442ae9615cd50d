/* SPDX-License-Identifier: MIT
 *
 * What: describes the first invalid reply: why it is invalid, and its bytes around the error.
 * Place: it is a part of the worker's result, which is in shared memory, so it has no pointers. All
 * zero means that no reply was invalid. The summary and the JSON print it.
 */
#ifndef LOAD_BAD_REPLY_H
#define LOAD_BAD_REPLY_H

#include "sxe-http-parse.h"

#define LOAD_BAD_BYTES 40
/* room for the quoted bytes: each byte may become \x00, and two quotes and a NUL are added */
#define LOAD_BAD_TEXT (4 * LOAD_BAD_BYTES + 3)
/* how many columns of the bytes the summary shows */
#define LOAD_BAD_SHOWN 60

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

/* Store why the reply is invalid, and the bytes of data around offset `at`. The stored bytes begin
 * where the line of `at` begins, but at most LOAD_BAD_BYTES / 2 bytes before `at`. */
void load_bad_reply_note(struct load_bad_reply *bad, unsigned why, const char *data, size_t length,
                         size_t at);

/* Why the reply is invalid, as a sentence. */
const char *load_bad_reply_why(const struct load_bad_reply *bad);

/* Write the stored bytes in quotes, as many as fit. Bytes that cannot be printed become \r, \n, \t,
 * or \x and two hexadecimal digits. size must be at least 7; LOAD_BAD_TEXT is enough for all bytes.
 * Returns text. */
const char *load_bad_reply_quote(const struct load_bad_reply *bad, char *text, size_t size);

/* Read what load_bad_reply_why and load_bad_reply_quote have written. If `why` is no such reason,
 * or one of the texts is NULL, *bad is not changed. */
void load_bad_reply_read(struct load_bad_reply *bad, const char *why, const char *quoted);

#endif
