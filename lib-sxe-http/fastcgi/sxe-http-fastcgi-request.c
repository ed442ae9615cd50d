/* SPDX-License-Identifier: MIT
 *
 * What: one request of a FastCGI connection. Its parameters are kept until they are whole; then it
 * gets a pair of sockets, one end of which is a connection of the HTTP server, and from there on it
 * only moves bytes:
 *
 *     PARAMS ... end -> the head of a request ->.          .-> Status: 200 OK ... -> STDOUT
 *     STDIN ---------> its body --------------->  [ pair ] '-> the end -> STDOUT end, END_REQUEST
 *
 * The body waits for the handler: then the whole connection is not read. The reply waits for the
 * web server: then our end of the pair is not read, so the handler finds no room.
 */
#include "sxe-http-fastcgi-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BAD_REQUEST                               \
    "Status: 400 Bad Request\r\n"                 \
    "Content-Type: text/plain; charset=utf-8\r\n" \
    "Content-Length: 16\r\n\r\n"                  \
    "400 Bad Request\n"

static struct sxe__fastcgi_request *
request_at(const struct sxe__fastcgi *fastcgi, unsigned id)
{
    return (struct sxe__fastcgi_request *)(void *)((char *)fastcgi->requests +
                                                   id * fastcgi->request_size);
}

static unsigned
index_of_request(const struct sxe__fastcgi_request *request)
{
    const struct sxe__fastcgi *fastcgi = request->connection->fastcgi;

    return (unsigned)((size_t)((const char *)request - (const char *)fastcgi->requests) /
                      fastcgi->request_size);
}

static void
move_request(struct sxe__fastcgi_request *request, enum sxe__fastcgi_request_state to)
{
    void *pool = request->connection->fastcgi->requests;
    unsigned id = index_of_request(request);

    sxe_pool_move(pool, id, sxe_pool_get_state(pool, id), to);
}

int
sxe__fastcgi_request_begin(struct sxe__fastcgi_connection *connection, uint16_t id)
{
    unsigned index = sxe_pool_take(connection->fastcgi->requests, SXE__FASTCGI_REQUEST_FREE,
                                   SXE__FASTCGI_REQUEST_PARAMS);
    struct sxe__fastcgi_request *request;

    if (index == SXE_POOL_NO_INDEX)
        return -ENOBUFS;
    request = request_at(connection->fastcgi, index);
    *request = (struct sxe__fastcgi_request){
        .connection = connection, .id = id, .next = connection->requests};
    connection->requests = request;
    return 0;
}

struct sxe__fastcgi_request *
sxe__fastcgi_request_find(const struct sxe__fastcgi_connection *connection, uint16_t id)
{
    struct sxe__fastcgi_request *request = connection->requests;

    while (request != NULL && request->id != id)
        request = request->next;
    return request;
}

/* ---- The end ---- */

/* The connection waits for the body of this request no longer. */
static void
unblock_connection(struct sxe__fastcgi_request *request)
{
    struct sxe__fastcgi_connection *connection = request->connection;

    if (!request->is_blocking)
        return;
    request->is_blocking = false;
    if (--connection->blocked == 0)
        sxe_resume(connection->sxe, SXE_RESUME_IMMEDIATE);
}

/* Close our end: if the reply is not whole, the handler sees that the client is gone. */
static void
close_inner(struct sxe__fastcgi_request *request)
{
    if (request->bridge.connection != NULL)
        request->bridge.connection->bridge = NULL;
    request->bridge.connection = NULL;
    if (request->inner == NULL)
        return;
    SXE_USER_DATA(request->inner) = NULL;
    sxe_abort(request->inner);
    request->inner = NULL;
}

static void
forget_request(struct sxe__fastcgi_request *request)
{
    struct sxe__fastcgi_request **link = &request->connection->requests;

    close_inner(request);
    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    move_request(request, SXE__FASTCGI_REQUEST_FREE);
}

void
sxe__fastcgi_requests_drop(struct sxe__fastcgi_connection *connection)
{
    while (connection->requests != NULL)
        forget_request(connection->requests);
}

