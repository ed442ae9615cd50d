/* SPDX-License-Identifier: MIT */
#include "run-private.h"

/* Above the bits that tell shards apart (pace.c), and below the probe's (run-probe.c). */
#define TRIAL_SHIFT 48

bool
http_has_sides(const struct http_plan *plan)
{
    return plan->aa || plan->baseline_cmd != NULL;
}

bool
http_trial_is_b(const struct http_plan *plan, unsigned trial)
{
    return http_has_sides(plan) && (trial % 4 == 1 || trial % 4 == 2);
}

uint64_t
http_trial_seed(const struct http_plan *plan, unsigned trial)
{
    uint64_t number = http_has_sides(plan) ? trial / 2 : trial;

    return plan->seed + (number << TRIAL_SHIFT);
}

unsigned
http_figure_needs(enum http_figure figure)
{
    static const unsigned needs[HTTP_FIGURES] = {
        [HTTP_FIGURE_RATE] = 1,           [HTTP_FIGURE_SERVICE_P50] = 20,
        [HTTP_FIGURE_SERVICE_P95] = 200,  [HTTP_FIGURE_SERVICE_P99] = 1000,
        [HTTP_FIGURE_RESPONSE_P50] = 20,  [HTTP_FIGURE_RESPONSE_P95] = 200,
        [HTTP_FIGURE_RESPONSE_P99] = 1000};

    return needs[figure];
}

bool
http_figure_is_result(const struct http_plan *plan, enum http_figure figure)
{
    return figure != HTTP_FIGURE_RATE || plan->model == HTTP_CLOSED;
}
