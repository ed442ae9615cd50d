/* SPDX-License-Identifier: MIT
 *
 * What: writes JSON (RFC 8259) to a file directly, and allocates no memory. Place: output-json.c.
 *
 * Shape: one call for each value; name is NULL inside an array. Values up to LOAD_JSON_WIDE levels
 * deep get a line each, deeper ones share their parent's line, so that the file can be read and
 * compared with diff.
 *
 * Any input makes valid JSON: bytes that are not UTF-8 become U+FFFD, NAN and infinity become null.
 * "<" is written as \u003c, so that the text can stand inside an HTML script element.
 *
 * Limits: errors of writing are not looked at here; load_output_finish reports them.
 */
#ifndef LOAD_JSON_WRITER_H
#define LOAD_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LOAD_JSON_WIDE 4

/* All members are private. */
struct load_json {
    FILE *out;
    unsigned depth;
    bool has_values; /* whether the innermost open object or array has a value already */
};

void load_json_init(struct load_json *json, FILE *out);
/* for JSON that has to be on a single line */
void load_json_init_line(struct load_json *json, FILE *out);

/* Open an object or array: bracket is '{' or '['. Close it with '}' or ']'. */
void load_json_open(struct load_json *json, const char *name, char bracket);
void load_json_close(struct load_json *json, char bracket);

/* if text is NULL, write null */
void load_json_text(struct load_json *json, const char *name, const char *text);
void load_json_count(struct load_json *json, const char *name, uint64_t value);
void load_json_number(struct load_json *json, const char *name, double value);
void load_json_bool(struct load_json *json, const char *name, bool value);
void load_json_null(struct load_json *json, const char *name);

#endif
