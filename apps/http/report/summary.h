/* SPDX-License-Identifier: MIT
 *
 * What: the report of a run for people. It has at most 20 lines of 100 columns, or 23 lines on a
 * narrower terminal. Errors come first, and every number has its name. Place: perform.c prints it
 * on stdout after the run.
 *
 * Shape: docs/load-generator.md explains a report line by line. Its last three lines are those of
 * the program of 2010. Each line has a weight; if there are too many, the lightest are left out.
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

#define LOAD_SUMMARY_LINES 20
/* how many more lines the report has on a narrower terminal: 23 lines of its 24 */
#define LOAD_SUMMARY_LINES_MORE 3
#define LOAD_SUMMARY_COLUMNS    100 /* the most columns that a line has */
/* the fewest columns, which the table needs even if the terminal has fewer */
#define LOAD_SUMMARY_COLUMNS_MIN 72

/* Print the plan in one to three lines: model, sockets and rate, request, workers. */
void load_summary_plan(FILE *out, const struct load_plan *plan);

/* When all sockets are open or have failed, print one to three lines about them. */
void load_summary_sockets(FILE *out, const struct load_result *result);

/* Print all other lines, at the end of the run. is_colored: use ANSI colours. */
void load_summary_print(FILE *out, const struct load_run *run, bool is_colored);

#endif
