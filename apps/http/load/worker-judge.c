/* SPDX-License-Identifier: MIT
 *
 * What: what a whole reply is, and what its end is to a session.
 */
#include "worker-private.h"

static enum http_reading
show_reply(struct http__socket *socket, const struct http__flight *flight, uint64_t now_ns)
{
    const struct http__worker *worker = socket->worker;
    struct http_requests *requests = worker->requests;
    const struct http__exchange *kept;
    struct http_exchange exchange;

    if (!flight->is_kept || (requests->replied == NULL && requests->read == NULL))
        return HTTP_READ_JUDGE;
    kept = &worker->exchanges[http__id(socket)];
    exchange = (struct http_exchange){
        .client = http__id(socket),
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
    return requests->replied(requests, &exchange) ? HTTP_READ_JUDGE : HTTP_READ_FAILED;
}

enum http_end
http__judge(struct http__socket *socket, const struct http__flight *flight, uint64_t now_ns)
{
    const struct http_expect *expect = flight->expect;
    enum http_reading reading = show_reply(socket, flight, now_ns);

    if (reading == HTTP_READ_FOLLOW)
        return HTTP_END_OK;
    if (reading == HTTP_READ_ASTRAY)
        return HTTP_END_FAILED_CHECK;
    if (!http_expect_status(expect, socket->reply.status)) {
        struct http_result *result = socket->worker->result;

        if (result->first_bad_status == 0)
            result->first_bad_status = socket->reply.status;
        return HTTP_END_BAD_STATUS;
    }
    if (socket->end != HTTP_END_OK)
        return (enum http_end)socket->end;
    if (!http_expect_body_end(expect, &socket->body))
        return HTTP_END_BAD_BODY;
    return reading == HTTP_READ_JUDGE ? HTTP_END_OK : HTTP_END_FAILED_CHECK;
}

void
http__end_step(struct http__socket *socket, enum http_end end)
{
    struct http__worker *worker = socket->worker;
    unsigned went = worker->requests->ended(worker->requests, http__id(socket), end);

    worker->result->sessions_completed += (went & HTTP_SESSION_COMPLETED) > 0;
    worker->result->sessions_failed += (went & HTTP_SESSION_FAILED) > 0;
    if (!(went & HTTP_SESSION_LAST))
        return;
    socket->left = 0;
    if (--worker->users == 0)
        http__stop(worker, sxe_time_ns());
}
