/* SPDX-License-Identifier: MIT
 *
 * What: how many of many, and whether one side has more than another: failures, requests that were
 * not sent, sockets that did not open. Place: contrast.c. Pure.
 *
 * Shape: if both sides are alike, each one that was counted on either is as likely b's as b's part
 * of the whole. So many or more of them are b's with a binomial probability, which is exact for
 * shares that are small, and too large, so cautious, for large ones. "More" is said below 0.5 %.
 *
 *     a  0 of 4000     b  7 of 4000     0.5^7 = 0.8 %    chance does that
 *     a  0 of 4000     b  8 of 4000     0.5^8 = 0.4 %    more
 *
 * Limits: each one counts by itself, so a burst of failures on one side is more.
 */
#ifndef LOAD_SHARE_H
#define LOAD_SHARE_H

#include <stdbool.h>

struct load_share {
    double part;
    double whole; /* 0: nothing is known */
};

double load_share_of(const struct load_share *share); /* 0 to 1 */

/* More, by more than that part of it. */
bool load_share_is_more(const struct load_share *than, const struct load_share *share,
                        double effect);

#endif
