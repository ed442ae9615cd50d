/* SPDX-License-Identifier: MIT
 *
 * What: reads the bytes of replies. When a reply ends, the socket sends its next queries, or an
 * arrival.
 */
#include <errno.h>

#include "worker-private.h"

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
    } else if (load__keep_bytes(&exchange->bytes, data, length) < 0) {
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

    if (!load_expect_accepts_fields(viewer->expect, head, data))
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

/* Find the end of the reply. If the plan expects nothing of its fields and body, and the supplier
 * does not want to see it, its bytes are only counted. */
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

/* The server sent "Connection: close" (RFC 9112, 9.6), so it has ignored the queries that are still
 * in flight. For each of them another query will be sent on the next connection. */
static void
put_queries_back(struct load__socket *socket)
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

/* Remember the first invalid reply for the report. The unread bytes begin with it. If is_more, the
 * unread bytes are what is wrong: they follow the reply to the last query, so no query asked for
 * them. */
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

/* Take the bytes of the next reply that have come. True: the reply is complete, and the next one
 * may have come, too. */
static bool
take_reply_bytes(struct load__socket *socket, uint64_t now_ns)
{
    const struct load__flight *flight = load__flight(socket, 0);
    SXE *sxe = socket->sxe;
    ssize_t taken = scan_reply(socket, flight);
    bool keep_alive;

    if (taken > 0)
        sxe_consume(sxe, (unsigned)taken);
    /* also an error: bytes after the reply to the last query in flight */
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
        put_queries_back(socket);
        load__close(socket);
    }
    return keep_alive && socket->in_flight > 0 && SXE_BUF_USED(sxe) > 0;
}

/* Send the next queries, after all replies of this turn have been read. Doing so is faster, because
 * system calls of one kind follow each other, and no reply waits for a write before its time is
 * taken. */
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
        /* no reply is due: the server closes an idle connection, perhaps after a "408 Request
         * Timeout" */
        SXE_BUF_CLEAR(sxe);
        load__close(socket);
        return;
    }
    while (take_reply_bytes(socket, now_ns))
        continue;
    if (worker->is_paced) {
        load__settle(socket);
        load__arrive(worker, now_ns);
    } else if (load__may_send(socket)) {
        (void)sxe_defer(sxe, on_due);
    } else {
        load__settle(socket);
    }
    load__end_when_done(worker);
}
