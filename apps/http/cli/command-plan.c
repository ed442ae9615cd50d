/* SPDX-License-Identifier: MIT
 *
 * Making the plan of a run from the options: address, requests, rate, amount.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command-line.h"
#include "command.h"
#include "merge.h"
#include "output.h"
#include "replay.h"
#include "script.h"
#include "stats.h"
#include "sxe-time.h"
#include "url.h"
#include "whole-file.h"

#define URL_SOCKETS   64
#define URL_SECONDS   4
#define FIND_SECONDS  60 /* most seconds of a step of --find */
#define UNTIL_CI_MOST 50 /* most trials of --until-ci */
/* how many trials each of the two servers of --baseline-cmd gets: enough to show a difference of 5
 * % */
#define SIDE_TRIALS   10
#define MANY          10000000 /* warn if -n is larger: the user may mean a total */
#define OUT_OF_MEMORY "out of memory"

/* --warmup auto may take as long as -d, but at least LEAST, and at most MOST. */
#define WARMUP_LEAST_NS (2 * SXE_NS_PER_SECOND)
#define WARMUP_MOST_NS  (10 * SXE_NS_PER_SECOND)

static unsigned
larger_of(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

/* Write a text for people to `text`; it is cut if it is too long. */
SXE_PRINTF(2, 3)
static void
format_text(char text[LOAD_TEXT_MAX], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, LOAD_TEXT_MAX, format, arguments);
    va_end(arguments);
}

/* ---- The server's address ---- */

/* Set the Host field. An IPv6 address is written in brackets and without its zone, because the zone
 * means nothing to the peer (RFC 6874, 4). */
static int
set_host_field(struct load_command *command)
{
    struct load_plan *plan = &command->plan;
    unsigned char address[sizeof(struct in6_addr)];
    char ip[INET6_ADDRSTRLEN];
    size_t length = strcspn(plan->ip, "%");
    const char *problem;
    bool is_ipv4 = inet_pton(AF_INET, plan->ip, address) == 1;
    unsigned sockets =
        plan->probe_rate > 0 ? larger_of(plan->sockets, LOAD_PROBE_SOCKETS) : plan->sockets;

    snprintf(ip, sizeof(ip), "%.*s", (int)length, plan->ip);
    if (length >= sizeof(ip) || (!is_ipv4 && inet_pton(AF_INET6, ip, address) != 1))
        return load_command_refuse("the ip (-i) is '%s'; it must be an IPv4 or IPv6 address",
                                   plan->ip);
    if (plan->local_addresses != NULL && (command->local_addresses.family == AF_INET) != is_ipv4)
        return load_command_refuse(
            "the server's address is %s; --source must have IPv%c addresses, "
            "too",
            plan->ip, is_ipv4 ? '4' : '6');
    if (plan->local_addresses != NULL &&
        (problem = load_local_addresses_try(plan->local_addresses, sockets)) != NULL)
        return load_command_refuse("the source (--source) cannot be connected from: %s", problem);
    if (*plan->authority == '\0')
        snprintf(plan->authority, sizeof(plan->authority), is_ipv4 ? "%s:%u" : "[%s]:%u", ip,
                 plan->port);
    return COMMAND_LINE_GO_ON;
}

static int
refuse_url(const char *text, const char *problem)
{
    return load_command_refuse("the URL is '%s': %s", text, problem);
}

/* Take the server's address from the first URL, except the parts that -i, -p or --unix give. */
static int
take_first_url(struct load_command *command, const struct load_url *url, const char *text)
{
    struct load_plan *plan = &command->plan;
    const char *problem = NULL;

    snprintf(plan->authority, sizeof(plan->authority), "%s", url->authority);
    plan->tls.is_used = url->is_tls;
    if (!command->typed.has_port)
        plan->port = url->port;
    if (plan->unix_path == NULL && *url->path != '\0')
        plan->unix_path = url->path;
    else if (plan->unix_path == NULL && !command->typed.has_ip)
        problem = load_command_look_up(command, url, plan->port, plan->ip, &plan->addresses);
    return problem == NULL ? COMMAND_LINE_GO_ON : refuse_url(text, problem);
}

/* Parse the first URL before the requests are made, because they need its authority. */
static int
set_url(struct load_command *command)
{
    struct load_url *url = &command->typed.url;
    const char *text = command->typed.words[0];
    const char *problem;

    if (command->typed.words_number == 0)
        return COMMAND_LINE_GO_ON;
    problem = load_url_parse(url, text);
    return problem == NULL ? take_first_url(command, url, text) : refuse_url(text, problem);
}

