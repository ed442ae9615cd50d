/* SPDX-License-Identifier: MIT
 *
 * What: splits texts with places like {token} into pieces, and reads tables of names and values.
 */
#include <string.h>

#include "script-table.h"
#include "session-private.h"

#include "sxe-always-internal.h"

/* ---- Pieces ---- */

static void
add_piece(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
          struct load_piece piece)
{
    if (sessions->pieces_number == LOAD_PIECES_MAX)
        luaL_error(L, "the steps have too many places and headers; %d pieces are the most",
                   LOAD_PIECES_MAX);
    if (to->number == 0)
        to->first = sessions->pieces_number;
    (void)SXE_ALWAYS(to->first + to->number == sessions->pieces_number);
    sessions->pieces[sessions->pieces_number++] = piece;
    to->number++;
}

void
load_session_add_literal(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
                         const char *text, size_t length)
{
    if (length > 0)
        add_piece(L, sessions, to,
                  (struct load_piece){text, (uint32_t)length, LOAD_LITERAL, LOAD_ESCAPE_NONE});
}

bool
load_session_has_values(const struct load_sessions *sessions, struct load_pieces pieces)
{
    for (uint32_t i = 0; i < pieces.number; i++)
        if (sessions->pieces[pieces.first + i].value != LOAD_LITERAL)
            return true;
    return false;
}

/* ---- Places ---- */

/* A place: {name} or {raw:name}. */
struct place {
    size_t at; /* the offset of the opening brace */
    size_t length;
    /* the word before the colon, such as "raw"; if its base is NULL, there is no colon */
    struct sxe_span form;
    struct sxe_span name;
};

/* Find the next place of a text, from `at` on. Braces that do not form a place are ordinary
 * bytes. */
static bool
find_value_place(struct sxe_span text, size_t at, struct place *place)
{
    for (; at < text.length; at++) {
        const char *begin = text.base + at + 1;
        const char *end;
        const char *colon;

        if (text.base[at] != '{')
            continue;
        end = memchr(begin, '}', text.length - at - 1);
        if (end == NULL)
            return false;
        colon = memchr(begin, ':', (size_t)(end - begin));
        *place = (struct place){at, (size_t)(end - begin) + 2, {NULL, 0}, {begin, 0}};
        if (colon != NULL) {
            place->form = (struct sxe_span){begin, (size_t)(colon - begin)};
            place->name.base = colon + 1;
        }
        place->name.length = (size_t)(end - place->name.base);
        if (load_rows_is_name(place->name.base, place->name.length) &&
            (colon == NULL || load_rows_is_name(place->form.base, place->form.length)))
            return true;
    }
    return false;
}

static bool
is_place_form(const struct place *place, const char *form)
{
    return place->form.length == strlen(form) &&
           memcmp(place->form.base, form, place->form.length) == 0;
}

/* Choose the escape of a place. An escaped value cannot end the part of the request that it is
 * in. */
static enum load_escape
escape_of(lua_State *L, const char *where, const struct place *place, enum load_escape escape)
{
    bool is_path = escape == LOAD_ESCAPE_URL;

    if (place->form.base == NULL)
        return escape;
    if (escape == LOAD_ESCAPE_FORM)
        luaL_error(L, "%s: a form encodes its values itself; write {name}", where);
    if (is_place_form(place, "url"))
        return LOAD_ESCAPE_URL;
    if (is_place_form(place, "raw"))
        return is_path ? LOAD_ESCAPE_RAW : escape;
    if (!is_place_form(place, "json") || is_path)
        luaL_error(L,
                   is_path ? "%s: of a path, a place is {name} or {raw:name}"
                           : "%s: a place is {name}, {json:name}, {url:name} or {raw:name}",
                   where);
    return LOAD_ESCAPE_JSON;
}

static uint16_t
find_user_value(lua_State *L, const struct load_sessions *sessions, const char *where,
                struct sxe_span name)
{
    for (unsigned i = 0; i < sessions->names_number; i++)
        if (sessions->names[i].length == name.length &&
            memcmp(sessions->names[i].name, name.base, name.length) == 0)
            return (uint16_t)i;
    lua_pushlstring(L, name.base, name.length);
    return (uint16_t)luaL_error(
        L,
        "%s has a place for '%s', but %s, and no step before it takes it; for the text itself "
        "write {{%s}",
        where, lua_tostring(L, -1),
        sessions->data == NULL ? "there is no data" : "the data has no such column",
        lua_tostring(L, -1));
}

