/* SPDX-License-Identifier: MIT
 *
 * What: what the two files of the supervisor share. supervisor.c decides which processes there are;
 * supervisor-loop.c waits for signals, messages and deadlines, and calls it.
 */
#ifndef SUPERVISOR_PRIVATE_H
#define SUPERVISOR_PRIVATE_H

#include <signal.h>

#include "children.h"
#include "supervisor.h"
#include "sxe-log.h"

/* A child that loads gets this long from the time at which another load is asked for. */
#define PATIENCE_NS     (10 * SXE_NS_PER_SECOND)
#define PATIENCE_DEV_NS SXE_NS_PER_SECOND

#define OVERTIME_NS (5 * SXE_NS_PER_SECOND) /* beyond stop_timeout_ms */

extern struct supervisor {
    const struct supervisor_config *config;
    unsigned workers;
    int signals;
    sigset_t mask_before;
    uint64_t start_ns; /* when to start some */
    uint64_t delay_ns;
    uint64_t look_ns;
    uint64_t look_at_hearts_ns;
    uint64_t look_at_admin_ns;
    uint64_t alive_ns;    /* when to tell the service manager that this process lives */
    uint64_t turn_ns;     /* when to call on_turn */
    uint64_t give_up_ns;  /* the load under way, as another was asked for; NEVER: none was */
    uint64_t patience_ns; /* which it gets from then on */
    bool has_served;      /* a child has been ready once */
    bool is_whole;        /* all workers are to be started then, not only those that are missing */
    bool is_renewing;     /* all of them are being started */
    bool is_waiting;      /* they are to be started when there is a place for them */
    bool is_ending;
    int status;
} supervisor;

/* In a child: undo what supervisor-loop.c did for the supervisor. */
void supervisor_leave_loop(void);

/* Start the children that are due, or start all again. */
void supervisor_start_children(void);
void supervisor_start_all(void);
void supervisor_reload(void);

/* Kill children that still load although another load was asked for. */
void supervisor_give_up(void);

/* Tell all children to finish and exit, or to drain as the next program serves. */
void supervisor_end_all(enum handover_kind how);

/* Handle what the child at that index of `children` says, and its end. */
void supervisor_listen_to(unsigned index);

#endif
