/* SPDX-License-Identifier: MIT
 *
 * Refusing options that contradict each other.
 */
#include <string.h>

#include "command-line.h"
#include "command.h"
#include "outputs.h"
#include "run.h"
#include "threshold.h"

static bool
can_be_sought(const char *condition)
{
    struct load_threshold threshold;

    return load_threshold_parse(&threshold, condition) == NULL &&
           load_threshold_can_be_sought(&threshold);
}

/* The probe repeats the load's queries at other times than the load, so suppliers that cannot
 * repeat a query refuse it. */
static int
check_probe(const struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    const struct load_plan *plan = &command->plan;

    if (typed->probe == NULL)
        return COMMAND_LINE_GO_ON;
    if (plan->find != NULL)
        return load_command_refuse("--find cannot be combined with --probe: it tries many rates, "
                                   "and the probe's figures would mix them; probe the rate that "
                                   "it finds");
    if (typed->replay != NULL)
        return load_command_refuse("--replay cannot be combined with --probe: it sends each entry "
                                   "of a log once, and the probe would send some again");
    if (typed->script != NULL || typed->scenario != NULL)
        return load_command_refuse("--script and --scenario cannot be combined with --probe: "
                                   "scripts run in the load's workers only");
    return COMMAND_LINE_GO_ON;
}

/* --baseline-cmd measures two servers alternately, at the same address. Refuse options that
 * contradict this. */
static int
check_baseline(const struct load_plan *plan)
{
    if (plan->baseline_cmd == NULL)
        return COMMAND_LINE_GO_ON;
    if (plan->server_cmd == NULL)
        return load_command_refuse(
            "--baseline-cmd needs --server-cmd: the two servers are compared "
            "in turns; give both");
    if (plan->baseline != NULL || plan->aa || plan->until_ci > 0 || plan->find != NULL)
        return load_command_refuse("--baseline-cmd compares two servers in --trials of each: it "
                                   "cannot be combined with --baseline, --aa, --until-ci or "
                                   "--find");
    return COMMAND_LINE_GO_ON;
}

/* A shard sees only its own replies. Refuse options that decide by the replies, and options that
 * each part of the load would execute once more. */
static int
check_shards(const struct load_command *command)
{
    const struct load_plan *plan = &command->plan;
    const char *alone = plan->find != NULL         ? "--find"
                        : plan->until_ci > 0       ? "--until-ci"
                        : plan->is_warmup_auto     ? "--warmup auto"
                        : plan->server_cmd != NULL ? "--server-cmd"
                                                   : NULL;

    if (plan->shards == 0)
        return COMMAND_LINE_GO_ON;
    if (alone != NULL)
        return load_command_refuse("--shard makes one part of a load, without the figures of the "
                                   "others: it cannot be combined with %s",
                                   alone);
    if (plan->shards * plan->workers > LOAD_WORKERS_MAX)
        return load_command_refuse("%u shards of %u workers (-t) are too many: a load has at most "
                                   "%u workers",
                                   plan->shards, plan->workers, LOAD_WORKERS_MAX);
    return COMMAND_LINE_GO_ON;
}

