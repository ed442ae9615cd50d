/* SPDX-License-Identifier: MIT
 *
 * What: what the figures of single queries mean for a page that needs K of them at once, and so
 * waits for the slowest (--fanout K; Dean and Barroso, The Tail at Scale, CACM 2013). Place: the
 * summary and output-json.c ask it.
 *
 * Shape: if a query is in time with probability p, K independent queries all are with p^K. So
 * quantile q of a page is quantile q^(1/K) of a query, and 1 - p^K of all pages wait longer than a
 * query's quantile p. Times are response times, in a closed loop service times.
 *
 * Limits: the further out a quantile, the more samples it takes: a quantile with fewer than ten
 * samples beyond it is not told.
 */
#ifndef LOAD_FANOUT_H
#define LOAD_FANOUT_H

#include "run.h"

#define LOAD_FANOUT_MAX    1000000
#define LOAD_FANOUT_LEVELS 5 /* how many percentiles: the first ones of load_percentiles */

struct load_fanout_level {
    const char *name; /* the page's percentile, "p50" */
    double of_one;    /* the quantile of single queries that equals it */
    uint64_t ns;
    bool is_told;     /* whether there are enough samples; otherwise ns is 0 */
    bool is_at_least; /* whether ns is only a lower bound, because queries failed */
};

struct load_fanout {
    const char *times; /* which times they are: "response" or "service" */
    double beyond_p99; /* the part of all pages that wait longer than the p99 of one query */
    struct load_fanout_level levels[LOAD_FANOUT_LEVELS];
};

/* Fill *fanout from all trials together. The plan's fanout must not be 0. */
void load_fanout_tell(struct load_fanout *fanout, const struct load_run *run);

#endif