static int
set_where(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    struct load_plan *plan = &command->plan;

    if (!typed->has_ip && *plan->ip == '\0')
        snprintf(plan->ip, sizeof(plan->ip), "127.0.0.1");
    if (plan->port == 0)
        plan->port = 8000;
    if (plan->unix_path != NULL &&
        (typed->has_ip || typed->has_port || plan->local_addresses != NULL))
        return load_command_refuse("a unix socket has no address: --unix cannot be combined with "
                                   "-i, -p or --source");
    if (plan->unix_path != NULL &&
        (*plan->unix_path == '\0' || strlen(plan->unix_path) >= sizeof(typed->url.path)))
        return load_command_refuse("the path of a unix socket (--unix) has from 1 to %zu bytes",
                                   sizeof(typed->url.path) - 1);
    if (plan->unix_path != NULL && *plan->authority == '\0')
        snprintf(plan->authority, sizeof(plan->authority), "localhost");
    return plan->unix_path != NULL ? COMMAND_LINE_GO_ON : set_host_field(command);
}

/* ---- The request ---- */

/* Read the body of --body @FILE. */
static const char *
read_body_file(struct load_command *command, const char *path)
{
    command->typed.body_bytes = load_whole_file(path, &command->request.body_length);
    command->request.body = command->typed.body_bytes;
    return command->request.body == NULL ? strerror(errno) : NULL;
}

static int
set_plan_request(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    const char *problem = NULL;

    if (typed->method != NULL && *typed->method == '\0')
        return load_command_refuse("the method (-m) is empty");
    command->request = (struct load_template_options){
        .method = typed->method,
        .fields = typed->fields,
        .fields_number = typed->fields_number,
        .body = typed->body,
        .body_length = typed->body == NULL ? 0 : strlen(typed->body),
        .is_http_1_0 = typed->is_http_1_0,
    };
    if (typed->method == NULL)
        command->request.method = typed->body == NULL ? "GET" : "POST";
    if (typed->body != NULL && *typed->body == '@')
        problem = read_body_file(command, typed->body + 1);
    if (problem == NULL)
        return COMMAND_LINE_GO_ON;
    return load_command_refuse("the body (--body) is '%s': %s", typed->body, problem);
}

/* The file that requests come from; NULL: they do not come from a file, but from URLs. */
static const char *
input_file_of(const struct load_typed *typed)
{
    if (typed->script != NULL)
        return typed->script;
    if (typed->scenario != NULL)
        return typed->scenario;
    return typed->replay != NULL ? typed->replay : typed->request_files[0];
}

static int
check_input_file(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    int number = (typed->script != NULL) + (typed->scenario != NULL) + (typed->replay != NULL) +
                 (typed->request_files_number > 0);
    bool is_whole = typed->replay != NULL || typed->request_files_number > 0;

    if (number > 1)
        return load_command_refuse(
            "--script, --scenario, --replay and --request-file each say what "
            "the requests are: one of them is enough");
    if (number == 1 && typed->words_number > 1)
        return load_command_refuse("there are several URLs, but the requests come from %s; one URL "
                                   "says where it is sent",
                                   input_file_of(typed));
    if (is_whole && (typed->method != NULL || typed->body != NULL))
        return load_command_refuse("the requests of %s have methods and bodies of their own: it "
                                   "cannot be combined with -m or -b",
                                   input_file_of(typed));
    if (typed->request_files_number > 0 && typed->fields_number > 0)
        return load_command_refuse(
            "the requests of %s are sent as they are: it cannot be combined with -H",
            input_file_of(typed));
    if (command->argc > 0 && typed->script == NULL && typed->scenario == NULL)
        return load_command_refuse("'%s' stands after --, where a script's arguments are, but "
                                   "there is no script (-s)",
                                   command->argv[0]);
    return COMMAND_LINE_GO_ON;
}

static int
add_request_files(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;

    for (unsigned i = 0; i < typed->request_files_number; i++) {
        const char *problem = load_templates_add_file(
            command->plan.requests, typed->request_files[i], command->plan.authority);

        if (problem != NULL)
            return load_command_refuse("the request file %s", problem);
    }
    return COMMAND_LINE_GO_ON;
}

