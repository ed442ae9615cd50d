/* SPDX-License-Identifier: MIT
 *
 * What: the routes of --stats and --proxy.
 *
 * Place: options.c checks them, and service.c makes them for the server. Both use the same
 * function, so that --check accepts exactly what a start accepts.
 */
#ifndef OPTION_ROUTES_H
#define OPTION_ROUTES_H

#include "options.h"

/* Make the router with these routes. *router becomes NULL if neither option was given. 0, or -errno
 * after a message. */
int option_routes_make(struct httpd_options *options, struct sxe_http_router **router);

/* Whether the router can be made. False after a message. */
bool option_routes_are_good(struct httpd_options *options);

#endif
