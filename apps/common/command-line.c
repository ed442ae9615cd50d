/* SPDX-License-Identifier: MIT */
#include "command-line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-util.h"

static int
column_width(const struct command_line *line)
{
    size_t widest = 0;

    for (unsigned i = 0; i < line->number; i++) {
        size_t width = strlen(line->options[i].option.name);
        widest = width > widest ? width : widest;
    }
    return (int)widest;
}

static void
print_help(const struct command_line *line)
{
    int width = column_width(line);

    printf("usage: %s [options]\n\n%s\n\n", line->program, line->summary);
    for (unsigned i = 0; i < line->number; i++) {
        const struct command_option *row = &line->options[i];
        char letter[] = "    ";

        if (row->option.val >= 'a')
            snprintf(letter, sizeof(letter), "-%c, ", row->option.val);
        printf("  %.4s--%-*s %-5s %s\n", letter, width, row->option.name, row->argument, row->help);
    }
    if (line->closing != NULL)
        printf("\n%s\n", line->closing);
}

/* What getopt_long wants to know: "i:p:h" and the long ones. */
static void
describe(const struct command_line *line, char *letters, struct option *options)
{
    for (unsigned i = 0; i < line->number; i++) {
        const struct option *option = &line->options[i].option;

        options[i] = *option;
        if (option->val < 'a')
            continue;
        *letters++ = (char)option->val;
        if (option->has_arg == required_argument)
            *letters++ = ':';
    }
    *letters = '\0';
    options[line->number] = (struct option){0};
}

static int
take(const struct command_line *line, void *settings, int letter)
{
    switch (letter) {
    case 'h':
        print_help(line);
        return EXIT_SUCCESS;
    case 'V':
        printf("%s %s\n", line->program, SXE_VERSION);
        return EXIT_SUCCESS;
    case '?':
        fprintf(stderr, "Try %s --help.\n", line->program);
        return COMMAND_LINE_WRONG;
    default:
        return line->take(settings, letter);
    }
}

int
command_line_parse(const struct command_line *line, void *settings, int argc, char **argv)
{
    char letters[2 * COMMAND_OPTIONS_MAX + 1];
    struct option options[COMMAND_OPTIONS_MAX + 1];
    int letter;

    describe(line, letters, options);
    optind = 1;
    while ((letter = getopt_long(argc, argv, letters, options, NULL)) >= 0) {
        int result = take(line, settings, letter);
        if (result != COMMAND_LINE_GO_ON)
            return result;
    }
    if (optind == argc)
        return COMMAND_LINE_GO_ON;
    fprintf(stderr, "%s: '%s' is not an option. Try --help.\n", line->program, argv[optind]);
    return COMMAND_LINE_WRONG;
}

bool
command_line_number(const struct command_line *line, const char *what, unsigned long min,
                    unsigned long max, unsigned long *value)
{
    bool is_digits = *optarg != '\0' && optarg[strspn(optarg, "0123456789")] == '\0';

    errno = 0;
    *value = strtoul(optarg, NULL, 10);
    if (is_digits && errno == 0 && *value >= min && *value <= max)
        return true;
    fprintf(stderr, "%s: %s is '%s'; it must be a number from %lu to %lu. Try --help.\n",
            line->program, what, optarg, min, max);
    return false;
}
