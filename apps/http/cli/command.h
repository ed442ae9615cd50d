/* SPDX-License-Identifier: MIT
 *
 * What: the command line of sxe-http, as a plan. Place: http.c calls it first. command.c has the
 * table and takes each option, command-value.c some of their values, command-output.c those that
 * are paths of outputs; command-plan.c makes the plan of them: the server's address, the source of
 * requests, and what is left to defaults; command-together.c knows what cannot go together.
 */
#ifndef LOAD_COMMAND_H
#define LOAD_COMMAND_H

#include "expect.h"
#include "plan.h"
#include "source.h"
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
#define LOAD_DRAIN_TIMEOUT     UINT64_MAX /* of the plan's drain_ns, until --timeout is known */

/* Typed values that cannot go into the plan at once; texts point into argv. */
struct load_typed {
    char **words; /* URLs, or the files of compare and html */
    unsigned words_number;
    const char **fields; /* "Name: value" */
    unsigned fields_number;
    const char *method;
    const char *body; /* a text, or @FILE */
    const char *request_files[LOAD_REQUEST_FILES_MAX];
    unsigned request_files_number;
    const char *replay;
    const char *script;
    const char *scenario;
    const char *stop_option; /* "-n", "--requests" or "-d" */
    const char *rate;
    const char *stages;
    const char *probe;
    char *body_bytes;    /* owned: of @FILE */
    struct load_url url; /* the first; its target is "/" if there is none */
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
    unsigned min_effect_words; /* of the command line that said it; 0: none did */
    bool is_for_run;           /* an option that says what to run, not what is said of it */
};

struct load_command {
    enum load_command_what what;
    int argc; /* files of compare and html; a script's own arguments */
    char **argv;
    struct load_plan plan;        /* RUN */
    struct load_requests *script; /* RUN: the plan's requests, if they are a script's; or NULL */
    struct load_typed typed;      /* private, as all that follows: the plan points to it */
    struct load_expect expect;
    struct load_sources sources;
    struct load_template_options request;
};

/* Where -t is not given: 1, or as many as there are ranks (mpi/). */
extern unsigned load_command_workers;

/* -1: go on with *command; otherwise all is said, and this is the exit status. Either way the
 * caller frees it. */
int load_command_parse(struct load_command *command, int argc, char **argv);
void load_command_free(struct load_command *command);

/* ---- Between the files ---- */

/* Make the plan of what was typed, with what stood after "--" in argc and argv: as
 * load_command_parse. */
int load_command_plan(struct load_command *command);

/* The hosts of the URLs into the plan, if they are several; what goes without that. As
 * load_command_plan. Which of them a URL is of, or their number. */
int load_command_hosts(struct load_command *command);
unsigned load_command_host_of(const struct load_plan *plan, const struct load_url *url);

/* A rate at the beginning of the text, such as 500 or 10k; *after is what comes after it. 0, or
 * -1: there is none from 0 to 1G. */
int load_command_rate(const char *text, double *rate, const char **after);

/* The stages of "0:10s,5k:1m" into a plan that has none. NULL, or what is wrong. */
const char *load_stages_parse(struct load_plan *plan, const char *text);

/* --stages, if it is given, into the plan; before, what goes without it. As load_command_plan. */
int load_command_stages(struct load_command *command);
int load_command_check_stages(struct load_command *command);
int load_command_check_conditions(struct load_command *command); /* are of stages that there are */

/* Refuse options that contradict each other or lack another; returns like load_command_plan. */
int load_command_check_together(struct load_command *command);
int load_command_check_outputs(struct load_command *command); /* two into one file */

/* Take optarg as the path of an output, whose option has that val. */
int load_command_output(struct load_plan *plan, int val);

/* Take the option of TLS that has that val; refuse what does not go with https or needs it. */
int load_command_tls(struct load_tls *tls, int val);
int load_command_check_tls(struct load_command *command);

/* Whether a sum of runs has that option, too. */
bool load_command_is_for_report(int val);

/* Print "sxe-http: ...; Try --help." on stderr, and return the exit status for it. */
int load_command_refuse(const char *format, ...) SXE_PRINTF(1, 2);

/* The same, unless problem is NULL, of optarg: what is named, its value and the problem. */
int load_command_refuse_if(const char *what, const char *problem);

/* Take optarg as the value of an option: COMMAND_LINE_GO_ON, or say what is wrong with it. The
 * number has that unit after it, or none. */
int load_command_ip(struct load_command *command);
int load_command_arrivals(struct load_command *command);
int load_command_positive(const char *what, const char *unit, double max, double *value);
int load_command_min_effect(struct load_command *command);
int load_command_until_ci(struct load_plan *plan); /* [FIGURE:]P% */
int load_command_condition(const char *what, const char **to);
int load_command_threshold(struct load_command *command);
int load_command_start_at(struct load_plan *plan);
int load_command_metrics(struct load_plan *plan);
int load_command_request_file(struct load_typed *typed);

#endif
