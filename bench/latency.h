/* SPDX-License-Identifier: MIT
 *
 * A histogram of latencies, for the clients of this folder that use raw epoll. The width of a
 * bucket is at most 1/64 of its latencies.
 */
#ifndef LATENCY_H
#define LATENCY_H

#include <stdint.h>
#include <time.h>

enum { LATENCY_SUB = 64, LATENCY_BUCKETS = 28 * LATENCY_SUB };

struct latencies {
    uint64_t count;
    uint32_t buckets[LATENCY_BUCKETS];
};

static inline uint64_t
latency_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Record a latency that `replies` replies have, which came together. */
static inline void
latency_record(struct latencies *latencies, uint64_t ns, unsigned replies)
{
    uint64_t us = ns / 1000 < UINT32_MAX ? ns / 1000 : UINT32_MAX;
    unsigned shift = us < 2 * LATENCY_SUB ? 0 : 57u - (unsigned)__builtin_clzll(us);

    latencies->buckets[shift * LATENCY_SUB + (us >> shift)] += replies;
    latencies->count += replies;
}

static inline uint64_t
latency_us(const struct latencies *latencies, double quantile)
{
    uint64_t rank = (uint64_t)((double)latencies->count * quantile);
    uint64_t seen = 0;

    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        unsigned shift = i < 2 * LATENCY_SUB ? 0 : i / LATENCY_SUB - 1;

        seen += latencies->buckets[i];
        if (seen > rank)
            return (uint64_t)(i - shift * LATENCY_SUB) << shift;
    }
    return 0;
}

#endif
