/* SPDX-License-Identifier: MIT
 *
 * Serves the sites and routes of a configuration file.
 */
#include "config-sites.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "passwords.h"
#include "sxe-lua-http.h"
#include "sxe-workers-handover-internal.h"
#include "sxe-workers.h"

#define LOCATION_MAX 4096

/* ---- Redirects ---- */

/* Append bytes to the location. False: there is no room for them. */
static bool
add_bytes(char *text, size_t *used, const char *bytes, size_t length)
{
    if (*used + length >= LOCATION_MAX)
        return false;
    memcpy(text + *used, bytes, length);
    *used += length;
    return true;
}

/* Write the target of the redirect. Each {name} in it is replaced by the route's parameter of this
 * name, which is not decoded. False: there is no room. */
static bool
make_location(const struct sxe_http_request *request, const char *target, char *text)
{
    size_t used = 0;
    bool has_room = true;

    while (*target != '\0' && has_room) {
        const size_t length = strcspn(target, "{");
        const char *end = strchr(target + length, '}');
        const struct sxe_http_text *value = NULL;
        char name[64];

        has_room = add_bytes(text, &used, target, length);
        target += length;
        if (end == NULL) {
            has_room = has_room && add_bytes(text, &used, target, strlen(target));
            break;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(end - target - 1), target + 1);
        value = sxe_http_match_value(&request->match, name);
        if (value != NULL)
            has_room = has_room &&
                       add_bytes(text, &used, request->path.base + value->offset, value->length);
        target = end + 1;
    }
    text[used] = '\0';
    return has_room;
}

static enum sxe_http_verdict
reply_redirect(const struct config_route *route, struct sxe_http_request *request,
               struct sxe_http_response *response)
{
    char location[LOCATION_MAX];

    if (!make_location(request, route->redirect, location))
        return sxe_http_reply_status(response, 414);
    /* If a parameter is empty, the path may begin with "//", and then it would name another
     * server. */
    if (strncmp(location, "//", 2) == 0 && strncmp(route->redirect, "//", 2) != 0)
        return sxe_http_reply_status(response, 404);
    (void)!sxe_http_add_field(response, "Location", location);
    return sxe_http_reply_status(response, route->status);
}

/* ---- Passwords ---- */

/* Find the passwords of a file, if an earlier route has read the file. NULL: none has. */
static struct passwords *
find_passwords(const struct config_sites *sites, const char *file)
{
    for (const struct config_site *site = sites->first; site != NULL; site = site->next) {
        for (const struct config_route *route = site->routes; route != NULL; route = route->next) {
            if (route->auth.passwords != NULL && strcmp(route->auth.file, file) == 0)
                return route->auth.passwords;
        }
    }
    return NULL;
}

static struct passwords *
open_passwords(const struct config_sites *sites, const struct config_route *route, int link)
{
    char place[PATH_MAX + 64];

    snprintf(place, sizeof(place), "%s:%u: passwords: ", sites->path, route->auth_line);
    if (link >= 0)
        sxe__handover_name_file(link, route->auth.file);
    return passwords_read(place, route->auth.file);
}

int
config_passwords_open(struct config_sites *sites, int link)
{
    if (sites == NULL)
        return 0;
    for (struct config_site *site = sites->first; site != NULL; site = site->next) {
        for (struct config_route *route = site->routes; route != NULL; route = route->next) {
            if (route->auth.file == NULL)
                continue;
            route->auth.passwords = find_passwords(sites, route->auth.file);
            if (route->auth.passwords == NULL)
                route->auth.passwords = open_passwords(sites, route, link);
            if (route->auth.passwords == NULL)
                return -EINVAL;
        }
    }
    return 0;
}

void
config_passwords_watch(const struct config_sites *sites)
{
    const struct config_site *first = sites == NULL ? NULL : sites->first;

    for (const struct config_site *site = first; site != NULL; site = site->next) {
        for (const struct config_route *route = site->routes; route != NULL; route = route->next) {
            if (route->auth.file != NULL)
                sxe_workers_watch_file(route->auth.file);
        }
    }
}

bool
config_has_passwords(const struct config_sites *sites)
{
    return sites != NULL && sites->has_passwords;
}

void
config_passwords_close(struct config_sites *sites)
{
    for (struct config_site *site = sites->first; site != NULL; site = site->next) {
        for (struct config_route *route = site->routes; route != NULL; route = route->next) {
            struct passwords *passwords = route->auth.passwords;
            struct passwords *next;

            route->auth.passwords = NULL;
            next = passwords == NULL ? NULL : find_passwords(sites, route->auth.file);
            if (next == NULL)
                passwords_free(passwords);
        }
    }
}

