/* SPDX-License-Identifier: MIT
 *
 * string.find, match, gmatch and gsub for sandboxes, on the matcher of sxe-lua-pattern.c.
 */
#include "sxe-lua-pattern-private.h"

#include <string.h>

/* Begin a match of the strings at these indexes. */
static struct sxe__lua_match
match_of(lua_State *L, int subject, int pattern)
{
    size_t length, pattern_length;
    const char *text = luaL_checklstring(L, subject, &length);
    const char *pattern_text = luaL_checklstring(L, pattern, &pattern_length);

    return (struct sxe__lua_match){.L = L,
                                   .subject = text,
                                   .subject_end = text + length,
                                   .pattern_end = pattern_text + pattern_length};
}

/* Argument 3 of find, match and gmatch as an offset. A place after the end of the string becomes
 * length + 1. */
static size_t
offset_of(lua_State *L, size_t length)
{
    lua_Integer place = luaL_optinteger(L, 3, 1);

    if (place > 0)
        return (size_t)place - 1 > length ? length + 1 : (size_t)place - 1;
    if (place == 0 || place < -(lua_Integer)length)
        return 0;
    return length - (size_t)-place;
}

/* ---- find, match ---- */

static bool
is_plain_pattern(const char *pattern, const char *end)
{
    while (pattern < end && (*pattern == '\0' || strchr("^$*+?.([%-", *pattern) == NULL))
        pattern++;
    return pattern == end;
}

static int
find_plain(lua_State *L, const struct sxe__lua_match *match, size_t offset, const char *text)
{
    const size_t length = (size_t)(match->pattern_end - text);
    const char *found =
        memmem(match->subject + offset, (size_t)(match->subject_end - match->subject) - offset,
               text, length);

    if (found == NULL) {
        luaL_pushfail(L);
        return 1;
    }
    lua_pushinteger(L, found - match->subject + 1);
    lua_pushinteger(L, found - match->subject + (ptrdiff_t)length);
    return 2;
}

/* Find the first match from offset on. Returns the match's end, and its start in *start; NULL:
 * there is no match. */
static const char *
search_text(struct sxe__lua_match *match, size_t offset, const char *pattern, const char **start)
{
    const bool is_anchored = *pattern == '^' && pattern < match->pattern_end;
    const char *end = NULL;

    for (*start = match->subject + offset; *start <= match->subject_end; ++*start) {
        end = sxe__lua_match_at(match, *start, pattern + is_anchored);
        if (end != NULL || is_anchored)
            break;
    }
    return end;
}

static int
find_or_match(lua_State *L, bool is_find)
{
    struct sxe__lua_match match = match_of(L, 1, 2);
    const char *pattern = lua_tostring(L, 2);
    const size_t offset = offset_of(L, (size_t)(match.subject_end - match.subject));
    const char *start, *end;

    if (offset > (size_t)(match.subject_end - match.subject)) {
        luaL_pushfail(L);
        return 1;
    }
    if (is_find && (lua_toboolean(L, 4) || is_plain_pattern(pattern, match.pattern_end)))
        return find_plain(L, &match, offset, pattern);
    end = search_text(&match, offset, pattern, &start);
    if (end == NULL) {
        luaL_pushfail(L);
        return 1;
    }
    if (!is_find)
        return sxe__lua_match_captures(&match, start, end);
    lua_pushinteger(L, start - match.subject + 1);
    lua_pushinteger(L, end - match.subject);
    return 2 + sxe__lua_match_captures(&match, NULL, NULL);
}

static int
string_find(lua_State *L)
{
    return find_or_match(L, true);
}

static int
match_pattern_once(lua_State *L)
{
    return find_or_match(L, false);
}

/* ---- gmatch ---- */

/* Where gmatch is in its string. The struct lives in a userdata, the third upvalue of
 * next_gmatch. */
struct walk {
    size_t offset;   /* where the next attempt to match begins */
    size_t last_end; /* where the last match ended, plus 1; 0: there was none */
};

/* Find the next match. Upvalues: the string, the pattern, the walk. */
static int
next_gmatch(lua_State *L)
{
    struct sxe__lua_match match = match_of(L, lua_upvalueindex(1), lua_upvalueindex(2));
    const char *pattern = lua_tostring(L, lua_upvalueindex(2));
    struct walk *walk = lua_touserdata(L, lua_upvalueindex(3));
    const char *last_end = walk->last_end == 0 ? NULL : match.subject + walk->last_end - 1;

    for (const char *start = match.subject + walk->offset; start <= match.subject_end; start++) {
        const char *end = sxe__lua_match_at(&match, start, pattern);

        if (end != NULL && end != last_end) {
            walk->offset = (size_t)(end - match.subject);
            walk->last_end = walk->offset + 1;
            return sxe__lua_match_captures(&match, start, end);
        }
    }
    return 0;
}

