/* SPDX-License-Identifier: MIT
 *
 * Laying out lines of the summary, and dropping some that have no room.
 */
#include "summary-page.h"

#include <stdarg.h>
#include <string.h>

#include "sxe-always-internal.h"
#include "sxe-util.h"

#define ITEM_SIZE 400

void
load_page_init(struct load_page *page, FILE *out)
{
    unsigned columns = load_terminal_columns(out);

    memset(page, 0, sizeof(*page));
    page->columns = LOAD_SUMMARY_COLUMNS;
    if (columns > 0 && columns < LOAD_SUMMARY_COLUMNS)
        page->columns = columns > LOAD_SUMMARY_COLUMNS_MIN ? columns : LOAD_SUMMARY_COLUMNS_MIN;
}

static struct load_page_line *
last_line(struct load_page *page)
{
    return &page->lines[page->number - 1];
}

static struct load_page_line *
begin_next_line(struct load_page *page, enum load_weight weight, enum load_paint paint)
{
    /* The longest summary has less than three quarters of LOAD_PAGE_LINES. */
    if (SXE_ALWAYS(page->number < LOAD_PAGE_LINES))
        page->number++;
    *last_line(page) = (struct load_page_line){.weight = weight, .paint = paint};
    return last_line(page);
}

void
load_page_begin(struct load_page *page, enum load_weight weight, enum load_paint paint)
{
    begin_next_line(page, weight, paint);
}

void
load_page_begin_heading(struct load_page *page, unsigned rows)
{
    begin_next_line(page, LOAD_WEIGHT_ROWS, LOAD_PAINT_FAINT)->rows = rows;
}

void
load_page_begin_row(struct load_page *page, bool is_bad)
{
    const bool is_kept = is_bad && page->bad_rows++ < LOAD_PAGE_BAD_ROWS;

    begin_next_line(page, is_kept ? LOAD_WEIGHT_ROWS : LOAD_WEIGHT_KINDS,
                    is_bad ? LOAD_PAINT_BAD : LOAD_PAINT_NONE)
        ->is_row = true;
}

static void
append_page_text(struct load_page_line *line, const char *text)
{
    size_t used = strlen(line->text);

    snprintf(line->text + used, sizeof(line->text) - used, "%s", text);
}

void
load_page_add(struct load_page *page, const char *format, ...)
{
    char text[ITEM_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    append_page_text(last_line(page), text);
}

/* Add the item after a gap or, if the line has no room, in a new indented line. */
static void
place_item(struct load_page *page, const char *gap, char *item)
{
    struct load_page_line *line = last_line(page);

    load_clip(item, page->columns - LOAD_PAGE_INDENT);
    if (load_columns(line->text) + strlen(gap) + load_columns(item) > page->columns) {
        line = begin_next_line(page, line->weight, line->paint);
        snprintf(line->text, sizeof(line->text), "%*s", LOAD_PAGE_INDENT, "");
    } else {
        append_page_text(line, gap);
    }
    append_page_text(line, item);
}

void
load_page_item(struct load_page *page, const char *format, ...)
{
    char item[ITEM_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(item, sizeof(item), format, arguments);
    va_end(arguments);
    place_item(page, "  ", item);
}

void
load_page_words(struct load_page *page, const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        char word[ITEM_SIZE];

        snprintf(word, sizeof(word), "%.*s", (int)length, text);
        place_item(page, " ", word);
        text += length + strspn(text + length, " ");
    }
}

unsigned
load_page_room(const struct load_page *page)
{
    unsigned used = load_columns(page->lines[page->number - 1].text) + 2;

    return used < page->columns ? page->columns - used : 0;
}

/* Remove the lines of the lowest weight. False: only lines that always stay are left. */
static bool
leave_lightest_out(struct load_page *page)
{
    enum load_weight lightest = LOAD_WEIGHT_2010;
    unsigned kept = 0;

    for (unsigned i = 0; i < page->number; i++)
        if (page->lines[i].weight < lightest)
            lightest = page->lines[i].weight;
    if (lightest == LOAD_WEIGHT_2010)
        return false;
    for (unsigned i = 0; i < page->number; i++)
        if (page->lines[i].weight != lightest)
            page->lines[kept++] = page->lines[i];
    page->number = kept;
    return true;
}

/* Have the heading say how many of its rows were left out. */
static void
say_left_out(const struct load_page *page, struct load_page_line *heading)
{
    const struct load_page_line *end = page->lines + page->number;
    char text[40];

    for (const struct load_page_line *line = heading + 1; line < end && line->rows == 0; line++)
        heading->rows -= line->is_row;
    if (heading->rows == 0)
        return;
    snprintf(text, sizeof(text), "  (%u more: see --json)", heading->rows);
    append_page_text(heading, text);
}

static void
cut_blanks(char *text)
{
    size_t length = strlen(text);

    while (length > 0 && text[length - 1] == ' ')
        text[--length] = '\0';
}

void
load_page_print(struct load_page *page, FILE *out, unsigned lines, bool is_colored)
{
    static const char *const paints[] = {"", "\033[1;31m", "\033[32m", "\033[2m"};

    while (page->number > lines && leave_lightest_out(page))
        continue;
    for (unsigned i = 0; i < page->number && i < lines; i++) {
        struct load_page_line *line = &page->lines[i];
        bool is_painted = is_colored && line->paint != LOAD_PAINT_NONE;

        if (line->rows > 0)
            say_left_out(page, line);
        cut_blanks(line->text);
        load_clip(line->text, page->columns);
        fprintf(out, "%s%s%s\n", is_painted ? paints[line->paint] : "", line->text,
                is_painted ? "\033[0m" : "");
    }
}
