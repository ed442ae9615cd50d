/* SPDX-License-Identifier: MIT
 *
 * Making the lines of the summary, and leaving some out if there is no room for all.
 */
#include "summary-sheet.h"

#include <stdarg.h>
#include <string.h>

#include "sxe-always-internal.h"
#include "sxe-util.h"

#define ITEM_SIZE 400

void
load_sheet_init(struct load_sheet *sheet, FILE *out)
{
    unsigned columns = load_terminal_columns(out);

    memset(sheet, 0, sizeof(*sheet));
    sheet->columns = LOAD_SUMMARY_COLUMNS;
    if (columns > 0 && columns < LOAD_SUMMARY_COLUMNS)
        sheet->columns = columns > LOAD_SUMMARY_COLUMNS_MIN ? columns : LOAD_SUMMARY_COLUMNS_MIN;
}

static struct load_sheet_line *
last_line(struct load_sheet *sheet)
{
    return &sheet->lines[sheet->number - 1];
}

static struct load_sheet_line *
begin_next_line(struct load_sheet *sheet, enum load_weight weight, enum load_paint paint)
{
    /* this always holds: the longest summary has less than three quarters of LOAD_SHEET_LINES */
    if (SXE_ALWAYS(sheet->number < LOAD_SHEET_LINES))
        sheet->number++;
    *last_line(sheet) = (struct load_sheet_line){.weight = weight, .paint = paint};
    return last_line(sheet);
}

void
load_sheet_begin(struct load_sheet *sheet, enum load_weight weight, enum load_paint paint)
{
    begin_next_line(sheet, weight, paint);
}

void
load_sheet_begin_heading(struct load_sheet *sheet, unsigned rows)
{
    begin_next_line(sheet, LOAD_WEIGHT_ROWS, LOAD_PAINT_FAINT)->rows = rows;
}

void
load_sheet_begin_row(struct load_sheet *sheet, bool is_bad)
{
    const bool is_kept = is_bad && sheet->bad_rows++ < LOAD_SHEET_BAD_ROWS;

    begin_next_line(sheet, is_kept ? LOAD_WEIGHT_ROWS : LOAD_WEIGHT_KINDS,
                    is_bad ? LOAD_PAINT_BAD : LOAD_PAINT_NONE)
        ->is_row = true;
}

static void
append_sheet_text(struct load_sheet_line *line, const char *text)
{
    size_t used = strlen(line->text);

    snprintf(line->text + used, sizeof(line->text) - used, "%s", text);
}

void
load_sheet_add(struct load_sheet *sheet, const char *format, ...)
{
    char text[ITEM_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    append_sheet_text(last_line(sheet), text);
}

/* Add the item after `gap`. If the line has no room for it, put the item into a new indented
 * line. */
static void
place_item(struct load_sheet *sheet, const char *gap, char *item)
{
    struct load_sheet_line *line = last_line(sheet);

    load_clip(item, sheet->columns - LOAD_SHEET_INDENT);
    if (load_columns(line->text) + strlen(gap) + load_columns(item) > sheet->columns) {
        line = begin_next_line(sheet, line->weight, line->paint);
        snprintf(line->text, sizeof(line->text), "%*s", LOAD_SHEET_INDENT, "");
    } else {
        append_sheet_text(line, gap);
    }
    append_sheet_text(line, item);
}

void
load_sheet_item(struct load_sheet *sheet, const char *format, ...)
{
    char item[ITEM_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(item, sizeof(item), format, arguments);
    va_end(arguments);
    place_item(sheet, "  ", item);
}

void
load_sheet_words(struct load_sheet *sheet, const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        char word[ITEM_SIZE];

        snprintf(word, sizeof(word), "%.*s", (int)length, text);
        place_item(sheet, " ", word);
        text += length + strspn(text + length, " ");
    }
}

unsigned
load_sheet_room(const struct load_sheet *sheet)
{
    unsigned used = load_columns(sheet->lines[sheet->number - 1].text) + 2;

    return used < sheet->columns ? sheet->columns - used : 0;
}

/* Remove all lines of the lowest weight. False: only the lines of 2010 are left, which always
 * stay. */
static bool
leave_lightest_out(struct load_sheet *sheet)
{
    enum load_weight lightest = LOAD_WEIGHT_2010;
    unsigned kept = 0;

    for (unsigned i = 0; i < sheet->number; i++)
        if (sheet->lines[i].weight < lightest)
            lightest = sheet->lines[i].weight;
    if (lightest == LOAD_WEIGHT_2010)
        return false;
    for (unsigned i = 0; i < sheet->number; i++)
        if (sheet->lines[i].weight != lightest)
            sheet->lines[kept++] = sheet->lines[i];
    sheet->number = kept;
    return true;
}

/* Add to the heading how many of its rows were left out. */
static void
say_left_out(const struct load_sheet *sheet, struct load_sheet_line *heading)
{
    const struct load_sheet_line *end = sheet->lines + sheet->number;
    char text[40];

    for (const struct load_sheet_line *line = heading + 1; line < end && line->rows == 0; line++)
        heading->rows -= line->is_row;
    if (heading->rows == 0)
        return;
    snprintf(text, sizeof(text), "  (%u more: see --json)", heading->rows);
    append_sheet_text(heading, text);
}

static void
cut_blanks(char *text)
{
    size_t length = strlen(text);

    while (length > 0 && text[length - 1] == ' ')
        text[--length] = '\0';
}

void
load_sheet_print(struct load_sheet *sheet, FILE *out, unsigned lines, bool is_colored)
{
    static const char *const paints[] = {"", "\033[1;31m", "\033[32m", "\033[2m"};

    while (sheet->number > lines && leave_lightest_out(sheet))
        continue;
    for (unsigned i = 0; i < sheet->number && i < lines; i++) {
        struct load_sheet_line *line = &sheet->lines[i];
        bool is_painted = is_colored && line->paint != LOAD_PAINT_NONE;

        if (line->rows > 0)
            say_left_out(sheet, line);
        cut_blanks(line->text);
        load_clip(line->text, sheet->columns);
        fprintf(out, "%s%s%s\n", is_painted ? paints[line->paint] : "", line->text,
                is_painted ? "\033[0m" : "");
    }
}
