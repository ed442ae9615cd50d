/* SPDX-License-Identifier: MIT
 *
 * Detecting a trend over the time of a run.
 */
#include "trend.h"

#include <math.h>

#define WINDOWS 40u
#define EDGE    4u /* `first` and `last` are the means of so many windows */
/* a trend is shown if the result of the test is more than so many standard deviations from 0 */
#define SHOWN 3
/* if the halves differ by less than this part of the mean, they show no trend */
#define WEIGHT      0.05
#define ALIKE_MOST  0.7
#define REPLIES_MIN 100u
#define REPLIES_P99 1000u

struct windows {
    struct load_slice slices[WINDOWS];
    double figures[WINDOWS];
    double seconds; /* the length of a window */
    uint64_t replies_min;
};

static double
slice_middle_ns(unsigned bucket)
{
    unsigned shift = bucket < 16 ? 0 : bucket / 8 - 1;

    return ((double)((uint64_t)(bucket - shift * 8) << shift) + 0.5 * (double)(1u << shift)) * 1000;
}

static uint64_t
replies_of(const struct load_slice *slice)
{
    return (uint64_t)slice->ok + slice->errors;
}

static double
mean_ns(const struct load_slice *slice)
{
    double sum = 0;

    for (unsigned i = 0; i < LOAD_SLICE_BUCKETS; i++)
        sum += slice->buckets[i] * slice_middle_ns(i);
    return sum / (double)replies_of(slice);
}

static void
add_slice_to_window(struct load_slice *to, const struct load_slice *slice)
{
    to->ok += slice->ok;
    to->errors += slice->errors;
    if (slice->max_us > to->max_us)
        to->max_us = slice->max_us;
    for (unsigned i = 0; i < LOAD_SLICE_BUCKETS; i++)
        to->buckets[i] += slice->buckets[i];
}

/* Fill the windows with slices that lie wholly in the measured time. False: there are too few
 * replies. */
static bool
fill_windows(struct windows *windows, const struct load_plan *plan,
             const struct load_result *result)
{
    const struct load_timeline *timeline = &result->timeline;
    uint64_t ns = result->elapsed_ns < plan->duration_ns ? result->elapsed_ns : plan->duration_ns;
    unsigned first = timeline->offset_ns > 0;
    unsigned number = 0;

    if (timeline->width_ns > 0 && timeline->offset_ns + ns > first * timeline->width_ns)
        number = (unsigned)((timeline->offset_ns + ns) / timeline->width_ns) - first;
    if (number > timeline->used - first)
        number = timeline->used - first;
    number /= WINDOWS;
    windows->seconds = (double)number * (double)timeline->width_ns / 1e9;
    windows->replies_min = number > 0 ? UINT64_MAX : 0;
    for (unsigned i = 0; i < WINDOWS; i++) {
        for (unsigned k = 0; k < number; k++)
            add_slice_to_window(&windows->slices[i], &timeline->slices[first + i * number + k]);
        if (replies_of(&windows->slices[i]) < windows->replies_min)
            windows->replies_min = replies_of(&windows->slices[i]);
    }
    return windows->replies_min >= REPLIES_MIN;
}

static double
mean_of(const double *figures, unsigned number)
{
    double sum = 0;

    for (unsigned i = 0; i < number; i++)
        sum += figures[i];
    return sum / number;
}

/* The autocorrelation of neighbouring windows in the second half of the windows, limited to 0 ...
 * ALIKE_MOST. */
static double
likeness_of_neighbours(const double *figures)
{
    const double *half = figures + WINDOWS / 2;
    double mean = mean_of(half, WINDOWS / 2);
    double together = 0;
    double alone = 0;

    for (unsigned i = 0; i < WINDOWS / 2; i++) {
        alone += (half[i] - mean) * (half[i] - mean);
        together += i > 0 ? (half[i] - mean) * (half[i - 1] - mean) : 0;
    }
    return alone > 0 ? fmin(fmax(together / alone, 0), ALIKE_MOST) : 0;
}

static bool
is_trend_shown(const double *figures)
{
    const double n = WINDOWS;
    double alike = likeness_of_neighbours(figures);
    double deviation = sqrt(n * (n - 1) * (2 * n + 5) / 18 * (1 + alike) / (1 - alike));
    int difference = 0;

    for (unsigned i = 0; i < WINDOWS; i++)
        for (unsigned k = 0; k < i; k++)
            difference += (figures[i] > figures[k]) - (figures[i] < figures[k]);
    return fabs((double)difference) > SHOWN * deviation;
}

static bool
judge_figure(struct load_trend *trend, const char *name, const double *figures)
{
    double first = mean_of(figures, WINDOWS / 2);
    double second = mean_of(figures + WINDOWS / 2, WINDOWS / 2);

    if (fabs(first - second) <= WEIGHT * (first + second) / 2 || !is_trend_shown(figures))
        return false;
    trend->figure = name;
    trend->first = mean_of(figures, EDGE);
    trend->last = mean_of(figures + WINDOWS - EDGE, EDGE);
    return true;
}

static double
figure_of(const struct windows *windows, unsigned which, unsigned i)
{
    const struct load_slice *slice = &windows->slices[i];

    if (which == 0)
        return slice->ok / windows->seconds;
    return which == 1 ? mean_ns(slice) : (double)load_slice_quantile_ns(slice, 0.99);
}

void
load_trend_tell(struct load_trend *trend, const struct load_plan *plan,
                const struct load_result *result)
{
    static const char *const names[] = {"rate", "response.mean", "response.p99"};
    struct windows windows = {0};

    *trend = (struct load_trend){0};
    if (plan->stop != LOAD_STOP_TIME || !load_plan_is_level(plan) || plan->find != NULL ||
        !fill_windows(&windows, plan, result))
        return;
    for (unsigned which = plan->model == LOAD_CLOSED ? 0 : 1; which < 3; which++) {
        if (which == 2 && windows.replies_min < REPLIES_P99)
            return;
        for (unsigned i = 0; i < WINDOWS; i++)
            windows.figures[i] = figure_of(&windows, which, i);
        if (judge_figure(trend, names[which], windows.figures))
            return;
    }
}
