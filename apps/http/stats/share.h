/* SPDX-License-Identifier: MIT
 *
 * What: shares (such as 7 of 4000), and whether one side's is larger than the other's: failures,
 * requests that were not sent, sockets that did not open. Place: contrast.c. Pure.
 *
 * Shape: if both sides are alike, each counted failure is b's with the probability b's whole / (a's
 * whole + b's whole). So the number of b's failures has a binomial distribution: exact for small
 * shares, cautious for large ones. b has "more" if the probability of so many or more is less than
 * 0.5 %.
 *
 *     a  0 of 4000     b  7 of 4000     0.5^7 = 0.8 %    chance does that
 *     a  0 of 4000     b  8 of 4000     0.5^8 = 0.4 %    more
 *
 * Limits: failures are taken as independent, so one burst of failures on a side is "more".
 */
#ifndef LOAD_SHARE_H
#define LOAD_SHARE_H

#include <stdbool.h>

struct load_share {
    double part;
    double whole; /* the whole; 0: nothing is known */
};

double load_share_of(const struct load_share *share); /* the share as a fraction, 0 to 1 */

/* Whether `share` is shown to be more than `than` times (1 + effect). */
bool load_share_is_more(const struct load_share *than, const struct load_share *share,
                        double effect);

#endif
