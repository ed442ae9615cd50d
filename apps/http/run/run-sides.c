/* SPDX-License-Identifier: MIT
 *
 * Trials of two sides, A and B; seeds of trials; and how many requests each figure needs.
 */
#include "run-private.h"

/* The number of the trial is added to the seed at this bit. It is above the bits that differ
 * between shards (pace.c), and below the probe's bit (run-probe.c). */
#define TRIAL_SHIFT 48

bool
load_has_sides(const struct load_plan *plan)
{
    return plan->aa || plan->baseline_cmd != NULL;
}

bool
load_trial_is_b(const struct load_plan *plan, unsigned trial)
{
    return load_has_sides(plan) && (trial % 4 == 1 || trial % 4 == 2);
}

uint64_t
load_trial_seed(const struct load_plan *plan, unsigned trial)
{
    uint64_t pair = load_has_sides(plan) ? trial / 2 : trial;

    return plan->seed + (pair << TRIAL_SHIFT);
}

unsigned
load_figure_needs(enum load_figure figure)
{
    static const unsigned needs[LOAD_FIGURES] = {
        [LOAD_FIGURE_RATE] = 1,           [LOAD_FIGURE_SERVICE_P50] = 20,
        [LOAD_FIGURE_SERVICE_P95] = 200,  [LOAD_FIGURE_SERVICE_P99] = 1000,
        [LOAD_FIGURE_RESPONSE_P50] = 20,  [LOAD_FIGURE_RESPONSE_P95] = 200,
        [LOAD_FIGURE_RESPONSE_P99] = 1000};

    return needs[figure];
}

bool
load_figure_is_result(const struct load_plan *plan, enum load_figure figure)
{
    return figure != LOAD_FIGURE_RATE || plan->model == LOAD_CLOSED;
}
