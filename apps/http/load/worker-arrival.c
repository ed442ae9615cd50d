/* SPDX-License-Identifier: MIT
 *
 * What: the sequence of arrivals, of the pace or of a log, and counting those that wait for a
 * socket. worker-pace.c sends them.
 */
#include "worker-private.h"

#define WALK_MAX 65536 /* arrivals to count in a turn of the loop: takes 2 ms */

void
load__next_arrival(const struct load__worker *worker, struct load__arrivals *arrivals)
{
    uint64_t after_ns = LOAD_NEVER;

    if (worker->plan->stop != LOAD_STOP_REPLAY) {
        after_ns = load_pace_next(&arrivals->pace);
    } else {
        uint64_t entry = worker->shard + arrivals->number * worker->shards;

        if (entry < worker->requests->number)
            after_ns = worker->requests->times_ns[entry];
    }
    arrivals->next_ns =
        after_ns < LOAD_NEVER - worker->start_ns ? worker->start_ns + after_ns : LOAD_NEVER;
}

void
load__pass_arrival(const struct load__worker *worker, struct load__arrivals *arrivals)
{
    arrivals->number++;
    load__next_arrival(worker, arrivals);
}

/* ---- Arrivals that wait ---- */

static bool
is_one_ahead(const struct load__worker *worker, uint64_t now_ns)
{
    return worker->left > 0 && worker->ahead.next_ns <= now_ns &&
           worker->ahead.next_ns < worker->end_ns;
}

/* Count `number` arrivals as offered and waiting, beginning with worker->ahead. */
static void
count_ahead(struct load__worker *worker, uint64_t number)
{
    struct load_slice *slice = load__slice(worker, worker->ahead.next_ns);
    uint64_t room = UINT32_MAX - slice->offered;

    worker->left -= number;
    worker->waiting += number;
    worker->result->waiting += number;
    worker->result->offered += number;
    slice->offered += (uint32_t)(number < room ? number : room);
    if (worker->result->stages > 0)
        load__stage_offered(worker, worker->ahead.next_ns, number);
    worker->ahead.number += number - 1;
    load__pass_arrival(worker, &worker->ahead);
}

/* Walk with worker->ahead over arrivals that worker->arrivals will send later. A call counts at
 * most WALK_MAX; the next call continues. */
void
load__count_waiting(struct load__worker *worker, uint64_t now_ns)
{
    if (!worker->is_paced || !worker->is_running)
        return;
    if (worker->waiting == 0)
        worker->ahead = worker->arrivals;
    for (unsigned i = 0; i < WALK_MAX && is_one_ahead(worker, now_ns); i++)
        count_ahead(worker, 1);
}

/* The end of the stage that has the time ns; LOAD_NEVER: there are no stages. */
static uint64_t
stage_end_ns(const struct load__worker *worker, uint64_t ns)
{
    const struct load_plan *plan = worker->plan;

    return plan->stages_number == 0
               ? LOAD_NEVER
               : worker->start_ns + plan->stages[load__stage_at(worker, ns)].end_ns;
}

/* Count the remaining arrivals up to now. They will not be sent, so their exact times do not
 * matter: all that are in one slice of the time line, and in one stage, are counted at once. */
static void
count_rest(struct load__worker *worker, uint64_t now_ns)
{
    while (worker->plan->stop != LOAD_STOP_REPLAY && is_one_ahead(worker, now_ns)) {
        uint64_t until_ns = now_ns + 1 < worker->end_ns ? now_ns + 1 : worker->end_ns;
        uint64_t stage_ns = stage_end_ns(worker, worker->ahead.next_ns);
        uint64_t number = 1;

        if (until_ns > stage_ns)
            until_ns = stage_ns;
        (void)load__slice(worker, worker->ahead.next_ns);
        if (until_ns > worker->slice_ns + worker->slice_width_ns)
            until_ns = worker->slice_ns + worker->slice_width_ns;
        number += load_pace_skip(&worker->ahead.pace, until_ns - worker->start_ns);
        count_ahead(worker, number < worker->left ? number : worker->left);
    }
}

void
load__drop_waiting(struct load__worker *worker, uint64_t now_ns)
{
    if (!worker->is_paced || !worker->is_running)
        return;
    load__count_waiting(worker, now_ns);
    count_rest(worker, now_ns);
    if (worker->waiting == 0)
        return;
    worker->result->skipped[load__why_unsent(worker)] += worker->waiting;
    worker->result->waiting -= worker->waiting;
    worker->waiting = 0;
    worker->arrivals = worker->ahead;
}
