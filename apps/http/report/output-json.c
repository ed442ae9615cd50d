/* SPDX-License-Identifier: MIT
 *
 * Writing a result as JSON.
 */
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
static const char *const skip_names[] = {LOAD_EACH_SKIP(NAME)};
static const char *const end_names[] = {LOAD_EACH_END(NAME)};
static const char *const unopened_names[] = {LOAD_EACH_UNOPENED(NAME)};

/* ---- Over time ---- */

/* Write a percentile. It is null, like all percentiles, if fewer than ten replies lie beyond it. */
static void
write_slice_percentile(struct load_json *json, const struct load_slice *slice, double fraction)
{
    uint64_t replies = (uint64_t)slice->ok + slice->errors;

    if (load_can_tell(replies, fraction))
        load_json_number(json, NULL, (double)load_slice_quantile_ns(slice, fraction) / US);
    else
        load_json_null(json, NULL);
}

static void
write_slice(struct load_json *json, const struct load_slice *slice)
{
    load_json_open(json, NULL, '[');
    load_json_count(json, NULL, slice->offered);
    load_json_count(json, NULL, slice->sent);
    load_json_count(json, NULL, slice->ok);
    load_json_count(json, NULL, slice->errors);
    write_slice_percentile(json, slice, 0.5);
    write_slice_percentile(json, slice, 0.99);
    load_json_count(json, NULL, slice->max_us);
    load_json_open(json, NULL, '[');
    for (unsigned i = 0; i < LOAD_SLICE_BUCKETS; i++)
        if (slice->buckets[i] > 0) {
            load_json_count(json, NULL, i);
            load_json_count(json, NULL, slice->buckets[i]);
        }
    load_json_close(json, ']');
    load_json_close(json, ']');
}

static void
write_timeline(struct load_json *json, const struct load_timeline *timeline)
{
    load_json_open(json, "timeline", '{');
    load_json_number(json, "width_s", (double)timeline->width_ns / NS);
    load_json_number(json, "offset_s", (double)timeline->offset_ns / NS);
    load_json_open(json, "slices", '[');
    for (unsigned i = 0; i < timeline->used; i++)
        write_slice(json, &timeline->slices[i]);
    load_json_close(json, ']');
    load_json_close(json, '}');
}

/* ---- A result ---- */

static void
write_json_counts(struct load_json *json, const char *name, const char *const *names,
                  const uint64_t *counts, unsigned number)
{
    load_json_open(json, name, '{');
    for (unsigned i = 0; i < number; i++)
        load_json_count(json, names[i], counts[i]);
    load_json_close(json, '}');
}

static void
write_bad_reply(struct load_json *json, const struct load_bad_reply *bad)
{
    char text[LOAD_BAD_TEXT];

    load_json_open(json, "first_bad_reply", '{');
    load_json_text(json, "why", load_bad_reply_why(bad));
    load_json_text(json, "bytes", load_bad_reply_quote(bad, text, sizeof(text)));
    load_json_close(json, '}');
}

static void
write_accounts(struct load_json *json, const struct load_result *result)
{
    load_json_open(json, "accounts", '{');
    load_json_count(json, "offered", result->offered);
    load_json_count(json, "sent", result->sent);
    load_json_count(json, "carried", result->carried);
    write_json_counts(json, "skipped", skip_names, result->skipped, LOAD_SKIPS);
    load_json_count(json, "waiting", result->waiting);
    write_json_counts(json, "ends", end_names, result->ends, LOAD_ENDS);
    load_json_count(json, "in_flight", result->in_flight);
    load_json_count(json, "drained", result->drained);
    load_json_count(json, "late", result->late);
    load_json_count(json, "resent", result->resent);
    load_json_count(json, "bytes_sent", result->bytes_sent);
    load_json_count(json, "bytes_received", result->bytes_received);
    if (result->first_bad_status != 0)
        load_json_count(json, "first_bad_status", result->first_bad_status);
    if (result->first_bad_reply.why != 0)
        write_bad_reply(json, &result->first_bad_reply);
    if (result->first_error != 0)
        load_json_text(json, "first_error", strerror(result->first_error));
    if (*result->first_failure != '\0')
        load_json_text(json, "first_failure", result->first_failure);
    load_json_close(json, '}');
}

