/* SPDX-License-Identifier: MIT
 *
 * http.proxy: sends requests on to an upstream. A proxy is a handler for servers and routers, or is
 * called by a handler; the bodies pass without Lua.
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-list.h"
#include "sxe-http-place-internal.h"
#include "sxe-http-rule-internal.h"
#include "sxe-libc-internal.h"
#include "sxe-lua-socket-private.h"

static const char proxy_class[] = "sxe.http proxy";

enum {
    OPTIONS = 1, /* stack indexes: the options, the proxy, the texts that it uses, its servers */
    PROXY,
    TEXTS,
    SERVERS,
    PLACES_MAX = 16,
    HEADERS_MAX = 8,
    CONNECTIONS_MOST = 65536,
    FAILS_MOST = 1000000,
    DAY_MS = 86400000,
    HEAD_MOST = 65535 + 4096 /* the longest head that a server takes, and the fields added to it */
};

struct proxy {
    struct sxe_http_upstream *upstream; /* NULL: there is none, or another proxy made it */
    struct sxe_http_proxy send;
};

const struct sxe_http_proxy *
sxe__lua_http_proxy(lua_State *L, int index)
{
    const struct proxy *proxy = luaL_testudata(L, index, proxy_class);

    return proxy == NULL || proxy->send.upstream == NULL ? NULL : &proxy->send;
}

/* ---- Options ---- */

/* The text of an option; NULL: the option is missing. The proxy keeps the text. */
static const char *
proxy_text(lua_State *L, const char *name)
{
    const char *text = NULL;

    if (lua_getfield(L, OPTIONS, name) != LUA_TNIL) {
        text = sxe__lua_option_text(L, "http.proxy", name);
        lua_pushvalue(L, -1);
        lua_setfield(L, TEXTS, name);
    }
    lua_pop(L, 1);
    return text;
}

/* A whole number from 1 to `most`; 0: the option is missing. */
static uint32_t
proxy_number(lua_State *L, const char *name, lua_Integer most)
{
    lua_Integer value = 0;
    int is_number = 1;

    if (lua_getfield(L, OPTIONS, name) != LUA_TNIL) {
        value = sxe__lua_option_integer(L, &is_number);
        if (!is_number || value < 1 || value > most)
            luaL_error(L, "http.proxy: %s must be a number from 1 to %I, not %s", name, most,
                       luaL_tolstring(L, -1, NULL));
    }
    lua_pop(L, 1);
    return (uint32_t)value;
}

/* The seconds of an option, in milliseconds; 0: the option is missing. */
static uint32_t
proxy_time(lua_State *L, const char *name)
{
    double ms = 0;

    if (lua_getfield(L, OPTIONS, name) != LUA_TNIL) {
        if (lua_type(L, -1) == LUA_TNUMBER)
            ms = ceil(lua_tonumber(L, -1) * 1000);
        if (!(ms >= 1 && ms <= DAY_MS))
            luaL_error(L, "http.proxy: %s must be a number of seconds, a day at most, not %s", name,
                       lua_type(L, -1) == LUA_TSTRING ? "a string" : luaL_tolstring(L, -1, NULL));
    }
    lua_pop(L, 1);
    return (uint32_t)ms;
}

/* The number of a name in a list that ends with NULL. */
static unsigned
proxy_choice(lua_State *L, const char *name, const char *const *choices, const char *wanted)
{
    const char *text = proxy_text(L, name);
    unsigned i = 0;

    while (text != NULL && choices[i] != NULL && strcmp(choices[i], text) != 0)
        i++;
    if (choices[i] == NULL)
        luaL_error(L, "http.proxy: %s must be %s, not '%s'", name, wanted, text);
    return i;
}

