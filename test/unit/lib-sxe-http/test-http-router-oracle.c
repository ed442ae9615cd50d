/* SPDX-License-Identifier: MIT
 *
 * Random routes in the router and in a plain list: both must always agree, also after a route could
 * not be added for lack of memory.
 */
#include <stdint.h>

#include "fake-os.h"
#include "path-model.h"
#include "router-model.h"
#include "test-main.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* The generator xorshift64*. */
static unsigned
random_below(uint64_t *seed, unsigned limit)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (unsigned)((*seed * UINT64_C(2685821657736338717) >> 32) % limit);
}

/* Make a pattern or a path of up to five segments that often begin alike. In a pattern, "?" becomes
 * a parameter, mostly with the same name in the same segment. */
static void
make_text(uint64_t *seed, char *text, bool is_pattern)
{
    static const char *const literals[] = {"a", "b", "ab", "abc", "", "a.j", "b.j", ".j", "aa"};
    static const char *const parameters[] = {"{?}",    "{?}.j", "a{?}", "{?}a",
                                             "{?}b.j", "a{?}c", "{?}b"};
    static const char *const tails[] = {"*", "{?...}", "a{?...}"};
    const unsigned last = random_below(seed, 5);

    for (unsigned i = 0; i <= last; i++) {
        const char *segment = literals[random_below(seed, LENGTH_OF(literals))];

        if (is_pattern && i < last && *segment == '\0') /* no path has an empty segment there */
            segment = "a";
        if (is_pattern && random_below(seed, 10) > 5)
            segment = parameters[random_below(seed, LENGTH_OF(parameters))];
        if (is_pattern && i == last && random_below(seed, 5) == 0)
            segment = tails[random_below(seed, LENGTH_OF(tails))];
        const unsigned name = 'p' + i + (random_below(seed, 20) == 0 ? 5 : 0);
        *text++ = '/';
        for (; *segment != '\0'; segment++)
            *text++ = *segment == '?' ? (char)name : *segment;
    }
    *text = '\0';
}

static const char *const random_methods[] = {"GET",  "PUT,POST", "*",    "HEAD",     "OPTIONS",
                                             "BREW", "GET,PUT",  "POST", "BREW,WHEN"};

static const char *
random_method(uint64_t *seed)
{
    static const char *const methods[] = {"GET",     "HEAD", "POST", "PUT",
                                          "OPTIONS", "BREW", "WHEN", "TRACE"};

    return methods[random_below(seed, LENGTH_OF(methods))];
}

START_TEST(tree_and_list_of_routes_agree)
{
    static struct router_model model;
    uint64_t seed = 88172645463325252u + (uint64_t)_i;
    const unsigned routes = 1 + random_below(&seed, ROUTER_MODEL_ROUTES - 1);
    char text[ROUTER_MODEL_TEXT];

    router_model_open(&model);
    while (model.number < routes) {
        make_text(&seed, text, true);
        const char *methods = random_methods[random_below(&seed, LENGTH_OF(random_methods))];
        const char *wrong = router_model_add(&model, methods, text);
        ck_assert_msg(wrong == NULL, "%s: adding %s %s, %d", wrong, methods, text, _i);
    }
    for (unsigned i = 0; i < 500; i++) {
        make_text(&seed, text, false);
        const char *method = random_method(&seed);
        const char *wrong =
            router_model_find(&model, method, (struct sxe_span){text, strlen(text)});
        ck_assert_msg(wrong == NULL, "%s: finding %s %s, %d", wrong, method, text, _i);
    }
    router_model_close(&model);
}
END_TEST

/* ---- Paths as routers and file servers read them ---- */

/* A path as an attacker would write it. */
static size_t
make_path(uint64_t *seed, char *path)
{
    static const char *const parts[] = {
        "/",     "/",   "/",   ".",  ".",     "..",      "%2e", "%2E%2e", "%2f", "%2F", "%5c",
        "%00",   "%61", "adm", "in", "admin", "%61dmin", "x",   "%40",    "@",   "%3f", "%25",
        "%252e", "%",   "%4",  ";",  "*",     "%7C",     "|",   "%20",    "//",  "/./", "/../"};
    const unsigned number = random_below(seed, 16);
    size_t length = 1;

    path[0] = '/';
    for (unsigned i = 0; i < number; i++) {
        const char *part = parts[random_below(seed, LENGTH_OF(parts))];

        memcpy(path + length, part, strlen(part));
        length += strlen(part);
    }
    return length;
}

START_TEST(all_layers_agree_about_a_path)
{
    uint64_t seed = 6148914691236517205u + (uint64_t)_i;

    for (unsigned i = 0; i < 20000; i++) {
        char path[PATH_MODEL_MAX];
        const size_t length = make_path(&seed, path);
        const char *wrong = path_model_check((struct sxe_span){path, length});

        ck_assert_msg(wrong == NULL, "%s: %.*s, %d", wrong, (int)length, path, _i);
    }
}
END_TEST

