/* SPDX-License-Identifier: MIT
 *
 * What: a query's life: asked of the source, written, answered, judged, counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker-private.h"

/* A source that takes longer than SLOW_NS is timed for each query, others for one in SAMPLE. */
#define SAMPLE  64
#define SLOW_NS 500

/* ---- Bytes that are kept ---- */

/* 0 or -ENOMEM. */
static int
keep_bytes(struct load__bytes *bytes, const char *data, size_t length)
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

/* Count how late a query was sent, if queries arrive; in a closed loop none is late. */
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
write_query(struct load__socket *socket, const struct load_query *query, uint64_t number,
            uint64_t intended_ns, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    struct load__flight *flight = load__flight(socket, socket->in_flight);
    const struct load_expect *expect = query->expect != NULL ? query->expect : worker->plan->expect;

    *flight = (struct load__flight){
        .intended_ns = worker->is_paced && intended_ns < now_ns ? intended_ns : now_ns,
        .sent_ns = now_ns,
        .expect = expect,
        .entry = (uint32_t)number,
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
    /* Other errors mean that the connection has ended: on_close will follow, and count that. */
    if (sxe_write(socket->sxe, query->bytes, query->length) == -ENOBUFS)
        load__fail(socket, LOAD_END_OTHER, ENOBUFS);
}

/* Keep a copy of the query until it is due. An arrival counts as waiting meanwhile. False: no
 * memory. */
static bool
hold_query(struct load__socket *socket, const struct load_query *query, uint64_t number,
           uint64_t intended_ns)
{
    struct load__worker *worker = socket->worker;
    struct load__held *held = &worker->held[load__id(socket)];

    held->bytes.used = 0;
    if (keep_bytes(&held->bytes, query->bytes, query->length) < 0)
        return false;
    held->query = *query;
    held->query.bytes = held->bytes.data;
    held->number = number;
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
    write_query(socket, &held->query, held->number, held->due_ns, now_ns);
    load__settle(socket);
}

/* Ask the source for a query. The time that the source takes must not count as the server's, so the
 * clock is read again after the call: for a slow source each time, for a fast one once in SAMPLE
 * calls. */
static int
ask_source(struct load__worker *worker, uint64_t number, struct load_query *query, uint64_t *now_ns)
{
    uint64_t sequence = worker->shard + number * worker->shards;
    bool is_timed = worker->is_source_slow || worker->given % SAMPLE == 0;
    uint64_t before_ns = is_timed ? sxe_time_ns() : 0;
    int result = worker->requests->next(worker->requests, sequence, query);

    worker->given++;
    if (is_timed) {
        *now_ns = sxe_time_ns();
        worker->is_source_slow = *now_ns - before_ns > SLOW_NS;
    }
    return result;
}

void
load__offer(struct load__socket *socket, uint64_t number, uint64_t intended_ns, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    struct load_query query = {.client = load__id(socket)};

    if (ask_source(worker, number, &query, &now_ns) < 0) {
        worker->result->skipped[LOAD_SKIP_UNSENT] += worker->is_paced;
        load__stop(worker, now_ns);
        return;
    }
    worker->left -= !worker->is_paced;
    socket->left--;
    if (query.delay_ns > 0 && hold_query(socket, &query, number, intended_ns))
        return;
    query.delay_ns = 0;
    if (!worker->is_paced)
        load__count_offered(worker, now_ns);
    write_query(socket, &query, number, intended_ns, now_ns);
}

/* Neither the worker nor the last query sent ends the connection (RFC 9112, 9.6). */
static bool
may_write(const struct load__socket *socket)
{
    return socket->failure == LOAD_ENDS && !socket->is_ending;
}

/* Replace a query that the server did not see: by the same entry of a log, or else by the source's
 * next query, without its delay. */
static bool
send_query_again(struct load__socket *socket, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    const struct load__flight before = *load__flight(socket, socket->in_flight);
    uint64_t number = worker->plan->stop == LOAD_STOP_REPLAY ? before.entry : worker->given;
    struct load_query query = {.client = load__id(socket)};

    if (ask_source(worker, number, &query, &now_ns) < 0) {
        load__stop(worker, now_ns);
        return false;
    }
    query.delay_ns = 0;
    socket->again--;
    worker->again_number--;
    worker->result->waiting--;
    write_query(socket, &query, number, before.intended_ns, now_ns);
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

static bool
may_send(const struct load__socket *socket)
{
    const struct load__worker *worker = socket->worker;

    return socket->ready > 0 && socket->left > 0 && !socket->is_held && may_write(socket) &&
           worker->is_offering && worker->left > 0;
}

void
load__send_ready(struct load__socket *socket, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;

    while (may_send(socket) && now_ns < worker->end_ns) {
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

/* In a closed loop, let the socket send its next query after the think time, or at once. */
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

/* In a closed loop record response times only; load__bring_up_to_date copies them to service. */
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

/* If the worker has closed a connection, its queries end as socket->failure says, the others as
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

/* ---- Replies ---- */

struct viewer {
    struct load_reply_viewer base;
    struct load__socket *socket;
    const struct load_expect *expect;
};

static void
note_end(struct load__socket *socket, enum load_end end)
{
    if (socket->end == LOAD_END_OK)
        socket->end = (uint8_t)end;
}

static void
keep_reply(struct load__socket *socket, const char *data, size_t length)
{
    struct load__exchange *exchange;

    if (!load__flight(socket, 0)->is_kept)
        return;
    exchange = &socket->worker->exchanges[load__id(socket)];
    if (exchange->bytes.used + length > LOAD__BODY_MAX) {
        note_end(socket, LOAD_END_BAD_BODY);
    } else if (keep_bytes(&exchange->bytes, data, length) < 0) {
        load__note_error(socket->worker, ENOMEM);
        note_end(socket, LOAD_END_OTHER);
    }
}

static void
on_head(struct load_reply_viewer *base, const struct sxe_http_parser *head, const char *data,
        size_t length)
{
    struct viewer *viewer = (struct viewer *)base;
    struct load__socket *socket = viewer->socket;

    if (!load_expect_fields(viewer->expect, head, data))
        note_end(socket, LOAD_END_BAD_FIELD);
    keep_reply(socket, data, length - 2);
    if (socket->worker->exchanges != NULL)
        socket->worker->exchanges[load__id(socket)].head_length =
            socket->worker->exchanges[load__id(socket)].bytes.used;
}

static void
on_reply_body(struct load_reply_viewer *base, const char *data, size_t length)
{
    struct viewer *viewer = (struct viewer *)base;
    struct load__socket *socket = viewer->socket;

    if (!load_expect_body_piece(viewer->expect, &socket->body, data, length))
        note_end(socket, LOAD_END_BAD_BODY);
    if (load__flight(socket, 0)->is_body_kept)
        keep_reply(socket, data, length);
}

/* Find the end of the reply. Without expectations and without a source that wants to see it, its
 * bytes are only counted. */
static ssize_t
scan_reply(struct load__socket *socket, const struct load__flight *flight)
{
    const char *data = SXE_BUF(socket->sxe);
    size_t length = (size_t)SXE_BUF_USED(socket->sxe);
    struct viewer viewer;

    socket->reply.is_to_head = flight->is_head;
    if (SXE_LIKELY(!flight->is_seen))
        return load_reply_scan(&socket->reply, data, length, &socket->worker->memo, NULL);
    viewer = (struct viewer){{on_head, on_reply_body}, socket, flight->expect};
    if (flight->expect->fields == 0)
        return load_reply_scan(&socket->reply, data, length, &socket->worker->memo, &viewer.base);
    return load_reply_view(&socket->reply, data, length, &viewer.base);
}

/* After "Connection: close" (RFC 9112, 9.6) the server has ignored the queries that are still in
 * flight: each will be replaced by another on the next connection. */
static void
put_query_back(struct load__socket *socket)
{
    struct load__worker *worker = socket->worker;
    uint16_t number = socket->in_flight;

    for (unsigned i = 0; worker->result->stages > 0 && i < number; i++)
        load__stage_sent(worker, load__flight(socket, i), -1);
    socket->in_flight = 0;
    socket->again = (uint16_t)(socket->again + number);
    worker->again_number += number;
    worker->result->in_flight -= number;
    worker->result->sent -= number;
    worker->result->waiting += number;
    worker->result->resent += number;
}

/* Note the first invalid reply. The unread bytes begin with it; or, if is_more, they follow the
 * reply to the last query in flight, so no query asked for them. */
static void
note_bad_reply(struct load__socket *socket, bool is_more)
{
    struct load_bad_reply *first = &socket->worker->result->first_bad_reply;
    const struct load_reply *reply = &socket->reply;
    unsigned why = reply->refusal == SXE_HTTP_NOT_REFUSED ? LOAD_BAD_UPGRADE : reply->refusal;

    if (first->why == 0)
        load_bad_reply_note(first, is_more ? LOAD_BAD_MORE : why, SXE_BUF(socket->sxe),
                            (size_t)SXE_BUF_USED(socket->sxe), is_more ? 0 : reply->left);
}

/* Take the received bytes of the next reply. True: it is complete, and another may follow. */
static bool
take_reply_bytes(struct load__socket *socket, uint64_t now_ns)
{
    const struct load__flight *flight = load__flight(socket, 0);
    SXE *sxe = socket->sxe;
    ssize_t taken = scan_reply(socket, flight);
    bool keep_alive;

    if (taken > 0)
        sxe_consume(sxe, (unsigned)taken);
    /* Bytes after the reply to the last query are an error, too. */
    if (taken < 0 || (socket->reply.part == LOAD_REPLY_WHOLE && socket->in_flight == 1 &&
                      SXE_BUF_USED(sxe) > 0)) {
        note_bad_reply(socket, taken >= 0);
        load__fail(socket, LOAD_END_BAD_REPLY, 0);
        return false;
    }
    if (socket->first_byte_ns == 0)
        socket->first_byte_ns = now_ns;
    if (socket->reply.part != LOAD_REPLY_WHOLE)
        return false;
    keep_alive = socket->reply.keep_alive && !flight->is_last;
    load__end_with_reply(socket, now_ns);
    if (!keep_alive) {
        put_query_back(socket);
        load__close(socket);
    }
    return keep_alive && socket->in_flight > 0 && SXE_BUF_USED(sxe) > 0;
}

/* Send the next queries after all replies of this turn have been read: system calls of one kind in
 * a row are faster, and no reply waits for a write before its time is taken. */
static void
on_due(SXE *sxe)
{
    struct load__socket *socket = SXE_USER_DATA(sxe);

    load__send_ready(socket, sxe_time_ns());
    load__end_when_done(socket->worker);
}

void
load__on_read(SXE *sxe, int length)
{
    struct load__socket *socket = SXE_USER_DATA(sxe);
    struct load__worker *worker = socket->worker;
    uint64_t now_ns = sxe_time_ns();

    worker->result->bytes_received += (uint64_t)length;
    worker->progress_ns = now_ns;
    if (socket->in_flight == 0) {
        /* The server ends an idle connection, maybe with a "408 Request Timeout". */
        SXE_BUF_CLEAR(sxe);
        load__close(socket);
        return;
    }
    while (take_reply_bytes(socket, now_ns))
        continue;
    if (worker->is_paced) {
        load__settle(socket);
        load__arrive(worker, now_ns);
    } else if (may_send(socket)) {
        (void)sxe_defer(sxe, on_due);
    } else {
        load__settle(socket);
    }
    load__end_when_done(worker);
}
