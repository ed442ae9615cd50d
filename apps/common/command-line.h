/* SPDX-License-Identifier: MIT
 *
 * What: the command line of our programs. A program has one table of options. Parsing, -h, --help,
 * the man page's list, shell completions and suggestions for misspelt options use this table.
 * Messages say what is wrong, what is allowed, and where to look.
 *
 * Place: each program has a table, and a function take() that stores one option. Parsing uses
 * getopt_long, so options may be abbreviated and come in any order.
 *
 * Shape: a row of the table is an option, or the heading of the options after it in --help:
 *
 *     static const struct command_option table[] = {
 *         COMMAND_LINE_GROUP("Where it listens"),
 *         {{"port", required_argument, NULL, 'p'}, "PORT", "port to listen on (8000)"},
 *         {{"header", required_argument, NULL, HEADER}, "'K: V'", "add this; may be repeated"},
 *         COMMAND_LINE_GROUP("About"),
 *         COMMAND_LINE_ABOUT("print all options, and exit"),
 *     };
 *
 * Limits: COMMAND_OPTIONS_MAX rows. take() is called each time an option is given, in the order of
 * the command line.
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
#define COMMAND_LINE_WRONG 2 /* the exit status if the command line cannot be understood */

#define COMMAND_OPTIONS_MAX 128
#define COMMAND_EXAMPLES    3

/* An option of a program. When the option is read, take() is called with option.val. An option
 * whose option.val is a letter has this letter as its short form, too; options without a short
 * form have the numbers from COMMAND_LINE_LONG on. */
struct command_option {
    struct option option;
    /* The name of the argument in --help; "": the option has no argument. The shell completes file
     * names for an argument named FILE or DIR. */
    const char *argument;
    const char *help; /* NULL: --help does not show the option */
};

#define COMMAND_LINE_LONG 256

/* The value that take() gets for a word that is not an option. */
#define COMMAND_LINE_WORD 1

#define COMMAND_LINE_GROUP(heading)               \
    {                                             \
        {NULL, no_argument, NULL, 0}, "", heading \
    }

/* The options that every program has at the end of its table. help: the text for --help. */
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
    const char *arguments; /* the arguments of the example, without the program's name */
    const char *help;      /* what the program does if it gets these arguments */
};

struct command_line {
    const char *program;
    /* the arguments that are not options: "[URL...]"; NULL: the program has none */
    const char *words;
    const char *first;   /* values of the first word, for completions: "list show"; NULL: any */
    const char *summary; /* what the program does, in one sentence */
    const char *closing; /* the last lines of --help; NULL: none */
    struct command_example examples[COMMAND_EXAMPLES];
    const struct command_option *options;
    unsigned number; /* how many rows */
    /* The names of the options that -h shows, ended by NULL. If the pointer is NULL, -h shows
     * all options. */
    const char *const *common;

    /* Take the option with this val, or, if val is COMMAND_LINE_WORD, a word that is not an option.
     * The argument or word is in getopt's optarg. Returns COMMAND_LINE_GO_ON, or an exit status
     * after a message. */
    int (*take)(void *settings, int val);

    /* Called after take() has taken this row of the table, with the same optarg. NULL: not called.
     */
    void (*taken)(void *settings, unsigned row);
};

/* Parse the command line. COMMAND_LINE_GO_ON: everything was taken. Otherwise the exit status,
 * after a message or help. take() gets the words before "--"; the arguments after it begin at
 * getopt's optind. */
int command_line_parse(const struct command_line *line, void *settings, int argc, char **argv);

/* To be called after text was printed to standard output. Returns status, or EXIT_FAILURE after a
 * message if the text could not be written. */
int command_line_end_output(const struct command_line *line, int status);

/* ---- Options that come from elsewhere, such as a file or the environment ---- */

/* Messages about values begin with this text. It says where the value is: "site.lua:3: port: ", or
 * "" for the command line. */
extern const char *command_line_place;

/* Have the program take the option of a row of the table, with text as its argument, or NULL if the
 * option has none. text must stay valid as long as an argument of main does. Returns the result of
 * take(). */
int command_line_set(const struct command_line *line, void *settings, unsigned row, char *text);

/* For finding the name that is nearest to a misspelt text: whether this name is nearer to it than
 * all names of earlier calls. *fewest must be 0 in the first call, and is updated. A name that
 * begins with the typed text is always nearer. */
bool command_line_is_nearer(const char *typed, size_t length, const char *name, unsigned *fewest);

/* ---- Kinds of rows ---- */

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

/* ---- Texts made from the table: command-help.c ---- */

/* Print the lines of --help, either for all options or only for the common ones. */
void command_line_print_help(const struct command_line *line, bool is_all);

/* Print the options as lists of mdoc(7), for a man page. */
void command_line_print_man(const struct command_line *line);

/* Print the completion script for this shell. False: the shell is unknown. */
bool command_line_print_completion(const struct command_line *line, const char *shell);

/* ---- Values ----
 *
 * These functions serve take(). They read a number from min to max from optarg, and store it in
 * *value. If optarg is not such a number, they print a message, in which `what` names the value,
 * such as "the port (-p)", and return false. */

/* Read a whole number. */
bool command_line_number(const struct command_line *line, const char *what, unsigned long min,
                         unsigned long max, unsigned long *value);

/* Read a time in milliseconds: "10", "0.5", "500ms", "30s", "2m", "1.5h", "1d"; a plain number is
 * seconds. Fractions of a millisecond are cut off. */
bool command_line_duration(const struct command_line *line, const char *what, unsigned long min_ms,
                           unsigned long max_ms, unsigned long *value_ms);

/* Like command_line_duration, but in nanoseconds, and with the units us and ns, too. */
bool command_line_time(const struct command_line *line, const char *what, unsigned long min_ns,
                       unsigned long max_ns, unsigned long *value_ns);

/* Read a whole number. The suffixes k, M and G are 1000 and its powers: "10k", "1.5M". */
bool command_line_count(const struct command_line *line, const char *what, unsigned long min,
                        unsigned long max, unsigned long *value);

/* Read a size in bytes: "65536", "64k", "1.5m", "16KiB", "1g"; k is 1024. */
bool command_line_size(const struct command_line *line, const char *what, unsigned long min,
                       unsigned long max, unsigned long *value);

/* For values with other units than these: read the decimal number that a text begins with. The
 * number is *digits / *scale; fractions below a billionth are cut off. Returns the text after the
 * number, or NULL if there is no number or it has too many digits. */
const char *command_line_decimal(const char *text, unsigned long *digits, unsigned long *scale);

#endif
