/* SPDX-License-Identifier: MIT
 *
 * The table of rows that a data file fills, and the choice of its reader.
 */
#include "rows.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows-private.h"
#include "whole-file.h"

bool
load_rows_refuse(struct load_rows_reader *reader, const char *format, ...)
{
    va_list arguments;
    int said = snprintf(reader->why, LOAD_ROWS_WHY, "%s:%llu: ", reader->path,
                        (unsigned long long)reader->line);

    if (said < LOAD_ROWS_WHY) {
        va_start(arguments, format);
        vsnprintf(reader->why + said, LOAD_ROWS_WHY - (size_t)said, format, arguments);
        va_end(arguments);
    }
    return false;
}

bool
load_rows_is_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char letter = (char)(name[i] | 0x20);
        bool is_letter = (letter >= 'a' && letter <= 'z') || name[i] == '_';

        if (!is_letter && (i == 0 || name[i] < '0' || name[i] > '9'))
            return false;
    }
    return length > 0 && length <= LOAD_COLUMN_NAME_MAX;
}

bool
load_rows_add_name(struct load_rows_reader *reader, size_t at, size_t length)
{
    struct load_rows *rows = reader->rows;
    const char *name = reader->text + at;

    if (rows->columns == LOAD_COLUMNS_MAX)
        return load_rows_refuse(reader, "there are more than %d columns", LOAD_COLUMNS_MAX);
    if (!load_rows_is_name(name, length))
        return load_rows_refuse(reader, "'%.*s' is not a column name: use letters, digits and _",
                                (int)(length < 60 ? length : 60), name);
    for (unsigned i = 0; i < rows->columns; i++)
        if (rows->names[i].length == length &&
            memcmp(reader->text + rows->names[i].at, name, length) == 0)
            return load_rows_refuse(reader, "two columns are called '%.*s'", (int)length, name);
    rows->names[rows->columns++] = (struct load_cell){(uint32_t)at, (uint32_t)length};
    return true;
}

static bool
grow_rows(struct load_rows *rows)
{
    size_t room = rows->room > 0 ? 2 * rows->room : 1024;
    struct load_cell *more = realloc(rows->cells, room * sizeof(*more));

    if (more == NULL)
        return false;
    rows->cells = more;
    rows->room = room;
    return true;
}

bool
load_rows_add_cell(struct load_rows_reader *reader, unsigned column, size_t at, size_t length)
{
    struct load_rows *rows = reader->rows;

    if (length > LOAD_CELL_MAX)
        return load_rows_refuse(reader, "a value has %zu bytes; the most is %d", length,
                                LOAD_CELL_MAX);
    if (rows->used == rows->room && !grow_rows(rows))
        return load_rows_refuse(reader, "out of memory for the rows");
    rows->cells[rows->used++] = (struct load_cell){(uint32_t)at, (uint32_t)length};
    if (length > rows->longest[column])
        rows->longest[column] = length;
    return true;
}

static bool
has_path_end(const char *path, const char *end)
{
    size_t length = strlen(path), end_length = strlen(end);

    return length >= end_length && strcmp(path + length - end_length, end) == 0;
}

static bool
read_rows_file(struct load_rows *rows, const char *path, char *why)
{
    struct load_rows_reader reader = {.rows = rows, .path = path, .line = 1, .why = why};

    rows->text = reader.text = load_whole_file(path, &reader.length);
    if (rows->text == NULL) {
        snprintf(why, LOAD_ROWS_WHY, "cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    if (!(has_path_end(path, ".jsonl") || has_path_end(path, ".ndjson")
              ? load_rows_read_json(&reader)
              : load_rows_read_csv(&reader)))
        return false;
    if (rows->used == 0) {
        snprintf(why, LOAD_ROWS_WHY, "%s has no rows", path);
        return false;
    }
    rows->number = rows->used / rows->columns;
    return true;
}

struct load_rows *
load_rows_read(const char *path, char why[LOAD_ROWS_WHY])
{
    struct load_rows *rows = calloc(1, sizeof(*rows));

    if (rows == NULL) {
        snprintf(why, LOAD_ROWS_WHY, "out of memory for the rows of %s", path);
        return NULL;
    }
    if (!read_rows_file(rows, path, why)) {
        load_rows_free(rows);
        return NULL;
    }
    return rows;
}

void
load_rows_free(struct load_rows *rows)
{
    if (rows == NULL)
        return;
    free(rows->text);
    free(rows->cells);
    free(rows);
}
