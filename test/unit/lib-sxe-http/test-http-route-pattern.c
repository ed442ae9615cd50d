/* SPDX-License-Identifier: MIT
 *
 * Routes that the router refuses, and the messages.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "router-model.h"
#include "test-main.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

enum { TEXT_MAX = 1024 };

static int
add(struct sxe_http_router *router, const char *methods, const char *pattern)
{
    return sxe_http_router_add(router, methods, pattern, router_model_handler, NULL);
}

static enum sxe_http_routing
find(const struct sxe_http_router *router, enum sxe_http_method method, const char *path,
     struct sxe_http_match *match)
{
    return sxe_http_router_find(router, method, (struct sxe_span){NULL, 0},
                                (struct sxe_span){path, strlen(path)}, match);
}

static const struct {
    const char *methods;
    const char *pattern;
    int result;
    const char *error;
} refusals[] = {
    {"", "/a", -EINVAL, "there is no method"},
    {" ,", "/a", -EINVAL, "there is no method"},
    {"G@T", "/a", -EINVAL, "the method G@T is not a token"},
    {"GET,P\xc3\xa4", "/a", -EINVAL, "the method P\xc3\xa4 is not a token"},
    {"GET\n", "/a", -EINVAL, "the method GET\n is not a token"},
    {"GET,PUT,GET", "/a", -EINVAL, "the method GET is there twice"},
    {"*, *", "/a", -EINVAL, "the method * is there twice"},
    {"GET", "", -EINVAL, "no / to begin with, at byte 0"},
    {"GET", "a", -EINVAL, "no / to begin with, at byte 0"},
    {"GET", "*", -EINVAL, "no / to begin with, at byte 0"},
    {"GET", "{a}", -EINVAL, "no / to begin with, at byte 0"},
    {"GET", "/a b", -EINVAL, "a byte that a path has only as an escape, at byte 2"},
    {"GET", "/a?b", -EINVAL, "a byte that a path has only as an escape, at byte 2"},
    {"GET", "/a#", -EINVAL, "a byte that a path has only as an escape, at byte 2"},
    {"GET", "/\\", -EINVAL, "a byte that a path has only as an escape, at byte 1"},
    {"GET", "/\x01", -EINVAL, "a byte that a path has only as an escape, at byte 1"},
    {"GET", "/\xc3\xa4", -EINVAL, "a byte that a path has only as an escape, at byte 1"},
    {"GET", "/{a}^", -EINVAL, "a byte that a path has only as an escape, at byte 4"},
    {"GET", "//", -EINVAL, "an empty segment, which no path has, at byte 0"},
    {"GET", "/a//b", -EINVAL, "an empty segment, which no path has, at byte 2"},
    {"GET", "/{a}//b", -EINVAL, "an empty segment, which no path has, at byte 4"},
    {"GET", "/a//{b...}", -EINVAL, "an empty segment, which no path has, at byte 2"},
    {"GET", "/%41", -EINVAL, "an escape of a byte that a path has as it is, at byte 1"},
    {"GET", "/%2E", -EINVAL, "an escape of a byte that a path has as it is, at byte 1"},
    {"GET", "/a%40{b}", -EINVAL, "an escape of a byte that a path has as it is, at byte 2"},
    {"GET", "/a%2A", -EINVAL, "an escape of a byte that a path has as it is, at byte 2"},
    {"GET", "/%", -EINVAL, "a % without two of 0-9 and A-F, at byte 1"},
    {"GET", "/a%2", -EINVAL, "a % without two of 0-9 and A-F, at byte 2"},
    {"GET", "/%2f", -EINVAL, "a % without two of 0-9 and A-F, at byte 1"},
    {"GET", "/.", -EINVAL, "a segment . or .., which no path has, at byte 0"},
    {"GET", "/a/../b", -EINVAL, "a segment . or .., which no path has, at byte 2"},
    {"GET", "/{a}/./b", -EINVAL, "a segment . or .., which no path has, at byte 4"},
    {"GET", "/a}", -EINVAL, "a } without {, at byte 2"},
    {"GET", "/{a}}", -EINVAL, "a } without {, at byte 4"},
    {"GET", "/a/{id", -EINVAL, "a { without }, at byte 3"},
    {"GET", "/{a/b}", -EINVAL, "a { without }, at byte 1"},
    {"GET", "/{a{b}}", -EINVAL, "a { without }, at byte 1"},
    {"GET", "/{}", -EINVAL, "a name that is not letters, digits, _ and -, at byte 2"},
    {"GET", "/{...}", -EINVAL, "a name that is not letters, digits, _ and -, at byte 2"},
    {"GET", "/{a.b}", -EINVAL, "a name that is not letters, digits, _ and -, at byte 2"},
    {"GET", "/{a..}", -EINVAL, "a name that is not letters, digits, _ and -, at byte 2"},
    {"GET", "/{a....}", -EINVAL, "a name that is not letters, digits, _ and -, at byte 2"},
    {"GET", "/{id:[0-9]+}", -EINVAL, "a name that is not letters, digits, _ and -, at byte 2"},
    {"GET", "/{*}", -EINVAL, "a name that is not letters, digits, _ and -, at byte 2"},
    {"GET", "/{a}/{b}/{a}", -EINVAL, "a parameter's name for the second time, at byte 10"},
    {"GET", "/{a}/{a...}", -EINVAL, "a parameter's name for the second time, at byte 6"},
    {"GET", "/{a}{b}", -EINVAL, "a second parameter in one segment, at byte 4"},
    {"GET", "/{a}-{b}", -EINVAL, "a second parameter in one segment, at byte 5"},
    {"GET", "/{a}.{b...}", -EINVAL, "a second parameter in one segment, at byte 5"},
    {"GET", "/{a...}/b", -EINVAL, "more after a tail, at byte 7"},
    {"GET", "/{a...}{b}", -EINVAL, "more after a tail, at byte 7"},
    {"GET", "/a*", -EINVAL, "a * that is not the whole last segment, at byte 2"},
    {"GET", "/*a", -EINVAL, "a * that is not the whole last segment, at byte 1"},
    {"GET", "/*/a", -EINVAL, "a * that is not the whole last segment, at byte 1"},
    {"GET", "/**", -EINVAL, "a * that is not the whole last segment, at byte 1"},
    {"GET", "/{a}*", -EINVAL, "a * that is not the whole last segment, at byte 4"},
    {"GET", "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/{j}/{k}/{l}/{m}/{n}/{o}/{p}/{q}", -EINVAL,
     "more than 16 parameters, at byte 66"},
    {"GET", "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/{j}/{k}/{l}/{m}/{n}/{o}/{p}/*", -EINVAL,
     "more than 16 parameters, at byte 65"},
    {"GET", "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/{j}/{k}/{l}/{m}/{n}/{o}/{p}/a*", -EINVAL,
     "a * that is not the whole last segment, at byte 66"},
    {"GET", "/there/{id}", -EEXIST, "the pattern has GET already"},
    {"POST,PUT", "/there/{id}", -EEXIST, "the pattern has PUT already"},
    {"PURGE", "/there/{id}", -EEXIST, "the pattern has PURGE already"},
    {"POST", "/there/{name}", -EEXIST, "other names of parameters than in /there/{id}"},
    {"GET", "/tail/{x...}", -EEXIST, "other names of parameters than in /tail/*"},
    {"*", "/any", -EEXIST, "the pattern has * already"},
};

