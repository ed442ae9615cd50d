/* SPDX-License-Identifier: MIT
 *
 * What: what the files of rows share: rows.c, rows-csv.c, rows-json.c.
 */
#ifndef LOAD_ROWS_PRIVATE_H
#define LOAD_ROWS_PRIVATE_H

#include "rows.h"

/* A file while it is read. The first error is reported, and ends the reading. */
struct load_rows_reader {
    struct load_rows *rows;
    const char *path;
    char *text; /* rows->text: of CSV the file, where values are put together in place; of JSON
                   lines what was copied from the file */
    size_t length;
    uint64_t line; /* from 1 */
    char *why;     /* [LOAD_ROWS_WHY] */
};

/* False, after saying what is wrong with the line. */
bool load_rows_refuse(struct load_rows_reader *reader, const char *format, ...) SXE_PRINTF(2, 3);

/* Add the next cell of a row, whose values are in the order of the columns; false: refused. */
bool load_rows_add_cell(struct load_rows_reader *reader, unsigned column, size_t at, size_t length);

/* Add a column; false: refused. */
bool load_rows_add_name(struct load_rows_reader *reader, size_t at, size_t length);

/* Read all rows; false: refused. */
bool load_rows_read_csv(struct load_rows_reader *reader);
bool load_rows_read_json(struct load_rows_reader *reader);

#endif
