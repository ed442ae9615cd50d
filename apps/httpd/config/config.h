/* SPDX-License-Identifier: MIT
 *
 * What: the origin of each option's value: a flag, else an SXE_* variable of the environment, else
 * the configuration file, else the default. All values of a repeatable option have one origin.
 *
 * Place: options.c reads the flags, and then calls config_read; its httpd_take_option takes values
 * of all origins. config-file.h runs the file.
 *
 * Shape: each row of the table of options can be a flag, a variable and a key:
 *
 *     --stop-timeout 2m      SXE_STOP_TIMEOUT=2m      stop_timeout = "2m"
 *     --listing              SXE_LISTING=1            listing = true
 *     --index a --index b    (one value)              index = { "a", "b" }
 *
 * Limits: CONFIG_VALUES_MAX values of all options together are printed.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>

#include "command-line.h"

#define CONFIG_VALUES_MAX 512

struct config_sites;

/* The options about the configuration itself. */
struct config_options {
    const char *file; /* of --config; NULL: no file */
    bool check;
    bool print;
    bool is_empty;              /* no option was set: no flag, no variable, no file */
    struct config_sites *sites; /* of the file; NULL: it has no sites and no routes */
};

/* Forget the last reading, except its texts, which stay valid until config_end. */
void config_begin(const struct command_line *line);

/* Note a value that was taken. It is the function `taken` of struct command_line. */
void config_taken(void *settings, unsigned row);

/* After the flags: take values from the environment and the file. COMMAND_LINE_GO_ON, or
 * COMMAND_LINE_WRONG after a message. */
int config_read(struct config_options *options, void *settings);

/* In a program that loads again: hold the file's text for processes that are started later, see
 * config-text.h. */
void config_hold_text(void);

/* Print each option with its value and origin, as a file that --config reads. */
void config_print(void);

/* The place of an option's last value, as a prefix for messages: "site.lua:3: root: "; "" for a
 * flag and a default. Valid until the next call. */
const char *config_place_of(const char *name);

/* Free the texts of all readings; options that came from a file must not be used afterwards. */
void config_end(void);

#endif
