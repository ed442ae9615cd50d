/* SPDX-License-Identifier: MIT
 *
 * What: computes the times at which queries arrive, of a Poisson process or at fixed distances. The
 * rate is constant, or is a line of several straight pieces: --stages makes several, a ramp (-R)
 * one. Place: the worker asks for the next arrival. The functions read no clock and allocate
 * nothing.
 *
 * Shape: the area under the rate, from the begin to a time, is the number of arrivals before that
 * time. From one arrival to the next the area grows by 1, or, for a Poisson process, by a random
 * number with the distribution Exp(1). The time of an arrival is computed from its area without an
 * approximation. Each of N shards has an N-th of the arrivals: every N-th fixed arrival, or a
 * Poisson process with an N-th of the rate.
 *
 *     rate               ____________
 *               ______--'            \
 *     0 ____---'                      \___ the last rate, held after the last piece
 *       piece 0  piece 1      2      3         area under it up to t = number of arrivals before t
 */
#ifndef LOAD_PACE_H
#define LOAD_PACE_H

#include "plan.h"

/* All members are private. The plan must not be moved or freed while the pace is used. */
struct load_pace {
    enum load_arrivals arrivals;
    unsigned shards;
    /* arrivals a second: for fixed arrivals those of all shards, for Poisson arrivals those of this
     * shard */
    double rate;
    double rate_end;
    uint64_t start_ns; /* when the present piece begins, in ns after the start of the load */
    /* how long the present piece is; UINT64_MAX: the piece has no end, and the rate is constant */
    uint64_t length_ns;
    double start_area; /* the area under the rate in all pieces before the present one */
    const struct load_stage *stages; /* the stages after the present piece */
    unsigned stages_left;
    /* the area under the rate up to the next arrival, counted from the start of the load, or from
     * the time at which the rate was set. Below 0: the arrival was due before that time. */
    double area;
    double stride;    /* for fixed arrivals: this shard has one of every `stride` arrivals */
    uint64_t last_ns; /* the time of the arrival that was returned last */
    uint64_t random[2];
};

/* The generator xoroshiro128+, which makes all random numbers of a run. load_random_fraction
 * returns a number in [0, 1), load_random_below one in [0, n). */
void load_random_init(uint64_t state[2], uint64_t seed);
double load_random_fraction(uint64_t state[2]);
uint64_t load_random_below(uint64_t state[2], uint64_t n);

/* Begin the arrivals of a shard, 0 to shards - 1. Reads the plan's seed, arrivals, rate, rate_end
 * and stages; without stages also duration_ns, if the two rates differ. The first fixed arrival is
 * at 0, or as soon as the rate is above 0. */
void load_pace_init(struct load_pace *pace, const struct load_plan *plan, unsigned shard,
                    unsigned shards);

/* Return the next arrival, in ns after the start of the load; never earlier than the one before it.
 * UINT64_MAX: there is none, because the rate stays 0. */
uint64_t load_pace_next(struct load_pace *pace);

/* The expected number of arrivals of all shards before the time before_ns; it may have a
 * fraction. */
double load_pace_expected(const struct load_plan *plan, uint64_t before_ns);

/* Skip all arrivals before before_ns (in ns after the start of the load), in constant time, and
 * return their number. For Poisson arrivals this is the expected number. */
uint64_t load_pace_skip(struct load_pace *pace, uint64_t before_ns);

/* Let no query arrive from at_ns on, until a rate is set. If the last returned arrival is later
 * than at_ns, it is withdrawn. */
void load_pace_pause(struct load_pace *pace, uint64_t at_ns);

/* Set a constant rate, which is the sum over all shards, from at_ns on. Arrivals that were due
 * earlier, but not returned, still come. If the last returned arrival is later than at_ns, it
 * stays, and the new rate begins at its time. */
void load_pace_set_rate(struct load_pace *pace, uint64_t at_ns, double rate, unsigned shards);

#endif
