/* SPDX-License-Identifier: MIT
 *
 * What: confidence intervals from repeated trials: of the true median with 95 % confidence, and of
 * the ratio of two sides. Place: trials, --until-ci, --aa, compare. Pure.
 *
 * Shape: distribution-free. The values are one figure of each trial (never of each request: a
 * single run does not show the differences between restarts). The interval of a median is between
 * two order statistics, by the binomial distribution; with n trials min..max covers the median with
 * 1 - 2^(1-n), so fewer than LOAD_TRIALS_MIN are too few. The interval of a ratio a/b is that of
 * Hodges and Lehmann's shift on the logarithms, from the distribution of Mann and Whitney's U: the
 * exact one up to 400 pairs, the normal approximation above.
 *
 * Limits: the first LOAD_TRIALS_MAX values are used. One thread.
 */
#ifndef LOAD_STATS_H
#define LOAD_STATS_H

#include <stdbool.h>

#define LOAD_TRIALS_MIN 6
#define LOAD_TRIALS_MAX 200

struct load_interval {
    double low;
    double middle; /* the median, or the estimate of the ratio */
    double high;
    bool is_known; /* whether low and high are an interval; if not, they are the extremes */
};

/* A NAN value means that its trial cannot tell the figure. The trials that can tell it are no fair
 * sample, so then low, middle and high are NAN, too. */

/* Intervals are known from LOAD_TRIALS_MIN values on; of a ratio, with that many on each side, all
 * of them above 0. */
double load_stats_median(const double *values, unsigned number);
void load_stats_median_interval(struct load_interval *interval, const double *values,
                                unsigned number);
void load_stats_ratio_interval(struct load_interval *interval, const double *a, unsigned a_number,
                               const double *b, unsigned b_number);

/* The interval of the ratio a/b as one of `family` intervals that all hold together with 95 %
 * confidence: each is wrong with a probability of 5 % / family (Bonferroni). */
void load_stats_family_interval(struct load_interval *interval, const double *a, unsigned a_number,
                                const double *b, unsigned b_number, unsigned family);

/* The width of an interval, (high - low) / middle; 1 if it is not known. */
double load_stats_width(const struct load_interval *interval);

#endif