static void
take_proxy_balance(lua_State *L, struct sxe_http_upstream_config *config)
{
    static const char *const names[] = {[SXE_HTTP_BALANCE_ROUND_ROBIN] = "round_robin",
                                        [SXE_HTTP_BALANCE_LEAST] = "least",
                                        [SXE_HTTP_BALANCE_CLIENT] = "client",
                                        [SXE_HTTP_BALANCE_PATH] = "path",
                                        [SXE_HTTP_BALANCE_FIELD] = "header",
                                        NULL};

    config->balance = (enum sxe_http_balance)proxy_choice(
        L, "balance", names, "round_robin, least, client, path or header");
    config->hash_field = proxy_text(L, "balance_header");
    if ((config->hash_field != NULL) != (config->balance == SXE_HTTP_BALANCE_FIELD) ||
        (config->hash_field != NULL && !sxe_http_is_token(sxe_http_span(config->hash_field))))
        luaL_error(L, "http.proxy: balance_header must be the name of a header, with balance = "
                      "\"header\"");
}

static void
take_proxy_numbers(lua_State *L, struct sxe_http_upstream_config *config)
{
    config->max_fails = proxy_number(L, "max_fails", FAILS_MOST);
    config->fail_timeout_ms = proxy_time(L, "fail_timeout");
    config->slow_start_ms = proxy_time(L, "slow_start");
    config->connections_max = proxy_number(L, "connections", CONNECTIONS_MOST);
    config->idle_max = proxy_number(L, "idle", CONNECTIONS_MOST);
    config->connect_timeout_ms = proxy_time(L, "connect_timeout");
    config->first_byte_timeout_ms = proxy_time(L, "reply_timeout");
    config->stall_timeout_ms = proxy_time(L, "stall_timeout");
    config->idle_timeout_ms = proxy_time(L, "idle_timeout");
    config->tunnels_max = proxy_number(L, "websockets", CONNECTIONS_MOST);
    config->tunnel_timeout_ms = proxy_time(L, "websocket_timeout");
    config->check_path = proxy_text(L, "check");
    config->check_interval_ms = proxy_time(L, "check_interval");
    config->check_rises = proxy_number(L, "check_rises", FAILS_MOST);
    config->check_falls = proxy_number(L, "check_falls", FAILS_MOST);
    if (sxe_http_proxy_check(&(struct sxe_http_proxy){.path = config->check_path}) < 0)
        luaL_error(L, "http.proxy: check must be a path in the normal form, not '%s'",
                   config->check_path);
}

/* The fields that the proxy sets: a text, or a list of texts, which the proxy keeps. */
static void
take_request_header(lua_State *L, struct sxe_http_proxy *send)
{
    const int type = lua_getfield(L, OPTIONS, "request_header");
    const unsigned number = type == LUA_TTABLE ? (unsigned)lua_rawlen(L, -1) : type != LUA_TNIL;
    const char **lines;
    const char *fault;

    if ((type != LUA_TNIL && type != LUA_TSTRING && type != LUA_TTABLE) || number > HEADERS_MAX)
        luaL_error(L,
                   "http.proxy: request_header must be a text such as 'X-User: {user}', or a "
                   "list of up to %d of them",
                   HEADERS_MAX);
    lines = lua_newuserdatauv(L, HEADERS_MAX * sizeof(*lines), 0);
    lua_rawseti(L, TEXTS, HEADERS_MAX + 1);
    for (unsigned i = 0; i < number; i++) {
        if (type == LUA_TTABLE)
            lua_rawgeti(L, -1, i + 1);
        else
            lua_pushvalue(L, -1);
        lines[i] = sxe__lua_option_text(L, "http.proxy", "each of request_header");
        fault = sxe__http_rule_fault(lines[i]);
        if (fault != NULL)
            luaL_error(L, "http.proxy: request_header is '%s'; it must be %s", lines[i], fault);
        lua_rawseti(L, TEXTS, i + 1);
    }
    lua_pop(L, 1);
    send->request_header = lines;
    send->request_header_number = number;
}

