/* SPDX-License-Identifier: MIT
 *
 * What: an envoy, which is a process at rank 0 that stands for the worker of a rank. Place: the
 * coordinator (run/) forks it instead of a worker, because load_workers_work is load_envoy_work.
 * Like a worker it exchanges messages with the coordinator, and shares a result with it. So
 * everything that the coordinator does with workers (trials, searches, marks, the live view) works
 * with ranks, too.
 *
 * Shape: the envoy turns frames from the rank's channel into messages and changes of the result,
 * and messages of the coordinator into frames. If the rank reports that its worker is gone, or
 * sends nothing for load_envoy_silent_ns, the envoy prints a message, and ends like a worker that
 * failed: the run ends and is reported.
 *
 * Limits: READY is passed on only after the rank's clock was measured.
 */
#ifndef LOAD_ENVOY_H
#define LOAD_ENVOY_H

#include "ranks.h"

/* A rank is lost if it sends nothing for silent_ns. Before its first frame it may take first_ns,
 * which is longer, because the rank reads files then. */
extern uint64_t load_envoy_silent_ns;
extern uint64_t load_envoy_first_ns;

/* From now on use the workers of these ranks, whose channels must be open. */
void load_envoy_use(struct load_ranks *ranks);

/* The work of an envoy's process, in place of that of a worker: see load_workers_work. */
int load_envoy_work(const struct load_worker *worker);

#endif
