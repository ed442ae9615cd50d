/* SPDX-License-Identifier: MIT
 *
 * Which route a path finds. Refused routes are in test-http-route-pattern.c.
 */
#include "sxe-http-router.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake-os.h"
#include "router-model.h"
#include "test-main.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

enum { TEXT_MAX = 1024, EDGE = 1 << 16 };

/* A copy of the bytes that ends at a page without access. */
static const char *
at_edge(const char *bytes, size_t length)
{
    static char *memory;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (memory == NULL) {
        memory =
            mmap(NULL, EDGE + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(memory, MAP_FAILED);
        ck_assert_int_eq(mprotect(memory + EDGE, page, PROT_NONE), 0);
    }
    ck_assert_uint_le(length, EDGE);
    memcpy(memory + EDGE - length, bytes, length);
    return memory + EDGE - length;
}

static enum sxe_http_routing
find(const struct sxe_http_router *router, const char *method, const char *path, size_t length,
     struct sxe_http_match *match)
{
    const enum sxe_http_method id = router_model_method(method);

    return sxe_http_router_find(router, id, (struct sxe_span){method, strlen(method)},
                                (struct sxe_span){path, length}, match);
}

/* Add routes written as "GET /a; PUT,DELETE /b". */
static void
add_routes(struct sxe_http_router *router, const char *routes)
{
    while (*routes != '\0') {
        char methods[TEXT_MAX];
        char pattern[TEXT_MAX];
        int length = 0;

        ck_assert_int_eq(sscanf(routes, " %1023[^ ] %1023[^; ]%n", methods, pattern, &length), 2);
        ck_assert_msg(sxe_http_router_add(router, methods, pattern, router_model_handler, NULL) ==
                          0,
                      "%s", sxe_http_router_error(router));
        routes += length + (routes[length] == ';');
    }
}

/* The result of a search as text: "GET,PUT /users/{id} id=5", "404", "405 GET, HEAD, OPTIONS". */
static const char *
answer(const struct sxe_http_router *router, const char *method, const char *path)
{
    static const char *const words[] = {"found", "404", "405", "OPTIONS"};
    static char line[4 * TEXT_MAX];
    struct sxe_http_match match;
    const char *edge = at_edge(path, strlen(path));
    const enum sxe_http_routing routing = find(router, method, edge, strlen(path), &match);
    int length = 0;

    ck_assert_int_eq(routing == SXE_HTTP_ROUTE_FOUND, match.route != NULL);
    ck_assert_int_eq(routing == SXE_HTTP_ROUTE_NOT_FOUND, match.allow.length == 0);
    if (match.route == NULL) {
        snprintf(line, sizeof(line), "%s%s%.*s", words[routing], match.allow.length > 0 ? " " : "",
                 (int)match.allow.length, match.allow.base);
        return line;
    }
    ck_assert_str_eq(match.pattern, match.route->pattern);
    length = snprintf(line, sizeof(line), "%s %s", match.route->methods, match.pattern);
    for (unsigned i = 0; i < match.number; i++)
        length += snprintf(line + length, sizeof(line) - (size_t)length, " %.*s=%.*s",
                           match.names[i].length, match.pattern + match.names[i].offset,
                           match.values[i].length, edge + match.values[i].offset);
    return line;
}

/* ---- Finding a route ---- */

#define API                                                                            \
    "GET /; GET,POST /users; GET /users/me; GET /users/{id}; PUT,DELETE /users/{id}; " \
    "GET /users/{id}/posts; GET /users/{user}/posts/{post}; GET /users/{id}/x"
#define FILES                                                     \
    "GET /f/{name}; GET /f/{name}.json; GET /f/{name}.min.json; " \
    "GET /f/{name}.jxon; GET /f/v{major}; GET /f/v{major}/{name}.js; GET /f/ver"
#define TAILS "GET /{all...}; GET /s/*; GET /s/a; GET /s/{x}/end; GET /p{rest...}; GET /s/a/*"
#define METHODS                                                                   \
    "GET /get; HEAD /head; GET /both; HEAD /both; POST /post; OPTIONS /options; " \
    "* /any; PURGE /any; GET /any; PURGE /custom; LINK,GET,UNLINK /custom; POST,* /list"
#define DEEP                                                                     \
    "GET /a/b/c/d; GET /a/b/c/{d}/x; GET /a/b/{c}/{d}/y; GET /a/{b}/{c}/{d}/z; " \
    "GET /{a}/{b}/{c}/{d}/w; GET /a/b/{t...}"

static const struct {
    const char *routes;
    const char *method;
    const char *path;
    const char *expected;
} finds[] = {
    /* Literals. */
    {"", "GET", "/", "404"},
    {"", "GET", "", "404"},
    {"", "GET", "*", "404"},
    {"GET /", "GET", "/", "GET /"},
    {"GET /", "GET", "", "404"},
    {"GET /", "GET", "//", "404"},
    {"GET /", "GET", "/a", "404"},
    {"GET /a", "GET", "/", "404"},
    {"GET /a", "GET", "a", "404"},
    {"GET /a", "GET", "/A", "404"},
    {"GET /a", "GET", "/a/", "404"},
    {"GET /a/", "GET", "/a", "404"},
    {"GET /a; GET /a/", "GET", "/a", "GET /a"},
    {"GET /a; GET /a/", "GET", "/a/", "GET /a/"},
    {"GET /a[]|b", "GET", "/a[]|b", "GET /a[]|b"},
    {"GET /%2F", "GET", "/%2F", "GET /%2F"},
    {"GET /%2F", "GET", "//", "404"},
    {"GET /a+b~c!$&'(),=:@-._", "GET", "/a+b~c!$&'(),=:@-._", "GET /a+b~c!$&'(),=:@-._"},
    {"GET /...", "GET", "/...", "GET /..."},
    {"GET /.a/..b/c.", "GET", "/.a/..b/c.", "GET /.a/..b/c."},
    /* Literals with a common beginning. */
    {"GET /abc; GET /abd", "GET", "/abc", "GET /abc"},
    {"GET /abc; GET /abd", "GET", "/abd", "GET /abd"},
    {"GET /abc; GET /abd", "GET", "/ab", "404"},
    {"GET /abc; GET /abd", "GET", "/abe", "404"},
    {"GET /abc; GET /abd", "GET", "/abcd", "404"},
    {"GET /abcdef; GET /abc", "GET", "/abc", "GET /abc"},
    {"GET /abcdef; GET /abc", "GET", "/abcdef", "GET /abcdef"},
    {"GET /abcdef; GET /abc", "GET", "/abcde", "404"},
    {"GET /abc; GET /abcdef", "GET", "/abcdef", "GET /abcdef"},
    {"GET /abcd; GET /abxy; GET /ab; GET /a; GET /q", "GET", "/ab", "GET /ab"},
    {"GET /abcd; GET /abxy; GET /ab; GET /a; GET /q", "GET", "/a", "GET /a"},
    {"GET /abcd; GET /abxy; GET /ab; GET /a; GET /q", "GET", "/abxy", "GET /abxy"},
    {"GET /abcd; GET /abxy; GET /ab; GET /a; GET /q", "GET", "/q", "GET /q"},
    {"GET /abcd; GET /abxy; GET /ab; GET /a; GET /q", "GET", "/abx", "404"},
    /* Parameters. */
    {API, "GET", "/", "GET /"},
    {API, "GET", "/users", "GET,POST /users"},
    {API, "POST", "/users", "GET,POST /users"},
    {API, "GET", "/users/me", "GET /users/me"},
    {API, "GET", "/users/5", "GET /users/{id} id=5"},
    {API, "GET", "/users/m", "GET /users/{id} id=m"},
    {API, "GET", "/users/men", "GET /users/{id} id=men"},
    {API, "GET", "/users/a%2Fb", "GET /users/{id} id=a%2Fb"},
    {API, "DELETE", "/users/5", "PUT,DELETE /users/{id} id=5"},
    {API, "GET", "/users/", "404"},
    {API, "GET", "/users/5/", "404"},
    {API, "GET", "/users//posts", "404"},
    {API, "GET", "/users/5/posts", "GET /users/{id}/posts id=5"},
    {API, "GET", "/users/me/posts", "GET /users/{id}/posts id=me"},
    {API, "GET", "/users/5/posts/6", "GET /users/{user}/posts/{post} user=5 post=6"},
    {API, "GET", "/users/5/posts/", "404"},
    {API, "GET", "/users/5/posts/6/7", "404"},
    {API, "GET", "/users/5/x", "GET /users/{id}/x id=5"},
    {API, "GET", "/users/5/y", "404"},
    {"GET /{a}", "GET", "/", "404"},
    {"GET /{a}", "GET", "/x", "GET /{a} a=x"},
    {"GET /{a}/{b}", "GET", "/x/y", "GET /{a}/{b} a=x b=y"},
    {"GET /{a}/{b}", "GET", "//y", "404"},
    {"GET /{a-1}/{_B2}", "GET", "/x/y", "GET /{a-1}/{_B2} a-1=x _B2=y"},
    {"GET /{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/{j}/{k}/{l}/{m}/{n}/{o}/{p}", "GET",
     "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16",
     "GET /{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/{j}/{k}/{l}/{m}/{n}/{o}/{p} a=1 b=2 c=3 d=4 e=5 f=6 "
     "g=7 h=8 i=9 j=10 k=11 l=12 m=13 n=14 o=15 p=16"},
    /* Literals before or after a parameter in the same segment. */
    {FILES, "GET", "/f/a", "GET /f/{name} name=a"},
    {FILES, "GET", "/f/a.json", "GET /f/{name}.json name=a"},
    {FILES, "GET", "/f/a.min.json", "GET /f/{name}.min.json name=a"},
    {FILES, "GET", "/f/.min.json", "GET /f/{name}.json name=.min"},
    {FILES, "GET", "/f/.json", "GET /f/{name} name=.json"},
    {FILES, "GET", "/f/a.jxon", "GET /f/{name}.jxon name=a"},
    {FILES, "GET", "/f/a.jsonx", "GET /f/{name} name=a.jsonx"},
    {FILES, "GET", "/f/a.json/", "404"},
    {FILES, "GET", "/f/v", "GET /f/{name} name=v"},
    {FILES, "GET", "/f/v1", "GET /f/v{major} major=1"},
    {FILES, "GET", "/f/v1.json", "GET /f/v{major} major=1.json"},
    {FILES, "GET", "/f/ver", "GET /f/ver"},
    {FILES, "GET", "/f/verb", "GET /f/v{major} major=erb"},
    {FILES, "GET", "/f/v1/x.js", "GET /f/v{major}/{name}.js major=1 name=x"},
    {FILES, "GET", "/f/v1/.js", "404"},
    {FILES, "GET", "/f/ver/x.js", "GET /f/v{major}/{name}.js major=er name=x"},
    /* Parameters for the rest of the path. */
    {TAILS, "GET", "/", "GET /{all...} all="},
    {TAILS, "GET", "", "404"},
    {TAILS, "GET", "/x/y/", "GET /{all...} all=x/y/"},
    {TAILS, "GET", "/s", "GET /{all...} all=s"},
    {TAILS, "GET", "/s/", "GET /s/* *="},
    {TAILS, "GET", "/s//", "GET /s/* *=/"},
    {TAILS, "GET", "/s/a", "GET /s/a"},
    {TAILS, "GET", "/s/ab", "GET /s/* *=ab"},
    {TAILS, "GET", "/s/a/", "GET /s/a/* *="},
    {TAILS, "GET", "/s/a/end", "GET /s/a/* *=end"},
    {TAILS, "GET", "/s/b/end", "GET /s/{x}/end x=b"},
    {TAILS, "GET", "/s/b/en", "GET /s/* *=b/en"},
    {TAILS, "GET", "/s/b/end/", "GET /s/* *=b/end/"},
    {TAILS, "GET", "/p", "GET /p{rest...} rest="},
    {TAILS, "GET", "/p/q", "GET /p{rest...} rest=/q"},
    {TAILS, "GET", "/pq/r", "GET /p{rest...} rest=q/r"},
    {"GET /a/{x...}; GET /a/", "GET", "/a/", "GET /a/"},
    {"GET /a/{x...}; GET /a/", "GET", "/a", "404"},
    /* Searches that must go back. */
    {DEEP, "GET", "/a/b/c/d", "GET /a/b/c/d"},
    {DEEP, "GET", "/a/b/c/d/x", "GET /a/b/c/{d}/x d=d"},
    {DEEP, "GET", "/a/b/c/d/y", "GET /a/b/{c}/{d}/y c=c d=d"},
    {DEEP, "GET", "/a/b/c/d/z", "GET /a/b/{t...} t=c/d/z"},
    {DEEP, "GET", "/a/B/c/d/z", "GET /a/{b}/{c}/{d}/z b=B c=c d=d"},
    {DEEP, "GET", "/a/b/c/d/w", "GET /a/b/{t...} t=c/d/w"},
    {DEEP, "GET", "/a/B/c/d/w", "GET /{a}/{b}/{c}/{d}/w a=a b=B c=c d=d"},
    {DEEP, "GET", "/a/B/c/d/v", "404"},
    {DEEP, "GET", "/a/b/", "GET /a/b/{t...} t="},
    {DEEP, "GET", "/a/b", "404"},
    /* Methods. */
    {METHODS, "GET", "/get", "GET /get"},
    {METHODS, "HEAD", "/get", "GET /get"},
    {METHODS, "POST", "/get", "405 GET, HEAD, OPTIONS"},
    {METHODS, "get", "/get", "405 GET, HEAD, OPTIONS"},
    {METHODS, "GETS", "/get", "405 GET, HEAD, OPTIONS"},
    {METHODS, "OPTIONS", "/get", "OPTIONS GET, HEAD, OPTIONS"},
    {METHODS, "HEAD", "/head", "HEAD /head"},
    {METHODS, "GET", "/head", "405 HEAD, OPTIONS"},
    {METHODS, "HEAD", "/both", "HEAD /both"},
    {METHODS, "GET", "/both", "GET /both"},
    {METHODS, "HEAD", "/post", "405 POST, OPTIONS"},
    {METHODS, "OPTIONS", "/options", "OPTIONS /options"},
    {METHODS, "GET", "/options", "405 OPTIONS"},
    {METHODS, "PURGE", "/any", "PURGE /any"},
    {METHODS, "BREW", "/any", "* /any"},
    {METHODS, "*", "/any", "* /any"},
    {METHODS, "GET", "/any", "GET /any"},
    {METHODS, "HEAD", "/any", "GET /any"},
    {METHODS, "PUT", "/any", "* /any"},
    {METHODS, "TRACE", "/any", "* /any"},
    {METHODS, "OPTIONS", "/any", "* /any"},
    {METHODS, "PURGE", "/custom", "PURGE /custom"},
    {METHODS, "UNLINK", "/custom", "LINK,GET,UNLINK /custom"},
    {METHODS, "HEAD", "/custom", "LINK,GET,UNLINK /custom"},
    {METHODS, "LIN", "/custom", "405 GET, HEAD, OPTIONS, PURGE, LINK, UNLINK"},
    {METHODS, "OPTIONS", "/custom", "OPTIONS GET, HEAD, OPTIONS, PURGE, LINK, UNLINK"},
    {METHODS, "POST", "/list", "POST,* /list"},
    {METHODS, "X", "/list", "POST,* /list"},
    {METHODS, "GET", "/nothing", "404"},
    {METHODS, "OPTIONS", "/nothing", "404"},
    {"GET /a/b; POST /a/{x}", "POST", "/a/b", "405 GET, HEAD, OPTIONS"},
    {"TRACE,CONNECT /t", "GET", "/t", "405 CONNECT, OPTIONS, TRACE"},
    {"PATCH,DELETE,PUT,POST /w", "GET", "/w", "405 POST, PUT, DELETE, OPTIONS, PATCH"},
    /* OPTIONS * asks for the methods of all routes. */
    {"", "OPTIONS", "*", "OPTIONS OPTIONS"},
    {"GET /a; PUT /b", "OPTIONS", "*", "OPTIONS GET, HEAD, PUT, OPTIONS"},
    {"* /a", "OPTIONS", "*", "OPTIONS GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"},
    {"X,Y /a; Y,Z,X /b; GET /c", "OPTIONS", "*", "OPTIONS GET, HEAD, OPTIONS, X, Y, Z"},
    {"GET /*", "OPTIONS", "*", "OPTIONS GET, HEAD, OPTIONS"},
    {"GET /*", "GET", "*", "404"},
    {"OPTIONS /*", "OPTIONS", "*", "OPTIONS OPTIONS"},
};

START_TEST(a_path_and_a_method_find_their_route)
{
    struct sxe_http_router *router = sxe_http_router_new();

    add_routes(router, finds[_i].routes);
    ck_assert_msg(strcmp(answer(router, finds[_i].method, finds[_i].path), finds[_i].expected) == 0,
                  "%s %s in %s: expected %s, got %s", finds[_i].method, finds[_i].path,
                  finds[_i].routes, finds[_i].expected,
                  answer(router, finds[_i].method, finds[_i].path));
    sxe_http_router_delete(router);
}
END_TEST

/* ---- The parameters of a match ---- */

START_TEST(a_route_carries_what_its_caller_gave_it)
{
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_route_options options = {router, 7};
    struct sxe_http_match match;

    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/a", router_model_handler, &options), 0);
    ck_assert_int_eq(sxe_http_router_add(router, "PUT", "/a", router_model_handler, NULL), 0);
    ck_assert_int_eq(find(router, "HEAD", "/a", 2, &match), SXE_HTTP_ROUTE_FOUND);
    ck_assert(match.route->handler == router_model_handler);
    ck_assert_ptr_eq(match.route->user, router);
    ck_assert_uint_eq(match.route->flags, 7);
    ck_assert_int_eq(find(router, "PUT", "/a", 2, &match), SXE_HTTP_ROUTE_FOUND);
    ck_assert_ptr_null(match.route->user);
    ck_assert_uint_eq(match.route->flags, 0);
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_value_is_found_by_its_name)
{
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_match match;

    add_routes(router, "GET /{id}/{idea}/*");
    ck_assert_int_eq(find(router, "GET", "/12/3/4/5", 9, &match), SXE_HTTP_ROUTE_FOUND);
    ck_assert_uint_eq(sxe_http_match_value(&match, "id")->offset, 1);
    ck_assert_uint_eq(sxe_http_match_value(&match, "id")->length, 2);
    ck_assert_uint_eq(sxe_http_match_value(&match, "idea")->offset, 4);
    ck_assert_uint_eq(sxe_http_match_value(&match, "*")->offset, 6);
    ck_assert_uint_eq(sxe_http_match_value(&match, "*")->length, 3);
    ck_assert_ptr_null(sxe_http_match_value(&match, "ide"));
    ck_assert_ptr_null(sxe_http_match_value(&match, ""));
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_refused_method_still_tells_pattern_and_values)
{
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_match match;

    add_routes(router, "GET /users/{id}");
    ck_assert_int_eq(find(router, "PUT", "/users/5", 8, &match), SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED);
    ck_assert_str_eq(match.pattern, "/users/{id}");
    ck_assert_uint_eq(sxe_http_match_value(&match, "id")->offset, 7);
    ck_assert_str_eq(match.allow.base, "GET, HEAD, OPTIONS");
    ck_assert_int_eq(find(router, "PUT", "/users", 6, &match), SXE_HTTP_ROUTE_NOT_FOUND);
    ck_assert_ptr_null(match.pattern);
    ck_assert_ptr_null(sxe_http_match_value(&match, "id"));
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_path_has_at_most_65535_bytes)
{
    struct sxe_http_router *router = sxe_http_router_new();
    static char path[EDGE];
    struct sxe_http_match match;

    memset(path, '/', sizeof(path));
    add_routes(router, "GET /*");
    ck_assert_int_eq(find(router, "GET", at_edge(path, 65535), 65535, &match),
                     SXE_HTTP_ROUTE_FOUND);
    ck_assert_uint_eq(match.values[0].length, 65534);
    ck_assert_int_eq(find(router, "GET", at_edge(path, 65536), 65536, &match),
                     SXE_HTTP_ROUTE_NOT_FOUND);
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_method_needs_its_name_only_where_it_is_no_well_known_one)
{
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_match match;

    add_routes(router, "GET,PURGE /a");
    ck_assert_int_eq(sxe_http_router_find(router, SXE_HTTP_GET, (struct sxe_span){NULL, 0},
                                          (struct sxe_span){"/a", 2}, &match),
                     SXE_HTTP_ROUTE_FOUND);
    ck_assert_int_eq(sxe_http_router_find(router, SXE_HTTP_OTHER, (struct sxe_span){NULL, 0},
                                          (struct sxe_span){"/a", 2}, &match),
                     SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED);
    sxe_http_router_delete(router);
}
END_TEST

/* ---- Deleting the router, memory, large routers ---- */

START_TEST(routes_are_listed_in_the_order_in_which_they_were_added)
{
    static const char *const patterns[] = {"/b", "/{x...}", "/a", "/a/{x}", "/", "/b"};
    struct sxe_http_router *router = sxe_http_router_new();
    const struct sxe_http_route *route = NULL;

    ck_assert_ptr_null(sxe_http_router_next(router, NULL));
    add_routes(router, "GET /b; PUT /{x...}; GET,POST /a; * /a/{x}; PURGE /; PUT /b");
    for (unsigned i = 0; i < LENGTH_OF(patterns); i++) {
        route = sxe_http_router_next(router, route);
        ck_assert_str_eq(route->pattern, patterns[i]);
    }
    ck_assert_str_eq(route->methods, "PUT");
    ck_assert_ptr_null(sxe_http_router_next(router, route));
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(texts_are_copied)
{
    struct sxe_http_router *router = sxe_http_router_new();
    char methods[] = "GET,X";
    char pattern[] = "/a/{id}";

    ck_assert_int_eq(sxe_http_router_add(router, methods, pattern, router_model_handler, NULL), 0);
    memset(methods, '#', sizeof(methods) - 1);
    memset(pattern, '#', sizeof(pattern) - 1);
    ck_assert_str_eq(answer(router, "X", "/a/5"), "GET,X /a/{id} id=5");
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(no_router_is_deleted_without_harm)
{
    sxe_http_router_delete(NULL);
}
END_TEST

/* Add a pattern of 40 segments, all of them "a" but the ith and jth, which are parameters, and a
 * last segment that no path has. */
static void
add_deep_route(struct sxe_http_router *router, unsigned i, unsigned j, unsigned levels)
{
    char pattern[TEXT_MAX];
    int length = 0;

    for (unsigned level = 0; level < levels; level++) {
        const bool is_literal = level != i && level != j;

        length += snprintf(pattern + length, sizeof(pattern) - (size_t)length,
                           is_literal ? "/a" : "/{p%u}", level);
    }
    snprintf(pattern + length, sizeof(pattern) - (size_t)length, "/end");
    ck_assert_int_eq(sxe_http_router_add(router, "GET", pattern, router_model_handler, NULL), 0);
}

/* At almost every node the path can go on in two ways, at 40 levels, and all ways are dead ends. If
 * the router visited a node once for each way to it, the search would not end. */
START_TEST(dead_ends_do_not_multiply)
{
    enum { LEVELS = 40 };
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_match match;
    char path[2 * LEVELS + 4];

    for (unsigned i = 0; i < LEVELS; i++) {
        for (unsigned j = i; j < LEVELS; j++)
            add_deep_route(router, i, j, LEVELS);
    }
    for (unsigned i = 0; i < 2 * LEVELS; i += 2)
        memcpy(path + i, "/a", 2);
    memcpy(path + 2 * LEVELS, "/no", 3);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(find(router, "GET", path, 2 * LEVELS + 3, &match),
                         SXE_HTTP_ROUTE_NOT_FOUND);
    ck_assert_uint_eq(match.number, 0);
    memcpy(path + 2 * LEVELS, "/end", 4);
    ck_assert_int_eq(find(router, "GET", path, 2 * LEVELS + 4, &match), SXE_HTTP_ROUTE_FOUND);
    ck_assert_ptr_nonnull(sxe_http_match_value(&match, "p39"));
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(the_order_of_addition_changes_nothing)
{
    static const char *const routes[] = {"GET /a/{x}", "GET /a/{x}.js", "GET /ab", "GET /a/*",
                                         "GET /a/b/c"};
    static const char *const checks[][2] = {
        {"/a/q", "GET /a/{x} x=q"},
        {"/a/q.js", "GET /a/{x}.js x=q"},
        {"/ab", "GET /ab"},
        {"/a/b/d", "GET /a/* *=b/d"},
        {"/a/b/c", "GET /a/b/c"},
        {"/a/b", "GET /a/{x} x=b"},
        {"/a/.js", "GET /a/{x} x=.js"},
        {"/a/", "GET /a/* *="},
        {"/a", "404"},
    };
    struct sxe_http_router *router = sxe_http_router_new();
    unsigned rank = (unsigned)_i; /* the rank of a permutation of the routes */
    bool taken[LENGTH_OF(routes)] = {false};

    for (unsigned left = LENGTH_OF(routes); left > 0; left--) {
        unsigned skip = rank % left;
        unsigned next = 0;

        while (taken[next] || skip-- > 0)
            next++;
        taken[next] = true;
        rank /= left;
        add_routes(router, routes[next]);
    }
    for (unsigned i = 0; i < LENGTH_OF(checks); i++)
        ck_assert_str_eq(answer(router, "GET", checks[i][0]), checks[i][1]);
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_thousand_routes_are_all_found)
{
    struct sxe_http_router *router = sxe_http_router_new();
    char text[64];
    char expected[64];

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "%s /r%u/{id}/x%u", i % 2 == 0 ? "GET" : "GET,PUT", i, i * 7);
        add_routes(router, text);
    }
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "/r%u/5/x%u", i, i * 7);
        snprintf(expected, sizeof(expected), "%s /r%u/{id}/x%u id=5",
                 i % 2 == 0 ? "GET" : "GET,PUT", i, i * 7);
        ck_assert_str_eq(answer(router, "GET", text), expected);
    }
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(finding_allocates_nothing)
{
    struct sxe_http_router *router = sxe_http_router_new();

    add_routes(router, API);
    fake_os_forbid(FAKE_MALLOC, true);
    fake_os_forbid(FAKE_CALLOC, true);
    fake_os_forbid(FAKE_REALLOC, true);
    for (unsigned i = 0; i < LENGTH_OF(finds); i++) {
        struct sxe_http_match match;

        ck_assert_int_le(
            find(router, finds[i].method, finds[i].path, strlen(finds[i].path), &match),
            SXE_HTTP_ROUTE_OPTIONS);
    }
    ck_assert_uint_eq(fake_os_violations(), 0);
    sxe_http_router_delete(router);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-router");
    TCase *tcase = tcase_create("router");

    tcase_add_loop_test(tcase, a_path_and_a_method_find_their_route, 0, LENGTH_OF(finds));
    tcase_add_test(tcase, a_route_carries_what_its_caller_gave_it);
    tcase_add_test(tcase, a_value_is_found_by_its_name);
    tcase_add_test(tcase, a_refused_method_still_tells_pattern_and_values);
    tcase_add_test(tcase, a_path_has_at_most_65535_bytes);
    tcase_add_test(tcase, a_method_needs_its_name_only_where_it_is_no_well_known_one);
    tcase_add_test(tcase, routes_are_listed_in_the_order_in_which_they_were_added);
    tcase_add_test(tcase, texts_are_copied);
    tcase_add_test(tcase, no_router_is_deleted_without_harm);
    tcase_add_test(tcase, dead_ends_do_not_multiply);
    tcase_add_loop_test(tcase, the_order_of_addition_changes_nothing, 0, 120);
    tcase_add_test(tcase, a_thousand_routes_are_all_found);
    tcase_add_test(tcase, finding_allocates_nothing);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
