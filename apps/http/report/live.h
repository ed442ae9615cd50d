/* SPDX-License-Identifier: MIT
 *
 * What: shows a run while it runs. On a terminal a few lines that are redrawn ten times a second:
 * rate, sparkline, percentiles, errors, sockets by state; elsewhere one line a second. Place: run.c
 * calls it with the counts of one trial's workers so far; it writes to stderr.
 *
 * Shape: rate and percentiles are those of the last full second: the difference between the counts
 * now and those a second ago, which are kept. Colours unless NO_COLOR is set; lines never wider
 * than the terminal.
 */
#ifndef LOAD_LIVE_H
#define LOAD_LIVE_H

#include <stdio.h>

#include "plan.h"
#include "result.h"

struct load_live;

/* Make a live view. NULL: no memory, or the plan is quiet. All other calls do nothing if live is
 * NULL. */
struct load_live *load_live_new(const struct load_plan *plan, FILE *err, bool is_terminal);

/* How many ns to wait between two calls of load_live_show. */
uint64_t load_live_period_ns(const struct load_live *live);

/* Show the figures. sum: the counts of all workers at now_ns (CLOCK_MONOTONIC). */
void load_live_show(struct load_live *live, const struct load_result *sum, uint64_t now_ns);

/* Remove the lines from the terminal, so that only the summary stays. */
void load_live_delete(struct load_live *live);

#endif
