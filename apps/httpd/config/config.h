/* SPDX-License-Identifier: MIT
 *
 * What: options from the environment and from the configuration file. A flag overrides an SXE_*
 * variable of the environment, and this one the file.
 *
 * Place: options.c reads the flags, and then calls config_read; its httpd_take_option takes values
 * of all origins. config-origin.h knows where each came from; config-file.h runs the file.
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

/* The options about the configuration itself. */
struct config_options {
    const char *file; /* the argument of --config; NULL: no file */
    bool check;
    bool print;
    bool is_empty;              /* whether no option was set: no flag, no variable, no file */
    struct config_sites *sites; /* the sites of the file; NULL: it has no sites and no routes */
};

/* Call it after the flags were read: it takes values from the environment and the file.
 * COMMAND_LINE_GO_ON, or COMMAND_LINE_WRONG after a message. */
int config_read(struct config_options *options, void *settings);

/* In a program that loads again: hold the file's text for processes that are started later, see
 * config-text.h. */
void config_hold_text(void);

/* Free the texts of all readings; options that came from a file must not be used afterwards. */
void config_end(void);

#endif
