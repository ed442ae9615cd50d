/* SPDX-License-Identifier: MIT
 *
 * What: what repeated measurements allow to say: intervals that hold the true median with 95 %
 * confidence, and whether one of two is faster. Place: trials, --until-ci, --aa, compare. Pure.
 *
 * Shape: distribution-free. The values are one figure of each trial (never of each request: what
 * differs between restarts does not show inside a run). The interval of a median is from one order
 * statistic to another, after the binomial distribution; with n trials min..max covers it with
 * 1 - 2^(1-n), so fewer than LOAD_TRIALS_MIN say nothing. The interval of a ratio a/b is that of
 * Hodges and Lehmann's shift on the logarithms, from the distribution of Mann and Whitney's U: the
 * exact one up to 400 pairs, the normal one above.
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
    bool is_known; /* if not, low and high are the extremes */
};

/* A value that is NAN is one that a trial cannot tell. Which trials can is no chance, so nothing is
 * said of the others alone: low, middle and high are NAN, too. */

/* Intervals are known from LOAD_TRIALS_MIN values on; of a ratio, that many on each side, and all
 * of them above 0. */
double load_stats_median(const double *values, unsigned number);
void load_stats_median_interval(struct load_interval *interval, const double *values,
                                unsigned number);
void load_stats_ratio_interval(struct load_interval *interval, const double *a, unsigned a_number,
                               const double *b, unsigned b_number);

/* One of a family of so many intervals, all of which hold with 95 % confidence together: each is
 * wrong with a probability of 5 % divided by their number (Bonferroni). */
void load_stats_family_interval(struct load_interval *interval, const double *a, unsigned a_number,
                                const double *b, unsigned b_number, unsigned family);

/* (high - low) / middle; 1 if it is not known. */
double load_stats_width(const struct load_interval *interval);

#endif
