/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.tcp": tcp.serve, whose function runs as a task for each connection. Its
 * tcp.connect is in sxe-lua-connect.c.
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

enum {
    SERVERS_MAX = 64,
    CONNECTIONS_DEFAULT = 1000, /* of a server whose options have no `connections` */
    IP_SIZE = INET6_ADDRSTRLEN + IF_NAMESIZE
};

struct server {
    uint64_t listener; /* handle of the server's socket; 0: the server does not listen yet */
    uint64_t timeout_ns;
    uint64_t accepted;
    int function; /* the server's function: a reference in the registry */
    uint32_t generation;
    uint16_t port;
    bool is_used;
    char ip[IP_SIZE];
};

/* The servers, a list in a userdata of the state; NULL: the state is closed. */
static _Thread_local struct server *servers;

static int
forget_servers(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    servers = NULL;
    return 0;
}

/* ---- Serving ---- */

/* Called when the task of a connection has ended. */
static void
end_connection_task(lua_State *L, int status, int results, void *user)
{
    SXE *s = sxe_loop() == NULL ? NULL : sxe_from_handle((uintptr_t)user);

    SXE_UNUSED_PARAMETER(results);
    if (status == LUA_OK || status == LUA_YIELD) {
        if (s != NULL)
            sxe__lua_socket_close(s);
        return;
    }
    sxe__lua_log_error(L, "tcp connection");
    /* The task failed, so reset the connection: the peer must not take the part that it got for all
     * of the data. */
    if (s != NULL)
        sxe_abort(s);
}

static void
on_accepted(SXE *s)
{
    lua_State *L = sxe__lua_main(sxe__lua_current());
    struct server *server = &servers[(uintptr_t)s->user_data];
    struct sxe__lua_slot *slot = sxe__lua_adopt_unref(s);

    slot->timeout_ns = server->timeout_ns;
    server->accepted++;
    lua_rawgeti(L, LUA_REGISTRYINDEX, server->function);
    sxe__lua_push_socket(L, SXE__LUA_CONN, s);
    if (sxe__lua_start(L, 1, true, end_connection_task, (void *)(uintptr_t)sxe_handle(s)) == 0) {
        SXE_WARN_ID(s->id, "closing: no task is free for it; configure more than %u",
                    sxe__lua_config()->tasks);
        sxe_abort(s);
    }
}

/* Make a server listen: 0 or -errno. */
static int
listen_tcp_server(struct server *server)
{
    SXE *s = sxe_new_tcp(NULL, server->ip, server->port, on_accepted, sxe__lua_conn_on_read,
                         sxe__lua_conn_on_close);
    int result;

    if (s == NULL)
        return -errno;
    sxe__lua_adopt(s);
    s->user_data = (void *)(uintptr_t)(server - servers);
    sxe_set_half_close(s, true);
    result = sxe_listen(s);
    if (result < 0) {
        sxe_close(s);
        return result;
    }
    server->listener = sxe_handle(s);
    server->port = sxe_local_port(s);
    return 0;
}

static void
give_server(lua_State *L, struct server *server)
{
    luaL_unref(L, LUA_REGISTRYINDEX, server->function);
    server->is_used = false;
    server->generation++;
    server->listener = 0;
}

/* Continues tcp.listen after sxe_init. */
static int
listen_again_later(lua_State *L)
{
    struct server *server = &servers[lua_tointeger(L, lua_upvalueindex(1))];
    int result;

    if (server->generation != lua_tointeger(L, lua_upvalueindex(2)))
        return 0;
    sxe__lua_sockets_open(L);
    result = listen_tcp_server(server);
    if (result < 0)
        return luaL_error(L, "tcp.serve cannot listen at %s port %d: %s", server->ip, server->port,
                          strerror(-result));
    return 0;
}

static struct server *
free_server(lua_State *L)
{
    unsigned i = 0;

    if (servers == NULL)
        luaL_error(L, "tcp.serve: the state is closed");
    while (i < SERVERS_MAX && servers[i].is_used)
        i++;
    if (i == SERVERS_MAX)
        luaL_error(L, "tcp.serve: %d servers at most", SERVERS_MAX);
    return &servers[i];
}

static lua_Integer
number_of_connections(lua_State *L, int options)
{
    lua_Integer number = CONNECTIONS_DEFAULT;
    int is_number = 1;

    if (lua_getfield(L, options, "connections") != LUA_TNIL)
        number = sxe__lua_option_integer(L, &is_number);
    if (!is_number || number <= 0 || number >= INT32_MAX)
        luaL_error(L, "tcp.serve: connections must be a number of sockets from 1 on, not %s",
                   luaL_tolstring(L, -1, NULL));
    lua_pop(L, 1);
    return number;
}

