/* SPDX-License-Identifier: MIT
 *
 * What: the counters of a server, in memory that all its processes share: requests by route, method
 * and status, durations, bytes, the states of pools, Lua's memory, and the last warnings and errors
 * of the log.
 *
 * Place: main maps the memory before it forks. Each process counts in a part of its own: the
 * supervisor in the first one, a worker in that of its slot (worker-place.h). The admin process
 * reads all of them.
 *
 * Shape: only its owner writes a part, without locks; other processes read it. The next worker of a
 * slot continues the counts of the one before it, so that a sum over all parts never becomes less.
 * The supervisor marks the parts of workers that have ended.
 *
 *     head: draining, level | part: owner, series, durations, pools, lines | part | part ...
 *
 * Limits: METRICS_ROUTES routes and METRICS_SERIES combinations of route, method and status in each
 * process; further ones count as "_OTHER". METRICS_UPSTREAMS addresses of upstreams. Texts are cut
 * to their sizes. Published values are as old as the last call of metrics_publish: a second at
 * most, unless the loop hangs.
 */
#ifndef ADMIN_METRICS_H
#define ADMIN_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "latency.h"
#include "sxe-http-proxy.h"
#include "sxe-http.h"

#define METRICS_ROUTES        64
#define METRICS_ROUTE_SIZE    96
#define METRICS_SERIES        128
#define METRICS_POOLS         24
#define METRICS_STATES        12 /* most states of a pool */
#define METRICS_NAME_SIZE     32
#define METRICS_UPSTREAMS     64 /* addresses of upstreams */
#define METRICS_LINES         16
#define METRICS_LINE_SIZE     240
#define METRICS_UPSTREAM_SIZE 96
#define METRICS_OTHER         "_OTHER"
#define METRICS_OTHER_METHOD  15 /* the method of a series that stands for several */

enum metrics_role { METRICS_SUPERVISOR, METRICS_WORKER };
enum metrics_state { METRICS_STARTING, METRICS_READY, METRICS_LEAVING };

/* The requests of one route, method and status. */
struct metrics_series {
    /* how many durations are up to each bound and above the one before */
    uint64_t counts[LATENCY_BOUNDS + 1];
    uint64_t sum_ns;
    uint64_t max_ns;
    uint16_t route_index; /* in `routes` */
    /* 0: none was sent; with METRICS_OTHER_METHOD it is only the class: the first digit x 100 */
    uint16_t status;
    uint8_t method; /* enum sxe_http_method, or METRICS_OTHER_METHOD */
};

struct metrics_pool_state {
    char name[16];
    uint32_t number;
    uint32_t age_ms; /* the age of the oldest element in this state */
};

struct metrics_pool {
    char name[METRICS_NAME_SIZE];
    uint32_t elements;
    uint32_t states;
    struct metrics_pool_state state[METRICS_STATES];
};

/* An address of an upstream. Counts go on where those of earlier owners of the part ended. */
struct metrics_upstream {
    char upstream[METRICS_UPSTREAM_SIZE];
    char address[METRICS_UPSTREAM_SIZE];
    uint64_t requests;
    uint64_t failures;
    uint64_t retries;
    uint64_t requests_before; /* of earlier owners; so are failures_before and retries_before */
    uint64_t failures_before;
    uint64_t retries_before;
    uint32_t active; /* requests; this and what follows is 0 if the owner has no such address */
    uint32_t connections;
    uint32_t is_down;
};

struct metrics_line {
    uint64_t sequence; /* counts up from 1; 0: the line is being written, or there is none */
    int64_t unix_ms;
    int level;
    char text[METRICS_LINE_SIZE];
};

/* The counts of one process at a time. All 0: no process has had this part. */
struct metrics_part {
    pid_t owner; /* atomic; 0: the part has no owner, or its owner has ended */
    uint32_t role;
    uint32_t place;
    uint32_t state;
    uint32_t starts; /* how many processes have had this part */
    uint32_t routes_number;
    uint32_t series_number; /* how many series there are; written after the new series */
    uint32_t pools_number;
    uint32_t upstreams_number; /* written after the upstream */
    uint64_t since_ns;         /* when the owner took the part, by the clock of sxe_time_ns */
    uint64_t published_ns;     /* when metrics_publish was last called, by the same clock */
    uint64_t bytes;            /* bytes of the bodies of all replies */
    uint64_t broken;           /* requests whose connection ended before the reply did */
    uint64_t cpu_ns;
    /* CPU time of earlier owners; lost_before and lua_errors_before are of them, too */
    uint64_t cpu_before_ns;
    uint64_t lost_lines;
    uint64_t lost_before;
    uint64_t lua_memory;
    uint64_t lua_memory_max;
    uint64_t lua_errors;
    uint64_t lua_errors_before;
    uint64_t lines_number;
    uint64_t durations[LATENCY_BUCKETS];
    char routes[METRICS_ROUTES][METRICS_ROUTE_SIZE];
    struct metrics_series series[METRICS_SERIES];
    struct metrics_pool pools[METRICS_POOLS];
    struct metrics_upstream upstreams[METRICS_UPSTREAMS];
    struct metrics_line lines[METRICS_LINES];
};

struct metrics_head {
    uint32_t draining; /* whether the whole server is ending */
    uint32_t level;    /* the level of the log that /log-level asked for; 0: it was not asked */
    uint32_t parts_number;
    int64_t began_unix_ms;
    uint64_t began_ns;
    struct metrics_part parts[];
};

/* Values of the serving process that are read once a second, not counted by request. */
struct metrics_gauges {
    uint64_t lost_lines;
    uint64_t lua_memory; /* bytes of Lua's memory; 0: there is no script */
    uint64_t lua_memory_max;
    uint64_t lua_errors;
};

/* Map the memory, for the supervisor and this many slots of workers. Call before the first fork. 0
 * or -errno. If it was not called, the functions below do nothing. */
int metrics_map(unsigned slots);
void metrics_unmap(void);
bool metrics_are_on(void); /* whether this process counts */

/* The shared memory, to read at any time; NULL: it is not mapped. */
const struct metrics_head *metrics_look(void);

/* This process counts from now on: the supervisor, or the worker with this place and slot. */
void metrics_begin_supervisor(void);
void metrics_begin_worker(unsigned place, unsigned slot);

/* Call in a forked process that does not count, although its parent does. */
void metrics_stop(void);

/* In the supervisor: the worker of this slot has ended. */
void metrics_worker_ended(unsigned slot);

void metrics_set_state(enum metrics_state state); /* set the state of this process */
void metrics_set_draining(void);                  /* the whole server drains from now on */

/* Set the level of the log in all serving processes, at their next metrics_publish. */
void metrics_ask_for_level(unsigned level);

/* Count a request. Call it from a server's on_reply. */
void metrics_count(const struct sxe_http_request *request, const struct sxe_http_summary *summary);

/* Have the next metrics_publish write the counts of this address of an upstream. Calls with the
 * same names add up: several routes may send requests to one address. Addresses beyond
 * METRICS_UPSTREAMS are not shown. */
void metrics_publish_upstream(const char *upstream, const struct sxe_http_upstream_state *state);

/* Write the gauges, the states of pools and the CPU time to this process's part. Call it once a
 * second. */
void metrics_publish(const struct metrics_gauges *gauges);

#endif