static int
add_url(struct load_command *command, const struct load_url *url, const char *text)
{
    const struct load_plan *plan = &command->plan;
    char name[LOAD_TEXT_MAX];
    const char *problem;

    if (plan->hosts_number > 0)
        format_text(name, "%s %s%s", command->request.method,
                    *url->path != '\0' ? url->path : url->authority, url->target);
    else
        format_text(name, "%s %s", command->request.method, url->target);
    load_templates_set_host(plan->requests, load_command_host_of(plan, url));
    problem = load_templates_add(plan->requests, url->authority, url->target, name);
    if (problem == NULL)
        return COMMAND_LINE_GO_ON;
    return load_command_refuse("the request for '%s' cannot be made: %s", text, problem);
}

/* Add a request for each URL. If there is no URL, add one request for "/", as in 2010. */
static int
add_urls(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    int result = COMMAND_LINE_GO_ON;

    if (typed->words_number == 0) {
        struct load_url url = typed->url;

        snprintf(url.authority, sizeof(url.authority), "%s", command->plan.authority);
        return add_url(command, &url, "/");
    }
    for (unsigned i = 0; i < typed->words_number && result == COMMAND_LINE_GO_ON; i++) {
        struct load_url url;
        const char *problem = load_url_parse(&url, typed->words[i]);

        if (problem == NULL && url.is_tls != command->plan.tls.is_used)
            problem = "a run has either http or https URLs, and the first one is another";
        result = problem == NULL ? add_url(command, &url, typed->words[i])
                                 : refuse_url(typed->words[i], problem);
    }
    return result;
}

static struct load_requests *
make_script(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    const struct load_plan *plan = &command->plan;
    const struct load_script_options options = {
        .path = input_file_of(typed),
        .is_scenario = typed->scenario != NULL,
        .argc = command->argc,
        .argv = command->argv,
        .host = plan->ip,
        .port = plan->port,
        .target = typed->url.target,
        .authority = plan->authority,
        .scheme = plan->tls.is_used ? "https" : "http",
        .request = &command->request,
        .workers = plan->workers,
        .is_stdout_data = load_output_uses_stdout(plan),
        .plan = plan,
    };

    command->script = load_script_new(&options, stderr);
    return command->script;
}

static struct load_requests *
make_templates(const struct load_command *command)
{
    struct load_requests *requests = load_templates_new(&command->request);

    if (requests == NULL)
        fprintf(stderr, "sxe-http: %s\n", OUT_OF_MEMORY);
    return requests;
}

static int
make_plan_requests(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    struct load_plan *plan = &command->plan;

    if (typed->replay != NULL)
        plan->requests = load_replay_new(typed->replay, typed->speed, plan->authority,
                                         &command->request, stderr);
    else if (typed->script != NULL || typed->scenario != NULL)
        plan->requests = make_script(command);
    else
        plan->requests = make_templates(command);
    if (plan->requests == NULL)
        return COMMAND_LINE_WRONG;
    if (plan->requests->ended != NULL && plan->depth > 1)
        return load_command_refuse("%s has steps, and a user sends one when the reply to the one "
                                   "before has arrived: it cannot be combined with --pipeline",
                                   input_file_of(typed));
    if (plan->requests->ended != NULL && plan->tls.is_used)
        return load_command_refuse("%s has steps, whose redirects and cookies are those of http: "
                                   "it cannot be combined with https",
                                   input_file_of(typed));
    if (typed->request_files_number > 0)
        return add_request_files(command);
    return input_file_of(typed) == NULL ? add_urls(command) : COMMAND_LINE_GO_ON;
}

/* Make the text that the report's first line has. */
static int
name_server(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    struct load_plan *plan = &command->plan;
    const char *scheme = plan->tls.is_used ? "https" : "http";

    if (input_file_of(typed) != NULL)
        format_text(plan->what, "%s to %s://%s", input_file_of(typed), scheme, plan->authority);
    else if (plan->hosts_number > 0)
        format_text(plan->what, "%s of %u URLs at %u hosts, the first %s://%s",
                    command->request.method, typed->words_number, plan->hosts_number, scheme,
                    plan->authority);
    else if (typed->words_number > 1)
        format_text(plan->what, "%s of %u URLs at %s://%s", command->request.method,
                    typed->words_number, scheme, plan->authority);
    else
        format_text(plan->what, "%s %s://%s%s", command->request.method, scheme, plan->authority,
                    typed->url.target);
    return COMMAND_LINE_GO_ON;
}

/* ---- How much and when ---- */

