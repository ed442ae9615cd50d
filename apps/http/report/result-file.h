/* SPDX-License-Identifier: MIT
 *
 * What: reads a result that output-json.c has written, with jansson. Place: compare, --baseline and
 * html. What a file says is not to be believed: the version of its schema is checked here, and
 * whether its counts fit together (result-check.h).
 */
#ifndef LOAD_RESULT_FILE_H
#define LOAD_RESULT_FILE_H

#include <jansson.h>
#include <stdio.h>

/* How jansson reads it: counts may be larger than its integers. */
#define LOAD_RESULT_FILE_FLAGS (JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES)

/* The caller's to json_decref; NULL after saying on err what is wrong with the file. */
json_t *load_result_file_load(const char *path, FILE *err);

/* Say what is wrong with it. */
void load_result_file_refuse(const char *path, const char *problem, FILE *err);

/* What comes from a file must not be able to move the terminal's cursor: of control bytes '?' is
 * printed. */
void load_result_file_print(FILE *out, const char *text);

#endif
