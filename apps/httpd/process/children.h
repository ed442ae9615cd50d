/* SPDX-License-Identifier: MIT
 *
 * What: the table of a supervisor's child processes, from fork(2) to waitpid(2).
 *
 * Place: supervisor.c decides when a child is started and ended; hang.c checks that the children's
 * event loops turn.
 *
 * Limits: at most SUPERVISOR_CHILDREN children for each worker, see supervisor.h.
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
    unsigned looks;  /* how many looks one after the other found this counter, if it is odd */
    bool is_killed;  /* the supervisor killed this child, and logged why */
    bool is_worn;    /* this child has asked to be replaced */
    bool is_hurried; /* whether kill_ns is the shorter deadline after a second signal */
};

extern struct children {
    struct child each[SUPERVISOR_CHILDREN * WORKERS_MAX]; /* ordered by the time of their forks */
    unsigned number;
    unsigned workers;
    unsigned loads[WORKERS_MAX]; /* how many children each place has had so far */
} children;

/* Empty the table. */
void children_begin(unsigned workers);

/* Fork a child for this place. The child closes the links of all other children, and calls `be`,
 * which does not return. 0 or -errno. */
int children_fork(unsigned place, void (*be)(const struct worker *worker));

/* In a process that was just forked: close the supervisor's ends of all links. */
void children_close_links(void);

/* Kill the child at this index if it has not ended, reap it, and move it from the table to *buried.
 * Returns its status, as from waitpid(2). */
int children_bury(unsigned index, struct child *buried);

struct child *child_in(enum role role); /* the first child in this role; NULL: there is none */

/* Whether the place has a child in the role `last`, or in a role before it. A SERVING child that
 * asked to be replaced does not count. */
bool is_taken(unsigned place, enum role last);

/* Send SIGKILL. The caller logs why. */
void kill_child(struct child *child);

/* Tell a child to leave. The first call also sets the child's deadline, after which kill_late kills
 * it. */
void leave(struct child *child, enum handover_kind how, uint64_t within_ns);

/* All leaving children were told to end at once: set their deadline to within_ns from now. */
void hurry_all(uint64_t within_ns);

/* Kill the children whose deadline has passed. */
void kill_late(uint64_t now_ns, uint32_t stop_timeout_ms);

void say_to_all(enum handover_kind kind);

#endif
