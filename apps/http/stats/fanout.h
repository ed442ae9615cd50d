/* SPDX-License-Identifier: MIT
 *
 * What: computes from the times of single queries how long a page takes that sends K queries at
 * once, and so waits for the slowest (--fanout K; Dean and Barroso, The Tail at Scale, CACM 2013).
 * Place: the summary and output-json.c use it.
 *
 * Shape: if one query is in time with probability p, then K independent queries are all in time
 * with probability p^K. So the quantile q of pages is the quantile q^(1/K) of queries, and the part
 * 1 - p^K of all pages waits longer than the quantile p of queries. The times are response times;
 * in a closed loop they are service times.
 *
 * Limits: a quantile that has fewer than ten samples beyond it is not told.
 */
#ifndef LOAD_FANOUT_H
#define LOAD_FANOUT_H

#include "run.h"

#define LOAD_FANOUT_MAX 1000000
/* how many percentiles a page has: the first ones of load_percentiles */
#define LOAD_FANOUT_LEVELS 5

struct load_fanout_level {
    const char *name; /* the name of the page's percentile, such as "p50" */
    double of_one;    /* the quantile of single queries that has the same time */
    uint64_t ns;
    bool is_told;     /* whether there are enough samples; otherwise ns is 0 */
    bool is_at_least; /* whether ns is only a lower bound, because queries failed */
};

struct load_fanout {
    const char *times; /* the kind of times: "response" or "service" */
    double beyond_p99; /* the part of all pages that wait longer than the p99 of one query */
    struct load_fanout_level levels[LOAD_FANOUT_LEVELS];
};

/* Fill in *fanout from the times of all trials together. The plan's fanout must not be 0. */
void load_fanout_tell(struct load_fanout *fanout, const struct load_run *run);

#endif
