/* SPDX-License-Identifier: MIT
 *
 * What: a run for programs and for the browser. Place: http.c, one call a file that was asked for.
 *
 * Shape: output-json.c      everything, with full histograms; schema in docs/load-generator.md
 *        output-json-plan.c what was asked for, as its member "plan"
 *        output-csv.c       a line a trial; and the five columns of S8 a kind and client
 *        output-hgrm.c      percentiles of response as HdrHistogram's tools read them, in ms
 *        output-hdr.c       the histograms themselves, as HdrHistogram's log has them
 *        output-html.c      page.html with the JSON of one or several runs in it
 *        output-jsonl.c     a line for each second of a run, and one for its result: monitor.h
 *        metrics.h          figures for those who ask, while it runs: monitor.h
 *        output-shared.c    names and rates that all of these use
 *        output-junit.c     a test case for each thing that was judged, as CI servers read them
 *        output-markdown.c  figures and what was judged, in tables
 *        annotations.c      a line for each thing that is not well, as GitHub shows them
 *        checks.h           what these three tell: each thing that was judged, in a sentence
 *        result-file.h      reads again what output-json.c wrote
 *        output.c           the files that the plan asks for
 *
 * Each returns 0 or -errno of writing.
 */
#ifndef LOAD_OUTPUT_H
#define LOAD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "run.h"

#define LOAD_JSON_SCHEMA 1 /* its version */

int load_output_json(FILE *out, const struct load_run *run);
struct load_json;
void load_output_json_plan(struct load_json *json, const struct load_plan *plan); /* its member */
void load_output_json_thresholds(struct load_json *json, const struct load_run *run); /* another */
void load_output_json_times(struct load_json *json, const char *name,
                            const struct load_histogram *histogram); /* the same */
void load_output_json_sessions(struct load_json *json, const struct load_result *result);
int load_output_csv(FILE *out, const struct load_run *run);
int load_output_candles(FILE *out, const struct load_run *run);
int load_output_hgrm(FILE *out, const struct load_run *run);
int load_output_hdr(FILE *out, const struct load_run *run); /* or -ENOMEM */
int load_output_html(FILE *out, const struct load_run *run);
int load_output_junit(FILE *out, const struct load_run *run);
int load_output_markdown(FILE *out, const struct load_run *run);
int load_output_annotations(FILE *out, const struct load_run *run);

/* Before a run: whether each file that the plan asks for can be written; what is in it stays. Says
 * on err which cannot: 0 or LOAD_EXIT_USAGE. */
int load_output_check(const struct load_plan *plan, FILE *err);

/* Whether one of them is "-": then nothing for people goes to standard output. */
bool load_output_uses_stdout(const struct load_plan *plan);

/* All that the plan asks for; says on err what could not be written. 0 or LOAD_EXIT_ERRORS. */
int load_output_all(const struct load_run *run, FILE *err);

/* http html a.json b.json > page.html: several runs laid over one another. An exit status. */
int load_output_overlay(int number, char **paths, FILE *out, FILE *err);

/* ---- output-shared.c: for each file that prints a run ---- */

/* Write what is buffered; 0, or -errno if that, or anything before it, could not be written. */
int load_output_finish(FILE *out);

/* The percentiles that every output tells. */
#define LOAD_PERCENTILES 6
struct load_percentile {
    const char *name;
    double fraction;
};
extern const struct load_percentile load_percentiles[LOAD_PERCENTILES];

/* How the figures of a trial are called: by people; and in JSON, inside of a group, or whole. */
struct load_figure_name {
    const char *text;
    const char *group; /* NULL: none */
    const char *name;
    const char *whole;
};
extern const struct load_figure_name load_figure_names[LOAD_FIGURES];

/* A second; 0 for no time. */
double load_per_second(uint64_t count, double seconds);

/* The name of a kind of request; "request" if the plan has no name for it. */
const char *load_kind_name(const struct load_plan *plan, unsigned kind);

/* Whether the server is reached without leaving this machine, as far as its address says. */
bool load_is_local(const struct load_plan *plan);

/* How the JSON calls what a plan is: [enum load_model], [enum load_stop]. */
#define LOAD_MODELS 3u
#define LOAD_STOPS  4u
extern const char *const load_model_names[LOAD_MODELS];
extern const char *const load_stop_names[LOAD_STOPS];

/* "closed loop", "partly open" or "open". */
const char *load_model_text(enum load_model model);

#endif
