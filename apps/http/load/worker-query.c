/* SPDX-License-Identifier: MIT
 *
 * What: asks the supplier for queries, writes them, ends them, and counts them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker-private.h"

/* The time that the supplier takes is measured for each query if it is longer than SLOW_NS,
 * otherwise for one query in SAMPLE. */
#define SAMPLE  64
#define SLOW_NS 500

/* ---- Bytes that are kept ---- */

int
load__keep_bytes(struct load__bytes *bytes, const char *data, size_t length)
{
    size_t wanted = bytes->used + length;

    if (wanted > bytes->room) {
        size_t room = wanted > 2 * bytes->room ? wanted : 2 * bytes->room;
        char *more = realloc(bytes->data, room);

        if (more == NULL)
            return -ENOMEM;
        bytes->data = more;
        bytes->room = room;
    }
    memcpy(bytes->data + bytes->used, data, length);
    bytes->used = wanted;
    return 0;
}

/* ---- Sending ---- */

/* Count how late a query was sent, if queries arrive at planned times. In a closed loop no query is
 * late. */
static void
count_lag(struct load__worker *worker, const struct load__flight *flight)
{
    uint64_t lag_ns = flight->sent_ns - flight->intended_ns;

    if (!worker->is_paced)
        return;
    worker->result->late += lag_ns > LOAD__LATE_NS;
    if (worker->free_ns <= flight->intended_ns)
        load_histogram_record(&worker->result->schedule_lag, lag_ns);
}

static void
count_sent(struct load__worker *worker, const struct load__flight *flight, unsigned length)
{
    struct load_result *result = worker->result;

    result->sent++;
    result->in_flight++;
    if (SXE_UNLIKELY(result->stages > 0))
        load__stage_sent(worker, flight, 1);
    result->bytes_sent += length;
    load__slice(worker, flight->sent_ns)->sent++;
    count_lag(worker, flight);
}

static void
write_query(struct load__socket *socket, const struct load_query *query, uint64_t nth,
            uint64_t intended_ns, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    struct load__flight *flight = load__flight(socket, socket->in_flight);
    const struct load_expect *expect = query->expect != NULL ? query->expect : worker->plan->expect;

    *flight = (struct load__flight){
        .intended_ns = worker->is_paced && intended_ns < now_ns ? intended_ns : now_ns,
        .sent_ns = now_ns,
        .expect = expect,
        .entry = (uint32_t)nth,
        .kind = query->kind,
        .is_head = query->is_head,
        .is_last = query->is_last,
        .is_kept = worker->exchanges != NULL && !query->skips_reply,
        .is_body_kept = !query->skips_body,
        .stage = load__stage_at(worker, intended_ns - query->delay_ns),
    };
    flight->is_seen = expect->fields > 0 || expect->body != NULL || flight->is_kept;
    socket->is_ending = query->is_last;
    socket->in_flight++;
    count_sent(worker, flight, query->length);
    if (!socket->is_timed) {
        socket->is_timed = true;
        load__push(worker, now_ns + worker->plan->timeout_ns, LOAD__TIMEOUT, load__id(socket));
    }
    /* After any other error the connection has ended: on_close will be called, and will count the
     * query's end. */
    if (sxe_write(socket->sxe, query->bytes, query->length) == -ENOBUFS)
        load__fail(socket, LOAD_END_OTHER, ENOBUFS);
}

/* Keep a copy of the query until its delay is over. Meanwhile a query that arrived counts as
 * waiting. False: no memory. */
static bool
hold_query(struct load__socket *socket, const struct load_query *query, uint64_t nth,
           uint64_t intended_ns)
{
    struct load__worker *worker = socket->worker;
    struct load__held *held = &worker->held[load__id(socket)];

    held->bytes.used = 0;
    if (load__keep_bytes(&held->bytes, query->bytes, query->length) < 0)
        return false;
    held->query = *query;
    held->query.bytes = held->bytes.data;
    held->nth = nth;
    held->due_ns = intended_ns + query->delay_ns;
    socket->is_held = true;
    worker->held_number++;
    worker->result->waiting += worker->is_paced;
    load__push(worker, held->due_ns, LOAD__HELD, load__id(socket));
    return true;
}

