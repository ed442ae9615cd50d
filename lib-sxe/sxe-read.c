/* SPDX-License-Identifier: MIT
 *
 * What: reading. Bytes are read into the loop's buffer and passed to on_read. Only the bytes that
 * the program leaves unread are copied into a borrowed chunk; the next read continues after them.
 *
 * Without a free chunk the bytes are only peeked at (MSG_PEEK): the bytes that the program takes
 * are then received, the rest stays in the kernel, and the socket waits (STARVED) for a chunk. So a
 * whole request is answered even while slow senders hold all chunks, and no byte is lost.
 */
#include "sxe-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-always-internal.h"

void
sxe__drop_unread(SXE *s)
{
    if (s->in.chunk != SXE_NONE)
        sxe_buffer_give_back(&s->in, CONTEXT->chunks);
    /* Make the buffer empty, but let it point to readable memory that NUL bytes precede: that is
     * the contract of SXE_BUF_USED. */
    sxe_buffer_wrap(&s->in, CONTEXT->read_buffer, 0, 0);
}

/* Move the unread bytes from the loop's buffer to a chunk. 0 or -ENOBUFS. */
static int
keep_unread(SXE *s)
{
    struct sxe_buffer kept = SXE_BUFFER_EMPTY;
    int result = sxe_buffer_borrow(&kept, CONTEXT->chunks);

    if (result == 0)
        result = sxe_buffer_add(&kept, sxe_buffer_data(&s->in), sxe_buffer_length(&s->in));
    if (result == 0)
        s->in = kept;
    return result;
}

/* After on_read: keep the bytes that the program left unread, and settle the socket. */
static void
after_read(SXE *s)
{
    if (sxe_buffer_length(&s->in) == 0 || sxe__state(s) >= SXE_STATE_CLOSING) {
        sxe__drop_unread(s);
    } else if (s->in.chunk == SXE_NONE && keep_unread(s) < 0) {
        SXE_WARN_ID(s->id,
                    "closing: no chunk is free to keep its unread bytes; configure more than %u",
                    sxe_chunks_number(CONTEXT->chunks));
        sxe__drop_unread(s);
        sxe__end(s, ENOBUFS);
    }
    sxe__wrote(s);
}

/* Call on_read. While it runs, sxe_pause and sxe_consume leave settling to after_read. on_read sees
 * all unread bytes, so a deferred SXE__READ_AGAIN is no longer needed. */
static void
show_bytes(SXE *s, ssize_t n)
{
    s->flags &= (uint16_t)~SXE__READ_AGAIN;
    s->has_unshown = false;
    CONTEXT->reader = s;
    SXE_PROBE_READABLE(s->id, n);
    s->on_read(s, (int)n);
    CONTEXT->reader = NULL;
}

/* The peer has ended, and the program need not be told. Close after the program's output is sent.
 * But a socket for which sxe_io_read_rest asked has read all that it wants, and its peer may not
 * read any more. */
static void
close_at_end(SXE *s)
{
    if (sxe_io_has_output(s) && !s->reads_rest)
        (void)!sxe__close(s, 0);
    else
        sxe__end(s, 0);
}

/* A read returned n <= 0: the peer's end, no bytes yet, or an error. */
static void
on_nothing_read(SXE *s, int n)
{
    if (n == -EINTR) {
        sxe__settle(s);
        return;
    }
    s->flags &= (uint16_t)~SXE__READABLE;
    if (n == -EAGAIN)
        return;
    if (n < 0 || s->io_shakes) {
        sxe__end(s, -n);
        return;
    }
    /* on_read will be called again for unread bytes: show those first, and the end afterwards. */
    if ((s->flags & SXE__READ_AGAIN) && sxe_buffer_length(&s->in) > 0) {
        s->flags |= SXE__READABLE | SXE__END_NEAR;
        return;
    }
    if (!(s->flags & SXE__HALF_CLOSE)) {
        close_at_end(s);
        return;
    }
    s->flags |= SXE__END_SEEN;
    show_bytes(s, 0);
    after_read(s);
}

/* A read returned fewer bytes than it asked for, so the socket is empty, and epoll will report more
 * bytes. But if the peer's end follows, epoll has reported that already: read on. */
static void
note_read(SXE *s, ssize_t n, uint32_t room)
{
    if (n < (ssize_t)room && !(s->flags & SXE__END_NEAR) && !s->io_more)
        s->flags &= (uint16_t)~SXE__READABLE;
}

static bool
take_peeked(SXE *s, ssize_t length)
{
    ssize_t n;

    do
        n = s->io->read(s, CONTEXT->read_buffer, (size_t)length);
    while (n == -EINTR);
    return n == length;
}

/* Peek, call on_read, and receive the bytes that the program took. The rest stays in the kernel and
 * is read again; if the program took nothing, the socket waits for a chunk. */
