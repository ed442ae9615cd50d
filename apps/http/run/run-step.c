/* SPDX-License-Identifier: MIT
 *
 * Deciding when a step of a search can end, and whether its rate holds. A condition such as
 * p99<20ms allows a number of samples to lie beyond its value. Far from the limit a step can end
 * soon, because far more, or far fewer, samples than allowed lie beyond the value. Near the limit
 * it needs four times as many samples as the figure needs; the step may be too short for that.
 */
#include <math.h>

#include "run-private.h"

#define NEAR 4.0
/* if the number of samples beyond the value is so many standard deviations too high, the rate
 * clearly does not hold */
#define CLEAR_MISS 4.0
/* if the number of samples beyond the value is so many standard deviations below the allowed
 * number, the rate clearly holds */
#define CLEAR_HOLD (-2.5)
/* fewer samples beyond the value than this may come from a single burst */
#define MISSES_LEAST 20

/* A rate holds only if the server also answers it. This part of the offered queries must get a good
 * reply. Subtracted from it are ON_THE_WAY queries, which may be in flight at the end, and CHANCE
 * standard deviations of the number that was in flight at the beginning. */
#define ANSWERED   0.98
#define ON_THE_WAY 10
#define CHANCE     4.0

static double
excess_of(const struct load_evidence *evidence)
{
    double expected = evidence->allowed * evidence->samples;

    return expected > 0 ? (evidence->beyond - expected) / sqrt(expected) : 0;
}

static bool
is_clear_miss(const struct load_evidence *evidence)
{
    return evidence->beyond >= MISSES_LEAST && excess_of(evidence) > CLEAR_MISS;
}

bool
load_step_is_enough(const struct load_threshold *condition, const struct load_result *result)
{
    struct load_evidence evidence;

    load_threshold_evidence(condition, result, &evidence);
    if (is_clear_miss(&evidence))
        return true;
    if (evidence.samples < evidence.needed)
        return false;
    return excess_of(&evidence) < CLEAR_HOLD || evidence.samples >= NEAR * evidence.needed;
}

static bool
is_step_answered(const struct load_result *result)
{
    double least =
        ANSWERED * (double)result->offered - ON_THE_WAY - CHANCE * sqrt((double)result->carried);

    return (double)result->ends[LOAD_END_OK] >= least;
}

void
load_step_judge(struct load_step *step, const struct load_threshold *condition,
                const struct load_result *result)
{
    struct load_evidence evidence;
    bool holds;

    load_threshold_evidence(condition, result, &evidence);
    step->p50_ns = load_histogram_quantile(&result->response, 0.5);
    step->p90_ns = load_histogram_quantile(&result->response, 0.9);
    step->p95_ns = load_histogram_quantile(&result->response, 0.95);
    step->p99_ns = load_histogram_quantile(&result->response, 0.99);
    step->p999_ns = load_histogram_quantile(&result->response, 0.999);
    step->figure = load_threshold_figure(condition, result);
    holds = load_threshold_holds(condition, result, &step->is_told);
    step->is_told = step->is_told && evidence.samples >= evidence.needed;
    step->holds = step->is_told && holds && is_step_answered(result);
    step->is_told = step->is_told || is_clear_miss(&evidence) || !is_step_answered(result);
}
