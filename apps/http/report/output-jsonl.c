/* SPDX-License-Identifier: MIT
 *
 * A line of JSON for each second of a run, and one for its result. Names are those of the JSON of a
 * run where they mean the same.
 */
#include "json-writer.h"
#include "monitor.h"
#include "output.h"
#include "run.h"

#define US 1e3

#define NAME(enumerator, text, name) name,
static const char *const skip_names[] = {HTTP_EACH_SKIP(NAME)};
static const char *const end_names[] = {HTTP_EACH_END(NAME)};

static const struct http_percentile percentiles[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}};

static void
write_times(struct http_json *json, const struct http_histogram *histogram)
{
    for (unsigned i = 0; i < SXE_COUNT(percentiles); i++)
        if (http_histogram_can_tell(histogram, percentiles[i].fraction))
            http_json_number(json, percentiles[i].name,
                             (double)http_histogram_quantile(histogram, percentiles[i].fraction) /
                                 US);
        else
            http_json_null(json, percentiles[i].name);
    http_json_open(json, "at_least", '[');
    for (unsigned i = 0; i < SXE_COUNT(percentiles); i++)
        if (http_histogram_can_tell(histogram, percentiles[i].fraction) &&
            http_histogram_is_at_least(histogram,
                                       http_histogram_quantile(histogram, percentiles[i].fraction)))
            http_json_text(json, NULL, percentiles[i].name);
    http_json_close(json, ']');
}

/* Of each kind what came since before, which may be NULL. */
static void
write_counts(struct http_json *json, const char *name, const char *const *names,
             const uint64_t *now, const uint64_t *before, unsigned from, unsigned number)
{
    http_json_open(json, name, '{');
    for (unsigned i = from; i < number; i++)
        http_json_count(json, names[i], now[i] - (before != NULL ? before[i] : 0));
    http_json_close(json, '}');
}

static int
end_line(struct http_json *json)
{
    http_json_close(json, '}');
    putc('\n', json->out);
    return http_output_finish(json->out);
}

int
http_output_second(FILE *out, const struct http_second *second)
{
    const struct http_tally *now = second->now, *before = second->before;
    uint64_t ok = now->ends[HTTP_END_OK] - before->ends[HTTP_END_OK];
    struct http_json json;

    http_json_init_line(&json, out);
    http_json_open(&json, NULL, '{');
    http_json_text(&json, "type", "second");
    http_json_number(&json, "time_s", second->time_s);
    http_json_count(&json, "trial", second->trial);
    http_json_number(&json, "seconds", second->seconds);
    if (second->elapsed_s < 0)
        http_json_null(&json, "elapsed_s");
    else
        http_json_number(&json, "elapsed_s", second->elapsed_s);
    http_json_count(&json, "offered", now->offered - before->offered);
    http_json_count(&json, "sent", now->sent - before->sent);
    http_json_count(&json, "ok", ok);
    write_counts(&json, "errors", end_names, now->ends, before->ends, HTTP_END_OK + 1, HTTP_ENDS);
    write_counts(&json, "skipped", skip_names, now->skipped, before->skipped, 0, HTTP_SKIPS);
    http_json_count(&json, "in_flight", now->in_flight);
    http_json_count(&json, "waiting", now->waiting);
    http_json_count(&json, "connections", now->connections);
    http_json_number(&json, "rate", http_per_second(ok, second->seconds));
    http_json_number(&json, "offered_rate",
                     http_per_second(now->offered - before->offered, second->seconds));
    write_times(&json, second->response);
    http_json_count(&json, "bytes_sent", now->bytes_sent - before->bytes_sent);
    http_json_count(&json, "bytes_received", now->bytes_received - before->bytes_received);
    http_json_count(&json, "missing", second->missing);
    return end_line(&json);
}

static void
write_reasons(struct http_json *json, const struct http_verdict *verdict)
{
    http_json_open(json, "reasons", '[');
    for (unsigned i = 0; i < verdict->number; i++)
        http_json_text(json, NULL, verdict->reasons[i]);
    http_json_close(json, ']');
}

int
http_output_result_line(FILE *out, const struct http_run *run, uint64_t missing)
{
    const struct http_result *total = run->total;
    struct http_json json;

    http_json_init_line(&json, out);
    http_json_open(&json, NULL, '{');
    http_json_text(&json, "type", "result");
    http_json_count(&json, "sxe_http", HTTP_JSON_SCHEMA);
    http_json_text(&json, "version", SXE_VERSION);
    http_json_text(&json, "started_at", run->started_at);
    http_json_count(&json, "status", (uint64_t)run->status);
    http_json_bool(&json, "is_interrupted", run->is_interrupted);
    http_json_count(&json, "trials", run->trials_number);
    http_json_number(&json, "seconds", (double)total->elapsed_ns / 1e9);
    http_json_count(&json, "offered", total->offered);
    http_json_count(&json, "sent", total->sent);
    http_json_count(&json, "carried", total->carried);
    http_json_count(&json, "ok", total->ends[HTTP_END_OK]);
    write_counts(&json, "errors", end_names, total->ends, NULL, HTTP_END_OK + 1, HTTP_ENDS);
    write_counts(&json, "skipped", skip_names, total->skipped, NULL, 0, HTTP_SKIPS);
    http_json_count(&json, "in_flight", total->in_flight);
    http_json_number(&json, "rate", http_result_rate(total));
    write_times(&json, &total->response);
    http_json_count(&json, "bytes_sent", total->bytes_sent);
    http_json_count(&json, "bytes_received", total->bytes_received);
    http_output_json_thresholds(&json, run);
    if (run->plan->find != NULL)
        http_json_number(&json, "found_rate", run->found_rate);
    else
        http_json_null(&json, "found_rate");
    write_reasons(&json, &run->verdict);
    http_json_count(&json, "missing", missing);
    return end_line(&json);
}
