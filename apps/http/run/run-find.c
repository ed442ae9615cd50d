/* SPDX-License-Identifier: MIT
 *
 * Running the steps of --find: set a rate, let the load settle, measure, and judge.
 */
#include "run-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "summary.h"
#include "sxe-time.h"

/* the first rate if -R does not give one: nothing is known about the server */
#define START_RATE 10.0
#define SETTLE_NS  (200 * SXE_NS_PER_MS)
#define SETTLE_MAX (2 * SXE_NS_PER_SECOND)
#define LOOK_NS    (100 * SXE_NS_PER_MS)
#define DRAIN_NS   (5 * SXE_NS_PER_MS)
#define STEP_NS    SXE_NS_PER_SECOND /* the shortest time of a step, unless -d is shorter */

double load_find_rate_max = 1e6;
double load_find_speed = 1;

struct find {
    struct load_run *run;
    struct load_parent *parent;
    struct load_trial *trial;
    struct load_threshold condition;
    /* an array of workers + 1 results: the counts that each worker had when the step began to
     * measure, and then their sum */
    struct load_result *before;
    /* an array of `workers` results: what each worker counted in the step */
    struct load_result *delta;
    uint64_t longest_ns; /* the longest time that a step may measure */
    struct load_search search;
    /* what the verdict said about the client at the lowest rate that did not hold */
    struct load_verdict missed;
};

/* ---- Marks ---- */

/* Send all workers a message that makes them copy their counts to their marks, and wait until they
 * have done so. False: the workers are ending instead. */
static bool
mark_step(struct find *find, struct load_message message)
{
    load_workers_tell(find->parent, message);
    load_workers_await(find->parent, LOAD_MESSAGE_MARKED, LOAD_NEVER);
    return !find->parent->is_stopping && !load_workers_await(find->parent, LOAD_MESSAGE_DONE, 0);
}

static void
keep_marks(struct find *find)
{
    unsigned number = find->parent->number;

    load_results_clear(find->before, number + 1);
    for (unsigned i = 0; i < number; i++) {
        load_result_add(&find->before[i], find->parent->processes[i].mark);
        load_result_add(&find->before[number], find->parent->processes[i].mark);
    }
    find->parent->pressure = load_pressure_read(LOAD_PRESSURE_FILE);
}

/* Compute in find->delta what each worker counted from keep_marks to its last mark. */
static void
take_deltas(struct find *find)
{
    load_results_clear(find->delta, find->parent->number);
    for (unsigned i = 0; i < find->parent->number; i++) {
        load_result_add(&find->delta[i], find->parent->processes[i].mark);
        load_result_subtract(&find->delta[i], &find->before[i]);
    }
}

/* ---- A step ---- */

/* Sum up what all workers have counted since the step began to measure. */
static const struct load_result *
count_step_results(struct find *find)
{
    struct load_result *sum = find->parent->sum;
    unsigned number = find->parent->number;

    load_results_clear(sum, 1);
    for (unsigned i = 0; i < number; i++)
        load_result_add(sum, find->parent->processes[i].result);
    load_result_subtract(sum, &find->before[number]);
    return sum;
}

/* Whether the step can end, because it can be judged. As long as every judged rate has held, a step
 * with too few samples can end, too: a higher rate, which gives more samples, is tried first. */
static bool
is_enough(struct find *find)
{
    const struct load_run *run = find->run;
    const struct load_result *result = count_step_results(find);
    struct load_evidence evidence;

    load_threshold_evidence(&find->condition, result, &evidence);
    if (evidence.samples < evidence.needed &&
        run->steps[run->steps_number].rate < find->search.highest &&
        isinf(load_search_missed(run->steps, run->steps_number)))
        return true;
    return load_step_is_enough(&find->condition, result);
}

/* Wait until the step can be judged, but at least STEP_NS and at most find->longest_ns. */
static void
await_figure(struct find *find)
{
    uint64_t begin_ns = sxe_time_ns();
    uint64_t end_ns = begin_ns + find->longest_ns;
    uint64_t look_ns = begin_ns + (STEP_NS < find->longest_ns ? STEP_NS : find->longest_ns);

    while (!load_workers_await(find->parent, LOAD_MESSAGE_DONE, look_ns)) {
        if (look_ns >= end_ns || is_enough(find))
            return;
        look_ns = look_ns + LOOK_NS < end_ns ? look_ns + LOOK_NS : end_ns;
    }
}

