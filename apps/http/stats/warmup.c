/* SPDX-License-Identifier: MIT
 *
 * Deciding whether windows of a warm-up still show a trend.
 */
#include "warmup.h"

#include <stdlib.h>
#include <string.h>

/* the test shows a trend if the rises less the falls of ten values reach this number, up or down
 * (two-sided, at the 5 % level) */
#define SHOWN 23
/* if the halves differ by less than this part of the mean, they show no trend */
#define WEIGHT 0.02

bool
load_warmup_add(struct load_warmup *warmup, uint64_t ns, uint64_t ok,
                const struct load_histogram *response)
{
    const double figures[LOAD_WARMUP_FIGURES] = {
        [LOAD_WARMUP_RATE] = (double)ok / (double)ns,
        [LOAD_WARMUP_MEAN] = load_histogram_mean_ns(response),
        [LOAD_WARMUP_P99] = (double)load_histogram_quantile(response, 0.99),
    };
    bool is_full = warmup->number == LOAD_WARMUP_WINDOWS;

    if (ok < LOAD_WARMUP_REPLIES)
        return false;
    for (unsigned i = 0; i < LOAD_WARMUP_FIGURES; i++) {
        double *windows = warmup->figures[i];

        if (is_full)
            memmove(windows, windows + 1, (LOAD_WARMUP_WINDOWS - 1) * sizeof(windows[0]));
        windows[warmup->number - is_full] = figures[i];
    }
    warmup->number += !is_full;
    return true;
}

/* The statistic of Mann and Kendall: the number of rises less the number of falls. */
static int
rises_less_falls(const double *windows)
{
    int difference = 0;

    for (unsigned i = 0; i < LOAD_WARMUP_WINDOWS; i++)
        for (unsigned k = 0; k < i; k++)
            difference += (windows[i] > windows[k]) - (windows[i] < windows[k]);
    return difference;
}

static bool
has_weight(const double *windows)
{
    double halves[2] = {0};

    for (unsigned i = 0; i < LOAD_WARMUP_WINDOWS; i++)
        halves[i >= LOAD_WARMUP_WINDOWS / 2] += windows[i];
    return fabs(halves[1] - halves[0]) > WEIGHT * (halves[0] + halves[1]) / 2;
}

const char *
load_warmup_problem(const struct load_warmup *warmup)
{
    static const char *const trends[LOAD_WARMUP_FIGURES] = {
        [LOAD_WARMUP_RATE] = "the rate has a trend",
        [LOAD_WARMUP_MEAN] = "the mean of response times has a trend",
        [LOAD_WARMUP_P99] = "the p99 of response times has a trend",
    };

    if (warmup->number < LOAD_WARMUP_WINDOWS)
        return "too few good replies to tell";
    for (unsigned i = 0; i < LOAD_WARMUP_FIGURES; i++) {
        const double *windows = warmup->figures[i];

        if (abs(rises_less_falls(windows)) >= SHOWN && has_weight(windows))
            return trends[i];
    }
    return NULL;
}
