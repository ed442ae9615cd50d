/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "fanout.h"
#include "hosts.h"
#include "json-writer.h"
#include "output.h"
#include "requests.h"
#include "stages.h"
#include "sxe-util.h"
#include "trend.h"

#define NS 1e9
#define US 1e3

#define NAME(enumerator, text, name) name,
static const char *const skip_names[] = {HTTP_EACH_SKIP(NAME)};
static const char *const end_names[] = {HTTP_EACH_END(NAME)};
static const char *const unopened_names[] = {HTTP_EACH_UNOPENED(NAME)};

/* ---- Over time ---- */

/* As of all times: null, where fewer than ten replies lie beyond. */
static void
write_slice_percentile(struct http_json *json, const struct http_slice *slice, double fraction)
{
    uint64_t replies = (uint64_t)slice->ok + slice->errors;

    if (http_can_tell(replies, fraction))
        http_json_number(json, NULL, (double)http_slice_quantile_ns(slice, fraction) / US);
    else
        http_json_null(json, NULL);
}

static void
write_slice(struct http_json *json, const struct http_slice *slice)
{
    http_json_open(json, NULL, '[');
    http_json_count(json, NULL, slice->offered);
    http_json_count(json, NULL, slice->sent);
    http_json_count(json, NULL, slice->ok);
    http_json_count(json, NULL, slice->errors);
    write_slice_percentile(json, slice, 0.5);
    write_slice_percentile(json, slice, 0.99);
    http_json_count(json, NULL, slice->max_us);
    http_json_open(json, NULL, '[');
    for (unsigned i = 0; i < HTTP_SLICE_BUCKETS; i++)
        if (slice->buckets[i] > 0) {
            http_json_count(json, NULL, i);
            http_json_count(json, NULL, slice->buckets[i]);
        }
    http_json_close(json, ']');
    http_json_close(json, ']');
}

static void
write_timeline(struct http_json *json, const struct http_timeline *timeline)
{
    http_json_open(json, "timeline", '{');
    http_json_number(json, "width_s", (double)timeline->width_ns / NS);
    http_json_number(json, "offset_s", (double)timeline->offset_ns / NS);
    http_json_open(json, "slices", '[');
    for (unsigned i = 0; i < timeline->used; i++)
        write_slice(json, &timeline->slices[i]);
    http_json_close(json, ']');
    http_json_close(json, '}');
}

/* ---- A result ---- */

static void
write_counts(struct http_json *json, const char *name, const char *const *names,
             const uint64_t *counts, unsigned number)
{
    http_json_open(json, name, '{');
    for (unsigned i = 0; i < number; i++)
        http_json_count(json, names[i], counts[i]);
    http_json_close(json, '}');
}

static void
write_bad_reply(struct http_json *json, const struct http_bad_reply *bad)
{
    char text[HTTP_BAD_TEXT];

    http_json_open(json, "first_bad_reply", '{');
    http_json_text(json, "why", http_bad_reply_why(bad));
    http_json_text(json, "bytes", http_bad_reply_quote(bad, text, sizeof(text)));
    http_json_close(json, '}');
}

static void
write_accounts(struct http_json *json, const struct http_result *result)
{
    http_json_open(json, "accounts", '{');
    http_json_count(json, "offered", result->offered);
    http_json_count(json, "sent", result->sent);
    http_json_count(json, "carried", result->carried);
    write_counts(json, "skipped", skip_names, result->skipped, HTTP_SKIPS);
    http_json_count(json, "waiting", result->waiting);
    write_counts(json, "ends", end_names, result->ends, HTTP_ENDS);
    http_json_count(json, "in_flight", result->in_flight);
    http_json_count(json, "drained", result->drained);
    http_json_count(json, "late", result->late);
    http_json_count(json, "resent", result->resent);
    http_json_count(json, "bytes_sent", result->bytes_sent);
    http_json_count(json, "bytes_received", result->bytes_received);
    if (result->first_bad_status != 0)
        http_json_count(json, "first_bad_status", result->first_bad_status);
    if (result->first_bad_reply.why != 0)
        write_bad_reply(json, &result->first_bad_reply);
    if (result->first_error != 0)
        http_json_text(json, "first_error", strerror(result->first_error));
    http_json_close(json, '}');
}

