/* SPDX-License-Identifier: MIT
 *
 * What: compares shares, such as 7 of 4000, of two sides: which side has the larger share of
 * failures, of requests that were not sent, or of sockets that did not open. Place: contrast.c uses
 * it.
 *
 * Shape: if both sides are alike, a failure is one of b with the probability (b's whole) / (a's
 * whole + b's whole). So the number of b's failures has a binomial distribution. (For large shares
 * this test says "more" too rarely.) b has "more" if the probability of at least so many failures
 * is less than 0.5 %.
 *
 *     a  0 of 4000     b  7 of 4000     0.5^7 = 0.8 %    chance does that
 *     a  0 of 4000     b  8 of 4000     0.5^8 = 0.4 %    more
 *
 * Limits: the test assumes that failures are independent, so a single burst of failures may count
 * as "more".
 */
#ifndef LOAD_SHARE_H
#define LOAD_SHARE_H

#include <stdbool.h>

struct load_share {
    double part;
    double whole; /* the number of which `part` is a part; 0: nothing is known */
};

double load_share_of(const struct load_share *share); /* the share as a fraction, from 0 to 1 */

/* Whether it is shown that `share` is more than `than` times (1 + effect). */
bool load_share_is_more(const struct load_share *than, const struct load_share *share,
                        double effect);

#endif
