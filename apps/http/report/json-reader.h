/* SPDX-License-Identifier: MIT
 *
 * What: takes members out of JSON objects, for the files that read a result again. Place:
 * result-read.c, plan-read.c, merge.c. The first thing that is wrong is kept; the calls after it
 * return 0, so a reader checks once, at its end.
 *
 * Limits: a missing member is 0, because older files lack the newer ones; a member of another type
 * is wrong. Numbers are doubles: counts are exact up to 2^53.
 */
#ifndef HTTP_JSON_READER_H
#define HTTP_JSON_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct http_reader {
    char problem[160]; /* empty: nothing was wrong */
};

/* Keep what is wrong with the member of that name, unless something was wrong before. */
void http_reader_refuse(struct http_reader *reader, const char *name, const char *problem);

/* A number from 0 on, times that unit; a count has the unit 1. */
double http_reader_number(struct http_reader *reader, const json_t *object, const char *name);
uint64_t http_reader_count(struct http_reader *reader, const json_t *object, const char *name,
                           double unit);
bool http_reader_bool(struct http_reader *reader, const json_t *object, const char *name);

/* The object's own; NULL: there is none. */
const char *http_reader_text(struct http_reader *reader, const json_t *object, const char *name);

/* NULL if it is missing, null, or of another type, which is wrong. */
const json_t *http_reader_object(struct http_reader *reader, const json_t *object,
                                 const char *name);
const json_t *http_reader_array(struct http_reader *reader, const json_t *object, const char *name);

/* A number from 0 on in an array, times that unit. */
uint64_t http_reader_element(struct http_reader *reader, const json_t *array, size_t index,
                             const char *name, double unit);

#endif
