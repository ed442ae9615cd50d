/* SPDX-License-Identifier: MIT
 *
 * What: the main() of a unit test program, `return sxe_test_main(suite);`.
 * Limits: a case that hangs is ended after 400 seconds (CK_DEFAULT_TIMEOUT); none takes more than
 * 12 on an idle machine.
 */
#ifndef TEST_MAIN_H
#define TEST_MAIN_H

#include <check.h>

/* Run the suite as the CK_... environment wants it: EXIT_SUCCESS, or EXIT_FAILURE if a check
 * failed. The coverage counters of cases that end in abort() are kept. Owns the suite. */
int sxe_test_main(Suite *suite);

#endif
