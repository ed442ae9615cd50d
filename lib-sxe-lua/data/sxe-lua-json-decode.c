/* SPDX-License-Identifier: MIT
 *
 * What: reads JSON as in RFC 8259, and nothing else: no NaN, no 0x10, no comments, UTF-8 only.
 *
 * Shape: the open values lie on the Lua stack, the outermost first; above an object lies the name
 * whose value comes next. So nesting uses no C stack.
 *
 *     {"a": [1, {"b": 2     object, "a", list, object, "b"
 *
 * A number without fraction and exponent becomes an integer if it fits a Lua integer, otherwise a
 * float. Another number becomes an integer if it is whole and below 2^53, otherwise a float.
 */
#include "sxe-lua-core-private.h"
#include "sxe-lua-http-private.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-utf8.h"

enum {
    DEPTH_MAX = 1000,
    OBJECT = -1,
    STACK_ROOM = 8, /* slots of the stack beside the open values */
    VALUES_A_LOOK = 256
};

/* 2^53: above this number several integers become the same float */
#define EXACT_END 9007199254740992.0

struct reader {
    lua_State *L;
    const char *begin;
    const char *at;
    const char *end;     /* the end of the text, where a NUL stands */
    const char *problem; /* what is wrong with the text; NULL: nothing so far */
    int depth;           /* number of open values: lists and objects */
    /* for each open list, the number of its items so far; for an open object, OBJECT */
    int items[DEPTH_MAX + 1];
};

static bool
refuse_json_text(struct reader *r, const char *problem)
{
    r->problem = problem;
    return false;
}

static void
skip_space(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')
        r->at++;
}

static bool
is_json_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- Strings ---- */

/* The value of four hexadecimal digits, or -1. */
static long
hex_at(const char *text)
{
    long value = 0;

    for (int i = 0; i < 4; i++) {
        int letter = (text[i] | 0x20) - 'a';

        if (!is_json_digit(text[i]) && (letter < 0 || letter > 5))
            return -1;
        value = value << 4 | (is_json_digit(text[i]) ? text[i] - '0' : letter + 10);
    }
    return value;
}

/* Read the four digits after \u, and add the character. A character may need two such escapes (RFC
 * 8259, 7). */
static bool
read_unicode(struct reader *r, luaL_Buffer *buffer)
{
    long code = hex_at(r->at);

    if (code >= 0xd800 && code < 0xdc00) {
        long low = r->at[4] == '\\' && r->at[5] == 'u' ? hex_at(r->at + 6) : -1;

        code = low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
        r->at += code < 0 ? 0 : 6;
    } else if (code >= 0xdc00 && code < 0xe000) {
        code = -1;
    }
    if (code < 0)
        return refuse_json_text(r, "\\u without a character");
    r->at += 4;
    lua_pushfstring(r->L, "%U", code);
    luaL_addvalue(buffer);
    return true;
}

/* Read an escape, after its backslash. */
static bool
read_string_escape(struct reader *r, luaL_Buffer *buffer)
{
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";

    if (*r->at == 'u') {
        r->at++;
        return read_unicode(r, buffer);
    }
    for (const char *escape = escapes; *escape != '\0'; escape += 2) {
        if (*escape == *r->at) {
            luaL_addchar(buffer, escape[1]);
            r->at++;
            return true;
        }
    }
    return refuse_json_text(r, "a backslash without an escape");
}

static bool
is_beyond_ascii(char c)
{
    return ((unsigned char)c & 0x80) != 0;
}

/* The end of the plain text: a quotation mark, an escape, or a byte that is an error. */
static const char *
plain_end(const char *text)
{
    uint32_t character;
    size_t length;

    do {
        while (!is_beyond_ascii(*text) && *text >= ' ' && *text != '"' && *text != '\\')
            text++;
        if (!is_beyond_ascii(*text))
            return text;
        length = sxe_utf8_decode(&character, (const unsigned char *)text, 4);
        text += length;
    } while (length > 0);
    return text;
}

/* The reason why a string cannot contain the byte at `at`. */
static const char *
problem_of_byte(const struct reader *r, const char *at)
{
    if (is_beyond_ascii(*at))
        return "bytes in a string that are not UTF-8";
    return at == r->end ? "a string without its end" : "a control character in a string";
}

/* Read a string, after its first quotation mark, and push it. */
static bool
push_json_string(struct reader *r)
{
    const char *end = plain_end(r->at);
    luaL_Buffer buffer;

    if (*end == '"') {
        lua_pushlstring(r->L, r->at, (size_t)(end - r->at));
        r->at = end + 1;
        return true;
    }
    luaL_buffinit(r->L, &buffer);
    for (;;) {
        luaL_addlstring(&buffer, r->at, (size_t)(end - r->at));
        r->at = end;
        if (*end == '"')
            break;
        if (*end != '\\')
            return refuse_json_text(r, problem_of_byte(r, end));
        r->at++;
        if (!read_string_escape(r, &buffer))
            return false;
        end = plain_end(r->at);
    }
    r->at++;
    luaL_pushresult(&buffer);
    return true;
}

/* ---- Numbers ---- */

/* Skip one or more digits. Returns their end; NULL: there is no digit. */
static const char *
end_of_digits(const char *text)
{
    if (!is_json_digit(*text))
        return NULL;
    while (is_json_digit(*text))
        text++;
    return text;
}

/* The end of the number that begins at `text` (RFC 8259, 6); NULL: no number begins there. */
static const char *
number_end(const char *text, bool *is_integer)
{
    text += *text == '-';
    text = *text == '0' ? text + 1 : end_of_digits(text);
    *is_integer = text != NULL && *text != '.' && *text != 'e' && *text != 'E';
    if (text != NULL && *text == '.')
        text = end_of_digits(text + 1);
    if (text != NULL && (*text == 'e' || *text == 'E')) {
        text++;
        text = end_of_digits(text + (*text == '+' || *text == '-'));
    }
    return text;
}