static void
write_sockets(struct load_json *json, const struct load_result *result)
{
    load_json_open(json, "sockets", '{');
    load_json_count(json, "wanted", result->sockets_wanted);
    load_json_count(json, "opened", result->opened);
    write_json_counts(json, "unopened", unopened_names, result->unopened, LOAD_UNOPENEDS);
    load_json_number(json, "seconds", (double)result->connect_ns / NS);
    load_json_count(json, "reopened", result->reopened);
    load_json_count(json, "not_reopened", result->not_reopened);
    load_json_count(json, "syn_retries", result->syn_retries);
    load_json_count(json, "retransmits", result->retransmits);
    load_json_close(json, '}');
}

static void
write_client_member(struct load_json *json, const struct load_result *result)
{
    load_json_open(json, "client", '{');
    load_json_number(json, "cpu_user_s", (double)result->cpu_user_ns / NS);
    load_json_number(json, "cpu_system_s", (double)result->cpu_system_ns / NS);
    load_json_number(json, "spun_s", (double)result->spun_ns / NS);
    load_json_number(json, "run_queue_s", (double)result->run_queue_ns / NS);
    load_json_number(json, "script_s", (double)result->script_ns / NS);
    load_json_count(json, "script_calls", result->script_calls);
    load_output_json_times(json, "schedule_lag", &result->schedule_lag);
    load_output_json_times(json, "timer_error", &result->timer_error);
    load_output_json_times(json, "loop_lag", &result->loop_lag);
    load_json_close(json, '}');
}

/* Write one line for each client: count, min, mean, max. */
static void
write_clients(struct load_json *json, const struct load_result *result, unsigned kind)
{
    load_json_open(json, "clients", '[');
    for (unsigned client = 0; client < result->clients; client++) {
        const struct load_client_result *times = &result->by_client[client * result->kinds + kind];

        load_json_open(json, NULL, '[');
        load_json_count(json, NULL, times->count);
        load_json_number(json, NULL, (double)times->min_ns / US);
        load_json_number(json, NULL,
                         times->count > 0 ? (double)times->sum_ns / (double)times->count / US : 0);
        load_json_number(json, NULL, (double)times->max_ns / US);
        load_json_close(json, ']');
    }
    load_json_close(json, ']');
}

static void
write_kinds(struct load_json *json, const struct load_plan *plan, const struct load_result *result)
{
    load_json_open(json, "kinds", '[');
    for (unsigned kind = 0; kind < result->kinds; kind++) {
        load_json_open(json, NULL, '{');
        load_json_text(json, "name", load_kind_name(plan, kind));
        load_json_count(json, "ok", result->by_kind[kind].ok);
        load_json_count(json, "errors", result->by_kind[kind].errors);
        load_output_json_times(json, "response", &result->by_kind[kind].response);
        write_clients(json, result, kind);
        load_json_close(json, '}');
    }
    load_json_close(json, ']');
}

static void
write_verdict(struct load_json *json, const struct load_verdict *verdict)
{
    load_json_open(json, "verdict", '{');
    load_json_number(json, "cpu", verdict->cpu);
    load_json_number(json, "spun", verdict->spun);
    load_json_number(json, "run_queue", verdict->run_queue);
    if (verdict->has_cpu_pressure)
        load_json_number(json, "cpu_pressure", verdict->cpu_pressure);
    else
        load_json_null(json, "cpu_pressure");
    load_json_open(json, "reasons", '[');
    for (unsigned i = 0; i < verdict->number; i++)
        load_json_text(json, NULL, verdict->reasons[i]);
    load_json_close(json, ']');
    load_json_close(json, '}');
}