/* Write the end of the request. status: of the application; 0: the reply is whole. 0 or -errno. */
static int
end_request(struct sxe__fastcgi_request *request, uint32_t status,
            enum sxe_http_fastcgi_status protocol)
{
    struct sxe__fastcgi_connection *connection = request->connection;
    char end[SXE_HTTP_FASTCGI_HEAD + 16];
    int result;

    sxe_http_fastcgi_put_head(end, SXE_HTTP_FASTCGI_STDOUT, request->id, 0, 0);
    sxe_http_fastcgi_put_end(end + SXE_HTTP_FASTCGI_HEAD, request->id, status, protocol);
    result = sxe_write(connection->sxe, end, sizeof(end));
    unblock_connection(request);
    forget_request(request);
    if (result == 0)
        connection->fastcgi->on_request_ended(connection);
    return result;
}

static int
write_stdout(struct sxe__fastcgi_request *request, const char *data, size_t length)
{
    SXE *s = request->connection->sxe;
    char head[SXE_HTTP_FASTCGI_HEAD];
    int result;

    sxe_http_fastcgi_put_head(head, SXE_HTTP_FASTCGI_STDOUT, request->id, (uint16_t)length, 0);
    result = sxe_write(s, head, sizeof(head));
    request->has_begun = true;
    return result < 0 ? result : sxe_write(s, data, (unsigned)length);
}

/* The body is not what its length says: the handler sees that the client is gone. Half a reply
 * cannot be taken back, so then the connection ends. */
static int
refuse_body(struct sxe__fastcgi_request *request)
{
    int result;

    SXE_WARN_ID(request->connection->sxe->id, "FastCGI request %u: STDIN and CONTENT_LENGTH differ",
                request->id);
    if (request->has_begun)
        return -EPROTO;
    result = write_stdout(request, BAD_REQUEST, SXE_LITERAL_LENGTH(BAD_REQUEST));
    return result < 0 ? result : end_request(request, 0, SXE_HTTP_FASTCGI_REQUEST_COMPLETE);
}

int
sxe__fastcgi_request_abort(struct sxe__fastcgi_request *request)
{
    return end_request(request, 1, SXE_HTTP_FASTCGI_REQUEST_COMPLETE);
}

/* ---- The reply ---- */

static void
on_room(SXE *s, int result)
{
    struct sxe__fastcgi_connection *connection = SXE_USER_DATA(s);

    if (result < 0)
        return;
    connection->is_room_awaited = false;
    sxe__fastcgi_requests_resume(connection);
}

void
sxe__fastcgi_requests_resume(struct sxe__fastcgi_connection *connection)
{
    struct sxe__fastcgi_request *request;

    for (request = connection->requests; request != NULL; request = request->next) {
        if (request->is_paused)
            sxe_resume(request->inner, SXE_RESUME_IMMEDIATE);
        request->is_paused = false;
    }
}

/* The web server is slow: wait with the reply until the kernel has what was written. */
static void
await_room(struct sxe__fastcgi_request *request)
{
    struct sxe__fastcgi_connection *connection = request->connection;

    request->is_paused = true;
    sxe_pause(request->inner);
    if (!connection->is_room_awaited)
        connection->is_room_awaited =
            sxe_send(connection->sxe, "", 0, on_room) == 0 || sxe_abort(connection->sxe) == 0;
}

/* The HTTP connection has ended. Without END_REQUEST a reply that broke off does not look whole; a
 * reply that never began is an end without a reply. */
static void
end_reply(struct sxe__fastcgi_request *request)
{
    SXE *s = request->connection->sxe;
    int result = -ECONNRESET;

    if (request->bridge.is_whole || !request->has_begun)
        result = end_request(request, !request->bridge.is_whole, SXE_HTTP_FASTCGI_REQUEST_COMPLETE);
    if (result < 0)
        sxe_abort(s);
}

