/* SPDX-License-Identifier: MIT
 *
 * The tree of routes. A route is added in three steps: check everything that can be wrong, allocate
 * all the memory, change the tree. So an error changes nothing.
 */
#include "sxe-http-router-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sxe-sized-internal.h"

#define NONE SXE_NONE

#define COUNT(id) +1

enum {
    ROOT = 0,
    METHODS = 1 SXE_HTTP_METHODS(COUNT),
    /* how many nodes a route may add: each part may split a node */
    NODES_ADDED_MAX = 2 * SXE__HTTP_PARTS_MAX,
    NODES_ROOM_MIN = 128
};

struct node {
    /* the bytes of a literal; in a parameter's node, the bytes of the literal after the
     * parameter */
    const char *text;
    uint16_t length;
    uint8_t kind;
    char first;              /* the first byte of the literal */
    uint32_t parent;         /* parent, next and others are indexes of nodes, or NONE */
    uint32_t next;           /* the next node in the parent's list of others */
    uint32_t others;         /* the first child that is no literal */
    struct pattern *pattern; /* the pattern that ends at this node, or NULL */
};
_Static_assert(sizeof(struct node) <= 32, "two nodes a cache line");

struct route {
    /* the first member, so that a pointer to it is also a pointer to the struct route */
    struct sxe_http_route public;
    struct route *next;       /* the next route in the order of addition */
    const struct route *peer; /* another route of the same pattern */
    char methods[];
};

struct pattern {
    struct pattern *next;
    const struct route *routes;
    /* the route for each method; at OTHER, the route of "*" */
    const struct sxe_http_route *chosen[METHODS];
    struct sxe__http_allow allow;
    struct sxe_http_text names[SXE_HTTP_ROUTE_PARAMETERS];
    char text[];
};

struct sxe_http_router {
    struct node *nodes; /* the first node is the root, an empty literal */
    /* a hash table: a parent and a first byte lead to the literal with that byte below the parent,
     * of which there is at most one */
    uint32_t *slots;
    uint32_t nodes_number;
    /* how many nodes there is memory for: a power of two, or 0; there are twice as many slots */
    uint32_t nodes_room;
    struct pattern *patterns;
    struct route *first_route;
    struct route **last_route;    /* where the link to the next new route goes */
    struct sxe__http_allow allow; /* the methods of all patterns */
    char error[SXE__HTTP_ROUTE_ERROR_MAX];
};

/* A route that is being added, and the memory made for it. */
struct addition {
    struct sxe__http_words words;
    /* the pattern of the same text that the router has already, or NULL */
    struct pattern *existing;
    struct pattern *pattern;
    struct route *route;
    struct sxe__http_allow pattern_allow;
    struct sxe__http_allow router_allow;
};

/* ---- The tree ---- */

/* Find the slot of the literal that begins with a byte, below a node; or the slot where it would
 * be. */
static inline uint32_t *
slot_of_literal(const struct sxe_http_router *router, uint32_t parent, char first)
{
    const uint64_t key = ((uint64_t)parent << 8 | (uint8_t)first) * UINT64_C(0x9e3779b97f4a7c15);
    const uint32_t mask = 2 * router->nodes_room - 1;
    uint32_t at = (uint32_t)(key >> 32) & mask;

    while (router->slots[at] != NONE) {
        const struct node *node = &router->nodes[router->slots[at]];

        if (node->parent == parent && node->first == first)
            break;
        at = (at + 1) & mask;
    }
    return &router->slots[at];
}

/* Whether this child, which is no literal, equals a part of a pattern. */
static bool
is_same_node(const struct node *child, const struct node *part)
{
    return child->kind == part->kind && child->length == part->length &&
           memcmp(child->text, part->text, part->length) == 0;
}

/* Whether a child stays before a new part in the list of others. The children are tried in the
 * order of the list: first the parameters, of which the one with the longest literal after it is
 * first; then the tail, which no literal follows. */
static bool
is_node_before(const struct node *child, const struct node *part)
{
    return child->kind == SXE__HTTP_PARAMETER && child->length >= part->length;
}

