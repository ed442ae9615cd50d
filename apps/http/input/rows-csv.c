/* SPDX-License-Identifier: MIT
 *
 * Rows of a CSV file (RFC 4180).
 */
#include <string.h>

#include "rows-private.h"

/* A reader of the file. Values are copied to the front of the same bytes, to remove their quotes:
 * `at` is the next byte to read; `to`, which is never after `at`, is where the next byte is
 * written. */
struct csv {
    struct load_rows_reader *reader;
    size_t at;
    size_t to;
};

static bool
is_at_end(const struct csv *csv)
{
    return csv->at == csv->reader->length;
}

/* The length of the line end (CR LF or LF) at which the reader is; 0: it is at no line end. */
static size_t
line_end_length(const struct csv *csv)
{
    const char *text = csv->reader->text + csv->at;
    size_t left = csv->reader->length - csv->at;

    if (left > 0 && *text == '\n')
        return 1;
    return left > 1 && text[0] == '\r' && text[1] == '\n' ? 2 : 0;
}

static void
put_byte(struct csv *csv, char byte)
{
    csv->reader->text[csv->to++] = byte;
    csv->at++;
}

/* Read a value in quotes, whose first quote was read, up to and including its last quote. */
static bool
read_quoted_value(struct csv *csv)
{
    struct load_rows_reader *reader = csv->reader;
    uint64_t first_line = reader->line;

    while (!is_at_end(csv)) {
        char byte = reader->text[csv->at];

        if (byte == '"') {
            csv->at++;
            if (is_at_end(csv) || reader->text[csv->at] != '"')
                return true;
        }
        reader->line += byte == '\n';
        put_byte(csv, byte);
    }
    reader->line = first_line;
    return load_rows_refuse(reader, "a quote is not closed");
}

static bool
read_plain(struct csv *csv)
{
    while (!is_at_end(csv) && csv->reader->text[csv->at] != ',' && line_end_length(csv) == 0) {
        char byte = csv->reader->text[csv->at];

        if (byte == '"')
            return load_rows_refuse(csv->reader, "a quote stands inside of a value; write the "
                                                 "value in quotes, and it twice");
        put_byte(csv, byte);
    }
    return true;
}

/* Read one value. *is_more: the line has another value after it. */
static bool
read_csv_value(struct csv *csv, size_t *begin, bool *is_more)
{
    struct load_rows_reader *reader = csv->reader;

    *begin = csv->to;
    if (!is_at_end(csv) && reader->text[csv->at] == '"') {
        csv->at++;
        if (!read_quoted_value(csv))
            return false;
    } else if (!read_plain(csv)) {
        return false;
    }
    *is_more = !is_at_end(csv) && reader->text[csv->at] == ',';
    csv->at += *is_more;
    if (*is_more || is_at_end(csv))
        return true;
    if (line_end_length(csv) == 0)
        return load_rows_refuse(reader, "after a closing quote stands neither a comma nor the "
                                        "line's end");
    csv->at += line_end_length(csv);
    return true;
}

static bool
read_csv_names(struct csv *csv)
{
    bool is_more = true;
    size_t begin;

    while (is_more)
        if (!read_csv_value(csv, &begin, &is_more) ||
            !load_rows_add_name(csv->reader, begin, csv->to - begin))
            return false;
    return true;
}

static bool
read_csv_row(struct csv *csv)
{
    struct load_rows_reader *reader = csv->reader;
    unsigned columns = reader->rows->columns, column = 0;
    uint64_t line = reader->line;
    bool is_more = true;
    size_t begin;

    for (; is_more && column < columns; column++)
        if (!read_csv_value(csv, &begin, &is_more) ||
            !load_rows_add_cell(reader, column, begin, csv->to - begin))
            return false;
    if (!is_more && column == columns)
        return true;
    reader->line = line;
    return load_rows_refuse(reader, "the row has %s values than the %u names of the first line",
                            is_more ? "more" : "fewer", columns);
}

bool
load_rows_read_csv(struct load_rows_reader *reader)
{
    struct csv csv = {.reader = reader};

    /* Skip the byte order mark that some editors write before UTF-8. */
    if (reader->length >= 3 && memcmp(reader->text, "\xEF\xBB\xBF", 3) == 0)
        csv.at = csv.to = 3;
    if (!read_csv_names(&csv))
        return false;
    while (!is_at_end(&csv)) {
        size_t empty = line_end_length(&csv);

        reader->line++;
        csv.at += empty;
        if (empty == 0 && !read_csv_row(&csv))
            return false;
    }
    return true;
}