static void
write_left_out(struct load_json *json, const struct load_left_out *left_out)
{
    load_json_open(json, "left_out", '{');
    load_json_number(json, "seconds", (double)left_out->ns / NS);
    load_json_count(json, "queries", left_out->queries);
    load_json_text(json, "problem", left_out->problem);
    load_json_close(json, '}');
}

/* Write when the trial began, by the wall clock, so that the starts on several machines can be
 * compared. */
static void
write_began(struct load_json *json, const struct load_run *run, const struct load_result *result)
{
    uint64_t behind_ns = load_later_part(result->started_ns, run->started_ns);

    load_json_number(json, "began_s", (double)(run->wall_ns + behind_ns) / NS);
}

/* Write the member "trend", which is null if the replies showed no trend. */
static void
write_trend(struct load_json *json, const struct load_run *run, const struct load_result *result)
{
    struct load_trend trend;
    /* The time line of the total has the counts of all trials, but its rate must be that of one
     * trial. */
    double unit = result == run->total ? run->trials_number : 1;

    load_trend_tell(&trend, run->plan, result);
    if (trend.figure == NULL) {
        load_json_null(json, "trend");
        return;
    }
    if (strcmp(trend.figure, "rate") != 0)
        unit = US;
    load_json_open(json, "trend", '{');
    load_json_text(json, "figure", trend.figure);
    load_json_number(json, "first", trend.first / unit);
    load_json_number(json, "last", trend.last / unit);
    load_json_close(json, '}');
}

static void
write_part_result(struct load_json *json, const struct load_run *run,
                  const struct load_result *result, const struct load_verdict *verdict)
{
    load_json_number(json, "rate", load_result_rate(result));
    load_json_number(json, "seconds", (double)result->elapsed_ns / NS);
    load_json_number(json, "drain_seconds", (double)result->drain_ns / NS);
    write_began(json, run, result);
    write_accounts(json, result);
    load_output_json_sessions(json, result);
    write_sockets(json, result);
    load_output_json_tls(json, result);
    load_output_json_times(json, "connect", &result->connect);
    load_output_json_times(json, "handshake", &result->handshake);
    load_output_json_times(json, "first_byte", &result->first_byte);
    load_output_json_times(json, "service", &result->service);
    load_output_json_times(json, "response", &result->response);
    write_client_member(json, result);
    write_timeline(json, &result->timeline);
    write_trend(json, run, result);
    write_kinds(json, run->plan, result);
    load_output_json_stages(json, run, result);
    load_output_json_hosts(json, run->plan, result);
    load_output_json_addresses(json, result);
    write_verdict(json, verdict);
}

static void
write_result(struct load_json *json, const char *name, const struct load_run *run,
             const struct load_trial *trial)
{
    load_json_open(json, name, '{');
    write_left_out(json, &trial->left_out);
    write_part_result(json, run, trial->result, &trial->verdict);
    if (trial->probe != NULL) {
        load_json_open(json, "probe", '{');
        write_part_result(json, run, trial->probe, &trial->probe_verdict);
        load_json_close(json, '}');
    } else {
        load_json_null(json, "probe");
    }
    load_json_close(json, '}');
}

static void
write_all_trials(struct load_json *json, const struct load_run *run,
                 const struct load_trial *trials, unsigned number)
{
    load_json_open(json, "trials", '[');
    for (unsigned i = 0; i < number; i++)
        write_result(json, NULL, run, &trials[i]);
    load_json_close(json, ']');
}

static void
write_baseline(struct load_json *json, const struct load_run *run)
{
    if (run->plan->baseline_cmd == NULL) {
        load_json_null(json, "baseline");
        return;
    }
    load_json_open(json, "baseline", '{');
    load_json_text(json, "server_cmd", run->plan->baseline_cmd);
    write_all_trials(json, run, run->baseline, run->baseline_number);
    load_json_close(json, '}');
}

static void
write_trials(struct load_json *json, const struct load_run *run)
{
    write_all_trials(json, run, run->trials, run->trials_number);
    write_baseline(json, run);
    write_result(json, "total", run,
                 &(struct load_trial){.result = run->total,
                                      .left_out = run->left_out,
                                      .verdict = run->verdict,
                                      .probe = run->probe,
                                      .probe_verdict = run->probe_verdict});
}

