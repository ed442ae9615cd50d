/* SPDX-License-Identifier: MIT
 *
 * What: a threshold: a condition on a result, such as 'p99<20ms', 'service.p99.9 <= 1s',
 * 'errors<0.1%', 'rate>50k'. Place: given by --threshold and --find. If one does not hold, the exit
 * status is 3.
 *
 * Shape: [what.]figure operator value; or stageN.figure operator value, for the requests that
 * arrived in stage N of --stages. For a stage, figure is one of response times, or errors, skipped
 * or achieved.
 *
 * `what` is response (the default), service, first_byte or connect, and `figure` is p and a
 * percentile, as in p99.9, or mean, min, max. Figures without `what` are rate (good replies a
 * second), errors (part of the queries that were sent), skipped (part of those offered), and
 * achieved (sent/offered). Operators < <= > >=. Values have a unit: us ms s m h, k M, %.
 */
#ifndef LOAD_THRESHOLD_H
#define LOAD_THRESHOLD_H

#include "result.h"

/* All members are private. */
struct load_threshold {
    unsigned char what;
    unsigned char figure;
    unsigned char operator_; /* not `operator`, which is a keyword of C++ */
    /* the number of the stage, from 1; 0: the threshold is about the whole result */
    unsigned char stage;
    double fraction;
    double value; /* the value, in ns, per second, or as a fraction */
};

/* Parse a condition. NULL, or what is wrong, as a static text ("the unit is missing: write 20ms or
 * 20us"). */
const char *load_threshold_parse(struct load_threshold *threshold, const char *text);

/* For --find: whether there can be a highest rate at which the threshold holds. There can be one if
 * the threshold is an upper limit of a time, of errors or of skipped, or a lower limit of rate or
 * achieved. */
bool load_threshold_can_be_sought(const struct load_threshold *threshold);

/* The number of the stage that the threshold is about, from 1; 0: it is about the whole result. */
unsigned load_threshold_stage(const struct load_threshold *threshold);

/* Whether the threshold limits the errors of the whole result. If so, it alone decides how many
 * errors are allowed. */
bool load_threshold_is_of_errors(const struct load_threshold *threshold);

/* Whether the threshold limits `skipped` or `achieved` of the whole result. If so, it alone decides
 * how much of the load must be sent. */
bool load_threshold_is_of_delivery(const struct load_threshold *threshold);

/* The value that the threshold's figure has in the result: in ns, per second, or as a part of 1. */
double load_threshold_figure(const struct load_threshold *threshold,
                             const struct load_result *result);

/* Whether load_threshold_figure is only a lower bound, because queries failed (histogram.h). */
bool load_threshold_is_at_least(const struct load_threshold *threshold,
                                const struct load_result *result);

/* Whether the threshold holds. *is_told becomes false if that cannot be told, because a percentile
 * has fewer than ten samples beyond it, or because there was no reply; then the threshold does not
 * hold. If a time is only a lower bound, because queries failed, no upper limit of it holds,
 * however low the bound is. */
bool load_threshold_holds(const struct load_threshold *threshold, const struct load_result *result,
                          bool *is_told);

/* A threshold, expressed in counts. To judge it, `needed` samples are necessary. `beyond` of the
 * `samples` lie beyond its value, and at most the part `allowed` (0 to 1) of them may. For a figure
 * that is no part of a whole, such as a mean, `allowed` is 0. */
struct load_evidence {
    double needed;
    double samples;
    double beyond;
    double allowed;
};
void load_threshold_evidence(const struct load_threshold *threshold,
                             const struct load_result *result, struct load_evidence *evidence);

/* The value of a figure as text for people: "3.10 ms", "50.1k/s", "0.1 %". The text belongs to this
 * thread, and is valid until the next call. */
const char *load_threshold_text(const struct load_threshold *threshold, double figure);

#endif
