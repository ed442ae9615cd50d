/* SPDX-License-Identifier: MIT
 *
 * What: reads options from the environment and from the configuration file. A flag overrides an
 * SXE_* variable of the environment, and such a variable overrides the file.
 *
 * Place: options.c reads the flags, and then calls config_read; its function httpd_take_option
 * stores values of all origins. config-origin.h knows where each value came from; config-file.h
 * runs the file.
 *
 * Shape: each row of the table of options can be a flag, a variable and a key:
 *
 *     --stop-timeout 2m      SXE_STOP_TIMEOUT=2m      stop_timeout = "2m"
 *     --listing              SXE_LISTING=1            listing = true
 *     --index a --index b    (one value)              index = { "a", "b" }
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>

struct config_sites;

/* The options about the configuration itself, and what the configuration file contains besides
 * options. */
struct config_options {
    const char *file; /* the argument of --config; NULL: there is no file */
    bool check;
    bool print;
    bool is_empty;              /* whether no option was set, by a flag, a variable or a file */
    struct config_sites *sites; /* the sites of the file; NULL: it has no sites and no routes */
};

/* Call it after the flags were read. It takes options from the environment and from the file.
 * Returns COMMAND_LINE_GO_ON, or COMMAND_LINE_WRONG after a message. */
int config_read(struct config_options *options, void *settings);

/* Call it in a program that can reload: it holds the text of the file for processes that are
 * started later, see config-text.h. */
void config_hold_text(void);

/* Free the texts of all files that were read. After that, options that came from a file must not be
 * used. */
void config_end(void);

#endif
