/* SPDX-License-Identifier: MIT
 *
 * What: the program sxe-http, a load generator that says when its result is suspect.
 *
 * Shape: the parts of the program, in reading order. The name of a part's main file begins with the
 * name of the part; names of its other files follow the semicolon:
 *
 *     perform      executes one command, from its words to its exit status
 *     command      the command line -> plan.h, what one run is asked to do; url
 *     run          the whole run: trials, workers, searches, a server to restart; selftest
 *     worker       a process that makes a part of the load; ticker, heap, pace, reply, expect
 *     requests.h   what is sent; template, replay, script, scenario
 *     result.h     what was counted; histogram, timeline
 *     verdict      whether the client was too slow; threshold, stats, fanout, compare, merge
 *     summary      what people read; live, output-* and page.html; text, json-writer, result-file
 *     checks       what a CI server reads; output-junit, output-markdown, annotations
 *     monitor      what programs read while the load runs; tally, metrics-*, output-jsonl
 *     json-reader  what a --json file says; result-read, plan-read
 */
#include "perform.h"
#include "program.h"

int
main(int argc, char **argv)
{
    program_begin(NULL);
    return load_perform(argc, argv, NULL);
}
