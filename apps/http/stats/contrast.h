/* SPDX-License-Identifier: MIT
 *
 * What: what the trials of two sides, a and b, say of each figure: is b faster, slower, or is no
 * difference shown. Place: compare.c prints it. Pure.
 *
 * Shape: one level for the family: with N figures that can be judged, each interval of b/a is wrong
 * once in 20 * N, so that all of them together are wrong at most once in 20 (Bonferroni). A word is
 * said only of an interval that lies beyond the minimum effect, as a whole:
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
 * Times and rates are those of good replies, so they say nothing of a server that gives none. What
 * failed is compared for itself, with each request counted (share.h), and a b without a good reply
 * has failed whatever else is said.
 */
#ifndef LOAD_CONTRAST_H
#define LOAD_CONTRAST_H

#include "run.h"
#include "share.h"

enum load_contrast_count {
    LOAD_CONTRAST_FAILED,   /* of the requests that were sent */
    LOAD_CONTRAST_UNSENT,   /* of those that were offered */
    LOAD_CONTRAST_UNOPENED, /* of the sockets */
    LOAD_CONTRAST_COUNTS
};

/* One side: a figure's values, one of each trial that tells it. */
struct load_contrast_side {
    unsigned trials;
    unsigned dead;                                  /* of these: without a good reply */
    struct load_share counts[LOAD_CONTRAST_COUNTS]; /* of all trials together */
    bool is_rate_given;                             /* and so no result */
    double noise[LOAD_FIGURES]; /* logarithms of the ratios that are no difference; 0: not known */
    unsigned numbers[LOAD_FIGURES];
    bool is_bound[LOAD_FIGURES]; /* one of its values at least is only a lower bound */
    double values[LOAD_FIGURES][LOAD_TRIALS_MAX];
};

enum load_contrast_word {
    LOAD_CONTRAST_REPEATED, /* response time is service time: it is judged there */
    LOAD_CONTRAST_GIVEN,
    LOAD_CONTRAST_UNTOLD,  /* n/a in a trial, so which trials tell it is no chance */
    LOAD_CONTRAST_UNKNOWN, /* too few trials */
    LOAD_CONTRAST_BOUND,   /* queries failed: a time is only a lower bound, and may be any longer */
    LOAD_CONTRAST_NONE,
    LOAD_CONTRAST_SMALL, /* a difference, but not shown to be beyond the minimum */
    LOAD_CONTRAST_NOISE,
    LOAD_CONTRAST_SLOWER,
    LOAD_CONTRAST_FASTER,
    LOAD_CONTRAST_MORE, /* of counts */
    LOAD_CONTRAST_FEWER
};

struct load_contrast {
    unsigned judged; /* figures of the family */
    bool is_slower;  /* at least one is */
    bool is_dead;    /* b has no good reply, or has trials without one, and a has not */
    bool is_failing; /* that, or more of b's requests failed, were not sent, or had no socket */
    enum load_contrast_word counts[LOAD_CONTRAST_COUNTS];
    enum load_contrast_word words[LOAD_FIGURES];
    double noise[LOAD_FIGURES]; /* the larger one of both sides */
    struct load_interval ratios[LOAD_FIGURES];
};

/* The minimum effect is a part of 1. */
void load_contrast(struct load_contrast *contrast, const struct load_contrast_side *a,
                   const struct load_contrast_side *b, double min_effect);

#endif
