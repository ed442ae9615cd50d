/* SPDX-License-Identifier: MIT
 *
 * What: the connections of FastCGI: they are accepted, their records are read and given to their
 * requests, and they end:
 *
 *     FRESH -> BUSY -> IDLE -> BUSY ... -> CLOSING
 *
 * FRESH and IDLE have timeouts here, parameters that do not come whole too; lib-sxe has the one for
 * a peer that does not read.
 */
#include "sxe-http-fastcgi-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sxe-cidr.h"

#define REQUESTS_USUAL 1024
#define VALUES_SIZE    256

/* ---- States ---- */

static void
move_connection(struct sxe__fastcgi_connection *connection, enum sxe__fastcgi_state to)
{
    struct sxe__fastcgi_connection *pool = connection->fastcgi->connections;
    unsigned id = (unsigned)(connection - pool);

    sxe_pool_move(pool, id, sxe_pool_get_state(pool, id), to);
}

static bool
is_closing(const struct sxe__fastcgi_connection *connection)
{
    const struct sxe__fastcgi_connection *pool = connection->fastcgi->connections;

    return sxe_pool_get_state(pool, (unsigned)(connection - pool)) == SXE__FASTCGI_CLOSING;
}

/* Close after what was written is sent. The peer may still send the rest of a body. */
static void
close_fastcgi(struct sxe__fastcgi_connection *connection)
{
    move_connection(connection, SXE__FASTCGI_CLOSING);
    sxe_close_lingering(connection->sxe);
}

static void
on_request_ended(struct sxe__fastcgi_connection *connection)
{
    if (connection->requests != NULL || is_closing(connection))
        return;
    if (connection->is_last || connection->fastcgi->http->is_draining)
        close_fastcgi(connection);
    else
        move_connection(connection, SXE__FASTCGI_IDLE);
}

static void
on_connection_timeout(void *array, unsigned id, void *user)
{
    struct sxe__fastcgi_connection *connection = (struct sxe__fastcgi_connection *)array + id;

    SXE_UNUSED_PARAMETER(user);
    close_fastcgi(connection);
}

static void
on_params_timeout(void *array, unsigned id, void *user)
{
    struct sxe__fastcgi *fastcgi = user;
    struct sxe__fastcgi_request *request =
        (void *)((char *)array + (size_t)id * fastcgi->request_size);

    SXE_WARN_ID(request->connection->sxe->id,
                "FastCGI request %u: the parameters did not come in time", request->id);
    sxe_pool_touch(array, id);
    sxe_abort(request->connection->sxe);
}

/* ---- Records ---- */

static int
refuse_begin(struct sxe__fastcgi_connection *connection, enum sxe_http_fastcgi_status status,
             bool keep)
{
    char end[16];
    int result;

    sxe_http_fastcgi_put_end(end, connection->reader.id, 0, status);
    result = sxe_write(connection->sxe, end, sizeof(end));
    connection->is_last |= !keep;
    if (result == 0)
        on_request_ended(connection);
    return result;
}

static int
begin_fastcgi_request(struct sxe__fastcgi_connection *connection, const char *content)
{
    uint16_t role;
    bool keep;

    sxe_http_fastcgi_get_begin(content, &role, &keep);
    if (sxe__fastcgi_request_find(connection, connection->reader.id) != NULL)
        return -EPROTO;
    if (role != SXE_HTTP_FASTCGI_RESPONDER)
        return refuse_begin(connection, SXE_HTTP_FASTCGI_UNKNOWN_ROLE, keep);
    if (sxe__fastcgi_request_begin(connection, connection->reader.id) < 0)
        return refuse_begin(connection, SXE_HTTP_FASTCGI_OVERLOADED, keep);
    connection->is_last |= !keep;
    move_connection(connection, SXE__FASTCGI_BUSY);
    return 0;
}

static bool
is_value(struct sxe_span name, const char *text)
{
    return name.length == strlen(text) && memcmp(name.base, text, name.length) == 0;
}

/* Answer the values that are known (FastCGI 1.0, 4.1); a value that is asked for twice is answered
 * once more, as far as there is room. 0 or -errno. */