/* ---- Conclusions ---- */

static void
write_interval_members(struct load_json *json, const struct load_interval *interval, double unit)
{
    load_json_number(json, "low", interval->low / unit);
    load_json_number(json, "middle", interval->middle / unit);
    load_json_number(json, "high", interval->high / unit);
    load_json_bool(json, "is_known", interval->is_known);
}

/* Write the interval of a figure. Values from `from` on are only lower bounds; if `from` is 0, none
 * is. */
static void
write_figure(struct load_json *json, const char *name, const struct load_interval *interval,
             double from, double unit)
{
    load_json_open(json, name, '{');
    write_interval_members(json, interval, unit);
    if (from > 0)
        load_json_number(json, "censored_from", from / unit);
    else
        load_json_null(json, "censored_from");
    load_json_close(json, '}');
}

/* Write the intervals of all figures. Times are divided by unit. For ratios of times, unit is 1 and
 * from is NULL. */
static void
write_figure_members(struct load_json *json, const struct load_interval *intervals,
                     const double *from, double unit)
{
    load_json_open(json, "figures", '{');
    for (unsigned i = 0; i < LOAD_FIGURES; i++)
        write_figure(json, load_figure_names[i].whole, &intervals[i], from != NULL ? from[i] : 0,
                     load_figure_names[i].group != NULL ? unit : 1);
    load_json_close(json, '}');
}

/* Write the noise of the rate, as older versions did, and then the noise of all figures. */
static void
write_noise(struct load_json *json, const struct load_run *run)
{
    const struct load_interval *rate = &run->noise[LOAD_FIGURE_RATE];

    if (!rate->is_known) {
        load_json_null(json, "noise");
        return;
    }
    load_json_open(json, "noise", '{');
    write_interval_members(json, rate, 1);
    write_figure_members(json, run->noise, NULL, 1);
    load_json_close(json, '}');
}

void
load_output_json_thresholds(struct load_json *json, const struct load_run *run)
{
    load_json_open(json, "thresholds", '[');
    for (unsigned i = 0; run->plan->thresholds[i] != NULL; i++) {
        const struct load_judged *judged = &run->judged[i];

        load_json_open(json, NULL, '{');
        load_json_text(json, "condition", run->plan->thresholds[i]);
        load_json_number(json, "figure", judged->figure);
        load_json_bool(json, "holds", judged->holds);
        load_json_bool(json, "is_told", judged->is_told);
        load_json_bool(json, "is_at_least", judged->is_at_least);
        load_json_close(json, '}');
    }
    load_json_close(json, ']');
}

static void
write_step(struct load_json *json, const struct load_step *step)
{
    load_json_open(json, NULL, '{');
    load_json_number(json, "rate", step->rate);
    load_json_number(json, "achieved", step->achieved);
    load_json_number(json, "p50", (double)step->p50_ns / US);
    load_json_number(json, "p90", (double)step->p90_ns / US);
    load_json_number(json, "p95", (double)step->p95_ns / US);
    load_json_number(json, "p99", (double)step->p99_ns / US);
    load_json_number(json, "p99.9", (double)step->p999_ns / US);
    load_json_number(json, "figure", step->figure);
    load_json_bool(json, "is_told", step->is_told);
    load_json_bool(json, "holds", step->holds);
    load_json_close(json, '}');
}

static void
write_find(struct load_json *json, const struct load_run *run)
{
    if (run->plan->find == NULL) {
        load_json_null(json, "find");
        return;
    }
    load_json_open(json, "find", '{');
    load_json_text(json, "condition", run->plan->find);
    load_json_number(json, "found_rate", run->found_rate);
    if (isinf(run->missed_rate))
        load_json_null(json, "missed_rate");
    else
        load_json_number(json, "missed_rate", run->missed_rate);
    load_json_bool(json, "is_told", !run->is_untold);
    load_json_open(json, "steps", '[');
    for (unsigned i = 0; i < run->steps_number; i++)
        write_step(json, &run->steps[i]);
    load_json_close(json, ']');
    load_json_close(json, '}');
}

