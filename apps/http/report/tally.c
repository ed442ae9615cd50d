/* SPDX-License-Identifier: MIT
 *
 * Counts of a load while it runs, with times in a few buckets.
 */
#include "tally.h"

/* Compute the upper bound of a bucket. The first bound is 2^6 - 1 us; each power of two has two
 * bounds. */
uint64_t
load_tally_bound_us(unsigned n)
{
    return (n % 2 == 0 ? UINT64_C(64) << n / 2 : UINT64_C(96) << n / 2) - 1;
}

static void
take_times(struct load_tally_times *times, const struct load_histogram *histogram)
{
    unsigned bound = 0;
    struct load_bucket bucket;

    times->sum_ns += histogram->sum_ns;
    for (unsigned at = 0; load_histogram_next(histogram, &at, &bucket);) {
        while (bound < LOAD_TALLY_BOUNDS && bucket.to_ns > load_tally_bound_us(bound) * 1000)
            bound++;
        times->buckets[bound] += bucket.count;
    }
}

static void
add_tally_times(struct load_tally_times *times, const struct load_tally_times *over)
{
    times->sum_ns += over->sum_ns;
    for (unsigned i = 0; i <= LOAD_TALLY_BOUNDS; i++)
        times->buckets[i] += over->buckets[i];
}

static void
add_all_results(uint64_t *to, const uint64_t *counts, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        to[i] += counts[i];
}

static uint64_t
open_connections(const struct load_result *result)
{
    return result->in_state[LOAD_SOCKET_IDLE] + result->in_state[LOAD_SOCKET_PARTLY] +
           result->in_state[LOAD_SOCKET_BUSY] + result->in_state[LOAD_SOCKET_THINKING] +
           result->in_state[LOAD_SOCKET_DONE];
}

void
load_tally_take(struct load_tally *tally, const struct load_result *result, bool is_closed)
{
    tally->offered += result->offered;
    tally->sent += result->sent;
    add_all_results(tally->skipped, result->skipped, LOAD_SKIPS);
    add_all_results(tally->ends, result->ends, LOAD_ENDS);
    add_all_results(tally->classes, result->classes, LOAD_CLASSES);
    tally->opened += result->opened;
    add_all_results(tally->unopened, result->unopened, LOAD_UNOPENEDS);
    tally->reopened += result->reopened;
    tally->not_reopened += result->not_reopened;
    tally->bytes_sent += result->bytes_sent;
    tally->bytes_received += result->bytes_received;
    take_times(&tally->response, &result->response);
    /* In a closed loop service times equal response times; a worker copies the histogram only now
     * and then. */
    take_times(&tally->service, is_closed ? &result->response : &result->service);
    tally->in_flight += result->in_flight;
    tally->waiting += result->waiting;
    tally->connections += open_connections(result);
    if (tally->started_ns == 0 ||
        (result->started_ns > 0 && result->started_ns < tally->started_ns))
        tally->started_ns = result->started_ns;
}

void
load_tally_add(struct load_tally *tally, const struct load_tally *over)
{
    tally->offered += over->offered;
    tally->sent += over->sent;
    add_all_results(tally->skipped, over->skipped, LOAD_SKIPS);
    add_all_results(tally->ends, over->ends, LOAD_ENDS);
    add_all_results(tally->classes, over->classes, LOAD_CLASSES);
    tally->opened += over->opened;
    add_all_results(tally->unopened, over->unopened, LOAD_UNOPENEDS);
    tally->reopened += over->reopened;
    tally->not_reopened += over->not_reopened;
    tally->bytes_sent += over->bytes_sent;
    tally->bytes_received += over->bytes_received;
    add_tally_times(&tally->response, &over->response);
    add_tally_times(&tally->service, &over->service);
}

uint64_t
load_tally_errors(const struct load_tally *tally)
{
    uint64_t errors = 0;

    for (unsigned i = LOAD_END_OK + 1; i < LOAD_ENDS; i++)
        errors += tally->ends[i];
    return errors;
}

uint64_t
load_tally_skipped(const struct load_tally *tally)
{
    uint64_t skipped = 0;

    add_all_results(&skipped, tally->skipped, 1);
    for (unsigned i = 1; i < LOAD_SKIPS; i++)
        skipped += tally->skipped[i];
    return skipped;
}
