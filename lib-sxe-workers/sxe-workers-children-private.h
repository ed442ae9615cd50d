/* SPDX-License-Identifier: MIT
 *
 * What: the table of a supervisor's child processes, from fork(2) to waitpid(2).
 *
 * Place: sxe-workers.c decides when to start and end a child; sxe-workers-hang.c checks that their
 * loops turn.
 *
 * Limits: SXE_WORKERS_CHILDREN for each worker, see sxe-workers.h.
 */
#ifndef SXE_WORKERS_CHILDREN_PRIVATE_H
#define SXE_WORKERS_CHILDREN_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sxe-workers-handover-internal.h"
#include "sxe-workers-heartbeat-private.h"
#include "sxe-workers.h"

#define NEVER UINT64_MAX

enum role {
    STARTING, /* the child has not sent READY */
    READY,    /* the child accepts, but not all workers of this load are ready yet */
    SERVING,
    LEAVING
};

struct sxe__child {
    pid_t pid;
    int link;
    enum role role;
    unsigned place;
    unsigned slot;
    uint64_t since_ns;
    uint64_t kill_ns;
    struct sxe__heartbeat *heartbeat;
    uint64_t turns;  /* the heartbeat's counter at sxe-workers-hang.c's last look */
    unsigned looks;  /* how many looks one after the other found this counter, if it is odd */
    bool is_killed;  /* the supervisor killed this child, and logged why */
    bool is_worn;    /* this child has asked to be replaced */
    bool is_hurried; /* whether kill_ns is the shorter deadline after a second signal */
};

extern struct sxe__children {
    struct sxe__child
        each[SXE_WORKERS_CHILDREN * SXE_WORKERS_MAX]; /* ordered by the time of their forks */
    unsigned number;
    unsigned workers;
    size_t (*describe)(char *text, size_t size);
    unsigned loads[SXE_WORKERS_MAX]; /* how many children each place has had so far */
} sxe__children;

/* Empty the table. describe: see struct sxe_workers_config. */
void sxe__children_begin(unsigned workers, size_t (*describe)(char *text, size_t size));

/* Fork a child for this place. The child closes the links of all other children, and calls `be`,
 * which does not return. 0 or -errno. */
int sxe__children_fork(unsigned place, void (*be)(const struct sxe_worker *worker));

/* In a process that was just forked: close the supervisor's ends of all links. */
void sxe__children_close_links(void);

/* Kill the child at this index if it has not ended, reap it, and move it from the table to *buried.
 * Returns its status, as from waitpid(2). */
int sxe__children_bury(unsigned index, struct sxe__child *buried);

struct sxe__child *
sxe__child_in(enum role role); /* the first child in this role; NULL: there is none */

/* Whether the place has a child in the role `last`, or in a role before it. A SERVING child that
 * asked to be replaced does not count. */
bool sxe__child_is_taken(unsigned place, enum role last);

/* Whether a child serves in each place, even if it has asked to be replaced. */
bool sxe__children_serve_all(void);

/* Send SIGKILL. The caller logs why. */
void sxe__child_kill(struct sxe__child *child);

/* Tell a child to leave. The first call also sets the child's deadline, after which kill_late kills
 * it. */
void sxe__child_leave(struct sxe__child *child, enum sxe__handover_kind how, uint64_t within_ns);

/* All leaving children were told to end at once: set their deadline to within_ns from now. */
void sxe__children_hurry(uint64_t within_ns);

/* Kill the children whose deadline has passed. */
void sxe__children_kill_late(uint64_t now_ns, uint32_t stop_timeout_ms, const char *stop_option);

void sxe__children_say(enum sxe__handover_kind kind);

#endif
