/* SPDX-License-Identifier: MIT */
#include "histogram.h"

#include <math.h>

#define SUB 64u /* buckets a power of two */

/* Bits that a bucket of such a value does not tell apart. */
static unsigned
shift_of(uint64_t ns)
{
    return ns < 2 * SUB ? 0 : 57u - (unsigned)__builtin_clzll(ns);
}

void
http_histogram_record(struct http_histogram *histogram, uint64_t ns)
{
    unsigned shift = shift_of(ns);

    histogram->buckets[shift * SUB + (ns >> shift)]++;
    histogram->count++;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
}

/* The longest duration that a bucket holds. */
static uint64_t
last_of(unsigned bucket)
{
    unsigned shift = bucket < 2 * SUB ? 0 : bucket / SUB - 1;

    return ((uint64_t)(bucket - shift * SUB) << shift) + ((UINT64_C(1) << shift) - 1);
}

uint64_t
http_histogram_quantile(const struct http_histogram *histogram, double fraction)
{
    uint64_t wanted = (uint64_t)ceil(fraction * (double)histogram->count);
    uint64_t seen = 0;
    unsigned bucket = 0;

    while (seen + histogram->buckets[bucket] < wanted)
        seen += histogram->buckets[bucket++];
    /* The bucket of the longest one may end after it. */
    return last_of(bucket) < histogram->max_ns ? last_of(bucket) : histogram->max_ns;
}
