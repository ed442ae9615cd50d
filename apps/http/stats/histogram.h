/* SPDX-License-Identifier: MIT
 *
 * What: a histogram counts how often each duration occurred, from 1 us to 1 h with three digits, in
 * constant memory. Place: workers record durations, and reports read them. A worker has one
 * histogram for each kind of duration, not one for each connection.
 *
 * Shape: a log-linear array of buckets. Durations are rounded up to whole us. Below 2,048 us a
 * bucket is one us wide; above, each power of two is cut into 1,024 buckets, so that a bucket is at
 * most 1/1,024 of its value wide. This is the layout of HdrHistogram with three significant digits.
 * Two histograms are added by adding their buckets: percentiles are never averaged.
 *
 *     us      0 1 2 .. 2047 | 2048-2049 .. 4094-4095 | 4096-4099 .. 8188-8191 | ...
 *     bucket  0 1 2 .. 2047 | 2048      .. 3071      | 3072      .. 4095      | ...
 *
 * A censored duration is one of which only a lower bound is known: a request that failed would have
 * taken longer. It is counted as this bound. So a percentile below the smallest of the bounds is
 * exact, and a larger percentile is only a lower bound.
 *
 * Limits: 189 KB. A duration over 1 h is counted as 1 h; max_ns, min_ns and sum_ns are exact, but
 * sum_ns stops at 584 years.
 */
#ifndef LOAD_HISTOGRAM_H
#define LOAD_HISTOGRAM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define LOAD_HISTOGRAM_BUCKETS (2048 + 21 * 1024)
#define LOAD_HISTOGRAM_MAX_NS  (UINT64_C(3600) * 1000000000)

/* A histogram of all zeros is empty. */
struct load_histogram {
    uint64_t count;  /* ro */
    uint64_t sum_ns; /* ro */
    uint64_t min_ns; /* ro: 0 if the histogram is empty */
    uint64_t max_ns; /* ro */
    /* ro: how many of the durations are only lower bounds */
    uint64_t censored;
    /* ro: the smallest of the lower bounds; 0: there are none */
    uint64_t censored_from_ns;
    uint64_t buckets[LOAD_HISTOGRAM_BUCKETS]; /* private */
};

_Static_assert(sizeof(struct load_histogram) < 200 * 1024, "issue: under 200 KB");

/* How many of the lowest bits of a time in us have no effect on its bucket. */
static inline unsigned
load__histogram_shift(uint64_t us)
{
    return us < 2048 ? 0 : 53u - (unsigned)__builtin_clzll(us);
}

static inline unsigned
load__histogram_bucket(uint64_t ns)
{
    uint64_t us = (ns < LOAD_HISTOGRAM_MAX_NS ? ns + 999 : LOAD_HISTOGRAM_MAX_NS) / 1000;
    unsigned shift = load__histogram_shift(us);

    return shift * 1024 + (unsigned)(us >> shift);
}

/* Record a duration. This function is inline, because it is called for each reply. */
static inline void
load_histogram_record(struct load_histogram *histogram, uint64_t ns)
{
    histogram->buckets[load__histogram_bucket(ns)]++;
    if (__builtin_add_overflow(histogram->sum_ns, ns, &histogram->sum_ns))
        histogram->sum_ns = UINT64_MAX;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
    if (ns < histogram->min_ns || histogram->count == 0)
        histogram->min_ns = ns;
    histogram->count++;
}

/* Record a censored duration: ns is its lower bound. */
void load_histogram_record_at_least(struct load_histogram *histogram, uint64_t ns);

/* The rank of a quantile: fraction * count rounded up, but at least 1 (0 if count is 0). It allows
 * for errors of rounding: the rank of 0.07 of 100 is 7, although in binary 0.07 * 100 is more than
 * 7. */
static inline uint64_t
load_rank(uint64_t count, double fraction)
{
    double rank = ceil(fraction * (double)count * (1 - 1e-15));

    if (rank >= (double)count)
        return count;
    return rank < 1 ? 1 : (uint64_t)rank;
}

/* Make copy, which is an earlier copy of *histogram, equal to *histogram. This is quick if little
 * was recorded since, and does not touch memory that neither histogram has used. */
void load_histogram_update(struct load_histogram *copy, const struct load_histogram *histogram);

void load_histogram_add(struct load_histogram *to, const struct load_histogram *histogram);

/* Keep only the durations that were recorded after `earlier`, an earlier copy of *histogram, was
 * made. Unless earlier is empty, min_ns and max_ns become bounds of buckets. */
void load_histogram_subtract(struct load_histogram *histogram,
                             const struct load_histogram *earlier);

/* The duration that the given fraction (0 to 1) of all durations does not exceed. It is the longest
 * duration of its bucket, but at most max_ns; 0: the histogram is empty. If the quantile is only a
 * lower bound, it is the shortest duration of its bucket, but at least censored_from_ns. */
uint64_t load_histogram_quantile(const struct load_histogram *histogram, double fraction);

/* Whether a quantile can be told: ten or more of `count` samples must lie beyond it, because with
 * fewer it may be chance. */
bool load_can_tell(uint64_t count, double fraction);

/* Whether a figure of the histogram, such as a percentile, min_ns or max_ns, is only a lower
 * bound. */
static inline bool
load_histogram_is_at_least(const struct load_histogram *histogram, uint64_t ns)
{
    return histogram->censored > 0 && ns >= histogram->censored_from_ns;
}

/* Whether a quantile of the histogram's durations can be told, as load_can_tell says. */
bool load_histogram_can_tell(const struct load_histogram *histogram, double fraction);

/* The mean; 0: the histogram is empty. If there are censored durations, the mean is only a lower
 * bound. */
double load_histogram_mean_ns(const struct load_histogram *histogram);
double load_histogram_deviation_ns(const struct load_histogram *histogram);

/* load_histogram_next finds the buckets that are not empty, in their order. Begin with *bucket 0;
 * each call sets *bucket to the number after the bucket that it found. False: there are no more
 * buckets. A bucket has the durations from from_ns to to_ns, both included. */
struct load_bucket {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t count;
};
bool load_histogram_next(const struct load_histogram *histogram, unsigned *bucket,
                         struct load_bucket *found);

#endif
