/* SPDX-License-Identifier: MIT
 *
 * What: opens links: makes a socket, connects it to the server or to the proxy, and has the proxy
 * make a tunnel, if the configuration asks for one. A name is dialled (sxe-dial.h): several
 * attempts to connect race, and the link has no socket until one of them has won. All of it happens
 * in the state CONNECTING, whose timeout bounds it.
 *
 *     name     sxe_dial ---------------> on_dialled -.              .--> sxe__http_link_send
 *     address  sxe_connect -------------> connected -+--> begin ----+
 *     path     sxe_connect_unix --------> connected -'              '--> CONNECT --> enter_tunnel
 */
#include "sxe-http-client-private.h"

#include <errno.h>

#include "sxe-cidr.h"

/* ---- Tunnels ---- */

static int
begin_tunnel(struct sxe__http_link *link)
{
    const struct sxe__http_forward *forward = link->client->forward;

    link->is_tunnelling = true;
    return sxe_write(link->socket, forward->request, forward->length);
}

int
sxe__http_link_enter_tunnel(struct sxe__http_link *link)
{
    const struct sxe_http_client_config *config = &link->client->config;
    int result = config->start_tls(config->tls, link->socket, config->tls_name);

    link->head_used = 0;
    link->is_tunnelling = link->is_at_proxy = false;
    return result < 0 ? result : sxe__http_link_send(link);
}

/* ---- Sockets ---- */

static void
on_link_connected(SXE *s)
{
    struct sxe__http_link *link = s->user_data;
    const struct sxe__http_forward *forward = link->client->forward;
    int result =
        forward != NULL && forward->length > 0 ? begin_tunnel(link) : sxe__http_link_send(link);

    if (result < 0)
        sxe__http_job_fail(link->client, link->job, result);
}

/* Make a socket for this link, which will connect to the address `ip`, or to the path if there is
 * one. NULL: errno is set. */
static SXE *
make_link_socket(struct sxe__http_link *link, const char *ip)
{
    const struct sxe_http_client_config *config = &link->client->config;
    SXE *s = config->path != NULL ? sxe_new_unix(NULL, config->path, on_link_connected,
                                                 sxe__http_client_on_read, sxe__http_link_on_close)
                                  : sxe_new_tcp(NULL, NULL, 0, on_link_connected,
                                                sxe__http_client_on_read, sxe__http_link_on_close);
    int result = 0;

    if (s == NULL)
        return NULL;
    s->user_data = link;
    if (config->public_only && !sxe_cidr_is_public(ip))
        result = -EACCES;
    else if (config->tls != NULL && link->client->forward == NULL)
        result = config->use_tls(config->tls, s, config->tls_name);
    if (result < 0) {
        sxe_close(s);
        errno = -result;
        return NULL;
    }
    if (config->unref)
        sxe_unref(s);
    return s;
}

/* Connect to the address `ip`, or to the path if there is one. 0 or -errno. */
static int
connect_link(struct sxe__http_link *link, const char *ip, uint16_t port)
{
    SXE *s = make_link_socket(link, ip);
    int result;

    if (s == NULL)
        return -errno;
    result = link->client->config.path != NULL ? sxe_connect_unix(s) : sxe_connect(s, ip, port);
    if (result < 0)
        sxe_close(s);
    else
        link->socket = s;
    return result;
}

/* ---- Names ---- */

static SXE *
open_for_dial(struct sxe_dial *dial, const char *ip)
{
    return make_link_socket(dial->user, ip);
}

static void
on_dialled(struct sxe_dial *dial, int result)
{
    struct sxe__http_link *link = dial->user;

    link->is_dialling = false;
    link->look_up_error = dial->look_up_error;
    if (result < 0) {
        sxe__http_link_fail_open(link, result);
        return;
    }
    link->socket = dial->socket;
    on_link_connected(dial->socket);
}

static int
dial_link(struct sxe__http_link *link, const char *host, uint16_t port)
{
    struct sxe_dial *dial = &link->client->dials[sxe__http_link_id(link)];
    int result;

    dial->open = open_for_dial;
    dial->done = on_dialled;
    dial->user = link;
    result = sxe_dial(dial, host, port);
    link->is_dialling = result == 0;
    link->look_up_error = dial->look_up_error;
    return result;
}

/* ---- Links ---- */

int
sxe__http_link_open(struct sxe__http_link *link)
{
    const struct sxe_http_client_config *config = &link->client->config;
    const struct sxe__http_forward *forward = link->client->forward;
    const char *server = config->name != NULL ? config->name : config->ip;
    const char *host = forward != NULL ? forward->host : server;
    const uint16_t port = forward != NULL ? forward->port : config->port;
    int result;

    link->is_reused = link->is_tunnelling = false;
    link->is_at_proxy = forward != NULL;
    link->look_up_error = 0;
    result =
        link->client->dials != NULL ? dial_link(link, host, port) : connect_link(link, host, port);
    if (result == 0)
        sxe__http_link_move(link, SXE__HTTP_LINK_CONNECTING);
    return result;
}
