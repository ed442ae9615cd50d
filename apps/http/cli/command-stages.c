/* SPDX-License-Identifier: MIT
 *
 * What: parses --stages RATE:TIME,... and rates such as 10k.
 */
#include <stdlib.h>
#include <string.h>

#include "command-line.h"
#include "command.h"
#include "sxe-time.h"
#include "threshold.h"

#define STAGES_NS_MAX (86400 * SXE_NS_PER_SECOND)

int
load_command_rate(const char *text, double *rate, const char **after)
{
    static const struct {
        char letter;
        double factor;
    } suffixes[] = {{'k', 1e3}, {'K', 1e3}, {'M', 1e6}, {'G', 1e9}};
    char *end;

    *rate = strtod(text, &end);
    if (end == text)
        return -1;
    for (unsigned i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (*end == suffixes[i].letter) {
            *rate *= suffixes[i].factor;
            end++;
            break;
        }
    }
    *after = end;
    return *rate >= 0 && *rate <= 1e9 ? 0 : -1;
}

/* Take a time such as ":10s" off the front of the text. False: the text does not begin with a
 * time. */
static bool
take_stage_time(const char **text, uint64_t *ns)
{
    static const struct {
        const char *text;
        double ns;
    } units[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},    {"s", 1e9},
                 {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {"", 1e9}};
    unsigned long digits, scale;
    const char *unit = **text == ':' ? command_line_decimal(*text + 1, &digits, &scale) : NULL;
    size_t length = unit == NULL ? 0 : strcspn(unit, ",");

    for (unsigned i = 0; unit != NULL && i < sizeof(units) / sizeof(units[0]); i++) {
        double value = (double)digits / (double)scale * units[i].ns;

        if (strlen(units[i].text) != length || strncmp(unit, units[i].text, length) != 0)
            continue;
        *ns = value < STAGES_NS_MAX ? (uint64_t)(value + 0.5) : STAGES_NS_MAX + 1;
        *text = unit + length;
        return true;
    }
    return false;
}

const char *
load_stages_parse(struct load_plan *plan, const char *text)
{
    uint64_t end_ns = 0;
    double highest = 0;

    for (const char *at = text; at == text || *at++ == ',';) {
        struct load_stage *stage = &plan->stages[plan->stages_number];
        uint64_t ns;

        if (plan->stages_number == LOAD_STAGES_MAX)
            return "there are more than 32 stages";
        if (load_command_rate(at, &stage->rate, &at) < 0 || !take_stage_time(&at, &ns) ||
            (*at != ',' && *at != '\0'))
            return "it must be a list of RATE:TIME, the rate at the end of each stage and how long "
                   "it takes to get there, such as 0:10s,5k:1m,5k:2m,0:30s";
        end_ns += ns;
        highest = stage->rate > highest ? stage->rate : highest;
        stage->end_ns = end_ns;
        plan->stages_number++;
    }
    if (end_ns < SXE_NS_PER_MS || end_ns > STAGES_NS_MAX)
        return "its stages take less than 1 ms or more than a day together";
    return highest > 0 ? NULL : "all its rates are 0, so nothing would be sent";
}

int
load_command_stages(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    struct load_plan *plan = &command->plan;
    const char *problem = load_stages_parse(plan, typed->stages);

    if (problem != NULL)
        return load_command_refuse("the load (--stages) is '%s': %s", typed->stages, problem);
    plan->stop = LOAD_STOP_TIME;
    plan->model = typed->is_open ? LOAD_OPEN : LOAD_PARTLY_OPEN;
    plan->rate = 0;
    plan->rate_end = plan->stages[plan->stages_number - 1].rate;
    plan->duration_ns = plan->stages[plan->stages_number - 1].end_ns;
    return COMMAND_LINE_GO_ON;
}

/* Refuse conditions about stages that the plan does not have. */
int
load_command_check_conditions(struct load_command *command)
{
    const struct load_plan *plan = &command->plan;

    for (unsigned i = 0; i <= LOAD_THRESHOLDS_MAX; i++) {
        const char *condition = i < LOAD_THRESHOLDS_MAX ? plan->thresholds[i] : plan->find;
        struct load_threshold threshold;

        if (condition == NULL)
            continue;
        (void)load_threshold_parse(&threshold, condition);
        if (load_threshold_stage(&threshold) > plan->stages_number)
            return load_command_refuse("the condition '%s' is about stage %u, but there are %u "
                                       "(--stages)",
                                       condition, load_threshold_stage(&threshold),
                                       plan->stages_number);
    }
    return COMMAND_LINE_GO_ON;
}

/* Refuse options that contradict --stages, because they also say how much is sent, and when. Called
 * before the plan is made. */
int
load_command_check_stages(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    const struct load_plan *plan = &command->plan;
    const char *other = typed->stop_option != NULL ? typed->stop_option
                        : typed->rate != NULL      ? "-R"
                        : typed->replay != NULL    ? "--replay"
                        : plan->find != NULL       ? "--find"
                                                   : NULL;

    if (typed->stages == NULL)
        return COMMAND_LINE_GO_ON;
    if (other != NULL)
        return load_command_refuse("--stages says the rate from the beginning to the end, and when "
                                   "that is: it cannot be combined with %s",
                                   other);
    if (plan->warmup_ns > 0 || plan->is_warmup_auto)
        return load_command_refuse(
            "--stages cannot be combined with --warmup: make the warm-up its first "
            "stage, whose figures stand apart from those of the others");
    return COMMAND_LINE_GO_ON;
}
