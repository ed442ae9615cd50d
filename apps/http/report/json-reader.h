/* SPDX-License-Identifier: MIT
 *
 * What: takes members out of JSON objects, for the files that read a result again. Place:
 * result-read.c, plan-read.c, merge.c. The first thing that is wrong is kept; the calls after it
 * return 0, so a reader checks once, at its end.
 *
 * Limits: a missing member is 0, because older files lack the newer ones; a member of another type
 * is wrong. Numbers are doubles: counts are exact up to 2^53.
 */
#ifndef LOAD_JSON_READER_H
#define LOAD_JSON_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct load_reader {
    char problem[160]; /* empty: nothing was wrong */
};

/* Keep what is wrong with the member of that name, unless something was wrong before. */
void load_reader_refuse(struct load_reader *reader, const char *name, const char *problem);

/* A number from 0 on, times that unit; a count has the unit 1. */
double load_reader_number(struct load_reader *reader, const json_t *object, const char *name);
uint64_t load_reader_count(struct load_reader *reader, const json_t *object, const char *name,
                           double unit);
bool load_reader_bool(struct load_reader *reader, const json_t *object, const char *name);

/* The object's own; NULL: there is none. */
const char *load_reader_text(struct load_reader *reader, const json_t *object, const char *name);

/* NULL if it is missing, null, or of another type, which is wrong. */
const json_t *load_reader_object(struct load_reader *reader, const json_t *object,
                                 const char *name);
const json_t *load_reader_array(struct load_reader *reader, const json_t *object, const char *name);

/* A number from 0 on in an array, times that unit. */
uint64_t load_reader_element(struct load_reader *reader, const json_t *array, size_t index,
                             const char *name, double unit);

#endif
