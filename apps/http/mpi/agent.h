/* SPDX-License-Identifier: MIT
 *
 * What: the process of a rank that has its worker. Place: engine.c runs one on each rank, rank 0
 * too; an envoy at rank 0 (envoy.h) says what to do, over the rank's channel.
 *
 * Shape: for each START it forks a worker, as the coordinator of a client without ranks does, and
 * passes messages on to it, with times by this machine's clock. It sends the worker's counts
 * several times a second, and completely at marks and at the end.
 *
 * A worker that dies, or that somebody stops for long (SIGSTOP), is gone, and what it had counted
 * is sent before that is said. If rank 0 says nothing for long, the worker is killed: nobody is
 * left to end the load.
 */
#ifndef LOAD_AGENT_H
#define LOAD_AGENT_H

#include "plan.h"
#include "worker.h"

struct load_agent {
    int channel;
    const struct load_plan *plan; /* of the command line; NULL: it was refused */
    struct load_requests *script; /* the plan's, if they are a script's; or NULL */
    const char *refusal;          /* why there is no plan */
};

extern uint64_t load_agent_period_ns;  /* between two RESULTs */
extern uint64_t load_agent_silent_ns;  /* rank 0 may say nothing for so long */
extern uint64_t load_agent_stopped_ns; /* a worker may be stopped for so long */

/* The work of a worker process: load_worker_run, unless a test replaces it. */
extern int (*load_agent_worker)(const struct load_worker *worker);

/* Do what is said over the channel, until it is closed. */
void load_agent_run(const struct load_agent *agent);

#endif
