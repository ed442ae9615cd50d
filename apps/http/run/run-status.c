/* SPDX-License-Identifier: MIT
 *
 * Judging a run: thresholds, delivered load, errors, exit status.
 */
#include "run-private.h"

#include "text.h"

bool
load_until_ci_is_reached(const struct load_run *run)
{
    unsigned figure = run->plan->until_ci_figure;

    return run->figures_from[figure] <= 0 && run->figures[figure].is_known &&
           load_stats_width(&run->figures[figure]) < run->plan->until_ci;
}

static void
judge_threshold(struct load_run *run, struct load_judged *judged, const char *condition, FILE *err)
{
    load_threshold_parse(&judged->threshold, condition);
    judged->figure = load_threshold_figure(&judged->threshold, run->total);
    judged->is_at_least = load_threshold_is_at_least(&judged->threshold, run->total);
    judged->holds = load_threshold_holds(&judged->threshold, run->total, &judged->is_told);
    if (judged->holds)
        return;
    run->thresholds_missed++;
    fprintf(err, "sxe-http: threshold %s is missed%s\n", condition,
            judged->is_told                        ? ""
            : load_result_replies(run->total) == 0 ? ": there was no reply"
                                                   : ": there are too few samples to tell");
}

/* Whether failed queries make the run fail. If there is a threshold on errors, the threshold alone
 * decides how many may fail. Otherwise none may fail, and at least one query must have
 * succeeded. */
static bool
has_bad_queries(const struct load_run *run)
{
    for (unsigned i = 0; run->plan->thresholds[i] != NULL; i++)
        if (load_threshold_is_of_errors(&run->judged[i].threshold))
            return false;
    return load_result_errors(run->total) > 0 || run->total->ends[LOAD_END_OK] == 0;
}

/* The run fails if more than this part of the load was not sent. */
#define UNDELIVERED 0.01

static bool
lacks_queries(const struct load_result *result)
{
    return (double)load_result_skipped(result) > UNDELIVERED * (double)result->offered;
}

/* Whether too much of the load was not sent. If there is a threshold on `skipped` or `achieved`, it
 * decides that for the load, but not for the probe. A search is expected to try rates that cannot
 * be sent. */
static bool
is_undelivered(const struct load_run *run)
{
    if (run->probe != NULL && lacks_queries(run->probe))
        return true;
    for (unsigned i = 0; run->plan->thresholds[i] != NULL; i++)
        if (load_threshold_is_of_delivery(&run->judged[i].threshold))
            return false;
    return run->plan->find == NULL && lacks_queries(run->total);
}

static bool
lacks_sockets(const struct load_result *result)
{
    return result->opened < result->sockets_wanted || result->skipped[LOAD_SKIP_NOT_OPENED] > 0 ||
           result->skipped[LOAD_SKIP_GONE] > 0;
}

/* Whether a socket or a query failed. Thresholds do not count for the probe. A probe that sent no
 * query is no error, because its rate is low, and the load may be short. */
static bool
has_errors(const struct load_run *run)
{
    const struct load_result *probe = run->probe;

    return lacks_sockets(run->total) || has_bad_queries(run) ||
           (probe != NULL && (lacks_sockets(probe) || load_result_errors(probe) > 0));
}

static void
say_if_gone(const struct load_result *total, FILE *err)
{
    unsigned long long unsent = total->skipped[LOAD_SKIP_GONE], offered = total->offered;

    if (unsent > 0)
        fprintf(
            err,
            "sxe-http: the server is gone: no connection opened and no byte came for two "
            "timeouts (--timeout), so %llu of %llu requests were not sent; see whether it still "
            "runs\n",
            unsent, offered);
}

/* Warn if no query arrived. Arrivals are random, so at a low rate a short run may have none. */
static void
say_if_nothing_arrived(const struct load_run *run, FILE *err)
{
    const struct load_plan *plan = run->plan;

    if (run->total->offered == 0 && run->total->opened > 0 && !run->is_interrupted &&
        plan->model != LOAD_CLOSED && plan->stop == LOAD_STOP_TIME)
        fprintf(err,
                "sxe-http: nothing arrived in %s at %.10g/s; use a longer -d, or a higher rate "
                "(-R)\n",
                load_duration_text(plan->duration_ns), load_plan_rate(plan));
}

void
load_run_judge(struct load_run *run, bool has_failed, FILE *err)
{
    const char *const *thresholds = run->plan->thresholds;
    bool is_found = run->plan->find == NULL || run->found_rate > 0;

    say_if_gone(run->total, err);
    say_if_nothing_arrived(run, err);
    for (unsigned i = 0; thresholds[i] != NULL; i++)
        judge_threshold(run, &run->judged[i], thresholds[i], err);
    if (run->is_interrupted)
        run->status = LOAD_EXIT_INTERRUPTED;
    else if (has_failed || has_errors(run))
        run->status = LOAD_EXIT_ERRORS;
    else if (run->verdict.number + run->probe_verdict.number > 0)
        run->status = LOAD_EXIT_SUSPECT;
    else if ((!is_found && run->is_untold) ||
             (run->plan->until_ci > 0 && !load_until_ci_is_reached(run)))
        run->status = LOAD_EXIT_UNTOLD;
    else if (is_undelivered(run))
        run->status = LOAD_EXIT_ERRORS;
    else if (run->thresholds_missed > 0 || !is_found)
        run->status = LOAD_EXIT_THRESHOLD;
    else
        run->status = LOAD_EXIT_OK;
}
