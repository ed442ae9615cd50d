/* SPDX-License-Identifier: MIT
 *
 * The module sxe.regex: finding a match, and pushing it. sxe-regex.lua has the rest.
 */
#include "sxe-regex.h"
#include "sxe-regex-private.h"

#include "sxe-lua-internal.h"
#include "sxe-lua-part-internal.h"

SXE__LUA_PART(regex, "lib-sxe-regex/sxe-regex.lua");

enum { MESSAGE_MAX = 256 };

/* ---- Failures ---- */

static bool
is_wrong_utf(int result)
{
    return result <= PCRE2_ERROR_UTF8_ERR1 && result >= PCRE2_ERROR_UTF8_ERR21;
}

/* Push nil; and if the search failed, why, and the byte that is not UTF-8. Returns how many values
 * these are. */
static int
push_no_match(lua_State *L, const struct sxe__regex *regex, int result)
{
    char message[MESSAGE_MAX];

    lua_pushnil(L);
    if (result == PCRE2_ERROR_NOMATCH)
        return 1;
    if (result == PCRE2_ERROR_NOMEMORY)
        return sxe__regex_raise_memory(L);
    if (result == PCRE2_ERROR_MATCHLIMIT) {
        lua_pushliteral(L, "match limit: the pattern takes too many steps in this text");
    } else if (result == PCRE2_ERROR_HEAPLIMIT || result == PCRE2_ERROR_JIT_STACKLIMIT) {
        lua_pushliteral(L, "match limit: the pattern takes too much memory in this text");
    } else if (result == PCRE2_ERROR_BADUTFOFFSET) {
        lua_pushliteral(L, "regex: the search starts inside of a character of UTF-8");
    } else if (is_wrong_utf(result)) {
        const lua_Integer byte = (lua_Integer)pcre2_get_startchar(regex->engine->data) + 1;

        lua_pushfstring(L, "regex: the text is not UTF-8, at byte %I", (LUAI_UACINT)byte);
        lua_pushinteger(L, byte);
        return 3;
    } else {
        (void)pcre2_get_error_message(result, (PCRE2_UCHAR *)message, sizeof(message));
        lua_pushfstring(L, "regex: %s", message);
    }
    return 2;
}

/* ---- Matches ---- */

/* Push a group of a match; false: it took no part. */
static void
push_group(lua_State *L, const struct sxe_span *subject, const size_t *offsets, uint32_t group)
{
    const size_t from = offsets[2 * group], past = offsets[2 * group + 1];

    if (from == PCRE2_UNSET)
        lua_pushboolean(L, false);
    else
        lua_pushlstring(L, subject->base + from, past - from);
}

/* Push a table: [0] has the match, [1] and so on the groups, and names name groups, too. If groups
 * share a name, the first of them that took part counts. */
static void
push_match(lua_State *L, const struct sxe__regex *regex, const struct sxe_span *subject,
           const size_t *offsets)
{
    int names, match;
    lua_Integer count;

    lua_getiuservalue(L, 1, 1);
    names = lua_gettop(L);
    count = (lua_Integer)lua_rawlen(L, names);
    lua_createtable(L, (int)regex->groups, (int)count / 2 + 1);
    match = names + 1;
    for (uint32_t group = 0; group <= regex->groups; group++) {
        push_group(L, subject, offsets, group);
        lua_rawseti(L, match, group);
    }
    for (lua_Integer i = 1; i < count; i += 2) {
        lua_rawgeti(L, names, i + 1);
        lua_pushvalue(L, -1);
        lua_rawget(L, match);
        if (!lua_toboolean(L, -1)) {
            lua_rawgeti(L, names, i);
            lua_rawget(L, match);
            lua_replace(L, -2);
        }
        lua_rawset(L, match);
    }
    lua_remove(L, names);
}

/* ---- Calls ---- */

/* Search from the byte at an argument, which counts from 1, or from the end if it is negative. */
static int
search_from(lua_State *L, const struct sxe__regex *regex, int argument, struct sxe_span *subject,
            size_t *offsets)
{
    lua_Integer init = luaL_optinteger(L, argument, 1);
    const lua_Integer length = (lua_Integer)subject->length;

    if (init < 0)
        init = init + length + 1 > 0 ? init + length + 1 : 1;
    else if (init == 0)
        init = 1;
    if (init > length + 1)
        return PCRE2_ERROR_NOMATCH;
    return sxe__regex_search(L, regex, subject, (size_t)init - 1, 0, offsets);
}