/* The link to the child that equals a part, or is a literal with the same first byte; or the place
 * for the link to such a child. */
static uint32_t *
link_of(struct sxe_http_router *router, uint32_t parent, const struct node *part)
{
    struct node *nodes = router->nodes;
    uint32_t *link = &nodes[parent].others;

    if (part->kind == SXE__HTTP_LITERAL)
        return slot_of_literal(router, parent, part->first);
    while (*link != NONE && !is_same_node(&nodes[*link], part) &&
           is_node_before(&nodes[*link], part))
        link = &nodes[*link].next;
    return link;
}

static uint32_t
add_child(struct sxe_http_router *router, uint32_t *link, uint32_t parent, const struct node *part)
{
    const uint32_t child = router->nodes_number++;

    router->nodes[child] = *part;
    router->nodes[child].parent = parent;
    router->nodes[child].next = *link;
    *link = child;
    return child;
}

/* Split a literal: a new node gets its first `length` bytes, and stands above the node with the
 * rest. */
static void
split_node(struct sxe_http_router *router, uint32_t *link, uint16_t length)
{
    const uint32_t upper = router->nodes_number++;
    const uint32_t lower = *link;
    struct node *nodes = router->nodes;

    nodes[upper] = nodes[lower];
    nodes[upper].length = length;
    nodes[upper].others = NONE;
    nodes[upper].pattern = NULL;
    *link = upper;
    nodes[lower].text += length;
    nodes[lower].length = (uint16_t)(nodes[lower].length - length);
    nodes[lower].first = nodes[lower].text[0];
    nodes[lower].parent = upper;
    *slot_of_literal(router, upper, nodes[lower].first) = lower;
}

/* The node below `id` where a part ends. If there is none: make it, in room that was reserved, or
 * return NONE if `make` is false. */
static uint32_t
place_part(struct sxe_http_router *router, uint32_t id, struct node part, bool make)
{
    struct node *nodes = router->nodes;

    for (;;) {
        uint32_t *link = link_of(router, id, &part);
        uint16_t common = 0;

        if (*link == NONE ||
            (part.kind != SXE__HTTP_LITERAL && !is_same_node(&nodes[*link], &part)))
            return make ? add_child(router, link, id, &part) : NONE;
        while (common < part.length && common < nodes[*link].length &&
               part.text[common] == nodes[*link].text[common])
            common++;
        if (common < nodes[*link].length && !make)
            return NONE;
        if (common < nodes[*link].length)
            split_node(router, link, common);
        id = *link;
        if (common == part.length)
            return id;
        part.text += common;
        part.length = (uint16_t)(part.length - common);
        part.first = part.text[0];
    }
}

/* The node where a pattern ends, or NONE. New nodes point into `pattern`, which must stay in
 * memory. */
static uint32_t
place_route(struct sxe_http_router *router, const struct sxe__http_words *words,
            const char *pattern, bool make)
{
    uint32_t id = ROOT;

    for (unsigned i = 0; i < words->parts_number && id != NONE; i++) {
        const struct sxe__http_part *part = &words->parts[i];
        const char *text = pattern + part->text.offset;
        const struct node node = {
            text, part->text.length, (uint8_t)part->kind, *text, NONE, NONE, NONE, NULL};

        id = place_part(router, id, node, make);
    }
    return id;
}

/* Reserve room for the nodes of one more pattern. */
static bool
reserve_nodes(struct sxe_http_router *router)
{
    const uint32_t room = router->nodes_room == 0 ? NODES_ROOM_MIN : 2 * router->nodes_room;

    if (router->nodes_room - router->nodes_number >= NODES_ADDED_MAX)
        return true;
    struct node *nodes = realloc(router->nodes, room * sizeof(*nodes));
    if (nodes == NULL)
        return false;
    router->nodes = nodes;
    uint32_t *slots = malloc(2 * room * sizeof(*slots));
    if (slots == NULL)
        return false;
    memset(slots, 0xff, 2 * room * sizeof(*slots)); /* all bytes 0xff are NONE */
    free(router->slots);
    router->slots = slots;
    router->nodes_room = room;
    for (uint32_t id = ROOT + 1; id < router->nodes_number; id++) {
        if (nodes[id].kind == SXE__HTTP_LITERAL)
            *slot_of_literal(router, nodes[id].parent, nodes[id].first) = id;
    }
    return true;
}

