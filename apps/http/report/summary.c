/* SPDX-License-Identifier: MIT
 *
 * The summary that a run prints at its end.
 */
#include "summary.h"

#include <math.h>
#include <string.h>

#include "hosts.h"
#include "output.h"
#include "requests.h"
#include "stages.h"
#include "summary-sheet.h"
#include "sxe-util.h"

#define NS         1e9
#define HEAD_LINES 3u /* the most lines for the plan, and also for the sockets */
/* the most columns of plan->what, so that there is room for the workers after it */
#define WHAT_COLUMNS 64
#define REASONS_MAX  3u
#define NAME_COLUMNS 9
/* the columns that the name, the percentiles and the max take */
#define TABLE_COLUMNS (10 * (LOAD_PERCENTILES + 2))
#define NAME_SIZE     64 /* as many bytes as NAME_COLUMNS characters of UTF-8 need */

static unsigned long long
to_ull(uint64_t count)
{
    return (unsigned long long)count;
}

/* ---- The plan ---- */

static void
add_how_much(struct load_sheet *sheet, const struct load_plan *plan)
{
    unsigned sockets = plan->sockets;
    const char *plural = sockets == 1 ? "" : "s";

    switch (plan->stop) {
    case LOAD_STOP_PER_SOCKET:
        load_sheet_add(sheet, "%u connection%s * %llu requests each = %llu requests", sockets,
                       plural, to_ull(plan->queries), to_ull(plan->queries * sockets));
        break;
    case LOAD_STOP_TOTAL:
        load_sheet_add(sheet, "%llu requests over %u connection%s", to_ull(plan->requests_max),
                       sockets, plural);
        break;
    case LOAD_STOP_TIME:
        load_sheet_add(sheet, "%u connection%s for %s", sockets, plural,
                       load_duration_text(plan->duration_ns));
        break;
    case LOAD_STOP_REPLAY:
        load_sheet_add(sheet, "a log replayed at %g times its speed over %u connection%s",
                       plan->replay_speed, sockets, plural);
        break;
    }
}

static void
add_model(struct load_sheet *sheet, const struct load_plan *plan)
{
    load_sheet_add(sheet, "%s: ", load_model_text(plan->model));
    if (plan->model != LOAD_CLOSED && plan->stop != LOAD_STOP_REPLAY) {
        if (plan->find != NULL)
            load_sheet_add(sheet, "highest rate with %s, ", plan->find);
        else
            load_summary_rate(sheet, plan);
        load_sheet_add(sheet, "%s, ", plan->arrivals == LOAD_FIXED ? "fixed" : "Poisson");
    }
    add_how_much(sheet, plan);
}

/* Write the numbers of the shards that the run has: " 1 3". Numbers that do not fit are left
 * out. */
static const char *
shards_text(const struct load_plan *plan)
{
    static char text[48];
    size_t used = 0;

    for (unsigned i = 0; i < plan->shards && used < sizeof(text) - 8; i++)
        if (plan->has_shard[i])
            used += (size_t)snprintf(text + used, sizeof(text) - used, " %u", i + 1);
    return text;
}

static void
lay_out_plan(struct load_sheet *sheet, const struct load_plan *plan)
{
    char what[LOAD_TEXT_MAX];

    snprintf(what, sizeof(what), "%s", plan->what);
    load_clip(what, WHAT_COLUMNS);
    load_sheet_begin(sheet, LOAD_WEIGHT_2010, LOAD_PAINT_NONE);
    add_model(sheet, plan);
    load_sheet_item(sheet, "%s", what);
    load_sheet_item(sheet, "%u worker%s", plan->workers, plan->workers == 1 ? "" : "s");
    if (plan->shards > 0)
        load_sheet_item(sheet, "of which this is shard%s of %u", shards_text(plan), plan->shards);
    if (plan->tls.is_insecure)
        load_sheet_item(sheet, "INSECURE: the server's certificate is not verified");
    if (plan->depth > 1)
        load_sheet_item(sheet, "pipeline %u", plan->depth);
    if (plan->think_ns > 0)
        load_sheet_item(sheet, "think %s", load_duration_text(plan->think_ns));
    if (plan->warmup_ns > 0)
        load_sheet_item(sheet, "warm-up %s%s", plan->is_warmup_auto ? "auto, up to " : "",
                        load_duration_text(plan->warmup_ns));
    if (plan->probe_rate > 0)
        load_sheet_item(sheet, "probe %.10g/s", plan->probe_rate);
}