/* Turn the options, or the function, at stack index 3 into a table; push its handler. */
static void
check_serve_options(lua_State *L)
{
    static const char *const names[] = {"handler", "connections", "timeout", NULL};

    if (lua_isfunction(L, 3)) {
        lua_createtable(L, 0, 1);
        lua_pushvalue(L, 3);
        lua_setfield(L, -2, "handler");
        lua_replace(L, 3);
    }
    sxe__lua_option_names(L, 3, names, "tcp.serve");
    lua_getfield(L, 3, "handler");
    luaL_argcheck(L, lua_isfunction(L, -1), 3, "a function is expected, or a table with handler");
}

static int
push_server(lua_State *L, const struct server *server)
{
    sxe__lua_push_handle(L, SXE__LUA_TCP_SERVER, (uint32_t)(server - servers), server->generation);
    return 1;
}

/* tcp.serve(ip, port, function | {handler =, connections =, timeout =}) */
static int
l_tcp_serve(lua_State *L)
{
    const char *ip = sxe__lua_check_ip(L, 1);
    uint16_t port = sxe__lua_check_port(L, 2);
    struct server made = {.port = port, .is_used = true};
    struct server *server;
    lua_Integer connections;
    int result;

    lua_settop(L, 3);
    check_serve_options(L);
    connections = number_of_connections(L, 3);
    made.timeout_ns = sxe__lua_option_timeout(L, 3);
    luaL_argcheck(L, strlen(ip) < sizeof(made.ip), 1, "too long");
    memcpy(made.ip, ip, strlen(ip));
    if (sxe_loop() != NULL)
        sxe__lua_sockets_open(L);
    server = free_server(L);
    made.generation = server->generation;
    made.function = luaL_ref(L, LUA_REGISTRYINDEX);
    *server = made;
    if (sxe_loop() == NULL) {
        sxe_register((unsigned)connections + 1, 0);
        lua_pushinteger(L, server - servers);
        lua_pushinteger(L, server->generation);
        lua_pushcclosure(L, listen_again_later, 2);
        sxe__lua_queue(L);
        return push_server(L, server);
    }
    result = listen_tcp_server(server);
    if (result == 0)
        return push_server(L, server);
    give_server(L, server);
    return sxe__lua_fail_errno(L, -result, lua_pushfstring(L, "tcp.serve: %s port %d", ip, port));
}

/* The server of a handle; NULL: the server was closed. */
static struct server *
server_at(uint32_t index, uint32_t generation)
{
    struct server *server = servers == NULL ? NULL : &servers[index];

    if (server != NULL && server->is_used &&
        (server->generation & SXE__LUA_GENERATION_MASK) == generation)
        return server;
    return NULL;
}

/* Close a server. False: the server was closed before. */
static bool
close_server(lua_State *L, struct server *server)
{
    if (server == NULL)
        return false;
    if (server->listener != 0 && sxe_loop() != NULL)
        sxe_close(sxe_from_handle(server->listener));
    give_server(L, server);
    return true;
}

static int
l_server_close(lua_State *L)
{
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_TCP_SERVER, &generation);

    if (!close_server(L, server_at(index, generation)))
        return sxe__lua_fail(L, "closed");
    lua_pushboolean(L, 1);
    return 1;
}

/* Called at the end of the scope of a <close> variable. */
static void
close_server_at_end(lua_State *L, uint32_t index, uint32_t generation)
{
    (void)close_server(L, server_at(index, generation));
}

static int
get_of_server(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct server *server = server_at(index, generation);
    bool is_addr = strcmp(name, "addr") == 0;
    bool is_port = strcmp(name, "port") == 0;

    if (!is_addr && !is_port && strcmp(name, "accepted") != 0)
        return 0;
    if (server == NULL)
        lua_pushnil(L);
    else if (is_addr)
        lua_pushstring(L, server->ip);
    else
        lua_pushinteger(L, is_port ? server->port : (lua_Integer)server->accepted);
    return 1;
}

int
sxe__lua_open_tcp(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"serve", l_tcp_serve}, {"connect", sxe__lua_tcp_connect}, {NULL, NULL}};
    static const luaL_Reg server_methods[] = {{"close", l_server_close}, {NULL, NULL}};
    static const struct sxe__lua_class_spec server_spec = {.name = "sxe.tcp server",
                                                           .methods = server_methods,
                                                           .get = get_of_server,
                                                           .close = close_server_at_end};
    void *memory;

    sxe__lua_open_conn(L);
    sxe__lua_register_class(L, SXE__LUA_TCP_SERVER, &server_spec);
    memory = lua_newuserdatauv(L, SERVERS_MAX * sizeof(*servers), 0);
    memset(memory, 0, SERVERS_MAX * sizeof(*servers));
    luaL_ref(L, LUA_REGISTRYINDEX);
    sxe__lua_at_end(L, forget_servers);
    servers = memory;
    sxe__lua_open_resolve(L);
    if (sxe_loop() == NULL)
        sxe_register(sxe__lua_config()->sockets, 0);
    luaL_newlib(L, functions);
    return 1;
}
