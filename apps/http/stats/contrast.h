/* SPDX-License-Identifier: MIT
 *
 * What: compares two sides, a and b, figure by figure over their trials: is b faster, slower, or is
 * no difference shown. Place: compare.c prints it. Pure.
 *
 * Shape: one confidence level for all figures: with N figures that can be judged, each interval of
 * b/a is wrong once in 20 * N, so that any of them is wrong at most once in 20 (Bonferroni). A
 * difference is shown only if the whole interval lies beyond the minimum effect:
 *
 *     1 - effect     1     1 + effect
 *          |         |         |  [-------]   a time: slower; a rate: faster
 *          |         |   [--------]           no difference shown beyond the minimum
 *          |    [--------]     |              no difference shown
 *
 * Where queries failed, a side's times may be lower bounds. That side can be shown to be the slower
 * one, and nothing else.
 *
 * A difference whose middle is inside the noise of --aa is none, however narrow its interval is.
 *
 * Times and rates are those of good replies, so they say nothing about a server that gives none.
 * Failures are compared separately, request by request (share.h). If b has no good reply, or has
 * trials without one and a has no such trial, b fails, whatever the other figures say.
 */
#ifndef LOAD_CONTRAST_H
#define LOAD_CONTRAST_H

#include "run.h"
#include "share.h"

enum load_contrast_count {
    LOAD_CONTRAST_FAILED,   /* as a share of the requests that were sent */
    LOAD_CONTRAST_UNSENT,   /* as a share of the requests that were offered */
    LOAD_CONTRAST_UNOPENED, /* as a share of the sockets */
    LOAD_CONTRAST_COUNTS
};

/* One side. values[figure] has a value for each trial that has this figure. */
struct load_contrast_side {
    unsigned trials;
    unsigned dead;                                  /* how many trials had no good reply */
    struct load_share counts[LOAD_CONTRAST_COUNTS]; /* the sums over all trials */
    bool is_rate_given; /* whether the plan sets the rate, so that it is no result */
    /* the noise that --aa measured, as the logarithm of a ratio; 0: not known */
    double noise[LOAD_FIGURES];
    unsigned numbers[LOAD_FIGURES]; /* how many values each figure has */
    bool is_bound[LOAD_FIGURES];    /* whether at least one of the values is only a lower bound */
    double values[LOAD_FIGURES][LOAD_TRIALS_MAX];
};

/* The verdict on one figure or count. Up to BOUND the figure is not judged, and the word says
 * why. */
enum load_contrast_word {
    LOAD_CONTRAST_REPEATED, /* the response time equals the service time, which is judged already */
    LOAD_CONTRAST_GIVEN,    /* the plan sets the rate, so it is no result */
    LOAD_CONTRAST_UNTOLD,   /* some trials have no value, and the others are no fair sample */
    LOAD_CONTRAST_UNKNOWN,  /* there were too few trials */
    LOAD_CONTRAST_BOUND,    /* queries failed, so the time is only a lower bound */
    LOAD_CONTRAST_NONE,     /* no difference is shown */
    LOAD_CONTRAST_SMALL,    /* a difference is shown, but not that it exceeds the minimum effect */
    LOAD_CONTRAST_NOISE,    /* the difference is within the noise that --aa measured */
    LOAD_CONTRAST_SLOWER,
    LOAD_CONTRAST_FASTER,
    LOAD_CONTRAST_MORE, /* for counts: b has more of them; FEWER: b has fewer */
    LOAD_CONTRAST_FEWER
};

struct load_contrast {
    unsigned judged; /* how many figures were judged */
    bool is_slower;  /* b is slower in at least one figure */
    bool is_dead;    /* b has no good reply, or trials without one, and a has no such trial */
    bool is_failing; /* is_dead, or a count of b is MORE */
    enum load_contrast_word counts[LOAD_CONTRAST_COUNTS];
    enum load_contrast_word words[LOAD_FIGURES];
    double noise[LOAD_FIGURES]; /* the larger noise of the two sides */
    struct load_interval ratios[LOAD_FIGURES];
};

/* Compare two sides. A min_effect of 0.02 is 2 %. */
void load_contrast(struct load_contrast *contrast, const struct load_contrast_side *a,
                   const struct load_contrast_side *b, double min_effect);

#endif
