/* SPDX-License-Identifier: MIT
 *
 * What: one connection's requests, one after the other. Each phase takes bytes and may lead to the
 * next; on_read repeats the phases until none takes more bytes:
 *
 *     READ_PROXY -> READ_HEAD -> READ_BODY -> REPLY -> DRAIN -.
 *                       ^  '------ no body ----^              |
 *                       '-------------------------------------'     any -> OVER
 *
 * A call from outside, such as a late reply, may end a phase, but only this file starts the next
 * phase, in a call from the loop.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "sxe-http-list.h"
#include "sxe-http-private.h"

/* Finish the request: its reply has ended, and needs the slot's memory no longer. */
static void
finish_request(struct sxe__http_connection *connection)
{
    struct sxe__http_slot *slot = connection->slot;

    if (slot->close) {
        if (connection->bridge != NULL)
            connection->bridge->is_whole = true;
        sxe__http_over(connection);
        sxe__http_forget(connection, 0);
        return;
    }
    sxe__http_report(slot, 0);
    if (SXE_UNLIKELY(slot->body_kept > 0))
        sxe__http_body_forget(slot);
    sxe__http_slot_reset(slot);
    connection->phase = SXE__HTTP_READ_HEAD;
}

/* Pass a part of the body to on_body. */
static void
show_body_part(struct sxe__http_connection *connection, struct sxe_span part)
{
    struct sxe__http_slot *slot = connection->slot;
    const char *outer = sxe__http_name_lines(slot);

    slot->is_body_shown = slot->is_body_whole;
    connection->is_inside = true;
    slot->on_body(&slot->request, &slot->response, part, slot->is_body_whole);
    connection->is_inside = false;
    sxe__http_unname_lines(connection->http, outer);
}

/* Go to the next phase after a handler or callback, which may have done anything to the reply. */
static void
follow_reply(struct sxe__http_connection *connection)
{
    struct sxe__http_slot *slot = connection->slot;

    /* A handler that starts reading after the last byte still gets the final callback. */
    if (slot->on_body != NULL && slot->is_body_whole && !slot->is_body_shown &&
        sxe__http_body_can_be_shown(slot)) {
        show_body_part(connection, (struct sxe_span){slot->request.data, 0});
        if (connection->slot != slot) /* a callback has upgraded the connection */
            return;
    }
    if (slot->progress != SXE__HTTP_ENDED) {
        connection->phase = slot->is_body_whole ? SXE__HTTP_REPLY : SXE__HTTP_READ_BODY;
        return;
    }
    if (slot->is_sending)
        connection->phase = SXE__HTTP_DRAIN;
    else if (slot->close || slot->is_body_whole)
        finish_request(connection);
    else
        connection->phase = SXE__HTTP_READ_BODY; /* drop the rest of the body */
}

void
sxe__http_reject(struct sxe__http_connection *connection, unsigned status)
{
    struct sxe__http_slot *slot = connection->slot;

    slot->close = true;
    connection->is_inside = true;
    if (slot->progress != SXE__HTTP_ENDED)
        slot->outcome = status == 408 || status == 503 ? -ETIMEDOUT : -EPROTO;
    if (slot->progress == SXE__HTTP_UNANSWERED) {
        slot->fields_used = 0;
        slot->offers_upgrade = false;
        sxe_http_reply_status(&slot->response, status);
    }
    if (slot->progress == SXE__HTTP_BEGUN)
        sxe__http_break(slot);
    connection->is_inside = false;
    follow_reply(connection);
}

/* The handler returned SXE_HTTP_DONE without finishing the reply. */
SXE__HTTP_COLD static void
end_unanswered(struct sxe__http_slot *slot)
{
    struct sxe_span target = sxe_http_target(&slot->request);

    SXE_WARN("the handler for %.*s returned SXE_HTTP_DONE without finishing the reply: return "
             "SXE_HTTP_LATER to reply later",
             (int)target.length, target.base);
    sxe__http_reject(slot->connection, 500);
}

