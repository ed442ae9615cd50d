/* SPDX-License-Identifier: MIT
 *
 * The shared memory of admin-metrics.h: its parts, and how a process writes its own part.
 */
#include "admin-metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sxe-log.h"
#include "sxe-pool-shared.h"

/* the number of entries of the cache, which finds the series of a route, method and status */
#define CACHED 256

#define QUICK_US 1000

/* Where a duration is counted: its bucket of the histogram, and its bound. */
struct bin {
    uint16_t bucket;
    uint16_t bound;
};

struct cached {
    /* the string of the router; the pattern of a route always has the same address */
    const char *pattern;
    struct metrics_series *series;
    uint32_t key; /* the method and the status */
};

static struct {
    struct metrics_head *head; /* the shared memory; NULL: nothing is counted */
    /* the number of parts that metrics_map got; the number in the head is not used, because any
     * process could overwrite it */
    unsigned parts_number;
    struct metrics_part *part; /* the part of this process; NULL: it has none */
    /* the value that head->level had when this process looked last */
    uint32_t level;
    struct bin quick[QUICK_US + 1]; /* the bins of durations up to QUICK_US, rounded up to us */
    struct cached cache[CACHED];
    struct sxe_http_upstream_state
        upstreams[METRICS_UPSTREAMS]; /* the sums of the counts that will be published next */
} metrics;

static size_t
size_of_metrics(unsigned parts)
{
    return sizeof(struct metrics_head) + parts * sizeof(struct metrics_part);
}

