/* SPDX-License-Identifier: MIT
 *
 * How an option is written in a file and in the environment, and whether it is allowed there.
 */
#include "config-rows.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool
config_is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

bool
config_row_is_settable(const struct command_option *row)
{
    static const char *const flags[] = {"check", "completion",   "help",    "man",
                                        "plan",  "print-config", "version", NULL};
    const char *name = row->option.name;

    return name != NULL && !config_is_one_of(name, flags);
}

bool
config_row_is_of_file(const struct command_option *row)
{
    return config_row_is_settable(row) && strcmp(row->option.name, "config") != 0;
}

bool
config_row_is_repeatable(const struct command_option *row)
{
    static const char *const names[] = {
        "error-page", "header",  "index",      "listen",     "proxy", "proxy-from", "stats-from",
        "tls-cert",   "tls-key", "tls-staple", "trust-from", "type",  NULL};

    return config_is_one_of(row->option.name, names);
}

bool
config_row_has_argument(const struct command_option *row)
{
    return row->option.has_arg == required_argument;
}

const char *
config_key_of(const struct command_option *row, char key[CONFIG_KEY_SIZE])
{
    snprintf(key, CONFIG_KEY_SIZE, "%s", row->option.name);
    for (char *p = key; *p != '\0'; p++)
        *p = *p == '-' ? '_' : *p;
    return key;
}

const char *
config_variable_of(const struct command_option *row, char name[CONFIG_KEY_SIZE])
{
    char key[CONFIG_KEY_SIZE];

    snprintf(name, CONFIG_KEY_SIZE, "SXE_%.*s", CONFIG_KEY_SIZE - 5, config_key_of(row, key));
    for (char *p = name; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
    return name;
}
