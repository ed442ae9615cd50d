/* SPDX-License-Identifier: MIT
 *
 * What: takes the unread bytes of a link's socket and calls the callbacks of the link's job.
 *
 * A head that arrives whole is parsed in the socket's buffer and then copied into the link's
 * memory, where callbacks see it until on_done. A head in parts is collected, and parsed, in the
 * link's memory; so it may be larger than the socket's buffer. on_body gets a body in the socket's
 * buffer; without on_body the body is copied into the link's memory after the head.
 */
#include "sxe-http-client-private.h"

#include <errno.h>

/* Whether the caller may go on: the job still exists, and its next bytes may be read. */
enum step { STOP, GO_ON };

static enum step
fail_reply(struct sxe__http_link *link, int error)
{
    sxe__http_job_fail(link->client, link->job, error);
    return STOP;
}

static enum step
refuse_reply(struct sxe__http_link *link, uint8_t refusal)
{
    link->refusal = refusal;
    return fail_reply(link, -EPROTO);
}

/* ---- The end of a response ---- */

/* A response has ended. If bytes follow it, they belong to no request, so the link is not used
 * again. */
static bool
may_be_reused(const struct sxe__http_link *link)
{
    return link->parser.keep_alive && sxe__http_link_job(link)->asked.keep_alive &&
           link->unsent == 0 && SXE_BUF_USED(link->socket) == 0;
}

/* Likewise for FastCGI, whose server was asked to keep the connection or not. */
static bool
may_serve_again(const struct sxe__http_link *link)
{
    const struct sxe_http_client *client = link->client;

    return client->keeps && client->records[sxe__http_link_id(link)].reader.padding == 0 &&
           link->unsent == 0 && SXE_BUF_USED(link->socket) == 0;
}

static void
rest_link(struct sxe__http_link *link)
{
    struct sxe_http_client *client = link->client;

    if (link->job != SXE_NONE && sxe__http_link_job(link)->is_paused)
        sxe_resume(link->socket, SXE_RESUME_WHEN_MORE);
    sxe__http_link_move(link, SXE__HTTP_LINK_IDLE);
    if (sxe_pool_get_count(client->links, SXE__HTTP_LINK_IDLE) > client->config.idle_max)
        sxe__http_link_end(&client->links[sxe_pool_get_oldest(client->links, SXE__HTTP_LINK_IDLE)],
                           SXE__HTTP_END_AFTER_OUTPUT);
}

static enum step
complete_reply(struct sxe__http_link *link)
{
    struct sxe_http_client *client = link->client;

    if (client->records != NULL ? may_serve_again(link) : may_be_reused(link))
        rest_link(link);
    else
        sxe__http_link_end(link,
                           link->unsent > 0 ? SXE__HTTP_END_AT_ONCE : SXE__HTTP_END_AFTER_OUTPUT);
    if (link->job != SXE_NONE)
        sxe__http_job_end(client, link->job, 0);
    sxe__http_client_dispatch(client);
    return STOP;
}

/* ---- The body ---- */

static enum step
show_body(struct sxe__http_link *link, struct sxe_span span)
{
    struct sxe_http_client *client = link->client;
    const struct sxe_http_call *call = &sxe__http_link_job(link)->wanted;

    if (call->on_body != NULL) {
        struct sxe_http_exchange exchange = sxe__http_exchange(client, link->job);

        call->on_body(&exchange, span);
        return link->job == SXE_NONE ? STOP : GO_ON;
    }
    if (span.length > client->config.body_max - link->body_used)
        return fail_reply(link, -EMSGSIZE);
    memcpy(sxe__http_link_room(link) + client->config.limits.head_max + link->body_used, span.base,
           span.length);
    link->body_used += (uint32_t)span.length;
    return GO_ON;
}

/* Set *span to the next bytes of the body. Returns how many bytes to consume; 0: more is needed;
 * -1: the body is refused. */
