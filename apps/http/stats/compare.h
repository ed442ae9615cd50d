/* SPDX-License-Identifier: MIT
 *
 * What: compares two runs, for sxe-http compare a.json b.json, --baseline a.json and
 * --baseline-cmd: b is faster, b is slower, or no difference is shown. Place: perform.c calls it.
 * It reads the JSON that output-json.c writes, with jansson. contrast.h decides which of these
 * words each figure gets.
 *
 * Shape: the output has a line for each figure, with the interval of the ratio b/a over the trials,
 * and the word. If a side has measured its noise with --aa, a difference inside this noise counts
 * as none. With fewer than six trials on a side no difference is shown. The first lines of the
 * output say where the fingerprints or commands differ, and why a side is suspect.
 *
 *     compare   a: a.json, 8 trials; b: b.json, 8 trials
 *     differs   governor: powersave | performance
 *                   a         b         b/a    interval: 95 % for all 3 together
 *     failed        0 %       0 %       no difference shown
 *     rate a second 48.2k     50.7k     1.052  1.031 to 1.077  faster
 *     service p50   1.32 ms   1.31 ms   0.993  0.981 to 1.008  no difference shown
 */
#ifndef LOAD_COMPARE_H
#define LOAD_COMPARE_H

#include <stdio.h>

#include "contrast.h"
#include "run.h"

/* The result of a comparison, for outputs that print it again. */
struct load_comparison {
    bool is_made;     /* whether a comparison was made; if not, the other members are not set */
    const char *with; /* what the run was compared with: the path of a file, or "--baseline-cmd" */
    double min_effect;
    struct load_contrast contrast;
};

/* The words for the judgement of a figure, such as "slower", "no difference shown beyond 2 %". The
 * text belongs to this thread, and is valid until the next call. */
const char *load_comparison_text(enum load_contrast_word word, double min_effect);

/* Compare two files. Returns 0; LOAD_EXIT_THRESHOLD if a regression is shown; LOAD_EXIT_SUSPECT if
 * a side is suspect, unless more of b's requests failed, which is a regression even then;
 * LOAD_EXIT_USAGE, after a message on err, if a file cannot be read or is no result of sxe-http. */
int load_compare_files(const char *a, const char *b, double min_effect, FILE *out, FILE *err);
/* Check before a run that file a can be compared with. 0, or LOAD_EXIT_USAGE after a message that
 * says why not. */
int load_compare_check(const char *a, FILE *err);
/* Compare the run with the file a, or, if a is NULL, with its own trials of --baseline-cmd. The
 * result is stored in the run's comparison, if it has one. */
int load_compare_baseline(const char *a, const struct load_run *b, FILE *out, FILE *err);

#endif
