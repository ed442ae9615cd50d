/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the coordinator share. Place: run*.c.
 *
 * Shape: the parent does one thing after the other; what happens next stands in the next line. It
 * waits in http_parent_turn, where signals, messages and the live view are taken care of meanwhile;
 * so an interrupt needs no branch anywhere: it tells the workers to stop, and then every wait comes
 * to its end. Two waits are elsewhere, and short: for a connect to the server that is started, and
 * for processes that were killed.
 *
 *     run.c           the trials one after the other, and what they say together
 *     run-trial.c     a trial: fork, READY, GO, measure, add up, judge
 *     run-warmup.c    what of a trial is left out
 *     run-find.c      --find: measures many rates in one trial
 *     run-search.c    which rate comes next                                         pure
 *     run-step.c      whether a rate holds, and when that can be told               pure
 *     run-workers.c   the processes of a trial: fork, tell, hear, reap
 *     run-probe.c     what the probe is asked to do                                 pure
 *     run-sides.c     which side a trial is of, its seed; which figures are results pure
 *     run-server.c    the server of --server-cmd
 *     run-parent.c    signals, poll(2), looks
 *     run-account.c   shared memory; accounts of a worker that died                 pure
 *     run-status.c    thresholds and the exit status                                pure
 */
#ifndef HTTP_RUN_PRIVATE_H
#define HTTP_RUN_PRIVATE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "live.h"
#include "monitor.h"
#include "pressure.h"
#include "run.h"
#include "sxe-time.h"
#include "sxe-util.h"
#include "threshold.h"
#include "worker.h"

#define HTTP_NEVER         UINT64_MAX
#define HTTP_FOREVER_NS    (UINT64_C(30) * 86400 * SXE_NS_PER_SECOND)
#define HTTP_PROCESSES_MAX (HTTP_WORKERS_MAX + 1)

/* One worker, or the probe, as the parent sees it. */
struct http_process {
    pid_t pid;     /* 0: it has ended, and was waited for */
    int control;   /* -1: closed */
    unsigned said; /* a bit each enum http_message_type; MARKED only since it was last asked */
    struct http_result *result; /* shared with it */
    struct http_result *mark;   /* the same */
    bool has_died;              /* its result is what it had counted so far */
};

struct http_parent {
    const struct http_plan *plan;
    struct http_run *run;
    FILE *out; /* NULL: nowhere */
    FILE *err;
    struct http_live *live;       /* NULL: not shown now */
    struct http_monitor *monitor; /* the run's; NULL */
    struct http_result *sum;      /* of the workers, for the live view */
    uint64_t look_ns;             /* the next one; HTTP_NEVER */
    int signals;                  /* signalfd: SIGINT, SIGTERM, SIGHUP, SIGCHLD */
    sigset_t mask_before;
    int awake; /* keeps the CPUs from sleeping deeply; -1 */
    unsigned interrupts;
    uint64_t kill_ns;       /* when workers that did not end are killed; HTTP_NEVER */
    bool has_failed;        /* said why; the exit status is 1 */
    bool has_begun;         /* the load of this trial */
    bool is_stopping;       /* the workers of this trial were told to stop */
    uint64_t late_ns;       /* so long after --start-at this trial began; 0 */
    uint64_t end_ns;        /* when the load ends by its duration; HTTP_NEVER: it has none */
    pid_t server;           /* leads its process group; 0: none */
    unsigned number;        /* of processes */
    unsigned load;          /* the first so many of them are the load's; after them, the probe */
    struct http_plan probe; /* its plan, if there is one */
    struct http_result *shared; /* [2 * number]: each one's result and mark */
    struct http_process processes[HTTP_PROCESSES_MAX];

    /* When what is measured began. */
    struct http_pressure pressure;
};

/* ---- run-parent.c ---- */

/* How long workers may take to end after a second interrupt, ns; shorter in tests. */
extern uint64_t http_parent_grace_ns;