void
load_summary_plan(FILE *out, const struct load_plan *plan)
{
    struct load_sheet sheet;

    load_sheet_init(&sheet, out);
    lay_out_plan(&sheet, plan);
    load_sheet_print(&sheet, out, HEAD_LINES, false);
}

/* ---- The sockets ---- */

static void
add_unopened(struct load_sheet *sheet, const struct load_result *result)
{
    static const char *const texts[] = {
#define TEXT(enumerator, text, name) text,
        LOAD_EACH_UNOPENED(TEXT)
#undef TEXT
    };

    for (unsigned i = 0; i < LOAD_UNOPENEDS; i++)
        if (result->unopened[i] > 0)
            load_sheet_item(sheet, "%s %llu", texts[i], to_ull(result->unopened[i]));
    if (result->unopened[LOAD_UNOPENED_OTHER] > 0)
        load_sheet_item(sheet, "(first: %s)", strerror(result->first_error));
    else if (*result->first_failure != '\0')
        load_sheet_item(sheet, "(first: %s)", result->first_failure);
}

static void
lay_out_sockets(struct load_sheet *sheet, const struct load_result *result)
{
    double seconds = (double)result->connect_ns / NS;

    load_sheet_begin(sheet, LOAD_WEIGHT_2010, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "opened    %llu/%llu connections in %.3f s  %.0f/s",
                   to_ull(result->opened), to_ull(result->sockets_wanted), seconds,
                   load_per_second(result->opened, seconds));
    add_unopened(sheet, result);
    if (result->connect.count > 0)
        load_sheet_item(sheet, "connect p50 %s p95 %s p99 %s max %s",
                        load_percentile_text(&result->connect, 0.5),
                        load_percentile_text(&result->connect, 0.95),
                        load_percentile_text(&result->connect, 0.99),
                        load_max_text(&result->connect));
    if (result->syn_retries > 0)
        load_sheet_item(sheet, "SYN retries %llu", to_ull(result->syn_retries));
}

void
load_summary_sockets(FILE *out, const struct load_result *result)
{
    struct load_sheet sheet;

    load_sheet_init(&sheet, out);
    lay_out_sockets(&sheet, result);
    load_sheet_print(&sheet, out, HEAD_LINES, false);
}

/* ---- Doubts about the result ---- */

/* Say whether the probe's times can be trusted. They can be right even if the load's times are
 * suspect, because replies to a probe do not wait for others to be read. */
static void
add_doubts_of_probe(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_verdict *verdict = &run->probe_verdict;

    if (verdict->number > 0) {
        load_sheet_begin(sheet, LOAD_WEIGHT_PROBE, LOAD_PAINT_BAD);
        load_sheet_add(sheet, "PROBE SUSPECT:");
        load_sheet_words(sheet, verdict->reasons[0]);
        if (verdict->number > 1)
            load_sheet_item(sheet, "(and %u more, see --json)", verdict->number - 1);
    } else if (run->verdict.number > 0 && run->probe != NULL && run->probe->response.count > 0) {
        load_sheet_begin(sheet, LOAD_WEIGHT_PROBE, LOAD_PAINT_GOOD);
        load_sheet_add(sheet, "the probe kept up: only the load is suspect, not the probe's times");
    }
}

