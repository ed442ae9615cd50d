/* SPDX-License-Identifier: MIT
 *
 * What: the run while it runs. On a terminal a few lines that are drawn again ten times a second:
 * rate, sparkline, percentiles, errors, sockets by state; elsewhere one line a second. Place: run.c
 * calls it with what the workers of one trial have counted so far; it writes to stderr.
 *
 * Shape: rate and percentiles are those of the last full second: the difference between two looks,
 * of which the earlier is kept. Colours unless NO_COLOR is set; never wider than the terminal.
 */
#ifndef LOAD_LIVE_H
#define LOAD_LIVE_H

#include <stdio.h>

#include "plan.h"
#include "result.h"

struct load_live;

/* NULL: no memory, or the plan is quiet; all other calls take NULL and do nothing. */
struct load_live *load_live_new(const struct load_plan *plan, FILE *err, bool is_terminal);

/* How long to wait before the next look, ns. */
uint64_t load_live_period_ns(const struct load_live *live);

/* sum: all workers at now_ns (CLOCK_MONOTONIC). */
void load_live_show(struct load_live *live, const struct load_result *sum, uint64_t now_ns);

/* Leave the terminal as it was: what stays is the summary. */
void load_live_delete(struct load_live *live);

#endif