void
load__send_held(struct load__socket *socket)
{
    struct load__worker *worker = socket->worker;
    const struct load__held *held = &worker->held[load__id(socket)];
    uint64_t now_ns = sxe_time_ns();

    socket->is_held = socket->is_held_due = false;
    worker->held_number--;
    if (worker->is_paced)
        worker->result->waiting--;
    else
        load__count_offered(worker, now_ns);
    write_query(socket, &held->query, held->nth, held->due_ns, now_ns);
    load__settle(socket);
}

/* Ask the supplier for a query. The time that the supplier takes must not count as the server's
 * time, so the clock is read again after the call. If the supplier is fast, the clock is read only
 * for one call in SAMPLE. */
static int
ask_supplier(struct load__worker *worker, uint64_t nth, struct load_query *query, uint64_t *now_ns)
{
    uint64_t sequence = worker->shard + nth * worker->shards;
    bool is_timed = worker->is_supplier_slow || worker->given % SAMPLE == 0;
    uint64_t before_ns = is_timed ? sxe_time_ns() : 0;
    int result = worker->requests->next(worker->requests, sequence, query);

    worker->given++;
    if (is_timed) {
        *now_ns = sxe_time_ns();
        worker->is_supplier_slow = *now_ns - before_ns > SLOW_NS;
    }
    return result;
}

void
load__offer(struct load__socket *socket, uint64_t nth, uint64_t intended_ns, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    struct load_query query = {.client = load__id(socket)};

    if (ask_supplier(worker, nth, &query, &now_ns) < 0) {
        worker->result->skipped[LOAD_SKIP_UNSENT] += worker->is_paced;
        load__stop(worker, now_ns);
        return;
    }
    worker->left -= !worker->is_paced;
    socket->left--;
    if (query.delay_ns > 0 && hold_query(socket, &query, nth, intended_ns))
        return;
    query.delay_ns = 0;
    if (!worker->is_paced)
        load__count_offered(worker, now_ns);
    write_query(socket, &query, nth, intended_ns, now_ns);
}

/* Whether another query may be sent on this connection: the worker does not close it, and the last
 * query did not ask the server to close it (RFC 9112, 9.6). */
static bool
may_write(const struct load__socket *socket)
{
    return socket->failure == LOAD_ENDS && !socket->is_ending;
}

/* Send a query in place of one that the server did not see: the same entry of a log, or else the
 * supplier's next query, without its delay. */
static bool
send_query_again(struct load__socket *socket, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    const struct load__flight before = *load__flight(socket, socket->in_flight);
    uint64_t nth = worker->plan->stop == LOAD_STOP_REPLAY ? before.entry : worker->given;
    struct load_query query = {.client = load__id(socket)};

    if (ask_supplier(worker, nth, &query, &now_ns) < 0) {
        load__stop(worker, now_ns);
        return false;
    }
    query.delay_ns = 0;
    socket->again--;
    worker->again_number--;
    worker->result->waiting--;
    write_query(socket, &query, nth, before.intended_ns, now_ns);
    return true;
}

void
load__send_again(struct load__socket *socket, uint64_t now_ns)
{
    const struct load__worker *worker = socket->worker;

    while (socket->again > 0 && may_write(socket) && worker->is_offering &&
           now_ns < worker->end_ns && send_query_again(socket, now_ns))
        continue;
}

bool
load__may_send(const struct load__socket *socket)
{
    const struct load__worker *worker = socket->worker;

    return socket->ready > 0 && socket->left > 0 && !socket->is_held && may_write(socket) &&
           worker->is_offering && worker->left > 0;
}

void
load__send_ready(struct load__socket *socket, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;

    while (load__may_send(socket) && now_ns < worker->end_ns) {
        socket->ready--;
        load__offer(socket, worker->given, now_ns, now_ns);
    }
    load__settle(socket);
}

/* ---- Ends ---- */

static void
take_next_reply(struct load__socket *socket)
{
    socket->reply.part = LOAD_REPLY_HEAD;
    socket->end = LOAD_END_OK;
    socket->body.matched = 0;
    socket->first_byte_ns = 0;
    if (socket->worker->exchanges != NULL)
        socket->worker->exchanges[load__id(socket)].bytes.used = 0;
}