static int
answer_values(struct sxe__fastcgi_connection *connection, struct sxe_span content)
{
    const struct sxe__fastcgi *fastcgi = connection->fastcgi;
    char answer[SXE_HTTP_FASTCGI_HEAD + VALUES_SIZE];
    char most[12];
    char *to = answer + SXE_HTTP_FASTCGI_HEAD;
    const char *end = answer + sizeof(answer);
    struct sxe_span name;
    struct sxe_span value;
    ssize_t n;

    snprintf(most, sizeof(most), "%u", sxe_pool_get_number(fastcgi->requests));
    for (; content.length > 0; content.base += n, content.length -= (size_t)n) {
        n = sxe_http_fastcgi_pair(content.base, content.length, &name, &value);
        if (n <= 0)
            return -EPROTO;
        value = (struct sxe_span){most, strlen(most)};
        if (is_value(name, "FCGI_MPXS_CONNS"))
            value = (struct sxe_span){"1", 1};
        else if (!is_value(name, "FCGI_MAX_CONNS") && !is_value(name, "FCGI_MAX_REQS"))
            continue;
        value.length = (size_t)sxe_http_fastcgi_put_pair(to, (size_t)(end - to), name, value);
        to += (ssize_t)value.length > 0 ? value.length : 0;
    }
    sxe_http_fastcgi_put_head(answer, SXE_HTTP_FASTCGI_GET_VALUES_RESULT, 0,
                              (uint16_t)(to - answer - SXE_HTTP_FASTCGI_HEAD), 0);
    return sxe_write(connection->sxe, answer, (unsigned)(to - answer));
}

static int
answer_unknown(struct sxe__fastcgi_connection *connection)
{
    char answer[16];

    if (!connection->reader.is_first)
        return 0;
    sxe_http_fastcgi_put_unknown(answer, connection->reader.type);
    return sxe_write(connection->sxe, answer, sizeof(answer));
}

/* Records of requests that have ended are ignored (FastCGI 1.0, 3.3). A call that takes no content
 * is no end of a stream, unless the record has none. */
static int
take_request_record(struct sxe__fastcgi_connection *connection, struct sxe_span content)
{
    const struct sxe_http_fastcgi *reader = &connection->reader;
    struct sxe__fastcgi_request *request = sxe__fastcgi_request_find(connection, reader->id);

    if (request == NULL || (content.length == 0 && reader->length > 0))
        return 0;
    switch (reader->type) {
    case SXE_HTTP_FASTCGI_ABORT_REQUEST:
        return sxe__fastcgi_request_abort(request);
    case SXE_HTTP_FASTCGI_PARAMS:
        return sxe__fastcgi_request_params(request, content);
    case SXE_HTTP_FASTCGI_STDIN:
        return sxe__fastcgi_request_body(request, content);
    default: /* DATA is for the role of a filter */
        return 0;
    }
}

/* Padding alone was taken: neither is_first nor is_last, and no content. */
static bool
is_padding(const struct sxe_http_fastcgi *reader, struct sxe_span content)
{
    return !reader->is_first && !reader->is_last && content.length == 0;
}

static int
take_record(struct sxe__fastcgi_connection *connection, struct sxe_span content)
{
    const struct sxe_http_fastcgi *reader = &connection->reader;

    if (is_padding(reader, content))
        return 0;
    if (reader->type == SXE_HTTP_FASTCGI_BEGIN_REQUEST)
        return begin_fastcgi_request(connection, content.base);
    if (reader->type == SXE_HTTP_FASTCGI_GET_VALUES)
        return answer_values(connection, content);
    return reader->id == 0 ? answer_unknown(connection) : take_request_record(connection, content);
}

/* Take records as far as they are whole, and no body waits for its handler. */
static void
take_records(struct sxe__fastcgi_connection *connection)
{
    SXE *s = connection->sxe;
    const char *data = SXE_BUF(s);
    size_t length = (size_t)SXE_BUF_USED(s);
    struct sxe_span content;
    size_t taken = 0;
    ssize_t n = 1;
    int result = 0;

    while (result == 0 && connection->blocked == 0 && !is_closing(connection)) {
        n = sxe_http_fastcgi_read(&connection->reader, data + taken, length - taken, &content);
        if (n <= 0)
            break;
        taken += (size_t)n;
        result = take_record(connection, content);
    }
    if (n < 0)
        SXE_WARN_ID(s->id, "FastCGI: closing a connection after %s",
                    sxe_http_fastcgi_refusal_text(connection->reader.refusal));
    else if (result < 0)
        SXE_WARN_ID(s->id, "FastCGI: closing a connection: a record of type %u for request %u: %s",
                    connection->reader.type, connection->reader.id, strerror(-result));
    if (n < 0 || result < 0)
        sxe_abort(s);
    else
        sxe_consume(s, (unsigned)taken);
}

