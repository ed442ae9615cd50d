/* SPDX-License-Identifier: MIT
 *
 * What: a router, and beside it the simplest thing that should behave like it: a list of routes,
 * all of which are tried.
 *
 * Place: used by test-http-router.c with random routes, and by a fuzzer in fuzz-http-router.c.
 *
 * Shape: when a pattern matches a path, each byte of the path gets a digit that says how: 0 by a
 * literal, 1 by a parameter, 2 by a tail; so does the end of the path: 2 with a tail, 0 without. Of
 * all patterns that match, the one whose digits sort first must win:
 *
 *     path /a/b     /a/{x} 0001 0     /{y...} 0222 2     /{x}/b 0100 0     so /a/{x}
 *
 * Limits: ROUTER_MODEL_ROUTES routes of ROUTER_MODEL_TEXT bytes; no longer paths are looked up.
 */
#ifndef ROUTER_MODEL_H
#define ROUTER_MODEL_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-router.h"

enum { ROUTER_MODEL_ROUTES = 64, ROUTER_MODEL_TEXT = 256 };

struct router_model_route {
    char methods[ROUTER_MODEL_TEXT];
    char pattern[ROUTER_MODEL_TEXT];
};

struct router_model {
    struct sxe_http_router *router;
    struct router_model_route routes[ROUTER_MODEL_ROUTES];
    unsigned number;
};

/* How a pattern matches a path. */
struct router_model_way {
    /* A digit for each byte of the path and one for its end: '0' matched by a literal, '1' by a
     * parameter, '2' by a tail. */
    char digits[ROUTER_MODEL_TEXT + 1];
    struct sxe_http_text names[SXE_HTTP_ROUTE_PARAMETERS];
    struct sxe_http_text values[SXE_HTTP_ROUTE_PARAMETERS];
    unsigned number;
};

static inline enum sxe_http_verdict
router_model_handler(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    (void)response;
    return SXE_HTTP_DONE;
}

/* ---- Methods ---- */

/* Whether a list of methods, of a route or of an Allow field, has this method. */
static inline bool
router_model_lists(const char *list, const char *method)
{
    const size_t length = strcspn(method, ", ");

    if (length == 0 || method[length] != '\0')
        return false; /* empty, or itself a list */
    for (const char *at = list; (at = strstr(at, method)) != NULL; at++) {
        const bool begins = at == list || at[-1] == ',' || at[-1] == ' ';

        if (begins && (at[length] == '\0' || strchr(", ", at[length]) != NULL))
            return true;
    }
    return false;
}

static inline enum sxe_http_method
router_model_method(const char *name)
{
    enum sxe_http_method method = SXE_HTTP_PATCH;

    while (method != SXE_HTTP_OTHER && strcmp(name, sxe_http_method_name(method)) != 0)
        method--;
    return method;
}

/* The route with this pattern that answers this method, or NULL. */
static inline const struct router_model_route *
router_model_route(const struct router_model *model, const char *pattern, const char *method)
{
    const char *const wanted[] = {method, strcmp(method, "HEAD") == 0 ? "GET" : method, "*"};

    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < model->number; j++) {
            const struct router_model_route *route = &model->routes[j];

            if (strcmp(route->pattern, pattern) == 0 &&
                router_model_lists(route->methods, wanted[i]))
                return route;
        }
    }
    return NULL;
}

/* Whether the Allow field and the model agree about this method: both list it, or neither does. */
static inline bool
router_model_allows(const struct router_model *model, const char *pattern, const char *method,
                    const char *allow)
{
    const struct router_model_route *route = router_model_route(model, pattern, method);
    const bool is_named =
        route != NULL &&
        (router_model_lists(route->methods, method) ||
         (strcmp(method, "HEAD") == 0 && router_model_lists(route->methods, "GET")));
    const bool is_quiet = strcmp(method, "TRACE") == 0 || strcmp(method, "CONNECT") == 0;
    const bool expected =
        is_named || strcmp(method, "OPTIONS") == 0 || (route != NULL && !is_quiet);

    return router_model_lists(allow, method) == expected;
}

