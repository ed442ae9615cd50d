/* SPDX-License-Identifier: MIT
 *
 * What: the cookies of one virtual user (RFC 6265), of one server over http. Place: sessions put
 * each Set-Cookie of a reply in, and write the Cookie field of the next request from it. Pure: no
 * I/O, no allocation, no clock. A jar is one struct, which is empty if it is all zero.
 *
 * Shape: cookies lie one after the other in the order in which they are sent (5.4): those of the
 * longer path first, of equal ones the older first. A cookie that is set again, with the same name
 * and path, keeps its place; an expired cookie is removed.
 *
 *     [head|name|value|path][head|name|value|path] ... room
 *
 * There is one server, so a cookie's Domain is only checked: a cookie for another domain is
 * ignored. A Secure cookie is kept and never sent, because sessions have no TLS.
 *
 * Limits: LOAD_JAR_COOKIES cookies in LOAD_JAR_BYTES bytes; the oldest is removed to make room for
 * another. Name and value have at most LOAD_COOKIE_MAX bytes together, a path LOAD_COOKIE_PATH_MAX;
 * a cookie with more is ignored. A field must have no control bytes: sxe-http refuses a reply whose
 * fields have any.
 */
#ifndef LOAD_COOKIE_JAR_H
#define LOAD_COOKIE_JAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-util.h"

#define LOAD_JAR_COOKIES     50
#define LOAD_JAR_BYTES       8192
#define LOAD_COOKIE_MAX      4096
#define LOAD_COOKIE_PATH_MAX 1024

/* An upper bound of a Cookie field's bytes: "; " and "=" take less room than the head that each
 * cookie has in the jar. */
#define LOAD_JAR_TEXT_MAX LOAD_JAR_BYTES

struct load_jar {
    uint32_t serial; /* private: the newest cookie's serial */
    uint16_t used;   /* private: how many bytes are used */
    uint8_t number;  /* ro: how many cookies */
    bool has_times;  /* ro: some cookies expire, so now_s matters */
    char bytes[LOAD_JAR_BYTES];
};

/* Where a reply came from. */
struct load_jar_origin {
    struct sxe_span host; /* without a port; an IPv6 address without brackets */
    struct sxe_span path; /* the path of the request's target, without the part from a ? on */
};

void load_jar_clear(struct load_jar *jar);

/* Put the cookie of a Set-Cookie field's value into the jar; now_s: seconds since 1970. */
void load_jar_take(struct load_jar *jar, const struct load_jar_origin *origin, const char *field,
                   size_t length, int64_t now_s);

/* Write "a=b; c=d", the cookies for a path, and return how long that is, at most
 * LOAD_JAR_TEXT_MAX; 0: there are none. */
size_t load_jar_write(const struct load_jar *jar, struct sxe_span path, int64_t now_s, char *text);

#endif
