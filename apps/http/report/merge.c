/* SPDX-License-Identifier: MIT
 *
 * Adding up several results to one run.
 */
#include "merge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan-read.h"
#include "result-file.h"
#include "result-read.h"
#include "run-private.h"
#include "sxe-time.h"

/* the times at which the parts began may differ by at most this part of the measured time */
#define APART_MOST 0.05

/* ---- Files ---- */

static const json_t *
trial_of(const struct load_merge_file *file, unsigned trial)
{
    return json_array_get(json_object_get(file->root, "trials"), trial);
}

static bool
read_merged_file(struct load_merge_file *file, const char *path, FILE *err)
{
    struct load_reader reader = {""};
    size_t trials;

    file->path = path;
    file->root = load_result_file_load(path, err);
    if (file->root == NULL)
        return false;
    load_plan_read(&reader, load_reader_object(&reader, file->root, "plan"), &file->plan);
    trials = json_array_size(json_object_get(file->root, "trials"));
    if (trials == 0 || trials > LOAD_TRIALS_MAX)
        load_reader_refuse(&reader, "trials", "are none, or too many");
    if (*reader.problem != '\0')
        load_result_file_refuse(path, reader.problem, err);
    return *reader.problem == '\0';
}

static bool
read_files(struct load_merge *merge, int number, char **paths, FILE *err)
{
    merge->files = calloc((size_t)number, sizeof(*merge->files));
    if (merge->files == NULL) {
        fprintf(err, "sxe-http: no memory for %d files; merge fewer at a time\n", number);
        return false;
    }
    for (int i = 0; i < number; i++) {
        merge->number++;
        if (!read_merged_file(&merge->files[i], paths[i], err))
            return false;
    }
    return true;
}

/* ---- The plan ---- */

/* Add the plan of a file to the sum. Shards have the same plan, so nothing is added up. The plans
 * of separate loads are: their sockets, rates and requests are added up. */
static void
add_plan(struct load_plan *to, const struct load_plan *plan)
{
    to->workers += plan->workers;
    to->probe_rate += plan->probe_rate;
    for (unsigned i = 0; i < to->shards; i++)
        to->has_shard[i] |= plan->has_shard[i];
    if (to->shards > 0)
        return;
    to->sockets += plan->sockets;
    to->requests_max += plan->requests_max;
    to->rate += plan->rate;
    to->rate_end += plan->rate_end;
    for (unsigned i = 0; i < to->stages_number; i++)
        to->stages[i].rate += plan->stages[i].rate;
    to->ramp += plan->ramp;
    to->ramp_rate += plan->ramp_rate;
    if (to->stop == LOAD_STOP_TOTAL)
        to->queries = to->requests_max;
}

/* If all shards are present, the sum is the result of a whole load: remove the shards from its
 * plan. */
static void
close_shards(struct load_plan *plan)
{
    for (unsigned i = 0; i < plan->shards; i++)
        if (!plan->has_shard[i])
            return;
    plan->shards = 0;
}

static void
take_thresholds(struct load_plan *plan, const struct load_plan *asked, const json_t *root)
{
    const json_t *thresholds = json_object_get(root, "thresholds");
    unsigned number = 0;

    memcpy(plan->thresholds, asked->thresholds, sizeof(plan->thresholds));
    if (asked->thresholds[0] != NULL)
        return;
    for (size_t i = 0; i < json_array_size(thresholds) && number < LOAD_THRESHOLDS_MAX; i++) {
        const json_t *one = json_object_get(json_array_get(thresholds, i), "condition");
        const char *condition = json_is_string(one) ? json_string_value(one) : "";
        struct load_threshold threshold;

        if (load_threshold_parse(&threshold, condition) == NULL)
            plan->thresholds[number++] = condition;
    }
}

static void
take_outputs(struct load_plan *plan, const struct load_plan *asked)
{
    plan->json = asked->json;
    plan->csv = asked->csv;
    plan->candles = asked->candles;
    plan->hgrm = asked->hgrm;
    plan->hdr = asked->hdr;
    plan->html = asked->html;
    plan->junit = asked->junit;
    plan->markdown = asked->markdown;
    plan->fanout = asked->fanout;
    plan->quiet = asked->quiet;
}

