/* SPDX-License-Identifier: MIT
 *
 * What: the counters of a server, in memory that all its processes share: requests by route, method
 * and status, durations, bytes, the states of pools, Lua's memory, and the last warnings and errors
 * of the log.
 *
 * Place: main maps the memory before it forks. Each process counts in a part of its own: the
 * supervisor in the first one, a worker in that of its slot (sxe-workers.h). The admin process
 * reads all of them.
 *
 * Shape: a part is written only by the process that owns it, without locks; other processes read
 * it. The next worker in a slot continues the counts of the last one, so that sums over all parts
 * never become less. The supervisor marks the parts of workers that have ended.
 *
 *     head: draining, level | part: owner, series, durations, pools, lines | part | part ...
 *
 * Limits: in each process METRICS_ROUTES routes, and METRICS_SERIES combinations of route, method
 * and status; requests of further ones are counted as "_OTHER". METRICS_UPSTREAMS addresses of
 * upstreams. Texts are cut to their sizes. Published values are as old as the last call of
 * metrics_publish: a second at most, unless the loop hangs.
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
#define METRICS_STATES        12 /* the most states that a pool may have */
#define METRICS_NAME_SIZE     32
#define METRICS_UPSTREAMS     64 /* the most addresses of upstreams */
#define METRICS_LINES         16
#define METRICS_LINE_SIZE     240
#define METRICS_UPSTREAM_SIZE 96
#define METRICS_OTHER         "_OTHER"
#define METRICS_OTHER_METHOD  15 /* the method of a series that stands for several */

enum metrics_role { METRICS_SUPERVISOR, METRICS_WORKER };
enum metrics_state { METRICS_STARTING, METRICS_READY, METRICS_LEAVING };

/* The requests of one route, method and status. */
struct metrics_series {
    /* how many durations are up to each bound, and above the bound before it */
    uint64_t counts[LATENCY_BOUNDS + 1];
    uint64_t sum_ns;
    uint64_t max_ns;
    uint16_t route_index; /* the index of the route's pattern in `routes` */
    /* 0: no status was sent. If method is METRICS_OTHER_METHOD, only the class of the status: its
     * first digit x 100. */
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

/* An address of an upstream. The counts include those of earlier owners of the part. */
struct metrics_upstream {
    char upstream[METRICS_UPSTREAM_SIZE];
    char address[METRICS_UPSTREAM_SIZE];
    uint64_t requests;
    uint64_t failures;
    uint64_t retries;
    uint64_t requests_before; /* the counts of earlier owners */
    uint64_t failures_before;
    uint64_t retries_before;
    /* requests in progress; this member and those after it are 0 if the owner has no such
     * address */
    uint32_t active;
    uint32_t connections;
    uint32_t is_down;
};

struct metrics_line {
    /* the number of the line, from 1; 0: the line is being written, or there is none yet */
    uint64_t sequence;
    int64_t unix_ms;
    int level;
    char text[METRICS_LINE_SIZE];
};

/* The counts of one process, and of the processes that had this part before it. All 0: no process
 * has had this part. */
struct metrics_part {
    /* the process whose counts these are; 0: it has ended, or there was none yet; read and written
     * atomically */
    pid_t owner;
    uint32_t role;
    uint32_t place;
    uint32_t state;
    uint32_t starts; /* how many processes have had this part */
    uint32_t routes_number;
    /* how many series there are; increased after the new series was written */
    uint32_t series_number;
    uint32_t pools_number;
    uint32_t upstreams_number; /* increased after the new upstream was written */
    uint64_t since_ns;         /* when the owner got the part, by the clock of sxe_time_ns */
    uint64_t published_ns;     /* when metrics_publish was last called, by the same clock */
    uint64_t bytes;            /* the bytes of the bodies of all replies */
    /* how many requests had a connection that ended before the reply did */
    uint64_t broken;
    uint64_t cpu_ns;
    /* CPU time of earlier owners; lost_before and lua_errors_before are also of earlier owners */
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
    /* the level of the log that an operator set with /log-level; 0: no operator has set one */
    uint32_t level;
    uint32_t parts_number;
    int64_t began_unix_ms;
    uint64_t began_ns;
    struct metrics_part parts[];
};

/* Values of a serving process that are not counted with requests, but read once a second. */
struct metrics_gauges {
    uint64_t lost_lines;
    uint64_t lua_memory; /* bytes of Lua's memory; 0: there is no script */
    uint64_t lua_memory_max;
    uint64_t lua_errors;
};

/* Map the shared memory, for the supervisor and for this many slots of workers. Call it before the
 * first fork. 0 or -errno. If it was not called, the functions below do nothing. */
int metrics_map(unsigned slots);
void metrics_unmap(void);
bool metrics_are_on(void); /* whether this process counts */

/* The shared memory, to read at any time; NULL: it is not mapped. */
const struct metrics_head *metrics_look(void);

/* From now on this process counts: it is the supervisor, or the worker with this place and slot. */
void metrics_begin_supervisor(void);
void metrics_begin_worker(unsigned place, unsigned slot);

/* Call it in a forked process that is not to count, although its parent counts. */
void metrics_stop(void);

/* Called in the supervisor: the worker in this slot has ended. */
void metrics_worker_ended(unsigned slot);

void metrics_set_state(enum metrics_state state); /* set the state of this process */
void metrics_set_draining(void);                  /* remember that the whole server drains */

/* Set the level of the log in all serving processes. They notice it in their next
 * metrics_publish. */
void metrics_ask_for_level(unsigned level);

/* Count a request. Call it from a server's on_reply. */
void metrics_count(const struct sxe_http_request *request, const struct sxe_http_summary *summary);

/* Store the counts of an address of an upstream for the next metrics_publish. Several routes may
 * send requests to the same address, so calls with the same names add up. Addresses beyond
 * METRICS_UPSTREAMS are not shown. */
void metrics_publish_upstream(const char *upstream, const struct sxe_http_upstream_state *state);

/* Write the gauges, the states of pools and the CPU time to this process's part. Call it once a
 * second. */
void metrics_publish(const struct metrics_gauges *gauges);

#endif
