/* SPDX-License-Identifier: MIT
 *
 * Choosing the next rate of --find; run-find.c measures and judges it.
 *
 * Rates are doubled until one does not hold, and then the interval is halved, as a ratio, until the
 * rates that held and did not hold are 2 % apart. The last rate that held has to hold once more,
 * since it may have held by luck. A rate that did not hold is tried again, since one moment in
 * which the machine did something else would end the search far too low.
 *
 * A low rate may have too few samples to be judged. Then the search first goes up, since higher
 * rates have more. When a higher rate did not hold, it comes back to the low one, and measures as
 * long as it takes. If even the longest step is too short, lower rates are tried only to see that
 * they do not hold either, for which fewer samples are enough.
 */
#include <math.h>

#include "run-private.h"

#define CLOSE_ENOUGH 1.02
#define UP           2.0
#define DOWN         4.0 /* larger than UP: a start rate that does not hold was a bad guess */
#define RATE_MIN     0.5

static bool
is_miss(const struct load_step *step)
{
    return step->is_told && !step->holds;
}

static bool
is_step_at(const struct load_step *step, double rate)
{
    return !(step->rate < rate) && !(step->rate > rate);
}

/* Whether the rate was tried more than once, and did not hold the last time. */
static bool
is_missed(const struct load_step *steps, unsigned number, double rate)
{
    unsigned tries = 0;
    bool is_last_missed = false;

    for (unsigned i = 0; i < number; i++) {
        if (!is_step_at(&steps[i], rate) || !steps[i].is_told)
            continue;
        tries++;
        is_last_missed = is_miss(&steps[i]);
    }
    return tries > 1 && is_last_missed;
}

double
load_search_missed(const struct load_step *steps, unsigned number)
{
    double rate = HUGE_VAL;

    for (unsigned i = 0; i < number; i++) {
        if (steps[i].rate < rate && is_missed(steps, number, steps[i].rate))
            rate = steps[i].rate;
    }
    return rate;
}

bool
load_search_is_untold(const struct load_step *steps, unsigned number)
{
    return load_search_found(steps, number) <= 0 && load_search_missed(steps, number) > RATE_MIN;
}

double
load_search_found(const struct load_step *steps, unsigned number)
{
    double high = load_search_missed(steps, number);
    double low = 0;

    for (unsigned i = 0; i < number; i++) {
        if (steps[i].holds && steps[i].rate < high && steps[i].rate > low)
            low = steps[i].rate;
    }
    return low;
}

static bool
has_held_twice(const struct load_step *steps, unsigned number, double rate)
{
    unsigned times = 0;

    for (unsigned i = 0; i < number; i++)
        times += steps[i].holds && is_step_at(&steps[i], rate);
    return times > 1;
}

/* The next rate while every rate has held. 0: the highest rate has held twice, or cannot be
 * told. */
static double
next_rate_up(const struct load_step *steps, unsigned number, double highest)
{
    const struct load_step *last = &steps[number - 1];

    if (last->rate < highest)
        return fmin(last->rate * UP, highest);
    return last->holds && !has_held_twice(steps, number, last->rate) ? last->rate : 0;
}

/* The highest rate below `high` that was passed over because of too few samples; 0: none. */
static double
passed_below(const struct load_step *steps, unsigned number, double high)
{
    double rate = 0;

    for (unsigned i = 0; i < number; i++)
        if (!steps[i].is_told && steps[i].rate < high && steps[i].rate > rate)
            rate = steps[i].rate;
    return rate;
}

/* The next rate while no rate has held; 0: there is none. */
static double
next_rate_down(const struct load_search *search, const struct load_step *steps, unsigned number,
               double high)
{
    double passed = passed_below(steps, number, high);
    double rate = passed > 0 ? passed : fmax(high / DOWN, RATE_MIN);

    if (high <= RATE_MIN)
        return 0;
    if (rate < search->told_from && search->told_from * CLOSE_ENOUGH < high)
        return search->told_from;
    return rate;
}

double
load_search_next(const struct load_search *search, const struct load_step *steps, unsigned number)
{
    double low = load_search_found(steps, number);
    double high = load_search_missed(steps, number);

    if (number == 0)
        return fmin(search->start, search->highest);
    if (number == LOAD_STEPS_MAX)
        return 0;
    if (is_miss(&steps[number - 1]) && !is_missed(steps, number, steps[number - 1].rate))
        return steps[number - 1].rate;
    if (isinf(high))
        return next_rate_up(steps, number, search->highest);
    /* The last step had too few samples; a lower rate would have even fewer. */
    if (!steps[number - 1].is_told)
        return 0;
    if (low <= 0)
        return next_rate_down(search, steps, number, high);
    if (high / low > CLOSE_ENOUGH)
        return sqrt(low * high);
    return has_held_twice(steps, number, low) ? 0 : low;
}