/* 0 or -errno. Signals are taken until close, which gives the mask back. */
int http_parent_open(struct http_parent *parent, const struct http_plan *plan, FILE *out,
                     FILE *err);
void http_parent_close(struct http_parent *parent);

/* Wait until something happens, but not longer than until_ns, and take care of it. */
void http_parent_turn(struct http_parent *parent, uint64_t until_ns);

/* Begin, or end, to show what the workers do. */
void http_parent_show(struct http_parent *parent, bool is_shown);

/* Once more what the workers have counted, which are about to end or have, for the monitor. */
void http_parent_monitor(struct http_parent *parent);

/* "sxe-http: ..." on err; the run has failed, and stops. */
void http_parent_fail(struct http_parent *parent, const char *format, ...) SXE_PRINTF(2, 3);

/* "exited with status 3", "was ended by signal 9 (Killed)"; a static text. */
const char *http_wait_text(int status);

/* ---- run-workers.c ---- */

/* What a worker process does: http_worker_run, but in tests. */
extern int (*http_workers_work)(const struct http_worker *worker);

/* Fork the plan's workers, and its probe. 0, or -1 after saying why; stop and free them either
 * way. */
int http_workers_start(struct http_parent *parent);

/* To all that have not said DONE; of MARK and RATE MARKED is awaited again. */
void http_workers_tell(struct http_parent *parent, struct http_message message);

/* Until all have said that, or DONE, or are gone: true. False: until_ns came first. DONE is awaited
 * of the load alone: the probe goes by it. */
bool http_workers_await(struct http_parent *parent, enum http_message_type type, uint64_t until_ns);

void http_workers_stop(struct http_parent *parent);      /* STOP, once */
void http_workers_kill(struct http_parent *parent);      /* SIGKILL */
void http_workers_await_end(struct http_parent *parent); /* of all processes */
void http_workers_free(struct http_parent *parent);      /* they have ended */

/* Say that a result lacks the load of those that died, of `number` processes from first on. */
void http_workers_doubt(const struct http_parent *parent, unsigned first, unsigned number,
                        struct http_verdict *verdict);

void http_workers_hear(struct http_parent *parent, unsigned i); /* its control is readable */
void http_workers_reap(struct http_parent *parent);             /* SIGCHLD came */

/* ---- run-server.c ---- */

/* How long a server may take to accept, and to end when it is asked to, ns; shorter in tests. */
extern uint64_t http_server_start_ns;
extern uint64_t http_server_stop_ns;

/* Start the plan's server, if there is one, and wait until it accepts. 0, or -1: interrupted, or
 * after saying why. */
int http_server_start(struct http_parent *parent);
const char *http_server_where(const struct http_plan *plan); /* "[::1]:8000", a path; static */
void http_server_reap(struct http_parent *parent); /* SIGCHLD came: it must not have ended */
void http_server_stop(struct http_parent *parent);

/* ---- run-sides.c ---- */

/* --aa and --baseline-cmd: ABBA ABBA ..., so that a drift over time is the same for both sides. */
bool http_has_sides(const struct http_plan *plan);
bool http_trial_is_b(const struct http_plan *plan, unsigned trial);

/* Of a trial's arrivals and random values: no two trials have the same, but those of a pair of two
 * sides. The first trial has the plan's. */
uint64_t http_trial_seed(const struct http_plan *plan, unsigned trial);

/* ---- run-probe.c ---- */

/* That plan's probe, for a plan with a probe_rate. */
void http_probe_plan(struct http_plan *probe, const struct http_plan *plan);

/* ---- run-trial.c ---- */

/* From GO to the first query: every worker has read its message by then. */
extern uint64_t http_trial_start_in_ns;

/* Of workers that are judged one by one, each with a name (mpi/ranks.c); NULL: they are not. */
extern void (*http_trial_parts)(struct http_parent *parent, struct http_trial *trial,
                                const struct http_result *const *workers);

/* What is done between GO and STOP. True: it has left the trial's result itself; otherwise the
 * workers' whole results are added up. */