static ssize_t
next_span(struct sxe__http_link *link, struct sxe_span *span, bool *is_whole)
{
    *span = (struct sxe_span){SXE_BUF(link->socket), (size_t)SXE_BUF_USED(link->socket)};
    if (link->parser.body == SXE_HTTP_BODY_CHUNKED) {
        ssize_t n = sxe_http_chunks_read(&link->chunks, span->base, span->length, span);

        *is_whole = link->chunks.done;
        return n;
    }
    if (link->parser.body == SXE_HTTP_BODY_LENGTH) {
        span->length = link->left < span->length ? (size_t)link->left : span->length;
        link->left -= span->length;
        *is_whole = link->left == 0;
    }
    return (ssize_t)span->length;
}

static enum step
read_body(struct sxe__http_link *link)
{
    bool is_whole = false;
    struct sxe_span span;
    ssize_t n = next_span(link, &span, &is_whole);

    if (n < 0)
        return refuse_reply(link, link->chunks.refusal);
    /* The trailer is incomplete, and the socket's buffer has no room for the rest. */
    if (n == 0 && SXE_BUF_ROOM(link->socket) == 0)
        return refuse_reply(link, SXE_HTTP_REFUSED_HEAD_TOO_LARGE);
    if (n == 0 || (span.length > 0 && show_body(link, span) == STOP))
        return STOP;
    sxe_consume(link->socket, (unsigned)n);
    if (is_whole)
        return complete_reply(link);
    return sxe__http_link_job(link)->is_paused ? STOP : GO_ON;
}

/* ---- The head ---- */

/* RFC 9110, 7.8: a server switches only to a protocol that the request names, after all of the
 * request has come. */
static bool
may_switch(const struct sxe__http_link *link)
{
    const struct sxe_http_client *client = link->client;
    const struct sxe__http_job *job = sxe__http_link_job(link);

    if (!job->asked.upgrade || link->unsent > 0)
        return false;
    return link->parser.status != 101 ||
           sxe__http_request_asks_for(
               client->requests + (size_t)link->job * client->config.request_max, job->length,
               sxe_http_list_of(&link->parser, sxe__http_link_room(link), SXE_HTTP_FIELD_UPGRADE));
}

static enum step
upgrade(struct sxe__http_link *link)
{
    struct sxe_http_client *client = link->client;
    struct sxe_http_call call = sxe__http_link_job(link)->wanted;
    struct sxe_http_exchange exchange = sxe__http_exchange(client, link->job);
    SXE *s = link->socket;

    if (!may_switch(link))
        return fail_reply(link, -EPROTO);
    sxe__http_job_release(client, link->job);
    sxe__http_link_forget(link);
    sxe__http_link_move(link, SXE__HTTP_LINK_FREE);
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
    call.on_upgrade(&exchange, s);
    call.on_done(&exchange, 0);
    sxe__http_client_dispatch(client);
    return STOP;
}

static enum step
begin_body(struct sxe__http_link *link)
{
    const struct sxe_http_client_config *config = &link->client->config;
    const struct sxe__http_job *job = sxe__http_link_job(link);
    uint8_t body = link->parser.body;

    link->left = link->parser.length;
    if (body == SXE_HTTP_BODY_NONE || (body == SXE_HTTP_BODY_LENGTH && link->left == 0))
        return complete_reply(link);
    if (body == SXE_HTTP_BODY_LENGTH && job->wanted.on_body == NULL &&
        link->left > config->body_max)
        return fail_reply(link, -EMSGSIZE);
    if (body == SXE_HTTP_BODY_CHUNKED)
        sxe_http_chunks_init(&link->chunks, NULL, 0, &config->limits);
    sxe__http_link_move(link, job->is_paused ? SXE__HTTP_LINK_PAUSED : SXE__HTTP_LINK_BODY);
    if (!job->is_paused)
        return GO_ON;
    sxe_pause(link->socket);
    return STOP;
}

/* Parse the unread bytes as a head, or as the rest of the head in the link's memory. Returns the
 * length of the head, 0 (more is needed) or -1 (refused). */