static int
set_rate(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    struct load_plan *plan = &command->plan;
    const char *after = typed->rate;
    bool is_good = load_command_rate(typed->rate, &plan->rate, &after) == 0;

    plan->rate_end = plan->rate;
    if (is_good && *after == ':')
        is_good = load_command_rate(after + 1, &plan->rate_end, &after) == 0;
    if (!is_good || *after != '\0' || plan->rate + plan->rate_end <= 0)
        return load_command_refuse("the rate (-R) is '%s'; it must be requests a second, above 0 "
                                   "and up to 1G, such as 500, 10k or 1k:50k; one end of a ramp "
                                   "may be 0",
                                   typed->rate);
    if (plan->rate != plan->rate_end && plan->stop != LOAD_STOP_TIME)
        return load_command_refuse("the rate (-R) is '%s', a ramp, which needs a duration (-d)",
                                   typed->rate);
    plan->model = typed->is_open ? LOAD_OPEN : LOAD_PARTLY_OPEN;
    return COMMAND_LINE_GO_ON;
}

static int
set_probe(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    struct load_plan *plan = &command->plan;
    const char *after = typed->probe;

    if (typed->probe == NULL)
        return COMMAND_LINE_GO_ON;
    if (load_command_rate(typed->probe, &plan->probe_rate, &after) < 0 || *after != '\0' ||
        plan->probe_rate <= 0)
        return load_command_refuse("the probe's rate (--probe) is '%s'; it must be requests a "
                                   "second, above 0 and up to 1G, such as 100",
                                   typed->probe);
    /* All shards together have one probe, which the first shard sends. */
    if (plan->shard > 0)
        plan->probe_rate = 0;
    return COMMAND_LINE_GO_ON;
}

static void
set_trials(struct load_plan *plan)
{
    if (plan->until_ci > 0)
        plan->trials = larger_of(plan->trials, UNTIL_CI_MOST);
    else if (plan->baseline_cmd != NULL)
        plan->trials =
            2 * (plan->trials > 1 ? larger_of(plan->trials, LOAD_TRIALS_MIN) : SIDE_TRIALS);
    else if (plan->aa)
        plan->trials = 2 * larger_of(plan->trials, LOAD_TRIALS_MIN);
    if (plan->trials > LOAD_TRIALS_MAX)
        plan->trials = LOAD_TRIALS_MAX;
}

static int
set_how_much(struct load_command *command)
{
    const struct load_typed *typed = &command->typed;
    struct load_plan *plan = &command->plan;
    bool has_url = typed->words_number > 0;

    if (has_url && !typed->has_sockets)
        plan->sockets = URL_SOCKETS;
    if (typed->stop_option == NULL && typed->replay != NULL)
        plan->stop = LOAD_STOP_REPLAY;
    else if (typed->stop_option == NULL && (has_url || typed->rate != NULL || plan->find != NULL)) {
        plan->stop = LOAD_STOP_TIME;
        plan->duration_ns = (plan->find != NULL ? FIND_SECONDS : URL_SECONDS) * SXE_NS_PER_SECOND;
    }
    if (plan->find != NULL && plan->stop != LOAD_STOP_TIME)
        return load_command_refuse("--find decides how long it runs: it cannot be combined with %s",
                                   typed->stop_option);
    if (typed->replay != NULL)
        plan->replay_speed = typed->speed;
    if (typed->replay != NULL || plan->find != NULL)
        plan->model = typed->is_open ? LOAD_OPEN : LOAD_PARTLY_OPEN;
    if (has_url && plan->stop == LOAD_STOP_PER_SOCKET && plan->queries * plan->sockets > MANY)
        fprintf(stderr,
                "sxe-http: -n is for each connection: %llu requests in all; use --requests for a "
                "total\n",
                (unsigned long long)(plan->queries * plan->sockets));
    if (plan->drain_ns == LOAD_DRAIN_TIMEOUT)
        plan->drain_ns = plan->timeout_ns;
    set_trials(plan);
    if (typed->stages != NULL)
        return load_command_stages(command);
    return typed->rate == NULL ? COMMAND_LINE_GO_ON : set_rate(command);
}

