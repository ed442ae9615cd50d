/* SPDX-License-Identifier: MIT
 *
 * What: judges a complete reply, and tells the session of a scenario how its query ended.
 */
#include "worker-private.h"

static enum load_reading
show_reply(struct load__socket *socket, const struct load__flight *flight, uint64_t now_ns)
{
    const struct load__worker *worker = socket->worker;
    struct load_requests *requests = worker->requests;
    const struct load__exchange *kept;
    struct load_exchange exchange;

    if (!flight->is_kept || (requests->replied == NULL && requests->read == NULL))
        return LOAD_READ_JUDGE;
    kept = &worker->exchanges[load__id(socket)];
    exchange = (struct load_exchange){
        .client = load__id(socket),
        .kind = flight->kind,
        .status = socket->reply.status,
        .head = kept->bytes.data,
        .head_length = kept->head_length,
        .body = kept->bytes.data + kept->head_length,
        .body_length = kept->bytes.used - kept->head_length,
        .service_ns = now_ns - flight->sent_ns,
    };
    if (requests->read != NULL)
        return requests->read(requests, &exchange);
    return requests->replied(requests, &exchange) ? LOAD_READ_JUDGE : LOAD_READ_FAILED;
}

enum load_end
load__judge(struct load__socket *socket, const struct load__flight *flight, uint64_t now_ns)
{
    const struct load_expect *expect = flight->expect;
    enum load_reading reading = show_reply(socket, flight, now_ns);

    if (reading == LOAD_READ_FOLLOW)
        return LOAD_END_OK;
    if (reading == LOAD_READ_ASTRAY)
        return LOAD_END_FAILED_CHECK;
    if (!load_expect_accepts_status(expect, socket->reply.status)) {
        struct load_result *result = socket->worker->result;

        if (result->first_bad_status == 0)
            result->first_bad_status = socket->reply.status;
        return LOAD_END_BAD_STATUS;
    }
    if (socket->end != LOAD_END_OK)
        return (enum load_end)socket->end;
    if (!load_expect_accepts_body(expect, &socket->body))
        return LOAD_END_BAD_BODY;
    return reading == LOAD_READ_JUDGE ? LOAD_END_OK : LOAD_END_FAILED_CHECK;
}

void
load__end_step(struct load__socket *socket, enum load_end end)
{
    struct load__worker *worker = socket->worker;
    unsigned went = worker->requests->ended(worker->requests, load__id(socket), end);

    worker->result->sessions_completed += (went & LOAD_SESSION_COMPLETED) > 0;
    worker->result->sessions_failed += (went & LOAD_SESSION_FAILED) > 0;
    if (!(went & LOAD_SESSION_LAST))
        return;
    socket->left = 0;
    if (--worker->users == 0)
        load__stop(worker, sxe_time_ns());
}
