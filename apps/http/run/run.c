/* SPDX-License-Identifier: MIT
 *
 * A whole run: its trials, or the search, the trials of a baseline, and the total.
 */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monitor.h"
#include "output.h"
#include "run-private.h"
#include "summary.h"
#include "sxe-time.h"
#include "text.h"

/* ---- One trial after the other ---- */

static bool
measure_whole(struct load_parent *parent, uint64_t start_ns, void *user)
{
    load_warmup_wait(parent, user, start_ns);
    load_workers_await(parent, LOAD_MESSAGE_DONE, LOAD_NEVER);
    return false;
}

/* How many trials count for intervals: those that were not interrupted, because an interrupted
 * trial is shorter than the others. If there is only one trial, it counts in any case. */
static unsigned
whole_trials(const struct load_run *run)
{
    unsigned number = run->trials_number;

    return number > 1 && run->trials[number - 1].result->interrupted ? number - 1 : number;
}

static void
figure_interval(const struct load_run *run, enum load_figure figure, struct load_interval *interval)
{
    double values[LOAD_TRIALS_MAX];
    unsigned number = whole_trials(run);

    for (unsigned i = 0; i < number; i++)
        values[i] = run->trials[i].figures[figure];
    load_stats_median_interval(interval, values, number);
}

/* The smallest of the figure's values that are only lower bounds; 0: no trial has such a value. */
static double
bound_of(const struct load_run *run, enum load_figure figure)
{
    double from = 0;

    for (unsigned i = 0; i < run->trials_number; i++) {
        const struct load_trial *trial = &run->trials[i];

        if (trial->at_least & 1u << figure && (from <= 0 || trial->figures[figure] < from))
            from = trial->figures[figure];
    }
    return from;
}

/* If the last trial has too few requests to tell the figure of --until-ci, further trials cannot
 * help: print this, and return true. */
static bool
is_hopeless(const struct load_run *run, FILE *err)
{
    const struct load_trial *trial = &run->trials[run->trials_number - 1];
    enum load_figure figure = (enum load_figure)run->plan->until_ci_figure;

    if (trial->result->interrupted || !isnan(trial->figures[figure]))
        return false;
    fprintf(err,
            "sxe-http: --until-ci cannot be reached: %s takes %u requests a trial, and trial %u "
            "had %llu; make the trials longer, as with a larger -d\n",
            load_figure_names[figure].whole, load_figure_needs(figure), run->trials_number,
            (unsigned long long)trial->result->response.count);
    return true;
}

/* Whether --until-ci needs no further trial: the interval is narrow enough, or can never become
 * so. */
static bool
are_trials_settled(struct load_run *run, FILE *err)
{
    enum load_figure figure = (enum load_figure)run->plan->until_ci_figure;

    if (!(run->plan->until_ci > 0) || run->trials_number == 0)
        return false;
    figure_interval(run, figure, &run->figures[figure]);
    run->figures_from[figure] = bound_of(run, figure);
    return is_hopeless(run, err) || load_until_ci_is_reached(run);
}

/* Print the line of a trial. nth is its number, from 0. */
static void
say_trial(const struct load_run *run, const struct load_trial *trial, unsigned nth, FILE *err)
{
    const struct load_verdict *verdict = &trial->verdict;
    char name[16] = "";

    if (run->plan->quiet || run->plan->trials == 1)
        return;
    if (load_has_sides(run->plan))
        snprintf(name, sizeof(name), " %c", load_trial_is_b(run->plan, nth) ? 'B' : 'A');
    fprintf(err, "trial     %u/%u%s  %.0f/s  response p50 %s p95 %s p99 %s  errors %llu%s%s\n",
            nth + 1, run->plan->trials, name, trial->figures[LOAD_FIGURE_RATE],
            load_percentile_text(&trial->result->response, 0.5),
            load_percentile_text(&trial->result->response, 0.95),
            load_percentile_text(&trial->result->response, 0.99),
            (unsigned long long)load_result_errors(trial->result),
            verdict->number > 0 ? "  SUSPECT: " : "",
            verdict->number > 0 ? verdict->reasons[0] : "");
    fflush(err);
}

