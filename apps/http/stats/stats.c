/* SPDX-License-Identifier: MIT
 *
 * Confidence intervals of medians and of ratios.
 */
#include "stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TAIL      0.025 /* the probability that the true value lies beyond one end of an interval */
#define EXACT_MAX 400   /* up to so many pairs the exact distribution of U is computed */
/* sqrt(EXACT_MAX): the most values that the smaller side can have if there are EXACT_MAX pairs */
#define SMALLER 20

static int
by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static void
sort_values(double *values, unsigned number)
{
    qsort(values, number, sizeof(values[0]), by_value);
}

/* Copy as many values as fit, and sort them. Returns how many. */
static unsigned
sorted_copy(double *sorted, const double *values, unsigned number)
{
    unsigned used = number < LOAD_TRIALS_MAX ? number : LOAD_TRIALS_MAX;

    memcpy(sorted, values, used * sizeof(values[0]));
    sort_values(sorted, used);
    return used;
}

static double
middle_of(const double *sorted, unsigned number)
{
    return number == 0 ? 0 : (sorted[(number - 1) / 2] + sorted[number / 2]) / 2;
}

static bool
are_told(const double *values, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        if (isnan(values[i]))
            return false;
    return true;
}

double
load_stats_median(const double *values, unsigned number)
{
    double sorted[LOAD_TRIALS_MAX];
    unsigned used = sorted_copy(sorted, values, number);

    return middle_of(sorted, used);
}

/* How many of the sorted values at each end lie outside of the interval: as many as the tail of
 * Binomial(number, 1/2) allows; -1: there are too few values for an interval. */
static int
outside_median(unsigned number)
{
    double probability = ldexp(1, -(int)number);
    double tail = 0;
    int outside = -1;

    while (tail + probability <= TAIL) {
        tail += probability;
        outside++;
        probability *= (number - (unsigned)outside) / (outside + 1.);
    }
    return outside;
}

void
load_stats_median_interval(struct load_interval *interval, const double *values, unsigned number)
{
    double sorted[LOAD_TRIALS_MAX];
    unsigned used = sorted_copy(sorted, values, number);
    int outside = outside_median(used);
    unsigned first = outside > 0 ? (unsigned)outside : 0;

    if (!are_told(values, used)) {
        *interval = (struct load_interval){(double)NAN, (double)NAN, (double)NAN, false};
        return;
    }
    *interval = (struct load_interval){.is_known = outside >= 0};
    if (used == 0)
        return;
    interval->low = sorted[first];
    interval->middle = middle_of(sorted, used);
    interval->high = sorted[used - 1 - first];
}

/* How many of the sorted ratios at each end lie outside of the interval, by the test of Mann and
 * Whitney. U is the number of pairs in which a's value is larger than b's. If a and b do not
 * differ, its distribution is known. chance[j][u] is the probability of U = u if one side has i
 * values and the other has j. It is computed from the probabilities with one value less, because
 * the largest of all values belongs to one side or to the other. */
static int
outside_exact(unsigned a_number, unsigned b_number, double most)
{
    static double chance[SMALLER + 1][EXACT_MAX + 1];
    unsigned smaller = a_number < b_number ? a_number : b_number;
    unsigned larger = a_number < b_number ? b_number : a_number;
    double tail = 0;
    int outside = -1;

    memset(chance, 0, sizeof(chance));
    for (unsigned j = 0; j <= smaller; j++)
        chance[j][0] = 1;
    for (unsigned i = 1; i <= larger; i++)
        for (unsigned j = 1; j <= smaller; j++)
            for (unsigned u = i * j + 1; u-- > 0;)
                chance[j][u] =
                    (i * (u >= j ? chance[j][u - j] : 0) + j * chance[j - 1][u]) / (i + j);
    while (tail + chance[smaller][outside + 1] <= most)
        tail += chance[smaller][++outside];
    return outside;
}

/* How many standard deviations from the mean of a normal distribution leave the probability `tail`
 * on each side. */
static double
deviations_of(double tail)
{
    double low = 0, high = 10;

    for (unsigned i = 0; i < 50; i++) {
        double middle = (low + high) / 2;

        if (erfc(middle / sqrt(2)) / 2 > tail)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Like outside_exact, but computed with the normal approximation. Below 0 if a side has very few
 * values. */
static int
outside_normal(unsigned a_number, unsigned b_number, double most)
{
    double pairs = (double)a_number * b_number;
    double deviation = sqrt(pairs * (a_number + b_number + 1) / 12);

    return (int)floor(pairs / 2 - deviations_of(most) * deviation - 0.5);
}

/* The ratio of two figures. Equal figures have the ratio 1, even if both are 0. */
static double
ratio_of(double a, double b)
{
    return a == b ? 1 : fmin(a / b, DBL_MAX);
}

/* Whether there are enough values, all above 0, because a ratio to 0 has no meaning. */
static bool
are_enough(const double *values, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        if (!(values[i] > 0))
            return false;
    return number >= LOAD_TRIALS_MIN;
}

void
load_stats_ratio_interval(struct load_interval *interval, const double *a, unsigned a_number,
                          const double *b, unsigned b_number)
{
    load_stats_family_interval(interval, a, a_number, b, b_number, 1);
}

void
load_stats_family_interval(struct load_interval *interval, const double *a, unsigned a_number,
                           const double *b, unsigned b_number, unsigned family)
{
    static double ratios[LOAD_TRIALS_MAX * LOAD_TRIALS_MAX];
    unsigned a_used = a_number < LOAD_TRIALS_MAX ? a_number : LOAD_TRIALS_MAX;
    unsigned b_used = b_number < LOAD_TRIALS_MAX ? b_number : LOAD_TRIALS_MAX;
    unsigned pairs = 0, first;
    int outside;

    for (unsigned i = 0; i < a_used; i++)
        for (unsigned j = 0; j < b_used; j++)
            ratios[pairs++] = ratio_of(a[i], b[j]);
    *interval = (struct load_interval){.is_known = are_enough(a, a_used) && are_enough(b, b_used)};
    if (pairs == 0)
        return;
    if (!are_told(a, a_used) || !are_told(b, b_used)) {
        *interval = (struct load_interval){(double)NAN, (double)NAN, (double)NAN, false};
        return;
    }
    sort_values(ratios, pairs);
    outside = pairs <= EXACT_MAX ? outside_exact(a_used, b_used, TAIL / family)
                                 : outside_normal(a_used, b_used, TAIL / family);
    interval->is_known = interval->is_known && outside >= 0;
    first = interval->is_known ? (unsigned)outside : 0;
    interval->low = ratios[first];
    interval->middle = sqrt(ratios[(pairs - 1) / 2]) * sqrt(ratios[pairs / 2]);
    interval->high = ratios[pairs - 1 - first];
}

double
load_stats_width(const struct load_interval *interval)
{
    return interval->is_known && interval->middle > 0
               ? (interval->high - interval->low) / interval->middle
               : 1;
}
