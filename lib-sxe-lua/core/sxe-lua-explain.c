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

/* The text written so far; text that does not fit is dropped. */
struct text {
    char *room;
    size_t size;
    size_t used;
};

static void add_explained_line(struct text *text, const char *format, ...) SXE_PRINTF(2, 3);

static void
add_explained_line(struct text *text, const char *format, ...)
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
    unsigned line; /* the line's number; 0: the text names no line */
    struct sxe_span message;
};

/* "app.lua:2: message" at the front of a text, which ends at end. */
static bool
read_place(const char *at, const char *end, struct place *place)
{
    for (const char *colon = at; (colon = memchr(colon, ':', (size_t)(end - colon))) != NULL;
         colon++) {
        const char *digits = colon + 1;
        const char *after = digits;

        while (after < end && isdigit((unsigned char)*after))
            after++;
        if (after == digits || end - after < 2 || memcmp(after, ": ", 2) != 0)
            continue;
        if (colon - at >= PATH_SIZE || memchr(at, '\n', (size_t)(colon - at)) != NULL)
            return false;
        snprintf(place->path, sizeof(place->path), "%.*s", (int)(colon - at), at);
        place->line = (unsigned)strtoul(digits, NULL, 10);
        place->message = (struct sxe_span){after + 2, (size_t)(end - after - 2)};
        return true;
    }
    return false;
}

/* Find the place in the message. If a module does not compile, the place is in the line below. */
static struct place
find_message_place(const char *text, const char *end)
{
    struct place place = {.line = 0, .message = {text, (size_t)(end - text)}};
    const char *below = memmem(text, (size_t)(end - text), "\n\t", 2);

    if (!read_place(text, end, &place) && below != NULL)
        read_place(below + 2, end, &place);
    return place;
}

/* ---- The source ---- */

/* Whether a path may be read as source. The text of an error may come from a client, and name any
 * file. */
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
is_lua_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The name that a message quotes: (field 'name'), (method 'name'), (global 'name') ... */
struct culprit {
    struct sxe_span name; /* base NULL: the message quotes no name */
    /* The byte that stands before the name: '.' of a field, ':' of a method, ' ' of a variable; 0:
     * any. */
    char before;
};

/* The byte before a name: '.' of a field, ':' of a method, ' ' for all other bytes. Two dots are an
 * operator. */
static char
byte_before(const char *line, const char *at)
{
    if (at == line || (at[-1] != '.' && at[-1] != ':'))
        return ' ';
    return at > line + 1 && at[-2] == at[-1] ? ' ' : at[-1];
}

static struct culprit
find_quoted_culprit(struct sxe_span message)
{
    static const struct {
        const char *word;
        char before;
    } kinds[] = {
        {"field ", '.'}, {"method ", ':'}, {"local ", ' '}, {"global ", ' '}, {"upvalue ", ' '}};
    const char *end = message.base + message.length;
    const char *open = memchr(message.base, '\'', message.length);
    const char *close = open == NULL ? NULL : memchr(open + 1, '\'', (size_t)(end - open - 1));
    struct culprit culprit = {.name = {NULL, 0}};

    if (close == NULL || close == open + 1)
        return culprit;
    culprit.name = (struct sxe_span){open + 1, (size_t)(close - open - 1)};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t length = strlen(kinds[i].word);

        if ((size_t)(open - message.base) >= length &&
            memcmp(open - length, kinds[i].word, length) == 0)
            culprit.before = kinds[i].before;
    }
    return culprit;
}

/* Whether the culprit's name is at this place in the line, as a whole word. */
static bool
is_culprit(const struct culprit *culprit, const char *line, const char *at)
{
    return strncmp(at, culprit->name.base, culprit->name.length) == 0 &&
           (at == line || !is_lua_name_byte(at[-1])) &&
           !is_lua_name_byte(at[culprit->name.length]) &&
           (culprit->before == '\0' || culprit->before == byte_before(line, at));
}

/* Mark each place in the line where the error may be: Lua gives the line and the name, but no
 * column. Returns the number of marks. */
static unsigned
mark_culprits(char *marks, const char *line, const struct culprit *culprit)
{
    unsigned found = 0;

    for (size_t i = 0; culprit->name.base != NULL && line[i] != '\0'; i++) {
        if (!is_culprit(culprit, line, line + i))
            continue;
        memset(marks + i, '^', culprit->name.length);
        found++;
    }
    return found;
}

/* Write the line below the source: carets below the name that failed, or below the whole line if
 * the name is not in it. */
static void
mark_place(struct text *text, const char *line, struct sxe_span message)
{
    struct culprit culprit = find_quoted_culprit(message);
    size_t length = strlen(line);
    size_t indent = strspn(line, " \t");
    char marks[LINE_SIZE];

    for (size_t i = 0; i < length; i++)
        marks[i] = line[i] == '\t' ? '\t' : ' ';
    if (mark_culprits(marks, line, &culprit) == 0) {
        culprit.before = '\0'; /* t["name"], or a field of a constructor */
        if (mark_culprits(marks, line, &culprit) == 0)
            memset(marks + indent, '^', length - indent);
    }
    while (length > 0 && marks[length - 1] != '^')
        length--;
    add_explained_line(text, "%*s | %.*s\n", NUMBER_WIDTH, "", (int)length, marks);
}

static void
add_source_lines(struct text *text, FILE *file, const struct place *place)
{
    char line[LINE_SIZE];
    unsigned at = 1;

    add_explained_line(text, "%*s |\n", NUMBER_WIDTH, "");
    while (at <= place->line + AROUND && fgets(line, sizeof(line), file) != NULL) {
        bool is_whole = strchr(line, '\n') != NULL;

        line[strcspn(line, "\n")] = '\0';
        if (at + AROUND >= place->line)
            add_explained_line(text, "%*u | %s\n", NUMBER_WIDTH, at, line);
        if (at == place->line)
            mark_place(text, line, place->message);
        while (!is_whole && fgets(line, sizeof(line), file) != NULL)
            is_whole = strchr(line, '\n') != NULL;
        at++;
    }
}

static void
add_source(struct text *text, const struct place *place)
{
    FILE *file;

    add_explained_line(text, "%*s--> %s:%u\n", NUMBER_WIDTH, "", place->path, place->line);
    file = is_source(place->path) ? fopen(place->path, "re") : NULL;
    if (file == NULL)
        return;
    add_source_lines(text, file, place);
    fclose(file);
}

/* ---- Hints ---- */

static void
add_message_hint(struct text *text, struct sxe_span message)
{
    static const char *const hints[][2] = {
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
            add_explained_line(text, "hint: %s\n", hints[i][1]);
            return;
        }
    }
}

size_t
sxe_lua_explain(const char *error, char *room, size_t size)
{
    struct text text = {.room = room, .size = size};
    const char *trace = strstr(error, TRACE);
    struct place place = find_message_place(error, trace != NULL ? trace : error + strlen(error));

    if (size == 0)
        return 0;
    *room = '\0';
    add_explained_line(&text, "error: %.*s\n", (int)place.message.length, place.message.base);
    if (place.line > 0)
        add_source(&text, &place);
    add_message_hint(&text, place.message);
    if (trace != NULL)
        add_explained_line(&text, "%s\n", trace + 1);
    return text.used;
}
