/* SPDX-License-Identifier: MIT
 *
 * What: the supervisor, a parent that keeps the listening sockets while a child serves. It reloads
 * a script by starting another child, and no connection is refused meanwhile.
 *
 * Place: main calls supervise, which calls back in each child to serve. handover.h has the messages
 * between them.
 *
 * Shape: the states of a child, from its fork to its end.
 *
 *     STARTING --READY--> SERVING --another is READY: DRAIN--> LEAVING --> ended, or killed
 *        | ends: the serving child continues;     | ends: start another, at once if this one had
 *        |   without one, start again later       |   lived long, otherwise after a growing delay
 *        | the first ever ends: the supervisor ends, too
 *
 *     SIGHUP, a changed file, a child that asks for it     start a child
 *     SIGTERM, SIGINT     send END to all, and wait; again: END again, which ends them at once
 *     SIGUSR1, SIGUSR2    send REOPEN, STATS to all
 *
 * A child whose loop makes no turn for hang_timeout_ms is killed, and replaced if it served. One
 * that is stopped, by a signal or a debugger, is only logged.
 *
 * Children ignore these signals, since a terminal sends them to the whole process group and they
 * would count twice. The supervisor sends SIGKILL, SIGSTOP while it checks whether a starting child
 * is ready, and the signal of heartbeat.h. Children end when the supervisor ends: see heartbeat.h.
 *
 * Limits: one child starts at a time. There are at most SUPERVISOR_CHILDREN, with those that leave;
 * the next start waits until one of them has ended. A child that has not left 5 s after its
 * stop_timeout_ms is killed.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#define SUPERVISOR_CHILDREN 8

struct supervisor_config {
    /* Called in each child; returns its exit status. load counts children from 0. */
    int (*serve)(void *user, int link, unsigned load);
    void *user;
    const char *script;
    uint32_t stop_timeout_ms; /* how long a leaving child may take */
    uint32_t hang_timeout_ms; /* for one turn of a child's loop; 0: no limit */
    bool is_dev;              /* load again when the script's files change */
};

/* Supervise until the end. Returns the exit status of the program. */
int supervise(const struct supervisor_config *config);

#endif
