/* SPDX-License-Identifier: MIT
 *
 * What: computes confidence intervals from repeated trials: of the true median, with 95 %
 * confidence, and of the ratio of two sides. Place: used for the figures of trials, --until-ci,
 * --aa and compare.
 *
 * Shape: the values may have any distribution. Each value is a figure of one trial, not of one
 * request, because a single run does not show the differences between restarts. The interval of a
 * median lies between two of the sorted values, which the binomial distribution gives. Of n trials,
 * the interval from the smallest to the largest value contains the median with the probability 1 -
 * 2^(1-n), so fewer than LOAD_TRIALS_MIN trials are too few. The interval of a ratio a/b is that of
 * Hodges and Lehmann's shift between the logarithms, from the distribution of Mann and Whitney's U:
 * the exact distribution up to 400 pairs of values, and the normal approximation for more pairs.
 *
 * Limits: only the first LOAD_TRIALS_MAX values are used. Only one thread may call these functions.
 */
#ifndef LOAD_STATS_H
#define LOAD_STATS_H

#include <stdbool.h>

#define LOAD_TRIALS_MIN 6
#define LOAD_TRIALS_MAX 200

struct load_interval {
    double low;
    double middle; /* the median; of a ratio, its estimate */
    double high;
    /* whether low and high are an interval; if not, they are the smallest and the largest value */
    bool is_known;
};

/* A value that is NAN means that its trial cannot tell the figure. The other trials are no fair
 * sample, so low, middle and high become NAN, too. */

/* The interval of a median is known if there are at least LOAD_TRIALS_MIN values. The interval of a
 * ratio is known if each side has so many, all of them above 0. */
double load_stats_median(const double *values, unsigned number);
void load_stats_median_interval(struct load_interval *interval, const double *values,
                                unsigned number);
void load_stats_ratio_interval(struct load_interval *interval, const double *a, unsigned a_number,
                               const double *b, unsigned b_number);

/* The interval of the ratio a/b, as one of `family` intervals that are all right with 95 %
 * confidence. So each of them may be wrong with a probability of 5 % / family (Bonferroni). */
void load_stats_family_interval(struct load_interval *interval, const double *a, unsigned a_number,
                                const double *b, unsigned b_number, unsigned family);

/* The relative width of an interval, (high - low) / middle; 1 if the interval is not known. */
double load_stats_width(const struct load_interval *interval);

#endif