static int
run_trial(struct load_parent *parent, struct load_run *run, unsigned nth)
{
    struct load_plan of_trial = *run->plan;
    bool is_baseline = of_trial.baseline_cmd != NULL && !load_trial_is_b(run->plan, nth);
    unsigned *number = is_baseline ? &run->baseline_number : &run->trials_number;
    struct load_trial *trial = &(is_baseline ? run->baseline : run->trials)[*number];
    int error;

    of_trial.seed = load_trial_seed(run->plan, nth);
    if (is_baseline)
        of_trial.server_cmd = of_trial.baseline_cmd;
    parent->plan = &of_trial;
    error = load_trial_run(parent, trial, nth == 0, measure_whole, trial);
    parent->plan = run->plan;
    if (error == 0) {
        ++*number;
        say_trial(run, trial, nth, parent->err);
    }
    return error;
}

static int
run_trials(struct load_parent *parent, struct load_run *run)
{
    for (unsigned i = 0; i < run->plan->trials && parent->interrupts == 0 && !parent->has_failed;
         i++)
        if (run_trial(parent, run, i) < 0 || are_trials_settled(run, parent->err))
            break;
    /* a run that was interrupted in the first trial of its baseline has no trial */
    return run->trials_number > 0 || (run->baseline_number > 0 && parent->interrupts > 0) ? 0 : -1;
}

/* ---- The total of the trials ---- */

/* Add a trial to the total. Trials come one after the other, so their times are added up, unlike
 * those of workers. */
static void
add_trial_result(struct load_result *total, const struct load_result *trial)
{
    uint64_t connect_ns = total->connect_ns + trial->connect_ns;
    uint64_t elapsed_ns = total->elapsed_ns + trial->elapsed_ns;

    load_result_add(total, trial);
    total->connect_ns = connect_ns;
    total->elapsed_ns = elapsed_ns;
}

/* Add the verdicts of the baseline's trials: the report does not show these trials, but if one is
 * suspect, so is the comparison. */
static void
add_baseline(struct load_run *run, struct load_parent *parent)
{
    uint64_t errors = 0;

    for (unsigned i = 0; i < run->baseline_number; i++) {
        errors += load_result_errors(run->baseline[i].result);
        load_verdict_add(&run->verdict, &run->baseline[i].verdict);
    }
    if (errors > 0)
        load_parent_fail(parent,
                         "%llu requests to the server of --baseline-cmd were not answered "
                         "well, so there is nothing to compare with",
                         (unsigned long long)errors);
}

static void
add_trial_results(struct load_run *run)
{
    for (unsigned i = 0; i < run->trials_number; i++) {
        const struct load_trial *trial = &run->trials[i];

        add_trial_result(run->total, trial->result);
        load_verdict_add(&run->verdict, &trial->verdict);
        run->left_out.ns += trial->left_out.ns;
        run->left_out.queries += trial->left_out.queries;
        if (run->left_out.problem == NULL)
            run->left_out.problem = trial->left_out.problem;
        if (run->probe == NULL)
            continue;
        add_trial_result(run->probe, trial->probe);
        load_verdict_add(&run->probe_verdict, &trial->probe_verdict);
    }
}

static void
measure_noise(struct load_run *run, enum load_figure figure)
{
    double values[2][LOAD_TRIALS_MAX];
    unsigned numbers[2] = {0, 0};
    unsigned whole = whole_trials(run);

    for (unsigned i = 0; i < whole; i++) {
        bool is_b = load_trial_is_b(run->plan, i);

        values[is_b][numbers[is_b]++] = run->trials[i].figures[figure];
    }
    if (numbers[0] > 0 && numbers[1] > 0)
        load_stats_ratio_interval(&run->noise[figure], values[1], numbers[1], values[0],
                                  numbers[0]);
}

void
load_run_conclude(struct load_run *run, bool is_interrupted, bool has_failed, FILE *err)
{
    run->is_interrupted = is_interrupted;
    add_trial_results(run);
    for (unsigned i = 0; i < LOAD_FIGURES; i++) {
        figure_interval(run, (enum load_figure)i, &run->figures[i]);
        run->figures_from[i] = bound_of(run, (enum load_figure)i);
        /* the ratio of two values that are only lower bounds has no meaning */
        if (run->plan->aa && run->figures_from[i] <= 0)
            measure_noise(run, (enum load_figure)i);
    }
    load_run_judge(run, has_failed, err);
}

