/* SPDX-License-Identifier: MIT
 *
 * Reads the sites and routes of a configuration file.
 */
#include "config-sites.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command-line.h"
#include "config-names.h"
#include "config-origin.h"
#include "config-reader.h"
#include "options-check.h"
#include "sxe-http-list.h"

static struct config_sites *all;

static bool
is_of_redirect(lua_Integer status)
{
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static bool
read_status(struct config_reader *reader, const char *key, bool is_redirect, unsigned *status)
{
    lua_Integer value;
    int is_number = 0;

    if (lua_getfield(reader->L, -1, key) == LUA_TNIL) {
        lua_pop(reader->L, 1);
        return true;
    }
    config_note_key(reader, key);
    value = lua_tointegerx(reader->L, -1, &is_number);
    if (is_number == 0 || !(is_redirect ? is_of_redirect(value) : value >= 200 && value <= 599))
        return config_fail(
            reader, key, is_number ? lua_tostring(reader->L, -1) : luaL_typename(reader->L, -1),
            is_redirect ? "one of 301, 302, 303, 307 and 308" : "a status from 200 to 599");
    lua_pop(reader->L, 1);
    *status = (unsigned)value;
    return true;
}

/* Read the keys "rate" and "burst". */
static bool
read_rate(struct config_reader *reader, struct rate_limit *rate)
{
    const char *text = NULL;
    lua_Integer burst;
    int is_number = 0;

    if (!config_read_text(reader, "rate", &text))
        return false;
    if (text != NULL && !rate_limit_parse(rate, text))
        return config_fail(
            reader, "rate", text,
            "a number of requests and a time, such as \"10/s\", \"100/m\" or \"1000/h\"");
    rate->route = reader->place;
    if (lua_getfield(reader->L, -1, "burst") == LUA_TNIL) {
        lua_pop(reader->L, 1);
        return true;
    }
    config_note_key(reader, "burst");
    burst = lua_tointegerx(reader->L, -1, &is_number);
    if (text == NULL || is_number == 0 || burst < 1 || burst > RATE_LIMIT_MOST)
        return config_fail(reader, "burst",
                           is_number ? lua_tostring(reader->L, -1) : luaL_typename(reader->L, -1),
                           "a number from 1 to 1000000, beside a rate");
    lua_pop(reader->L, 1);
    rate->burst = (uint32_t)burst;
    return true;
}

/* Read the keys "passwords" and "realm" of a route or of a site. A route without them inherits
 * those of its site. If a route has passwords = false, it needs no password, although its site has
 * some. */
static bool
read_auth(struct config_reader *reader, struct basic_auth *auth, unsigned *line, bool is_site)
{
    const char *const inherited = auth->realm;
    const int type = lua_getfield(reader->L, -1, "passwords");
    const bool is_off = type == LUA_TBOOLEAN && !lua_toboolean(reader->L, -1);

    lua_pop(reader->L, 1);
    if (is_off)
        auth->file = NULL;
    else if (!config_read_text(reader, "passwords", &auth->file))
        return false;
    if (type != LUA_TNIL)
        *line = reader->line;
    if (!config_read_text(reader, "realm", &auth->realm))
        return false;
    if (auth->realm != inherited && auth->file == NULL && !is_off && !is_site)
        return config_fail(reader, "realm", NULL, "a realm needs a file: add passwords = \"FILE\"");
    if (auth->realm != NULL && !basic_auth_is_realm(auth->realm))
        return config_fail(reader, "realm", auth->realm,
                           "1 to 128 characters of ASCII without quotation marks and backslashes");
    return true;
}

/* ---- Routes ---- */

static bool
is_header(struct config_reader *reader, const struct config_route *route)
{
    for (unsigned i = 0; i < route->headers_number; i++) {
        if (!httpd_is_field(route->headers[i]))
            return config_fail(reader, "header", route->headers[i],
                               "'Name: value', and not a field that sxe-httpd sets itself");
    }
    return true;
}

/* Whether the redirect itself names a server. If a {name} came before the path, the client could
 * choose the server. */
static bool
names_its_server(const char *redirect)
{
    const char *value = redirect + strcspn(redirect, "{");
    const char *server = strstr(redirect, "//");

    /* Refuse backslashes and tabs, because browsers read a backslash as a slash, and ignore
     * tabs. */
    if (*value != '\0' && strcspn(redirect, "\\\t") < (size_t)(value - redirect))
        return false;
    if (*value == '\0' || *redirect == '?' || *redirect == '#')
        return true;
    if (*redirect == '/' && server != redirect)
        return true;
    return server != NULL && server + 2 + strcspn(server + 2, "/?#") < value;
}

/* Whether the pattern has each {name} that the redirect uses. A {name} that the pattern lacks would
 * be empty. A parameter that is {path...} in the pattern is {path} in the redirect. */
static bool
has_names(const char *pattern, const char *redirect)
{
    for (const char *name = strchr(redirect, '{'); name != NULL; name = strchr(name + 1, '{')) {
        const char *end = strchr(name, '}');
        const char *found = pattern;

        if (end == NULL)
            return true;
        if (end[-1] == '.')
            return false;
        while ((found = strchr(found, '{')) != NULL &&
               (strncmp(found, name, (size_t)(end - name)) != 0 ||
                strchr("}.", found[end - name]) == NULL))
            found++;
        if (found == NULL)
            return false;
    }
    return true;
}

/* Whether the text can be a URL or a path in Location: it is not empty, and has no blank. */
static bool
is_location(const char *redirect)
{
    return *redirect != '\0' && redirect[strcspn(redirect, " ")] == '\0' &&
           sxe_http_is_field_value((struct sxe_span){redirect, strlen(redirect)});
}

/* Whether the text is a media type, with or without parameters (RFC 9110, 8.3.1). */
static bool
is_media_type(const char *type)
{
    const size_t main = strcspn(type, "/");
    const char *rest = type[main] == '\0' ? "" : type + main + 1;
    const size_t sub = strcspn(rest, "; ");

    return sxe_http_is_token((struct sxe_span){type, main}) &&
           sxe_http_is_token((struct sxe_span){rest, sub}) &&
           (rest[sub] == '\0' || rest[sub + strspn(rest + sub, " ")] == ';') &&
           sxe_http_is_field_value((struct sxe_span){type, strlen(type)});
}

/* Check the texts that go into the head of the reply. False after a message. */
static bool
are_texts_good(const struct config_reader *reader, const struct config_route *route)
{
    if (route->type != NULL && !is_media_type(route->type))
        return config_fail(reader, "type", route->type,
                           "a media type such as text/html, or text/html; charset=utf-8");
    if (route->redirect == NULL)
        return true;
    if (!is_location(route->redirect))
        return config_fail(reader, "redirect", route->redirect,
                           "a URL or a path, not empty, without blanks and control characters");
    if (!names_its_server(route->redirect))
        return config_fail(
            reader, "redirect", route->redirect,
            "a path such as /people/{id}, or a URL with a {name} only after its server");
    return has_names(route->pattern, route->redirect) ||
           config_fail(reader, "redirect", route->redirect, "one with {name}s of the path only");
}

/* Choose the action of the route by its keys. False after a message. */
static bool
choose_action(struct config_reader *reader, struct config_route *route, bool is_script)
{
    const int actions = (route->root != NULL && route->fastcgi == NULL) +
                        (route->redirect != NULL) + is_script + (route->proxy != NULL) +
                        (route->fastcgi != NULL) + (route->status != 0 && route->redirect == NULL);

    reader->line = route->line;
    if (actions != 1)
        return config_fail(reader, route->pattern, NULL,
                           "a route has one of root, redirect, status, proxy, fastcgi and script");
    if (route->fallback != NULL && (route->root == NULL || *route->fallback != '/'))
        return config_fail(reader, "fallback", route->fallback,
                           "a path such as /index.html, in a route with root");
    if (!are_texts_good(reader, route))
        return false;
    reader->sites->has_passwords |= route->auth.file != NULL;
    route->action = route->fastcgi != NULL    ? CONFIG_FASTCGI
                    : route->root != NULL     ? CONFIG_ROOT_OF_FILES
                    : route->redirect != NULL ? CONFIG_REDIRECT
                    : route->proxy != NULL    ? CONFIG_PROXY
                    : is_script               ? CONFIG_SCRIPT
                                              : CONFIG_REPLY;
    if (route->status == 0)
        route->status = 302;
    if (is_script)
        reader->sites->script = route;
    return true;
}

/* Read the route whose table is on top of the stack. */
static bool
read_route(struct config_reader *reader, struct config_route *route)
{
    static const char *const names[] = {
        "body",      "burst",     "encoded_slash",  "fallback", "fastcgi",
        "files",     "forwarded", "header",         "host",     "index",
        "passwords", "path",      "proxy",          "rate",     "realm",
        "redirect",  "remote",    "request_header", "root",     "script",
        "status",    "suffix",    "type",           "via",      NULL};
    bool is_script = false;

    if (!lua_istable(reader->L, -1))
        return config_fail(reader, route->pattern, luaL_typename(reader->L, -1),
                           "a table such as { root = \"public\" }");
    if (!config_has_only(reader, names) || !config_read_text(reader, "root", &route->root) ||
        !config_read_text(reader, "fallback", &route->fallback) ||
        !config_read_text(reader, "redirect", &route->redirect) ||
        !config_read_text(reader, "body", &route->body) ||
        !config_read_text(reader, "type", &route->type) ||
        !config_read_switch(reader, "script", &is_script) || !read_rate(reader, &route->rate) ||
        !config_read_proxy(reader, route) || !config_read_fastcgi(reader, route) ||
        !read_auth(reader, &route->auth, &route->auth_line, false) ||
        !read_status(reader, "status", route->redirect != NULL, &route->status) ||
        !config_read_texts(reader, "header", route->headers, CONFIG_HEADERS_MAX,
                           &route->headers_number))
        return false;
    return is_header(reader, route) && choose_action(reader, route, is_script);
}

/* Add a route to the router. 0; or -errno, and sxe_http_router_error says why. */
static int
add_to_router(struct config_site *site, struct config_route *route)
{
    const struct sxe_http_route_options options = {.user = route};

    return sxe_http_router_add(site->router, route->action == CONFIG_ROOT_OF_FILES ? "GET" : "*",
                               route->pattern, config_routes_handle, &options);
}

/* Why the router refuses the pattern. The beginning of the router's message is left out: it names
 * methods, which a file does not have, and the pattern, which our message names already. */
static const char *
fault_of(const struct sxe_http_router *router, const char *pattern)
{
    const char *error = sxe_http_router_error(router);
    const size_t length = strlen(pattern);

    return strncmp(error, "* ", 2) == 0 && strncmp(error + 2, pattern, length) == 0
               ? error + length + strlen("* : ")
               : error;
}

/* Read the routes of a site, whose table is on top of the stack. */
static bool
read_routes(struct config_reader *reader, struct config_site *site)
{
    lua_State *L = reader->L;
    const uint64_t place = reader->place;

    if (!lua_istable(L, -1))
        return config_fail(reader, "routes", luaL_typename(L, -1),
                           "a table such as { [\"/\"] = { root = \"public\" } }");
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        struct config_route *route;

        if (lua_type(L, -2) != LUA_TSTRING)
            return config_fail(reader, "routes", NULL,
                               "a key is a path, such as [\"/a/{rest...}\"]");
        route = calloc(1, sizeof(*route));
        if (route == NULL)
            return luaL_error(L, "no memory");
        route->next = site->routes;
        site->routes = route;
        lua_pushvalue(L, -2);
        reader->place = place;
        config_note_key(reader, lua_tostring(L, -1));
        route->line = reader->line;
        route->auth = site->auth;
        route->auth_line = site->auth_line;
        route->pattern = config_take_text(reader, "routes");
        if (route->pattern == NULL) /* the pattern contains a zero byte */
            return false;
        reader->place = config_key(place, route->pattern, strlen(route->pattern));
        if (!read_route(reader, route))
            return false;
        reader->line = route->line;
        if (add_to_router(site, route) < 0)
            return config_fail(reader, route->pattern, NULL,
                               fault_of(site->router, route->pattern));
    }
    reader->place = place;
    return true;
}

