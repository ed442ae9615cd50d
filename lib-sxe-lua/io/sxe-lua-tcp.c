/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.tcp": tcp.serve, whose function runs as a task for each connection, and
 * tcp.connect.
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

enum {
    SERVERS_MAX = 64,
    CONNECTIONS_DEFAULT = 1000, /* of a server that names none */
    IP_SIZE = INET6_ADDRSTRLEN + IF_NAMESIZE
};

#define UNIX_PREFIX "unix:"

struct server {
    uint64_t listener; /* sxe_handle(); 0: it does not listen yet */
    uint64_t timeout_ns;
    uint64_t accepted;
    int function; /* in the registry */
    uint32_t generation;
    uint16_t port;
    bool is_used;
    char ip[IP_SIZE];
};

/* In a userdata of the state; NULL: the state is closed. */
static _Thread_local struct server *servers;

static int
forget_servers(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    servers = NULL;
    return 0;
}

/* ---- Serving ---- */

/* The task of a connection ended. */
static void
end_connection_task(lua_State *L, int status, int results, void *user)
{
    SXE *s = sxe_loop() == NULL ? NULL : sxe_from_handle((uintptr_t)user);

    SXE_UNUSED_PARAMETER(results);
    if (status == LUA_OK || status == LUA_YIELD) {
        if (s != NULL)
            sxe__lua_conn_close(s);
        return;
    }
    sxe__lua_log_error(L, "tcp connection");
    /* Reset the connection: the peer must not take what it got for all. */
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

/* Make the options, or the function, at stack index 3 a table; push its handler. */
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

/* The timeout in the table of options at an index, which may be nil. */
static uint64_t
timeout_of(lua_State *L, int options)
{
    uint64_t timeout_ns = 0;

    if (lua_istable(L, options)) {
        lua_getfield(L, options, "timeout");
        timeout_ns = sxe__lua_check_timeout(L, -1);
        lua_pop(L, 1);
    }
    return timeout_ns;
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
    made.timeout_ns = timeout_of(L, 3);
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
    return sxe__lua_fail_errno(L, -result, "tcp.serve");
}

/* The server of a handle; NULL: it was closed. */
static struct server *
server_at(uint32_t index, uint32_t generation)
{
    struct server *server = servers == NULL ? NULL : &servers[index];

    if (server != NULL && server->is_used &&
        (server->generation & SXE__LUA_GENERATION_MASK) == generation)
        return server;
    return NULL;
}

/* Close a server. False: it was closed before. */
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

/* At the end of the scope of a <close> variable. */
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

/* ---- Connecting ---- */

/* Places in the stack of tcp.connect: addresses as text, and how much of it was tried. */
enum { HOST = 1, PORT, OPTIONS, DEADLINE, TLS, ADDRESSES, TRIED };

static void
on_tcp_connected(SXE *s)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);

    if ((slot->flags & SXE__LUA_TLS) == 0) /* with TLS, sxe-lua-tls.c wakes the task */
        sxe__lua_wake_first(&slot->writers);
}

/* Take the next address; false: there is none. */
static bool
next_address(lua_State *L, char ip[IP_SIZE])
{
    lua_Integer tried = lua_tointeger(L, TRIED);
    const char *address = lua_tostring(L, ADDRESSES) + tried;
    size_t length = strcspn(address, " ");

    if (length == 0 || length >= IP_SIZE)
        return false;
    memcpy(ip, address, length);
    ip[length] = '\0';
    lua_pushinteger(L, tried + (lua_Integer)length + (address[length] == ' '));
    lua_replace(L, TRIED);
    return true;
}

/* The path in a host "unix:/run/app.sock" or "unix:@name"; NULL: the host has another form. */
static const char *
path_of_host(const char *host)
{
    return strncmp(host, UNIX_PREFIX, sizeof(UNIX_PREFIX) - 1) == 0 ? host + sizeof(UNIX_PREFIX) - 1
                                                                    : NULL;
}

