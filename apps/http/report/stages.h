/* SPDX-License-Identifier: MIT
 *
 * What: what the reports say of a load with stages. Place: summary.c, output-json.c.
 */
#ifndef HTTP_STAGES_H
#define HTTP_STAGES_H

#include "run.h"

struct http_json;
struct http_page;

/* So long a stage was measured; of the total, in all trials together. */
double http_stage_seconds(const struct http_run *run, const struct http_result *result,
                          unsigned stage);

/* The rate of the plan, in its line: "5000/s ", "1000/s to 5000/s ", "4 stages up to 5000/s ". */
void http_summary_rate(struct http_page *page, const struct http_plan *plan);

/* A row a stage that took some time; where each begins, below columns of so many ns. */
void http_summary_stages(struct http_page *page, const struct http_run *run);
void http_summary_stage_marks(struct http_page *page, const struct http_plan *plan,
                              uint64_t column_ns, unsigned columns);

/* The member of a result. */
void http_output_json_stages(struct http_json *json, const struct http_run *run,
                             const struct http_result *result);

#endif
