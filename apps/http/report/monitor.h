/* SPDX-License-Identifier: MIT
 *
 * What: a run for programs, while it runs: a line of JSON a second (--jsonl), and figures that can
 * be asked for (--metrics). Place: the coordinating process, beside the live view (live.h), which
 * is for people. run-parent.c looks once a second at what the workers have counted in shared
 * memory, and waits for the monitor's descriptors with its own.
 *
 * Shape: a look adds the workers up. What is told of a second is the difference between two looks;
 * what is told of the run is the sum over the trials that are over, and the look.
 *
 *     open -> { begin -> look ... look -> end }, once a trial -> finish -> close
 *
 * Limits: what cannot be written costs the lines, not the run: it is said once, and makes the exit
 * status 1. A pipe that has no room for a line does not get it, and the next line says how many are
 * missing.
 */
#ifndef HTTP_MONITOR_H
#define HTTP_MONITOR_H

#include <poll.h>
#include <stdio.h>

#include "metrics.h"
#include "plan.h"
#include "result.h"

#define HTTP_MONITOR_FDS HTTP_METRICS_FDS

struct http_monitor;
struct http_run;

/* 0, with *monitor NULL if the plan asks for none, or an exit status after saying on err why there
 * is none. */
int http_monitor_open(struct http_monitor **monitor, const struct http_plan *plan, FILE *err);

/* All that follow take NULL, and do nothing. */
void http_monitor_close(struct http_monitor *monitor);

/* In a worker that was forked: what is the coordinator's. */
void http_monitor_forget(struct http_monitor *monitor);

/* A trial begins; and ends, when the last look was taken. */
void http_monitor_begin(struct http_monitor *monitor, uint64_t now_ns);
void http_monitor_end(struct http_monitor *monitor);

/* When to look next; UINT64_MAX: never. */
uint64_t http_monitor_due_ns(const struct http_monitor *monitor);

/* The workers now, or none between two trials. */
void http_monitor_look(struct http_monitor *monitor, const struct http_result *const *workers,
                       unsigned number, uint64_t now_ns);

/* What to wait for, [HTTP_MONITOR_FDS]; and what came of it. */
void http_monitor_poll(const struct http_monitor *monitor, struct pollfd *fds);
void http_monitor_serve(struct http_monitor *monitor, const struct pollfd *fds, uint64_t now_ns);

/* The last line. 0, or -errno: it, or one before it, could not be written. */
int http_monitor_finish(struct http_monitor *monitor, const struct http_run *run);

/* ---- output-jsonl.c ---- */

/* A second, or what there was of it. */
struct http_second {
    double time_s;    /* since 1970 */
    double seconds;   /* how long it was */
    double elapsed_s; /* since the trial's requests began; below 0: they have not */
    unsigned trial;
    const struct http_tally *before;
    const struct http_tally *now;
    const struct http_histogram *response; /* of that second alone */
    uint64_t missing;                      /* lines before it that were not written */
};

/* A line each; 0 or -errno. */
int http_output_second(FILE *out, const struct http_second *second);
int http_output_result_line(FILE *out, const struct http_run *run, uint64_t missing);

#endif
