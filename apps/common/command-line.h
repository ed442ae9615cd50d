/* SPDX-License-Identifier: MIT
 *
 * What: the command line of our programs. One table says what options there are; parsing, --help and
 * the checks of values come from it, and say what was wrong, what is allowed, and where to look.
 * Place: each program's options.c has a table and a function that takes one option. Uses getopt_long.
 *
 * Example: apps/httpd/options.c.
 */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>

#define COMMAND_LINE_GO_ON (-1)
#define COMMAND_LINE_WRONG 2 /* the exit status for what cannot be understood */

struct command_option {
    struct option option; /* val: the short letter; one below 'a' has none */
    const char *argument; /* what --help calls it; "" */
    const char *help;
};

/* Every program has these. */
#define COMMAND_LINE_HELP                                            \
    {                                                                \
        {"help", no_argument, NULL, 'h'}, "", "print this, and exit" \
    }
#define COMMAND_LINE_VERSION                                                   \
    {                                                                          \
        {"version", no_argument, NULL, 'V'}, "", "print the version, and exit" \
    }

struct command_line {
    const char *program;
    const char *summary; /* one sentence */
    const char *closing; /* the last line of --help; NULL */
    const struct command_option *options;
    unsigned number; /* of options */

    /* Take one option; its argument is getopt's optarg. COMMAND_LINE_GO_ON, or an exit status after
     * saying why. */
    int (*take)(void *settings, int letter);
};

#define COMMAND_OPTIONS_MAX 64

/* COMMAND_LINE_GO_ON with everything taken; otherwise all is said, and this is the exit status. */
int command_line_parse(const struct command_line *line, void *settings, int argc, char **argv);

/* A whole number from min to max into *value, or false after saying what is wrong. */
bool command_line_number(const struct command_line *line, const char *what, unsigned long min,
                         unsigned long max, unsigned long *value);

#endif
