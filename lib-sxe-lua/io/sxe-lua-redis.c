/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.redis", a client of Redis. Connections, their commands and timeouts are in
 * sxe-lua-redis.lua, and the others call it:
 *
 *     -options     the names, types and ranges of options
 *     -commands    what differs between commands
 *     -handles     pipelines, transactions and subscriptions
 *     -sentinel    masters that Sentinels watch
 *     -route       commands and handles of a client of several servers
 *     -cluster     a client of a cluster
 *     -shards      groups of servers without a cluster: the group of a key, the health of servers
 *     -sharded     a client of such groups
 *
 * They call sxe-lua-redis-encode.c and sxe-lua-redis-reader.c for the protocol, get the bytes from
 * sxe.tcp, and have here:
 *
 *     is_idle       a connection that its server did not close, and where no byte is unread
 *     fill          bytes of a connection, into a reader
 *     atomic        makes a function during which no other task runs
 *     insist        makes a function that is called again if it raises, before the error goes on
 *     now           the time in seconds
 *     reset         closes a connection at once, whatever is on the way
 */
#include "sxe-lua-redis-private.h"

#include "sxe-lua-part-internal.h"
#include "sxe-lua-socket-private.h"

#include "sxe-io.h"

SXE__LUA_PART(redis, "lib-sxe-lua/io/sxe-lua-redis.lua");
SXE__LUA_PART(options, "lib-sxe-lua/io/sxe-lua-redis-options.lua");
SXE__LUA_PART(commands, "lib-sxe-lua/io/sxe-lua-redis-commands.lua");
SXE__LUA_PART(handles, "lib-sxe-lua/io/sxe-lua-redis-handles.lua");
SXE__LUA_PART(sentinel, "lib-sxe-lua/io/sxe-lua-redis-sentinel.lua");
SXE__LUA_PART(route, "lib-sxe-lua/io/sxe-lua-redis-route.lua");
SXE__LUA_PART(cluster, "lib-sxe-lua/io/sxe-lua-redis-cluster.lua");
SXE__LUA_PART(shards, "lib-sxe-lua/io/sxe-lua-redis-shards.lua");
SXE__LUA_PART(sharded, "lib-sxe-lua/io/sxe-lua-redis-sharded.lua");

/* A file, and the name of its function in the table that sxe-lua-redis.lua gets. */
struct named_part {
    const char *name;
    const struct sxe__lua_part *part;
};

/* is_idle(conn): whether the connection is open, and no bytes have come */
static int
is_idle(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = sxe__lua_check_socket(L, 1, SXE__LUA_CONN, &slot);

    lua_pushboolean(L, s != NULL && !(slot->flags & (SXE__LUA_SHUT | SXE__LUA_END_SEEN)) &&
                           SXE_BUF_USED(s) == 0);
    return 1;
}

/* Places in the stack of fill. */
enum { READER = 1, CONN, SECONDS };

/* If a chunk is full, as much as this is read at once after it: a large reply needs fewer turns of
 * the loop. It is little enough that its values are made in less than a millisecond, in which no
 * other task runs. */
enum { AHEAD = 48 * 1024 };

static int
go_on_filling(lua_State *L, int status, lua_KContext deadline_ns)
{
    struct sxe__lua_slot *slot;
    SXE *s = sxe__lua_check_socket(L, CONN, SXE__LUA_CONN, &slot);
    size_t length;
    char *room;

    if (status == LUA_YIELD && sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    if (s == NULL || (slot->flags & SXE__LUA_SHUT))
        return sxe__lua_fail_closed(L, slot);
    length = (size_t)SXE_BUF_USED(s);
    if (length == 0 && (slot->flags & SXE__LUA_END_SEEN))
        return sxe__lua_fail_closed(L, slot);
    if (length == 0)
        return sxe__lua_park_in(L, &slot->readers, (uint64_t)deadline_ns, go_on_filling,
                                deadline_ns);
    if (SXE_BUF_ROOM(s) == 0)
        length += AHEAD;
    room = sxe__lua_redis_room(L, length);
    s = sxe__lua_check_socket(L, CONN, SXE__LUA_CONN, &slot); /* a finalizer may have closed it */
    if (s != NULL)
        sxe__lua_redis_fed(L, sxe_io_take(s, room, length));
    lua_pushboolean(L, 1);
    return 1;
}

/* fill(reader, conn, seconds): wait for bytes and feed them to the reader. Returns true; or nil,
 * why, code. If the call fails or raises an error, no bytes were taken. */
static int
fill_reader(lua_State *L)
{
    lua_settop(L, SECONDS);
    return go_on_filling(L, LUA_OK, (lua_KContext)sxe__lua_deadline(L, SECONDS));
}

/* check_tls(options): raise an error for an option tls that tcp.connect would refuse. */
static int
check_redis_tls(lua_State *L)
{
    sxe__lua_tls_check(L, 1);
    return 0;
}

int
sxe__lua_open_redis(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"is_idle", is_idle},           {"fill", fill_reader},
        {"atomic", sxe__lua_atomic},    {"insist", sxe__lua_insist},
        {"now", sxe__lua_now_s},        {"reset", sxe__lua_conn_reset},
        {"check_tls", check_redis_tls}, {NULL, NULL}};
    static const struct named_part parts[] = {{"open_options", &options_part},
                                              {"open_commands", &commands_part},
                                              {"add_handles", &handles_part},
                                              {"add_sentinels", &sentinel_part},
                                              {"add_routes", &route_part},
                                              {"add_cluster", &cluster_part},
                                              {"add_shards", &shards_part},
                                              {"add_sharded", &sharded_part},
                                              {NULL, NULL}};

    sxe__lua_push_part(L, &redis_part);
    luaL_newlib(L, functions);
    sxe__lua_open_redis_encoder(L);
    sxe__lua_open_redis_reader(L);
    for (const struct named_part *part = parts; part->part != NULL; part++) {
        sxe__lua_push_part(L, part->part);
        lua_setfield(L, -2, part->name);
    }
    lua_call(L, 1, 1);
    return 1;
}
