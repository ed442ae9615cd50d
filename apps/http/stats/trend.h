/* SPDX-License-Identifier: MIT
 *
 * What: tells whether the server's figures changed during the measured time, for example because a
 * warm-up was not left out, or because of a leak or a growing backlog. Place: the summary and the
 * JSON use it for each result.
 *
 * Shape: the time line is cut into 40 windows of equal length. The figures are the mean and the p99
 * of response times and, in a closed loop, the rate of good replies. A figure has a trend if
 *
 *     it is shown     by the test of Mann and Kendall (see warmup.h): of the 780 pairs of windows,
 *                     the number that rise, less the number that fall, is more than 3 standard
 *                     deviations from 0. If neighbouring windows are correlated, as with a queue,
 *                     the variance is larger: by (1 + r) / (1 - r), where r is the correlation in
 *                     the second half.
 *     of weight       the means of the first and of the second half differ by more than 5 %.
 *
 * Simulated steady servers (test-http-trend.c) have a trend in less than 1 % of runs.
 *
 * Limits: only runs with a fixed time and a constant rate are judged. A run with fewer than 40
 * slices of the time line, or with fewer than 100 replies in a window (1,000 for p99), is not
 * judged.
 */
#ifndef LOAD_TREND_H
#define LOAD_TREND_H

#include "plan.h"
#include "result.h"

struct load_trend {
    const char *figure; /* "rate", "response.mean", "response.p99"; NULL: no trend was shown */
    /* the mean of the first four windows: per second (for all trials together), or in ns */
    double first;
    double last; /* the mean of the last four windows */
};

void load_trend_tell(struct load_trend *trend, const struct load_plan *plan,
                     const struct load_result *result);

#endif
