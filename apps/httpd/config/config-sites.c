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
#include "config-internal.h"
#include "options-check.h"
#include "sxe-http-list.h"

struct reader {
    struct config_file *file;
    lua_State *L;
    struct config_sites *sites;
    uint64_t place; /* of the table on top, see config-lines.h */
    unsigned line;  /* of the table on top, or of the key that was read last */
};

static struct config_sites *all;

/* ---- Messages ---- */

static bool
fail(const struct reader *reader, const char *key, const char *given, const char *must)
{
    config_be_at(reader->line, key);
    fprintf(stderr, "sxe-httpd: %s%s%s%s%s\n", command_line_place, given == NULL ? "" : "it is ",
            given == NULL ? "" : given, given == NULL ? "" : "; it must be ", must);
    return false;
}

static void
note_line_of_key(struct reader *reader, const char *key)
{
    const size_t length = strlen(key);
    const unsigned line = config_lines_find(
        reader->file->lines, config_key(reader->place, key, length), config_anywhere(key, length));

    reader->line = line > 0 ? line : reader->line;
}

/* Check that the table on top has no other keys than these. False after a message. */
static bool
has_only(struct reader *reader, const char *const *names)
{
    lua_State *L = reader->L;

    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        const char *nearest = NULL;
        unsigned fewest = 0;
        unsigned i = 0;
        char text[128];

        while (names[i] != NULL && strcmp(names[i], key) != 0)
            i++;
        if (names[i] != NULL)
            continue;
        for (i = 0; names[i] != NULL; i++)
            nearest =
                command_line_is_nearer(key, strlen(key), names[i], &fewest) ? names[i] : nearest;
        snprintf(text, sizeof(text), "there is no such key here%s%s%s",
                 nearest == NULL ? "" : "; did you mean ", nearest == NULL ? "" : nearest,
                 nearest == NULL ? "" : "?");
        note_line_of_key(reader, key);
        return fail(reader, key, NULL, text);
    }
    return true;
}

/* ---- Values ---- */

/* Pop the text on top, and keep it until the file is closed. NULL after a message: it is no text.
 */
static const char *
take_text(struct reader *reader, const char *key)
{
    const char *text = NULL;
    size_t length = 0;

    if (lua_type(reader->L, -1) == LUA_TSTRING)
        text = lua_tolstring(reader->L, -1, &length);
    if (text == NULL || strlen(text) != length) {
        (void)fail(reader, key, luaL_typename(reader->L, -1), "a text without zero bytes");
        return NULL;
    }
    text = config_file_keep(reader->file);
    if (text == NULL)
        luaL_error(reader->L, "no memory");
    return text;
}

/* Read the text of a key of the table on top; *text is not changed if there is no such key. False
 * after a message, like all functions here that read. */
static bool
read_text(struct reader *reader, const char *key, const char **text)
{
    if (lua_getfield(reader->L, -1, key) == LUA_TNIL) {
        lua_pop(reader->L, 1);
        return true;
    }
    note_line_of_key(reader, key);
    *text = take_text(reader, key);
    return *text != NULL;
}

