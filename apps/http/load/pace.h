/* SPDX-License-Identifier: MIT
 *
 * What: when queries arrive: the times of a Poisson or a fixed process at a rate that is constant
 * or follows a line of several pieces (--stages; a ramp is one piece). Place: the worker asks for
 * the next arrival. Pure: no clock, no memory.
 *
 * Shape: arrivals are those of a process of rate 1 (one each 1, or each Exp(1)), put through the
 * inverse of the area under the rate. So each piece is exact, and of N shards each has an N-th: of
 * a fixed process every N-th arrival, of a Poisson one a process of an N-th of the rate, which is
 * the same in law.
 *
 *     rate               ____________
 *               ______--'            \
 *     0 ____---'                      \___ the last rate, held after the last piece
 *       piece 0  piece 1      2      3         area under it up to t = number of arrivals before t
 */
#ifndef LOAD_PACE_H
#define LOAD_PACE_H

#include "plan.h"

/* All of it private. The plan has to stay where it is. */
struct load_pace {
    enum load_arrivals arrivals;
    unsigned shards;
    double rate; /* a second; of all shards if they are fixed, of this one otherwise */
    double rate_end;
    uint64_t start_ns;               /* of the present piece, after the beginning */
    uint64_t length_ns;              /* UINT64_MAX: it has no end, and is level */
    double start_area;               /* of the pieces before it */
    const struct load_stage *stages; /* the pieces after it */
    unsigned stages_left;
    double area;      /* of the next arrival, since the beginning, or since the rate was set; below
                         0: due before then */
    double stride;    /* of fixed arrivals: every so many-th is this shard's */
    uint64_t last_ns; /* the latest that was given out */
    uint64_t random[2];
};

/* xoroshiro128+: also for all else that is random in a run. Two numbers in [0, 1) and [0, n). */
void load_random_init(uint64_t state[2], uint64_t seed);
double load_random_fraction(uint64_t state[2]);
uint64_t load_random_below(uint64_t state[2], uint64_t n);

/* Shard 0 to shards - 1 of the plan's arrivals; seed, arrivals, rate, rate_end and the stages are
 * read, and without stages duration_ns if those two rates differ. The first fixed arrival is at 0,
 * or as soon as the rate is above 0. */
void load_pace_init(struct load_pace *pace, const struct load_plan *plan, unsigned shard,
                    unsigned shards);

/* The next arrival, ns after the beginning; never earlier than the one before it. UINT64_MAX: there
 * is none, the rate is 0 from now on. */
uint64_t load_pace_next(struct load_pace *pace);

/* So many of all shards' arrivals are to be expected before that time; a number with a fraction. */
double load_pace_expected(const struct load_plan *plan, uint64_t before_ns);

/* Pass over those that come before that time, after the beginning, without giving them out, however
 * many: their number. Poisson ones count as what is to be expected. */
uint64_t load_pace_skip(struct load_pace *pace, uint64_t before_ns);

/* Nothing arrives from at_ns on, until a rate is set. One that was given out already, and was still
 * to come, is withdrawn. */
void load_pace_pause(struct load_pace *pace, uint64_t at_ns);

/* Set a constant rate, over all shards, from at_ns on. An arrival that was given out already stays;
 * if it is later than at_ns, the new rate begins with it. Arrivals that were due earlier but not
 * given out still come. */
void load_pace_set_rate(struct load_pace *pace, uint64_t at_ns, double rate, unsigned shards);

#endif
