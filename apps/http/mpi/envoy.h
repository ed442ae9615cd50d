/* SPDX-License-Identifier: MIT
 *
 * What: the process at rank 0 that stands for a worker of another rank. Place: the coordinator
 * (run/) forks it instead of a worker, load_workers_work being load_envoy_work: it has the same
 * messages and the same shared result, so whatever the coordinator does with workers (trials,
 * searches, marks, the live view) it does with ranks.
 *
 * Shape: frames of the rank's channel become messages and what is in the result, and messages
 * become frames. When the rank says that its worker is gone, or says nothing for
 * load_envoy_silent_ns, the envoy tells people so, and ends as a worker that failed: the run ends
 * with what was measured.
 *
 * Limits: READY is passed on when the rank's clock was measured.
 */
#ifndef LOAD_ENVOY_H
#define LOAD_ENVOY_H

#include "ranks.h"

/* A rank that says nothing for so long is lost; a longer time before its first word, because it
 * reads files then. */
extern uint64_t load_envoy_silent_ns;
extern uint64_t load_envoy_first_ns;

/* Workers are from now on those of these ranks, whose channels are open. */
void load_envoy_use(struct load_ranks *ranks);

/* See load_workers_work. */
int load_envoy_work(const struct load_worker *worker);

#endif
