/* SPDX-License-Identifier: MIT
 *
 * What: does what is needed rarely: counts queries by the stage (--stages) in which they arrived,
 * counts failed queries, remembers the first error, and finds the next slice of the time line.
 */
#include "worker-private.h"

/* ---- Stages ---- */

void
load__stage_offered(struct load__worker *worker, uint64_t intended_ns, uint64_t number)
{
    worker->result->by_stage[load__stage_at(worker, intended_ns)].offered += number;
}

void
load__stage_sent(struct load__worker *worker, const struct load__flight *flight, int number)
{
    worker->result->by_stage[flight->stage].sent += (uint64_t)number;
}

void
load__stage_good(struct load__worker *worker, const struct load__flight *flight,
                 uint64_t response_ns, uint64_t now_ns)
{
    struct load_result *result = worker->result;
    struct load_stage_result *stage = &result->by_stage[flight->stage];
    unsigned now = load_plan_stage_at(worker->plan, load__since_start(worker, now_ns));

    stage->ok++;
    load_histogram_record(&stage->response, response_ns);
    if (now < result->stages && now_ns <= worker->end_ns)
        result->by_stage[now].in_time++;
}

static void
stage_failed(struct load_result *result, const struct load__flight *flight, uint64_t response_ns)
{
    struct load_stage_result *stage = &result->by_stage[flight->stage];

    stage->errors++;
    load_histogram_record_at_least(&stage->response, response_ns);
}

/* ---- Failures ---- */

void
load__count_failed(struct load__worker *worker, const struct load__flight *flight,
                   uint64_t waited_ns, uint64_t now_ns)
{
    struct load_result *result = worker->result;
    uint64_t response_ns = flight->sent_ns - flight->intended_ns + waited_ns;

    load_histogram_record_at_least(&result->first_byte, waited_ns);
    load_histogram_record_at_least(&result->response, response_ns);
    if (worker->is_paced)
        load_histogram_record_at_least(&result->service, waited_ns);
    if (result->kinds > 1)
        load_histogram_record_at_least(&result->by_kind[flight->kind].response, response_ns);
    load_slice_ended(load__slice(worker, now_ns), false, response_ns);
    if (result->stages > 0)
        stage_failed(result, flight, response_ns);
}

uint64_t
load__failed_wait_ns(const struct load__worker *worker, const struct load__flight *flight,
                     enum load_end end, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns - flight->sent_ns, timeout_ns = worker->plan->timeout_ns;

    return end == LOAD_END_UNANSWERED || waited_ns > timeout_ns ? waited_ns : timeout_ns;
}

void
load__note_error(struct load__worker *worker, int error)
{
    if (worker->result->first_error == 0)
        worker->result->first_error = error;
}

/* ---- The time line ---- */

struct load_slice *
load__find_slice(struct load__worker *worker, uint64_t ns)
{
    struct load_timeline *timeline = &worker->result->timeline;
    uint64_t at_ns = load__since_start(worker, ns);

    worker->slice = load_timeline_slice(timeline, at_ns);
    worker->slice_width_ns = timeline->width_ns;
    worker->slice_ns = worker->start_ns + at_ns - at_ns % timeline->width_ns;
    return worker->slice;
}