static int
parse_reply_head(struct sxe__http_link *link)
{
    SXE *s = link->socket;
    char *room = sxe__http_link_room(link);
    size_t before = link->head_used;
    size_t length = (size_t)SXE_BUF_USED(s);
    int n;

    if (before == 0) {
        sxe_http_parser_next(&link->parser);
        link->parser.method =
            link->is_tunnelling ? SXE_HTTP_CONNECT : sxe__http_link_job(link)->asked.method;
        n = sxe_http_parse(&link->parser, SXE_BUF(s), length);
    } else {
        size_t left = link->parser.limits.head_max - before;

        length = length < left ? length : left;
        memcpy(room + before, SXE_BUF(s), length);
        n = sxe_http_parse(&link->parser, room, before + length);
    }
    if (n < 0)
        return n;
    if (n > 0)
        length = (size_t)n - before;
    if (before == 0)
        memcpy(room, SXE_BUF(s), length);
    link->head_used += (uint32_t)length;
    sxe_consume(s, (unsigned)length);
    return n;
}

static enum step
read_head(struct sxe__http_link *link)
{
    const struct sxe_http_call *call = &sxe__http_link_job(link)->wanted;
    int n = parse_reply_head(link);

    if (n < 0)
        return refuse_reply(link, link->parser.refusal);
    if (n == 0)
        return STOP;
    if (link->parser.status < 200 && !link->parser.upgrade) {
        link->head_used = 0;
        return GO_ON;
    }
    link->has_head = true;
    if (link->is_at_proxy && link->parser.status == 407)
        return fail_reply(link, -EACCES);
    if (call->on_response != NULL) {
        struct sxe_http_exchange exchange = sxe__http_exchange(link->client, link->job);

        call->on_response(&exchange);
        if (link->job == SXE_NONE)
            return STOP;
    }
    return link->parser.upgrade ? upgrade(link) : begin_body(link);
}

/* The proxy replies to CONNECT. A status other than 2xx refuses the tunnel (RFC 9110, 9.3.6). Bytes
 * after the reply would be taken for bytes of the server, but they came before the handshake with
 * the server: so fail. */
static enum step
read_tunnel_head(struct sxe__http_link *link)
{
    const int n = parse_reply_head(link);
    const uint16_t status = link->parser.status;
    int result;

    if (n < 0)
        return refuse_reply(link, link->parser.refusal);
    if (n == 0)
        return STOP;
    if (status < 200 && status != 101) {
        link->head_used = 0;
        return GO_ON;
    }
    if (status / 100 != 2) {
        link->has_head = true;
        return fail_reply(link, status == 407 ? -EACCES : -EHOSTUNREACH);
    }
    if (SXE_BUF_USED(link->socket) > 0)
        return fail_reply(link, -EPROTO);
    result = sxe__http_link_enter_tunnel(link);
    return result < 0 ? fail_reply(link, result) : STOP;
}

/* ---- FastCGI ---- */

static enum step
complain(struct sxe__http_link *link, const char *complaint, int error)
{
    link->complaint = complaint;
    if (link->job != SXE_NONE)
        return fail_reply(link, error);
    sxe__http_link_end(link, SXE__HTTP_END_AT_ONCE); /* LATE */
    return STOP;
}

/* The script's head is whole: show it as the head of a response. */
static enum step
show_script_head(struct sxe__http_link *link)
{
    struct sxe_http_client *client = link->client;
    const struct sxe__http_job *job = sxe__http_link_job(link);

    link->head_used = client->records[sxe__http_link_id(link)].used;
    sxe_http_parser_next(&link->parser);
    link->parser.method = job->asked.method;
    if (sxe_http_parse(&link->parser, sxe__http_link_room(link), link->head_used) < 0)
        return refuse_reply(link, link->parser.refusal);
    link->has_head = true;
    if (job->wanted.on_response != NULL) {
        struct sxe_http_exchange exchange = sxe__http_exchange(client, link->job);

        job->wanted.on_response(&exchange);
        if (link->job == SXE_NONE)
            return STOP;
    }
    link->left = link->parser.length;
    sxe__http_link_move(link, SXE__HTTP_LINK_BODY);
    return GO_ON;
}

/* Take a part of the script's output. Bytes after the length that its head gives are dropped, and
 * so is a body where there is none. */
