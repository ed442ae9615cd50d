/* SPDX-License-Identifier: MIT
 *
 * What: a load generator: opens all sockets first, then sends n queries on each, and says what came
 * of them. Place: the program sxe-http; read load.c next, it is what a client on lib-sxe looks
 * like.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "load.h"
#include "options.h"
#include "report.h"
#include "sxe-log.h"

static void
hint_at_limit(const struct http_result *result)
{
    struct rlimit limit = {0};

    if (result->sockets[HTTP_NO_DESCRIPTOR] == 0)
        return;
    getrlimit(RLIMIT_NOFILE, &limit);
    fprintf(stderr,
            "sxe-http: going on with %u of %u sockets: this process may open %llu files, and its "
            "hard limit is %llu (ulimit -Hn)\n",
            result->opened, result->options->sockets, (unsigned long long)limit.rlim_cur,
            (unsigned long long)limit.rlim_max);
}

static void
on_open(const struct http_result *result)
{
    http_report_sockets(stdout, result);
    fflush(stdout);
    hint_at_limit(result);
}

int
main(int argc, char **argv)
{
    struct http_options options;
    struct http_result result;
    int status = http_options_parse(&options, argc, argv);
    int error;

    if (status >= 0)
        return status;
    /* The report counts what fails; a line of the log for each is for those who ask for it. */
    if (getenv("SXE_LOG_LEVEL") == NULL)
        sxe_log_set_level(SXE_LOG_ERROR);
    http_report_plan(stdout, &options);
    fflush(stdout);
    error = http_load_run(&result, &options, on_open);
    if (error < 0) {
        fprintf(stderr, "sxe-http: cannot start: %s\n", strerror(-error));
        return EXIT_FAILURE;
    }
    http_report_queries(stdout, &result);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "sxe-http: the report could not be written\n");
        return EXIT_FAILURE;
    }
    return http_report_status(&result);
}
