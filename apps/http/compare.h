/* SPDX-License-Identifier: MIT
 *
 * What: http compare a.json b.json, and --baseline a.json: is b faster, slower, or is no difference
 * shown. Place: http.c. Reads what output-json.c writes, with jansson.
 *
 * Shape: a line a figure with the interval of the ratio b/a over the trials and the word; a
 * difference inside the noise floor of --aa, if either has one, is none. Fewer than six trials on a
 * side show none. Where the fingerprints differ is said first.
 */
#ifndef HTTP_COMPARE_H
#define HTTP_COMPARE_H

#include <stdio.h>

#include "run.h"

/* 0; HTTP_EXIT_THRESHOLD on a regression that is shown; HTTP_EXIT_USAGE for a file that cannot be
 * read or is none of ours, after saying which, where and why. */
int http_compare_files(const char *a, const char *b, FILE *out, FILE *err);
int http_compare_baseline(const char *a, const struct http_run *b, FILE *out, FILE *err);

#endif
