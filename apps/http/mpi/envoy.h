/* SPDX-License-Identifier: MIT
 *
 * What: the process at rank 0 that represents a rank's worker. Place: the coordinator (run/) forks
 * it instead of a worker, because load_workers_work is load_envoy_work. It has a worker's messages
 * and shared result, so everything that the coordinator does with workers (trials, searches, marks,
 * the live view) works with ranks, too.
 *
 * Shape: frames of the rank's channel become messages and changes of the result; messages become
 * frames. If the rank reports that its worker is gone, or sends nothing for load_envoy_silent_ns,
 * the envoy prints that, and ends like a worker that failed: the run ends and is reported.
 *
 * Limits: READY is passed on only after the rank's clock was measured.
 */
#ifndef LOAD_ENVOY_H
#define LOAD_ENVOY_H

#include "ranks.h"

/* A rank that sends nothing for silent_ns is lost; before its first frame for first_ns, which is
 * longer because the rank reads files then. */
extern uint64_t load_envoy_silent_ns;
extern uint64_t load_envoy_first_ns;

/* From now on use the workers of these ranks, whose channels must be open. */
void load_envoy_use(struct load_ranks *ranks);

/* The work of an envoy's process; see load_workers_work. */
int load_envoy_work(const struct load_worker *worker);

#endif
