/* SPDX-License-Identifier: MIT
 *
 * /metrics: families of metrics. Each family begins with its lines HELP and TYPE. Metrics of HTTP
 * have OpenTelemetry's names, spelt as Prometheus needs them. docs/observability.md lists all
 * families.
 */
#include "prometheus.h"

#include <ev.h>
#include <inttypes.h>
#include <lua.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sxe-time.h"

static void
begin_family(struct text *text, const char *name, const char *type, const char *help)
{
    text_add(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
add_number_metric(struct text *text, const char *name, const char *type, const char *help,
                  uint64_t value)
{
    begin_family(text, name, type, help);
    text_add(text, "%s %" PRIu64 "\n", name, value);
}

static void
add_seconds_metric(struct text *text, const char *name, const char *type, const char *help,
                   double value)
{
    begin_family(text, name, type, help);
    text_add(text, "%s %.6f\n", name, value);
}

/* ---- Requests ---- */

static void
make_labels(struct text *labels, const struct metrics_sum_series *series)
{
    text_add(labels, "http_request_method=\"%s\"", metrics_method_name(series->method));
    if (series->status > 0)
        text_add(labels, ",http_response_status_code=\"%u\"", series->status);
    else
        text_add(labels, ",error_type=\"client_gone\"");
    if (series->route[0] == '\0')
        return;
    text_add(labels, ",http_route=\"");
    text_add_escaped(labels, series->route);
    text_add(labels, "\"");
}

static void
add_series_metrics(struct text *text, const struct metrics_sum_series *series)
{
    static const char name[] = "http_server_request_duration_seconds";
    struct text labels = {.size = 0};
    uint64_t number = 0;

    make_labels(&labels, series);
    if (labels.is_cut)
        text->is_cut = true;
    for (unsigned i = 0; i < LATENCY_BOUNDS; i++) {
        number += series->counts[i];
        text_add(text, "%s_bucket{%s,le=\"%g\"} %" PRIu64 "\n", name, labels.base,
                 latency_bounds_us[i] / 1e6, number);
    }
    number += series->counts[LATENCY_BOUNDS];
    text_add(text, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, labels.base, number);
    text_add(text, "%s_sum{%s} %.6f\n", name, labels.base, (double)series->sum_ns / 1e9);
    text_add(text, "%s_count{%s} %" PRIu64 "\n", name, labels.base, number);
    text_end(&labels);
}

static void
add_request_totals(struct text *text, const struct metrics_sum *sum)
{
    static const char *const classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

    begin_family(text, "http_server_request_duration_seconds", "histogram",
                 "From a request's first byte to the end of its reply.");
    for (unsigned i = 0; i < sum->series_number; i++)
        add_series_metrics(text, &sum->series[i]);
    add_number_metric(text, "http_server_active_requests", "gauge",
                      "Requests that have begun, and whose reply has not been sent.",
                      metrics_active(sum));
    begin_family(text, "sxe_http_replies_total", "counter",
                 "Requests that ended, by class of status.");
    for (unsigned i = 0; i < METRICS_CLASSES; i++)
        text_add(text, "sxe_http_replies_total{class=\"%s\"} %" PRIu64 "\n", classes[i],
                 sum->classes[i]);
    add_number_metric(text, "sxe_http_reply_body_bytes_total", "counter",
                      "Bytes of bodies of replies.", sum->bytes);
    add_number_metric(text, "sxe_http_replies_broken_total", "counter",
                      "Requests whose connection ended before their reply did.", sum->broken);
}

/* ---- Pools ---- */

#define IS_AGE true

static void
add_pool_metrics(struct text *text, const struct metrics_sum *sum, const char *name, bool is_age)
{
    for (unsigned i = 0; i < sum->pools_number; i++) {
        const struct metrics_pool *pool = &sum->pools[i];

        for (unsigned state = is_age; state < pool->states; state++) {
            text_add(text, "%s{pool=\"", name);
            text_add_escaped(text, pool->name);
            text_add(text, "\",state=\"");
            text_add_escaped(text, pool->state[state].name);
            if (is_age)
                text_add(text, "\"} %.3f\n", pool->state[state].age_ms / 1e3);
            else
                text_add(text, "\"} %u\n", pool->state[state].number);
        }
    }
}

static void
add_all_pools(struct text *text, const struct metrics_sum *sum)
{
    add_number_metric(text, "sxe_connections", "gauge", "Open connections of clients.",
                      metrics_connections(sum));
    begin_family(text, "sxe_pool_elements", "gauge",
                 "Elements of a pool in a state, of all workers.");
    add_pool_metrics(text, sum, "sxe_pool_elements", !IS_AGE);
    begin_family(text, "sxe_pool_oldest_seconds", "gauge",
                 "How long the oldest element has been in its state.");
    add_pool_metrics(text, sum, "sxe_pool_oldest_seconds", IS_AGE);
}

/* ---- Upstreams ---- */

static void
add_upstream_labels(struct text *text, const char *name, const struct metrics_upstream *upstream)
{
    text_add(text, "%s{upstream=\"", name);
    text_add_escaped(text, upstream->upstream);
    text_add(text, "\",address=\"");
    text_add_escaped(text, upstream->address);
}

/* Write a family with a value for each address: a count, or else a gauge. */
static void
add_upstream_metric(struct text *text, const struct metrics_sum *sum, const char *name,
                    const char *help, size_t offset, bool is_count)
{
    begin_family(text, name, is_count ? "counter" : "gauge", help);
    for (unsigned i = 0; i < sum->upstreams_number; i++) {
        const char *value = (const char *)&sum->upstreams[i] + offset;
        uint32_t gauge;
        uint64_t count;

        memcpy(&gauge, value, sizeof(gauge));
        memcpy(&count, value, sizeof(count));
        add_upstream_labels(text, name, &sum->upstreams[i]);
        text_add(text, "\"} %" PRIu64 "\n", is_count ? count : gauge);
    }
}

#define COUNT_OF(name) offsetof(struct metrics_upstream, name), true
#define GAUGE_OF(name) offsetof(struct metrics_upstream, name), false

static void
add_all_upstreams(struct text *text, const struct metrics_sum *sum)
{
    add_upstream_metric(text, sum, "sxe_upstream_requests_total",
                        "Requests that were sent to an address, those sent again included.",
                        COUNT_OF(requests));
    add_upstream_metric(text, sum, "sxe_upstream_failures_total", "Failures of an address.",
                        COUNT_OF(failures));
    add_upstream_metric(text, sum, "sxe_upstream_retries_total",
                        "Requests that were sent again because an address failed.",
                        COUNT_OF(retries));
    add_upstream_metric(text, sum, "sxe_upstream_active_requests", "Requests under way.",
                        GAUGE_OF(active));
    add_upstream_metric(text, sum, "sxe_upstream_connections", "Open connections to an address.",
                        GAUGE_OF(connections));
    add_upstream_metric(text, sum, "sxe_upstream_down", "Workers that leave an address out.",
                        GAUGE_OF(is_down));
}

/* ---- Processes ---- */

/* Read how many bytes of memory a process has resident; 0: it has ended. */
static uint64_t
resident_bytes(pid_t pid)
{
    char path[64];
    unsigned long long pages = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    (void)!fscanf(file, "%*u %llu", &pages);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
add_worker_metrics(struct text *text, const struct metrics_sum *sum)
{
    uint64_t lua = 0;
    uint64_t resident = 0;

    for (unsigned i = 0; i < sum->workers_number; i++) {
        lua += sum->workers[i]->lua_memory;
        resident += resident_bytes(sum->workers[i]->owner);
    }
    add_number_metric(text, "sxe_workers", "gauge", "Processes that serve.", sum->workers_number);
    add_number_metric(
        text, "sxe_worker_starts_total", "counter",
        "Serving processes that were started; those beyond the number of workers are restarts.",
        sum->starts);
    add_number_metric(text, "sxe_lua_memory_bytes", "gauge",
                      "Memory of the scripts of all workers.", lua);
    add_number_metric(text, "sxe_lua_errors_total", "counter", "Errors of handlers in Lua.",
                      sum->lua_errors);
    add_number_metric(text, "sxe_log_lines_dropped_total", "counter",
                      "Lines of the log and the access log that could not be written.",
                      sum->lost_lines);
    add_seconds_metric(text, "process_cpu_seconds_total", "counter",
                       "CPU time of all workers so far.", (double)sum->cpu_ns / 1e9);
    add_number_metric(text, "process_resident_memory_bytes", "gauge", "Memory of all workers.",
                      resident);
    add_seconds_metric(text, "process_start_time_seconds", "gauge",
                       "When the server began, since 1970.",
                       (double)metrics_look()->began_unix_ms / 1e3);
}

void
metrics_add_prometheus(struct text *text, const struct metrics_sum *sum)
{
    add_request_totals(text, sum);
    add_all_pools(text, sum);
    add_all_upstreams(text, sum);
    add_worker_metrics(text, sum);
    add_number_metric(text, "sxe_draining", "gauge",
                      "1: the server ends, and accepts nothing more.", sum->is_draining);
    begin_family(text, "sxe_build_info", "gauge", "The build, as labels; the value is always 1.");
    text_add(text,
             "sxe_build_info{version=\"" SXE_VERSION "\",libev=\"%d.%d\",lua=\"" LUA_VERSION_MAJOR
             "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE "\"} 1\n",
             EV_VERSION_MAJOR, EV_VERSION_MINOR);
}