static void
take_proxy_route(lua_State *L, struct sxe_http_proxy *send)
{
    static const char *const fields[] = {[SXE_HTTP_PROXY_X_FORWARDED] = "x-forwarded",
                                         [SXE_HTTP_PROXY_FORWARDED] = "forwarded",
                                         [SXE_HTTP_PROXY_NO_FIELDS] = "none",
                                         NULL};

    send->path = proxy_text(L, "path");
    send->host = proxy_text(L, "host");
    send->via = proxy_text(L, "via");
    send->fields = (enum sxe_http_proxy_fields)proxy_choice(L, "forwarded", fields,
                                                            "x-forwarded, forwarded or none");
    send->encoded_slash = sxe__lua_option_bool(L, OPTIONS, "http.proxy", "encoded_slash", false);
    take_request_header(L, send);
    if (sxe_http_proxy_check(send) < 0)
        luaL_error(L, "http.proxy: path must be a path in the normal form, host a host, and via a "
                      "name of letters, digits and dashes");
}

/* ---- Servers ---- */

struct servers {
    struct sxe__http_place places[PLACES_MAX];
    struct sxe__http_found found;
    bool is_tls;
};

/* Read the server on top, and look its name up. */
static void
take_proxy_server(lua_State *L, struct servers *servers, unsigned at, unsigned number)
{
    struct sxe__http_place *place = &servers->places[at];
    const char *text = sxe__lua_option_text(L, "http.proxy", "each of servers");
    const bool is_tls = sxe__http_place_has_scheme(text);
    int error;

    if (!sxe__http_place_read(text, place))
        luaL_error(L,
                   "http.proxy: '%s' must be an address and a port, such as 127.0.0.1:3000, or "
                   "the path of a unix socket; ' weight=2' may follow",
                   text);
    if (at > 0 && is_tls != servers->is_tls)
        luaL_error(L, "http.proxy: all servers have https://, or none has it");
    servers->is_tls = is_tls;
    error = sxe__http_place_find(place, SXE_HTTP_UPSTREAM_ADDRESSES / number, &servers->found);
    if (error != 0)
        luaL_error(L, "http.proxy: %s: %s", place->host, gai_strerror(error));
}

