/* SPDX-License-Identifier: MIT */
#include "contrast.h"

#include <math.h>
#include <string.h>

/* In a closed loop response time is service time; once is enough. */
static bool
is_repeated(enum http_figure figure, const struct http_contrast_side *side)
{
    unsigned other = figure - HTTP_FIGURE_RESPONSE_P50 + HTTP_FIGURE_SERVICE_P50;

    return figure >= HTTP_FIGURE_RESPONSE_P50 && side->numbers[figure] == side->numbers[other] &&
           memcmp(side->values[figure], side->values[other], sizeof(side->values[other])) == 0;
}

/* NONE: it is to be judged. */
static enum http_contrast_word
word_before(const struct http_contrast *contrast, enum http_figure figure,
            const struct http_contrast_side *a, const struct http_contrast_side *b)
{
    if (is_repeated(figure, a) && is_repeated(figure, b))
        return HTTP_CONTRAST_REPEATED;
    if (figure == HTTP_FIGURE_RATE && (a->is_rate_given || b->is_rate_given))
        return HTTP_CONTRAST_GIVEN;
    if (a->numbers[figure] < a->trials || b->numbers[figure] < b->trials)
        return HTTP_CONTRAST_UNTOLD;
    if (a->is_bound[figure] && b->is_bound[figure])
        return HTTP_CONTRAST_BOUND;
    return contrast->ratios[figure].is_known ? HTTP_CONTRAST_NONE : HTTP_CONTRAST_UNKNOWN;
}

static enum http_contrast_word
word_of(enum http_figure figure, const struct http_interval *ratio, double noise, double min_effect)
{
    bool is_more = ratio->low > 1;

    if (!is_more && ratio->high >= 1)
        return HTTP_CONTRAST_NONE;
    if (fabs(log(ratio->middle)) <= noise)
        return HTTP_CONTRAST_NOISE;
    if (ratio->low <= 1 + min_effect && ratio->high >= 1 - min_effect)
        return HTTP_CONTRAST_SMALL;
    return is_more == (figure == HTTP_FIGURE_RATE) ? HTTP_CONTRAST_FASTER : HTTP_CONTRAST_SLOWER;
}

/* A side's times that are lower bounds may be longer, and then the ratio is still further away:
 * only what is said of the longer side stands. */
static enum http_contrast_word
word_with_bounds(enum http_contrast_word word, enum http_figure figure,
                 const struct http_contrast_side *a, const struct http_contrast_side *b)
{
    if ((a->is_bound[figure] && word != HTTP_CONTRAST_FASTER) ||
        (b->is_bound[figure] && word != HTTP_CONTRAST_SLOWER))
        return HTTP_CONTRAST_BOUND;
    return word;
}

static void
take_ratio(struct http_contrast *contrast, unsigned figure, const struct http_contrast_side *a,
           const struct http_contrast_side *b)
{
    http_stats_family_interval(&contrast->ratios[figure], b->values[figure], b->numbers[figure],
                               a->values[figure], a->numbers[figure],
                               contrast->judged > 0 ? contrast->judged : 1);
}

/* What was not sent varies with the server's capacity by much more than chance says, so its minimum
 * effect is of all that was offered. */
static bool
is_more(enum http_contrast_count count, const struct http_contrast_side *than,
        const struct http_contrast_side *side, double min_effect)
{
    const struct http_share *a = &than->counts[count], *b = &side->counts[count];

    if (count != HTTP_CONTRAST_UNSENT)
        return http_share_is_more(a, b, min_effect);
    return http_share_of(b) - http_share_of(a) > min_effect && http_share_is_more(a, b, 0);
}

static void
contrast_counts(struct http_contrast *contrast, const struct http_contrast_side *a,
                const struct http_contrast_side *b, double min_effect)
{
    contrast->is_dead = b->dead > 0 && (b->dead == b->trials || a->dead == 0);
    contrast->is_failing = contrast->is_dead;
    for (unsigned i = 0; i < HTTP_CONTRAST_COUNTS; i++) {
        contrast->counts[i] = HTTP_CONTRAST_NONE;
        if (is_more((enum http_contrast_count)i, a, b, min_effect)) {
            contrast->counts[i] = HTTP_CONTRAST_MORE;
            contrast->is_failing = true;
        } else if (is_more((enum http_contrast_count)i, b, a, min_effect)) {
            contrast->counts[i] = HTTP_CONTRAST_FEWER;
        }
    }
}

void
http_contrast(struct http_contrast *contrast, const struct http_contrast_side *a,
              const struct http_contrast_side *b, double min_effect)
{
    unsigned judged = 0;

    *contrast = (struct http_contrast){0};
    contrast_counts(contrast, a, b, min_effect);
    for (unsigned i = 0; i < HTTP_FIGURES; i++) {
        contrast->noise[i] = fmax(a->noise[i], b->noise[i]);
        take_ratio(contrast, i, a, b);
        contrast->words[i] = word_before(contrast, (enum http_figure)i, a, b);
        judged += contrast->words[i] == HTTP_CONTRAST_NONE;
    }
    contrast->judged = judged;
    for (unsigned i = 0; i < HTTP_FIGURES; i++) {
        if (contrast->words[i] != HTTP_CONTRAST_NONE)
            continue;
        take_ratio(contrast, i, a, b);
        contrast->words[i] = word_with_bounds(
            word_of((enum http_figure)i, &contrast->ratios[i], contrast->noise[i], min_effect),
            (enum http_figure)i, a, b);
        contrast->is_slower |= contrast->words[i] == HTTP_CONTRAST_SLOWER;
    }
}
