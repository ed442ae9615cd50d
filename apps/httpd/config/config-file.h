/* SPDX-License-Identifier: MIT
 *
 * What: a configuration file, which is a text of Lua that returns a table. The text is run in an
 * environment in which it can only compute, so that reading the file changes nothing, and always
 * ends.
 *
 * Place: config.c opens the file, and takes options from its table; config-lines.h knows the lines
 * of its keys.
 *
 * Limits: those of config-text.h; CONFIG_STEPS_MAX instructions; CONFIG_MEMORY_MAX bytes of memory
 * at a time, and CONFIG_ALLOCATED_MAX in all. Functions of Lua that could run long inside of C,
 * where instructions are not counted, are left out: patterns, string.rep, table.move.
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
    /* the state; the table that the file returned is at the bottom of its stack */
    lua_State *L;
    const char *path;           /* the path of the file; not owned */
    struct config_lines *lines; /* the lines of its keys */
    /* the file that was read before this one; config.c links its files with it */
    struct config_file *before;
    char *text;          /* the text of the file */
    size_t length;       /* the length of `text` */
    unsigned long steps; /* private: how many instructions were run so far */
    struct counted_memory memory;
};

/* Read and run the file. NULL after a message on standard error, which says where the error is. */
struct config_file *config_file_open(const char *path);
void config_file_close(struct config_file *file);

/* Pop the string or number on top of the stack, and return it as a text that stays valid until the
 * file is closed. A number becomes text as Lua writes it. NULL: no memory. */
char *config_file_keep(struct config_file *file);

/* Whether the table at this index (from the bottom of the stack) has the keys 1 to n and no others.
 * Callers that read only the keys 1 to n refuse other tables, because entries with names would be
 * ignored silently. */
bool config_is_list(lua_State *L, int index);

#endif
