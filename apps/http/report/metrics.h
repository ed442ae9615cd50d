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
 * HTTP_METRICS_CONNECTIONS, each with a head of at most HTTP_METRICS_HEAD_MAX bytes and
 * HTTP_METRICS_PATIENCE_NS of time, and no more than HTTP_METRICS_EVENTS system calls a second for
 * all of them; what is more waits for the next second. The text is made at most once a second.
 */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "plan.h"
#include "sxe-http-parse.h"
#include "tally.h"

#define HTTP_METRICS_CONNECTIONS 8
#define HTTP_METRICS_HEAD_MAX    4096
#define HTTP_METRICS_TEXT_MAX    24576
#define HTTP_METRICS_EVENTS      300
#define HTTP_METRICS_PATIENCE_NS (UINT64_C(5) * 1000000000)
#define HTTP_METRICS_FDS         (1 + HTTP_METRICS_CONNECTIONS)
#define HTTP_METRICS_TYPE        "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* What is told. */
struct http_metrics_figures {
    struct http_tally sum; /* of all trials so far; the last part is of now */
    double offered_rate;   /* of the last second */
    double ok_rate;
    unsigned trial; /* from 1; 0: none has begun */
};

/* Returns the length of the text, which fits. */
size_t http_metrics_text(char text[HTTP_METRICS_TEXT_MAX], const struct http_plan *plan,
                         const struct http_metrics_figures *figures);

/* [ADDRESS:]PORT, [IPV6]:PORT, or a path, "@name" being abstract. NULL, or what is wrong with
 * it. */
const char *http_metrics_parse(const char *text, struct sockaddr_storage *address,
                               socklen_t *length);

/* A socket that listens there, or -errno. A socket file that nobody listens at is replaced. */
int http_metrics_listen(const struct sockaddr_storage *address, socklen_t length);

struct http_metrics_connection {
    int fd; /* -1: free */
    bool is_ending;
    uint64_t until_ns;
    size_t got;
    size_t length; /* of the reply; 0: the request is not whole */
    size_t sent;
    char head[HTTP_METRICS_HEAD_MAX];
    char reply[HTTP_METRICS_TEXT_MAX + 512];
};

/* All of it private. */
struct http_metrics {
    const struct http_plan *plan;
    int fd;
    char path[108]; /* to unlink; "" */
    unsigned events;
    size_t length; /* of the text; 0: it is to be made */
    char text[HTTP_METRICS_TEXT_MAX];
    struct http_metrics_connection connections[HTTP_METRICS_CONNECTIONS];
};

/* Listen where the plan says. 0, or -errno; close it either way. */
int http_metrics_open(struct http_metrics *metrics, const struct http_plan *plan);
void http_metrics_close(struct http_metrics *metrics);

/* In a process that is forked: what is another's to close. */
void http_metrics_forget(struct http_metrics *metrics);

/* "http://127.0.0.1:9464/metrics", or the path. */
void http_metrics_name(const struct http_metrics *metrics, char *name, size_t size);

/* Another second: connections that took too long are closed, and the text is made again. */
void http_metrics_tick(struct http_metrics *metrics, uint64_t now_ns);

/* What to wait for, [HTTP_METRICS_FDS] of it; and what to do then. */
void http_metrics_poll(const struct http_metrics *metrics, struct pollfd *fds);
void http_metrics_serve(struct http_metrics *metrics, const struct pollfd *fds, uint64_t now_ns,
                        const struct http_metrics_figures *figures);

#endif
