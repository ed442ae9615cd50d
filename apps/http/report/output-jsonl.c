/* SPDX-License-Identifier: MIT
 *
 * A line of JSON for each second of a run, and one for its result. A member that also exists in the
 * JSON of a run (output-json.c) has the same name there.
 */
#include "json-writer.h"
#include "monitor.h"
#include "output.h"
#include "run.h"

#define US 1e3

#define NAME(enumerator, text, name) name,
static const char *const skip_names[] = {LOAD_EACH_SKIP(NAME)};
static const char *const end_names[] = {LOAD_EACH_END(NAME)};

static const struct load_percentile percentiles[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}};

static void
write_jsonl_times(struct load_json *json, const struct load_histogram *histogram)
{
    for (unsigned i = 0; i < SXE_COUNT(percentiles); i++)
        if (load_histogram_can_tell(histogram, percentiles[i].fraction))
            load_json_number(json, percentiles[i].name,
                             (double)load_histogram_quantile(histogram, percentiles[i].fraction) /
                                 US);
        else
            load_json_null(json, percentiles[i].name);
    load_json_open(json, "at_least", '[');
    for (unsigned i = 0; i < SXE_COUNT(percentiles); i++)
        if (load_histogram_can_tell(histogram, percentiles[i].fraction) &&
            load_histogram_is_at_least(histogram,
                                       load_histogram_quantile(histogram, percentiles[i].fraction)))
            load_json_text(json, NULL, percentiles[i].name);
    load_json_close(json, ']');
}

/* Write by how much each count has grown since `before`; if `before` is NULL, since 0. */
static void
write_count_rises(struct load_json *json, const char *name, const char *const *names,
                  const uint64_t *now, const uint64_t *before, unsigned from, unsigned number)
{
    load_json_open(json, name, '{');
    for (unsigned i = from; i < number; i++)
        load_json_count(json, names[i], now[i] - (before != NULL ? before[i] : 0));
    load_json_close(json, '}');
}

static int
end_line(struct load_json *json)
{
    load_json_close(json, '}');
    putc('\n', json->out);
    return load_output_finish(json->out);
}

int
load_output_second(FILE *out, const struct load_second *second)
{
    const struct load_tally *now = second->now, *before = second->before;
    uint64_t ok = now->ends[LOAD_END_OK] - before->ends[LOAD_END_OK];
    struct load_json json;

    load_json_init_line(&json, out);
    load_json_open(&json, NULL, '{');
    load_json_text(&json, "type", "second");
    load_json_number(&json, "time_s", second->time_s);
    load_json_count(&json, "trial", second->trial);
    load_json_number(&json, "seconds", second->seconds);
    if (second->elapsed_s < 0)
        load_json_null(&json, "elapsed_s");
    else
        load_json_number(&json, "elapsed_s", second->elapsed_s);
    load_json_count(&json, "offered", now->offered - before->offered);
    load_json_count(&json, "sent", now->sent - before->sent);
    load_json_count(&json, "ok", ok);
    write_count_rises(&json, "errors", end_names, now->ends, before->ends, LOAD_END_OK + 1,
                      LOAD_ENDS);
    write_count_rises(&json, "skipped", skip_names, now->skipped, before->skipped, 0, LOAD_SKIPS);
    load_json_count(&json, "in_flight", now->in_flight);
    load_json_count(&json, "waiting", now->waiting);
    load_json_count(&json, "connections", now->connections);
    load_json_number(&json, "rate", load_per_second(ok, second->seconds));
    load_json_number(&json, "offered_rate",
                     load_per_second(now->offered - before->offered, second->seconds));
    write_jsonl_times(&json, second->response);
    load_json_count(&json, "bytes_sent", now->bytes_sent - before->bytes_sent);
    load_json_count(&json, "bytes_received", now->bytes_received - before->bytes_received);
    load_json_count(&json, "missing", second->missing);
    return end_line(&json);
}

static void
write_reasons(struct load_json *json, const struct load_verdict *verdict)
{
    load_json_open(json, "reasons", '[');
    for (unsigned i = 0; i < verdict->number; i++)
        load_json_text(json, NULL, verdict->reasons[i]);
    load_json_close(json, ']');
}

int
load_output_result_line(FILE *out, const struct load_run *run, uint64_t missing)
{
    const struct load_result *total = run->total;
    struct load_json json;

    load_json_init_line(&json, out);
    load_json_open(&json, NULL, '{');
    load_json_text(&json, "type", "result");
    load_json_count(&json, "sxe_http", LOAD_JSON_SCHEMA);
    load_json_text(&json, "version", SXE_VERSION);
    load_json_text(&json, "started_at", run->started_at);
    load_json_count(&json, "status", (uint64_t)run->status);
    load_json_bool(&json, "is_interrupted", run->is_interrupted);
    load_json_count(&json, "trials", run->trials_number);
    load_json_number(&json, "seconds", (double)total->elapsed_ns / 1e9);
    load_json_count(&json, "offered", total->offered);
    load_json_count(&json, "sent", total->sent);
    load_json_count(&json, "carried", total->carried);
    load_json_count(&json, "ok", total->ends[LOAD_END_OK]);
    write_count_rises(&json, "errors", end_names, total->ends, NULL, LOAD_END_OK + 1, LOAD_ENDS);
    write_count_rises(&json, "skipped", skip_names, total->skipped, NULL, 0, LOAD_SKIPS);
    load_json_count(&json, "in_flight", total->in_flight);
    load_json_number(&json, "rate", load_result_rate(total));
    write_jsonl_times(&json, &total->response);
    load_json_count(&json, "bytes_sent", total->bytes_sent);
    load_json_count(&json, "bytes_received", total->bytes_received);
    load_output_json_thresholds(&json, run);
    if (run->plan->find != NULL)
        load_json_number(&json, "found_rate", run->found_rate);
    else
        load_json_null(&json, "found_rate");
    write_reasons(&json, &run->verdict);
    load_json_count(&json, "missing", missing);
    return end_line(&json);
}
