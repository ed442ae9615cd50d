/* SPDX-License-Identifier: MIT
 *
 * What: what the reports say of a load with stages. Place: summary.c, output-json.c.
 */
#ifndef LOAD_STAGES_H
#define LOAD_STAGES_H

#include "run.h"

struct load_json;
struct load_page;

/* So long a stage was measured; of the total, in all trials together. */
double load_stage_seconds(const struct load_run *run, const struct load_result *result,
                          unsigned stage);

/* The rate of the plan, in its line: "5000/s ", "1000/s to 5000/s ", "4 stages up to 5000/s ". */
void load_summary_rate(struct load_page *page, const struct load_plan *plan);

/* A row a stage that took some time; where each begins, below columns of so many ns. */
void load_summary_stages(struct load_page *page, const struct load_run *run);
void load_summary_stage_marks(struct load_page *page, const struct load_plan *plan,
                              uint64_t column_ns, unsigned columns);

/* The member of a result. */
void load_output_json_stages(struct load_json *json, const struct load_run *run,
                             const struct load_result *result);

#endif
