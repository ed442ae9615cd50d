/* SPDX-License-Identifier: MIT
 *
 * What: the links of a client, and which link serves which job.
 */
#include "sxe-http-client-private.h"

#include <errno.h>

#include "sxe-io.h"

/* how many bytes of a request the peer's kernel usually acknowledges at once */
#define TAKEN_AT_ONCE (64u * 1024u)

/* ---- States ---- */

const char *
sxe__http_link_state_to_string(unsigned state)
{
    static const char *const names[SXE__HTTP_LINK_STATES] = {
        "FREE",   "CONNECTING", "SENDING", "ASKING", "HEAD",    "BODY",
        "PAUSED", "LATE",       "IDLE",    "ENDING", "DROPPED",
    };

    return state < SXE__HTTP_LINK_STATES ? names[state] : "?";
}

/* The stage of a call (enum sxe_http_stage) when its link enters the state. A state that is not
 * listed leaves the stage as it was. */
static const uint8_t stages[SXE__HTTP_LINK_STATES] = {
    [SXE__HTTP_LINK_CONNECTING] = SXE_HTTP_STAGE_CONNECTING,
    [SXE__HTTP_LINK_SENDING] = SXE_HTTP_STAGE_SENDING,
    [SXE__HTTP_LINK_HEAD] = SXE_HTTP_STAGE_HEAD,
    [SXE__HTTP_LINK_BODY] = SXE_HTTP_STAGE_BODY,
    [SXE__HTTP_LINK_PAUSED] = SXE_HTTP_STAGE_BODY,
};

/* Note how much of the request the peer's kernel has not acknowledged, so that a timeout can check
 * whether that number fell. If our kernel has the last byte, up to TAKEN_AT_ONCE bytes count as
 * none: the peer's kernel usually takes so few at once, so they are no reason to wait longer for a
 * response. */
static void
note_unread(struct sxe__http_link *link, enum sxe__http_link_state from,
            enum sxe__http_link_state to)
{
    if (to != SXE__HTTP_LINK_SENDING &&
        (to != SXE__HTTP_LINK_HEAD || from != SXE__HTTP_LINK_SENDING))
        return;
    link->unread = sxe_io_unacknowledged(link->socket);
    if (to == SXE__HTTP_LINK_HEAD && link->unread <= TAKEN_AT_ONCE)
        link->unread = 0;
}

void
sxe__http_link_move(struct sxe__http_link *link, enum sxe__http_link_state to)
{
    const enum sxe__http_link_state from = sxe__http_link_state(link);

    if (stages[to] != SXE_HTTP_STAGE_WAITING)
        link->stage = stages[to];
    note_unread(link, from, to);
    sxe_pool_move(link->client->links, sxe__http_link_id(link), from, to);
}

void
sxe__http_link_end(struct sxe__http_link *link, enum sxe__http_end how)
{
    if (link->is_dialling) {
        (void)sxe_dial_cancel(&link->client->dials[sxe__http_link_id(link)]);
        link->is_dialling = false;
        sxe__http_link_move(link, SXE__HTTP_LINK_DROPPED);
        return;
    }
    sxe__http_link_move(link, SXE__HTTP_LINK_ENDING);
    if (how == SXE__HTTP_END_AT_ONCE)
        sxe_abort(link->socket);
    else
        sxe_close(link->socket);
}

/* The on_read of an upgraded socket until the program sets its own. If bytes come before the
 * program has set one, nothing reads them: abort. */
static void
refuse_bytes(SXE *s, int length)
{
    SXE_UNUSED_PARAMETER(length);
    sxe_abort(s);
}

void
sxe__http_link_forget(struct sxe__http_link *link)
{
    link->socket->user_data = NULL;
    link->socket->on_read = refuse_bytes;
    link->socket->on_close = NULL;
    link->socket = NULL;
}

/* ---- Jobs ---- */

unsigned
sxe__http_job_find(const struct sxe_http_client *client, uint64_t handle)
{
    const unsigned id = (unsigned)handle;

    if (id >= client->config.calls_max || client->jobs[id].number != handle >> 32 ||
        sxe_pool_get_state(client->jobs, id) != SXE__HTTP_JOB_LIVE)
        return SXE_POOL_NO_INDEX;
    return id;
}