static void
read_peeked(SXE *s)
{
    ssize_t n = s->io->peek(s, CONTEXT->read_buffer, CONTEXT->tables->config.chunk_size);
    ssize_t left;

    if (n <= 0) {
        on_nothing_read(s, (int)n);
        return;
    }
    sxe_buffer_wrap(&s->in, CONTEXT->read_buffer, (uint32_t)n, CONTEXT->tables->config.chunk_size);
    show_bytes(s, n);
    left = (ssize_t)sxe_buffer_length(&s->in);
    sxe__drop_unread(s);
    if (left == n)
        s->flags |= SXE__STARVED;
    else if (!take_peeked(s, n - left))
        sxe__end(s, EPIPE);
    else if (left == 0)
        note_read(s, n, CONTEXT->tables->config.chunk_size);
    after_read(s);
}

/* In CLOSING: drop the bytes that the peer still sends. Only a handshake that fails is an error:
 * output still waits for its end. */
static void
discard_input(SXE *s)
{
    ssize_t n = s->io->read(s, CONTEXT->read_buffer, CONTEXT->tables->config.chunk_size);

    /* the timeout of CLOSING checks whether the peer goes on reading */
    if (n == 0 && sxe_io_is_unread(s)) {
        s->flags &= (uint16_t)~SXE__READABLE;
        return;
    }
    if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR)) {
        sxe__end(s, s->io_shakes ? -(int)n : 0);
        return;
    }
    if (n > 0)
        s->flags |= SXE__STARVED;
    note_read(s, n == -EINTR ? CONTEXT->tables->config.chunk_size : n,
              CONTEXT->tables->config.chunk_size);
    if (s->flags & SXE__READABLE)
        sxe__defer(s);
}

/* For a table without peek: decrypted bytes cannot stay in the kernel, so take a chunk before
 * reading. False: no chunk is free, and the socket waits for one. */
static bool
reserve_chunk(SXE *s)
{
    if (sxe_buffer_borrow(&s->in, CONTEXT->chunks) == 0)
        return true;
    s->flags |= SXE__STARVED;
    sxe__settle(s);
    return false;
}

static void
read_datagram(SXE *s)
{
    socklen_t length = sizeof(CONTEXT->tables->sender);
    ssize_t n = recvfrom(s->fd, CONTEXT->read_buffer, SXE__DATAGRAM_MAX, 0,
                         (struct sockaddr *)&CONTEXT->tables->sender, &length);

    /* An error here is an ICMP message about an earlier datagram of ours; the socket is usable. */
    if (n < 0)
        return;
    CONTEXT->tables->sender_length = length;
    CONTEXT->tables->receiver = sxe_handle(s);
    sxe_buffer_wrap(&s->in, CONTEXT->read_buffer, (uint32_t)n, SXE__DATAGRAM_MAX);
    show_bytes(s, n);
    sxe__drop_unread(s);
    sxe__settle(s);
}

/* A paused socket is not read, but if sxe_watch_end asked for it, report the peer's end. */
static void
show_end(SXE *s)
{
    if (s->watches_end && (s->flags & SXE__PAUSED) && (s->flags & SXE__END_NEAR))
        s->on_read(s, -1);
}

void
sxe__readable(SXE *s)
{
    char *into = CONTEXT->read_buffer;
    uint32_t room = CONTEXT->tables->config.chunk_size;
    ssize_t n;

    if (SXE_UNLIKELY(s->kind == SXE__UDP)) {
        read_datagram(s);
        return;
    }
    if (SXE_UNLIKELY(sxe__state(s) == SXE_STATE_CLOSING)) {
        if (s->io_shakes ||
            ((s->flags & SXE__LINGER) && (s->flags & SXE__END_SENT) && sxe__queue_is_empty(s)))
            discard_input(s);
        return;
    }
    if (SXE_UNLIKELY(sxe__is_reading_held(s))) {
        show_end(s);
        return;
    }
    if (SXE_UNLIKELY(s->io->peek == NULL) && s->in.chunk == SXE_NONE && !reserve_chunk(s))
        return;
    if (s->in.chunk != SXE_NONE) {
        into = sxe_buffer_reserve(&s->in, &room);
    } else if (SXE_UNLIKELY(sxe_chunks_free(CONTEXT->chunks) == 0)) {
        read_peeked(s);
        return;
    }
    n = s->io->read(s, into, room);
    if (SXE_UNLIKELY(n <= 0)) {
        if (s->in.chunk != SXE_NONE && sxe_buffer_length(&s->in) == 0)
            sxe__drop_unread(s);
        on_nothing_read(s, (int)n);
        return;
    }
    note_read(s, n, room);
    if (s->in.chunk != SXE_NONE)
        sxe_buffer_commit(&s->in, (uint32_t)n);
    else
        sxe_buffer_wrap(&s->in, into, (uint32_t)n, room);
    /* A handshake is read even if the socket is paused or full. If bytes for the program came
     * together with the end of the handshake, show them later. */
    if (SXE_UNLIKELY(s->flags & (SXE__PAUSED | SXE__FULL))) {
        s->has_unshown = true;
        sxe__wrote(s);
        return;
    }
    show_bytes(s, n);
    after_read(s);
}

