/* SPDX-License-Identifier: MIT
 *
 * What: splits a URL of the command line into its parts. Place: command-plan.c uses it.
 *
 * Shape: http://host:port/path?query     the port is 80 if there is none
 *        https://host:port/path?query    the port is 443 if there is none
 *        host:port/path                  the same
 *        http://[fe80::1%eth0]:8000/     the zone is for connecting, and not in the Host field
 *        http+unix:///run/web.sock:/path, unix:/run/web.sock:/path, unix:@abstract:/path
 *
 * A path or query may have the placeholders of template.h. Nothing is decoded or escaped.
 */
#ifndef LOAD_URL_H
#define LOAD_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "plan.h"

struct load_url {
    char host[256]; /* the host without brackets, perhaps with %zone; "" for a unix socket */
    uint16_t port;  /* the port; 0 for a unix socket */
    bool is_tls;    /* whether the scheme is https */
    /* the Host field: the host, an IPv6 address in brackets, and the port unless it is the scheme's
     * default, 80 or 443 */
    char authority[272];
    char path[108]; /* the path of a unix socket, "@name" is abstract; otherwise "" */
    /* the path and query, such as "/a?b", without a fragment; "/" if the URL has none; points into
     * target_text */
    const char *target;
    char target_text[4096];
};

/* Parse a URL. NULL, or what is wrong: a text that is valid until this thread's next call. */
const char *load_url_parse(struct load_url *url, const char *text);

/* Look up the addresses of host. NULL, or getaddrinfo's error. localhost, for example, has the
 * addresses ::1 and 127.0.0.1, but a server may listen at one of them only. So if a server accepts
 * connections at addresses of one family (IPv4 or IPv6), but at none of the other, only the first
 * family is used. */
const char *load_url_resolve(const char *host, uint16_t port, struct load_addresses *addresses);

/* Use the addresses of this family only, unless there are none. */
void load_url_use_family(struct load_addresses *addresses, int family);

/* Whether a program accepts connections at the address; waits a quarter of a second at most. */
bool load_url_accepts(const struct sockaddr *address, socklen_t length);

#endif
