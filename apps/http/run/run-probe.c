/* SPDX-License-Identifier: MIT
 *
 * The plan of the probe.
 */
#include "run-private.h"

/* This is added to the seed, so that the arrivals and random values of the probe differ from those
 * of all workers. */
#define OTHER_SEED (UINT64_C(1) << 62)

void
load_probe_plan(struct load_plan *probe, const struct load_plan *plan)
{
    *probe = *plan;
    probe->sockets = LOAD_PROBE_SOCKETS;
    probe->workers = 1;
    /* If the server is slow, the probe's queries wait for a socket, instead of being skipped, so
     * that their response times show it. */
    probe->model = LOAD_PARTLY_OPEN;
    probe->arrivals = LOAD_POISSON;
    probe->rate = probe->rate_end = plan->probe_rate;
    probe->stages_number = 0;
    probe->probe_rate = 0;
    probe->shards = probe->shard = 0;
    probe->think_ns = 0;
    probe->deadline_ns = 0;
    probe->depth = 1;
    probe->ramp = LOAD_PROBE_SOCKETS;
    probe->ramp_rate = 0;
    probe->seed = plan->seed + OTHER_SEED;
    /* Without a duration the parent stops the probe when the load has ended. */
    if (plan->stop != LOAD_STOP_TIME)
        probe->duration_ns = LOAD_FOREVER_NS;
    probe->stop = LOAD_STOP_TIME;
}
