/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the two files of the parent, which is the supervisor, share.
 * sxe-workers.c starts and ends children; sxe-workers-loop.c waits for signals, messages and
 * deadlines, and calls sxe-workers.c.
 *
 * Place: read it after sxe-workers.h. The files of this library in reading order:
 *
 *     sxe-workers.c            the table of that header: loads, replacements, ends
 *     sxe-workers-loop.c       sxe_workers_run: signals, messages, deadlines
 *     sxe-workers-children.c   the table of processes, from fork to their end
 *     sxe-workers-worker.c     the calls for workers
 *     sxe-workers-handover.c   messages and sockets between parent and workers
 *     sxe-workers-file.c       removes the file of a unix socket
 *     sxe-workers-balance.c    how workers share connections
 *     sxe-workers-heartbeat.c, sxe-workers-hang.c    how the parent sees that a worker hangs
 *     sxe-workers-changes.c    notices changed files
 *     sxe-workers-notify.c     tells systemd
 *     sxe-workers-upgrade.c    runs a new program
 *     sxe-workers-inherit.c    takes over sockets that another program passed
 */
#ifndef SXE_WORKERS_PRIVATE_H
#define SXE_WORKERS_PRIVATE_H

#include <signal.h>

#include "sxe-log.h"
#include "sxe-workers-children-private.h"
#include "sxe-workers-internal.h"

/* After another load was requested: how long the children that are still loading may take to become
 * ready. */
#define PATIENCE_NS     (10 * SXE_NS_PER_SECOND)
#define PATIENCE_DEV_NS SXE_NS_PER_SECOND
#define PATIENCE_MAX_NS (3600 * SXE_NS_PER_SECOND)

/* After a load that a changed file requested has failed: the shortest and the longest wait before
 * the next attempt. */
#define RETRY_MIN_NS SXE_NS_PER_SECOND
#define RETRY_MAX_NS (60 * SXE_NS_PER_SECOND)

/* how much longer than stop_timeout_ms a leaving child may take */
#define OVERTIME_NS (5 * SXE_NS_PER_SECOND)

extern struct sxe__supervisor {
    struct sxe_workers_config config; /* with the defaults filled in */
    struct sxe__workers_hooks hooks;
    unsigned workers;
    int signals;
    sigset_t mask_before;
    uint64_t start_ns; /* when to start children; NEVER: no start is planned */
    uint64_t delay_ns;
    uint64_t look_ns;
    uint64_t look_at_hearts_ns;
    uint64_t look_at_helper_ns;
    uint64_t alive_ns;   /* when to tell the service manager that this process lives */
    uint64_t turn_ns;    /* when to call config.on_turn */
    uint64_t give_up_ns; /* when to kill the load in progress; NEVER: no other load was requested */
    uint64_t patience_ns; /* how long after the request for another load give_up_ns is */
    uint64_t alone_ns;    /* when to kill children that load while none serves; NEVER: one serves */
    uint64_t alone_limit_ns; /* how long such children may load */
    /* when to load again, because the latest change of a file is not in service; NEVER: no such
     * load is planned */
    uint64_t retry_ns;
    uint64_t retry_delay_ns;
    bool has_served; /* whether any load has become ready */
    bool is_whole;   /* whether to start all workers at start_ns, and not only the missing ones */
    /* whether on_renew was called for the load in progress, so that it reads the files as they are
     * now */
    bool is_fresh;
    bool is_fresh_wanted; /* whether on_renew has to be called for the next load */
    /* whether the load in progress replaces all workers, and not only missing ones */
    bool is_renewing;
    /* whether there are too many children, so that others are started when one has ended */
    bool is_waiting;
    bool is_changed;  /* whether a watched file has changed since the last load began */
    bool is_retrying; /* whether the start at start_ns is a further attempt to load a change */
    bool is_stale;    /* whether the workers that serve have not read the latest change of a file */
    bool is_ending;
    /* whether a signal has asked for the end; after the next one all children end at once */
    bool is_told_to_end;
    int status;
} sxe__supervisor;

/* Called in a child: close the supervisor's descriptors, ignore the signals that it watched, and
 * restore the signal mask. */
void sxe__supervisor_leave_loop(void);

/* sxe__supervisor_start_children starts the missing children, or, if is_whole is set, all.
 * sxe__supervisor_start_all sets is_whole, and then does the same. So does sxe__supervisor_reload,
 * but if a load is in progress, it waits for its end. is_fresh: on_renew is to be called before the
 * load. */
void sxe__supervisor_start_children(void);
void sxe__supervisor_start_all(void);
void sxe__supervisor_reload(bool is_fresh);

/* Watch a file from now on. */
void sxe__supervisor_watch_file(const char *path);

/* Reload because a watched file has changed, or because such a reload has failed. */
void sxe__supervisor_note_change(void);
void sxe__supervisor_retry(void);

/* Kill the children that are still loading, although another load was requested long ago. */
void sxe__supervisor_give_up(void);

/* Tell all children to exit: with SXE__HANDOVER_END after they have finished their requests, with
 * SXE__HANDOVER_DRAIN because a new program serves. */
void sxe__supervisor_end_all(enum sxe__handover_kind how);

/* Handle the messages of the child at this index of `children`. If it has closed its link, reap
 * it. */
void sxe__supervisor_listen_to(unsigned index);

#endif
