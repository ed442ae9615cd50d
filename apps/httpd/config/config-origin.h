/* SPDX-License-Identifier: MIT
 *
 * What: stores the values of options, and the origin of each value: a flag, an SXE_* variable of
 * the environment, the configuration file, or the default. Messages and --print-config name the
 * origin.
 *
 * Place: the command line and config.c pass each value to this file, which does not call them.
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

/* Forget all values. Values that are stored from now on come from flags. */
void config_begin(const struct command_line *line);

/* The command line that was passed to config_begin. */
const struct command_line *config_line(void);

/* Values that are stored from now on come from this origin. */
void config_take_from(enum config_origin origin);

/* Messages begin with this path of the file from now on. It must stay valid. */
void config_be_in(const char *path);

/* Whether a value from the present origin may set this option: no higher origin has set it. */
bool config_is_wanted(unsigned row);

/* Store that an option has this value; text must stay valid. All values of a repeatable option have
 * one origin. */
void config_note_value(unsigned row, const char *text);

/* Whether any option has a value that was stored. */
bool config_has_values(void);

/* The function `taken` of struct command_line. It stores the value that was taken from optarg. */
void config_taken(void *settings, unsigned row);

/* From now on, messages and values refer to the key on this line. line 0: the line is not known. */
void config_be_at(unsigned line, const char *key);

/* Messages refer to this variable of the environment from now on. */
void config_be_at_variable(const char *name);

/* The text with which messages begin, such as "site.lua:3: root: ". It changes with
 * config_be_at. */
const char *config_place(void);

/* The place of an option's last value, for the beginning of a message: "site.lua:3: root: ", or ""
 * if a flag or the default gives the value. Valid until the next call. */
const char *config_place_of(const char *name);

/* The place of the first option that the message names (--name, or -x) and that the environment or
 * the file has set; "": all of them come from the command line. */
const char *config_place_in(const char *message);

/* Print each option with its value and origin, in the form of a file that --config can read. */
void config_print(void);

#endif
