/* SPDX-License-Identifier: MIT
 *
 * http.serve: the script's own servers. They are made while the script is loaded, and listen when
 * the loop starts.
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "sxe-cidr.h"
#include "sxe-libc-internal.h"
#include "sxe-lua-clock.h"

#define HTTP (&sxe__lua_http)

#define LOOK_NS 10000000u

/* ---- Options ---- */

/* The whole number in a field of the table, from least to most; 0 if the field is missing. A script
 * that gives 0 gets an error, because the server would silently take 0 for the default. */
static uint32_t
number_option(lua_State *L, int table, const char *name, lua_Integer least, uint32_t most)
{
    const char *of = table == 1 ? "" : "limits.";
    lua_Integer value = 0;
    int is_number = 1;

    if (lua_getfield(L, table, name) != LUA_TNIL) {
        value = sxe__lua_option_integer(L, &is_number);
        if (!is_number || value < least || value > most)
            luaL_error(L, "http.serve: %s%s must be a number from %I to %I, not %s", of, name,
                       least, (lua_Integer)most, luaL_tolstring(L, -1, NULL));
    }
    lua_pop(L, 1);
    return (uint32_t)value;
}

/* The seconds in a field, as milliseconds; false in the field means never. */
static uint32_t
time_option(lua_State *L, int table, const char *name)
{
    double ms = 0;

    if (lua_getfield(L, table, name) == LUA_TBOOLEAN && !lua_toboolean(L, -1))
        ms = UINT32_MAX;
    else if (lua_type(L, -1) == LUA_TNUMBER)
        ms = ceil(lua_tonumber(L, -1) * 1000);
    if (!lua_isnil(L, -1) && (!(ms >= 1) || ms > UINT32_MAX))
        luaL_error(L, "http.serve: timeouts.%s must be seconds, or false, not %s", name,
                   luaL_tolstring(L, -1, NULL));
    lua_pop(L, 1);
    return (uint32_t)ms;
}

static void
copy_text_option(lua_State *L, const char *name, char *room, size_t size)
{
    const char *text = "";

    if (lua_getfield(L, 1, name) != LUA_TNIL)
        text = sxe__lua_option_text(L, "http.serve", name);
    if ((size_t)snprintf(room, size, "%s", text) >= size)
        luaL_error(L, "http.serve: %s is too long", name);
    lua_pop(L, 1);
}

/* Push the table that a field holds, after checking the names in it; push an empty table if the
 * field is missing. Returns the index of the pushed table. */
static int
push_table_option(lua_State *L, const char *name, const char *const *names)
{
    if (lua_getfield(L, 1, name) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
    }
    if (!lua_istable(L, -1))
        luaL_error(L, "http.serve: %s must be a table, not a %s", name, luaL_typename(L, -1));
    sxe__lua_option_names(L, lua_gettop(L), names, name);
    return lua_gettop(L);
}

static void
take_limits(lua_State *L, struct sxe_http_config *config, struct sxe__lua_server *server)
{
    static const char *const names[] = {"body",   "bodies",   "line",    "head",
                                        "fields", "requests", "address", NULL};
    int table = push_table_option(L, "limits", names);

    config->head.line_max = (uint16_t)number_option(L, table, "line", 1, UINT16_MAX);
    config->head.head_max = (uint16_t)number_option(L, table, "head", 1, UINT16_MAX);
    config->head.fields_max = (uint16_t)number_option(L, table, "fields", 1, 255);
    config->requests_max = number_option(L, table, "requests", 1, UINT32_MAX - 1);
    config->address_max = number_option(L, table, "address", 1, UINT32_MAX - 1);
    config->body_memory_max = number_option(L, table, "bodies", 1, UINT32_MAX);
    server->body_max = number_option(L, table, "body", 1, UINT32_MAX);
    if (server->body_max == 0)
        server->body_max = SXE__LUA_BODY_MAX;
    lua_pop(L, 1);
}