static void
on_reply_bytes(SXE *s, int length)
{
    struct sxe__fastcgi_request *request = SXE_USER_DATA(s);
    struct sxe__fastcgi_connection *connection = request->connection;
    unsigned bytes = (unsigned)SXE_BUF_USED(s);

    if (length <= 0) {
        end_reply(request);
        return;
    }
    if (sxe_unsent(connection->sxe) > connection->fastcgi->http->unsent_max) {
        await_room(request);
        return;
    }
    if (write_stdout(request, SXE_BUF(s), bytes) < 0)
        sxe_abort(connection->sxe);
    else
        sxe_consume(s, bytes);
}

static void
on_inner_closed(SXE *s)
{
    struct sxe__fastcgi_request *request = SXE_USER_DATA(s);

    if (request == NULL)
        return;
    request->inner = NULL;
    end_reply(request);
}

/* ---- The head ---- */

/* Make the pair, whose other end becomes a connection of the HTTP server. 0 or -errno. */
static int
open_pair(struct sxe__fastcgi_request *request, const struct sxe__fastcgi_params *params)
{
    struct sxe__fastcgi_connection *connection = request->connection;
    SXE *ours = sxe_new_unix(connection->sxe, "fastcgi", NULL, on_reply_bytes, on_inner_closed);
    SXE *theirs =
        sxe_new_unix(connection->sxe, "fastcgi", NULL, sxe__http_on_read, sxe__http_on_close);
    int result = ours == NULL || theirs == NULL ? -ENFILE : 0;

    if (result < 0) {
        sxe_close(ours);
        sxe_close(theirs);
        return result;
    }
    result = sxe_io_pair(ours, theirs);
    if (result < 0)
        return result;
    sxe_set_half_close(ours, true);
    sxe_io_read_rest(ours, true);
    sxe_set_half_close(theirs, true);
    sxe_watch_end(theirs, true);
    SXE_USER_DATA(ours) = request;
    request->inner = ours;
    if (sxe__http_take_in(connection->fastcgi->http, theirs, &request->bridge, &params->peer,
                          params->is_https, connection->is_trusted))
        return 0;
    sxe_abort(theirs);
    return -ENOBUFS;
}

/* If the HTTP connection has ended, on_inner_closed comes soon. */
static int
write_inner(struct sxe__fastcgi_request *request, const char *data, size_t length)
{
    int result = sxe_write(request->inner, data, (unsigned)length);

    return result == -ENOTCONN ? 0 : result;
}

static int
write_request_head(struct sxe__fastcgi_request *request, const struct sxe__fastcgi_params *params,
                   bool is_chunked)
{
    char *head = request->connection->fastcgi->head;
    char *end = sxe__fastcgi_params_write(params, request->params, request->used, is_chunked, head);

    return write_inner(request, head, (size_t)(end - head));
}

/* Now it is known whether a body without a length comes. Chunks need HTTP/1.1. */
static int
write_late_head(struct sxe__fastcgi_request *request, bool has_body)
{
    struct sxe__fastcgi_params params;

    (void)sxe__fastcgi_params_read(&params, request->params, request->used);
    if (has_body)
        params.minor = 1;
    return write_request_head(request, &params, has_body);
}

/* Have the HTTP server refuse the request, so that it is logged and counted. */
static int
write_refused(struct sxe__fastcgi_request *request, const struct sxe__fastcgi_params *params,
              const char *wrong)
{
    struct sxe__fastcgi *fastcgi = request->connection->fastcgi;
    char *end;

    SXE_WARN_ID(request->connection->sxe->id, "FastCGI request %u: %s", request->id, wrong);
    request->body = SXE__FASTCGI_BODY_DROPPED;
    if (request->is_too_long)
        end = sxe__fastcgi_params_write_long(fastcgi->head, fastcgi->http->config.head.head_max);
    else
        end = sxe__fastcgi_params_write_wrong(params, fastcgi->head);
    return write_inner(request, fastcgi->head, (size_t)(end - fastcgi->head));
}

