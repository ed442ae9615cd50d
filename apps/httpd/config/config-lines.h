/* SPDX-License-Identifier: MIT
 *
 * What: the lines on which the keys of a configuration file stand. Lua's tables do not know where
 * they were written, and an error that names no line is an error that somebody searches for.
 *
 * Place: config-file.c reads the text a second time with it, beside Lua. Pure: bytes in, lines out.
 *
 * Shape: a place is a number made of the keys that lead to it. A key that is not found at its
 * place, because the file computes its tables, is looked for anywhere.
 *
 *     return {                                    CONFIG_ROOT
 *         port = 80,                              config_key(CONFIG_ROOT, "port", 4)
 *         index = { "a.html", "b.html" },         config_item(of index, 2)
 *     }
 *
 * Limits: tables in 64 levels; deeper ones have no lines.
 */
#ifndef CONFIG_LINES_H
#define CONFIG_LINES_H

#include <stddef.h>
#include <stdint.h>

#define CONFIG_ROOT UINT64_C(0x736974652e6c7561)

struct config_lines;

/* The text may be anything; one that is no Lua has no lines that make sense. NULL: no memory. */
struct config_lines *config_lines_new(const char *text, size_t length);
void config_lines_delete(struct config_lines *lines); /* NULL is allowed */

/* The place of a key, or of the item with that number, from 1, in the table at another place. */
uint64_t config_key(uint64_t table, const char *key, size_t length);
uint64_t config_item(uint64_t table, unsigned long long number);

/* The line of the key of that place, or of the same key anywhere; 0: it stands nowhere. */
unsigned config_lines_find(const struct config_lines *lines, uint64_t place, uint64_t anywhere);

/* The place to pass as `anywhere`. */
uint64_t config_anywhere(const char *key, size_t length);

#endif