static void
take_proxy_servers(lua_State *L, struct servers *servers, struct sxe_http_upstream_config *config)
{
    const int type = lua_getfield(L, OPTIONS, "servers");
    unsigned number = type == LUA_TTABLE ? (unsigned)lua_rawlen(L, -1) : 1;

    if ((type != LUA_TSTRING && type != LUA_TTABLE) || number == 0 || number > PLACES_MAX)
        luaL_error(L,
                   "http.proxy: servers must be a text such as 127.0.0.1:3000, or a list of 1 "
                   "to %d of them",
                   PLACES_MAX);
    for (unsigned i = 0; i < number; i++) {
        if (type == LUA_TTABLE)
            lua_rawgeti(L, -1, i + 1);
        else
            lua_pushvalue(L, -1);
        take_proxy_server(L, servers, i, number);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (servers->found.number == 0)
        luaL_error(L, "http.proxy: the servers have no address that can be used");
    config->addresses = servers->found.addresses;
    config->addresses_number = servers->found.number;
}

/* Push a table with the field tls: the option, and HTTP/1.1 as the protocol. */
static void
push_proxy_tls(lua_State *L)
{
    static const char *const names[] = {"ca", "cert", "key", "insecure"};

    lua_newtable(L);
    lua_newtable(L);
    if (lua_getfield(L, OPTIONS, "tls") == LUA_TTABLE) {
        for (unsigned i = 0; i < SXE_COUNT(names); i++) {
            lua_getfield(L, -1, names[i]);
            lua_setfield(L, -3, names[i]);
        }
    }
    lua_pop(L, 1);
    lua_pushliteral(L, "http/1.1");
    lua_setfield(L, -2, "alpn");
    lua_setfield(L, -2, "tls");
}

/* Let connections speak TLS, if the servers have https://. */
static void
take_proxy_tls(lua_State *L, struct servers *servers, struct sxe_http_upstream_config *config)
{
    const struct sxe_lua_tls *tls = sxe__lua_config()->tls;
    const char *name;

    sxe__lua_tls_check(L, OPTIONS);
    if (lua_getfield(L, OPTIONS, "tls") != LUA_TNIL && lua_toboolean(L, -1) != servers->is_tls)
        luaL_error(L, "http.proxy: tls goes with servers that have https://");
    lua_settop(L, SERVERS);
    if (!servers->is_tls)
        return;
    push_proxy_tls(L);
    if (sxe__lua_tls_push(L, lua_gettop(L)) > 0)
        luaL_error(L, "http.proxy: %s", lua_tostring(L, -2));
    config->tls = lua_touserdata(L, -1);
    config->use_tls = tls->use;
    config->tls_failure = tls->failure;
    lua_settop(L, SERVERS);
    name = sxe__lua_tls_name(L, OPTIONS);
    for (unsigned i = 0; name != NULL && i < servers->found.number; i++)
        servers->found.addresses[i].tls_name = name;
}

/* ---- A proxy ---- */

static const char *const proxy_options[] = {"balance",
                                            "balance_header",
                                            "check",
                                            "check_falls",
                                            "check_interval",
                                            "check_rises",
                                            "connect_timeout",
                                            "connections",
                                            "fail_timeout",
                                            "idle",
                                            "idle_timeout",
                                            "max_fails",
                                            "name",
                                            "reply_timeout",
                                            "servers",
                                            "slow_start",
                                            "stall_timeout",
                                            "tls",
                                            "websocket_timeout",
                                            "websockets",
                                            "encoded_slash",
                                            "forwarded",
                                            "host",
                                            "path",
                                            "request_header",
                                            "via",
                                            "upstream",
                                            NULL};

/* How many of these options belong to the upstream. */
enum { OF_UPSTREAM = 20 };

/* Take the upstream of another proxy. */
static void
share_upstream(lua_State *L, struct proxy *proxy)
{
    const struct sxe_http_proxy *other = sxe__lua_http_proxy(L, -1);

    if (other == NULL)
        luaL_error(L, "http.proxy: upstream must be another http.proxy(), not a %s",
                   luaL_typename(L, -1));
    for (unsigned i = 0; i < OF_UPSTREAM; i++) {
        if (lua_getfield(L, OPTIONS, proxy_options[i]) != LUA_TNIL)
            luaL_error(L, "http.proxy: %s is that of the other upstream", proxy_options[i]);
        lua_pop(L, 1);
    }
    proxy->send.upstream = other->upstream;
}

static void
make_upstream(lua_State *L, struct proxy *proxy)
{
    struct servers *servers = lua_newuserdatauv(L, sizeof(*servers), 0);
    struct sxe_http_upstream_config config = {.request_max = HEAD_MOST};

    servers->found.number = 0;
    config.name = proxy_text(L, "name");
    take_proxy_servers(L, servers, &config);
    take_proxy_balance(L, &config);
    take_proxy_numbers(L, &config);
    take_proxy_tls(L, servers, &config);
    proxy->upstream = sxe_http_upstream_new(&config);
    if (proxy->upstream == NULL)
        luaL_error(L, "http.proxy: %s", strerrordesc_np(errno));
    proxy->send.upstream = proxy->upstream;
}

/* http.proxy{servers = ..., ...} */
static int
new_proxy(lua_State *L)
{
    struct proxy *proxy;

    sxe__lua_option_names(L, OPTIONS, proxy_options, "http.proxy");
    if (sxe_loop() != NULL)
        return luaL_error(L, "http.proxy: connections are planned before the loop starts: call it "
                             "at the script's top level");
    sxe__lua_refuse_at_end(L);
    lua_settop(L, OPTIONS);
    proxy = lua_newuserdatauv(L, sizeof(*proxy), 1);
    *proxy = (struct proxy){.upstream = NULL};
    luaL_setmetatable(L, proxy_class);
    lua_newtable(L);
    lua_pushvalue(L, TEXTS);
    lua_setiuservalue(L, PROXY, 1);
    take_proxy_route(L, &proxy->send);
    if (lua_getfield(L, OPTIONS, "upstream") != LUA_TNIL) {
        share_upstream(L, proxy);
    } else {
        lua_pop(L, 1);
        make_upstream(L, proxy);
    }
    /* Keep the proxy: servers may use it until the state ends. */
    lua_settop(L, PROXY);
    lua_pushvalue(L, PROXY);
    luaL_ref(L, LUA_REGISTRYINDEX);
    sxe__lua_http.has_proxies = true;
    return 1;
}

static int
delete_proxy(lua_State *L)
{
    struct proxy *proxy = luaL_checkudata(L, 1, proxy_class);

    sxe_http_upstream_delete(proxy->upstream);
    *proxy = (struct proxy){.upstream = NULL};
    return 0;
}

static const struct sxe_http_proxy *
check_proxy(lua_State *L)
{
    const struct proxy *proxy = luaL_checkudata(L, 1, proxy_class);

    if (sxe__lua_is_closing() || proxy->send.upstream == NULL)
        luaL_error(L, "the state is closed, and so is the proxy");
    return &proxy->send;
}

/* proxy(req, res): the proxy as a handler that a script calls */
static int
call_proxy(lua_State *L)
{
    const struct sxe_http_proxy *send = check_proxy(L);
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 2, SXE__LUA_REQUEST, &generation);
    struct sxe__lua_exchange *exchange = sxe__lua_http_check(L, index, generation);
    struct sxe_http_request *request;
    uint32_t response_generation = generation;

    if (!lua_isnoneornil(L, 3) &&
        (sxe__lua_check_handle(L, 3, SXE__LUA_RESPONSE, &response_generation) != index ||
         response_generation != generation))
        return luaL_error(L, "the response is that of another request");
    if (exchange->reply != SXE__LUA_UNANSWERED)
        return luaL_error(L, "the reply has begun: a proxy sends a whole one");
    if (exchange->body != SXE__LUA_BODY_UNREAD)
        return luaL_error(L, "the body was read: a request is sent on with its whole body");
    request = sxe__lua_http_leave(L, exchange);
    (void)!sxe_http_proxy_send(send, request, sxe_http_response_of(request));
    return 0;
}

