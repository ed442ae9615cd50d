/* SPDX-License-Identifier: MIT
 *
 * What: the names of virtual hosts.
 *
 * Place: config-sites.c calls it.
 */
#ifndef CONFIG_NAMES_H
#define CONFIG_NAMES_H

#include <stdbool.h>

/* Whether a request can have this name as its host, or, if the name begins with '*', whether a
 * request can match it. */
bool config_is_name(const char *name);

#endif
