/* SPDX-License-Identifier: MIT
 *
 * What: the lines of the summary before they are printed. Place: only the summary's sources.
 *
 * Shape: a line is begun, filled word by word, and goes on in a next one, indented, when it is
 * full. The lines are printed in their order; where not all have room, the lightest are left out.
 */
#ifndef HTTP_SUMMARY_PAGE_H
#define HTTP_SUMMARY_PAGE_H

#include "summary.h"
#include "sxe-util.h"

#define HTTP_PAGE_LINES  96
#define HTTP_PAGE_INDENT 10 /* of what goes on in the next line */

/* What stays where not all has room: of the lightest weight every line is left out. */
enum http_weight {
    HTTP_WEIGHT_CONNECT,
    HTTP_WEIGHT_HINT,
    HTTP_WEIGHT_KINDS,
    HTTP_WEIGHT_FIRST_BYTE,
    HTTP_WEIGHT_OVER_TIME,
    HTTP_WEIGHT_PLOT,
    HTTP_WEIGHT_CLIENT,
    HTTP_WEIGHT_TIMES,
    HTTP_WEIGHT_STAGES, /* if they are few */
    HTTP_WEIGHT_PROBE,  /* how far to believe it */
    HTTP_WEIGHT_SKIPPED,
    HTTP_WEIGHT_JUDGED,
    HTTP_WEIGHT_ERRORS,
    HTTP_WEIGHT_BANNER,
    HTTP_WEIGHT_2010
};

enum http_paint { HTTP_PAINT_NONE, HTTP_PAINT_BAD, HTTP_PAINT_GOOD, HTTP_PAINT_FAINT };

struct http_page_line {
    char text[HTTP_SUMMARY_COLUMNS * HTTP_SPARK_BYTES + 1];
    enum http_weight weight;
    enum http_paint paint;
};

struct http_page {
    unsigned columns;
    unsigned number;
    struct http_page_line lines[HTTP_PAGE_LINES];
};

/* Empty, and as wide as it can be seen there. */
void http_page_init(struct http_page *page, FILE *out);

void http_page_begin(struct http_page *page, enum http_weight weight, enum http_paint paint);

/* Add to it as it is. */
void http_page_add(struct http_page *page, const char *format, ...) SXE_PRINTF(2, 3);

/* Add two blanks and this, which is never cut in two; in the next line if there is no room. */
void http_page_item(struct http_page *page, const char *format, ...) SXE_PRINTF(2, 3);

/* Add a sentence, which may be cut at any blank. */
void http_page_words(struct http_page *page, const char *text);

/* So many columns are free in the last line, after two blanks. */
unsigned http_page_room(const struct http_page *page);

/* Print at most that many lines. */
void http_page_print(struct http_page *page, FILE *out, unsigned lines, bool is_colored);

/* ---- Parts of the summary ---- */

/* A hint, trials, noise, thresholds, pages, the search for a rate; in summary-judge.c. */
void http_summary_judge(struct http_page *page, const struct http_run *run);

/* Good replies over time, those of the drain after a mark; in summary-time.c. */
void http_summary_over_time(struct http_page *page, const struct http_run *run);

/* Of a scenario with steps, how many sessions there were; in summary-judge.c. */
void http_summary_sessions(struct http_page *page, const struct http_run *run);

#endif
