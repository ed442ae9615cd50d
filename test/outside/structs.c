/* SPDX-License-Identifier: MIT
 *
 * Structs of programs that were built with an older or a newer header: docs/linking.md.
 */
#include "structs.h"

#include "sxe-bloom.h"
#include "sxe-cidr.h"
#include "sxe-dial.h"
#include "sxe-dict.h"
#include "sxe-hll.h"
#include "sxe-http-chunk.h"
#include "sxe-http-client.h"
#include "sxe-http-conditional.h"
#include "sxe-http-cookie.h"
#include "sxe-http-date.h"
#include "sxe-http-fastcgi.h"
#include "sxe-http-file.h"
#include "sxe-http-proxy.h"
#include "sxe-http-uri.h"
#include "sxe-io.h"
#include "sxe-lua-clock.h"
#include "sxe-lua-host.h"
#include "sxe-pool-layout.h"
#include "sxe-proxy.h"
#include "sxe-topk.h"
#include "sxe-work.h"
#include "sxe-workers.h"

#include <lauxlib.h>
#include <lualib.h>

/* ---- Functions that get a struct ---- */

static int
configure(const void *given, size_t size)
{
    int result;

    sxe_register(1, 0);
    sxe_configure_sized(given, size);
    result = sxe_init();
    ck_assert(result != 0 || sxe_get_config()->chunk_size == 1024);
    (void)sxe_fini();
    return result;
}

static int
open_pool(const void *given, size_t size)
{
    char why[SXE_POOL_WHY_SIZE];
    void *pool = sxe_pool_open_sized(given, size, why);
    const int result = result_of(pool);

    if (pool != NULL)
        sxe_pool_delete(pool);
    else
        ck_assert_ptr_nonnull(strstr(why, "newer libsxe"));
    return result;
}

static int
open_pool_of_fd(const void *given, size_t size)
{
    return result_of(sxe_pool_open_fd_sized(-1, given, size, NULL));
}

static int
open_dict(const void *given, size_t size)
{
    char why[SXE_POOL_WHY_SIZE];
    SXE_DICT *dict = sxe_dict_open_sized(given, size, why);
    const int result = result_of(dict);

    sxe_dict_close(dict);
    ck_assert(dict != NULL || strstr(why, "newer libsxe") != NULL);
    return result;
}

static int
open_dict_of_fd(const void *given, size_t size)
{
    return result_of(sxe_dict_open_fd_sized(-1, given, size, NULL));
}

static int
open_hll(const void *given, size_t size)
{
    char why[SXE_POOL_WHY_SIZE];
    SXE_HLL *hll = sxe_hll_open_sized(given, size, why);
    const int result = result_of(hll);

    sxe_hll_close(hll);
    ck_assert(hll != NULL || strstr(why, "newer libsxe") != NULL);
    return result;
}

static int
open_hll_of_fd(const void *given, size_t size)
{
    return result_of(sxe_hll_open_fd_sized(-1, given, size, NULL));
}

static int
open_bloom(const void *given, size_t size)
{
    SXE_BLOOM *bloom = sxe_bloom_open_sized(given, size, NULL);
    const int result = result_of(bloom);

    sxe_bloom_close(bloom);
    return result;
}

static int
open_bloom_of_fd(const void *given, size_t size)
{
    return result_of(sxe_bloom_open_fd_sized(-1, given, size, NULL));
}

static int
open_topk(const void *given, size_t size)
{
    SXE_TOPK *topk = sxe_topk_open_sized(given, size, NULL);
    const int result = result_of(topk);

    sxe_topk_close(topk);
    return result;
}

static int
open_topk_of_fd(const void *given, size_t size)
{
    return result_of(sxe_topk_open_fd_sized(-1, given, size, NULL));
}

static int
make_server(const void *given, size_t size)
{
    struct sxe_http *http = sxe_http_new_sized(given, size);
    const int result = result_of(http);

    sxe_http_delete(http);
    (void)sxe_fini();
    return result;
}

static int
make_client(const void *given, size_t size)
{
    struct sxe_http_client *client = sxe_http_client_new_sized(given, size);
    const int result = result_of(client);

    sxe_http_client_delete(client);
    (void)sxe_fini();
    return result;
}

