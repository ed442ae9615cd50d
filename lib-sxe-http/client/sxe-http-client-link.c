/* SPDX-License-Identifier: MIT
 *
 * What: the links of a client, and which job has which.
 */
#include "sxe-http-client-private.h"

#include <errno.h>

#include "sxe-always-internal.h"

/* Bytes of a borrowed body given to the socket at a time. stall_timeout begins again with each
 * piece. */
#define PIECE (256u * 1024u)

/* ---- States ---- */

const char *
sxe__http_link_state_to_string(unsigned state)
{
    static const char *const names[SXE__HTTP_LINK_STATES] = {
        "FREE", "CONNECTING", "SENDING", "HEAD", "BODY", "PAUSED", "IDLE", "ENDING",
    };

    return state < SXE__HTTP_LINK_STATES ? names[state] : "?";
}

void
sxe__http_link_move(struct sxe__http_link *link, enum sxe__http_link_state to)
{
    sxe_pool_move(link->client->links, sxe__http_link_id(link), sxe__http_link_state(link), to);
}

void
sxe__http_link_end(struct sxe__http_link *link, enum sxe__http_end how)
{
    sxe__http_link_move(link, SXE__HTTP_LINK_ENDING);
    if (how == SXE__HTTP_END_AT_ONCE)
        sxe_abort(link->socket);
    else
        sxe_close(link->socket);
}

/* on_read of an upgraded socket until the program sets its own: nobody reads it, so abort. */
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

struct sxe_http_exchange
sxe__http_exchange(struct sxe_http_client *client, unsigned job)
{
    const struct sxe__http_job *of = &client->jobs[job];
    struct sxe_http_exchange exchange = {.client = client,
                                         .handle = sxe_pool_get_handle(client->jobs, job),
                                         .user = of->wanted.user};

    if (of->link != SXE_NONE) {
        const struct sxe__http_link *link = &client->links[of->link];
        const char *room = sxe__http_link_room(link);

        if (link->has_head) {
            exchange.response = &link->parser;
            exchange.head = room;
        }
        exchange.body = (struct sxe_span){room + client->config.limits.head_max, link->body_used};
        exchange.refusal = (enum sxe_http_refusal)link->refusal;
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

static void
end_job(struct sxe_http_client *client, unsigned job, int result, const SXE *closed)
{
    struct sxe_http_exchange exchange = sxe__http_exchange(client, job);
    void (*on_done)(const struct sxe_http_exchange *, int) = client->jobs[job].wanted.on_done;

    exchange.closed = closed;
    sxe__http_job_release(client, job);
    on_done(&exchange, result);
}

void
sxe__http_job_end(struct sxe_http_client *client, unsigned job, int result)
{
    end_job(client, job, result, NULL);
}

void
sxe__http_job_fail(struct sxe_http_client *client, unsigned job, int error)
{
    uint32_t link = client->jobs[job].link;

    if (link != SXE_NONE)
        sxe__http_link_end(&client->links[link], SXE__HTTP_END_AT_ONCE);
    sxe__http_job_end(client, job, error);
}

static void
attach_job(struct sxe__http_link *link, unsigned job)
{
    struct sxe__http_job *to = &link->client->jobs[job];

    to->link = sxe__http_link_id(link);
    link->job = job;
    link->head_used = 0;
    link->is_answered = link->has_head = false;
    link->refusal = SXE_HTTP_NOT_REFUSED;
    link->unsent = to->wanted.copy_body ? 0 : (size_t)to->wanted.request.body_length;
    link->body_used = 0;
}

static void
detach(struct sxe__http_link *link)
{
    sxe__http_link_job(link)->link = SXE_NONE;
    link->job = SXE_NONE;
}

/* ---- Sending ---- */

static size_t
next_piece(const struct sxe__http_link *link)
{
    return link->unsent < PIECE ? link->unsent : PIECE;
}

static void on_piece_sent(SXE *s, int result);

static int
send_piece(struct sxe__http_link *link)
{
    const struct sxe_http_call *call = &sxe__http_link_job(link)->wanted;
    const char *end = (const char *)call->body + call->request.body_length;

    return sxe_send(link->socket, end - link->unsent, next_piece(link), on_piece_sent);
}

static void
on_piece_sent(SXE *s, int result)
{
    struct sxe__http_link *link = s->user_data;

    /* The socket is closed, and on_close deals with that. */
    if (result < 0)
        return;
    link->unsent -= next_piece(link);
    if (link->unsent > 0)
        result = send_piece(link);
    /* send_piece should not fail: the sent piece has left its place in the output queue. */
    if (SXE_NEVER(result < 0))
        sxe__http_job_fail(link->client, link->job, result);
    else if (sxe__http_link_state(link) == SXE__HTTP_LINK_SENDING)
        sxe__http_link_move(link, link->unsent > 0 ? SXE__HTTP_LINK_SENDING : SXE__HTTP_LINK_HEAD);
}

/* The handshake is done, and what follows has timeouts of its own. */
static void
on_head_sent(SXE *s, int result)
{
    struct sxe__http_link *link = s->user_data;

    if (result == 0 && link != NULL && sxe__http_link_state(link) == SXE__HTTP_LINK_CONNECTING)
        sxe__http_link_move(link, link->unsent > 0 ? SXE__HTTP_LINK_SENDING : SXE__HTTP_LINK_HEAD);
}

/* Send the request of the link's job. The link is connected or idle. During a handshake of TLS it
 * stays CONNECTING, so that connect_timeout_ms bounds both. */
static int
send_request(struct sxe__http_link *link)
{
    const struct sxe_http_client *client = link->client;
    const char *request = client->requests + link->job * (size_t)client->config.request_max;
    const bool shakes = link->socket->io_shakes;
    int result = sxe_write(link->socket, request, sxe__http_link_job(link)->length);

    if (result == 0 && shakes)
        result = sxe_send(link->socket, request, 0, on_head_sent);
    if (result == 0 && link->unsent > 0)
        result = send_piece(link);
    if (result == 0 && !shakes)
        sxe__http_link_move(link, link->unsent > 0 ? SXE__HTTP_LINK_SENDING : SXE__HTTP_LINK_HEAD);
    return result;
}

/* ---- A socket's life ---- */

static void
on_connected(SXE *s)
{
    struct sxe__http_link *link = s->user_data;
    int result = send_request(link);

    if (result < 0)
        sxe__http_job_fail(link->client, link->job, result);
}

static void on_close(SXE *s);

/* FREE -> CONNECTING. 0; -errno: the link is still FREE. */
static int
open_link(struct sxe__http_link *link)
{
    const struct sxe_http_client_config *config = &link->client->config;
    SXE *s =
        config->path != NULL
            ? sxe_new_unix(NULL, config->path, on_connected, sxe__http_client_on_read, on_close)
            : sxe_new_tcp(NULL, NULL, 0, on_connected, sxe__http_client_on_read, on_close);
    int result = 0;

    if (s == NULL)
        return -errno;
    s->user_data = link;
    if (config->tls != NULL)
        result = config->use_tls(config->tls, s, config->tls_name);
    if (result == 0)
        result =
            config->path != NULL ? sxe_connect_unix(s) : sxe_connect(s, config->ip, config->port);
    if (result < 0) {
        sxe_close(s);
        return result;
    }
    link->socket = s;
    link->is_reused = false;
    sxe__http_link_move(link, SXE__HTTP_LINK_CONNECTING);
    return 0;
}

/* Whether the job may be sent once more. The server may close a connection that it believes idle
 * just when a request is on its way (RFC 9112, 9.3.1). */
static bool
may_retry(const struct sxe__http_link *link, int error)
{
    const struct sxe__http_job *job = sxe__http_link_job(link);
    unsigned idempotent = 1u << SXE_HTTP_GET | 1u << SXE_HTTP_HEAD | 1u << SXE_HTTP_OPTIONS |
                          1u << SXE_HTTP_TRACE | 1u << SXE_HTTP_PUT | 1u << SXE_HTTP_DELETE;

    return link->is_reused && !link->is_answered && (idempotent >> job->asked.method & 1) != 0 &&
           (error == 0 || error == ECONNRESET || error == EPIPE);
}

/* The result of a job whose connection closed; error: the socket's errno, or 0. */
static int
result_of_close(const struct sxe__http_link *link, int error)
{
    if (error != 0)
        return -error;
    return link->has_head && link->parser.body == SXE_HTTP_BODY_UNTIL_CLOSE ? 0 : -ECONNRESET;
}

static void
on_close(SXE *s)
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
            attach_job(link, job);
            result = open_link(link);
        }
        if (sxe__http_link_state(link) == SXE__HTTP_LINK_FREE)
            end_job(client, job, result, s);
    }
    sxe__http_client_dispatch(client);
}

