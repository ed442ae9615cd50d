/* SPDX-License-Identifier: MIT
 *
 * The table of sxe-http's options, and the functions that store their values.
 */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command-options.h"
#include "fanout.h"
#include "start-at.h"
#include "stats.h"
#include "sxe-time.h"

#define SOCKETS_MAX 10000000ul
#define QUERIES_MAX 1000000000000ul
#define DAY_NS      (86400 * SXE_NS_PER_SECOND)

unsigned load_command_workers = 1;

static int take_load_option(void *settings, int val);

static const struct command_option table[] = {
    COMMAND_LINE_GROUP("Server and addresses"),
    {{"ip", required_argument, NULL, 'i'},
     "IP",
     "connect to this address, not the URL's (127.0.0.1)"},
    {{"port", required_argument, NULL, 'p'}, "PORT", "connect to this port (8000)"},
    {{"unix", required_argument, NULL, UNIX}, "PATH", "connect to a unix socket; @name: abstract"},
    {{"source", required_argument, NULL, SOURCE},
     "LIST",
     "connect from: 127.0.0.1-127.0.0.8, 10.0.0.0/24, ..."},
    {{"proxy", required_argument, NULL, PROXY},
     "1|2",
     "begin connections with a PROXY protocol header"},
    COMMAND_LINE_GROUP("TLS (for https:// URLs)"),
    {{"tls-ca", required_argument, NULL, TLS_CA},
     "FILE",
     "trust these authorities, in PEM, not the system's"},
    {{"tls-cert", required_argument, NULL, TLS_CERT}, "FILE", "show this client certificate"},
    {{"tls-key", required_argument, NULL, TLS_KEY},
     "FILE",
     "use this key of the client certificate"},
    {{"tls-name", required_argument, NULL, TLS_NAME},
     "NAME",
     "expect and ask for this name, not the URL's host"},
    {{"tls-resume", required_argument, NULL, TLS_RESUME},
     "PERCENT",
     "resume a session on this share of connections (0)"},
    {{"insecure", no_argument, NULL, INSECURE}, "", "do not verify the server's certificate"},
    COMMAND_LINE_GROUP("Amount of load (numbers: 10k, 1.5M; times: 10, 500ms, 20us, 2m)"),
    {{"queries", required_argument, NULL, 'n'}, "N", "send N requests on each connection (1)"},
    {{"requests", required_argument, NULL, REQUESTS}, "N", "send N requests in total"},
    {{"duration", required_argument, NULL, 'd'},
     "TIME",
     "send requests for this long (4, with a URL)"},
    {{"sockets", required_argument, NULL, 'c'},
     "N",
     "open N connections at once (1000; with a URL 64)"},
    {{"threads", required_argument, NULL, 't'}, "N", "share the load among N worker processes (1)"},
    {{"shard", required_argument, NULL, SHARD}, "K/N", "make the K-th of N parts of this load"},
    {{"warmup", required_argument, NULL, WARMUP},
     "TIME",
     "leave this much of the start unmeasured; or auto (0)"},
    {{"drain", required_argument, NULL, DRAIN},
     "TIME",
     "wait this long for the last replies (as --timeout)"},
    COMMAND_LINE_GROUP("Timing"),
    {{"rate", required_argument, NULL, 'R'},
     "R[:R2]",
     "send R requests a second, rising to R2 at the end"},
    {{"stages", required_argument, NULL, STAGES},
     "R:TIME,...",
     "change to rate R within TIME: 0:10s,5k:1m,0:30s"},
    {{"open", no_argument, NULL, OPEN}, "", "skip a request that finds all connections busy"},
    {{"arrivals", required_argument, NULL, ARRIVALS},
     "KIND",
     "space requests at -R: poisson or fixed, evenly (poisson)"},
    {{"start-at", required_argument, NULL, START_AT},
     "TIME",
     "begin at HH:MM:SS, seconds since 1970, or +SECONDS"},
    {{"deadline", required_argument, NULL, DEADLINE},
     "TIME",
     "drop requests that waited longer for a connection (never)"},
    {{"think", required_argument, NULL, THINK},
     "TIME",
     "pause between a reply and the next request (0)"},
    {{"pipeline", required_argument, NULL, PIPELINE},
     "N",
     "keep up to N requests in flight on a connection (1)"},
    {{"connect-ramp", required_argument, NULL, CONNECT_RAMP},
     "N|N/s",
     "connect N at a time, or N a second (16)"},
    {{"timeout", required_argument, NULL, TIMEOUT},
     "TIME",
     "wait this long for a connect, and for a reply (10)"},
    {{"abort", no_argument, NULL, ABORT},
     "",
     "reset connections at the end: leave no port in TIME_WAIT"},
    {{"seed", required_argument, NULL, SEED}, "N", "seed the random numbers (1)"},
    {{"probe", required_argument, NULL, PROBE},
     "R",
     "also send R requests a second, measured separately"},
    COMMAND_LINE_GROUP("Requests"),
    {{"method", required_argument, NULL, 'm'}, "METHOD", "use this method (GET; with a body POST)"},
    {{"header", required_argument, NULL, 'H'},
     "'K: V'",
     "add or replace a header; 'K:' removes it"},
    {{"body", required_argument, NULL, 'b'}, "TEXT", "send this body; @FILE: the bytes of a file"},
    {{"http1.0", no_argument, NULL, HTTP_1_0}, "", "speak HTTP/1.0, with keep-alive"},
    {{"request-file", required_argument, NULL, REQUEST_FILE},
     "FILE",
     "send the raw requests in FILE in turn; repeatable"},
    {{"replay", required_argument, NULL, REPLAY},
     "FILE",
     "send the requests of an access log or HAR file"},
    {{"speed", required_argument, NULL, SPEED}, "X", "replay X times as fast as recorded (1)"},
    {{"script", required_argument, NULL, 's'},
     "FILE",
     "run a script for wrk; arguments after -- go to it"},
    {{"scenario", required_argument, NULL, SCENARIO},
     "FILE",
     "mix kinds of requests, or play user sessions (Lua)"},
    COMMAND_LINE_GROUP("Which replies count as good"),
    {{"expect-status", required_argument, NULL, EXPECT_STATUS},
     "LIST",
     "require one of these: 2xx, 200,304 ... (2xx)"},
    {{"expect-header", required_argument, NULL, EXPECT_HEADER},
     "'K: V'",
     "require this header; 'K': with any value; repeatable"},
    {{"expect-body", required_argument, NULL, EXPECT_BODY},
     "TEXT",
     "require this text in the body; @FILE: the same bytes"},
    {{"threshold", required_argument, NULL, THRESHOLD},
     "COND",
     "exit with 3 unless 'p99<20ms', 'errors<0.1%' ... holds"},
    COMMAND_LINE_GROUP("Trials"),
    {{"trials", required_argument, NULL, TRIALS},
     "N",
     "repeat the run N times; from 6 on with intervals (1)"},
    {{"until-ci", required_argument, NULL, UNTIL_CI},
     "[FIGURE:]P%",
     "repeat until the 95 % interval is this narrow (rate)"},
    {{"server-cmd", required_argument, NULL, SERVER_CMD},
     "CMD",
     "start this server again for each trial"},
    {{"find", required_argument, NULL, FIND},
     "COND",
     "find the highest rate at which 'p99<10ms' holds"},
    {{"baseline", required_argument, NULL, BASELINE},
     "FILE",
     "compare with a file that --json wrote"},
    {{"baseline-cmd", required_argument, NULL, BASELINE_CMD},
     "CMD",
     "compare with this server, in turn with --server-cmd"},
    {{"min-effect", required_argument, NULL, MIN_EFFECT}, "P%", "ignore differences below P% (2%)"},
    {{"aa", no_argument, NULL, AA}, "", "compare the server with itself: show the noise"},
    COMMAND_LINE_GROUP("Output (-: standard output)"),
    {{"json", required_argument, NULL, JSON}, "FILE", "write everything, with all histograms"},
    {{"csv", required_argument, NULL, CSV}, "FILE", "write a line for each trial"},
    {{"candles", required_argument, NULL, CANDLES},
     "FILE",
     "write min, mean, 101 % of it, max by kind, connection"},
    {{"hgrm", required_argument, NULL, HGRM},
     "FILE",
     "write response times for HdrHistogram's plotter"},
    {{"hdr", required_argument, NULL, HDR},
     "FILE",
     "write a histogram log for HdrHistogram's tools"},
    {{"html", required_argument, NULL, HTML}, "FILE", "write an HTML page with plots"},
    {{"junit", required_argument, NULL, JUNIT},
     "FILE",
     "write thresholds and verdicts as JUnit XML"},
    {{"markdown", required_argument, NULL, MARKDOWN}, "FILE", "write a summary with tables"},
    {{"jsonl", required_argument, NULL, JSONL}, "FILE", "write a line of JSON each second"},
    {{"metrics", required_argument, NULL, METRICS},
     "[ADDR:]PORT",
     "serve OpenMetrics during the run; also at a unix path"},
    {{"annotate", no_argument, NULL, ANNOTATE}, "", "print failures as GitHub's ::error lines"},
    {{"fanout", required_argument, NULL, FANOUT}, "K", "estimate the time of K parallel requests"},
    {{"quiet", no_argument, NULL, 'q'}, "", "print no progress on standard error"},
    COMMAND_LINE_GROUP("About"),
    {{"selftest", no_argument, NULL, SELFTEST},
     "",
     "check in seconds whether this machine can measure"},
    COMMAND_LINE_ABOUT("print the common options (-h) or all (--help), and exit"),
};

