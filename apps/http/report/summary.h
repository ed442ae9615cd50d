/* SPDX-License-Identifier: MIT
 *
 * What: the report of a run for people: at most 20 lines of 100 columns, or 23 lines on a narrower
 * terminal; errors first, every number with its name. Place: http.c prints it on stdout, after
 * run.c.
 *
 * Shape: docs/load-generator.md explains one line by line. Its last three lines are those of the
 * program of 2010. Each line has a weight; if there are too many, the lightest are left out.
 *
 *     summary.c         the plan, the sockets, accounts, times, the client
 *     summary-judge.c   conclusions: trials, thresholds, fan-out, the search for a rate
 *     summary-sheet.c    lines, their weights and colours
 */
#ifndef LOAD_SUMMARY_H
#define LOAD_SUMMARY_H

#include <stdio.h>

#include "run.h"
#include "text.h"

#define LOAD_SUMMARY_LINES       20
#define LOAD_SUMMARY_LINES_MORE  3 /* how many lines more a narrower terminal gets: 23 of its 24 */
#define LOAD_SUMMARY_COLUMNS     100 /* most columns; a narrower terminal has fewer */
#define LOAD_SUMMARY_COLUMNS_MIN 72  /* fewest columns, because the table needs them */

/* Print the plan in one to three lines: model, sockets and rate, request, workers. */
void load_summary_plan(FILE *out, const struct load_plan *plan);

/* Print the sockets in one to three lines, when all are open or have failed. */
void load_summary_sockets(FILE *out, const struct load_result *result);

/* Print the other lines, at the end of the run; is_colored: with ANSI colours. */
void load_summary_print(FILE *out, const struct load_run *run, bool is_colored);

#endif