static int64_t
unix_ms(void)
{
    struct timespec now = {0, 0};

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct bin
bin_of(uint64_t ns)
{
    unsigned bucket = latency_bucket(ns);

    return (struct bin){.bucket = (uint16_t)bucket,
                        .bound = (uint16_t)latency_bound_of_bucket(bucket)};
}

int
metrics_map(unsigned slots)
{
    struct metrics_head *head = mmap(NULL, size_of_metrics(slots + 1), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (head == MAP_FAILED)
        return -errno;
    head->parts_number = slots + 1;
    head->began_ns = sxe_time_ns();
    head->began_unix_ms = unix_ms();
    metrics.head = head;
    metrics.parts_number = slots + 1;
    for (unsigned us = 0; us <= QUICK_US; us++)
        metrics.quick[us] = bin_of(us * UINT64_C(1000));
    return 0;
}

void
metrics_unmap(void)
{
    if (metrics.head != NULL)
        munmap(metrics.head, size_of_metrics(metrics.parts_number));
    memset(&metrics, 0, sizeof(metrics));
    sxe_log_also_to_function(NULL, NULL);
}

bool
metrics_are_on(void)
{
    return metrics.part != NULL;
}

const struct metrics_head *
metrics_look(void)
{
    return metrics.head;
}

/* ---- Lines of the log ---- */

/* Keep a warning or an error. While the line is written, its sequence is 0, so that readers skip
 * it. */
static void
keep_line(void *user, int level, const char *line, size_t length)
{
    struct metrics_part *part = metrics.part;
    struct metrics_line *to;

    SXE_UNUSED_PARAMETER(user);
    if (part == NULL || level > SXE_LOG_WARNING)
        return;
    to = &part->lines[part->lines_number % METRICS_LINES];
    __atomic_store_n(&to->sequence, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    to->unix_ms = unix_ms();
    to->level = level;
    length = length < METRICS_LINE_SIZE ? length : METRICS_LINE_SIZE;
    memcpy(to->text, line, length);
    to->text[length - 1] = '\0'; /* this byte was the end of the line */
    part->lines_number++;
    __atomic_store_n(&to->sequence, part->lines_number, __ATOMIC_RELEASE);
}

/* ---- Parts ---- */

/* Begin the part of a worker, which has no connections yet. */
static void
begin_upstreams(struct metrics_part *part)
{
    for (unsigned i = 0; i < part->upstreams_number; i++) {
        struct metrics_upstream *upstream = &part->upstreams[i];

        upstream->requests_before = upstream->requests;
        upstream->failures_before = upstream->failures;
        upstream->retries_before = upstream->retries;
        upstream->active = upstream->connections = upstream->is_down = 0;
    }
}

static void
begin_part(unsigned index, enum metrics_role role, unsigned place)
{
    struct metrics_part *part;

    metrics_stop();
    if (metrics.head == NULL)
        return;
    part = &metrics.head->parts[index];
    part->role = role;
    part->place = place;
    part->state = METRICS_STARTING;
    part->starts++;
    part->pools_number = 0;
    part->since_ns = part->published_ns = sxe_time_ns();
    part->cpu_before_ns = part->cpu_ns;
    part->lost_before = part->lost_lines;
    part->lua_errors_before = part->lua_errors;
    part->lua_memory = 0;
    begin_upstreams(part);
    __atomic_store_n(&part->owner, getpid(), __ATOMIC_RELEASE);
    metrics.part = part;
    sxe_log_also_to_function(keep_line, NULL);
}

void
metrics_begin_supervisor(void)
{
    begin_part(0, METRICS_SUPERVISOR, 0);
}

void
metrics_begin_worker(unsigned place, unsigned slot)
{
    begin_part(slot + 1, METRICS_WORKER, place);
}

void
metrics_stop(void)
{
    metrics.part = NULL;
    memset(metrics.cache, 0, sizeof(metrics.cache));
    sxe_log_also_to_function(NULL, NULL);
}

void
metrics_worker_ended(unsigned slot)
{
    if (metrics.head != NULL)
        __atomic_store_n(&metrics.head->parts[slot + 1].owner, 0, __ATOMIC_RELEASE);
}

void
metrics_set_state(enum metrics_state state)
{
    if (metrics.part != NULL)
        metrics.part->state = state;
}

void
metrics_set_draining(void)
{
    if (metrics.head != NULL)
        metrics.head->draining = true;
}

void
metrics_ask_for_level(unsigned level)
{
    metrics.head->level = level;
}

/* ---- Requests ---- */

/* Find the index of a route, or add the route. Index 0 has an empty name, and stands for requests
 * that matched no pattern. */
static unsigned
index_of_route(struct metrics_part *part, const char *pattern)
{
    char name[METRICS_ROUTE_SIZE];
    unsigned i = 0;

    if (part->routes_number == 0)
        part->routes_number = 1;
    snprintf(name, sizeof(name), "%s", pattern == NULL ? "" : pattern);
    while (i < part->routes_number && i < METRICS_ROUTES - 1 && strcmp(part->routes[i], name) != 0)
        i++;
    if (i < part->routes_number)
        return i;
    snprintf(part->routes[i], METRICS_ROUTE_SIZE, "%s",
             i == METRICS_ROUTES - 1 ? METRICS_OTHER : name);
    part->routes_number++;
    return i;
}

static struct metrics_series *
find_series(struct metrics_part *part, unsigned route, unsigned method, unsigned status)
{
    for (unsigned i = 0; i < part->series_number; i++) {
        struct metrics_series *series = &part->series[i];

        if (series->route_index == route && series->method == method && series->status == status)
            return series;
    }
    return NULL;
}

/* The classes of a status: none, 1xx .. 5xx. Each class has a reserved series, which counts
 * requests if there is no room for a series of their own. */
#define CLASSES 6

static struct metrics_series *
series_of(struct metrics_part *part, const char *pattern, unsigned method, unsigned status)
{
    unsigned route = index_of_route(part, pattern);
    struct metrics_series *series = find_series(part, route, method, status);

    if (series != NULL)
        return series;
    if (part->series_number >= METRICS_SERIES - CLASSES) {
        route = index_of_route(part, METRICS_OTHER);
        method = METRICS_OTHER_METHOD;
        status = status / 100 % CLASSES * 100;
        series = find_series(part, route, method, status);
        if (series != NULL)
            return series;
    }
    series = &part->series[part->series_number];
    series->route_index = (uint16_t)route;
    series->method = (uint8_t)method;
    series->status = (uint16_t)status;
    __atomic_store_n(&part->series_number, part->series_number + 1, __ATOMIC_RELEASE);
    return series;
}

static inline struct cached *
place_in_cache(const char *pattern, uint32_t key)
{
    uint64_t hash = ((uintptr_t)pattern + key) * UINT64_C(0x9e3779b97f4a7c15);

    return &metrics.cache[hash >> 56];
}

/* Fill in a cache entry that was empty, or that belongs to another series. */
static __attribute__((cold, noinline)) struct cached *
fill_cache(struct cached *cached, const char *pattern, uint32_t key)
{
    cached->series = series_of(metrics.part, pattern, key >> 16, key & UINT16_MAX);
    cached->pattern = pattern;
    cached->key = key;
    return cached;
}

void
metrics_count(const struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    struct metrics_part *part = metrics.part;
    const char *pattern = request->match.pattern;
    uint32_t key = (uint32_t)request->head.method << 16 | summary->status;
    struct cached *cached = place_in_cache(pattern, key);
    struct metrics_series *series = cached->series;
    struct bin bin;
    uint64_t ns;

    if (part == NULL)
        return;
    if (SXE_UNLIKELY(series == NULL || cached->pattern != pattern || cached->key != key))
        series = fill_cache(cached, pattern, key)->series;
    /* sxe_time_turn_ns does not change while a handler computes, sxe_time_ns does. */
    ns = summary->duration_ns + (sxe_time_ns() - sxe_time_turn_ns());
    bin = SXE_LIKELY(ns <= QUICK_US * 1000) ? metrics.quick[(ns + 999) / 1000] : bin_of(ns);
    series->counts[bin.bound]++;
    series->sum_ns += ns;
    if (SXE_UNLIKELY(ns > series->max_ns))
        series->max_ns = ns;
    part->durations[bin.bucket]++;
    part->bytes += summary->body_length;
    part->broken += summary->result < 0;
}

/* ---- Values that are not counted by request ---- */

static void
publish_state(struct metrics_pool_state *to, const void *array, unsigned state, uint64_t now_ns)
{
    SXE_TIME oldest_ns = sxe_pool_get_oldest_time(array, state);

    snprintf(to->name, sizeof(to->name), "%s", sxe_pool_state_to_string(array, state));
    to->number = sxe_pool_get_count(array, state);
    to->age_ms =
        oldest_ns == 0 || oldest_ns > now_ns ? 0 : (uint32_t)((now_ns - oldest_ns) / SXE_NS_PER_MS);
}

static void
publish_pool(void *user, const void *array)
{
    struct metrics_part *part = metrics.part;
    unsigned *number = user;
    struct metrics_pool *pool;
    unsigned states = sxe_pool_get_states(array);

    if (*number == METRICS_POOLS)
        return;
    pool = &part->pools[(*number)++];
    states = states < METRICS_STATES ? states : METRICS_STATES;
    snprintf(pool->name, sizeof(pool->name), "%s", sxe_pool_get_name(array));
    pool->elements = sxe_pool_get_number(array);
    for (unsigned i = 0; i < states; i++)
        publish_state(&pool->state[i], array, i, sxe_time_turn_ns());
    pool->states = states;
}

/* Find the entry of an address, or add it. The names are compared as they are stored, which may be
 * cut. NULL: there is no room. */
static struct metrics_upstream *
entry_of_upstream(struct metrics_part *part, const char *upstream, const char *address)
{
    struct metrics_upstream *entry = part->upstreams;
    const struct metrics_upstream *end = entry + part->upstreams_number;
    const size_t most = METRICS_UPSTREAM_SIZE - 1;

    while (entry < end && (strncmp(entry->upstream, upstream, most) != 0 ||
                           strncmp(entry->address, address, most) != 0))
        entry++;
    if (entry < end)
        return entry;
    if (part->upstreams_number == METRICS_UPSTREAMS)
        return NULL;
    snprintf(entry->upstream, sizeof(entry->upstream), "%s", upstream);
    snprintf(entry->address, sizeof(entry->address), "%s", address);
    __atomic_store_n(&part->upstreams_number, part->upstreams_number + 1, __ATOMIC_RELEASE);
    return entry;
}

void
metrics_publish_upstream(const char *upstream, const struct sxe_http_upstream_state *state)
{
    const struct metrics_upstream *entry =
        metrics.part == NULL ? NULL : entry_of_upstream(metrics.part, upstream, state->name);
    struct sxe_http_upstream_state *now;

    if (entry == NULL)
        return;
    now = &metrics.upstreams[entry - metrics.part->upstreams];
    now->requests += state->requests;
    now->failures += state->failures;
    now->retries += state->retries;
    now->under_way += state->under_way;
    now->connections += state->connections;
    now->is_down |= state->is_down;
}

/* Write the sums of metrics_publish_upstream to this process's part, and set them to 0. */
static void
publish_upstreams(struct metrics_part *part)
{
    for (unsigned i = 0; i < part->upstreams_number; i++) {
        const struct sxe_http_upstream_state *now = &metrics.upstreams[i];
        struct metrics_upstream *entry = &part->upstreams[i];

        entry->requests = entry->requests_before + now->requests;
        entry->failures = entry->failures_before + now->failures;
        entry->retries = entry->retries_before + now->retries;
        entry->active = now->under_way;
        entry->connections = now->connections;
        entry->is_down = now->is_down;
    }
    memset(metrics.upstreams, 0, sizeof(metrics.upstreams));
}

static uint64_t
process_cpu_ns(void)
{
    struct timespec used = {0, 0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SXE_NS_PER_SECOND + (uint64_t)used.tv_nsec;
}

static void
follow_level(void)
{
    uint32_t level = metrics.head->level;

    if (level == metrics.level)
        return;
    metrics.level = level;
    sxe_log_set_level((int)level);
}

void
metrics_publish(const struct metrics_gauges *gauges)
{
    struct metrics_part *part = metrics.part;
    unsigned number = 0;

    if (part == NULL)
        return;
    sxe_pool_each(publish_pool, &number);
    part->pools_number = number;
    publish_upstreams(part);
    part->cpu_ns = part->cpu_before_ns + process_cpu_ns();
    part->lost_lines = part->lost_before + gauges->lost_lines;
    part->lua_memory = gauges->lua_memory;
    part->lua_memory_max = gauges->lua_memory_max;
    part->lua_errors = part->lua_errors_before + gauges->lua_errors;
    part->published_ns = sxe_time_turn_ns();
    follow_level();
}
