/* SPDX-License-Identifier: MIT
 *
 * Options that name output files.
 */
#include <getopt.h>

#include "command-options.h"
#include "command.h"

int
load_command_output(struct load_plan *plan, int val)
{
    const struct {
        int val;
        const char **path;
    } outputs[] = {
        {JSON, &plan->json},   {CSV, &plan->csv},     {CANDLES, &plan->candles},
        {HGRM, &plan->hgrm},   {HDR, &plan->hdr},     {HTML, &plan->html},
        {JUNIT, &plan->junit}, {JSONL, &plan->jsonl}, {MARKDOWN, &plan->markdown},
    };
    unsigned i = 0;

    while (outputs[i].val != val)
        i++;
    *outputs[i].path = optarg;
    return COMMAND_LINE_GO_ON;
}

bool
load_command_is_for_report(int val)
{
    static const int vals[] = {COMMAND_LINE_WORD, THRESHOLD, BASELINE, JSON, CSV,
                               CANDLES,           HGRM,      HDR,      HTML, JUNIT,
                               MARKDOWN,          ANNOTATE,  FANOUT,   'q'};

    for (unsigned i = 0; i < SXE_COUNT(vals); i++)
        if (val == vals[i])
            return true;
    return false;
}
