/* SPDX-License-Identifier: MIT
 *
 * What: declarations that rows.c, rows-csv.c and rows-json.c share.
 */
#ifndef LOAD_ROWS_PRIVATE_H
#define LOAD_ROWS_PRIVATE_H

#include "rows.h"

/* A file while it is read. The first error is reported, and ends the reading. */
struct load_rows_reader {
    struct load_rows *rows;
    const char *path;
    /* rows->text. Of a CSV file it has the file's bytes, in which the quotes of values are removed
     * in place; of JSON lines it has the values that were copied from the file. */
    char *text;
    size_t length;
    uint64_t line; /* the number of the line, from 1 */
    char *why;     /* room of LOAD_ROWS_WHY bytes */
};

/* Say what is wrong with the line. Always returns false. */
bool load_rows_refuse(struct load_rows_reader *reader, const char *format, ...) SXE_PRINTF(2, 3);

/* Add the next cell of a row; the cells come in the order of the columns. False: refused, after
 * load_rows_refuse. */
bool load_rows_add_cell(struct load_rows_reader *reader, unsigned column, size_t at, size_t length);

/* Add a column. False: refused, after load_rows_refuse. */
bool load_rows_add_name(struct load_rows_reader *reader, size_t at, size_t length);

/* Read all rows. False: refused, after load_rows_refuse. */
bool load_rows_read_csv(struct load_rows_reader *reader);
bool load_rows_read_json(struct load_rows_reader *reader);

#endif