/* The peer's end is near, and the program asks for the same unread bytes once more: that could go
 * on for ever. Read on instead, which leads to the end; but a full buffer has no room for that. */
static void
refuse_to_read_again(SXE *s)
{
    s->flags &= (uint16_t)~SXE__READ_AGAIN;
    if (sxe_buffer_room(&s->in) > 0)
        return;
    SXE_DEBUG_ID(s->id, "closing: the peer has ended, and no byte of a full buffer is consumed");
    sxe__end(s, EMSGSIZE);
}

void
sxe__read_again(SXE *s)
{
    const uint32_t unread = sxe_buffer_length(&s->in);
    const unsigned asks = SXE__READ_AGAIN | SXE__END_NEAR;

    if (unread == 0 || (s->flags & (SXE__PAUSED | SXE__FULL)))
        return;
    show_bytes(s, (ssize_t)unread);
    if (sxe_buffer_length(&s->in) == unread && (s->flags & asks) == asks &&
        !(s->flags & (SXE__PAUSED | SXE__FULL)))
        refuse_to_read_again(s);
    after_read(s);
}

void
sxe__feed_starved(void)
{
    while (sxe_chunks_free(CONTEXT->chunks) > 0) {
        unsigned id = sxe_pool_get_oldest(CONTEXT->sockets, SXE_STATE_STARVED);
        SXE *s;

        if (id == SXE_POOL_NO_INDEX)
            return;
        s = sxe__socket(id);
        s->flags &= (uint16_t)~SXE__STARVED;
        if (SXE_NEVER(sxe_buffer_borrow(&s->in, CONTEXT->chunks) < 0))
            return;
        sxe__settle(s);
    }
}

static void
settle_unless_reading(SXE *s)
{
    if (CONTEXT->reader != s)
        sxe__settle(s);
}

void
sxe_consume(SXE *this, unsigned length)
{
    if (length == 0 || this->in.size == 0)
        return;
    sxe_buffer_take(&this->in, length);
    /* The unread bytes begin another message: its timeout starts now. */
    if (sxe__state(this) == SXE_STATE_READING)
        sxe_pool_touch(CONTEXT->sockets, this->id);
    if (CONTEXT->reader == this)
        return;
    if (sxe_buffer_length(&this->in) == 0)
        sxe__drop_unread(this);
    sxe__settle(this);
}

/* Whether bytes that the kernel may have can be read now, outside of the socket's own event. The
 * event itself sees the peer's end. */
static bool
may_read_on(const SXE *s)
{
    const enum sxe_state state = sxe__state(s);

    return (s->flags & (SXE__READABLE | SXE__END_NEAR)) == SXE__READABLE &&
           state >= SXE_STATE_IDLE && state < SXE_STATE_CLOSING && s->io->peek != NULL &&
           !sxe__is_reading_held(s);
}

size_t
sxe_io_take(SXE *this, void *memory, size_t room)
{
    const uint32_t unread = sxe_buffer_length(&this->in);
    const size_t moved = unread < room ? unread : room;
    ssize_t n = 0;

    memcpy(memory, sxe_buffer_data(&this->in), moved);
    sxe_consume(this, (unsigned)moved);
    if (moved < room && may_read_on(this))
        n = this->io->read(this, (char *)memory + moved, room - moved);
    if (n > 0)
        note_read(this, n, (uint32_t)(room - moved));
    else if (n < 0)
        on_nothing_read(this, (int)n);
    sxe__settle(this);
    return moved + (n > 0 ? (size_t)n : 0);
}

/* epoll reports the peer's end only once. If that was before the pause, or before the program
 * called sxe_watch_end, have a deferred call show the end. Not for a closing socket: it is freed at
 * the end of this event. */
static void
show_end_later(SXE *s)
{
    if (s->watches_end && (s->flags & SXE__PAUSED) && (s->flags & SXE__END_NEAR) &&
        sxe__state(s) < SXE_STATE_CLOSING)
        sxe__defer(s);
}

void
sxe_pause(SXE *this)
{
    const bool is_paused = this->flags & SXE__PAUSED;

    this->flags |= SXE__PAUSED;
    if (!is_paused)
        show_end_later(this);
    settle_unless_reading(this);
}

void
sxe_resume(SXE *this, enum sxe_resume how)
{
    this->flags &= (uint16_t)~SXE__PAUSED;
    if ((how == SXE_RESUME_IMMEDIATE || this->has_unshown) && sxe__state(this) >= SXE_STATE_IDLE &&
        sxe__state(this) < SXE_STATE_CLOSING) {
        this->flags |= SXE__READ_AGAIN;
        sxe__defer(this);
    }
    settle_unless_reading(this);
}

void
sxe_set_half_close(SXE *this, bool wanted)
{
    this->flags = (uint16_t)((this->flags & ~SXE__HALF_CLOSE) | (wanted ? SXE__HALF_CLOSE : 0));
}

void
sxe_watch_end(SXE *this, bool wanted)
{
    const bool is_new = wanted && !this->watches_end;

    this->watches_end = wanted;
    if (is_new)
        show_end_later(this);
}
