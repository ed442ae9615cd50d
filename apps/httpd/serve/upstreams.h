/* SPDX-License-Identifier: MIT
 *
 * What: the upstreams to which requests are sent on, from the configuration file or from --proxy.
 *
 * Place: config-upstreams.c and the options fill them in; service.c and config-routes.c open them
 * in the process that serves.
 *
 * Shape: a place is "IP:PORT", "[IPv6]:PORT", "NAME:PORT", or a unix socket, "/path" or "@name";
 * the first three may have "https://" in front, and " weight=N" may follow. A name is looked up
 * when the upstream is opened, and each of its addresses is one of the upstream's.
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

/* TLS of upstreams. */
struct upstream_tls {
    const char *ca;   /* a file of authorities in PEM; NULL: the system's */
    const char *name; /* that certificates must have; NULL: the host of each place */
    bool is_insecure; /* any certificate will do */
};

struct upstream {
    const char *name;
    const char *where; /* for messages: "site.lua:3: upstreams: " or "" */
    const char *places[UPSTREAM_PLACES_MAX];
    unsigned places_number;
    char place[UPSTREAM_PLACE_SIZE];          /* places[0], if it is that of a URL */
    struct sxe_http_upstream_config settings; /* all but its name, addresses and TLS */
    bool is_tls;                              /* its places have "https://" */
    struct upstream_tls tls_settings;         /* its own */
    struct sxe_tls *tls;                      /* NULL: it is not open, or without TLS */
    struct sxe_http_upstream *made;           /* NULL: it is not open, or has no address */
    struct upstream *next;
    struct upstream *next_open;
};

/* One option --proxy. */
struct httpd_proxy {
    /* patterns for the prefix itself, and for all paths below it; "": none */
    char patterns[2][HTTPD_PATTERN_SIZE];
    char path[HTTPD_PATTERN_SIZE];
    struct upstream upstream;
    struct sxe_http_proxy send;
};

/* Whether a text is a place, as described at the top of this file; and whether it has https. */
bool upstream_is_place(const char *text);
bool upstream_has_scheme(const char *place);

/* Whether certificates can have that name. */
bool upstream_is_tls_name(const char *name);

/* Split "http://HOST:PORT/path", or "http://HOST", whose port is 80, into a place, for which there
 * is room for UPSTREAM_PLACE_SIZE bytes, and a path; that of "https://HOST", whose port is 443, has
 * the scheme. *path is NULL if there is none. NULL, or what
 * the URL must be, for a message. */
const char *upstream_split_url(const char *url, char *place, const char **path);

/* For messages: a path that may replace the start of another; and whether a path is such a one. */
#define UPSTREAM_PATH                                                                             \
    "a path such as /v1/, without a query, a fragment, dots, double slashes and escapes that it " \
    "does not need, and with all bytes escaped that a path has only as an escape"
bool upstream_is_path(const char *path);

/* Read PREFIX=URL. NULL, or what the text must be, for a message. */
const char *upstream_read_proxy(const char *text, struct httpd_proxy *proxy);

/* The settings for TLS: its own, and for those that it has not, the usual ones. */
struct upstream_tls upstream_tls_of(const struct upstream *upstream,
                                    const struct upstream_tls *usual);

/* Look the names up, and reserve the connections; http has the limits of heads, and gets room for
 * fields of replies; usual is the TLS of upstreams that have no settings of their own. A server
 * whose name is not found has no address, after a message; if none has one, `made` stays NULL.
 * Before sxe_init. 0, or -errno after a message. */
int upstream_open(struct upstream *upstream, const struct upstream_tls *usual,
                  struct sxe_http_config *http);

/* Write the counts of all open upstreams to the shared metrics. */
void upstreams_publish(void);

/* Whether WebSockets pass. */
bool upstreams_have_tunnels(void);

void upstream_plan_print(const struct upstream *upstream);

/* Send the request on. If no server has an address, answer 502, and log a line. */
enum sxe_http_verdict upstream_send(const struct upstream *upstream,
                                    const struct sxe_http_proxy *send,
                                    struct sxe_http_request *request,
                                    struct sxe_http_response *response);

/* Call it after sxe_fini. An upstream that was not opened may be closed, too. */
void upstream_close(struct upstream *upstream);

/* Open and close the upstreams of all --proxy, print their memory, and add their routes. 0 or
 * -errno. */
int passes_open(struct httpd_proxy *passes, unsigned number, const struct upstream_tls *usual,
                struct sxe_http_config *http);
void passes_plan_print(const struct httpd_proxy *passes, unsigned number);
int passes_add_routes(struct httpd_proxy *passes, unsigned number, struct sxe_http_router *router);
void passes_close(struct httpd_proxy *passes, unsigned number);

#endif