/* For the sum use the command line of the first file, including its --shard and --start-at. */
static int
take_words(struct load_merge *merge)
{
    const json_t *command = json_object_get(merge->files[0].root, "command");
    size_t number = json_array_size(command);

    merge->words = calloc(number + 1, sizeof(char *));
    if (merge->words == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < number; i++) {
        const char *word = json_string_value(json_array_get(command, i));

        merge->words[i] = (char *)(uintptr_t)(word != NULL ? word : "");
    }
    merge->plan.argv = merge->words;
    merge->plan.argc = (int)number;
    return 0;
}

static void
take_kinds(struct load_merge *merge)
{
    const json_t *kinds = json_object_get(trial_of(&merge->files[0], 0), "kinds");
    unsigned number = 0;

    while (number < LOAD_KINDS_MAX && number < json_array_size(kinds)) {
        const char *name =
            json_string_value(json_object_get(json_array_get(kinds, number), "name"));

        merge->kind_names[number++] = name != NULL ? name : "request";
    }
    merge->requests = (struct load_requests){.kinds = number, .kind_names = merge->kind_names};
    merge->plan.requests = &merge->requests;
}

static int
make_merged_plan(struct load_merge *merge, const struct load_plan *asked)
{
    merge->plan = merge->files[0].plan;
    for (unsigned i = 1; i < merge->number; i++)
        add_plan(&merge->plan, &merge->files[i].plan);
    take_outputs(&merge->plan, asked);
    take_thresholds(&merge->plan, asked, merge->files[0].root);
    take_kinds(merge);
    return take_words(merge);
}

/* ---- A trial ---- */

/* When the parts of a trial were measured, by their machines' wall clocks. */
struct span {
    uint64_t first_ns;     /* when the first part began */
    uint64_t last_ns;      /* when the last part began */
    uint64_t end_ns;       /* when the last part ended */
    uint64_t first_end_ns; /* when the first part ended */
};

static uint64_t
began_ns(const json_t *trial)
{
    return (uint64_t)(fabs(json_number_value(json_object_get(trial, "began_s"))) * 1e9);
}

static struct span
time_span_of_trial(const struct load_merge *merge, unsigned trial)
{
    struct span span = {.first_ns = UINT64_MAX, .first_end_ns = UINT64_MAX};

    for (unsigned i = 0; i < merge->number; i++) {
        const json_t *json = trial_of(&merge->files[i], trial);
        double seconds = json_number_value(json_object_get(json, "seconds"));
        uint64_t from_ns = began_ns(json);
        uint64_t to_ns = from_ns + (uint64_t)(fabs(seconds) * 1e9);

        span.first_ns = from_ns < span.first_ns ? from_ns : span.first_ns;
        span.last_ns = from_ns > span.last_ns ? from_ns : span.last_ns;
        span.end_ns = to_ns > span.end_ns ? to_ns : span.end_ns;
        span.first_end_ns = to_ns < span.first_end_ns ? to_ns : span.first_end_ns;
    }
    return span;
}

static bool
is_together(const struct span *span, unsigned trial, FILE *err)
{
    if (span->last_ns < span->first_end_ns || span->first_ns == span->last_ns)
        return true;
    fprintf(err,
            "sxe-http: cannot merge: in trial %u one part began %.3f s after another, which had "
            "ended by then; merge adds up what ran at the same time (--start-at)\n",
            trial + 1, (double)(span->last_ns - span->first_ns) / 1e9);
    return false;
}

static void
judge_span(struct load_verdict *verdict, const struct span *span)
{
    double apart = (double)(span->last_ns - span->first_ns);
    double part =
        span->end_ns > span->first_ns ? apart / (double)(span->end_ns - span->first_ns) : 0;

    if (part > APART_MOST)
        load_verdict_say(verdict,
                         "the parts began %.3f s apart, %.1f %% of the time (limit %.0f %%): start "
                         "them with --start-at",
                         apart / 1e9, part * 100, APART_MOST * 100);
}

struct sum {
    struct load_reader reader;
    struct load_result *part; /* memory for the result of one file, which add_result clears first */
    struct load_trial *trial;
    struct span span;
};

static void
add_left_out_queries(struct sum *sum, const json_t *json)
{
    const json_t *left_out = load_reader_object(&sum->reader, json, "left_out");
    uint64_t ns = load_reader_count(&sum->reader, left_out, "seconds", 1e9);
    struct load_left_out *to = &sum->trial->left_out;

    to->ns = ns > to->ns ? ns : to->ns;
    to->queries += load_reader_count(&sum->reader, left_out, "queries", 1);
    if (to->problem == NULL)
        to->problem = load_reader_text(&sum->reader, left_out, "problem");
}

