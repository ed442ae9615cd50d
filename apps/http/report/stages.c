/* SPDX-License-Identifier: MIT
 *
 * Reports on a load with stages.
 */
#include "stages.h"

#include "json-writer.h"
#include "output.h"
#include "summary-sheet.h"

#define NS           1e9
#define NAME_COLUMNS 10 /* how many columns the line "over time" has before its first bar */
#define WIDE         LOAD_SUMMARY_COLUMNS
/* if there are at most so many stages, their rows weigh more than the table of all times */
#define FEW 8

/* Whether a stage takes time, and so has a row. A stage without length only changes the rate at
 * once. */
static bool
has_row(const struct load_plan *plan, unsigned stage)
{
    return plan->stages[stage].end_ns > load_plan_stage_ns(plan, stage);
}

static double
first_rate(const struct load_plan *plan, unsigned stage)
{
    if (!has_row(plan, stage))
        return plan->stages[stage].rate;
    return stage == 0 ? 0 : plan->stages[stage - 1].rate;
}

static double
highest_rate(const struct load_plan *plan)
{
    double highest = 0;

    for (unsigned i = 0; i < plan->stages_number; i++)
        highest = plan->stages[i].rate > highest ? plan->stages[i].rate : highest;
    return highest;
}

/* ---- How long ---- */

/* How much of the stage's time was over when the trial ended. */
static uint64_t
measured_ns(const struct load_plan *plan, const struct load_result *result, unsigned stage)
{
    uint64_t end_ns = plan->stages[stage].end_ns;

    return load_later_part(result->elapsed_ns < end_ns ? result->elapsed_ns : end_ns,
                           load_plan_stage_ns(plan, stage));
}

double
load_stage_seconds(const struct load_run *run, const struct load_result *result, unsigned stage)
{
    uint64_t ns = 0;

    if (result != run->total)
        return (double)measured_ns(run->plan, result, stage) / NS;
    for (unsigned i = 0; i < run->trials_number; i++)
        ns += measured_ns(run->plan, run->trials[i].result, stage);
    return (double)ns / NS;
}

/* ---- The summary ---- */

void
load_summary_rate(struct load_sheet *sheet, const struct load_plan *plan)
{
    if (plan->stages_number > 0)
        load_sheet_add(sheet, "%u stage%s up to %.10g/s ", plan->stages_number,
                       plan->stages_number == 1 ? "" : "s", highest_rate(plan));
    else if (load_plan_is_level(plan))
        load_sheet_add(sheet, "%.10g/s ", plan->rate);
    else
        load_sheet_add(sheet, "%.10g/s to %.10g/s ", plan->rate, plan->rate_end);
}

/* Write the rates of a stage: "1.00k to 5.00k/s". */
static const char *
rates_text(const struct load_plan *plan, unsigned stage, char *text, size_t size)
{
    double from = first_rate(plan, stage), to = plan->stages[stage].rate;

    if (from < to || from > to)
        snprintf(text, size, "%s to %s/s", load_number_text(from), load_number_text(to));
    else
        snprintf(text, size, "%s/s", load_number_text(to));
    return text;
}

static void
add_stage(struct load_sheet *sheet, const struct load_run *run, enum load_weight weight,
          unsigned nth)
{
    const struct load_stage_result *stage = &run->total->by_stage[nth];
    double seconds = load_stage_seconds(run, run->total, nth);
    uint64_t from_ns = load_plan_stage_ns(run->plan, nth), ns;
    char rates[64], name[sizeof("stage ") + 10];

    ns = run->plan->stages[nth].end_ns - from_ns;
    snprintf(name, sizeof(name), "stage %u", nth + 1);
    load_sheet_begin(sheet, weight, stage->errors > 0 ? LOAD_PAINT_BAD : LOAD_PAINT_NONE);
    load_sheet_add(sheet, "%-9s%16s", name, rates_text(run->plan, nth, rates, sizeof(rates)));
    if (sheet->columns >= WIDE)
        load_sheet_add(sheet, "%9s", load_duration_text(ns));
    load_sheet_add(sheet, "%9s", load_number_text((double)stage->offered));
    if (sheet->columns >= WIDE)
        load_sheet_add(sheet, "%9s",
                       seconds > 0 ? load_number_text((double)stage->in_time / seconds) : "n/a");
    load_sheet_add(sheet, "%10s%10s%10s", load_percentile_text(&stage->response, 0.5),
                   load_percentile_text(&stage->response, 0.95),
                   load_percentile_text(&stage->response, 0.99));
    if (sheet->columns >= WIDE)
        load_sheet_add(sheet, "%10s",
                       stage->response.count > 0 ? load_max_text(&stage->response) : "n/a");
    load_sheet_add(sheet, "%8s", load_number_text((double)stage->errors));
}

