/* SPDX-License-Identifier: MIT
 *
 * Takes options from the environment and the configuration file.
 */
#include "config.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config-file.h"
#include "config-origin.h"
#include "config-rows.h"
#include "config-sites.h"
#include "config-text.h"

/* The file that was read last. Its member `before` links it to the files that were read earlier. */
static struct config_file *last_file;

static const struct command_option *
option_row(unsigned row)
{
    return &config_line()->options[row];
}

/* ---- The environment ---- */

static int
set_option(void *settings, unsigned row, const char *text)
{
    return command_line_set(config_line(), settings, row, (char *)(uintptr_t)text);
}

/* Store the value of a variable for an option that has no argument. */
static int
switch_on_or_off(void *settings, unsigned row, const char *text)
{
    static const char *const yes[] = {"1", "true", "yes", "on", NULL};
    static const char *const no[] = {"", "0", "false", "no", "off", NULL};

    if (config_is_one_of(text, yes))
        return set_option(settings, row, NULL);
    if (config_is_one_of(text, no)) {
        config_note_value(row, "false");
        return COMMAND_LINE_GO_ON;
    }
    fprintf(stderr, "%s: %sit is '%s'; it must be 1 or 0. Try --help.\n", config_line()->program,
            command_line_place, text);
    return COMMAND_LINE_WRONG;
}

static int
read_environment(void *settings)
{
    int status = COMMAND_LINE_GO_ON;

    config_take_from(CONFIG_ENVIRONMENT);
    for (unsigned row = 0; row < config_line()->number && status == COMMAND_LINE_GO_ON; row++) {
        char name[CONFIG_KEY_SIZE];
        const char *text = config_row_is_settable(option_row(row))
                               ? getenv(config_variable_of(option_row(row), name))
                               : NULL;

        if (text == NULL || !config_is_wanted(row))
            continue;
        config_be_at_variable(name);
        if (config_row_has_argument(option_row(row)))
            status = set_option(settings, row, text);
        else
            status = switch_on_or_off(settings, row, text);
    }
    return status;
}

/* ---- The file, in protected mode ---- */

struct reading {
    void *settings;
    struct config_options *options;
    int status;
    /* for each row of the table of options: the key as it is written in the file; NULL: the file
     * does not have it */
    const char *keys[COMMAND_OPTIONS_MAX];
    const char *unknown; /* the first key that is unknown; NULL: all keys are known */
    unsigned unknown_line;
};

static unsigned
line_of_key(const char *key)
{
    const size_t length = strlen(key);

    return config_lines_find(last_file->lines, config_key(CONFIG_ROOT, key, length),
                             config_anywhere(key, length));
}

/* Find the row of the table of options for a key. The key may have _ or - between words.
 * config_line()->number: there is no such row. */
static unsigned
row_of_key(const char *key)
{
    for (unsigned row = 0; row < config_line()->number; row++) {
        char name[CONFIG_KEY_SIZE];
        size_t i = 0;

        if (!config_row_is_of_file(option_row(row)))
            continue;
        (void)config_key_of(option_row(row), name);
        while (name[i] != '\0' && (key[i] == name[i] || (key[i] == '-' && name[i] == '_')))
            i++;
        if (name[i] == '\0' && key[i] == '\0')
            return row;
    }
    return config_line()->number;
}

static void
note_unknown(struct reading *reading, const char *key, unsigned line)
{
    if (reading->unknown == NULL || line < reading->unknown_line) {
        reading->unknown = key;
        reading->unknown_line = line;
    }
}

/* Keys that are allowed, but are no options. */
static const char *const tables[] = {"routes", "sites", "upstreams", NULL};

/* Find out which keys the file has. */
static void
look_at_keys(lua_State *L, struct reading *reading)
{
    for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        const unsigned row = row_of_key(key);

        if (config_is_one_of(key, tables))
            continue;
        if (lua_type(L, -2) != LUA_TSTRING)
            note_unknown(reading, "",
                         config_lines_find(last_file->lines, config_item(CONFIG_ROOT, 1), 0));
        else if (row == config_line()->number || reading->keys[row] != NULL)
            note_unknown(reading, key, line_of_key(key));
        else
            reading->keys[row] = key;
    }
}

