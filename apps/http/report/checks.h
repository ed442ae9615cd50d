/* SPDX-License-Identifier: MIT
 *
 * What: each thing that a run was judged by, with what came of it in a sentence. Place: the outputs
 * that tell a CI server what is not well: output-junit.c, output-markdown.c, annotations.c.
 *
 * Shape: in this order, if there is such a thing:
 *
 *     run         every reply was good, and the load was sent        wrong: exit status 1, 2 or 130
 *     client      the client kept up                                 missed: RESULT SUSPECT
 *     probe       so did the probe                                   missed: PROBE SUSPECT
 *     threshold   each condition of --threshold
 *     search      the condition of --find
 *     comparison  each figure of --baseline or --baseline-cmd        missed: slower
 */
#ifndef LOAD_CHECKS_H
#define LOAD_CHECKS_H

#include "run.h"

enum load_check_outcome {
    LOAD_CHECK_PASSED,
    LOAD_CHECK_MISSED,
    LOAD_CHECK_WRONG,   /* it is no result */
    LOAD_CHECK_SKIPPED, /* it cannot be judged */
};

struct load_check {
    const char *group;
    const char *name; /* "p99<20ms" */
    enum load_check_outcome outcome;
    bool is_asked;     /* the name is a condition or a figure, which the sentence is about */
    const char *title; /* of what is missed or wrong: "Threshold missed" */
    bool is_doubt;     /* what is missed says nothing of the server */
    char text[4096];   /* a sentence, or several */
};

/* Call each of them; the check is good until the function returns. */
void load_checks_each(const struct load_run *run,
                      void (*each)(void *user, const struct load_check *check), void *user);

#endif
