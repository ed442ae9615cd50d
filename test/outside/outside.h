/* SPDX-License-Identifier: MIT
 *
 * What: the frame of a C test in test/outside. Such a test uses only the documentation and the
 * public headers: no private header, no fake, no source of a library.
 *
 * Place: each test/outside/<area>-<topic>.c is one check program; tools/run-tests.sh runs it in
 * every flavour. tools/promises.sh reads the comment above each case, which quotes the sentence of
 * the documentation that the case tests:
 *
 *     // promise: docs/dict.md: A batch can be used again after its commit.       (as a C comment)
 *     START_TEST(a_batch_commits_twice)
 *
 * Limits: a case may take 400 seconds, so that a busy machine fails no test. Wait for events.
 *
 * Example:
 *
 *     int
 *     main(void)
 *     {
 *         const TTest *cases[] = {a_batch_commits_twice, NULL};
 *
 *         return outside_run("dict-batch", cases);
 *     }
 */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char outside_directory[] = "/tmp/sxe-outside-XXXXXX";

/* The path of a file that this case may make, in the program's own directory; each case removes its
 * files. The path is valid until the next call. */
static inline const char *
outside_path(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", outside_directory, name);
    return path;
}

/* Run the cases of a list that ends in NULL, each in a new process (unless CK_FORK is "no").
 * Returns main()'s result. */
static inline int
outside_run(const char *name, const TTest *const *cases)
{
    /* Check ends a case after four seconds, which a busy machine exceeds: only a hang may. */
    setenv("CK_DEFAULT_TIMEOUT", "400", 0);

    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    int failed;

    if (mkdtemp(outside_directory) == NULL) {
        perror(outside_directory);
        return EXIT_FAILURE;
    }
    for (; *cases != NULL; cases++) {
        tcase_add_test(tcase, *cases);
    }
    suite_add_tcase(suite, tcase);

    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (rmdir(outside_directory) != 0) {
        perror(outside_directory);
        return EXIT_FAILURE;
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