static bool
is_of_redirect(lua_Integer status)
{
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static bool
read_status(struct reader *reader, const char *key, bool is_redirect, unsigned *status)
{
    lua_Integer value;
    int is_number = 0;

    if (lua_getfield(reader->L, -1, key) == LUA_TNIL) {
        lua_pop(reader->L, 1);
        return true;
    }
    note_line_of_key(reader, key);
    value = lua_tointegerx(reader->L, -1, &is_number);
    if (is_number == 0 || !(is_redirect ? is_of_redirect(value) : value >= 200 && value <= 599))
        return fail(reader, key,
                    is_number ? lua_tostring(reader->L, -1) : luaL_typename(reader->L, -1),
                    is_redirect ? "one of 301, 302, 303, 307 and 308" : "a status from 200 to 599");
    lua_pop(reader->L, 1);
    *status = (unsigned)value;
    return true;
}

/* Read a text or a list of texts into texts, which has room for `most`. */
static bool
read_texts(struct reader *reader, const char *key, const char **texts, unsigned most,
           unsigned *number)
{
    lua_State *L = reader->L;
    const int type = lua_getfield(L, -1, key);
    const lua_Unsigned length = type == LUA_TTABLE ? lua_rawlen(L, -1) : type != LUA_TNIL;
    char must[64];

    *number = 0;
    note_line_of_key(reader, key);
    if (type == LUA_TTABLE && !config_is_list(L, lua_gettop(L)))
        return fail(reader, key, "a table with names", "a text, or a list of texts");
    if (length > most) {
        snprintf(must, sizeof(must), "there may be %u of them at most", most);
        return fail(reader, key, NULL, must);
    }
    for (lua_Unsigned i = 1; i <= length; i++) {
        if (type == LUA_TTABLE)
            (void)lua_rawgeti(L, -1, (lua_Integer)i);
        else
            lua_pushvalue(L, -1);
        texts[*number] = take_text(reader, key);
        if (texts[(*number)++] == NULL)
            return false;
    }
    lua_pop(L, 1);
    return true;
}

static bool
read_switch(struct reader *reader, const char *key, bool *is_on)
{
    const int type = lua_getfield(reader->L, -1, key);

    note_line_of_key(reader, key);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        return fail(reader, key, luaL_typename(reader->L, -1), "true or false");
    *is_on = lua_toboolean(reader->L, -1) != 0;
    lua_pop(reader->L, 1);
    return true;
}

/* Read the keys "rate" and "burst". */
static bool
read_rate(struct reader *reader, struct rate_limit *rate)
{
    const char *text = NULL;
    lua_Integer burst;
    int is_number = 0;

    if (!read_text(reader, "rate", &text))
        return false;
    if (text != NULL && !rate_limit_parse(rate, text))
        return fail(reader, "rate", text,
                    "a number of requests and a time, such as \"10/s\", \"100/m\" or \"1000/h\"");
    rate->route = reader->place;
    if (lua_getfield(reader->L, -1, "burst") == LUA_TNIL) {
        lua_pop(reader->L, 1);
        return true;
    }
    note_line_of_key(reader, "burst");
    burst = lua_tointegerx(reader->L, -1, &is_number);
    if (text == NULL || is_number == 0 || burst < 1 || burst > RATE_LIMIT_MOST)
        return fail(reader, "burst",
                    is_number ? lua_tostring(reader->L, -1) : luaL_typename(reader->L, -1),
                    "a number from 1 to 1000000, beside a rate");
    lua_pop(reader->L, 1);
    rate->burst = (uint32_t)burst;
    return true;
}

/* Read the keys "passwords" and "realm" of a route, or of a site: its routes have the same, unless
 * they have their own. passwords may be false: none, for a route whose site has them. */
static bool
read_auth(struct reader *reader, struct basic_auth *auth, unsigned *line, bool is_site)
{
    const char *const inherited = auth->realm;
    const int type = lua_getfield(reader->L, -1, "passwords");
    const bool is_off = type == LUA_TBOOLEAN && !lua_toboolean(reader->L, -1);

    lua_pop(reader->L, 1);
    if (is_off)
        auth->file = NULL;
    else if (!read_text(reader, "passwords", &auth->file))
        return false;
    if (type != LUA_TNIL)
        *line = reader->line;
    if (!read_text(reader, "realm", &auth->realm))
        return false;
    if (auth->realm != inherited && auth->file == NULL && !is_off && !is_site)
        return fail(reader, "realm", NULL, "a realm needs a file: add passwords = \"FILE\"");
    if (auth->realm != NULL && !basic_auth_is_realm(auth->realm))
        return fail(reader, "realm", auth->realm,
                    "1 to 128 characters of ASCII without quotation marks and backslashes");
    return true;
}

/* ---- Routes ---- */

static bool
is_header(struct reader *reader, const struct config_route *route)
{
    for (unsigned i = 0; i < route->headers_number; i++) {
        if (!httpd_is_field(route->headers[i]))
            return fail(reader, "header", route->headers[i],
                        "'Name: value', and not a field that sxe-httpd sets itself");
    }
    return true;
}

/* Does the redirect itself name its server? A {name} before the path would let the client choose
 * the server. */
static bool
names_its_server(const char *redirect)
{
    const char *value = redirect + strcspn(redirect, "{");
    const char *server = strstr(redirect, "//");

    /* Browsers take a backslash for a slash, and leave out tabs. */
    if (*value != '\0' && strcspn(redirect, "\\\t") < (size_t)(value - redirect))
        return false;
    if (*value == '\0' || *redirect == '?' || *redirect == '#')
        return true;
    if (*redirect == '/' && server != redirect)
        return true;
    return server != NULL && server + 2 + strcspn(server + 2, "/?#") < value;
}

/* Does the pattern have each {name} of the redirect? A {name} that it lacks would become empty. The
 * redirect has {path} for a pattern's {path...}. */
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

/* Choose the route's action from its keys. False after a message. */
static bool
choose_action(struct reader *reader, struct config_route *route, bool is_script)
{
    const int actions = (route->root != NULL) + (route->redirect != NULL) + is_script +
                        (route->status != 0 && route->redirect == NULL);
    const struct sxe_span type = {route->type, route->type == NULL ? 0 : strlen(route->type)};
    const struct sxe_span to = {route->redirect,
                                route->redirect == NULL ? 0 : strlen(route->redirect)};

    reader->line = route->line;
    if (actions != 1)
        return fail(reader, route->pattern, NULL,
                    "a route has one of root, redirect, status and script");
    if (route->fallback != NULL && (route->root == NULL || *route->fallback != '/'))
        return fail(reader, "fallback", route->fallback,
                    "a path such as /index.html, in a route with root");
    if (!sxe_http_is_field_value(type) || !sxe_http_is_field_value(to))
        return fail(reader, route->pattern, NULL,
                    "type and redirect have to be valid values of a header");
    if (route->redirect != NULL && !names_its_server(route->redirect))
        return fail(reader, "redirect", route->redirect,
                    "a path such as /people/{id}, or a URL with a {name} only after its server");
    if (route->redirect != NULL && !has_names(route->pattern, route->redirect))
        return fail(reader, "redirect", route->redirect, "one with {name}s of the path only");
    reader->sites->has_passwords |= route->auth.file != NULL;
    route->action = route->root != NULL       ? CONFIG_ROOT_OF_FILES
                    : route->redirect != NULL ? CONFIG_REDIRECT
                    : is_script               ? CONFIG_SCRIPT
                                              : CONFIG_REPLY;
    if (route->status == 0)
        route->status = 302;
    if (is_script)
        reader->sites->script = route;
    return true;
}

/* Read the route whose table is on top. */
static bool
read_route(struct reader *reader, struct config_route *route)
{
    static const char *const names[] = {"body",   "burst", "fallback", "header", "passwords",
                                        "rate",   "realm", "redirect", "root",   "script",
                                        "status", "type",  NULL};
    bool is_script = false;

    if (!lua_istable(reader->L, -1))
        return fail(reader, route->pattern, luaL_typename(reader->L, -1),
                    "a table such as { root = \"public\" }");
    if (!has_only(reader, names) || !read_text(reader, "root", &route->root) ||
        !read_text(reader, "fallback", &route->fallback) ||
        !read_text(reader, "redirect", &route->redirect) ||
        !read_text(reader, "body", &route->body) || !read_text(reader, "type", &route->type) ||
        !read_switch(reader, "script", &is_script) || !read_rate(reader, &route->rate) ||
        !read_auth(reader, &route->auth, &route->auth_line, false) ||
        !read_status(reader, "status", route->redirect != NULL, &route->status) ||
        !read_texts(reader, "header", route->headers, CONFIG_HEADERS_MAX, &route->headers_number))
        return false;
    return is_header(reader, route) && choose_action(reader, route, is_script);
}

/* 0, or -errno: sxe_http_router_error says why. */
static int
add_to_router(struct config_site *site, struct config_route *route)
{
    const struct sxe_http_route_options options = {.user = route};

    return sxe_http_router_add(site->router, route->action == CONFIG_ROOT_OF_FILES ? "GET" : "*",
                               route->pattern, config_routes_handle, &options);
}

/* Why the router refuses the pattern. It names the methods, which a file does not have, and the
 * pattern, which the message begins with. */
static const char *
fault_of(const struct sxe_http_router *router, const char *pattern)
{
    const char *error = sxe_http_router_error(router);
    const size_t length = strlen(pattern);

    return strncmp(error, "* ", 2) == 0 && strncmp(error + 2, pattern, length) == 0
               ? error + length + strlen("* : ")
               : error;
}

/* Read the routes of a site. Their table is on top. */
static bool
read_routes(struct reader *reader, struct config_site *site)
{
    lua_State *L = reader->L;
    const uint64_t place = reader->place;

    if (!lua_istable(L, -1))
        return fail(reader, "routes", luaL_typename(L, -1),
                    "a table such as { [\"/\"] = { root = \"public\" } }");
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        struct config_route *route;

        if (lua_type(L, -2) != LUA_TSTRING)
            return fail(reader, "routes", NULL, "a key is a path, such as [\"/a/{rest...}\"]");
        route = calloc(1, sizeof(*route));
        if (route == NULL)
            return luaL_error(L, "no memory");
        route->next = site->routes;
        site->routes = route;
        lua_pushvalue(L, -2);
        reader->place = place;
        note_line_of_key(reader, lua_tostring(L, -1));
        route->line = reader->line;
        route->auth = site->auth;
        route->auth_line = site->auth_line;
        route->pattern = take_text(reader, "routes");
        if (route->pattern == NULL) /* it has a zero byte */
            return false;
        reader->place = config_key(place, route->pattern, strlen(route->pattern));
        if (!read_route(reader, route))
            return false;
        reader->line = route->line;
        if (add_to_router(site, route) < 0)
            return fail(reader, route->pattern, NULL, fault_of(site->router, route->pattern));
    }
    reader->place = place;
    return true;
}