static void
add_banner(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_verdict *verdict = &run->verdict;

    for (unsigned i = 0; i < verdict->number && i < REASONS_MAX; i++) {
        load_sheet_begin(sheet, LOAD_WEIGHT_BANNER, LOAD_PAINT_BAD);
        load_sheet_add(sheet, "RESULT SUSPECT:");
        load_sheet_words(sheet, verdict->reasons[i]);
    }
    if (verdict->number > REASONS_MAX) {
        load_sheet_begin(sheet, LOAD_WEIGHT_BANNER, LOAD_PAINT_BAD);
        load_sheet_add(sheet, "RESULT SUSPECT: and %u more, see --json",
                       verdict->number - REASONS_MAX);
    }
    add_doubts_of_probe(sheet, run);
    if (run->is_interrupted) {
        load_sheet_begin(sheet, LOAD_WEIGHT_BANNER, LOAD_PAINT_BAD);
        load_sheet_add(sheet, "interrupted: this is what was done so far");
    }
}

/* Add the length of the warm-up, if it was automatic, because then the line of the plan does not
 * say it. */
static void
add_warmup_note(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_left_out *left_out = &run->left_out;

    if (!run->plan->is_warmup_auto || left_out->ns == 0)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_JUDGED,
                     left_out->problem == NULL ? LOAD_PAINT_NONE : LOAD_PAINT_BAD);
    load_sheet_add(sheet, "warm-up   left out: %s and %llu requests", load_time_text(left_out->ns),
                   to_ull(left_out->queries));
    if (run->trials_number > 1)
        load_sheet_item(sheet, "of %u trials", run->trials_number);
}

static void
add_bad_reply(struct load_sheet *sheet, const struct load_bad_reply *bad)
{
    char text[LOAD_BAD_SHOWN + 1];

    load_sheet_words(sheet, "(first:");
    load_sheet_words(sheet, load_bad_reply_why(bad));
    load_sheet_item(sheet, "%s)", load_bad_reply_quote(bad, text, sizeof(text)));
}

/* Add each kind of error that occurred, with details of the first one. */
static void
add_error_rows(struct load_sheet *sheet, const struct load_result *result)
{
    static const char *const texts[] = {
#define TEXT(enumerator, text, name) text,
        LOAD_EACH_END(TEXT)
#undef TEXT
    };

    if (load_result_errors(result) == 0)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_ERRORS, LOAD_PAINT_BAD);
    load_sheet_add(sheet, "errors    %llu of %llu", to_ull(load_result_errors(result)),
                   to_ull(result->sent + result->carried));
    for (unsigned i = LOAD_END_OK + 1; i < LOAD_ENDS; i++) {
        if (result->ends[i] == 0)
            continue;
        if (i == LOAD_END_BAD_STATUS && result->first_bad_status != 0)
            load_sheet_item(sheet, "%s %llu (first: %u)", texts[i], to_ull(result->ends[i]),
                            result->first_bad_status);
        else if (i == LOAD_END_OTHER && result->first_error != 0)
            load_sheet_item(sheet, "%s %llu (first: %s)", texts[i], to_ull(result->ends[i]),
                            *result->first_failure != '\0' ? result->first_failure
                                                           : strerror(result->first_error));
        else
            load_sheet_item(sheet, "%s %llu", texts[i], to_ull(result->ends[i]));
        if (i == LOAD_END_BAD_REPLY)
            add_bad_reply(sheet, &result->first_bad_reply);
    }
    if (result->response.censored > 0)
        load_sheet_item(sheet, "in the times as %s",
                        load_bound_text(result->response.censored_from_ns, true));
}

