/* SPDX-License-Identifier: MIT
 *
 * What: runs a command's load: its trials, the search for a rate, the comparison. For each trial
 * worker processes are forked, started together, watched, added up and judged. Place: http.c calls
 * it; the outputs print struct load_run.
 *
 * Shape:
 *     load_run
 *       for each trial        --trials, --until-ci, --aa; --server-cmd is started again for each
 *         fork the workers    worker.h: READY, GO, MARK at the warm-up's end, DONE
 *         is it warm?         --warmup auto: warmup.h
 *         look, show          a timer of the parent: live view from the shared results
 *         add up, check       it is an error if the accounts do not close
 *         judge               verdict.h, threshold.h
 *       sum over the trials   for the percentiles; intervals over the trials for the figures
 *
 * The probe (--probe) is one more worker that sends the load's queries at a low rate, over few
 * sockets. A busy worker also measures how long replies wait until it reads them; the probe, which
 * has nothing else to do, does not. It begins, is marked and ends with the load, and is summed and
 * judged by the same functions, but into a result of its own: the load's accounts, rate and
 * histograms do not include it.
 *
 *     plan --------------------> worker 0 .. N-1 -> trial->result, verdict
 *       '-- load_probe_plan ---> worker 0 of 1 ---> trial->probe, probe_verdict
 *
 * If a worker dies, an error says how, and all counts so far are reported. SIGINT, SIGTERM and
 * SIGHUP end the run, whose counts so far are reported as interrupted. A second signal ends it
 * without waiting for replies, and kills workers that have not ended a second later.
 *
 * Limits: LOAD_TRIALS_MAX trials, LOAD_STEPS_MAX rates that a search tries.
 */
#ifndef LOAD_RUN_H
#define LOAD_RUN_H

#include <stdio.h>

#include "fingerprint.h"
#include "plan.h"
#include "result.h"
#include "stats.h"
#include "threshold.h"
#include "verdict.h"

/* If several apply, the first one in this order is used: interrupted, errors, suspect, untold,
 * threshold. Suspect comes before threshold because the client may have caused the miss. A
 * threshold on errors decides alone about failed queries. */
enum load_exit {
    LOAD_EXIT_OK = 0,
    LOAD_EXIT_ERRORS = 1, /* a query or socket failed; no query was ok; a worker or server died */
    LOAD_EXIT_USAGE = 2,
    LOAD_EXIT_THRESHOLD = 3, /* a threshold was missed, or a regression shown */
    LOAD_EXIT_SUSPECT = 4,
    LOAD_EXIT_UNTOLD = 5, /* --find could not tell; or --until-ci was not reached */
    LOAD_EXIT_INTERRUPTED = 130
};

#define LOAD_STEPS_MAX 64

/* A rate that --find tried. */
struct load_step {
    double rate;     /* queries a second that the step offered */
    double achieved; /* ok replies a second */
    uint64_t p50_ns, p90_ns, p95_ns, p99_ns, p999_ns;
    double figure; /* the value of the condition's figure */
    bool is_told;  /* whether the step could be judged */
    bool holds;    /* whether the condition holds, and nearly all queries got good replies */
};

enum load_figure {
    LOAD_FIGURE_RATE,
    LOAD_FIGURE_SERVICE_P50,
    LOAD_FIGURE_SERVICE_P95,
    LOAD_FIGURE_SERVICE_P99,
    LOAD_FIGURE_RESPONSE_P50,
    LOAD_FIGURE_RESPONSE_P95,
    LOAD_FIGURE_RESPONSE_P99,
    LOAD_FIGURES
};

/* A threshold, judged by the total. */
struct load_judged {
    struct load_threshold threshold;
    double figure;    /* in ns, per second, or a part of 1 */
    bool is_told;     /* whether there were replies, and enough samples */
    bool is_at_least; /* whether the figure is only a lower bound, because queries failed */
    bool holds;
};

/* Counts of the warm-up, which no other figure includes. */
struct load_left_out {
    uint64_t ns; /* length of the warm-up; 0: there was none, or the run ended within it */
    uint64_t queries;
    const char *problem; /* --warmup auto: why the server did not become warm; NULL: it did */
};

struct load_trial {
    struct load_result *result; /* the sum of all workers */
    struct load_left_out left_out;
    struct load_verdict verdict;
    struct load_result *probe; /* the probe's result; NULL: there is no probe */
    struct load_verdict probe_verdict;
    double figures[LOAD_FIGURES]; /* per second, or in ns; NAN: cannot be told */
    unsigned at_least;            /* a bit for each figure that is only a lower bound */
};

