/* SPDX-License-Identifier: MIT
 *
 * What: reads members of JSON objects, for the files that read a stored result. Place:
 * result-read.c, plan-read.c, merge.c. The first problem is kept in the reader, and a bad member
 * reads as 0. So a caller needs to look for a problem only once, at the end.
 *
 * Limits: a missing member reads as 0, because older files lack newer members; a member of the
 * wrong type is a problem. Numbers are doubles, so counts are exact up to 2^53.
 */
#ifndef LOAD_JSON_READER_H
#define LOAD_JSON_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct load_reader {
    char problem[160]; /* the first problem; "": none */
};

/* Keep a problem of the member with this name, unless an earlier problem was kept. */
void load_reader_refuse(struct load_reader *reader, const char *name, const char *problem);

/* Read a member that is a number from 0 on. load_reader_count multiplies it by unit, which is 1 for
 * a count, and rounds it. */
double load_reader_number(struct load_reader *reader, const json_t *object, const char *name);
uint64_t load_reader_count(struct load_reader *reader, const json_t *object, const char *name,
                           double unit);
bool load_reader_bool(struct load_reader *reader, const json_t *object, const char *name);

/* The text of the member, which belongs to the object; NULL: the member is missing, or is no
 * text. */
const char *load_reader_text(struct load_reader *reader, const json_t *object, const char *name);

/* Get a member that is an object, or one that is an array. NULL: it is missing or null, or it has
 * another type, which is kept as a problem. */
const json_t *load_reader_object(struct load_reader *reader, const json_t *object,
                                 const char *name);
const json_t *load_reader_array(struct load_reader *reader, const json_t *object, const char *name);

/* Read an element of an array that is a number from 0 on, and multiply it by unit. */
uint64_t load_reader_element(struct load_reader *reader, const json_t *array, size_t index,
                             const char *name, double unit);

#endif
