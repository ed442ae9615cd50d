/* SPDX-License-Identifier: MIT
 *
 * Adding up the counts of all processes. Processes go on counting meanwhile: a request that they
 * count is in this sum, or only in the next one.
 */
#include "metrics-sum.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sxe-time.h"

const char *
metrics_method_name(uint8_t method)
{
    if (method == SXE_HTTP_OTHER || method == METRICS_OTHER_METHOD)
        return METRICS_OTHER;
    return sxe_http_method_name((enum sxe_http_method)method);
}

uint64_t
metrics_number_of(const uint64_t counts[LATENCY_BOUNDS + 1])
{
    uint64_t number = 0;

    for (unsigned i = 0; i <= LATENCY_BOUNDS; i++)
        number += counts[i];
    return number;
}

static void
sum_counts(uint64_t *to, const uint64_t *counts, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        to[i] += counts[i];
}

static uint64_t
greater_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- Series and routes ---- */

/* The sum's series for this route, method and status. If the table is full, its last series counts
 * all that have no series of their own. */
static struct metrics_sum_series *
series_for(struct metrics_sum *sum, const char *route, const struct metrics_series *series)
{
    struct metrics_sum_series *to;

    for (unsigned i = 0; i < sum->series_number; i++) {
        to = &sum->series[i];
        if (to->method == series->method && to->status == series->status &&
            strcmp(to->route, route) == 0)
            return to;
    }
    if (sum->series_number == METRICS_SUM_SERIES)
        return &sum->series[METRICS_SUM_SERIES - 1];
    to = &sum->series[sum->series_number++];
    if (sum->series_number == METRICS_SUM_SERIES)
        *to = (struct metrics_sum_series){.route = METRICS_OTHER, .method = METRICS_OTHER_METHOD};
    else
        *to = (struct metrics_sum_series){
            .route = route, .method = series->method, .status = series->status};
    return to;
}

/* The sum's entry for this route. If the table is full, its last entry counts all routes that have
 * no entry of their own. */
static struct metrics_sum_route *
route_for(struct metrics_sum *sum, const char *route)
{
    struct metrics_sum_route *to;

    for (unsigned i = 0; i < sum->routes_number; i++) {
        if (strcmp(sum->routes[i].route, route) == 0)
            return &sum->routes[i];
    }
    if (sum->routes_number == METRICS_ROUTES)
        return &sum->routes[METRICS_ROUTES - 1];
    to = &sum->routes[sum->routes_number++];
    to->route = sum->routes_number == METRICS_ROUTES ? METRICS_OTHER : route;
    return to;
}

static void
add_route_series(struct metrics_sum *sum, const struct metrics_part *part,
                 const struct metrics_series *series)
{
    const char *name = part->routes[series->route_index];
    struct metrics_sum_series *to = series_for(sum, name, series);
    struct metrics_sum_route *route = route_for(sum, name);
    uint64_t number = metrics_number_of(series->counts);

    sum_counts(to->counts, series->counts, LATENCY_BOUNDS + 1);
    to->sum_ns += series->sum_ns;
    to->max_ns = greater_of(to->max_ns, series->max_ns);
    sum_counts(route->counts, series->counts, LATENCY_BOUNDS + 1);
    route->sum_ns += series->sum_ns;
    route->max_ns = greater_of(route->max_ns, series->max_ns);
    route->number += number;
    route->errors += series->status / 100 == 5 ? number : 0;
    sum->classes[series->status / 100 % METRICS_CLASSES] += number;
    sum->requests += number;
}

/* ---- Pools ---- */

static struct metrics_pool *
pool_for(struct metrics_sum *sum, const char *name)
{
    struct metrics_pool *pool;

    for (unsigned i = 0; i < sum->pools_number; i++) {
        if (strcmp(sum->pools[i].name, name) == 0)
            return &sum->pools[i];
    }
    if (sum->pools_number == METRICS_POOLS)
        return NULL;
    pool = &sum->pools[sum->pools_number++];
    memset(pool, 0, sizeof(*pool));
    memcpy(pool->name, name, sizeof(pool->name));
    return pool;
}

