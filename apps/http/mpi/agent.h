/* SPDX-License-Identifier: MIT
 *
 * What: the process of a rank that forks the rank's worker. Place: engine.c runs one on each rank,
 * rank 0 too; an envoy at rank 0 (envoy.h) controls it over the rank's channel.
 *
 * Shape: for each START it forks a worker, as the coordinator of a client without ranks does, and
 * passes messages on to it, with times by this machine's clock. It sends the worker's counts
 * several times a second, and completely at marks and at the end.
 *
 * If a worker dies, or is stopped for long (SIGSTOP), its counts are sent first, and then GONE. If
 * rank 0 sends nothing for long, the worker is killed, because nobody is left to end the load.
 */
#ifndef LOAD_AGENT_H
#define LOAD_AGENT_H

#include "plan.h"
#include "worker.h"

struct load_agent {
    int channel;
    /* the plan of the command line; NULL: the command line was refused */
    const struct load_plan *plan;
    struct load_requests *script; /* the plan's requests, if a script makes them; or NULL */
    const char *refusal;          /* why there is no plan */
};

extern uint64_t load_agent_period_ns;  /* how often RESULT is sent */
extern uint64_t load_agent_silent_ns;  /* how long rank 0 may send nothing */
extern uint64_t load_agent_stopped_ns; /* how long a worker may be stopped */

/* The work of a worker process: load_worker_run, unless a test replaces it. */
extern int (*load_agent_worker)(const struct load_worker *worker);

/* Obey the frames of the channel, until it is closed. */
void load_agent_run(const struct load_agent *agent);

#endif