void
sxe__http_link_on_timeout(void *array, unsigned id, void *user)
{
    struct sxe__http_link *link = (struct sxe__http_link *)array + id;

    SXE_UNUSED_PARAMETER(user);
    if (sxe__http_link_state(link) == SXE__HTTP_LINK_IDLE)
        sxe__http_link_end(link, SXE__HTTP_END_AFTER_OUTPUT);
    else
        sxe__http_job_fail(link->client, link->job, -ETIMEDOUT);
}

/* ---- Which job has which link ---- */

int
sxe__http_job_start(struct sxe_http_client *client, unsigned job)
{
    struct sxe__http_link *link;
    unsigned id;
    int result;

    while ((id = sxe_pool_get_youngest(client->links, SXE__HTTP_LINK_IDLE)) != SXE_POOL_NO_INDEX) {
        link = &client->links[id];
        link->is_reused = true;
        attach_job(link, job);
        if (send_request(link) == 0)
            return 0;
        detach(link);
        sxe__http_link_end(link, SXE__HTTP_END_AT_ONCE);
    }
    id = sxe_pool_get_oldest(client->links, SXE__HTTP_LINK_FREE);
    if (id == SXE_POOL_NO_INDEX)
        return 1;
    link = &client->links[id];
    attach_job(link, job);
    result = open_link(link);
    if (result < 0)
        detach(link);
    return result < 0 && !sxe__http_client_is_at_rest(client) ? 1 : result;
}

void
sxe__http_client_dispatch(struct sxe_http_client *client)
{
    int error = 0;
    unsigned job;

    while ((job = sxe_pool_get_oldest(client->queue, SXE__HTTP_QUEUE_WAITING)) !=
           SXE_POOL_NO_INDEX) {
        /* Once a link could not be opened, do not try again for each waiting job. */
        int result = error < 0 && sxe__http_client_is_at_rest(client)
                         ? error
                         : sxe__http_job_start(client, job);

        if (result > 0)
            return;
        if (result < 0) {
            error = result;
            sxe__http_job_end(client, job, error);
        } else {
            sxe_pool_move(client->queue, job, SXE__HTTP_QUEUE_WAITING, SXE__HTTP_QUEUE_OUT);
        }
    }
}
