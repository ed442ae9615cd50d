/* SPDX-License-Identifier: MIT
 *
 * Reads the text of a configuration file as tokens of Lua, and stores the lines of its keys. The
 * place of a key is a hash of the keys that lead to it.
 */
#include "config-lines.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS_MAX 64
#define NOWHERE    UINT64_C(0) /* the place of a table that is not a part of the returned table */
#define ANYWHERE   UINT64_C(0x616e797768657265)

struct line_of {
    uint64_t place;
    unsigned line;
};

struct config_lines {
    struct line_of *all;
    size_t number;
    size_t room;
};

enum kind { END, NAME, TEXT, NUMBER, SIGN };

struct token {
    enum kind kind;
    const char *text; /* the bytes of the token; if it is a TEXT, without its quotes */
    size_t length;
    unsigned line;
};

/* An open bracket. */
struct level {
    bool is_table;
    uint64_t table;
    unsigned long long items;
    uint64_t item; /* the place of the value that is being read */
};

struct reader {
    struct config_lines *lines;
    const char *at;
    const char *end;
    unsigned line;
    struct level levels[LEVELS_MAX];
    unsigned depth; /* how many brackets are open, which may be more than LEVELS_MAX */
    bool has_memory;
};

/* ---- Places, which are FNV-1a hashes of the keys ---- */

static uint64_t
mix_place(uint64_t place, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < length; i++)
        place = (place ^ byte[i]) * UINT64_C(0x100000001b3);
    return place;
}

uint64_t
config_key(uint64_t table, const char *key, size_t length)
{
    return table == NOWHERE ? NOWHERE : mix_place(mix_place(table, ".", 1), key, length);
}

uint64_t
config_item(uint64_t table, unsigned long long index)
{
    return table == NOWHERE ? NOWHERE : mix_place(mix_place(table, "[", 1), &index, sizeof(index));
}

uint64_t
config_anywhere(const char *key, size_t length)
{
    return mix_place(ANYWHERE, key, length);
}

static void
note_line(struct reader *reader, uint64_t place, unsigned line)
{
    struct config_lines *lines = reader->lines;

    if (!reader->has_memory)
        return;
    if (lines->number == lines->room) {
        size_t room = lines->room * 2 + 64;
        struct line_of *all = realloc(lines->all, room * sizeof(*all));

        reader->has_memory = all != NULL;
        if (all == NULL)
            return;
        lines->all = all;
        lines->room = room;
    }
    lines->all[lines->number++] = (struct line_of){place, line};
}

/* ---- Tokens ---- */

static bool
is_at(const struct reader *reader, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(reader->end - reader->at) >= length && memcmp(reader->at, text, length) == 0;
}

static void
advance_reader(struct reader *reader)
{
    if (*reader->at == '\n')
        reader->line++;
    reader->at++;
}

/* The length of an opening long bracket, [[ or [=[, at this point of the text; 0: there is none. */
static size_t
long_bracket(const struct reader *reader)
{
    const char *p = reader->at;

    if (p == reader->end || *p++ != '[')
        return 0;
    while (p < reader->end && *p == '=')
        p++;
    return p < reader->end && *p == '[' ? (size_t)(p + 1 - reader->at) : 0;
}

static struct token
skip_long(struct reader *reader, size_t width)
{
    struct token token = {TEXT, reader->at + width, 0, reader->line};

    for (size_t i = 0; i < width; i++)
        advance_reader(reader);
    for (; reader->at < reader->end; advance_reader(reader)) {
        const char *p = reader->at;

        if ((size_t)(reader->end - p) >= width && *p == ']' && p[width - 1] == ']' &&
            memcmp(p + 1, token.text - width + 1, width - 2) == 0)
            break;
    }
    token.length = (size_t)(reader->at - token.text);
    for (size_t i = 0; i < width && reader->at < reader->end; i++)
        advance_reader(reader);
    return token;
}

static struct token
skip_quoted(struct reader *reader)
{
    const char quote = *reader->at++;
    struct token token = {TEXT, reader->at, 0, reader->line};

    while (reader->at < reader->end && *reader->at != quote) {
        if (*reader->at == '\\' && reader->at + 1 < reader->end)
            advance_reader(reader);
        advance_reader(reader);
    }
    token.length = (size_t)(reader->at - token.text);
    if (reader->at < reader->end)
        reader->at++;
    return token;
}

static void
skip_comment(struct reader *reader)
{
    size_t width;

    reader->at += 2;
    width = long_bracket(reader);
    if (width > 0) {
        (void)skip_long(reader, width);
        return;
    }
    while (reader->at < reader->end && *reader->at != '\n')
        reader->at++;
}

