/* SPDX-License-Identifier: MIT
 *
 * What: checks that the numbers of a result agree with each other: every request is counted in one
 * place, histograms have as many samples as requests ended, percentiles and rates follow from
 * counts, and the total is the sum of the trials. Place: result-file.c calls it, so that merge,
 * compare, --baseline and html refuse the same files.
 *
 * Limits: missing members are not checked, since older files lack the newer members; callers that
 * need a member check that it is there.
 */
#ifndef LOAD_RESULT_CHECK_H
#define LOAD_RESULT_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Check a result file. False: `problem` says what does not agree, or that there is no memory. */
bool load_result_check_file(const json_t *root, char *problem, size_t size);

#endif
