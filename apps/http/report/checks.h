/* SPDX-License-Identifier: MIT
 *
 * What: each check that a run was judged by, with its outcome in a sentence. Place: the outputs
 * that tell a CI server what failed: output-junit.c, output-markdown.c, annotations.c.
 *
 * Shape: in this order; a check that the run does not have is left out:
 *
 *     run         every reply was good, and the load was sent        wrong: exit status 1, 2 or 130
 *     client      the client kept up                                 missed: RESULT SUSPECT
 *     probe       the probe kept up                                  missed: PROBE SUSPECT
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
    LOAD_CHECK_WRONG,   /* the run has no valid result */
    LOAD_CHECK_SKIPPED, /* the check cannot be judged */
};

struct load_check {
    const char *group;
    const char *name; /* the name of the check, such as "p99<20ms" */
    enum load_check_outcome outcome;
    /* whether the user asked for it: then the name is a condition or a figure, and the sentence is
     * about it */
    bool is_asked;
    const char *title; /* a title for a check that is missed or wrong: "Threshold missed" */
    /* whether a miss only puts the result in doubt, and says nothing about the server */
    bool is_doubt;
    char text[4096]; /* the outcome, in one sentence or several */
};

/* Call `each` for every check of the run; *check is valid until that call returns. */
void load_checks_each(const struct load_run *run,
                      void (*each)(void *user, const struct load_check *check), void *user);

#endif