/* Add a result of a file, which is the load's or the probe's, to *to, and its verdict to
 * *verdict. */
static void
add_result(struct sum *sum, const struct load_merge_file *file, const json_t *json,
           struct load_result *to, struct load_verdict *verdict)
{
    struct load_verdict of_part = {0};

    load_results_clear(sum->part, 1);
    load_result_read(&sum->reader, json, sum->part);
    load_timeline_delay(&sum->part->timeline,
                        load_later_part(sum->part->started_ns, sum->span.first_ns));
    load_result_add(to, sum->part);
    load_verdict_read(&sum->reader, load_reader_object(&sum->reader, json, "verdict"), &of_part);
    load_verdict_add_part(verdict, &of_part, file->path);
}

static bool
add_merged_file(struct sum *sum, const struct load_merge_file *file, unsigned trial, FILE *err)
{
    const json_t *json = trial_of(file, trial);
    const json_t *probe = load_reader_object(&sum->reader, json, "probe");

    add_left_out_queries(sum, json);
    add_result(sum, file, json, sum->trial->result, &sum->trial->verdict);
    if (probe != NULL && sum->trial->probe != NULL)
        add_result(sum, file, probe, sum->trial->probe, &sum->trial->probe_verdict);
    if (*sum->reader.problem != '\0')
        load_result_file_refuse(file->path, sum->reader.problem, err);
    return *sum->reader.problem == '\0';
}

/* Add up a trial of all files. The results that are mapped here belong to the run, which frees them
 * even after an error. */
static bool
add_merged_trial(struct load_merge *merge, struct load_run *run, struct sum *sum, FILE *err)
{
    unsigned number = run->trials_number;

    sum->trial = &run->trials[number];
    sum->span = time_span_of_trial(merge, number);
    if (!is_together(&sum->span, number, err))
        return false;
    sum->trial->result = load_results_map_run(&merge->plan, &sum->trial->probe);
    if (sum->trial->result == NULL)
        return false;
    run->trials_number++;
    for (unsigned i = 0; i < merge->number; i++)
        if (!add_merged_file(sum, &merge->files[i], number, err))
            return false;
    /* The time of the sum is from the start of the first part to the end of the last. */
    sum->trial->result->elapsed_ns = sum->span.end_ns - sum->span.first_ns;
    judge_span(&sum->trial->verdict, &sum->span);
    load_merge_suspect(merge, &sum->trial->verdict);
    load_result_figures(sum->trial->result, sum->trial->figures);
    sum->trial->at_least = load_figures_at_least(sum->trial->result, sum->trial->figures);
    return true;
}

/* ---- The whole merge ---- */

static void
add_merged_fact(struct load_fingerprint *fingerprint, const char *name, const char *value)
{
    struct load_fact *fact = fingerprint->facts;
    struct load_fact *end = fact + fingerprint->number;
    size_t used;

    while (fact < end && strcmp(fact->name, name) != 0)
        fact++;
    if (fact == end && fingerprint->number == LOAD_FACTS_MAX)
        return;
    if (fact == end) {
        fingerprint->number++;
        snprintf(fact->name, sizeof(fact->name), "%s", name);
        snprintf(fact->value, sizeof(fact->value), "%s", value);
        return;
    }
    used = strlen(fact->value);
    if (strstr(fact->value, value) == NULL)
        snprintf(fact->value + used, sizeof(fact->value) - used, " | %s", value);
}

/* Merge the fingerprints. If the machines have different values of a fact, the sum has all these
 * values. */
static void
take_fingerprint(const struct load_merge *merge, struct load_run *run)
{
    for (unsigned i = 0; i < merge->number; i++) {
        const char *name;
        json_t *value;

        json_object_foreach(json_object_get(merge->files[i].root, "fingerprint"), name,
                            value) if (json_is_string(value))
            add_merged_fact(&run->fingerprint, name, json_string_value(value));
    }
}

static void
take_beginning(struct load_run *run)
{
    time_t began;
    struct tm utc;

    run->wall_ns = run->started_ns = run->trials[0].result->started_ns;
    run->started_s = run->wall_ns / SXE_NS_PER_SECOND;
    began = (time_t)run->started_s;
    strftime(run->started_at, sizeof(run->started_at), "%Y-%m-%dT%H:%M:%SZ",
             gmtime_r(&began, &utc));
}