static int
make_files(const void *given, size_t size)
{
    struct sxe_http_files *files = sxe_http_files_new_sized(given, size);
    const int result = result_of(files);

    sxe_http_files_delete(files);
    (void)sxe_fini();
    return result;
}

static int
make_upstream(const void *given, size_t size)
{
    struct sxe_http_upstream *upstream = sxe_http_upstream_new_sized(given, size);
    const int result = result_of(upstream);

    sxe_http_upstream_delete(upstream);
    (void)sxe_fini();
    return result;
}

static int
make_scripts(const void *given, size_t size)
{
    struct sxe_http_scripts *scripts = sxe_http_scripts_new_sized(given, size);
    const int result = result_of(scripts);

    sxe_http_scripts_delete(scripts);
    return result;
}

static enum sxe_http_verdict
reply_nothing(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    return sxe_http_reply_status(response, 204);
}

static int
add_route(const void *given, size_t size)
{
    struct sxe_http_router *router = sxe_http_router_new();
    const int result = sxe_http_router_add_sized(router, "GET", "/", reply_nothing, given, size);

    ck_assert(result == 0 || strstr(sxe_http_router_error(router), "newer libsxe") != NULL);
    sxe_http_router_delete(router);
    return result;
}

static int
make_lua(const void *given, size_t size)
{
    struct sxe_lua *lua = sxe_lua_new_sized(given, size);
    const int result = result_of(lua);

    sxe_lua_delete(lua);
    (void)sxe_fini();
    return result;
}

static size_t host_size; /* the size of the struct that open_host gets */

static int
open_host_in_lua(lua_State *host)
{
    return sxe_lua_host_open_sized(host, lua_touserdata(host, 1), host_size);
}

static int
open_host(const void *given, size_t size)
{
    lua_State *host = luaL_newstate();
    int result;

    host_size = size;
    lua_pushcfunction(host, open_host_in_lua);
    lua_pushlightuserdata(host, (void *)(uintptr_t)given);
    result = lua_pcall(host, 1, 1, 0) == LUA_OK ? 0 : -E2BIG;
    ck_assert(result == 0 || strstr(lua_tostring(host, -1), "newer libsxe") != NULL);
    lua_close(host);
    return result;
}

static int
serve_nothing(void *user, const struct sxe_worker *worker)
{
    SXE_UNUSED_PARAMETER(user);
    SXE_UNUSED_PARAMETER(worker);
    return 3;
}

/* The status of a worker that fails is the result; the function itself fails with EXIT_FAILURE. */
static int
run_workers(const void *given, size_t size)
{
    return sxe_workers_run_sized(given, size) == 3 ? 0 : -E2BIG;
}

static const struct sxe_config loop = {.chunk_size = 1024};
static const SXE_POOL_SPEC pool_spec = {
    .name = "p", .number = 4, .element_size = 8, .states = 2, .options = SXE_POOL_OPTION_LOCKED};
static const SXE_DICT_SPEC dict_spec = {
    .name = "d", .cells = 64, .options = SXE_POOL_OPTION_LOCKED};
static const SXE_HLL_SPEC hll_spec = {.name = "h", .precision = 4};
static const SXE_BLOOM_SPEC bloom_spec = {.name = "b", .capacity = 100};
static const SXE_TOPK_SPEC topk_spec = {.name = "t", .number = 4, .error = 0.1};
static const struct sxe_http_config server = {.handler = reply_nothing, .connections = 4};
static const struct sxe_http_client_config client = {.ip = "127.0.0.1", .port = 1};
static const struct sxe_http_files_config files = {.root = "test"};
static const struct sxe_http_upstream_address address = {.ip = "127.0.0.1", .port = 1};
static const struct sxe_http_upstream_config upstream = {
    .name = "u", .addresses = &address, .addresses_number = 1};
static const struct sxe_http_scripts_config scripts = {.root = "test"};
static const struct sxe_http_route_options route = {.user = NULL};
static const struct sxe_lua_config lua = {.tasks = 16};
static const struct sxe_workers_config workers = {.serve = serve_nothing, .workers = 1};

#define UP_TO(value, member) (offsetof(__typeof__(value), member) + sizeof((value).member))

