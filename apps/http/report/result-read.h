/* SPDX-License-Identifier: MIT
 *
 * What: a result again, from the JSON that output-json.c wrote of it: the inverse of that file.
 * Place: merge.c. Counts and histograms are exact; means and deviations follow from them to 14
 * digits; times of other clocks than the wall's are not in the JSON, so started_ns is the wall
 * clock's.
 */
#ifndef LOAD_RESULT_READ_H
#define LOAD_RESULT_READ_H

#include "json-reader.h"
#include "result.h"
#include "verdict.h"

/* Fill *result, which is all zero. Something is wrong also where the accounts do not close and
 * where the counts of a histogram are not its sum. */
void load_result_read(struct load_reader *reader, const json_t *json, struct load_result *result);

/* The reasons, without the limits that they are about, and the figures. */
void load_verdict_read(struct load_reader *reader, const json_t *json,
                       struct load_verdict *verdict);

#endif
