/* SPDX-License-Identifier: MIT
 *
 * What: writes JSON (RFC 8259) as it goes, in no memory of its own. Place: output-json.c.
 *
 * Shape: one call a value; name is NULL inside an array. Values down to LOAD_JSON_WIDE deep stand
 * on a line each, what is inside them on one line, so that a person can read the file and diff it.
 *
 * Any bytes make good JSON: what is no UTF-8 becomes U+FFFD, numbers that JSON has not become null.
 * "<" is written as \u003c, so that the text can stand inside an HTML script element.
 *
 * Limits: writing is not checked here; see load_output_finish.
 */
#ifndef LOAD_JSON_WRITER_H
#define LOAD_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LOAD_JSON_WIDE 4

/* All of it private. */
struct load_json {
    FILE *out;
    unsigned depth;
    bool has_values; /* in what is open now */
};

void load_json_init(struct load_json *json, FILE *out);
void load_json_init_line(struct load_json *json, FILE *out); /* all of it on one line */

/* bracket is '{' or '['; close with '}' or ']'. */
void load_json_open(struct load_json *json, const char *name, char bracket);
void load_json_close(struct load_json *json, char bracket);

void load_json_text(struct load_json *json, const char *name, const char *text); /* NULL: null */
void load_json_count(struct load_json *json, const char *name, uint64_t value);
void load_json_number(struct load_json *json, const char *name, double value);
void load_json_bool(struct load_json *json, const char *name, bool value);
void load_json_null(struct load_json *json, const char *name);

#endif
