/* SPDX-License-Identifier: MIT
 *
 * What: the part of the reports about stages (--stages). Place: summary.c, output-json.c.
 */
#ifndef LOAD_STAGES_H
#define LOAD_STAGES_H

#include "run.h"

struct load_json;
struct load_sheet;

/* How many seconds of a stage were measured. For run->total this is the sum over all trials. */
double load_stage_seconds(const struct load_run *run, const struct load_result *result,
                          unsigned stage);

/* Add the rate to the plan's line: "5000/s ", "1000/s to 5000/s ", "4 stages up to 5000/s ". */
void load_summary_rate(struct load_sheet *sheet, const struct load_plan *plan);

/* load_summary_stages adds a row for each stage that takes time. load_summary_stage_marks adds a
 * line below "over time", which marks the column in which each stage begins. */
void load_summary_stages(struct load_sheet *sheet, const struct load_run *run);
void load_summary_stage_marks(struct load_sheet *sheet, const struct load_plan *plan,
                              uint64_t column_ns, unsigned columns);

/* Write the member "stages" of a result. */
void load_output_json_stages(struct load_json *json, const struct load_run *run,
                             const struct load_result *result);

#endif
