/* SPDX-License-Identifier: MIT
 *
 * What: the table of ranks. A rank is a process that mpirun started, with one worker. Place: the
 * table is in memory that the processes of rank 0 share. Envoys write the ranks' hosts and clocks
 * into it. The coordinator judges the worker of each rank separately.
 *
 * Shape: if a rank makes the result suspect, the verdict's reason begins with the rank's name:
 * "rank 2 on node2: waited 12.0 % of the time for a CPU ...". In the report each rank is a part of
 * the run (struct load_part), as each file of the command merge is.
 */
#ifndef LOAD_RANKS_H
#define LOAD_RANKS_H

#include "run-private.h"

#define LOAD_RANKS_MAX LOAD_WORKERS_MAX
#define LOAD_HOST_MAX  60

struct load_rank {
    char host[LOAD_HOST_MAX + 1]; /* the name of the rank's machine; "": not known yet */
    uint64_t clock_ns;            /* by how much the measured offset of its clock may be wrong */
    /* The channel for the rank's frames. Only processes that were forked after it was opened can
     * use it. -1: it is not open. */
    int channel;
};

struct load_ranks {
    unsigned number;
    struct load_requests *script; /* the run's requests, if a script makes them; or NULL */
    struct load_rank ranks[LOAD_RANKS_MAX];
};

/* Make a table in memory that processes forked later share. NULL: no memory. */
struct load_ranks *load_ranks_new(unsigned number);
void load_ranks_free(struct load_ranks *ranks);

/* Make a name like "rank 2 on node2", in a static text. */
const char *load_rank_name(const struct load_ranks *ranks, unsigned rank);

/* From now on judge each worker of a trial separately, as a rank of this table. */
void load_ranks_judge(struct load_ranks *ranks);

#endif
