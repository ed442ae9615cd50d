/* SPDX-License-Identifier: MIT
 *
 * Any bytes as replies of Redis: they give the same values whole and in parts, or are refused for
 * the same reason. Input: a byte that says how long the parts are, then the bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include <lualib.h>

#include "sxe-lua-private.h"
#include "sxe-lua-redis-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REPLY_MAX = 4096 };

static const char script[] =
    "local c, max = ...\n"
    "local function shown(value)\n"
    "    if type(value) ~= 'table' then return tostring(value) end\n"
    "    local parts = {}\n"
    "    for key, one in pairs(value) do\n"
    "        parts[#parts + 1] = shown(key) .. '=' .. shown(one)\n"
    "    end\n"
    "    table.sort(parts)\n"
    "    return '{' .. table.concat(parts, ',') .. '}'\n"
    "end\n"
    "local function read(bytes, step)\n"
    "    local reader, all = c.new_reader(max), {}\n"
    "    for i = 1, #bytes, step do\n"
    "        c.feed(reader, bytes:sub(i, i + step - 1))\n"
    "        repeat\n"
    "            local kind, value, code = c.next(reader)\n"
    "            all[#all + 1] = kind and kind .. shown(value) .. tostring(code)\n"
    "            if kind == 'bad' then return table.concat(all, '\\0') end\n"
    "        until not kind\n"
    "    end\n"
    "    return table.concat(all, '\\0')\n"
    "end\n"
    "return function(bytes, step)\n"
    "    local whole, parts = read(bytes, #bytes), read(bytes, step)\n"
    "    if whole ~= parts then error(('%q, not %q'):format(parts, whole)) end\n"
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
    sxe__lua_open_redis_reader(L);
    lua_pushinteger(L, REPLY_MAX);
    lua_call(L, 2, 1);
    return L;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;

    if (L == NULL)
        L = start();
    if (size < 2)
        return 0;
    lua_pushvalue(L, -1);
    lua_pushlstring(L, (const char *)data + 1, size - 1);
    lua_pushinteger(L, data[0] % 16 + 1);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK) {
        fprintf(stderr, "sxe-lua-redis-reader: %s\n", lua_tostring(L, -1));
        abort();
    }
    return 0;
}
