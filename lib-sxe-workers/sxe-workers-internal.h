/* SPDX-License-Identifier: MIT
 *
 * What: functions and settings of the parent of workers that only sxe-httpd uses, in addition to
 * sxe-workers.h.
 *
 * Place: this header is not installed. sxe-workers-handover-internal.h and the other -internal
 * headers also are only for sxe-httpd.
 */
#ifndef SXE_WORKERS_INTERNAL_H
#define SXE_WORKERS_INTERNAL_H

#include <sys/types.h>

#include "sxe-workers.h"

/* Functions that the parent calls, and settings. Each function may be NULL. */
struct sxe__workers_hooks {
    /* Called before a load that a signal requested, after on_load. It reads again the files that
     * are read again only then. */
    void (*on_renew)(void *user);
    void (*on_ending)(void); /* the workers are told to leave, and no others follow */
    /* A load begins. is_retry: the load before it failed, and nobody requested this one. */
    void (*on_attempt)(bool is_retry);
    void (*on_reason)(uint32_t digest); /* a worker sent a REASON with this value */
    bool (*is_reason_told)(void);       /* whether the reason of a failure was printed already */
    /* Called for the helper, a process beside the workers: start it again if it has ended. The new
     * process calls leave, which closes the parent's descriptors. Returns when to look again;
     * UINT64_MAX: never. */
    uint64_t (*look_at_helper)(uint64_t now_ns, void (*leave)(void));
    pid_t (*helper)(void); /* returns the helper's process id; 0: there is no helper now */
    /* the script that is watched if is_dev; NULL: there is none */
    const char *script;
    const char *stop_option; /* the option that sets stop_timeout_ms, for the log */
    const char *hang_option; /* the option that sets hang_timeout_ms, for the log */
    /* whether SIGUSR1 loads again, because workers cannot open the log again themselves */
    bool reopens_by_load;
    bool is_dev; /* whether a change of the script's files acts like SIGHUP */
    /* whether a change of other files that workers name acts like SIGHUP, too */
    bool watches_files;
};

/* In a worker: read no more messages of the parent. */
void sxe__workers_ignore(void);

/* Begin as a worker, in a process that was just forked. */
void sxe__workers_begin(const struct sxe_worker *worker, uint32_t stop_timeout_ms);

#endif
