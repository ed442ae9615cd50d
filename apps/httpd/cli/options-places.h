/* SPDX-License-Identifier: MIT
 *
 * What: finds places, of all options, that cannot be open together.
 *
 * Place: options-complete.h checks the other options together.
 */
#ifndef HTTPD_OPTIONS_PLACES_H
#define HTTPD_OPTIONS_PLACES_H

#include "options.h"

/* Whether the places of -p, --unix, --listen, --http-redirect and --admin can all be open. False
 * after a message that names two of them. */
bool httpd_has_distinct_places(const struct httpd_options *options);

#endif