static void
add_queries(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_result *total = run->total;
    double seconds = (double)total->elapsed_ns / NS;

    load_sheet_begin(sheet, LOAD_WEIGHT_2010, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "requests  %llu  ok %llu  errors %llu  in flight %llu",
                   to_ull(total->offered), to_ull(total->ends[LOAD_END_OK]),
                   to_ull(load_result_errors(total)), to_ull(total->in_flight));
    if (total->carried > 0)
        load_sheet_item(sheet, "begun before %llu", to_ull(total->carried));
    if (total->waiting > 0)
        load_sheet_item(sheet, "waiting %llu", to_ull(total->waiting));
    load_sheet_item(sheet, "in %.3f s", seconds);
    load_sheet_item(sheet, "%.0f/s", load_result_rate(total));
    if (total->drained > 0)
        load_sheet_item(sheet, "%llu more in the drain of %s", to_ull(total->drained),
                        load_time_text(total->drain_ns));
    if (total->reopened > 0)
        load_sheet_item(sheet, "connections reopened %llu", to_ull(total->reopened));
    if (total->resent > 0)
        load_sheet_item(sheet, "resent %llu (sent after a Connection: close)",
                        to_ull(total->resent));
    if (total->late > 0)
        load_sheet_item(sheet, "late %llu (by more than 1 ms)", to_ull(total->late));
}

/* How many requests were not sent because no socket was free in time. */
static uint64_t
without_socket(const struct load_run *run)
{
    const uint64_t *skipped = run->total->skipped;

    if (run->plan->model == LOAD_CLOSED)
        return 0;
    return skipped[LOAD_SKIP_SHED] + skipped[LOAD_SKIP_NO_SOCKET] +
           (run->is_interrupted ? 0 : skipped[LOAD_SKIP_UNSENT]);
}

static void
add_skipped(struct load_sheet *sheet, const struct load_run *run)
{
    static const char *const texts[] = {
#define TEXT(enumerator, text, name) text,
        LOAD_EACH_SKIP(TEXT)
#undef TEXT
    };
    const struct load_result *total = run->total;

    if (load_result_skipped(total) > 0) {
        load_sheet_begin(sheet, LOAD_WEIGHT_SKIPPED, LOAD_PAINT_BAD);
        load_sheet_add(sheet, "skipped   %llu of %llu", to_ull(load_result_skipped(total)),
                       to_ull(total->offered));
        for (unsigned i = 0; i < LOAD_SKIPS; i++)
            if (total->skipped[i] > 0)
                load_sheet_item(sheet, "%s %llu", texts[i], to_ull(total->skipped[i]));
    }
    if (without_socket(run) > 0 && total->not_reopened == 0) {
        load_sheet_begin(sheet, LOAD_WEIGHT_SKIPPED, LOAD_PAINT_BAD);
        load_sheet_add(sheet, "overload: %llu", to_ull(without_socket(run)));
        load_sheet_words(
            sheet, "of the requests found no free connection; give more (-c), or a lower rate "
                   "(-R)");
    }
}

/* ---- Times ---- */

/* How many percentiles to print: a narrow sheet has no room for the last one. */
static unsigned
percentiles_on(const struct load_sheet *sheet)
{
    return sheet->columns < TABLE_COLUMNS ? LOAD_PERCENTILES - 1 : LOAD_PERCENTILES;
}

static void
add_times_row(struct load_sheet *sheet, enum load_weight weight, const char *name,
              const struct load_histogram *histogram)
{
    if (histogram->count == 0)
        return;
    load_sheet_begin(sheet, weight, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "%-10s", name);
    for (unsigned i = 0; i < percentiles_on(sheet); i++)
        load_sheet_add(sheet, "%10s",
                       load_percentile_text(histogram, load_percentiles[i].fraction));
    load_sheet_add(sheet, "%10s", load_max_text(histogram));
}

/* Add to a row what does not fit into the columns: the number of errors, and a name that was
 * cut. */
static void
add_rest_of_kind(struct load_sheet *sheet, const char *kind_name, uint64_t errors)
{
    char name[NAME_SIZE], failed[NAME_SIZE];

    snprintf(failed, sizeof(failed), "errors %llu", to_ull(errors));
    if (errors > 0 && load_sheet_room(sheet) >= strlen(failed))
        load_sheet_item(sheet, "%s", failed);
    snprintf(name, sizeof(name), "%s", kind_name);
    if (load_columns(name) <= NAME_COLUMNS || load_sheet_room(sheet) <= NAME_COLUMNS)
        return;
    load_clip(name, load_sheet_room(sheet));
    load_sheet_item(sheet, "%s", name);
}

