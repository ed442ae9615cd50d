/* SPDX-License-Identifier: MIT
 *
 * What: a plan again, from the JSON that output-json-plan.c wrote of it. Place: merge.c, which
 * prints it and judges by it; nothing can be run with it.
 */
#ifndef HTTP_PLAN_READ_H
#define HTTP_PLAN_READ_H

#include "json-reader.h"
#include "plan.h"

/* Fill *plan; its texts are the JSON's. */
void http_plan_read(struct http_reader *reader, const json_t *json, struct http_plan *plan);

#endif
