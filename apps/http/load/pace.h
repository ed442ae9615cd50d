/* SPDX-License-Identifier: MIT
 *
 * What: when queries arrive: the times of a Poisson or a fixed process at a rate that is constant
 * or follows a line of several pieces (--stages; a ramp is one piece). Place: the worker asks for
 * the next arrival. Pure: no clock, no memory.
 *
 * Shape: arrivals are those of a process of rate 1 (steps of 1, or of Exp(1)), mapped by the
 * inverse of the area under the rate, so each piece is exact. Each of N shards has an N-th of the
 * arrivals: every N-th one of a fixed process, or a Poisson process of an N-th of the rate, which
 * has the same distribution.
 *
 *     rate               ____________
 *               ______--'            \
 *     0 ____---'                      \___ the last rate, held after the last piece
 *       piece 0  piece 1      2      3         area under it up to t = number of arrivals before t
 */
#ifndef LOAD_PACE_H
#define LOAD_PACE_H

#include "plan.h"

/* All members are private. The plan must not be moved or freed meanwhile. */
struct load_pace {
    enum load_arrivals arrivals;
    unsigned shards;
    double rate; /* arrivals a second: fixed ones of all shards, Poisson ones of this shard */
    double rate_end;
    uint64_t start_ns;  /* when the present piece begins, in ns after the load's begin */
    uint64_t length_ns; /* how long the present piece is; UINT64_MAX: no end, constant rate */
    double start_area;  /* the area of the pieces before the present one */
    const struct load_stage *stages; /* the stages after the present piece */
    unsigned stages_left;
    /* the area under the rate up to the next arrival, counted from the begin or from when the rate
     * was set; below 0: the arrival was due before that */
    double area;
    double stride;    /* for fixed arrivals: this shard has one of every `stride` */
    uint64_t last_ns; /* the time of the arrival that was returned last */
    uint64_t random[2];
};

/* xoroshiro128+, the generator of all random numbers of a run: load_random_fraction returns a
 * number in [0, 1), load_random_below one in [0, n). */
void load_random_init(uint64_t state[2], uint64_t seed);
double load_random_fraction(uint64_t state[2]);
uint64_t load_random_below(uint64_t state[2], uint64_t n);

/* Begin the arrivals of a shard, 0 to shards - 1. Reads the plan's seed, arrivals, rate, rate_end
 * and stages; without stages also duration_ns, if the two rates differ. The first fixed arrival is
 * at 0, or as soon as the rate is above 0. */
void load_pace_init(struct load_pace *pace, const struct load_plan *plan, unsigned shard,
                    unsigned shards);

/* Return the next arrival, in ns after the load's begin; never earlier than the one before it.
 * UINT64_MAX: there is none, because the rate stays 0. */
uint64_t load_pace_next(struct load_pace *pace);

/* The expected number of arrivals of all shards before before_ns; it may have a fraction. */
double load_pace_expected(const struct load_plan *plan, uint64_t before_ns);

/* Skip all arrivals before before_ns (after the load's begin), in constant time; returns their
 * number. For Poisson arrivals this is the expected number. */
uint64_t load_pace_skip(struct load_pace *pace, uint64_t before_ns);

/* Let nothing arrive from at_ns on, until a rate is set. If the last returned arrival is later than
 * at_ns, it is withdrawn. */
void load_pace_pause(struct load_pace *pace, uint64_t at_ns);

/* Set a constant rate, over all shards, from at_ns on. If the last returned arrival is later than
 * at_ns, it stays, and the new rate begins at its time. Arrivals that were due earlier, but not
 * returned, still come. */
void load_pace_set_rate(struct load_pace *pace, uint64_t at_ns, double rate, unsigned shards);

#endif
