/* SPDX-License-Identifier: MIT
 *
 * The metrics of each process, and their sums over all processes.
 */
#include "prometheus.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "sxe-log.h"
#include "sxe-pool.h"
#include "test-main.h"

static struct metrics_sum sum;
static struct text text;

/* The metrics of the worker in this slot. */
static struct metrics_part *
part(unsigned index)
{
    return (struct metrics_part *)(uintptr_t)&metrics_look()->parts[index + 1];
}

static void
count(const char *pattern, enum sxe_http_method method, unsigned status, uint64_t us)
{
    struct sxe_http_request request = {.match = {.pattern = pattern}};
    struct sxe_http_summary summary = {
        .status = status, .body_length = 10, .duration_ns = us * 1000, .result = 0};

    request.head.method = method;
    if (status == 0)
        summary.result = -ECONNRESET;
    sxe_time_set_turn_ns(sxe_time_ns());
    metrics_count(&request, &summary);
}

static const char *
prometheus(void)
{
    text_end(&text);
    metrics_add_up(&sum);
    metrics_add_prometheus(&text, &sum);
    ck_assert(!text.is_cut);
    return text.base;
}

static const char *
json(void)
{
    text_end(&text);
    metrics_add_up(&sum);
    metrics_add_json(&text, &sum);
    ck_assert(!text.is_cut);
    return text.base;
}

static void
map_two(void)
{
    unsetenv("SXE_LOG_LEVEL");
    ck_assert_int_eq(metrics_map(2), 0);
    metrics_begin_worker(0, 0);
}

/* ---- Buckets ---- */