static void
write_sockets(struct http_json *json, const struct http_result *result)
{
    http_json_open(json, "sockets", '{');
    http_json_count(json, "wanted", result->sockets_wanted);
    http_json_count(json, "opened", result->opened);
    write_counts(json, "unopened", unopened_names, result->unopened, HTTP_UNOPENEDS);
    http_json_number(json, "seconds", (double)result->connect_ns / NS);
    http_json_count(json, "reopened", result->reopened);
    http_json_count(json, "not_reopened", result->not_reopened);
    http_json_count(json, "syn_retries", result->syn_retries);
    http_json_count(json, "retransmits", result->retransmits);
    http_json_close(json, '}');
}

static void
write_client(struct http_json *json, const struct http_result *result)
{
    http_json_open(json, "client", '{');
    http_json_number(json, "cpu_user_s", (double)result->cpu_user_ns / NS);
    http_json_number(json, "cpu_system_s", (double)result->cpu_system_ns / NS);
    http_json_number(json, "spun_s", (double)result->spun_ns / NS);
    http_json_number(json, "run_queue_s", (double)result->run_queue_ns / NS);
    http_json_number(json, "script_s", (double)result->script_ns / NS);
    http_json_count(json, "script_calls", result->script_calls);
    http_output_json_times(json, "schedule_lag", &result->schedule_lag);
    http_output_json_times(json, "timer_error", &result->timer_error);
    http_output_json_times(json, "loop_lag", &result->loop_lag);
    http_json_close(json, '}');
}

/* One line a client: count, min, mean, max. */
static void
write_clients(struct http_json *json, const struct http_result *result, unsigned kind)
{
    http_json_open(json, "clients", '[');
    for (unsigned client = 0; client < result->clients; client++) {
        const struct http_client_result *times = &result->by_client[client * result->kinds + kind];

        http_json_open(json, NULL, '[');
        http_json_count(json, NULL, times->count);
        http_json_number(json, NULL, (double)times->min_ns / US);
        http_json_number(json, NULL,
                         times->count > 0 ? (double)times->sum_ns / (double)times->count / US : 0);
        http_json_number(json, NULL, (double)times->max_ns / US);
        http_json_close(json, ']');
    }
    http_json_close(json, ']');
}

static void
write_kinds(struct http_json *json, const struct http_plan *plan, const struct http_result *result)
{
    http_json_open(json, "kinds", '[');
    for (unsigned kind = 0; kind < result->kinds; kind++) {
        http_json_open(json, NULL, '{');
        http_json_text(json, "name", http_kind_name(plan, kind));
        http_json_count(json, "ok", result->by_kind[kind].ok);
        http_json_count(json, "errors", result->by_kind[kind].errors);
        http_output_json_times(json, "response", &result->by_kind[kind].response);
        write_clients(json, result, kind);
        http_json_close(json, '}');
    }
    http_json_close(json, ']');
}

static void
write_verdict(struct http_json *json, const struct http_verdict *verdict)
{
    http_json_open(json, "verdict", '{');
    http_json_number(json, "cpu", verdict->cpu);
    http_json_number(json, "spun", verdict->spun);
    http_json_number(json, "run_queue", verdict->run_queue);
    if (verdict->has_cpu_pressure)
        http_json_number(json, "cpu_pressure", verdict->cpu_pressure);
    else
        http_json_null(json, "cpu_pressure");
    http_json_open(json, "reasons", '[');
    for (unsigned i = 0; i < verdict->number; i++)
        http_json_text(json, NULL, verdict->reasons[i]);
    http_json_close(json, ']');
    http_json_close(json, '}');
}

