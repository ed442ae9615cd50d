/* SPDX-License-Identifier: MIT
 *
 * What: runs one operation of the library NUMBER times, and nothing else. callgrind counts the
 * instructions of two runs with different numbers. The number of instructions of one operation is
 * the difference of the counts, divided by the difference of the numbers. Place:
 * bench/instructions.lua runs it, to make the table bench/instructions.tsv.
 *
 *     count OPERATION NUMBER
 *     count                     names the operations
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib-sxe-http/parse/sxe-http-private.h"
#include "sxe-dict.h"
#include "sxe-http-router.h"
#include "sxe-log.h"
#include "sxe-pool-shared.h"
#include "sxe-time.h"

enum { ELEMENTS = 1000, KEYS = 500, ELEMENT_SIZE = 64, FIELDS = 100, FREE = 0, BUSY = 1, STATES };

#define CURL_REQUEST               \
    "GET /index.html HTTP/1.1\r\n" \
    "Host: 127.0.0.1:8000\r\n"     \
    "User-Agent: curl/7.88.1\r\n"  \
    "Accept: */*\r\n\r\n"
#define BROWSER_REQUEST                                                                           \
    "GET /articles/2024/the-reader-comes-first?page=2 HTTP/1.1\r\n"                               \
    "Host: www.example.com\r\n"                                                                   \
    "Connection: keep-alive\r\n"                                                                  \
    "Cache-Control: max-age=0\r\n"                                                                \
    "Upgrade-Insecure-Requests: 1\r\n"                                                            \
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "         \
    "Chrome/124.0.0.0 Safari/537.36\r\n"                                                          \
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*\r\n" \
    "Referer: https://www.example.com/articles/2024/\r\n"                                         \
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"                                                \
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"                                                \
    "Cookie: session=5f2b7c91d0e84a6f; theme=dark; consent=yes\r\n\r\n"

static void
fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* ---- The pool ---- */

static char *
make_pool(void)
{
    char *array = sxe_pool_new("count", ELEMENTS, ELEMENT_SIZE, STATES, SXE_POOL_OPTION_UNLOCKED);

    if (array == NULL)
        fail("sxe_pool_new");
    return array;
}

static void
change_states(char *array, unsigned number)
{
    for (unsigned i = 0; i < number; i++) {
        const unsigned id = i % ELEMENTS;
        const unsigned state = sxe_pool_get_state(array, id);

        sxe_pool_move(array, id, state, state ^ 1);
    }
    sxe_pool_delete(array);
}

static void
change_state(unsigned number)
{
    change_states(make_pool(), number);
}

static void
change_shared(unsigned number)
{
    const SXE_POOL_SPEC spec = {
        .name = "count", .number = ELEMENTS, .element_size = ELEMENT_SIZE, .states = STATES};
    char *array = sxe_pool_open(&spec, NULL);

    if (array == NULL)
        fail("sxe_pool_open");
    change_states(array, number);
}

static void
take_and_give(unsigned number)
{
    char *array = make_pool();

    for (unsigned i = 0; i < number; i++) {
        const unsigned id = sxe_pool_take(array, FREE, BUSY);

        sxe_pool_move(array, id, BUSY, FREE);
    }
    sxe_pool_delete(array);
}

/* ---- The dict ---- */

static SXE_DICT *
make_dict(void)
{
    const SXE_DICT_SPEC spec = {.name = "count", .cells = ELEMENTS};
    SXE_DICT *dict = sxe_dict_open(&spec, NULL);

    if (dict == NULL)
        fail("sxe_dict_open");
    return dict;
}

static void
put_entries(SXE_DICT *dict, unsigned number)
{
    static const char value[ELEMENT_SIZE];

    for (unsigned i = 0; i < number; i++) {
        const unsigned key = i % KEYS;

        if (sxe_dict_put(dict, &key, sizeof(key), value, sizeof(value), SXE_DICT_FOREVER) < 0)
            fail("sxe_dict_put");
    }
}

