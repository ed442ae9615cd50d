/* SPDX-License-Identifier: MIT
 *
 * Takes options from the environment and the configuration file, and knows where each came from.
 */
#include "config.h"

#include <ctype.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config-file.h"
#include "config-internal.h"
#include "config-sites.h"
#include "config-text.h"

/* Origins of a value; a higher one replaces a lower one. */
enum origin { DEFAULT, OF_FILE, ENVIRONMENT, FLAG };

#define NAME_SIZE  64
#define PLACE_SIZE (PATH_MAX + 128)

struct value {
    unsigned row;
    unsigned line; /* of the file */
    const char *text;
};

static struct {
    const struct command_line *line;
    struct config_file *file;
    enum origin now; /* of the value that is taken now */
    unsigned now_line;
    enum origin origins[COMMAND_OPTIONS_MAX];
    struct value values[CONFIG_VALUES_MAX];
    unsigned number;
    char place[PLACE_SIZE];
} config;

static const struct command_option *
row_at(unsigned row)
{
    return &config.line->options[row];
}

static bool
is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/* True for an option (not a heading) that may be set elsewhere than by a flag. */
static bool
is_settable(unsigned row)
{
    static const char *const flags[] = {"check", "completion",   "help",    "man",
                                        "plan",  "print-config", "version", NULL};
    const char *name = row_at(row)->option.name;

    return name != NULL && !is_one_of(name, flags);
}

static bool
is_of_file(unsigned row)
{
    return is_settable(row) && strcmp(row_at(row)->option.name, "config") != 0;
}

static bool
is_repeatable(unsigned row)
{
    static const char *const names[] = {
        "error-page", "header",  "index",      "listen",     "proxy", "proxy-from", "stats-from",
        "tls-cert",   "tls-key", "tls-staple", "trust-from", "type",  NULL};

    return is_one_of(row_at(row)->option.name, names);
}

static bool
has_argument(unsigned row)
{
    return row_at(row)->option.has_arg == required_argument;
}

/* "stop-timeout" as a key, "stop_timeout". */
static const char *
key_of(unsigned row, char *key)
{
    snprintf(key, NAME_SIZE, "%s", row_at(row)->option.name);
    for (char *p = key; *p != '\0'; p++)
        *p = *p == '-' ? '_' : *p;
    return key;
}

/* ---- Options that were taken ---- */

void
config_begin(const struct command_line *line)
{
    config.line = line;
    config.now = FLAG;
    config.now_line = 0;
    config.number = 0;
    memset(config.origins, 0, sizeof(config.origins));
}

/* Set the origin of an option. --strict and --loose set the same value: they have one origin. */
static void
note_origin(unsigned row)
{
    const char *name = row_at(row)->option.name;
    const char *twin = strcmp(name, "strict") == 0  ? "loose"
                       : strcmp(name, "loose") == 0 ? "strict"
                                                    : name;

    for (unsigned i = 0; i < config.line->number; i++) {
        if (i == row || (is_settable(i) && strcmp(row_at(i)->option.name, twin) == 0))
            config.origins[i] = config.now;
    }
}

static void
note_value(unsigned row, const char *text)
{
    note_origin(row);
    if (config.number < CONFIG_VALUES_MAX)
        config.values[config.number++] = (struct value){row, config.now_line, text};
}

void
config_taken(void *settings, unsigned row)
{
    (void)settings;
    note_value(row, has_argument(row) ? optarg : "true");
}

/* True unless a higher origin has set the value. */
static bool
is_wanted(unsigned row)
{
    return config.origins[row] <= config.now;
}

/* ---- The environment ---- */

