/* SPDX-License-Identifier: MIT */
#include "run-private.h"

#include "text.h"

bool
http_until_ci_is_reached(const struct http_run *run)
{
    unsigned figure = run->plan->until_ci_figure;

    return run->figures_from[figure] <= 0 && run->figures[figure].is_known &&
           http_stats_width(&run->figures[figure]) < run->plan->until_ci;
}

static void
judge_threshold(struct http_run *run, struct http_judged *judged, const char *condition, FILE *err)
{
    http_threshold_parse(&judged->threshold, condition);
    judged->figure = http_threshold_figure(&judged->threshold, run->total);
    judged->is_at_least = http_threshold_is_at_least(&judged->threshold, run->total);
    judged->holds = http_threshold_holds(&judged->threshold, run->total, &judged->is_told);
    if (judged->holds)
        return;
    run->thresholds_missed++;
    fprintf(err, "sxe-http: threshold %s is missed%s\n", condition,
            judged->is_told                        ? ""
            : http_result_replies(run->total) == 0 ? ": there was no reply"
                                                   : ": there are too few samples to tell");
}

/* Of queries. A threshold on errors says how many are good enough; without one, none is. */
static bool
has_bad_queries(const struct http_run *run)
{
    for (unsigned i = 0; run->plan->thresholds[i] != NULL; i++)
        if (http_threshold_is_of_errors(&run->judged[i].threshold))
            return false;
    return http_result_errors(run->total) > 0 || run->total->ends[HTTP_END_OK] == 0;
}

/* More than this part of a load was not sent, for lack of a free socket. */
#define UNDELIVERED 0.01

static bool
lacks_queries(const struct http_result *result)
{
    return (double)http_result_skipped(result) > UNDELIVERED * (double)result->offered;
}

/* A threshold on what was skipped or achieved says how much must be sent, and is about the load,
 * not about the probe. A search looks for rates that cannot be sent. */
static bool
is_undelivered(const struct http_run *run)
{
    if (run->probe != NULL && lacks_queries(run->probe))
        return true;
    for (unsigned i = 0; run->plan->thresholds[i] != NULL; i++)
        if (http_threshold_is_of_delivery(&run->judged[i].threshold))
            return false;
    return run->plan->find == NULL && lacks_queries(run->total);
}

static bool
lacks_sockets(const struct http_result *result)
{
    return result->opened < result->sockets_wanted || result->skipped[HTTP_SKIP_NOT_OPENED] > 0 ||
           result->skipped[HTTP_SKIP_GONE] > 0;
}

/* Thresholds are about the load. A probe may have had nothing to ask: its rate is low, and the load
 * may be short. */
static bool
has_errors(const struct http_run *run)
{
    const struct http_result *probe = run->probe;

    return lacks_sockets(run->total) || has_bad_queries(run) ||
           (probe != NULL && (lacks_sockets(probe) || http_result_errors(probe) > 0));
}

static void
say_if_gone(const struct http_result *total, FILE *err)
{
    unsigned long long unsent = total->skipped[HTTP_SKIP_GONE], offered = total->offered;

    if (unsent > 0)
        fprintf(
            err,
            "sxe-http: the server is gone: no connection opened and no byte came for two "
            "timeouts (--timeout), so %llu of %llu requests were not sent; see whether it still "
            "runs\n",
            unsent, offered);
}

/* Arrivals are random, and a low rate may have none in a short time. */
static void
say_if_nothing_arrived(const struct http_run *run, FILE *err)
{
    const struct http_plan *plan = run->plan;

    if (run->total->offered == 0 && run->total->opened > 0 && !run->is_interrupted &&
        plan->model != HTTP_CLOSED && plan->stop == HTTP_STOP_TIME)
        fprintf(err,
                "sxe-http: nothing arrived in %s at %.10g/s; use a longer -d, or a higher rate "
                "(-R)\n",
                http_duration_text(plan->duration_ns), http_plan_rate(plan));
}

void
http_run_judge(struct http_run *run, bool has_failed, FILE *err)
{
    const char *const *thresholds = run->plan->thresholds;
    bool is_found = run->plan->find == NULL || run->found_rate > 0;

    say_if_gone(run->total, err);
    say_if_nothing_arrived(run, err);
    for (unsigned i = 0; thresholds[i] != NULL; i++)
        judge_threshold(run, &run->judged[i], thresholds[i], err);
    if (run->is_interrupted)
        run->status = HTTP_EXIT_INTERRUPTED;
    else if (has_failed || has_errors(run))
        run->status = HTTP_EXIT_ERRORS;
    else if (run->verdict.number + run->probe_verdict.number > 0)
        run->status = HTTP_EXIT_SUSPECT;
    else if ((!is_found && run->is_untold) ||
             (run->plan->until_ci > 0 && !http_until_ci_is_reached(run)))
        run->status = HTTP_EXIT_UNTOLD;
    else if (is_undelivered(run))
        run->status = HTTP_EXIT_ERRORS;
    else if (run->thresholds_missed > 0 || !is_found)
        run->status = HTTP_EXIT_THRESHOLD;
    else
        run->status = HTTP_EXIT_OK;
}
