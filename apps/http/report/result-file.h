/* SPDX-License-Identifier: MIT
 *
 * What: reads a result that output-json.c has written, with jansson. Place: compare, --baseline and
 * html. A file is not trusted: this checks the version of its schema, and that its counts fit
 * together (result-check.h).
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

/* Print text from a file, with '?' for control bytes, which could move the terminal's cursor. */
void load_result_file_print(FILE *out, const char *text);

#endif