struct sxe_http_exchange
sxe__http_exchange(struct sxe_http_client *client, unsigned job)
{
    const struct sxe__http_job *of = &client->jobs[job];
    struct sxe_http_exchange exchange = {
        .client = client, .handle = sxe__http_job_handle(client, job), .user = of->wanted.user};

    if (of->link != SXE_NONE) {
        const struct sxe__http_link *link = &client->links[of->link];
        const char *room = sxe__http_link_room(link);

        if (link->has_head) {
            exchange.response = &link->parser;
            exchange.head = room;
        }
        exchange.body = (struct sxe_span){room + client->config.limits.head_max, link->body_used};
        exchange.refusal = (enum sxe_http_refusal)link->refusal;
        exchange.stage = (enum sxe_http_stage)link->stage;
        exchange.is_answered = link->is_answered;
    }
    return exchange;
}

void
sxe__http_job_release(struct sxe_http_client *client, unsigned job)
{
    uint32_t link = client->jobs[job].link;

    if (link != SXE_NONE)
        client->links[link].job = SXE_NONE;
    else
        sxe_pool_move(client->queue, job, SXE__HTTP_QUEUE_WAITING, SXE__HTTP_QUEUE_OUT);
    sxe_pool_move(client->jobs, job, SXE__HTTP_JOB_LIVE, SXE__HTTP_JOB_FREE);
}

/* End a job. link: the link that failed, for a job that has no link; otherwise NULL, and the job's
 * own link is used. */
static void
end_job(struct sxe_http_client *client, unsigned job, int result, const SXE *closed,
        const struct sxe__http_link *link)
{
    struct sxe_http_exchange exchange = sxe__http_exchange(client, job);
    void (*on_done)(const struct sxe_http_exchange *, int) = client->jobs[job].wanted.on_done;

    if (client->jobs[job].link != SXE_NONE)
        link = &client->links[client->jobs[job].link];
    exchange.closed = closed;
    if (link != NULL && result < 0)
        exchange.failure = sxe__http_client_failure(link, result);
    sxe__http_job_release(client, job);
    on_done(&exchange, result);
}

void
sxe__http_job_end(struct sxe_http_client *client, unsigned job, int result)
{
    end_job(client, job, result, NULL, NULL);
}

void
sxe__http_job_fail(struct sxe_http_client *client, unsigned job, int error)
{
    uint32_t link = client->jobs[job].link;

    if (link != SXE_NONE)
        sxe__http_link_end(&client->links[link], SXE__HTTP_END_AT_ONCE);
    sxe__http_job_end(client, job, error);
}

bool
sxe__http_link_has_whole_output(const struct sxe__http_link *link)
{
    return link->client->records != NULL && link->has_head &&
           (link->parser.body == SXE_HTTP_BODY_NONE ||
            (link->parser.body == SXE_HTTP_BODY_LENGTH && link->left == 0));
}

static void
attach_job(struct sxe__http_link *link, unsigned job)
{
    struct sxe__http_job *to = &link->client->jobs[job];

    to->link = sxe__http_link_id(link);
    link->job = job;
    link->head_used = 0;
    link->is_answered = link->has_head = link->is_asking = link->is_in_parts = false;
    link->is_last_part = false;
    link->part = 0;
    link->unread = 0;
    link->refusal = SXE_HTTP_NOT_REFUSED;
    link->complaint = NULL;
    if (link->client->records != NULL)
        sxe__http_records_begin(
            &link->client->records[sxe__http_link_id(link)], link->socket != NULL,
            link->client->requests + job * (size_t)link->client->config.request_max, to->length);
    link->unsent =
        to->wanted.copy_body && to->wanted.on_room == NULL ? 0 : to->wanted.request.body_length;
    link->body_used = 0;
    link->stage = SXE_HTTP_STAGE_CONNECTING;
}

static void
detach(struct sxe__http_link *link)
{
    sxe__http_link_job(link)->link = SXE_NONE;
    link->job = SXE_NONE;
}

/* ---- Sending ---- */

/* The handshake of TLS is done, so the link leaves CONNECTING. The next states have their own
 * timeouts. */