static uint64_t
in_flight(const struct find *find)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < find->parent->number; i++)
        if (find->parent->processes[i].pid > 0)
            number += find->parent->processes[i].result->in_flight;
    return number;
}

/* Wait until the queries of the last step are answered or have timed out. False: the workers are
 * ending. */
static bool
drain_last_step(struct find *find)
{
    if (find->run->steps_number == 0)
        return true;
    if (!mark_step(find, (struct load_message){.type = LOAD_MESSAGE_RATE, .u.rate = 0}))
        return false;
    while (in_flight(find) > 0 &&
           !load_workers_await(find->parent, LOAD_MESSAGE_DONE, sxe_time_ns() + DRAIN_NS))
        ;
    return true;
}

/* Let the load settle: wait until at this rate as many queries were answered as are in flight,
 * which takes about two response times. If that takes longer than most_ns, do not wait any
 * longer. */
static void
settle_search(struct find *find)
{
    uint64_t most_ns = find->longest_ns / 5 < SETTLE_MAX ? find->longest_ns / 5 : SETTLE_MAX;
    uint64_t begin_ns = sxe_time_ns();
    uint64_t look_ns = begin_ns + (most_ns < SETTLE_NS ? most_ns : SETTLE_NS);

    keep_marks(find);
    while (!load_workers_await(find->parent, LOAD_MESSAGE_DONE, look_ns)) {
        if (look_ns >= begin_ns + most_ns ||
            count_step_results(find)->ends[LOAD_END_OK] >= in_flight(find))
            return;
        look_ns += LOOK_NS;
    }
}

/* Set the rate of a step, let the load settle, and measure. False: the workers are ending. */
static bool
measure_step(struct find *find, double rate)
{
    const struct load_message now = {.type = LOAD_MESSAGE_MARK};

    if (!drain_last_step(find) ||
        !mark_step(find, (struct load_message){.type = LOAD_MESSAGE_RATE, .u.rate = rate}))
        return false;
    settle_search(find);
    if (!mark_step(find, now))
        return false;
    keep_marks(find);
    await_figure(find);
    if (!mark_step(find, now))
        return false;
    take_deltas(find);
    return true;
}

static void
judge_step(struct find *find, struct load_step *step)
{
    const struct load_result *workers[LOAD_WORKERS_MAX];
    struct load_run *run = find->run;

    for (unsigned i = 0; i < find->parent->number; i++)
        workers[i] = &find->delta[i];
    load_trial_sum(find->parent, find->trial, workers);
    load_step_judge(step, &find->condition, find->trial->result);
    step->achieved = find->trial->figures[LOAD_FIGURE_RATE];
    if (step->is_told && !step->holds &&
        step->rate <= load_search_missed(run->steps, run->steps_number))
        find->missed = find->trial->verdict;
}

static void
say_step(const struct find *find, const struct load_step *step)
{
    const char *word = step->holds ? "holds" : !step->is_told ? "too few to tell" : "does not hold";

    if (find->parent->plan->quiet)
        return;
    load_parent_show(find->parent, false);
    fprintf(
        find->parent->err, "find      %.*f/s  ok %.*f/s  response p50 %s p95 %s p99 %s  %s: %s\n",
        step->rate < 10, step->rate, step->rate < 10, step->achieved, load_time_text(step->p50_ns),
        load_time_text(step->p95_ns), load_time_text(step->p99_ns), find->parent->plan->find, word);
    fflush(find->parent->err);
    load_parent_show(find->parent, true);
}

/* ---- The search ---- */

/* If the verdict on the client was bad at the lowest rate that did not hold, add its reasons: this
 * rate may be the limit of the client, and not of the server. */