static void
take_server_timeouts(lua_State *L, struct sxe_http_config *config)
{
    static const char *const names[] = {"head", "body", "idle", "handler", NULL};
    int table = push_table_option(L, "timeouts", names);

    config->head_timeout_ms = time_option(L, table, "head");
    config->body_timeout_ms = time_option(L, table, "body");
    config->idle_timeout_ms = time_option(L, table, "idle");
    config->handler_timeout_ms = time_option(L, table, "handler");
    lua_pop(L, 1);
}

/* The header of request ids, and the networks whose ids are trusted. The registry keeps both as
 * long as the state, and with it the server, lives. */
struct naming {
    struct sxe_cidr_list trusted;
    char request_id[64];
};

static void
take_naming(lua_State *L, struct sxe_http_config *config)
{
    struct naming *naming = lua_newuserdatauv(L, sizeof(*naming), 0);
    char networks[1024];

    luaL_ref(L, LUA_REGISTRYINDEX);
    *naming = (struct naming){.trusted = {.number = 0}};
    copy_text_option(L, "request_id", naming->request_id, sizeof(naming->request_id));
    copy_text_option(L, "trust_from", networks, sizeof(networks));
    if (*naming->request_id != '\0')
        config->request_id = naming->request_id;
    if (*networks == '\0')
        return;
    config->trusted = &naming->trusted;
    if (sxe_cidr_add(&naming->trusted, networks, NULL) < 0)
        luaL_error(L,
                   "http.serve: trust_from must be networks such as '10.0.0.0/8, ::1, unix', "
                   "not '%s'",
                   networks);
}

/* Read the options `forwarded`, the field that names the client, and `trust_from`, the peers whose
 * field is believed. */
static void
take_forwarding(lua_State *L, struct sxe_http_config *config)
{
    char field[16];

    copy_text_option(L, "forwarded", field, sizeof(field));
    if (strcmp(field, "forwarded") == 0)
        config->forwarding = SXE_HTTP_FORWARDING_FORWARDED;
    else if (strcmp(field, "x-forwarded") == 0)
        config->forwarding = SXE_HTTP_FORWARDING_X_FORWARDED;
    else if (*field != '\0')
        luaL_error(L, "http.serve: forwarded must be 'forwarded' or 'x-forwarded', not '%s'",
                   field);
}

/* ---- The handler ---- */

/* Make the value at index the handler: a function, a router or files. Raises an error for any other
 * value. */
static void
answer_with_handler(lua_State *L, int index, struct sxe_http_config *config)
{
    struct sxe__lua_router *router = sxe__lua_http_router(L, index);
    struct sxe_http_files *files = sxe__lua_http_files(L, index);
    const struct sxe_http_proxy *proxy = sxe__lua_http_proxy(L, index);
    struct sxe__lua_answerer *answerer;

    config->stream = true;
    if (router != NULL) {
        config->router = router->router;
        config->unrouted = sxe__lua_http_unrouted;
        config->user = router->unrouted;
        return;
    }
    if (files != NULL) {
        config->handler = sxe_http_files_handle;
        config->user = files;
        return;
    }
    if (proxy != NULL) {
        config->handler = sxe_http_proxy_handle;
        config->user = (void *)(uintptr_t)proxy;
        return;
    }
    if (!lua_isfunction(L, index) && luaL_getmetafield(L, index, "__call") == LUA_TNIL)
        luaL_error(L,
                   "http.serve: handler must be a function, an http.router(), an http.static() or "
                   "an http.proxy(), not a %s",
                   luaL_typename(L, index));
    answerer = lua_newuserdatauv(L, sizeof(*answerer), 0);
    luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, index);
    *answerer =
        (struct sxe__lua_answerer){.function = luaL_ref(L, LUA_REGISTRYINDEX), .list = LUA_NOREF};
    config->handler = sxe__lua_http_answer;
    config->user = answerer;
}

