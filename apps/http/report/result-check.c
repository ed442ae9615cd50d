/* SPDX-License-Identifier: MIT
 *
 * Checking that the numbers in a result file agree with each other.
 */
#include "result-check.h"

#include <math.h>
#include <stdio.h>

#include "output.h"
#include "result-read.h"
#include "run-private.h"

#define NEAR 0.01 /* of a figure: it was rounded, and so is what it is compared with */

struct check {
    struct load_reader reader;
    struct load_result *result; /* the one that is looked at */
    uint64_t most_lost;         /* requests that a killed worker counted in one place only */
};

static bool
is_near(double a, double b)
{
    return fabs(a - b) <= NEAR * fmax(fabs(a), fabs(b)) + 1;
}

static uint64_t
difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void
check_percentiles(struct check *check, const json_t *times, const struct load_histogram *histogram)
{
    for (unsigned i = 0; i < LOAD_PERCENTILES; i++) {
        const json_t *value = json_object_get(times, load_percentiles[i].name);
        double ns = (double)load_histogram_quantile(histogram, load_percentiles[i].fraction);

        if (json_is_number(value) && !is_near(json_number_value(value), ns / 1e3))
            load_reader_refuse(&check->reader, load_percentiles[i].name,
                               "is not what its histogram has");
    }
}

/* Each request that ended is in it once. */
static void
check_times(struct check *check, const json_t *json, const char *name,
            const struct load_histogram *histogram, bool is_of_all)
{
    const json_t *times = json_object_get(json, name);
    uint64_t ended = check->result->ends[LOAD_END_OK] + load_result_errors(check->result);

    if (json_object_get(times, "histogram") == NULL)
        return;
    check_percentiles(check, times, histogram);
    if (histogram->censored > histogram->count || histogram->min_ns > histogram->max_ns)
        load_reader_refuse(&check->reader, name, "has bounds that cannot be");
    if (is_of_all && difference(histogram->count, ended) > check->most_lost)
        load_reader_refuse(&check->reader, name, "has not as many samples as requests ended");
}

static void
check_result(struct check *check, const json_t *json)
{
    struct load_result *result = check->result;
    const json_t *rate = json_object_get(json, "rate");
    bool has_accounts = json_object_get(json, "accounts") != NULL;

    load_results_clear(result, 1);
    load_result_read(&check->reader, json, result);
    check_times(check, json, "connect", &result->connect, false);
    check_times(check, json, "first_byte", &result->first_byte, has_accounts);
    check_times(check, json, "service", &result->service, has_accounts);
    check_times(check, json, "response", &result->response, has_accounts);
    if (has_accounts && result->elapsed_ns > 0 && json_is_number(rate) &&
        !is_near(json_number_value(rate), load_result_rate(result)))
        load_reader_refuse(&check->reader, "rate", "is not what its counts say");
}

/* The number of good replies of all. */
static uint64_t
check_trials(struct check *check, const json_t *trials)
{
    uint64_t ok = 0;

    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);

        check_result(check, trial);
        ok += check->result->ends[LOAD_END_OK];
        if (json_is_object(json_object_get(trial, "probe")))
            check_result(check, json_object_get(trial, "probe"));
    }
    return ok;
}

static void
check_root(struct check *check, const json_t *root)
{
    const json_t *total = json_object_get(root, "total");
    double status = json_number_value(json_object_get(root, "status"));
    double workers = json_number_value(json_object_get(json_object_get(root, "plan"), "workers"));
    uint64_t ok;

    if (status == LOAD_EXIT_ERRORS || status == LOAD_EXIT_INTERRUPTED)
        check->most_lost = (uint64_t)fmin(fmax(workers, 0), LOAD_WORKERS_MAX) *
                           json_array_size(json_object_get(root, "trials"));
    ok = check_trials(check, json_object_get(root, "trials"));
    check_trials(check, json_object_get(json_object_get(root, "baseline"), "trials"));
    if (!json_is_object(total))
        return;
    check_result(check, total);
    if (check->result->ends[LOAD_END_OK] != ok)
        load_reader_refuse(&check->reader, "total", "is not the sum of the trials");
}

bool
load_result_check_file(const json_t *root, char *problem, size_t size)
{
    struct check check = {.result = load_results_map(1, false)};

    if (check.result == NULL)
        load_reader_refuse(&check.reader, "trials", "cannot be checked, for lack of memory");
    else
        check_root(&check, root);
    load_results_unmap(check.result, 1);
    snprintf(problem, size, "%s", check.reader.problem);
    return *problem == '\0';
}