static void
on_head_sent(SXE *s, int result)
{
    struct sxe__http_link *link = s->user_data;

    if (result == 0 && link != NULL && sxe__http_link_state(link) == SXE__HTTP_LINK_CONNECTING)
        sxe__http_link_move(link, link->unsent > 0 ? SXE__HTTP_LINK_SENDING : SXE__HTTP_LINK_HEAD);
}

/* During the handshake of TLS the link stays CONNECTING, so that connect_timeout_ms bounds the
 * connecting and the handshake together. */
int
sxe__http_link_send(struct sxe__http_link *link)
{
    const struct sxe_http_client *client = link->client;
    const char *request = client->requests + link->job * (size_t)client->config.request_max;
    const bool shakes = link->socket->io_shakes;
    int result = sxe_write(link->socket, request, sxe__http_link_job(link)->length);

    if (result == 0 && shakes)
        result = sxe_send(link->socket, request, 0, on_head_sent);
    sxe_io_read_rest(link->socket, link->unsent > 0);
    if (result == 0 && link->unsent > 0)
        result = sxe__http_client_send_body(link);
    if (result == 0 && !shakes)
        sxe__http_link_move(link, link->unsent > 0 ? SXE__HTTP_LINK_SENDING : SXE__HTTP_LINK_HEAD);
    return result;
}

/* ---- A socket's life ---- */

/* Whether the job may be sent once more. The server may close a connection that it believes idle
 * just when a request is on its way (RFC 9112, 9.3.1). */
static bool
may_retry(const struct sxe__http_link *link, int error)
{
    return link->is_reused && !link->is_answered && !link->is_in_parts &&
           sxe__http_is_idempotent(sxe__http_link_job(link)->asked.method) &&
           (error == 0 || error == ECONNRESET || error == EPIPE);
}

/* The result of a job whose connection closed; error: the socket's errno, or 0. */
static int
result_of_close(const struct sxe__http_link *link, int error)
{
    if (sxe__http_link_has_whole_output(link))
        return 0;
    if (error != 0)
        return -error;
    return link->has_head && link->parser.body == SXE_HTTP_BODY_UNTIL_CLOSE &&
                   link->client->records == NULL
               ? 0
               : -ECONNRESET;
}

void
sxe__http_link_on_close(SXE *s)
{
    struct sxe__http_link *link = s->user_data;
    struct sxe_http_client *client = link->client;
    uint32_t job = link->job;
    int result = 0;

    link->socket = NULL;
    sxe__http_link_move(link, SXE__HTTP_LINK_FREE);
    if (job != SXE_NONE) {
        result = result_of_close(link, sxe_error(s));
        if (may_retry(link, sxe_error(s))) {
            client->retries++;
            attach_job(link, job);
            result = sxe__http_link_open(link);
        }
        if (sxe__http_link_state(link) == SXE__HTTP_LINK_FREE)
            end_job(client, job, result, s, NULL);
    }
    sxe__http_client_dispatch(client);
}

void
sxe__http_link_fail_open(struct sxe__http_link *link, int error)
{
    struct sxe_http_client *client = link->client;

    sxe__http_link_move(link, SXE__HTTP_LINK_FREE);
    end_job(client, link->job, error, NULL, NULL);
    sxe__http_client_dispatch(client);
}

/* Whether the peer's kernel has acknowledged bytes of the request since note_unread or the last
 * call of this function. Our kernel reports room for output only when a good part of its buffer,
 * which may have megabytes, is free. A slow reader acknowledges bytes long before such a report,
 * and must not count as stalled. */
static bool
has_server_read(struct sxe__http_link *link)
{
    const size_t before = link->unread;
    const enum sxe__http_link_state state = sxe__http_link_state(link);

    if (before == 0 || (state != SXE__HTTP_LINK_SENDING && state != SXE__HTTP_LINK_HEAD))
        return false;
    link->unread = sxe_io_unacknowledged(link->socket);
    return link->unread < before;
}

