/* SPDX-License-Identifier: MIT
 *
 * The router, compared with the simplest one: each path is compared with each pattern.
 */
#include <errno.h>
#include <string.h>

#include "outside.h"
#include "sxe-http-client.h"
#include "sxe-http-router.h"

enum { ROUTES = 12, PATHS = 200 };

static uint32_t
next_random(void)
{
    static uint32_t state = 88675123;

    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

static enum sxe_http_verdict
answer(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(response);
    abort();
}

static enum sxe_http_routing
find(const struct sxe_http_router *router, const char *path, struct sxe_http_match *match)
{
    return sxe_http_router_find(router, SXE_HTTP_GET, sxe_http_span("GET"), sxe_http_span(path),
                                match);
}

/* ---- Patterns against an oracle ---- */

/* Make a text of up to three segments: "a", "b" or a parameter. */
static void
make_text(char *text, const char *const *segments, unsigned number)
{
    text[0] = '\0';
    for (unsigned i = 1 + next_random() % 3; i > 0; i--)
        text += snprintf(text, 8, "/%s", segments[next_random() % number]);
}

/* Whether the pattern matches the path. *literals becomes a number with a bit for each segment of
 * the pattern that is not a parameter; the first segment has the highest bit. */
static bool
takes(const char *pattern, const char *path, unsigned *literals)
{
    *literals = 0;
    while (*pattern == '/' && *path == '/') {
        const size_t of_pattern = strcspn(pattern + 1, "/");
        const size_t of_path = strcspn(path + 1, "/");
        const bool is_parameter = pattern[1] == '{';

        *literals = *literals * 2 + !is_parameter;
        if (!is_parameter && (of_pattern != of_path || memcmp(pattern + 1, path + 1, of_path) != 0))
            return false;
        pattern += 1 + of_pattern;
        path += 1 + of_path;
    }
    return *pattern == *path;
}

/* promise: lib-sxe-http/sxe-http-router.h: The path alone chooses the pattern, then the method
 * chooses among the pattern's routes */
START_TEST(the_pattern_that_is_found_takes_the_path_and_none_that_does_is_passed_over)
{
    static const char *const of_patterns[] = {"a", "b", "ab", "{x}"};
    static const char *const of_paths[] = {"a", "b", "ab", "c"};

    for (unsigned round = 0; round < 2000; round++) {
        struct sxe_http_router *router = sxe_http_router_new();
        char patterns[ROUTES][32];
        unsigned number = 0;

        for (unsigned i = 0; i < ROUTES; i++) {
            int result;

            make_text(patterns[number], of_patterns, 4);
            if (strstr(strchr(patterns[number], '{') ? strchr(patterns[number], '{') + 1 : "", "{"))
                continue; /* a pattern may have a parameter of this name only once */
            result = sxe_http_router_add(router, "GET", patterns[number], answer, NULL);
            if (result == 0)
                number++;
            else
                ck_assert_int_eq(result, -EEXIST);
        }
        for (unsigned i = 0; i < PATHS; i++) {
            struct sxe_http_match match;
            char path[32];
            unsigned literals, best = 0;
            bool is_taken = false;
            const enum sxe_http_routing routing =
                (make_text(path, of_paths, 4), find(router, path, &match));

            for (unsigned k = 0; k < number; k++) {
                if (takes(patterns[k], path, &literals)) {
                    is_taken = true;
                    best = literals > best ? literals : best;
                }
            }
            ck_assert_int_eq(routing, is_taken ? SXE_HTTP_ROUTE_FOUND : SXE_HTTP_ROUTE_NOT_FOUND);
            if (is_taken) {
                ck_assert(takes(match.pattern, path, &literals));
                ck_assert_uint_eq(literals, best);
            }
        }
        sxe_http_router_delete(router);
    }
}
END_TEST

/* ---- Refusals ---- */

/* promise: lib-sxe-http/sxe-http-router.h: After an error only sxe_http_router_error has
 * changed. */
START_TEST(a_refused_route_changes_nothing)
{
    static const struct {
        const char *methods, *pattern;
        int error;
    } cases[] = {{"GET", "/a/{id}", -EEXIST},
                 {"GET", "/a/{other}", -EEXIST},
                 {"POST", "/a/{other}", -EEXIST},
                 {"G T", "/b/{", -EINVAL},
                 {"", "/b", -EINVAL},
                 {"GET,GET", "/b", -EINVAL},
                 {"G(T", "/b", -EINVAL},
                 {"GET", "b", -EINVAL},
                 {"GET", "", -EINVAL},
                 {"GET", "/b/{}", -EINVAL},
                 {"GET", "/b/{x}/{x}", -EINVAL},
                 {"GET", "/b//c", -EINVAL},
                 {"GET", "/b/../c", -EINVAL},
                 {"GET", "/b/./c", -EINVAL}};
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_match match;

    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/a/{id}", answer, NULL), 0);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct sxe_http_route *first;

        ck_assert_msg(sxe_http_router_add(router, cases[i].methods, cases[i].pattern, answer,
                                          NULL) == cases[i].error,
                      "case %u: %s", i, sxe_http_router_error(router));
        ck_assert_str_ne(sxe_http_router_error(router), "");
        ck_assert_int_eq(find(router, "/a/1", &match), SXE_HTTP_ROUTE_FOUND);
        ck_assert_int_eq(find(router, "/b", &match), SXE_HTTP_ROUTE_NOT_FOUND);
        ck_assert_uint_eq(match.allow.length, 0);
        first = sxe_http_router_next(router, NULL);
        ck_assert_str_eq(first->pattern, "/a/{id}");
        ck_assert_ptr_null(sxe_http_router_next(router, first));
    }
    ck_assert_int_eq(sxe_http_router_add(router, "PUT", "/a/{id}", answer, NULL), 0);
    ck_assert_str_eq(sxe_http_router_error(router), "");
    sxe_http_router_delete(router);
    sxe_http_router_delete(NULL);
}
END_TEST

