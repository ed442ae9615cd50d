/* SPDX-License-Identifier: MIT
 *
 * What: reads a result that output-json.c has written, with jansson. Place: compare, --baseline,
 * merge and html. A file is not trusted: the version of its schema is checked, and whether its
 * numbers agree with each other (result-check.h).
 */
#ifndef LOAD_RESULT_FILE_H
#define LOAD_RESULT_FILE_H

#include <jansson.h>
#include <stdio.h>

/* Flags for jansson: read integers as doubles, because counts may be larger than its integers. */
#define LOAD_RESULT_FILE_FLAGS (JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES)

/* Load a result file. Returns its root, which the caller gives to json_decref; NULL after a message
 * on err. */
json_t *load_result_file_load(const char *path, FILE *err);

/* Print a message that the file cannot be used because of problem. */
void load_result_file_refuse(const char *path, const char *problem, FILE *err);

/* Print text from a file, with '?' for control bytes, which could move the terminal's cursor. */
void load_result_file_print(FILE *out, const char *text);

#endif
