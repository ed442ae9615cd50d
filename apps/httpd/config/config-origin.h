/* SPDX-License-Identifier: MIT
 *
 * What: the values that options have taken, and the origin of each: a flag, an SXE_* variable of
 * the environment, the configuration file, or the default. Messages and --print-config name it.
 *
 * Place: the command line and config.c note each value here; this file calls none of them.
 *
 * Limits: CONFIG_VALUES_MAX values of all options together are printed.
 */
#ifndef CONFIG_ORIGIN_H
#define CONFIG_ORIGIN_H

#include <stdbool.h>

#include "command-line.h"

#define CONFIG_VALUES_MAX 512

/* Origins of a value; a higher one replaces a lower one. */
enum config_origin { CONFIG_DEFAULT, CONFIG_OF_FILE, CONFIG_ENVIRONMENT, CONFIG_FLAG };

/* Forget all values. The values that are noted from now on come from flags. */
void config_begin(const struct command_line *line);

/* The command line that config_begin was given. */
const struct command_line *config_line(void);

/* The values that are noted from now on come from this origin. */
void config_take_from(enum config_origin origin);

/* The path of the file, which is borrowed; messages begin with it. */
void config_be_in(const char *path);

/* True unless a higher origin than the present one has set this option. */
bool config_is_wanted(unsigned row);

/* Note that an option has this value, which is borrowed. All values of a repeatable option have one
 * origin. */
void config_note_value(unsigned row, const char *text);

/* Whether any option has a value that was noted. */
bool config_has_values(void);

/* The function `taken` of struct command_line: note the value that was taken from optarg. */
void config_taken(void *settings, unsigned row);

/* Messages and values refer to this key on this line from now on. line 0: unknown. */
void config_be_at(unsigned line, const char *key);

/* Messages refer to this variable of the environment from now on. */
void config_be_at_variable(const char *name);

/* The text that messages begin with, "site.lua:3: root: ". It changes with config_be_at. */
const char *config_place(void);

/* The place of an option's last value, as a prefix for messages: "site.lua:3: root: "; "" for a
 * flag and a default. Valid until the next call. */
const char *config_place_of(const char *name);

/* Print each option with its value and origin, as a file that --config reads. */
void config_print(void);

#endif
