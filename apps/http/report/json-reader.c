/* SPDX-License-Identifier: MIT
 *
 * Reading members of JSON objects, with an error that names the member.
 */
#include "json-reader.h"

#include <math.h>
#include <stdio.h>

#define COUNT_MAX 1.8e19 /* a limit below 2^64, for counts */

void
load_reader_refuse(struct load_reader *reader, const char *name, const char *problem)
{
    if (*reader->problem == '\0')
        snprintf(reader->problem, sizeof(reader->problem), "'%s' %s", name, problem);
}

static bool
is_missing(const json_t *value)
{
    return value == NULL || json_is_null(value);
}

/* Read a number. If `value` is not a number from 0 on, keep the problem, and return 0. */
static double
read_count(struct load_reader *reader, const json_t *value, const char *name)
{
    double number = json_number_value(value);

    if (is_missing(value) || (json_is_number(value) && number >= 0 && number <= COUNT_MAX))
        return number;
    load_reader_refuse(reader, name, "is not a number from 0 on");
    return 0;
}

double
load_reader_number(struct load_reader *reader, const json_t *object, const char *name)
{
    return read_count(reader, json_object_get(object, name), name);
}

static uint64_t
whole_count(double number, double unit)
{
    return (uint64_t)fmin(round(number * unit), COUNT_MAX);
}

uint64_t
load_reader_count(struct load_reader *reader, const json_t *object, const char *name, double unit)
{
    return whole_count(load_reader_number(reader, object, name), unit);
}

uint64_t
load_reader_element(struct load_reader *reader, const json_t *array, size_t index, const char *name,
                    double unit)
{
    return whole_count(read_count(reader, json_array_get(array, index), name), unit);
}

bool
load_reader_bool(struct load_reader *reader, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!is_missing(value) && !json_is_boolean(value))
        load_reader_refuse(reader, name, "is neither true nor false");
    return json_is_true(value);
}

const char *
load_reader_text(struct load_reader *reader, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!is_missing(value) && !json_is_string(value))
        load_reader_refuse(reader, name, "is not a text");
    return json_string_value(value);
}

const json_t *
load_reader_object(struct load_reader *reader, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!is_missing(value) && !json_is_object(value))
        load_reader_refuse(reader, name, "is not an object");
    return json_is_object(value) ? value : NULL;
}

const json_t *
load_reader_array(struct load_reader *reader, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!is_missing(value) && !json_is_array(value))
        load_reader_refuse(reader, name, "is not an array");
    return json_is_array(value) ? value : NULL;
}
