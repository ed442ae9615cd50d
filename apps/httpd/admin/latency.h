/* SPDX-License-Identifier: MIT
 *
 * What: histograms of durations: the bucket of a duration, quantiles, and the bounds of the counts
 * that Prometheus gets.
 *
 * Place: admin-metrics.c counts with it; metrics-sum.c, prometheus.c, status-json.c and
 * status-page.c evaluate the counts.
 *
 * Shape: durations are rounded up to whole us. The scale is log-linear: up to 10 us buckets are 1
 * us wide, and above that each power of ten is cut into 90 buckets. So the width of a bucket is at
 * most a tenth of its durations. Every bound of latency_bounds_us is the end of a bucket, so counts
 * up to a bound are exact.
 *
 *     us      1 2 .. 10 | 11 .. 100 | 110 120 .. 1000 | .. 100 s | more
 *     bucket  0 1 .. 9  | 10 .. 99  | 100 101 .. 189  | .. 639   | 640
 *
 * Limits: 641 buckets, 5 KiB. All durations above 100 s are in the last bucket.
 */
#ifndef LATENCY_H
#define LATENCY_H

#include <stdint.h>

#define LATENCY_BUCKETS 641
#define LATENCY_MAX_US  UINT32_C(100000000)
/* the number of bounds in histograms for Prometheus; an array of counts has one element more, for
 * durations above the last bound */
#define LATENCY_BOUNDS 19

static inline unsigned
latency_bucket(uint64_t ns)
{
    static const uint32_t ends[] = {100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    static const uint32_t widths[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    unsigned decade = 0;
    uint32_t us;

    if (ns > LATENCY_MAX_US * UINT64_C(1000))
        return LATENCY_BUCKETS - 1;
    us = (uint32_t)((ns + 999) / 1000);
    us -= us > 0;
    while (us >= ends[decade])
        decade++;
    return decade * 90 + us / widths[decade];
}

/* The longest duration in a bucket, in us. LATENCY_MAX_US for the last bucket. */
uint32_t latency_bucket_end_us(unsigned bucket);

/* How many of the bounds are below the end of this bucket: 0 to LATENCY_BOUNDS. */
unsigned latency_bound_of_bucket(unsigned bucket);

/* The bounds in us, in ascending order. */
extern const uint32_t latency_bounds_us[LATENCY_BOUNDS];

/* The duration in us that the given fraction (0 to 1) of all durations does not exceed. It is the
 * end of a bucket. 0: all buckets are empty. */
uint32_t latency_quantile_us(const uint64_t buckets[LATENCY_BUCKETS], double fraction);

/* Like latency_quantile_us, but computed from the counts between the bounds. Returns one of the
 * bounds, or LATENCY_MAX_US if the duration is above the last bound. */
uint32_t latency_bounds_quantile_us(const uint64_t counts[LATENCY_BOUNDS + 1], double fraction);

#endif
