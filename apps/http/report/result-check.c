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
#include "sxe-util.h"

#define NEAR 0.01 /* by which part of their value figures may differ, because they were rounded */
/* by which part of their value rates may differ, because they were printed with 15 digits */
#define SAME 1e-9
/* where the last bucket of a histogram begins, in us; it has all longer times */
#define HOUR 3597e6

struct check {
    struct load_reader reader;
    struct load_result *result; /* the result that is being checked */
    /* by how much two counts of the same requests may differ: a worker that was killed may have
     * counted a request in one place only */
    uint64_t most_lost;
};

static bool
is_near(double a, double b)
{
    return fabs(a - b) <= NEAR * fmax(fabs(a), fabs(b)) + 1;
}

static uint64_t
absolute_difference(uint64_t a, uint64_t b)
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

/* Check a histogram. If is_of_all, it must have one sample for each request that ended. */
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
    if (is_of_all && absolute_difference(histogram->count, ended) > check->most_lost)
        load_reader_refuse(&check->reader, name, "has not as many samples as requests ended");
}

/* Check the handshakes: each was either full or resumed. A handshake for which no session could be
 * offered, or whose session was refused, was full. */
static void
check_handshakes(struct check *check, const json_t *json)
{
    const struct load_result *result = check->result;
    const json_t *tls = json_object_get(json, "tls");
    uint64_t full = load_reader_count(&check->reader, tls, "full", 1);
    uint64_t known = full + result->handshakes_resumed;

    if (tls == NULL)
        return;
    if (absolute_difference(known, result->handshake.count) > check->most_lost ||
        result->handshakes_refused + result->handshakes_sessionless > full)
        load_reader_refuse(&check->reader, "tls", "has counts that cannot be");
}

static void
check_result(struct check *check, const json_t *json)
{
    struct load_result *result = check->result;
    const json_t *rate = json_object_get(json, "rate");
    bool has_accounts = json_object_get(json, "accounts") != NULL;
    bool has_seconds = json_object_get(json, "seconds") != NULL;

    load_results_clear(result, 1);
    load_result_read(&check->reader, json, result);
    check_times(check, json, "connect", &result->connect, false);
    check_times(check, json, "handshake", &result->handshake, false);
    check_handshakes(check, json);
    check_times(check, json, "first_byte", &result->first_byte, has_accounts);
    check_times(check, json, "service", &result->service, has_accounts);
    check_times(check, json, "response", &result->response, has_accounts);
    if (has_accounts && has_seconds && json_is_number(rate) &&
        fabs(json_number_value(rate) - load_result_rate(result)) > SAME * json_number_value(rate))
        load_reader_refuse(&check->reader, "rate", "is not what its counts say");
}

/* Check all trials. Returns the sum of their good replies. */
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

/* ---- Any member ---- */

/* Check the mean and the max, in us. The max must lie in the last bucket; the mean must be that of
 * the histogram, in which each sample counts as the lower bound of its bucket. */
static void
check_shape(struct check *check, const json_t *times, const char *name)
{
    const json_t *buckets = json_object_get(times, "histogram");
    double mean = json_number_value(json_object_get(times, "mean"));
    double max = json_number_value(json_object_get(times, "max"));
    double count = 0, sum = 0, last = 0;

    for (size_t i = 0; i < json_array_size(buckets); i++) {
        const json_t *bucket = json_array_get(buckets, i);
        double number = json_number_value(json_array_get(bucket, 2));

        last = json_number_value(json_array_get(bucket, 0));
        count += number;
        sum += last * number;
    }
    if (count == 0 || check->most_lost > 0)
        return;
    if (!is_near(max, last) && !(max > last && last >= HOUR))
        load_reader_refuse(&check->reader, name, "has a 'max' that is not in its last bucket");
    if (!is_near(mean, sum / count) && !(mean > sum / count && mean <= max && last >= HOUR))
        load_reader_refuse(&check->reader, name, "has a 'mean' that its histogram has not");
}

static void
check_members(struct check *check, const json_t *json, const char *name)
{
    const char *inner;
    json_t *value;

    if (json_number_value(json) < 0)
        load_reader_refuse(&check->reader, name, "is not a number from 0 on");
    for (size_t i = 0; i < json_array_size(json); i++)
        check_members(check, json_array_get(json, i), name);
    json_object_foreach((json_t *)(uintptr_t)json, inner, value) check_members(check, value, inner);
    if (json_is_number(json_object_get(json, "mean")))
        check_shape(check, json, name);
}

/* ---- Sums ---- */

/* Where a number is: it is the member `name` of an object. If there is an array in place of the
 * object, the number is the sum over all entries: of their member `name`, or, if the entries are
 * arrays, of their element `index`. */
struct field {
    const char *group; /* the member of the result that is the object; NULL: the result itself */
    const char *part;  /* a member of the group that is the object; NULL: the group itself */
    const char *name;
    unsigned index; /* the index, for entries that are arrays */
};

