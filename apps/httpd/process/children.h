/* SPDX-License-Identifier: MIT
 *
 * What: the processes that a supervisor has, from their fork until they are waited for.
 *
 * Place: supervisor.c decides when there is one more or less; hang.c looks whether their loops
 * turn.
 *
 * Limits: SUPERVISOR_CHILDREN for each worker, see supervisor.h.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "handover.h"
#include "heartbeat.h"
#include "supervisor.h"
#include "worker-place.h"

#define NEVER UINT64_MAX

enum role {
    STARTING, /* it loads */
    READY,    /* it accepts; others of its load are not ready yet */
    SERVING,
    LEAVING
};

struct child {
    pid_t pid;
    int link;
    enum role role;
    unsigned place;
    unsigned slot;
    uint64_t since_ns;
    uint64_t kill_ns;
    struct heartbeat *heartbeat;
    uint64_t turns; /* that the heartbeat had at the last look */
    unsigned looks; /* at which it had these */
    bool is_killed; /* by this process, which said why */
    bool is_worn;   /* it wants to be replaced, once it serves */
};

extern struct children {
    struct child each[SUPERVISOR_CHILDREN * WORKERS_MAX]; /* in the order of their forks */
    unsigned number;
    unsigned workers;
    unsigned loads[WORKERS_MAX]; /* of each place */
} children;

/* None. */
void children_begin(unsigned workers);

/* Fork one for that place. be: what it does, with the other children's links closed; it does not
 * return. 0 or -errno. */
int children_fork(unsigned place, void (*be)(const struct worker *worker));

/* In a process that was just forked: close the supervisor's ends of all links. */
void children_close_links(void);

/* Wait for the one at that index, which is about to end or has ended. It is no child any more; the
 * status that waitpid(2) gave. */
int children_bury(unsigned index, struct child *buried);

struct child *child_in(enum role role); /* the first one; NULL: none */

/* One there, in that role or an earlier one, that does not wait to be replaced. */
bool is_taken(unsigned place, enum role last);

/* The caller says why. */
void kill_child(struct child *child);

/* Tell a child to leave, and kill it if it has not left within within_ns. */
void leave(struct child *child, enum handover_kind how, uint64_t within_ns);

/* Kill children that have not left in time. */
void kill_late(uint64_t now_ns, uint32_t stop_timeout_ms);

void say_to_all(enum handover_kind kind);

#endif
