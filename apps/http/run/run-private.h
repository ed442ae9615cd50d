/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the files of the coordinator share. The coordinator is the parent
 * process, which starts workers and adds up their results. Place: run*.c.
 *
 * Shape: the parent is sequential code without callbacks. It waits only in load_parent_turn, which
 * meanwhile handles signals, messages and the live view. So no other function has to handle an
 * interrupt: the workers are told to stop, and then every wait ends. Only two short waits are in
 * other functions: for a connect to the server that was started, and for processes that were
 * killed.
 *
 *     run.c           the trials one after the other, and their total
 *     run-trial.c     a trial: fork, READY, GO, measure, add up, judge
 *     run-warmup.c    the warm-up, which a trial leaves out
 *     run-find.c      --find: measures many rates in one trial
 *     run-search.c    which rate comes next                                         pure
 *     run-step.c      whether a rate holds, and when that can be told               pure
 *     run-workers.c   the processes of a trial: fork, tell, hear, reap
 *     run-silent.c    which of them do not answer any more
 *     run-probe.c     the plan of the probe                                         pure
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
#define LOAD_ASK_NS        SXE_NS_PER_SECOND

/* One worker, or the probe, from the view of the parent. */
struct load_process {
    pid_t pid;   /* the process; 0: it has ended, and waitpid(2) has returned its status */
    int control; /* our end of its socket pair; -1: closed */
    /* a bit for each type of message that came from the process; sending MARK or RATE clears the
     * bit of MARKED */
    unsigned said;
    struct load_result *result; /* the result, in memory that is shared with the process */
    /* its copy at the last mark, in memory that is shared with the process */
    struct load_result *mark;
    /* whether the process died before it was done, so that its result is incomplete */
    bool has_died;
    /* whether the parent killed the process because it did not answer */
    bool is_silent;
    /* how many ticks have passed since the parent asked whether the process is alive; 0: it has
     * answered */
    unsigned asks;
    uint64_t cpu_ns; /* the CPU time that the process had used when the parent asked */
};

struct load_parent {
    const struct load_plan *plan;
    struct load_run *run;
    FILE *out; /* where to print the plan and the sockets; NULL: they are not printed */
    FILE *err;
    struct load_live *live;       /* the live view; NULL: it is not shown now */
    struct load_monitor *monitor; /* the run's monitor; NULL: there is none */
    struct load_result *sum;      /* memory in which the workers' results are added up */
    uint64_t ask_ns;              /* when to ask the workers next whether they are alive */
    uint64_t look_ns;             /* when to update the live view; LOAD_NEVER: it is not shown */
    int signals;                  /* a signalfd of SIGINT, SIGTERM, SIGHUP and SIGCHLD */
    sigset_t mask_before;         /* the signal mask to restore at the end */
    /* a descriptor that keeps CPUs from deep sleep; -1: there is none */
    int awake;
    unsigned interrupts; /* how many signals that interrupt the run were received */
    uint64_t kill_ns;    /* when to kill workers that have not ended; LOAD_NEVER: no time is set */
    /* whether a message of failure was printed, so that the exit status will be 1 */
    bool has_failed;
    bool has_begun;   /* whether the load of this trial has begun */
    bool is_stopping; /* whether the workers of this trial were told to stop */
    uint64_t late_ns; /* by how much this trial began later than --start-at; 0: it began in time */
    uint64_t end_ns;  /* when the load ends by its duration; LOAD_NEVER: it has none */
    pid_t server;     /* the server's process, which leads its process group; 0: no server runs */
    unsigned number;  /* how many entries of processes are used */
    /* How many of the processes make the load: the first ones. The probe comes after them. */
    unsigned load;
    struct load_plan probe;     /* the probe's plan, if there is a probe */
    struct load_result *shared; /* 2 * number results: the result and the mark of each process */
    struct load_process processes[LOAD_PROCESSES_MAX];

    struct load_pressure pressure; /* the CPU pressure at the start of the measurement */
};

/* ---- run-parent.c ---- */

/* How many ns workers may take to end after a second interrupt; fewer in tests. */
extern uint64_t load_parent_grace_ns;

/* Prepare the parent. Signals are blocked, and only the parent's loop reads them, until
 * load_parent_close restores the mask. 0 or -errno. */
int load_parent_open(struct load_parent *parent, const struct load_plan *plan, FILE *out,
                     FILE *err);
void load_parent_close(struct load_parent *parent);