void
load_summary_stages(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_plan *plan = run->plan;
    bool is_wide = sheet->columns >= WIDE;
    unsigned rows = 0;
    enum load_weight weight;

    for (unsigned i = 0; i < plan->stages_number; i++)
        rows += has_row(plan, i);
    if (rows == 0)
        return;
    weight = rows <= FEW ? LOAD_WEIGHT_STAGES : LOAD_WEIGHT_KINDS;
    load_sheet_begin(sheet, weight, LOAD_PAINT_FAINT);
    load_sheet_add(sheet, "%-9s%16s%*s%9s%*s%10s%10s%10s%*s%8s", "", "rate", is_wide ? 9 : 0,
                   is_wide ? "for" : "", "offered", is_wide ? 9 : 0, is_wide ? "ok/s" : "", "p50",
                   "p95", "p99", is_wide ? 10 : 0, is_wide ? "max" : "", "errors");
    for (unsigned i = 0; i < plan->stages_number; i++)
        if (has_row(plan, i))
            add_stage(sheet, run, weight, i);
}

void
load_summary_stage_marks(struct load_sheet *sheet, const struct load_plan *plan, uint64_t column_ns,
                         unsigned columns)
{
    unsigned used = NAME_COLUMNS;

    if (plan->stages_number == 0)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_OVER_TIME, LOAD_PAINT_FAINT);
    load_sheet_add(sheet, "%-*s", NAME_COLUMNS, "stages");
    for (unsigned i = 0; i < plan->stages_number; i++) {
        uint64_t column = load_plan_stage_ns(plan, i) / column_ns;
        unsigned at = NAME_COLUMNS + (unsigned)column;

        if (!has_row(plan, i) || column >= columns || at < used)
            continue;
        load_sheet_add(sheet, "%*s%u", (int)(at - used), "", i + 1);
        used = at + (i < 9 ? 1 : 2);
    }
}

/* ---- The JSON ---- */

static void
write_stage(struct load_json *json, const struct load_run *run, const struct load_result *result,
            unsigned nth)
{
    const struct load_stage_result *stage = &result->by_stage[nth];
    double seconds = load_stage_seconds(run, result, nth);

    load_json_open(json, NULL, '{');
    load_json_number(json, "from_s", (double)load_plan_stage_ns(run->plan, nth) / NS);
    load_json_number(json, "seconds", seconds);
    load_json_number(json, "rate_from", first_rate(run->plan, nth));
    load_json_number(json, "rate_to", run->plan->stages[nth].rate);
    load_json_count(json, "offered", stage->offered);
    load_json_count(json, "sent", stage->sent);
    load_json_count(json, "ok", stage->ok);
    load_json_count(json, "errors", stage->errors);
    load_json_count(json, "in_time", stage->in_time);
    if (seconds > 0)
        load_json_number(json, "rate", (double)stage->in_time / seconds);
    else
        load_json_null(json, "rate");
    load_output_json_times(json, "response", &stage->response);
    load_json_close(json, '}');
}

void
load_output_json_stages(struct load_json *json, const struct load_run *run,
                        const struct load_result *result)
{
    load_json_open(json, "stages", '[');
    for (unsigned i = 0; i < result->stages; i++)
        write_stage(json, run, result, i);
    load_json_close(json, ']');
}