static const char *
variable_of(unsigned row, char *name)
{
    char key[NAME_SIZE];

    snprintf(name, NAME_SIZE, "SXE_%s", key_of(row, key));
    for (char *p = name; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
    return name;
}

static int
set_option(void *settings, unsigned row, const char *text)
{
    return command_line_set(config.line, settings, row, (char *)(uintptr_t)text);
}

/* Take the variable of an option without an argument. */
static int
switch_on_or_off(void *settings, unsigned row, const char *text)
{
    static const char *const yes[] = {"1", "true", "yes", "on", NULL};
    static const char *const no[] = {"", "0", "false", "no", "off", NULL};

    if (is_one_of(text, yes))
        return set_option(settings, row, NULL);
    if (is_one_of(text, no)) {
        note_value(row, "false");
        return COMMAND_LINE_GO_ON;
    }
    fprintf(stderr, "%s: %sit is '%s'; it must be 1 or 0. Try --help.\n", config.line->program,
            command_line_place, text);
    return COMMAND_LINE_WRONG;
}

static int
read_environment(void *settings)
{
    int status = COMMAND_LINE_GO_ON;

    config.now = ENVIRONMENT;
    for (unsigned row = 0; row < config.line->number && status == COMMAND_LINE_GO_ON; row++) {
        char name[NAME_SIZE];
        const char *text = is_settable(row) ? getenv(variable_of(row, name)) : NULL;

        if (text == NULL || !is_wanted(row))
            continue;
        snprintf(config.place, sizeof(config.place), "%s: ", name);
        if (has_argument(row))
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
    const char *keys[COMMAND_OPTIONS_MAX]; /* as written in the file; NULL: not in it */
    const char *unknown;                   /* the first unknown key; NULL: all are known */
    unsigned unknown_line;
};

static unsigned
line_of_key(const char *key)
{
    const size_t length = strlen(key);

    return config_lines_find(config.file->lines, config_key(CONFIG_ROOT, key, length),
                             config_anywhere(key, length));
}

/* Messages and values refer to this line from now on. */
void
config_be_at(unsigned line, const char *key)
{
    config.now_line = line;
    if (line > 0)
        snprintf(config.place, sizeof(config.place), "%s:%u: %s: ", config.file->path, line, key);
    else
        snprintf(config.place, sizeof(config.place), "%s: %s: ", config.file->path, key);
}

/* The row of a key, which may be written with - for _; config.line->number: there is none. */
static unsigned
row_of_key(const char *key)
{
    for (unsigned row = 0; row < config.line->number; row++) {
        char name[NAME_SIZE];
        size_t i = 0;

        if (!is_of_file(row))
            continue;
        (void)key_of(row, name);
        while (name[i] != '\0' && (key[i] == name[i] || (key[i] == '-' && name[i] == '_')))
            i++;
        if (name[i] == '\0' && key[i] == '\0')
            return row;
    }
    return config.line->number;
}

static void
note_unknown(struct reading *reading, const char *key, unsigned line)
{
    if (reading->unknown == NULL || line < reading->unknown_line) {
        reading->unknown = key;
        reading->unknown_line = line;
    }
}

/* Keys that are not options. */
static const char *const tables[] = {"routes", "sites", "upstreams", NULL};

/* Note the keys of the file. */
static void
look_at_keys(lua_State *L, struct reading *reading)
{
    for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        const unsigned row = row_of_key(key);

        if (is_one_of(key, tables))
            continue;
        if (lua_type(L, -2) != LUA_TSTRING)
            note_unknown(reading, "",
                         config_lines_find(config.file->lines, config_item(CONFIG_ROOT, 1), 0));
        else if (row == config.line->number || reading->keys[row] != NULL)
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
    char name[NAME_SIZE];

    config_be_at(line, *key == '\0' ? "[1]" : key);
    if (*key == '\0') {
        fprintf(stderr, "%s: %sa value without a key; write: key = value\n", config.line->program,
                config.place);
        return;
    }
    if (row_of_key(key) < config.line->number) {
        fprintf(stderr, "%s: %sit stands twice, with - and with _\n", config.line->program,
                config.place);
        return;
    }
    for (unsigned row = 0; row < config.line->number; row++) {
        if (is_of_file(row) && command_line_is_nearer(key, strlen(key), key_of(row, name), &fewest))
            nearest = row_at(row)->option.name;
    }
    for (const char *const *table = tables; *table != NULL; table++)
        nearest = command_line_is_nearer(key, strlen(key), *table, &fewest) ? *table : nearest;
    fprintf(stderr, "%s: %sthere is no such key%s%s%s\n", config.line->program, config.place,
            nearest == NULL ? "; sxe-httpd --print-config lists all" : "; did you mean ",
            nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
}

/* Print that the value on top has a type that this row does not take. */
static int
refuse_type(lua_State *L, unsigned row)
{
    const char *type = luaL_typename(L, -1);

    fprintf(stderr, "%s: %sit is a %s%s%s%s; it must be %s\n", config.line->program, config.place,
            type, lua_isstring(L, -1) ? ", '" : "",
            lua_isstring(L, -1) ? luaL_tolstring(L, -1, NULL) : "", lua_isstring(L, -1) ? "'" : "",
            !has_argument(row)   ? "true or false"
            : is_repeatable(row) ? "a text, or a list of texts without names"
                                 : "a number or a text without zero bytes");
    return COMMAND_LINE_WRONG;
}

/* Take the text or number on top. */
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
    text = config_file_keep(config.file);
    return text == NULL ? luaL_error(L, "%sno memory", config.place)
                        : set_option(reading->settings, row, text);
}

static int
take_list(lua_State *L, struct reading *reading, unsigned row)
{
    const char *key = reading->keys[row];
    const uint64_t table = config_key(CONFIG_ROOT, key, strlen(key));
    int status = config_is_list(L, 2) ? COMMAND_LINE_GO_ON : refuse_type(L, row);

    for (lua_Unsigned i = 1; i <= lua_rawlen(L, 2) && status == COMMAND_LINE_GO_ON; i++) {
        config_be_at(config_lines_find(config.file->lines, config_item(table, i),
                                       config_anywhere(key, strlen(key))),
                     key);
        (void)lua_rawgeti(L, 2, (lua_Integer)i);
        status = take_row_text(L, reading, row);
    }
    return status;
}

/* Take the value of the row's key, which is at index 2. */
static int
take_value(lua_State *L, struct reading *reading, unsigned row)
{
    if (has_argument(row) && lua_istable(L, 2) && is_repeatable(row))
        return take_list(L, reading, row);
    if (has_argument(row))
        return take_row_text(L, reading, row);
    if (!lua_isboolean(L, 2))
        return refuse_type(L, row);
    if (lua_toboolean(L, 2))
        return set_option(reading->settings, row, NULL);
    note_value(row, "false");
    return COMMAND_LINE_GO_ON;
}

/* Take all values of the table at index 1; the outcome is stored in the reading. */
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
    for (unsigned row = 0; row < config.line->number && reading->status == COMMAND_LINE_GO_ON;
         row++) {
        if (reading->keys[row] == NULL || !is_wanted(row))
            continue;
        config_be_at(line_of_key(reading->keys[row]), reading->keys[row]);
        (void)lua_getfield(L, 1, reading->keys[row]);
        reading->status = take_value(L, reading, row);
        lua_settop(L, 1);
    }
    if (reading->status == COMMAND_LINE_GO_ON) {
        bool is_good = true;

        reading->options->sites = config_sites_read(config.file, &is_good);
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
    config.now = OF_FILE;
    file->before = config.file;
    config.file = file;
    L = file->L;
    lua_pushcfunction(L, read_table);
    lua_pushvalue(L, 1);
    lua_pushlightuserdata(L, &reading);
    if (lua_pcall(L, 2, 0, 0) == LUA_OK)
        return reading.status;
    fprintf(stderr, "%s: %s\n", config.line->program, lua_tostring(L, -1));
    return COMMAND_LINE_WRONG;
}

int
config_read(struct config_options *options, void *settings)
{
    int status;

    command_line_place = config.place;
    status = read_environment(settings);
    if (status == COMMAND_LINE_GO_ON && options->file != NULL)
        status = read_file(options, settings);
    options->is_empty = config.number == 0;
    command_line_place = "";
    return status;
}

void
config_hold_text(void)
{
    if (config.file == NULL)
        return;
    config_text_hold(config.file->text, config.file->length);
    config.file->text = NULL;
}

void
config_end(void)
{
    config_sites_end();
    config_text_end();
    while (config.file != NULL) {
        struct config_file *file = config.file;

        config.file = file->before;
        config_file_close(file);
    }
}

/* ---- --print-config: defaults, and options that no file may set, are printed as comments ---- */

/* The default in brackets at the end of a help text; text with a blank in it is not a default. */
static void
print_default(unsigned row)
{
    const char *help = row_at(row)->help;
    const char *bracket = strrchr(help, '(');
    const size_t length = bracket == NULL ? 0 : strcspn(bracket + 1, " )");

    if (!has_argument(row))
        printf("false,");
    else if (bracket == NULL || bracket[1 + length] != ')' || bracket[2 + length] != '\0')
        printf("nil,");
    else
        printf("\"%.*s\",", (int)length, bracket + 1);
}

static void
print_text(unsigned row, const char *text)
{
    if (!has_argument(row)) {
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
    char name[NAME_SIZE];

    switch (config.origins[row]) {
    case FLAG:
        printf(" -- flag\n");
        break;
    case ENVIRONMENT:
        printf(" -- %s\n", variable_of(row, name));
        break;
    case OF_FILE:
        printf(" -- %s:%u\n", config.file->path, line);
        break;
    case DEFAULT:
        printf(" -- default\n");
        break;
    }
}

/* The values of a list, a line each. */
static void
print_list(unsigned row)
{
    printf("{\n");
    for (unsigned i = 0; i < config.number; i++) {
        if (config.values[i].row != row)
            continue;
        printf("    ");
        print_text(row, config.values[i].text);
        print_origin(row, config.values[i].line);
    }
    printf("  },\n");
}

/* The last value of the row; NULL: it has the default. */
static const struct value *
value_of(unsigned row)
{
    for (unsigned i = config.number; i > 0; i--) {
        if (config.values[i - 1].row == row)
            return &config.values[i - 1];
    }
    return NULL;
}

const char *
config_place_of(const char *name)
{
    char variable[NAME_SIZE];
    const struct value *value;
    unsigned row = 0;

    while (!is_settable(row) || strcmp(row_at(row)->option.name, name) != 0)
        row++;
    value = value_of(row);
    config.place[0] = '\0';
    if (config.origins[row] == ENVIRONMENT)
        snprintf(config.place, sizeof(config.place), "%s: ", variable_of(row, variable));
    else if (config.origins[row] == OF_FILE && value != NULL)
        config_be_at(value->line, name);
    return config.place;
}

static void
print_row(unsigned row)
{
    const struct value *value = value_of(row);
    const bool is_set = value != NULL && is_of_file(row);
    char key[NAME_SIZE];

    printf("  %s%s = ", is_set ? "" : "-- ", key_of(row, key));
    if (value != NULL && is_repeatable(row)) {
        print_list(row);
        return;
    }
    if (value != NULL)
        print_text(row, value->text);
    else
        print_default(row);
    print_origin(row, value == NULL ? 0 : value->line);
}

void
config_print(void)
{
    printf("return {\n");
    for (unsigned row = 0; row < config.line->number; row++) {
        if (is_settable(row))
            print_row(row);
    }
    printf("}\n");
}