/* Wait for an event, at most until until_ns, and handle it. */
void load_parent_turn(struct load_parent *parent, uint64_t until_ns);

/* Begin or end to show the live view of the workers. */
void load_parent_show(struct load_parent *parent, bool is_shown);

/* Let the monitor read the workers' counts. It is also called once after the workers have ended. */
void load_parent_monitor(struct load_parent *parent);

/* Print "sxe-http: ..." on err, remember that the run has failed, and stop the run. */
void load_parent_fail(struct load_parent *parent, const char *format, ...) SXE_PRINTF(2, 3);

/* ---- run-workers.c ---- */

/* The work of a worker process: load_worker_run, unless a test replaces it. */
extern int (*load_workers_work)(const struct load_worker *worker);

/* Fork the plan's workers, and its probe. 0; or -1 after a message. In either case the caller has
 * to stop and free them. */
int load_workers_start(struct load_parent *parent);

/* Send a message to all processes that have not sent DONE. After MARK and RATE load_workers_await
 * can wait for MARKED again. */
void load_workers_tell(struct load_parent *parent, struct load_message message);

/* Wait until each process has sent `type` or DONE, or has ended. False: the time until_ns came
 * first. For DONE only the load's workers count, because the probe ends after them. */
bool load_workers_await(struct load_parent *parent, enum load_message_type type, uint64_t until_ns);

void load_workers_stop(struct load_parent *parent);      /* sends STOP, but only once in a trial */
void load_workers_kill(struct load_parent *parent);      /* sends SIGKILL */
void load_workers_await_end(struct load_parent *parent); /* waits until all processes have ended */
/* call it after all processes have ended */
void load_workers_free(struct load_parent *parent);

/* For each worker that died, among the `number` processes from `first` on, add a reason to the
 * verdict: the result lacks the rest of the worker's load. */
void load_workers_doubt(const struct load_parent *parent, unsigned first, unsigned number,
                        struct load_verdict *verdict);

/* reads the messages of process i */
void load_workers_hear(struct load_parent *parent, unsigned i);
void load_workers_reap(struct load_parent *parent); /* call it after SIGCHLD */

/* ---- run-silent.c ---- */

/* After how many ticks of LOAD_ASK_NS without an answer a worker may be killed; fewer in tests. */
extern unsigned load_silent_asks;

/* Called every LOAD_ASK_NS: ask the workers whether their loops still run, and kill those that do
 * not answer. Ticks are counted instead of time, because this process may have been stopped
 * together with its workers. */
void load_workers_ask(struct load_parent *parent);

/* ---- run-server.c ---- */

/* How many ns a server may take to accept connections, and to end after SIGTERM; fewer in tests. */
extern uint64_t load_server_start_ns;
extern uint64_t load_server_stop_ns;

/* Start the plan's server, if it has one, and wait until it accepts connections. 0; -1: the run was
 * interrupted, or failed after a message. */
int load_server_start(struct load_parent *parent);
/* the server's address for messages, "[::1]:8000" or a path, in a static text */
const char *load_server_where(const struct load_plan *plan);
/* Call it after SIGCHLD: if the server has ended, the run fails. */
void load_server_reap(struct load_parent *parent);
void load_server_stop(struct load_parent *parent);

/* ---- run-sides.c ---- */

/* Whether the trials measure two sides, A and B (--aa and --baseline-cmd). Their order is ABBA ABBA
 * ..., so that a steady drift of the machine affects both sides equally. */
bool load_has_sides(const struct load_plan *plan);
bool load_trial_is_b(const struct load_plan *plan, unsigned trial);

/* The seed of a trial. Each trial has another seed, but the two trials of an A/B pair have the
 * same. The first trial has the plan's seed. */
uint64_t load_trial_seed(const struct load_plan *plan, unsigned trial);

/* ---- run-probe.c ---- */

/* Make the plan of the probe from the load's plan, whose probe_rate is above 0. */
void load_probe_plan(struct load_plan *probe, const struct load_plan *plan);

/* ---- run-trial.c ---- */

/* The time from GO to the first query, in ns: long enough for every worker to read the message. */
extern uint64_t load_trial_start_in_ns;

/* A function that judges each worker of a trial separately (mpi/ranks.c); NULL: only all workers
 * together are judged. */
extern void (*load_trial_parts)(struct load_parent *parent, struct load_trial *trial,
                                const struct load_result *const *workers);

/* A function that measures, between GO and STOP. True: it has set the trial's result; false: the
 * caller has to add up the workers' results. */
