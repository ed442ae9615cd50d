/* SPDX-License-Identifier: MIT
 *
 * Times of arrivals, of a Poisson process or at fixed distances, whose rate may change along a line
 * of straight pieces.
 */
#include "pace.h"

#include <math.h>

#define NS_A_SECOND 1e9

__extension__ typedef unsigned __int128 uint128;

/* One step of splitmix64, which turns even consecutive seeds into unrelated numbers. */
static uint64_t
next_random(uint64_t *seed)
{
    uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void
load_random_init(uint64_t state[2], uint64_t seed)
{
    state[0] = next_random(&seed);
    state[1] = next_random(&seed);
}

static uint64_t
rotated_word(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

/* The generator xoroshiro128+. */
static uint64_t
random_number(uint64_t state[2])
{
    uint64_t a = state[0];
    uint64_t b = state[1];
    uint64_t sum = a + b;

    b ^= a;
    state[0] = rotated_word(a, 24) ^ b ^ (b << 16);
    state[1] = rotated_word(b, 37);
    return sum;
}

double
load_random_fraction(uint64_t state[2])
{
    return (double)(random_number(state) >> 11) * 0x1p-53;
}

uint64_t
load_random_below(uint64_t state[2], uint64_t n)
{
    return (uint64_t)(((uint128)random_number(state) * n) >> 64);
}

/* How much the area under the rate grows from one arrival to the next. */
static double
step_of(struct load_pace *pace)
{
    return pace->arrivals == LOAD_FIXED ? pace->stride
                                        : -log1p(-load_random_fraction(pace->random));
}

/* The rate with which this shard computes its arrivals. For fixed arrivals it is the rate of all
 * shards, so that the arrivals have exactly the times that they have without shards. */
static double
own_rate(const struct load_pace *pace, double rate, unsigned shards)
{
    return pace->arrivals == LOAD_FIXED ? rate : rate / shards;
}

/* Begin a piece with a constant rate and no end. */
static void
begin_piece(struct load_pace *pace, uint64_t at_ns, double rate)
{
    pace->start_ns = at_ns;
    pace->start_area = 0;
    pace->length_ns = UINT64_MAX;
    pace->rate = pace->rate_end = own_rate(pace, rate, pace->shards);
    pace->stages_left = 0;
}

static void
begin_plan(struct load_pace *pace, const struct load_plan *plan)
{
    begin_piece(pace, 0, plan->rate);
    if (plan->stages_number > 0) {
        /* The present piece becomes an empty one, so that begin_next_piece begins the first
         * stage. */
        pace->length_ns = 0;
        pace->rate = pace->rate_end = 0;
        pace->stages = plan->stages;
        pace->stages_left = plan->stages_number;
    } else if (!load_plan_is_level(plan)) {
        pace->length_ns = plan->duration_ns;
        pace->rate_end = own_rate(pace, plan->rate_end, pace->shards);
    }
}

void
load_pace_init(struct load_pace *pace, const struct load_plan *plan, unsigned shard,
               unsigned shards)
{
    *pace = (struct load_pace){.arrivals = plan->arrivals, .shards = shards, .stride = shards};
    begin_plan(pace, plan);
    load_random_init(pace->random, plan->seed + ((uint64_t)shard << 40));
    pace->area = pace->arrivals == LOAD_FIXED ? shard : step_of(pace);
}

/* The area under the rate in a piece that has an end. The length is not converted to seconds first,
 * because the rounding would be visible: 100/s for 0.29 s must be exactly 29 arrivals. */
static double
area_of(const struct load_pace *pace)
{
    return (double)(((long double)pace->rate + (long double)pace->rate_end) *
                    (long double)pace->length_ns / 2e9L);
}

/* Begin the next piece. After the last piece, begin one without an end, which keeps its last
 * rate. */
static void
begin_next_piece(struct load_pace *pace)
{
    uint64_t end_ns = pace->start_ns + pace->length_ns;

    pace->start_area += area_of(pace);
    pace->start_ns = end_ns;
    pace->rate = pace->rate_end;
    pace->length_ns = UINT64_MAX;
    if (pace->stages_left == 0)
        return;
    pace->length_ns = pace->stages->end_ns - end_ns;
    pace->rate_end = own_rate(pace, pace->stages->rate, pace->shards);
    /* a stage without a length changes the rate at once */
    if (pace->length_ns == 0)
        pace->rate = pace->rate_end;
    pace->stages++;
    pace->stages_left--;
}

static double
slope_of(const struct load_pace *pace)
{
    return (pace->rate_end - pace->rate) / ((double)pace->length_ns / NS_A_SECOND);
}

/* The time at which the area under the present piece reaches `area`; INFINITY: it never does. This
 * form of the solution of the quadratic equation does not subtract nearly equal numbers, so it is
 * exact even for slopes near 0. */
static double
seconds_of_area(const struct load_pace *pace, double area)
{
    double squared;

    if (pace->length_ns == UINT64_MAX)
        return area / pace->rate;
    if (area == 0)
        return 0;
    squared = pace->rate * pace->rate + 2 * slope_of(pace) * area;
    return 2 * area / (pace->rate + sqrt(fmax(squared, 0)));
}

/* The area under the rate from the start of the run to a time `seconds` after the present piece
 * began. */
static double
area_in(const struct load_pace *pace, double seconds)
{
    double slope = pace->length_ns == UINT64_MAX ? 0 : slope_of(pace);

    return pace->start_area + (pace->rate + slope / 2 * seconds) * seconds;
}

static double
area_at(const struct load_pace *now, uint64_t ns)
{
    struct load_pace pace = *now;
    double seconds;

    while (pace.length_ns != UINT64_MAX && ns >= pace.start_ns + pace.length_ns)
        begin_next_piece(&pace);
    seconds = ((double)ns - (double)pace.start_ns) / NS_A_SECOND;
    return area_in(&pace, pace.length_ns == UINT64_MAX ? seconds : fmax(seconds, 0));
}

double
load_pace_expected(const struct load_plan *plan, uint64_t before_ns)
{
    struct load_pace pace = {.arrivals = LOAD_FIXED, .shards = 1};

    begin_plan(&pace, plan);
    return area_at(&pace, before_ns);
}

uint64_t
load_pace_next(struct load_pace *pace)
{
    double ns;

    while (pace->length_ns != UINT64_MAX && pace->area >= pace->start_area + area_of(pace))
        begin_next_piece(pace);
    ns =
        (double)pace->start_ns + seconds_of_area(pace, pace->area - pace->start_area) * NS_A_SECOND;
    if (!(ns < (double)UINT64_MAX))
        return UINT64_MAX;
    pace->area += step_of(pace);
    if (ns > (double)pace->last_ns)
        pace->last_ns = (uint64_t)llround(ns);
    return pace->last_ns;
}

uint64_t
load_pace_skip(struct load_pace *pace, uint64_t before_ns)
{
    double step = pace->arrivals == LOAD_FIXED ? pace->stride : 1;
    double number = ceil((area_at(pace, before_ns) - pace->area) / step);

    if (!(number > 0))
        return 0;
    number = fmin(number, 0x1p63);
    pace->area += number * step;
    return (uint64_t)number;
}

void
load_pace_set_rate(struct load_pace *pace, uint64_t at_ns, double rate, unsigned shards)
{
    uint64_t from_ns = at_ns > pace->last_ns ? at_ns : pace->last_ns;

    pace->area -= area_at(pace, from_ns);
    pace->shards = shards;
    begin_piece(pace, from_ns, rate);
}

void
load_pace_pause(struct load_pace *pace, uint64_t at_ns)
{
    bool is_withdrawn = pace->last_ns > at_ns;

    pace->area -= area_at(pace, at_ns);
    if (is_withdrawn)
        pace->area = pace->arrivals == LOAD_FIXED ? pace->area - pace->stride : step_of(pace);
    pace->last_ns = at_ns;
    begin_piece(pace, at_ns, 0);
}
