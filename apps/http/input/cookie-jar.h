/* SPDX-License-Identifier: MIT
 *
 * What: a jar: the cookies (RFC 6265) that one virtual user has of one server, over http. Place:
 * sessions put the cookies of each reply into the jar, and write the Cookie field of the next
 * request from it. The functions do no I/O, allocate nothing, and read no clock. A jar is one
 * struct; a jar of zeros is empty.
 *
 * Shape: cookies lie one after the other in the order in which they are sent (RFC 6265, 5.4):
 * cookies with longer paths first, and of cookies with equally long paths the older one first. A
 * cookie that is set again, with the same name and path, keeps its place; an expired cookie is
 * removed.
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

/* No Cookie field is longer than this: a cookie has a head in the jar, which takes more room than
 * the "; " and "=" of the field. */
#define LOAD_JAR_TEXT_MAX LOAD_JAR_BYTES

struct load_jar {
    uint32_t serial; /* private: the newest cookie's serial */
    uint16_t used;   /* private: how many bytes are used */
    uint8_t number;  /* ro: how many cookies */
    /* ro: whether a cookie has a time at which it expires; only then now_s matters */
    bool has_times;
    char bytes[LOAD_JAR_BYTES];
};

/* Where a reply came from. */
struct load_jar_origin {
    struct sxe_span host; /* the host's name without a port, or an IPv6 address without brackets */
    struct sxe_span path; /* the path of the request's target, without the part from a ? on */
};

void load_jar_clear(struct load_jar *jar);

/* Put the cookie that the value of a Set-Cookie field describes into the jar. now_s: seconds since
 * 1970. */
void load_jar_take(struct load_jar *jar, const struct load_jar_origin *origin, const char *field,
                   size_t length, int64_t now_s);

/* Write the cookies for a path as "a=b; c=d". Returns the length of this text, at most
 * LOAD_JAR_TEXT_MAX; 0: the jar has no cookie for the path. */
size_t load_jar_write(const struct load_jar *jar, struct sxe_span path, int64_t now_s, char *text);

#endif
