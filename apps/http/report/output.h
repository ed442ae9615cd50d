/* SPDX-License-Identifier: MIT
 *
 * What: writes the result of a run for programs and for the browser. Place: perform.c calls
 * load_output_all, which writes each file that the user asked for.
 *
 * Shape: output-json.c      everything, with full histograms; schema in docs/load-generator.md
 *        output-json-plan.c the plan, as the member "plan" of that JSON
 *        output-csv.c       a line a trial; and the five columns of S8 a kind and client
 *        output-hgrm.c      percentiles of response as HdrHistogram's tools read them, in ms
 *        output-hdr.c       the histograms, in the format of HdrHistogram's logs
 *        output-html.c      page.html with the JSON of one or several runs in it
 *        output-jsonl.c     a line for each second of a run, and one for its result: monitor.h
 *        metrics.h          figures to scrape while it runs: monitor.h
 *        output-shared.c    names and rates that all of these use
 *        output-junit.c     a test case for each check, as CI servers read them
 *        output-markdown.c  figures and checks, in tables
 *        annotations.c      a line for each check that failed, as GitHub shows them
 *        checks.h           the checks that these three print, each with a sentence
 *        result-file.h      reads again what output-json.c wrote
 *        output.c           the files that the plan asks for
 *
 * Each function that writes returns 0, or -errno if it could not.
 */
#ifndef LOAD_OUTPUT_H
#define LOAD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "run.h"

#define LOAD_JSON_SCHEMA 1 /* the version of the JSON */

int load_output_json(FILE *out, const struct load_run *run);
struct load_json;
/* write the member "plan" */
void load_output_json_plan(struct load_json *json, const struct load_plan *plan);
void load_output_json_thresholds(struct load_json *json, const struct load_run *run);
void load_output_json_times(struct load_json *json, const char *name,
                            const struct load_histogram *histogram);
void load_output_json_sessions(struct load_json *json, const struct load_result *result);
void load_output_json_tls(struct load_json *json, const struct load_result *result);
int load_output_csv(FILE *out, const struct load_run *run);
int load_output_candles(FILE *out, const struct load_run *run);
int load_output_hgrm(FILE *out, const struct load_run *run);
int load_output_hdr(FILE *out, const struct load_run *run); /* also returns -ENOMEM */
int load_output_html(FILE *out, const struct load_run *run);
int load_output_junit(FILE *out, const struct load_run *run);
int load_output_markdown(FILE *out, const struct load_run *run);
int load_output_annotations(FILE *out, const struct load_run *run);

/* Check, before a run, that each output file of the plan can be written, but do not change its
 * content. 0, or LOAD_EXIT_USAGE after a message on err. */
int load_output_check(const struct load_plan *plan, FILE *err);

/* Whether the path of an output is "-". If so, text for people must not go to standard output. */
bool load_output_uses_stdout(const struct load_plan *plan);

/* Write all files of the plan; 0, or LOAD_EXIT_ERRORS after messages on err. */
int load_output_all(const struct load_run *run, FILE *err);

/* sxe-http html a.json b.json > page.html: several runs in one plot. Returns an exit status. */
int load_output_overlay(int number, char **paths, FILE *out, FILE *err);

/* ---- output-shared.c: used by all files that print a run ---- */

/* Flush the file; 0, or -errno if this or an earlier write to it failed. */
int load_output_finish(FILE *out);

/* The number of percentiles that every output has. */
#define LOAD_PERCENTILES 6
struct load_percentile {
    const char *name;
    double fraction;
};
extern const struct load_percentile load_percentiles[LOAD_PERCENTILES];

/* The names of a figure that a trial has. */
struct load_figure_name {
    const char *text; /* the name for people: "service p50" */
    /* the JSON object that has the figure as a member; NULL: the trial itself has it */
    const char *group;
    const char *name;  /* the figure's name in this object, such as "p50" */
    const char *whole; /* the figure's name in other places of the JSON, such as "service.p50" */
};
extern const struct load_figure_name load_figure_names[LOAD_FIGURES];

/* count / seconds, or 0 if seconds is 0. */
double load_per_second(uint64_t count, double seconds);

/* The name of a kind of request; "request" if the plan has no name for it. */
const char *load_kind_name(const struct load_plan *plan, unsigned kind);

/* Whether the server's address is on this machine: loopback or a unix socket. */
bool load_is_local(const struct load_plan *plan);

/* The names that a model and a stop have in the JSON, indexed by enum load_model and enum
 * load_stop. */
#define LOAD_MODELS 3u
#define LOAD_STOPS  4u
extern const char *const load_model_names[LOAD_MODELS];
extern const char *const load_stop_names[LOAD_STOPS];

/* The name of a model: "closed loop", "partly open" or "open". */
const char *load_model_text(enum load_model model);

#endif
