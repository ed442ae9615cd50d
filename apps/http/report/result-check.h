/* SPDX-License-Identifier: MIT
 *
 * What: whether what a result says fits together: its accounts close, its histograms have as many
 * samples as requests ended, its percentiles and rates are those of its counts, its total is the
 * sum of its trials. Place: result-file.c, so that merge, compare, --baseline and html refuse the
 * same files. Pure.
 *
 * Limits: what is missing is not looked at, since older files lack the newer members; whoever needs
 * one says so.
 */
#ifndef LOAD_RESULT_CHECK_H
#define LOAD_RESULT_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* False after saying in the text what does not fit; also without memory. */
bool load_result_check_file(const json_t *root, char *problem, size_t size);

#endif
