/* SPDX-License-Identifier: MIT
 *
 * What: runs the load of a command: its trials, the search for a rate, the comparison of two sides.
 * In each trial worker processes are forked, begin together, and are watched; then their results
 * are added up and judged. Place: perform.c calls it; the outputs print struct load_run.
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
 * The probe (--probe) is one more worker, which sends the load's queries at a low rate, over few
 * sockets. The times that a busy worker measures include the time that replies wait until it reads
 * them; those of the probe do not, because it has nothing else to do. It begins, is marked and ends
 * with the load. The same functions sum and judge it, but its result is separate: the load's
 * counts, rate and histograms do not include it.
 *
 *     plan --------------------> worker 0 .. N-1 -> trial->result, verdict
 *       '-- load_probe_plan ---> worker 0 of 1 ---> trial->probe, probe_verdict
 *
 * If a worker dies, an error says how, and all counts so far are reported. SIGINT, SIGTERM and
 * SIGHUP end the run, and its counts so far are reported as those of an interrupted run. A second
 * signal ends the run without waiting for replies, and kills workers that have not ended a second
 * later.
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

/* If several apply, the exit status is the first one in this order: interrupted, errors, suspect,
 * untold, threshold. Suspect comes before threshold, because the client may be the reason why the
 * threshold was missed. If there is a threshold on errors, it alone decides how many queries may
 * fail. */
enum load_exit {
    LOAD_EXIT_OK = 0,
    /* a query or a socket failed; or no query was answered well; or a worker or the server died */
    LOAD_EXIT_ERRORS = 1,
    LOAD_EXIT_USAGE = 2,
    LOAD_EXIT_THRESHOLD = 3, /* a threshold was missed, or a regression shown */
    LOAD_EXIT_SUSPECT = 4,
    /* --find could not tell whether any rate holds; or --until-ci was not reached */
    LOAD_EXIT_UNTOLD = 5,
    LOAD_EXIT_INTERRUPTED = 130
};

#define LOAD_STEPS_MAX 64

/* A rate that --find tried. */
struct load_step {
    double rate;     /* queries a second that the step offered */
    double achieved; /* good replies a second */
    uint64_t p50_ns, p90_ns, p95_ns, p99_ns, p999_ns;
    double figure; /* the value of the figure that the condition is about */
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

/* A threshold, and the judgement whether the run's total meets it. */
struct load_judged {
    struct load_threshold threshold;
    double figure;    /* the figure's value in ns, per second, or as a part of 1 */
    bool is_told;     /* whether there were replies, and enough samples */
    bool is_at_least; /* whether the figure is only a lower bound, because queries failed */
    bool holds;
};

/* The counts of the warm-up. No other figure includes them. */
struct load_left_out {
    uint64_t ns; /* length of the warm-up; 0: there was none, or the run ended within it */
    uint64_t queries;
    /* --warmup auto: why the server is not warm at the end; NULL: it is warm */
    const char *problem;
};

struct load_trial {
    struct load_result *result; /* the sum of the results of all workers */
    struct load_left_out left_out;
    struct load_verdict verdict;
    struct load_result *probe; /* the probe's result; NULL: there is no probe */
    struct load_verdict probe_verdict;
    /* the figures, per second or in ns; NAN: the trial cannot tell the figure */
    double figures[LOAD_FIGURES];
    unsigned at_least; /* a bit for each figure that is only a lower bound */
};

/* A part of the load: the run of a file of merge, or the worker of a rank of MPI. */
struct load_part {
    char name[80]; /* the part's name: "rank 3 on node2", or the path of the file */
    double rate;   /* good replies a second */
    uint64_t ok;
    uint64_t errors;
    uint64_t opened; /* how many sockets were opened */
    /* by how much the measured offset of the part's clock may be wrong; 0: it was not measured */
    uint64_t clock_ns;
    struct load_verdict verdict; /* the verdict on the part, over all trials */
};

struct load_comparison; /* compare.h */
struct load_monitor;    /* monitor.h */

#define LOAD_RUN_ID 24 /* bytes for an id and its NUL */

struct load_run {
    const struct load_plan *plan;
    /* the run's id, which no other run has; "": a merged run has no id */
    char id[LOAD_RUN_ID];
    unsigned ids_number;      /* how many runs were merged */
    char (*ids)[LOAD_RUN_ID]; /* the ids of the merged runs, an array of ids_number ids */
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
    /* how many trials `baseline` has (--baseline-cmd); of this struct only `baseline`, verdict and
     * status depend on these trials */
    unsigned baseline_number;
    struct load_trial baseline[LOAD_TRIALS_MAX];
    /* The sum of all trials. Its elapsed_ns and connect_ns are sums, too, so that a count divided
     * by elapsed_ns is a rate. */
    struct load_result *total;
    /* the sum over all trials; its `problem` is that of the first trial that has one */
    struct load_left_out left_out;
    struct load_verdict verdict;
    /* the sum of the probe's results over all trials; NULL: there is no probe */
    struct load_result *probe;
    struct load_verdict probe_verdict;
    /* the interval of each figure over the trials; NAN: a trial cannot tell the figure */
    struct load_interval figures[LOAD_FIGURES];
    /* only with --aa: the interval of each figure's ratio B/A */
    struct load_interval noise[LOAD_FIGURES];
    /* the smallest value of each figure that is only a lower bound; 0: no value is only a bound */
    double figures_from[LOAD_FIGURES];
    /* --find: the steps, ordered by their rates. The run's only trial is the last step, which
     * usually measured found_rate once more. */
    unsigned steps_number;
    struct load_step steps[LOAD_STEPS_MAX];
    double found_rate;  /* the highest rate that held; 0: no rate held */
    double missed_rate; /* the lowest rate that did not hold; HUGE_VAL: every rate held */
    /* whether no rate held, but lower rates that could not be judged may hold */
    bool is_untold;
    /* the judgements of the plan's thresholds, in the order of the plan */
    struct load_judged judged[LOAD_THRESHOLDS_MAX];
    unsigned thresholds_missed;
    bool is_interrupted;
    enum load_exit status;
    struct load_monitor *monitor; /* owned; NULL: there is none */
    /* where to store a comparison, not owned; NULL: it is not stored */
    struct load_comparison *comparison;
};

/* Run the plan. Progress is printed on err. If out is not NULL, the lines about the plan and about
 * the sockets of the first trial are printed on it as soon as they are known. Returns 0, and *run
 * is filled in; or an exit status, after a message that says why nothing could be run: then
 * load_run_free is allowed, but not needed. */
int load_run(struct load_run *run, const struct load_plan *plan, FILE *out, FILE *err);
void load_run_free(struct load_run *run);

/* Whether the interval that --until-ci is about is known, and as narrow as the user wants. */
bool load_until_ci_is_reached(const struct load_run *run);

/* How many requests a trial needs to tell a figure: for a percentile, ten must be beyond it. */
unsigned load_figure_needs(enum load_figure figure);

/* Whether a figure is a result of the measurement. The rate is none if the plan gives it. */
bool load_figure_is_result(const struct load_plan *plan, enum load_figure figure);

/* Make the checks of --selftest: clocks, timer, histogram, counts and measured times on this
 * machine. Print a line for each check. 0, or LOAD_EXIT_ERRORS. */
int load_selftest(FILE *out, FILE *err);

#endif
