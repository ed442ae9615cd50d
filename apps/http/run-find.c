/* SPDX-License-Identifier: MIT */
#include "run-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "summary.h"
#include "sxe-time.h"

#define START_RATE 1000.0
#define SETTLE_NS  (200 * SXE_NS_PER_MS)
#define LOOK_NS    (100 * SXE_NS_PER_MS)
#define STEP_NS    SXE_NS_PER_SECOND /* so long at least, if -d is as long */

/* A rate does not hold that the client offers and the server does not answer, however soon those
 * answers come that do: so much of it must be answered well, give or take what is chance. */
#define ANSWERED 0.98
#define CHANCE   4.0 /* times the square root of the number */

double http_find_rate_max = 1e6;

struct find {
    struct http_run *run;
    struct http_parent *parent;
    struct http_trial *trial;
    struct http_threshold condition;
    struct http_result *before; /* [workers]: their marks when the step's measuring began; and
                                   behind them the sum of these */
    struct http_result *delta;  /* [workers]: what they counted in the step */
    uint64_t longest_ns;        /* that a step may take */
    double highest_rate;        /* that is tried */
    double missed_rate;         /* the lowest that did not hold */
    struct http_verdict missed; /* of the client, then */
};

/* ---- Marks ---- */

/* All copy what they have counted so far; false: they end instead. */
static bool
mark(struct find *find, struct http_message message)
{
    http_workers_tell(find->parent, message);
    http_workers_await(find->parent, HTTP_MESSAGE_MARKED, HTTP_NEVER);
    return !find->parent->is_stopping && !http_workers_await(find->parent, HTTP_MESSAGE_DONE, 0);
}

static void
keep_marks(struct find *find)
{
    unsigned number = find->parent->number;

    http_results_clear(find->before, number + 1);
    for (unsigned i = 0; i < number; i++) {
        http_result_add(&find->before[i], find->parent->processes[i].mark);
        http_result_add(&find->before[number], find->parent->processes[i].mark);
    }
    find->parent->pressure = http_pressure_read(HTTP_PRESSURE_FILE);
}

/* What the workers have counted since then, up to their next marks. */
static void
take_deltas(struct find *find)
{
    http_results_clear(find->delta, find->parent->number);
    for (unsigned i = 0; i < find->parent->number; i++) {
        http_result_add(&find->delta[i], find->parent->processes[i].mark);
        http_result_subtract(&find->delta[i], &find->before[i]);
    }
}

/* ---- A step ---- */

/* By what all of them have counted up to now. */
static bool
can_be_told(struct find *find)
{
    struct http_result *sum = find->parent->sum;
    unsigned number = find->parent->number;
    bool is_told;

    http_results_clear(sum, 1);
    for (unsigned i = 0; i < number; i++)
        http_result_add(sum, find->parent->processes[i].result);
    http_result_subtract(sum, &find->before[number]);
    http_threshold_holds(&find->condition, sum, &is_told);
    return is_told;
}

/* As long as it takes until the figure can be told, within bounds. */
static void
await_figure(struct find *find)
{
    uint64_t begin_ns = sxe_time_ns();
    uint64_t end_ns = begin_ns + find->longest_ns;
    uint64_t look_ns = begin_ns + (STEP_NS < find->longest_ns ? STEP_NS : find->longest_ns);

    while (!http_workers_await(find->parent, HTTP_MESSAGE_DONE, look_ns)) {
        if (look_ns >= end_ns || can_be_told(find))
            return;
        look_ns = look_ns + LOOK_NS < end_ns ? look_ns + LOOK_NS : end_ns;
    }
}

/* False: the workers end. */
static bool
measure_step(struct find *find, double rate)
{
    const struct http_message now = {.type = HTTP_MESSAGE_MARK};
    uint64_t settle_ns = find->longest_ns / 5 < SETTLE_NS ? find->longest_ns / 5 : SETTLE_NS;

    if (!mark(find, (struct http_message){.type = HTTP_MESSAGE_RATE, .u.rate = rate}))
        return false;
    http_workers_await(find->parent, HTTP_MESSAGE_DONE, sxe_time_ns() + settle_ns);
    if (!mark(find, now))
        return false;
    keep_marks(find);
    await_figure(find);
    if (!mark(find, now))
        return false;
    take_deltas(find);
    return true;
}

/* The workers make their marks one after the other, so each one's time is its own. */
static bool
is_answered(const struct find *find, double rate)
{
    double number = find->parent->number;
    double expected = 0;

    for (unsigned i = 0; i < find->parent->number; i++)
        expected += rate / number * (double)find->delta[i].elapsed_ns / 1e9;
    return (double)find->trial->result->ends[HTTP_END_OK] >=
           ANSWERED * expected - CHANCE * sqrt(expected);
}