/* Add a row of response times for each kind of request, in the columns of the table. */
static void
add_kind_rows(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_result *total = run->total;

    for (unsigned i = 0; total->kinds > 1 && i < total->kinds; i++) {
        const struct load_kind_result *kind = &total->by_kind[i];
        char name[NAME_SIZE];

        if (kind->response.count == 0)
            continue;
        snprintf(name, sizeof(name), "%s", load_kind_name(run->plan, i));
        load_clip(name, NAME_COLUMNS);
        add_times_row(sheet, LOAD_WEIGHT_KINDS, name, &kind->response);
        add_rest_of_kind(sheet, load_kind_name(run->plan, i), kind->errors);
    }
}

static void
add_table(struct load_sheet *sheet, const struct load_run *run)
{
    static const char remark[] = "response = service";
    const struct load_result *total = run->total;
    bool is_closed = run->plan->model == LOAD_CLOSED;

    if (total->connect.count == 0 && total->first_byte.count == 0)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_TIMES, LOAD_PAINT_FAINT);
    load_sheet_add(sheet, "%10s", "");
    for (unsigned i = 0; i < percentiles_on(sheet); i++)
        load_sheet_add(sheet, "%10s", load_percentiles[i].name);
    load_sheet_add(sheet, "%10s", "max");
    if (is_closed && load_sheet_room(sheet) >= strlen(remark))
        load_sheet_item(sheet, "%s", remark);
    add_times_row(sheet, LOAD_WEIGHT_TIMES, "service", &total->service);
    if (!is_closed)
        add_times_row(sheet, LOAD_WEIGHT_TIMES, "response", &total->response);
    add_kind_rows(sheet, run);
    add_times_row(sheet, LOAD_WEIGHT_FIRST_BYTE, "first byte", &total->first_byte);
    add_times_row(sheet, LOAD_WEIGHT_CONNECT, "connect", &total->connect);
    add_times_row(sheet, LOAD_WEIGHT_CONNECT, "handshake", &total->handshake);
}

/* ---- The client ---- */

static void
add_lags(struct load_sheet *sheet, const struct load_result *total)
{
    const struct {
        const char *what;
        const struct load_histogram *histogram;
    } lags[] = {
        {"loop lag", &total->loop_lag},
        {"timer", &total->timer_error},
        {"schedule", &total->schedule_lag},
    };
    char text[128] = "";
    size_t used = 0;

    for (unsigned i = 0; i < SXE_COUNT(lags); i++)
        if (load_histogram_can_tell(lags[i].histogram, 0.99))
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s",
                                     used == 0 ? "p99 of" : ",", lags[i].what,
                                     load_percentile_text(lags[i].histogram, 0.99));
    if (used > 0)
        load_sheet_item(sheet, "%s", text);
}

/* Add the lines of the probe. Its requests are not in any line above. */
static void
add_probe(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_result *probe = run->probe;
    const struct load_verdict *verdict = &run->probe_verdict;
    bool is_bad;

    if (probe == NULL)
        return;
    is_bad = load_result_errors(probe) > 0 || probe->opened < probe->sockets_wanted;
    load_sheet_begin(sheet, LOAD_WEIGHT_TIMES, is_bad ? LOAD_PAINT_BAD : LOAD_PAINT_NONE);
    load_sheet_add(sheet, "probe     %llu  ok %llu  errors %llu  in flight %llu",
                   to_ull(probe->offered), to_ull(probe->ends[LOAD_END_OK]),
                   to_ull(load_result_errors(probe)), to_ull(probe->in_flight));
    if (load_result_skipped(probe) > 0)
        load_sheet_item(sheet, "not sent %llu", to_ull(load_result_skipped(probe)));
    load_sheet_item(sheet, "on %llu/%llu connections", to_ull(probe->opened),
                    to_ull(probe->sockets_wanted));
    add_unopened(sheet, probe);
    load_sheet_item(sheet, "%s: cpu %.0f %%", verdict->number == 0 ? "kept up" : "SUSPECT",
                    verdict->cpu * 100);
    load_sheet_item(sheet, "waited %.1f %%", verdict->run_queue * 100);
    add_lags(sheet, probe);
    add_times_row(sheet, LOAD_WEIGHT_TIMES, "  service", &probe->service);
    add_times_row(sheet, LOAD_WEIGHT_TIMES, "  response", &probe->response);
}