/* ---- Patterns ---- */

static inline void
router_model_take(struct router_model_way *way, size_t at, size_t length, char digit)
{
    memset(way->digits + at, digit, length);
}

/* At a {: how many bytes of the path the parameter and the literal after it match, or -1. */
static inline long
router_model_take_parameter(struct router_model_way *way, const char *pattern, const char *begin,
                            struct sxe_span path, size_t at)
{
    const char *close = strchr(begin, '}');
    const bool is_tail = close[-1] == '.';
    const size_t suffix = is_tail ? 0 : strcspn(close + 1, "/");
    size_t end = at;

    while (end < path.length && (is_tail || path.base[end] != '/'))
        end++;
    if (!is_tail &&
        (end - at <= suffix || memcmp(path.base + end - suffix, close + 1, suffix) != 0))
        return -1;
    router_model_take(way, at, end - at - suffix, is_tail ? '2' : '1');
    router_model_take(way, end - suffix, suffix, '0');
    way->names[way->number] = (struct sxe_http_text){
        (uint16_t)(begin + 1 - pattern), (uint16_t)(close - begin - 1 - (is_tail ? 3 : 0))};
    way->values[way->number++] =
        (struct sxe_http_text){(uint16_t)at, (uint16_t)(end - at - suffix)};
    return (long)(end - at);
}

static inline bool
router_model_takes(struct router_model_way *way, const char *pattern, struct sxe_span path)
{
    const char *p = pattern;
    size_t at = 0;

    way->number = 0;
    while (*p != '\0' && *p != '*') {
        if (*p == '{') {
            const bool is_tail = strchr(p, '}')[-1] == '.';
            const long taken = router_model_take_parameter(way, pattern, p, path, at);

            if (taken < 0)
                return false;
            at += (size_t)taken;
            p = strchr(p, '}') + 1;
            p += is_tail ? 0 : strcspn(p, "/");
            way->digits[at] = is_tail ? '2' : '0';
            continue;
        }
        if (at == path.length || path.base[at] != *p++)
            return false;
        way->digits[at++] = '0';
        way->digits[at] = '0';
    }
    if (*p == '*') {
        router_model_take(way, at, path.length - at + 1, '2');
        way->names[way->number] = (struct sxe_http_text){(uint16_t)(p - pattern), 1};
        way->values[way->number++] =
            (struct sxe_http_text){(uint16_t)at, (uint16_t)(path.length - at)};
        return true;
    }
    return at == path.length;
}

/* The pattern without the names of its parameters. */
static inline void
router_model_shape(const char *pattern, char *shape)
{
    for (; *pattern != '\0'; pattern++) {
        const char *close = *pattern == '{' ? strchr(pattern, '}') : NULL;

        if (*pattern == '*' || (close != NULL && close[-1] == '.'))
            *shape++ = '*';
        else
            *shape++ = *pattern;
        pattern = close != NULL ? close : pattern;
    }
    *shape = '\0';
}

/* ---- Operations: each returns NULL, or what differs ---- */

static inline int
router_model_expected_add(const struct router_model *model, const char *methods,
                          const char *pattern)
{
    char shape[ROUTER_MODEL_TEXT];
    char other[ROUTER_MODEL_TEXT];

    router_model_shape(pattern, shape);
    for (unsigned i = 0; i < model->number; i++) {
        const char *rest = model->routes[i].methods;

        router_model_shape(model->routes[i].pattern, other);
        if (strcmp(shape, other) != 0)
            continue;
        if (strcmp(pattern, model->routes[i].pattern) != 0)
            return -EEXIST;
        while (*(rest += strspn(rest, ", ")) != '\0') {
            char method[ROUTER_MODEL_TEXT];
            const size_t length = strcspn(rest, ", ");

            snprintf(method, sizeof(method), "%.*s", (int)length, rest);
            if (router_model_lists(methods, method))
                return -EEXIST;
            rest += length;
        }
    }
    return 0;
}