static void
write_seconds(struct http_json *json, const char *name, uint64_t ns)
{
    http_json_number(json, name, (double)ns / NS);
}

static void
write_left_out(struct http_json *json, const struct http_left_out *left_out)
{
    http_json_open(json, "left_out", '{');
    write_seconds(json, "seconds", left_out->ns);
    http_json_count(json, "queries", left_out->queries);
    http_json_text(json, "problem", left_out->problem);
    http_json_close(json, '}');
}

/* By the wall clock, so that it can be laid beside what other machines have. */
static void
write_began(struct http_json *json, const struct http_run *run, const struct http_result *result)
{
    uint64_t behind_ns = http_later_part(result->started_ns, run->started_ns);

    http_json_number(json, "began_s", (double)(run->wall_ns + behind_ns) / NS);
}

/* What a trial, the total and the probe have in common; the seconds of the total are those of all
 * trials. */
static void
write_trend(struct http_json *json, const struct http_run *run, const struct http_result *result)
{
    struct http_trend trend;
    /* The counts of all trials are added, and a rate is that of one. */
    double unit = result == run->total ? run->trials_number : 1;

    http_trend_tell(&trend, run->plan, result);
    if (trend.figure == NULL) {
        http_json_null(json, "trend");
        return;
    }
    if (strcmp(trend.figure, "rate") != 0)
        unit = US;
    http_json_open(json, "trend", '{');
    http_json_text(json, "figure", trend.figure);
    http_json_number(json, "first", trend.first / unit);
    http_json_number(json, "last", trend.last / unit);
    http_json_close(json, '}');
}

static void
write_part(struct http_json *json, const struct http_run *run, const struct http_result *result,
           const struct http_verdict *verdict)
{
    http_json_number(json, "rate", http_result_rate(result));
    http_json_number(json, "seconds", (double)result->elapsed_ns / NS);
    http_json_number(json, "drain_seconds", (double)result->drain_ns / NS);
    write_began(json, run, result);
    write_accounts(json, result);
    http_output_json_sessions(json, result);
    write_sockets(json, result);
    http_output_json_times(json, "connect", &result->connect);
    http_output_json_times(json, "first_byte", &result->first_byte);
    http_output_json_times(json, "service", &result->service);
    http_output_json_times(json, "response", &result->response);
    write_client(json, result);
    write_timeline(json, &result->timeline);
    write_trend(json, run, result);
    write_kinds(json, run->plan, result);
    http_output_json_stages(json, run, result);
    http_output_json_hosts(json, run->plan, result);
    write_verdict(json, verdict);
}

static void
write_result(struct http_json *json, const char *name, const struct http_run *run,
             const struct http_trial *trial)
{
    http_json_open(json, name, '{');
    write_left_out(json, &trial->left_out);
    write_part(json, run, trial->result, &trial->verdict);
    if (trial->probe != NULL) {
        http_json_open(json, "probe", '{');
        write_part(json, run, trial->probe, &trial->probe_verdict);
        http_json_close(json, '}');
    } else {
        http_json_null(json, "probe");
    }
    http_json_close(json, '}');
}

static void
write_each(struct http_json *json, const struct http_run *run, const struct http_trial *trials,
           unsigned number)
{
    http_json_open(json, "trials", '[');
    for (unsigned i = 0; i < number; i++)
        write_result(json, NULL, run, &trials[i]);
    http_json_close(json, ']');
}

static void
write_baseline(struct http_json *json, const struct http_run *run)
{
    if (run->plan->baseline_cmd == NULL) {
        http_json_null(json, "baseline");
        return;
    }
    http_json_open(json, "baseline", '{');
    http_json_text(json, "server_cmd", run->plan->baseline_cmd);
    write_each(json, run, run->baseline, run->baseline_number);
    http_json_close(json, '}');
}

static void
write_trials(struct http_json *json, const struct http_run *run)
{
    write_each(json, run, run->trials, run->trials_number);
    write_baseline(json, run);
    write_result(json, "total", run,
                 &(struct http_trial){.result = run->total,
                                      .left_out = run->left_out,
                                      .verdict = run->verdict,
                                      .probe = run->probe,
                                      .probe_verdict = run->probe_verdict});
}

