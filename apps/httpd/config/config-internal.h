/* SPDX-License-Identifier: MIT
 *
 * What: what the files that read a configuration share.
 *
 * Place: config.c defines it; config-sites.c calls it.
 */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

/* Messages and values refer to this key on this line from now on. line 0: unknown. */
void config_be_at(unsigned line, const char *key);

#endif
