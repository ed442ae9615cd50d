/* SPDX-License-Identifier: MIT */
#include "run-private.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

struct http_result *
http_results_map(unsigned number, bool is_shared)
{
    int flags = MAP_ANONYMOUS | MAP_NORESERVE | (is_shared ? MAP_SHARED : MAP_PRIVATE);
    void *memory =
        mmap(NULL, number * sizeof(struct http_result), PROT_READ | PROT_WRITE, flags, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void
http_results_unmap(struct http_result *results, unsigned number)
{
    if (results != NULL)
        munmap(results, number * sizeof(*results));
}

struct http_result *
http_results_map_run(const struct http_plan *plan, struct http_result **probe)
{
    bool has_probe = plan->probe_rate > 0;
    struct http_result *results = http_results_map(has_probe ? 2 : 1, false);

    *probe = has_probe && results != NULL ? &results[1] : NULL;
    return results;
}

void
http_results_unmap_run(struct http_result *result, const struct http_result *probe)
{
    http_results_unmap(result, probe != NULL ? 2 : 1);
}

void
http_results_clear(struct http_result *results, unsigned number)
{
    if (madvise(results, number * sizeof(*results), MADV_DONTNEED) < 0)
        memset(results, 0, number * sizeof(*results));
}

static uint64_t
total(const uint64_t *counts, unsigned number)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < number; i++)
        sum += counts[i];
    return sum;
}

/* *left becomes what makes parts + *left the whole; if the parts are more already, they are it. */
static void
close_account(uint64_t *whole, uint64_t parts, uint64_t *left)
{
    if (*whole < parts)
        *whole = parts;
    *left = *whole - parts;
}

void
http_result_force(struct http_result *result)
{
    uint64_t ended = total(result->ends, HTTP_ENDS);
    uint64_t begun = result->sent + result->carried;
    uint64_t unopened = result->opened + total(result->unopened, HTTP_UNOPENEDS);
    uint64_t untried = 0;
    uint64_t unsent = 0;

    close_account(&begun, ended, &result->in_flight);
    result->sent = begun - result->carried;
    result->waiting = 0;
    close_account(&result->offered, result->sent + http_result_skipped(result), &unsent);
    result->skipped[HTTP_SKIP_UNSENT] += unsent;
    close_account(&result->sockets_wanted, unopened, &untried);
    result->unopened[HTTP_UNOPENED_UNTRIED] += untried;
}

/* In ns; NAN: it cannot be told. */
static double
percentile_of(const struct http_histogram *histogram, double fraction)
{
    return http_histogram_can_tell(histogram, fraction)
               ? (double)http_histogram_quantile(histogram, fraction)
               : (double)NAN;
}

void
http_result_figures(const struct http_result *result, double figures[HTTP_FIGURES])
{
    static const double fractions[] = {0.5, 0.95, 0.99};

    figures[HTTP_FIGURE_RATE] = http_result_rate(result);
    for (unsigned i = 0; i < SXE_COUNT(fractions); i++) {
        figures[HTTP_FIGURE_SERVICE_P50 + i] = percentile_of(&result->service, fractions[i]);
        figures[HTTP_FIGURE_RESPONSE_P50 + i] = percentile_of(&result->response, fractions[i]);
    }
}

unsigned
http_figures_at_least(const struct http_result *result, const double figures[HTTP_FIGURES])
{
    unsigned bits = 0;

    for (unsigned i = HTTP_FIGURE_SERVICE_P50; i < HTTP_FIGURES; i++) {
        const struct http_histogram *histogram =
            i < HTTP_FIGURE_RESPONSE_P50 ? &result->service : &result->response;

        if (!isnan(figures[i]) && http_histogram_is_at_least(histogram, (uint64_t)figures[i]))
            bits |= 1u << i;
    }
    return bits;
}