static int
l_gmatch(lua_State *L)
{
    const struct sxe__lua_match match = match_of(L, 1, 2);
    const size_t offset = offset_of(L, (size_t)(match.subject_end - match.subject));

    lua_settop(L, 2);
    *(struct walk *)lua_newuserdatauv(L, sizeof(struct walk), 0) = (struct walk){.offset = offset};
    lua_pushcclosure(L, next_gmatch, 3);
    return 1;
}

/* ---- gsub ---- */

enum { REPLACEMENT = 3 };

/* Add the replacement string for a match, with the captures that its %0 to %9 name. */
static void
add_replacement_text(struct sxe__lua_match *match, luaL_Buffer *buffer, const char *start,
                     const char *end)
{
    size_t length;
    const char *text = lua_tolstring(match->L, REPLACEMENT, &length);
    const char *text_end = text + length;
    const char *percent;

    while ((percent = memchr(text, '%', (size_t)(text_end - text))) != NULL) {
        luaL_addlstring(buffer, text, (size_t)(percent - text));
        sxe__lua_match_steps(match, 1);
        if (percent[1] == '%') {
            luaL_addchar(buffer, '%');
        } else if (percent[1] == '0') {
            luaL_addlstring(buffer, start, (size_t)(end - start));
        } else if (percent[1] >= '1' && percent[1] <= '9') {
            sxe__lua_match_capture(match, (unsigned)(percent[1] - '1'), start, end);
            luaL_addvalue(buffer);
        } else {
            luaL_error(match->L, "invalid use of '%%' in replacement string");
        }
        text = percent + 2;
    }
    luaL_addlstring(buffer, text, (size_t)(text_end - text));
}

/* Add the value from a table or function as the replacement. False: the value is nil or false, so
 * the text of the match stays. */
static bool
add_replacement_value(struct sxe__lua_match *match, luaL_Buffer *buffer, const char *start,
                      const char *end)
{
    lua_State *L = match->L;

    if (lua_type(L, REPLACEMENT) == LUA_TFUNCTION) {
        lua_pushvalue(L, REPLACEMENT);
        lua_call(L, sxe__lua_match_captures(match, start, end), 1);
    } else {
        sxe__lua_match_capture(match, 0, start, end);
        lua_gettable(L, REPLACEMENT);
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(buffer, start, (size_t)(end - start));
        return false;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    luaL_addvalue(buffer);
    return true;
}

static bool
replace_match(struct sxe__lua_match *match, luaL_Buffer *buffer, const char *start, const char *end)
{
    const int type = lua_type(match->L, REPLACEMENT);

    if (type == LUA_TFUNCTION || type == LUA_TTABLE)
        return add_replacement_value(match, buffer, start, end);
    add_replacement_text(match, buffer, start, end);
    return true;
}

/* Replace up to `most` matches. False: no match was replaced, so the string stays the same. */
static bool
replace_all_matches(struct sxe__lua_match *match, luaL_Buffer *buffer, lua_Integer most,
                    lua_Integer *done)
{
    const char *pattern = lua_tostring(match->L, 2);
    const bool is_anchored = *pattern == '^' && pattern < match->pattern_end;
    const char *at = match->subject;
    const char *last_end = NULL;
    bool has_changed = false;

    while (*done < most) {
        const char *end = sxe__lua_match_at(match, at, pattern + is_anchored);

        if (end != NULL && end != last_end) {
            ++*done;
            has_changed |= replace_match(match, buffer, at, end);
            at = last_end = end;
        } else if (at < match->subject_end) {
            luaL_addchar(buffer, *at++);
        } else {
            break;
        }
        if (is_anchored)
            break;
    }
    luaL_addlstring(buffer, at, (size_t)(match->subject_end - at));
    return has_changed;
}

static int
l_gsub(lua_State *L)
{
    struct sxe__lua_match match = match_of(L, 1, 2);
    const lua_Integer most =
        luaL_optinteger(L, 4, (lua_Integer)(match.subject_end - match.subject) + 1);
    const int type = lua_type(L, REPLACEMENT);
    lua_Integer done = 0;
    luaL_Buffer buffer;

    luaL_argexpected(L,
                     type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
                         type == LUA_TTABLE,
                     REPLACEMENT, "string/function/table");
    luaL_buffinit(L, &buffer);
    if (replace_all_matches(&match, &buffer, most, &done))
        luaL_pushresult(&buffer);
    else
        lua_pushvalue(L, 1);
    lua_pushinteger(L, done);
    return 2;
}

void
sxe__lua_open_patterns(lua_State *L)
{
    static const luaL_Reg functions[] = {{"find", string_find},
                                         {"match", match_pattern_once},
                                         {"gmatch", l_gmatch},
                                         {"gsub", l_gsub},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
