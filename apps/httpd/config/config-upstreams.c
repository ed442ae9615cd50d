/* SPDX-License-Identifier: MIT
 *
 * Reads the upstreams of a configuration file, and the routes that send requests on to them.
 */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config-origin.h"
#include "config-reader.h"
#include "config-sites.h"
#include "sxe-http-list.h"
#include "sxe-http-rule-internal.h"

#define DAY_MS           86400000ul
#define CONNECTIONS_MOST 65536ul
#define FAILS_MOST       1000000ul

/* ---- Numbers ---- */

/* Read the value of a key, which is a text or a number, in the same way as the value of an option.
 * If there is no such key, *value is not changed. */
static bool
read_as_option(struct config_reader *reader, const char *key, uint32_t *value,
               bool (*take)(const struct command_line *line, const char *what, unsigned long min,
                            unsigned long max, unsigned long *value),
               unsigned long max)
{
    unsigned long taken = 0;
    char what[64];

    if (lua_getfield(reader->L, -1, key) == LUA_TNIL) {
        lua_pop(reader->L, 1);
        return true;
    }
    config_note_key(reader, key);
    if (!lua_isstring(reader->L, -1))
        return config_fail(reader, key, luaL_typename(reader->L, -1), "a number, or a text");
    optarg = config_file_keep(reader->file);
    if (optarg == NULL)
        return luaL_error(reader->L, "no memory");
    config_be_at(reader->line, key);
    snprintf(what, sizeof(what), "the upstream's %s", key);
    if (!take(config_line(), what, 1, max, &taken))
        return false;
    *value = (uint32_t)taken;
    return true;
}

static bool
read_period(struct config_reader *reader, const char *key, uint32_t *value)
{
    return read_as_option(reader, key, value, command_line_duration, DAY_MS);
}

static bool
read_amount(struct config_reader *reader, const char *key, uint32_t *value, unsigned long max)
{
    return read_as_option(reader, key, value, command_line_number, max);
}

/* ---- Upstreams ---- */

static struct upstream *
add_upstream(struct config_reader *reader, const char *name)
{
    struct upstream *upstream = calloc(1, sizeof(*upstream));

    if (upstream != NULL) {
        upstream->name = name;
        upstream->next = reader->sites->upstreams;
        reader->sites->upstreams = upstream;
        lua_pushfstring(reader->L, "%s:%d: ", reader->file->path, (int)reader->line);
        upstream->where = config_file_keep(reader->file);
    }
    if (upstream == NULL || upstream->where == NULL)
        luaL_error(reader->L, "no memory");
    return upstream;
}

static struct upstream *
find_upstream(const struct config_sites *sites, const char *name)
{
    struct upstream *upstream = sites->upstreams;

    while (upstream != NULL && strcmp(upstream->name, name) != 0)
        upstream = upstream->next;
    return upstream;
}

static bool
read_balance(struct config_reader *reader, struct sxe_http_upstream_config *settings)
{
    static const char *const names[] = {[SXE_HTTP_BALANCE_ROUND_ROBIN] = "round_robin",
                                        [SXE_HTTP_BALANCE_LEAST] = "least",
                                        [SXE_HTTP_BALANCE_CLIENT] = "client",
                                        [SXE_HTTP_BALANCE_PATH] = "path",
                                        [SXE_HTTP_BALANCE_FIELD] = "header"};
    const char *name = names[SXE_HTTP_BALANCE_ROUND_ROBIN];
    unsigned i = 0;

    if (!config_read_text(reader, "balance", &name))
        return false;
    while (i < SXE_COUNT(names) && strcmp(names[i], name) != 0)
        i++;
    if (i == SXE_COUNT(names))
        return config_fail(reader, "balance", name, "round_robin, least, client, path or header");
    settings->balance = (enum sxe_http_balance)i;
    if (!config_read_text(reader, "balance_header", &settings->hash_field))
        return false;
    if ((settings->hash_field != NULL) != (settings->balance == SXE_HTTP_BALANCE_FIELD) ||
        (settings->hash_field != NULL &&
         !sxe_http_is_token((struct sxe_span){settings->hash_field, strlen(settings->hash_field)})))
        return config_fail(reader, "balance_header", settings->hash_field,
                           "the name of a header, with balance = \"header\"");
    return true;
}

static bool
read_servers(struct config_reader *reader, struct upstream *upstream)
{
    if (!config_read_texts(reader, "servers", upstream->places, UPSTREAM_PLACES_MAX,
                           &upstream->places_number))
        return false;
    if (upstream->places_number == 0)
        return config_fail(reader, upstream->name, NULL, "an upstream needs servers");
    upstream->is_tls = upstream_has_scheme(upstream->places[0]);
    for (unsigned i = 0; i < upstream->places_number; i++) {
        if (!upstream_is_place(upstream->places[i]))
            return config_fail(reader, "servers", upstream->places[i],
                               "an address and a port, such as 127.0.0.1:3000, or the path of a "
                               "unix socket, which begins with a slash; ' weight=2' may follow");
        if (upstream_has_scheme(upstream->places[i]) != upstream->is_tls)
            return config_fail(reader, "servers", upstream->places[i],
                               "like the first one: all have https://, or none has it");
    }
    return true;
}

