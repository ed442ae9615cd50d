/* SPDX-License-Identifier: MIT
 *
 * What: accepts, evicts and frees connections. If there is no place for a new one, the connection
 * is closed that has waited longest without a request under way: before the first byte (a handshake
 * included), within a head, between requests, or after its last reply. Because one order holds for
 * all of these states, a newcomer is the last to go, whichever of them others use to hold places.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "sxe-cidr.h"
#include "sxe-io.h"
#include "sxe-proxy.h"

#define LOOKS_MAX 16

/* A constant reply, so it has no Date, which a 503 need not have (RFC 9110, 6.6.1). */
#define NO_PLACE                                  \
    "HTTP/1.1 503 Service Unavailable\r\n"        \
    "Content-Type: text/plain; charset=utf-8\r\n" \
    "Content-Length: 24\r\n"                      \
    "Connection: close\r\n\r\n"                   \
    "503 Service Unavailable\n"

/* A connection whose handler runs is still in the state of its last event. After its last reply a
 * connection may go as soon as the kernel has the reply. */
static bool
may_be_evicted(const struct sxe__http_connection *connection)
{
    return !connection->is_inside &&
           (connection->phase != SXE__HTTP_OVER ||
            (connection->slot == NULL && !sxe_io_has_output(connection->sxe)));
}

/* The connection that is longest in that state and may be evicted, or NO_INDEX. Only a few are
 * examined; those that may not go become the youngest, so that they hide the others only once. */
static unsigned
find_evictable(const struct sxe_http *http, enum sxe__http_state state)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, http->connections, state);
    for (unsigned looks = 0;
         looks < LOOKS_MAX && (id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX; looks++) {
        if (may_be_evicted(&http->connections[id]))
            return id;
        sxe_pool_touch(http->connections, id);
    }
    return SXE_POOL_NO_INDEX;
}

/* The connection that has waited longest without a request under way, or NO_INDEX. */
static unsigned
longest_waiting(const struct sxe_http *http)
{
    static const enum sxe__http_state states[] = {SXE__HTTP_FRESH, SXE__HTTP_HEAD, SXE__HTTP_IDLE,
                                                  SXE__HTTP_CLOSING};
    unsigned longest = SXE_POOL_NO_INDEX;

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        unsigned id = find_evictable(http, states[i]);

        if (id != SXE_POOL_NO_INDEX &&
            (longest == SXE_POOL_NO_INDEX || sxe_pool_get_time(http->connections, id) <
                                                 sxe_pool_get_time(http->connections, longest)))
            longest = id;
    }
    return longest;
}

/* Close a connection to make room. If its client has not read the last reply, or does not close,
 * abort: otherwise it would hold the socket for seconds. */
static void
evict_connection(struct sxe__http_connection *connection)
{
    SXE *s = connection->sxe;

    SXE_USER_DATA(s) = NULL;
    sxe__http_forget(connection, -ECONNRESET); /* of a head that is not whole */
    if (sxe_io_has_output(s) || connection->phase == SXE__HTTP_OVER)
        sxe_abort(s);
    else
        sxe_close(s);
    sxe__http_free(connection);
}

/* Take a free connection, or evict one. NULL: every connection has a request under way. */
static struct sxe__http_connection *
take_connection_place(struct sxe_http *http)
{
    unsigned id;

    if (sxe_pool_get_count(http->connections, SXE__HTTP_FREE) == 0) {
        id = longest_waiting(http);
        if (id == SXE_POOL_NO_INDEX)
            return NULL;
        evict_connection(&http->connections[id]);
    }
    id = sxe_pool_take(http->connections, SXE__HTTP_FREE, SXE__HTTP_FRESH);
    return &http->connections[id];
}

/* Count a connection. Returns whether its address may have that many. */
static bool
is_welcome(struct sxe__http_connection *connection, const struct sockaddr_storage *address,
           socklen_t length)
{
    struct sxe_http *http = connection->http;

    if (http->clients == NULL)
        return true;
    connection->address = sxe__http_client_key(address, length);
    return connection->address == 0 ||
           sxe__http_clients_add(http->clients, connection->address) <= http->config.address_max;
}

/* Whether requests have a client of their own: those that a proxy forwards. */
static bool
is_forwarding(const struct sxe__http_connection *connection, const struct sockaddr_storage *address,
              socklen_t length)
{
    const struct sxe_http_config *config = &connection->http->config;

    if (config->forwarding == SXE_HTTP_FORWARDING_NONE || config->trusted == NULL)
        return false;
    return length == 0 ? connection->is_trusted
                       : sxe_cidr_match(config->trusted, (const struct sockaddr *)address);
}

static void
accept_connection_from(struct sxe__http_connection *connection,
                       const struct sockaddr_storage *address, socklen_t length)
{
    connection->phase = SXE__HTTP_READ_HEAD;
    connection->is_forwarding = is_forwarding(connection, address, length);
    if (connection->is_forwarding || is_welcome(connection, address, length))
        return;
    sxe__http_slot_forget_head(sxe__http_slot_take(connection));
    sxe__http_reject(connection, 503);
}

