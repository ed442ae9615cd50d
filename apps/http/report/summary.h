/* SPDX-License-Identifier: MIT
 *
 * What: what a person reads at the end: at most 20 lines of 100 columns, on a narrower terminal 23
 * of as many as it has, errors first, every number with what it is of. Place: http.c prints it on
 * stdout, after run.c.
 *
 * Shape: docs/load-generator.md has one, explained line by line. Its last three lines are those of
 * 2010. Each line has a weight; where there are too many, the lightest are left out.
 *
 *     summary.c         the plan, the sockets, accounts, times, the client
 *     summary-judge.c   what was concluded: trials, thresholds, pages, the search for a rate
 *     summary-page.c    lines, their weights and colours
 */
#ifndef LOAD_SUMMARY_H
#define LOAD_SUMMARY_H

#include <stdio.h>

#include "run.h"
#include "text.h"

#define LOAD_SUMMARY_LINES       20
#define LOAD_SUMMARY_LINES_MORE  3   /* where it is narrower: a screen of 24 less one */
#define LOAD_SUMMARY_COLUMNS     100 /* or as many as a narrower terminal has, but not fewer than */
#define LOAD_SUMMARY_COLUMNS_MIN 72  /* the table takes */

/* The first line, or up to three: model, product, request, workers. */
void load_summary_plan(FILE *out, const struct load_plan *plan);

/* When the ramp is over: a line, or up to three. */
void load_summary_sockets(FILE *out, const struct load_result *result);

/* The rest, at the end; is_colored: ANSI colours. */
void load_summary_print(FILE *out, const struct load_run *run, bool is_colored);

#endif
