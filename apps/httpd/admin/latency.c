/* SPDX-License-Identifier: MIT
 *
 * The ends of buckets, quantiles, and the bounds for Prometheus. OpenTelemetry advises most of
 * these bounds for http.server.request.duration. Five smaller bounds are added, because this server
 * may answer in microseconds.
 */
#include "latency.h"

const uint32_t latency_bounds_us[LATENCY_BOUNDS] = {
    100,    250,    500,    1000,   2500,    5000,    10000,   25000,   50000,   75000,
    100000, 250000, 500000, 750000, 1000000, 2500000, 5000000, 7500000, 10000000};

uint32_t
latency_bucket_end_us(unsigned bucket)
{
    uint32_t width = 1;

    if (bucket >= LATENCY_BUCKETS - 1)
        return LATENCY_MAX_US;
    while (bucket >= 100) {
        bucket -= 90;
        width *= 10;
    }
    return (bucket + 1) * width;
}

unsigned
latency_bound_of_bucket(unsigned bucket)
{
    unsigned bound = 0;

    while (bound < LATENCY_BOUNDS && latency_bounds_us[bound] < latency_bucket_end_us(bucket))
        bound++;
    return bound;
}

/* Find the index at which a fraction of all counts is reached. Returns `number` if all counts are
 * 0. */
static unsigned
bucket_reached(const uint64_t *counts, unsigned number, double fraction)
{
    uint64_t all = 0;
    uint64_t sum = 0;
    unsigned i = 0;

    for (unsigned each = 0; each < number; each++)
        all += counts[each];
    if (all == 0)
        return number;
    while ((sum += counts[i]) == 0 || (double)sum < fraction * (double)all)
        i++;
    return i;
}

uint32_t
latency_quantile_us(const uint64_t buckets[LATENCY_BUCKETS], double fraction)
{
    unsigned bucket = bucket_reached(buckets, LATENCY_BUCKETS, fraction);

    return bucket == LATENCY_BUCKETS ? 0 : latency_bucket_end_us(bucket);
}

uint32_t
latency_bounds_quantile_us(const uint64_t counts[LATENCY_BOUNDS + 1], double fraction)
{
    unsigned bound = bucket_reached(counts, LATENCY_BOUNDS + 1, fraction);

    if (bound > LATENCY_BOUNDS)
        return 0;
    return bound == LATENCY_BOUNDS ? LATENCY_MAX_US : latency_bounds_us[bound];
}
