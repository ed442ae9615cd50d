/* SPDX-License-Identifier: MIT
 *
 * What: the table of a supervisor's child processes, from fork(2) to waitpid(2).
 *
 * Place: supervisor.c decides when to start and end a child; hang.c checks that their loops turn.
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
    STARTING, /* the child loads the script */
    READY,    /* the child accepts, but not all workers of this load are ready yet */
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
    uint64_t turns;  /* the heartbeat's counter at hang.c's last look */
    unsigned looks;  /* how many looks in a row found the same odd counter */
    bool is_killed;  /* the supervisor killed this child, and logged why */
    bool is_worn;    /* this child has asked to be replaced */
    bool is_hurried; /* kill_ns is the deadline of a second signal */
};

extern struct children {
    struct child each[SUPERVISOR_CHILDREN * WORKERS_MAX]; /* in the order of their forks */
    unsigned number;
    unsigned workers;
    unsigned loads[WORKERS_MAX]; /* how many children each place has had */
} children;

/* Empty the table. */
void children_begin(unsigned workers);

/* Fork a child for this place. The child calls be, which does not return, with the other children's
 * links closed. 0 or -errno. */
int children_fork(unsigned place, void (*be)(const struct worker *worker));

/* In a process that was just forked: close the supervisor's ends of all links. */
void children_close_links(void);

/* Kill the child at this index if it has not ended, reap it, and move it from the table to *buried.
 * Returns its status, as of waitpid(2). */
int children_bury(unsigned index, struct child *buried);

struct child *child_in(enum role role); /* the first child in this role; NULL: there is none */

/* Whether the place has a child in the role `last` or in an earlier role. A SERVING child that
 * asked to be replaced does not count. */
bool is_taken(unsigned place, enum role last);

/* Send SIGKILL. The caller logs why. */
void kill_child(struct child *child);

/* Tell a child to leave. The first call sets its deadline, after which kill_late kills it. */
void leave(struct child *child, enum handover_kind how, uint64_t within_ns);

/* All leaving children have only this long from now: they were told to end at once. */
void hurry_all(uint64_t within_ns);

/* Kill children that are past their deadline. */
void kill_late(uint64_t now_ns, uint32_t stop_timeout_ms);

void say_to_all(enum handover_kind kind);

#endif