typedef bool (*http_measure)(struct http_parent *parent, uint64_t start_ns, void *user);

/* One trial from its server to its verdict. 0, or -1: there is no result, said why or interrupted.
 * The trial's result is the caller's to unmap. */
int http_trial_run(struct http_parent *parent, struct http_trial *trial, bool is_first,
                   http_measure measure, void *user);

/* Add up the workers, and judge. */
void http_trial_sum(struct http_parent *parent, struct http_trial *trial,
                    const struct http_result *const *workers);

/* ---- run-warmup.c ---- */

/* How long a window of --warmup auto is at least, ns; shorter in tests. */
extern uint64_t http_warmup_window_ns;

/* Wait until the plan's warm-up is over, if it has one, and tell the workers to mark. */
void http_warmup_wait(struct http_parent *parent, struct http_trial *trial, uint64_t start_ns);

/* Suspect a trial that was not seen to be warm. */
void http_warmup_judge(const struct http_plan *plan, struct http_trial *trial);

/* ---- run-find.c, run-search.c ---- */

/* The highest rate that is asked of a worker: no process sends so many, and one that has to count
 * still more arrivals has no time for its sockets. Less in tests. */
extern double http_find_rate_max;

/* How much faster the workers' clock is than ours: 1, but in tests. */
extern double http_find_speed;

/* Fills the run's steps, found_rate and only trial. 0 or -1 as http_trial_run. */
int http_find(struct http_parent *parent, struct http_run *run);

struct http_search {
    double start;
    double highest;   /* none above it is tried */
    double told_from; /* the lowest rate that the condition can hold at and be told */
};

/* The rate to try after these steps, in the order in which they were tried; 0: the search is
 * over. */
double http_search_next(const struct http_search *search, const struct http_step *steps,
                        unsigned number);

/* The highest that held below all that did not; 0: none. */
double http_search_found(const struct http_step *steps, unsigned number);

/* The lowest of which is known that it does not hold; HUGE_VAL: none. */
double http_search_missed(const struct http_step *steps, unsigned number);

/* None was found, and it is not known that none holds. */
bool http_search_is_untold(const struct http_step *steps, unsigned number);

/* ---- run-step.c ---- */

/* Whether the counts of a step say enough, so that it need not go on. */
bool http_step_is_enough(const struct http_threshold *condition, const struct http_result *result);

/* What they say: all of the step but its rates. */
void http_step_judge(struct http_step *step, const struct http_threshold *condition,
                     const struct http_result *result);

/* ---- run-account.c ---- */

/* So many results, all zero, of which pages that nobody writes take no memory; NULL. */
struct http_result *http_results_map(unsigned number, bool is_shared);
void http_results_unmap(struct http_result *results, unsigned number);
void http_results_clear(struct http_result *results, unsigned number); /* all; not shared */

/* The load's, and the probe's if the plan has one, or *probe is NULL; one unmap is for both. */
struct http_result *http_results_map_run(const struct http_plan *plan, struct http_result **probe);
void http_results_unmap_run(struct http_result *result, const struct http_result *probe);

/* A worker ended somewhere between two counts: what it had sent is in flight, and what it had
 * offered unsent. */
void http_result_force(struct http_result *result);

/* NAN where fewer than ten samples lie beyond a percentile. */
void http_result_figures(const struct http_result *result, double figures[HTTP_FIGURES]);

/* A bit each of these figures that is only a lower bound, since some queries failed. */
unsigned http_figures_at_least(const struct http_result *result,
                               const double figures[HTTP_FIGURES]);

/* ---- run.c ---- */

/* What the trials say together: the total, its intervals, thresholds and the exit status. */
void http_run_conclude(struct http_run *run, bool is_interrupted, bool has_failed, FILE *err);

/* ---- run-status.c ---- */

/* Thresholds and the exit status from what the trials left; says on err why it is not 0. */
void http_run_judge(struct http_run *run, bool has_failed, FILE *err);

#endif