static bool
read_upstream_tls(struct config_reader *reader, struct upstream *upstream)
{
    struct upstream_tls *tls = &upstream->tls_settings;

    if (!config_read_text(reader, "tls_ca", &tls->ca) ||
        !config_read_text(reader, "tls_name", &tls->name) ||
        !config_read_text(reader, "tls_cert", &tls->certificate) ||
        !config_read_text(reader, "tls_key", &tls->key) ||
        !config_read_switch(reader, "tls_insecure", &tls->is_insecure))
        return false;
    if (tls->name != NULL && !upstream_is_tls_name(tls->name))
        return config_fail(reader, "tls_name", tls->name, "a name or an address");
    if ((tls->certificate == NULL) != (tls->key == NULL))
        return config_fail(reader, upstream->name, NULL,
                           "tls_cert and tls_key need each other: a certificate and its key");
    if (!upstream->is_tls &&
        (tls->ca != NULL || tls->name != NULL || tls->is_insecure || tls->key != NULL))
        return config_fail(reader, upstream->name, NULL,
                           "tls_ca, tls_name, tls_insecure, tls_cert and tls_key need servers with "
                           "https://");
    return true;
}

static bool
read_checks(struct config_reader *reader, struct sxe_http_upstream_config *settings)
{
    if (!config_read_text(reader, "check", &settings->check_path) ||
        !read_period(reader, "check_interval", &settings->check_interval_ms) ||
        !read_amount(reader, "check_rises", &settings->check_rises, FAILS_MOST) ||
        !read_amount(reader, "check_falls", &settings->check_falls, FAILS_MOST))
        return false;
    if (settings->check_path != NULL && settings->fastcgi)
        return config_fail(reader, "check", NULL, "servers of FastCGI are not checked");
    if (settings->check_path != NULL && !upstream_is_path(settings->check_path))
        return config_fail(reader, "check", settings->check_path, UPSTREAM_PATH);
    return true;
}

/* Read the keys "fastcgi" and "keep". */
static bool
read_fastcgi_keys(struct config_reader *reader, struct upstream *upstream)
{
    struct sxe_http_upstream_config *settings = &upstream->settings;

    if (!config_read_switch(reader, "fastcgi", &settings->fastcgi) ||
        !config_read_switch(reader, "keep", &settings->fastcgi_keep))
        return false;
    if (settings->fastcgi_keep && !settings->fastcgi)
        return config_fail(reader, "keep", NULL, "it needs fastcgi = true");
    if (settings->fastcgi && upstream->is_tls)
        return config_fail(reader, "fastcgi", NULL, "servers of FastCGI have no https://");
    return true;
}

/* Read the upstream whose table is on top of the stack. */
static bool
read_upstream(struct config_reader *reader, struct upstream *upstream)
{
    static const char *const names[] = {"balance",
                                        "balance_header",
                                        "check",
                                        "check_falls",
                                        "check_interval",
                                        "check_rises",
                                        "connect_timeout",
                                        "connections",
                                        "fail_timeout",
                                        "fastcgi",
                                        "idle",
                                        "idle_timeout",
                                        "keep",
                                        "max_fails",
                                        "reply_timeout",
                                        "servers",
                                        "slow_start",
                                        "stall_timeout",
                                        "tls_ca",
                                        "tls_cert",
                                        "tls_insecure",
                                        "tls_key",
                                        "tls_name",
                                        "websocket_timeout",
                                        "websockets",
                                        NULL};
    struct sxe_http_upstream_config *settings = &upstream->settings;

    if (!config_has_only(reader, names) || !read_servers(reader, upstream))
        return false;
    return read_fastcgi_keys(reader, upstream) && read_upstream_tls(reader, upstream) &&
           read_balance(reader, settings) &&
           read_amount(reader, "max_fails", &settings->max_fails, FAILS_MOST) &&
           read_period(reader, "fail_timeout", &settings->fail_timeout_ms) &&
           read_period(reader, "slow_start", &settings->slow_start_ms) &&
           read_amount(reader, "connections", &settings->connections_max, CONNECTIONS_MOST) &&
           read_amount(reader, "idle", &settings->idle_max, CONNECTIONS_MOST) &&
           read_period(reader, "connect_timeout", &settings->connect_timeout_ms) &&
           read_period(reader, "reply_timeout", &settings->first_byte_timeout_ms) &&
           read_period(reader, "stall_timeout", &settings->stall_timeout_ms) &&
           read_period(reader, "idle_timeout", &settings->idle_timeout_ms) &&
           read_amount(reader, "websockets", &settings->tunnels_max, CONNECTIONS_MOST) &&
           read_period(reader, "websocket_timeout", &settings->tunnel_timeout_ms) &&
           read_checks(reader, settings);
}