static void
take_merged_part(struct load_part *part, const struct load_merge_file *file)
{
    struct load_reader reader = {""};
    const json_t *total = load_reader_object(&reader, file->root, "total");
    const json_t *ends = json_object_get(json_object_get(total, "accounts"), "ends");
    const char *name;
    json_t *end;

    snprintf(part->name, sizeof(part->name), "%s", file->path);
    part->rate = load_reader_number(&reader, total, "rate");
    part->ok = load_reader_count(&reader, ends, "ok", 1);
    json_object_foreach((json_t *)(uintptr_t)ends, name, end) part->errors +=
        (uint64_t)fmax(json_number_value(end), 0);
    part->errors -= part->ok;
    part->opened = load_reader_count(&reader, json_object_get(total, "sockets"), "opened", 1);
    load_verdict_read(&reader, json_object_get(file->root, "verdict"), &part->verdict);
}

/* The sum counts as interrupted, or as failed, if any of the parts was interrupted or has
 * failed. */
static void
take_statuses(const struct load_merge *merge, bool *is_interrupted, bool *has_failed)
{
    for (unsigned i = 0; i < merge->number; i++) {
        const json_t *root = merge->files[i].root;

        *is_interrupted |= json_is_true(json_object_get(root, "is_interrupted"));
        *has_failed |=
            json_number_value(json_object_get(root, "status")) == (double)LOAD_EXIT_ERRORS;
    }
}

static bool
add_merged_trials(struct load_merge *merge, struct load_run *run, FILE *err)
{
    size_t trials = json_array_size(json_object_get(merge->files[0].root, "trials"));
    struct sum sum = {.part = load_results_map(1, false)};
    bool is_good = sum.part != NULL;

    for (size_t i = 0; i < trials && is_good; i++)
        is_good = add_merged_trial(merge, run, &sum, err);
    load_results_unmap(sum.part, 1);
    return is_good;
}

/* How many runs all files have together, plus 1, because calloc(3) must not get 0. */
static size_t
count_ids(const struct load_merge *merge)
{
    size_t number = 1;

    for (unsigned i = 0; i < merge->number; i++)
        number += json_array_size(json_object_get(merge->files[i].root, "runs"));
    return number;
}

static bool
allocate_merge_memory(struct load_merge *merge, struct load_run *run)
{
    run->total = load_results_map_run(&merge->plan, &run->probe);
    run->parts = calloc(merge->number, sizeof(*run->parts));
    run->ids = calloc(count_ids(merge), sizeof(*run->ids));
    return run->total != NULL && run->parts != NULL && run->ids != NULL;
}

static void
take_ids(const struct load_merge_file *file, struct load_run *run)
{
    const json_t *ids = json_object_get(file->root, "runs");

    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));

        snprintf(run->ids[run->ids_number++], LOAD_RUN_ID, "%s", id != NULL ? id : "unknown");
    }
}

static void
conclude_merge(struct load_merge *merge, struct load_run *run, FILE *err)
{
    bool is_interrupted = false, has_failed = false;

    run->parts_number = merge->number;
    for (unsigned i = 0; i < merge->number; i++) {
        take_merged_part(&run->parts[i], &merge->files[i]);
        take_ids(&merge->files[i], run);
    }
    take_fingerprint(merge, run);
    take_beginning(run);
    take_statuses(merge, &is_interrupted, &has_failed);
    /* Remove the shards from the plan only now, because load_merge_suspect, which was called after
     * each trial, needs them. */
    close_shards(&merge->plan);
    load_run_conclude(run, is_interrupted, has_failed, err);
}

int
load_merge(struct load_merge *merge, struct load_run *run, const struct load_plan *asked,
           int number, char **paths, FILE *err)
{
    memset(merge, 0, sizeof(*merge));
    memset(run, 0, sizeof(*run));
    run->plan = &merge->plan;
    if (!read_files(merge, number, paths, err) || !load_merge_check(merge, err))
        return LOAD_EXIT_USAGE;
    if (make_merged_plan(merge, asked) < 0 || !allocate_merge_memory(merge, run)) {
        fprintf(err, "sxe-http: no memory for the sum of %d files; merge fewer at a time\n",
                number);
        return LOAD_EXIT_ERRORS;
    }
    if (!add_merged_trials(merge, run, err))
        return LOAD_EXIT_USAGE;
    conclude_merge(merge, run, err);
    return LOAD_EXIT_OK;
}

void
load_merge_free(struct load_merge *merge)
{
    for (unsigned i = 0; i < merge->number; i++)
        json_decref(merge->files[i].root);
    free(merge->files);
    free(merge->words);
}
