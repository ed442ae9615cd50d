/* SPDX-License-Identifier: MIT
 *
 * What: sites and routes of a configuration file. A site has names and routes; a route says how
 * requests for its paths are answered. config-sites.c and config-upstreams.c read them from the
 * file's table; config-routes.c serves them.
 *
 * Place: config.c calls config_sites_read while it reads the file; service.c serves the result,
 * options.config.sites.
 *
 * Shape:
 *     sites -> site "example.com", "*.example.com" -> router -> route "/static/{path...}": root
 *           -> site of the other names             -> router -> route "/old": redirect
 *
 * Names are compared without case, port and final dot. An exact name is preferred to one like
 * "*.example.com", and a longer name with * to a shorter one. The routes at the top level of the
 * file form the site for all names that no other site has.
 *
 * Limits: 16 names for a site, 8 header lines for a route. The names are compared one after the
 * other, so many sites take time.
 */
#ifndef CONFIG_SITES_H
#define CONFIG_SITES_H

#include <stdbool.h>

#include "basic-auth.h"
#include "config-file.h"
#include "rate-limit.h"
#include "sxe-http-file.h"
#include "sxe-http.h"
#include "upstreams.h"

#define CONFIG_NAMES_MAX   16
#define CONFIG_HEADERS_MAX 8

enum config_action {
    CONFIG_REPLY,
    CONFIG_ROOT_OF_FILES,
    CONFIG_REDIRECT,
    CONFIG_PROXY,
    CONFIG_FASTCGI,
    CONFIG_SCRIPT
};

struct config_route {
    enum config_action action;
    const char *pattern;
    const char *root;
    /* a path below root; its file is sent if the requested file is missing; NULL: the reply is
     * 404 */
    const char *fallback;
    const char *redirect;
    const char *body;
    const char *type;
    unsigned status; /* the status of a reply or a redirect */
    const char *headers[CONFIG_HEADERS_MAX];
    unsigned headers_number;
    struct rate_limit rate;
    struct basic_auth auth;
    unsigned auth_line; /* the line of "passwords" */
    unsigned line;      /* the line of the route in the file, for messages */
    struct sxe_http_files *files;
    const char *proxy;                               /* the name of an upstream, or a URL */
    struct upstream *upstream;                       /* the upstream that `proxy` names */
    struct sxe_http_proxy send;                      /* how requests are sent on to the upstream */
    const char *request_headers[CONFIG_HEADERS_MAX]; /* the lines of send.request_header */
    const char *fastcgi; /* the name of an upstream of FastCGI, or a place */
    bool has_files;      /* files of root that are no scripts are sent */
    struct sxe_http_scripts_config script;
    struct sxe_http_scripts *scripts;
    /* like `send`, for requests for which there is no file */
    struct sxe_http_proxy send_missing;
    struct config_route *next;
};

struct config_site {
    const char *names[CONFIG_NAMES_MAX];
    unsigned names_number;
    struct sxe_http_router *router;
    struct basic_auth auth; /* users and passwords for routes that have none of their own */
    unsigned auth_line;
    struct config_route *routes;
    struct config_site *next;
};

struct config_sites {
    const char *path; /* the path of the configuration file */
    struct config_site *first;
    /* the site for all names that no other site has; NULL: such requests get 404 */
    struct config_site *usual;
    bool has_passwords;                /* whether a route has a file of passwords */
    const struct config_route *script; /* a route that the script answers; NULL: there is none */
    struct upstream *upstreams;        /* the first upstream of the list of all upstreams */
    struct config_sites *before;
};

/* ---- config-sites.c ---- */

/* Read the keys "upstreams", "sites" and "routes" of the file's table, which is at index 1. Call it
 * in Lua's protected mode. *is_good becomes false after a message. NULL: the file has no routes.
 * The result is valid until config_sites_end. */
struct config_sites *config_sites_read(struct config_file *file, bool *is_good);

/* Free all results of config_sites_read. */
void config_sites_end(void);

/* The site for the name in a request's Host; NULL: there is none. */
const struct config_site *config_site_of(const struct config_sites *sites, struct sxe_span name);

/* ---- config-routes.c ---- */

/* Read the files of passwords. Send their names over link to the supervisor, which reloads, as for
 * SIGHUP, if such a file changes; link -1: there is no supervisor. Call it while this process may
 * read the files. sites may be NULL. 0, or -errno after a message. */
int config_passwords_open(struct config_sites *sites, int link);
void config_passwords_close(struct config_sites *sites);

/* Called in the supervisor: watch the files of passwords for changes. sites may be NULL. */
void config_passwords_watch(const struct config_sites *sites);

/* Whether a route has a file of passwords. sites may be NULL. */
bool config_has_passwords(const struct config_sites *sites);

/* Open the directories of routes, make the upstreams, and prepare to check passwords. usual and
 * usual_tls are the settings of files and of upstreams for routes that have none of their own. If
 * there are upstreams, http, the configuration of the server, is set up for them. Call it before
 * sxe_init. 0, or -errno after a message. */
int config_routes_open(struct config_sites *sites, const struct sxe_http_files_config *usual,
                       const struct upstream_tls *usual_tls, struct sxe_http_config *http);

/* Print how much memory the upstreams take, like sxe_plan_print. sites may be NULL. */
void config_routes_plan_print(const struct config_sites *sites);

/* Close the directories and upstreams, and forget the passwords. Call it after sxe_fini. */
void config_routes_close(struct config_sites *sites);

/* The handler of a server whose config.user is a struct config_sites. */
enum sxe_http_verdict config_routes_handle(struct sxe_http_request *request,
                                           struct sxe_http_response *response);

#endif
