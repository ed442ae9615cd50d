/* SPDX-License-Identifier: MIT
 *
 * What: one condition on a result: 'p99<20ms', 'service.p99.9 <= 1s', 'errors<0.1%', 'rate>50k'.
 * Place: --threshold and --find; exit status 3 when one does not hold.
 *
 * Shape: [what.]figure operator value; or stageN.figure operator value, of what arrived in that
 * stage of --stages: then figure is of response times, errors, skipped or achieved.
 *
 * what is response (the default), service, first_byte or connect; figure p and a percentile, as in
 * p99.9, or mean, min, max; or it is rate (ok a second), errors (part of the queries that were
 * sent), skipped (part of those offered), achieved (sent/offered), which stand alone. Operators <
 * <= > >=. Values have a unit: us ms s m h, k M, %.
 */
#ifndef LOAD_THRESHOLD_H
#define LOAD_THRESHOLD_H

#include "result.h"

/* All of it private. */
struct load_threshold {
    unsigned char what;
    unsigned char figure;
    unsigned char operator_; /* C++ has the other word */
    unsigned char stage;     /* from 1 on; 0: all of the result */
    double fraction;
    double value; /* ns, a second, or a part of 1 */
};

/* NULL, or what is wrong, as a static text ("the unit is missing: write 20ms or 20us"). */
const char *load_threshold_parse(struct load_threshold *threshold, const char *text);

/* Whether it holds at low rates and no more at high ones, so that there is a highest that holds it:
 * an upper limit of a time, errors or skipped, a lower one of rate or achieved. */
bool load_threshold_can_be_sought(const struct load_threshold *threshold);

/* The stage that it is about, from 1 on; 0: all of a result. */
unsigned load_threshold_stage(const struct load_threshold *threshold);

/* Whether it is about errors, and of no stage: then it says how many of them are good enough. */
bool load_threshold_is_of_errors(const struct load_threshold *threshold);

/* Whether it is about what was skipped or achieved, and of no stage: then it says how much must be
 * sent. */
bool load_threshold_is_of_delivery(const struct load_threshold *threshold);

/* The figure that it is about; ns, a second, or a part of 1. */
double load_threshold_figure(const struct load_threshold *threshold,
                             const struct load_result *result);

/* Whether that figure is only a lower bound, since queries failed (histogram.h). */
bool load_threshold_is_at_least(const struct load_threshold *threshold,
                                const struct load_result *result);

/* False also for a percentile with fewer than ten samples beyond it, and for all if there was no
 * reply at all: what cannot be told does not hold; *is_told says which. An upper limit of a time
 * does not hold if the time is only a lower bound, however low that is: the queries failed. */
bool load_threshold_holds(const struct load_threshold *threshold, const struct load_result *result,
                          bool *is_told);

/* A threshold as counts. `needed` samples are necessary to judge it; of the `samples`, `beyond` lie
 * beyond its value, and the part `allowed` may. For a figure that is no part of a whole, such as a
 * mean, allowed is 0. */
struct load_evidence {
    double needed;
    double samples;
    double beyond;
    double allowed;
};
void load_threshold_evidence(const struct load_threshold *threshold,
                             const struct load_result *result, struct load_evidence *evidence);

/* A figure that it is about as people read it: "3.10 ms", "50.1k/s", "0.1 %"; of this thread, good
 * until the next call. */
const char *load_threshold_text(const struct load_threshold *threshold, double figure);

#endif
