/* SPDX-License-Identifier: MIT
 *
 * What: whether the server's figures changed during the measured time: by a warm-up that was not
 * left out, a leak, a growing backlog. Place: the summary and the JSON ask for each result. Pure.
 *
 * Shape: the time line is cut into 40 windows of equal length. The figures are the mean and the p99
 * of response times and, in a closed loop, the rate of good replies. A figure has a trend if
 *
 *     it is shown     by the test of Mann and Kendall (see warmup.h): of the 780 pairs of windows,
 *                     those that rise less those that fall are more than 3 deviations from 0.
 *                     Where neighbours are correlated, as with a queue, the variance is larger:
 *                     by (1 + r) / (1 - r), where r is the correlation in the second half.
 *     of weight       the means of the first and of the second half differ by more than 5 %.
 *
 * Simulated steady servers (test-http-trend.c) have a trend in less than 1 % of runs.
 *
 * Limits: runs of a fixed time and rate only. A run with fewer than 40 slices of the time line, or
 * with fewer than 100 replies in a window (1,000 for p99), is not judged.
 */
#ifndef LOAD_TREND_H
#define LOAD_TREND_H

#include "plan.h"
#include "result.h"

struct load_trend {
    const char *figure; /* "rate", "response.mean", "response.p99"; NULL: no trend was shown */
    double first; /* the mean of the first four windows: per second (of all trials), or in ns */
    double last;  /* the mean of the last four windows */
};

void load_trend_tell(struct load_trend *trend, const struct load_plan *plan,
                     const struct load_result *result);

#endif
