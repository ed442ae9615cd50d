/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "run.h"
#include "selftest-private.h"

static const struct {
    const char *name;
    http_selftest_check check;
} checks[] = {
    {"clocks", http_selftest_clocks},       {"timer", http_selftest_timer},
    {"histogram", http_selftest_histogram}, {"accounts", http_selftest_accounts},
    {"merge", http_selftest_merge},         {"stall", http_selftest_stall},
    {"delay", http_selftest_delay},
};

int
http_selftest(FILE *out, FILE *err)
{
    const unsigned number = sizeof(checks) / sizeof(checks[0]);
    unsigned failed = 0;
    char text[240];

    for (unsigned i = 0; i < number; i++) {
        bool holds = checks[i].check(text, sizeof(text));

        if (http_selftest_is_interrupted()) {
            fprintf(err, "sxe-http: interrupted: %u of %u checks are not made\n", number - i,
                    number);
            return HTTP_EXIT_INTERRUPTED;
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
    return failed > 0 ? HTTP_EXIT_ERRORS : HTTP_EXIT_OK;
}