/* Add the constant text between two places. In a form it is encoded. */
static void
add_between(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
            struct sxe_span text, enum load_escape escape)
{
    struct load_bytes encoded;

    if (escape != LOAD_ESCAPE_FORM || text.length == 0) {
        load_session_add_literal(L, sessions, to, text.base, text.length);
        return;
    }
    encoded = (struct load_bytes){lua_newuserdatauv(L, 3 * text.length, 0), 0};
    load_session_put(&encoded, escape, text);
    load_session_add_literal(L, sessions, to, encoded.bytes, encoded.length);
    luaL_ref(L, LUA_REGISTRYINDEX);
}

void
load_session_add_text(lua_State *L, struct load_sessions *sessions, struct load_pieces *to,
                      const char *where, struct sxe_span text, enum load_escape escape)
{
    struct place place;

    while (find_value_place(text, 0, &place)) {
        bool is_text = place.at > 0 && text.base[place.at - 1] == '{';
        size_t before = is_text ? place.at - 1 : place.at;
        size_t after = place.at + place.length;

        add_between(L, sessions, to, (struct sxe_span){text.base, before}, escape);
        if (is_text)
            add_between(L, sessions, to, (struct sxe_span){text.base + place.at, place.length},
                        escape);
        else
            add_piece(L, sessions, to,
                      (struct load_piece){
                          .value = find_user_value(L, sessions, where, place.name),
                          .escape = (uint8_t)escape_of(L, where, &place, escape),
                      });
        text = (struct sxe_span){text.base + after, text.length - after};
    }
    add_between(L, sessions, to, text, escape);
}

/* ---- Names and values ---- */

/* Insert the pair on top of the stack into the list below it, so that the list stays ordered by
 * name. */
static void
insert_pair(lua_State *L, int list)
{
    lua_Integer at = (lua_Integer)lua_rawlen(L, list);

    for (; at > 0; at--) {
        bool belongs;

        lua_rawgeti(L, list, at);
        lua_rawgeti(L, -2, 1);
        lua_rawgeti(L, -2, 1);
        belongs = !lua_compare(L, -2, -1, LUA_OPLT);
        lua_pop(L, 2);
        if (belongs) {
            lua_pop(L, 1);
            break;
        }
        lua_rawseti(L, list, at + 1);
    }
    lua_rawseti(L, list, at + 1);
}

static void
check_pair(lua_State *L, const char *where)
{
    if (lua_type(L, -1) != LUA_TTABLE)
        luaL_error(L, "%s: a list has pairs such as {\"name\", \"value\"}", where);
    if (lua_rawgeti(L, -1, 1) != LUA_TSTRING || lua_rawgeti(L, -2, 2) == LUA_TNIL)
        luaL_error(L, "%s: a pair has a name and a value: {\"name\", \"value\"}", where);
    lua_pop(L, 2);
}

void
load_session_push_pairs(lua_State *L, const char *where)
{
    int table = lua_gettop(L), list = table + 1;

    lua_newtable(L);
    for (lua_Integer i = 1; lua_rawgeti(L, table, i) != LUA_TNIL; i++) {
        check_pair(L, where);
        lua_rawseti(L, list, i);
    }
    lua_pop(L, 1);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        if (lua_rawlen(L, table) > 0 && lua_isinteger(L, -2))
            continue;
        if (lua_type(L, -2) != LUA_TSTRING || lua_rawlen(L, table) > 0)
            luaL_error(L, "%s has to have either names, which are strings, or a list of pairs",
                       where);
        lua_createtable(L, 2, 0);
        lua_pushvalue(L, -3);
        lua_rawseti(L, -2, 1);
        lua_pushvalue(L, -2);
        lua_rawseti(L, -2, 2);
        insert_pair(L, list);
    }
    if (lua_rawlen(L, table) > 0)
        load_table_check_list(L, table, where);
    lua_replace(L, table);
}
