/* SPDX-License-Identifier: MIT
 *
 * What: the only place where a socket's state changes, and the two ways in which the worker ends a
 * connection. After such an end on_socket_close of worker-socket.c is called.
 */
#include "worker-private.h"

static enum load_socket_state
state_of_socket(const struct load__socket *socket)
{
    if (socket->left == 0 && socket->in_flight + socket->again == 0 && !socket->is_held)
        return socket->was_opened ? LOAD_SOCKET_DONE : LOAD_SOCKET_UNOPENED;
    if (socket->failure != LOAD_ENDS)
        return LOAD_SOCKET_LOST;
    if (socket->sxe == NULL)
        return socket->was_opened ? LOAD_SOCKET_LOST : LOAD_SOCKET_UNOPENED;
    if (!socket->is_connected)
        return LOAD_SOCKET_CONNECTING;
    if (socket->in_flight == 0)
        return socket->is_held || socket->thinking > 0 ? LOAD_SOCKET_THINKING : LOAD_SOCKET_IDLE;
    return socket->in_flight < socket->worker->depth && socket->left > 0 && !socket->is_held &&
                   !socket->is_ending
               ? LOAD_SOCKET_PARTLY
               : LOAD_SOCKET_BUSY;
}

void
load__settle(struct load__socket *socket)
{
    enum load_socket_state after = state_of_socket(socket);

    /* A socket that stays PARTLY becomes the youngest socket in this state, so that sockets take
     * turns. */
    if (after == socket->state && after != LOAD_SOCKET_PARTLY)
        return;
    sxe_pool_move(socket->worker->sockets, load__id(socket), socket->state, after);
    socket->state = (uint8_t)after;
}

void
load__fail(struct load__socket *socket, enum load_end end, int error)
{
    socket->failure = (uint8_t)end;
    if (end == LOAD_END_OTHER)
        load__note_error(socket->worker, error);
    load__settle(socket);
    sxe_abort(socket->sxe);
}

/* Close the connection. If it has unsent output, reset it instead, because a server that does not
 * read would delay the close. */
void
load__close(struct load__socket *socket)
{
    if (socket->worker->plan->is_aborting || sxe_get_state(socket->sxe) == SXE_STATE_WRITING) {
        load__fail(socket, LOAD_END_CLOSED_EARLY, 0);
        return;
    }
    socket->failure = LOAD_END_CLOSED_EARLY;
    load__settle(socket);
    (void)sxe_close(socket->sxe);
}