static int
begin_run(struct load_run *run, struct load_parent *parent, FILE *out, FILE *err)
{
    int error = load_parent_open(parent, run->plan, out, err);

    if (error < 0)
        return error;
    parent->run = run;
    run->total = load_results_map_run(run->plan, &run->probe);
    if (run->total == NULL) {
        error = -errno;
        load_parent_close(parent);
    }
    return error;
}

static uint64_t
hash_with(uint64_t hash, const char *text)
{
    return hash * 31 + load_text_hash(text, strlen(text));
}

/* Make the run's id, which no other run has: a hash of the time in ns at which the run began, its
 * process id, its command line and its machine. */
static void
name_run(struct load_run *run)
{
    uint64_t hash = run->wall_ns * 31 + (uint64_t)getpid();

    for (int i = 0; i < run->plan->argc; i++)
        hash = hash_with(hash, run->plan->argv[i]);
    for (unsigned i = 0; i < run->fingerprint.number; i++)
        hash = hash_with(hash, run->fingerprint.facts[i].value);
    snprintf(run->id, sizeof(run->id), "%016llx", (unsigned long long)hash);
}

static void
describe_run(struct load_run *run, FILE *out)
{
    struct timespec now;
    struct tm utc;

    clock_gettime(CLOCK_REALTIME, &now);
    run->started_ns = sxe_time_ns();
    run->started_s = (uint64_t)now.tv_sec;
    run->wall_ns = (uint64_t)now.tv_sec * SXE_NS_PER_SECOND + (uint64_t)now.tv_nsec;
    load_fingerprint_take(&run->fingerprint, "", run->plan);
    name_run(run);
    strftime(run->started_at, sizeof(run->started_at), "%Y-%m-%dT%H:%M:%SZ",
             gmtime_r(&now.tv_sec, &utc));
    if (out != NULL) {
        load_summary_plan(out, run->plan);
        fflush(out);
    }
}

int
load_run(struct load_run *run, const struct load_plan *plan, FILE *out, FILE *err)
{
    struct load_parent parent;
    int error;

    memset(run, 0, sizeof(*run));
    run->plan = plan;
    error = load_monitor_open(&run->monitor, plan, err);
    if (error > 0)
        return error;
    error = begin_run(run, &parent, out, err);
    if (error < 0) {
        fprintf(err, "sxe-http: cannot start: %s; see what is limited (ulimit -a)\n",
                strerror(-error));
        return LOAD_EXIT_ERRORS;
    }
    parent.monitor = run->monitor;
    describe_run(run, out);
    error = plan->find != NULL ? load_find(&parent, run) : run_trials(&parent, run);
    if (error == 0) {
        add_baseline(run, &parent);
        load_run_conclude(run, parent.interrupts > 0, parent.has_failed, parent.err);
    }
    load_parent_close(&parent);
    if (error == 0)
        return 0;
    if (parent.interrupts > 0 && !parent.has_failed)
        fputs("sxe-http: interrupted before anything was measured\n", err);
    load_run_free(run);
    return parent.interrupts > 0 ? LOAD_EXIT_INTERRUPTED : LOAD_EXIT_ERRORS;
}

void
load_run_free(struct load_run *run)
{
    for (unsigned i = 0; i < run->trials_number; i++)
        load_results_unmap_run(run->trials[i].result, run->trials[i].probe);
    for (unsigned i = 0; i < run->baseline_number; i++)
        load_results_unmap_run(run->baseline[i].result, run->baseline[i].probe);
    run->trials_number = run->baseline_number = 0;
    free(run->ids);
    run->ids = NULL;
    run->ids_number = 0;
    free(run->parts);
    run->parts = NULL;
    run->parts_number = 0;
    load_results_unmap_run(run->total, run->probe);
    run->total = run->probe = NULL;
    load_monitor_close(run->monitor);
    run->monitor = NULL;
}
