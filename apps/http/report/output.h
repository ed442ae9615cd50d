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
 *        output-junit.c     a test case for each thing that was judged, as CI servers read them
 *        output-markdown.c  figures and what was judged, in tables
 *        annotations.c      a line for each thing that is not well, as GitHub shows them
 *        checks.h           what these three tell: each thing that was judged, in a sentence
 *        result-file.h      reads again what output-json.c wrote
 *        output.c           the files that the plan asks for
 *
 * Each returns 0 or -errno of writing.
 */
#ifndef HTTP_OUTPUT_H
#define HTTP_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "run.h"

#define HTTP_JSON_SCHEMA 1 /* its version */

int http_output_json(FILE *out, const struct http_run *run);
struct http_json;
void http_output_json_plan(struct http_json *json, const struct http_plan *plan); /* its member */
void http_output_json_thresholds(struct http_json *json, const struct http_run *run); /* another */
void http_output_json_times(struct http_json *json, const char *name,
                            const struct http_histogram *histogram); /* the same */
void http_output_json_sessions(struct http_json *json, const struct http_result *result);
int http_output_csv(FILE *out, const struct http_run *run);
int http_output_candles(FILE *out, const struct http_run *run);
int http_output_hgrm(FILE *out, const struct http_run *run);
int http_output_hdr(FILE *out, const struct http_run *run); /* or -ENOMEM */
int http_output_html(FILE *out, const struct http_run *run);
int http_output_junit(FILE *out, const struct http_run *run);
int http_output_markdown(FILE *out, const struct http_run *run);
int http_output_annotations(FILE *out, const struct http_run *run);

/* Before a run: whether each file that the plan asks for can be written; what is in it stays. Says
 * on err which cannot: 0 or HTTP_EXIT_USAGE. */
int http_output_check(const struct http_plan *plan, FILE *err);

/* Whether one of them is "-": then nothing for people goes to standard output. */
bool http_output_uses_stdout(const struct http_plan *plan);

/* All that the plan asks for; says on err what could not be written. 0 or HTTP_EXIT_ERRORS. */
int http_output_all(const struct http_run *run, FILE *err);

/* http html a.json b.json > page.html: several runs laid over one another. An exit status. */
int http_output_overlay(int number, char **paths, FILE *out, FILE *err);

/* ---- For those who print a run ---- */

/* Write what is buffered; 0, or -errno if that, or anything before it, could not be written. */
int http_output_finish(FILE *out);

/* The percentiles that every output tells. */
#define HTTP_PERCENTILES 6
struct http_percentile {
    const char *name;
    double fraction;
};
extern const struct http_percentile http_percentiles[HTTP_PERCENTILES];

/* How the figures of a trial are called: by people; and in JSON, inside of a group, or whole. */
struct http_figure_name {
    const char *text;
    const char *group; /* NULL: none */
    const char *name;
    const char *whole;
};
extern const struct http_figure_name http_figure_names[HTTP_FIGURES];

/* A second; 0 for no time. */
double http_per_second(uint64_t count, double seconds);

/* What the plan's requests are called; "request" if it has no name. */
const char *http_kind_name(const struct http_plan *plan, unsigned kind);

/* Whether the server is reached without leaving this machine, as far as its address says. */
bool http_is_local(const struct http_plan *plan);

/* How the JSON calls what a plan is: [enum http_model], [enum http_stop]. */
#define HTTP_MODELS 3u
#define HTTP_STOPS  4u
extern const char *const http_model_names[HTTP_MODELS];
extern const char *const http_stop_names[HTTP_STOPS];

/* "closed loop", "partly open" or "open". */
const char *http_model_text(enum http_model model);

#endif