/* A path is guarded by the routes of /admin if and only if it would open a file below admin. */
START_TEST(a_route_guards_the_files_below_it)
{
    struct sxe_http_router *router = sxe_http_router_new();
    uint64_t seed = 3689348814741910323u + (uint64_t)_i;

    ck_assert_int_eq(sxe_http_router_add(router, "*", "/admin", router_model_handler, NULL), 0);
    ck_assert_int_eq(sxe_http_router_add(router, "*", "/admin/*", router_model_handler, NULL), 0);
    for (unsigned i = 0; i < 20000; i++) {
        char path[PATH_MODEL_MAX], room[PATH_MODEL_MAX], name[PATH_MODEL_MAX];
        struct sxe_span raw = {path, make_path(&seed, path)};
        struct sxe_span normal;
        struct sxe_http_match match;

        if (sxe_http_normalise_path(raw, room, sizeof(room), &normal) < 0 ||
            sxe_http_path_to_file(raw, name, sizeof(name)) < 0)
            continue;
        const bool is_guarded =
            sxe_http_router_find(router, SXE_HTTP_GET, (struct sxe_span){"GET", 3}, normal,
                                 &match) == SXE_HTTP_ROUTE_FOUND;
        const bool is_admin = strcmp(name, "admin") == 0 || strncmp(name, "admin/", 6) == 0;
        ck_assert_msg(is_guarded == is_admin, "%.*s is %s", (int)raw.length, path, name);
    }
    sxe_http_router_delete(router);
}
END_TEST

/* ---- Without memory ---- */

static const enum fake_call allocations[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC};

START_TEST(a_router_is_made_whole_or_not_at_all)
{
    struct sxe_http_router *router;
    unsigned nth = 0;

    do {
        fake_os_reset();
        fake_os_sweep(allocations, LENGTH_OF(allocations), ++nth, false, ENOMEM);
        router = sxe_http_router_new();
        ck_assert_int_eq(router == NULL, fake_os_injected() > 0);
        sxe_http_router_delete(router);
    } while (fake_os_injected() > 0);
    ck_assert_uint_eq(nth, 5);
}
END_TEST

static void
check_agreement(const struct router_model *model, uint64_t seed)
{
    for (unsigned i = 0; i < 30; i++) {
        char path[ROUTER_MODEL_TEXT];

        make_text(&seed, path, false);
        const char *method = random_method(&seed);
        const char *wrong = router_model_find(model, method, (struct sxe_span){path, strlen(path)});
        ck_assert_msg(wrong == NULL, "%s: %s %s", wrong, method, path);
    }
}

START_TEST(a_route_without_memory_leaves_the_router_as_it_was)
{
    static struct router_model model;
    uint64_t seed = 2463534242 + (uint64_t)_i;
    unsigned failures = 0;

    router_model_open(&model);
    while (model.number < ROUTER_MODEL_ROUTES - 1) {
        const char *methods = random_methods[random_below(&seed, LENGTH_OF(random_methods))];
        char pattern[ROUTER_MODEL_TEXT];
        unsigned nth = 0;
        int result;

        make_text(&seed, pattern, true);
        if (router_model_expected_add(&model, methods, pattern) != 0)
            continue;
        do {
            fake_os_reset();
            fake_os_sweep(allocations, LENGTH_OF(allocations), ++nth, false, ENOMEM);
            result = sxe_http_router_add(
                model.router, methods, pattern, router_model_handler,
                &(struct sxe_http_route_options){&model.routes[model.number], model.number});
            if (result == -ENOMEM) {
                ck_assert_ptr_nonnull(
                    strstr(sxe_http_router_error(model.router), ": there is no memory for it"));
                check_agreement(&model, seed);
                failures++;
            }
        } while (result == -ENOMEM);
        ck_assert_int_eq(result, 0);
        snprintf(model.routes[model.number].methods, ROUTER_MODEL_TEXT, "%s", methods);
        snprintf(model.routes[model.number++].pattern, ROUTER_MODEL_TEXT, "%s", pattern);
        check_agreement(&model, seed);
    }
    fake_os_reset();
    ck_assert_uint_gt(failures, 3 * model.number);
    router_model_close(&model);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-router-oracle");
    TCase *tcase = tcase_create("oracle");

    tcase_add_loop_test(tcase, tree_and_list_of_routes_agree, 0, 50);
    tcase_add_loop_test(tcase, all_layers_agree_about_a_path, 0, 5);
    tcase_add_loop_test(tcase, a_route_guards_the_files_below_it, 0, 5);
    tcase_add_test(tcase, a_router_is_made_whole_or_not_at_all);
    tcase_add_loop_test(tcase, a_route_without_memory_leaves_the_router_as_it_was, 0, 5);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
