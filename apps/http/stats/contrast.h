/* SPDX-License-Identifier: MIT
 *
 * What: compares two sides, a and b, figure by figure over their trials: b is faster, b is slower,
 * or no difference is shown. Place: compare.c prints the result.
 *
 * Shape: all figures together have one confidence level. If N figures can be judged, the interval
 * of b/a of each one is wrong once in 20 * N comparisons. So in at most one of 20 comparisons any
 * interval is wrong (Bonferroni). A difference is shown only if the whole interval lies beyond the
 * minimum effect:
 *
 *     1 - effect     1     1 + effect
 *          |         |         |  [-------]   a time: slower; a rate: faster
 *          |         |   [--------]           no difference shown beyond the minimum
 *          |    [--------]     |              no difference shown
 *
 * If queries of a side failed, its times may be only lower bounds. Then this side can be shown to
 * be the slower one, and nothing else can be shown.
 *
 * If the middle of the interval is inside the noise that --aa measured, the difference does not
 * count, however narrow the interval is.
 *
 * Times and rates are those of good replies, so they say nothing about a server that gives none.
 * Failures are compared separately, by the number of requests that failed (share.h). b fails,
 * whatever the other figures say, if it has no good reply at all, or if it has trials without a
 * good reply, but a has none.
 */
#ifndef LOAD_CONTRAST_H
#define LOAD_CONTRAST_H

#include "run.h"
#include "share.h"

enum load_contrast_count {
    LOAD_CONTRAST_FAILED,   /* requests that failed, of the requests that were sent */
    LOAD_CONTRAST_UNSENT,   /* requests that were not sent, of the requests that were offered */
    LOAD_CONTRAST_UNOPENED, /* sockets that did not open, of all sockets */
    LOAD_CONTRAST_COUNTS
};

/* One side. values[figure] has one value for each trial that could tell the figure. */
struct load_contrast_side {
    unsigned trials;
    unsigned dead;                                  /* how many trials had no good reply */
    struct load_share counts[LOAD_CONTRAST_COUNTS]; /* the counts of all trials together */
    bool is_rate_given; /* whether the plan sets the rate, so that the rate is no result */
    /* the noise that --aa measured, as the logarithm of a ratio; 0: not known */
    double noise[LOAD_FIGURES];
    unsigned numbers[LOAD_FIGURES]; /* how many values each figure has */
    /* whether at least one of the values of a figure is only a lower bound */
    bool is_bound[LOAD_FIGURES];
    double values[LOAD_FIGURES][LOAD_TRIALS_MAX];
};

/* The verdict on one figure or count. Up to BOUND the figure is not judged, and the word says
 * why. */
enum load_contrast_word {
    /* the response time, which equals the service time, so it is not judged again */
    LOAD_CONTRAST_REPEATED,
    LOAD_CONTRAST_GIVEN, /* the plan sets the rate, so it is no result */
    /* some trials could not tell the figure, and the others are no fair sample */
    LOAD_CONTRAST_UNTOLD,
    LOAD_CONTRAST_UNKNOWN, /* there were too few trials */
    LOAD_CONTRAST_BOUND,   /* queries failed, so the time is only a lower bound */
    LOAD_CONTRAST_NONE,    /* no difference is shown */
    LOAD_CONTRAST_SMALL,   /* b differs, but perhaps by less than the minimum effect */
    LOAD_CONTRAST_NOISE,   /* the difference is within the noise that --aa measured */
    LOAD_CONTRAST_SLOWER,
    LOAD_CONTRAST_FASTER,
    LOAD_CONTRAST_MORE, /* only for counts: b has more of them */
    LOAD_CONTRAST_FEWER
};

struct load_contrast {
    unsigned judged; /* how many figures were judged */
    bool is_slower;  /* b is slower in at least one figure */
    bool is_dead;    /* b has no good reply at all, or has trials without one, but a has none */
    bool is_failing; /* b is dead, or one of its counts is MORE */
    enum load_contrast_word counts[LOAD_CONTRAST_COUNTS];
    enum load_contrast_word words[LOAD_FIGURES];
    double noise[LOAD_FIGURES]; /* the larger noise of the two sides, for each figure */
    struct load_interval ratios[LOAD_FIGURES];
};

/* Compare two sides. A min_effect of 0.02 is 2 %. */
void load_contrast(struct load_contrast *contrast, const struct load_contrast_side *a,
                   const struct load_contrast_side *b, double min_effect);

#endif
