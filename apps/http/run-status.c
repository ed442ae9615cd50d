/* SPDX-License-Identifier: MIT */
#include "run-private.h"

#include <string.h>

#define THRESHOLDS (sizeof(((struct http_plan *)0)->thresholds) / sizeof(const char *))

/* A threshold on errors says how many are good enough; without one, none is. */
static bool
are_errors_judged(const struct http_plan *plan)
{
    for (unsigned i = 0; i < THRESHOLDS && plan->thresholds[i] != NULL; i++) {
        const char *text = plan->thresholds[i] + strspn(plan->thresholds[i], " \t");

        if (strncmp(text, "errors", strlen("errors")) == 0)
            return true;
    }
    return false;
}

static bool
has_errors(const struct http_run *run)
{
    const struct http_result *total = run->total;

    if (total->opened < total->sockets_wanted || total->skipped[HTTP_SKIP_NOT_OPENED] > 0)
        return true;
    if (are_errors_judged(run->plan))
        return false;
    return http_result_errors(total) > 0 || total->ends[HTTP_END_OK] == 0;
}

static void
judge_thresholds(struct http_run *run, FILE *err)
{
    for (unsigned i = 0; i < THRESHOLDS && run->plan->thresholds[i] != NULL; i++) {
        struct http_threshold threshold;
        bool is_told;

        http_threshold_parse(&threshold, run->plan->thresholds[i]);
        if (http_threshold_holds(&threshold, run->total, &is_told))
            continue;
        run->thresholds_missed++;
        fprintf(err, "sxe-http: threshold %s is missed%s\n", run->plan->thresholds[i],
                is_told ? "" : ": there are too few samples to tell");
    }
}

void
http_run_judge(struct http_run *run, bool has_failed, FILE *err)
{
    bool is_found = run->plan->find == NULL || run->found_rate > 0;

    if (run->is_interrupted) {
        run->status = HTTP_EXIT_INTERRUPTED;
        return;
    }
    judge_thresholds(run, err);
    if (has_failed || has_errors(run))
        run->status = HTTP_EXIT_ERRORS;
    else if (run->verdict.number > 0)
        run->status = HTTP_EXIT_SUSPECT;
    else if (run->thresholds_missed > 0 || !is_found)
        run->status = HTTP_EXIT_THRESHOLD;
    else
        run->status = HTTP_EXIT_OK;
}
