/* SPDX-License-Identifier: MIT
 *
 * What: tells whether a server is warm, which it is when its figures have no trend. Place: for
 * --warmup auto, run-warmup.c asks after each window, which is a short time.
 *
 * Shape: each window has three figures: the rate of good replies, and the mean and the p99 of
 * response times. Only the last ten windows are judged, so earlier ones do not count, however slow
 * they were:
 *
 *     window     1  2  3  4  5  6  7  8  9 10 11 12 13 ...
 *     p99       90 70 31 12  5  4  6  4  5  6  5  4  5
 *               '--------- falls ----------'
 *                        '----- no trend: warm -----'
 *
 * A figure has a trend if both are true:
 *     shown      by the test of Mann (Econometrica 13, 1945) and Kendall: of the 45 pairs of
 *                windows, the number that rise, less the number that fall, is at least 23 or at
 *                most -23. That happens in 4.7 % of series without a trend. The test only asks
 *                which of two windows is larger, so it holds for noise of any distribution, and a
 *                single window in which the server was stopped decides nothing. Equal windows count
 *                as neither, so with them the test shows a trend more rarely.
 *     of weight  the means of the first and of the last five windows differ by more than 2 % of the
 *                mean. Figures that vary less are called steady by Georges, Buytaert and Eeckhout
 *                (OOPSLA 2007).
 *
 * Limits: a trend that is smaller than the noise of ten windows is not seen. After ten windows
 * without a trend the server counts as warm, even if a trend begins later.
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

/* Add a window that took ns, with `ok` good replies and these response times. False: there are too
 * few replies, and the caller has to continue the window. */
bool load_warmup_add(struct load_warmup *warmup, uint64_t ns, uint64_t ok,
                     const struct load_histogram *response);

/* Why the server is not warm, as a static text; NULL: no figure has a trend. */
const char *load_warmup_problem(const struct load_warmup *warmup);

#endif
