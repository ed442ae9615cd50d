/* SPDX-License-Identifier: MIT
 *
 * An error as a person is told of it: what, where with the lines of the source, and what to do.
 *
 *     app.lua:2: attempt to index a nil value (field 'y')     error: attempt to index a nil ...
 *     stack traceback:                                          --> app.lua:2
 *         app.lua:2: in local 'f'                      ==>       |
 *         app.lua:4: in main chunk                             2 |     return x.y.z
 *                                                                |              ^
 *                                                             hint: ...
 */
#include "sxe-lua-core-private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AROUND = 2, LINE_SIZE = 512, PATH_SIZE = 256, NUMBER_WIDTH = 4 };

#define TRACE "\nstack traceback:"

/* What is written so far; what does not fit is dropped. */
struct text {
    char *room;
    size_t size;
    size_t used;
};

static void add(struct text *text, const char *format, ...) SXE_PRINTF(2, 3);

static void
add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text->room + text->used, text->size - text->used, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->used += (size_t)length;
    if (text->used >= text->size)
        text->used = text->size - 1;
}

/* ---- The parts of an error's text ---- */

struct place {
    char path[PATH_SIZE];
    unsigned line; /* 0: it does not say */
    struct sxe_span message;
};

/* "app.lua:2: message" at the front of a text, which ends at end. */
static bool
read_place(const char *at, const char *end, struct place *place)
{
    for (const char *colon = at; (colon = memchr(colon, ':', (size_t)(end - colon))) != NULL;
         colon++) {
        const char *digits = colon + 1;
        const char *behind = digits;

        while (behind < end && isdigit((unsigned char)*behind))
            behind++;
        if (behind == digits || end - behind < 2 || memcmp(behind, ": ", 2) != 0)
            continue;
        if (colon - at >= PATH_SIZE || memchr(at, '\n', (size_t)(colon - at)) != NULL)
            return false;
        snprintf(place->path, sizeof(place->path), "%.*s", (int)(colon - at), at);
        place->line = (unsigned)strtoul(digits, NULL, 10);
        place->message = (struct sxe_span){behind + 2, (size_t)(end - behind - 2)};
        return true;
    }
    return false;
}

/* In the message; or, where a module does not compile, in the line below. */
static struct place
find_place(const char *text, const char *end)
{
    struct place place = {.line = 0, .message = {text, (size_t)(end - text)}};
    const char *below = memmem(text, (size_t)(end - text), "\n\t", 2);

    if (!read_place(text, end, &place) && below != NULL)
        read_place(below + 2, end, &place);
    return place;
}

/* ---- The source ---- */

/* An error's text may name any file, and may be a client's. */
static bool
is_source(const char *path)
{
    const struct sxe_lua *lua = sxe__lua_current();
    size_t length = strlen(path);

    if (length > 4 && strcmp(path + length - 4, ".lua") == 0)
        return true;
    return lua != NULL && lua->config.argc > 0 && strcmp(path, lua->config.argv[0]) == 0;
}

static bool
is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Where the line has the name as a word; base NULL: nowhere. */
static struct sxe_span
find_word(const char *line, const char *name, size_t length)
{
    for (const char *at = line; (at = strchr(at, *name)) != NULL; at++) {
        if (strncmp(at, name, length) == 0 && !is_name(at[length]) &&
            (at == line || !is_name(at[-1])))
            return (struct sxe_span){at, length};
    }
    return (struct sxe_span){NULL, 0};
}

/* The name that the message quotes, where the line has it; otherwise all of the line. */
static struct sxe_span
find_culprit(const char *line, struct sxe_span message)
{
    size_t indent = strspn(line, " \t");
    struct sxe_span found = {NULL, 0};
    const char *end = message.base + message.length;
    const char *open = memchr(message.base, '\'', message.length);
    const char *close = open == NULL ? NULL : memchr(open + 1, '\'', (size_t)(end - open - 1));

    if (close != NULL && close > open + 1)
        found = find_word(line, open + 1, (size_t)(close - open - 1));
    if (found.base == NULL)
        found = (struct sxe_span){line + indent, strlen(line + indent)};
    return found;
}

static void
mark(struct text *text, const char *line, struct sxe_span message)
{
    struct sxe_span culprit = find_culprit(line, message);

    add(text, "%*s | ", NUMBER_WIDTH, "");
    for (const char *p = line; p < culprit.base; p++)
        add(text, "%c", *p == '\t' ? '\t' : ' ');
    for (size_t i = 0; i < culprit.length; i++)
        add(text, "^");
    add(text, "\n");
}

static void
add_lines(struct text *text, FILE *file, const struct place *place)
{
    char line[LINE_SIZE];
    unsigned number = 1;

    add(text, "%*s |\n", NUMBER_WIDTH, "");
    while (number <= place->line + AROUND && fgets(line, sizeof(line), file) != NULL) {
        bool is_whole = strchr(line, '\n') != NULL;

        line[strcspn(line, "\n")] = '\0';
        if (number + AROUND >= place->line)
            add(text, "%*u | %s\n", NUMBER_WIDTH, number, line);
        if (number == place->line)
            mark(text, line, place->message);
        while (!is_whole && fgets(line, sizeof(line), file) != NULL)
            is_whole = strchr(line, '\n') != NULL;
        number++;
    }
}

static void
add_source(struct text *text, const struct place *place)
{
    FILE *file;

    add(text, "%*s--> %s:%u\n", NUMBER_WIDTH, "", place->path, place->line);
    file = is_source(place->path) ? fopen(place->path, "re") : NULL;
    if (file == NULL)
        return;
    add_lines(text, file, place);
    fclose(file);
}

/* ---- What to do ---- */

static void
add_hint(struct text *text, struct sxe_span message)
{
    static const char *const hints[][2] = {
        {"JSON needs the module cjson", "apt install lua-cjson"},
        {" ms of CPU", "wait or make way in long computing: task.sleep(0); or allow it more time"},
        {"not enough memory", "keep less of it reachable, or allow it more memory"},
        {"globals are made while", "write `local` before its first use, or --loose"},
        {"attempt to call a nil value", "is the name spelt as where it is made, and required?"},
        {"a nil value", "it is nil there: test it first, or look where it should be set"},
        {"' not found:",
         "require looks for NAME.lua and NAME/init.lua in ./ and ./rocks/share/lua/5.4/"},
        {"is not there yet", "modules that are there: man sxe-httpd, docs/lua.md"},
        {"near <eof>", "an `end`, a bracket or a quote is missing before the end of the file"},
    };

    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (memmem(message.base, message.length, hints[i][0], strlen(hints[i][0])) != NULL) {
            add(text, "hint: %s\n", hints[i][1]);
            return;
        }
    }
}

size_t
sxe_lua_explain(const char *error, char *room, size_t size)
{
    struct text text = {.room = room, .size = size};
    const char *trace = strstr(error, TRACE);
    struct place place = find_place(error, trace != NULL ? trace : error + strlen(error));

    if (size == 0)
        return 0;
    *room = '\0';
    add(&text, "error: %.*s\n", (int)place.message.length, place.message.base);
    if (place.line > 0)
        add_source(&text, &place);
    add_hint(&text, place.message);
    if (trace != NULL)
        add(&text, "%s\n", trace + 1);
    return text.used;
}
