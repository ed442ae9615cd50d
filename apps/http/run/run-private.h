/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the coordinator share. Place: run*.c.
 *
 * Shape: the parent does one thing after the other; what happens next stands in the next line. It
 * waits in load_parent_turn, where signals, messages and the live view are taken care of meanwhile;
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
#ifndef LOAD_RUN_PRIVATE_H
#define LOAD_RUN_PRIVATE_H

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

#define LOAD_NEVER         UINT64_MAX
#define LOAD_FOREVER_NS    (UINT64_C(30) * 86400 * SXE_NS_PER_SECOND)
#define LOAD_PROCESSES_MAX (LOAD_WORKERS_MAX + 1)

/* One worker, or the probe, as the parent sees it. */
struct load_process {
    pid_t pid;     /* 0: it has ended, and was waited for */
    int control;   /* -1: closed */
    unsigned said; /* a bit each enum load_message_type; MARKED only since it was last asked */
    struct load_result *result; /* shared with it */
    struct load_result *mark;   /* the same */
    bool has_died;              /* its result is what it had counted so far */
};

struct load_parent {
    const struct load_plan *plan;
    struct load_run *run;
    FILE *out; /* NULL: nowhere */
    FILE *err;
    struct load_live *live;       /* NULL: not shown now */
    struct load_monitor *monitor; /* the run's; NULL */
    struct load_result *sum;      /* of the workers, for the live view */
    uint64_t look_ns;             /* the next one; LOAD_NEVER */
    int signals;                  /* signalfd: SIGINT, SIGTERM, SIGHUP, SIGCHLD */
    sigset_t mask_before;
    int awake; /* keeps the CPUs from sleeping deeply; -1 */
    unsigned interrupts;
    uint64_t kill_ns;       /* when workers that did not end are killed; LOAD_NEVER */
    bool has_failed;        /* said why; the exit status is 1 */
    bool has_begun;         /* the load of this trial */
    bool is_stopping;       /* the workers of this trial were told to stop */
    uint64_t late_ns;       /* so long after --start-at this trial began; 0 */
    uint64_t end_ns;        /* when the load ends by its duration; LOAD_NEVER: it has none */
    pid_t server;           /* leads its process group; 0: none */
    unsigned number;        /* of processes */
    unsigned load;          /* the first so many of them are the load's; after them, the probe */
    struct load_plan probe; /* its plan, if there is one */
    struct load_result *shared; /* [2 * number]: each one's result and mark */
    struct load_process processes[LOAD_PROCESSES_MAX];

    /* When what is measured began. */
    struct load_pressure pressure;
};

/* ---- run-parent.c ---- */

/* How long workers may take to end after a second interrupt, ns; shorter in tests. */
extern uint64_t load_parent_grace_ns;

/* 0 or -errno. Signals are taken until close, which gives the mask back. */
int load_parent_open(struct load_parent *parent, const struct load_plan *plan, FILE *out,
                     FILE *err);
void load_parent_close(struct load_parent *parent);

/* Wait until something happens, but not longer than until_ns, and take care of it. */
void load_parent_turn(struct load_parent *parent, uint64_t until_ns);

/* Begin, or end, to show what the workers do. */
void load_parent_show(struct load_parent *parent, bool is_shown);

/* Once more what the workers have counted, which are about to end or have, for the monitor. */
void load_parent_monitor(struct load_parent *parent);

/* "sxe-http: ..." on err; the run has failed, and stops. */
void load_parent_fail(struct load_parent *parent, const char *format, ...) SXE_PRINTF(2, 3);

/* ---- run-workers.c ---- */

/* The work of a worker process: load_worker_run, unless a test replaces it. */
extern int (*load_workers_work)(const struct load_worker *worker);

/* Fork the plan's workers, and its probe. 0, or -1 after saying why; stop and free them either
 * way. */
int load_workers_start(struct load_parent *parent);

/* To all that have not said DONE; of MARK and RATE MARKED is awaited again. */
void load_workers_tell(struct load_parent *parent, struct load_message message);

/* Until all have said that, or DONE, or are gone: true. False: until_ns came first. DONE is awaited
 * of the load alone: the probe goes by it. */
bool load_workers_await(struct load_parent *parent, enum load_message_type type, uint64_t until_ns);

void load_workers_stop(struct load_parent *parent);      /* STOP, once */
void load_workers_kill(struct load_parent *parent);      /* SIGKILL */
void load_workers_await_end(struct load_parent *parent); /* of all processes */
void load_workers_free(struct load_parent *parent);      /* they have ended */

/* Say that a result lacks the load of those that died, of `number` processes from first on. */
void load_workers_doubt(const struct load_parent *parent, unsigned first, unsigned number,
                        struct load_verdict *verdict);

void load_workers_hear(struct load_parent *parent, unsigned i); /* its control is readable */
void load_workers_reap(struct load_parent *parent);             /* SIGCHLD came */

/* ---- run-server.c ---- */

/* How long a server may take to accept, and to end when it is asked to, ns; shorter in tests. */
extern uint64_t load_server_start_ns;
extern uint64_t load_server_stop_ns;

/* Start the plan's server, if there is one, and wait until it accepts. 0, or -1: interrupted, or
 * after saying why. */
