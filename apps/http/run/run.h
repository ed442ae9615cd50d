/* SPDX-License-Identifier: MIT
 *
 * What: the whole of a command: its trials, each of them worker processes that are forked, started
 * together, watched, added up and judged; the search for a rate; the comparison. Place: http.c
 * calls it; the outputs print what it leaves.
 *
 * Shape:
 *     load_run
 *       for each trial        --trials, --until-ci, --aa; --server-cmd is started again for each
 *         fork the workers    worker.h: READY, GO, MARK at the warm-up's end, DONE
 *         is it warm?         --warmup auto: warmup.h
 *         look, show          a timer of the parent: live view from the shared results
 *         add up, check       the accounts close, or that is the error
 *         judge               verdict.h, threshold.h
 *       sum over the trials   for the percentiles; intervals over the trials for the figures
 *
 * The probe (--probe) is one more worker, whose plan is the load's but for a low rate and few
 * sockets: the same queries, from a process that has nothing else to do. A loaded client's clock
 * measures also how long replies wait for that client; the probe's does not. It begins, is marked
 * and ends with the load, and is summed and judged by the same functions, into a result of its own:
 * nothing of it is in the load's accounts, rate or histograms.
 *
 *     plan --------------------> worker 0 .. N-1 -> trial->result, verdict
 *       '-- load_probe_plan ---> worker 0 of 1 ---> trial->probe, probe_verdict
 *
 * A worker that dies is an error that says how; what the others counted is reported. SIGINT,
 * SIGTERM and SIGHUP end the run, and what was done is reported as interrupted; a second one ends
 * it without waiting for replies, and kills a worker that is still there a second later.
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

/* Where several are true: interrupted, errors, suspect, could not tell, threshold. A threshold that
 * a suspect client missed may be the client's fault. With a threshold on errors, that decides about
 * those of queries. */
enum load_exit {
    LOAD_EXIT_OK = 0,
    LOAD_EXIT_ERRORS = 1, /* of any query or socket; no query was ok; a worker or the server died */
    LOAD_EXIT_USAGE = 2,
    LOAD_EXIT_THRESHOLD = 3, /* a threshold was missed, or a regression shown */
    LOAD_EXIT_SUSPECT = 4,
    LOAD_EXIT_UNTOLD = 5, /* --find could not tell; --until-ci was not reached */
    LOAD_EXIT_INTERRUPTED = 130
};

#define LOAD_STEPS_MAX 64

/* A rate that --find tried. */
struct load_step {
    double rate;     /* asked for, a second */
    double achieved; /* ok, a second */
    uint64_t p50_ns, p90_ns, p95_ns, p99_ns, p999_ns;
    double figure; /* the one that the condition is about */
    bool is_told;  /* there were enough samples */
    bool holds;    /* and nearly all of the rate was answered well */
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
    double figure;    /* ns, a second, or a part of 1 */
    bool is_told;     /* there were replies, and enough samples */
    bool is_at_least; /* the figure is only a lower bound: queries failed */
    bool holds;
};

/* Counts of the warm-up, which no other figure includes. */
struct load_left_out {
    uint64_t ns; /* 0: there was no warm-up, or all ended within it */
    uint64_t queries;
    const char *problem; /* --warmup auto: why it was not seen to be over; NULL: it was */
};

struct load_trial {
    struct load_result *result; /* all workers added up */
    struct load_left_out left_out;
    struct load_verdict verdict;
    struct load_result *probe; /* NULL: there is none */
    struct load_verdict probe_verdict;
    double figures[LOAD_FIGURES]; /* a second, or ns; NAN: it cannot be told */
    unsigned at_least;            /* a bit each figure that is only a lower bound */
};

/* One of several processes that made the load together, and that merge or a transport added up. */
struct load_part {
    char name[80]; /* "rank 3 on node2", or the file that it came from */
    double rate;   /* ok a second */
    uint64_t ok;
    uint64_t errors;
    uint64_t opened;             /* sockets */
    uint64_t clock_ns;           /* its clock is known so well; 0: not measured */
    struct load_verdict verdict; /* of all trials */
};

struct load_comparison; /* compare.h */
struct load_monitor;    /* monitor.h */

#define LOAD_RUN_ID 24 /* room for one */

struct load_run {
    const struct load_plan *plan;
    char id[LOAD_RUN_ID];     /* tells it from all other runs; "": it has none */
    unsigned ids_number;      /* of a sum: of all runs that are in it */
    char (*ids)[LOAD_RUN_ID]; /* [ids_number] */
    struct load_fingerprint fingerprint;
    char started_at[32]; /* UTC, RFC 3339 */
    uint64_t started_s;  /* the same, since the epoch */
    uint64_t started_ns; /* and by CLOCK_MONOTONIC */
    uint64_t wall_ns;    /* that moment by CLOCK_REALTIME */
    unsigned parts_number;
    struct load_part *parts; /* [parts_number]; NULL: all of it was one process's */
    unsigned trials_number;
    struct load_trial trials[LOAD_TRIALS_MAX];
    unsigned baseline_number; /* of trials with --baseline-cmd: nothing else here is of them but
                                 what makes a run suspect, or ends it */
    struct load_trial baseline[LOAD_TRIALS_MAX];
    struct load_result
        *total; /* the trials added up; its elapsed_ns and connect_ns are theirs added
                                  up, too, so that counts are of that time */
    struct load_left_out left_out; /* added up; problem is the first */
    struct load_verdict verdict;
    struct load_result *probe; /* as total; NULL: there is none */
    struct load_verdict probe_verdict;
    struct load_interval figures[LOAD_FIGURES]; /* over the trials; NAN: one of them has none */
    struct load_interval noise[LOAD_FIGURES];   /* --aa: B/A; is_known false otherwise */
    double figures_from[LOAD_FIGURES]; /* what is no less is only a lower bound; 0: nothing is */
    unsigned steps_number;             /* --find */
    struct load_step
        steps[LOAD_STEPS_MAX]; /* by rate; the only trial is the last one tried: the one
                                               that was found, once more */
    double found_rate;         /* the highest that held; 0: none did */
    double missed_rate; /* the lowest that did not; HUGE_VAL: all did, or could not be told */
    bool is_untold;     /* none held, and lower ones could not be told */
    struct load_judged judged[LOAD_THRESHOLDS_MAX]; /* the plan's thresholds, in its order */
    unsigned thresholds_missed;
    bool is_interrupted;
    enum load_exit status;
    struct load_monitor *monitor;       /* owned; NULL */
    struct load_comparison *comparison; /* not owned: to leave in what was found; NULL: nowhere */
};

/* Do all of it, printing progress on err and, for the first trial, the plan and the sockets line on
 * out (NULL: nowhere) as they are known. 0 with *run filled, or an exit status after saying why
 * nothing could be run; free it then too, or not. */
int load_run(struct load_run *run, const struct load_plan *plan, FILE *out, FILE *err);
void load_run_free(struct load_run *run);

/* Whether the interval that --until-ci asks for is there, and as narrow as it asks. */
bool load_until_ci_is_reached(const struct load_run *run);

/* How many requests it takes to tell a figure of a trial: ten beyond a percentile. */
unsigned load_figure_needs(enum load_figure figure);

/* Whether a figure says something of the server: a rate that the plan gives does not. */
bool load_figure_is_result(const struct load_plan *plan, enum load_figure figure);

/* --selftest: prove on this machine that clocks, histogram, accounts and the stall case hold.
 * Prints a line each; 0, or LOAD_EXIT_ERRORS. */
int load_selftest(FILE *out, FILE *err);

#endif
