/* SPDX-License-Identifier: MIT
 *
 * What: the part of the reports about hosts, if a run loads several, and about addresses, if a host
 * has several. Place: summary.c, output-json.c, output-json-plan.c.
 */
#ifndef LOAD_HOSTS_H
#define LOAD_HOSTS_H

#include "run.h"

struct load_json;
struct load_sheet;

/* add a row for each host, or for each address */
void load_summary_hosts(struct load_sheet *sheet, const struct load_run *run);

void load_summary_addresses(struct load_sheet *sheet, const struct load_run *run);

/* Write the member "addresses" of a result, in JSON. */
void load_output_json_addresses(struct load_json *json, const struct load_result *result);

/* Write the member "hosts" of the plan, and the member "hosts" of a result. */
void load_output_json_plan_hosts(struct load_json *json, const struct load_plan *plan);
void load_output_json_hosts(struct load_json *json, const struct load_plan *plan,
                            const struct load_result *result);

#endif
