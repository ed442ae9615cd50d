/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.redis", a client of Redis. Connections, their commands and time are in
 * sxe-lua-redis.lua, which calls sxe-lua-redis-reader.c for the protocol, gets the bytes from
 * sxe.tcp, and the two functions below:
 *
 *     is_idle       a connection that its server did not close, and where no byte is unread
 *     now           seconds
 */
#include "sxe-lua-redis-private.h"

#include "sxe-lua-clock.h"
#include "sxe-lua-socket-private.h"

/* The compiler runs in the root of the sources. Link-time optimisation may put this text and the
 * code below in different objects, so the labels are global. */
__asm__(".section .rodata\n"
        ".global sxe__lua_redis, sxe__lua_redis_end\n"
        ".hidden sxe__lua_redis, sxe__lua_redis_end\n"
        "sxe__lua_redis:\n"
        ".incbin \"lib-sxe-lua/io/sxe-lua-redis.lua\"\n"
        "sxe__lua_redis_end:\n"
        ".previous\n");
extern const char sxe__lua_redis[] __attribute__((visibility("hidden")));
extern const char sxe__lua_redis_end[] __attribute__((visibility("hidden")));

/* is_idle(conn) */
static int
is_idle(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = sxe__lua_check_socket(L, 1, SXE__LUA_CONN, &slot);

    lua_pushboolean(L, s != NULL && !(slot->flags & (SXE__LUA_SHUT | SXE__LUA_END_SEEN)) &&
                           SXE_BUF_USED(s) == 0);
    return 1;
}

static int
now_s(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)sxe_lua_get_clock()->now_ns() / 1e9);
    return 1;
}

int
sxe__lua_open_redis(lua_State *L)
{
    static const luaL_Reg functions[] = {{"is_idle", is_idle}, {"now", now_s}, {NULL, NULL}};

    if (luaL_loadbufferx(L, sxe__lua_redis, (size_t)(sxe__lua_redis_end - sxe__lua_redis),
                         "@lib-sxe-lua/io/sxe-lua-redis.lua", "t") != LUA_OK)
        return lua_error(L);
    sxe__lua_open_redis_reader(L);
    luaL_setfuncs(L, functions, 0);
    lua_call(L, 1, 1);
    return 1;
}