static void
call_handler(struct sxe__http_connection *connection)
{
    struct sxe__http_slot *slot = connection->slot;
    const char *outer = sxe__http_name_lines(slot);
    enum sxe_http_verdict verdict;

    connection->is_inside = true;
    SXE_PROBE_HANDLER_BEGIN(SXE_ID(connection->sxe), slot->request.path.base,
                            slot->request.path.length);
    verdict = slot->handler(&slot->request, &slot->response);
    SXE_PROBE_HANDLER_END(SXE_ID(connection->sxe), verdict);
    connection->is_inside = false;
    sxe__http_unname_lines(connection->http, outer);
    if (connection->slot != slot) /* the handler has upgraded the connection */
        return;
    if (verdict == SXE_HTTP_DONE && slot->progress != SXE__HTTP_ENDED)
        end_unanswered(slot);
    else
        follow_reply(connection);
}

void
sxe__http_admit(struct sxe__http_connection *connection, unsigned status)
{
    if (status == 0)
        return;
    sxe__http_slot_forget_head(sxe__http_slot_take(connection));
    sxe__http_reject(connection, status);
    sxe__http_uncount(connection);
    sxe__http_move(connection, SXE__HTTP_REFUSED);
}

/* Whether Expect is acceptable: 100-continue is the only expectation (RFC 9110, 10.1.1). */
SXE__HTTP_COLD static bool
expects_unknown(const struct sxe_http_request *request)
{
    struct sxe_http_list list =
        sxe_http_list_of(&request->head, request->data, SXE_HTTP_FIELD_EXPECT);
    struct sxe_span element;

    while (request->head.minor > 0 && sxe_http_list_next(&list, &element)) {
        if (element.length != SXE_LITERAL_LENGTH("100-continue") ||
            strncasecmp(element.base, "100-continue", element.length) != 0)
            return true;
    }
    return false;
}

/* Check a request whose head is whole. 0, or the status that refuses it. */
static unsigned
check_request_head(const struct sxe__http_slot *slot)
{
    const struct sxe_http_request *request = &slot->request;

    if (sxe_http_known(&request->head, SXE_HTTP_FIELD_EXPECT) != NULL && expects_unknown(request))
        return 417;
    if (!slot->is_body_streamed && slot->body_left > request->http->config.body_max)
        return 413;
    return 0;
}

/* Find the handler for a request whose head is whole. 0, or the status that refuses it. */
static unsigned
look_at_head(struct sxe__http_slot *slot)
{
    unsigned status = sxe__http_route(slot);

    if (status == 0)
        status = check_request_head(slot);
    if (slot->connection->is_forwarding)
        status = sxe__http_forward(slot, status);
    if (status == 0 && slot->request.head.body == SXE_HTTP_BODY_NONE)
        slot->head_length = slot->connection->is_forwarding ? 0 : slot->used;
    else if (status == 0 && slot->is_body_whole) /* send 100 (Continue) if the client waits */
        (void)!sxe__http_body_await(slot);
    return status;
}

/* Begin a request whose head is complete. status: the status that refuses the request; 0: none. */
static void
begin_request(struct sxe__http_connection *connection, unsigned status)
{
    struct sxe__http_slot *slot = connection->slot;

    connection->requests++;
    slot->close = !slot->request.head.keep_alive ||
                  connection->requests >= connection->http->config.requests_max;
    slot->request.user = slot->user;
    SXE_PROBE_PARSED(SXE_ID(connection->sxe), slot->request.path.base, slot->request.path.length,
                     status);
    if (status != 0)
        sxe__http_reject(connection, status);
    else if (slot->is_body_whole || slot->is_body_streamed)
        call_handler(connection);
    else
        connection->phase = SXE__HTTP_READ_BODY;
}

/* Copy the head into the slot, as far as it fits, because handlers and logs read it there. */
static void
keep_head(struct sxe__http_slot *slot, const char *data, size_t length)
{
    char *head = (char *)slot + slot->request.http->head_at;
    size_t most = slot->request.http->config.head.head_max;

    if (slot->head_length > 0) /* the results of parsing describe an earlier head */
        sxe__http_slot_forget_head(slot);
    slot->used = (uint32_t)(length < most ? length : most);
    memcpy(head, data, slot->used);
    /* If parsed bytes are missing in the copy, because they are still in the kernel, forget the
     * results of parsing, which refer to them. */
    if (slot->used < slot->request.head.at)
        sxe_http_parser_next(&slot->request.head);
    slot->request.data = head;
}