/* ---- Sites ---- */

static struct config_site *
add_site(struct reader *reader)
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
has_good_names(struct reader *reader, const struct config_site *site)
{
    for (unsigned i = 0; i < site->names_number; i++) {
        if (!config_is_name(site->names[i]))
            return fail(reader, "names", site->names[i],
                        "a name without port and final dot, such as example.com, *.example.com or "
                        "*");
    }
    return true;
}

/* Read the site whose table is on top. */
static bool
read_site(struct reader *reader)
{
    static const char *const names[] = {"names", "passwords", "realm", "routes", NULL};
    const uint64_t place = reader->place;
    const unsigned line = reader->line;
    struct config_site *site;
    bool is_good;

    if (!lua_istable(reader->L, -1))
        return fail(reader, "sites", luaL_typename(reader->L, -1),
                    "a table such as { names = \"example.com\", routes = { ... } }");
    if (!has_only(reader, names))
        return false;
    site = add_site(reader);
    if (!read_texts(reader, "names", site->names, CONFIG_NAMES_MAX, &site->names_number) ||
        !read_auth(reader, &site->auth, &site->auth_line, true))
        return false;
    reader->line = line;
    if (site->names_number == 0)
        return fail(reader, "sites", NULL, "a site needs names");
    if (!has_good_names(reader, site))
        return false;
    (void)lua_getfield(reader->L, -1, "routes");
    note_line_of_key(reader, "routes");
    reader->place = config_key(place, "routes", 6);
    is_good = read_routes(reader, site);
    lua_pop(reader->L, 1);
    return is_good;
}

