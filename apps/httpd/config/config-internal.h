/* SPDX-License-Identifier: MIT
 *
 * What: what the files that read a configuration share.
 *
 * Place: config.c has it; config-sites.c uses it.
 */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

/* From here on messages and values are of this key on this line, 0 where it has none. */
void config_be_at(unsigned line, const char *key);

#endif
