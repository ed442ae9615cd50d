/* SPDX-License-Identifier: MIT */
#include "pace.h"

#include <math.h>

#define NS_A_SECOND 1e9

__extension__ typedef unsigned __int128 uint128;

/* splitmix64: numbers that have nothing in common, from seeds that follow one another. */
static uint64_t
mixed(uint64_t *seed)
{
    uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void
http_random_init(uint64_t state[2], uint64_t seed)
{
    state[0] = mixed(&seed);
    state[1] = mixed(&seed);
}

static uint64_t
rotated(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

/* xoroshiro128+ */
static uint64_t
random_number(uint64_t state[2])
{
    uint64_t a = state[0];
    uint64_t b = state[1];
    uint64_t number = a + b;

    b ^= a;
    state[0] = rotated(a, 24) ^ b ^ (b << 16);
    state[1] = rotated(b, 37);
    return number;
}

double
http_random_fraction(uint64_t state[2])
{
    return (double)(random_number(state) >> 11) * 0x1p-53;
}

uint64_t
http_random_below(uint64_t state[2], uint64_t n)
{
    return (uint64_t)(((uint128)random_number(state) * n) >> 64);
}

/* From an arrival to the next, as area under the rate. */
static double
step_of(struct http_pace *pace)
{
    return pace->arrivals == HTTP_FIXED ? pace->stride
                                        : -log1p(-http_random_fraction(pace->random));
}

/* Fixed arrivals of a shard are counted on the area of all shards together: so they are the very
 * same numbers as those of a single run. */
static double
own_rate(const struct http_pace *pace, double rate, unsigned shards)
{
    return pace->arrivals == HTTP_FIXED ? rate : rate / shards;
}

void
http_pace_init(struct http_pace *pace, const struct http_plan *plan, unsigned shard,
               unsigned shards)
{
    *pace = (struct http_pace){.arrivals = plan->arrivals, .stride = shards};
    pace->rate = own_rate(pace, plan->rate, shards);
    pace->rate_end = own_rate(pace, plan->rate_end, shards);
    if (plan->rate != plan->rate_end)
        pace->ramp_s = (double)plan->duration_ns / NS_A_SECOND;
    http_random_init(pace->random, plan->seed + ((uint64_t)shard << 40));
    pace->area = pace->arrivals == HTTP_FIXED ? shard : step_of(pace);
}

static double
slope_of(const struct http_pace *pace)
{
    return (pace->rate_end - pace->rate) / pace->ramp_s;
}

/* When the area under the rate is that large; INFINITY: never. The form of the quadratic's solution
 * that subtracts nothing of nearly the same size, so a slope of nearly 0 does no harm. */
static double
time_of(const struct http_pace *pace, double area)
{
    double ramp_area = (pace->rate + pace->rate_end) / 2 * pace->ramp_s;
    double squared;

    if (pace->ramp_s == 0 || area >= ramp_area)
        return pace->ramp_s + (area - ramp_area) / pace->rate_end;
    if (area == 0)
        return 0;
    squared = pace->rate * pace->rate + 2 * slope_of(pace) * area;
    return 2 * area / (pace->rate + sqrt(fmax(squared, 0)));
}

static double
area_at(const struct http_pace *pace, double s)
{
    double ramp_s = fmin(s, pace->ramp_s);
    double ramp_area = ramp_s > 0 ? (pace->rate + slope_of(pace) / 2 * ramp_s) * ramp_s : 0;

    return ramp_area + (s - ramp_s) * pace->rate_end;
}

uint64_t
http_pace_next(struct http_pace *pace)
{
    double ns = (pace->start_s + time_of(pace, pace->area)) * NS_A_SECOND;

    if (!(ns < (double)UINT64_MAX))
        return UINT64_MAX;
    pace->area += step_of(pace);
    if (ns > (double)pace->last_ns)
        pace->last_ns = (uint64_t)llround(ns);
    return pace->last_ns;
}

uint64_t
http_pace_skip(struct http_pace *pace, uint64_t before_ns)
{
    double area = area_at(pace, (double)before_ns / NS_A_SECOND - pace->start_s);
    double step = pace->arrivals == HTTP_FIXED ? pace->stride : 1;
    double number = ceil((area - pace->area) / step);

    if (!(number > 0))
        return 0;
    number = fmin(number, 0x1p63);
    pace->area += number * step;
    return (uint64_t)number;
}

void
http_pace_set_rate(struct http_pace *pace, uint64_t at_ns, double rate, unsigned shards)
{
    double from_s = (double)(at_ns > pace->last_ns ? at_ns : pace->last_ns) / NS_A_SECOND;

    pace->area -= area_at(pace, from_s - pace->start_s);
    pace->start_s = from_s;
    pace->ramp_s = 0;
    pace->rate = pace->rate_end = own_rate(pace, rate, shards);
}

void
http_pace_pause(struct http_pace *pace, uint64_t at_ns)
{
    double at_s = (double)at_ns / NS_A_SECOND;
    bool is_withdrawn = pace->last_ns > at_ns;

    pace->area -= area_at(pace, at_s - pace->start_s);
    if (is_withdrawn)
        pace->area = pace->arrivals == HTTP_FIXED ? pace->area - pace->stride : step_of(pace);
    pace->last_ns = at_ns;
    pace->start_s = at_s;
    pace->ramp_s = 0;
    pace->rate = pace->rate_end = 0;
}
