/* SPDX-License-Identifier: MIT
 *
 * What: the table of options as text: help, the lists of a man page, completions of three shells.
 */
#include <stdio.h>
#include <string.h>

#include "command-line.h"

static bool
is_option_shown(const struct command_option *row)
{
    return row->help != NULL && !command_option_is_heading(row);
}

/* ---- Help ---- */

static int
larger_width(int width, const char *text)
{
    int length = (int)strlen(text);

    return length > width ? length : width;
}

static void
print_examples(const struct command_line *line)
{
    int width = 0;

    for (unsigned i = 0; i < COMMAND_EXAMPLES; i++)
        width = larger_width(width, line->examples[i].arguments);
    printf("Examples:\n");
    for (unsigned i = 0; i < COMMAND_EXAMPLES; i++)
        printf("  %s %-*s  %s\n", line->program, width, line->examples[i].arguments,
               line->examples[i].help);
}

static bool
is_common(const struct command_line *line, const struct command_option *row)
{
    for (const char *const *name = line->common; *name != NULL; name++) {
        if (strcmp(*name, row->option.name) == 0)
            return true;
    }
    return false;
}

static void
print_option(const struct command_option *row, int name, int argument)
{
    char letter[] = "    ";

    if (command_option_has_letter(row))
        snprintf(letter, sizeof(letter), "-%c, ", row->option.val);
    printf("  %.4s--%-*s %-*s  %s\n", letter, name, row->option.name, argument, row->argument,
           row->help);
}

/* Print the options. A heading is printed before the first option of its group that is shown. */
static void
print_options(const struct command_line *line, bool is_all)
{
    const struct command_option *heading = NULL;
    int name = 0;
    int argument = 0;

    for (unsigned i = 0; i < line->number; i++) {
        const struct command_option *row = &line->options[i];

        if (is_option_shown(row) && (is_all || is_common(line, row))) {
            name = larger_width(name, row->option.name);
            argument = larger_width(argument, row->argument);
        }
    }
    for (unsigned i = 0; i < line->number; i++) {
        const struct command_option *row = &line->options[i];

        if (command_option_is_heading(row))
            heading = row;
        if (!is_option_shown(row) || (!is_all && !is_common(line, row)))
            continue;
        if (heading != NULL)
            printf("\n%s:\n", heading->help);
        heading = NULL;
        print_option(row, name, argument);
    }
}

void
command_line_print_help(const struct command_line *line, bool is_all)
{
    bool is_brief = !is_all && line->common != NULL;

    printf("usage: %s [options]%s%s\n\n%s\n\n", line->program, line->words == NULL ? "" : " ",
           line->words == NULL ? "" : line->words, line->summary);
    print_examples(line);
    print_options(line, !is_brief);
    if (is_brief)
        printf("\nThese are the common ones; %s --help has all.\n", line->program);
    else if (line->closing != NULL)
        printf("\n%s\n", line->closing);
}

/* ---- The man page ---- */

/* Print text for mdoc. Escape a backslash, because it would begin an escape, and a dot or quote at
 * the start of a line, because it would begin a request. */
static void
print_mdoc(const char *text)
{
    if (*text == '.' || *text == '\'')
        printf("\\&");
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            printf("\\e");
        else
            putchar(*text);
    }
}

static void
print_man_option(const struct command_option *row)
{
    printf(".It ");
    if (command_option_has_letter(row))
        printf("Fl %c , ", row->option.val);
    printf("Fl -%s", row->option.name);
    if (*row->argument != '\0')
        printf(" Ar %s", row->argument);
    printf("\n");
    print_mdoc(row->help);
    printf("\n");
}

void
command_line_print_man(const struct command_line *line)
{
    bool is_open = false;

    for (unsigned i = 0; i < line->number; i++) {
        const struct command_option *row = &line->options[i];

        if (command_option_is_heading(row)) {
            printf("%s.Ss %s\n", is_open ? ".El\n" : "", row->help);
            is_open = false;
        }
        if (!is_option_shown(row))
            continue;
        if (!is_open)
            printf(".Bl -tag -width Ds\n");
        is_open = true;
        print_man_option(row);
    }
    if (is_open)
        printf(".El\n");
}