/* ---- Adding ---- */

/* Find the pattern's route that names a method, or NULL. */
static const struct sxe_http_route *
route_of_method(const struct pattern *pattern, struct sxe_span method)
{
    for (const struct route *route = pattern->routes; route != NULL; route = route->peer) {
        if (sxe__http_methods_have(route->methods, method))
            return &route->public;
    }
    return NULL;
}

/* Find the pattern, if the router has it already, and refuse a route that conflicts with the
 * pattern's routes. */
static int
check_conflicts(struct sxe_http_router *router, struct addition *addition)
{
    const struct sxe__http_words *words = &addition->words;
    const uint32_t id = place_route(router, words, words->pattern, false);
    const char *rest = words->methods;
    struct sxe_span method;

    addition->existing = id == NONE ? NULL : router->nodes[id].pattern;
    if (addition->existing == NULL)
        return 0;
    if (strcmp(addition->existing->text, words->pattern) != 0)
        return sxe__http_words_refuse(words, EEXIST, "other names of parameters than in %s",
                                      addition->existing->text);
    while (sxe__http_methods_next(&rest, &method)) {
        if (route_of_method(addition->existing, method) != NULL)
            return sxe__http_words_refuse(words, EEXIST, "the pattern has %.*s already",
                                          (int)method.length, method.base);
    }
    return 0;
}

static struct pattern *
pattern_new(const struct sxe__http_words *words)
{
    const size_t size = strlen(words->pattern) + 1;
    struct pattern *pattern = calloc(1, sizeof(*pattern) + size);

    if (pattern == NULL)
        return NULL;
    memcpy(pattern->text, words->pattern, size);
    memcpy(pattern->names, words->names, sizeof(pattern->names));
    return pattern;
}

static struct route *
route_new(const char *methods)
{
    const size_t size = strlen(methods) + 1;
    struct route *route = calloc(1, sizeof(*route) + size);

    if (route != NULL)
        memcpy(route->methods, methods, size);
    return route;
}

/* Allocate all the memory for an addition, or none. */
static int
prepare_addition(struct sxe_http_router *router, struct addition *addition)
{
    const struct sxe__http_words *words = &addition->words;
    struct pattern *made = addition->existing == NULL ? pattern_new(words) : NULL;

    addition->pattern = made != NULL ? made : addition->existing;
    addition->route = route_new(words->methods);
    addition->router_allow = sxe__http_allow_with(&router->allow, words->methods);
    if (addition->pattern != NULL)
        addition->pattern_allow = sxe__http_allow_with(&addition->pattern->allow, words->methods);
    if (addition->route != NULL && addition->router_allow.text != NULL &&
        addition->pattern_allow.text != NULL && reserve_nodes(router))
        return 0;
    free(made);
    free(addition->route);
    free(addition->router_allow.text);
    free(addition->pattern_allow.text);
    return sxe__http_words_refuse(words, ENOMEM, "there is no memory for it");
}

/* Choose the route for each method now, so that sxe_http_router_find need not. */
static void
choose_routes(struct pattern *pattern)
{
    const struct sxe_http_route *any = route_of_method(pattern, (struct sxe_span){"*", 1});

    pattern->chosen[SXE_HTTP_OTHER] = any;
    for (unsigned id = SXE_HTTP_OTHER + 1; id < METHODS; id++) {
        const char *name = sxe_http_method_name(id);
        const struct sxe_http_route *route =
            route_of_method(pattern, (struct sxe_span){name, strlen(name)});

        if (route == NULL && id == SXE_HTTP_HEAD)
            route = route_of_method(pattern, (struct sxe_span){"GET", 3});
        pattern->chosen[id] = route != NULL ? route : any;
    }
}