typedef bool (*load_measure)(struct load_parent *parent, uint64_t start_ns, void *user);

/* Run one trial: start its server and workers, measure, judge. 0; -1: the trial has no result,
 * because of an interrupt, or of an error after a message. The caller unmaps the trial's result. */
int load_trial_run(struct load_parent *parent, struct load_trial *trial, bool is_first,
                   load_measure measure, void *user);

/* Add up the workers' results in trial->result, and judge the sum. */
void load_trial_sum(struct load_parent *parent, struct load_trial *trial,
                    const struct load_result *const *workers);

/* ---- run-warmup.c ---- */

/* The shortest window of --warmup auto, in ns; shorter in tests. */
extern uint64_t load_warmup_window_ns;

/* Wait until the warm-up of the plan is over, if it has one, and tell the workers to mark. */
void load_warmup_wait(struct load_parent *parent, struct load_trial *trial, uint64_t start_ns);

/* Make a trial suspect if its warm-up ended before the server was warm. */
void load_warmup_judge(const struct load_plan *plan, struct load_trial *trial);

/* ---- run-find.c, run-search.c ---- */

/* The highest rate that a worker is asked to send, in queries a second. No process can send that
 * many, and counting even more arrivals would take all its time. Lower in tests. */
extern double load_find_rate_max;

/* How much faster the workers' clock is than the parent's: 1, except in tests. */
extern double load_find_speed;

/* Search the highest rate. Fills in the run's steps, found_rate and its only trial. Returns like
 * load_trial_run. */
int load_find(struct load_parent *parent, struct load_run *run);

struct load_search {
    double start;   /* the rate to try first */
    double highest; /* the highest rate to try */
    /* a rate below this one gives too few samples to tell that the condition holds */
    double told_from;
};

/* The rate to try next. `steps` are the rates that were tried, in their order. 0: the search is
 * over. */
double load_search_next(const struct load_search *search, const struct load_step *steps,
                        unsigned number);

/* The highest rate that held, and that is below all rates that did not hold; 0: there is none. */
double load_search_found(const struct load_step *steps, unsigned number);

/* The lowest rate of which it is known that it does not hold; HUGE_VAL: there is none. */
double load_search_missed(const struct load_step *steps, unsigned number);

/* Whether no rate was found that holds, although a lower rate may hold. */
bool load_search_is_untold(const struct load_step *steps, unsigned number);

/* ---- run-step.c ---- */

/* Whether the counts of a step are enough to judge it. */
bool load_step_is_enough(const struct load_threshold *condition, const struct load_result *result);

/* Judge the counts, and set all members of the step but its rates. */
void load_step_judge(struct load_step *step, const struct load_threshold *condition,
                     const struct load_result *result);

/* ---- run-account.c ---- */

/* Map memory for `number` results, all zero. A part of it that is never written takes no physical
 * memory. NULL: no memory. */
struct load_result *load_results_map(unsigned number, bool is_shared);
void load_results_unmap(struct load_result *results, unsigned number);
/* set results to zero; not for results in shared memory */
void load_results_clear(struct load_result *results, unsigned number);

/* Map the load's result, and, if the plan has a probe, the probe's result; otherwise *probe becomes
 * NULL. load_results_unmap_run unmaps both. */
struct load_result *load_results_map_run(const struct load_plan *plan, struct load_result **probe);
void load_results_unmap_run(struct load_result *result, const struct load_result *probe);

/* Make the counts of a worker that died consistent: it may have ended between two counts that
 * belong together. Sent queries that did not end count as in flight, and offered queries that were
 * not sent as unsent. Histograms that the worker had not copied yet are copied. */
void load_result_force(struct load_result *result, bool is_paced);

/* Compute the figures of a result. A figure is NAN if it is a percentile that fewer than ten
 * samples lie beyond. */
void load_result_figures(const struct load_result *result, double figures[LOAD_FIGURES]);

/* Which figures are only lower bounds, because queries failed: a bit for each figure. */
unsigned load_figures_at_least(const struct load_result *result,
                               const double figures[LOAD_FIGURES]);

/* ---- run.c ---- */

/* Combine the trials: compute the total, its intervals, the judgement of thresholds, and the exit
 * status. */
void load_run_conclude(struct load_run *run, bool is_interrupted, bool has_failed, FILE *err);

/* ---- run-status.c ---- */

/* Judge the thresholds and set the exit status. If it is not 0, messages on err say why. */
void load_run_judge(struct load_run *run, bool has_failed, FILE *err);

#endif
