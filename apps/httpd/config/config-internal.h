/* SPDX-License-Identifier: MIT
 *
 * What: what the files that read a configuration share.
 *
 * Place: config.c and config-names.c define it; config-sites.c calls it.
 */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

#include <stdbool.h>

/* Messages and values refer to this key on this line from now on. line 0: unknown. */
void config_be_at(unsigned line, const char *key);

/* Whether a request can have this name, or match it if it begins with '*'. */
bool config_is_name(const char *name);

#endif