static const char *const common[] = {"port",   "queries", "duration", "sockets", "threads", "rate",
                                     "method", "header",  "body",     "script",  "trials",  "find",
                                     "json",   "html",    "help",     NULL};

static const struct command_line line = {
    .program = "sxe-http",
    .words = "[URL...] | compare A.json B.json | merge A.json... | html A.json...",
    .summary = "Puts load on a web server, reports how it did, and says when not to believe the "
               "figures.",
    .examples =
        {
            {"http://127.0.0.1:8000/", "send requests on 64 connections for 4 seconds"},
            {"-R 5k -d 30 --html a.html URL", "send 5,000 a second, and write a page with plots"},
            {"-i 127.0.0.1 -p 8000 -c 10000 -n 50",
             "open 10,000 connections, send 50 requests on each"},
        },
    .closing = "COND compares a figure with a value: p50, p95, p99.9 ..., mean, min, max of "
               "response times\n"
               "(or service.p99, first_byte.p99, connect.p99); rate, errors, skipped; achieved, "
               "the part of\n"
               "the load that was sent.\n"
               "Exit status: 0 all replies were good; 1 errors; 2 bad arguments; 3 a threshold was "
               "missed,\n"
               "or a regression found; 4 the result is suspect; 5 --find found no answer, or "
               "--until-ci was\n"
               "not reached; 130 interrupted.",
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .common = common,
    .take = take_load_option,
};

