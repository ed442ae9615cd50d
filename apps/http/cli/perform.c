/* SPDX-License-Identifier: MIT
 *
 * Executing a command (a run, compare, merge, html or the self-test), with its outputs and its exit
 * status.
 */
#include "perform.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "handshake.h"
#include "merge.h"
#include "monitor.h"
#include "output.h"
#include "run.h"
#include "script.h"
#include "summary.h"
#include "sxe-log.h"

static unsigned
rank_of_status(int status)
{
    static const enum load_exit ranks[] = {
        LOAD_EXIT_OK,    LOAD_EXIT_THRESHOLD, LOAD_EXIT_UNTOLD,     LOAD_EXIT_SUSPECT,
        LOAD_EXIT_USAGE, LOAD_EXIT_ERRORS,    LOAD_EXIT_INTERRUPTED};
    unsigned i = 0;

    while ((int)ranks[i] != status)
        i++;
    return i;
}

/* Replace the run's exit status by this one if it stands for a worse failure. */
static void
add_status(struct load_run *run, int status)
{
    if (rank_of_status(status) > rank_of_status((int)run->status))
        run->status = (enum load_exit)status;
}

/* Whether this process is a step of a GitHub workflow, which reads annotations from the output. */
static bool
is_in_github(void)
{
    const char *actions = getenv("GITHUB_ACTIONS");

    return actions != NULL && strcmp(actions, "true") == 0;
}

/* Compare the run with a baseline, and then write the output files, because they contain the exit
 * status. Returns the exit status. */
static int
report_run(const struct load_command *command, struct load_run *run, FILE *out)
{
    static struct load_comparison comparison;
    const char *baseline = command->plan.baseline;

    comparison.is_made = false;
    run->comparison = &comparison;
    if (out != NULL)
        load_summary_print(out, run, isatty(fileno(out)) == 1 && load_wants_colour());
    if (command->script != NULL)
        add_status(run, load_script_done(command->script, run));
    if ((baseline != NULL || command->plan.baseline_cmd != NULL) && !run->is_interrupted)
        add_status(run, load_compare_baseline(baseline, run, out != NULL ? out : stderr, stderr));
    add_status(run, load_output_all(run, stderr));
    if (load_monitor_finish(run->monitor, run) < 0)
        add_status(run, LOAD_EXIT_ERRORS);
    if (command->plan.annotate || is_in_github())
        load_output_annotations(out != NULL ? out : stderr, run);
    return (int)run->status;
}

/* Check before the run that all files can be used, because a run may take an hour. */
static int
check_files(const struct load_plan *plan)
{
    int status = LOAD_EXIT_OK;

    /* Read the baseline before the outputs are checked: the check creates output files, perhaps at
     * the baseline's path. */
    if (plan->baseline != NULL)
        status = load_compare_check(plan->baseline, stderr);
    return status == LOAD_EXIT_OK ? load_output_check(plan, stderr) : status;
}

/* Merge runs, and report the sum. If its JSON goes to standard output, the report for people goes
 * to standard error. */
static int
perform_merge(const struct load_command *command)
{
    static struct load_run run;
    struct load_merge sum = {0};
    bool is_beside = load_output_uses_stdout(&command->plan);
    FILE *out = is_beside ? stderr : stdout;
    int status = check_files(&command->plan);

    if (status == LOAD_EXIT_OK)
        status = load_merge(&sum, &run, &command->plan, command->argc, command->argv, stderr);
    if (status == LOAD_EXIT_OK && !(is_beside && command->plan.quiet)) {
        load_summary_plan(out, run.plan);
        load_summary_sockets(out, run.trials[0].result);
        status = report_run(command, &run, out);
    } else if (status == LOAD_EXIT_OK) {
        status = report_run(command, &run, NULL);
    }
    load_run_free(&run);
    load_merge_free(&sum);
    return status;
}

/* Check before the run that the files of TLS can be used. */
static int
check_tls_files(const struct load_plan *plan)
{
    const char *problem = plan->tls.is_used ? load_handshake_check(plan) : NULL;

    if (problem == NULL)
        return LOAD_EXIT_OK;
    fprintf(stderr, "sxe-http: cannot use TLS: %s\n", problem);
    return LOAD_EXIT_USAGE;
}

static int
perform_load(const struct load_command *command)
{
    static struct load_run run;
    FILE *out = load_output_uses_stdout(&command->plan) ? NULL : stdout;
    int status = check_files(&command->plan);

    if (status == LOAD_EXIT_OK)
        status = check_tls_files(&command->plan);
    if (status != LOAD_EXIT_OK)
        return status;
    /* If the reader of the report is gone, SIGPIPE must not end the process: the output files must
     * still be written. */
    signal(SIGPIPE, SIG_IGN);
    /* The report counts failures, so log lines about each are printed only if the user asks for
     * them. */
    if (getenv("SXE_LOG_LEVEL") == NULL)
        sxe_log_set_level(SXE_LOG_FATAL);
    status = load_run(&run, &command->plan, out, stderr);
    if (status == 0)
        status = report_run(command, &run, out);
    load_run_free(&run);
    return status;
}

static int
perform_command(const struct load_command *command)
{
    switch (command->what) {
    case LOAD_COMMAND_COMPARE:
        return load_compare_files(command->argv[0], command->argv[1], command->plan.min_effect,
                                  stdout, stderr);
    case LOAD_COMMAND_MERGE:
        return perform_merge(command);
    case LOAD_COMMAND_OVERLAY:
        return load_output_overlay(command->argc, command->argv, stdout, stderr);
    case LOAD_COMMAND_SELFTEST:
        return load_selftest(stdout, stderr);
    case LOAD_COMMAND_RUN:
        break;
    }
    return perform_load(command);
}

/* Whether the reader of a pipe has closed it, as in "sxe-http ... | head -3". This is no error. */
static bool
is_reader_gone(void)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};

    return poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0;
}

int
load_perform(int argc, char **argv, load_prepare prepare)
{
    struct load_command command;
    int status = load_command_parse(&command, argc, argv);

    if (status < 0 && prepare != NULL)
        status = prepare(&command);
    if (status < 0)
        status = perform_command(&command);
    load_command_free(&command);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !is_reader_gone()) {
        fprintf(stderr, "sxe-http: the report could not be written\n");
        return EXIT_FAILURE;
    }
    return status;
}
