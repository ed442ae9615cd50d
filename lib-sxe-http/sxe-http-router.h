/* SPDX-License-Identifier: MIT
 *
 * What: says which handler answers a method and a path, and which methods a path has. Patterns are
 * literal bytes, parameters such as {id}, and a tail such as {rest...}; no regular expressions.
 *
 * Place: the server fills it before its loop starts and asks it once a request. Pure: it knows no
 * sockets, and keeps handler, user and flags without looking at them.
 *
 * Shape: a radix tree over the bytes of the patterns. A node stands for literal bytes, or for a
 * parameter and the literal after it in its segment, or for a tail. A pattern is stored at the node
 * where it ends.
 *
 *     /users/me                     "/" -+- "users/" -+- "me"
 *     /users/{id}                        |            '- {id} --- "/posts/" --- {post}
 *     /users/{id}/posts/{post}           '- {file...}
 *     /{file...}
 *
 * Patterns: {name} takes the rest of a segment, at least a byte, up to the literal after it:
 * "/v{major}/{file}.json". {name...}, or * as the last segment, ends a pattern and takes all that
 * is left, which may be nothing. Where two patterns match a path, the first byte that they match
 * differently decides: a literal wins over a parameter, and a parameter over a tail. A branch that
 * matches at first and fails later is undone, so that "/users/{id}/x" does not hide "/{file...}".
 *
 * The path alone chooses the pattern, then the method chooses among the pattern's routes: its own
 * name, for HEAD that of GET, then "*". OPTIONS without a route is left to the caller, with the
 * text for Allow; so is any other method, which is 405 (RFC 9110, 9.1, 10.2.1, 15.5.6).
 *
 * A path is compared byte by byte, in the normal form of sxe-http-uri.h: "/a" and "/a/" are two
 * paths. A pattern that no path in that form could match is refused.
 *
 * Limits: 16 parameters and 1024 bytes a pattern; paths of 65535 bytes. sxe_http_router_find
 * allocates nothing and visits no node of the tree twice. Routes cannot be removed.
 *
 * Example:
 *     struct sxe_http_router *router = sxe_http_router_new();
 *     if (router == NULL ||
 *         sxe_http_router_add(router, "GET", "/users/{id}", show_user, NULL) < 0 ||
 *         sxe_http_router_add(router, "PUT,DELETE", "/users/{id}", change_user, NULL) < 0)
 *         return fail(router == NULL ? "no memory" : sxe_http_router_error(router));
 *     ...
 *     struct sxe_http_match match;
 *     if (sxe_http_router_find(router, method, name, path, &match) == SXE_HTTP_ROUTE_FOUND)
 *         match.route->handler(request, response);
 */
#ifndef SXE_HTTP_ROUTER_H
#define SXE_HTTP_ROUTER_H

#include <stdint.h>

#include "sxe-http-handler.h"
#include "sxe-http-parse.h"
#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SXE_HTTP_ROUTE_PARAMETERS = 16, SXE_HTTP_PATTERN_MAX = 1024 };

struct sxe_http_router;

/* A route that was added; all members are ro. It stays until the router is deleted. */
struct sxe_http_route {
    const char *methods; /* "GET" or "GET,POST", as it was given */
    const char *pattern; /* "/users/{id}" */
    sxe_http_handler handler;
    void *user;
    unsigned flags;
};

/* Data that the router keeps with a route for the program. NULL means {NULL, 0}. */
struct sxe_http_route_options {
    void *user;
    unsigned flags;
};

enum sxe_http_routing {
    SXE_HTTP_ROUTE_FOUND,
    SXE_HTTP_ROUTE_NOT_FOUND,          /* no pattern matches the path: 404 */
    SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED, /* the path has other methods: 405 with Allow */
    SXE_HTTP_ROUTE_OPTIONS             /* OPTIONS without a route of its own: 204 with Allow */
};

/* The result of sxe_http_router_find; all members are ro. Names are offsets into the pattern and
 * values are offsets into the path, so that the path may be moved afterwards. */
struct sxe_http_match {
    const struct sxe_http_route *route; /* NULL unless FOUND */
    const char *pattern;                /* for logs and counters; NULL if no pattern was found */
    struct sxe_span allow;              /* "GET, HEAD, OPTIONS"; empty if not found */
    /* names of the parameters, in order; a tail that is written * has the name "*" */
    const struct sxe_http_text *names;
    unsigned number; /* how many parameters there are */
    /* values of the parameters, with their escapes */
    struct sxe_http_text values[SXE_HTTP_ROUTE_PARAMETERS];
};

/* ---- Before the loop starts ---- */

/* Make a router. NULL: no memory. The caller deletes it. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http_router *sxe_http_router_new(void);
/* Delete a router; NULL is allowed. */
SXE_PUBLIC void sxe_http_router_delete(struct sxe_http_router *router);

/* Add a route. Methods are case-sensitive tokens, separated by commas or blanks; "*" stands for all
 * methods that the pattern's other routes do not name. Texts are copied. 0; -EINVAL: a method or
 * the pattern is malformed, or no path could match the pattern; -EEXIST: the pattern has one of the
 * methods already, or was added with other names of parameters; -ENOMEM. After an error only
 * sxe_http_router_error has changed. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_router_add_sized(struct sxe_http_router *router,
                                                      const char *methods, const char *pattern,
                                                      sxe_http_handler handler,
                                                      const struct sxe_http_route_options *options,
                                                      size_t size);
static inline SXE_MUST_USE int
sxe_http_router_add(struct sxe_http_router *router_, const char *methods_, const char *pattern_,
                    sxe_http_handler handler_, const struct sxe_http_route_options *options_)
{
    return sxe_http_router_add_sized(router_, methods_, pattern_, handler_, options_,
                                     sizeof(*options_));
}

/* The error of the last sxe_http_router_add: "GET /a/{id: a { without }, at byte 3", counted from
 * 0; "": the last sxe_http_router_add succeeded. */
SXE_PUBLIC const char *sxe_http_router_error(const struct sxe_http_router *router);

/* The routes in the order in which they were added: returns the route after `route`, or the first
 * route if `route` is NULL. NULL: `route` is the last route. */
SXE_PUBLIC const struct sxe_http_route *sxe_http_router_next(const struct sxe_http_router *router,
                                                             const struct sxe_http_route *route);

/* ---- For each request ---- */

/* Find the route for a method and a path; `name` is the method's name, used if the method is
 * SXE_HTTP_OTHER. The path "*" with OPTIONS means the whole server: match->allow then has the
 * methods of all routes. The match is filled in, whatever the result is. Several threads may call
 * this function at the same time. */
SXE_PUBLIC SXE_MUST_USE enum sxe_http_routing
sxe_http_router_find(const struct sxe_http_router *router, enum sxe_http_method method,
                     struct sxe_span name, struct sxe_span path, struct sxe_http_match *match);

/* The value of a parameter, as offset and length in the path; NULL: the pattern has no parameter of
 * that name. */
SXE_PUBLIC const struct sxe_http_text *sxe_http_match_value(const struct sxe_http_match *match,
                                                            const char *name);

#ifdef __cplusplus
}
#endif

#endif