/* A client that closes or half-closes is gone, and its requests with it. */
static void
on_connection_read(SXE *s, int length)
{
    struct sxe__fastcgi_connection *connection = SXE_USER_DATA(s);

    if (length > 0)
        take_records(connection);
    else if (connection->requests != NULL)
        sxe_abort(s);
    else
        close_fastcgi(connection);
}

static void
on_connection_closed(SXE *s)
{
    struct sxe__fastcgi_connection *connection = SXE_USER_DATA(s);
    struct sxe_http *http;

    if (connection == NULL) /* it was refused */
        return;
    http = connection->fastcgi->http;
    sxe__fastcgi_requests_drop(connection);
    move_connection(connection, SXE__FASTCGI_FREE);
    http->fastcgi_connections--;
    sxe__http_check_stopped(http);
}

/* ---- Accepting ---- */

/* A free connection, or that of the client that has been idle longest. NULL: all have requests. */
static struct sxe__fastcgi_connection *
take_place(struct sxe__fastcgi *fastcgi)
{
    struct sxe__fastcgi_connection *pool = fastcgi->connections;
    unsigned id = sxe_pool_take(pool, SXE__FASTCGI_FREE, SXE__FASTCGI_FRESH);
    SXE *s;

    if (id != SXE_POOL_NO_INDEX)
        return &pool[id];
    id = sxe_pool_take(pool, SXE__FASTCGI_IDLE, SXE__FASTCGI_FRESH);
    if (id == SXE_POOL_NO_INDEX)
        return NULL;
    s = pool[id].sxe;
    SXE_USER_DATA(s) = NULL;
    sxe_close(s);
    fastcgi->http->fastcgi_connections--;
    return &pool[id];
}

static void
on_connected(SXE *s)
{
    struct sxe__fastcgi *fastcgi = SXE_USER_DATA(s);
    const struct sxe_cidr_list *trusted = fastcgi->http->config.trusted;
    struct sxe__fastcgi_connection *connection = take_place(fastcgi);
    struct sockaddr_storage peer;

    SXE_USER_DATA(s) = connection;
    if (connection == NULL) {
        SXE_WARN_ID(s->id, "FastCGI: closing a connection: all others have requests");
        sxe_abort(s);
        return;
    }
    *connection = (struct sxe__fastcgi_connection){.fastcgi = fastcgi, .sxe = s};
    sxe_http_fastcgi_init(&connection->reader, SXE_HTTP_FASTCGI_OF_CLIENT);
    fastcgi->http->fastcgi_connections++;
    if (trusted != NULL && sxe_get_peer(s, &peer) > 0)
        connection->is_trusted = sxe_cidr_match(trusted, (const struct sockaddr *)&peer);
}

static SXE_RETURN
listen_for_fastcgi(struct sxe_http *http, SXE *listener)
{
    struct sxe__fastcgi *fastcgi = http->fastcgi;
    int result = -ENFILE;

    if (listener == NULL)
        return -errno;
    SXE_USER_DATA(listener) = fastcgi;
    sxe_set_half_close(listener, true);
    sxe_watch_end(listener, true);
    if (fastcgi->listeners_number < SXE__FASTCGI_LISTENERS)
        result = sxe_listen(listener);
    if (result < 0) {
        sxe_close(listener);
        return result;
    }
    fastcgi->listeners[fastcgi->listeners_number++] = listener;
    http->unsent_max = sxe_get_config()->output_pause / 2;
    return 0;
}

SXE_RETURN
sxe_http_fastcgi_listen(struct sxe_http *http, const char *ip, unsigned short port)
{
    return listen_for_fastcgi(
        http, sxe_new_tcp(NULL, ip, port, on_connected, on_connection_read, on_connection_closed));
}

SXE_RETURN
sxe_http_fastcgi_listen_unix(struct sxe_http *http, const char *path)
{
    return listen_for_fastcgi(
        http, sxe_new_unix(NULL, path, on_connected, on_connection_read, on_connection_closed));
}