static socklen_t
address_length(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return sizeof(struct sockaddr_in);
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

/* Keep the client's address for callers that ask when the socket may be closed. */
static socklen_t
keep_peer(struct sxe__http_connection *connection, const struct sockaddr_storage *address)
{
    socklen_t length = address_length(address);

    connection->peer_length = (uint8_t)length;
    memcpy(connection->peer, address, length);
    return length;
}

size_t
sxe__http_read_proxy(struct sxe__http_connection *connection, const char *data, size_t length)
{
    struct sxe_proxy proxy;
    int n = sxe_proxy_parse(data, length, &proxy);

    if (n == 0)
        return 0;
    if (n < 0) {
        SXE_WARN_ID(connection->sxe->id,
                    "dropping a connection of a proxy, %s: it does not begin "
                    "with a PROXY header",
                    sxe_peer_ip(connection->sxe));
        sxe_abort(connection->sxe);
        sxe__http_dismiss(connection);
        return length;
    }
    accept_connection_from(connection, &proxy.source, keep_peer(connection, &proxy.source));
    return (size_t)n;
}

/* Refuse a client. It may not close for seconds, so the one that was refused REFUSED_MAX clients
 * before gives its socket up now: otherwise a few of them would keep the server from accepting. */
static void
refuse_client(struct sxe_http *http, SXE *s)
{
    uint64_t *refused = &http->refused[http->refused_turn++ % SXE__HTTP_REFUSED_MAX];
    SXE *earlier = sxe_from_handle(*refused);

    if (earlier != NULL)
        sxe_abort(earlier);
    *refused = sxe_handle(s);
    (void)!SXE_WRITE_LITERAL(s, NO_PLACE);
    sxe_close_lingering(s);
}

void
sxe__http_on_connected(SXE *s)
{
    struct sxe_http *http = SXE_USER_DATA(s);
    struct sxe__http_connection *connection = take_connection_place(http);
    struct sockaddr_storage peer;
    socklen_t length;

    SXE_USER_DATA(s) = connection;
    if (connection == NULL) {
        refuse_client(http, s);
        return;
    }
    *connection =
        (struct sxe__http_connection){.http = http, .sxe = s, .phase = SXE__HTTP_READ_HEAD};
    if (http->clients == NULL && http->config.proxies == NULL && http->config.on_reply == NULL &&
        http->config.trusted == NULL)
        return;
    length = sxe_get_peer(s, &peer);
    keep_peer(connection, &peer);
    connection->is_trusted = http->config.trusted != NULL &&
                             sxe_cidr_match(http->config.trusted, (const struct sockaddr *)&peer);
    if (http->config.proxies != NULL &&
        sxe_cidr_match(http->config.proxies, (const struct sockaddr *)&peer))
        connection->phase = SXE__HTTP_READ_PROXY;
    else
        accept_connection_from(connection, &peer, length);
}

void
sxe__http_uncount(struct sxe__http_connection *connection)
{
    if (connection->address != 0)
        sxe__http_clients_remove(connection->http->clients, connection->address);
    connection->address = 0;
}

void
sxe__http_free(struct sxe__http_connection *connection)
{
    struct sxe_http *http = connection->http;

    sxe__http_uncount(connection);
    connection->phase = SXE__HTTP_OVER;
    sxe__http_move(connection, SXE__HTTP_FREE);
    sxe__http_check_stopped(http);
}

/* Whether the connection is closed or reset in both directions. */
static bool
is_connection_hung_up(const SXE *s)
{
    struct pollfd fd = {.fd = sxe_fd(s)};

    return poll(&fd, 1, 0) == 1;
}

/* The client closed or half-closed while a handler works or its reply is under way. The client
 * counts as gone, unless half-close is allowed. */
static void
client_left(struct sxe__http_connection *connection)
{
    struct sxe__http_slot *slot = connection->slot;
    bool is_under_way =
        connection->phase == SXE__HTTP_READ_BODY || connection->phase == SXE__HTTP_REPLY;

    if (!is_under_way || slot->progress == SXE__HTTP_ENDED)
        return;
    if ((slot->half_close || connection->http->config.half_close) &&
        !is_connection_hung_up(connection->sxe))
        return;
    slot->outcome = -ECONNRESET;
    if (slot->progress == SXE__HTTP_BEGUN) {
        sxe_abort(connection->sxe);
        return;
    }
    sxe__http_dismiss(connection); /* replies to earlier requests are still sent */
    sxe__http_forget(connection, -ECONNRESET);
}

void
sxe__http_client_ended(struct sxe__http_connection *connection, int length)
{
    if (length < 0)
        client_left(connection);
    else
        sxe__http_dismiss(connection);
}

/* Subtract the bytes that were dropped unsent. The body is last in the output, so dropped bytes are
 * first of all the body's. */
static void
take_dropped(struct sxe__http_slot *slot, size_t dropped)
{
    slot->body_sent = dropped < slot->body_sent ? slot->body_sent - dropped : 0;
}

void
sxe__http_on_close(SXE *s)
{
    struct sxe__http_connection *connection = SXE_USER_DATA(s);
    int error = sxe_error(s);

    if (connection == NULL)
        return;
    if (connection->slot != NULL)
        take_dropped(connection->slot, sxe_dropped(s));
    sxe__http_forget(connection, error != 0 ? -error : -ECONNRESET);
    sxe__http_free(connection);
}
