/* SPDX-License-Identifier: MIT
 *
 * What: what is counted seldom: queries of a staged load once more, in the stage in which each
 * arrived, and those that failed.
 */
#include "worker-private.h"

/* ---- Stages ---- */

void
http__stage_offered(struct http__worker *worker, uint64_t intended_ns, uint64_t number)
{
    worker->result->by_stage[http__stage_at(worker, intended_ns)].offered += number;
}

void
http__stage_sent(struct http__worker *worker, const struct http__flight *flight, int number)
{
    worker->result->by_stage[flight->stage].sent += (uint64_t)number;
}

void
http__stage_good(struct http__worker *worker, const struct http__flight *flight,
                 uint64_t response_ns, uint64_t now_ns)
{
    struct http_result *result = worker->result;
    struct http_stage_result *stage = &result->by_stage[flight->stage];
    unsigned now = http_plan_stage_at(worker->plan, http__since_start(worker, now_ns));

    stage->ok++;
    http_histogram_record(&stage->response, response_ns);
    if (now < result->stages && now_ns <= worker->end_ns)
        result->by_stage[now].in_time++;
}

static void
stage_failed(struct http_result *result, const struct http__flight *flight, uint64_t response_ns)
{
    struct http_stage_result *stage = &result->by_stage[flight->stage];

    stage->errors++;
    http_histogram_record_at_least(&stage->response, response_ns);
}

/* ---- Failures ---- */

void
http__count_failed(struct http__worker *worker, const struct http__flight *flight,
                   uint64_t waited_ns, uint64_t now_ns)
{
    struct http_result *result = worker->result;
    uint64_t response_ns = flight->sent_ns - flight->intended_ns + waited_ns;

    http_histogram_record_at_least(&result->first_byte, waited_ns);
    http_histogram_record_at_least(&result->response, response_ns);
    if (worker->is_paced)
        http_histogram_record_at_least(&result->service, waited_ns);
    if (result->kinds > 1)
        http_histogram_record_at_least(&result->by_kind[flight->kind].response, response_ns);
    http_slice_ended(http__slice(worker, now_ns), false, response_ns);
    if (result->stages > 0)
        stage_failed(result, flight, response_ns);
}

uint64_t
http__failed_wait_ns(const struct http__worker *worker, const struct http__flight *flight,
                     enum http_end end, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns - flight->sent_ns, timeout_ns = worker->plan->timeout_ns;

    return end == HTTP_END_UNANSWERED || waited_ns > timeout_ns ? waited_ns : timeout_ns;
}
