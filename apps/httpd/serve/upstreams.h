/* SPDX-License-Identifier: MIT
 *
 * What: the upstreams to which requests are sent on, from the configuration file or from --proxy.
 *
 * Place: config-upstreams.c and the options fill them in; service.c and config-routes.c open them
 * in the process that serves.
 *
 * Shape: a place is "IP:PORT", "[IPv6]:PORT", "NAME:PORT", or a unix socket, "/path" or "@name"; "
 * weight=N" may follow. A name is looked up when the upstream is opened, and the upstream gets all
 * its addresses.
 *
 * Limits: UPSTREAM_PLACES_MAX places, HTTPD_PROXIES_MAX --proxy.
 */
#ifndef UPSTREAMS_H
#define UPSTREAMS_H

#include <stdbool.h>

#include "sxe-http-proxy.h"

#define UPSTREAM_PLACES_MAX 16
#define UPSTREAM_PLACE_SIZE 320
#define HTTPD_PROXIES_MAX   8
#define HTTPD_PATTERN_SIZE  256

struct upstream {
    const char *name;
    const char *where; /* for messages: "site.lua:3: upstreams: " or "" */
    const char *places[UPSTREAM_PLACES_MAX];
    unsigned places_number;
    /* the place of an upstream that a URL names; then places[0] points here */
    char place[UPSTREAM_PLACE_SIZE];
    struct sxe_http_upstream_config settings; /* all settings but its name and addresses */
    struct sxe_http_upstream *made; /* the open upstream; NULL: it is not open, or has no address */
    struct upstream *next;
};

/* One option --proxy. */
struct httpd_proxy {
    /* patterns for the prefix itself, and for all paths below it; "": none */
    char patterns[2][HTTPD_PATTERN_SIZE];
    char path[HTTPD_PATTERN_SIZE];
    struct upstream upstream;
    struct sxe_http_proxy send;
};

/* Whether a text is a place, as described at the top of this file. */
bool upstream_is_place(const char *text);

/* Split "http://HOST:PORT/path", or "http://HOST", whose port is 80, into a place, for which there
 * is room for UPSTREAM_PLACE_SIZE bytes, and a path; *path is NULL if there is none. NULL, or what
 * the URL must be, for a message. */
const char *upstream_split_url(const char *url, char *place, const char **path);

/* What a path must be that replaces the start of another, for messages; and whether it is so. */
#define UPSTREAM_PATH                                                                             \
    "a path such as /v1/, without a query, a fragment, dots, double slashes and escapes that it " \
    "does not need, and with all bytes escaped that a path has only as an escape"
bool upstream_is_path(const char *path);

/* Read PREFIX=URL. NULL, or what the text must be, for a message. */
const char *upstream_read_proxy(const char *text, struct httpd_proxy *proxy);

/* Look the names up, and reserve the connections; http: it has the limits of heads, and gets room
 * for fields of replies. If a server's name is not found, a message says so, and the server has no
 * address; if no server has an address, `made` stays NULL. Call it before sxe_init. 0, or -errno
 * after a message. */
int upstream_open(struct upstream *upstream, struct sxe_http_config *http);

void upstream_plan_print(const struct upstream *upstream);

/* Send the request on. If no server has an address, answer 502, and log a line. */
enum sxe_http_verdict upstream_send(const struct upstream *upstream,
                                    const struct sxe_http_proxy *send,
                                    struct sxe_http_request *request,
                                    struct sxe_http_response *response);

/* Call it after sxe_fini. An upstream that was not opened may be closed, too. */
void upstream_close(struct upstream *upstream);

/* For all options --proxy: open and close their upstreams, print their memory, and add their
 * routes. 0 or -errno. */
int passes_open(struct httpd_proxy *passes, unsigned number, struct sxe_http_config *http);
void passes_plan_print(const struct httpd_proxy *passes, unsigned number);
int passes_route(struct httpd_proxy *passes, unsigned number, struct sxe_http_router *router);
void passes_close(struct httpd_proxy *passes, unsigned number);

#endif
