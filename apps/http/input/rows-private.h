/* SPDX-License-Identifier: MIT
 *
 * What: what the files of rows share: rows.c, rows-csv.c, rows-json.c.
 */
#ifndef HTTP_ROWS_PRIVATE_H
#define HTTP_ROWS_PRIVATE_H

#include "rows.h"

/* A file while it is read. What is wrong is said once, and then nothing more is read. */
struct http_rows_reader {
    struct http_rows *rows;
    const char *path;
    char *text; /* rows->text: of CSV the file, where values are put together in place; of JSON
                   lines what was copied from it */
    size_t length;
    uint64_t line; /* from 1 */
    char *why;     /* [HTTP_ROWS_WHY] */
};

/* False, after saying what is wrong with the line. */
bool http_rows_refuse(struct http_rows_reader *reader, const char *format, ...) SXE_PRINTF(2, 3);

/* Add the next cell of a row, whose values are in the order of the columns; false: refused. */
bool http_rows_add_cell(struct http_rows_reader *reader, unsigned column, size_t at, size_t length);

/* Add a column; false: refused. */
bool http_rows_add_name(struct http_rows_reader *reader, size_t at, size_t length);

/* Read all of it; false: refused. */
bool http_rows_read_csv(struct http_rows_reader *reader);
bool http_rows_read_json(struct http_rows_reader *reader);

#endif
