/* SPDX-License-Identifier: MIT
 *
 * What: connections come and go. The last free one is not given away while another is idle: that
 * one is closed, so there is always room for the next client, whatever the others do not do.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "sxe-cidr.h"
#include "sxe-proxy.h"

static void
close_oldest_idle(struct sxe_http *http)
{
    unsigned id = sxe_pool_get_oldest_element_index(http->connections, SXE__HTTP_IDLE);

    if (id == SXE_POOL_NO_INDEX)
        return;
    sxe_pool_set_indexed_element_state(http->connections, id, SXE__HTTP_IDLE, SXE__HTTP_SENDING);
    http->connections[id].phase = SXE__HTTP_OVER;
    sxe_close(http->connections[id].sxe);
}

/* Whether its address may have one more. */
static bool
is_welcome(struct sxe__http_connection *connection, const struct sockaddr_storage *address,
           socklen_t length)
{
    struct sxe_http *http = connection->http;

    connection->address = sxe__http_address_key(address, length);
    if (connection->address == 0 || http->addresses == NULL)
        return true;
    return sxe__http_addresses_add(http->addresses, connection->address) <=
           http->config.address_max;
}

static void
turn_away(struct sxe__http_connection *connection)
{
    sxe__http_slot_take(connection);
    sxe__http_reject(connection, 503);
}

static void
accept_from(struct sxe__http_connection *connection, const struct sockaddr_storage *address,
            socklen_t length)
{
    connection->phase = SXE__HTTP_READ_HEAD;
    if (!is_welcome(connection, address, length))
        turn_away(connection);
}

static socklen_t
address_length(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return sizeof(struct sockaddr_in);
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
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
        connection->phase = SXE__HTTP_OVER;
        sxe_abort(connection->sxe);
        return length;
    }
    connection->peer_length = (uint8_t)address_length(&proxy.source);
    memcpy(connection->peer, &proxy.source, connection->peer_length);
    accept_from(connection, &proxy.source, connection->peer_length);
    return (size_t)n;
}

void
sxe__http_on_connected(SXE *s)
{
    struct sxe_http *http = SXE_USER_DATA(s);
    unsigned id =
        sxe_pool_set_oldest_element_state(http->connections, SXE__HTTP_FREE, SXE__HTTP_HEAD);
    struct sxe__http_connection *connection;
    struct sockaddr_storage peer;
    socklen_t length;

    if (id == SXE_POOL_NO_INDEX) { /* the program gave sockets of its own plan away */
        SXE_USER_DATA(s) = NULL;
        sxe_abort(s);
        return;
    }
    connection = &http->connections[id];
    *connection =
        (struct sxe__http_connection){.http = http, .sxe = s, .phase = SXE__HTTP_READ_HEAD};
    SXE_USER_DATA(s) = connection;
    if (sxe_pool_get_number_in_state(http->connections, SXE__HTTP_FREE) == 0)
        close_oldest_idle(http);
    if (http->addresses == NULL && http->config.proxies == NULL)
        return;
    length = sxe_get_peer(s, &peer);
    if (http->config.proxies != NULL &&
        sxe_cidr_match(http->config.proxies, (const struct sockaddr *)&peer))
        connection->phase = SXE__HTTP_READ_PROXY;
    else
        accept_from(connection, &peer, length);
}

void
sxe__http_free(struct sxe__http_connection *connection)
{
    struct sxe_http *http = connection->http;
    unsigned id = (unsigned)(connection - http->connections);

    if (connection->slot != NULL)
        sxe__http_slot_give(connection);
    if (connection->address != 0 && http->addresses != NULL)
        sxe__http_addresses_remove(http->addresses, connection->address);
    connection->phase = SXE__HTTP_OVER;
    sxe_pool_set_indexed_element_state(
        http->connections, id, sxe_pool_index_to_state(http->connections, id), SXE__HTTP_FREE);
    sxe__http_check_stopped(http);
}

void
sxe__http_on_close(SXE *s)
{
    struct sxe__http_connection *connection = SXE_USER_DATA(s);
    int error = sxe_error(s);

    if (connection == NULL)
        return;
    sxe__http_forget(connection, error != 0 ? -error : -ECONNRESET);
    sxe__http_free(connection);
}