/* Limit --warmup auto: some servers never become warm, and some send too few replies to tell. */
static int
set_warmup(struct load_command *command)
{
    struct load_plan *plan = &command->plan;

    if (!plan->is_warmup_auto)
        return COMMAND_LINE_GO_ON;
    if (plan->stop != LOAD_STOP_TIME || command->typed.replay != NULL ||
        plan->rate != plan->rate_end)
        return load_command_refuse("--warmup auto waits until the figures stay the same, and then "
                                   "measures as long as -d says: it needs -d, and cannot be "
                                   "combined with --replay or a ramp (-R)");
    plan->warmup_ns = plan->duration_ns;
    if (plan->warmup_ns < WARMUP_LEAST_NS)
        plan->warmup_ns = WARMUP_LEAST_NS;
    else if (plan->warmup_ns > WARMUP_MOST_NS)
        plan->warmup_ns = WARMUP_MOST_NS;
    return COMMAND_LINE_GO_ON;
}

/* ---- The whole plan ---- */

/* Whether there are options, apart from words. For a comparison --min-effect does not count,
 * because it is allowed there. */
static bool
has_options(const struct load_command *command, enum load_command_what what)
{
    unsigned told = what == LOAD_COMMAND_COMPARE ? command->typed.min_effect_words : 0;

    return (unsigned)command->plan.argc > command->typed.words_number + told + 1;
}

static int
set_files(struct load_command *command, enum load_command_what what, unsigned least, unsigned most)
{
    const char *files = most == 2 ? "two files" : "one file or more";

    if (has_options(command, what))
        return load_command_refuse("%s takes no options%s: give it %s that --json wrote",
                                   command->typed.words[0],
                                   what == LOAD_COMMAND_COMPARE ? " but --min-effect" : "", files);
    command->what = what;
    command->argv = command->typed.words + 1;
    command->argc = (int)command->typed.words_number - 1;
    if ((unsigned)command->argc >= least && (unsigned)command->argc <= most)
        return COMMAND_LINE_GO_ON;
    return load_command_refuse("%s needs %s that --json wrote", command->typed.words[0], files);
}

/* If merge has no option for an output, write the sum as JSON to standard output. */
static int
set_merge(struct load_command *command)
{
    struct load_plan *plan = &command->plan;
    bool has_output = plan->json != NULL || plan->csv != NULL || plan->candles != NULL ||
                      plan->hgrm != NULL || plan->hdr != NULL || plan->html != NULL ||
                      plan->junit != NULL || plan->markdown != NULL;

    if (command->typed.is_for_run)
        return load_command_refuse("merge runs nothing: of the options it takes those of the "
                                   "output, --threshold and --baseline");
    command->what = LOAD_COMMAND_MERGE;
    command->argv = command->typed.words + 1;
    command->argc = (int)command->typed.words_number - 1;
    if (command->argc < 1 || command->argc > LOAD_MERGE_MAX)
        return load_command_refuse("merge needs one to %d files that --json wrote", LOAD_MERGE_MAX);
    if (!has_output)
        plan->json = "-";
    return load_command_check_outputs(command);
}

int
load_command_plan(struct load_command *command)
{
    static int (*const steps[])(struct load_command *) = {
        check_input_file,
        load_command_check_outputs,
        load_command_check_stages,
        set_how_much,
        set_warmup,
        load_command_check_together,
        load_command_check_conditions,
        set_probe,
        set_plan_request,
        set_url,
        set_where,
        load_command_check_tls,
        load_command_hosts,
        make_plan_requests,
        name_server,
    };
    const struct load_typed *typed = &command->typed;
    const char *word = typed->words_number > 0 ? typed->words[0] : "";
    int result = COMMAND_LINE_GO_ON;

    if (typed->is_selftest) {
        if (command->plan.argc > 2)
            return load_command_refuse("--selftest goes alone: it has a server of its own");
        command->what = LOAD_COMMAND_SELFTEST;
        return COMMAND_LINE_GO_ON;
    }
    if (strcmp(word, "compare") == 0)
        return set_files(command, LOAD_COMMAND_COMPARE, 2, 2);
    if (strcmp(word, "merge") == 0)
        return set_merge(command);
    if (strcmp(word, "html") == 0)
        return set_files(command, LOAD_COMMAND_OVERLAY, 1, 64);
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]) && result == COMMAND_LINE_GO_ON; i++)
        result = steps[i](command);
    return result;
}

void
load_command_free(struct load_command *command)
{
    if (command->plan.requests != NULL)
        command->plan.requests->free(command->plan.requests);
    load_expect_clear_body(&command->expect);
    free(command->typed.body_bytes);
    free(command->typed.words);
    free(command->typed.fields);
}
