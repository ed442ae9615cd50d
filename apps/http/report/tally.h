/* SPDX-License-Identifier: MIT
 *
 * What: a tally: the numbers of a result that are reported during a run, which are counts, and
 * histograms of times with few buckets. Place: monitor.c makes a tally each second; metrics-text.c
 * and output-jsonl.c print it.
 *
 * Shape: the upper bounds of the buckets are 2^n - 1 us and 3 * 2^n - 1 us, from 63 us to 67 s.
 * Each is also a bound of a bucket of histogram.h, so that each count is exact:
 *
 *     us   63   95   127   191   255 .. 4095   6143   8191 .. 50331647   67108863   more
 */
#ifndef LOAD_TALLY_H
#define LOAD_TALLY_H

#include "result.h"

#define LOAD_TALLY_BOUNDS 41

struct load_tally_times {
    /* how many times are in each bucket alone (not cumulative); the last bucket has all longer
     * times */
    uint64_t buckets[LOAD_TALLY_BOUNDS + 1];
    uint64_t sum_ns;
};

struct load_tally {
    /* Counts, which can only grow */
    uint64_t offered;
    uint64_t sent;
    uint64_t skipped[LOAD_SKIPS];
    uint64_t ends[LOAD_ENDS];
    uint64_t classes[LOAD_CLASSES];
    uint64_t opened;
    uint64_t unopened[LOAD_UNOPENEDS];
    uint64_t reopened;
    uint64_t not_reopened;
    uint64_t bytes_sent;
    uint64_t bytes_received;
    struct load_tally_times response;
    struct load_tally_times service;

    /* The present state */
    uint64_t in_flight;
    uint64_t waiting;
    uint64_t connections; /* how many connections are open */
    /* when the first of the workers began to send queries; 0: none has begun */
    uint64_t started_ns;
};

/* The longest time of the nth bucket, in us; n is below LOAD_TALLY_BOUNDS. */
uint64_t load_tally_bound_us(unsigned n);

/* Add the result of a worker. If is_closed, its response times are used as its service times. */
void load_tally_take(struct load_tally *tally, const struct load_result *result, bool is_closed);

/* Add the counts of trials that are over, but not the members about the present state. */
void load_tally_add(struct load_tally *tally, const struct load_tally *over);

uint64_t load_tally_errors(const struct load_tally *tally);
uint64_t load_tally_skipped(const struct load_tally *tally);

#endif