START_TEST(a_bad_route_is_refused_with_a_message)
{
    struct sxe_http_router *router = sxe_http_router_new();
    char expected[TEXT_MAX];

    ck_assert_int_eq(add(router, "GET,PUT,PURGE", "/there/{id}"), 0);
    ck_assert_int_eq(add(router, "GET", "/tail/*"), 0);
    ck_assert_int_eq(add(router, "*", "/any"), 0);
    ck_assert_int_eq(add(router, refusals[_i].methods, refusals[_i].pattern), refusals[_i].result);
    snprintf(expected, sizeof(expected), "%s %s: %s", refusals[_i].methods, refusals[_i].pattern,
             refusals[_i].error);
    ck_assert_str_eq(sxe_http_router_error(router), expected);
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_bad_route_changes_nothing)
{
    struct sxe_http_router *router = sxe_http_router_new();
    const struct sxe_http_route *route;
    struct sxe_http_match match;

    ck_assert_int_eq(add(router, "GET,PUT,PURGE", "/there/{id}"), 0);
    ck_assert_int_eq(add(router, "GET", "/tail/*"), 0);
    ck_assert_int_eq(add(router, "*", "/any"), 0);
    ck_assert_int_lt(add(router, refusals[_i].methods, refusals[_i].pattern), 0);
    route = sxe_http_router_next(router, sxe_http_router_next(router, NULL));
    ck_assert_str_eq(sxe_http_router_next(router, route)->pattern, "/any");
    ck_assert_ptr_null(sxe_http_router_next(router, sxe_http_router_next(router, route)));
    ck_assert_int_eq(find(router, SXE_HTTP_PUT, "/there/x", &match), SXE_HTTP_ROUTE_FOUND);
    ck_assert_int_eq(find(router, SXE_HTTP_POST, "/there/x", &match),
                     SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED);
    ck_assert_str_eq(match.allow.base, "GET, HEAD, PUT, OPTIONS, PURGE");
    ck_assert_int_eq(find(router, SXE_HTTP_GET, "/a", &match), SXE_HTTP_ROUTE_NOT_FOUND);
    ck_assert_int_eq(add(router, "GET", "/a"), 0);
    ck_assert_str_eq(sxe_http_router_error(router), "");
    ck_assert_int_eq(find(router, SXE_HTTP_GET, "/a", &match), SXE_HTTP_ROUTE_FOUND);
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_pattern_is_known_again_among_others_like_it)
{
    static const char *const patterns[] = {"/{a}.x",  "/{a}.y",  "/{a}.z", "/{a}",
                                           "/{a}.xx", "/b{a}.x", "/*",     "/b"};
    struct sxe_http_router *router = sxe_http_router_new();

    for (unsigned i = 0; i < LENGTH_OF(patterns); i++)
        ck_assert_int_eq(add(router, "GET", patterns[i]), 0);
    for (unsigned i = 0; i < LENGTH_OF(patterns); i++)
        ck_assert_int_eq(add(router, "GET", patterns[i]), -EEXIST);
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_pattern_has_at_most_1024_bytes)
{
    struct sxe_http_router *router = sxe_http_router_new();
    char pattern[SXE_HTTP_PATTERN_MAX + 2];
    struct sxe_http_match match;

    memset(pattern, 'a', sizeof(pattern));
    pattern[0] = '/';
    pattern[SXE_HTTP_PATTERN_MAX + 1] = '\0';
    ck_assert_int_eq(add(router, "GET", pattern), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sxe_http_router_error(router),
                                 "aaa: a pattern of more than 1024 bytes, at byte 1024"));
    pattern[SXE_HTTP_PATTERN_MAX] = '\0';
    ck_assert_int_eq(add(router, "GET", pattern), 0);
    ck_assert_int_eq(find(router, SXE_HTTP_GET, pattern, &match), SXE_HTTP_ROUTE_FOUND);
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(allow_has_room_for_many_methods)
{
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_match match;
    char methods[2 * 26 + 1];
    char expected[TEXT_MAX] = "OPTIONS";

    for (unsigned i = 0; i < 26; i++) {
        snprintf(methods + 2 * i, 3, "%c,", 'a' + i);
        snprintf(expected + 7 + 3 * i, 4, ", %c", 'a' + i);
    }
    ck_assert_int_eq(add(router, methods, "/a"), 0);
    ck_assert_int_eq(find(router, SXE_HTTP_GET, "/a", &match), SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED);
    ck_assert_str_eq(match.allow.base, expected);
    ck_assert_uint_eq(match.allow.length, strlen(expected));
    ck_assert_int_eq(add(router, "A,GET", "/a"), 0);
    ck_assert_int_eq(find(router, SXE_HTTP_PUT, "/a", &match), SXE_HTTP_ROUTE_METHOD_NOT_ALLOWED);
    ck_assert_ptr_nonnull(strstr(match.allow.base, "GET, HEAD, OPTIONS, a, b, c, "));
    ck_assert_str_eq(match.allow.base + match.allow.length - 9, ", y, z, A");
    sxe_http_router_delete(router);
}
END_TEST

START_TEST(a_long_message_is_cut)
{
    struct sxe_http_router *router = sxe_http_router_new();
    char methods[TEXT_MAX];

    memset(methods, 'A', sizeof(methods));
    methods[TEXT_MAX - 2] = '@';
    methods[TEXT_MAX - 1] = '\0';
    ck_assert_int_eq(add(router, methods, "/a"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(sxe_http_router_error(router), "AA /a: the method AA"));
    ck_assert_uint_lt(strlen(sxe_http_router_error(router)), 256);
    sxe_http_router_delete(router);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-route-pattern");
    TCase *tcase = tcase_create("route");

    tcase_add_loop_test(tcase, a_bad_route_is_refused_with_a_message, 0, LENGTH_OF(refusals));
    tcase_add_loop_test(tcase, a_bad_route_changes_nothing, 0, LENGTH_OF(refusals));
    tcase_add_test(tcase, a_pattern_is_known_again_among_others_like_it);
    tcase_add_test(tcase, a_pattern_has_at_most_1024_bytes);
    tcase_add_test(tcase, allow_has_room_for_many_methods);
    tcase_add_test(tcase, a_long_message_is_cut);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
