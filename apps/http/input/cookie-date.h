/* SPDX-License-Identifier: MIT
 *
 * What: the time of a cookie's Expires (RFC 6265, 5.1.1), of which servers write many forms. Place:
 * cookie-jar.c. Pure.
 */
#ifndef LOAD_COOKIE_DATE_H
#define LOAD_COOKIE_DATE_H

#include <stdbool.h>
#include <stdint.h>

#include "sxe-util.h"

/* Seconds since 1970. False: it is no date, and the attribute is to be ignored. */
bool load_cookie_date(struct sxe_span text, int64_t *seconds);

#endif
