/* SPDX-License-Identifier: MIT
 *
 * What: reports a run to other programs while it runs: with a line of JSON each second (--jsonl),
 * and with metrics to scrape (--metrics). Place: the coordinating process, which also has the live
 * view for people (live.h). run-parent.c calls load_monitor_look once a second, and polls the
 * monitor's descriptors together with its own.
 *
 * Shape: a look adds up the counts that the workers have in shared memory. The figures of a second
 * are the difference between two looks; the figures of the run are the sum of the trials that have
 * ended and the last look.
 *
 *     open -> { begin -> look ... look -> end }, once a trial -> finish -> close
 *
 * Limits: if a line cannot be written, no further lines are written, but the run goes on. A message
 * tells the user, and the exit status becomes 1. If a pipe has no room for a line, the line is left
 * out, and the next one says how many are missing.
 */
#ifndef LOAD_MONITOR_H
#define LOAD_MONITOR_H

#include <poll.h>
#include <stdio.h>

#include "metrics.h"
#include "plan.h"
#include "result.h"

#define LOAD_MONITOR_FDS LOAD_METRICS_FDS

struct load_monitor;
struct load_run;

/* Open the outputs. 0, or an exit status after a message on err. If the plan asks for no such
 * output, *monitor becomes NULL. */
int load_monitor_open(struct load_monitor **monitor, const struct load_plan *plan, FILE *err);

/* This function and all below do nothing if monitor is NULL. */
void load_monitor_close(struct load_monitor *monitor);

/* In a forked worker: close the descriptors of --metrics. */
void load_monitor_forget(struct load_monitor *monitor);

/* Call load_monitor_begin when a trial begins, and load_monitor_end after the last look at the
 * trial. */
void load_monitor_begin(struct load_monitor *monitor, uint64_t now_ns);
void load_monitor_end(struct load_monitor *monitor);

/* When to look next; UINT64_MAX: never. */
uint64_t load_monitor_due_ns(const struct load_monitor *monitor);

/* Look at the workers' results. Between two trials number is 0. */
void load_monitor_look(struct load_monitor *monitor, const struct load_result *const *workers,
                       unsigned number, uint64_t now_ns);

/* load_monitor_poll fills in fds[LOAD_MONITOR_FDS] before poll(2); load_monitor_serve handles the
 * descriptors that are ready after it. */
void load_monitor_poll(const struct load_monitor *monitor, struct pollfd *fds);
void load_monitor_serve(struct load_monitor *monitor, const struct pollfd *fds, uint64_t now_ns);

/* Write the last line, which has the result. 0, or -errno if this line or an earlier one could not
 * be written. */
int load_monitor_finish(struct load_monitor *monitor, const struct load_run *run);

/* ---- output-jsonl.c ---- */

/* The figures of the time between two looks, which is a second, or less at the end of a trial. */
struct load_second {
    double time_s;  /* when this time ended, in seconds since 1970 */
    double seconds; /* the length of this time */
    /* when this time ended, in seconds since the trial's first request; below 0: no request was
     * sent yet */
    double elapsed_s;
    unsigned trial;
    const struct load_tally *before;
    const struct load_tally *now;
    const struct load_histogram *response; /* the response times of only this time */
    /* how many lines were left out between this line and the last one that was written */
    uint64_t missing;
};

/* Write a line; 0 or -errno. */
int load_output_second(FILE *out, const struct load_second *second);
int load_output_result_line(FILE *out, const struct load_run *run, uint64_t missing);

#endif
