/* SPDX-License-Identifier: MIT
 *
 * /status.json, for the script of the status page and for other clients. Durations are in
 * microseconds, ages in milliseconds. Counts only grow, so the difference of two replies gives a
 * rate.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "prometheus.h"
#include "status-page.h"
#include "sxe-json.h"
#include "sxe-time.h"

#define PART_SIZE 256

static void
add_text_member(struct text *text, const char *name, const char *value)
{
    size_t length = strlen(value);

    text_add(text, "\"%s\":\"", name);
    while (length > 0) {
        char part[PART_SIZE + 1];
        size_t taken = length;

        part[sxe_json_escape(part, PART_SIZE, value, &taken, SXE_JSON_UTF8)] = '\0';
        text_add(text, "%s", part);
        value += taken;
        length -= taken;
    }
    text_add(text, "\"");
}

/* Write each bucket that is not empty as a pair: the longest duration in it, and its count. */
static void
add_durations(struct text *text, const struct metrics_sum *sum)
{
    const char *comma = "";

    text_add(text, ",\"durations\":[");
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        if (sum->durations[i] == 0)
            continue;
        text_add(text, "%s[%" PRIu32 ",%" PRIu64 "]", comma, latency_bucket_end_us(i),
                 sum->durations[i]);
        comma = ",";
    }
    text_add(text, "],\"p50_us\":%" PRIu32 ",\"p99_us\":%" PRIu32 "",
             latency_quantile_us(sum->durations, 0.5), latency_quantile_us(sum->durations, 0.99));
}

static void
add_request_members(struct text *text, const struct metrics_sum *sum)
{
    text_add(text,
             "\"requests\":{\"total\":%" PRIu64 ",\"active\":%" PRIu64 ",\"unanswered\":%" PRIu64,
             sum->requests, metrics_active(sum), sum->classes[0]);
    for (unsigned i = 1; i < METRICS_CLASSES; i++)
        text_add(text, ",\"%uxx\":%" PRIu64, i, sum->classes[i]);
    text_add(text, ",\"broken\":%" PRIu64 ",\"bytes\":%" PRIu64, sum->broken, sum->bytes);
    add_durations(text, sum);
    text_add(text, "}");
}

static void
add_worker_members(struct text *text, const struct metrics_sum *sum)
{
    static const char *const states[] = {"starting", "ready", "leaving"};

    text_add(text, "\"workers\":[");
    for (unsigned i = 0; i < sum->workers_number; i++) {
        const struct metrics_part *part = sum->workers[i];

        text_add(text, "%s{\"place\":%u,\"pid\":%d,\"state\":\"%s\",\"starts\":%u",
                 i > 0 ? "," : "", part->place, part->owner, states[part->state % 3], part->starts);
        text_add(text, ",\"uptime\":%" PRIu64 ",\"seen_ms\":%" PRIu64,
                 (sum->now_ns - part->since_ns) / SXE_NS_PER_SECOND,
                 sum->now_ns > part->published_ns
                     ? (sum->now_ns - part->published_ns) / SXE_NS_PER_MS
                     : 0);
        text_add(text, ",\"requests\":%" PRIu64 ",\"cpu_ms\":%" PRIu64, metrics_requests_of(part),
                 part->cpu_ns / SXE_NS_PER_MS);
        text_add(text, ",\"lua_memory\":%" PRIu64 ",\"lua_memory_max\":%" PRIu64 "}",
                 part->lua_memory, part->lua_memory_max);
    }
    text_add(text, "]");
}

static void
add_pool_members(struct text *text, const struct metrics_sum *sum)
{
    text_add(text, "\"pools\":[");
    for (unsigned i = 0; i < sum->pools_number; i++) {
        const struct metrics_pool *pool = &sum->pools[i];

        text_add(text, "%s{", i > 0 ? "," : "");
        add_text_member(text, "name", pool->name);
        text_add(text, ",\"elements\":%u,\"states\":[", pool->elements);
        for (unsigned state = 0; state < pool->states; state++) {
            text_add(text, "%s{", state > 0 ? "," : "");
            add_text_member(text, "name", pool->state[state].name);
            text_add(text, ",\"number\":%u,\"oldest_ms\":%u}", pool->state[state].number,
                     pool->state[state].age_ms);
        }
        text_add(text, "]}");
    }
    text_add(text, "]");
}

