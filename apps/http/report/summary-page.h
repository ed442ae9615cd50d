/* SPDX-License-Identifier: MIT
 *
 * What: the lines of the summary before they are printed. Place: only the summary's sources.
 *
 * Shape: a line is begun, filled word by word, and goes on in a next one, indented, when it is
 * full. The lines are printed in their order; where not all have room, the lightest are left out.
 */
#ifndef LOAD_SUMMARY_PAGE_H
#define LOAD_SUMMARY_PAGE_H

#include "summary.h"
#include "sxe-util.h"

#define LOAD_PAGE_LINES  96
#define LOAD_PAGE_INDENT 10 /* of what goes on in the next line */

/* The weight of a line: if the page is too long, all lines of the lowest weight are left out. */
enum load_weight {
    LOAD_WEIGHT_CONNECT,
    LOAD_WEIGHT_HINT,
    LOAD_WEIGHT_KINDS,
    LOAD_WEIGHT_FIRST_BYTE,
    LOAD_WEIGHT_OVER_TIME,
    LOAD_WEIGHT_PLOT,
    LOAD_WEIGHT_CLIENT,
    LOAD_WEIGHT_TIMES,
    LOAD_WEIGHT_STAGES, /* if they are few */
    LOAD_WEIGHT_PROBE,  /* how far to believe it */
    LOAD_WEIGHT_SKIPPED,
    LOAD_WEIGHT_JUDGED,
    LOAD_WEIGHT_ERRORS,
    LOAD_WEIGHT_BANNER,
    LOAD_WEIGHT_2010
};

enum load_paint { LOAD_PAINT_NONE, LOAD_PAINT_BAD, LOAD_PAINT_GOOD, LOAD_PAINT_FAINT };

struct load_page_line {
    char text[LOAD_SUMMARY_COLUMNS * LOAD_SPARK_BYTES + 1];
    enum load_weight weight;
    enum load_paint paint;
};

struct load_page {
    unsigned columns;
    unsigned number;
    struct load_page_line lines[LOAD_PAGE_LINES];
};

/* Empty, and as wide as it can be seen there. */
void load_page_init(struct load_page *page, FILE *out);

void load_page_begin(struct load_page *page, enum load_weight weight, enum load_paint paint);

/* Add to it as it is. */
void load_page_add(struct load_page *page, const char *format, ...) SXE_PRINTF(2, 3);

/* Add two blanks and this, which is never cut in two; in the next line if there is no room. */
void load_page_item(struct load_page *page, const char *format, ...) SXE_PRINTF(2, 3);

/* Add a sentence, which may be cut at any blank. */
void load_page_words(struct load_page *page, const char *text);

/* So many columns are free in the last line, after two blanks. */
unsigned load_page_room(const struct load_page *page);

/* Print at most that many lines. */
void load_page_print(struct load_page *page, FILE *out, unsigned lines, bool is_colored);

/* ---- Parts of the summary ---- */

/* A hint, trials, noise, thresholds, pages, the search for a rate; in summary-judge.c. */
void load_summary_judge(struct load_page *page, const struct load_run *run);

/* Good replies over time, those of the drain after a mark; in summary-time.c. */
void load_summary_over_time(struct load_page *page, const struct load_run *run);

/* Of a scenario with steps, how many sessions there were; in summary-judge.c. */
void load_summary_sessions(struct load_page *page, const struct load_run *run);

#endif
