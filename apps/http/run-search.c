/* SPDX-License-Identifier: MIT
 *
 * Rates are searched by ratios: doubled until one does not hold, then cut in two until what held
 * and what did not are 2 % apart. What held last has to hold once more, because one that did by
 * luck would be reported as the highest. Where there are too few samples to tell, a higher rate
 * gives more.
 */
#include <math.h>

#include "run-private.h"

#define CLOSE_ENOUGH 1.02
#define UP           2.0
#define DOWN         4.0 /* the start was a guess */
#define RATE_MIN     0.5

/* The lowest of which was seen that it does not hold. */
static double
lowest_missed(const struct http_step *steps, unsigned number)
{
    double rate = HUGE_VAL;

    for (unsigned i = 0; i < number; i++) {
        if (steps[i].is_told && !steps[i].holds && steps[i].rate < rate)
            rate = steps[i].rate;
    }
    return rate;
}

double
http_search_found(const struct http_step *steps, unsigned number)
{
    double high = lowest_missed(steps, number);
    double low = 0;

    for (unsigned i = 0; i < number; i++) {
        if (steps[i].holds && steps[i].rate < high && steps[i].rate > low)
            low = steps[i].rate;
    }
    return low;
}

static bool
has_held_twice(const struct http_step *steps, unsigned number, double rate)
{
    unsigned times = 0;

    for (unsigned i = 0; i < number; i++)
        times += steps[i].holds && !(steps[i].rate < rate) && !(steps[i].rate > rate);
    return times > 1;
}

/* None was seen that does not hold. */
static double
up(const struct http_step *steps, unsigned number, double highest)
{
    const struct http_step *last = &steps[number - 1];

    if (last->rate < highest)
        return fmin(last->rate * UP, highest);
    return last->holds && !has_held_twice(steps, number, last->rate) ? last->rate : 0;
}

double
http_search_next(const struct http_step *steps, unsigned number, double start, double highest)
{
    double low = http_search_found(steps, number);
    double high = lowest_missed(steps, number);

    if (number == 0)
        return fmin(start, highest);
    if (number == HTTP_STEPS_MAX)
        return 0;
    if (isinf(high))
        return up(steps, number, highest);
    /* At a lower rate there are fewer samples still. */
    if (!steps[number - 1].is_told)
        return 0;
    if (low <= 0)
        return high > RATE_MIN ? fmax(high / DOWN, RATE_MIN) : 0;
    if (high / low > CLOSE_ENOUGH)
        return sqrt(low * high);
    return has_held_twice(steps, number, low) ? 0 : low;
}
