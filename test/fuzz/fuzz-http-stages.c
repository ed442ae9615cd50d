/* SPDX-License-Identifier: MIT
 *
 * Any text as --stages: the rates that are accepted make arrivals in order of time, about as many
 * as the area under the rates.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "pace.h"

enum { ARRIVALS = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz-http-stages: %s\n", what);
    abort();
}

static void
check_line(struct load_plan *plan)
{
    uint64_t last_ns = 0, end_ns = 0;
    struct load_pace pace;

    for (unsigned i = 0; i < plan->stages_number; i++) {
        expect(plan->stages[i].end_ns >= end_ns, "a stage ends before it begins");
        expect(plan->stages[i].rate >= 0 && plan->stages[i].rate <= 1e9, "no rate");
        end_ns = plan->stages[i].end_ns;
    }
    plan->arrivals = LOAD_FIXED;
    load_pace_init(&pace, plan, 0, 1);
    for (unsigned i = 0; i < ARRIVALS; i++) {
        uint64_t ns = load_pace_next(&pace);

        expect(ns >= last_ns, "an arrival comes before the one before it");
        last_ns = ns;
        if (ns >= end_ns)
            break;
        expect(fabs(load_pace_expected(plan, ns) - i) < 2 + 1e-6 * i, "it comes at another time");
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct load_plan plan = {.stages_number = 0};
    char text[4096];
    const char *wrong;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    wrong = load_stages_parse(&plan, text);
    expect(plan.stages_number <= LOAD_STAGES_MAX, "more stages than there is room for");
    expect(wrong == NULL || *wrong != '\0', "refused without a reason");
    if (wrong == NULL)
        check_line(&plan);
    return 0;
}
