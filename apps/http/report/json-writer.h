/* SPDX-License-Identifier: MIT
 *
 * What: writes JSON (RFC 8259) as it goes, in no memory of its own. Place: output-json.c.
 *
 * Shape: one call a value; name is NULL inside an array. Values down to HTTP_JSON_WIDE deep stand
 * on a line each, what is inside them on one line, so that a person can read the file and diff it.
 *
 * Any bytes make good JSON: what is no UTF-8 becomes U+FFFD, numbers that JSON has not become null.
 * "<" is written as \u003c, so that the text can stand inside an HTML script element.
 *
 * Limits: writing is not checked here; see http_output_finish.
 */
#ifndef HTTP_JSON_WRITER_H
#define HTTP_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define HTTP_JSON_WIDE 4

/* All of it private. */
struct http_json {
    FILE *out;
    unsigned depth;
    bool has_values; /* in what is open now */
};

void http_json_init(struct http_json *json, FILE *out);
void http_json_init_line(struct http_json *json, FILE *out); /* all of it on one line */

/* bracket is '{' or '['; close with '}' or ']'. */
void http_json_open(struct http_json *json, const char *name, char bracket);
void http_json_close(struct http_json *json, char bracket);

void http_json_text(struct http_json *json, const char *name, const char *text); /* NULL: null */
void http_json_count(struct http_json *json, const char *name, uint64_t value);
void http_json_number(struct http_json *json, const char *name, double value);
void http_json_bool(struct http_json *json, const char *name, bool value);
void http_json_null(struct http_json *json, const char *name);

#endif
