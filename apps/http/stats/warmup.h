/* SPDX-License-Identifier: MIT
 *
 * What: whether a server is warm: whether its figures still have a trend. Place: run-warmup.c asks
 * for --warmup auto, after each window of time.
 *
 * Shape: of each window the rate of good replies, and the mean and the p99 of response times. Only
 * the last ten windows are judged, so earlier ones, however slow, do not count:
 *
 *     window     1  2  3  4  5  6  7  8  9 10 11 12 13 ...
 *     p99       90 70 31 12  5  4  6  4  5  6  5  4  5
 *               '--------- falls ----------'
 *                        '----- no trend: warm -----'
 *
 * A figure has a trend if both are true:
 *     shown      by the test of Mann (Econometrica 13, 1945) and Kendall: of the 45 pairs of
 *                windows those that rise, less those that fall, are 23 or more, or -23 or fewer,
 *                as in 4.7 % of series without a trend. It asks only which of two is larger, so it
 *                holds for noise of any distribution, and one window in which the server stood
 *                still decides nothing. Equal ones count as neither, which makes it say less.
 *     of weight  the means of the first and of the last five windows differ by more than 2 % of
 *                the mean. Georges, Buytaert and Eeckhout (OOPSLA 2007) call what varies by less
 *                steady.
 *
 * Limits: a trend that is smaller than the noise of ten windows is not seen, nor one that begins
 * after ten windows without a trend.
 */
#ifndef LOAD_WARMUP_H
#define LOAD_WARMUP_H

#include "histogram.h"

#define LOAD_WARMUP_WINDOWS 10
/* how many good replies a window needs, so that one may be beyond its p99 */
#define LOAD_WARMUP_REPLIES 100

enum load_warmup_figure {
    LOAD_WARMUP_RATE,
    LOAD_WARMUP_MEAN,
    LOAD_WARMUP_P99,
    LOAD_WARMUP_FIGURES
};

/* Begin with a struct of zeros. */
struct load_warmup {
    unsigned number; /* how many windows are kept */
    /* the figures of the windows, the latest one last */
    double figures[LOAD_WARMUP_FIGURES][LOAD_WARMUP_WINDOWS];
};

/* Add a window that took ns, with `ok` good replies and these response times. False: the replies
 * are too few; the caller continues the window. */
bool load_warmup_add(struct load_warmup *warmup, uint64_t ns, uint64_t ok,
                     const struct load_histogram *response);

/* Why the server is not warm, as a static text; NULL: no figure has a trend. */
const char *load_warmup_problem(const struct load_warmup *warmup);

#endif