static void
add_pool(struct metrics_sum *sum, const struct metrics_pool *pool)
{
    struct metrics_pool *to = pool_for(sum, pool->name);

    if (to == NULL)
        return;
    to->elements += pool->elements;
    to->states = pool->states > to->states ? pool->states : to->states;
    for (unsigned i = 0; i < pool->states; i++) {
        memcpy(to->state[i].name, pool->state[i].name, sizeof(to->state[i].name));
        to->state[i].number += pool->state[i].number;
        to->state[i].age_ms = (uint32_t)greater_of(to->state[i].age_ms, pool->state[i].age_ms);
    }
}

/* ---- Upstreams ---- */

static struct metrics_upstream *
upstream_for(struct metrics_sum *sum, const struct metrics_upstream *from)
{
    struct metrics_upstream *to;

    for (unsigned i = 0; i < sum->upstreams_number; i++) {
        to = &sum->upstreams[i];
        if (strcmp(to->upstream, from->upstream) == 0 && strcmp(to->address, from->address) == 0)
            return to;
    }
    if (sum->upstreams_number == METRICS_UPSTREAMS)
        return NULL;
    to = &sum->upstreams[sum->upstreams_number++];
    *to = (struct metrics_upstream){0};
    memcpy(to->upstream, from->upstream, sizeof(to->upstream));
    memcpy(to->address, from->address, sizeof(to->address));
    return to;
}

static void
add_upstreams(struct metrics_sum *sum, const struct metrics_part *part, bool is_alive)
{
    const unsigned number = __atomic_load_n(&part->upstreams_number, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < number; i++) {
        const struct metrics_upstream *from = &part->upstreams[i];
        struct metrics_upstream *to = upstream_for(sum, from);

        if (to == NULL)
            return;
        to->requests += from->requests;
        to->failures += from->failures;
        to->retries += from->retries;
        to->active += is_alive ? from->active : 0;
        to->connections += is_alive ? from->connections : 0;
        to->is_down += is_alive ? from->is_down : 0;
    }
}

/* The number of the server's connections in one of these states. */
static uint64_t
number_in(const struct metrics_sum *sum, const char *const *states, unsigned number)
{
    uint64_t found = 0;

    for (unsigned i = 0; i < sum->pools_number; i++) {
        const struct metrics_pool *pool = &sum->pools[i];

        if (strcmp(pool->name, "http-connections") != 0)
            continue;
        for (unsigned state = 0; state < pool->states; state++) {
            for (unsigned n = 0; n < number; n++)
                found +=
                    strcmp(pool->state[state].name, states[n]) == 0 ? pool->state[state].number : 0;
        }
    }
    return found;
}

uint64_t
metrics_requests_of(const struct metrics_part *part)
{
    uint64_t requests = 0;

    for (unsigned bucket = 0; bucket < LATENCY_BUCKETS; bucket++)
        requests += part->durations[bucket];
    return requests;
}

uint64_t
metrics_mean_us(const struct metrics_sum_route *route)
{
    return route->number == 0 ? 0 : route->sum_ns / route->number / 1000;
}

uint64_t
metrics_active(const struct metrics_sum *sum)
{
    static const char *const states[] = {"HEAD", "BODY", "HANDLING", "SENDING"};

    return number_in(sum, states, 4);
}

uint64_t
metrics_connections(const struct metrics_sum *sum)
{
    static const char *const states[] = {"FRESH",    "IDLE",    "HEAD",    "BODY",
                                         "HANDLING", "SENDING", "UPGRADED"};

    return number_in(sum, states, 7);
}

/* ---- Lines ---- */

/* Copy a line of the log. False: there is none, or its process is writing it. */
static bool
copy_line(struct metrics_line *to, const struct metrics_line *line)
{
    uint64_t sequence = __atomic_load_n(&line->sequence, __ATOMIC_ACQUIRE);

    *to = *line;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    to->text[METRICS_LINE_SIZE - 1] = '\0';
    return sequence != 0 && sequence == __atomic_load_n(&line->sequence, __ATOMIC_RELAXED);
}