static const struct given_row given_rows[] = {
    {"sxe_configure", configure, &loop, sizeof(loop), UP_TO(loop, chunk_size)},
    {"sxe_pool_open", open_pool, &pool_spec, sizeof(pool_spec), UP_TO(pool_spec, options)},
    {"sxe_pool_open", open_pool_of_fd, &pool_spec, sizeof(pool_spec), UP_TO(pool_spec, options)},
    {"sxe_dict_open", open_dict, &dict_spec, sizeof(dict_spec), UP_TO(dict_spec, options)},
    {"sxe_dict_open", open_dict_of_fd, &dict_spec, sizeof(dict_spec), UP_TO(dict_spec, options)},
    {"the spec of a sketch", open_hll, &hll_spec, sizeof(hll_spec), UP_TO(hll_spec, precision)},
    {"the spec of a sketch", open_hll_of_fd, &hll_spec, sizeof(hll_spec),
     UP_TO(hll_spec, precision)},
    {"the spec of a sketch", open_bloom, &bloom_spec, sizeof(bloom_spec),
     UP_TO(bloom_spec, capacity)},
    {"the spec of a sketch", open_bloom_of_fd, &bloom_spec, sizeof(bloom_spec),
     UP_TO(bloom_spec, capacity)},
    {"the spec of a sketch", open_topk, &topk_spec, sizeof(topk_spec), UP_TO(topk_spec, error)},
    {"the spec of a sketch", open_topk_of_fd, &topk_spec, sizeof(topk_spec),
     UP_TO(topk_spec, error)},
    {"sxe_http_new", make_server, &server, sizeof(server), UP_TO(server, connections)},
    {"sxe_http_client_new", make_client, &client, sizeof(client), UP_TO(client, port)},
    {"sxe_http_files_new", make_files, &files, sizeof(files), UP_TO(files, root)},
    {"sxe_http_upstream_new", make_upstream, &upstream, sizeof(upstream),
     UP_TO(upstream, addresses_number)},
    {"sxe_http_scripts_new", make_scripts, &scripts, sizeof(scripts), UP_TO(scripts, root)},
    {"sxe_http_router_add", add_route, &route, sizeof(route), UP_TO(route, user)},
    {"sxe_lua_new", make_lua, &lua, sizeof(lua), UP_TO(lua, tasks)},
    {"sxe_lua_host_open", open_host, &lua, sizeof(lua), 0},
};

/* promise: docs/linking.md: The program is newer than the library: members that the library lacks
 * and that are 0 are ignored. If one is not 0, the call fails with `E2BIG`, and a line of the log
 * names the function. */
START_TEST(a_struct_of_another_version_is_taken_or_refused)
{
    for (size_t i = 0; i < sizeof(given_rows) / sizeof(given_rows[0]); i++)
        check_given(&given_rows[i]);
}
END_TEST

/* A case of its own, because sxe_workers_run forks: in the case above threads of the work pool may
 * be ending, and a lock of ASan that one of them holds stays locked in the child. */
START_TEST(a_configuration_of_workers_of_another_version_is_taken_or_refused)
{
    static const struct given_row row = {"sxe_workers_run", run_workers, &workers, sizeof(workers),
                                         UP_TO(workers, workers)};

    check_given(&row);
}
END_TEST

/* ---- Functions that get a struct while a loop runs ---- */

static struct sxe_http_response *response_now;
static unsigned checked;

static int
set_cookie(const void *given, size_t size)
{
    return sxe_http_set_cookie_sized(response_now, given, size);
}

static enum sxe_http_verdict
reply_with_cookies(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const struct sxe_http_cookie cookie = {.name = "n", .value = {"v", 1}};
    static const struct given_row row = {"sxe_http_set_cookie", set_cookie, &cookie, sizeof(cookie),
                                         UP_TO(cookie, value)};

    SXE_UNUSED_PARAMETER(request);
    response_now = response;
    check_given(&row);
    checked++;
    return sxe_http_reply_status(response, 204);
}

static struct sxe_http_client *client_now;

static void
on_done(const struct sxe_http_exchange *exchange, int result)
{
    SXE_UNUSED_PARAMETER(exchange);
    ck_assert_int_eq(result, 0);
    if (++checked == 4)
        sxe_stop();
}

