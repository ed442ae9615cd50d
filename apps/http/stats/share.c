/* SPDX-License-Identifier: MIT
 *
 * Comparing shares by the binomial distribution.
 */
#include "share.h"

#include <math.h>

/* the largest probability of saying "more" by mistake, if both sides are alike */
#define CHANCE 0.005

/* P(X >= k) for X ~ Binomial(n, q). k must be above the mean, so that the terms become smaller. */
static double
tail_of(double n, double k, double q)
{
    double term =
        exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(q) + (n - k) * log1p(-q));
    double sum = 0;

    while (term > sum * 1e-9) {
        sum += term;
        term *= (n - k) / (k + 1) * q / (1 - q);
        k++;
    }
    return sum;
}

double
load_share_of(const struct load_share *share)
{
    return share->whole > 0 ? share->part / share->whole : 0;
}

bool
load_share_is_more(const struct load_share *than, const struct load_share *share, double effect)
{
    double whole = share->whole * (1 + effect);
    double all = than->part + share->part;
    double expected = whole / (than->whole + whole);

    if (!(than->whole > 0) || !(share->whole > 0) || share->part <= all * expected)
        return false;
    return tail_of(all, share->part, expected) < CHANCE;
}