bool
config_read_upstreams(struct config_reader *reader)
{
    lua_State *L = reader->L;
    const uint64_t place = config_key(CONFIG_ROOT, "upstreams", 9);

    if (lua_getfield(L, 1, "upstreams") == LUA_TNIL) {
        lua_pop(L, 1);
        return true;
    }
    config_note_key(reader, "upstreams");
    if (!lua_istable(L, -1))
        return config_fail(reader, "upstreams", luaL_typename(L, -1),
                           "a table such as { app = { servers = \"127.0.0.1:3000\" } }");
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        const char *name;

        if (lua_type(L, -2) != LUA_TSTRING)
            return config_fail(reader, "upstreams", NULL,
                               "each has a name: app = { servers = ... }");
        reader->place = place;
        config_note_key(reader, lua_tostring(L, -2));
        if (!lua_istable(L, -1))
            return config_fail(reader, lua_tostring(L, -2), luaL_typename(L, -1),
                               "a table such as { servers = \"127.0.0.1:3000\" }");
        lua_pushvalue(L, -2);
        name = config_take_text(reader, "upstreams");
        if (name == NULL)
            return false;
        reader->place = config_key(place, name, strlen(name));
        if (!read_upstream(reader, add_upstream(reader, name)))
            return false;
    }
    lua_pop(L, 1);
    reader->place = CONFIG_ROOT;
    return true;
}

/* ---- Routes ---- */

static bool
read_fields_of_proxy(struct config_reader *reader, struct sxe_http_proxy *send)
{
    const char *name = NULL;

    if (!config_read_text(reader, "forwarded", &name))
        return false;
    if (name == NULL || strcmp(name, "x-forwarded") == 0)
        send->fields = SXE_HTTP_PROXY_X_FORWARDED;
    else if (strcmp(name, "forwarded") == 0)
        send->fields = SXE_HTTP_PROXY_FORWARDED;
    else if (strcmp(name, "none") == 0)
        send->fields = SXE_HTTP_PROXY_NO_FIELDS;
    else
        return config_fail(reader, "forwarded", name, "x-forwarded, forwarded or none");
    return true;
}

/* Find the upstream that the route names, or make one for the route's URL. */
static bool
choose_upstream(struct config_reader *reader, struct config_route *route)
{
    static const char names[] = "the name of one of the upstreams, or a URL such as "
                                "http://127.0.0.1:3000";
    char place[UPSTREAM_PLACE_SIZE];
    const char *path = NULL;
    const char *problem;

    route->upstream = find_upstream(reader->sites, route->proxy);
    if (route->upstream != NULL && route->upstream->settings.fastcgi)
        return config_fail(reader, "proxy", route->proxy,
                           "an upstream without fastcgi = true; or write fastcgi = \"NAME\" here");
    if (route->upstream != NULL)
        return true;
    problem = upstream_split_url(route->proxy, place, &path);
    if (problem != NULL)
        return config_fail(reader, "proxy", route->proxy, path == NULL ? names : problem);
    if (path != NULL && route->send.path != NULL)
        return config_fail(reader, "path", route->send.path, "in the URL or here, not both");
    if (path != NULL)
        route->send.path = path;
    route->upstream = add_upstream(reader, route->proxy);
    memcpy(route->upstream->place, place, sizeof(place));
    route->upstream->places[0] = route->upstream->place;
    route->upstream->places_number = 1;
    route->upstream->is_tls = upstream_has_scheme(place);
    return true;
}

/* Read the fields that the route sets in requests. */
static bool
read_request_header(struct config_reader *reader, struct config_route *route)
{
    struct sxe_http_proxy *send = &route->send;

    send->request_header = route->request_headers;
    if (!config_read_texts(reader, "request_header", route->request_headers, CONFIG_HEADERS_MAX,
                           &send->request_header_number))
        return false;
    for (unsigned i = 0; i < send->request_header_number; i++) {
        const char *fault = sxe__http_rule_fault(route->request_headers[i]);

        if (fault != NULL)
            return config_fail(reader, "request_header", route->request_headers[i], fault);
    }
    return true;
}

