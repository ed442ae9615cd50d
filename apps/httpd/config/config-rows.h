/* SPDX-License-Identifier: MIT
 *
 * What: how an option of the command line is written in a configuration file (its key) and in the
 * environment (its variable), and which options are allowed there.
 *
 * Place: config.c and config-origin.c call it. The rows are those of struct command_line.
 */
#ifndef CONFIG_ROWS_H
#define CONFIG_ROWS_H

#include <stdbool.h>

#include "command-line.h"

#define CONFIG_KEY_SIZE 64 /* room for the longest key or variable, with its final NUL */

/* Whether the NULL-terminated list has this name. */
bool config_is_one_of(const char *name, const char *const *names);

/* Whether the row is an option, and not a heading, that can be set by something else than a
 * flag. */
bool config_row_is_settable(const struct command_option *row);

/* Whether the row is an option that a file may set. */
bool config_row_is_of_file(const struct command_option *row);

/* Whether the row is an option that may be given several times. In a file its value is a list. */
bool config_row_is_repeatable(const struct command_option *row);

bool config_row_has_argument(const struct command_option *row);

/* Write the option's key into the buffer, and return it: "stop_timeout" for --stop-timeout. */
const char *config_key_of(const struct command_option *row, char key[CONFIG_KEY_SIZE]);

/* Write the name of the option's variable into the buffer, and return it: "SXE_STOP_TIMEOUT". */
const char *config_variable_of(const struct command_option *row, char name[CONFIG_KEY_SIZE]);

#endif