void
sxe__http_link_on_timeout(void *array, unsigned id, void *user)
{
    struct sxe__http_link *link = (struct sxe__http_link *)array + id;

    SXE_UNUSED_PARAMETER(user);
    if (link->job == SXE_NONE && link->socket != NULL) { /* IDLE or LATE */
        sxe__http_link_end(link, SXE__HTTP_END_AFTER_OUTPUT);
    } else if (sxe__http_link_state(link) == SXE__HTTP_LINK_DROPPED) {
        sxe__http_link_move(link, SXE__HTTP_LINK_FREE);
        sxe__http_client_dispatch(link->client);
    } else if (has_server_read(link)) {
        sxe_pool_touch(array, id);
    } else {
        sxe__http_job_fail(link->client, link->job,
                           sxe__http_link_has_whole_output(link) ? 0 : -ETIMEDOUT);
    }
}

/* ---- Which job has which link ---- */

/* Whether the request can be sent a second time, if may_retry allows it. A body in parts cannot:
 * its parts are gone when they are sent. */
static bool
is_repeatable(const struct sxe__http_job *job)
{
    return sxe__http_is_idempotent(job->asked.method) &&
           (job->wanted.on_room == NULL || job->wanted.request.body_length == 0);
}

/* Find an idle link that the job may take, or SXE_POOL_NO_INDEX. */
static unsigned
find_idle_link(const struct sxe_http_client *client, unsigned job)
{
    const unsigned id = sxe_pool_get_youngest(client->links, SXE__HTTP_LINK_IDLE);
    const SXE_TIME most = client->config.unsafe_idle_ms * (SXE_TIME)SXE_NS_PER_MS;

    if (id == SXE_POOL_NO_INDEX || most == 0 || is_repeatable(&client->jobs[job]) ||
        sxe_time_turn_ns() <= sxe_pool_get_time(client->links, id) + most)
        return id;
    return SXE_POOL_NO_INDEX;
}

/* No link is free: close the link that has been idle for the longest time, or LATE, unless a link
 * is closing already. */
static void
close_longest_idle(struct sxe_http_client *client)
{
    unsigned id = sxe_pool_get_oldest(client->links, SXE__HTTP_LINK_IDLE);

    if (id == SXE_POOL_NO_INDEX)
        id = sxe_pool_get_oldest(client->links, SXE__HTTP_LINK_LATE);
    if (id != SXE_POOL_NO_INDEX && sxe_pool_get_count(client->links, SXE__HTTP_LINK_ENDING) == 0)
        sxe__http_link_end(&client->links[id], SXE__HTTP_END_AT_ONCE);
}

int
sxe__http_job_start(struct sxe_http_client *client, unsigned job)
{
    struct sxe__http_link *link;
    unsigned id;
    int result;

    while ((id = find_idle_link(client, job)) != SXE_POOL_NO_INDEX) {
        link = &client->links[id];
        link->is_reused = true;
        attach_job(link, job);
        if (sxe__http_link_send(link) == 0)
            return 0;
        detach(link);
        sxe__http_link_end(link, SXE__HTTP_END_AT_ONCE);
    }
    id = sxe_pool_get_oldest(client->links, SXE__HTTP_LINK_FREE);
    if (id == SXE_POOL_NO_INDEX) {
        close_longest_idle(client);
        return 1;
    }
    link = &client->links[id];
    attach_job(link, job);
    result = sxe__http_link_open(link);
    if (result < 0) {
        client->failed = link;
        detach(link);
    }
    return result < 0 && !sxe__http_client_is_at_rest(client) ? 1 : result;
}

void
sxe__http_client_dispatch(struct sxe_http_client *client)
{
    int error = 0;
    unsigned job;

    while ((job = sxe_pool_get_oldest(client->queue, SXE__HTTP_QUEUE_WAITING)) !=
           SXE_POOL_NO_INDEX) {
        /* If a link could not be opened, do not try again for each waiting job. */
        int result = error < 0 && sxe__http_client_is_at_rest(client)
                         ? error
                         : sxe__http_job_start(client, job);

        if (result > 0)
            return;
        if (result < 0) {
            error = result;
            end_job(client, job, error, NULL, client->failed);
        } else {
            sxe_pool_move(client->queue, job, SXE__HTTP_QUEUE_WAITING, SXE__HTTP_QUEUE_OUT);
        }
    }
}