static void
refuse_key(const char *key, unsigned line)
{
    const char *nearest = NULL;
    unsigned fewest = 0;
    char name[CONFIG_KEY_SIZE];

    config_be_at(line, *key == '\0' ? "[1]" : key);
    if (*key == '\0') {
        fprintf(stderr, "%s: %sa value without a key; write: key = value\n", config_line()->program,
                command_line_place);
        return;
    }
    if (row_of_key(key) < config_line()->number) {
        fprintf(stderr, "%s: %sit stands twice, with - and with _\n", config_line()->program,
                command_line_place);
        return;
    }
    for (unsigned row = 0; row < config_line()->number; row++) {
        if (config_row_is_of_file(option_row(row)) &&
            command_line_is_nearer(key, strlen(key), config_key_of(option_row(row), name), &fewest))
            nearest = option_row(row)->option.name;
    }
    for (const char *const *table = tables; *table != NULL; table++)
        nearest = command_line_is_nearer(key, strlen(key), *table, &fewest) ? *table : nearest;
    fprintf(stderr, "%s: %sthere is no such key%s%s%s\n", config_line()->program,
            command_line_place,
            nearest == NULL ? "; sxe-httpd --print-config lists all" : "; did you mean ",
            nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
}

/* Print that the value on top of the stack has the wrong type for this row. */
static int
refuse_type(lua_State *L, unsigned row)
{
    const char *type = luaL_typename(L, -1);

    fprintf(stderr, "%s: %sit is a %s%s%s%s; it must be %s\n", config_line()->program,
            command_line_place, type, lua_isstring(L, -1) ? ", '" : "",
            lua_isstring(L, -1) ? luaL_tolstring(L, -1, NULL) : "", lua_isstring(L, -1) ? "'" : "",
            !config_row_has_argument(option_row(row))   ? "true or false"
            : config_row_is_repeatable(option_row(row)) ? "a text, or a list of texts without names"
                                                        : "a number or a text without zero bytes");
    return COMMAND_LINE_WRONG;
}

/* Store the text or number on top of the stack as the value of a row. */
static int
take_row_text(lua_State *L, struct reading *reading, unsigned row)
{
    char *text;
    size_t length;

    if (!lua_isstring(L, -1))
        return refuse_type(L, row);
    lua_pushvalue(L, -1);
    if (strlen(lua_tolstring(L, -1, &length)) != length)
        return refuse_type(L, row);
    text = config_file_keep(last_file);
    return text == NULL ? luaL_error(L, "%sno memory", command_line_place)
                        : set_option(reading->settings, row, text);
}

static int
take_list(lua_State *L, struct reading *reading, unsigned row)
{
    const char *key = reading->keys[row];
    const uint64_t table = config_key(CONFIG_ROOT, key, strlen(key));
    int status = config_is_list(L, 2) ? COMMAND_LINE_GO_ON : refuse_type(L, row);

    for (lua_Unsigned i = 1; i <= lua_rawlen(L, 2) && status == COMMAND_LINE_GO_ON; i++) {
        config_be_at(config_lines_find(last_file->lines, config_item(table, i),
                                       config_anywhere(key, strlen(key))),
                     key);
        (void)lua_rawgeti(L, 2, (lua_Integer)i);
        status = take_row_text(L, reading, row);
    }
    return status;
}

/* Store the value at index 2, which is the value of the row's key. */
static int
take_value(lua_State *L, struct reading *reading, unsigned row)
{
    if (config_row_has_argument(option_row(row)) && lua_istable(L, 2) &&
        config_row_is_repeatable(option_row(row)))
        return take_list(L, reading, row);
    if (config_row_has_argument(option_row(row)))
        return take_row_text(L, reading, row);
    if (!lua_isboolean(L, 2))
        return refuse_type(L, row);
    if (lua_toboolean(L, 2))
        return set_option(reading->settings, row, NULL);
    config_note_value(row, "false");
    return COMMAND_LINE_GO_ON;
}

/* Store all values of the table at index 1. The result is in the status of the reading. */
static int
read_table(lua_State *L)
{
    struct reading *reading = lua_touserdata(L, 2);

    lua_settop(L, 1);
    look_at_keys(L, reading);
    if (reading->unknown != NULL) {
        refuse_key(reading->unknown, reading->unknown_line);
        reading->status = COMMAND_LINE_WRONG;
    }
    for (unsigned row = 0; row < config_line()->number && reading->status == COMMAND_LINE_GO_ON;
         row++) {
        if (reading->keys[row] == NULL || !config_is_wanted(row))
            continue;
        config_be_at(line_of_key(reading->keys[row]), reading->keys[row]);
        (void)lua_getfield(L, 1, reading->keys[row]);
        reading->status = take_value(L, reading, row);
        lua_settop(L, 1);
    }
    if (reading->status == COMMAND_LINE_GO_ON) {
        bool is_good = true;

        reading->options->sites = config_sites_read(last_file, &is_good);
        reading->status = is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
    }
    return 0;
}

static int
read_file(struct config_options *options, void *settings)
{
    struct reading reading = {
        .settings = settings, .options = options, .status = COMMAND_LINE_GO_ON};
    struct config_file *file = config_file_open(options->file);
    lua_State *L;

    if (file == NULL)
        return COMMAND_LINE_WRONG;
    config_take_from(CONFIG_OF_FILE);
    config_be_in(file->path);
    file->before = last_file;
    last_file = file;
    L = file->L;
    lua_pushcfunction(L, read_table);
    lua_pushvalue(L, 1);
    lua_pushlightuserdata(L, &reading);
    if (lua_pcall(L, 2, 0, 0) == LUA_OK)
        return reading.status;
    fprintf(stderr, "%s: %s\n", config_line()->program, lua_tostring(L, -1));
    return COMMAND_LINE_WRONG;
}

int
config_read(struct config_options *options, void *settings)
{
    int status;

    command_line_place = config_place();
    status = read_environment(settings);
    if (status == COMMAND_LINE_GO_ON && options->file != NULL)
        status = read_file(options, settings);
    options->is_empty = !config_has_values();
    command_line_place = "";
    return status;
}

void
config_hold_text(void)
{
    if (last_file == NULL)
        return;
    config_text_hold(last_file->text, last_file->length);
    last_file->text = NULL;
}

void
config_end(void)
{
    config_sites_end();
    config_text_end();
    while (last_file != NULL) {
        struct config_file *file = last_file;

        last_file = file->before;
        config_file_close(file);
    }
}