static void
add_upstream_members(struct text *text, const struct metrics_sum *sum)
{
    text_add(text, "\"upstreams\":[");
    for (unsigned i = 0; i < sum->upstreams_number; i++) {
        const struct metrics_upstream *upstream = &sum->upstreams[i];

        text_add(text, "%s{", i > 0 ? "," : "");
        add_text_member(text, "upstream", upstream->upstream);
        text_add(text, ",");
        add_text_member(text, "address", upstream->address);
        text_add(text, ",\"requests\":%" PRIu64 ",\"failures\":%" PRIu64, upstream->requests,
                 upstream->failures);
        text_add(text,
                 ",\"retries\":%" PRIu64 ",\"active\":%u,\"connections\":%u,\"down_workers\":%u}",
                 upstream->retries, upstream->active, upstream->connections, upstream->is_down);
    }
    text_add(text, "]");
}

static void
add_route_members(struct text *text, const struct metrics_sum *sum)
{
    text_add(text, "\"routes\":[");
    for (unsigned i = 0; i < sum->routes_number; i++) {
        const struct metrics_sum_route *route = &sum->routes[i];

        text_add(text, "%s{", i > 0 ? "," : "");
        add_text_member(text, "route", route->route);
        text_add(text, ",\"requests\":%" PRIu64 ",\"errors\":%" PRIu64, route->number,
                 route->errors);
        text_add(text, ",\"mean_us\":%" PRIu64 ",\"p99_us\":%" PRIu32 ",\"max_us\":%" PRIu64 "}",
                 metrics_mean_us(route), latency_bounds_quantile_us(route->counts, 0.99),
                 route->max_ns / 1000);
    }
    text_add(text, "]");
}

static void
add_line_members(struct text *text, const struct metrics_sum *sum)
{
    text_add(text, "\"log\":[");
    for (unsigned i = 0; i < sum->lines_number; i++) {
        text_add(text, "%s{\"time\":%" PRId64 ".%03d,\"level\":%d,\"level_name\":\"%s\",",
                 i > 0 ? "," : "", sum->lines[i].unix_ms / 1000,
                 (int)(sum->lines[i].unix_ms % 1000), sum->lines[i].level,
                 status_level_name(sum->lines[i].level));
        add_text_member(text, "text", sum->lines[i].text);
        text_add(text, "}");
    }
    text_add(text, "]");
}

void
metrics_add_json(struct text *text, const struct metrics_sum *sum)
{
    text_add(text, "{\"version\":\"" SXE_VERSION "\",\"time\":%" PRId64 ".%03d",
             sum->now_unix_ms / 1000, (int)(sum->now_unix_ms % 1000));
    text_add(
        text, ",\"uptime\":%" PRIu64 ",\"ready\":%s,\"draining\":%s,\"log_lines_lost\":%" PRIu64,
        (sum->now_ns - metrics_look()->began_ns) / SXE_NS_PER_SECOND,
        sum->is_ready ? "true" : "false", sum->is_draining ? "true" : "false", sum->lost_lines);
    text_add(text, ",\"connections\":%" PRIu64 ",\"lua_errors\":%" PRIu64 ",\"log_level\":\"%s\",",
             metrics_connections(sum), sum->lua_errors, status_level_name(status_level()));
    add_request_members(text, sum);
    text_add(text, ",");
    add_worker_members(text, sum);
    text_add(text, ",");
    add_pool_members(text, sum);
    text_add(text, ",");
    add_upstream_members(text, sum);
    text_add(text, ",");
    add_route_members(text, sum);
    text_add(text, ",");
    add_line_members(text, sum);
    text_add(text, "}\n");
}
