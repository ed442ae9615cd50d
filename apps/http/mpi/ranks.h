/* SPDX-License-Identifier: MIT
 *
 * What: the table of ranks. A rank is a process that mpirun started, with one worker. Place: rank 0
 * has the table in memory that its processes share; envoys write the hosts and clocks into it, and
 * the coordinator judges each rank alone.
 *
 * Shape: reasons against a rank are in the verdict with its name: "rank 2 on node2: waited 12.0 %
 * of the time for a CPU ..."; each rank is a part of the run (run.h), like a file of merge.
 */
#ifndef LOAD_RANKS_H
#define LOAD_RANKS_H

#include "run-private.h"

#define LOAD_RANKS_MAX LOAD_WORKERS_MAX
#define LOAD_HOST_MAX  60

struct load_rank {
    char host[LOAD_HOST_MAX + 1]; /* the name of its machine; "": not known yet */
    uint64_t clock_ns;            /* how exact its clock's measured offset is */
    /* The channel for frames of the rank, in processes that are forked after it was opened; -1:
     * there is none. */
    int channel;
};

struct load_ranks {
    unsigned number;
    struct load_requests *script; /* the run's requests, if a script makes them; or NULL */
    struct load_rank ranks[LOAD_RANKS_MAX];
};

/* Make a table that all processes forked later share; NULL: no memory. */
struct load_ranks *load_ranks_new(unsigned number);
void load_ranks_free(struct load_ranks *ranks);

/* Make a name like "rank 2 on node2", in a static text. */
const char *load_rank_name(const struct load_ranks *ranks, unsigned rank);

/* From now on judge each worker of a trial separately, as a rank of this table. */
void load_ranks_judge(struct load_ranks *ranks);

#endif
