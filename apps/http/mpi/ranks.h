/* SPDX-License-Identifier: MIT
 *
 * What: who makes the load: a rank is a process that mpirun started, with one worker. Place: rank 0
 * has a table of all of them in memory that its processes share; envoys write what they learn, and
 * the coordinator judges each rank alone.
 *
 * Shape: what speaks against a rank stands in the verdict with its name, "rank 2 on node2: waited
 * 12.0 % of the time for a CPU ..."; each is a part of the run (run.h), as a file of merge is.
 */
#ifndef LOAD_RANKS_H
#define LOAD_RANKS_H

#include "run-private.h"

#define LOAD_RANKS_MAX LOAD_WORKERS_MAX
#define LOAD_HOST_MAX  60

struct load_rank {
    char host[LOAD_HOST_MAX + 1]; /* "" before it is known */
    uint64_t clock_ns;            /* its clock is known so well */
    int channel; /* where its frames come from, in processes that were forked since; -1: nowhere */
};

struct load_ranks {
    unsigned number;
    struct load_requests *script; /* the run's, if it is a script's; or NULL */
    struct load_rank ranks[LOAD_RANKS_MAX];
};

/* Shared by all processes that are forked from then on; NULL: no memory. */
struct load_ranks *load_ranks_new(unsigned number);
void load_ranks_free(struct load_ranks *ranks);

/* "rank 2 on node2"; a static text. */
const char *load_rank_name(const struct load_ranks *ranks, unsigned rank);

/* From now on each worker of a trial is judged as a rank of these. */
void load_ranks_judge(struct load_ranks *ranks);

#endif
