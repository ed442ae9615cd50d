/* SPDX-License-Identifier: MIT
 *
 * What: accepting connections, and resting while no socket or no descriptor is free, or while
 * another process shall have the next connection.
 */
#include "sxe-private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static void
adopt_accepted(SXE *s, const SXE *listener, int fd)
{
    s->fd = fd;
    s->watched = 0;
    s->flags &= SXE__HALF_CLOSE | SXE__DEFERRED;
    sxe__watch_or_end(s, SXE__CONNECTION);
    if (sxe__state(s) == SXE_STATE_CLOSED)
        return;
    s->flags |= SXE__PEER;
    CONTEXT->tables->newest = sxe_handle(s);
    SXE_PROBE_ACCEPT(s->id, fd, listener->id);
    sxe__report_connected(s, listener);
}

/* sxe_listen_oneshot: the listener itself becomes the connection. */
static void
become_connection(SXE *listener, int fd)
{
    sxe__socket_close(listener);
    adopt_accepted(listener, listener, fd);
}

static void
welcome_peer(const SXE *listener, int fd)
{
    SXE *s = sxe__take(listener->kind);

    s->on_connected = listener->on_connected;
    s->on_read = listener->on_read;
    s->on_close = listener->on_close;
    s->user_data = listener->user_data;
    s->flags = listener->flags & SXE__HALF_CLOSE;
    s->watches_end = listener->watches_end;
    s->io = listener->io;
    sxe__open(s);
    adopt_accepted(s, listener, fd);
}

/* A connection waits, but no socket is free: close the one that is idle longest, or stop accepting.
 */
static void
free_socket_or_rest(void)
{
    unsigned oldest = sxe_pool_get_oldest(CONTEXT->sockets, SXE_STATE_IDLE);

    if (CONTEXT->tables->config.reap_idle && oldest != SXE_POOL_NO_INDEX) {
        SXE *s = sxe__socket(oldest);

        if (sxe_io_is_unread(s))
            sxe__reset(s, ETIMEDOUT);
        else
            sxe__end(s, ETIMEDOUT);
        return;
    }
    sxe__accept_stop();
    /* No event tells the listeners that a socket became idle, so look again after a while. */
    if (CONTEXT->tables->config.reap_idle)
        ev_timer_start(CONTEXT->loop, &CONTEXT->tables->accept_again);
}

/* accept4(2) failed, for example because descriptors ran out: stop accepting for a while. Only the
 * first of several equal errors is logged. */
static void
rest_after(const SXE *listener, int error)
{
    if (error != CONTEXT->accept_error)
        SXE_WARN_ID(listener->id, "not accepting for now: %s; tries again every %d ms",
                    strerror(error), (int)(1000 * SXE__RETRY_S));
    CONTEXT->accept_error = error;
    CONTEXT->accept_fails++;
    sxe__accept_stop();
    ev_timer_start(CONTEXT->loop, &CONTEXT->tables->accept_again);
}

/* Called when accept4(2) has succeeded, or found no connection: the errors before it are over. */
static void
end_of_rest(const SXE *listener)
{
    if (SXE_LIKELY(CONTEXT->accept_error == 0))
        return;
    SXE_WARN_ID(listener->id, "accepting again: %u tries had failed: %s", CONTEXT->accept_fails,
                strerror(CONTEXT->accept_error));
    CONTEXT->accept_error = 0;
    CONTEXT->accept_fails = 0;
}

/* Errors of accept4(2) are of three kinds: one connection is gone already, the system has no room
 * now, or this program is wrong. Only after the first kind accepting can go on at once. */
static bool
can_go_on_after(const SXE *listener, int error)
{
    switch (error) {
    case EAGAIN:
        return false;
    case ECONNABORTED:
    case EINTR:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return true;
    default:
        rest_after(listener, error);
        return false;
    }
}

static void
forget_left(void)
{
    CONTEXT->accept_trust = 1;
    CONTEXT->accept_looks = 0;
}

/* Whether to leave this connection to other processes, because may_accept of the configuration says
 * so. If none of them accepts it soon, sxe__accept_left does. */
static bool
is_for_others(void)
{
    const struct sxe_listeners *kept = CONTEXT->tables->config.listeners;

    if (SXE_LIKELY(kept == NULL || kept->may_accept == NULL))
        return false;
    if (kept->may_accept()) {
        forget_left();
        return false;
    }
    if (CONTEXT->accept_unasked > 0) {
        CONTEXT->accept_unasked--;
        return false;
    }
    sxe__accept_stop();
    ev_timer_start(CONTEXT->loop, &CONTEXT->tables->accept_left);
    return true;
}