/* In a closed loop, let the socket send its next query, at once or after the think time. */
static void
go_on_with_reply(struct load__socket *socket, bool thinks)
{
    struct load__worker *worker = socket->worker;

    if (worker->is_paced)
        return;
    if (!thinks || worker->plan->think_ns == 0) {
        socket->ready++;
        return;
    }
    socket->thinking++;
    load__push(worker, sxe_time_ns() + worker->plan->think_ns, LOAD__QUERY, load__id(socket));
}

/* End the oldest query in flight. The returned element of the ring is valid until the socket sends
 * its next query. */
static const struct load__flight *
take_oldest_query(struct load__socket *socket, enum load_end end, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    struct load_result *result = worker->result;
    const struct load__flight *flight = load__flight(socket, 0);

    socket->oldest = (uint16_t)(socket->oldest + 1u < worker->depth ? socket->oldest + 1 : 0);
    socket->in_flight--;
    result->in_flight--;
    worker->ended_ns = now_ns;
    result->ends[end]++;
    if (end == LOAD_END_OK)
        result->by_kind[flight->kind].ok++;
    else
        result->by_kind[flight->kind].errors++;
    if (worker->requests->ended != NULL)
        load__end_step(socket, end);
    take_next_reply(socket);
    return flight;
}

/* ---- Counting ends ---- */

static void
record_client(struct load__socket *socket, unsigned kind, uint64_t ns)
{
    struct load_result *result = socket->worker->result;
    struct load_client_result *client;

    if (result->clients == 0)
        return;
    client = &result->by_client[load__id(socket) * result->kinds + kind];
    if (client->count == 0 || ns < client->min_ns)
        client->min_ns = ns;
    if (ns > client->max_ns)
        client->max_ns = ns;
    client->count++;
    client->sum_ns += ns;
}

/* Count a good reply. In a closed loop only the response time is recorded, because the service time
 * equals it; load__bring_up_to_date copies the histogram. */
static void
record_good(struct load__socket *socket, const struct load__flight *flight, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    struct load_result *result = worker->result;
    uint64_t response_ns = now_ns - flight->intended_ns;

    load_histogram_record(&result->response, response_ns);
    if (worker->is_paced)
        load_histogram_record(&result->service, now_ns - flight->sent_ns);
    if (result->kinds > 1)
        load_histogram_record(&result->by_kind[flight->kind].response, response_ns);
    load_slice_ended(load__slice(worker, now_ns), true, response_ns);
    record_client(socket, flight->kind, response_ns);
    if (SXE_UNLIKELY(now_ns > worker->end_ns))
        result->drained++;
    if (SXE_UNLIKELY(result->stages > 0))
        load__stage_good(worker, flight, response_ns, now_ns);
}

void
load__end_without_reply(struct load__socket *socket, enum load_end end, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    const struct load__flight *flight = take_oldest_query(socket, end, now_ns);

    load__count_failed(worker, flight, load__failed_wait_ns(worker, flight, end, now_ns), now_ns);
    go_on_with_reply(socket, false);
}

/* On a connection that the worker closes, queries end as socket->failure says; all others end as
 * UNANSWERED. */
void
load__end_unanswered(struct load__worker *worker, uint64_t now_ns)
{
    for (uint32_t id = 0; id < worker->number; id++) {
        struct load__socket *socket = &worker->sockets[id];
        enum load_end end = (enum load_end)socket->failure;

        end = end == LOAD_ENDS ? LOAD_END_UNANSWERED : end;
        while (socket->in_flight > 0)
            load__end_without_reply(socket, end, now_ns);
    }
}

void
load__end_with_reply(struct load__socket *socket, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    enum load_end end = load__judge(socket, load__flight(socket, 0), now_ns);
    uint64_t first_byte_ns = socket->first_byte_ns;
    unsigned status_class = load_status_class(socket->reply.status);
    const struct load__flight *flight = take_oldest_query(socket, end, now_ns);

    worker->result->classes[status_class]++;
    socket->has_replied = true;
    worker->reply_ns = now_ns;
    if (SXE_LIKELY(end == LOAD_END_OK)) {
        load_histogram_record(&worker->result->first_byte, first_byte_ns - flight->sent_ns);
        record_good(socket, flight, now_ns);
    } else {
        load__count_failed(worker, flight, load__failed_wait_ns(worker, flight, end, now_ns),
                           now_ns);
    }
    go_on_with_reply(socket, true);
}