/* Prepare to check passwords, if a route has some. 0, or -errno after a message. */
static int
begin_auth(const struct config_sites *sites)
{
    int result;

    if (!sites->has_passwords)
        return 0;
    result = basic_auth_begin();
    if (result < 0)
        fprintf(stderr, "sxe-httpd: cannot start: %s\n", strerror(-result));
    return result;
}

/* ---- Files ---- */

/* The path of the file, relative to the root, with a slash at its beginning. It is the part of the
 * path that {name...} at the end of the pattern matched, or the whole path if the pattern has no
 * such end. */
static struct sxe_span
file_of(const struct config_route *route, const struct sxe_http_request *request)
{
    const char *tail = strrchr(route->pattern, '{');
    const unsigned last = request->match.number;
    struct sxe_span path = request->path;

    if (tail != NULL && tail > route->pattern && tail[-1] == '/' && strstr(tail, "...}") != NULL) {
        path.base += request->match.values[last - 1].offset - 1;
        path.length = request->match.values[last - 1].length + 1;
    }
    return path;
}

/* The file does not exist: send the fallback, unless it is missing, too. With FastCGI, the fallback
 * is a script. */
static enum sxe_http_verdict
send_fallback(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct config_route *route = request->user;

    if (route != NULL && route->action == CONFIG_FASTCGI)
        return upstream_send(route->upstream, &route->send_missing, request, response);
    if (route == NULL || route->fallback == NULL)
        return sxe_http_reply_status(response, 404);
    request->user = NULL;
    return sxe_http_files_send(route->files, request,
                               (struct sxe_span){route->fallback, strlen(route->fallback)});
}

/* No script of the route answers: send a file. */
static enum sxe_http_verdict
send_no_script(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct config_route *route = request->user;

    SXE_UNUSED_PARAMETER(response);
    return sxe_http_files_send(route->files, request, file_of(route, request));
}

/* Open the directory of the route's scripts. 0, or -errno after a message. */
static int
open_scripts(const struct config_sites *sites, struct config_route *route)
{
    if (route->fastcgi == NULL || route->root == NULL)
        return 0;
    route->scripts = sxe_http_scripts_new(&route->script);
    if (route->scripts == NULL) {
        const int error = errno;

        fprintf(stderr, "sxe-httpd: %s:%u: root: cannot look for scripts in '%s': %s\n",
                sites->path, route->line, route->root, strerror(error));
        return -error;
    }
    route->send.scripts = route->scripts;
    route->send_missing = route->send;
    if (route->has_files)
        route->send.without_script = send_no_script;
    return 0;
}

/* Open the directory of the route's files. 0, or -errno after a message. */
static int
open_route_files(const struct config_sites *sites, struct config_route *route,
                 struct sxe_http_files_config *config)
{
    if (route->root == NULL || (route->fastcgi != NULL && !route->has_files))
        return 0;
    config->root = route->root;
    route->files = sxe_http_files_new(config);
    if (route->files == NULL) {
        const int error = errno;

        fprintf(stderr, "sxe-httpd: %s:%u: root: cannot serve the files of '%s': %s\n", sites->path,
                route->line, route->root, strerror(error));
        return -error;
    }
    return 0;
}

/* Make the upstreams, and store in each route its upstream. */
static int
open_upstreams(struct config_sites *sites, const struct upstream_tls *usual,
               struct sxe_http_config *http)
{
    for (struct upstream *upstream = sites->upstreams; upstream != NULL;
         upstream = upstream->next) {
        const int result = upstream_open(upstream, usual, http);

        if (result < 0)
            return result;
        http->stream = true;
    }
    for (struct config_site *site = sites->first; site != NULL; site = site->next) {
        for (struct config_route *route = site->routes; route != NULL; route = route->next) {
            if (route->upstream != NULL)
                route->send.upstream = route->upstream->made;
        }
    }
    return 0;
}

int
config_routes_open(struct config_sites *sites, const struct sxe_http_files_config *usual,
                   const struct upstream_tls *usual_tls, struct sxe_http_config *http)
{
    struct sxe_http_files_config config = *usual;
    int result = open_upstreams(sites, usual_tls, http);

    if (result < 0)
        return result;
    config.missing = send_fallback;
    for (struct config_site *site = sites->first; site != NULL; site = site->next) {
        for (struct config_route *route = site->routes; route != NULL; route = route->next) {
            result = open_route_files(sites, route, &config);
            if (result == 0)
                result = open_scripts(sites, route);
            if (result < 0)
                return result;
        }
    }
    return begin_auth(sites);
}