static int
send_call(const void *given, size_t size)
{
    return sxe_http_client_send_sized(client_now, given, size, NULL);
}

/* promise: docs/linking.md: The program is older than the library: members that it lacks are 0, and
 * 0 means the default. */
START_TEST(calls_and_cookies_of_another_version_are_taken_or_refused)
{
    const struct sxe_http_config config = {.handler = reply_with_cookies, .connections = 8};
    struct sxe_http *http = sxe_http_new(&config);
    const struct sxe_http_client_config of_client = {.path = outside_path("s")};
    const struct sxe_http_call call = {.request.target = {"/", 1}, .on_done = on_done};
    const struct given_row row = {"sxe_http_client_send", send_call, &call, sizeof(call),
                                  sizeof(call)};

    client_now = sxe_http_client_new(&of_client);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_listen_unix(http, outside_path("s")), 0);
    check_given(&row);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_ge(checked, 4);
    sxe_http_client_delete(client_now);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(http);
    (void)unlink(outside_path("s"));
}
END_TEST

/* promise: docs/linking.md: The configuration of `sxe_get_config` may be copied: 8 bytes that are 0
 * follow it. */
START_TEST(a_longer_configuration_can_be_copied)
{
    static const char zeros[8];
    const struct sxe_config config = {.chunk_size = 1024};

    sxe_register(1, 0);
    sxe_configure(&config);
    ck_assert_mem_eq((const char *)sxe_get_config() + sizeof(config), zeros, sizeof(zeros));
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_uint_eq(sxe_get_config()->chunk_size, 1024);
    ck_assert_mem_eq((const char *)sxe_get_config() + sizeof(config), zeros, sizeof(zeros));
    ck_assert_int_eq(sxe_fini(), 0);
}
END_TEST

/* ---- Functions that fill a struct ---- */

static SXE_DICT *dict;
static struct sxe_http_upstream *looked_at;

static void
get_stats(void *room, size_t size)
{
    sxe_dict_get_stats_sized(dict, room, size);
}

static void
get_chains(void *room, size_t size)
{
    ck_assert_int_eq(sxe_dict_get_chains_sized(dict, room, size), 0);
}

static void
look(void *room, size_t size)
{
    ck_assert_int_eq(sxe_http_upstream_look_sized(looked_at, 0, room, size), 0);
}

/* promise: docs/linking.md: The library fills a struct: members that the library lacks become 0. */
START_TEST(a_struct_of_another_version_is_filled)
{
    static const struct filled_row rows[] = {
        {get_stats, sizeof(SXE_DICT_STATS), 16},
        {get_chains, sizeof(SXE_DICT_CHAINS), 8},
        {look, sizeof(struct sxe_http_upstream_state), 24},
    };

    dict = sxe_dict_open(&dict_spec, NULL);
    looked_at = sxe_http_upstream_new(&upstream);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_dict_get(dict, "k", 1, NULL, 0), -ENOENT);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_filled(&rows[i]);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_upstream_delete(looked_at);
    sxe_dict_close(dict);
}
END_TEST

/* ---- A struct with room ---- */

/* promise: lib-sxe-http/sxe-http-proxy.h: -E2BIG, after a line in the log: reserved is set, by a
 * program that was built for a newer libsxe. */
START_TEST(the_room_of_a_proxy_is_refused_if_it_is_set)
{
    struct sxe_http_proxy proxy = {.path = NULL};

    ck_assert_int_eq(sxe_http_proxy_check(&proxy), 0);
    proxy.reserved[7] = "";
    ck_assert_int_eq(sxe_http_proxy_check(&proxy), -E2BIG);
}
END_TEST

/* ---- Sizes ---- */

#define ROW(type, promised)                     \
    {                                           \
        "" #type, sizeof(struct type), promised \
    }

/* For a struct to which docs/linking.md lets later versions append members, the number is that
 * of this version; all other numbers stay until libsxe.so.1. */
