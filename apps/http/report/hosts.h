/* SPDX-License-Identifier: MIT
 *
 * What: what the reports say of each host, where a run loads several. Place: summary.c,
 * output-json.c, output-json-plan.c.
 */
#ifndef HTTP_HOSTS_H
#define HTTP_HOSTS_H

#include "run.h"

struct http_json;
struct http_page;

void http_summary_hosts(struct http_page *page, const struct http_run *run); /* a row each */

/* A member of the plan, and one of a result. */
void http_output_json_plan_hosts(struct http_json *json, const struct http_plan *plan);
void http_output_json_hosts(struct http_json *json, const struct http_plan *plan,
                            const struct http_result *result);

#endif
