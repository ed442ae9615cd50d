/* SPDX-License-Identifier: MIT
 *
 * What: reads the rows of a data file, CSV (RFC 4180) or JSON lines. The columns have names. Place:
 * a scenario with steps reads the file once, before the workers are forked; each session of a user
 * gets a row.
 *
 * Shape: CSV         the first line has the names; lines end with CR LF or LF; a field in quotes
 *                    may have commas, line ends and "" for a quote; empty lines are left out
 *        JSON lines  a name that ends with .jsonl or .ndjson: an object a line; the first has the
 *                    names, and each has them all; strings, numbers, true and false are values
 *
 *     cells: row 0 [user][password] row 1 [user][password] ...   each a piece of one text
 *
 * Limits: LOAD_WHOLE_FILE_MAX bytes; LOAD_COLUMNS_MAX columns, whose names have letters, digits and
 * _; a value has at most LOAD_CELL_MAX bytes.
 *
 * Example:
 *     char why[LOAD_ROWS_WHY];
 *     struct load_rows *rows = load_rows_read("users.csv", why);
 *     if (rows != NULL && rows->number > 0) {
 *         struct sxe_span user = load_rows_cell(rows, 0, 0);
 *         printf("%.*s\n", (int)user.length, user.base);
 *     }
 *     load_rows_free(rows);
 */
#ifndef LOAD_ROWS_H
#define LOAD_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-util.h"

#define LOAD_COLUMNS_MAX     32
#define LOAD_CELL_MAX        65535
#define LOAD_ROWS_WHY        400
#define LOAD_COLUMN_NAME_MAX 63

struct load_cell {
    uint32_t at;
    uint32_t length;
};

struct load_rows {
    unsigned columns; /* ro */
    uint64_t number;  /* ro: how many rows */
    struct load_cell names[LOAD_COLUMNS_MAX];
    /* ro: the length of the longest value of each column, in bytes */
    size_t longest[LOAD_COLUMNS_MAX];
    char *text; /* private, like all members after it */
    struct load_cell *cells;
    size_t used;
    size_t room;
};

/* Read a file. The caller frees the rows with load_rows_free. NULL: `why` is a sentence that says
 * what is wrong; it names the file, and the line if one line is wrong. */
struct load_rows *load_rows_read(const char *path, char why[LOAD_ROWS_WHY]);
void load_rows_free(struct load_rows *rows); /* free rows; NULL is allowed */

static inline struct sxe_span
load_rows_cell(const struct load_rows *rows, uint64_t row, unsigned column)
{
    const struct load_cell *cell = &rows->cells[row * rows->columns + column];

    return (struct sxe_span){rows->text + cell->at, cell->length};
}

/* Whether a text is a name: at most LOAD_COLUMN_NAME_MAX letters, digits and _, and no digit at its
 * beginning. */
bool load_rows_is_name(const char *name, size_t length);

#endif