#define SKIP(enumerator, text, name)     {"accounts", "skipped", name, 0},
#define END(enumerator, text, name)      {"accounts", "ends", name, 0},
#define UNOPENED(enumerator, text, name) {"sockets", "unopened", name, 0},

/* Numbers which in the total must be the sums of the numbers in the trials. */
static const struct field summed[] = {
    {NULL, NULL, "seconds", 0},
    {"left_out", NULL, "seconds", 0},
    {"left_out", NULL, "queries", 0},
    {"accounts", NULL, "offered", 0},
    {"accounts", NULL, "sent", 0},
    {"accounts", NULL, "carried", 0},
    {"accounts", NULL, "waiting", 0},
    {"accounts", NULL, "in_flight", 0},
    {"accounts", NULL, "drained", 0},
    {"accounts", NULL, "late", 0},
    {"accounts", NULL, "resent", 0},
    {"accounts", NULL, "bytes_sent", 0},
    {"accounts", NULL, "bytes_received", 0},
    LOAD_EACH_SKIP(SKIP) LOAD_EACH_END(END){"sessions", NULL, "completed", 0},
    {"sessions", NULL, "failed", 0},
    {"sockets", NULL, "wanted", 0},
    {"sockets", NULL, "opened", 0},
    {"sockets", NULL, "seconds", 0},
    {"sockets", NULL, "reopened", 0},
    {"sockets", NULL, "not_reopened", 0},
    {"sockets", NULL, "syn_retries", 0},
    {"sockets", NULL, "retransmits", 0},
    {"tls", NULL, "full", 0},
    {"tls", NULL, "resumed", 0},
    {"tls", NULL, "refused", 0},
    {"tls", NULL, "sessionless", 0},
    LOAD_EACH_UNOPENED(UNOPENED){"client", NULL, "cpu_user_s", 0},
    {"client", NULL, "cpu_system_s", 0},
    {"client", NULL, "spun_s", 0},
    {"client", NULL, "run_queue_s", 0},
    {"client", NULL, "script_s", 0},
    {"client", NULL, "script_calls", 0},
    {"timeline", "slices", "offered", 0},
    {"timeline", "slices", "sent", 1},
    {"timeline", "slices", "ok", 2},
    {"timeline", "slices", "errors", 3},
    {"kinds", NULL, "ok", 0},
    {"kinds", NULL, "errors", 0},
    {"stages", NULL, "ok", 0},
    {"stages", NULL, "errors", 0},
    {"hosts", NULL, "ok", 0},
    {"hosts", NULL, "errors", 0},
    {"addresses", NULL, "opened", 0},
    {"addresses", NULL, "failed", 0},
};

/* Read the number at a field; NAN: there is no number. */
static double
number_of_field(const json_t *owner, const struct field *field)
{
    const json_t *value = json_is_array(owner) ? json_array_get(owner, field->index)
                                               : json_object_get(owner, field->name);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double
field_of(const json_t *result, const struct field *field)
{
    const json_t *group = field->group == NULL ? result : json_object_get(result, field->group);
    const json_t *owner = field->part == NULL ? group : json_object_get(group, field->part);
    double sum = 0;

    if (!json_is_array(owner))
        return number_of_field(owner, field);
    for (size_t i = 0; i < json_array_size(owner); i++)
        sum += number_of_field(json_array_get(owner, i), field);
    return sum;
}

/* Check the sums of the load (if probe is NULL) or of the probe (if it is "probe"). A small
 * difference is allowed, because seconds were printed with 15 digits. */
static void
check_sums(struct check *check, const json_t *root, const char *probe)
{
    const json_t *trials = json_object_get(root, "trials");
    const json_t *total = json_object_get(root, "total");

    for (size_t i = 0; i < SXE_COUNT(summed); i++) {
        double whole = field_of(probe == NULL ? total : json_object_get(total, probe), &summed[i]);
        double sum = 0;

        for (size_t k = 0; k < json_array_size(trials); k++) {
            const json_t *trial = json_array_get(trials, k);

            sum += field_of(probe == NULL ? trial : json_object_get(trial, probe), &summed[i]);
        }
        /* A count of a slice has 32 bits, and larger sums have overflowed. */
        if (fabs(whole - sum) > 1e-6 + 1e-12 * sum && (summed[i].index == 0 || sum < 0x1p32))
            load_reader_refuse(&check->reader, summed[i].name,
                               "of the total is not the sum of the trials");
    }
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
    check_members(check, json_object_get(root, "trials"), "trials");
    check_members(check, json_object_get(root, "baseline"), "baseline");
    check_members(check, total, "total");
    if (!json_is_object(total))
        return;
    check_result(check, total);
    if (check->result->ends[LOAD_END_OK] != ok)
        load_reader_refuse(&check->reader, "total", "is not the sum of the trials");
    check_sums(check, root, NULL);
    check_sums(check, root, "probe");
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
