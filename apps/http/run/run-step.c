/* SPDX-License-Identifier: MIT
 *
 * A step of a search goes on until its condition can be told. Far from the limit that is soon:
 * what lies beyond the condition's value is then far more, or far less, than may be. Near it takes
 * four times as many samples as a figure needs at all, and even these may not be there in time.
 */
#include <math.h>

#include "run-private.h"

#define NEAR         4.0
#define CLEAR_MISS   4.0 /* deviations of what is chance */
#define CLEAR_HOLD   (-2.5)
#define MISSES_LEAST 20 /* below that even a clear miss may be one burst */

/* A rate does not hold if the server does not answer it, however soon those answers come that do:
 * so much of what was offered must be answered well, but for as many as may just be on their way,
 * and what is chance of those that were on their way at the beginning. */
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
is_answered(const struct load_result *result)
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
    step->holds = step->is_told && holds && is_answered(result);
    step->is_told = step->is_told || is_clear_miss(&evidence) || !is_answered(result);
}
