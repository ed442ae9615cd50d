/* SPDX-License-Identifier: MIT
 *
 * --find chooses the next rate here; run-find.c measures it and judges it.
 *
 * Rates are doubled until one does not hold, and then the interval is halved, as a ratio, until the
 * rates that held and did not hold are 2 % apart. The last rate that held has to hold once more,
 * since it may have held by luck. A rate that did not hold is tried again, since one moment in
 * which the machine did something else would end the search far too low.
 *
 * Where there are too few samples to tell, a higher rate gives more. So the search goes up from a
 * low rate without waiting for them. When a higher rate did not hold, it comes back to the low one
 * for as long as that takes. Where even that is too short, lower rates are tried only to see that
 * they do not hold either, which fewer samples can say.
 */
#include <math.h>

#include "run-private.h"

#define CLOSE_ENOUGH 1.02
#define UP           2.0
#define DOWN         4.0 /* the start was a guess */
#define RATE_MIN     0.5

static bool
is_miss(const struct load_step *step)
{
    return step->is_told && !step->holds;
}

static bool
is_at(const struct load_step *step, double rate)
{
    return !(step->rate < rate) && !(step->rate > rate);
}

/* It was tried again, and then did not hold. */
static bool
is_missed(const struct load_step *steps, unsigned number, double rate)
{
    unsigned tries = 0;
    bool is_last_missed = false;

    for (unsigned i = 0; i < number; i++) {
        if (!is_at(&steps[i], rate) || !steps[i].is_told)
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
        times += steps[i].holds && is_at(&steps[i], rate);
    return times > 1;
}

/* None was seen that does not hold. */
static double
up(const struct load_step *steps, unsigned number, double highest)
{
    const struct load_step *last = &steps[number - 1];

    if (last->rate < highest)
        return fmin(last->rate * UP, highest);
    return last->holds && !has_held_twice(steps, number, last->rate) ? last->rate : 0;
}

/* The highest below high that had too few samples, when it was passed; 0: none. */
static double
passed_below(const struct load_step *steps, unsigned number, double high)
{
    double rate = 0;

    for (unsigned i = 0; i < number; i++)
        if (!steps[i].is_told && steps[i].rate < high && steps[i].rate > rate)
            rate = steps[i].rate;
    return rate;
}

/* Nothing has held yet. */
static double
down(const struct load_search *search, const struct load_step *steps, unsigned number, double high)
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
        return up(steps, number, search->highest);
    /* At a lower rate there are fewer samples still. */
    if (!steps[number - 1].is_told)
        return 0;
    if (low <= 0)
        return down(search, steps, number, high);
    if (high / low > CLOSE_ENOUGH)
        return sqrt(low * high);
    return has_held_twice(steps, number, low) ? 0 : low;
}
