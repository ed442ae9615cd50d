/* SPDX-License-Identifier: MIT
 *
 * What: a plan again, from the JSON that output-json-plan.c wrote of it. Place: merge.c, which
 * prints it and judges by it; nothing can be run with it.
 */
#ifndef LOAD_PLAN_READ_H
#define LOAD_PLAN_READ_H

#include "json-reader.h"
#include "plan.h"

/* Fill *plan; its texts are the JSON's. */
void load_plan_read(struct load_reader *reader, const json_t *json, struct load_plan *plan);

#endif