/* The option `from`, which is on top. */
static const char *
check_source_address(lua_State *L)
{
    const char *from = sxe__lua_option_text(L, "tcp.connect", "from");

    if (*from != '\0' && !sxe__lua_is_ip(from))
        luaL_error(L, "tcp.connect: from must be an IPv4 or IPv6 address, not '%s'", from);
    return from;
}

/* Make a socket that is not connected; NULL with errno. */
static SXE *
make_tcp_socket(lua_State *L, const char *path)
{
    const char *from = "";

    if (path != NULL)
        return sxe_new_unix(NULL, path, on_tcp_connected, sxe__lua_conn_on_read,
                            sxe__lua_conn_on_close);
    if (lua_istable(L, OPTIONS) && lua_getfield(L, OPTIONS, "from") != LUA_TNIL)
        from = check_source_address(L);
    return sxe_new_tcp(NULL, from, 0, on_tcp_connected, sxe__lua_conn_on_read,
                       sxe__lua_conn_on_close);
}

/* Make a socket, and begin to connect it to an address or a unix socket; NULL with errno. */
static SXE *
connect_tcp_socket(lua_State *L, const char *address)
{
    const uint64_t timeout_ns = timeout_of(L, OPTIONS);
    const char *path = path_of_host(address);
    SXE *s = make_tcp_socket(L, path);
    int result;

    lua_settop(L, TRIED);
    if (s == NULL)
        return NULL;
    sxe__lua_adopt_unref(s)->timeout_ns = timeout_ns;
    sxe_set_half_close(s, true);
    result = sxe__lua_tls_begin(L, TLS, OPTIONS, s, lua_tostring(L, HOST));
    if (result == 0)
        result = path != NULL ? sxe_connect_unix(s)
                              : sxe_connect(s, address, sxe__lua_check_port(L, PORT));
    if (result == 0)
        return s;
    sxe_close(s);
    errno = -result;
    return NULL;
}

static bool
is_public_only(lua_State *L)
{
    return lua_istable(L, OPTIONS) &&
           sxe__lua_option_bool(L, OPTIONS, "tcp.connect", "public_only", false);
}

/* Return why connect failed. ENFILE means that the script's sockets are used up: the system's table
 * of files hardly ever is. */
static int
fail_to_connect(lua_State *L, int error)
{
    if (error == EACCES && is_public_only(L))
        (void)sxe__lua_fail(L, "connect: the address is not public");
    else if (error != ENFILE)
        return sxe__lua_fail_errno(L, error, "connect");
    else
        (void)sxe__lua_fail(L, "connect: all sockets of the script are in use: allow it more");
    lua_pushinteger(L, error);
    return 3;
}

static int go_on_connecting_socket(lua_State *L, int status, lua_KContext handle);

static int
wait_for_connection(lua_State *L, const SXE *s)
{
    return sxe__lua_park_in(L, &sxe__lua_slot_of(s)->writers, (uint64_t)lua_tointeger(L, DEADLINE),
                            go_on_connecting_socket, (lua_KContext)sxe_handle(s));
}

/* Try the addresses that are left; error is why the last one failed. */
static int
connect_next_address(lua_State *L, int error)
{
    const bool public_only = is_public_only(L);
    char ip[IP_SIZE];

    while (next_address(L, ip)) {
        SXE *s;

        if (public_only && !sxe__lua_is_public(ip)) {
            error = EACCES;
            continue;
        }
        s = connect_tcp_socket(L, ip);

        if (s != NULL)
            return wait_for_connection(L, s);
        error = errno;
    }
    return fail_to_connect(L, error);
}

/* A unix socket is one address, and a path may hold the blanks that part addresses. */
static int
connect_unix(lua_State *L)
{
    SXE *s;

    lua_pushliteral(L, "");
    lua_pushinteger(L, 0);
    s = connect_tcp_socket(L, lua_tostring(L, HOST));
    return s != NULL ? wait_for_connection(L, s) : fail_to_connect(L, errno);
}