/* ---- Sites ---- */

static struct config_site *
add_site(struct config_reader *reader)
{
    struct config_site *site = calloc(1, sizeof(*site));

    if (site != NULL) {
        site->next = reader->sites->first;
        reader->sites->first = site;
        site->router = sxe_http_router_new();
    }
    if (site == NULL || site->router == NULL)
        luaL_error(reader->L, "no memory");
    return site;
}

static bool
has_good_names(struct config_reader *reader, const struct config_site *site)
{
    for (unsigned i = 0; i < site->names_number; i++) {
        if (!config_is_name(site->names[i]))
            return config_fail(
                reader, "names", site->names[i],
                "a name without port and final dot, such as example.com, *.example.com or "
                "*");
    }
    return true;
}

/* Read the site whose table is on top of the stack. */
static bool
read_site(struct config_reader *reader)
{
    static const char *const names[] = {"names", "passwords", "realm", "routes", NULL};
    const uint64_t place = reader->place;
    const unsigned line = reader->line;
    struct config_site *site;
    bool is_good;

    if (!lua_istable(reader->L, -1))
        return config_fail(reader, "sites", luaL_typename(reader->L, -1),
                           "a table such as { names = \"example.com\", routes = { ... } }");
    if (!config_has_only(reader, names))
        return false;
    site = add_site(reader);
    if (!config_read_texts(reader, "names", site->names, CONFIG_NAMES_MAX, &site->names_number) ||
        !read_auth(reader, &site->auth, &site->auth_line, true))
        return false;
    reader->line = line;
    if (site->names_number == 0)
        return config_fail(reader, "sites", NULL, "a site needs names");
    if (!has_good_names(reader, site))
        return false;
    (void)lua_getfield(reader->L, -1, "routes");
    config_note_key(reader, "routes");
    reader->place = config_key(place, "routes", 6);
    is_good = read_routes(reader, site);
    lua_pop(reader->L, 1);
    return is_good;
}

