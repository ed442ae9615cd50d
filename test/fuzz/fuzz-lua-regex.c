/* SPDX-License-Identifier: MIT
 *
 * Any regular expression on any text: sxe.regex, which searches in windows, finds and replaces what
 * PCRE2 finds and replaces in one search. Input: a byte of flags, a byte that says how often the
 * text is repeated, so that it may have several windows; the pattern up to a
 * line feed; the text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-core-private.h"
#include "sxe-regex-private.h"
#include "sxe-regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SUBJECT_MAX = 64, PATTERN_MAX = 48, STEPS = 300, ROOM = 1 << 20 };

static const char script[] =
    "local one_search, regex = ..., require 'sxe.regex'\n"
    "return function(pattern, options, subject)\n"
    "    local flags = ''\n"
    "    for i, flag in ipairs{'i', 'm', 's', 'x', 'u', 'U', 'a'} do\n"
    "        if options >> i & 1 ~= 0 then flags = flags .. flag end\n"
    "    end\n"
    "    local re = regex.compile(pattern, flags)\n"
    "    if not re then return end\n"
    "    local from, to, text, count = one_search(pattern, options, subject)\n"
    "    if from == nil then return end\n"
    "    local my_from, my_to = re:find(subject)\n"
    "    if not my_from and my_to then return end\n"
    "    if (my_from or 0) ~= from or (my_to or 0) ~= to then\n"
    "        error(('%q %s: found at %s, not at %s'):format(pattern, flags, my_from, from))\n"
    "    end\n"
    "    -- an anchored pattern ends after an empty match, but pcre2_substitute tries the next "
    "byte\n"
    "    if not text or options & 128 ~= 0 then return end\n"
    "    local my_text, my_count = re:gsub(subject, '<$0>')\n"
    "    if my_text and (my_text ~= text or my_count ~= count) then\n"
    "        error(('%q %s: replaced %d times, not %d'):format(pattern, flags, my_count, count))\n"
    "    end\n"
    "end\n";

/* one_search(pattern, options, subject): from, to, the text with all matches in <>, their number; 0
 * and 0 if there is no match; nil if PCRE2 takes too many steps or refuses. The text is false if
 * PCRE2 cannot replace all. */
static int
one_search(lua_State *L)
{
    static const uint32_t flags[] = {PCRE2_CASELESS, PCRE2_MULTILINE,       PCRE2_DOTALL,
                                     PCRE2_EXTENDED, PCRE2_UTF | PCRE2_UCP, PCRE2_UNGREEDY,
                                     PCRE2_ANCHORED};
    static PCRE2_UCHAR room[ROOM];
    size_t length, subject_length, at, made = ROOM;
    const char *pattern = lua_tolstring(L, 1, &length);
    const lua_Integer chosen = lua_tointeger(L, 2);
    PCRE2_SPTR subject = (PCRE2_SPTR)lua_tolstring(L, 3, &subject_length);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    uint32_t options = 0;
    int error, results = 1;

    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        options |= chosen >> (i + 1) & 1 ? flags[i] : 0;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, length, options, &error, &at, NULL);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);

    pcre2_set_match_limit(context, STEPS);
    pcre2_set_heap_limit(context, 1024);
    const int found = pcre2_match(code, subject, subject_length, 0, 0, data, context);
    lua_pushnil(L);
    if (found == PCRE2_ERROR_NOMATCH || found > 0) {
        const size_t *offsets = pcre2_get_ovector_pointer(data);

        lua_pushinteger(L, found > 0 ? (lua_Integer)offsets[0] + 1 : 0);
        lua_pushinteger(L, found > 0 ? (lua_Integer)offsets[1] : 0);
        const int count =
            pcre2_substitute(code, subject, subject_length, 0, PCRE2_SUBSTITUTE_GLOBAL, data,
                             context, (PCRE2_SPTR) "<$0>", 4, room, &made);
        if (count >= 0)
            lua_pushlstring(L, (const char *)room, made);
        else
            lua_pushboolean(L, false);
        lua_pushinteger(L, count);
        results = 4;
    }
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    pcre2_match_context_free(context);
    return results;
}

static lua_State *
start(void)
{
    static const struct sxe_lua_config config = {
        .cpu_ms = 1000000, .slice_ms = 1000000, .regex = sxe_regex_open};
    struct sxe_lua *lua = sxe_lua_new(&config);
    lua_State *L = lua != NULL ? sxe__lua_main(lua) : NULL;

    if (L == NULL || luaL_loadstring(L, script) != LUA_OK)
        abort();
    lua_pushcfunction(L, one_search);
    lua_call(L, 1, 1);
    return L;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    const char *pattern = (const char *)data + 2;
    const char *end;
    luaL_Buffer subject;

    if (L == NULL)
        L = start();
    end = size <= 2 ? NULL : memchr(pattern, '\n', size - 2);
    if (end == NULL || end - pattern > PATTERN_MAX)
        return 0;
    size -= (size_t)(end + 1 - (const char *)data);
    size = size < SUBJECT_MAX ? size : SUBJECT_MAX;
    lua_pushvalue(L, -1);
    lua_pushlstring(L, pattern, (size_t)(end - pattern));
    lua_pushinteger(L, data[0]);
    luaL_buffinit(L, &subject);
    for (unsigned i = 0; i <= data[1]; i++)
        luaL_addlstring(&subject, end + 1, size);
    luaL_pushresult(&subject);
    if (lua_pcall(L, 3, 0, 0) != LUA_OK) {
        fprintf(stderr, "sxe-regex: %s\n", lua_tostring(L, -1));
        abort();
    }
    return 0;
}
