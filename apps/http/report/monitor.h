/* SPDX-License-Identifier: MIT
 *
 * What: a run for programs, while it runs: a line of JSON a second (--jsonl), and figures that can
 * be asked for (--metrics). Place: the coordinating process, beside the live view (live.h), which
 * is for people. run-parent.c looks once a second at what the workers have counted in shared
 * memory, and waits for the monitor's descriptors with its own.
 *
 * Shape: a look adds the workers up. The figures of a second are the difference between two looks;
 * the figures of the run are the sum of the trials that have ended and the look.
 *
 *     open -> { begin -> look ... look -> end }, once a trial -> finish -> close
 *
 * Limits: what cannot be written costs the lines, not the run: it is said once, and makes the exit
 * status 1. A pipe that has no room for a line does not get it, and the next line says how many are
 * missing.
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

/* 0, with *monitor NULL if the plan asks for none, or an exit status after saying on err why there
 * is none. */
int load_monitor_open(struct load_monitor **monitor, const struct load_plan *plan, FILE *err);

/* All that follow take NULL, and do nothing. */
void load_monitor_close(struct load_monitor *monitor);

/* In a worker that was forked: what is the coordinator's. */
void load_monitor_forget(struct load_monitor *monitor);

/* A trial begins; and ends, when the last look was taken. */
void load_monitor_begin(struct load_monitor *monitor, uint64_t now_ns);
void load_monitor_end(struct load_monitor *monitor);

/* When to look next; UINT64_MAX: never. */
uint64_t load_monitor_due_ns(const struct load_monitor *monitor);

/* The workers now, or none between two trials. */
void load_monitor_look(struct load_monitor *monitor, const struct load_result *const *workers,
                       unsigned number, uint64_t now_ns);

/* Fill in fds [LOAD_MONITOR_FDS] for poll(2); then serve them. */
void load_monitor_poll(const struct load_monitor *monitor, struct pollfd *fds);
void load_monitor_serve(struct load_monitor *monitor, const struct pollfd *fds, uint64_t now_ns);

/* The last line. 0, or -errno: it, or one before it, could not be written. */
int load_monitor_finish(struct load_monitor *monitor, const struct load_run *run);

/* ---- output-jsonl.c ---- */

/* A second, or what there was of it. */
struct load_second {
    double time_s;    /* since 1970 */
    double seconds;   /* how long it was */
    double elapsed_s; /* since the trial's requests began; below 0: they have not */
    unsigned trial;
    const struct load_tally *before;
    const struct load_tally *now;
    const struct load_histogram *response; /* of that second alone */
    uint64_t missing;                      /* lines before it that were not written */
};

/* A line each; 0 or -errno. */
int load_output_second(FILE *out, const struct load_second *second);
int load_output_result_line(FILE *out, const struct load_run *run, uint64_t missing);

#endif