/* promise: lib-sxe-http/sxe-http-router.h: its own name, for HEAD that of GET, then "*". */
START_TEST(a_method_gets_its_own_route_or_else_that_of_all_methods)
{
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_match match;
    const struct sxe_span path = sxe_http_span("/a");

    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/a", answer, NULL), 0);
    ck_assert_int_eq(
        sxe_http_router_find(router, SXE_HTTP_HEAD, sxe_http_span("HEAD"), path, &match),
        SXE_HTTP_ROUTE_FOUND);
    ck_assert_str_eq(match.route->methods, "GET");
    ck_assert_int_eq(
        sxe_http_router_find(router, SXE_HTTP_POST, sxe_http_span("POST"), path, &match),
        SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED);
    ck_assert_ptr_null(match.route);
    ck_assert_uint_gt(match.allow.length, 0);
    ck_assert_int_eq(sxe_http_router_add(router, "*", "/a", answer, NULL), 0);
    ck_assert_int_eq(
        sxe_http_router_find(router, SXE_HTTP_POST, sxe_http_span("POST"), path, &match),
        SXE_HTTP_ROUTE_FOUND);
    ck_assert_str_eq(match.route->methods, "*");
    ck_assert_int_eq(
        sxe_http_router_find(router, SXE_HTTP_OTHER, sxe_http_span("BREW"), path, &match),
        SXE_HTTP_ROUTE_FOUND);
    ck_assert_int_eq(
        sxe_http_router_find(router, SXE_HTTP_HEAD, sxe_http_span("HEAD"), path, &match),
        SXE_HTTP_ROUTE_FOUND);
    ck_assert_str_eq(match.route->methods, "GET");
    sxe_http_router_delete(router);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {
        the_pattern_that_is_found_takes_the_path_and_none_that_does_is_passed_over,
        a_refused_route_changes_nothing, a_method_gets_its_own_route_or_else_that_of_all_methods,
        NULL};

    return outside_run("http-router", cases);
}
