/* SPDX-License-Identifier: MIT
 *
 * What: reads a plan from the JSON that output-json-plan.c wrote. Place: merge.c needs the plan to
 * print and judge the sum. The plan that is read cannot be run, because it lacks members such as
 * the requests.
 */
#ifndef LOAD_PLAN_READ_H
#define LOAD_PLAN_READ_H

#include "json-reader.h"
#include "plan.h"

/* Fill in *plan. Its texts belong to the JSON. */
void load_plan_read(struct load_reader *reader, const json_t *json, struct load_plan *plan);

#endif
