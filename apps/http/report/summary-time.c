/* SPDX-License-Identifier: MIT
 *
 * The lines of the summary that show rates and times over the run.
 */
#include <math.h>
#include <string.h>

#include "output.h"
#include "stages.h"
#include "summary-sheet.h"

#define NS           1e9
#define COLUMNS_MAX  60u
#define BESIDE_RATES 40u /* how many columns the words before and after the rates take */
#define DRAIN        "| then the drain"

struct rates {
    const struct load_timeline *timeline;
    double all_s;   /* the length of one trial, without its drain */
    double width_s; /* the length of the time that a column shows */
    unsigned trials;
    unsigned slices; /* how many slices of the time line each column shows */
    unsigned length; /* how many slices are shown in all */
    unsigned number; /* how many columns are used */
    unsigned border; /* how many columns come before the drain */
    /* good replies a second, for each column; 2 more for the short columns at the border */
    double values[COLUMNS_MAX + 2];
};

/* How many good replies came in the column that begins with slice `from`. Slices from `end` on do
 * not count. */
static uint64_t
ok_from(const struct rates *rates, unsigned from, unsigned end)
{
    uint64_t ok = 0;

    for (unsigned k = from; k < from + rates->slices && k < end && k < rates->timeline->used; k++)
        ok += rates->timeline->slices[k].ok;
    return ok;
}

/* Find the first slice that begins in the drain. */
static unsigned
first_of_drain(const struct rates *rates)
{
    double all_ns = rates->all_s * NS + (double)rates->timeline->offset_ns;

    return (unsigned)fmin(ceil(all_ns / (double)rates->timeline->width_ns - 1e-9), LOAD_SLICES);
}

/* Compute the good replies a second of one trial, for each column. The first and the last column
 * before the drain may show a shorter time than the others. If it is shorter than a quarter of
 * theirs, the column is left out. */
static void
take_rates(struct rates *rates)
{
    double from_s = -(double)rates->timeline->offset_ns / NS;
    unsigned drain = first_of_drain(rates);

    for (unsigned i = 0; i < drain && i < rates->length; i += rates->slices) {
        double seconds = fmin(from_s + rates->width_s, rates->all_s) - fmax(from_s, 0);

        from_s += rates->width_s;
        if (seconds >= rates->width_s / 4)
            rates->values[rates->number++] =
                load_per_second(ok_from(rates, i, drain), seconds) / rates->trials;
    }
    rates->border = rates->number;
    for (unsigned i = drain; i < rates->timeline->used; i += rates->slices)
        rates->values[rates->number++] =
            load_per_second(ok_from(rates, i, rates->timeline->used), rates->width_s) /
            rates->trials;
}

/* Find the offset in bytes at which a column of the text begins. Each character of UTF-8 is a
 * column. */
static size_t
byte_of(const char *text, unsigned column)
{
    size_t at = 0;

    for (; text[at] != '\0'; at++)
        if ((text[at] & 0xc0) != 0x80 && column-- == 0)
            break;
    return at;
}

static void
draw_rates(struct load_sheet *sheet, const struct rates *rates, double highest)
{
    char spark[(COLUMNS_MAX + 2) * LOAD_SPARK_BYTES + 1];
    bool has_drain = rates->border < rates->number;
    size_t border;

    load_sparkline(spark, sizeof(spark), rates->values, rates->number);
    border = byte_of(spark, rates->border);
    load_sheet_begin(sheet, LOAD_WEIGHT_OVER_TIME, LOAD_PAINT_NONE);
    load_sheet_add(sheet, "over time %.*s%s%s", (int)border, spark, has_drain ? "|" : "",
                   spark + border);
    load_sheet_item(sheet, "to %s/s, a column %s", load_number_text(highest),
                    load_time_text((uint64_t)(rates->width_s * NS + 0.5)));
    if (has_drain)
        load_sheet_add(sheet, ", " DRAIN);
}

void
load_summary_over_time(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_result *total = run->total;
    const struct load_timeline *timeline = &total->timeline;
    struct rates rates = {.timeline = timeline,
                          .trials = run->trials_number > 0 ? run->trials_number : 1};
    uint64_t trial_ns = total->elapsed_ns / rates.trials;
    unsigned columns = sheet->columns - BESIDE_RATES;
    double highest = 0;

    rates.length = load_timeline_length(timeline, trial_ns);
    if (rates.length == 0)
        return;
    if (timeline->offset_ns + trial_ns < timeline->used * timeline->width_ns)
        columns -= (unsigned)sizeof(DRAIN) + 3;
    rates.all_s = (double)trial_ns / NS;
    rates.slices = (rates.length + columns - 1) / columns;
    rates.width_s = (double)timeline->width_ns * rates.slices / NS;
    take_rates(&rates);
    for (unsigned i = 0; i < rates.number; i++)
        highest = fmax(highest, rates.values[i]);
    if (rates.number < 2 || !(highest > 0))
        return;
    draw_rates(sheet, &rates, highest);
    load_summary_stage_marks(sheet, run->plan, timeline->width_ns * rates.slices, rates.border);
}