static int
go_on_connecting_socket(lua_State *L, int status, lua_KContext handle)
{
    const struct sxe__lua_slot *slot =
        sxe__lua_slot_at((uint32_t)handle, (uint32_t)(handle >> 32) & SXE__LUA_GENERATION_MASK);
    SXE *s = sxe__lua_socket(slot);

    SXE_UNUSED_PARAMETER(status);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT) {
        sxe_close(s);
        return sxe__lua_fail_woken(L);
    }
    if (s == NULL && slot != NULL && slot->failure != NULL)
        return sxe__lua_tls_fail(L, slot);
    if (s == NULL)
        return connect_next_address(L,
                                    slot == NULL || slot->error == 0 ? ECONNABORTED : slot->error);
    sxe__lua_push_socket(L, SXE__LUA_CONN, s);
    return 1;
}

static int
go_on_tcp_resolved(lua_State *L, int status, lua_KContext context)
{
    int failed = sxe__lua_resolved(L);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (failed > 0)
        return failed;
    lua_pushinteger(L, 0);
    return connect_next_address(L, EADDRNOTAVAIL);
}

/* Tasks that wait for sxe_init. */
static _Thread_local struct sxe__lua_line early;

static int go_on_early(lua_State *L, int status, lua_KContext context);

static int
begin_to_connect(lua_State *L)
{
    const char *host = lua_tostring(L, HOST);
    int failed;

    if (!sxe__lua_may_wait(L)) /* parking says why; the sockets stay unused */
        return sxe__lua_park_in(L, &early, 0, go_on_early, 0);
    sxe__lua_sockets_open(L);
    lua_pushinteger(L, (lua_Integer)sxe__lua_option_deadline(L, OPTIONS));
    failed = sxe__lua_tls_push(L, OPTIONS);
    if (failed > 0)
        return failed;
    if (path_of_host(host) != NULL)
        return connect_unix(L);
    if (!sxe__lua_is_ip(host))
        return sxe__lua_resolve(L, host, AF_UNSPEC, (uint64_t)lua_tointeger(L, DEADLINE),
                                go_on_tcp_resolved);
    lua_pushvalue(L, HOST);
    lua_pushinteger(L, 0);
    return connect_next_address(L, EINVAL);
}

static int
wake_early(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    sxe__lua_wake_all(&early);
    return 0;
}

static int
go_on_early(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return sxe__lua_woken(L) == SXE__LUA_EVENT ? begin_to_connect(L) : sxe__lua_fail_woken(L);
}

/* tcp.connect(host, port, {timeout =, from =, tls =, public_only =}),
 * tcp.connect("unix:PATH", {timeout =}) */
static int
l_tcp_connect(lua_State *L)
{
    static const char *const names[] = {"timeout", "from", "tls", "public_only", NULL};
    static const char *const names_unix[] = {"timeout", NULL};
    bool is_unix = path_of_host(sxe__lua_check_text(L, HOST)) != NULL;

    if (is_unix) {
        lua_pushinteger(L, 0);
        lua_insert(L, PORT);
    } else {
        sxe__lua_check_port(L, PORT);
    }
    lua_settop(L, OPTIONS);
    if (!lua_isnil(L, OPTIONS))
        sxe__lua_option_names(L, OPTIONS, is_unix ? names_unix : names, "tcp.connect");
    timeout_of(L, OPTIONS);
    sxe__lua_tls_check(L, OPTIONS);
    (void)is_public_only(L);
    if (sxe_loop() != NULL)
        return begin_to_connect(L);
    lua_pushcfunction(L, wake_early);
    sxe__lua_queue(L);
    return sxe__lua_park_in(L, &early, 0, go_on_early, 0);
}

int
sxe__lua_open_tcp(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"serve", l_tcp_serve}, {"connect", l_tcp_connect}, {NULL, NULL}};
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
