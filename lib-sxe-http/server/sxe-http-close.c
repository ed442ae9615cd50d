/* SPDX-License-Identifier: MIT
 *
 * What: how requests and connections end: on_done and on_reply are called, slots and places are
 * given back. Nothing here starts a request.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

static void
summarise_request(struct sxe__http_slot *slot, int result)
{
    struct sxe_http_summary summary = {
        .status = slot->progress == SXE__HTTP_UNANSWERED ? 0 : slot->status,
        .body_length = slot->body_sent,
        .duration_ns = sxe_time_turn_ns() - slot->since,
        .result = result,
    };

    slot->request.http->config.on_reply(&slot->request, &summary);
}

void
sxe__http_tell(struct sxe__http_slot *slot, int result)
{
    struct sxe__http_connection *connection = slot->connection;
    const char *outer = sxe__http_name_lines(slot);

    connection->is_inside = true;
    if (slot->response.on_done != NULL)
        slot->response.on_done(&slot->request, &slot->response,
                               slot->outcome != 0 ? slot->outcome : result);
    if (slot->request.http->config.on_reply != NULL && slot->request.data != NULL)
        summarise_request(slot, result);
    connection->is_inside = false;
    sxe__http_unname_lines(connection->http, outer);
}

void
sxe__http_forget(struct sxe__http_connection *connection, int result)
{
    if (connection->slot == NULL)
        return;
    sxe__http_report(connection->slot, result);
    sxe__http_body_forget(connection->slot);
    sxe__http_slot_reset(connection->slot);
    sxe__http_slot_give(connection);
}

void
sxe__http_over(struct sxe__http_connection *connection)
{
    connection->phase = SXE__HTTP_OVER;
    sxe__http_move(connection, SXE__HTTP_CLOSING);
    sxe_close_lingering(connection->sxe);
}

void
sxe__http_dismiss(struct sxe__http_connection *connection)
{
    connection->phase = SXE__HTTP_OVER;
    sxe__http_move(connection, SXE__HTTP_CLOSING);
    /* If more than 64 KiB are unacknowledged, linger, which resets the connection in the end. After
     * an orderly close the kernel would keep an earlier reply for a client that does not read. */
    if (!connection->http->is_stopping && sxe_io_is_unread(connection->sxe))
        sxe_close_lingering(connection->sxe);
    else
        sxe_close(connection->sxe);
}

void
sxe__http_check_stopped(struct sxe_http *http)
{
    unsigned open =
        http->config.connections - sxe_pool_get_count(http->connections, SXE__HTTP_FREE) -
        sxe_pool_get_count(http->connections, SXE__HTTP_UPGRADED) + http->fastcgi_connections;
    void (*dones[SXE_HTTP_DONES_MAX])(struct sxe_http *);
    unsigned number = http->dones_number;

    if (!http->is_draining || open > 0)
        return;
    http->dones_number = 0;
    /* a copy, because the last function may delete the server */
    memcpy(dones, http->dones, sizeof(dones));
    for (unsigned i = 0; i < number; i++)
        dones[i](http);
}

void
sxe__http_free(struct sxe__http_connection *connection)
{
    struct sxe_http *http = connection->http;

    sxe__http_uncount(connection);
    if (connection->bridge != NULL)
        connection->bridge->connection = NULL;
    connection->bridge = NULL;
    connection->phase = SXE__HTTP_OVER;
    sxe__http_move(connection, SXE__HTTP_FREE);
    sxe__http_check_stopped(http);
}

static void
on_upgraded_gone(struct sxe_io_follower *follower)
{
    sxe__http_free((void *)((char *)follower - offsetof(struct sxe__http_connection, follower)));
}

void
sxe__http_hand_over(struct sxe__http_connection *connection)
{
    /* A forwarding connection counts for its request's client as long as it has a slot. This one is
     * that client's from now on. */
    connection->is_forwarding = false;
    sxe__http_forget(connection, 0);
    connection->phase = SXE__HTTP_OVER;
    connection->follower.on_gone = on_upgraded_gone;
    connection->handle = sxe_handle(connection->sxe);
    sxe_io_follow(connection->sxe, &connection->follower);
    sxe__http_move(connection, SXE__HTTP_UPGRADED);
    sxe__http_check_stopped(connection->http);
}

/* Whether the connection is closed or reset in both directions. */
static bool
is_connection_hung_up(const SXE *s)
{
    struct pollfd fd = {.fd = sxe_fd(s)};

    return poll(&fd, 1, 0) == 1;
}

/* The client closed or half-closed while a handler works or its reply is under way. The client
 * counts as gone, unless half-close is allowed for the request. */
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
    sxe__http_dismiss(connection); /* not abort: replies to earlier requests are still being sent */
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

/* Subtract the bytes that were dropped unsent from the count of sent bytes of the body. The body is
 * last in the output, so dropped bytes are bytes of the body first. */
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
    if (connection->bridge != NULL && sxe_dropped(s) > 0)
        connection->bridge->is_whole = false;
    if (connection->slot != NULL)
        take_dropped(connection->slot, sxe_dropped(s));
    sxe__http_forget(connection, error != 0 ? -error : -ECONNRESET);
    sxe__http_free(connection);
}
