/* SPDX-License-Identifier: MIT
 *
 * What: what the two files of the supervisor share. supervisor.c starts and ends children;
 * supervisor-loop.c waits for signals, messages and deadlines, and calls supervisor.c.
 */
#ifndef SUPERVISOR_PRIVATE_H
#define SUPERVISOR_PRIVATE_H

#include <signal.h>

#include "children.h"
#include "supervisor.h"
#include "sxe-log.h"

/* How long children that are loading have to become ready after another load was asked for. */
#define PATIENCE_NS     (10 * SXE_NS_PER_SECOND)
#define PATIENCE_DEV_NS SXE_NS_PER_SECOND

/* Until a load after a change succeeds: the first and the longest wait for the next attempt. */
#define RETRY_MIN_NS SXE_NS_PER_SECOND
#define RETRY_MAX_NS (60 * SXE_NS_PER_SECOND)

#define OVERTIME_NS (5 * SXE_NS_PER_SECOND) /* how long a leaving child has after stop_timeout_ms */

extern struct supervisor {
    const struct supervisor_config *config;
    unsigned workers;
    int signals;
    sigset_t mask_before;
    uint64_t start_ns; /* when to start children; NEVER: no start is planned */
    uint64_t delay_ns;
    uint64_t look_ns;
    uint64_t look_at_hearts_ns;
    uint64_t look_at_admin_ns;
    uint64_t alive_ns;   /* when to tell the service manager that this process lives */
    uint64_t turn_ns;    /* when to call on_turn */
    uint64_t give_up_ns; /* when to kill the load in progress; NEVER: no other load was asked for */
    uint64_t patience_ns; /* how long give_up_ns is after the request for another load */
    /* when to load again because a changed file is not in service; NEVER: no such file */
    uint64_t retry_ns;
    uint64_t retry_delay_ns;
    bool has_served; /* whether a load has become ready once */
    bool is_whole;   /* whether to start all workers at start_ns, and not only missing ones */
    /* whether the load in progress has read the files as they are now, see on_renew */
    bool is_fresh;
    bool is_fresh_wanted; /* whether the next load must read the files again */
    bool is_renewing;     /* whether the load in progress replaces all workers */
    bool is_waiting;  /* whether a start waits for the end of a child, because there are too many */
    bool is_changed;  /* whether a watched file has changed since the last load began */
    bool is_retrying; /* whether the start at start_ns is another attempt to load a change */
    bool is_stale;    /* whether the serving workers have not read the latest change of a file */
    bool is_ending;
    bool is_told_to_end; /* whether a signal asked for the end; the next signal ends all at once */
    int status;
} supervisor;

/* In a child: close the supervisor's descriptors, ignore its signals, restore the signal mask. */
void supervisor_leave_loop(void);

/* Start the missing children, or all if is_whole is set. supervisor_start_all sets it first. So
 * does supervisor_reload, but if a load is in progress, only after that load. is_fresh: see
 * on_renew. */
void supervisor_start_children(void);
void supervisor_start_all(void);
void supervisor_reload(bool is_fresh);

/* Reload because a watched file has changed, or because such a reload has failed. */
void supervisor_note_change(void);
void supervisor_retry(void);

/* Kill children that are still loading although another load was asked for. */
void supervisor_give_up(void);

/* Tell all children to finish and exit (HANDOVER_END), or to drain because a new program serves
 * (HANDOVER_DRAIN). */
void supervisor_end_all(enum handover_kind how);

/* Handle the messages of the child at this index of `children`; reap it if it closed its link. */
void supervisor_listen_to(unsigned index);

#endif
