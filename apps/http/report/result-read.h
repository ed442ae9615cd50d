/* SPDX-License-Identifier: MIT
 *
 * What: reads a result from the JSON that output-json.c wrote. Place: merge.c uses it. Counts and
 * histograms are read exactly; means and deviations are exact to 14 digits. The JSON has only times
 * of the wall clock, so started_ns is one, too.
 */
#ifndef LOAD_RESULT_READ_H
#define LOAD_RESULT_READ_H

#include "json-reader.h"
#include "result.h"
#include "verdict.h"

/* Fill in *result, which must be all zero. If the counts do not add up, or if a histogram's count
 * is not the sum of its buckets, a problem is kept in the reader. */
void load_result_read(struct load_reader *reader, const json_t *json, struct load_result *result);

/* Read the reasons and the figures of a verdict. The JSON does not tell which limit each reason is
 * about. */
void load_verdict_read(struct load_reader *reader, const json_t *json,
                       struct load_verdict *verdict);

#endif
