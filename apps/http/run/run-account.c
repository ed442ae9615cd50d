/* SPDX-License-Identifier: MIT
 *
 * Memory for results, making the counts of a dead worker consistent, and the figures of a result.
 */
#include "run-private.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

struct load_result *
load_results_map(unsigned number, bool is_shared)
{
    int flags = MAP_ANONYMOUS | MAP_NORESERVE | (is_shared ? MAP_SHARED : MAP_PRIVATE);
    void *memory =
        mmap(NULL, number * sizeof(struct load_result), PROT_READ | PROT_WRITE, flags, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void
load_results_unmap(struct load_result *results, unsigned number)
{
    if (results != NULL)
        munmap(results, number * sizeof(*results));
}

struct load_result *
load_results_map_run(const struct load_plan *plan, struct load_result **probe)
{
    bool has_probe = plan->probe_rate > 0;
    struct load_result *results = load_results_map(has_probe ? 2 : 1, false);

    *probe = has_probe && results != NULL ? &results[1] : NULL;
    return results;
}

void
load_results_unmap_run(struct load_result *result, const struct load_result *probe)
{
    load_results_unmap(result, probe != NULL ? 2 : 1);
}

void
load_results_clear(struct load_result *results, unsigned number)
{
    if (madvise(results, number * sizeof(*results), MADV_DONTNEED) < 0)
        memset(results, 0, number * sizeof(*results));
}

static uint64_t
total_of_counts(const uint64_t *counts, unsigned number)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < number; i++)
        sum += counts[i];
    return sum;
}

/* Set *left to the rest of *whole that is not in parts. If parts is more than *whole, raise *whole
 * to parts. */
static void
close_account(uint64_t *whole, uint64_t parts, uint64_t *left)
{
    if (*whole < parts)
        *whole = parts;
    *left = *whole - parts;
}

/* Count the samples again: a worker that died while it recorded a sample may have added it to a
 * bucket, but not to the count. */
static void
count_samples(struct load_histogram *histogram)
{
    histogram->count = 0;
    for (unsigned i = 0; i < LOAD_HISTOGRAM_BUCKETS; i++)
        histogram->count += histogram->buckets[i];
}

void
load_result_force(struct load_result *result, bool is_paced)
{
    uint64_t ended = total_of_counts(result->ends, LOAD_ENDS);
    uint64_t begun = result->sent + result->carried;
    uint64_t unopened = result->opened + total_of_counts(result->unopened, LOAD_UNOPENEDS);
    uint64_t untried = 0;
    uint64_t unsent = 0;

    close_account(&begun, ended, &result->in_flight);
    result->sent = begun - result->carried;
    result->waiting = 0;
    close_account(&result->offered, result->sent + load_result_skipped(result), &unsent);
    result->skipped[LOAD_SKIP_UNSENT] += unsent;
    close_account(&result->sockets_wanted, unopened, &untried);
    result->unopened[LOAD_UNOPENED_UNTRIED] += untried;
    count_samples(&result->connect);
    count_samples(&result->handshake);
    count_samples(&result->first_byte);
    count_samples(&result->response);
    load_result_copy_times(result, is_paced);
}

/* A percentile in ns; NAN: there are too few samples to tell it. */
static double
percentile_of(const struct load_histogram *histogram, double fraction)
{
    return load_histogram_can_tell(histogram, fraction)
               ? (double)load_histogram_quantile(histogram, fraction)
               : (double)NAN;
}

void
load_result_figures(const struct load_result *result, double figures[LOAD_FIGURES])
{
    static const double fractions[] = {0.5, 0.95, 0.99};

    figures[LOAD_FIGURE_RATE] = load_result_rate(result);
    for (unsigned i = 0; i < SXE_COUNT(fractions); i++) {
        figures[LOAD_FIGURE_SERVICE_P50 + i] = percentile_of(&result->service, fractions[i]);
        figures[LOAD_FIGURE_RESPONSE_P50 + i] = percentile_of(&result->response, fractions[i]);
    }
}

unsigned
load_figures_at_least(const struct load_result *result, const double figures[LOAD_FIGURES])
{
    unsigned bits = 0;

    for (unsigned i = LOAD_FIGURE_SERVICE_P50; i < LOAD_FIGURES; i++) {
        const struct load_histogram *histogram =
            i < LOAD_FIGURE_RESPONSE_P50 ? &result->service : &result->response;

        if (!isnan(figures[i]) && load_histogram_is_at_least(histogram, (uint64_t)figures[i]))
            bits |= 1u << i;
    }
    return bits;
}
