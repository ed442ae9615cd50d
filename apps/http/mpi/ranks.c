/* SPDX-License-Identifier: MIT
 *
 * The table of ranks, and a verdict for each rank.
 */
#include "ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct load_ranks *judged;

/* For each rank the sums, over all trials, from which its rate is computed. */
static struct count {
    double in_time;
    double seconds;
} counts[LOAD_RANKS_MAX];

struct load_ranks *
load_ranks_new(unsigned number)
{
    struct load_ranks *ranks =
        mmap(NULL, sizeof(*ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (ranks == MAP_FAILED)
        return NULL;
    ranks->number = number;
    for (unsigned i = 0; i < LOAD_RANKS_MAX; i++)
        ranks->ranks[i].channel = -1;
    return ranks;
}

void
load_ranks_free(struct load_ranks *ranks)
{
    if (judged == ranks) {
        judged = NULL;
        load_trial_parts = NULL;
    }
    munmap(ranks, sizeof(*ranks));
}

const char *
load_rank_name(const struct load_ranks *ranks, unsigned rank)
{
    static char name[80];
    const char *host = ranks->ranks[rank].host;

    snprintf(name, sizeof(name), "rank %u%s%s", rank, *host != '\0' ? " on " : "", host);
    return name;
}

/* Judge the worker of a rank as if it were a run of its own, with the rank's part of the load. */
static void
judge_alone(struct load_verdict *verdict, const struct load_plan *plan, unsigned rank,
            const struct load_result *worker)
{
    struct load_plan share = *plan;

    share.shard = rank;
    share.shards = judged->number;
    load_verdict_judge(verdict, &share, worker, &worker, 1);
    if (worker->opened == 0)
        verdict->number = 0;
}

static void
add_rank_part(struct load_part *part, struct count *count, const struct load_result *worker,
              const struct load_verdict *verdict)
{
    count->in_time += (double)load_result_in_time(worker);
    count->seconds += (double)worker->elapsed_ns / 1e9;
    part->rate = count->seconds > 0 ? count->in_time / count->seconds : 0;
    part->ok += worker->ends[LOAD_END_OK];
    part->errors += load_result_errors(worker);
    part->opened += worker->opened;
    load_verdict_add(&part->verdict, verdict);
}

/* The parts of the run, to which each trial adds. In a search they are the parts of the present
 * step. NULL: no memory. */
static struct load_part *
parts_of(struct load_run *run)
{
    size_t size = judged->number * sizeof(*run->parts);

    if (run->parts == NULL) {
        run->parts = malloc(size);
        run->parts_number = 0;
    }
    if (run->parts != NULL && (run->parts_number == 0 || run->plan->find != NULL)) {
        memset(run->parts, 0, size);
        memset(counts, 0, sizeof(counts));
        run->parts_number = judged->number;
    }
    return run->parts;
}

static bool
is_baseline(const struct load_run *run, const struct load_trial *trial)
{
    return trial >= run->baseline && trial < &run->baseline[LOAD_TRIALS_MAX];
}

static void
judge_ranks(struct load_parent *parent, struct load_trial *trial,
            const struct load_result *const *workers)
{
    struct load_verdict whole = trial->verdict;
    struct load_part *parts = is_baseline(parent->run, trial) ? NULL : parts_of(parent->run);

    trial->verdict.number = 0;
    for (unsigned i = 0; i < judged->number; i++) {
        struct load_verdict verdict;

        judge_alone(&verdict, parent->plan, i, workers[i]);
        load_verdict_add_part(&trial->verdict, &verdict, load_rank_name(judged, i));
        if (parts == NULL)
            continue;
        add_rank_part(&parts[i], &counts[i], workers[i], &verdict);
        snprintf(parts[i].name, sizeof(parts[i].name), "%s", load_rank_name(judged, i));
        parts[i].clock_ns = judged->ranks[i].clock_ns;
    }
    /* a limit may be exceeded only by the sum of all ranks */
    if (trial->verdict.number == 0)
        trial->verdict = whole;
}

void
load_ranks_judge(struct load_ranks *ranks)
{
    judged = ranks;
    load_trial_parts = judge_ranks;
}
