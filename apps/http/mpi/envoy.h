/* SPDX-License-Identifier: MIT
 *
 * What: the process at rank 0 that stands for a worker of another rank. Place: the coordinator
 * (run/) forks it instead of a worker, http_workers_work being http_envoy_work: it has the same
 * messages and the same shared result, so whatever the coordinator does with workers (trials,
 * searches, marks, the live view) it does with ranks.
 *
 * Shape: frames of the rank's channel become messages and what is in the result, and messages
 * become frames. When the rank says that its worker is gone, or says nothing for
 * http_envoy_silent_ns, the envoy tells people so, and ends as a worker that failed: the run ends
 * with what was measured.
 *
 * Limits: READY is passed on when the rank's clock was measured.
 */
#ifndef HTTP_ENVOY_H
#define HTTP_ENVOY_H

#include "ranks.h"

/* A rank that says nothing for so long is lost; a longer time before its first word, because it
 * reads files then. */
extern uint64_t http_envoy_silent_ns;
extern uint64_t http_envoy_first_ns;

/* Workers are from now on those of these ranks, whose channels are open. */
void http_envoy_use(struct http_ranks *ranks);

/* See http_workers_work. */
int http_envoy_work(const struct http_worker *worker);

#endif
