/* SPDX-License-Identifier: MIT
 *
 * What: the command line of our programs. One table says what options there are; parsing, -h,
 * --help, the man page's list, shell completions, the nearest option to one that is misspelt, and
 * the checks of values come from it, and say what was wrong, what is allowed, and where to look.
 *
 * Place: each program has a table and a function that takes one option. Uses getopt_long, so
 * options may be abbreviated and come in any order.
 *
 * Shape: a row is an option, or the heading of those that follow it in --help:
 *
 *     static const struct command_option table[] = {
 *         COMMAND_LINE_GROUP("Where it listens"),
 *         {{"port", required_argument, NULL, 'p'}, "PORT", "port to listen on (8000)"},
 *         {{"header", required_argument, NULL, HEADER}, "'K: V'", "add this; may be repeated"},
 *         COMMAND_LINE_GROUP("About"),
 *         COMMAND_LINE_ABOUT("print all options, and exit"),
 *     };
 *
 * Limits: COMMAND_OPTIONS_MAX rows. An option is taken each time it is given, in the order in which
 * it is given.
 *
 * Example: apps/httpd/cli/options-table.c.
 */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <ctype.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#define COMMAND_LINE_GO_ON (-1)
#define COMMAND_LINE_WRONG 2 /* the exit status for what cannot be understood */

#define COMMAND_OPTIONS_MAX 128
#define COMMAND_EXAMPLES    3

/* option.val is what take() gets. A letter is also the short option; the rest count from
 * COMMAND_LINE_LONG. */
struct command_option {
    struct option option;
    const char *argument; /* what --help calls it; "". FILE and DIR are completed as such */
    const char *help;     /* NULL: not shown */
};

#define COMMAND_LINE_LONG 256

/* The value that take() gets for a word that is not an option. */
#define COMMAND_LINE_WORD 1

#define COMMAND_LINE_GROUP(heading)               \
    {                                             \
        {NULL, no_argument, NULL, 0}, "", heading \
    }

/* Every program has these, at its table's end; help says what -h and --help print. */
#define COMMAND_LINE_ABOUT(help)                                           \
    {{"completion", required_argument, NULL, COMMAND_LINE_COMPLETION_VAL}, \
     "SHELL",                                                              \
     "print completions for bash, zsh or fish, and exit"},                 \
        {{"man", no_argument, NULL, COMMAND_LINE_MAN_VAL}, "", NULL},      \
        {{"help", no_argument, NULL, 'h'}, "", help},                      \
    {                                                                      \
        {"version", no_argument, NULL, COMMAND_LINE_VERSION_VAL}, "",      \
            "print the version, and exit"                                  \
    }
enum { COMMAND_LINE_COMPLETION_VAL = 2, COMMAND_LINE_MAN_VAL, COMMAND_LINE_VERSION_VAL };

struct command_example {
    const char *arguments; /* what to type after the program's name */
    const char *help;      /* what that does */
};

struct command_line {
    const char *program;
    const char *words;   /* what may stand there beside options: "[URL...]"; NULL: nothing */
    const char *first;   /* what the first of them may be, for completions: "list show"; NULL */
    const char *summary; /* one sentence */
    const char *closing; /* the last line of --help; NULL */
    struct command_example examples[COMMAND_EXAMPLES];
    const struct command_option *options;
    unsigned number;           /* of rows */
    const char *const *common; /* names of the options that -h shows, then NULL; NULL: all */

    /* Take one option, by its val, or a word; its argument is getopt's optarg.
     * COMMAND_LINE_GO_ON, or an exit status after saying why. */
    int (*take)(void *settings, int val);

    /* After take() took a row of the table: its number; its argument is getopt's optarg. NULL:
     * nobody wants to know. */
    void (*taken)(void *settings, unsigned row);
};

/* COMMAND_LINE_GO_ON with everything taken; otherwise all is said, and this is the exit status. A
 * program that takes words gets those before "--"; what stands after it begins at getopt's
 * optind. */
int command_line_parse(const struct command_line *line, void *settings, int argc, char **argv);

/* ---- Options that come from elsewhere, such as a file or the environment ---- */

/* Messages on values begin with this text, which says where the value stands: "site.lua:3: port: ".
 * "" for the command line. */
extern const char *command_line_place;

/* Take a row of the table with this argument, which is borrowed as an argument of main is; NULL for
 * a row without one. The result is that of take(). */
int command_line_set(const struct command_line *line, void *settings, unsigned row, char *text);

/* Whether name is nearer to what was typed than the names before it: *fewest is 0 for the first,
 * and then as it was left. Always true for one that begins with what was typed. */
bool command_line_is_nearer(const char *typed, size_t length, const char *name, unsigned *fewest);

/* ---- What a row is ---- */

static inline bool
command_option_is_heading(const struct command_option *row)
{
    return row->option.name == NULL;
}

static inline bool
command_option_has_letter(const struct command_option *row)
{
    return row->option.val < COMMAND_LINE_LONG && isalpha(row->option.val);
}

/* ---- What the table also is: command-help.c ---- */

/* The lines of --help, or only the common ones. */
void command_line_print_help(const struct command_line *line, bool is_all);

/* The options as lists of mdoc(7), for a man page. */
void command_line_print_man(const struct command_line *line);

/* A script for that shell; false: there is none for it. */
bool command_line_print_completion(const struct command_line *line, const char *shell);

/* ---- Values ----
 * For take(): the argument as a number from min to max into *value, or false after saying what is
 * wrong with what ("the port (-p)"). */

/* A whole number. */
bool command_line_number(const struct command_line *line, const char *what, unsigned long min,
                         unsigned long max, unsigned long *value);

/* Milliseconds: "10", "0.5", "500ms", "30s", "2m", "1.5h", "1d"; a plain number is seconds.
 * Fractions of a millisecond are cut off. */
bool command_line_duration(const struct command_line *line, const char *what, unsigned long min_ms,
                           unsigned long max_ms, unsigned long *value_ms);

/* Nanoseconds: the same with us and ns; a plain number is seconds. */
bool command_line_time(const struct command_line *line, const char *what, unsigned long min_ns,
                       unsigned long max_ns, unsigned long *value_ns);

/* A whole number, perhaps with k, M or G, which are 1000 and its powers: "10k", "1.5M". */
bool command_line_count(const struct command_line *line, const char *what, unsigned long min,
                        unsigned long max, unsigned long *value);

/* Bytes: "65536", "64k", "1.5m", "16KiB", "1g"; k is 1024. */
bool command_line_size(const struct command_line *line, const char *what, unsigned long min,
                       unsigned long max, unsigned long *value);

/* For values with units of their own: read the decimal number that a text begins with, as *digits /
 * *scale; fractions below a billionth are cut off. Returns the text after the number, or NULL if
 * there is no number or it has too many digits. */
const char *command_line_decimal(const char *text, unsigned long *digits, unsigned long *scale);

#endif