/* ---- What was concluded ---- */

static void
write_interval_members(struct http_json *json, const struct http_interval *interval, double unit)
{
    http_json_number(json, "low", interval->low / unit);
    http_json_number(json, "middle", interval->middle / unit);
    http_json_number(json, "high", interval->high / unit);
    http_json_bool(json, "is_known", interval->is_known);
}

/* From 0 means that none of its values is only a lower bound. */
static void
write_figure(struct http_json *json, const char *name, const struct http_interval *interval,
             double from, double unit)
{
    http_json_open(json, name, '{');
    write_interval_members(json, interval, unit);
    if (from > 0)
        http_json_number(json, "censored_from", from / unit);
    else
        http_json_null(json, "censored_from");
    http_json_close(json, '}');
}

/* Times are divided by their unit, ratios of them (unit 1) are not; from is NULL for ratios. */
static void
write_figures(struct http_json *json, const struct http_interval *intervals, const double *from,
              double unit)
{
    http_json_open(json, "figures", '{');
    for (unsigned i = 0; i < HTTP_FIGURES; i++)
        write_figure(json, http_figure_names[i].whole, &intervals[i], from != NULL ? from[i] : 0,
                     http_figure_names[i].group != NULL ? unit : 1);
    http_json_close(json, '}');
}

/* Of the rate, as it was before the other figures had one. */
static void
write_noise(struct http_json *json, const struct http_run *run)
{
    const struct http_interval *rate = &run->noise[HTTP_FIGURE_RATE];

    if (!rate->is_known) {
        http_json_null(json, "noise");
        return;
    }
    http_json_open(json, "noise", '{');
    write_interval_members(json, rate, 1);
    write_figures(json, run->noise, NULL, 1);
    http_json_close(json, '}');
}

void
http_output_json_thresholds(struct http_json *json, const struct http_run *run)
{
    http_json_open(json, "thresholds", '[');
    for (unsigned i = 0; run->plan->thresholds[i] != NULL; i++) {
        const struct http_judged *judged = &run->judged[i];

        http_json_open(json, NULL, '{');
        http_json_text(json, "condition", run->plan->thresholds[i]);
        http_json_number(json, "figure", judged->figure);
        http_json_bool(json, "holds", judged->holds);
        http_json_bool(json, "is_told", judged->is_told);
        http_json_bool(json, "is_at_least", judged->is_at_least);
        http_json_close(json, '}');
    }
    http_json_close(json, ']');
}

static void
write_step(struct http_json *json, const struct http_step *step)
{
    http_json_open(json, NULL, '{');
    http_json_number(json, "rate", step->rate);
    http_json_number(json, "achieved", step->achieved);
    http_json_number(json, "p50", (double)step->p50_ns / US);
    http_json_number(json, "p90", (double)step->p90_ns / US);
    http_json_number(json, "p95", (double)step->p95_ns / US);
    http_json_number(json, "p99", (double)step->p99_ns / US);
    http_json_number(json, "p99.9", (double)step->p999_ns / US);
    http_json_number(json, "figure", step->figure);
    http_json_bool(json, "is_told", step->is_told);
    http_json_bool(json, "holds", step->holds);
    http_json_close(json, '}');
}

static void
write_find(struct http_json *json, const struct http_run *run)
{
    if (run->plan->find == NULL) {
        http_json_null(json, "find");
        return;
    }
    http_json_open(json, "find", '{');
    http_json_text(json, "condition", run->plan->find);
    http_json_number(json, "found_rate", run->found_rate);
    if (isinf(run->missed_rate))
        http_json_null(json, "missed_rate");
    else
        http_json_number(json, "missed_rate", run->missed_rate);
    http_json_bool(json, "is_told", !run->is_untold);
    http_json_open(json, "steps", '[');
    for (unsigned i = 0; i < run->steps_number; i++)
        write_step(json, &run->steps[i]);
    http_json_close(json, ']');
    http_json_close(json, '}');
}

