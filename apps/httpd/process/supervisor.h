/* SPDX-License-Identifier: MIT
 *
 * What: a parent that holds the sockets that listen, and has a child that serves: so the child can
 * be replaced, by one that has loaded the script again, and no connection is refused meanwhile.
 *
 * Place: main calls supervise; each child calls back and serves. handover.h has their messages.
 *
 * Shape: children, from their fork to their end.
 *
 *     STARTING --READY--> SERVING --another is READY: DRAIN--> LEAVING --> ended, or killed
 *        | ends: the one that serves goes on      | ends: another is started, at once if it lived
 *        |   there is none: tried again later     |   for long, otherwise after a growing delay
 *        | the very first: so does the supervisor
 *
 *     SIGHUP, a changed file, a child that asks for it     start one
 *     SIGTERM, SIGINT     END to all, and wait; again: END again, which is at once
 *     SIGUSR1, SIGUSR2    REOPEN, STATS to those there are
 *
 * A child whose loop does not turn for hang_timeout_ms is killed, and replaced if it served.
 * One that is stopped, by a signal or a debugger, is only logged.
 *
 * Children take no signals but SIGKILL, and SIGSTOP while it is seen whether one that starts is
 * ready: those of a terminal reach all processes of a group, and would count twice. The end of the
 * supervisor ends them: their link is closed, and the kernel tells them; see heartbeat.h.
 *
 * Limits: one starts at a time, and makes room for the next. There are SUPERVISOR_CHILDREN with
 * those that leave; the next one waits until one of these has ended, however many signals ask for
 * it. A child that has not left 5 s after its time is killed.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#define SUPERVISOR_CHILDREN 8

struct supervisor_config {
    /* In the child: its exit status. load counts from 0. */
    int (*serve)(void *user, int link, unsigned load);
    void *user;
    const char *script;
    uint32_t stop_timeout_ms; /* for a child that leaves */
    uint32_t hang_timeout_ms; /* for one turn of a child's loop; 0: for ever */
    bool is_dev;              /* a change of the script's files is as SIGHUP */
};

/* The exit status. */
int supervise(const struct supervisor_config *config);

#endif