static void
commit_addition(struct sxe_http_router *router, const struct addition *addition)
{
    struct pattern *pattern = addition->pattern;
    struct route *route = addition->route;

    if (addition->existing == NULL) {
        pattern->next = router->patterns;
        router->patterns = pattern;
        router->nodes[place_route(router, &addition->words, pattern->text, true)].pattern = pattern;
    }
    free(pattern->allow.text);
    pattern->allow = addition->pattern_allow;
    free(router->allow.text);
    router->allow = addition->router_allow;
    route->peer = pattern->routes;
    pattern->routes = route;
    *router->last_route = route;
    router->last_route = &route->next;
    choose_routes(pattern);
}

int
sxe_http_router_add_sized(struct sxe_http_router *router, const char *methods, const char *pattern,
                          sxe_http_handler handler, const struct sxe_http_route_options *given,
                          size_t size)
{
    struct addition addition = {.words = {methods, pattern, .error = router->error}};
    struct sxe_http_route_options options;
    int result = sxe__sized_take(&options, sizeof(options), given, size, "sxe_http_router_add");

    snprintf(router->error, sizeof(router->error), "%s", result < 0 ? SXE__SIZED_NEWER : "");
    result = result < 0 ? result : sxe__http_words_parse(&addition.words);
    if (result == 0)
        result = check_conflicts(router, &addition);
    if (result == 0)
        result = prepare_addition(router, &addition);
    if (result < 0)
        return result;
    addition.route->public = (struct sxe_http_route){
        .methods = addition.route->methods,
        .pattern = addition.pattern->text,
        .handler = handler,
        .user = options.user,
        .flags = options.flags,
    };
    commit_addition(router, &addition);
    return 0;
}

const char *
sxe_http_router_error(const struct sxe_http_router *router)
{
    return router->error;
}

const struct sxe_http_route *
sxe_http_router_next(const struct sxe_http_router *router, const struct sxe_http_route *route)
{
    const struct route *next =
        route == NULL ? router->first_route : ((const struct route *)(const void *)route)->next;

    return next == NULL ? NULL : &next->public;
}

struct sxe_http_router *
sxe_http_router_new(void)
{
    struct sxe_http_router *router = calloc(1, sizeof(*router));

    if (router == NULL)
        return NULL;
    router->last_route = &router->first_route;
    router->allow = sxe__http_allow_with(&router->allow, "");
    if (router->allow.text == NULL || !reserve_nodes(router)) {
        sxe_http_router_delete(router);
        return NULL;
    }
    router->nodes[router->nodes_number++] =
        (struct node){.kind = SXE__HTTP_LITERAL, .parent = NONE, .next = NONE, .others = NONE};
    return router;
}

void
sxe_http_router_delete(struct sxe_http_router *router)
{
    if (router == NULL)
        return;
    while (router->patterns != NULL) {
        struct pattern *pattern = router->patterns;

        router->patterns = pattern->next;
        free(pattern->allow.text);
        free(pattern);
    }
    while (router->first_route != NULL) {
        struct route *route = router->first_route;

        router->first_route = route->next;
        free(route);
    }
    free(router->allow.text);
    free(router->slots);
    free(router->nodes);
    free(router);
}

/* ---- Finding ---- */

/* Compare two texts. Most are so short that calling memcmp takes longer. */
static inline bool
is_equal_segment(const char *a, const char *b, size_t length)
{
    size_t i = 0;

    while (i < length && a[i] == b[i])
        i++;
    return i == length;
}

static uint32_t
literal_at(const struct sxe_http_router *router, uint32_t id, const char *text, size_t length)
{
    const struct node *node;

    if (length == 0)
        return NONE;
    id = *slot_of_literal(router, id, text[0]);
    if (id == NONE)
        return NONE;
    node = &router->nodes[id];
    return node->length <= length && is_equal_segment(node->text, text, node->length) ? id : NONE;
}

