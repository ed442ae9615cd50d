/* SPDX-License-Identifier: MIT
 *
 * What: several results of one load that several processes made at the same time, added up to one.
 * Place: `sxe-http merge A.json B.json ...`; what it leaves is a run like any other, so all outputs
 * print it.
 *
 * Shape: trial i of the sum is trial i of all files, added up by http_result_add, as the workers of
 * one process are. Its time is from the first one's beginning to the last one's end, by their wall
 * clocks. Each file is a part (run.h) with its own verdict; its reasons stand in the sum with the
 * file's name.
 *
 *     A.json  trial 1, trial 2 ...   --shard 1/2     -.
 *     B.json  trial 1, trial 2 ...   --shard 2/2     -'-> trial 1, trial 2 ... -> total
 *
 * Files with --shard are parts of one plan, and all of them together are the whole. Files without
 * are loads beside one another: their sockets, rates and --requests are added up.
 *
 * Limits: HTTP_MERGE_MAX files, all of them in memory.
 */
#ifndef HTTP_MERGE_H
#define HTTP_MERGE_H

#include <jansson.h>

#include "requests.h"
#include "run.h"

#define HTTP_MERGE_MAX 256

struct http_merge_file {
    const char *path;
    json_t *root; /* owns */
    struct http_plan plan;
};

/* All of it private, and to be kept as long as the run. */
struct http_merge {
    unsigned number;
    struct http_merge_file *files; /* [number] owns */
    struct http_plan plan;
    struct http_requests requests; /* the names of the kinds */
    const char *kind_names[HTTP_KINDS_MAX];
    char **words; /* owns: of the command line; the words are the first file's */
};

/* Fill *run with the sum of the files. Of asked, the outputs are taken, the fan-out and the
 * thresholds; without thresholds those of the first file. HTTP_EXIT_OK, or another exit status
 * after saying on err what is wrong with a file, or what differs. Free both either way. */
int http_merge(struct http_merge *merge, struct http_run *run, const struct http_plan *asked,
               int number, char **paths, FILE *err);
void http_merge_free(struct http_merge *merge);

/* ---- merge-check.c ---- */

/* Whether they are parts of one load; false after saying on err why not. What may differ is said,
 * too. */
bool http_merge_check(const struct http_merge *merge, FILE *err);

/* Add what speaks against the sum as a whole: parts that are missing, or that began together with
 * the same seed. */
void http_merge_suspect(const struct http_merge *merge, struct http_verdict *verdict);

#endif