int
load_command_check_together(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    const struct load_plan *plan = &command->plan;
    bool is_paced =
        typed->rate != NULL || typed->stages != NULL || typed->replay != NULL || plan->find != NULL;

    if (check_baseline(plan) != COMMAND_LINE_GO_ON)
        return COMMAND_LINE_WRONG;
    if (!is_paced && (typed->is_open || typed->has_arrivals || plan->deadline_ns > 0))
        return load_command_refuse("--open, --arrivals and --deadline need a rate: give one with "
                                   "-R");
    if (typed->is_open && plan->deadline_ns > 0)
        return load_command_refuse(
            "--open cannot be combined with --deadline: it skips a request that "
            "finds no free connection, so none waits");
    if (plan->until_ci > 0 && !load_figure_is_result(plan, LOAD_FIGURE_RATE) &&
        plan->until_ci_figure == LOAD_FIGURE_RATE)
        return load_command_refuse("--until-ci cannot wait for the interval of the rate, which is "
                                   "given (-R, --replay) and not measured: name another figure, as "
                                   "in --until-ci p99:5%%");
    if (plan->find != NULL && !can_be_sought(plan->find))
        return load_command_refuse("--find '%s': no rate is the highest that holds this condition: "
                                   "turn < and > round",
                                   plan->find);
    if (plan->find != NULL && (plan->trials > 1 || plan->until_ci > 0 || plan->aa))
        return load_command_refuse("--find tries many rates in one run: it cannot be combined with "
                                   "--trials, --until-ci or --aa");
    if (plan->find != NULL && (plan->warmup_ns > 0 || plan->rate != plan->rate_end))
        return load_command_refuse("--find tries constant rates, and warms up by itself: it cannot "
                                   "be combined with --warmup or a ramp (-R)");
    if (typed->replay != NULL && (typed->rate != NULL || plan->find != NULL))
        return load_command_refuse("--replay sends at the times of its log: it cannot be combined "
                                   "with -R or --find; --speed makes it faster");
    if (typed->replay != NULL && typed->stop_option != NULL)
        return load_command_refuse("--replay ends with its log: it cannot be combined with %s",
                                   typed->stop_option);
    if (typed->replay == NULL && typed->speed != 1)
        return load_command_refuse("--speed needs --replay: it says how fast a log is replayed");
    if (plan->think_ns > 0 && (is_paced || plan->depth > 1))
        return load_command_refuse(
            "--think is a pause of each connection: it cannot be combined with a rate "
            "or --pipeline");
    if (plan->workers > load_plan_share(plan, plan->sockets))
        return load_command_refuse(
            "%u workers (-t) need a connection each, and there are %u: give a larger -c "
            "or a smaller -t",
            plan->workers, (unsigned)load_plan_share(plan, plan->sockets));
    if (check_shards(command) != COMMAND_LINE_GO_ON)
        return COMMAND_LINE_WRONG;
    return check_probe(command);
}

/* Refuse to write an output to a file that the run reads. */
static int
check_input(const struct load_command *command, const char *what, const char *path)
{
    const char *output = path == NULL ? NULL : load_outputs_find(&command->plan, path);

    if (output == NULL)
        return COMMAND_LINE_GO_ON;
    return load_command_refuse("the output '%s' would overwrite %s '%s', which is read; give it a "
                               "file of its own",
                               output, what, path);
}

/* The path in "@FILE"; NULL: the text does not begin with @. */
static const char *
path_of_text(const char *text)
{
    return text != NULL && *text == '@' ? text + 1 : NULL;
}

static int
check_inputs(const struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    const struct load_plan *plan = &command->plan;
    const struct {
        const char *what;
        const char *path;
    } inputs[] = {
        {"the script (--script)", typed->script},
        {"the scenario (--scenario)", typed->scenario},
        {"the log (--replay)", typed->replay},
        {"the body (--body)", path_of_text(typed->body)},
        {"the body (--expect-body)", path_of_text(typed->expect_body)},
        {"the authorities (--tls-ca)", plan->tls.authorities},
        {"the certificate (--tls-cert)", plan->tls.certificate},
        {"the key (--tls-key)", plan->tls.key},
    };
    int result = COMMAND_LINE_GO_ON;

    for (unsigned i = 0; i < SXE_COUNT(inputs) && result == COMMAND_LINE_GO_ON; i++)
        result = check_input(command, inputs[i].what, inputs[i].path);
    for (unsigned i = 0; i < typed->request_files_number && result == COMMAND_LINE_GO_ON; i++)
        result = check_input(command, "the requests (--request-file)", typed->request_files[i]);
    for (int i = 0;
         command->what == LOAD_COMMAND_MERGE && i < command->argc && result == COMMAND_LINE_GO_ON;
         i++)
        result = check_input(command, "the result", command->argv[i]);
    return result;
}

int
load_command_check_outputs(struct load_command *command)
{
    const char *paths[LOAD_OUTPUTS];

    load_outputs_list(paths, &command->plan);
    for (unsigned i = 0; i < LOAD_OUTPUTS; i++)
        for (unsigned k = 0; k < i; k++)
            if (paths[i] != NULL && paths[k] != NULL && load_outputs_are_same(paths[i], paths[k]))
                return load_command_refuse("two outputs go to '%s'; give each a file of its own",
                                           paths[i]);
    return check_inputs(command);
}
