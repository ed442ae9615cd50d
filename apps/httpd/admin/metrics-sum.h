/* SPDX-License-Identifier: MIT
 *
 * What: the sum of the counts of all processes at one moment.
 *
 * Place: admin-serve.c makes a sum for each request of an operator; prometheus.c, status-json.c and
 * status-page.c write it as text.
 *
 * Limits: METRICS_SUM_SERIES combinations of route, method and status of all processes together,
 * METRICS_SUM_LINES lines of the log. At most METRICS_SUM_WORKERS processes are listed, but the
 * counts include all processes.
 */
#ifndef METRICS_SUM_H
#define METRICS_SUM_H

#include "admin-metrics.h"

#define METRICS_SUM_SERIES  256
#define METRICS_SUM_LINES   32
#define METRICS_SUM_WORKERS 64
/* the number of classes of a status; the class is its first digit, or 0 if no status was sent */
#define METRICS_CLASSES 6

struct metrics_sum_series {
    const char *route; /* points into the part of the first process that has the route */
    uint8_t method;
    uint16_t status;
    uint64_t counts[LATENCY_BOUNDS + 1];
    uint64_t sum_ns;
    uint64_t max_ns;
};

struct metrics_sum_route {
    const char *route;
    uint64_t number;
    uint64_t errors; /* how many replies had a status of 5xx */
    uint64_t counts[LATENCY_BOUNDS + 1];
    uint64_t sum_ns;
    uint64_t max_ns;
};

struct metrics_sum {
    uint64_t now_ns;
    int64_t now_unix_ms;
    bool is_draining;
    bool is_ready; /* whether a worker is ready, and the server is not draining */
    uint64_t requests;
    uint64_t classes[METRICS_CLASSES];
    uint64_t durations[LATENCY_BUCKETS];
    uint64_t bytes;
    uint64_t broken;
    uint64_t lost_lines;
    uint64_t lua_errors;
    uint64_t starts; /* how many workers were started since the server began */
    uint64_t cpu_ns;
    unsigned workers_number;
    /* The workers that are alive, ordered by their number (place). */
    const struct metrics_part *workers[METRICS_SUM_WORKERS];
    unsigned series_number;
    struct metrics_sum_series series[METRICS_SUM_SERIES];
    unsigned routes_number;
    /* the routes, ordered by their 99th percentile, the slowest first */
    struct metrics_sum_route routes[METRICS_ROUTES];
    unsigned pools_number;
    /* Pools: the counts are sums over the workers that are alive; the ages are the largest of all
     * workers. */
    struct metrics_pool pools[METRICS_POOLS];
    unsigned upstreams_number;
    /* Addresses of upstreams: the counts are sums over all parts. active, connections and is_down
     * (how many workers see it as down) are sums over the workers that are alive. */
    struct metrics_upstream upstreams[METRICS_UPSTREAMS];
    unsigned lines_number;
    struct metrics_line lines[METRICS_SUM_LINES]; /* lines of the log, the newest first */
};

/* Add up everything that was counted so far. */
void metrics_add_up(struct metrics_sum *sum);

const char *metrics_method_name(uint8_t method);
uint64_t metrics_number_of(const uint64_t counts[LATENCY_BOUNDS + 1]);

uint64_t metrics_requests_of(const struct metrics_part *part);
uint64_t metrics_mean_us(const struct metrics_sum_route *route);

/* How many connections wait for a reply, or for the rest of a request. */
uint64_t metrics_active(const struct metrics_sum *sum);

/* How many connections are open. */
uint64_t metrics_connections(const struct metrics_sum *sum);

#endif