/* Polling clients repeat the same head: skip parsing and routing when it matches. */
static bool
is_repeated_head(const struct sxe__http_slot *slot, const char *data, size_t length)
{
    const char *head = (const char *)slot + slot->request.http->head_at;

    return slot->head_length > 0 && slot->head_length <= length &&
           memcmp(head, data, slot->head_length) == 0;
}

/* Parse the head at the front of data, which does not repeat the last head. Returns the length of
 * the head; 0: it is not whole. */
static size_t
read_new_head(struct sxe__http_connection *connection, const char *data, size_t length)
{
    struct sxe__http_slot *slot = connection->slot;
    int n;

    if (slot->head_length > 0)
        sxe__http_slot_forget_head(slot);
    n = sxe_http_parse(&slot->request.head, data, length);
    if (n == 0)
        return 0;
    if (n < 0) {
        keep_head(slot, data, length);
        sxe__http_reject(connection, sxe_http_refusal_status(slot->request.head.refusal));
        return length;
    }
    keep_head(slot, data, (size_t)n);
    sxe__http_body_begin(slot, data + n, length - (size_t)n);
    begin_request(connection, look_at_head(slot));
    return (size_t)n;
}

/* Read any head. If it repeats the last head, and the last request had no body, use the results of
 * parsing the last head. */
static size_t
read_request_head(struct sxe__http_connection *connection, const char *data, size_t length)
{
    struct sxe__http_slot *slot = connection->slot;
    uint32_t n;

    if (slot == NULL)
        slot = sxe__http_slot_take(connection);
    if (!is_repeated_head(slot, data, length))
        return read_new_head(connection, data, length);
    n = slot->head_length;
    slot->used = n;
    slot->request.data = (char *)slot + slot->request.http->head_at;
    slot->is_body_whole = true;
    begin_request(connection, 0);
    return n;
}

/* The kernel has taken the output of earlier requests: go on with the next ones. */
static void
on_output_drained(SXE *s, int result)
{
    struct sxe__http_connection *connection = SXE_USER_DATA(s);

    if (result < 0)
        return;
    connection->is_waiting = false;
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
}

/* A client that does not read its replies has to wait with further requests. */
static size_t
wait_for_reader(struct sxe__http_connection *connection)
{
    connection->is_waiting = true;
    /* If there is no memory for the callback, continue after the loop's next try to send. */
    if (sxe_send(connection->sxe, "", 0, on_output_drained) < 0)
        sxe__http_changed(connection);
    return 0;
}

static size_t
read_proxy(struct sxe__http_connection *connection, const char *data, size_t length)
{
    unsigned status;
    size_t n = sxe__http_read_proxy(connection, data, length, &status);

    sxe__http_admit(connection, status);
    return n;
}

/* Read a part of the body, and take the next step. */
static size_t
read_part_of_body(struct sxe__http_connection *connection, const char *data, size_t length)
{
    struct sxe__http_slot *slot = connection->slot;
    struct sxe__http_body_step step = {.next = SXE__HTTP_BODY_GOES_ON};
    size_t n = sxe__http_body_read(slot, data, length, &step);

    switch (step.next) {
    case SXE__HTTP_BODY_GOES_ON:
        break;
    case SXE__HTTP_BODY_SHOWN:
        show_body_part(connection, step.part);
        if (connection->slot == slot) /* otherwise on_body has upgraded the connection */
            follow_reply(connection);
        break;
    case SXE__HTTP_BODY_KEPT:
        call_handler(connection);
        break;
    case SXE__HTTP_BODY_DROPPED:
        follow_reply(connection);
        break;
    case SXE__HTTP_BODY_REFUSED:
        sxe__http_reject(connection, step.status);
        break;
    }
    return n;
}

static size_t
take_connection_bytes(struct sxe__http_connection *connection, const char *data, size_t length)
{
    switch ((enum sxe__http_phase)connection->phase) {
    case SXE__HTTP_READ_PROXY:
        return read_proxy(connection, data, length);
    case SXE__HTTP_READ_HEAD:
        if (SXE_UNLIKELY(sxe_unsent(connection->sxe) > connection->http->unsent_max))
            return wait_for_reader(connection);
        return read_request_head(connection, data, length);
    case SXE__HTTP_READ_BODY:
        return read_part_of_body(connection, data, length);
    case SXE__HTTP_REPLY:
    case SXE__HTTP_DRAIN:
    case SXE__HTTP_OVER:
        break;
    }
    return 0;
}

