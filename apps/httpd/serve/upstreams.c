/* SPDX-License-Identifier: MIT
 *
 * Reads the places of upstreams, looks their names up and opens them.
 */
#include "upstreams.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin-metrics.h"
#include "secure.h"
#include "sxe-http-place-internal.h"

/* the bytes for the fields of a reply, because many applications send more than the default */
#define FIELDS_OF_REPLY 16384
#define ADDED_TO_HEAD   4096 /* how many bytes the proxy may add to a request */

/* ---- Places ---- */

static const char https[] = "https://";

#define OF_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

bool
upstream_has_scheme(const char *place)
{
    return sxe__http_place_has_scheme(place);
}

static const char *
without_scheme(const char *place)
{
    return place + (upstream_has_scheme(place) ? sizeof(https) - 1 : 0);
}

bool
upstream_is_tls_name(const char *name)
{
    const size_t length = strlen(name);

    return length > 0 && length < sizeof(((struct sxe__http_place *)NULL)->host) &&
           strspn(name, OF_NAME ":") == length;
}

bool
upstream_is_place(const char *text)
{
    struct sxe__http_place place;

    return sxe__http_place_read(text, &place);
}

const char *
upstream_split_url(const char *url, char *place, const char **path)
{
    static const char wanted[] = "a URL such as http://127.0.0.1:3000";
    static const char scheme[] = "http://";
    const bool is_tls = upstream_has_scheme(url);
    const char *authority = url + (is_tls ? sizeof(https) : sizeof(scheme)) - 1;
    size_t length;
    int printed;

    if (!is_tls && strncmp(url, scheme, sizeof(scheme) - 1) != 0)
        return wanted;
    length = strcspn(authority, "/");
    *path = authority[length] == '\0' ? NULL : authority + length;
    printed =
        snprintf(place, UPSTREAM_PLACE_SIZE, "%s%.*s", is_tls ? https : "", (int)length, authority);
    if (printed >= UPSTREAM_PLACE_SIZE - 4)
        return wanted;
    if (!upstream_is_place(place)) /* the text may have no port */
        snprintf(place + printed, 5, is_tls ? ":443" : ":80");
    if (*place == '@' || strchr(place, ' ') != NULL || !upstream_is_place(place))
        return wanted;
    return *path == NULL || upstream_is_path(*path) ? NULL : "a URL with " UPSTREAM_PATH;
}

bool
upstream_is_path(const char *path)
{
    const struct sxe_http_proxy proxy = {.path = path};

    return strlen(path) < HTTPD_PATTERN_SIZE && sxe_http_proxy_check(&proxy) == 0;
}

const char *
upstream_read_proxy(const char *text, struct httpd_proxy *proxy)
{
    const size_t length = strcspn(text, "=");
    const char *path = NULL;
    char *prefix = proxy->patterns[0];
    const char *problem;

    *proxy = (struct httpd_proxy){.upstream.name = proxy->upstream.place, .upstream.where = ""};
    if (text[length] == '\0')
        return "PATH=URL, such as /api=http://127.0.0.1:3000";
    if (length >= HTTPD_PATTERN_SIZE - sizeof("/{path...}"))
        return "PATH=URL, with a PATH of at most 244 bytes";
    memcpy(prefix, text, length);
    if (strchr(prefix, '*') != NULL || !upstream_is_path(prefix))
        return "PATH=URL; PATH is " UPSTREAM_PATH;
    problem = upstream_split_url(text + length + 1, proxy->upstream.place, &path);
    if (problem != NULL)
        return problem;
    if (prefix[length - 1] == '/')
        prefix[length - 1] = '\0';
    snprintf(proxy->patterns[1], HTTPD_PATTERN_SIZE, "%.*s/{path...}", (int)length, prefix);
    proxy->upstream.places[0] = proxy->upstream.place;
    proxy->upstream.places_number = 1;
    proxy->upstream.is_tls = upstream_has_scheme(proxy->upstream.place);
    if (path != NULL) {
        snprintf(proxy->path, sizeof(proxy->path), "%s", path);
        proxy->send.path = proxy->path;
    }
    return NULL;
}

/* ---- Opening ---- */

/* the list of upstreams whose `made` is set, linked by next_open */
static struct upstream *first_open;

/* The name of an upstream in the log and in metrics. */
static const char *
shown_name(const struct upstream *upstream)
{
    return *upstream->place != '\0' ? without_scheme(upstream->place) : upstream->name;
}

/* The places of an upstream, and their addresses. */
struct found {
    struct sxe__http_place places[UPSTREAM_PLACES_MAX];
    struct sxe__http_found all;
};

/* Find the addresses of all places. Each place gets an equal part of the room for addresses. If a
 * name is not found, the server has no address; the other servers, and the rest of the site, go on
 * without it. */
static void
find_addresses(const struct upstream *upstream, struct found *found)
{
    const unsigned most = SXE_HTTP_UPSTREAM_ADDRESSES / upstream->places_number;

    found->all.number = 0;
    for (unsigned i = 0; i < upstream->places_number; i++) {
        struct sxe__http_place *place = &found->places[i];
        int error;

        (void)sxe__http_place_read(upstream->places[i], place);
        error = sxe__http_place_find(place, most, &found->all);
        if (error != 0)
            fprintf(stderr,
                    "sxe-httpd: %sthe upstream %s: %s: %s; this server is down until a reload "
                    "looks its name up again\n",
                    upstream->where, upstream->name, place->host, gai_strerror(error));
    }
}

