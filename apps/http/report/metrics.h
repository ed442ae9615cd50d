/* SPDX-License-Identifier: MIT
 *
 * What: an HTTP server that shows the figures of a run while it runs, in the text format of
 * OpenMetrics, for Prometheus and compatible programs. Place: monitor.c uses it, in the
 * coordinating process; workers do not.
 *
 * Shape: a connection is read until its request is complete, gets one reply, and is closed after
 * the peer has closed its end.
 *
 *     FREE -> READING -> WRITING -> ENDING -> FREE
 *
 * Limits: clients cannot slow down the run: there are at most LOAD_METRICS_CONNECTIONS, each with a
 * head of at most LOAD_METRICS_HEAD_MAX bytes and LOAD_METRICS_PATIENCE_NS of time. In each second
 * at most LOAD_METRICS_EVENTS events of all connections are handled; further events wait for the
 * next second. The text is made at most once a second.
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
    /* the sum over all trials so far; but the members at its end, about the present state, are
     * those of the present trial */
    struct load_tally sum;
    double offered_rate; /* how many requests a second were offered in the last second */
    double ok_rate;
    unsigned trial; /* the number of the present trial, from 1; 0: none has begun */
};

/* Write the figures as text. Returns the length of the text, which always fits. */
size_t load_metrics_text(char text[LOAD_METRICS_TEXT_MAX], const struct load_plan *plan,
                         const struct load_metrics_figures *figures);

/* Parse [ADDRESS:]PORT, [IPV6]:PORT, or the path of a unix socket ("@name" is abstract). NULL, or
 * what is wrong with the text. */
const char *load_metrics_parse(const char *text, struct sockaddr_storage *address,
                               socklen_t *length);

/* Open a socket that listens at the address. If the address is the path of a stale socket file,
 * replace the file. Returns the socket, or -errno. */
int load_metrics_listen(const struct sockaddr_storage *address, socklen_t length);

struct load_metrics_connection {
    int fd;            /* the socket; -1: the connection is free */
    bool is_ending;    /* whether the reply was sent */
    uint64_t until_ns; /* when to close the connection at the latest */
    size_t got;        /* how many bytes of the head have come */
    size_t length;     /* the length of the reply; 0: the request is not complete yet */
    size_t sent;       /* how many bytes of the reply were sent */
    char head[LOAD_METRICS_HEAD_MAX];
    char reply[LOAD_METRICS_TEXT_MAX + 512];
};

/* All members are private. */
struct load_metrics {
    const struct load_plan *plan;
    int fd;          /* the listening socket */
    char path[108];  /* the path of a socket file to unlink at the end; "": there is none */
    unsigned events; /* how many events may still be handled in this second */
    size_t length;   /* the length of `text`; 0: make the text for the next scrape */
    char text[LOAD_METRICS_TEXT_MAX];
    struct load_metrics_connection connections[LOAD_METRICS_CONNECTIONS];
};

/* Listen at the plan's address. 0, or -errno; call load_metrics_close in either case. */
int load_metrics_open(struct load_metrics *metrics, const struct load_plan *plan);
void load_metrics_close(struct load_metrics *metrics);

/* In a forked worker: close the inherited descriptors, but do not unlink the socket file. */
void load_metrics_forget(struct load_metrics *metrics);

/* Write the URL of the metrics, such as "http://127.0.0.1:9464/metrics", or the path of the unix
 * socket. */
void load_metrics_name(const struct load_metrics *metrics, char *name, size_t size);

/* Call it once a second. It closes connections that take too long, and lets the next scrape get a
 * new text. */
void load_metrics_tick(struct load_metrics *metrics, uint64_t now_ns);

/* load_metrics_poll fills in fds[LOAD_METRICS_FDS] before poll(2); load_metrics_serve handles the
 * descriptors that are ready after it. */
void load_metrics_poll(const struct load_metrics *metrics, struct pollfd *fds);
void load_metrics_serve(struct load_metrics *metrics, const struct pollfd *fds, uint64_t now_ns,
                        const struct load_metrics_figures *figures);

#endif
