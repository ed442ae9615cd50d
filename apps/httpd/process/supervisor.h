/* SPDX-License-Identifier: MIT
 *
 * What: the supervisor, which is a parent process that holds the listening sockets, and its child
 * processes, which serve. A child can be replaced, because it died or because there is a new
 * script. Meanwhile no connection is refused.
 *
 * Place: main calls supervise; each child calls the function `serve`. handover.h has the messages
 * between supervisor and children, balance.h the rule by which children share connections.
 *
 * Shape: the roles of a child, from its fork to its end; each of the `workers` places has one child
 * that serves. The children that are started together are a load.
 *
 *     STARTING --its READY--> READY --all are READY--> SERVING --the next are: DRAIN--> LEAVING
 *        | ends                 | ends                    | ends                      | ended or
 *        v                      v                         v                           v killed
 *     the load has failed: its READY ones leave;     another is started at its place, at once if
 *     those that serve go on                         it lived for long, else after a growing delay
 *
 *     SIGHUP, a changed file               load again: start one, and the others when it is ready;
 *                                          only SIGHUP, and with is_dev a change, renews the
 *                                          configuration
 *     a child that asks to be replaced     start one, which takes its place
 *     SIGTERM, SIGINT                      send END to all, and wait; at the next signal send END
 *                                          again: they exit at once
 *     SIGUSR1                              send REOPEN to all; with reopens_by_load: load again
 *     SIGQUIT                              send STATS to all
 *     SIGUSR2                              run the program again; send DRAIN to all when it is
 *                                          ready, see upgrade.h
 *
 * If the first load fails, so does the supervisor. A child whose loop does not turn for
 * hang_timeout_ms is killed, see hang.h.
 *
 * Children ignore the signals of this table, because a terminal sends its signals to all processes
 * of the group, and each signal would have its effect twice. The supervisor sends messages to
 * children instead. The only signals that it sends are SIGKILL, SIGSTOP before it kills a child
 * that loads, and the signals of heartbeat.h, which also says how children end when the supervisor
 * dies.
 *
 * Limits: one load at a time. There are at most SUPERVISOR_CHILDREN children for each worker,
 * including those that leave. If there are too many for another load, the load waits until some
 * have ended, however many signals ask for it. A child that has not left 5 s after stop_timeout_ms
 * is killed.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "worker-place.h"

#define SUPERVISOR_CHILDREN 8

struct supervisor_config {
    /* Called in the child, which exits with the status that it returns. The other functions are
     * called in the supervisor, and may be NULL. */
    int (*serve)(void *user, const struct worker *worker);
    void (*on_end)(void *user, unsigned slot); /* the child in this slot has ended */
    void (*on_reopen)(void *user);             /* workers will be told to open their log again */
    /* Called at the start, and again after as many seconds as it returned. */
    uint32_t (*on_turn)(void *user);
    void *user;
    /* Called before a load of all workers. It has to pass files to changes_add: a change of one of
     * them acts like SIGHUP. */
    void (*on_load)(void *user);
    /* Called before a load that a signal requested. It has to read the files that are read again
     * only then. */
    void (*on_renew)(void *user);
    /* Called when a load of all workers serves (is_good), or has failed. */
    void (*on_settled)(void *user, bool is_good);
    const char *script;       /* the path of the script, for the log; NULL: there is no script */
    char **argv;              /* the command line, for SIGUSR2 */
    unsigned workers;         /* the number of workers, 1 to WORKERS_MAX; 0 means 1 */
    uint32_t stop_timeout_ms; /* how long a child may take to leave */
    uint32_t hang_timeout_ms; /* how long a turn of a child's loop may take; 0: no limit */
    /* whether SIGUSR1 loads again, because children cannot open their log again themselves */
    bool reopens_by_load;
    bool is_dev; /* whether a change of the script's files acts like SIGHUP */
    /* whether a change of other files that children load acts like SIGHUP, too */
    bool watches_files;
};

/* Run the supervisor until its end. Returns the program's exit status. */
int supervise(const struct supervisor_config *config);

#endif