struct upstream_tls
upstream_tls_of(const struct upstream *upstream, const struct upstream_tls *usual)
{
    struct upstream_tls tls = upstream->tls_settings;

    if (tls.ca == NULL)
        tls.ca = usual->ca;
    if (tls.name == NULL)
        tls.name = usual->name;
    tls.is_insecure = tls.is_insecure || usual->is_insecure;
    if (tls.certificate == NULL) {
        tls.certificate = usual->certificate;
        tls.key = usual->key;
    }
    return tls;
}

/* Let the connections use TLS. If a name of certificates was given, all addresses must have it. 0,
 * or -errno after a message. */
static int
open_upstream_tls(struct upstream *upstream, const struct upstream_tls *usual, struct found *found,
                  struct sxe_http_upstream_config *config)
{
    const struct upstream_tls tls = upstream_tls_of(upstream, usual);

    if (!upstream->is_tls)
        return 0;
    upstream->tls = secure_open_upstream(upstream->where, &tls, config);
    if (upstream->tls == NULL)
        return -EINVAL;
    for (unsigned i = 0; tls.name != NULL && i < found->all.number; i++)
        found->all.addresses[i].tls_name = tls.name;
    return 0;
}

void
upstreams_make_room(struct sxe_http_config *http)
{
    if (http->fields_max < FIELDS_OF_REPLY)
        http->fields_max = FIELDS_OF_REPLY;
}

int
upstream_open(struct upstream *upstream, const struct upstream_tls *usual,
              struct sxe_http_config *http)
{
    static struct found found;
    struct sxe_http_upstream_config config = upstream->settings;
    const uint32_t head_max = http->head.head_max == 0 ? 16384 : http->head.head_max;
    int result;

    upstreams_make_room(http);
    find_addresses(upstream, &found);
    if (found.all.number == 0)
        return 0;
    result = open_upstream_tls(upstream, usual, &found, &config);
    if (result < 0)
        return result;
    config.name = shown_name(upstream);
    config.addresses = found.all.addresses;
    config.addresses_number = found.all.number;
    /* parameters of FastCGI have the path and the query more than once */
    config.request_max = (config.fastcgi ? 2 : 1) * head_max + ADDED_TO_HEAD;
    upstream->made = sxe_http_upstream_new(&config);
    if (upstream->made == NULL) {
        const int error = errno;

        fprintf(stderr, "sxe-httpd: %sthe upstream %s: its connections cannot be reserved: %s\n",
                upstream->where, upstream->name, strerror(error));
        return -error;
    }
    upstream->next_open = first_open;
    first_open = upstream;
    return 0;
}

void
upstreams_publish(void)
{
    for (const struct upstream *upstream = first_open; upstream != NULL;
         upstream = upstream->next_open) {
        struct sxe_http_upstream_state state;

        for (unsigned i = 0; sxe_http_upstream_look(upstream->made, i, &state) == 0; i++)
            metrics_publish_upstream(shown_name(upstream), &state);
    }
}

bool
upstreams_have_tunnels(void)
{
    for (const struct upstream *upstream = first_open; upstream != NULL;
         upstream = upstream->next_open) {
        struct sxe_http_upstream_state state;

        for (unsigned i = 0; sxe_http_upstream_look(upstream->made, i, &state) == 0; i++) {
            if (state.tunnels > 0)
                return true;
        }
    }
    return false;
}

void
upstream_plan_print(const struct upstream *upstream)
{
    if (upstream->made != NULL)
        sxe_http_upstream_plan_print(upstream->made, stdout);
}

enum sxe_http_verdict
upstream_send(const struct upstream *upstream, const struct sxe_http_proxy *send,
              struct sxe_http_request *request, struct sxe_http_response *response)
{
    if (upstream->made != NULL)
        return sxe_http_proxy_send(send, request, response);
    SXE_WARN("%s: none of its servers has an address: the request is answered 502; a reload looks "
             "the names up again",
             upstream->name);
    return sxe_http_reply_status(response, 502);
}

void
upstream_close(struct upstream *upstream)
{
    first_open = NULL; /* all upstreams are closed together, so the list can be emptied */
    sxe_http_upstream_delete(upstream->made);
    upstream->made = NULL;
    secure_close_upstream(upstream->tls);
    upstream->tls = NULL;
}

/* ---- All options --proxy ---- */

int
passes_open(struct httpd_proxy *passes, unsigned number, const struct upstream_tls *usual,
            struct sxe_http_config *http)
{
    int result = 0;

    for (unsigned i = 0; i < number && result == 0; i++) {
        result = upstream_open(&passes[i].upstream, usual, http);
        passes[i].send.upstream = passes[i].upstream.made;
    }
    return result;
}

void
passes_plan_print(const struct httpd_proxy *passes, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        upstream_plan_print(&passes[i].upstream);
}

static enum sxe_http_verdict
handle_pass(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct httpd_proxy *pass = request->user;

    return upstream_send(&pass->upstream, &pass->send, request, response);
}

int
passes_add_routes(struct httpd_proxy *passes, unsigned number, struct sxe_http_router *router)
{
    int result = 0;

    for (unsigned i = 0; i < 2 * number && result == 0; i++) {
        struct httpd_proxy *pass = &passes[i / 2];
        const struct sxe_http_route_options options = {pass, SXE_HTTP_ROUTE_STREAM};

        if (*pass->patterns[i % 2] != '\0')
            result = sxe_http_router_add(router, "*", pass->patterns[i % 2], handle_pass, &options);
    }
    return result;
}

void
passes_close(struct httpd_proxy *passes, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        upstream_close(&passes[i].upstream);
}
