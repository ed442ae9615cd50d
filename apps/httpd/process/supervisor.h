/* SPDX-License-Identifier: MIT
 *
 * What: a parent that holds the sockets that listen, and has children that serve: so that a child
 * can be replaced, because it died or because there is a new script, and no connection is refused
 * meanwhile.
 *
 * Place: main calls supervise; each child calls back and serves. handover.h has their messages,
 * balance.h the rule by which they share connections.
 *
 * Shape: children, from their fork to their end; there are `workers` places.
 *
 *     STARTING --its READY--> READY --all are READY--> SERVING --the next are: DRAIN--> LEAVING
 *        | ends                 | accepts, too            | ends                      | ended or
 *        v                      v                         v                           v killed
 *     the load has failed: its READY ones leave;     another is started at its place, at once if
 *     those that serve go on                         it lived for long, else after a growing delay
 *
 *     SIGHUP, a changed file               start all again: one, and the others when it is ready
 *     a child that asks for it             start one, which takes its place
 *     SIGTERM, SIGINT                      END to all, and wait; again: END again: at once
 *     SIGUSR1, SIGQUIT                     REOPEN, STATS to those there are; or SIGUSR1: as SIGHUP
 *     SIGUSR2                              run the program again; DRAIN to all when it is ready,
 *                                          see upgrade.h
 *
 * If the first load fails, so does the supervisor. A child whose loop does not turn for
 * hang_timeout_ms is killed, see hang.h.
 *
 * Children take no signals but SIGKILL, and SIGSTOP while it is seen whether one that starts is
 * ready: those of a terminal reach all processes of a group, and would count twice. The end of the
 * supervisor ends them: their link is closed, and the kernel tells them; see heartbeat.h.
 *
 * Limits: one load at a time. With those that leave there are SUPERVISOR_CHILDREN for each worker;
 * the next load waits until some have ended, however many signals ask for it. A child that has not
 * left 5 s after its time is killed.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "worker-place.h"

#define SUPERVISOR_CHILDREN 8

struct supervisor_config {
    /* In the child: its exit status. */
    int (*serve)(void *user, const struct worker *worker);
    void (*on_end)(void *user, unsigned slot); /* a child ended, here; NULL: nobody wants to know */
    void (*on_reopen)(void *user);             /* before workers open their log again; NULL, too */
    /* Called here at the start, and again after the seconds that it returns; NULL: nobody is. */
    uint32_t (*on_turn)(void *user);
    void *user;
    /* Before processes are started that load all: name files to changes_add whose change is as
     * SIGHUP. NULL: none. */
    void (*on_load)(void *user);
    const char *script;       /* NULL: none */
    char **argv;              /* the command line, for SIGUSR2 */
    unsigned workers;         /* 1 to WORKERS_MAX; 0: 1 */
    uint32_t stop_timeout_ms; /* for a child that leaves */
    uint32_t hang_timeout_ms; /* for one turn of a child's loop; 0: for ever */
    bool reopens_by_load;     /* SIGUSR1 is as SIGHUP: children cannot open the log again */
    bool is_dev;              /* a change of the script's files is as SIGHUP */
};

/* The exit status. */
int supervise(const struct supervisor_config *config);

#endif
