/* SPDX-License-Identifier: MIT
 *
 * What: a sheet: the lines of the summary before they are printed. Place: only the files of the
 * summary use it.
 *
 * Shape: a line is begun, filled word by word, and continued in an indented line when it is full.
 * Lines are printed in their order; if there is no room for all, the lightest are left out.
 */
#ifndef LOAD_SUMMARY_SHEET_H
#define LOAD_SUMMARY_SHEET_H

#include "summary.h"
#include "sxe-util.h"

#define LOAD_SHEET_LINES 96
/* the indentation of a line that continues the line before it, in columns */
#define LOAD_SHEET_INDENT 10

#define LOAD_SHEET_BAD_ROWS 4

/* The weight of a line: if the sheet is too long, all lines of the lowest weight are left out. */
enum load_weight {
    LOAD_WEIGHT_CONNECT,
    LOAD_WEIGHT_HINT,
    LOAD_WEIGHT_KINDS,
    LOAD_WEIGHT_FIRST_BYTE,
    LOAD_WEIGHT_OVER_TIME,
    LOAD_WEIGHT_PLOT,
    LOAD_WEIGHT_CLIENT,
    LOAD_WEIGHT_TIMES,
    /* for the headings of rows, which say how many rows are left out, and for rows with failures */
    LOAD_WEIGHT_ROWS,
    /* for the rows of stages, if there are few; if there are many, they have LOAD_WEIGHT_KINDS */
    LOAD_WEIGHT_STAGES,
    LOAD_WEIGHT_PROBE, /* for the line that says whether the probe can be trusted */
    LOAD_WEIGHT_SKIPPED,
    LOAD_WEIGHT_JUDGED,
    LOAD_WEIGHT_ERRORS,
    LOAD_WEIGHT_BANNER,
    LOAD_WEIGHT_2010
};

enum load_paint { LOAD_PAINT_NONE, LOAD_PAINT_BAD, LOAD_PAINT_GOOD, LOAD_PAINT_FAINT };

struct load_sheet_line {
    char text[LOAD_SUMMARY_COLUMNS * LOAD_SPARK_BYTES + 1];
    enum load_weight weight;
    enum load_paint paint;
    unsigned rows; /* for a heading: how many of the lines after it are its rows */
    bool is_row;
};

struct load_sheet {
    unsigned columns;
    unsigned number;
    unsigned bad_rows;
    struct load_sheet_line lines[LOAD_SHEET_LINES];
};

/* Make an empty sheet, which is as wide as the terminal that `out` is. */
void load_sheet_init(struct load_sheet *sheet, FILE *out);

void load_sheet_begin(struct load_sheet *sheet, enum load_weight weight, enum load_paint paint);

/* Begin a heading, which has `rows` rows. It will say how many of them were left out. */
void load_sheet_begin_heading(struct load_sheet *sheet, unsigned rows);

/* Begin a row of a heading. The first LOAD_SHEET_BAD_ROWS bad rows have the weight of the
 * heading. */
void load_sheet_begin_row(struct load_sheet *sheet, bool is_bad);

/* Add text to the last line, without a line break. */
void load_sheet_add(struct load_sheet *sheet, const char *format, ...) SXE_PRINTF(2, 3);

/* Add two blanks and an item, which is never split. If the line has no room for the item, begin
 * another line. */
void load_sheet_item(struct load_sheet *sheet, const char *format, ...) SXE_PRINTF(2, 3);

/* Add a sentence; a line may break at any of its blanks. */
void load_sheet_words(struct load_sheet *sheet, const char *text);

/* How many columns are free in the last line after two blanks. */
unsigned load_sheet_room(const struct load_sheet *sheet);

/* Print at most `lines` lines. */
void load_sheet_print(struct load_sheet *sheet, FILE *out, unsigned lines, bool is_colored);

/* ---- Parts of the summary ---- */

/* Add the lines about the run as a whole: a hint, how trials differ, noise of the machine,
 * thresholds, fan-out, the search for a rate; in summary-judge.c. */
void load_summary_judge(struct load_sheet *sheet, const struct load_run *run);

/* Add the rates of good replies over time. A mark separates the replies that came in the drain,
 * which is the time after the end in which the run waited for queries in flight. In
 * summary-time.c. */
void load_summary_over_time(struct load_sheet *sheet, const struct load_run *run);

/* Add how many TLS handshakes were full, resumed and refused; in summary-tls.c. */
void load_summary_tls(struct load_sheet *sheet, const struct load_result *total);

/* Add the number of sessions, for a scenario with steps; in summary-judge.c. */
void load_summary_sessions(struct load_sheet *sheet, const struct load_run *run);

#endif
