/* SPDX-License-Identifier: MIT
 *
 * What: the lines on which the keys of a configuration file stand, for messages. Lua's tables do
 * not record them.
 *
 * Place: config-file.c passes the text to it, and also to Lua. It needs nothing but the text.
 *
 * Shape: a place is a hash of the keys that lead to a value. If a key is not found at its place,
 * because the file computes its tables, config_lines_find looks for the same key at any place.
 *
 *     return {                                    CONFIG_ROOT
 *         port = 80,                              config_key(CONFIG_ROOT, "port", 4)
 *         index = { "a.html", "b.html" },         config_item(of index, 2)
 *     }
 *
 * Limits: tables up to 64 levels deep; the keys of deeper tables have no lines.
 */
#ifndef CONFIG_LINES_H
#define CONFIG_LINES_H

#include <stddef.h>
#include <stdint.h>

#define CONFIG_ROOT UINT64_C(0x736974652e6c7561)

struct config_lines;

/* Read a text. It need not be valid Lua, but then its lines make no sense. NULL: no memory. */
struct config_lines *config_lines_new(const char *text, size_t length);
void config_lines_delete(struct config_lines *lines); /* delete the lines; NULL is allowed */

/* The place of a key, or of the item with this index, which counts from 1. table is the place of
 * the table that has it. */
uint64_t config_key(uint64_t table, const char *key, size_t length);
uint64_t config_item(uint64_t table, unsigned long long index);

/* The line of the key at this place. If there is no key at it, the line of an equal key at any
 * place; `anywhere` is the key's config_anywhere. 0: no such key was found. */
unsigned config_lines_find(const struct config_lines *lines, uint64_t place, uint64_t anywhere);

/* The value that config_lines_find needs as `anywhere` for this key. */
uint64_t config_anywhere(const char *key, size_t length);

#endif
