/* SPDX-License-Identifier: MIT
 *
 * Running all self-tests in order.
 */
#include <stdio.h>

#include "run.h"
#include "selftest-private.h"

static const struct {
    const char *name;
    load_selftest_check check;
} checks[] = {
    {"clocks", load_selftest_clocks},       {"timer", load_selftest_timer},
    {"histogram", load_selftest_histogram}, {"accounts", load_selftest_accounts},
    {"merge", load_selftest_merge},         {"stall", load_selftest_stall},
    {"delay", load_selftest_delay},
};

int
load_selftest(FILE *out, FILE *err)
{
    const unsigned number = sizeof(checks) / sizeof(checks[0]);
    unsigned failed = 0;
    char text[240];

    for (unsigned i = 0; i < number; i++) {
        bool holds = checks[i].check(text, sizeof(text));

        if (load_selftest_is_interrupted()) {
            fprintf(err, "sxe-http: interrupted: %u of %u checks are not made\n", number - i,
                    number);
            return LOAD_EXIT_INTERRUPTED;
        }
        failed += !holds;
        fprintf(out, "%-7s %-10s %s\n", holds ? "ok" : "FAILED", checks[i].name, text);
        fflush(out);
    }
    if (failed > 0)
        fprintf(err,
                "sxe-http: %u of %u checks failed: do not believe what is measured here before you "
                "know why; try again when nothing else runs\n",
                failed, number);
    return failed > 0 ? LOAD_EXIT_ERRORS : LOAD_EXIT_OK;
}