static inline const char *
router_model_add(struct router_model *model, const char *methods, const char *pattern)
{
    struct router_model_route *route = &model->routes[model->number];
    const struct sxe_http_route_options options = {route, model->number};
    const int result =
        sxe_http_router_add(model->router, methods, pattern, router_model_handler, &options);

    if ((result == 0) != (sxe_http_router_error(model->router)[0] == '\0'))
        return "error text";
    if (result == -EINVAL)
        return NULL;
    if (result != router_model_expected_add(model, methods, pattern))
        return "result of add";
    if (result == 0) {
        snprintf(route->methods, sizeof(route->methods), "%s", methods);
        snprintf(route->pattern, sizeof(route->pattern), "%s", pattern);
        model->number++;
    }
    return NULL;
}

/* Compare the router's match with the pattern and the model's way of matching. */
static inline const char *
router_model_compare(const struct sxe_http_match *match, const char *pattern,
                     const struct router_model_way *way)
{
    if (match->pattern == NULL || strcmp(match->pattern, pattern) != 0)
        return "pattern";
    if (match->number != way->number)
        return "number of parameters";
    if (memcmp(match->values, way->values, way->number * sizeof(way->values[0])) != 0)
        return "values";
    if (memcmp(match->names, way->names, way->number * sizeof(way->names[0])) != 0)
        return "names";
    return NULL;
}

/* The route that matches the path best; *best tells how. */
static inline const struct router_model_route *
router_model_best(const struct router_model *model, struct sxe_span path,
                  struct router_model_way *best)
{
    const struct router_model_route *found = NULL;

    for (unsigned i = 0; i < model->number; i++) {
        struct router_model_way way;

        if (!router_model_takes(&way, model->routes[i].pattern, path))
            continue;
        if (found == NULL || memcmp(way.digits, best->digits, path.length + 1) < 0) {
            *best = way;
            found = &model->routes[i];
        }
    }
    return found;
}

static inline const char *
router_model_find(const struct router_model *model, const char *method, struct sxe_span path)
{
    const enum sxe_http_method id = router_model_method(method);
    struct router_model_way way;
    const struct router_model_route *best = router_model_best(model, path, &way);
    struct sxe_http_match match;
    const enum sxe_http_routing routing = sxe_http_router_find(
        model->router, id, (struct sxe_span){method, strlen(method)}, path, &match);

    if (id == SXE_HTTP_OPTIONS && path.length == 1 && path.base[0] == '*')
        return routing == SXE_HTTP_ROUTE_OPTIONS ? NULL : "routing of *";
    if (best == NULL)
        return routing == SXE_HTTP_ROUTE_NOT_FOUND && match.number == 0 ? NULL
                                                                        : "what is not there";
    const char *wrong = router_model_compare(&match, best->pattern, &way);
    if (wrong != NULL)
        return wrong;
    for (unsigned i = SXE_HTTP_OTHER + 1; i <= SXE_HTTP_PATCH; i++) {
        if (!router_model_allows(model, best->pattern, sxe_http_method_name(i), match.allow.base))
            return "allow";
    }
    const struct router_model_route *route = router_model_route(model, best->pattern, method);
    if ((match.route == NULL ? NULL : match.route->user) != route)
        return "route";
    if (route != NULL)
        return routing == SXE_HTTP_ROUTE_FOUND ? NULL : "routing of what is there";
    if (id == SXE_HTTP_OPTIONS)
        return routing == SXE_HTTP_ROUTE_OPTIONS ? NULL : "routing of OPTIONS";
    return routing == SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED ? NULL : "routing of other methods";
}

static inline void
router_model_open(struct router_model *model)
{
    model->router = sxe_http_router_new();
    model->number = 0;
    if (model->router == NULL)
        abort();
}

static inline void
router_model_close(struct router_model *model)
{
    sxe_http_router_delete(model->router);
}

#endif