/* The state for a connection that can do nothing more with its bytes now. */
static enum sxe__http_state
awaited_state(const struct sxe__http_connection *connection, bool has_unread)
{
    switch ((enum sxe__http_phase)connection->phase) {
    case SXE__HTTP_READ_PROXY:
        return SXE__HTTP_FRESH;
    case SXE__HTTP_READ_HEAD:
        if (connection->is_waiting)
            return SXE__HTTP_SENDING;
        if (has_unread)
            return SXE__HTTP_HEAD;
        return connection->requests == 0 ? SXE__HTTP_FRESH : SXE__HTTP_IDLE;
    case SXE__HTTP_READ_BODY:
        if (!sxe__http_body_is_waiting(connection->slot))
            return SXE__HTTP_BODY;
        break;
    case SXE__HTTP_REPLY:
    case SXE__HTTP_DRAIN:
    case SXE__HTTP_OVER:
        break;
    }
    return connection->slot->progress == SXE__HTTP_UNANSWERED ? SXE__HTTP_HANDLING
                                                              : SXE__HTTP_SENDING;
}

/* Whether enough bytes of the body came in the period that ends now; begin a new period. */
static bool
has_made_progress(struct sxe__http_connection *connection)
{
    const struct sxe_http_config *config = &connection->http->config;
    uint64_t least = (uint64_t)config->body_rate_min * config->body_timeout_ms / 1000;
    bool is_enough;

    if (config->body_rate_min == UINT32_MAX)
        least = 1;
    is_enough = connection->window > 0 && connection->window >= least;
    connection->window = 0;
    connection->slot->body_ns = 0;
    return is_enough;
}

static bool
is_time_over(SXE_TIME spent_ns, uint32_t timeout_ms)
{
    return timeout_ms != UINT32_MAX && spent_ns >= timeout_ms * (SXE_TIME)SXE_NS_PER_MS;
}

/* A request with a body in parts alternates between BODY and HANDLING, but the pool times only a
 * single stay in a state: so add up the stays. 0, or the status of a request whose time is over. */
SXE__HTTP_COLD static unsigned
count_time(struct sxe__http_connection *connection, unsigned id, enum sxe__http_state from)
{
    const struct sxe_http_config *config = &connection->http->config;
    struct sxe__http_slot *slot = connection->slot;
    SXE_TIME since = sxe_pool_get_time(connection->http->connections, id);
    SXE_TIME now = sxe_time_turn_ns();
    /* The pool adds 1 ns to each further stamp of a turn, to make stamps unique, so `since` may be
     * above `now`. */
    SXE_TIME ns = now > since ? now - since : 0;

    if (from == SXE__HTTP_HANDLING) {
        slot->handler_ns += ns;
        return slot->progress == SXE__HTTP_UNANSWERED &&
                       is_time_over(slot->handler_ns, config->handler_timeout_ms)
                   ? 503
                   : 0;
    }
    slot->body_ns += ns;
    return slot->progress != SXE__HTTP_ENDED && !slot->is_body_whole &&
                   is_time_over(slot->body_ns, config->body_timeout_ms) &&
                   !has_made_progress(connection)
               ? 408
               : 0;
}

/* Move to another state; or to the same state, but for a new request. 0, or the status of
 * count_time. */
static unsigned
change_state(struct sxe__http_connection *connection, unsigned id, enum sxe__http_state from,
             enum sxe__http_state to, bool is_new)
{
    unsigned status = 0;

    if (is_new && (to == SXE__HTTP_BODY || to == SXE__HTTP_HANDLING)) {
        connection->window = 0;
        connection->slot->body_ns = connection->slot->handler_ns = 0;
    } else if (!is_new && (from == SXE__HTTP_BODY || from == SXE__HTTP_HANDLING) &&
               (to == SXE__HTTP_BODY || to >= SXE__HTTP_HANDLING)) {
        status = count_time(connection, id, from);
    }
    sxe_pool_move(connection->http->connections, id, from, to);
    return status;
}

