/* SPDX-License-Identifier: MIT
 *
 * Functions and names that all outputs use. This file does not call any output.
 */
#include "output.h"

#include <errno.h>
#include <string.h>

#include "requests.h"

const struct load_percentile load_percentiles[LOAD_PERCENTILES] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999},
};

const struct load_figure_name load_figure_names[LOAD_FIGURES] = {
    [LOAD_FIGURE_RATE] = {"rate a second", NULL, "rate", "rate"},
    [LOAD_FIGURE_SERVICE_P50] = {"service p50", "service", "p50", "service.p50"},
    [LOAD_FIGURE_SERVICE_P95] = {"service p95", "service", "p95", "service.p95"},
    [LOAD_FIGURE_SERVICE_P99] = {"service p99", "service", "p99", "service.p99"},
    [LOAD_FIGURE_RESPONSE_P50] = {"response p50", "response", "p50", "response.p50"},
    [LOAD_FIGURE_RESPONSE_P95] = {"response p95", "response", "p95", "response.p95"},
    [LOAD_FIGURE_RESPONSE_P99] = {"response p99", "response", "p99", "response.p99"},
};

int
load_output_finish(FILE *out)
{
    if (fflush(out) == 0 && !ferror(out))
        return 0;
    /* If an earlier write has failed, errno is still that of this write, because successful calls
     * do not change it. */
    return errno != 0 ? -errno : -EIO;
}

double
load_per_second(uint64_t count, double seconds)
{
    return seconds > 0 ? (double)count / seconds : 0;
}

const char *
load_kind_name(const struct load_plan *plan, unsigned kind)
{
    const struct load_requests *requests = plan->requests;

    return requests != NULL && kind < requests->kinds && requests->kind_names != NULL
               ? requests->kind_names[kind]
               : "request";
}

bool
load_is_local(const struct load_plan *plan)
{
    return plan->unix_path != NULL || strncmp(plan->ip, "127.", 4) == 0 ||
           strcmp(plan->ip, "::1") == 0;
}

const char *
load_model_text(enum load_model model)
{
    static const char *const names[] = {"closed loop", "partly open", "open"};

    return names[model];
}