static enum step
read_output(struct sxe__http_link *link, struct sxe_span part)
{
    struct sxe_http_client *client = link->client;
    const char *complaint;
    bool is_whole;

    if (!link->has_head) {
        const ssize_t n = sxe__http_records_head(
            &client->records[sxe__http_link_id(link)], part, sxe__http_link_room(link),
            client->config.limits.head_max, &is_whole, &complaint);

        if (n < 0)
            return complain(link, complaint, -EPROTO);
        if (!is_whole)
            return GO_ON;
        if (show_script_head(link) == STOP)
            return STOP;
        part.base += n;
        part.length -= (size_t)n;
    }
    if (link->parser.body == SXE_HTTP_BODY_NONE)
        return GO_ON;
    if (link->parser.body == SXE_HTTP_BODY_LENGTH) {
        part.length = link->left < part.length ? (size_t)link->left : part.length;
        link->left -= part.length;
    }
    return part.length == 0 ? GO_ON : show_body(link, part);
}

static enum step
end_script_reply(struct sxe__http_link *link)
{
    if (!link->has_head)
        return complain(link, "the script ended before its head was whole", -EPROTO);
    if (link->parser.body == SXE_HTTP_BODY_LENGTH && link->left > 0)
        return complain(link, "the script ended before its body was whole", -ECONNRESET);
    return complete_reply(link);
}

static enum step
read_record(struct sxe__http_link *link)
{
    struct sxe_http_client *client = link->client;
    enum sxe__http_record_kind kind;
    const char *complaint;
    struct sxe_span part;
    const ssize_t n =
        sxe__http_records_read(&client->records[sxe__http_link_id(link)], SXE_BUF(link->socket),
                               (size_t)SXE_BUF_USED(link->socket), &part, &kind, &complaint);

    if (n < 0)
        return complain(link, complaint, -EPROTO);
    if (n == 0)
        return STOP;
    if (kind == SXE__HTTP_RECORD_OUTPUT && read_output(link, part) == STOP)
        return STOP;
    if (kind == SXE__HTTP_RECORD_ERRORS && link->job != SXE_NONE) {
        struct sxe_http_exchange exchange = sxe__http_exchange(client, link->job);

        client->on_error_text(&exchange, part);
    }
    sxe_consume(link->socket, (unsigned)n);
    if (complaint != NULL)
        return complain(link, complaint, -EBUSY);
    if (kind == SXE__HTTP_RECORD_END)
        return end_script_reply(link);
    return sxe__http_link_state(link) == SXE__HTTP_LINK_PAUSED ? STOP : GO_ON;
}

/* The reply is whole for the client, but its script goes on. End the job, and read on without it,
 * so that the script is not ended by a closed connection. */
static void
leave_script(struct sxe__http_link *link)
{
    if (sxe__http_link_job(link)->is_paused)
        sxe_resume(link->socket, SXE_RESUME_WHEN_MORE);
    sxe__http_link_move(link, SXE__HTTP_LINK_LATE);
    sxe__http_job_end(link->client, link->job, 0);
}

static enum step
read_next(struct sxe__http_link *link)
{
    if (link->client->records != NULL)
        return read_record(link);
    if (link->is_tunnelling)
        return read_tunnel_head(link);
    return link->has_head ? read_body(link) : read_head(link);
}

void
sxe__http_client_on_read(SXE *s, int length)
{
    struct sxe__http_link *link = s->user_data;
    enum step step = GO_ON;

    SXE_UNUSED_PARAMETER(length);
    /* A server must not send bytes on an idle connection (RFC 9112, 9.2): close it. */
    if (sxe__http_link_state(link) == SXE__HTTP_LINK_IDLE) {
        sxe__http_link_end(link, SXE__HTTP_END_AT_ONCE);
        return;
    }
    link->is_answered = !link->is_tunnelling;
    if (sxe__http_link_state(link) == SXE__HTTP_LINK_BODY)
        sxe__http_link_move(link, SXE__HTTP_LINK_BODY);
    while (step == GO_ON && SXE_BUF_USED(s) > 0)
        step = read_next(link);
    /* END_REQUEST mostly comes with the last byte. As long as the script may read a body, it is the
     * client's. */
    if (link->job != SXE_NONE && link->unsent == 0 && sxe__http_link_has_whole_output(link))
        leave_script(link);
}
