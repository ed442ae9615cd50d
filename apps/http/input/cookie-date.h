/* SPDX-License-Identifier: MIT
 *
 * What: reads the time of a cookie's Expires (RFC 6265, 5.1.1), which servers write in many forms.
 * Place: cookie-jar.c uses it.
 */
#ifndef LOAD_COOKIE_DATE_H
#define LOAD_COOKIE_DATE_H

#include <stdbool.h>
#include <stdint.h>

#include "sxe-util.h"

/* Read a date as seconds since 1970. False: the text is not a date; then the cookie has to be
 * treated as if it had no Expires. */
bool load_cookie_date(struct sxe_span text, int64_t *seconds);

#endif