static bool
read_sites(struct config_reader *reader)
{
    lua_State *L = reader->L;
    const uint64_t place = config_key(CONFIG_ROOT, "sites", 5);
    bool is_good = true;

    if (!lua_istable(L, -1) || !config_is_list(L, lua_gettop(L)))
        return config_fail(reader, "sites", luaL_typename(L, -1),
                           "a list of sites: { { names = \"example.com\", routes = { ... } } }");
    for (lua_Unsigned i = 1; i <= lua_rawlen(L, -1) && is_good; i++) {
        const unsigned line = config_lines_find(reader->file->lines, config_item(place, i), 0);

        reader->place = config_item(place, i);
        reader->line = line > 0 ? line : reader->line;
        (void)lua_rawgeti(L, -1, (lua_Integer)i);
        is_good = read_site(reader);
        lua_pop(L, 1);
    }
    return is_good;
}

static bool
read_all_tables(struct config_reader *reader)
{
    lua_State *L = reader->L;

    if (!config_read_upstreams(reader))
        return false;
    if (lua_getfield(L, 1, "sites") != LUA_TNIL) {
        config_note_key(reader, "sites");
        if (!read_sites(reader))
            return false;
    }
    reader->place = CONFIG_ROOT;
    if (lua_getfield(L, 1, "routes") == LUA_TNIL)
        return true;
    config_note_key(reader, "routes");
    reader->place = config_key(CONFIG_ROOT, "routes", 6);
    reader->sites->usual = add_site(reader);
    return read_routes(reader, reader->sites->usual);
}

struct config_sites *
config_sites_read(struct config_file *file, bool *is_good)
{
    struct config_reader reader = {.file = file, .L = file->L, .place = CONFIG_ROOT};

    reader.sites = calloc(1, sizeof(*reader.sites));
    if (reader.sites == NULL)
        luaL_error(file->L, "no memory");
    reader.sites->path = file->path;
    reader.sites->before = all;
    all = reader.sites;
    *is_good = read_all_tables(&reader);
    lua_settop(file->L, 1);
    return reader.sites->first == NULL ? NULL : reader.sites;
}

static void
free_site(struct config_site *site)
{
    while (site->routes != NULL) {
        struct config_route *route = site->routes;

        site->routes = route->next;
        free(route);
    }
    sxe_http_router_delete(site->router);
    free(site);
}

void
config_sites_end(void)
{
    while (all != NULL) {
        struct config_sites *sites = all;

        all = sites->before;
        while (sites->first != NULL) {
            struct config_site *site = sites->first;

            sites->first = site->next;
            free_site(site);
        }
        config_upstreams_free(sites);
        free(sites);
    }
}
