/* SPDX-License-Identifier: MIT
 *
 * The states of a socket: taking and giving sockets, moving them, settling, ending, closing.
 */
#include "sxe-private.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* After an orderly close the kernel may keep up to this many bytes of unacknowledged output. */
#define UNREAD_MAX (64 * 1024)

/* Connections are edge triggered: epoll reports each change once. So pausing, back-pressure and
 * waiting to write need no epoll_ctl. SXE__READABLE remembers a reported change. */
static const uint32_t events_of[] = {
    [SXE__CONNECTION] = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
    [SXE__LISTENER] = EPOLLIN,
    [SXE__RESTING] = 0,
};

int
sxe__watch(SXE *s, enum sxe__watched what)
{
    struct epoll_event event = {.events = events_of[what], .data.u64 = sxe_handle(s)};

    if (s->watched == what)
        return 0;
    if (epoll_ctl(CONTEXT->epoll, s->watched == SXE__NOTHING ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, s->fd,
                  &event) < 0)
        return -errno;
    s->watched = (uint8_t)what;
    return 0;
}

void
sxe__move(SXE *s, enum sxe_state to)
{
    if (CONTEXT->staged == s)
        /* the new state may forbid writing: sxe_reserve must check again */
        CONTEXT->stage_limit = 0;
    sxe_pool_move(CONTEXT->sockets, s->id, s->state, to);
    s->state = (uint8_t)to;
}

SXE *
sxe__take(uint8_t kind)
{
    unsigned id = sxe_pool_take(CONTEXT->sockets, SXE_STATE_FREE, SXE_STATE_NEW);
    SXE *s;

    if (id == SXE_POOL_NO_INDEX)
        return NULL;
    s = sxe__socket(id);
    memset(s, 0, CONTEXT->stride);
    s->id = id;
    s->fd = -1;
    s->kind = kind;
    s->state = SXE_STATE_NEW;
    s->io = &sxe__io_socket;
    sxe__loop_hold();
    return s;
}

void
sxe_unref(SXE *this)
{
    if (this == NULL || this->is_unref || sxe__state(this) == SXE_STATE_FREE ||
        sxe__state(this) >= SXE_STATE_CLOSING)
        return;
    this->is_unref = true;
    CONTEXT->unref++;
    sxe__loop_release();
}

static bool
kernel_has_bytes(const SXE *s, uint16_t what)
{
    int bytes = 0;

    return ioctl(s->fd, what, &bytes) < 0 || bytes > 0;
}

bool
sxe_is_lingering(const SXE *this)
{
    return sxe__state(this) == SXE_STATE_CLOSING && (this->flags & SXE__LINGER) &&
           (this->flags & SXE__END_SENT) && !(this->flags & SXE__STARVED) &&
           sxe__queue_is_empty(this) && !kernel_has_bytes(this, SIOCOUTQ) &&
           !kernel_has_bytes(this, FIONREAD);
}

unsigned
sxe_number_waited_for(enum sxe_state state)
{
    unsigned number = 0;

    for (unsigned id = 0; id < CONTEXT->number; id++) {
        const SXE *s = sxe__socket(id);

        if (sxe__state(s) == state && !s->is_unref && !sxe_is_lingering(s))
            number++;
    }
    return number;
}

void
sxe__ref(SXE *s)
{
    if (!s->is_unref)
        return;
    s->is_unref = false;
    CONTEXT->unref--;
    sxe__loop_hold();
}

void
sxe__give(SXE *s)
{
    sxe__ref(s);
    sxe__move(s, SXE_STATE_FREE);
    sxe__loop_release();
}

void
sxe__open(SXE *s)
{
    memset(&s->u, 0, sizeof(s->u));
    s->u.open.out_head = SXE_NONE;
    s->u.open.out_tail = SXE_NONE;
    s->in.chunk = SXE_NONE;
    sxe__drop_unread(s);
}