static void
dict_put(unsigned number)
{
    SXE_DICT *dict = make_dict();

    put_entries(dict, number);
    sxe_dict_close(dict);
}

static void
dict_get(unsigned number)
{
    char value[ELEMENT_SIZE];
    SXE_DICT *dict = make_dict();

    put_entries(dict, KEYS);
    for (unsigned i = 0; i < number; i++) {
        const unsigned key = i % KEYS;

        if (sxe_dict_get(dict, &key, sizeof(key), value, sizeof(value)) < 0)
            fail("sxe_dict_get");
    }
    sxe_dict_close(dict);
}

/* ---- The log ---- */

static void
take_line(void *user, int level, const char *line, size_t length)
{
    (void)level;
    (void)line;
    *(size_t *)user += length;
}

static void
log_lines(unsigned number)
{
    size_t bytes = 0;

    sxe_log_set_level(SXE_LOG_INFORMATION);
    sxe_log_to_function(take_line, &bytes);
    for (unsigned i = 0; i < number; i++)
        SXE_INFO_ID(i, "connected to %s:%u after %d attempts", "127.0.0.1", 8000u, 3);
}

/* ---- HTTP ---- */

static void
parse(const char *request, unsigned number)
{
    static struct sxe_http_field fields[FIELDS];
    const size_t length = strlen(request);
    struct sxe_http_parser parser;

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, FIELDS, NULL);
    for (unsigned i = 0; i < number; i++) {
        sxe_http_parser_next(&parser);
        if (sxe_http_parse(&parser, request, length) != (int)length)
            fail("sxe_http_parse");
    }
}

static void
parse_curl(unsigned number)
{
    parse(CURL_REQUEST, number);
}

static void
parse_browser(unsigned number)
{
    parse(BROWSER_REQUEST, number);
}

static enum sxe_http_verdict
handle(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(response);
    return SXE_HTTP_DONE;
}

static void
find_route(unsigned number)
{
    static const char *const routes[] = {"/", "/users", "/users/{id}", "/users/{id}/posts",
                                         "/users/{id}/posts/{post}"};
    static const char path[] = "/users/42/posts/7";
    struct sxe_http_router *router = sxe_http_router_new();

    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (router == NULL || sxe_http_router_add(router, "GET", routes[i], handle, NULL) < 0)
            fail("sxe_http_router_add");
    }
    for (unsigned i = 0; i < number; i++) {
        const struct sxe_span span = {path, sizeof(path) - 1};
        const struct sxe_span name = {"GET", 3};
        struct sxe_http_match match;

        if (sxe_http_router_find(router, SXE_HTTP_GET, name, span, &match) != SXE_HTTP_ROUTE_FOUND)
            fail("sxe_http_router_find");
        __asm__ volatile("" : : "r"(&match) : "memory");
    }
    sxe_http_router_delete(router);
}

/* ---- The program ---- */

static const struct {
    const char *name;
    void (*run)(unsigned number);
} operations[] = {
    {"pool-change", change_state}, {"pool-change-shared", change_shared}, {"dict-put", dict_put},
    {"dict-get", dict_get},        {"pool-allocate", take_and_give},      {"log-line", log_lines},
    {"parse-curl", parse_curl},    {"parse-browser", parse_browser},      {"route", find_route},
};

int
main(int argc, char **argv)
{
    const size_t count = sizeof(operations) / sizeof(operations[0]);

    sxe_time_set_turn_ns(sxe_time_ns());
    for (size_t i = 0; i < count; i++) {
        if (argc < 2)
            puts(operations[i].name);
        else if (argc == 3 && strcmp(argv[1], operations[i].name) == 0) {
            operations[i].run((unsigned)strtoul(argv[2], NULL, 10));
            return EXIT_SUCCESS;
        }
    }
    return argc < 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
