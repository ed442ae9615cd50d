/* SPDX-License-Identifier: MIT
 *
 * What: parses the command line of sxe-http into a plan. Place: http.c calls it first. command.c
 * has the table of options and stores them, command-value.c parses some values, command-output.c
 * stores the paths of outputs. command-plan.c makes the plan: the server's address, the supplier of
 * requests, defaults. command-together.c refuses options that cannot be combined.
 */
#ifndef LOAD_COMMAND_H
#define LOAD_COMMAND_H

#include "expect.h"
#include "local-addresses.h"
#include "plan.h"
#include "sxe-util.h"
#include "template.h"
#include "url.h"

enum load_command_what {
    LOAD_COMMAND_RUN,
    LOAD_COMMAND_COMPARE, /* compare A.json B.json */
    LOAD_COMMAND_OVERLAY, /* html A.json ... */
    LOAD_COMMAND_MERGE,   /* merge A.json B.json ... */
    LOAD_COMMAND_SELFTEST
};

#define LOAD_REQUEST_FILES_MAX 16
/* the value of drain_ns if --drain is not given, until --timeout is known and replaces it */
#define LOAD_DRAIN_TIMEOUT UINT64_MAX

/* The options as they were typed, from which load_command_plan makes the plan. The texts point into
 * argv. */
struct load_typed {
    char **words; /* the URLs; for compare and html the files */
    unsigned words_number;
    const char **fields; /* header fields, "Name: value" */
    unsigned fields_number;
    const char *method;
    const char *body;        /* a text, or @FILE */
    const char *expect_body; /* a text, or @FILE: the value of the last --expect-body */
    const char *request_files[LOAD_REQUEST_FILES_MAX];
    unsigned request_files_number;
    const char *replay;
    const char *script;
    const char *scenario;
    const char *stop_option; /* the option that was given: "-n", "--requests" or "-d" */
    const char *rate;
    const char *stages;
    const char *probe;
    char *body_bytes;    /* the content of the file that --body @FILE names; owned */
    struct load_url url; /* the first URL; if there is none, a URL whose target is "/" */
    unsigned thresholds;
    double speed;
    bool has_ip;
    bool has_port;
    bool has_sockets;
    bool has_workers;
    bool has_arrivals;
    bool has_status;
    bool is_open;
    bool is_http_1_0;
    bool is_selftest;
    /* how many words of the command line are --min-effect and its value */
    unsigned min_effect_words;
    /* whether an option was given that merge does not accept, because merged runs are over */
    bool is_for_run;
};

struct load_command {
    enum load_command_what what;
    int argc; /* the files of compare, html or merge, or the arguments for a script */
    char **argv;
    struct load_plan plan; /* the plan of the run that LOAD_COMMAND_RUN makes */
    /* for LOAD_COMMAND_RUN: the plan's requests if a script makes them; otherwise NULL */
    struct load_requests *script;
    struct load_typed typed; /* this member and all after it are private; the plan points to them */
    struct load_expect expect;
    struct load_local_addresses local_addresses;
    struct load_template_options request;
};

/* The number of workers if -t is not given: 1, or in sxe-http-mpi the number of ranks. */
extern unsigned load_command_workers;

/* Returns -1 if the program is to continue with *command. Otherwise the program must end with the
 * exit status that is returned, and messages have been printed. The caller frees *command in either
 * case. */
int load_command_parse(struct load_command *command, int argc, char **argv);
void load_command_free(struct load_command *command);

/* ---- Functions that the files of the command line share ---- */

/* Make the plan from typed; argc and argv have the words after "--". Returns like
 * load_command_parse. */
int load_command_plan(struct load_command *command);

/* If the URLs have several hosts, put these into the plan, and refuse options that need a single
 * host; returns like load_command_plan. load_command_host_of returns the index of a URL's host, or
 * hosts_number. */
int load_command_hosts(struct load_command *command);
unsigned load_command_host_of(const struct load_plan *plan, const struct load_url *url);

/* Look up the addresses of a URL's host. The plan's connections take them in turn; the first one is
 * also stored in ip. NULL, or why there are no addresses. */
const char *load_command_look_up(const struct load_command *command, const struct load_url *url,
                                 uint16_t port, char ip[LOAD_IP_SIZE],
                                 struct load_addresses *addresses);

/* Parse a rate from 0 to 1G at the beginning of the text, such as 500 or 10k; *after becomes the
 * text after the rate. 0, or -1: the text begins with no such rate. */
int load_command_rate(const char *text, double *rate, const char **after);

/* Parse stages such as "0:10s,5k:1m" into a plan that has no stages yet. NULL, or what is wrong. */
const char *load_stages_parse(struct load_plan *plan, const char *text);

/* load_command_stages puts --stages, if given, into the plan. Call load_command_check_stages before
 * it: that function refuses options that contradict --stages. Both return like
 * load_command_plan. */
int load_command_stages(struct load_command *command);
int load_command_check_stages(struct load_command *command);
/* Refuse a condition (--threshold, --find) about a stage that --stages does not have. */
int load_command_check_conditions(struct load_command *command);

/* Refuse options that contradict each other or lack another; returns like load_command_plan. */
int load_command_check_together(struct load_command *command);
/* Refuse to write two outputs to one file, or an output to a file that the run reads. */
int load_command_check_outputs(struct load_command *command);

/* Take optarg as the path of the output whose option has this val (command-options.h). */
int load_command_output(struct load_plan *plan, int val);

/* load_command_tls stores the value of the option of TLS that has this val. load_command_check_tls
 * refuses options that cannot be combined with https, and options that need https. */
int load_command_tls(struct load_tls *tls, int val);
int load_command_check_tls(struct load_command *command);

/* Whether the command merge accepts the option with this val. */
bool load_command_is_for_report(int val);

/* Print "sxe-http: ...; Try --help." on stderr, and return the exit status for a wrong command
 * line. */
int load_command_refuse(const char *format, ...) SXE_PRINTF(1, 2);

/* Like load_command_refuse, but do nothing if problem is NULL. The message consists of `what`,
 * optarg and problem. */
int load_command_refuse_if(const char *what, const char *problem);

/* Store optarg as the value of an option. Each function returns COMMAND_LINE_GO_ON, or an exit
 * status after a message. For load_command_positive the number may have `unit` after it. */
int load_command_ip(struct load_command *command);
int load_command_arrivals(struct load_command *command);
int load_command_positive(const char *what, const char *unit, double max, double *value);
int load_command_min_effect(struct load_command *command);
int load_command_until_ci(struct load_plan *plan); /* parses [FIGURE:]P% */
int load_command_condition(const char *what, const char **to);
int load_command_threshold(struct load_command *command);
int load_command_start_at(struct load_plan *plan);
int load_command_metrics(struct load_plan *plan);
int load_command_request_file(struct load_typed *typed);

#endif
