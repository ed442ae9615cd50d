/* SPDX-License-Identifier: MIT
 *
 * What: sites and routes of a configuration file: which names a site has, and what answers its
 * paths. Read from the file's table here, and served by config-routes.c.
 *
 * Place: config.c calls it while it reads the file; service.c serves what options.sites has.
 *
 * Shape:
 *     sites -> site "example.com", "*.example.com" -> router -> route "/static/{path...}": root
 *           -> site of the other names             -> router -> route "/old": redirect
 *
 * A name is compared without its case, port and final dot. An exact one counts before
 * "*.example.com", a longer one of these before a shorter one, and the routes at the top of the
 * file are the site of all other names.
 *
 * Limits: 16 names a site, 8 header lines a route; names are compared one after the other.
 */
#ifndef CONFIG_SITES_H
#define CONFIG_SITES_H

#include <stdbool.h>

#include "config-file.h"
#include "rate-limit.h"
#include "sxe-http-file.h"
#include "sxe-http.h"

#define CONFIG_NAMES_MAX   16
#define CONFIG_HEADERS_MAX 8

enum config_action { CONFIG_REPLY, CONFIG_ROOT_OF_FILES, CONFIG_REDIRECT, CONFIG_SCRIPT };

struct config_route {
    enum config_action action;
    const char *pattern;
    const char *root;
    const char *fallback; /* a path beneath root, for what is not there; NULL: 404 */
    const char *redirect;
    const char *body;
    const char *type;
    unsigned status; /* of a reply or a redirect */
    const char *headers[CONFIG_HEADERS_MAX];
    unsigned headers_number;
    struct rate_limit rate;
    unsigned line; /* of the file, for messages */
    struct sxe_http_files *files;
    struct config_route *next;
};

struct config_site {
    const char *names[CONFIG_NAMES_MAX];
    unsigned names_number;
    struct sxe_http_router *router;
    struct config_route *routes;
    struct config_site *next;
};

struct config_sites {
    const char *path; /* of the file */
    struct config_site *first;
    struct config_site *usual;         /* of the names that no other has; NULL: 404 */
    const struct config_route *script; /* one that asks the script; NULL: none does */
    struct config_sites *before;
};

/* ---- config-sites.c ---- */

/* In protected mode, with the file's table at index 1: its keys "sites" and "routes". NULL: there
 * are none, and then *is_good; otherwise all is said. They stay until config_sites_end. */
struct config_sites *config_sites_read(struct config_file *file, bool *is_good);

/* Free all that were read. */
void config_sites_end(void);

/* The site of a request's name; NULL: there is none. */
const struct config_site *config_site_of(const struct config_sites *sites, struct sxe_span name);

/* ---- config-routes.c ---- */

/* Before sxe_init: open the directories, with what usual says of files. 0, or -errno with all said.
 */
int config_routes_open(struct config_sites *sites, const struct sxe_http_files_config *usual);

/* After sxe_fini. */
void config_routes_close(struct config_sites *sites);

/* The handler of a server; its user is the sites. */
enum sxe_http_verdict config_routes_handle(struct sxe_http_request *request,
                                           struct sxe_http_response *response);

#endif
