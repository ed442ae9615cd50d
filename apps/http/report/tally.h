/* SPDX-License-Identifier: MIT
 *
 * What: the numbers of a result that are reported during a run: counts, and times in few buckets.
 * Place: monitor.c takes one each second; metrics-text.c and output-jsonl.c print it.
 *
 * Shape: each bound is also the bound of a bucket of histogram.h, so that each count is exact:
 * times up to 2^n - 1 us and up to 3 * 2^n - 1 us, from 63 us to 67 s.
 *
 *     us   63   95   127   191   255 .. 4095   6143   8191 .. 50331647   67108863   more
 */
#ifndef LOAD_TALLY_H
#define LOAD_TALLY_H

#include "result.h"

#define LOAD_TALLY_BOUNDS 41

struct load_tally_times {
    /* how many times are in each bucket (not cumulative); the last bucket has all longer times */
    uint64_t buckets[LOAD_TALLY_BOUNDS + 1];
    uint64_t sum_ns;
};

struct load_tally {
    /* Counts, which only rise */
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
    uint64_t started_ns;  /* when the first worker's queries began; 0: none has begun */
};

/* The longest time of the nth bucket, in us; n is below LOAD_TALLY_BOUNDS. */
uint64_t load_tally_bound_us(unsigned n);

/* Add a worker's result. If is_closed, its response times count as its service times, too. */
void load_tally_take(struct load_tally *tally, const struct load_result *result, bool is_closed);

/* Add only the counts of trials that are over, not their state. */
void load_tally_add(struct load_tally *tally, const struct load_tally *over);

uint64_t load_tally_errors(const struct load_tally *tally);
uint64_t load_tally_skipped(const struct load_tally *tally);

#endif