static struct token
next_token(struct reader *reader)
{
    struct token token = {END, reader->end, 0, reader->line};
    size_t width;

    while (reader->at < reader->end) {
        if (isspace((unsigned char)*reader->at))
            advance_reader(reader);
        else if (is_at(reader, "--"))
            skip_comment(reader);
        else
            break;
    }
    token.line = reader->line;
    if (reader->at == reader->end)
        return token;
    width = long_bracket(reader);
    if (width > 0)
        return skip_long(reader, width);
    if (*reader->at == '"' || *reader->at == '\'')
        return skip_quoted(reader);
    token.text = reader->at;
    token.kind = isdigit((unsigned char)*token.text) ? NUMBER : NAME;
    while (reader->at < reader->end && (isalnum((unsigned char)*reader->at) || *reader->at == '_'))
        reader->at++;
    if (reader->at == token.text) {
        token.kind = SIGN;
        reader->at += is_at(reader, "==") ? 2 : 1;
    }
    token.length = (size_t)(reader->at - token.text);
    return token;
}

static bool
is_sign(struct token token, char sign)
{
    return token.kind == SIGN && token.length == 1 && *token.text == sign;
}

/* ---- Tables ---- */

/* The innermost open bracket; NULL: no bracket is open, or more than LEVELS_MAX are. */
static struct level *
innermost_level(struct reader *reader)
{
    return reader->depth == 0 || reader->depth > LEVELS_MAX ? NULL
                                                            : &reader->levels[reader->depth - 1];
}

static void
open_bracket(struct reader *reader, bool is_table, uint64_t table)
{
    reader->depth++;
    if (reader->depth <= LEVELS_MAX)
        reader->levels[reader->depth - 1] = (struct level){is_table, table, 0, NOWHERE};
}

/* An item of a table begins with this token. Store the line of its key, or of its number if it has
 * no key. True: the key and its = were read. False: the token belongs to the value. */
static bool
begin_item(struct reader *reader, struct level *level, struct token first)
{
    const char *at = reader->at;
    const unsigned line = reader->line;
    bool is_bracket = is_sign(first, '[');
    struct token key = is_bracket ? next_token(reader) : first;
    bool is_key = is_bracket ? is_sign(next_token(reader), ']') : first.kind == NAME;

    is_key = is_key && is_sign(next_token(reader), '=');
    if (is_key && key.kind == NUMBER) {
        level->item = config_item(level->table, strtoull(key.text, NULL, 10));
    } else if (is_key) {
        level->item = config_key(level->table, key.text, key.length);
        note_line(reader, config_anywhere(key.text, key.length), key.line);
    } else {
        reader->at = at;
        reader->line = line;
        level->item = config_item(level->table, ++level->items);
    }
    note_line(reader, level->item, key.line);
    return is_key;
}

static void
read_all_lines(struct reader *reader)
{
    struct token last = {END, reader->at, 0, 1};
    bool is_first = false; /* whether the next token is the first of a table's item */

    for (struct token token = next_token(reader); token.kind != END && reader->has_memory;
         last = token, token = next_token(reader)) {
        struct level *level = innermost_level(reader);
        /* whether a bracket would begin a value, and not the argument of a call */
        bool is_value = is_sign(last, '=') || is_first;
        bool is_item = is_first;

        is_first = false;
        if (is_sign(token, '}') || is_sign(token, ')')) {
            reader->depth -= reader->depth > 0;
            continue;
        }
        if (is_item && begin_item(reader, level, token)) {
            token = (struct token){SIGN, "=", 1, token.line};
            continue;
        }
        if (is_sign(token, '(')) {
            open_bracket(reader, false, NOWHERE);
        } else if (is_sign(token, '{')) {
            bool is_root = last.length == 6 && memcmp(last.text, "return", 6) == 0;

            if (level != NULL)
                open_bracket(reader, true, is_value ? level->item : NOWHERE);
            else
                open_bracket(reader, true, is_root ? CONFIG_ROOT : NOWHERE);
            is_first = innermost_level(reader) != NULL;
        } else if (is_sign(token, ',') || is_sign(token, ';')) {
            is_first = level != NULL && level->is_table;
        }
    }
}

struct config_lines *
config_lines_new(const char *text, size_t length)
{
    struct config_lines *lines = calloc(1, sizeof(*lines));
    struct reader reader = {
        .lines = lines, .at = text, .end = text + length, .line = 1, .has_memory = true};

    if (lines == NULL)
        return NULL;
    read_all_lines(&reader);
    if (reader.has_memory)
        return lines;
    config_lines_delete(lines);
    return NULL;
}

void
config_lines_delete(struct config_lines *lines)
{
    if (lines == NULL)
        return;
    free(lines->all);
    free(lines);
}

static unsigned
find_line(const struct config_lines *lines, uint64_t place)
{
    /* search from the end, because of two equal keys Lua uses the last one */
    for (size_t i = lines->number; i > 0; i--) {
        if (lines->all[i - 1].place == place)
            return lines->all[i - 1].line;
    }
    return 0;
}

unsigned
config_lines_find(const struct config_lines *lines, uint64_t place, uint64_t anywhere)
{
    unsigned line = find_line(lines, place);

    return line > 0 ? line : find_line(lines, anywhere);
}
