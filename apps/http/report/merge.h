/* SPDX-License-Identifier: MIT
 *
 * What: adds up the results of several processes that made one load at the same time. Place:
 * `sxe-http merge A.json B.json ...`; the sum is a run like any other, so all outputs can print it.
 *
 * Shape: trial i of the sum is the sum of the trials i of all files. load_result_add adds them up,
 * as it adds up the workers of one run. The time of a trial is from the start of the
 * first part to the end of the last, by the wall clocks of the machines. Each file is a part of the
 * run (struct load_part), with its own verdict. The sum's verdict has the reasons of all these
 * verdicts, with the names of the files.
 *
 *     A.json  trial 1, trial 2 ...   --shard 1/2     -.
 *     B.json  trial 1, trial 2 ...   --shard 2/2     -'-> trial 1, trial 2 ... -> total
 *
 * Files with --shard are parts of one plan, which all shards together carry out. Files without
 * --shard are separate loads: their sockets, rates and --requests are added up.
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
    json_t *root; /* the file's JSON; owned */
    struct load_plan plan;
};

/* All members are private. Keep it as long as the run, which points into it. */
struct load_merge {
    unsigned number;
    struct load_merge_file *files; /* an array of `number` files; owned */
    struct load_plan plan;
    struct load_requests requests; /* the names of the kinds */
    const char *kind_names[LOAD_KINDS_MAX];
    /* the words of the command line: the array is owned, the words belong to files[0] */
    char **words;
};

/* Fill in *run with the sum of the files. Outputs, fan-out and thresholds are taken from `asked`;
 * if it has no thresholds, those of the first file are used. Returns LOAD_EXIT_OK, or another exit
 * status after a message on err. The caller frees merge and run in either case. */
int load_merge(struct load_merge *merge, struct load_run *run, const struct load_plan *asked,
               int number, char **paths, FILE *err);
void load_merge_free(struct load_merge *merge);

/* ---- merge-check.c ---- */

/* Whether the files are parts of one load. False after a message on err. Differences that are
 * allowed are printed, too. */
bool load_merge_check(const struct load_merge *merge, FILE *err);

/* Add reasons that concern the sum as a whole to the verdict: shards are missing, or two loads had
 * the same seed. */
void load_merge_suspect(const struct load_merge *merge, struct load_verdict *verdict);

#endif