/* regex:match(subject [, init]): a table of the match; nil; or nil, why */
static int
l_regex_match(lua_State *L)
{
    const struct sxe__regex *regex = sxe__regex_check(L, 1);
    size_t offsets[SXE__REGEX_OFFSETS];
    struct sxe_span subject;
    int result;

    subject.base = luaL_checklstring(L, 2, &subject.length);
    result = search_from(L, regex, 3, &subject, offsets);
    if (result < 0)
        return push_no_match(L, regex, result);
    push_match(L, regex, &subject, offsets);
    return 1;
}

/* regex:find(subject [, init]): from, to, groups...; nil; or nil, why */
static int
l_regex_find(lua_State *L)
{
    const struct sxe__regex *regex = sxe__regex_check(L, 1);
    size_t offsets[SXE__REGEX_OFFSETS];
    struct sxe_span subject;
    int result;

    subject.base = luaL_checklstring(L, 2, &subject.length);
    result = search_from(L, regex, 3, &subject, offsets);
    if (result < 0)
        return push_no_match(L, regex, result);
    if (!lua_checkstack(L, (int)regex->groups + 2))
        return sxe__regex_raise_memory(L);
    lua_pushinteger(L, (lua_Integer)offsets[0] + 1);
    lua_pushinteger(L, (lua_Integer)offsets[1]);
    for (uint32_t group = 1; group <= regex->groups; group++)
        push_group(L, &subject, offsets, group);
    return (int)regex->groups + 2;
}

/* step(regex, subject, at, is_empty, is_checked): the next match at the byte `at`, which counts
 * from 0, or later: from, past, match; nil; or nil, why. is_empty: the last match was empty and
 * ended there, so this one must not be. is_checked: an earlier step saw that the subject is
 * UTF-8. */
static int
l_regex_step(lua_State *L)
{
    const struct sxe__regex *regex = sxe__regex_check(L, 1);
    const uint32_t options = (lua_toboolean(L, 4) ? PCRE2_NOTEMPTY_ATSTART : 0) |
                             (lua_toboolean(L, 5) ? PCRE2_NO_UTF_CHECK : 0);
    size_t offsets[SXE__REGEX_OFFSETS];
    struct sxe_span subject;
    int result;

    subject.base = lua_tolstring(L, 2, &subject.length);
    result = sxe__regex_search(L, regex, &subject, (size_t)lua_tointeger(L, 3), options, offsets);
    if (result < 0)
        return push_no_match(L, regex, result);
    lua_pushinteger(L, (lua_Integer)offsets[0]);
    lua_pushinteger(L, (lua_Integer)offsets[1]);
    push_match(L, regex, &subject, offsets);
    return 3;
}

/* groups(regex): the number of groups, and a table whose keys are the names of groups */
static int
l_regex_groups(lua_State *L)
{
    const struct sxe__regex *regex = sxe__regex_check(L, 1);

    lua_pushinteger(L, regex->groups);
    lua_newtable(L);
    lua_getiuservalue(L, 1, 1);
    for (lua_Integer i = 2; lua_rawgeti(L, -1, i) == LUA_TSTRING; i += 2) {
        lua_pushboolean(L, true);
        lua_rawset(L, -4);
    }
    lua_pop(L, 2);
    return 2;
}

/* size(regex, pattern): bytes of the compiled pattern, without machine code, and of its text */
static int
l_regex_size(lua_State *L)
{
    const struct sxe__regex *regex = sxe__regex_check(L, 1);
    size_t size = 0, length;

    (void)luaL_checklstring(L, 2, &length);
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_SIZE, &size);
    lua_pushinteger(L, (lua_Integer)(size + length));
    return 1;
}

/* ---- The module ---- */

/* Push a table for sxe-regex.lua: functions, and whether this is a realm; the methods of the class,
 * and the table of the cache's generations. */
static void
push_native(lua_State *L)
{
    static const luaL_Reg native[] = {
        {"step", l_regex_step}, {"groups", l_regex_groups}, {"size", l_regex_size}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"match", l_regex_match}, {"find", l_regex_find}, {NULL, NULL}};

    luaL_newlib(L, native);
    lua_pushboolean(L, sxe__lua_is_realm(L));
    lua_setfield(L, -2, "is_realm");
    sxe__regex_push_engine(L);
    sxe__regex_push_class(L);
    luaL_newlib(L, methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__index");
    lua_insert(L, -3);
    lua_createtable(L, 2, 0);
    lua_pushvalue(L, -1);
    (void)lua_setiuservalue(L, -4, 1);
    lua_insert(L, -3);
    lua_pushcclosure(L, sxe__regex_l_compile, 2);
    lua_setfield(L, -4, "compile");
}

int
sxe_regex_open(lua_State *L)
{
    sxe__lua_push_part(L, &regex_part);
    push_native(L);
    lua_call(L, 3, 1);
    return 1;
}