static void
write_fanout(struct http_json *json, const struct http_run *run)
{
    struct http_fanout fanout;

    if (run->plan->fanout == 0) {
        http_json_null(json, "fanout");
        return;
    }
    http_fanout_tell(&fanout, run);
    http_json_open(json, "fanout", '{');
    http_json_count(json, "queries", run->plan->fanout);
    http_json_text(json, "times", fanout.times);
    http_json_number(json, "beyond_p99", fanout.beyond_p99);
    for (unsigned i = 0; i < HTTP_FANOUT_LEVELS; i++) {
        const struct http_fanout_level *level = &fanout.levels[i];

        http_json_open(json, level->name, '{');
        http_json_number(json, "of_one", level->of_one);
        if (level->is_told)
            http_json_number(json, "time", (double)level->ns / US);
        else
            http_json_null(json, "time");
        http_json_bool(json, "is_at_least", level->is_at_least);
        http_json_close(json, '}');
    }
    http_json_close(json, '}');
}

/* The processes that made the load together, and whether each kept up. */
static void
write_parts(struct http_json *json, const struct http_run *run)
{
    if (run->parts == NULL) {
        http_json_null(json, "parts");
        return;
    }
    http_json_open(json, "parts", '[');
    for (unsigned i = 0; i < run->parts_number; i++) {
        const struct http_part *part = &run->parts[i];

        http_json_open(json, NULL, '{');
        http_json_text(json, "name", part->name);
        http_json_number(json, "rate", part->rate);
        http_json_count(json, "ok", part->ok);
        http_json_count(json, "errors", part->errors);
        http_json_count(json, "opened", part->opened);
        http_json_number(json, "clock", (double)part->clock_ns / US);
        write_verdict(json, &part->verdict);
        http_json_close(json, '}');
    }
    http_json_close(json, ']');
}

/* Which runs are in it: itself, or those that were merged. */
static void
write_ids(struct http_json *json, const struct http_run *run)
{
    http_json_open(json, "runs", '[');
    for (unsigned i = 0; i < run->ids_number; i++)
        http_json_text(json, NULL, run->ids[i]);
    if (run->ids_number == 0 && run->id[0] != '\0')
        http_json_text(json, NULL, run->id);
    http_json_close(json, ']');
}

static void
write_origin(struct http_json *json, const struct http_run *run)
{
    const struct http_plan *plan = run->plan;

    http_json_count(json, "sxe_http", HTTP_JSON_SCHEMA);
    http_json_text(json, "version", SXE_VERSION);
    http_json_open(json, "command", '[');
    for (int i = 0; i < plan->argc; i++)
        http_json_text(json, NULL, plan->argv[i]);
    http_json_close(json, ']');
    http_json_text(json, "started_at", run->started_at);
    write_ids(json, run);
    http_json_count(json, "status", (uint64_t)run->status);
    http_json_bool(json, "is_interrupted", run->is_interrupted);
    http_json_open(json, "fingerprint", '{');
    for (unsigned i = 0; i < run->fingerprint.number; i++)
        http_json_text(json, run->fingerprint.facts[i].name, run->fingerprint.facts[i].value);
    http_json_close(json, '}');
}

int
http_output_json(FILE *out, const struct http_run *run)
{
    struct http_json json;

    http_json_init(&json, out);
    http_json_open(&json, NULL, '{');
    write_origin(&json, run);
    http_output_json_plan(&json, run->plan);
    write_trials(&json, run);
    write_figures(&json, run->figures, run->figures_from, US);
    write_noise(&json, run);
    http_output_json_thresholds(&json, run);
    write_find(&json, run);
    write_fanout(&json, run);
    write_verdict(&json, &run->verdict);
    write_parts(&json, run);
    http_json_close(&json, '}');
    putc('\n', out);
    return http_output_finish(out);
}