void
sxe__end(SXE *s, int error)
{
    if (sxe__state(s) == SXE_STATE_CLOSED)
        return;
    if (sxe__state(s) == SXE_STATE_NEW)
        sxe__open(s);
    /* An orderly end keeps the error that sxe__fail_writing has set. */
    if (error != 0 || !(s->flags & SXE__END_SENT))
        s->error = (int16_t)error;
    sxe__undefer(s);
    s->u.open.lost = sxe__drop_written(s);
    sxe__ref(s);
    SXE_PROBE_CLOSED(s->id, error);
    sxe__move(s, SXE_STATE_CLOSED);
}

void
sxe_io_fail(SXE *this, int error)
{
    sxe__end(this, error);
}

bool
sxe_io_is_end_near(const SXE *this)
{
    return this->flags & SXE__END_NEAR;
}

bool
sxe_io_is_unread(const SXE *this)
{
    int bytes = 0;

    return this->kind == SXE__TCP && ioctl(this->fd, SIOCOUTQ, &bytes) == 0 && bytes > UNREAD_MAX;
}

void
sxe__reset(SXE *s, int error)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (s->kind == SXE__TCP && s->fd >= 0)
        (void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    sxe__end(s, error);
}

void
sxe__note_lost(SXE *s, size_t bytes)
{
    if (sxe__state(s) == SXE_STATE_CLOSED)
        s->u.open.lost += bytes;
}

SXE_RETURN
sxe__close(SXE *s, unsigned flag)
{
    enum sxe_state state;

    if (s == NULL)
        return -EALREADY;
    state = sxe__state(s);
    if (state == SXE_STATE_FREE || state >= SXE_STATE_CLOSING)
        return -EALREADY;
    if (state < SXE_STATE_IDLE) {
        sxe__end(s, 0);
        return 0;
    }
    s->flags &= (uint16_t)~SXE__READ_AGAIN;
    s->flags |= (uint16_t)flag;
    s->u.open.deferred = NULL;
    sxe__ref(s);
    sxe__move(s, SXE_STATE_CLOSING);
    sxe__wrote(s);
    return 0;
}

int
sxe__io_end(SXE *s)
{
    int result = SXE_LIKELY(s->io->finish == NULL) ? 0 : s->io->finish(s);

    return result < 0 ? result : s->io->end(s);
}

void
sxe__drained(SXE *s)
{
    int result = 0;

    if (s->io_shakes) /* no byte was written, so none can be lost */
        s->flags &= (uint16_t)~SXE__LINGER;
    if (!(s->flags & SXE__LINGER) && s->io->finish != NULL) {
        result = s->io->finish(s);
        s->io_lingers = result > 0;
        if (s->io_lingers)
            s->flags |= SXE__LINGER;
    }
    if (SXE_LIKELY((s->flags & SXE__LINGER) && !(s->flags & SXE__END_SENT)))
        result = sxe__io_end(s);
    if (result == -EAGAIN)
        return; /* this function is called again when the kernel takes more */
    if (!(s->flags & SXE__LINGER) || result < 0) {
        sxe__end(s, -result);
        return;
    }
    /* If epoll has reported bytes that are still unread, read and drop them. */
    s->flags |= SXE__END_SENT | SXE__READABLE;
    sxe__defer(s);
}

void
sxe__fail_writing(SXE *s, int error)
{
    if (!s->reads_rest || (error != EPIPE && error != ECONNRESET) ||
        sxe__state(s) >= SXE_STATE_CLOSING) {
        sxe__reset(s, error);
        return;
    }
    s->reads_rest = false;
    s->error = (int16_t)error;
    s->flags |= SXE__END_SENT | SXE__END_NEAR | SXE__READABLE;
    sxe__unstage(s);
    (void)sxe__queue_drop(s, -error);
    sxe__settle(s);
}

void
sxe_io_read_rest(SXE *this, bool wanted)
{
    this->reads_rest = wanted;
}

