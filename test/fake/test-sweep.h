/* SPDX-License-Identifier: MIT
 *
 * What: makes long sweeps of unit tests faster: many small cases run in one process, or only some
 * run. Place: beside test-main.h, in tests with such sweeps.
 */
#ifndef TEST_SWEEP_H
#define TEST_SWEEP_H

#include <check.h>
#include <stdbool.h>

/* A loop test for cases that leave nothing: START_TEST(name), then SXE_TEST_GROUPS(name, cases),
 * added by sxe_test_add_groups(tcase, name, cases). Sixteen cases share a process, because starting
 * and ending a process takes longer than a case. */
#define SXE_TEST_GROUP 16
#define SXE_TEST_GROUPS(name, cases)                                                            \
    START_TEST(name##_by_sixteens)                                                              \
    {                                                                                           \
        (void)name;                                                                             \
        for (int at = _i * SXE_TEST_GROUP; at < (int)(cases) && at < (_i + 1) * SXE_TEST_GROUP; \
             at++) {                                                                            \
            sxe_test_at = at;                                                                   \
            name##_fn(at);                                                                      \
        }                                                                                       \
        sxe_test_at = -1;                                                                       \
    }                                                                                           \
    END_TEST
#define sxe_test_add_groups(tcase, name, cases)       \
    tcase_add_loop_test(tcase, name##_by_sixteens, 0, \
                        ((int)(cases) + SXE_TEST_GROUP - 1) / SXE_TEST_GROUP)

/* The number of the case that runs in a group; -1: none. If the case fails, the number is printed
 * at the end of the process. */
extern int sxe_test_at;

/* Whether long sweeps run only a part of their cases: SXE_SWEEP=thin, see tools/run-tests.sh. */
bool sxe_test_is_thin(void);

#endif
