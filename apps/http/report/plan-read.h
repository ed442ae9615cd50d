/* SPDX-License-Identifier: MIT
 *
 * What: reads a plan from the JSON that output-json-plan.c wrote. Place: merge.c, which needs it to
 * print and judge the sum. Such a plan cannot be run.
 */
#ifndef LOAD_PLAN_READ_H
#define LOAD_PLAN_READ_H

#include "json-reader.h"
#include "plan.h"

/* Fill *plan; its texts belong to the JSON. */
void load_plan_read(struct load_reader *reader, const json_t *json, struct load_plan *plan);

#endif
