/* SPDX-License-Identifier: MIT */
#include "perform.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "merge.h"
#include "monitor.h"
#include "output.h"
#include "run.h"
#include "script.h"
#include "summary.h"
#include "sxe-log.h"

static unsigned
rank(int status)
{
    static const enum http_exit ranks[] = {
        HTTP_EXIT_OK,    HTTP_EXIT_THRESHOLD, HTTP_EXIT_UNTOLD,     HTTP_EXIT_SUSPECT,
        HTTP_EXIT_USAGE, HTTP_EXIT_ERRORS,    HTTP_EXIT_INTERRUPTED};
    unsigned i = 0;

    while ((int)ranks[i] != status)
        i++;
    return i;
}

/* What is found after the run may be worse than what the run was judged. */
static void
add_status(struct http_run *run, int status)
{
    if (rank(status) > rank((int)run->status))
        run->status = (enum http_exit)status;
}

/* A step of a workflow, whose lines GitHub reads. */
static bool
is_in_github(void)
{
    const char *actions = getenv("GITHUB_ACTIONS");

    return actions != NULL && strcmp(actions, "true") == 0;
}

/* The outputs come last: they have the exit status in them. */
static int
report(const struct http_command *command, struct http_run *run, FILE *out)
{
    static struct http_comparison comparison;
    const char *baseline = command->plan.baseline;

    comparison.is_made = false;
    run->comparison = &comparison;
    if (out != NULL)
        http_summary_print(out, run, isatty(fileno(out)) == 1 && http_wants_colour());
    if (command->script != NULL)
        add_status(run, http_script_done(command->script, run));
    if ((baseline != NULL || command->plan.baseline_cmd != NULL) && !run->is_interrupted)
        add_status(run, http_compare_baseline(baseline, run, out != NULL ? out : stderr, stderr));
    add_status(run, http_output_all(run, stderr));
    if (http_monitor_finish(run->monitor, run) < 0)
        add_status(run, HTTP_EXIT_ERRORS);
    if (command->plan.annotate || is_in_github())
        http_output_annotations(out != NULL ? out : stderr, run);
    return (int)run->status;
}

/* What would make a run of an hour useless is found before it. */
static int
check_files(const struct http_plan *plan)
{
    int status = HTTP_EXIT_OK;

    /* First, for the check of the outputs creates them. */
    if (plan->baseline != NULL)
        status = http_compare_check(plan->baseline, stderr);
    return status == HTTP_EXIT_OK ? http_output_check(plan, stderr) : status;
}

/* The report of a sum whose JSON goes to standard output is for people, and beside it. */
static int
merge(const struct http_command *command)
{
    static struct http_run run;
    struct http_merge sum = {0};
    bool is_beside = http_output_uses_stdout(&command->plan);
    FILE *out = is_beside ? stderr : stdout;
    int status = check_files(&command->plan);

    if (status == HTTP_EXIT_OK)
        status = http_merge(&sum, &run, &command->plan, command->argc, command->argv, stderr);
    if (status == HTTP_EXIT_OK && !(is_beside && command->plan.quiet)) {
        http_summary_plan(out, run.plan);
        http_summary_sockets(out, run.trials[0].result);
        status = report(command, &run, out);
    } else if (status == HTTP_EXIT_OK) {
        status = report(command, &run, NULL);
    }
    http_run_free(&run);
    http_merge_free(&sum);
    return status;
}

static int
load(const struct http_command *command)
{
    static struct http_run run;
    FILE *out = http_output_uses_stdout(&command->plan) ? NULL : stdout;
    int status = check_files(&command->plan);

    if (status != HTTP_EXIT_OK)
        return status;
    /* There may be files to write when nobody reads the report any more. */
    signal(SIGPIPE, SIG_IGN);
    /* The report counts what fails, and we say what ends us; a line of the log for each is for
     * those who ask for it. */
    if (getenv("SXE_LOG_LEVEL") == NULL)
        sxe_log_set_level(SXE_LOG_FATAL);
    status = http_run(&run, &command->plan, out, stderr);
    if (status == 0)
        status = report(command, &run, out);
    http_run_free(&run);
    return status;
}

static int
perform(const struct http_command *command)
{
    switch (command->what) {
    case HTTP_COMMAND_COMPARE:
        return http_compare_files(command->argv[0], command->argv[1], command->plan.min_effect,
                                  stdout, stderr);
    case HTTP_COMMAND_MERGE:
        return merge(command);
    case HTTP_COMMAND_OVERLAY:
        return http_output_overlay(command->argc, command->argv, stdout, stderr);
    case HTTP_COMMAND_SELFTEST:
        return http_selftest(stdout, stderr);
    case HTTP_COMMAND_RUN:
        break;
    }
    return load(command);
}

/* "sxe-http ... | head -3" has what it wanted. */
static bool
is_reader_gone(void)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};

    return poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0;
}

int
http_perform(int argc, char **argv, http_prepare prepare)
{
    struct http_command command;
    int status = http_command_parse(&command, argc, argv);

    if (status < 0 && prepare != NULL)
        status = prepare(&command);
    if (status < 0)
        status = perform(&command);
    http_command_free(&command);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !is_reader_gone()) {
        fprintf(stderr, "sxe-http: the report could not be written\n");
        return EXIT_FAILURE;
    }
    return status;
}
