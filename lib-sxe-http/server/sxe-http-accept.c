/* SPDX-License-Identifier: MIT
 *
 * What: accepts and evicts connections. If there is no place for a new one, the server makes one:
 * it closes a connection that address_max has refused and that still waits for its end. If there is
 * none, it closes the connection that has waited longest without a request under way: before its
 * first byte (a handshake included), within a head, between requests, or after its last reply.
 * Connections in these states are in one order by time, so a new connection is the last to be
 * closed. A new connection that address_max refuses closes no other connection.
 */
#include "sxe-http-server-private.h"

#include <errno.h>

#include "sxe-cidr.h"

#define LOOKS_MAX 16

/* A constant reply, so it has no Date, which a 503 need not have (RFC 9110, 6.6.1). */
#define NO_PLACE                                  \
    "HTTP/1.1 503 Service Unavailable\r\n"        \
    "Content-Type: text/plain; charset=utf-8\r\n" \
    "Content-Length: 24\r\n"                      \
    "Connection: close\r\n\r\n"                   \
    "503 Service Unavailable\n"

/* Whether a connection in that state may be evicted. While a handler runs, its connection is still
 * in the state of its last event, so the state alone does not tell. After its last reply a
 * connection may be evicted as soon as the kernel has the reply; the connection of a refused client
 * may be evicted at once, because that client may never end the handshake, and the reply waits for
 * that. */
static bool
may_be_evicted(const struct sxe__http_connection *connection, enum sxe__http_state state)
{
    return !connection->is_inside &&
           (connection->phase != SXE__HTTP_OVER ||
            (connection->slot == NULL &&
             (state == SXE__HTTP_REFUSED || !sxe_io_has_output(connection->sxe))));
}

/* The connection that has been longest in that state and may be evicted, or NO_INDEX. Only a few
 * connections are examined. A connection that may not be evicted becomes the youngest of the state,
 * so that the next call does not examine it again. */
static unsigned
find_evictable(const struct sxe_http *http, enum sxe__http_state state)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, http->connections, state);
    for (unsigned looks = 0;
         looks < LOOKS_MAX && (id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX; looks++) {
        if (may_be_evicted(&http->connections[id], state))
            return id;
        sxe_pool_touch(http->connections, id);
    }
    return SXE_POOL_NO_INDEX;
}

/* The connection that has waited longest without a request under way, or NO_INDEX. With
 * config.body_gives_way, a request whose body is awaited is not under way. */
static unsigned
longest_waiting(const struct sxe_http *http)
{
    static const enum sxe__http_state states[] = {SXE__HTTP_FRESH, SXE__HTTP_HEAD, SXE__HTTP_IDLE,
                                                  SXE__HTTP_CLOSING, SXE__HTTP_BODY};
    const size_t number = SXE_COUNT(states) - !http->config.body_gives_way;
    unsigned longest = SXE_POOL_NO_INDEX;

    for (size_t i = 0; i < number; i++) {
        unsigned id = find_evictable(http, states[i]);

        if (id != SXE_POOL_NO_INDEX &&
            (longest == SXE_POOL_NO_INDEX || sxe_pool_get_time(http->connections, id) <
                                                 sxe_pool_get_time(http->connections, longest)))
            longest = id;
    }
    return longest;
}

/* Close a connection to make room. Abort if the client has not read the last reply, or if only its
 * close is awaited: sxe_close would hold the socket for seconds. Abort within a body, too: half of
 * a reply may have been sent. */
static void
evict_connection(struct sxe__http_connection *connection)
{
    SXE *s = connection->sxe;

    SXE_USER_DATA(s) = NULL;
    /* gives back the slot of a head that is not complete */
    sxe__http_forget(connection, -ECONNRESET);
    if (sxe_io_has_output(s) || connection->phase == SXE__HTTP_OVER ||
        connection->phase == SXE__HTTP_READ_BODY)
        sxe_abort(s);
    else
        sxe_close(s);
    sxe__http_free(connection);
}

/* Take a free connection for a client, or evict one. NULL: every connection has a request under
 * way, or the client would be refused anyway. */
static struct sxe__http_connection *
take_connection_place(struct sxe_http *http, const SXE *s)
{
    unsigned id;

    if (sxe_pool_get_count(http->connections, SXE__HTTP_FREE) == 0) {
        id = find_evictable(http, SXE__HTTP_REFUSED);
        if (id == SXE_POOL_NO_INDEX && !sxe__http_is_unwelcome(http, s))
            id = longest_waiting(http);
        if (id == SXE_POOL_NO_INDEX)
            return NULL;
        evict_connection(&http->connections[id]);
    }
    id = sxe_pool_take(http->connections, SXE__HTTP_FREE, SXE__HTTP_FRESH);
    return &http->connections[id];
}

/* Refuse a client. The client may take seconds to close the connection. So the client that was
 * refused REFUSED_MAX clients earlier loses its socket now: otherwise a few such clients would keep
 * the server from accepting. */
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
    struct sxe__http_connection *connection = take_connection_place(http, s);
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
    sxe__http_keep_peer(connection, &peer);
    connection->is_trusted = http->config.trusted != NULL &&
                             sxe_cidr_match(http->config.trusted, (const struct sockaddr *)&peer);
    if (http->config.proxies != NULL &&
        sxe_cidr_match(http->config.proxies, (const struct sockaddr *)&peer))
        connection->phase = SXE__HTTP_READ_PROXY;
    else
        sxe__http_admit(connection, sxe__http_set_client(connection, &peer, length));
}

bool
sxe__http_take_in(struct sxe_http *http, SXE *s, struct sxe__http_bridge *bridge,
                  const struct sockaddr_storage *peer, bool is_https, bool is_trusted)
{
    struct sxe__http_connection *connection = take_connection_place(http, s);

    if (connection == NULL)
        return false;
    SXE_USER_DATA(s) = connection;
    *connection = (struct sxe__http_connection){.http = http,
                                                .sxe = s,
                                                .phase = SXE__HTTP_READ_HEAD,
                                                .requests = http->config.requests_max - 1,
                                                .is_cgi = true,
                                                .is_https = is_https,
                                                .is_trusted = is_trusted,
                                                .bridge = bridge};
    bridge->connection = connection;
    sxe__http_admit(connection,
                    sxe__http_set_client(connection, peer, sxe__http_keep_peer(connection, peer)));
    return true;
}