/* The parameters are whole. */
static int
start_request(struct sxe__fastcgi_request *request)
{
    struct sxe__fastcgi_params params;
    const char *wrong = sxe__fastcgi_params_read(&params, request->params, request->used);
    int result;

    move_request(request, SXE__FASTCGI_REQUEST_RUNS);
    if (request->is_too_long) /* they were cut */
        wrong = "the parameters are too long";
    result = open_pair(request, &params);
    if (result < 0)
        return end_request(request, 1, SXE_HTTP_FASTCGI_OVERLOADED);
    if (wrong != NULL)
        return write_refused(request, &params, wrong);
    if (!params.has_length)
        return 0; /* whether there is a body is not known yet */
    request->body = SXE__FASTCGI_BODY_LENGTH;
    request->left = params.length;
    return write_request_head(request, &params, false);
}

int
sxe__fastcgi_request_params(struct sxe__fastcgi_request *request, struct sxe_span part)
{
    if (request->inner != NULL)
        return -EPROTO;
    if (part.length == 0)
        return start_request(request);
    if (part.length > request->connection->fastcgi->params_max - request->used) {
        request->is_too_long = true;
        return 0;
    }
    memcpy(request->params + request->used, part.base, part.length);
    request->used += (uint32_t)part.length;
    return 0;
}

/* ---- The body ---- */

static void
on_body_taken(SXE *s, int result)
{
    struct sxe__fastcgi_request *request = SXE_USER_DATA(s);

    if (result == 0 && request != NULL)
        unblock_connection(request);
}

/* If the handler is slow, do not read the connection until the kernel has the body's bytes. */
static int
await_handler(struct sxe__fastcgi_request *request)
{
    struct sxe__fastcgi_connection *connection = request->connection;

    if (request->is_blocking || sxe_unsent(request->inner) <= connection->fastcgi->http->unsent_max)
        return 0;
    request->is_blocking = sxe_send(request->inner, "", 0, on_body_taken) == 0;
    if (request->is_blocking && connection->blocked++ == 0)
        sxe_pause(connection->sxe);
    return 0;
}

static int
write_chunked(struct sxe__fastcgi_request *request, struct sxe_span part)
{
    char size[16];
    int length = snprintf(size, sizeof(size), "%zx\r\n", part.length);

    if (write_inner(request, size, (size_t)length) < 0 ||
        write_inner(request, part.base, part.length) < 0)
        return -ENOBUFS;
    return write_inner(request, "\r\n", 2);
}

/* The end of STDIN. */
static int
end_body(struct sxe__fastcgi_request *request)
{
    bool is_unknown = request->body == SXE__FASTCGI_BODY_UNKNOWN;
    bool is_chunked = request->body == SXE__FASTCGI_BODY_CHUNKED;

    if (request->body == SXE__FASTCGI_BODY_LENGTH && request->left > 0)
        return refuse_body(request);
    request->body = SXE__FASTCGI_BODY_ENDED;
    if (is_unknown)
        return write_late_head(request, false);
    return is_chunked ? write_chunked(request, (struct sxe_span){"", 0}) : 0;
}

/* Bytes of STDIN. */
static int
write_body(struct sxe__fastcgi_request *request, struct sxe_span part)
{
    int result = 0;

    if (request->body == SXE__FASTCGI_BODY_LENGTH) {
        if (part.length > request->left)
            return refuse_body(request);
        request->left -= part.length;
        result = write_inner(request, part.base, part.length);
    } else {
        if (request->body == SXE__FASTCGI_BODY_UNKNOWN)
            result = write_late_head(request, true);
        request->body = SXE__FASTCGI_BODY_CHUNKED;
        if (result == 0)
            result = write_chunked(request, part);
    }
    return result < 0 ? result : await_handler(request);
}

int
sxe__fastcgi_request_body(struct sxe__fastcgi_request *request, struct sxe_span part)
{
    if (request->inner == NULL || request->body == SXE__FASTCGI_BODY_ENDED)
        return -EPROTO;
    if (request->body == SXE__FASTCGI_BODY_DROPPED)
        return 0;
    return part.length == 0 ? end_body(request) : write_body(request, part);
}
