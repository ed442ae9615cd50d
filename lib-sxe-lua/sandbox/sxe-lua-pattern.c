/* SPDX-License-Identifier: MIT
 *
 * Lua's patterns with a limit of steps, so that no pattern blocks the loop.
 */
#include "sxe-lua-pattern-private.h"

#include <ctype.h>
#include <string.h>

/* Lengths that mark a capture as not closed yet, or as a position. */
enum { OPEN = -1, POSITION = -2 };

enum { DEPTH_MAX = 200, STEPS_A_LOOK = 4096 };

void
sxe__lua_match_steps(struct sxe__lua_match *match, size_t number)
{
    match->steps += number;
    if (SXE_LIKELY(match->steps < match->look_at))
        return;
    match->look_at = match->steps + STEPS_A_LOOK;
    sxe__lua_watch_poll(match->L);
    if (match->steps > SXE__LUA_STEPS_MAX)
        luaL_error(match->L, "a pattern takes more than %d steps", SXE__LUA_STEPS_MAX);
}

/* ---- Single characters ---- */

/* The end of the single item that begins at p: x, ., %x or a set. A NUL follows the pattern. */
static const char *
end_of_single(struct sxe__lua_match *match, const char *p)
{
    const char *start = p;

    if (*p != '%' && *p != '[')
        return p + 1;
    if (*p == '%') {
        if (p + 1 == match->pattern_end)
            luaL_error(match->L, "malformed pattern (ends with '%%')");
        return p + 2;
    }
    p += p[1] == '^' ? 2 : 1;
    do { /* a ] right after the [ belongs to the set */
        if (p == match->pattern_end)
            luaL_error(match->L, "malformed pattern (missing ']')");
        p += *p == '%' && p + 1 < match->pattern_end ? 2 : 1;
    } while (*p != ']');
    sxe__lua_match_steps(match, (size_t)(p - start));
    return p + 1;
}

static bool
is_in_class(int c, int class_)
{
    bool is;

    switch (tolower(class_)) {
    case 'a':
        is = isalpha(c);
        break;
    case 'c':
        is = iscntrl(c);
        break;
    case 'd':
        is = isdigit(c);
        break;
    case 'g':
        is = isgraph(c);
        break;
    case 'l':
        is = islower(c);
        break;
    case 'p':
        is = ispunct(c);
        break;
    case 's':
        is = isspace(c);
        break;
    case 'u':
        is = isupper(c);
        break;
    case 'w':
        is = isalnum(c);
        break;
    case 'x':
        is = isxdigit(c);
        break;
    case 'z': /* from Lua 5.1, and still supported */
        is = c == '\0';
        break;
    default:
        return c == class_;
    }
    return is != (isupper(class_) != 0);
}

/* Whether a character is in the set from [ to ]. */
static bool
is_in_set(int c, const char *open, const char *close)
{
    const unsigned char *p = (const unsigned char *)open + 1;
    const unsigned char *end = (const unsigned char *)close;
    const bool is_wanted = *p != '^';

    for (p += is_wanted ? 0 : 1; p < end; p++) {
        if (*p == '%') {
            p++;
            if (is_in_class(c, *p))
                return is_wanted;
        } else if (p[1] == '-' && p + 2 < end) {
            if (*p <= c && c <= p[2])
                return is_wanted;
            p += 2;
        } else if (*p == c) {
            return is_wanted;
        }
    }
    return !is_wanted;
}

/* Whether the character at s matches the single item from p to end. */
static bool
is_single(struct sxe__lua_match *match, const char *s, const char *p, const char *end)
{
    const int c = (unsigned char)*s;

    sxe__lua_match_steps(match, (size_t)(end - p));
    if (s >= match->subject_end)
        return false;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return is_in_class(c, (unsigned char)p[1]);
    case '[':
        return is_in_set(c, p, end - 1);
    default:
        return (unsigned char)*p == c;
    }
}

/* ---- Longer items: each function returns where the match goes on, or NULL ---- */

static const char *match_item_here(struct sxe__lua_match *match, const char *s, const char *p);

static const char *
match_most(struct sxe__lua_match *match, const char *s, const char *p, const char *after)
{
    const char *least = s;

    while (is_single(match, s, p, after))
        s++;
    for (;; s--) {
        const char *end = match_item_here(match, s, after + 1);

        if (end != NULL || s == least)
            return end;
    }
}

static const char *
match_least(struct sxe__lua_match *match, const char *s, const char *p, const char *after)
{
    for (;; s++) {
        const char *end = match_item_here(match, s, after + 1);

        if (end != NULL || !is_single(match, s, p, after))
            return end;
    }
}

/* Match a single item of the pattern at *p, and move *p past the item. If the item is repeated,
 * match the rest of the pattern, too, and move *p to the pattern's end. Returns the end of the
 * match in the subject; NULL: no match. */
static const char *
match_single(struct sxe__lua_match *match, const char *s, const char **p)
{
    const char *single = *p;
    const char *after = end_of_single(match, single);
    const char *end;

    if (!is_single(match, s, single, after)) {
        *p = after + 1;
        return *after == '*' || *after == '?' || *after == '-' ? s : NULL;
    }
    *p = match->pattern_end;
    switch (*after) {
    case '*':
        return match_most(match, s, single, after);
    case '+':
        return match_most(match, s + 1, single, after);
    case '-':
        return match_least(match, s, single, after);
    case '?':
        end = match_item_here(match, s + 1, after + 1);
        if (end != NULL)
            return end;
        *p = after + 1;
        return s;
    default:
        *p = after;
        return s + 1;
    }
}

