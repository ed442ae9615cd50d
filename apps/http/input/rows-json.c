/* SPDX-License-Identifier: MIT
 *
 * Rows of a file of JSON lines.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows-private.h"
#include "take-json.h"

/* Names and values are copied from the lines into memory of the file's size. That is enough,
 * because no name or value becomes longer than it is in its line. */
struct lines {
    struct load_rows_reader *reader;
    const char *at;
    const char *end;
    size_t to;
};

/* Add the names of the first line as columns, in the order that they have there. */
static bool
read_json_names(struct lines *lines, json_t *row)
{
    struct load_rows_reader *reader = lines->reader;
    const char *name;
    json_t *value;

    json_object_foreach(row, name, value)
    {
        size_t length = strlen(name);

        memcpy(reader->text + lines->to, name, length);
        if (!load_rows_add_name(reader, lines->to, length))
            return false;
        lines->to += length;
    }
    return reader->rows->columns > 0 || load_rows_refuse(reader, "the first object is empty");
}

static bool
refuse_row_value(struct load_rows_reader *reader, const json_t *value, struct sxe_span name)
{
    return load_rows_refuse(reader, "'%.*s' is %s; a value is a string, a number, true or false",
                            (int)name.length, name.base,
                            value == NULL           ? "missing"
                            : json_is_null(value)   ? "null"
                            : json_is_object(value) ? "an object"
                                                    : "an array");
}

/* Read a value as it is written, so that 1.10 stays 1.10; but a string loses its quotes. */
static bool
read_json_value(struct lines *lines, const json_t *row, unsigned column, struct sxe_span line)
{
    struct load_rows_reader *reader = lines->reader;
    const struct load_cell *cell = &reader->rows->names[column];
    struct sxe_span name = {reader->text + cell->at, cell->length};
    struct load_json_path path = {1, {{name.base, name.length, 0}}};
    struct load_json_value text = {reader->text + lines->to, reader->length - lines->to, 0};
    char key[LOAD_ROWS_WHY];
    const json_t *value;

    snprintf(key, sizeof(key), "%.*s", (int)name.length, name.base);
    value = json_object_get(row, key);
    if (value == NULL || json_is_null(value) || json_is_object(value) || json_is_array(value))
        return refuse_row_value(reader, value, name);
    if (load_json_find(&path, line.base, line.length, &text) != LOAD_JSON_FOUND)
        return load_rows_refuse(reader, "objects and arrays are nested deeper than %d",
                                LOAD_JSON_DEPTH);
    lines->to += text.length;
    return load_rows_add_cell(reader, column, lines->to - text.length, text.length);
}

static bool
read_json_row(struct lines *lines, struct sxe_span line)
{
    struct load_rows_reader *reader = lines->reader;
    json_error_t error;
    json_t *row = json_loadb(line.base, line.length, JSON_REJECT_DUPLICATES, &error);
    bool is_good = json_is_object(row);

    if (row == NULL)
        (void)load_rows_refuse(reader, "the line is no JSON object: %s", error.text);
    else if (!is_good)
        (void)load_rows_refuse(reader, "the line is an array; it must be an object");
    if (is_good && reader->rows->columns == 0)
        is_good = read_json_names(lines, row);
    for (unsigned i = 0; is_good && i < reader->rows->columns; i++)
        is_good = read_json_value(lines, row, i, line);
    json_decref(row);
    return is_good;
}

static bool
is_empty_line(struct sxe_span line)
{
    for (size_t i = 0; i < line.length; i++)
        if (line.base[i] != ' ' && line.base[i] != '\t' && line.base[i] != '\r')
            return false;
    return true;
}

static bool
read_json_lines(struct lines *lines)
{
    for (; lines->at < lines->end; lines->reader->line++) {
        const char *end = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
        struct sxe_span line = {lines->at, (size_t)((end == NULL ? lines->end : end) - lines->at)};

        lines->at += line.length + (end != NULL);
        if (!is_empty_line(line) && !read_json_row(lines, line))
            return false;
    }
    return true;
}

bool
load_rows_read_json(struct load_rows_reader *reader)
{
    char *text = reader->rows->text;
    struct lines lines = {reader, text, text + reader->length, 0};
    bool is_good;

    reader->text = reader->rows->text = malloc(reader->length + 1);
    is_good = reader->text != NULL ? read_json_lines(&lines)
                                   : load_rows_refuse(reader, "out of memory for the rows");
    free(text);
    return is_good;
}
