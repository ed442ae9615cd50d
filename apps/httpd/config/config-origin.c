/* SPDX-License-Identifier: MIT
 *
 * Keeps the values of options with their origins, and prints them.
 */
#include "config-origin.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config-rows.h"

#define PLACE_SIZE (PATH_MAX + 128)

struct value {
    unsigned row;
    unsigned line; /* the line of the value in the file */
    const char *text;
};

static struct {
    const struct command_line *line;
    const char *path;       /* the path of the configuration file */
    enum config_origin now; /* the origin of the value that is being taken */
    unsigned now_line;
    enum config_origin origins[COMMAND_OPTIONS_MAX];
    struct value values[CONFIG_VALUES_MAX];
    unsigned number;
    char place[PLACE_SIZE];
} config;

const struct command_line *
config_line(void)
{
    return config.line;
}

static const struct command_option *
row_at(unsigned row)
{
    return &config.line->options[row];
}

void
config_begin(const struct command_line *line)
{
    config.line = line;
    config.now = CONFIG_FLAG;
    config.now_line = 0;
    config.number = 0;
    memset(config.origins, 0, sizeof(config.origins));
}

void
config_take_from(enum config_origin origin)
{
    config.now = origin;
}

void
config_be_in(const char *path)
{
    config.path = path;
}

/* Set the origin of an option. --strict and --loose set the same value, so they have the same
 * origin. */
static void
note_origin(unsigned row)
{
    const char *name = row_at(row)->option.name;
    const char *twin = strcmp(name, "strict") == 0  ? "loose"
                       : strcmp(name, "loose") == 0 ? "strict"
                                                    : name;

    for (unsigned i = 0; i < config.line->number; i++) {
        if (i == row ||
            (config_row_is_settable(row_at(i)) && strcmp(row_at(i)->option.name, twin) == 0))
            config.origins[i] = config.now;
    }
}

void
config_note_value(unsigned row, const char *text)
{
    note_origin(row);
    if (config.number < CONFIG_VALUES_MAX)
        config.values[config.number++] = (struct value){row, config.now_line, text};
}

void
config_taken(void *settings, unsigned row)
{
    (void)settings;
    config_note_value(row, config_row_has_argument(row_at(row)) ? optarg : "true");
}

bool
config_has_values(void)
{
    return config.number > 0;
}

bool
config_is_wanted(unsigned row)
{
    return config.origins[row] <= config.now;
}

void
config_be_at(unsigned line, const char *key)
{
    config.now_line = line;
    if (line > 0)
        snprintf(config.place, sizeof(config.place), "%s:%u: %s: ", config.path, line, key);
    else
        snprintf(config.place, sizeof(config.place), "%s: %s: ", config.path, key);
}

void
config_be_at_variable(const char *name)
{
    snprintf(config.place, sizeof(config.place), "%s: ", name);
}

const char *
config_place(void)
{
    return config.place;
}

/* ---- --print-config: defaults, and options that a file may not set, are printed as comments
 * ---- */

/* Find the default value, which is in brackets at the end of a help text. If the text in the
 * brackets has a blank, it is not a default. */
static void
print_default(unsigned row)
{
    const char *help = row_at(row)->help;
    const char *bracket = strrchr(help, '(');
    const size_t length = bracket == NULL ? 0 : strcspn(bracket + 1, " )");

    if (!config_row_has_argument(row_at(row)))
        printf("false,");
    else if (bracket == NULL || bracket[1 + length] != ')' || bracket[2 + length] != '\0')
        printf("nil,");
    else
        printf("\"%.*s\",", (int)length, bracket + 1);
}

static void
print_row_text(unsigned row, const char *text)
{
    if (!config_row_has_argument(row_at(row))) {
        printf("%s,", text);
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\' || *text == '\n')
            putchar('\\');
        putchar(*text);
    }
    printf("\",");
}

static void
print_origin(unsigned row, unsigned line)
{
    char name[CONFIG_KEY_SIZE];

    switch (config.origins[row]) {
    case CONFIG_FLAG:
        printf(" -- flag\n");
        break;
    case CONFIG_ENVIRONMENT:
        printf(" -- %s\n", config_variable_of(row_at(row), name));
        break;
    case CONFIG_OF_FILE:
        printf(" -- %s:%u\n", config.path, line);
        break;
    case CONFIG_DEFAULT:
        printf(" -- default\n");
        break;
    }
}

/* Print the values of a list, one on each line. */
static void
print_list(unsigned row)
{
    printf("{\n");
    for (unsigned i = 0; i < config.number; i++) {
        if (config.values[i].row != row)
            continue;
        printf("    ");
        print_row_text(row, config.values[i].text);
        print_origin(row, config.values[i].line);
    }
    printf("  },\n");
}

/* The last value that was stored for the row; NULL: the option has its default. */
static const struct value *
value_of(unsigned row)
{
    for (unsigned i = config.number; i > 0; i--) {
        if (config.values[i - 1].row == row)
            return &config.values[i - 1];
    }
    return NULL;
}

static const char *
place_of_row(unsigned row)
{
    const struct value *value = value_of(row);
    char name[CONFIG_KEY_SIZE];

    config.place[0] = '\0';
    if (config.origins[row] == CONFIG_ENVIRONMENT)
        config_be_at_variable(config_variable_of(row_at(row), name));
    else if (config.origins[row] == CONFIG_OF_FILE && value != NULL)
        config_be_at(value->line, row_at(row)->option.name);
    return config.place;
}

const char *
config_place_of(const char *name)
{
    unsigned row = 0;

    while (!config_row_is_settable(row_at(row)) || strcmp(row_at(row)->option.name, name) != 0)
        row++;
    return place_of_row(row);
}

/* Whether a message has the option of the row here: "--name", or "-x" for its letter. */
static bool
is_named_here(const char *message, unsigned row)
{
    const struct option *option = &row_at(row)->option;
    const size_t length = strspn(message, "-abcdefghijklmnopqrstuvwxyz");

    if (!config_row_is_settable(row_at(row)))
        return false;
    if (message[1] != '-')
        return length == 2 && message[1] == option->val;
    return strlen(option->name) + 2 == length && memcmp(message + 2, option->name, length - 2) == 0;
}

const char *
config_place_in(const char *message)
{
    config.place[0] = '\0';
    for (const char *p = message; *p != '\0' && config.place[0] == '\0'; p++) {
        if (*p != '-' || (p > message && isalpha((unsigned char)p[-1])))
            continue;
        for (unsigned row = 0; row < config.line->number && config.place[0] == '\0'; row++) {
            if (is_named_here(p, row))
                (void)place_of_row(row);
        }
    }
    return config.place;
}

static void
print_row(unsigned row)
{
    const struct value *value = value_of(row);
    const bool is_set = value != NULL && config_row_is_of_file(row_at(row));
    char key[CONFIG_KEY_SIZE];

    printf("  %s%s = ", is_set ? "" : "-- ", config_key_of(row_at(row), key));
    if (value != NULL && config_row_is_repeatable(row_at(row))) {
        print_list(row);
        return;
    }
    if (value != NULL)
        print_row_text(row, value->text);
    else
        print_default(row);
    print_origin(row, value == NULL ? 0 : value->line);
}

void
config_print(void)
{
    printf("return {\n");
    for (unsigned row = 0; row < config.line->number; row++) {
        if (config_row_is_settable(row_at(row)))
            print_row(row);
    }
    printf("}\n");
}
