/* SPDX-License-Identifier: MIT
 *
 * What: reads a result from JSON: the inverse of output-json.c. Place: merge.c. Counts and
 * histograms are exact; means and deviations are to 14 digits. The JSON has only times of the wall
 * clock, so started_ns is the wall clock's.
 */
#ifndef LOAD_RESULT_READ_H
#define LOAD_RESULT_READ_H

#include "json-reader.h"
#include "result.h"
#include "verdict.h"

/* Fill *result, which must be all zero. A problem is also kept if the accounts do not close, or if
 * a histogram's count is not the sum of its buckets. */
void load_result_read(struct load_reader *reader, const json_t *json, struct load_result *result);

/* Read the reasons and the figures; which limit each reason is about is not in the JSON. */
void load_verdict_read(struct load_reader *reader, const json_t *json,
                       struct load_verdict *verdict);

#endif
