/* SPDX-License-Identifier: MIT
 *
 * What: lists the checks by which a run was judged. Each has its outcome, explained in a sentence.
 * Place: used by the outputs that tell a CI server what failed: output-junit.c, output-markdown.c,
 * annotations.c.
 *
 * Shape: the checks, in their order. A check that the run does not have is left out:
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
    LOAD_CHECK_WRONG,   /* the run has no valid result, so the check has no outcome */
    LOAD_CHECK_SKIPPED, /* the check cannot be judged */
};

struct load_check {
    const char *group;
    const char *name; /* the name of the check, such as "p99<20ms" */
    enum load_check_outcome outcome;
    /* whether the user asked for the check. If so, its name is a condition or a figure, and its
     * sentence is about that. */
    bool is_asked;
    const char *title; /* a title for a check that is missed or wrong, such as "Threshold missed" */
    /* whether a missed check only means that the result is doubtful, and tells nothing about the
     * server */
    bool is_doubt;
    char text[4096]; /* the outcome in words, one sentence or several */
};

/* Call `each` for every check of the run; *check is valid until that call returns. */
void load_checks_each(const struct load_run *run,
                      void (*each)(void *user, const struct load_check *check), void *user);

#endif
