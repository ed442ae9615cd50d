/* SPDX-License-Identifier: MIT
 *
 * What: an agent, which is the process of a rank that forks the rank's worker. A rank is a process
 * that mpirun started (ranks.h). Place: engine.c runs an agent on each rank, also on rank 0. An
 * envoy at rank 0 (envoy.h) controls the agent over the rank's channel.
 *
 * Shape: for each START the agent forks a worker, as the coordinator does if there are no ranks. It
 * passes messages on to the worker, with their times converted to this machine's clock. It sends
 * the worker's changed counts several times a second, and all of them at marks and at the end.
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
    const char *refusal;          /* why there is no plan, if plan is NULL */
};

extern uint64_t load_agent_period_ns; /* how often RESULT is sent */
/* how long rank 0 may send nothing before the agent gives up */
extern uint64_t load_agent_silent_ns;
/* how long a worker may be stopped (SIGSTOP) before the agent gives up */
extern uint64_t load_agent_stopped_ns;

/* The work of a worker process: load_worker_run, unless a test replaces it. */
extern int (*load_agent_worker)(const struct load_worker *worker);

/* Obey the frames of the channel, until it is closed. */
void load_agent_run(const struct load_agent *agent);

#endif
