/* SPDX-License-Identifier: MIT
 *
 * What: the figures of a run while it runs, in OpenMetrics' text format over HTTP, for Prometheus
 * and what reads the same. Place: monitor.c, in the coordinating process: no worker knows of it.
 *
 * Shape: a connection is read until its request is whole, gets one reply, and is closed when the
 * peer has closed it, too.
 *
 *     FREE -> READING -> WRITING -> ENDING -> FREE
 *
 * Limits: whoever is at the other end costs the run nothing that matters: there are at most
 * LOAD_METRICS_CONNECTIONS, each with a head of at most LOAD_METRICS_HEAD_MAX bytes and
 * LOAD_METRICS_PATIENCE_NS of time, and no more than LOAD_METRICS_EVENTS system calls a second for
 * all of them; what is more waits for the next second. The text is made at most once a second.
 */
#ifndef LOAD_METRICS_H
#define LOAD_METRICS_H

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "plan.h"
#include "sxe-http-parse.h"
#include "tally.h"

#define LOAD_METRICS_CONNECTIONS 8
#define LOAD_METRICS_HEAD_MAX    4096
#define LOAD_METRICS_TEXT_MAX    24576
#define LOAD_METRICS_EVENTS      300
#define LOAD_METRICS_PATIENCE_NS (UINT64_C(5) * 1000000000)
#define LOAD_METRICS_FDS         (1 + LOAD_METRICS_CONNECTIONS)
#define LOAD_METRICS_TYPE        "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* The figures that a scrape shows. */
struct load_metrics_figures {
    struct load_tally sum; /* of all trials so far; the last part is of now */
    double offered_rate;   /* of the last second */
    double ok_rate;
    unsigned trial; /* from 1; 0: none has begun */
};

/* Returns the length of the text, which fits. */
size_t load_metrics_text(char text[LOAD_METRICS_TEXT_MAX], const struct load_plan *plan,
                         const struct load_metrics_figures *figures);

/* [ADDRESS:]PORT, [IPV6]:PORT, or a path, "@name" being abstract. NULL, or what is wrong with
 * it. */
const char *load_metrics_parse(const char *text, struct sockaddr_storage *address,
                               socklen_t *length);

/* A socket that listens there, or -errno. A socket file that nobody listens at is replaced. */
int load_metrics_listen(const struct sockaddr_storage *address, socklen_t length);

struct load_metrics_connection {
    int fd; /* -1: free */
    bool is_ending;
    uint64_t until_ns;
    size_t got;
    size_t length; /* of the reply; 0: the request is not whole */
    size_t sent;
    char head[LOAD_METRICS_HEAD_MAX];
    char reply[LOAD_METRICS_TEXT_MAX + 512];
};

/* All of it private. */
struct load_metrics {
    const struct load_plan *plan;
    int fd;
    char path[108]; /* to unlink; "" */
    unsigned events;
    size_t length; /* of the text; 0: it is to be made */
    char text[LOAD_METRICS_TEXT_MAX];
    struct load_metrics_connection connections[LOAD_METRICS_CONNECTIONS];
};

/* Listen where the plan says. 0, or -errno; close it either way. */
int load_metrics_open(struct load_metrics *metrics, const struct load_plan *plan);
void load_metrics_close(struct load_metrics *metrics);

/* In a process that is forked: what is another's to close. */
void load_metrics_forget(struct load_metrics *metrics);

/* "http://127.0.0.1:9464/metrics", or the path. */
void load_metrics_name(const struct load_metrics *metrics, char *name, size_t size);

/* Another second: connections that took too long are closed, and the text is made again. */
void load_metrics_tick(struct load_metrics *metrics, uint64_t now_ns);

/* Fill in fds [LOAD_METRICS_FDS] for poll(2); then serve them. */
void load_metrics_poll(const struct load_metrics *metrics, struct pollfd *fds);
void load_metrics_serve(struct load_metrics *metrics, const struct pollfd *fds, uint64_t now_ns,
                        const struct load_metrics_figures *figures);

#endif
