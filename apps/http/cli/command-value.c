/* SPDX-License-Identifier: MIT
 *
 * Values whose syntax only one option has: thresholds, figures, addresses for metrics.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command-line.h"
#include "command.h"
#include "metrics.h"
#include "output.h"
#include "start-at.h"
#include "sxe-time.h"
#include "threshold.h"

int
load_command_refuse(const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "sxe-http: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, ". Try --help.\n");
    return COMMAND_LINE_WRONG;
}

int
load_command_refuse_if(const char *what, const char *problem)
{
    if (problem == NULL)
        return COMMAND_LINE_GO_ON;
    return load_command_refuse("%s is '%s': %s", what, optarg, problem);
}

int
load_command_ip(struct load_command *command)
{
    size_t length = strlen(optarg);

    if (length >= sizeof(command->plan.ip))
        return load_command_refuse("the ip (-i) is '%s'; it must be an IPv4 or IPv6 address",
                                   optarg);
    memcpy(command->plan.ip, optarg, length + 1);
    command->typed.has_ip = true;
    return COMMAND_LINE_GO_ON;
}

int
load_command_arrivals(struct load_command *command)
{
    command->typed.has_arrivals = true;
    command->plan.arrivals = strcmp(optarg, "fixed") == 0 ? LOAD_FIXED : LOAD_POISSON;
    if (command->plan.arrivals == LOAD_FIXED || strcmp(optarg, "poisson") == 0)
        return COMMAND_LINE_GO_ON;
    return load_command_refuse("the arrivals (--arrivals) are '%s'; they must be poisson or fixed",
                               optarg);
}

int
load_command_positive(const char *what, const char *unit, double max, double *value)
{
    char *end;

    *value = strtod(optarg, &end);
    if (end != optarg && (strcmp(end, unit) == 0 || *end == '\0') && *value > 0 && *value <= max)
        return COMMAND_LINE_GO_ON;
    return load_command_refuse("%s is '%s'; it must be a number above 0 and up to %g%s", what,
                               optarg, max, unit);
}

int
load_command_min_effect(struct load_command *command)
{
    double percent;
    char *end;

    percent = strtod(optarg, &end);
    command->plan.min_effect = percent / 100;
    /* "--min-effect 2%" is two words of the command line, "--min-effect=2%" is one. */
    command->typed.min_effect_words += command->plan.argv[optind - 1] == optarg ? 2 : 1;
    if (end != optarg && (*end == '\0' || strcmp(end, "%") == 0) && percent >= 0 && percent <= 100)
        return COMMAND_LINE_GO_ON;
    return load_command_refuse("the minimum effect (--min-effect) is '%s'; it must be from 0 to "
                               "100%%",
                               optarg);
}

/* Find a figure by the name that it has in the JSON output. As in a threshold, p99 means
 * response.p99. False: no figure has this name. */
static bool
find_figure(const char *name, size_t length, unsigned *figure)
{
    static const char prefix[] = "response.";

    for (unsigned i = 0; i < LOAD_FIGURES; i++) {
        const char *whole = load_figure_names[i].whole;
        size_t skipped = strncmp(whole, prefix, sizeof(prefix) - 1) == 0 && *name == 'p'
                             ? sizeof(prefix) - 1
                             : 0;

        if (strlen(whole + skipped) == length && strncmp(whole + skipped, name, length) == 0) {
            *figure = i;
            return true;
        }
    }
    return false;
}

int
load_command_until_ci(struct load_plan *plan)
{
    char *colon = strchr(optarg, ':');
    int result;

    plan->until_ci_figure = LOAD_FIGURE_RATE;
    if (colon != NULL && !find_figure(optarg, (size_t)(colon - optarg), &plan->until_ci_figure))
        return load_command_refuse("the width (--until-ci) is '%s', and no figure is called so; "
                                   "write rate:2%%, p50:5%% or service.p99:5%%",
                                   optarg);
    if (colon != NULL)
        optarg = colon + 1;
    result = load_command_positive("the width (--until-ci)", "%", 50, &plan->until_ci);

    plan->until_ci /= 100;
    return result;
}

int
load_command_condition(const char *what, const char **to)
{
    struct load_threshold threshold;

    *to = optarg;
    return load_command_refuse_if(what, load_threshold_parse(&threshold, optarg));
}

int
load_command_threshold(struct load_command *command)
{
    unsigned last = sizeof(command->plan.thresholds) / sizeof(command->plan.thresholds[0]) - 1;

    if (command->typed.thresholds == last)
        return load_command_refuse("there are more than %u thresholds", last);
    return load_command_condition("the threshold",
                                  &command->plan.thresholds[command->typed.thresholds++]);
}

int
load_command_start_at(struct load_plan *plan)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return load_command_refuse_if(
        "the time to begin at (--start-at)",
        load_start_at_parse(optarg,
                            (uint64_t)now.tv_sec * SXE_NS_PER_SECOND + (uint64_t)now.tv_nsec,
                            &plan->start_at_ns));
}

int
load_command_metrics(struct load_plan *plan)
{
    struct sockaddr_storage address;
    socklen_t length;

    plan->metrics = optarg;
    return load_command_refuse_if("the address (--metrics)",
                                  load_metrics_parse(optarg, &address, &length));
}

int
load_command_request_file(struct load_typed *typed)
{
    if (typed->request_files_number == LOAD_REQUEST_FILES_MAX)
        return load_command_refuse("there are more than %u request files", LOAD_REQUEST_FILES_MAX);
    typed->request_files[typed->request_files_number++] = optarg;
    return COMMAND_LINE_GO_ON;
}