static const struct size_row size_rows[] = {
    ROW(sxe, 128),
    ROW(sxe__attempt, 32),
    ROW(sxe_bloom_spec, 40),
    ROW(sxe_buffer, 24),
    ROW(sxe_cidr, 17),
    ROW(sxe_cidr_list, 1096),
    ROW(sxe_config, 88),
    ROW(sxe_dial, 896),
    ROW(sxe_dict_chains, 32),
    ROW(sxe_dict_entry, 64),
    ROW(sxe_dict_spec, 40),
    ROW(sxe_dict_stats, 32),
    ROW(sxe_dict_walker, 32),
    ROW(sxe_hll_spec, 24),
    ROW(sxe_http_basic, 544),
    ROW(sxe_http_call, 136),
    ROW(sxe_http_chunks, 136),
    ROW(sxe_http_client_config, 136),
    ROW(sxe_http_conditions, 176),
    ROW(sxe_http_config, 192),
    ROW(sxe_http_cookie, 56),
    ROW(sxe_http_cookies, 64),
    ROW(sxe_http_date_cache, 48),
    ROW(sxe_http_exchange, 88),
    ROW(sxe_http_fastcgi, 12),
    ROW(sxe_http_field, 8),
    ROW(sxe_http_files_config, 104),
    ROW(sxe_http_hop, 168),
    ROW(sxe_http_limits, 6),
    ROW(sxe_http_list, 48),
    ROW(sxe_http_match, 112),
    ROW(sxe_http_page, 32),
    ROW(sxe_http_pair, 32),
    ROW(sxe_http_parser, 104),
    ROW(sxe_http_proxy, 136),
    ROW(sxe_http_query, 48),
    ROW(sxe_http_range, 16),
    ROW(sxe_http_representation, 40),
    ROW(sxe_http_request, 312),
    ROW(sxe_http_request_head, 72),
    ROW(sxe_http_response, 16),
    ROW(sxe_http_route, 40),
    ROW(sxe_http_route_options, 16),
    ROW(sxe_http_scripts_config, 40),
    ROW(sxe_http_summary, 32),
    ROW(sxe_http_target, 48),
    ROW(sxe_http_text, 4),
    ROW(sxe_http_trace, 68),
    ROW(sxe_http_upstream_address, 40),
    ROW(sxe_http_upstream_config, 152),
    ROW(sxe_http_upstream_state, 48),
    ROW(sxe_io_follower, 8),
    ROW(sxe_io_table, 72),
    ROW(sxe_listeners, 24),
    ROW(sxe_log_control, 24),
    ROW(sxe_log_frame, 16),
    ROW(sxe_log_site, 32),
    ROW(sxe_lua_clock, 32),
    ROW(sxe_lua_config, 112),
    ROW(sxe_lua_inflate, 32),
    ROW(sxe_lua_tls, 56),
    ROW(sxe_lua_tls_facts, 6832),
    ROW(sxe_lua_tls_options, 40),
    ROW(sxe_pool_field, 44),
    ROW(sxe_pool_layout, 4500),
    ROW(sxe_pool_lease, 16),
    ROW(sxe_pool_spec, 72),
    ROW(sxe_pool_walker, 48),
    ROW(sxe_proxy, 264),
    ROW(sxe_resolve, 560),
    ROW(sxe_resolved, 520),
    ROW(sxe_signal, 80),
    ROW(sxe_span, 16),
    ROW(sxe_timer, 88),
    ROW(sxe_topk_entry, 272),
    ROW(sxe_topk_spec, 40),
    ROW(sxe_work, 48),
    ROW(sxe_worker, 20),
    ROW(sxe_workers_config, 104),
};

/* promise: docs/linking.md: A program that uses `libsxe.so.0` works with each later `libsxe.so.0`,
 * without being built again. */
START_TEST(structs_have_their_sizes)
{
    check_sizes(size_rows, sizeof(size_rows) / sizeof(size_rows[0]));
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_struct_of_another_version_is_taken_or_refused,
                            a_configuration_of_workers_of_another_version_is_taken_or_refused,
                            calls_and_cookies_of_another_version_are_taken_or_refused,
                            a_longer_configuration_can_be_copied,
                            a_struct_of_another_version_is_filled,
                            the_room_of_a_proxy_is_refused_if_it_is_set,
                            structs_have_their_sizes,
                            NULL};

    return outside_run("structs", cases);
}