static int
result_of_option(bool is_good)
{
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

/* ---- Values of one option ---- */

static int
take_count_option(const char *what, unsigned long max, unsigned long *value)
{
    return result_of_option(command_line_count(&line, what, 1, max, value));
}

static int
take_time_option(const char *what, unsigned long min_ns, uint64_t *value)
{
    unsigned long ns = 0;
    bool is_good = command_line_time(&line, what, min_ns, DAY_NS, &ns);

    *value = ns;
    return result_of_option(is_good);
}

static int
take_port(struct load_command *command)
{
    unsigned long value = 0;
    bool is_good = command_line_number(&line, "the port (-p)", 1, 65535, &value);

    command->plan.port = (uint16_t)value;
    command->typed.has_port = true;
    return result_of_option(is_good);
}

static int
take_proxy(struct load_plan *plan)
{
    unsigned long value = 0;
    bool is_good = command_line_number(&line, "the PROXY version (--proxy)", 1, 2, &value);

    plan->proxy = (unsigned)value;
    return result_of_option(is_good);
}

static int
take_small_option(const char *what, unsigned long min, unsigned long max, unsigned *to)
{
    unsigned long value = 0;
    bool is_good = command_line_count(&line, what, min, max, &value);

    *to = (unsigned)value;
    return result_of_option(is_good);
}

/* Take -n, --requests or -d; only one of them may be given. */
static int
take_stop(struct load_command *command, const char *option, enum load_stop stop)
{
    const char *other = command->typed.stop_option;
    unsigned long value = 0;
    int result;

    if (other != NULL && strcmp(other, option) != 0)
        return load_command_refuse("%s and %s are both given; each says when to stop, so one of "
                                   "them is enough",
                                   other, option);
    command->typed.stop_option = option;
    command->plan.stop = stop;
    if (stop == LOAD_STOP_TIME)
        return take_time_option("the duration (-d)", 1000000, &command->plan.duration_ns);
    result = take_count_option(stop == LOAD_STOP_TOTAL ? "the number of requests (--requests)"
                                                       : "the number of requests a connection (-n)",
                               QUERIES_MAX, &value);
    command->plan.queries = command->plan.requests_max = value;
    return result;
}

/* Parse --ramp: "16" or "100/s". The text is part of the command line, which the report shows
 * later. So the "/" is overwritten only while the number is read. */
static int
take_ramp(struct load_plan *plan)
{
    char *after = strchr(optarg, '/');
    bool is_rate = after != NULL && strcmp(after, "/s") == 0;
    unsigned long value = 0;
    int result;

    if (is_rate)
        *after = '\0';
    result = take_count_option("the ramp of connects (--connect-ramp)", 1000000, &value);
    if (!is_rate) {
        plan->ramp = (unsigned)value;
        return result;
    }
    *after = '/';
    plan->ramp_rate = (double)value;
    return result;
}

/* ---- The groups ---- */

static int
keep_option_text(const char **to)
{
    *to = optarg;
    return COMMAND_LINE_GO_ON;
}

static int
keep_flag(bool *flag)
{
    *flag = true;
    return COMMAND_LINE_GO_ON;
}

static int
take_saying(struct load_command *command, int val)
{
    struct load_plan *plan = &command->plan;

    switch (val) {
    case FANOUT:
        return take_small_option("the fan-out (--fanout)", 2, LOAD_FANOUT_MAX, &plan->fanout);
    case 'q':
        return keep_flag(&plan->quiet);
    case SELFTEST:
        return keep_flag(&command->typed.is_selftest);
    case AA:
        return keep_flag(&plan->aa);
    case ANNOTATE:
        return keep_flag(&plan->annotate);
    case METRICS:
        return load_command_metrics(plan);
    default:
        return load_command_output(plan, val);
    }
}

static int
take_judgement(struct load_command *command, int val)
{
    struct load_plan *plan = &command->plan;
    bool is_first = !command->typed.has_status;

    switch (val) {
    case EXPECT_STATUS:
        /* The first --expect-status replaces the default statuses; each further one adds to the
         * first. */
        if (is_first)
            memset(command->expect.statuses, 0, sizeof(command->expect.statuses));
        command->typed.has_status = true;
        return load_command_refuse_if("the status (--expect-status)",
                                      load_expect_add_status(&command->expect, optarg));
    case EXPECT_HEADER:
        return load_command_refuse_if("the header (--expect-header)",
                                      load_expect_add_field(&command->expect, optarg));
    case EXPECT_BODY:
        command->typed.expect_body = optarg;
        return load_command_refuse_if("the body (--expect-body)",
                                      load_expect_set_body(&command->expect, optarg));
    case THRESHOLD:
        return load_command_threshold(command);
    case FIND:
        return load_command_condition("the condition (--find)", &plan->find);
    case TRIALS:
        return take_small_option("the number of trials (--trials)", 1, LOAD_TRIALS_MAX,
                                 &plan->trials);
    case UNTIL_CI:
        return load_command_until_ci(plan);
    case SERVER_CMD:
        return keep_option_text(&plan->server_cmd);
    case BASELINE:
        return keep_option_text(&plan->baseline);
    case BASELINE_CMD:
        return keep_option_text(&plan->baseline_cmd);
    case MIN_EFFECT:
        return load_command_min_effect(command);
    default:
        return take_saying(command, val);
    }
}

static int
take_request(struct load_command *command, int val)
{
    struct load_typed *typed = &command->typed;

    switch (val) {
    case 'm':
        return keep_option_text(&typed->method);
    case 'H':
        typed->fields[typed->fields_number++] = optarg;
        return COMMAND_LINE_GO_ON;
    case 'b':
        return keep_option_text(&typed->body);
    case HTTP_1_0:
        return keep_flag(&typed->is_http_1_0);
    case REQUEST_FILE:
        return load_command_request_file(typed);
    case REPLAY:
        return keep_option_text(&typed->replay);
    case SPEED:
        return load_command_positive("the speed (--speed)", "", 1e6, &typed->speed);
    case 's':
        return keep_option_text(&typed->script);
    case SCENARIO:
        return keep_option_text(&typed->scenario);
    default:
        return take_judgement(command, val);
    }
}

static int
take_when(struct load_command *command, int val)
{
    struct load_plan *plan = &command->plan;
    unsigned long value = 0;
    int result;

    switch (val) {
    case 'R':
        return keep_option_text(&command->typed.rate);
    case STAGES:
        return keep_option_text(&command->typed.stages);
    case OPEN:
        return keep_flag(&command->typed.is_open);
    case ARRIVALS:
        return load_command_arrivals(command);
    case START_AT:
        return load_command_start_at(plan);
    case DEADLINE:
        return take_time_option("the deadline (--deadline)", 1, &plan->deadline_ns);
    case THINK:
        return take_time_option("the time to think (--think)", 0, &plan->think_ns);
    case PIPELINE:
        return take_small_option("the depth (--pipeline)", 1, LOAD_DEPTH_MAX, &plan->depth);
    case CONNECT_RAMP:
        return take_ramp(plan);
    case TIMEOUT:
        return take_time_option("the timeout (--timeout)", 1000000, &plan->timeout_ns);
    case ABORT:
        return keep_flag(&plan->is_aborting);
    case SEED:
        result = take_count_option("the seed (--seed)", UINT64_MAX, &value);
        plan->seed = value;
        return result;
    case PROBE:
        return keep_option_text(&command->typed.probe);
    default:
        return take_request(command, val);
    }
}

static int
take_much(struct load_command *command, int val)
{
    switch (val) {
    case 'n':
        return take_stop(command, "-n", LOAD_STOP_PER_SOCKET);
    case REQUESTS:
        return take_stop(command, "--requests", LOAD_STOP_TOTAL);
    case 'd':
        return take_stop(command, "-d", LOAD_STOP_TIME);
    case 'c':
        command->typed.has_sockets = true;
        return take_small_option("the number of connections (-c)", 1, SOCKETS_MAX,
                                 &command->plan.sockets);
    case 't':
        command->typed.has_workers = true;
        return take_small_option("the number of workers (-t)", 1, LOAD_WORKERS_MAX,
                                 &command->plan.workers);
    case SHARD:
        return load_command_refuse_if("the shard (--shard)",
                                      load_shard_parse(optarg, &command->plan));
    case WARMUP:
        command->plan.is_warmup_auto = strcmp(optarg, "auto") == 0;
        if (command->plan.is_warmup_auto)
            return COMMAND_LINE_GO_ON;
        return take_time_option("the warm-up (--warmup, auto or a time)", 0,
                                &command->plan.warmup_ns);
    case DRAIN:
        return take_time_option("the time to drain (--drain)", 0, &command->plan.drain_ns);
    default:
        return take_when(command, val);
    }
}

static int
take_load_option(void *settings, int val)
{
    struct load_command *command = settings;

    command->typed.is_for_run |= !load_command_is_for_report(val);
    switch (val) {
    case COMMAND_LINE_WORD:
        command->typed.words[command->typed.words_number++] = optarg;
        return COMMAND_LINE_GO_ON;
    case 'i':
        return load_command_ip(command);
    case 'p':
        return take_port(command);
    case UNIX:
        return keep_option_text(&command->plan.unix_path);
    case SOURCE:
        command->plan.local_addresses = &command->local_addresses;
        return load_command_refuse_if(
            "the source (--source)", load_local_addresses_parse(&command->local_addresses, optarg));
    case PROXY:
        return take_proxy(&command->plan);
    case TLS_CA:
    case TLS_CERT:
    case TLS_KEY:
    case TLS_NAME:
    case TLS_RESUME:
    case INSECURE:
        return load_command_tls(&command->plan.tls, val);
    default:
        return take_much(command, val);
    }
}

/* ---- The whole command line ---- */

int
load_command_parse(struct load_command *command, int argc, char **argv)
{
    int result;

    *command = (struct load_command){0};
    command->plan = (struct load_plan){
        .sockets = 1000,
        .workers = load_command_workers,
        .queries = 1,
        .drain_ns = LOAD_DRAIN_TIMEOUT,
        .depth = 1,
        .ramp = 16,
        .timeout_ns = 10 * SXE_NS_PER_SECOND,
        .seed = 1,
        .trials = 1,
        .min_effect = 0.02,
        .expect = &command->expect,
        .argc = argc,
        .argv = argv,
    };
    command->typed.speed = 1;
    command->typed.url.target = "/";
    load_expect_add_status(&command->expect, LOAD_EXPECT_DEFAULT_STATUS);
    if (argc == 1) {
        /* The exit status is not 0, so that a shell script that forgot the URL notices that nothing
         * was measured. */
        command_line_print_help(&line, false);
        return LOAD_EXIT_USAGE;
    }
    command->typed.words = calloc((size_t)argc + 1, sizeof(char *));
    command->typed.fields = calloc((size_t)argc + 1, sizeof(char *));
    if (command->typed.words == NULL || command->typed.fields == NULL) {
        fprintf(stderr, "sxe-http: out of memory\n");
        return EXIT_FAILURE;
    }
    result = command_line_parse(&line, command, argc, argv);
    command->argc = argc - optind;
    command->argv = argv + optind;
    return result == COMMAND_LINE_GO_ON ? load_command_plan(command) : result;
}