/* Insert a line into the list of the newest lines, which is ordered by time. */
static void
insert_line(struct metrics_sum *sum, const struct metrics_line *line)
{
    unsigned at = sum->lines_number;

    while (at > 0 && sum->lines[at - 1].unix_ms < line->unix_ms)
        at--;
    if (at == METRICS_SUM_LINES)
        return;
    sum->lines_number += sum->lines_number < METRICS_SUM_LINES;
    for (unsigned i = sum->lines_number - 1; i > at; i--)
        sum->lines[i] = sum->lines[i - 1];
    sum->lines[at] = *line;
}

static void
add_log_lines(struct metrics_sum *sum, const struct metrics_part *part)
{
    struct metrics_line line;

    for (unsigned i = 0; i < METRICS_LINES; i++) {
        uint64_t at = part->lines_number + i;

        if (copy_line(&line, &part->lines[at % METRICS_LINES]))
            insert_line(sum, &line);
    }
}

/* ---- Parts ---- */

static void
add_worker(struct metrics_sum *sum, const struct metrics_part *part)
{
    sum->is_ready |= part->state == METRICS_READY;
    for (unsigned i = 0; i < part->pools_number; i++)
        add_pool(sum, &part->pools[i]);
    if (sum->workers_number < METRICS_SUM_WORKERS)
        sum->workers[sum->workers_number++] = part;
}

static void
add_worker_part(struct metrics_sum *sum, const struct metrics_part *part)
{
    unsigned number = __atomic_load_n(&part->series_number, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < number; i++)
        add_route_series(sum, part, &part->series[i]);
    sum_counts(sum->durations, part->durations, LATENCY_BUCKETS);
    add_log_lines(sum, part);
    sum->bytes += part->bytes;
    sum->broken += part->broken;
    sum->lost_lines += part->lost_lines;
    sum->lua_errors += part->lua_errors;
    sum->cpu_ns += part->cpu_ns;
    if (part->role != METRICS_WORKER)
        return;
    sum->starts += part->starts;
    add_upstreams(sum, part, __atomic_load_n(&part->owner, __ATOMIC_ACQUIRE) != 0);
    if (__atomic_load_n(&part->owner, __ATOMIC_ACQUIRE) != 0)
        add_worker(sum, part);
}

static int
by_p99(const void *a, const void *b)
{
    const struct metrics_sum_route *first = a;
    const struct metrics_sum_route *second = b;
    uint32_t p99 = latency_bounds_quantile_us(first->counts, 0.99);
    uint32_t second_p99 = latency_bounds_quantile_us(second->counts, 0.99);

    if (p99 != second_p99)
        return p99 < second_p99 ? 1 : -1;
    if (first->max_ns != second->max_ns)
        return first->max_ns < second->max_ns ? 1 : -1;
    return strcmp(first->route, second->route);
}

static int
by_place(const void *a, const void *b)
{
    const struct metrics_part *const *first = a;
    const struct metrics_part *const *second = b;

    return (*first)->place != (*second)->place ? (int)(*first)->place - (int)(*second)->place
                                               : (int)((*first)->owner - (*second)->owner);
}

void
metrics_add_up(struct metrics_sum *sum)
{
    const struct metrics_head *head = metrics_look();
    struct timespec now = {0, 0};

    memset(sum, 0, sizeof(*sum));
    clock_gettime(CLOCK_REALTIME, &now);
    sum->now_unix_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    sum->now_ns = sxe_time_ns();
    sum->is_draining = head->draining;
    add_worker_part(sum, &head->parts[0]);
    /* A new worker gets the lowest free slot. So after the first slot that was never used, no slot
     * was ever used. */
    for (unsigned i = 1; i < head->parts_number && head->parts[i].starts > 0; i++)
        add_worker_part(sum, &head->parts[i]);
    sum->is_ready &= !sum->is_draining;
    qsort(sum->routes, sum->routes_number, sizeof(sum->routes[0]), by_p99);
    qsort(sum->workers, sum->workers_number, sizeof(sum->workers[0]), by_place);
}