static bool
read_sites(struct reader *reader)
{
    lua_State *L = reader->L;
    const uint64_t place = config_key(CONFIG_ROOT, "sites", 5);
    bool is_good = true;

    if (!lua_istable(L, -1) || !config_is_list(L, lua_gettop(L)))
        return fail(reader, "sites", luaL_typename(L, -1),
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
read_both(struct reader *reader)
{
    lua_State *L = reader->L;

    if (lua_getfield(L, 1, "sites") != LUA_TNIL) {
        note_line_of_key(reader, "sites");
        if (!read_sites(reader))
            return false;
    }
    reader->place = CONFIG_ROOT;
    if (lua_getfield(L, 1, "routes") == LUA_TNIL)
        return true;
    note_line_of_key(reader, "routes");
    reader->place = config_key(CONFIG_ROOT, "routes", 6);
    reader->sites->usual = add_site(reader);
    return read_routes(reader, reader->sites->usual);
}

struct config_sites *
config_sites_read(struct config_file *file, bool *is_good)
{
    struct reader reader = {.file = file, .L = file->L, .place = CONFIG_ROOT};

    reader.sites = calloc(1, sizeof(*reader.sites));
    if (reader.sites == NULL)
        luaL_error(file->L, "no memory");
    reader.sites->path = file->path;
    reader.sites->before = all;
    all = reader.sites;
    *is_good = read_both(&reader);
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
        free(sites);
    }
}