static void
blame_client(const struct find *find, struct load_verdict *verdict)
{
    struct load_verdict blamed = {.number = find->missed.number};

    for (unsigned i = 0; i < blamed.number; i++) {
        int length = snprintf(blamed.reasons[i], LOAD_REASON_MAX,
                              "at %.0f/s, which ended the search: ", find->run->missed_rate);

        snprintf(blamed.reasons[i] + length, LOAD_REASON_MAX - (size_t)length, "%s",
                 find->missed.reasons[i]);
    }
    load_verdict_add(verdict, &blamed);
}

/* If the search ended at the highest rate that the workers can send, print a message: this rate is
 * not the limit of the server. */
static void
say_if_highest(const struct find *find)
{
    load_parent_show(find->parent, false);
    if (find->run->found_rate >= find->search.highest)
        fprintf(find->parent->err,
                "sxe-http: --find ends at %.0f/s, more than %u worker%s can be asked for; to see "
                "whether more holds, use more (-t)\n",
                find->search.highest, find->parent->number, find->parent->number == 1 ? "" : "s");
}

static void
begin_lower(const struct find *find, double rate)
{
    if (rate > find->search.highest)
        fprintf(find->parent->err,
                "sxe-http: --find begins at %.0f/s and not at %.0f/s, which the workers cannot "
                "send; use a lower -R, or more workers (-t)\n",
                find->search.highest, rate);
}

static int
by_rate(const void *a, const void *b)
{
    const struct load_step *left = a;
    const struct load_step *right = b;

    return (left->rate > right->rate) - (left->rate < right->rate);
}

static bool
search_rate(struct load_parent *parent, uint64_t start_ns, void *user)
{
    struct find *find = user;
    struct load_run *run = find->run;
    double rate;

    load_workers_await(parent, LOAD_MESSAGE_DONE, start_ns);
    while ((rate = load_search_next(&find->search, run->steps, run->steps_number)) > 0) {
        struct load_step *step = &run->steps[run->steps_number];

        step->rate = rate;
        if (!measure_step(find, rate))
            break;
        judge_step(find, step);
        say_step(find, step);
        run->steps_number++;
    }
    run->found_rate = load_search_found(run->steps, run->steps_number);
    run->missed_rate = load_search_missed(run->steps, run->steps_number);
    run->is_untold = load_search_is_untold(run->steps, run->steps_number);
    say_if_highest(find);
    blame_client(find, &find->trial->verdict);
    load_workers_doubt(parent, 0, parent->load, &find->trial->verdict);
    qsort(run->steps, run->steps_number, sizeof(run->steps[0]), by_rate);
    return run->steps_number > 0;
}

/* Compute the lowest rate that gives enough samples in the longest step. Add 10 %, because arrivals
 * are random. */
static void
find_what_can_be_told(struct find *find)
{
    /* not const: a constant's 16 MB of zeros would be a part of the program's file */
    static struct load_result nothing;
    struct load_evidence evidence;

    load_threshold_parse(&find->condition, find->parent->plan->find);
    load_threshold_evidence(&find->condition, &nothing, &evidence);
    find->search.told_from =
        1.1 * evidence.needed / ((double)find->longest_ns / 1e9 * load_find_speed);
}

int
load_find(struct load_parent *parent, struct load_run *run)
{
    const struct load_plan *plan = parent->plan;
    struct load_plan endless = *plan;
    struct find find = {.run = run,
                        .parent = parent,
                        .trial = &run->trials[0],
                        .search.highest = load_find_rate_max * plan->workers,
                        .longest_ns = plan->duration_ns};
    int error = -1;

    find_what_can_be_told(&find);
    endless.rate = plan->rate > 0 ? plan->rate : START_RATE;
    endless.rate_end = endless.rate;
    endless.duration_ns = LOAD_FOREVER_NS;
    find.search.start = endless.rate;
    parent->plan = &endless;
    begin_lower(&find, endless.rate);
    find.before = load_results_map(plan->workers + 1, false);
    find.delta = load_results_map(plan->workers, false);
    if (find.before != NULL && find.delta != NULL)
        error = load_trial_run(parent, find.trial, true, search_rate, &find);
    else
        load_parent_fail(parent, "no memory for the results of %u workers", plan->workers);
    load_results_unmap(find.before, plan->workers + 1);
    load_results_unmap(find.delta, plan->workers);
    parent->plan = plan;
    run->trials_number = error == 0;
    return error;
}
