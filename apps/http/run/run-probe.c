/* SPDX-License-Identifier: MIT */
#include "run-private.h"

/* Seeds so far apart that no worker has the probe's: its arrivals and random values are its own. */
#define OTHER_SEED (UINT64_C(1) << 62)

void
http_probe_plan(struct http_plan *probe, const struct http_plan *plan)
{
    *probe = *plan;
    probe->sockets = HTTP_PROBE_SOCKETS;
    probe->workers = 1;
    /* None is skipped because its server is slow: it waits, and its response time shows it. */
    probe->model = HTTP_PARTLY_OPEN;
    probe->arrivals = HTTP_POISSON;
    probe->rate = probe->rate_end = plan->probe_rate;
    probe->stages_number = 0;
    probe->probe_rate = 0;
    probe->shards = probe->shard = 0;
    probe->think_ns = 0;
    probe->deadline_ns = 0;
    probe->depth = 1;
    probe->ramp = HTTP_PROBE_SOCKETS;
    probe->ramp_rate = 0;
    probe->seed = plan->seed + OTHER_SEED;
    /* Otherwise it is told when the load is over. */
    if (plan->stop != HTTP_STOP_TIME)
        probe->duration_ns = HTTP_FOREVER_NS;
    probe->stop = HTTP_STOP_TIME;
}