/* How many bytes a parameter or tail takes; -1: the node does not match. */
static ssize_t
value_at(const struct node *node, const char *text, size_t length)
{
    if (node->kind == SXE__HTTP_TAIL)
        return (ssize_t)length;
    const char *end = memchr(text, '/', length);
    if (end == NULL)
        end = text + length;
    if (end - text <= node->length ||
        !is_equal_segment(end - node->length, node->text, node->length))
        return -1;
    return end - text - node->length;
}

/* Find the first node, from `id` on in the list of others, that matches at `at`, and add its value
 * to the match. */
static uint32_t
other_at(const struct node *nodes, uint32_t id, struct sxe_span path, size_t at,
         struct sxe_http_match *match)
{
    for (; id != NONE; id = nodes[id].next) {
        const ssize_t length = value_at(&nodes[id], path.base + at, path.length - at);

        if (length >= 0) {
            match->values[match->number++] = (struct sxe_http_text){(uint16_t)at, (uint16_t)length};
            return id;
        }
    }
    return NONE;
}

/* Go down while a child matches, and try the literal first; at a dead end go up and try the next
 * child. Only one way leads to a node, so the search enters a node at most once, and a node always
 * starts at the same byte. */
static const struct pattern *
find_pattern(const struct sxe_http_router *router, struct sxe_span path,
             struct sxe_http_match *match)
{
    const struct node *nodes = router->nodes;
    uint32_t id = ROOT;
    size_t at = 0;

    while (at < path.length || nodes[id].pattern == NULL) {
        uint32_t next = literal_at(router, id, path.base + at, path.length - at);

        if (next == NONE)
            next = other_at(nodes, nodes[id].others, path, at, match);
        while (next == NONE) {
            const struct node *dead = &nodes[id];

            if (id == ROOT)
                return NULL;
            id = dead->parent;
            at = dead->kind == SXE__HTTP_LITERAL ? at - dead->length
                                                 : match->values[--match->number].offset;
            next = other_at(nodes, dead->kind == SXE__HTTP_LITERAL ? nodes[id].others : dead->next,
                            path, at, match);
        }
        if (nodes[next].kind != SXE__HTTP_LITERAL)
            at += match->values[match->number - 1].length;
        at += nodes[next].length;
        id = next;
    }
    return nodes[id].pattern;
}

static const struct sxe_http_route *
choose_route(const struct pattern *pattern, enum sxe_http_method method, struct sxe_span name)
{
    const struct sxe_http_route *route =
        method == SXE_HTTP_OTHER ? route_of_method(pattern, name) : NULL;

    return route != NULL ? route : pattern->chosen[method];
}

enum sxe_http_routing
sxe_http_router_find(const struct sxe_http_router *router, enum sxe_http_method method,
                     struct sxe_span name, struct sxe_span path, struct sxe_http_match *match)
{
    const struct pattern *pattern = NULL;

    match->route = NULL;
    match->pattern = NULL;
    match->allow = (struct sxe_span){"", 0};
    match->names = NULL;
    match->number = 0;
    if (method == SXE_HTTP_OPTIONS && path.length == 1 && path.base[0] == '*') {
        match->allow = (struct sxe_span){router->allow.text, router->allow.length};
        return SXE_HTTP_ROUTE_OPTIONS;
    }
    if (path.length <= UINT16_MAX)
        pattern = find_pattern(router, path, match);
    if (pattern == NULL)
        return SXE_HTTP_ROUTE_NOT_FOUND;
    match->route = choose_route(pattern, method, name);
    match->pattern = pattern->text;
    match->allow = (struct sxe_span){pattern->allow.text, pattern->allow.length};
    match->names = pattern->names;
    if (match->route != NULL)
        return SXE_HTTP_ROUTE_FOUND;
    return method == SXE_HTTP_OPTIONS ? SXE_HTTP_ROUTE_OPTIONS : SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED;
}

const struct sxe_http_text *
sxe_http_match_value(const struct sxe_http_match *match, const char *name)
{
    const size_t length = strlen(name);

    for (unsigned i = 0; i < match->number; i++) {
        const struct sxe_http_text *text = &match->names[i];

        if (text->length == length && memcmp(match->pattern + text->offset, name, length) == 0)
            return &match->values[i];
    }
    return NULL;
}
