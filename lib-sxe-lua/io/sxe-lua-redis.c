/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.redis", a client of Redis. Connections, their commands and time are in
 * sxe-lua-redis.lua, pipelines, transactions and subscriptions in sxe-lua-redis-handles.lua. They
 * call sxe-lua-redis-reader.c for the protocol, get the bytes from sxe.tcp, and have here:
 *
 *     is_idle       a connection that its server did not close, and where no byte is unread
 *     now           seconds
 */
#include "sxe-lua-redis-private.h"

#include "sxe-lua-part-private.h"
#include "sxe-lua-socket-private.h"

SXE__LUA_PART(redis, "lib-sxe-lua/io/sxe-lua-redis.lua");
SXE__LUA_PART(handles, "lib-sxe-lua/io/sxe-lua-redis-handles.lua");

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

int
sxe__lua_open_redis(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"is_idle", is_idle}, {"now", sxe__lua_now_s}, {NULL, NULL}};

    sxe__lua_push_part(L, &redis_part);
    sxe__lua_open_redis_reader(L);
    luaL_setfuncs(L, functions, 0);
    sxe__lua_push_part(L, &handles_part);
    lua_setfield(L, -2, "add_handles");
    lua_call(L, 1, 1);
    return 1;
}