/* One of several processes that made the load together: a file of merge, or a rank of MPI. */
struct load_part {
    char name[80]; /* the part's name: "rank 3 on node2", or the path of the file */
    double rate;   /* ok replies a second */
    uint64_t ok;
    uint64_t errors;
    uint64_t opened;   /* how many sockets opened */
    uint64_t clock_ns; /* how exact the measured offset of its clock is; 0: not measured */
    struct load_verdict verdict; /* the verdict over all trials */
};

struct load_comparison; /* compare.h */
struct load_monitor;    /* monitor.h */

#define LOAD_RUN_ID 24 /* bytes for an id and its NUL */

struct load_run {
    const struct load_plan *plan;
    /* the run's id, which differs from those of all other runs; "": a merged run has none */
    char id[LOAD_RUN_ID];
    unsigned ids_number;      /* how many runs are in a merged run */
    char (*ids)[LOAD_RUN_ID]; /* an array of ids_number ids */
    struct load_fingerprint fingerprint;
    char started_at[32]; /* when the run began, in UTC (RFC 3339) */
    uint64_t started_s;  /* the same moment, in seconds since 1970 */
    uint64_t started_ns; /* the same moment by CLOCK_MONOTONIC */
    uint64_t wall_ns;    /* the same moment by CLOCK_REALTIME */
    unsigned parts_number;
    /* an array of parts_number parts; NULL: the run was neither merged nor made by ranks */
    struct load_part *parts;
    unsigned trials_number;
    struct load_trial trials[LOAD_TRIALS_MAX];
    unsigned baseline_number; /* trials of --baseline-cmd; besides `baseline`, only verdict and
                                 status depend on them */
    struct load_trial baseline[LOAD_TRIALS_MAX];
    /* The sum of all trials. Its elapsed_ns and connect_ns are sums, too, so that a count divided
     * by elapsed_ns is a rate. */
    struct load_result *total;
    /* the sum over all trials; `problem` is the first one that a trial has */
    struct load_left_out left_out;
    struct load_verdict verdict;
    struct load_result *probe; /* the probe's total; NULL: there is no probe */
    struct load_verdict probe_verdict;
    /* intervals over the trials; NAN: not every trial can tell the figure */
    struct load_interval figures[LOAD_FIGURES];
    /* the interval of the ratio B/A of --aa; not set without --aa */
    struct load_interval noise[LOAD_FIGURES];
    double figures_from[LOAD_FIGURES]; /* values from this one on are lower bounds; 0: none is */
    /* --find: the steps in the order of their rates. The run's only trial is the step that was
     * found, measured once more. */
    unsigned steps_number;
    struct load_step steps[LOAD_STEPS_MAX];
    double found_rate;  /* the highest rate that held; 0: none did */
    double missed_rate; /* the lowest rate that did not hold; HUGE_VAL: none was seen */
    bool is_untold;     /* whether no rate held, but lower ones, which could not be judged, may */
    struct load_judged judged[LOAD_THRESHOLDS_MAX]; /* the plan's thresholds, in its order */
    unsigned thresholds_missed;
    bool is_interrupted;
    enum load_exit status;
    struct load_monitor *monitor;       /* owned; NULL: there is none */
    struct load_comparison *comparison; /* not owned: where to store a comparison; NULL: nowhere */
};

/* Run the plan. Prints progress on err and, as soon as they are known, the lines of the plan and of
 * the first trial's sockets on out (NULL: not printed). 0, and *run is filled; or an exit status,
 * after a message that says why nothing could be run: then load_run_free is allowed, but not
 * needed. */
int load_run(struct load_run *run, const struct load_plan *plan, FILE *out, FILE *err);
void load_run_free(struct load_run *run);

/* Whether the interval of --until-ci is known, and as narrow as asked for. */
bool load_until_ci_is_reached(const struct load_run *run);

/* How many requests a trial needs to tell a figure: a percentile needs ten beyond it. */
unsigned load_figure_needs(enum load_figure figure);

/* Whether a figure is a result of the server; a rate that the plan gives is not. */
bool load_figure_is_result(const struct load_plan *plan, enum load_figure figure);

/* --selftest: check clocks, timer, histogram, accounts and measured times on this machine. Prints a
 * line for each check; 0, or LOAD_EXIT_ERRORS. */
int load_selftest(FILE *out, FILE *err);

#endif
