/* SPDX-License-Identifier: MIT
 *
 * What: the program sxe-http: a load generator that says when its result is suspect. Place: main().
 *
 * Shape: the parts, in reading order; a file's name begins with its part's:
 *
 *     perform      one command, from its words to its exit status
 *     command      the command line -> plan.h, what one run is asked to do; url, address
 *     run          the whole: trials, workers, searches, a server to restart; selftest
 *     worker       one process of the load; ticker, heap, pace, reply, expect
 *     requests.h   what is sent: template, replay, script, scenario
 *     result.h     what was counted; histogram, timeline
 *     verdict      was it the client? threshold, stats, fanout, compare, merge, fingerprint
 *     summary      what people read; live, output-* and page.html; text, json-writer, result-file
 *     checks       what a CI server reads: output-junit, output-markdown, annotations
 *     monitor      what programs read while it runs: tally, metrics-*, output-jsonl
 *     json-reader  what a --json file says: result-read, plan-read
 */
#include "perform.h"
#include "program.h"

int
main(int argc, char **argv)
{
    program_begin(NULL);
    return load_perform(argc, argv, NULL);
}
