/* SPDX-License-Identifier: MIT
 *
 * Checking that results to merge are parts of one load.
 */
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "result-file.h"
#include "sxe-util.h"

/* Members of the plan that may differ between files. */
static const char *const own[] = {"ip",         "workers", "probe_rate",
                                  "server_cmd", "shards",  "start_at_s"};

/* Members of the plan that may differ between files without --shard, because add_plan adds them
 * up. */
static const char *const added[] = {"sockets",   "requests_max", "rate", "rate_end",
                                    "ramp_rate", "ramp",         "seed"};

static bool
is_name_listed(const char *name, const char *const *names, size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool
may_differ(const struct load_plan *plan, const char *name)
{
    if (is_name_listed(name, own, SXE_COUNT(own)))
        return true;
    if (plan->shards > 0)
        return false;
    /* queries may differ only with --requests, which sets both requests_max and queries */
    return is_name_listed(name, added, SXE_COUNT(added)) ||
           (plan->stop == LOAD_STOP_TOTAL && strcmp(name, "queries") == 0);
}

static void
print_json_value(FILE *err, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

    load_result_file_print(err, text != NULL ? text : "nothing");
    free(text);
}

static void
refuse_pair(const struct load_merge_file *a, const struct load_merge_file *b, FILE *err)
{
    fputs("sxe-http: cannot merge ", err);
    load_result_file_print(err, a->path);
    fputs(" and ", err);
    load_result_file_print(err, b->path);
    fputs(": ", err);
}

static bool
refuse_difference(const struct load_merge_file *a, const struct load_merge_file *b,
                  const char *name, FILE *err)
{
    refuse_pair(a, b, err);
    fprintf(err, "%s is ", name);
    print_json_value(err, json_object_get(json_object_get(a->root, "plan"), name));
    fputs(" in the first and ", err);
    print_json_value(err, json_object_get(json_object_get(b->root, "plan"), name));
    fputs(" in the second; merge adds up parts of one load\n", err);
    return false;
}

static bool
have_same_plan(const struct load_merge_file *a, const struct load_merge_file *b, FILE *err)
{
    const json_t *other = json_object_get(b->root, "plan");
    const char *name;
    json_t *value;

    json_object_foreach(
        json_object_get(a->root, "plan"), name,
        value) if (!may_differ(&a->plan, name) &&
                   !json_equal(value, json_object_get(other, name))) return refuse_difference(a, b,
                                                                                              name,
                                                                                              err);
    if (a->plan.shards == b->plan.shards)
        return true;
    return refuse_difference(a, b, "shards", err);
}

/* Find a kind in the file's first trial. Returns its name; NULL: the trial has no such kind. */
static const json_t *
name_of_kind(const struct load_merge_file *file, size_t kind)
{
    const json_t *trial = json_array_get(json_object_get(file->root, "trials"), 0);

    return json_object_get(json_array_get(json_object_get(trial, "kinds"), kind), "name");
}

static bool
have_same_kinds(const struct load_merge_file *a, const struct load_merge_file *b, FILE *err)
{
    for (size_t i = 0; name_of_kind(a, i) != NULL || name_of_kind(b, i) != NULL; i++) {
        if (json_equal(name_of_kind(a, i), name_of_kind(b, i)))
            continue;
        refuse_pair(a, b, err);
        fputs("they sent different kinds of requests: ", err);
        print_json_value(err, name_of_kind(a, i));
        fputs(" and ", err);
        print_json_value(err, name_of_kind(b, i));
        putc('\n', err);
        return false;
    }
    return true;
}

static bool
have_as_many_trials(const struct load_merge_file *a, const struct load_merge_file *b, FILE *err)
{
    size_t trials = json_array_size(json_object_get(a->root, "trials"));
    size_t others = json_array_size(json_object_get(b->root, "trials"));

    if (trials == others)
        return true;
    refuse_pair(a, b, err);
    fprintf(err,
            "the first has %zu trials and the second %zu; trial 1 is added to trial 1, and so on\n",
            trials, others);
    return false;
}

static bool
have_other_shards(const struct load_merge_file *a, const struct load_merge_file *b, FILE *err)
{
    for (unsigned i = 0; i < a->plan.shards; i++) {
        if (!a->plan.has_shard[i] || !b->plan.has_shard[i])
            continue;
        refuse_pair(a, b, err);
        fprintf(err, "both are part %u of %u (--shard); give each part once\n", i + 1,
                a->plan.shards);
        return false;
    }
    return true;
}

static bool
has_id(const json_t *ids, const json_t *id)
{
    for (size_t i = 0; i < json_array_size(ids); i++)
        if (json_equal(json_array_get(ids, i), id))
            return true;
    return false;
}

/* Whether two files are copies of one run, judged without the ids of runs, which older files lack.
 * In copies the trials are equal; two different runs never have equal times. Files with --shard
 * need no such check, because the numbers of the shards tell them apart. */
static bool
are_copies(const struct load_merge_file *a, const struct load_merge_file *b)
{
    return a->plan.shards == 0 &&
           json_equal(json_object_get(a->root, "trials"), json_object_get(b->root, "trials"));
}

static bool
have_other_runs(const struct load_merge_file *a, const struct load_merge_file *b, FILE *err)
{
    const json_t *ids_a = json_object_get(a->root, "runs");
    const json_t *ids_b = json_object_get(b->root, "runs");
    bool is_shared = false;

    for (size_t i = 0; i < json_array_size(ids_a) && !is_shared; i++)
        is_shared = has_id(ids_b, json_array_get(ids_a, i));
    if (json_array_size(ids_a) == 0 || json_array_size(ids_b) == 0)
        is_shared = are_copies(a, b);
    if (!is_shared)
        return true;
    refuse_pair(a, b, err);
    fputs("the same run is in both, and would count twice; give each run once\n", err);
    return false;
}

/* Refuse a search or a comparison: it was controlled by its own replies, so it cannot have been a
 * part of a load. */
static bool
is_no_part(const struct load_merge_file *file, FILE *err)
{
    const char *problem = NULL;

    if (json_is_object(json_object_get(file->root, "find")))
        problem = "is a search (--find), and no part of a load: it went by its own replies alone";
    else if (json_is_object(json_object_get(file->root, "baseline")))
        problem = "is a comparison (--baseline-cmd), and no part of a load";
    if (problem != NULL)
        load_result_file_refuse(file->path, problem, err);
    return problem != NULL;
}

bool
load_merge_check(const struct load_merge *merge, FILE *err)
{
    const struct load_merge_file *files = merge->files;

    for (unsigned i = 0; i < merge->number; i++) {
        if (is_no_part(&files[i], err))
            return false;
        for (unsigned k = 0; k < i; k++)
            if (!have_other_shards(&files[k], &files[i], err) ||
                !have_other_runs(&files[k], &files[i], err))
                return false;
        if (i > 0 && !(have_same_plan(&files[0], &files[i], err) &&
                       have_same_kinds(&files[0], &files[i], err) &&
                       have_as_many_trials(&files[0], &files[i], err)))
            return false;
    }
    return true;
}

/* ---- Doubts, which are no reason to refuse ---- */

/* Find an earlier file without --shard that has the same seed as file `nth`, so that queries of
 * both arrived at the same instants; NULL: there is no such file. */
static const struct load_merge_file *
twin_of(const struct load_merge *merge, unsigned nth)
{
    const struct load_plan *plan = &merge->files[nth].plan;

    for (unsigned i = 0; i < nth; i++)
        if (plan->shards == 0 && plan->model != LOAD_CLOSED && plan->stop != LOAD_STOP_REPLAY &&
            merge->files[i].plan.seed == plan->seed)
            return &merge->files[i];
    return NULL;
}

void
load_merge_suspect(const struct load_merge *merge, struct load_verdict *verdict)
{
    unsigned present = 0;

    for (unsigned i = 0; i < merge->plan.shards; i++)
        present += merge->plan.has_shard[i];
    if (present < merge->plan.shards)
        load_verdict_say(verdict, "only %u of %u parts (--shard) are here: the load was smaller",
                         present, merge->plan.shards);
    for (unsigned i = 1; i < merge->number; i++) {
        const struct load_merge_file *twin = twin_of(merge, i);

        if (twin == NULL)
            continue;
        load_verdict_say(verdict,
                         "%.60s and %.60s have the same seed, so their requests came in pairs; use "
                         "--shard, or another --seed",
                         twin->path, merge->files[i].path);
        return;
    }
}
