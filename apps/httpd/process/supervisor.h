/* SPDX-License-Identifier: MIT
 *
 * What: a parent process that holds the listening sockets, and child processes that serve. A child
 * can be replaced, because it died or because there is a new script, and no connection is refused
 * meanwhile.
 *
 * Place: main calls supervise; each child calls back and serves. handover.h has their messages,
 * balance.h the rule by which they share connections.
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
 * Children ignore the signals of this table: a terminal sends its signals to all processes of the
 * group, and each would count twice. The supervisor sends messages instead, SIGKILL, SIGSTOP before
 * it kills a child that loads, and the signals of heartbeat.h, which also tells how children end
 * when the supervisor dies.
 *
 * Limits: one load at a time. Including those that leave there are at most SUPERVISOR_CHILDREN for
 * each worker; the next load waits until some have ended, however many signals ask for it. A child
 * that has not left 5 s after stop_timeout_ms is killed.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "worker-place.h"

#define SUPERVISOR_CHILDREN 8

struct supervisor_config {
    /* Called in the child; returns its exit status. The other functions are called in the
     * supervisor, and may be NULL. */
    int (*serve)(void *user, const struct worker *worker);
    void (*on_end)(void *user, unsigned slot); /* the child of this slot has ended */
    void (*on_reopen)(void *user);             /* workers will be told to open their log again */
    /* Called at the start; it returns after how many seconds to call it again. */
    uint32_t (*on_turn)(void *user);
    void *user;
    /* Called before a load of all workers: pass to changes_add the files whose change acts like
     * SIGHUP. */
    void (*on_load)(void *user);
    /* Called before a load that a signal asked for: it reads again the files that are read only
     * then. */
    void (*on_renew)(void *user);
    /* A load of all workers serves, or has failed. */
    void (*on_settled)(void *user, bool is_good);
    const char *script;       /* NULL: no script */
    char **argv;              /* the command line, for SIGUSR2 */
    unsigned workers;         /* 1 to WORKERS_MAX; 0: 1 */
    uint32_t stop_timeout_ms; /* how long a child may take to leave */
    uint32_t hang_timeout_ms; /* the longest turn of a child's loop; 0: no limit */
    /* at SIGUSR1 load again, because children cannot open the log again themselves */
    bool reopens_by_load;
    bool is_dev; /* whether a change of the script's files acts like SIGHUP */
    /* whether a change of other files that children load acts like SIGHUP, too */
    bool watches_files;
};

/* Run the supervisor until its end. Returns the program's exit status. */
int supervise(const struct supervisor_config *config);

#endif