/* http.serve{port =, handler =, ...} */
static int
http_serve(lua_State *L)
{
    static const char *const names[] = {
        "port",       "ip",         "unix",       "handler",   "limits", "timeouts", "connections",
        "half_close", "request_id", "trust_from", "forwarded", "trace",  NULL};
    struct sxe__lua_server server = {.http = NULL};
    struct sxe_http_config config = {.random = sxe_lua_get_clock()->random};

    sxe__lua_option_names(L, 1, names, "http.serve");
    lua_settop(L, 1);
    if (sxe_loop() != NULL)
        return luaL_error(L, "http.serve: servers are planned before the loop starts: call it at "
                             "the script's top level, before anything waits");
    sxe__lua_refuse_at_end(L);
    server.port = (unsigned short)number_option(L, 1, "port", 0, UINT16_MAX);
    config.connections = number_option(L, 1, "connections", 1, 10000000);
    config.half_close = sxe__lua_option_bool(L, 1, "http.serve", "half_close", false);
    copy_text_option(L, "ip", server.ip, sizeof(server.ip));
    copy_text_option(L, "unix", server.path, sizeof(server.path));
    take_limits(L, &config, &server);
    take_server_timeouts(L, &config);
    take_naming(L, &config);
    take_forwarding(L, &config);
    config.trace = sxe__lua_option_bool(L, 1, "http.serve", "trace", false);
    lua_getfield(L, 1, "handler");
    answer_with_handler(L, 2, &config);
    if (HTTP->has_proxies)
        config.fields_max = SXE__LUA_FIELDS_OF_PROXIES;
    /* Metamethods of the options, and finalizers, may have made servers since. */
    if (HTTP->servers_number == SXE__LUA_SERVERS)
        return luaL_error(L, "http.serve: there are %d servers already", SXE__LUA_SERVERS);
    server.http = sxe_http_new(&config);
    if (server.http == NULL)
        return luaL_error(L, "http.serve: %s", strerrordesc_np(errno));
    HTTP->servers[HTTP->servers_number] = server;
    sxe__lua_push_handle(L, SXE__LUA_SERVER, HTTP->servers_number++, 0);
    return 1;
}

/* ---- A server ---- */

static int
get_server_property(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe__lua_server *server = &HTTP->servers[index];

    SXE_UNUSED_PARAMETER(generation);
    if (strcmp(name, "port") == 0)
        lua_pushinteger(L, server->is_listening ? sxe_http_port(server->http) : server->port);
    else if (strcmp(name, "ip") == 0)
        lua_pushstring(L, server->ip);
    else
        return 0;
    return 1;
}

static void
on_lua_server_stopped(struct sxe_http *http)
{
    struct sxe__lua_server *server = HTTP->servers;

    while (server->http != http)
        server++;
    server->is_stopped = true;
    sxe__lua_wake_all(&server->line);
}

static int wait_for_end(lua_State *L, struct sxe__lua_server *server, uint64_t deadline_ns);

static int
return_stopped(lua_State *L, int status, lua_KContext deadline)
{
    uint64_t deadline_ns = (uint64_t)deadline;
    uint32_t generation;

    SXE_UNUSED_PARAMETER(status);
    if (sxe__lua_woken(L) == SXE__LUA_CANCELLED)
        return sxe__lua_fail(L, "cancelled");
    return wait_for_end(
        L, &HTTP->servers[sxe__lua_check_handle(L, 1, SXE__LUA_SERVER, &generation)], deadline_ns);
}

/* No event tells when a client has received the last bytes, so poll. */
static int
wait_for_end(lua_State *L, struct sxe__lua_server *server, uint64_t deadline_ns)
{
    uint64_t now_ns = sxe_lua_get_clock()->now_ns();
    uint64_t look_ns = now_ns + LOOK_NS;

    if (server->is_stopped || sxe_http_all_is_sent(server->http)) {
        lua_pushboolean(L, true);
        return 1;
    }
    if (deadline_ns != 0 && deadline_ns <= now_ns)
        return sxe__lua_fail(L, "timeout");
    return sxe__lua_park_in(L, &server->line,
                            deadline_ns != 0 && deadline_ns < look_ns ? deadline_ns : look_ns,
                            return_stopped, (lua_KContext)deadline_ns);
}

