/* SPDX-License-Identifier: MIT
 *
 * Parsing the command line by the table of options, with messages about words that are not
 * accepted.
 */
#include "command-line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-log.h"

#define NAME_MAX_LENGTH 32 /* the longest name for which similar names are suggested */

const char *command_line_place = "";

/* ---- Unknown options, and suggestions for them ---- */

static unsigned
least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The edit distance of a and b: how many letters must be added, removed, changed, or swapped with
 * the next letter to make b from a. Both have at most NAME_MAX_LENGTH letters. */
static unsigned
edits_between(const char *a, unsigned a_length, const char *b, unsigned b_length)
{
    unsigned rows[3][NAME_MAX_LENGTH + 1];

    for (unsigned j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a_length; i++) {
        const unsigned *before_last = rows[(i + 1) % 3];
        const unsigned *last = rows[(i + 2) % 3];
        unsigned *row = rows[i % 3];

        row[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            row[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least_of(row[j], least_of(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], before_last[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

bool
command_line_is_nearer(const char *typed, size_t length, const char *name, unsigned *fewest)
{
    const size_t name_length = strlen(name);
    unsigned edits;

    if (*fewest == 0)
        *fewest = 2 + (unsigned)length / 4;
    if (length > NAME_MAX_LENGTH || name_length > NAME_MAX_LENGTH)
        return false;
    if (length > 0 && strncmp(name, typed, length) == 0)
        return true;
    edits = edits_between(typed, (unsigned)length, name, (unsigned)name_length);
    if (edits >= *fewest)
        return false;
    *fewest = edits;
    return true;
}

/* The option that the user probably meant: one that begins with the typed letters, or the one with
 * the smallest edit distance. NULL: no option is similar enough. */
static const char *
nearest_name(const struct command_line *line, const char *typed, unsigned length)
{
    const char *nearest = NULL;
    unsigned fewest = 0;

    for (unsigned i = 0; i < line->number; i++) {
        const char *name = line->options[i].option.name;

        if (name == NULL || !command_line_is_nearer(typed, length, name, &fewest))
            continue;
        nearest = name;
        if (length > 0 && strncmp(name, typed, length) == 0)
            break;
    }
    return nearest;
}

static void
refuse_name(const struct command_line *line, const char *typed)
{
    unsigned length = (unsigned)strcspn(typed, "=");
    const char *nearest = nearest_name(line, typed, length);

    fprintf(stderr, "%s: unknown option --%.*s", line->program, (int)length, typed);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean --%s? Try --help.\n", nearest);
    else
        fprintf(stderr, ". Try --help.\n");
}

/* ---- Parsing ---- */

/* Fill in the arguments of getopt_long: "-:i:p:h", and the long options. The leading - asks
 * getopt_long to return words, too, in their order. It then returns a letter for a short option, a
 * row's number + COMMAND_LINE_LONG for a long option, so that messages can tell them apart, and 1
 * for a word. */
static void
describe_options(const struct command_line *line, char *letters, struct option *options)
{
    *letters++ = '-';
    *letters++ = ':';
    for (unsigned i = 0; i < line->number; i++) {
        const struct command_option *row = &line->options[i];

        if (command_option_is_heading(row))
            continue;
        *options = row->option;
        options++->val = COMMAND_LINE_LONG + (int)i;
        if (!command_option_has_letter(row))
            continue;
        *letters++ = (char)row->option.val;
        if (row->option.has_arg == required_argument)
            *letters++ = ':';
    }
    *letters = '\0';
    *options = (struct option){0};
}

/* Find the row of the table for a result of getopt_long. */
static const struct command_option *
row_of(const struct command_line *line, int result)
{
    const struct command_option *row = line->options;

    if (result >= COMMAND_LINE_LONG)
        return &line->options[result - COMMAND_LINE_LONG];
    while (row->option.val != result)
        row++;
    return row;
}

static void
refuse_without_argument(const struct command_line *line)
{
    const struct command_option *row = row_of(line, optopt);

    if (optopt >= COMMAND_LINE_LONG)
        fprintf(stderr, "%s: option --%s requires an argument: --%s %s. Try --help.\n",
                line->program, row->option.name, row->option.name, row->argument);
    else
        fprintf(stderr, "%s: option -%c requires an argument: -%c %s. Try --help.\n", line->program,
                optopt, optopt, row->argument);
}

/* Refuse an option for which getopt_long returned '?'. optopt is 0 if a long name is unknown or
 * ambiguous. */
static void
refuse_last_word(const struct command_line *line, const char *last)
{
    if (optopt == 0)
        refuse_name(line, last + strlen("--"));
    else if (optopt >= COMMAND_LINE_LONG)
        fprintf(stderr, "%s: option --%s takes no argument. Try --help.\n", line->program,
                row_of(line, optopt)->option.name);
    else
        fprintf(stderr, "%s: unknown option -%c. Try --help.\n", line->program, optopt);
}

static int
refuse_word(const struct command_line *line, const char *word)
{
    fprintf(stderr, "%s: '%s' is not an option. Try --help.\n", line->program, word);
    return COMMAND_LINE_WRONG;
}

static int
complete_word(const struct command_line *line)
{
    if (command_line_print_completion(line, optarg))
        return EXIT_SUCCESS;
    fprintf(stderr, "%s: the shell (--completion) is '%s'; it must be bash, zsh or fish.\n",
            line->program, optarg);
    return COMMAND_LINE_WRONG;
}

/* Have the program take an option. If it was taken, call taken(). */
static int
give_option(const struct command_line *line, void *settings, int val,
            const struct command_option *row)
{
    int status = line->take(settings, val);

    if (status == COMMAND_LINE_GO_ON && line->taken != NULL)
        line->taken(settings, (unsigned)(row - line->options));
    return status;
}

static int
apply_option(const struct command_line *line, void *settings, int result)
{
    int val = row_of(line, result)->option.val;

    switch (val) {
    case 'h':
        command_line_print_help(line, result != 'h');
        return EXIT_SUCCESS;
    case COMMAND_LINE_VERSION_VAL:
        printf("%s %s\n", line->program, SXE_VERSION);
        return EXIT_SUCCESS;
    case COMMAND_LINE_MAN_VAL:
        command_line_print_man(line);
        return EXIT_SUCCESS;
    case COMMAND_LINE_COMPLETION_VAL:
        return complete_word(line);
    default:
        return give_option(line, settings, val, row_of(line, result));
    }
}

int
command_line_end_output(const struct command_line *line, int status)
{
    if (status != EXIT_SUCCESS || (fflush(stdout) == 0 && ferror(stdout) == 0))
        return status;
    fprintf(stderr, "%s: cannot write to standard output: %s\n", line->program, strerror(errno));
    return EXIT_FAILURE;
}

static int
take_option_value(const struct command_line *line, void *settings, int result, const char *last)
{
    switch (result) {
    case COMMAND_LINE_WORD:
        return line->words == NULL ? refuse_word(line, optarg) : line->take(settings, result);
    case ':':
        refuse_without_argument(line);
        return COMMAND_LINE_WRONG;
    case '?':
        refuse_last_word(line, last);
        return COMMAND_LINE_WRONG;
    default:
        return apply_option(line, settings, result);
    }
}

int
command_line_set(const struct command_line *line, void *settings, unsigned row, char *text)
{
    optarg = text;
    return give_option(line, settings, line->options[row].option.val, &line->options[row]);
}

int
command_line_parse(const struct command_line *line, void *settings, int argc, char **argv)
{
    char letters[2 * COMMAND_OPTIONS_MAX + 3];
    struct option options[COMMAND_OPTIONS_MAX + 1];
    int result;

    SXE_ASSERT(line->number <= COMMAND_OPTIONS_MAX, "%u rows of options", line->number);
    describe_options(line, letters, options);
    optind = 0; /* tells GNU's getopt to forget an earlier command line */
    while ((result = getopt_long(argc, argv, letters, options, NULL)) >= 0) {
        int status = take_option_value(line, settings, result, argv[optind - 1]);
        if (status != COMMAND_LINE_GO_ON)
            return command_line_end_output(line, status);
    }
    return optind == argc || line->words != NULL ? COMMAND_LINE_GO_ON
                                                 : refuse_word(line, argv[optind]);
}