static void
add_client(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_result *total = run->total;
    const struct load_verdict *verdict = &run->verdict;
    double cpu_ns = (double)load_result_cpu_ns(total);

    load_sheet_begin(sheet, LOAD_WEIGHT_CLIENT, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "client    %s", verdict->number == 0 ? "kept up:" : "SUSPECT:");
    load_sheet_add(sheet, " cpu %.0f %%  waited %.1f %%", verdict->cpu * 100,
                   verdict->run_queue * 100);
    if (verdict->spun >= 0.005)
        load_sheet_item(sheet, "spun %.0f %%", verdict->spun * 100);
    if (total->script_calls > 0)
        load_sheet_item(sheet, "script %.0f %%", 100 * load_per_second(total->script_ns, cpu_ns));
    add_lags(sheet, total);
}

/* ---- The whole summary ---- */

static void
add_2010(struct load_sheet *sheet, const struct load_run *run)
{
    double connect_s = (double)run->total->connect_ns / NS;
    double query_s = (double)run->total->elapsed_ns / NS;
    const struct {
        const char *what;
        double seconds;
        uint64_t count;
    } lines[] = {
        {"connections:", connect_s, run->total->opened},
        {"queries    :", query_s, load_result_in_time(run->total)},
        {"           :", connect_s + query_s, load_result_in_time(run->total)},
    };

    for (unsigned i = 0; i < SXE_COUNT(lines); i++) {
        load_sheet_begin(sheet, LOAD_WEIGHT_2010, LOAD_PAINT_NONE);
        load_sheet_add(sheet, "time for all %s %f seconds or %f per second", lines[i].what,
                       lines[i].seconds, load_per_second(lines[i].count, lines[i].seconds));
    }
}

/* How many lines may follow after the lines of the plan and of the sockets. */
static unsigned
lines_after_head(const struct load_run *run, FILE *out)
{
    unsigned lines = LOAD_SUMMARY_LINES;
    struct load_sheet plan, sockets;

    load_sheet_init(&plan, out);
    load_sheet_init(&sockets, out);
    lay_out_plan(&plan, run->plan);
    lay_out_sockets(&sockets, run->trials_number > 0 ? run->trials[0].result : run->total);
    if (plan.columns < LOAD_SUMMARY_COLUMNS)
        lines += LOAD_SUMMARY_LINES_MORE;
    lines -= plan.number < HEAD_LINES ? plan.number : HEAD_LINES;
    return lines - (sockets.number < HEAD_LINES ? sockets.number : HEAD_LINES);
}

void
load_summary_print(FILE *out, const struct load_run *run, bool is_colored)
{
    struct load_sheet sheet;

    load_sheet_init(&sheet, out);
    add_banner(&sheet, run);
    add_warmup_note(&sheet, run);
    add_error_rows(&sheet, run->total);
    add_queries(&sheet, run);
    load_summary_tls(&sheet, run->total);
    load_summary_sessions(&sheet, run);
    add_skipped(&sheet, run);
    add_table(&sheet, run);
    load_summary_stages(&sheet, run);
    load_summary_hosts(&sheet, run);
    load_summary_addresses(&sheet, run);
    add_probe(&sheet, run);
    load_summary_over_time(&sheet, run);
    add_client(&sheet, run);
    load_summary_judge(&sheet, run);
    add_2010(&sheet, run);
    load_sheet_print(&sheet, out, lines_after_head(run, out), is_colored);
}
