/* SPDX-License-Identifier: MIT
 *
 * What: requests and checks that are written in Lua 5.4, as scripts of wrk, which run unchanged, or
 * as scenarios. Place: the options -s script.lua and --scenario file.lua; a supplier of requests,
 * see requests.h.
 *
 * Shape: a script is loaded once for the parent and once for each worker, before they are forked;
 * none of them sees the globals of another one, except by thread:set and thread:get.
 *
 *     parent   load all, setup(thread) a worker ....................... done(summary, ...)
 *     worker          fork -> init(args), request() ... response() -> its globals go back --'
 *
 *     setup(thread)  init(args)  delay()  request()  response(status, headers, body)
 *     done(summary, latency, requests)                          as in wrk
 *     check(status, headers, body, kind)   false or nil, and why: the reply is a failed check
 *     wrk.kinds = {"GET", "POST"}          request() returns bytes and one of them
 *
 * A script without request(), delay(), response() and check() costs nothing a query: what
 * wrk.format() makes after init() is sent. The cost of other scripts is measured. If request()
 * returns several requests, they are sent one by one.
 *
 * A scenario returns a table; see examples/read-write.lua:
 *
 *     files   n goes from 1 to this, round robin, for each kind (1)
 *     kinds   a list: name, times in a row (1), method, path, headers, body with {n} in them, or
 *             request = function(n); expect_status, expect_body; check = function, as above
 *     steps   instead of both: a session, see session-private.h and docs/load-generator.md
 *
 * Limits: an error in a script, or a function that has used 5 s of CPU time, ends the run with a
 * traceback, never the process; a script gets LOAD_SCRIPT_MEMORY bytes; 1 MB of globals that are
 * nil, booleans, numbers, strings or tables of them go back, for thread:get. The requests of done()
 * are the rates of the trials, where wrk has those of the threads.
 */
#ifndef LOAD_SCRIPT_H
#define LOAD_SCRIPT_H

#include <stdio.h>

#include "requests.h"
#include "run.h"
#include "template.h"

#define LOAD_SCRIPT_MEMORY (256u << 20)

/* All pointers must stay valid as long as the script. */
struct load_script_options {
    const char *path;
    bool is_scenario;
    int argc; /* the arguments after -- on the command line */
    char **argv;
    /* host, port and target: the initial values of wrk.host, wrk.port and wrk.path */
    const char *host;
    uint16_t port;
    const char *target;
    const char *authority;
    const char *scheme; /* the initial value of wrk.scheme; NULL: "http" */
    /* the initial values of wrk.method, wrk.headers and wrk.body */
    const struct load_template_options *request;
    unsigned workers;
    /* whether stdout has a report: then the script's output goes to stderr */
    bool is_stdout_data;
    /* the plan, whose output files must not be the file of rows; NULL: there are no outputs */
    const struct load_plan *plan;
};

/* Load the script and call setup(). NULL after a message on err, with a traceback if the script
 * failed. */
struct load_requests *load_script_new(const struct load_script_options *options, FILE *err);

/* Call this in the parent after the run. It calls done(), if the script has one; its output goes to
 * stdout, or to stderr. Then it prints on err how many checks failed. Returns LOAD_EXIT_OK, or
 * LOAD_EXIT_ERRORS if a function of the script raised an error, here or in a worker. */
int load_script_done(struct load_requests *requests, const struct load_run *run);
void load_script_free(struct load_requests *requests);

/* The results of a worker for done(), as bytes that can be copied to another process. That process
 * must have loaded the same script for as many workers. */
void *load_script_left(struct load_requests *requests, unsigned shard, unsigned shards,
                       size_t *size);

#endif
