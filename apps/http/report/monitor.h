/* SPDX-License-Identifier: MIT
 *
 * What: reports a running run to other programs: a line of JSON a second (--jsonl), and metrics to
 * scrape (--metrics). Place: the coordinating process, beside the live view (live.h), which is for
 * people. run-parent.c looks once a second at the workers' counts in shared memory, and polls the
 * monitor's descriptors with its own.
 *
 * Shape: a look adds up the workers' counts. The figures of a second are the difference between two
 * looks; the figures of the run are the sum of the trials that have ended and the last look.
 *
 *     open -> { begin -> look ... look -> end }, once a trial -> finish -> close
 *
 * Limits: if a line cannot be written, the lines end but the run goes on; a message says so, and
 * the exit status becomes 1. If a pipe has no room for a line, the line is left out, and the next
 * one says how many are missing.
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

/* Open the outputs. 0, with *monitor NULL if the plan asks for none; or an exit status after a
 * message on err. */
int load_monitor_open(struct load_monitor **monitor, const struct load_plan *plan, FILE *err);

/* This and all functions below do nothing if monitor is NULL. */
void load_monitor_close(struct load_monitor *monitor);

/* In a forked worker: close the descriptors of --metrics. */
void load_monitor_forget(struct load_monitor *monitor);

/* Call these when a trial begins, and after the last look at it. */
void load_monitor_begin(struct load_monitor *monitor, uint64_t now_ns);
void load_monitor_end(struct load_monitor *monitor);

/* When to look next; UINT64_MAX: never. */
uint64_t load_monitor_due_ns(const struct load_monitor *monitor);

/* Look at the workers' results; number is 0 between two trials. */
void load_monitor_look(struct load_monitor *monitor, const struct load_result *const *workers,
                       unsigned number, uint64_t now_ns);

/* Before poll(2), fill in fds[LOAD_MONITOR_FDS]; after poll(2), serve the descriptors that are
 * ready. */
void load_monitor_poll(const struct load_monitor *monitor, struct pollfd *fds);
void load_monitor_serve(struct load_monitor *monitor, const struct pollfd *fds, uint64_t now_ns);

/* Write the last line, the result. 0; -errno: this line or an earlier one could not be written. */
int load_monitor_finish(struct load_monitor *monitor, const struct load_run *run);

/* ---- output-jsonl.c ---- */

/* The figures between two looks: mostly a second, at the end of a trial less. */
struct load_second {
    double time_s;  /* when that second ended, since 1970 */
    double seconds; /* the length of that second */
    /* when it ended, counted from the begin of the trial's requests; below 0: before it */
    double elapsed_s;
    unsigned trial;
    const struct load_tally *before;
    const struct load_tally *now;
    const struct load_histogram *response; /* the times of that second alone */
    uint64_t missing;                      /* how many lines just before it were left out */
};

/* Write a line; 0 or -errno. */
int load_output_second(FILE *out, const struct load_second *second);
int load_output_result_line(FILE *out, const struct load_run *run, uint64_t missing);

#endif