START_TEST(every_duration_is_in_the_bucket_that_ends_at_it_or_after_it)
{
    for (uint64_t us = 1; us < 200000000; us += 1 + us / 57) {
        unsigned bucket = latency_bucket(us * 1000);
        uint64_t end = latency_bucket_end_us(bucket);

        ck_assert_uint_lt(bucket, LATENCY_BUCKETS);
        if (us > LATENCY_MAX_US) {
            ck_assert_uint_eq(bucket, LATENCY_BUCKETS - 1);
            continue;
        }
        ck_assert_uint_ge(end, us);
        ck_assert_uint_le(end - us, us <= 10 ? 0 : us / 10);
        ck_assert_uint_eq(latency_bucket(end * 1000), bucket);
        ck_assert_uint_eq(latency_bucket(end * 1000 + 1), bucket + 1);
    }
    ck_assert_uint_eq(latency_bucket(0), 0);
    ck_assert_uint_eq(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
}
END_TEST

START_TEST(counts_up_to_a_bound_are_exact)
{
    for (unsigned i = 0; i < LATENCY_BOUNDS; i++) {
        uint64_t ns = latency_bounds_us[i] * UINT64_C(1000);

        ck_assert_uint_eq(latency_bound_of_bucket(latency_bucket(ns)), i);
        ck_assert_uint_eq(latency_bound_of_bucket(latency_bucket(ns + 1)), i + 1);
    }
}
END_TEST

START_TEST(a_quantile_is_the_end_of_the_bucket_where_it_is_reached)
{
    uint64_t buckets[LATENCY_BUCKETS] = {0};
    uint64_t counts[LATENCY_BOUNDS + 1] = {0};

    ck_assert_uint_eq(latency_quantile_us(buckets, 0.5), 0);
    ck_assert_uint_eq(latency_bounds_quantile_us(counts, 0.5), 0);
    buckets[latency_bucket(7000)] = 98;
    buckets[latency_bucket(333000)] = 2;
    ck_assert_uint_eq(latency_quantile_us(buckets, 0.0), 7);
    ck_assert_uint_eq(latency_quantile_us(buckets, 0.98), 7);
    ck_assert_uint_eq(latency_quantile_us(buckets, 0.99), 340);
    ck_assert_uint_eq(latency_quantile_us(buckets, 1.0), 340);
    counts[3] = 1;
    ck_assert_uint_eq(latency_bounds_quantile_us(counts, 0.5), 1000);
    counts[LATENCY_BOUNDS] = 9;
    ck_assert_uint_eq(latency_bounds_quantile_us(counts, 0.5), LATENCY_MAX_US);
}
END_TEST

/* ---- Texts ---- */

START_TEST(texts_of_others_are_escaped)
{
    text_add_escaped(&text, "a\"\\<&>\n\377");
    ck_assert_str_eq(text.base, "a\\\"\\\\<&>??");
    text_end(&text);
}
END_TEST

START_TEST(a_text_grows_as_long_as_there_is_memory)
{
    for (unsigned i = 0; i < 1000; i++)
        text_add(&text, "%04u ", i);
    ck_assert_uint_eq(text.used, 5000);
    ck_assert_int_eq(strncmp(text.base + 4995, "0999 ", 6), 0);
    fake_os_fail(FAKE_REALLOC, 1, 1, ENOMEM);
    text_add(&text, "%5000u", 1);
    ck_assert(text.is_cut);
    text_add(&text, "x");
    ck_assert_uint_eq(text.used, 5000);
    ck_assert_str_eq(text.base + 4995, "0999 ");
    text_end(&text);
    ck_assert(!text.is_cut);
}
END_TEST

START_TEST(a_reply_for_which_there_is_no_memory_is_cut)
{
    unsigned nth = 0;

    ck_assert_int_eq(metrics_map(2), 0);
    metrics_begin_worker(0, 0);
    count("/users/{id}", SXE_HTTP_GET, 200, 50);
    do {
        text_end(&text);
        metrics_add_up(&sum);
        fake_os_fail(FAKE_REALLOC, ++nth, 1, ENOMEM);
        metrics_add_prometheus(&text, &sum);
        ck_assert_uint_lt(nth, 100);
    } while (text.is_cut);
    ck_assert_uint_gt(nth, 2);
    text_end(&text);
    metrics_unmap();
}
END_TEST

/* ---- Counting ---- */

START_TEST(without_memory_nothing_is_counted_and_nothing_fails)
{
    struct metrics_gauges gauges = {.lost_lines = 1};

    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    ck_assert_int_eq(metrics_map(1), -ENOMEM);
    metrics_begin_worker(0, 0);
    metrics_begin_supervisor();
    ck_assert(!metrics_are_on());
    metrics_worker_ended(0);
    metrics_set_state(METRICS_READY);
    metrics_set_draining();
    count("/", SXE_HTTP_GET, 200, 1);
    metrics_publish(&gauges);
    metrics_stop();
    metrics_unmap();
}
END_TEST

START_TEST(requests_are_counted_by_route_method_and_status)
{
    map_two();
    count("/users/{id}", SXE_HTTP_GET, 200, 50);
    count("/users/{id}", SXE_HTTP_GET, 200, 70000);
    count("/users/{id}", SXE_HTTP_POST, 503, 9);
    count(NULL, SXE_HTTP_OTHER, 404, 3);
    count("/users/{id}", SXE_HTTP_GET, 0, 1);
    prometheus();
    ck_assert_uint_eq(sum.requests, 5);
    ck_assert_uint_eq(sum.bytes, 50);
    ck_assert_uint_eq(sum.broken, 1);
    check_has(text.base, "_bucket{http_request_method=\"GET\",http_response_status_code=\"200\","
                         "http_route=\"/users/{id}\",le=\"0.05\"} 1\n");
    check_has(text.base, "_bucket{http_request_method=\"GET\",http_response_status_code=\"200\","
                         "http_route=\"/users/{id}\",le=\"0.1\"} 2\n");
    check_has(text.base, "_count{http_request_method=\"POST\",http_response_status_code=\"503\","
                         "http_route=\"/users/{id}\"} 1\n");
    check_has(text.base,
              "_count{http_request_method=\"_OTHER\",http_response_status_code=\"404\"} 1\n");
    check_has(text.base, "_count{http_request_method=\"GET\",error_type=\"client_gone\",");
    check_has(text.base, "replies_total{class=\"none\"} 1\n");
    check_has(json(), "{\"route\":\"/users/{id}\",\"requests\":4,\"errors\":1,");
    check_has(text.base, "\"2xx\":2,\"3xx\":0,\"4xx\":1,\"5xx\":1,");
    metrics_unmap();
}
END_TEST

START_TEST(a_series_of_several_processes_is_one)
{
    map_two();
    count("/a", SXE_HTTP_GET, 200, 200000000);
    metrics_begin_worker(1, 1);
    count("/a", SXE_HTTP_GET, 200, 7);
    prometheus();
    ck_assert_uint_eq(sum.series_number, 1);
    check_has(text.base, "http_route=\"/a\",le=\"10\"} 1\n");
    check_has(text.base, "http_route=\"/a\",le=\"+Inf\"} 2\n");
    metrics_unmap();
}
END_TEST

START_TEST(routes_and_series_beyond_the_limit_are_counted_as_others)
{
    static char names[METRICS_SERIES * 2][8];

    map_two();
    for (unsigned i = 0; i < METRICS_SERIES * 2; i++) {
        snprintf(names[i], sizeof(names[i]), "/%u", i);
        count(names[i], SXE_HTTP_GET, 200 + i % 4 * 100, 1);
    }
    for (unsigned i = 0; i < METRICS_SERIES; i++)
        count("/0", SXE_HTTP_GET, 400 + i, 1);
    prometheus();
    ck_assert_uint_eq(sum.requests, METRICS_SERIES * 3);
    ck_assert_uint_le(part(0)->series_number, METRICS_SERIES);
    ck_assert_uint_eq(part(0)->routes_number, METRICS_ROUTES);
    for (unsigned i = 0; i < part(0)->series_number; i++)
        ck_assert_uint_lt(part(0)->series[i].route_index, METRICS_ROUTES);
    check_has(text.base, "http_request_method=\"_OTHER\",http_response_status_code=\"400\","
                         "http_route=\"_OTHER\"");
    metrics_unmap();
}
END_TEST

START_TEST(a_sum_has_one_series_for_all_that_it_has_no_room_for)
{
    ck_assert_int_eq(metrics_map(3), 0);
    for (unsigned i = 0; i < 3; i++) {
        metrics_begin_worker(i, i);
        for (unsigned n = 0; n < METRICS_SERIES - 6; n++) {
            char name[METRICS_ROUTE_SIZE];

            snprintf(name, sizeof(name), "/%u-%u", i, n % 40);
            part(i)->series[n] = (struct metrics_series){
                .counts = {1}, .route_index = (uint16_t)(n % 40), .status = (uint16_t)(200 + n)};
            memcpy(part(i)->routes[n % 40], name, sizeof(name));
        }
        part(i)->series_number = METRICS_SERIES - 6;
        part(i)->owner = getpid();
    }
    prometheus();
    ck_assert_uint_eq(sum.requests, 3 * (METRICS_SERIES - 6));
    ck_assert_uint_eq(sum.series_number, METRICS_SUM_SERIES);
    ck_assert_uint_eq(sum.routes_number, METRICS_ROUTES);
    ck_assert_str_eq(sum.series[METRICS_SUM_SERIES - 1].route, METRICS_OTHER);
    for (unsigned i = 0; i < METRICS_ROUTES; i++) {
        const struct metrics_sum_route *route = &sum.routes[i];

        /* The routes of two processes have 3 or 4 requests each; 57 further routes are summed. */
        ck_assert_int_eq(route->number > 4, strcmp(route->route, METRICS_OTHER) == 0);
    }
    metrics_unmap();
}
END_TEST

START_TEST(routes_are_sorted_with_the_slowest_first)
{
    map_two();
    count("/quick", SXE_HTTP_GET, 200, 1);
    count("/slow", SXE_HTTP_GET, 200, 900000);
    count("/middle", SXE_HTTP_GET, 200, 4000);
    count("/also", SXE_HTTP_GET, 200, 4700);
    /* The series of "/quick"; the loop below has those of "/quick2" and "/quick1". */
    part(0)->series[0].max_ns = 1;
    for (unsigned i = 0; i < 2; i++) {
        count(i == 0 ? "/quick2" : "/quick1", SXE_HTTP_GET, 200, 1);
        part(0)->series[4 + i].max_ns = 1;
    }
    metrics_add_up(&sum);
    ck_assert_str_eq(sum.routes[0].route, "/slow");
    ck_assert_str_eq(sum.routes[1].route, "/also");
    ck_assert_str_eq(sum.routes[2].route, "/middle");
    ck_assert_str_eq(sum.routes[3].route, "/quick");
    ck_assert_str_eq(sum.routes[4].route, "/quick1");
    ck_assert_str_eq(sum.routes[5].route, "/quick2");
    metrics_unmap();
}
END_TEST

/* ---- Parts ---- */

static char warned[256];

static void
keep_warning(void *user, int level, const char *line, size_t length)
{
    (void)user;
    (void)level;
    snprintf(warned, sizeof(warned), "%.*s", (int)length, line);
}

/* Count a request in a child that ends. */
static void
count_in_a_child(void)
{
    struct metrics_gauges gauges = {.lost_lines = 3, .lua_errors = 2};
    pid_t pid = fork();

    if (pid == 0) {
        metrics_begin_worker(1, 1);
        count("/child", SXE_HTTP_GET, 200, 5);
        metrics_publish(&gauges);
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(the_next_process_counts_on_where_one_has_ended)
{
    map_two();
    for (unsigned i = 1; i <= 4; i++) {
        count_in_a_child();
        metrics_add_up(&sum);
        ck_assert_uint_eq(sum.workers_number, 2);
        metrics_worker_ended(1);
        metrics_add_up(&sum);
        ck_assert_uint_eq(sum.requests, i);
        ck_assert_uint_eq(sum.lost_lines, 3 * i);
        ck_assert_uint_eq(sum.lua_errors, 2 * i);
        ck_assert_uint_eq(sum.starts, 1 + i);
        ck_assert_uint_eq(sum.workers_number, 1);
    }
    metrics_unmap();
}
END_TEST

START_TEST(a_worker_that_the_supervisor_has_not_seen_end_is_shown_whatever_its_pid)
{
    map_two();
    part(0)->owner = INT_MAX;
    metrics_add_up(&sum);
    ck_assert_uint_eq(sum.workers_number, 1);
    metrics_worker_ended(0);
    part(0)->owner = 0;
    metrics_add_up(&sum);
    ck_assert_uint_eq(sum.workers_number, 0);
    metrics_unmap();
}
END_TEST

START_TEST(a_process_that_stops_counting_keeps_no_lines)
{
    map_two();
    metrics_begin_supervisor();
    ck_assert(metrics_are_on());
    metrics_stop();
    ck_assert(!metrics_are_on());
    sxe_log_to_function(keep_warning, NULL);
    SXE_WARN("not kept");
    metrics_add_up(&sum);
    ck_assert_uint_eq(sum.lines_number, 0);
    metrics_unmap();
}
END_TEST

START_TEST(it_is_ready_while_a_worker_is_and_until_it_drains)
{
    map_two();
    metrics_add_up(&sum);
    ck_assert(!sum.is_ready);
    check_has(json(), "\"state\":\"starting\"");
    metrics_set_state(METRICS_READY);
    check_has(json(), "\"ready\":true,\"draining\":false");
    metrics_set_draining();
    check_has(json(), "\"ready\":false,\"draining\":true");
    metrics_worker_ended(0);
    check_has(json(), "\"workers\":[]");
    metrics_unmap();
}
END_TEST

START_TEST(workers_are_in_the_order_of_their_places)
{
    ck_assert_int_eq(metrics_map(3), 0);
    for (unsigned i = 0; i < 3; i++)
        metrics_begin_worker(i == 0, i);
    part(1)->owner = getppid();
    check_has(json(), "\"workers\":[{\"place\":0,");
    ck_assert_uint_eq(sum.workers_number, 3);
    ck_assert_uint_eq(sum.workers[2]->place, 1);
    ck_assert(sum.workers[0]->owner <= sum.workers[1]->owner);
    metrics_unmap();
}
END_TEST

/* ---- Published metrics ---- */

static const char *
state_name(unsigned state)
{
    return state == 0 ? "FREE" : "HEAD";
}

START_TEST(pools_are_shown_by_state_and_age)
{
    struct metrics_gauges gauges = {.lua_memory = 1000, .lua_memory_max = 2000};
    int *pool = sxe_pool_new("http-connections", 3, sizeof(int), 2, 0);

    ck_assert_int_eq(sxe_pool_set_state_to_string(pool, state_name), 0);
    map_two();
    sxe_pool_move(pool, 1, 0, 1);
    sxe_time_set_turn_ns(sxe_time_ns() + 1500 * SXE_NS_PER_MS);
    metrics_publish(&gauges);
    sxe_time_set_turn_ns(0);
    prometheus();
    check_has(text.base, "sxe_pool_elements{pool=\"http-connections\",state=\"FREE\"} 2\n");
    check_has(text.base, "sxe_pool_elements{pool=\"http-connections\",state=\"HEAD\"} 1\n");
    check_has(text.base, "sxe_pool_oldest_seconds{pool=\"http-connections\",state=\"HEAD\"} 1.5");
    check_has(text.base, "http_server_active_requests 1\n");
    check_has(text.base, "sxe_connections 1\n");
    check_has(text.base, "sxe_lua_memory_bytes 1000\n");
    check_has(json(), "{\"name\":\"HEAD\",\"number\":1,\"oldest_ms\":15");
    sxe_pool_delete(pool);
    metrics_unmap();
}
END_TEST

static void
count_upstream(const char *upstream, const char *address, uint64_t requests, bool is_down)
{
    const struct sxe_http_upstream_state state = {.name = address,
                                                  .requests = requests,
                                                  .failures = requests / 2,
                                                  .retries = requests / 4,
                                                  .under_way = 3,
                                                  .connections = 4,
                                                  .is_down = is_down};

    metrics_publish_upstream(upstream, &state);
}

static void
publish_upstream(const char *upstream, const char *address, uint64_t requests, bool is_down)
{
    const struct metrics_gauges gauges = {.lua_memory = 0};

    count_upstream(upstream, address, requests, is_down);
    metrics_publish(&gauges);
}

START_TEST(addresses_of_upstreams_are_summed_over_workers_and_their_counts_never_become_less)
{
    publish_upstream("app", "a:1", 1, false); /* nothing is mapped */
    map_two();
    ck_assert_ptr_null(strstr(prometheus(), "{upstream="));
    check_has(json(), "\"upstreams\":[]");
    publish_upstream("app", "127.0.0.1:3000", 8, true);
    metrics_begin_worker(1, 1);
    count_upstream("app", "127.0.0.1:3000", 12, true);
    publish_upstream("a\"b", "/run/b.sock", 4, false);
    prometheus();
#define APP "{upstream=\"app\",address=\"127.0.0.1:3000\"} "
    check_has(text.base, "# TYPE sxe_upstream_requests_total counter\n");
    check_has(text.base, "sxe_upstream_requests_total" APP "20\n");
    check_has(text.base,
              "sxe_upstream_requests_total{upstream=\"a\\\"b\",address=\"/run/b.sock\"} 4");
    check_has(text.base, "sxe_upstream_failures_total" APP "10\n");
    check_has(text.base, "sxe_upstream_retries_total" APP "5\n");
    check_has(text.base, "# TYPE sxe_upstream_active_requests gauge\n");
    check_has(text.base, "sxe_upstream_active_requests" APP "6\n");
    check_has(text.base, "sxe_upstream_connections" APP "8\n");
    check_has(text.base, "sxe_upstream_down" APP "2\n");
    check_has(json(), "{\"upstream\":\"app\",\"address\":\"127.0.0.1:3000\",\"requests\":");
    metrics_worker_ended(0);
    check_has(prometheus(), "sxe_upstream_active_requests" APP "3\n");
    metrics_begin_worker(0, 0); /* the next worker of the slot, with two routes to the address */
    count_upstream("app", "127.0.0.1:3000", 5, false);
    publish_upstream("app", "127.0.0.1:3000", 2, false);
    check_has(prometheus(), "sxe_upstream_requests_total" APP "27\n");
    metrics_unmap();
}
END_TEST

START_TEST(addresses_beyond_the_limit_are_not_shown)
{
    map_two();
    for (unsigned slot = 0; slot < 2; slot++) {
        metrics_begin_worker(slot, slot);
        for (unsigned i = 0; i <= METRICS_UPSTREAMS; i++) {
            char name[16];

            snprintf(name, sizeof(name), "%u-%u", slot, i);
            publish_upstream("app", name, 1, false);
        }
    }
    metrics_add_up(&sum);
    ck_assert_uint_eq(sum.upstreams_number, METRICS_UPSTREAMS);
    ck_assert_str_eq(sum.upstreams[0].address, "0-0");
    metrics_unmap();
}
END_TEST

START_TEST(pools_beyond_the_limit_are_not_shown)
{
    struct metrics_gauges gauges = {.lua_memory = 0};
    int *pools[METRICS_POOLS + 1];

    map_two();
    for (unsigned i = 0; i <= METRICS_POOLS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "pool %u", i);
        pools[i] = sxe_pool_new(name, 1, sizeof(int), METRICS_STATES + 1, 0);
        ck_assert_int_eq(sxe_pool_set_state_to_string(pools[i], state_name), 0);
    }
    metrics_publish(&gauges);
    metrics_begin_worker(1, 1);
    sxe_pool_delete(pools[0]);
    metrics_publish(&gauges);
    metrics_add_up(&sum);
    ck_assert_uint_eq(sum.pools_number, METRICS_POOLS);
    ck_assert_uint_eq(sum.pools[1].states, METRICS_STATES);
    for (unsigned i = 1; i <= METRICS_POOLS; i++)
        sxe_pool_delete(pools[i]);
    metrics_unmap();
}
END_TEST

START_TEST(the_level_that_was_asked_for_is_set_once)
{
    struct metrics_gauges gauges = {.lua_memory = 0};

    map_two();
    metrics_ask_for_level(SXE_LOG_DEBUG);
    metrics_publish(&gauges);
    ck_assert_int_eq(sxe_log_get_level(), SXE_LOG_DEBUG);
    sxe_log_set_level(SXE_LOG_ERROR);
    metrics_publish(&gauges);
    ck_assert_int_eq(sxe_log_get_level(), SXE_LOG_ERROR);
    metrics_unmap();
}
END_TEST

START_TEST(memory_of_a_process_that_has_ended_counts_as_none)
{
    map_two();
    fake_os_fail(FAKE_FOPEN, 1, 1, ENOENT);
    check_has(prometheus(), "process_resident_memory_bytes 0\n");
    check_has_not(prometheus(), "process_resident_memory_bytes 0\n");
    metrics_unmap();
}
END_TEST

/* ---- Lines of the log ---- */

START_TEST(the_last_warnings_are_kept_the_newest_first)
{
    map_two();
    sxe_log_to_function(keep_warning, NULL);
    for (unsigned i = 1; i <= METRICS_LINES + 1; i++) {
        SXE_WARN("warning %u", i);
        SXE_INFO("information");
    }
    SXE_ERROR("a \"long\" one: %0300d", 0);
    metrics_add_up(&sum);
    ck_assert_uint_eq(sum.lines_number, METRICS_LINES);
    check_has(json(), "\"level\":2,\"level_name\":\"error\",\"text\":\"");
    check_has(text.base, "a \\\"long\\\" one");
    check_has(text.base, "warning 17\"");
    check_has_not(text.base, "warning 2\"");
    check_has_not(text.base, "- information");
    metrics_unmap();
    SXE_WARN("not kept");
}
END_TEST

START_TEST(lines_of_all_processes_are_sorted_and_the_oldest_left_out)
{
    ck_assert_int_eq(metrics_map(3), 0);
    for (unsigned i = 0; i < 3; i++) {
        metrics_begin_worker(i, i);
        for (unsigned n = 0; n < METRICS_LINES; n++)
            part(i)->lines[n] = (struct metrics_line){.sequence = n + 1, .unix_ms = 3 * n + i};
    }
    part(0)->lines[METRICS_LINES - 1].sequence = 0; /* as if the line were being written */
    part(2)->lines[METRICS_LINES - 1].unix_ms = -1;
    metrics_add_up(&sum);
    ck_assert_uint_eq(sum.lines_number, METRICS_SUM_LINES);
    ck_assert_int_eq(sum.lines[0].unix_ms, 3 * METRICS_LINES - 2);
    for (unsigned i = 1; i < METRICS_SUM_LINES; i++)
        ck_assert_int_lt(sum.lines[i].unix_ms, sum.lines[i - 1].unix_ms);
    metrics_unmap();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("httpd-metrics");
    TCase *tcase = tcase_create("metrics");

    tcase_add_test(tcase, every_duration_is_in_the_bucket_that_ends_at_it_or_after_it);
    tcase_add_test(tcase, counts_up_to_a_bound_are_exact);
    tcase_add_test(tcase, a_quantile_is_the_end_of_the_bucket_where_it_is_reached);
    tcase_add_test(tcase, texts_of_others_are_escaped);
    tcase_add_test(tcase, a_text_grows_as_long_as_there_is_memory);
    tcase_add_test(tcase, a_reply_for_which_there_is_no_memory_is_cut);
    tcase_add_test(tcase, without_memory_nothing_is_counted_and_nothing_fails);
    tcase_add_test(tcase, requests_are_counted_by_route_method_and_status);
    tcase_add_test(tcase, a_series_of_several_processes_is_one);
    tcase_add_test(tcase, routes_and_series_beyond_the_limit_are_counted_as_others);
    tcase_add_test(tcase, a_sum_has_one_series_for_all_that_it_has_no_room_for);
    tcase_add_test(tcase, routes_are_sorted_with_the_slowest_first);
    tcase_add_test(tcase, the_next_process_counts_on_where_one_has_ended);
    tcase_add_test(tcase, a_worker_that_the_supervisor_has_not_seen_end_is_shown_whatever_its_pid);
    tcase_add_test(tcase, a_process_that_stops_counting_keeps_no_lines);
    tcase_add_test(tcase, it_is_ready_while_a_worker_is_and_until_it_drains);
    tcase_add_test(tcase, workers_are_in_the_order_of_their_places);
    tcase_add_test(tcase, pools_are_shown_by_state_and_age);
    tcase_add_test(tcase, pools_beyond_the_limit_are_not_shown);
    tcase_add_test(
        tcase, addresses_of_upstreams_are_summed_over_workers_and_their_counts_never_become_less);
    tcase_add_test(tcase, addresses_beyond_the_limit_are_not_shown);
    tcase_add_test(tcase, the_level_that_was_asked_for_is_set_once);
    tcase_add_test(tcase, memory_of_a_process_that_has_ended_counts_as_none);
    tcase_add_test(tcase, the_last_warnings_are_kept_the_newest_first);
    tcase_add_test(tcase, lines_of_all_processes_are_sorted_and_the_oldest_left_out);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