static const char *
match_balanced(struct sxe__lua_match *match, const char *s, const char *pair)
{
    unsigned open = 1;

    if (match->pattern_end - pair < 2)
        luaL_error(match->L, "malformed pattern (missing arguments to '%%b')");
    if (s == match->subject_end || *s != pair[0])
        return NULL;
    while (++s < match->subject_end) {
        sxe__lua_match_steps(match, 1);
        if (*s == pair[1]) {
            if (--open == 0)
                return s + 1;
        } else if (*s == pair[0]) {
            open++;
        }
    }
    return NULL;
}

/* Match %f. The string counts as if it had a NUL before its beginning and after its end. */
static const char *
match_frontier(struct sxe__lua_match *match, const char *s, const char **p)
{
    const char *set = *p;
    const int before = s == match->subject ? '\0' : (unsigned char)s[-1];

    if (*set != '[')
        luaL_error(match->L, "missing '[' after '%%f' in pattern");
    *p = end_of_single(match, set);
    if (is_in_set(before, set, *p - 1) || !is_in_set((unsigned char)*s, set, *p - 1))
        return NULL;
    return s;
}

/* Match the text of a capture again: %1. */
static const char *
match_item_again(struct sxe__lua_match *match, const char *s, char digit)
{
    const unsigned index = (unsigned)(digit - '1');
    size_t length;

    if (digit == '0' || index >= match->captured || match->captures[index].length == OPEN)
        luaL_error(match->L, "invalid capture index %%%d", digit - '0');
    if (match->captures[index].length == POSITION)
        return NULL;
    length = (size_t)match->captures[index].length;
    sxe__lua_match_steps(match, length / 16);
    if ((size_t)(match->subject_end - s) < length ||
        memcmp(match->captures[index].start, s, length) != 0)
        return NULL;
    return s + length;
}

/* Match %b, %f or %1, and move *p past it. */
static const char *
match_escaped(struct sxe__lua_match *match, const char *s, const char **p)
{
    const char kind = (*p)[1];

    *p += 2;
    switch (kind) {
    case 'b':
        s = match_balanced(match, s, *p);
        *p += 2;
        return s;
    case 'f':
        return match_frontier(match, s, p);
    default:
        return match_item_again(match, s, kind);
    }
}

/* ---- Captures ---- */

static const char *
open_capture(struct sxe__lua_match *match, const char *s, const char *p)
{
    const bool is_position = *p == ')';
    const char *end;

    if (match->captured == SXE__LUA_CAPTURES_MAX)
        luaL_error(match->L, "too many captures");
    match->captures[match->captured].start = s;
    match->captures[match->captured].length = is_position ? POSITION : OPEN;
    match->captured++;
    end = match_item_here(match, s, p + is_position);
    match->captured -= end == NULL;
    return end;
}

static const char *
close_capture(struct sxe__lua_match *match, const char *s, const char *p)
{
    unsigned index = match->captured;
    const char *end;

    while (index > 0 && match->captures[index - 1].length != OPEN)
        index--;
    if (index == 0)
        luaL_error(match->L, "invalid pattern capture");
    index--;
    match->captures[index].length = s - match->captures[index].start;
    end = match_item_here(match, s, p);
    if (end == NULL)
        match->captures[index].length = OPEN;
    return end;
}

void
sxe__lua_match_capture(struct sxe__lua_match *match, unsigned index, const char *start,
                       const char *end)
{
    ptrdiff_t length = end - start;

    if (index >= match->captured) {
        if (index > 0)
            luaL_error(match->L, "invalid capture index %%%d", (int)index + 1);
    } else {
        start = match->captures[index].start;
        length = match->captures[index].length;
    }
    if (length == OPEN)
        luaL_error(match->L, "unfinished capture");
    if (length == POSITION)
        lua_pushinteger(match->L, start - match->subject + 1);
    else
        lua_pushlstring(match->L, start, (size_t)length);
}

int
sxe__lua_match_captures(struct sxe__lua_match *match, const char *start, const char *end)
{
    const unsigned number = match->captured == 0 && start != NULL ? 1 : match->captured;

    luaL_checkstack(match->L, (int)number, "too many captures");
    for (unsigned i = 0; i < number; i++)
        sxe__lua_match_capture(match, i, start, end);
    return (int)number;
}

/* ---- The descent ---- */

static const char *
match_item_here(struct sxe__lua_match *match, const char *s, const char *p)
{
    if (match->depth == DEPTH_MAX)
        luaL_error(match->L, "pattern too complex");
    match->depth++;
    while (s != NULL && p < match->pattern_end) {
        if (*p == '(') {
            s = open_capture(match, s, p + 1);
            break;
        }
        if (*p == ')') {
            s = close_capture(match, s, p + 1);
            break;
        }
        if (*p == '$' && p + 1 == match->pattern_end) {
            s = s == match->subject_end ? s : NULL;
            break;
        }
        if (*p == '%' && (p[1] == 'b' || p[1] == 'f' || isdigit((unsigned char)p[1])))
            s = match_escaped(match, s, &p);
        else
            s = match_single(match, s, &p);
    }
    match->depth--;
    return s;
}

const char *
sxe__lua_match_at(struct sxe__lua_match *match, const char *place, const char *pattern)
{
    match->depth = 0;
    match->captured = 0;
    sxe__lua_match_steps(match, 1);
    return match_item_here(match, place, pattern);
}
