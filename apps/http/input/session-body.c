/* SPDX-License-Identifier: MIT
 *
 * What: forms: application/x-www-form-urlencoded (WHATWG URL, 5.2) and multipart/form-data
 * (RFC 7578).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "script-table.h"
#include "session-private.h"
#include "whole-file.h"

/* ---- Pairs ---- */

/* Keep the string or number at the top of the stack in the registry, so that its bytes stay valid,
 * and pop it. */
static struct sxe_span
take_string_copy(lua_State *L, const char *where)
{
    struct sxe_span text;

    if (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TNUMBER)
        luaL_error(L, "%s must be a string or a number, not a %s", where, luaL_typename(L, -1));
    text.base = lua_tolstring(L, -1, &text.length);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return text;
}

/* Read the name of the pair at the top of the stack; the pair is not popped. */
static struct sxe_span
read_pair_name(lua_State *L, const char *where)
{
    lua_rawgeti(L, -1, 1);
    return take_string_copy(L, where);
}

/* ---- Forms ---- */

void
load_session_read_form(lua_State *L, struct load_sessions *sessions, struct load_user_step *step,
                       int table)
{
    int top = lua_gettop(L);
    const char *where;

    if (!load_table_field(L, table, step->where, "form", LUA_TTABLE)) {
        lua_settop(L, top);
        return;
    }
    step->content = LOAD_CONTENT_FORM;
    where = lua_pushfstring(L, "%s.form", step->where);
    lua_insert(L, -2);
    load_session_push_pairs(L, where);
    for (lua_Integer i = 1; lua_rawgeti(L, top + 2, i) != LUA_TNIL; i++) {
        struct sxe_span name = read_pair_name(L, where);
        const char *field = lua_pushfstring(L, "%s.%s", where, name.base);

        lua_rawgeti(L, -2, 2);
        if (i > 1)
            load_session_add_literal(L, sessions, &step->body, "&", 1);
        load_session_add_text(L, sessions, &step->body, field, name, LOAD_ESCAPE_FORM);
        load_session_add_literal(L, sessions, &step->body, "=", 1);
        load_session_add_text(L, sessions, &step->body, field, take_string_copy(L, field),
                              LOAD_ESCAPE_FORM);
        lua_settop(L, top + 2);
    }
    lua_settop(L, top);
}

/* ---- Multipart ---- */

static void
add_body_word(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
              const char *word)
{
    load_session_add_literal(L, sessions, to, word, strlen(word));
}

/* Write a name of a part as browsers do (WHATWG HTML, multipart/form-data): quotes and line ends
 * become %XX. */
static void
add_quoted_text(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
                struct sxe_span text)
{
    while (text.length > 0) {
        size_t length = 0;

        while (length < text.length && memchr("\"\r\n", text.base[length], 3) == NULL)
            length++;
        load_session_add_literal(L, sessions, to, text.base, length);
        text.base += length;
        text.length -= length;
        if (text.length == 0)
            return;
        add_body_word(L, sessions, to,
                      *text.base == '"'    ? "%22"
                      : *text.base == '\r' ? "%0D"
                                           : "%0A");
        text.base++;
        text.length--;
    }
}

/* Read a file into memory that Lua keeps, and add its bytes as pieces. */
static void
read_part_file(lua_State *L, struct load_script *script, struct load_form_part *part,
               const char *where, const char *name)
{
    struct load_sessions *sessions = script->sessions;
    const char *path = load_session_push_path(L, script, name);
    size_t length;
    char *copy;

    sessions->file = load_whole_file(path, &length);
    if (sessions->file == NULL)
        luaL_error(L, "%s: cannot read '%s': %s", where, path, strerror(errno));
    copy = lua_newuserdatauv(L, length + 1, 0);
    memcpy(copy, sessions->file, length);
    free(sessions->file);
    sessions->file = NULL;
    luaL_ref(L, LUA_REGISTRYINDEX);
    load_session_add_literal(L, sessions, &part->content, copy, length);
}

static const char *
name_in_path(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* Read a part that is an uploaded file: {file = "photo.png", name = "a.png", type =
 * "image/png"}. */
static void
read_upload(lua_State *L, struct load_script *script, struct load_form_part *part,
            const char *where, int table)
{
    static const char *const names[] = {"file", "name", "type", NULL};
    struct load_sessions *sessions = script->sessions;
    const char *file, *name, *type;

    load_table_refuse_others(L, table, where, names);
    file = load_table_text(L, table, where, "file");
    name = load_table_text(L, table, where, "name");
    type = load_table_text(L, table, where, "type");
    if (file == NULL)
        luaL_error(L, "%s.file is missing: the name of the file to upload", where);
    if (type != NULL && strpbrk(type, "\r\n") != NULL)
        luaL_error(L, "%s.type has a line end", where);
    name = name == NULL ? name_in_path(file) : name;
    add_body_word(L, sessions, &part->head, "\"; filename=\"");
    add_quoted_text(L, sessions, &part->head, (struct sxe_span){name, strlen(name)});
    add_body_word(L, sessions, &part->head, "\"\r\nContent-Type: ");
    add_body_word(L, sessions, &part->head, type == NULL ? "application/octet-stream" : type);
    add_body_word(L, sessions, &part->head, "\r\n");
    read_part_file(L, script, part, where, file);
}

static void
read_form_part(lua_State *L, struct load_script *script, struct load_form_part *part,
               const char *where)
{
    struct load_sessions *sessions = script->sessions;
    struct sxe_span name = read_pair_name(L, where);
    const char *field = lua_pushfstring(L, "%s.%s", where, name.base);

    lua_rawgeti(L, -2, 2);
    add_body_word(L, sessions, &part->head, "Content-Disposition: form-data; name=\"");
    add_quoted_text(L, sessions, &part->head, name);
    if (lua_type(L, -1) == LUA_TTABLE) {
        read_upload(L, script, part, field, lua_gettop(L));
        return;
    }
    add_body_word(L, sessions, &part->head, "\"\r\n");
    load_session_add_text(L, sessions, &part->content, field, take_string_copy(L, field),
                          LOAD_ESCAPE_NONE);
    part->has_values = load_session_has_values(sessions, part->content);
}

void
load_session_read_parts(lua_State *L, struct load_script *script, struct load_user_step *step,
                        int table)
{
    int top = lua_gettop(L);
    const char *where;

    if (!load_table_field(L, table, step->where, "multipart", LUA_TTABLE)) {
        lua_settop(L, top);
        return;
    }
    step->content = LOAD_CONTENT_PARTS;
    where = lua_pushfstring(L, "%s.multipart", step->where);
    lua_insert(L, -2);
    load_session_push_pairs(L, where);
    for (lua_Integer i = 1; lua_rawgeti(L, top + 2, i) != LUA_TNIL; i++) {
        if (step->parts_number == LOAD_PARTS_MAX)
            luaL_error(L, "%s has more than %d parts", where, LOAD_PARTS_MAX);
        read_form_part(L, script, &step->parts[step->parts_number++], where);
        lua_settop(L, top + 2);
    }
    if (step->parts_number == 0)
        luaL_error(L, "%s has no part", where);
    lua_settop(L, top);
}
