/* SPDX-License-Identifier: MIT
 *
 * Any pattern on any string: find, match, gmatch and gsub of a sandbox return what Lua's own do, or
 * raise the same error. Input: two bytes of options, the pattern up to a line feed, the string.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lualib.h>

#include "sxe-lua-pattern-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Patterns that take long in Lua's own matcher consist of repetitions, and of items that these
 * repeat. */
enum { REPETITIONS_MAX = 4, SUBJECT_MAX = 64, PATTERN_MAX = 48 };

static const char script[] =
    "local ours = ...\n"
    "local replacements = {'<%0>', '%1%%', '%2', '%', {a = 'A', b = false, c = {}},\n"
    "    function(...) return ... end}\n"
    "local function results(...)\n"
    "    local all = table.pack(...)\n"
    "    for i = 1, all.n do\n"
    "        all[i] = tostring(all[i]):gsub(\"to '[^']*'\", 'to'):gsub('table: .*', 'table')\n"
    "    end\n"
    "    return table.concat(all, '\\0', 1, all.n)\n"
    "end\n"
    "local function walk(gmatch, s, p, from)\n"
    "    local found = {}\n"
    "    for a, b in gmatch(s, p, from) do found[#found + 1] = results(a, b) end\n"
    "    return table.concat(found, '\\1')\n"
    "end\n"
    "local function same(what, lua, mine, ...)\n"
    "    local a, b = results(pcall(lua, ...)), results(pcall(mine, ...))\n"
    "    if a ~= b then error(('%s: %q, not %q'):format(what, b, a)) end\n"
    "end\n"
    "local function my_walk(...) return walk(ours.gmatch, ...) end\n"
    "local function lua_walk(...) return walk(string.gmatch, ...) end\n"
    "return function(s, p, from, choice)\n"
    "    local most = choice >= 128 and choice % 8 or nil\n"
    "    same('find', string.find, ours.find, s, p, from)\n"
    "    same('plain find', string.find, ours.find, s, p, from, true)\n"
    "    same('match', string.match, ours.match, s, p, from)\n"
    "    same('gmatch', lua_walk, my_walk, s, p, from)\n"
    "    same('gsub', string.gsub, ours.gsub, s, p, replacements[choice % 6 + 1], most)\n"
    "end\n";

static lua_State *
start(void)
{
    static const struct sxe_lua_config config = {.cpu_ms = 1000000, .slice_ms = 1000000};
    struct sxe_lua *lua = sxe_lua_new(&config);
    lua_State *L = lua != NULL ? sxe__lua_main(lua) : NULL;

    if (L == NULL || luaL_loadstring(L, script) != LUA_OK)
        abort();
    lua_newtable(L);
    sxe__lua_open_patterns(L);
    lua_call(L, 1, 1);
    return L;
}

static bool
is_short(const char *pattern, size_t length)
{
    unsigned repetitions = 0;

    for (size_t i = 0; i < length; i++)
        repetitions += memchr("*+-?", pattern[i], 4) != NULL;
    return repetitions <= REPETITIONS_MAX && length <= PATTERN_MAX;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    const char *pattern = (const char *)data + 2;
    const char *end;

    if (L == NULL)
        L = start();
    end = size <= 2 ? NULL : memchr(pattern, '\n', size - 2);
    if (end == NULL || !is_short(pattern, (size_t)(end - pattern)))
        return 0;
    size -= (size_t)(end + 1 - (const char *)data);
    lua_pushvalue(L, -1);
    lua_pushlstring(L, end + 1, size < SUBJECT_MAX ? size : SUBJECT_MAX);
    lua_pushlstring(L, pattern, (size_t)(end - pattern));
    lua_pushinteger(L, (int8_t)data[0] % 8);
    lua_pushinteger(L, data[1]);
    if (lua_pcall(L, 4, 0, 0) != LUA_OK) {
        fprintf(stderr, "sxe-lua-pattern: %s\n", lua_tostring(L, -1));
        abort();
    }
    return 0;
}
