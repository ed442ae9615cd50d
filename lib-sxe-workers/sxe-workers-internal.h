/* SPDX-License-Identifier: MIT
 *
 * What: what sxe-httpd asks of its workers' parent beyond sxe-workers.h.
 *
 * Place: the friend interface of lib-sxe-workers, not installed; sxe-workers-handover-internal.h
 * and the other -internal headers are its other parts.
 */
#ifndef SXE_WORKERS_INTERNAL_H
#define SXE_WORKERS_INTERNAL_H

#include <sys/types.h>

#include "sxe-workers.h"

/* Each function may be NULL; all are called in the parent. */
struct sxe__workers_hooks {
    /* Called at the start; it returns after how many seconds to call it again. */
    uint32_t (*on_turn)(void *user);
    /* Called before a load that a signal asked for, after on_load: it reads again the files that
     * are read only then. */
    void (*on_renew)(void *user);
    void (*on_ending)(void); /* the workers are told to leave, and nothing follows */
    /* A load begins; is_retry: the one before it has failed, and nobody asked for this one. */
    void (*on_attempt)(bool is_retry);
    void (*on_reason)(uint32_t digest); /* a worker sent a REASON with this value */
    bool (*is_reason_told)(void);       /* whether the log has the reason of a failure already */
    /* A process beside the workers. Start it again if it has ended; leave closes the descriptors of
     * the parent in the new process. Returns when to look again; UINT64_MAX: never. */
    uint64_t (*look_at_helper)(uint64_t now_ns, void (*leave)(void));
    pid_t (*helper)(void); /* the process id; 0: there is none now */
    /* a script that is watched with is_dev; NULL: none */
    const char *script;
    const char *stop_option; /* the option that sets stop_timeout_ms, for the log */
    const char *hang_option; /* the option that sets hang_timeout_ms, for the log */
    /* at SIGUSR1 load again, because workers cannot open the log again themselves */
    bool reopens_by_load;
    bool is_dev; /* whether a change of the script's files acts like SIGHUP */
    /* whether a change of other files that workers name acts like SIGHUP, too */
    bool watches_files;
};

/* In a worker: hear no more of the parent. */
void sxe__workers_ignore(void);

/* In a worker that was just forked. */
void sxe__workers_begin(const struct sxe_worker *worker, uint32_t stop_timeout_ms);

#endif