static void
begin_to_stop(lua_State *L, struct sxe__lua_server *server)
{
    if (!server->is_listening)
        luaL_error(L, "the server does not listen yet");
    if (!server->is_stopped)
        sxe_http_stop(server->http, on_lua_server_stopped);
}

/* Called at the end of a <close> variable's scope. This function does not wait for the last
 * reply. */
static void
stop_at_end(lua_State *L, uint32_t index, uint32_t generation)
{
    SXE_UNUSED_PARAMETER(generation);
    begin_to_stop(L, &HTTP->servers[index]);
}

/* server:stop([timeout]): accept no more connections; true when the last reply was sent */
static int
server_stop(lua_State *L)
{
    uint32_t generation;
    struct sxe__lua_server *server =
        &HTTP->servers[sxe__lua_check_handle(L, 1, SXE__LUA_SERVER, &generation)];
    uint64_t deadline_ns = sxe__lua_deadline(L, 2);

    begin_to_stop(L, server);
    return wait_for_end(L, server, deadline_ns);
}

static void
log_refusal(const struct sxe__lua_server *server, int error)
{
    char text[sizeof(server->path) + 100];
    const char *why = strerrordesc_np(error);

    if (server->path[0] != '\0')
        snprintf(text, sizeof(text), "cannot listen at %s: %s", server->path, why);
    else
        snprintf(text, sizeof(text), "cannot listen at %s port %u: %s",
                 server->ip[0] == '\0' ? "*" : server->ip, server->port, why);
    sxe__lua_log_failure("http.serve", text);
}

/* Begin to listen. Returns 0, or -EINVAL after logging why not. */
static int
listen_http_server(struct sxe__lua_server *server)
{
    int result = server->path[0] != '\0' ? sxe_http_listen_unix(server->http, server->path)
                                         : sxe_http_listen(server->http, server->ip, server->port);

    if (result < 0) {
        log_refusal(server, -result);
        return -EINVAL;
    }
    server->is_listening = true;
    if (server->path[0] != '\0')
        SXE_INFO("http.serve listens at %s", server->path);
    else
        SXE_INFO("http.serve listens at %s:%u", server->ip[0] == '\0' ? "*" : server->ip,
                 sxe_http_port(server->http));
    return 0;
}

int
sxe__lua_init_http(lua_State *main)
{
    int result = 0;

    SXE_UNUSED_PARAMETER(main);
    for (unsigned i = 0; i < HTTP->servers_number && result == 0; i++)
        result = listen_http_server(&HTTP->servers[i]);
    return result;
}

static void
end_each_server(void (*end)(struct sxe_http *, void (*)(struct sxe_http *)))
{
    for (unsigned i = 0; i < HTTP->servers_number; i++) {
        if (HTTP->servers[i].is_listening && !HTTP->servers[i].is_stopped)
            end(HTTP->servers[i].http, on_lua_server_stopped);
    }
}

void
sxe_lua_http_drain(struct sxe_lua *lua)
{
    SXE_UNUSED_PARAMETER(lua);
    end_each_server(sxe_http_drain);
}

void
sxe_lua_http_stop(struct sxe_lua *lua)
{
    SXE_UNUSED_PARAMETER(lua);
    end_each_server(sxe_http_stop);
}

void
sxe_lua_http_break_off(struct sxe_lua *lua)
{
    SXE_UNUSED_PARAMETER(lua);
    for (unsigned i = 0; i < HTTP->servers_number; i++) {
        if (HTTP->servers[i].is_listening)
            sxe_http_break_off(HTTP->servers[i].http);
    }
}

void
sxe__lua_http_open_serve(lua_State *L)
{
    static const luaL_Reg methods[] = {{"stop", server_stop}, {NULL, NULL}};
    static const struct sxe__lua_class_spec server = {.name = "sxe.http server",
                                                      .methods = methods,
                                                      .get = get_server_property,
                                                      .close = stop_at_end};

    sxe__lua_register_class(L, SXE__LUA_SERVER, &server);
    lua_pushcfunction(L, http_serve);
    lua_setfield(L, -2, "serve");
}