unsigned short
sxe_http_fastcgi_port(const struct sxe_http *http)
{
    const struct sxe__fastcgi *fastcgi = http->fastcgi;

    return fastcgi->listeners_number == 0
               ? 0
               : sxe_local_port(fastcgi->listeners[fastcgi->listeners_number - 1]);
}

/* ---- The plan, and the end ---- */

static bool
has_unread_records(const SXE *s)
{
    int bytes = 0;

    return ioctl(sxe_fd(s), FIONREAD, &bytes) == 0 && bytes > 0;
}

static void
dismiss_idle(struct sxe__fastcgi *fastcgi, enum sxe__fastcgi_state state)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, fastcgi->connections, state);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        if (!has_unread_records(fastcgi->connections[id].sxe))
            close_fastcgi(&fastcgi->connections[id]);
    }
}

static void
end_fastcgi(struct sxe_http *http)
{
    struct sxe__fastcgi *fastcgi = http->fastcgi;

    while (fastcgi->listeners_number > 0) {
        SXE *listener = fastcgi->listeners[--fastcgi->listeners_number];

        sxe_io_accept_rest(listener);
        sxe_close(listener);
    }
    if (!http->is_stopping)
        return;
    dismiss_idle(fastcgi, SXE__FASTCGI_FRESH);
    dismiss_idle(fastcgi, SXE__FASTCGI_IDLE);
}

static void
delete_fastcgi(struct sxe_http *http)
{
    struct sxe__fastcgi *fastcgi = http->fastcgi;

    sxe_pool_delete(fastcgi->connections);
    sxe_pool_delete(fastcgi->requests);
    free(fastcgi->head);
    free(fastcgi);
    http->fastcgi = NULL;
}

static double
seconds_of(uint32_t ms)
{
    return ms == UINT32_MAX ? 0.0 : ms / 1000.0;
}

static int
allocate_fastcgi(struct sxe__fastcgi *fastcgi, unsigned requests)
{
    const struct sxe_http_config *config = &fastcgi->http->config;
    const double timeouts[SXE__FASTCGI_STATES] = {
        [SXE__FASTCGI_FRESH] = seconds_of(config->head_timeout_ms),
        [SXE__FASTCGI_IDLE] = seconds_of(config->idle_timeout_ms),
    };
    const double params_timeouts[SXE__FASTCGI_REQUEST_STATES] = {
        [SXE__FASTCGI_REQUEST_PARAMS] = seconds_of(config->head_timeout_ms),
    };

    fastcgi->params_max = 2u * config->head.head_max;
    fastcgi->request_size =
        (sizeof(struct sxe__fastcgi_request) + fastcgi->params_max + 63) / 64 * 64;
    fastcgi->head = malloc(fastcgi->params_max + SXE__FASTCGI_HEAD_ROOM);
    fastcgi->connections =
        sxe_pool_new_with_timeouts("fastcgi-connections", requests, sizeof(*fastcgi->connections),
                                   SXE__FASTCGI_STATES, timeouts, on_connection_timeout, NULL);
    fastcgi->requests = sxe_pool_new_with_timeouts(
        "fastcgi-requests", requests, fastcgi->request_size, SXE__FASTCGI_REQUEST_STATES,
        params_timeouts, on_params_timeout, fastcgi);
    return fastcgi->head == NULL || fastcgi->connections == NULL || fastcgi->requests == NULL
               ? -ENOMEM
               : 0;
}

SXE_RETURN
sxe_http_fastcgi_new(struct sxe_http *http, unsigned requests)
{
    struct sxe__fastcgi *fastcgi;

    if (http->fastcgi != NULL)
        return -EALREADY;
    fastcgi = calloc(1, sizeof(*fastcgi));
    if (fastcgi == NULL)
        return -ENOMEM;
    if (requests == 0)
        requests =
            http->config.connections < REQUESTS_USUAL ? http->config.connections : REQUESTS_USUAL;
    fastcgi->http = http;
    fastcgi->on_request_ended = on_request_ended;
    http->fastcgi = fastcgi;
    http->fastcgi_end = end_fastcgi;
    http->fastcgi_delete = delete_fastcgi;
    if (allocate_fastcgi(fastcgi, requests) < 0) {
        delete_fastcgi(http);
        return -ENOMEM;
    }
    sxe_register(2 * requests + SXE__FASTCGI_LISTENERS + SXE__HTTP_SPARE, 0);
    return 0;
}
