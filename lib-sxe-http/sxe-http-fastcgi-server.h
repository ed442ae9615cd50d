/* SPDX-License-Identifier: MIT
 *
 * What: an HTTP server answers FastCGI, too, in the role of a responder: web servers such as nginx
 * and lighttpd send it requests.
 *
 * Place: beside sxe_http_listen. Each request gets a connection of the HTTP server, as if its
 * client had connected to it: the same handlers, router, limits, timeouts, access log and counters.
 *
 * Shape:
 *     web server ==== connection of FastCGI ==== request 1 ---- connection of HTTP ---- handler
 *                     (records)            '==== request 2 ---- connection of HTTP ---- handler
 *
 * A connection carries any number of requests at a time. Method, target and fields of a request are
 * REQUEST_METHOD, REQUEST_URI, HTTP_*, CONTENT_TYPE and CONTENT_LENGTH; its client is REMOTE_ADDR;
 * its scheme is https if HTTPS is on. A reply begins with the field Status.
 *
 * Rules: 1 whoever may connect is believed: listen at a unix socket or a private address. 2 A
 * request whose parameters are wrong is answered 400; a record that is wrong ends the connection,
 * because where the next one begins cannot be trusted. 3 If a client aborts a request, or its
 * connection ends, handlers see that the client is gone. 4 A reply that breaks off ends the
 * connection: END_REQUEST would make it look whole.
 *
 * Limits: `requests` at a time, each with memory for parameters; one more is answered OVERLOADED.
 *
 * Example:
 *     struct sxe_http_config config = {.handler = hello};
 *     struct sxe_http *http = sxe_http_new(&config);
 *
 *     if (http == NULL || sxe_http_fastcgi_new(http, 0) < 0 || sxe_init() < 0 ||
 *         sxe_http_fastcgi_listen(http, "127.0.0.1", 9000) < 0)
 *         return 1;
 *     return sxe_run() < 0;
 */
#ifndef SXE_HTTP_FASTCGI_SERVER_H
#define SXE_HTTP_FASTCGI_SERVER_H

#include "sxe-http.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Let the server answer FastCGI; call it before sxe_init. At most so many requests are under way at
 * a time, on at most as many connections; 0: 1024, or the number of http's connections if that is
 * smaller. sxe_http_drain, sxe_http_stop and sxe_http_delete are for FastCGI, too. 0; -EALREADY;
 * -ENOMEM. */
SXE_PUBLIC SXE_RETURN sxe_http_fastcgi_new(struct sxe_http *http, unsigned requests);

/* Listen, after sxe_init; any number of listeners, 4 at most. 0, or -errno as from sxe_listen. */
SXE_PUBLIC SXE_RETURN sxe_http_fastcgi_listen(struct sxe_http *http, const char *ip,
                                              unsigned short port);
SXE_PUBLIC SXE_RETURN sxe_http_fastcgi_listen_unix(struct sxe_http *http, const char *path);

/* The port of the last sxe_http_fastcgi_listen; 0: nothing listens. */
SXE_PUBLIC unsigned short sxe_http_fastcgi_port(const struct sxe_http *http);

#ifdef __cplusplus
}
#endif

#endif