static void
write_fanout(struct load_json *json, const struct load_run *run)
{
    struct load_fanout fanout;

    if (run->plan->fanout == 0) {
        load_json_null(json, "fanout");
        return;
    }
    load_fanout_tell(&fanout, run);
    load_json_open(json, "fanout", '{');
    load_json_count(json, "queries", run->plan->fanout);
    load_json_text(json, "times", fanout.times);
    load_json_number(json, "beyond_p99", fanout.beyond_p99);
    for (unsigned i = 0; i < LOAD_FANOUT_LEVELS; i++) {
        const struct load_fanout_level *level = &fanout.levels[i];

        load_json_open(json, level->name, '{');
        load_json_number(json, "of_one", level->of_one);
        if (level->is_told)
            load_json_number(json, "time", (double)level->ns / US);
        else
            load_json_null(json, "time");
        load_json_bool(json, "is_at_least", level->is_at_least);
        load_json_close(json, '}');
    }
    load_json_close(json, '}');
}

/* Write which parts made the load together, and whether each of them kept up. */
static void
write_part_results(struct load_json *json, const struct load_run *run)
{
    if (run->parts == NULL) {
        load_json_null(json, "parts");
        return;
    }
    load_json_open(json, "parts", '[');
    for (unsigned i = 0; i < run->parts_number; i++) {
        const struct load_part *part = &run->parts[i];

        load_json_open(json, NULL, '{');
        load_json_text(json, "name", part->name);
        load_json_number(json, "rate", part->rate);
        load_json_count(json, "ok", part->ok);
        load_json_count(json, "errors", part->errors);
        load_json_count(json, "opened", part->opened);
        load_json_number(json, "clock", (double)part->clock_ns / US);
        write_verdict(json, &part->verdict);
        load_json_close(json, '}');
    }
    load_json_close(json, ']');
}

/* Write the ids of the runs that this result consists of: its own id, or the ids of the merged
 * runs. */
static void
write_ids(struct load_json *json, const struct load_run *run)
{
    load_json_open(json, "runs", '[');
    for (unsigned i = 0; i < run->ids_number; i++)
        load_json_text(json, NULL, run->ids[i]);
    if (run->ids_number == 0 && run->id[0] != '\0')
        load_json_text(json, NULL, run->id);
    load_json_close(json, ']');
}

static void
write_origin(struct load_json *json, const struct load_run *run)
{
    const struct load_plan *plan = run->plan;

    load_json_count(json, "sxe_http", LOAD_JSON_SCHEMA);
    load_json_text(json, "version", SXE_VERSION);
    load_json_open(json, "command", '[');
    for (int i = 0; i < plan->argc; i++)
        load_json_text(json, NULL, plan->argv[i]);
    load_json_close(json, ']');
    load_json_text(json, "started_at", run->started_at);
    write_ids(json, run);
    load_json_count(json, "status", (uint64_t)run->status);
    load_json_bool(json, "is_interrupted", run->is_interrupted);
    load_json_open(json, "fingerprint", '{');
    for (unsigned i = 0; i < run->fingerprint.number; i++)
        load_json_text(json, run->fingerprint.facts[i].name, run->fingerprint.facts[i].value);
    load_json_close(json, '}');
}

int
load_output_json(FILE *out, const struct load_run *run)
{
    struct load_json json;

    load_json_init(&json, out);
    load_json_open(&json, NULL, '{');
    write_origin(&json, run);
    load_output_json_plan(&json, run->plan);
    write_trials(&json, run);
    write_figure_members(&json, run->figures, run->figures_from, US);
    write_noise(&json, run);
    load_output_json_thresholds(&json, run);
    write_find(&json, run);
    write_fanout(&json, run);
    write_verdict(&json, &run->verdict);
    write_part_results(&json, run);
    load_json_close(&json, '}');
    putc('\n', out);
    return load_output_finish(out);
}