void
config_routes_plan_print(const struct config_sites *sites)
{
    for (const struct upstream *upstream = sites == NULL ? NULL : sites->upstreams;
         upstream != NULL; upstream = upstream->next)
        upstream_plan_print(upstream);
}

void
config_routes_close(struct config_sites *sites)
{
    for (struct config_site *site = sites->first; site != NULL; site = site->next) {
        for (struct config_route *route = site->routes; route != NULL; route = route->next) {
            sxe_http_files_delete(route->files);
            route->files = NULL;
            sxe_http_scripts_delete(route->scripts);
            route->scripts = NULL;
        }
    }
    for (struct upstream *upstream = sites->upstreams; upstream != NULL; upstream = upstream->next)
        upstream_close(upstream);
    config_passwords_close(sites);
    basic_auth_end();
}

/* ---- Requests ---- */

static void
add_headers(const struct config_route *route, struct sxe_http_response *response)
{
    for (unsigned i = 0; i < route->headers_number; i++) {
        const char *line = route->headers[i];
        const size_t length = strcspn(line, ":");
        char name[256];

        snprintf(name, sizeof(name), "%.*s", (int)length, line);
        line += length + 1;
        (void)!sxe_http_add_field(response, name, line + strspn(line, " \t"));
    }
}

/* How many seconds the client must wait before it may send a request again; 0: this request may
 * pass. */
static unsigned
seconds_to_wait(const struct rate_limit *rate, const struct sxe_http_request *request)
{
    struct sockaddr_storage peer;
    socklen_t length;

    if (rate->burst == 0)
        return 0;
    length = sxe_http_peer(request, &peer);
    return rate_limit_take(rate, &peer, length);
}

/* Reply with 429, and say after how many seconds the client may send a request again. */
static enum sxe_http_verdict
refuse_for(unsigned seconds, struct sxe_http_response *response)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", seconds);
    (void)!sxe_http_add_field(response, "Retry-After", text);
    return sxe_http_reply_status(response, 429);
}

/* Answer a request as its route says. The request's user pointer is the route. */
static enum sxe_http_verdict
answer_route(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct config_route *route = request->user;
    const char *body = route->body != NULL ? route->body : "";

    add_headers(route, response);
    switch (route->action) {
    case CONFIG_ROOT_OF_FILES:
        return sxe_http_files_send(route->files, request, file_of(route, request));
    case CONFIG_REDIRECT:
        return reply_redirect(route, request, response);
    case CONFIG_PROXY:
    case CONFIG_FASTCGI:
        return upstream_send(route->upstream, &route->send, request, response);
    case CONFIG_SCRIPT:
        return sxe_lua_http_handle(request, response);
    case CONFIG_REPLY:
        break;
    }
    if (route->body == NULL)
        return sxe_http_reply_status(response, route->status);
    return sxe_http_reply(response, route->status, route->type != NULL ? route->type : "text/plain",
                          body, strlen(body));
}

static void
answer_later(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)answer_route(request, response);
}

/* Answer the request if the limit and the passwords of its route let it pass. */
static enum sxe_http_verdict
guard_route(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct config_route *route = request->user;
    const unsigned seconds = seconds_to_wait(&route->rate, request);

    if (seconds > 0)
        return refuse_for(seconds, response);
    if (route->auth.file == NULL)
        return answer_route(request, response);
    switch (basic_auth_ask(&route->auth, request, response, answer_later)) {
    case BASIC_AUTH_GOOD:
        return answer_route(request, response);
    case BASIC_AUTH_LATER:
        if (route->action != CONFIG_SCRIPT)
            /* the reply comes soon, so do not abort if the client closes only its sending side */
            sxe_http_allow_half_close(response);
        return SXE_HTTP_LATER;
    case BASIC_AUTH_ANSWERED:
        break;
    }
    return SXE_HTTP_DONE;
}

enum sxe_http_verdict
config_routes_handle(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct config_site *site = config_site_of(request->user, sxe_http_authority(request));
    enum sxe_http_routing routing;

    if (site == NULL)
        return sxe_http_reply_status(response, 404);
    routing = sxe_http_router_find(site->router, sxe_http_method(request),
                                   sxe_http_method_text(request), request->path, &request->match);
    if (routing != SXE_HTTP_ROUTE_FOUND)
        return sxe_http_reply_unrouted(request, response);
    request->user = request->match.route->user;
    return guard_route(request, response);
}
