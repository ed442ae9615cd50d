/* SPDX-License-Identifier: MIT
 *
 * Deciding for each figure of two sides whether one side is better.
 */
#include "contrast.h"

#include <math.h>
#include <string.h>

/* Whether the figure repeats another one: in a closed loop response times equal service times, so
 * they are not judged again. */
static bool
is_figure_repeated(enum load_figure figure, const struct load_contrast_side *side)
{
    unsigned other = figure - LOAD_FIGURE_RESPONSE_P50 + LOAD_FIGURE_SERVICE_P50;

    return figure >= LOAD_FIGURE_RESPONSE_P50 && side->numbers[figure] == side->numbers[other] &&
           memcmp(side->values[figure], side->values[other], sizeof(side->values[other])) == 0;
}

/* The word that says why the figure cannot be judged; LOAD_CONTRAST_NONE: it can be judged. */
static enum load_contrast_word
word_before(const struct load_contrast *contrast, enum load_figure figure,
            const struct load_contrast_side *a, const struct load_contrast_side *b)
{
    if (is_figure_repeated(figure, a) && is_figure_repeated(figure, b))
        return LOAD_CONTRAST_REPEATED;
    if (figure == LOAD_FIGURE_RATE && (a->is_rate_given || b->is_rate_given))
        return LOAD_CONTRAST_GIVEN;
    if (a->numbers[figure] < a->trials || b->numbers[figure] < b->trials)
        return LOAD_CONTRAST_UNTOLD;
    if (a->is_bound[figure] && b->is_bound[figure])
        return LOAD_CONTRAST_BOUND;
    return contrast->ratios[figure].is_known ? LOAD_CONTRAST_NONE : LOAD_CONTRAST_UNKNOWN;
}

static enum load_contrast_word
word_of(enum load_figure figure, const struct load_interval *ratio, double noise, double min_effect)
{
    bool is_more = ratio->low > 1;

    if (!is_more && ratio->high >= 1)
        return LOAD_CONTRAST_NONE;
    if (fabs(log(ratio->middle)) <= noise)
        return LOAD_CONTRAST_NOISE;
    if (ratio->low <= 1 + min_effect && ratio->high >= 1 - min_effect)
        return LOAD_CONTRAST_SMALL;
    return is_more == (figure == LOAD_FIGURE_RATE) ? LOAD_CONTRAST_FASTER : LOAD_CONTRAST_SLOWER;
}

/* The word of a figure if values of a side are only lower bounds. The true times of this side may
 * be longer, so it can be shown to be the slower side, but nothing else can be shown. */
static enum load_contrast_word
word_with_bounds(enum load_contrast_word word, enum load_figure figure,
                 const struct load_contrast_side *a, const struct load_contrast_side *b)
{
    if ((a->is_bound[figure] && word != LOAD_CONTRAST_FASTER) ||
        (b->is_bound[figure] && word != LOAD_CONTRAST_SLOWER))
        return LOAD_CONTRAST_BOUND;
    return word;
}

static void
take_ratio(struct load_contrast *contrast, unsigned figure, const struct load_contrast_side *a,
           const struct load_contrast_side *b)
{
    load_stats_family_interval(&contrast->ratios[figure], b->values[figure], b->numbers[figure],
                               a->values[figure], a->numbers[figure],
                               contrast->judged > 0 ? contrast->judged : 1);
}

/* Whether a count of `side` is shown to be more than that of `than`. The number of unsent requests
 * depends on the server's capacity, so it varies more than by chance. Therefore the minimum effect
 * is a part of all offered requests for it, and not of the count itself. */
static bool
is_more(enum load_contrast_count count, const struct load_contrast_side *than,
        const struct load_contrast_side *side, double min_effect)
{
    const struct load_share *a = &than->counts[count], *b = &side->counts[count];

    if (count != LOAD_CONTRAST_UNSENT)
        return load_share_is_more(a, b, min_effect);
    return load_share_of(b) - load_share_of(a) > min_effect && load_share_is_more(a, b, 0);
}

static void
contrast_counts(struct load_contrast *contrast, const struct load_contrast_side *a,
                const struct load_contrast_side *b, double min_effect)
{
    contrast->is_dead = b->dead > 0 && (b->dead == b->trials || a->dead == 0);
    contrast->is_failing = contrast->is_dead;
    for (unsigned i = 0; i < LOAD_CONTRAST_COUNTS; i++) {
        contrast->counts[i] = LOAD_CONTRAST_NONE;
        if (is_more((enum load_contrast_count)i, a, b, min_effect)) {
            contrast->counts[i] = LOAD_CONTRAST_MORE;
            contrast->is_failing = true;
        } else if (is_more((enum load_contrast_count)i, b, a, min_effect)) {
            contrast->counts[i] = LOAD_CONTRAST_FEWER;
        }
    }
}

void
load_contrast(struct load_contrast *contrast, const struct load_contrast_side *a,
              const struct load_contrast_side *b, double min_effect)
{
    unsigned judged = 0;

    *contrast = (struct load_contrast){0};
    contrast_counts(contrast, a, b, min_effect);
    for (unsigned i = 0; i < LOAD_FIGURES; i++) {
        contrast->noise[i] = fmax(a->noise[i], b->noise[i]);
        take_ratio(contrast, i, a, b);
        contrast->words[i] = word_before(contrast, (enum load_figure)i, a, b);
        judged += contrast->words[i] == LOAD_CONTRAST_NONE;
    }
    contrast->judged = judged;
    for (unsigned i = 0; i < LOAD_FIGURES; i++) {
        if (contrast->words[i] != LOAD_CONTRAST_NONE)
            continue;
        take_ratio(contrast, i, a, b);
        contrast->words[i] = word_with_bounds(
            word_of((enum load_figure)i, &contrast->ratios[i], contrast->noise[i], min_effect),
            (enum load_figure)i, a, b);
        contrast->is_slower |= contrast->words[i] == LOAD_CONTRAST_SLOWER;
    }
}