static void
judge_step(struct find *find, struct http_step *step)
{
    const struct http_result *workers[HTTP_WORKERS_MAX];
    const struct http_result *result = find->trial->result;
    bool is_kept_up;

    for (unsigned i = 0; i < find->parent->number; i++)
        workers[i] = &find->delta[i];
    http_trial_sum(find->parent, find->trial, workers);
    is_kept_up = is_answered(find, step->rate);
    step->achieved = find->trial->figures[HTTP_FIGURE_RATE];
    step->p50_ns = http_histogram_quantile(&result->response, 0.5);
    step->p90_ns = http_histogram_quantile(&result->response, 0.9);
    step->p99_ns = http_histogram_quantile(&result->response, 0.99);
    step->p999_ns = http_histogram_quantile(&result->response, 0.999);
    step->figure = http_threshold_figure(&find->condition, result);
    step->holds = http_threshold_holds(&find->condition, result, &step->is_told) && is_kept_up;
    step->is_told = step->is_told || !is_kept_up;
    if (step->is_told && !step->holds && step->rate <= find->missed_rate) {
        find->missed_rate = step->rate;
        find->missed = find->trial->verdict;
    }
}

static void
say_step(const struct find *find, const struct http_step *step)
{
    const char *word = step->holds      ? "holds"
                       : !step->is_told ? "too few to tell; a longer -d helps"
                                        : "does not hold";

    if (find->parent->plan->quiet)
        return;
    http_parent_show(find->parent, false);
    fprintf(find->parent->err, "find      %.0f/s  ok %.0f/s  response p50 %s p99 %s  %s: %s\n",
            step->rate, step->achieved, http_time_text(step->p50_ns), http_time_text(step->p99_ns),
            find->parent->plan->find, word);
    fflush(find->parent->err);
    http_parent_show(find->parent, true);
}

/* ---- The search ---- */

/* It is the client's limit then, and may not be the server's. */
static void
blame_client(const struct find *find, struct http_verdict *verdict)
{
    struct http_verdict blamed = {.number = find->missed.number};

    for (unsigned i = 0; i < blamed.number; i++) {
        int length = snprintf(blamed.reasons[i], HTTP_REASON_MAX,
                              "at %.0f/s, which ended the search: ", find->missed_rate);

        snprintf(blamed.reasons[i] + length, HTTP_REASON_MAX - (size_t)length, "%s",
                 find->missed.reasons[i]);
    }
    http_verdict_add(verdict, &blamed);
}

/* What a worker cannot send says nothing about the server. */
static void
say_if_highest(const struct find *find)
{
    http_parent_show(find->parent, false);
    if (find->run->found_rate >= find->highest_rate)
        fprintf(find->parent->err,
                "sxe-http: --find ends at %.0f/s, more than %u worker%s can be asked for; to see "
                "whether more holds, use more (-t)\n",
                find->highest_rate, find->parent->number, find->parent->number == 1 ? "" : "s");
}

static void
begin_lower(const struct find *find, double rate)
{
    if (rate > find->highest_rate)
        fprintf(find->parent->err,
                "sxe-http: --find begins at %.0f/s and not at %.0f/s, which the workers cannot "
                "send; use a lower -R, or more workers (-t)\n",
                find->highest_rate, rate);
}

static int
by_rate(const void *a, const void *b)
{
    const struct http_step *left = a;
    const struct http_step *right = b;

    return (left->rate > right->rate) - (left->rate < right->rate);
}

static bool
search(struct http_parent *parent, uint64_t start_ns, void *user)
{
    struct find *find = user;
    struct http_run *run = find->run;
    double rate;

    http_workers_await(parent, HTTP_MESSAGE_DONE, start_ns);
    while ((rate = http_search_next(run->steps, run->steps_number, parent->plan->rate,
                                    find->highest_rate)) > 0) {
        struct http_step *step = &run->steps[run->steps_number];

        step->rate = rate;
        if (!measure_step(find, rate))
            break;
        judge_step(find, step);
        say_step(find, step);
        run->steps_number++;
    }
    run->found_rate = http_search_found(run->steps, run->steps_number);
    say_if_highest(find);
    blame_client(find, &find->trial->verdict);
    qsort(run->steps, run->steps_number, sizeof(run->steps[0]), by_rate);
    return run->steps_number > 0;
}

int
http_find(struct http_parent *parent, struct http_run *run)
{
    const struct http_plan *plan = parent->plan;
    struct http_plan endless = *plan;
    struct find find = {.run = run,
                        .parent = parent,
                        .trial = &run->trials[0],
                        .highest_rate = http_find_rate_max * plan->workers,
                        .missed_rate = HUGE_VAL,
                        .longest_ns = plan->duration_ns};
    int error = -1;

    http_threshold_parse(&find.condition, plan->find);
    endless.rate = plan->rate > 0 ? plan->rate : START_RATE;
    endless.rate_end = endless.rate;
    endless.duration_ns = HTTP_FOREVER_NS;
    parent->plan = &endless;
    begin_lower(&find, endless.rate);
    find.before = http_results_map(plan->workers + 1, false);
    find.delta = http_results_map(plan->workers, false);
    if (find.before != NULL && find.delta != NULL)
        error = http_trial_run(parent, find.trial, true, search, &find);
    else
        http_parent_fail(parent, "no memory for the results of %u workers", plan->workers);
    http_results_unmap(find.before, plan->workers + 1);
    http_results_unmap(find.delta, plan->workers);
    parent->plan = plan;
    run->trials_number = error == 0;
    return error;
}
