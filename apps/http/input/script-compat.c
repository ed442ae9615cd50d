/* SPDX-License-Identifier: MIT
 *
 * Functions that LuaJIT has and Lua 5.4 lacks, for scripts written for wrk.
 */
#include "script-compat.h"

#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "script-lua.h"

/* Lua code that replaces coroutine.resume, so that the time limit (script-lua.h) knows which
 * coroutine runs. */
static const char prelude[] =
    "local truncated, truncated_format, watch = ...\n"
    "unpack = unpack or table.unpack\n"
    "loadstring = loadstring or load\n"
    "table.getn = table.getn or function(t) return #t end\n"
    "table.maxn = table.maxn or function(t)\n"
    "    local most = 0\n"
    "    for k in pairs(t) do most = type(k) == 'number' and k > most and k or most end\n"
    "    return most\n"
    "end\n"
    "math.pow = math.pow or function(x, y) return x ^ y end\n"
    "math.mod = math.mod or math.fmod\n"
    "math.log10 = math.log10 or function(x) return math.log(x, 10) end\n"
    "string.gfind = string.gfind or string.gmatch\n"
    "math.random, math.randomseed = truncated(math.random), truncated(math.randomseed)\n"
    "string.format = truncated_format(string.format)\n"
    "\n"
    "local function signed(x)\n"
    "    x = math.floor(x) & 0xffffffff\n"
    "    return x < 0x80000000 and x or x - 0x100000000\n"
    "end\n"
    "local function fold(combine)\n"
    "    return function(x, ...)\n"
    "        for _, y in ipairs{...} do x = combine(signed(x), signed(y)) end\n"
    "        return signed(x)\n"
    "    end\n"
    "end\n"
    "local function shift(by)\n"
    "    return function(x, n) return signed(by(signed(x) & 0xffffffff, n & 31)) end\n"
    "end\n"
    "bit = {\n"
    "    tobit = signed,\n"
    "    tohex = function(x) return ('%08x'):format(signed(x) & 0xffffffff) end,\n"
    "    bnot = function(x) return signed(~signed(x)) end,\n"
    "    band = fold(function(x, y) return x & y end),\n"
    "    bor = fold(function(x, y) return x | y end),\n"
    "    bxor = fold(function(x, y) return x ~ y end),\n"
    "    lshift = shift(function(x, n) return x << n end),\n"
    "    rshift = shift(function(x, n) return x >> n end),\n"
    "    arshift = function(x, n) return signed(x) // (1 << (n & 31)) end,\n"
    "    rol = shift(function(x, n) return x << n | x >> 32 - n end),\n"
    "    ror = shift(function(x, n) return x >> n | x << 32 - n end),\n"
    "}\n"
    "package.loaded.bit = bit\n"
    "\n"
    "local resume, current = coroutine.resume, nil\n"
    "local function back(before, ...)\n"
    "    current = before\n"
    "    watch(before)\n"
    "    return ...\n"
    "end\n"
    "function coroutine.resume(co, ...)\n"
    "    local before = current\n"
    "    if type(co) == 'thread' then current = co watch(co) end\n"
    "    return back(before, resume(co, ...))\n"
    "end\n"
    "local function results(ok, ...)\n"
    "    if ok then return ... end\n"
    "    error((...), 0)\n"
    "end\n"
    "function coroutine.wrap(f)\n"
    "    local co = coroutine.create(f)\n"
    "    return function(...) return results(coroutine.resume(co, ...)) end\n"
    "end\n";

/* Cut the fraction of a number that must be an integer, as LuaJIT does; Lua 5.4 would raise an
 * error. */
static bool
has_fraction(lua_State *L, int index)
{
    lua_Number number;

    if (lua_type(L, index) != LUA_TNUMBER || lua_isinteger(L, index))
        return false;
    number = lua_tonumber(L, index);
    return fabs(number) < 9e18 && trunc(number) != number;
}

static void
cut_fraction(lua_State *L, int index)
{
    if (has_fraction(L, index)) {
        lua_pushinteger(L, (lua_Integer)lua_tonumber(L, index));
        lua_replace(L, index);
    }
}

/* Call the original function, which is in upvalue 1, with all arguments. */
static int
call_original(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int
call_truncated(lua_State *L)
{
    for (int i = 1; i <= lua_gettop(L); i++)
        cut_fraction(L, i);
    return call_original(L);
}

/* A string.format that cuts the fractions of arguments that are formatted as integers. */
static int
call_format(lua_State *L)
{
    const char *format = lua_tostring(L, 1);
    int argument = 2;

    for (format = format == NULL ? NULL : strchr(format, '%'); format != NULL;
         format = strchr(format, '%')) {
        format += 1 + strspn(format + 1, "-+ #0123456789.");
        if (strchr("cdioxX", *format) != NULL)
            cut_fraction(L, argument);
        argument += *format != '%';
        format += *format != '\0';
    }
    return call_original(L);
}

static int
l_truncated(lua_State *L)
{
    lua_pushcclosure(L, call_truncated, 1);
    return 1;
}

static int
truncated_format(lua_State *L)
{
    lua_pushcclosure(L, call_format, 1);
    return 1;
}

static int
compat_watch(lua_State *L)
{
    lua_State *coroutine = lua_tothread(L, 1);

    load_lua_watch_coroutine(coroutine == NULL ? load_lua_of(L)->L : coroutine);
    return 0;
}

void
load_compat_open(lua_State *L)
{
    if (luaL_loadbuffer(L, prelude, sizeof(prelude) - 1, "=prelude") != LUA_OK)
        lua_error(L); /* this happens only if there is no memory */
    lua_pushcfunction(L, l_truncated);
    lua_pushcfunction(L, truncated_format);
    lua_pushcfunction(L, compat_watch);
    lua_call(L, 3, 0);
}