/* ---- Completions ---- */

static bool
wants_file(const struct command_option *row)
{
    return strcmp(row->argument, "FILE") == 0 || strcmp(row->argument, "DIR") == 0;
}

/* Print the program's name as a part of the name of a shell function. */
static void
print_identifier(const char *name)
{
    for (; *name != '\0'; name++)
        putchar(*name == '-' ? '_' : *name);
}

static void
print_bash(const struct command_line *line)
{
    printf("# bash: source this, or put it in ~/.local/share/bash-completion/completions/%s\n_",
           line->program);
    print_identifier(line->program);
    printf("()\n{\n    local word=${COMP_WORDS[COMP_CWORD]}\n    COMPREPLY=()\n"
           "    case ${COMP_WORDS[COMP_CWORD-1]} in\n");
    for (unsigned i = 0; i < line->number; i++) {
        const struct command_option *row = &line->options[i];

        if (!is_option_shown(row) || row->option.has_arg != required_argument || wants_file(row))
            continue;
        printf("    --%s", row->option.name);
        if (command_option_has_letter(row))
            printf("|-%c", row->option.val);
        printf(") return ;;\n");
    }
    printf("    esac\n    case $word in\n    -*) COMPREPLY=($(compgen -W '");
    for (unsigned i = 0; i < line->number; i++) {
        if (is_option_shown(&line->options[i]))
            printf("--%s ", line->options[i].option.name);
    }
    printf("' -- \"$word\")) ;;\n    *) COMPREPLY=($(compgen -f ");
    if (line->first != NULL)
        printf("-W '%s' ", line->first);
    printf("-- \"$word\")) ;;\n    esac\n}\n"
           "complete -F _");
    print_identifier(line->program);
    printf(" %s\n", line->program);
}

/* Print text inside of single quotes. escaped: the characters that need a backslash; for zsh these
 * are brackets and colons. */
static void
print_quoted(const char *text, const char *escaped)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            printf("'\\''");
            continue;
        }
        if (strchr(escaped, *text) != NULL)
            putchar('\\');
        putchar(*text);
    }
}

static void
print_zsh_option(const struct command_option *row, const char *name)
{
    printf(" \\\n    '*%s[", name);
    print_quoted(row->help, "[]:\\");
    printf("]");
    if (row->option.has_arg == required_argument) {
        printf(":");
        print_quoted(row->argument, "[]:\\");
        printf(":%s", wants_file(row) ? "_files" : "");
    }
    printf("'");
}

static void
print_zsh(const struct command_line *line)
{
    printf("#compdef %s\n_arguments", line->program);
    for (unsigned i = 0; i < line->number; i++) {
        const struct command_option *row = &line->options[i];
        char name[64];

        if (!is_option_shown(row))
            continue;
        snprintf(name, sizeof(name), "--%s", row->option.name);
        print_zsh_option(row, name);
        snprintf(name, sizeof(name), "-%c", row->option.val);
        if (command_option_has_letter(row))
            print_zsh_option(row, name);
    }
    if (line->first != NULL)
        printf(" \\\n    '1:word:(%s)'", line->first);
    printf("%s\n", line->words == NULL ? "" : " \\\n    '*::word:_files'");
}

static void
print_fish(const struct command_line *line)
{
    if (line->first != NULL)
        printf("complete -c %s -n __fish_use_subcommand -a '%s'\n", line->program, line->first);
    for (unsigned i = 0; i < line->number; i++) {
        const struct command_option *row = &line->options[i];

        if (!is_option_shown(row))
            continue;
        printf("complete -c %s -l %s", line->program, row->option.name);
        if (command_option_has_letter(row))
            printf(" -s %c", row->option.val);
        if (row->option.has_arg == required_argument)
            printf(wants_file(row) ? " -r" : " -x");
        printf(" -d '");
        print_quoted(row->help, "\\");
        printf("'\n");
    }
}

bool
command_line_print_completion(const struct command_line *line, const char *shell)
{
    static const struct {
        const char *shell;
        void (*print)(const struct command_line *);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

    for (unsigned i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(shell, shells[i].shell) == 0) {
            shells[i].print(line);
            return true;
        }
    }
    return false;
}