/* At the end of an event, move to the state for what the connection waits for. is_new: the event
 * began a request, so timeouts start again. */
static void
rest_connection(struct sxe__http_connection *connection, bool is_new)
{
    struct sxe__http_connection *pool = connection->http->connections;
    unsigned id = (unsigned)(connection - pool);
    unsigned from = sxe_pool_get_state(pool, id);
    enum sxe__http_state to;

    if (connection->phase == SXE__HTTP_OVER)
        return;
    to = awaited_state(connection, SXE_BUF_USED(connection->sxe) > 0);
    if (to == SXE__HTTP_IDLE && connection->slot != NULL)
        sxe__http_slot_give(connection);
    if (to == SXE__HTTP_IDLE && connection->http->is_stopping) {
        sxe__http_over(connection);
        return;
    }
    if (from != to || is_new) {
        unsigned status = change_state(connection, id, from, to, is_new);

        if (SXE_UNLIKELY(status != 0)) {
            SXE_PROBE_TIMEOUT(SXE_ID(connection->sxe), sxe_pool_state_to_string(pool, from));
            sxe__http_reject(connection, status);
            rest_connection(connection, false);
            return;
        }
    }
    if (to == SXE__HTTP_BODY)
        (void)!sxe__http_body_await(connection->slot); /* a failure shows in the next write */
    if (to >= SXE__HTTP_HANDLING)
        sxe_pause(connection->sxe);
}

void
sxe__http_on_read(SXE *s, int length)
{
    struct sxe__http_connection *connection = SXE_USER_DATA(s);
    size_t unread = (size_t)SXE_BUF_USED(s);
    const char *data = SXE_BUF(s);
    uint32_t requests = connection->requests;
    size_t taken = 0;
    size_t n = 0;

    if (length <= 0) {
        sxe__http_client_ended(connection, length);
        return;
    }
    do {
        n = take_connection_bytes(connection, data + taken, unread - taken);
        taken += n;
    } while (n > 0 && taken < unread);
    connection->taken = 0;
    sxe_consume(s, (unsigned)taken);
    rest_connection(connection, connection->requests != requests);
}

void
sxe__http_resume(SXE *s)
{
    struct sxe__http_connection *connection = SXE_USER_DATA(s);

    if (s->on_close != sxe__http_on_close) /* the program has upgraded the connection */
        return;
    connection->is_waiting = false;
    /* Another event may have ended the request since sxe__http_changed was called. */
    if (connection->phase >= SXE__HTTP_READ_BODY)
        follow_reply(connection);
    if (connection->phase == SXE__HTTP_READ_HEAD ||
        (connection->phase == SXE__HTTP_READ_BODY && !sxe__http_body_is_waiting(connection->slot)))
        sxe_resume(s, SXE_RESUME_IMMEDIATE);
    rest_connection(connection, false);
}

void
sxe__http_on_timeout(void *array, unsigned id, void *user)
{
    struct sxe__http_connection *connection = (struct sxe__http_connection *)array + id;
    unsigned state = sxe_pool_get_state(array, id);

    SXE_UNUSED_PARAMETER(user);
    if (state == SXE__HTTP_BODY && has_made_progress(connection)) {
        sxe_pool_touch(array, id);
        return;
    }
    SXE_PROBE_TIMEOUT(SXE_ID(connection->sxe), sxe_pool_state_to_string(array, state));
    if (connection->slot == NULL) { /* no byte of a request came, so there is nothing to answer */
        sxe__http_dismiss(connection);
        return;
    }
    /* A reply that was begun between two events of the connection is still in HANDLING: move it to
     * SENDING. */
    if (state == SXE__HTTP_HANDLING && connection->slot->progress != SXE__HTTP_UNANSWERED) {
        rest_connection(connection, false);
        return;
    }
    if (state == SXE__HTTP_HEAD)
        keep_head(connection->slot, SXE_BUF(connection->sxe),
                  (size_t)SXE_BUF_USED(connection->sxe));
    sxe__http_reject(connection, state == SXE__HTTP_HANDLING ? 503 : 408);
    rest_connection(connection, false);
}