/* The state of a socket between connecting and closing follows from the bytes that it holds. */
static enum sxe_state
state_by_contents(const SXE *s)
{
    if ((s->flags & (SXE__STARVED | SXE__PAUSED | SXE__FULL)) == SXE__STARVED)
        return SXE_STATE_STARVED;
    if (!sxe__queue_is_empty(s))
        return SXE_STATE_WRITING;
    if (s->flags & SXE__PAUSED)
        return SXE_STATE_HANDLING;
    return sxe_buffer_length(&s->in) > 0 ? SXE_STATE_READING : SXE_STATE_IDLE;
}

/* Back-pressure: reading stops above output_pause and goes on below half of it, so that it does not
 * stop and start at every write. */
static void
update_back_pressure(SXE *s)
{
    if (s->u.open.out_copied > CONTEXT->tables->config.output_pause) {
        s->flags |= SXE__FULL;
    } else if ((s->flags & SXE__FULL) &&
               s->u.open.out_copied <= CONTEXT->tables->config.output_pause / 2) {
        s->flags = (uint16_t)((s->flags & ~SXE__FULL) | SXE__READ_AGAIN);
        sxe__defer(s);
    }
}

bool
sxe__is_reading_held(const SXE *s)
{
    const unsigned held = SXE__END_SEEN | SXE__STARVED;

    if (s->flags & (s->io_shakes ? held : held | SXE__PAUSED | SXE__FULL))
        return true;
    return s->in.chunk != SXE_NONE && sxe_buffer_room(&s->in) == 0;
}

void
sxe__watch_or_end(SXE *s, enum sxe__watched what)
{
    int result = sxe__watch(s, what);

    if (SXE_UNLIKELY(result < 0)) {
        SXE_WARN_ID(s->id, "closing: epoll_ctl refused it: %s", strerror(-result));
        sxe__end(s, -result);
    }
}

void
sxe__settle(SXE *s)
{
    enum sxe_state before = sxe__state(s);
    enum sxe_state after;

    if (before == SXE_STATE_LISTENING && s->kind == SXE__UDP)
        sxe__watch_or_end(s, s->flags & SXE__PAUSED ? SXE__RESTING : SXE__LISTENER);
    if (before < SXE_STATE_IDLE || before > SXE_STATE_STARVED)
        return;
    update_back_pressure(s);
    after = state_by_contents(s);
    if (after != before)
        sxe__move(s, after);
    else if (after == SXE_STATE_IDLE && CONTEXT->orders_idle)
        sxe_pool_touch(CONTEXT->sockets, s->id);
    if (SXE_UNLIKELY((s->flags & SXE__READABLE) && !sxe__is_reading_held(s)))
        sxe__defer(s);
}

/* Call on_close while the program can still ask the socket's address and error; then free it. */
static void
release_socket(SXE *s)
{
    CONTEXT->tables->dropped =
        s->u.open.lost + sxe__queue_drop(s, s->error != 0 ? -s->error : -ECONNRESET);
    CONTEXT->released = s;
    if ((s->flags & SXE__PEER) && s->on_close != NULL)
        s->on_close(s);
    CONTEXT->released = NULL;
    if (SXE_UNLIKELY(s->follower != NULL))
        s->follower->on_gone(s->follower);
    sxe__drop_unread(s);
    sxe__socket_close(s);
    sxe__give(s);
    if (CONTEXT->is_accept_stopped)
        sxe__accept_start();
}

void
sxe__finish(void)
{
    bool is_closed;

    do {
        if (CONTEXT->staged != NULL)
            sxe__flush_staged(CONTEXT->staged);
        is_closed = sxe_pool_get_count(CONTEXT->sockets, SXE_STATE_CLOSED) > 0;
        if (SXE_UNLIKELY(is_closed))
            release_socket(sxe__socket(sxe_pool_get_oldest(CONTEXT->sockets, SXE_STATE_CLOSED)));
    } while (SXE_UNLIKELY(is_closed || CONTEXT->staged != NULL));
    if (SXE_UNLIKELY(sxe_pool_get_count(CONTEXT->sockets, SXE_STATE_STARVED) > 0))
        sxe__feed_starved();
}
