/* SPDX-License-Identifier: MIT
 *
 * What: several results of one load that several processes made at the same time, added up to one.
 * Place: `sxe-http merge A.json B.json ...`; what it leaves is a run like any other, so all outputs
 * print it.
 *
 * Shape: trial i of the sum is trial i of all files, added up by load_result_add, as the workers of
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
 * Limits: LOAD_MERGE_MAX files, all of them in memory.
 */
#ifndef LOAD_MERGE_H
#define LOAD_MERGE_H

#include <jansson.h>

#include "requests.h"
#include "run.h"

#define LOAD_MERGE_MAX 256

struct load_merge_file {
    const char *path;
    json_t *root; /* owns */
    struct load_plan plan;
};

/* All of it private, and to be kept as long as the run. */
struct load_merge {
    unsigned number;
    struct load_merge_file *files; /* [number] owns */
    struct load_plan plan;
    struct load_requests requests; /* the names of the kinds */
    const char *kind_names[LOAD_KINDS_MAX];
    char **words; /* owns: of the command line; the words are the first file's */
};

/* Fill *run with the sum of the files. Of asked, the outputs are taken, the fan-out and the
 * thresholds; without thresholds those of the first file. LOAD_EXIT_OK, or another exit status
 * after saying on err what is wrong with a file, or what differs. Free both either way. */
int load_merge(struct load_merge *merge, struct load_run *run, const struct load_plan *asked,
               int number, char **paths, FILE *err);
void load_merge_free(struct load_merge *merge);

/* ---- merge-check.c ---- */

/* True if the files are parts of one load; false after a message on err. Differences that are
 * allowed are printed as well. */
bool load_merge_check(const struct load_merge *merge, FILE *err);

/* Add what speaks against the sum as a whole: parts that are missing, or that began together with
 * the same seed. */
void load_merge_suspect(const struct load_merge *merge, struct load_verdict *verdict);

#endif
