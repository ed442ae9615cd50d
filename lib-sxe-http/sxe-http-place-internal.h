/* SPDX-License-Identifier: MIT
 *
 * What: the servers of an upstream as people write them, and their addresses.
 *
 * Place: the friend interface of lib-sxe-http, for lib-sxe-lua and sxe-httpd; not installed.
 *
 * Shape: a place is "IP:PORT", "[IPv6]:PORT", "NAME:PORT", or a unix socket, "/path" or "@name";
 * the first three may have "https://" in front, and " weight=N" may follow.
 *
 *     text -- sxe__http_place_read --> place -- sxe__http_place_find --> addresses of the upstream
 */
#ifndef SXE_HTTP_PLACE_INTERNAL_H
#define SXE_HTTP_PLACE_INTERNAL_H

#include "sxe-http-proxy.h"

/* Visible in libsxe.so.0, because lib-sxe-lua calls these functions; a program cannot rely on
 * them. */
#pragma GCC visibility push(default)

enum { SXE__HTTP_PLACE_PATH_MAX = 107, SXE__HTTP_PLACE_IP_SIZE = 64 };

struct sxe__http_place {
    char host[256];
    char port[8];
    char path[SXE__HTTP_PLACE_PATH_MAX + 1]; /* of a unix socket; "": a host and a port */
    uint16_t weight;
};

/* Addresses, and the texts to which they point. They also point to their places. */
struct sxe__http_found {
    struct sxe_http_upstream_address addresses[SXE_HTTP_UPSTREAM_ADDRESSES];
    char texts[SXE_HTTP_UPSTREAM_ADDRESSES][SXE__HTTP_PLACE_IP_SIZE];
    unsigned number;
};

/* Read a place. False: the text is none. */
bool sxe__http_place_read(const char *text, struct sxe__http_place *place);

/* Whether the text begins with "https://". */
bool sxe__http_place_has_scheme(const char *text);

/* Add the addresses of a place, but not more than `most`; a name is looked up, which may take as
 * long as the system's resolver waits. 0, or the error of getaddrinfo(3). */
int sxe__http_place_find(const struct sxe__http_place *place, unsigned most,
                         struct sxe__http_found *found);

#pragma GCC visibility pop

#endif
