/* SPDX-License-Identifier: MIT
 *
 * What: the replies, ready to be sent: made once a second, because of their Date (RFC 9110, 6.6.1),
 * and otherwise only looked up. Place: httpd.c. Reads the wall clock once a second.
 */
#ifndef HTTPD_REPLY_H
#define HTTPD_REPLY_H

#include <stdint.h>

#include "request.h"

struct httpd_reply {
    const char *base; /* valid until the next call */
    unsigned length;
};

/* now_ns: the turn's monotonic time, by which it is known whether the second is over. */
struct httpd_reply httpd_reply_hello(const struct httpd_request *request, uint64_t now_ns);

/* 400, 413, 414, 431, 501 or 505, saying that the connection closes. */
struct httpd_reply httpd_reply_refusal(unsigned status, uint64_t now_ns);

#endif