/* Accept one connection. Returns whether to go on with the next one. */
static bool
accept_one_connection(SXE *listener)
{
    bool oneshot = (listener->flags & SXE__ONESHOT) != 0;
    struct sxe__tables *tables = CONTEXT->tables;
    int fd;

    tables->newest = 0;
    tables->newest_peer_length = sizeof(tables->newest_peer);
    fd = accept4(listener->fd, (struct sockaddr *)&tables->newest_peer, &tables->newest_peer_length,
                 SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0 && !can_go_on_after(listener, errno))
        return false;
    end_of_rest(listener);
    if (fd >= 0 && oneshot)
        become_connection(listener, fd);
    else if (fd >= 0)
        welcome_peer(listener, fd);
    return true;
}

void
sxe_io_accept_rest(SXE *this)
{
    for (uint32_t i = 0; i < CONTEXT->tables->config.backlog; i++) {
        if (sxe__state(this) != SXE_STATE_LISTENING || sxe_number_in_state(SXE_STATE_FREE) == 0 ||
            !accept_one_connection(this))
            return;
    }
}

void
sxe__acceptable(SXE *listener)
{
    for (unsigned i = 0; i < CONTEXT->tables->config.accept_batch; i++) {
        bool oneshot = (listener->flags & SXE__ONESHOT) != 0;

        if (sxe__state(listener) != SXE_STATE_LISTENING)
            return;
        if (!oneshot && sxe_number_in_state(SXE_STATE_FREE) == 0) {
            /* If no socket is free for the first connection, one surely waits. After that, perhaps
             * no other connection waits; if one does, epoll reports it with the next event. */
            if (i == 0)
                free_socket_or_rest();
            return;
        }
        if (is_for_others() || !accept_one_connection(listener))
            return;
    }
}

void
sxe_stop_listening(void)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    if (CONTEXT->sockets == NULL)
        return;
    sxe_pool_walker_construct(&walker, CONTEXT->sockets, SXE_STATE_LISTENING);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        if (sxe__socket(id)->kind != SXE__UDP)
            sxe__end(sxe__socket(id), 0);
    }
}

static void
watch_listeners(enum sxe__watched what)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, CONTEXT->sockets, SXE_STATE_LISTENING);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        if (sxe__socket(id)->kind != SXE__UDP)
            sxe__watch_or_end(sxe__socket(id), what);
    }
}

void
sxe__accept_stop(void)
{
    CONTEXT->is_accept_stopped = true;
    watch_listeners(SXE__RESTING);
}

void
sxe__accept_start(void)
{
    CONTEXT->is_accept_stopped = false;
    ev_timer_stop(CONTEXT->loop, &CONTEXT->tables->accept_again);
    ev_timer_stop(CONTEXT->loop, &CONTEXT->tables->accept_left);
    watch_listeners(SXE__LISTENER);
}

/* Whether a connection waits at any listener. */
static bool
is_any_waiting(void)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    sxe_pool_walker_construct(&walker, CONTEXT->sockets, SXE_STATE_LISTENING);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        struct pollfd fd = {.fd = sxe__socket(id)->fd, .events = POLLIN};

        if (sxe__socket(id)->kind != SXE__UDP && poll(&fd, 1, 0) != 0)
            return true;
    }
    return false;
}

static void
accept_without_asking(void)
{
    SXE_POOL_WALKER walker;
    unsigned id;

    CONTEXT->accept_unasked = CONTEXT->accept_trust;
    if (CONTEXT->accept_trust < CONTEXT->tables->config.accept_batch)
        CONTEXT->accept_trust *= 2;
    sxe_pool_walker_construct(&walker, CONTEXT->sockets, SXE_STATE_LISTENING);
    while ((id = sxe_pool_walker_step(&walker)) != SXE_POOL_NO_INDEX) {
        if (sxe__socket(id)->kind != SXE__UDP)
            sxe__acceptable(sxe__socket(id));
    }
    CONTEXT->accept_unasked = 0;
}

/* Look whether connections that this process left to others still wait. If so, and they wait long,
 * the other processes are too busy, or hang: accept some, twice as many as the last time. Others
 * that accepted them are awake, and get their full time with the next connections. */
void
sxe__accept_left(void)
{
    if (!is_any_waiting()) {
        forget_left();
        sxe__accept_start();
    } else if (CONTEXT->tables->config.listeners->may_accept() ||
               ++CONTEXT->accept_looks >= SXE__LEAVE_LOOKS) {
        sxe__accept_start();
        accept_without_asking();
    }
}