/* The handler of routes without filters. */
enum sxe_http_verdict
sxe__lua_http_pass(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct sxe__lua_answerer *answerer = request->user;

    if (sxe__lua_http_is_filtered(answerer))
        return sxe__lua_http_answer(request, response);
    return sxe_http_proxy_send(answerer->proxy, request, response);
}

static void
set_proxy_count(lua_State *L, const char *name, uint64_t count)
{
    lua_pushinteger(L, (lua_Integer)count);
    lua_setfield(L, -2, name);
}

/* proxy:servers(): a list of the addresses, and what became of requests to them */
static int
list_servers(lua_State *L)
{
    const struct sxe_http_proxy *send = check_proxy(L);
    struct sxe_http_upstream_state state;

    lua_settop(L, 1);
    lua_newtable(L);
    for (unsigned i = 0; sxe_http_upstream_look(send->upstream, i, &state) == 0; i++) {
        lua_createtable(L, 0, 8);
        lua_pushstring(L, state.name);
        lua_setfield(L, -2, "name");
        set_proxy_count(L, "requests", state.requests);
        set_proxy_count(L, "failures", state.failures);
        set_proxy_count(L, "retries", state.retries);
        set_proxy_count(L, "under_way", state.under_way);
        set_proxy_count(L, "connections", state.connections);
        set_proxy_count(L, "websockets", state.tunnels);
        lua_pushboolean(L, state.is_down);
        lua_setfield(L, -2, "is_down");
        lua_rawseti(L, 2, (lua_Integer)i + 1);
    }
    return 1;
}

void
sxe__lua_http_open_proxy(lua_State *L)
{
    static const luaL_Reg methods[] = {{"servers", list_servers}, {NULL, NULL}};

    sxe__lua_new_class(L, proxy_class);
    lua_pushcfunction(L, delete_proxy);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, call_proxy);
    lua_setfield(L, -2, "__call");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_proxy);
    lua_setfield(L, -2, "proxy");
}