/* Convert the digits to a Lua integer. False: the number is too large for an integer, or is -0. */
static bool
to_integer(const char *text, const char *end, lua_Integer *integer)
{
    bool is_negative = *text == '-';
    uint64_t most = (uint64_t)LUA_MAXINTEGER + is_negative;
    uint64_t value = 0;

    for (text += is_negative; text < end; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *integer = (lua_Integer)(is_negative ? -value : value);
    return value > 0 || !is_negative;
}

static bool
read_json_number(struct reader *r)
{
    bool is_integer;
    const char *end = number_end(r->at, &is_integer);
    lua_Integer integer;
    double value;

    if (end == NULL)
        return refuse_json_text(r, "not a number");
    if (is_integer && to_integer(r->at, end, &integer)) {
        lua_pushinteger(r->L, integer);
        r->at = end;
        return true;
    }
    /* newlocale for "C" needs no memory, and returns the same object each time. */
    value = strtod_l(r->at, NULL, newlocale(LC_ALL_MASK, "C", NULL));
    if (!isfinite(value))
        return refuse_json_text(r, "a number that is too large");
    if (!is_integer && fabs(value) < EXACT_END && floor(value) == value &&
        !(value == 0 && signbit(value)))
        lua_pushinteger(r->L, (lua_Integer)value);
    else
        lua_pushnumber(r->L, value);
    r->at = end;
    return true;
}

/* ---- Values ---- */

static bool
take_json_word(struct reader *r, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(r->at, word, length) != 0)
        return refuse_json_text(r, "expected a value");
    r->at += length;
    return true;
}

/* Read a value that contains no other values. */
static bool
read_scalar(struct reader *r)
{
    switch (*r->at) {
    case '"':
        r->at++;
        return push_json_string(r);
    case 't':
        lua_pushboolean(r->L, 1);
        return take_json_word(r, "true");
    case 'f':
        lua_pushboolean(r->L, 0);
        return take_json_word(r, "false");
    case 'n':
        lua_pushlightuserdata(r->L, NULL);
        return take_json_word(r, "null");
    default:
        return *r->at == '-' || is_json_digit(*r->at) ? read_json_number(r)
                                                      : refuse_json_text(r, "expected a value");
    }
}

/* Push the name of a member, and skip its colon. */
static bool
push_member_name(struct reader *r)
{
    skip_space(r);
    if (*r->at != '"')
        return refuse_json_text(r, "expected a name in quotation marks");
    r->at++;
    if (!push_json_string(r))
        return false;
    skip_space(r);
    if (*r->at != ':')
        return refuse_json_text(r, "expected : after a name");
    r->at++;
    return true;
}

/* Read a { or [: push its table and, for an object, its first name. *is_open: values follow. */
static bool
open_value(struct reader *r, bool *is_open)
{
    bool is_list = *r->at++ == '[';

    if (r->depth == DEPTH_MAX)
        return refuse_json_text(r, "more than 1000 values in one another");
    luaL_checkstack(r->L, STACK_ROOM, "JSON");
    lua_newtable(r->L);
    if (is_list)
        sxe__lua_json_mark(r->L);
    skip_space(r);
    *is_open = *r->at != (is_list ? ']' : '}');
    if (!*is_open) {
        r->at++;
        return true;
    }
    r->items[++r->depth] = is_list ? 0 : OBJECT;
    return is_list || push_member_name(r);
}

/* Put the complete value on top into the list or object around it. If this list or object is then
 * complete, put it into the next one, and so on. True: another value follows, or no list or object
 * is open any more. */
static bool
close_values(struct reader *r)
{
    while (r->depth > 0) {
        bool is_list = r->items[r->depth] != OBJECT;

        if (is_list)
            lua_rawseti(r->L, -2, ++r->items[r->depth]);
        else
            lua_rawset(r->L, -3);
        skip_space(r);
        if (*r->at == ',') {
            r->at++;
            return is_list || push_member_name(r);
        }
        if (*r->at != (is_list ? ']' : '}'))
            return refuse_json_text(r, is_list ? "expected , or ] in a list"
                                               : "expected , or } in an object");
        r->at++;
        r->depth--;
    }
    return true;
}

static bool
read_document(struct reader *r)
{
    unsigned values = 0;

    do {
        bool is_open = false;

        if (++values % VALUES_A_LOOK == 0)
            sxe__lua_watch_poll(r->L);
        skip_space(r);
        if (*r->at == '{' || *r->at == '[') {
            if (!open_value(r, &is_open))
                return false;
        } else if (!read_scalar(r)) {
            return false;
        }
        if (!is_open && !close_values(r))
            return false;
    } while (r->depth > 0);
    skip_space(r);
    return r->at == r->end || refuse_json_text(r, "more after the value");
}

bool
sxe__lua_json_decode(lua_State *L)
{
    const int top = lua_gettop(L);
    size_t length;
    struct reader r;

    r.L = L;
    r.at = r.begin = lua_tolstring(L, top, &length);
    r.end = r.begin + length;
    r.problem = NULL;
    r.depth = 0;
    luaL_checkstack(L, STACK_ROOM, "JSON");
    if (read_document(&r)) {
        lua_replace(L, top);
        return true;
    }
    lua_settop(L, top);
    lua_pushfstring(L, "%s, at byte %d", r.problem, (int)(r.at - r.begin) + 1);
    lua_replace(L, top);
    return false;
}
