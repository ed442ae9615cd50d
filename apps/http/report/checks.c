/* SPDX-License-Identifier: MIT
 *
 * The list of checks that a run was judged by, each with its outcome in a sentence.
 */
#include "checks.h"

#include <stdarg.h>
#include <string.h>

#include "compare.h"
#include "output.h"
#include "text.h"

/* the part of the load that may be skipped without an error, which is UNDELIVERED in
 * run-status.c */
#define WORST_IN_TEXT 0.01

static void add_evidence(struct load_check *check, const char *format, ...) SXE_PRINTF(2, 3);

static void
add_evidence(struct load_check *check, const char *format, ...)
{
    size_t used = strlen(check->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(check->text + used, sizeof(check->text) - used, format, arguments);
    va_end(arguments);
}

/* ---- The run itself ---- */

static void
add_error_check(struct load_check *check, const struct load_result *result)
{
    static const char *const names[] = {
#define TEXT(enumerator, text, name) text,
        LOAD_EACH_END(TEXT)
#undef TEXT
    };
    const char *between = ": ";

    if (load_result_errors(result) == 0)
        return;
    add_evidence(check, "%llu of %llu requests failed",
                 (unsigned long long)load_result_errors(result), (unsigned long long)result->sent);
    for (unsigned i = LOAD_END_OK + 1; i < LOAD_ENDS; i++) {
        if (result->ends[i] == 0)
            continue;
        add_evidence(check, "%s%s %llu", between, names[i], (unsigned long long)result->ends[i]);
        between = ", ";
    }
    add_evidence(check, ". ");
}

static void
add_what_is_wrong(struct load_check *check, const struct load_run *run)
{
    const struct load_result *total = run->total;

    if (run->is_interrupted)
        add_evidence(check, "The run was interrupted; what was done is reported. ");
    add_error_check(check, total);
    if (total->ends[LOAD_END_OK] == 0)
        add_evidence(check, "No request was answered well. ");
    if (total->opened < total->sockets_wanted)
        add_evidence(check, "%llu of %llu connections were opened. ",
                     (unsigned long long)total->opened, (unsigned long long)total->sockets_wanted);
    if ((double)load_result_skipped(total) > WORST_IN_TEXT * (double)total->offered)
        add_evidence(check, "%.3g %% of the load was not sent. ",
                     (double)load_result_skipped(total) / (double)total->offered * 100);
    if (run->probe != NULL && load_result_errors(run->probe) > 0)
        add_evidence(check, "%llu requests of the probe failed. ",
                     (unsigned long long)load_result_errors(run->probe));
    if (check->text[0] == '\0')
        add_evidence(check, "Standard error says what happened. ");
    check->text[strlen(check->text) - 1] = '\0';
}

static void
check_run(struct load_check *check, const struct load_run *run)
{
    const struct load_result *total = run->total;

    *check = (struct load_check){
        .group = "run", .name = "the load was sent and answered well", .title = "Run failed"};
    if (run->status == LOAD_EXIT_ERRORS || run->status == LOAD_EXIT_USAGE ||
        run->status == LOAD_EXIT_INTERRUPTED) {
        check->outcome = LOAD_CHECK_WRONG;
        add_what_is_wrong(check, run);
        return;
    }
    add_evidence(check, "%llu of %llu requests were answered well, %s/s",
                 (unsigned long long)total->ends[LOAD_END_OK], (unsigned long long)total->offered,
                 load_number_text(load_result_rate(total)));
}

static void
check_verdict(struct load_check *check, const struct load_verdict *verdict)
{
    check->is_doubt = true;
    if (verdict->number == 0)
        add_evidence(check, "nothing speaks against it");
    else
        check->outcome = LOAD_CHECK_MISSED;
    for (unsigned i = 0; i < verdict->number; i++)
        add_evidence(check, "%s%s", i > 0 ? "\n" : "", verdict->reasons[i]);
}

/* ---- Conditions that the user asked for ---- */

static void
check_threshold(struct load_check *check, const struct load_run *run, unsigned i)
{
    const struct load_judged *judged = &run->judged[i];

    *check = (struct load_check){.group = "threshold",
                                 .is_asked = true,
                                 .name = run->plan->thresholds[i],
                                 .title = "Threshold missed"};
    if (!judged->holds)
        check->outcome = LOAD_CHECK_MISSED;
    if (!judged->is_told)
        add_evidence(check, "the figure cannot be told, since there %s",
                     load_result_replies(run->total) == 0 ? "was no reply" : "are too few samples");
    else
        add_evidence(check, "the figure is %s%s", judged->is_at_least ? "at least " : "",
                     load_threshold_text(&judged->threshold, judged->figure));
    if (judged->is_told && judged->is_at_least)
        add_evidence(check, ", since requests failed");
}

static void
check_search(struct load_check *check, const struct load_run *run)
{
    *check = (struct load_check){.group = "search",
                                 .is_asked = true,
                                 .name = run->plan->find,
                                 .title = run->is_untold ? "Could not tell" : "No rate holds"};
    if (run->found_rate > 0) {
        add_evidence(check, "%.*f/s is the highest rate that held it, of %u tried",
                     run->found_rate < 10, run->found_rate, run->steps_number);
        return;
    }
    check->outcome = LOAD_CHECK_MISSED;
    check->is_doubt = run->is_untold;
    if (run->is_untold)
        add_evidence(check,
                     "which rate holds it could not be told: there are too few replies at low "
                     "rates; use a longer -d");
    else
        add_evidence(check, "no rate held it, of %u tried", run->steps_number);
}

static void
check_figure(struct load_check *check, const struct load_comparison *comparison, unsigned figure)
{
    const struct load_contrast *contrast = &comparison->contrast;
    const struct load_interval *ratio = &contrast->ratios[figure];
    enum load_contrast_word word = contrast->words[figure];

    *check = (struct load_check){.group = "comparison",
                                 .is_asked = true,
                                 .name = load_figure_names[figure].text,
                                 .title = "Regression"};
    if (word == LOAD_CONTRAST_GIVEN || word == LOAD_CONTRAST_UNTOLD ||
        word == LOAD_CONTRAST_UNKNOWN || word == LOAD_CONTRAST_BOUND) {
        check->outcome = LOAD_CHECK_SKIPPED;
        add_evidence(check, "%s",
                     word == LOAD_CONTRAST_GIVEN ? "it is given (-R, --replay), so it is no result"
                     : word == LOAD_CONTRAST_UNTOLD ? "a trial has too few requests to tell it"
                     : word == LOAD_CONTRAST_UNKNOWN
                         ? "there are too few trials that have it"
                         : "requests failed, so it is only a lower bound");
        return;
    }
    if (word == LOAD_CONTRAST_SLOWER)
        check->outcome = LOAD_CHECK_MISSED;
    add_evidence(check,
                 "%s: %.3f times that of %s (%.3f to %.3f, 95 %% for all %u figures together)",
                 load_comparison_text(word, comparison->min_effect), ratio->middle,
                 comparison->with, ratio->low, ratio->high, contrast->judged);
}

/* Make the check whether this run has more failures than the one it is compared with. Returns false
 * if it has not: then the check is left out, because the run's own check reports its failures. */
static bool
check_count(struct load_check *check, const struct load_comparison *comparison, unsigned count)
{
    static const char *const names[] = {
        [LOAD_CONTRAST_FAILED] = "failed",
        [LOAD_CONTRAST_UNSENT] = "not sent",
        [LOAD_CONTRAST_UNOPENED] = "not opened",
    };
    bool is_dead = count == LOAD_CONTRAST_FAILED && comparison->contrast.is_dead;

    *check = (struct load_check){.group = "comparison",
                                 .outcome = LOAD_CHECK_MISSED,
                                 .is_asked = true,
                                 .name = names[count],
                                 .title = "Regression"};
    if (is_dead)
        add_evidence(check, "there is no good reply, or a trial without one, unlike %s",
                     comparison->with);
    else
        add_evidence(check, "more than that of %s", comparison->with);
    return is_dead || comparison->contrast.counts[count] == LOAD_CONTRAST_MORE;
}

static void
check_comparison(const struct load_comparison *comparison,
                 void (*each)(void *user, const struct load_check *check), void *user)
{
    struct load_check check;

    for (unsigned i = 0; i < LOAD_CONTRAST_COUNTS; i++)
        if (check_count(&check, comparison, i))
            each(user, &check);
    for (unsigned i = 0; i < LOAD_FIGURES; i++)
        if (comparison->contrast.words[i] != LOAD_CONTRAST_REPEATED) {
            check_figure(&check, comparison, i);
            each(user, &check);
        }
}

static void
check_width(struct load_check *check, const struct load_run *run)
{
    const char *name = load_figure_names[run->plan->until_ci_figure].whole;

    *check = (struct load_check){
        .group = "interval", .is_asked = true, .name = name, .title = "Interval too wide"};
    if (load_until_ci_is_reached(run)) {
        add_evidence(check, "it is under %.3g %% wide", 100 * run->plan->until_ci);
        return;
    }
    check->outcome = LOAD_CHECK_MISSED;
    check->is_doubt = true;
    add_evidence(check, "after %u trials it is not under %.3g %% wide; a trial takes %u requests",
                 run->trials_number, 100 * run->plan->until_ci,
                 load_figure_needs((enum load_figure)run->plan->until_ci_figure));
}

void
load_checks_each(const struct load_run *run,
                 void (*each)(void *user, const struct load_check *check), void *user)
{
    const struct load_comparison *comparison = run->comparison;
    struct load_check check;

    check_run(&check, run);
    each(user, &check);
    check = (struct load_check){
        .group = "client", .name = "the client kept up", .title = "Result suspect"};
    check_verdict(&check, &run->verdict);
    each(user, &check);
    if (run->probe != NULL) {
        check = (struct load_check){
            .group = "probe", .name = "the probe kept up", .title = "Probe suspect"};
        check_verdict(&check, &run->probe_verdict);
        each(user, &check);
    }
    for (unsigned i = 0; run->plan->thresholds[i] != NULL; i++) {
        check_threshold(&check, run, i);
        each(user, &check);
    }
    if (run->plan->find != NULL) {
        check_search(&check, run);
        each(user, &check);
    }
    if (run->plan->until_ci > 0) {
        check_width(&check, run);
        each(user, &check);
    }
    if (comparison != NULL && comparison->is_made)
        check_comparison(comparison, each, user);
}
