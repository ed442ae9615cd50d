/* SPDX-License-Identifier: MIT */
#include "checks.h"

#include <stdarg.h>
#include <string.h>

#include "compare.h"
#include "output.h"
#include "text.h"

#define WORST_IN_TEXT 0.01 /* as much may be skipped: run-status.c */

static void add(struct http_check *check, const char *format, ...) SXE_PRINTF(2, 3);

static void
add(struct http_check *check, const char *format, ...)
{
    size_t used = strlen(check->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(check->text + used, sizeof(check->text) - used, format, arguments);
    va_end(arguments);
}

/* ---- The run itself ---- */

static void
add_errors(struct http_check *check, const struct http_result *result)
{
    static const char *const names[] = {
#define TEXT(enumerator, text, name) text,
        HTTP_EACH_END(TEXT)
#undef TEXT
    };
    const char *between = ": ";

    if (http_result_errors(result) == 0)
        return;
    add(check, "%llu of %llu requests failed", (unsigned long long)http_result_errors(result),
        (unsigned long long)result->sent);
    for (unsigned i = HTTP_END_OK + 1; i < HTTP_ENDS; i++) {
        if (result->ends[i] == 0)
            continue;
        add(check, "%s%s %llu", between, names[i], (unsigned long long)result->ends[i]);
        between = ", ";
    }
    add(check, ". ");
}

static void
add_what_is_wrong(struct http_check *check, const struct http_run *run)
{
    const struct http_result *total = run->total;

    if (run->is_interrupted)
        add(check, "The run was interrupted; what was done is reported. ");
    add_errors(check, total);
    if (total->ends[HTTP_END_OK] == 0)
        add(check, "No request was answered well. ");
    if (total->opened < total->sockets_wanted)
        add(check, "%llu of %llu connections were opened. ", (unsigned long long)total->opened,
            (unsigned long long)total->sockets_wanted);
    if ((double)http_result_skipped(total) > WORST_IN_TEXT * (double)total->offered)
        add(check, "%.3g %% of the load was not sent. ",
            (double)http_result_skipped(total) / (double)total->offered * 100);
    if (run->probe != NULL && http_result_errors(run->probe) > 0)
        add(check, "%llu requests of the probe failed. ",
            (unsigned long long)http_result_errors(run->probe));
    if (check->text[0] == '\0')
        add(check, "Standard error says what happened. ");
    check->text[strlen(check->text) - 1] = '\0';
}

static void
check_run(struct http_check *check, const struct http_run *run)
{
    const struct http_result *total = run->total;

    *check = (struct http_check){
        .group = "run", .name = "the load was sent and answered well", .title = "Run failed"};
    if (run->status == HTTP_EXIT_ERRORS || run->status == HTTP_EXIT_USAGE ||
        run->status == HTTP_EXIT_INTERRUPTED) {
        check->outcome = HTTP_CHECK_WRONG;
        add_what_is_wrong(check, run);
        return;
    }
    add(check, "%llu of %llu requests were answered well, %s/s",
        (unsigned long long)total->ends[HTTP_END_OK], (unsigned long long)total->offered,
        http_number_text(http_result_rate(total)));
}

static void
check_verdict(struct http_check *check, const struct http_verdict *verdict)
{
    check->is_doubt = true;
    if (verdict->number == 0)
        add(check, "nothing speaks against it");
    else
        check->outcome = HTTP_CHECK_MISSED;
    for (unsigned i = 0; i < verdict->number; i++)
        add(check, "%s%s", i > 0 ? "\n" : "", verdict->reasons[i]);
}

/* ---- What was asked for ---- */

static void
check_threshold(struct http_check *check, const struct http_run *run, unsigned i)
{
    const struct http_judged *judged = &run->judged[i];

    *check = (struct http_check){.group = "threshold",
                                 .is_asked = true,
                                 .name = run->plan->thresholds[i],
                                 .title = "Threshold missed"};
    if (!judged->holds)
        check->outcome = HTTP_CHECK_MISSED;
    if (!judged->is_told)
        add(check, "the figure cannot be told, since there %s",
            http_result_replies(run->total) == 0 ? "was no reply" : "are too few samples");
    else
        add(check, "the figure is %s%s", judged->is_at_least ? "at least " : "",
            http_threshold_text(&judged->threshold, judged->figure));
    if (judged->is_told && judged->is_at_least)
        add(check, ", since requests failed");
}

static void
check_search(struct http_check *check, const struct http_run *run)
{
    *check = (struct http_check){.group = "search",
                                 .is_asked = true,
                                 .name = run->plan->find,
                                 .title = run->is_untold ? "Could not tell" : "No rate holds"};
    if (run->found_rate > 0) {
        add(check, "%.*f/s is the highest rate that held it, of %u tried", run->found_rate < 10,
            run->found_rate, run->steps_number);
        return;
    }
    check->outcome = HTTP_CHECK_MISSED;
    check->is_doubt = run->is_untold;
    if (run->is_untold)
        add(check, "which rate holds it could not be told: there are too few replies at low "
                   "rates; use a longer -d");
    else
        add(check, "no rate held it, of %u tried", run->steps_number);
}

static void
check_figure(struct http_check *check, const struct http_comparison *comparison, unsigned figure)
{
    const struct http_contrast *contrast = &comparison->contrast;
    const struct http_interval *ratio = &contrast->ratios[figure];
    enum http_contrast_word word = contrast->words[figure];

    *check = (struct http_check){.group = "comparison",
                                 .is_asked = true,
                                 .name = http_figure_names[figure].text,
                                 .title = "Regression"};
    if (word == HTTP_CONTRAST_GIVEN || word == HTTP_CONTRAST_UNTOLD ||
        word == HTTP_CONTRAST_UNKNOWN || word == HTTP_CONTRAST_BOUND) {
        check->outcome = HTTP_CHECK_SKIPPED;
        add(check, "%s",
            word == HTTP_CONTRAST_GIVEN     ? "it is given (-R, --replay), so it is no result"
            : word == HTTP_CONTRAST_UNTOLD  ? "a trial has too few requests to tell it"
            : word == HTTP_CONTRAST_UNKNOWN ? "there are too few trials that have it"
                                            : "requests failed, so it is only a lower bound");
        return;
    }
    if (word == HTTP_CONTRAST_SLOWER)
        check->outcome = HTTP_CHECK_MISSED;
    add(check, "%s: %.3f times that of %s (%.3f to %.3f, 95 %% for all %u figures together)",
        http_comparison_text(word, comparison->min_effect), ratio->middle, comparison->with,
        ratio->low, ratio->high, contrast->judged);
}

/* Of what failed there is a case if there is more of it: that it did is of the run already. */
static bool
check_count(struct http_check *check, const struct http_comparison *comparison, unsigned count)
{
    static const char *const names[] = {
        [HTTP_CONTRAST_FAILED] = "failed",
        [HTTP_CONTRAST_UNSENT] = "not sent",
        [HTTP_CONTRAST_UNOPENED] = "not opened",
    };
    bool is_dead = count == HTTP_CONTRAST_FAILED && comparison->contrast.is_dead;

    *check = (struct http_check){.group = "comparison",
                                 .outcome = HTTP_CHECK_MISSED,
                                 .is_asked = true,
                                 .name = names[count],
                                 .title = "Regression"};
    if (is_dead)
        add(check, "there is no good reply, or a trial without one, unlike %s", comparison->with);
    else
        add(check, "more than that of %s", comparison->with);
    return is_dead || comparison->contrast.counts[count] == HTTP_CONTRAST_MORE;
}

static void
check_comparison(const struct http_comparison *comparison,
                 void (*each)(void *user, const struct http_check *check), void *user)
{
    struct http_check check;

    for (unsigned i = 0; i < HTTP_CONTRAST_COUNTS; i++)
        if (check_count(&check, comparison, i))
            each(user, &check);
    for (unsigned i = 0; i < HTTP_FIGURES; i++)
        if (comparison->contrast.words[i] != HTTP_CONTRAST_REPEATED) {
            check_figure(&check, comparison, i);
            each(user, &check);
        }
}

static void
check_width(struct http_check *check, const struct http_run *run)
{
    const char *name = http_figure_names[run->plan->until_ci_figure].whole;

    *check = (struct http_check){
        .group = "interval", .is_asked = true, .name = name, .title = "Interval too wide"};
    if (http_until_ci_is_reached(run)) {
        add(check, "it is under %.3g %% wide", 100 * run->plan->until_ci);
        return;
    }
    check->outcome = HTTP_CHECK_MISSED;
    check->is_doubt = true;
    add(check, "after %u trials it is not under %.3g %% wide; a trial takes %u requests",
        run->trials_number, 100 * run->plan->until_ci,
        http_figure_needs((enum http_figure)run->plan->until_ci_figure));
}

void
http_checks_each(const struct http_run *run,
                 void (*each)(void *user, const struct http_check *check), void *user)
{
    const struct http_comparison *comparison = run->comparison;
    struct http_check check;

    check_run(&check, run);
    each(user, &check);
    check = (struct http_check){
        .group = "client", .name = "the client kept up", .title = "Result suspect"};
    check_verdict(&check, &run->verdict);
    each(user, &check);
    if (run->probe != NULL) {
        check = (struct http_check){
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
