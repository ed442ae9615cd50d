/* SPDX-License-Identifier: MIT
 *
 * What: the run while it runs. On a terminal a few lines that are drawn again ten times a second:
 * rate, sparkline, percentiles, errors, sockets by state; elsewhere one line a second. Place: run.c
 * calls it with what the workers of one trial have counted so far; it writes to stderr.
 *
 * Shape: rate and percentiles are those of the last full second: the difference between two looks,
 * of which the earlier is kept. Colours unless NO_COLOR is set; never wider than the terminal.
 */
#ifndef HTTP_LIVE_H
#define HTTP_LIVE_H

#include <stdio.h>

#include "plan.h"
#include "result.h"

struct http_live;

/* NULL: no memory, or the plan is quiet; all other calls take NULL and do nothing. */
struct http_live *http_live_new(const struct http_plan *plan, FILE *err, bool is_terminal);

/* How long to wait before the next look, ns. */
uint64_t http_live_period_ns(const struct http_live *live);

/* sum: all workers at now_ns (CLOCK_MONOTONIC). */
void http_live_show(struct http_live *live, const struct http_result *sum, uint64_t now_ns);

/* Leave the terminal as it was: what stays is the summary. */
void http_live_delete(struct http_live *live);

#endif