bool
config_read_proxy(struct config_reader *reader, struct config_route *route)
{
    struct sxe_http_proxy *send = &route->send;
    const bool is_fastcgi = lua_getfield(reader->L, -1, "fastcgi") != LUA_TNIL;

    lua_pop(reader->L, 1);
    if (!config_read_text(reader, "path", &send->path) ||
        !config_read_text(reader, "host", &send->host) ||
        !config_read_text(reader, "via", &send->via) || !read_fields_of_proxy(reader, send) ||
        !config_read_switch(reader, "encoded_slash", &send->encoded_slash) ||
        !read_request_header(reader, route) || !config_read_text(reader, "proxy", &route->proxy))
        return false;
    if (sxe_http_proxy_check(&(struct sxe_http_proxy){.host = send->host}) < 0)
        return config_fail(reader, "host", send->host, "a host, with or without a port");
    if (route->proxy == NULL)
        return (send->path == NULL && (send->host == NULL || is_fastcgi) && send->via == NULL &&
                send->fields == SXE_HTTP_PROXY_X_FORWARDED && !send->encoded_slash &&
                send->request_header_number == 0) ||
               config_fail(reader, route->pattern, NULL,
                           "path, host, via, forwarded, encoded_slash and request_header need "
                           "proxy = ...");
    if (send->path != NULL && !upstream_is_path(send->path))
        return config_fail(reader, "path", send->path, UPSTREAM_PATH);
    if (send->via != NULL && !sxe_http_is_token((struct sxe_span){send->via, strlen(send->via)}))
        return config_fail(reader, "via", send->via, "a name of letters, digits and dashes");
    return choose_upstream(reader, route);
}

/* Find the upstream of FastCGI that the route names, or make one for the route's place. */
static bool
choose_fastcgi(struct config_reader *reader, struct config_route *route)
{
    route->upstream = find_upstream(reader->sites, route->fastcgi);
    if (route->upstream != NULL && !route->upstream->settings.fastcgi)
        return config_fail(reader, "fastcgi", route->fastcgi,
                           "an upstream with fastcgi = true; or write proxy = \"NAME\" here");
    if (route->upstream != NULL)
        return true;
    if (!upstream_is_place(route->fastcgi) || upstream_has_scheme(route->fastcgi))
        return config_fail(reader, "fastcgi", route->fastcgi,
                           "the name of an upstream with fastcgi = true, or a server such as "
                           "127.0.0.1:9000 or /run/php/php-fpm.sock");
    route->upstream = add_upstream(reader, route->fastcgi);
    route->upstream->places[0] = route->fastcgi;
    route->upstream->places_number = 1;
    route->upstream->settings.fastcgi = true;
    return true;
}

/* Check the keys of a route with scripts. */
static bool
check_scripts(struct config_reader *reader, const struct config_route *route)
{
    struct sxe_http_scripts_config config = route->script;
    struct sxe_http_scripts *scripts;

    if (*config.root != '/')
        return config_fail(reader, "root", config.root,
                           "a path that begins with a slash, because the server of FastCGI gets "
                           "it, too");
    /* a variable may have the suffix, and a path that ends with a slash leads to the index */
    if (config.fallback == NULL && strpbrk(route->pattern, "{*") == NULL &&
        strstr(route->pattern, config.suffix == NULL ? ".php" : config.suffix) == NULL &&
        route->pattern[strlen(route->pattern) - 1] != '/')
        return config_fail(reader, route->pattern, NULL,
                           "no path of this route leads to a script: let it end with {path...}");
    if (config.is_remote && route->has_files)
        return config_fail(reader, "remote", NULL, "files = true needs a directory that is here");
    config.is_remote = true; /* the directory is opened later */
    scripts = sxe_http_scripts_new(&config);
    if (scripts == NULL)
        return config_fail(reader, route->pattern, NULL,
                           "root, suffix and index are 1 to 1023 bytes; index and fallback end "
                           "with suffix, by default .php; fallback begins with a slash");
    sxe_http_scripts_delete(scripts);
    return true;
}

bool
config_read_fastcgi(struct config_reader *reader, struct config_route *route)
{
    struct sxe_http_scripts_config *script = &route->script;

    if (!config_read_text(reader, "fastcgi", &route->fastcgi) ||
        !config_read_text(reader, "suffix", &script->suffix) ||
        !config_read_text(reader, "index", &script->index) ||
        !config_read_switch(reader, "remote", &script->is_remote) ||
        !config_read_switch(reader, "files", &route->has_files))
        return false;
    script->root = route->root;
    script->fallback = route->fallback;
    if ((route->fastcgi == NULL || script->root == NULL) &&
        (script->suffix != NULL || script->index != NULL || script->is_remote || route->has_files))
        return config_fail(reader, route->pattern, NULL,
                           "suffix, index, remote and files need fastcgi = ... and root = ...");
    if (route->fastcgi == NULL)
        return true;
    return (script->root == NULL || check_scripts(reader, route)) && choose_fastcgi(reader, route);
}

void
config_upstreams_free(struct config_sites *sites)
{
    while (sites->upstreams != NULL) {
        struct upstream *upstream = sites->upstreams;

        sites->upstreams = upstream->next;
        free(upstream);
    }
}
