/* SPDX-License-Identifier: MIT
 *
 * The plan of the probe.
 */
#include "run-private.h"

/* Seeds so far apart that no worker has the probe's: its arrivals and random values are its own. */
#define OTHER_SEED (UINT64_C(1) << 62)

void
load_probe_plan(struct load_plan *probe, const struct load_plan *plan)
{
    *probe = *plan;
    probe->sockets = LOAD_PROBE_SOCKETS;
    probe->workers = 1;
    /* None is skipped because its server is slow: it waits, and its response time shows it. */
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
    /* Otherwise it is told when the load is over. */
    if (plan->stop != LOAD_STOP_TIME)
        probe->duration_ns = LOAD_FOREVER_NS;
    probe->stop = LOAD_STOP_TIME;
}
