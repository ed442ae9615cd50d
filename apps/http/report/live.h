/* SPDX-License-Identifier: MIT
 *
 * What: shows a run while it runs. On a terminal it redraws a few lines ten times a second: rate,
 * sparkline, percentiles, errors, sockets by state. If there is no terminal, it prints one line a
 * second. Place: the parent of the run calls it with the sum of the workers' counts in the present
 * trial; it writes to stderr.
 *
 * Shape: rate and percentiles are those of the last full second. They are computed from the
 * difference between the counts at its end and at its beginning. Colours are used unless NO_COLOR
 * is set. Lines are never wider than the terminal.
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

/* Show the figures. sum has the counts of all workers at the time now_ns (CLOCK_MONOTONIC). */
void load_live_show(struct load_live *live, const struct load_result *sum, uint64_t now_ns);

/* Remove the lines from the terminal, so that only the summary stays. */
void load_live_delete(struct load_live *live);

#endif
