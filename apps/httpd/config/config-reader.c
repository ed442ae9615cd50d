/* SPDX-License-Identifier: MIT
 *
 * Reads values of the tables of a configuration file, and says what is wrong with them.
 */
#include "config-reader.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "command-line.h"
#include "config-origin.h"

/* ---- Messages ---- */

bool
config_fail(const struct config_reader *reader, const char *key, const char *given,
            const char *must)
{
    config_be_at(reader->line, key);
    fprintf(stderr, "sxe-httpd: %s%s%s%s%s\n", command_line_place, given == NULL ? "" : "it is ",
            given == NULL ? "" : given, given == NULL ? "" : "; it must be ", must);
    return false;
}

void
config_note_key(struct config_reader *reader, const char *key)
{
    const size_t length = strlen(key);
    const unsigned line = config_lines_find(
        reader->file->lines, config_key(reader->place, key, length), config_anywhere(key, length));

    reader->line = line > 0 ? line : reader->line;
}

/* Check that the table on top of the stack has only these keys. False after a message. */
bool
config_has_only(struct config_reader *reader, const char *const *names)
{
    lua_State *L = reader->L;

    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        const char *nearest = NULL;
        unsigned fewest = 0;
        unsigned i = 0;
        char text[128];

        while (names[i] != NULL && strcmp(names[i], key) != 0)
            i++;
        if (names[i] != NULL)
            continue;
        for (i = 0; names[i] != NULL; i++)
            nearest =
                command_line_is_nearer(key, strlen(key), names[i], &fewest) ? names[i] : nearest;
        snprintf(text, sizeof(text), "there is no such key here%s%s%s",
                 nearest == NULL ? "" : "; did you mean ", nearest == NULL ? "" : nearest,
                 nearest == NULL ? "" : "?");
        config_note_key(reader, key);
        return config_fail(reader, key, NULL, text);
    }
    return true;
}

/* ---- Values ---- */

/* Pop the text on top of the stack, and keep it until the file is closed. NULL after a message: the
 * value is no text. */
const char *
config_take_text(struct config_reader *reader, const char *key)
{
    const char *text = NULL;
    size_t length = 0;

    if (lua_type(reader->L, -1) == LUA_TSTRING)
        text = lua_tolstring(reader->L, -1, &length);
    if (text == NULL || strlen(text) != length) {
        (void)config_fail(reader, key, luaL_typename(reader->L, -1), "a text without zero bytes");
        return NULL;
    }
    text = config_file_keep(reader->file);
    if (text == NULL)
        luaL_error(reader->L, "no memory");
    return text;
}

/* Read the text of a key of the table on top of the stack. If there is no such key, *text is not
 * changed. Like all functions here that read, it returns false after a message. */
bool
config_read_text(struct config_reader *reader, const char *key, const char **text)
{
    if (lua_getfield(reader->L, -1, key) == LUA_TNIL) {
        lua_pop(reader->L, 1);
        return true;
    }
    config_note_key(reader, key);
    *text = config_take_text(reader, key);
    return *text != NULL;
}

/* Read the value of a key, which is a text or a list of texts, into texts, which has room for
 * `most`. */
bool
config_read_texts(struct config_reader *reader, const char *key, const char **texts, unsigned most,
                  unsigned *number)
{
    lua_State *L = reader->L;
    const int type = lua_getfield(L, -1, key);
    const lua_Unsigned length = type == LUA_TTABLE ? lua_rawlen(L, -1) : type != LUA_TNIL;
    char must[64];

    *number = 0;
    config_note_key(reader, key);
    if (type == LUA_TTABLE && !config_is_list(L, lua_gettop(L)))
        return config_fail(reader, key, "a table with names", "a text, or a list of texts");
    if (length > most) {
        snprintf(must, sizeof(must), "there may be %u of them at most", most);
        return config_fail(reader, key, NULL, must);
    }
    for (lua_Unsigned i = 1; i <= length; i++) {
        if (type == LUA_TTABLE)
            (void)lua_rawgeti(L, -1, (lua_Integer)i);
        else
            lua_pushvalue(L, -1);
        texts[*number] = config_take_text(reader, key);
        if (texts[(*number)++] == NULL)
            return false;
    }
    lua_pop(L, 1);
    return true;
}

bool
config_read_switch(struct config_reader *reader, const char *key, bool *is_on)
{
    const int type = lua_getfield(reader->L, -1, key);

    config_note_key(reader, key);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        return config_fail(reader, key, luaL_typename(reader->L, -1), "true or false");
    *is_on = lua_toboolean(reader->L, -1) != 0;
    lua_pop(reader->L, 1);
    return true;
}
