/* SPDX-License-Identifier: MIT
 *
 * Choosing the next rate of --find; run-find.c measures and judges it.
 *
 * The rate is doubled until one does not hold. Then the rate between the highest that held and the
 * lowest that did not hold (their geometric mean) is tried, until these two are 2 % apart. The
 * highest rate that held has to hold once more, because it may have held by luck. A rate that did
 * not hold is tried again, because otherwise one moment in which the machine did something else
 * would end the search far too low.
 *
 * A low rate may have too few samples to be judged. Then the search passes it over and goes up,
 * because higher rates have more samples. If a higher rate does not hold, the search comes back to
 * the low one, and measures it for a longer time. If even the longest step is too short, lower
 * rates are tried only to see that they do not hold either: that takes fewer samples.
 */
#include <math.h>

#include "run-private.h"

#define CLOSE_ENOUGH 1.02
#define UP           2.0
/* larger than UP, because a first rate that does not hold was a bad guess */
#define DOWN     4.0
#define RATE_MIN 0.5

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

/* Whether the rate could be judged more than once, and did not hold the last time. */
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

/* The next rate, if every rate has held so far. 0: the highest rate has held twice, or cannot be
 * judged. */
static double
next_rate_up(const struct load_step *steps, unsigned number, double highest)
{
    const struct load_step *last = &steps[number - 1];

    if (last->rate < highest)
        return fmin(last->rate * UP, highest);
    return last->holds && !has_held_twice(steps, number, last->rate) ? last->rate : 0;
}

/* The highest rate below `high` that was passed over, because it had too few samples; 0: there is
 * none. */
static double
passed_below(const struct load_step *steps, unsigned number, double high)
{
    double rate = 0;

    for (unsigned i = 0; i < number; i++)
        if (!steps[i].is_told && steps[i].rate < high && steps[i].rate > rate)
            rate = steps[i].rate;
    return rate;
}

/* The next rate, if no rate has held so far; 0: there is no other rate to try. */
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
    /* the last step had too few samples to be judged, and a lower rate would have even fewer */
    if (!steps[number - 1].is_told)
        return 0;
    if (low <= 0)
        return next_rate_down(search, steps, number, high);
    if (high / low > CLOSE_ENOUGH)
        return sqrt(low * high);
    return has_held_twice(steps, number, low) ? 0 : low;
}