int load_server_start(struct load_parent *parent);
const char *load_server_where(const struct load_plan *plan); /* "[::1]:8000", a path; static */
void load_server_reap(struct load_parent *parent); /* SIGCHLD came: it must not have ended */
void load_server_stop(struct load_parent *parent);

/* ---- run-sides.c ---- */

/* --aa and --baseline-cmd: ABBA ABBA ..., so that a drift over time is the same for both sides. */
bool load_has_sides(const struct load_plan *plan);
bool load_trial_is_b(const struct load_plan *plan, unsigned trial);

/* Of a trial's arrivals and random values: no two trials have the same, but those of a pair of two
 * sides. The first trial has the plan's. */
uint64_t load_trial_seed(const struct load_plan *plan, unsigned trial);

/* ---- run-probe.c ---- */

/* That plan's probe, for a plan with a probe_rate. */
void load_probe_plan(struct load_plan *probe, const struct load_plan *plan);

/* ---- run-trial.c ---- */

/* From GO to the first query: every worker has read its message by then. */
extern uint64_t load_trial_start_in_ns;

/* Of workers that are judged one by one, each with a name (mpi/ranks.c); NULL: they are not. */
extern void (*load_trial_parts)(struct load_parent *parent, struct load_trial *trial,
                                const struct load_result *const *workers);

/* Runs between GO and STOP. True: it has set the trial's result; false: the caller adds up the
 * workers' results. */
typedef bool (*load_measure)(struct load_parent *parent, uint64_t start_ns, void *user);

/* One trial from its server to its verdict. 0, or -1: there is no result, said why or interrupted.
 * The trial's result is the caller's to unmap. */
int load_trial_run(struct load_parent *parent, struct load_trial *trial, bool is_first,
                   load_measure measure, void *user);

/* Add up the workers, and judge. */
void load_trial_sum(struct load_parent *parent, struct load_trial *trial,
                    const struct load_result *const *workers);

/* ---- run-warmup.c ---- */

/* How long a window of --warmup auto is at least, ns; shorter in tests. */
extern uint64_t load_warmup_window_ns;

/* Wait until the plan's warm-up is over, if it has one, and tell the workers to mark. */
void load_warmup_wait(struct load_parent *parent, struct load_trial *trial, uint64_t start_ns);

/* Suspect a trial that was not seen to be warm. */
void load_warmup_judge(const struct load_plan *plan, struct load_trial *trial);

/* ---- run-find.c, run-search.c ---- */

/* The highest rate that is asked of a worker: no process sends so many, and one that has to count
 * still more arrivals has no time for its sockets. Less in tests. */
extern double load_find_rate_max;

/* How much faster the workers' clock is than ours: 1, but in tests. */
extern double load_find_speed;

/* Fills the run's steps, found_rate and only trial. 0 or -1 as load_trial_run. */
int load_find(struct load_parent *parent, struct load_run *run);

struct load_search {
    double start;
    double highest;   /* none above it is tried */
    double told_from; /* the lowest rate that the condition can hold at and be told */
};

/* The rate to try after these steps, in the order in which they were tried; 0: the search is
 * over. */
double load_search_next(const struct load_search *search, const struct load_step *steps,
                        unsigned number);

/* The highest that held below all that did not; 0: none. */
double load_search_found(const struct load_step *steps, unsigned number);

/* The lowest of which is known that it does not hold; HUGE_VAL: none. */
double load_search_missed(const struct load_step *steps, unsigned number);

/* None was found, and it is not known that none holds. */
bool load_search_is_untold(const struct load_step *steps, unsigned number);

/* ---- run-step.c ---- */

/* Whether the counts of a step say enough, so that it need not go on. */
bool load_step_is_enough(const struct load_threshold *condition, const struct load_result *result);

/* Judge the counts: set all members of the step but its rates. */
void load_step_judge(struct load_step *step, const struct load_threshold *condition,
                     const struct load_result *result);

/* ---- run-account.c ---- */

/* So many results, all zero, of which pages that nobody writes take no memory; NULL. */
struct load_result *load_results_map(unsigned number, bool is_shared);
void load_results_unmap(struct load_result *results, unsigned number);
void load_results_clear(struct load_result *results, unsigned number); /* all; not shared */

/* The load's, and the probe's if the plan has one, or *probe is NULL; one unmap is for both. */
struct load_result *load_results_map_run(const struct load_plan *plan, struct load_result **probe);
void load_results_unmap_run(struct load_result *result, const struct load_result *probe);

/* A worker ended somewhere between two counts: what it had sent is in flight, and what it had
 * offered unsent. Times that it had not copied yet are copied. */
void load_result_force(struct load_result *result, bool is_paced);

/* NAN where fewer than ten samples lie beyond a percentile. */
void load_result_figures(const struct load_result *result, double figures[LOAD_FIGURES]);

/* A bit each of these figures that is only a lower bound, since some queries failed. */
unsigned load_figures_at_least(const struct load_result *result,
                               const double figures[LOAD_FIGURES]);

/* ---- run.c ---- */

/* Combine the trials: the total, its intervals, thresholds and the exit status. */
void load_run_conclude(struct load_run *run, bool is_interrupted, bool has_failed, FILE *err);

/* ---- run-status.c ---- */

/* Thresholds and the exit status from what the trials left; says on err why it is not 0. */
void load_run_judge(struct load_run *run, bool has_failed, FILE *err);

#endif
