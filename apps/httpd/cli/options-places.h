/* SPDX-License-Identifier: MIT
 *
 * What: finds places, among those of all options, at which the server cannot listen at the same
 * time. A place is an address and port, or the path of a unix socket.
 *
 * Place: options.c calls it after all options were read; options-complete.h checks the other
 * options.
 */
#ifndef HTTPD_OPTIONS_PLACES_H
#define HTTPD_OPTIONS_PLACES_H

#include "options.h"

/* Whether the server can listen at all places of -p, --unix, --listen, --http-redirect and --admin
 * at the same time. False after a message that names two places. */
bool httpd_has_distinct_places(const struct httpd_options *options);

#endif
