/* SPDX-License-Identifier: MIT
 *
 * What: the upstreams to which requests are sent on, from the configuration file or from --proxy.
 *
 * Place: config-upstreams.c and options.c fill in the structs; service.c and config-routes.c open
 * the upstreams in the process that serves.
 *
 * Shape: a place is a text as in sxe-http-place-internal.h. A name in it is looked up when the
 * upstream is opened, and all its addresses become addresses of the upstream.
 *
 * Limits: UPSTREAM_PLACES_MAX places for each upstream; HTTPD_PROXIES_MAX options --proxy.
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
    /* a file of authorities' certificates in PEM; NULL: the system's authorities */
    const char *ca;
    /* the name that the servers' certificates must have; NULL: the host of each place */
    const char *name;
    bool is_insecure; /* whether any certificate is accepted */
    /* files in PEM: the certificate for servers that ask for one, and its key; NULL: none */
    const char *certificate;
    const char *key;
};

struct upstream {
    const char *name;
    /* where the upstream is described, for messages: "site.lua:3: upstreams: ", or "" */
    const char *where;
    const char *places[UPSTREAM_PLACES_MAX];
    unsigned places_number;
    char place[UPSTREAM_PLACE_SIZE];          /* the text of places[0], if it was made from a URL */
    struct sxe_http_upstream_config settings; /* all settings but the name, the addresses and TLS */
    bool is_tls;                              /* whether its places have "https://" */
    /* the settings of TLS that this upstream has itself */
    struct upstream_tls tls_settings;
    /* NULL: the upstream is not open, or does not use TLS */
    struct sxe_tls *tls;
    /* NULL: the upstream is not open, or has no address */
    struct sxe_http_upstream *made;
    struct upstream *next;
    struct upstream *next_open;
};

/* One option --proxy. */
struct httpd_proxy {
    /* a pattern for the prefix itself, and one for all paths below it; "": there is no such
     * pattern */
    char patterns[2][HTTPD_PATTERN_SIZE];
    char path[HTTPD_PATTERN_SIZE];
    struct upstream upstream;
    struct sxe_http_proxy send;
};

/* upstream_is_place: whether a text is a place (sxe-http-place-internal.h).
 * upstream_has_scheme: whether the place begins with "https://". */
bool upstream_is_place(const char *text);
bool upstream_has_scheme(const char *place);

/* Whether certificates can have this name. */
bool upstream_is_tls_name(const char *name);

/* Split a URL into a place and a path. The URL is "http://HOST:PORT/path", or "http://HOST", whose
 * port is 80. If it is "https://HOST", its port is 443, and the place begins with "https://". place
 * must have room for UPSTREAM_PLACE_SIZE bytes. *path becomes NULL if the URL has no path. Returns
 * NULL, or, for a message, what the URL must be. */
const char *upstream_split_url(const char *url, char *place, const char **path);

/* UPSTREAM_PATH describes, for messages, a path that may replace the beginning of another path.
 * upstream_is_path: whether a path is such a one. */
#define UPSTREAM_PATH                                                                             \
    "a path such as /v1/, without a query, a fragment, dots, double slashes and escapes that it " \
    "does not need, and with all bytes escaped that a path has only as an escape"
bool upstream_is_path(const char *path);

/* Read PREFIX=URL. NULL, or, for a message, what the text must be. */
const char *upstream_read_proxy(const char *text, struct httpd_proxy *proxy);

/* The settings of TLS for an upstream: its own settings, and for those that it does not have, the
 * usual ones. */
struct upstream_tls upstream_tls_of(const struct upstream *upstream,
                                    const struct upstream_tls *usual);

/* Give the server room for the fields of other servers' replies. */
void upstreams_make_room(struct sxe_http_config *http);

/* Look up the names of the servers, and reserve the connections. usual has the settings of TLS for
 * upstreams that have none of their own. http has the limits of heads, and gets room for the fields
 * of replies. A server whose name is not found has no address, after a message; if no server has an
 * address, `made` stays NULL. Call it before sxe_init. 0, or -errno after a message. */
int upstream_open(struct upstream *upstream, const struct upstream_tls *usual,
                  struct sxe_http_config *http);

/* Write the counts of all open upstreams to the shared metrics. */
void upstreams_publish(void);

/* Whether any upstream passes WebSockets on. */
bool upstreams_have_tunnels(void);

void upstream_plan_print(const struct upstream *upstream);

/* Send the request on to the upstream. If no server has an address, reply with 502, and log a
 * line. */
enum sxe_http_verdict upstream_send(const struct upstream *upstream,
                                    const struct sxe_http_proxy *send,
                                    struct sxe_http_request *request,
                                    struct sxe_http_response *response);

/* Close an upstream, which need not be open. Call it after sxe_fini. */
void upstream_close(struct upstream *upstream);

/* For all options --proxy: open and close their upstreams, print the memory of these, and add their
 * routes. 0 or -errno. */
int passes_open(struct httpd_proxy *passes, unsigned number, const struct upstream_tls *usual,
                struct sxe_http_config *http);
void passes_plan_print(const struct httpd_proxy *passes, unsigned number);
int passes_add_routes(struct httpd_proxy *passes, unsigned number, struct sxe_http_router *router);
void passes_close(struct httpd_proxy *passes, unsigned number);

#endif
