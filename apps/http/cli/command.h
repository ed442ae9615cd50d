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
#define LOAD_DRAIN_TIMEOUT     UINT64_MAX /* drain_ns without --drain, until --timeout is known */

/* Options as they were typed, for load_command_plan; texts point into argv. */
struct load_typed {
    char **words; /* the URLs; for compare and html the files */
    unsigned words_number;
    const char **fields; /* header fields, "Name: value" */
    unsigned fields_number;
    const char *method;
    const char *body;        /* a text, or @FILE */
    const char *expect_body; /* a text, or @FILE: that of the last --expect-body */
    const char *request_files[LOAD_REQUEST_FILES_MAX];
    unsigned request_files_number;
    const char *replay;
    const char *script;
    const char *scenario;
    const char *stop_option; /* "-n", "--requests" or "-d" */
    const char *rate;
    const char *stages;
    const char *probe;
    char *body_bytes;    /* the content of @FILE; owned */
    struct load_url url; /* the first URL; without any, its target is "/" */
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
    bool is_for_run; /* whether there is an option that a report of merged runs does not have */
};

struct load_command {
    enum load_command_what what;
    int argc; /* files of compare, html and merge; or a script's own arguments */
    char **argv;
    struct load_plan plan; /* for RUN */
    /* for RUN: the plan's requests, if a script makes them; or NULL */
    struct load_requests *script;
    struct load_typed typed; /* this member and all after it are private; the plan points to it */
    struct load_expect expect;
    struct load_local_addresses local_addresses;
    struct load_template_options request;
};

/* Workers without -t: 1, or the number of ranks (mpi/). */
extern unsigned load_command_workers;

/* -1: continue with *command. Otherwise the program ends with this exit status; messages have been
 * printed. The caller frees *command in either case. */
int load_command_parse(struct load_command *command, int argc, char **argv);
void load_command_free(struct load_command *command);

/* ---- Between the files ---- */

/* Make the plan from typed; argc and argv have the words after "--". Returns like
 * load_command_parse. */
int load_command_plan(struct load_command *command);

/* If the URLs have several hosts, put these into the plan, and refuse options that need a single
 * host; returns like load_command_plan. load_command_host_of returns the index of a URL's host, or
 * hosts_number. */
int load_command_hosts(struct load_command *command);
unsigned load_command_host_of(const struct load_plan *plan, const struct load_url *url);

/* Look up the addresses of a URL's host, which connections of the plan take in turn; the first one
 * goes into ip, too. NULL, or why there are none. */
const char *load_command_look_up(const struct load_command *command, const struct load_url *url,
                                 uint16_t port, char ip[LOAD_IP_SIZE],
                                 struct load_addresses *addresses);

/* Parse a rate from 0 to 1G at the beginning of the text, such as 500 or 10k; *after points to the
 * text after it. 0, or -1: there is no such rate. */
int load_command_rate(const char *text, double *rate, const char **after);

/* Parse stages such as "0:10s,5k:1m" into a plan that has none. NULL, or what is wrong. */
const char *load_stages_parse(struct load_plan *plan, const char *text);

/* Put --stages, if given, into the plan; load_command_check_stages, to be called before, refuses
 * options that contradict it. Both return like load_command_plan. */
int load_command_stages(struct load_command *command);
int load_command_check_stages(struct load_command *command);
/* refuse conditions on a missing stage */
int load_command_check_conditions(struct load_command *command);

/* Refuse options that contradict each other or lack another; returns like load_command_plan. */
int load_command_check_together(struct load_command *command);
int load_command_check_outputs(struct load_command *command); /* two into one, or into an input */

/* Take optarg as the path of the output whose option has this val (command-options.h). */
int load_command_output(struct load_plan *plan, int val);

/* load_command_tls takes the option of TLS that has this val. load_command_check_tls refuses
 * options that https does not have, and options that need https. */
int load_command_tls(struct load_tls *tls, int val);
int load_command_check_tls(struct load_command *command);

/* Whether merge accepts the option with this val, too. */
bool load_command_is_for_report(int val);

/* Print "sxe-http: ...; Try --help." on stderr, and return the exit status for it. */
int load_command_refuse(const char *format, ...) SXE_PRINTF(1, 2);

/* Like load_command_refuse, unless problem is NULL. The message has `what`, optarg and problem. */
int load_command_refuse_if(const char *what, const char *problem);

/* Take optarg as the value of an option: COMMAND_LINE_GO_ON, or an exit status after a message. For
 * load_command_positive the number may have `unit` after it. */
int load_command_ip(struct load_command *command);
int load_command_arrivals(struct load_command *command);
int load_command_positive(const char *what, const char *unit, double max, double *value);
int load_command_min_effect(struct load_command *command);
int load_command_until_ci(struct load_plan *plan); /* parse [FIGURE:]P% */
int load_command_condition(const char *what, const char **to);
int load_command_threshold(struct load_command *command);
int load_command_start_at(struct load_plan *plan);
int load_command_metrics(struct load_plan *plan);
int load_command_request_file(struct load_typed *typed);

#endif
