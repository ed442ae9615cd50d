/* SPDX-License-Identifier: MIT
 *
 * What: a configuration file: text of Lua that returns a table. It is run in an environment that
 * can compute and nothing else, so that reading it changes nothing and always ends.
 *
 * Place: config.c opens one and takes options from its table; config-lines.h knows the lines.
 *
 * Limits: those of config-text.h, CONFIG_STEPS_MAX instructions, CONFIG_MEMORY_MAX bytes
 * at a time and CONFIG_ALLOCATED_MAX in all. Functions whose C code could run long, uncounted, are
 * left out: patterns, string.rep, table.move.
 */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "config-lines.h"
#include "counted-memory.h"

#define CONFIG_STEPS_MAX     10000000
#define CONFIG_MEMORY_MAX    (16u << 20)
#define CONFIG_ALLOCATED_MAX (256u << 20)

struct config_file {
    lua_State *L;     /* the table that the file returned is at the bottom of this stack */
    const char *path; /* the path of the file; borrowed */
    struct config_lines *lines; /* the lines of its keys */
    /* the file before this one: the caller, config.c, links its files */
    struct config_file *before;
    char *text;          /* the text of the file */
    size_t length;       /* of the text */
    unsigned long steps; /* private: how many instructions were run so far */
    struct counted_memory memory;
};

/* Read and run the file. NULL after a message on standard error, with the place of the error. */
struct config_file *config_file_open(const char *path);
void config_file_close(struct config_file *file);

/* Pop the string or number on top of the stack, and return it as a text that stays until the file
 * is closed; a number as Lua writes it. NULL: no memory. */
char *config_file_keep(struct config_file *file);

/* Whether the table at this index (from the bottom of the stack) has the keys 1 to n and no others.
 * Callers that read only 1 to n refuse other tables, as they would silently ignore named entries.
 */
bool config_is_list(lua_State *L, int index);

#endif
