/* SPDX-License-Identifier: MIT
 *
 * What: tunnels: after a request for WebSocket (RFC 6455) that its address answered 101, bytes pass
 * between the two connections, in either direction, until one of them ends.
 *
 * Only WebSocket: other protocols, HTTP/2 without TLS among them, carry requests that no route of
 * this server would see.
 */
#include "sxe-http-proxy-private.h"

#include "sxe-http-list.h"

/* If one end has not taken this many bytes of output, the other end must wait. */
#define TUNNEL_UNSENT_MAX 8192u

bool
sxe__http_is_websocket(const struct sxe_http_request *request)
{
    struct sxe_http_list list =
        sxe_http_list_of(&request->head, request->data, SXE_HTTP_FIELD_UPGRADE);
    struct sxe_span protocol;
    struct sxe_span other;

    return request->head.upgrade && request->head.minor > 0 &&
           request->head.method == SXE_HTTP_GET && request->head.body == SXE_HTTP_BODY_NONE &&
           sxe_http_list_next(&list, &protocol) && protocol.length == 9 &&
           sxe__http_is_same(protocol.base, "websocket", 9) && !sxe_http_list_next(&list, &other);
}

bool
sxe__http_has_tunnel(const struct sxe_http_upstream *upstream)
{
    return upstream->tunnels != NULL &&
           sxe_pool_get_count(upstream->tunnels, SXE__HTTP_TUNNEL_FREE) > 0;
}

/* ---- Bytes ---- */

static SXE *
other_end(const struct sxe__http_tunnel *tunnel, const SXE *s)
{
    return tunnel->client == s ? tunnel->server : tunnel->client;
}

static void
close_tunnel(struct sxe__http_tunnel *tunnel)
{
    if (tunnel->client != NULL)
        sxe_abort(tunnel->client);
    if (tunnel->server != NULL)
        sxe_abort(tunnel->server);
}

/* The kernel has taken the bytes for s: read from the other end again. */
static void
on_tunnel_room(SXE *s, int result)
{
    SXE *from = other_end(s->user_data, s);

    if (result == 0 && from != NULL)
        sxe_resume(from, SXE_RESUME_WHEN_MORE);
}

static void
on_tunnel_read(SXE *s, int length)
{
    struct sxe__http_tunnel *tunnel = s->user_data;
    SXE *to = other_end(tunnel, s);
    int result;

    SXE_UNUSED_PARAMETER(length);
    sxe_pool_touch(tunnel->upstream->tunnels, (unsigned)(tunnel - tunnel->upstream->tunnels));
    result = sxe_write(to, SXE_BUF(s), (unsigned)SXE_BUF_USED(s));
    sxe_consume(s, (unsigned)SXE_BUF_USED(s));
    if (result == 0 && sxe_unsent(to) > TUNNEL_UNSENT_MAX) {
        result = sxe_send(to, "", 0, on_tunnel_room);
        sxe_pause(s);
    }
    if (result < 0)
        close_tunnel(tunnel);
}

/* One end has closed: the other end gets the bytes that were written for it, and is closed, too. */
static void
on_tunnel_close(SXE *s)
{
    struct sxe__http_tunnel *tunnel = s->user_data;
    struct sxe__http_tunnel *tunnels = tunnel->upstream->tunnels;
    SXE *other = other_end(tunnel, s);

    if (tunnel->client == s)
        tunnel->client = NULL;
    else
        tunnel->server = NULL;
    if (other != NULL) {
        sxe_close(other);
        return;
    }
    tunnel->address->under_way--;
    tunnel->address->tunnels--;
    sxe_pool_move(tunnels, (unsigned)(tunnel - tunnels), SXE__HTTP_TUNNEL_OPEN,
                  SXE__HTTP_TUNNEL_FREE);
}

void
sxe__http_tunnel_on_timeout(void *array, unsigned id, void *user)
{
    SXE_UNUSED_PARAMETER(user);
    sxe_pool_touch(array, id); /* no second timeout; on_close makes the tunnel FREE */
    close_tunnel((struct sxe__http_tunnel *)array + id);
}

bool
sxe__http_tunnel_open(struct sxe_http_upstream *upstream, struct sxe__http_address *address,
                      struct sxe_http_response *response, SXE *server)
{
    struct sxe__http_tunnel *tunnel;
    unsigned id;

    if (!sxe__http_has_tunnel(upstream))
        return false;
    id = sxe_pool_get_oldest(upstream->tunnels, SXE__HTTP_TUNNEL_FREE);
    tunnel = &upstream->tunnels[id];
    *tunnel = (struct sxe__http_tunnel){.upstream = upstream, .address = address, .server = server};
    tunnel->client =
        sxe_http_upgrade(response, "websocket", on_tunnel_read, on_tunnel_close, tunnel);
    if (tunnel->client == NULL)
        return false;
    sxe_pool_move(upstream->tunnels, id, SXE__HTTP_TUNNEL_FREE, SXE__HTTP_TUNNEL_OPEN);
    address->under_way++;
    address->tunnels++;
    server->user_data = tunnel;
    server->on_read = on_tunnel_read;
    server->on_close = on_tunnel_close;
    return true;
}
