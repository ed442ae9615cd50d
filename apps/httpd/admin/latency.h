/* SPDX-License-Identifier: MIT
 *
 * What: which bucket a duration belongs to, and what a number of buckets say: quantiles, and counts
 * below the bounds that Prometheus is given.
 *
 * Place: admin-metrics.c records with it; prometheus.c and status-json.c ask it.
 *
 * Shape: log-linear, of durations rounded up to whole us: 1 us wide up to 10 us, then each power of
 * ten is cut into 90. So a bucket is at most a tenth of its value wide, and every bound below is
 * the end of a bucket: counts up to a bound are exact.
 *
 *     us      1 2 .. 10 | 11 .. 100 | 110 120 .. 1000 | .. 100 s | more
 *     bucket  0 1 .. 9  | 10 .. 99  | 100 101 .. 189  | .. 639   | 640
 *
 * Limits: 641 buckets, 5 KiB. Durations above 100 s are not told apart.
 */
#ifndef LATENCY_H
#define LATENCY_H

#include <stdint.h>

#define LATENCY_BUCKETS 641
#define LATENCY_MAX_US  UINT32_C(100000000)
#define LATENCY_BOUNDS  19 /* of the histograms that Prometheus gets; one more for what is above */

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

/* Us: the longest duration in a bucket. LATENCY_MAX_US for the last bucket. */
uint32_t latency_bucket_end_us(unsigned bucket);

/* The number of bounds that are below a bucket: 0 to LATENCY_BOUNDS. */
unsigned latency_bound_of_bucket(unsigned bucket);

/* Us: the bounds, in order. */
extern const uint32_t latency_bounds_us[LATENCY_BOUNDS];

/* Us: the end of the bucket in which that fraction (0 to 1) of all is reached; 0: there are none.
 */
uint32_t latency_quantile_us(const uint64_t buckets[LATENCY_BUCKETS], double fraction);

/* Us: the lowest bound that holds that fraction of all. Counts are for each bound, and one for what
 * is above the last, which is LATENCY_MAX_US; 0: there are none. */
uint32_t latency_bounds_quantile_us(const uint64_t counts[LATENCY_BOUNDS + 1], double fraction);

#endif
