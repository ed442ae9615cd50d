/* SPDX-License-Identifier: MIT
 *
 * What: takes members out of JSON objects, for the files that read a result again. Place:
 * result-read.c, plan-read.c, merge.c. The first problem is kept, and a bad member reads as 0, so a
 * caller checks for problems once, at the end.
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
    char problem[160]; /* the first problem; "": none */
};

/* Keep a problem of the member of that name, unless there is an earlier problem. */
void load_reader_refuse(struct load_reader *reader, const char *name, const char *problem);

/* Read a member that is a number from 0 on; load_reader_count multiplies it by unit (1 for a
 * count). */
double load_reader_number(struct load_reader *reader, const json_t *object, const char *name);
uint64_t load_reader_count(struct load_reader *reader, const json_t *object, const char *name,
                           double unit);
bool load_reader_bool(struct load_reader *reader, const json_t *object, const char *name);

/* The member's text, which belongs to the object; NULL: there is none. */
const char *load_reader_text(struct load_reader *reader, const json_t *object, const char *name);

/* Get a member that is an object. NULL: it is missing or null; or it has another type, and the
 * problem is kept. */
const json_t *load_reader_object(struct load_reader *reader, const json_t *object,
                                 const char *name);
const json_t *load_reader_array(struct load_reader *reader, const json_t *object, const char *name);

/* Read a number from 0 on in an array, and multiply it by unit. */
uint64_t load_reader_element(struct load_reader *reader, const json_t *array, size_t index,
                             const char *name, double unit);

#endif
