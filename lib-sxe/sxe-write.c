/* SPDX-License-Identifier: MIT
 *
 * What: writing to a connection. While one socket's event runs, its output is staged in the loop's
 * own buffer, and goes out by one write at the end. Only bytes that the kernel does not take then,
 * or that follow a queue, go into the socket's queue. If several events came together, staged
 * output is held until a few more events are handled.
 *
 *     sxe_write --> staged (one socket at a time) --end of event----> kernel
 *                     |  |                                         ^  ^
 *                     |  '---> held (a few) ---end of the batch----'  | writable
 *                     |  what is left                                 |
 *                     '------> queue (any number of sockets) ---------'
 *
 * The stage has pieces of the loop's buffer and, between them, memory that the program lends; the
 * last piece grows until something else follows it.
 *
 * Invariant: a socket whose bytes are staged has an empty queue. CONTEXT->staged may also name a
 * socket that has only a queue: then the end of the event tries to write that.
 */
#include "sxe-private.h"

#include <errno.h>
#include <string.h>

/* Lent memory of up to this length is copied: copying costs less than one more piece of the
 * vector. */
#define COPY_MAX 1024

int
sxe__write_failed(int error)
{
    if (error == -EAGAIN)
        return 0;
    return error == -EINTR || error == -ENOBUFS || error == -ENOMEM ? 1 : error;
}

void
sxe__write_more(SXE *s)
{
    s->flags |= SXE__WRITE_MORE;
    sxe__defer(s);
}

/* While no output is held, the stage begins at the beginning of the buffer. */
static void
begin_stage(void)
{
    CONTEXT->stage = CONTEXT->stages;
    CONTEXT->vector = CONTEXT->tables->vectors;
}

void
sxe__unstage(SXE *s)
{
    if (CONTEXT->staged != s)
        return;
    CONTEXT->staged = NULL;
    if (CONTEXT->held_end == 0)
        begin_stage();
    CONTEXT->vector_used = 0;
    CONTEXT->stage_open = 0;
    CONTEXT->stage_used = 0;
    CONTEXT->stage_limit = 0;
    CONTEXT->reserved = 0;
    CONTEXT->lent_bytes = 0;
}

static bool
is_anything_staged(void)
{
    return CONTEXT->stage_used > 0 || CONTEXT->vector_used > 0;
}

/* The last piece is complete: add it to vector. vector has a place for it, see sxe_write_static. */
static void
close_piece(void)
{
    uint32_t length = CONTEXT->stage_used - CONTEXT->stage_open;

    if (length == 0)
        return;
    CONTEXT->vector[CONTEXT->vector_used++] =
        (struct iovec){CONTEXT->stage + CONTEXT->stage_open, length};
    CONTEXT->stage_open = CONTEXT->stage_used;
}

static bool
is_in_stage(const void *base)
{
    const char *byte = base;

    return byte >= CONTEXT->stages && byte < CONTEXT->stages + SXE__HELD_SIZE + SXE__STAGE_SIZE;
}

/* Put the bytes after the first `skip` ones into the queue. */
static int
queue_vector(SXE *s, const struct iovec *vector, unsigned count, size_t skip)
{
    for (unsigned i = 0; i < count; i++) {
        const struct iovec *v = &vector[i];
        size_t part = skip < v->iov_len ? skip : v->iov_len;
        const char *from = (const char *)v->iov_base + part;
        int result;

        skip -= part;
        if (part == v->iov_len)
            continue;
        result = is_in_stage(v->iov_base) ? sxe__queue_bytes(s, from, v->iov_len - part)
                                          : sxe__queue_borrowed(s, from, v->iov_len - part, NULL);
        if (result < 0)
            return result;
    }
    return 0;
}

/* Offer the bytes to the kernel, and queue those that it does not take. If they can be neither sent
 * nor kept, end the socket: its peer does not read and there is no memory. */
static int
write_vector(SXE *s, const struct iovec *vector, unsigned count, size_t bytes)
{
    ssize_t sent = s->io->write(s, vector, (int)count, false);
    size_t taken;
    int result;

    if (SXE_LIKELY(sent == (ssize_t)bytes)) {
        SXE_PROBE_FLUSHED(s->id);
        return 0;
    }
    /* A kernel that took only a part may still have room: try again, because epoll reports room
     * only after EAGAIN. */
    result = sent < 0 ? sxe__write_failed((int)sent) : 1;
    if (result < 0) {
        sxe__fail_writing(s, -result);
        sxe__note_lost(s, bytes);
        return result;
    }
    if (result > 0)
        sxe__write_more(s);
    taken = sent < 0 ? 0 : (size_t)sent;
    result = queue_vector(s, vector, count, taken);
    if (result < 0) {
        SXE_WARN_ID(s->id,
                    "closing: its peer does not read, and no chunk is free to keep the output; "
                    "configure more than %u chunks",
                    sxe_chunks_number(CONTEXT->chunks));
        sxe__reset(s, ENOBUFS);
        sxe__note_lost(s, bytes - taken - sxe__queue_drop(s, result));
    } else if (sent == -EAGAIN) {
        (void)sxe__queue_has_peer_read(s);
    }
    return result;
}

static int
write_staged(SXE *s)
{
    const struct iovec *vector = CONTEXT->vector;
    size_t bytes = CONTEXT->stage_used + CONTEXT->lent_bytes;
    unsigned count;

    close_piece();
    count = CONTEXT->vector_used;
    sxe__unstage(s);
    return write_vector(s, vector, count, bytes);
}

void
sxe__wrote(SXE *s)
{
    /* The staged output is sent at the end of this event, or of its batch; sxe__settle runs
     * then. */
    if (CONTEXT->staged == s || (s->flags & SXE__HELD))
        return;
    if (sxe__state(s) != SXE_STATE_CLOSING)
        sxe__settle(s);
    else if (sxe__queue_is_empty(s))
        sxe__drained(s);
}

void
sxe_io_write_again(SXE *this)
{
    sxe__write_more(this);
}

/* ---- Output that is held ----
 *
 * The output of events that came together is sent together. So the kernel's code for receiving, and
 * then its code for sending, stays in the processor's caches for a while. */

/* The next held output. NULL: there is none, and staging begins again at the buffer's beginning. */
static const struct sxe__held *
take_held(void)
{
    if (CONTEXT->held_first < CONTEXT->held_end)
        return &CONTEXT->tables->held[CONTEXT->held_first++];
    CONTEXT->held_first = CONTEXT->held_end = 0;
    if (CONTEXT->staged == NULL)
        begin_stage();
    return NULL;
}

/* Send all held output. may_call: false inside a call by the program, in which on_sent must not be
 * called. Then queues are flushed later, because flushing a queue calls on_sent. */
static void
send_held(bool may_call)
{
    const struct sxe__held *held;

    while ((held = take_held()) != NULL) {
        SXE *s = held->socket;

        if (s == NULL)
            continue;
        s->flags &= (uint16_t)~SXE__HELD;
        if (SXE_UNLIKELY(held->vector_used == 0)) {
            if (may_call)
                sxe__writable(s);
            else
                sxe__write_more(s);
        } else if (SXE_LIKELY(write_vector(s, held->vector, held->vector_used, held->bytes) == 0)) {
            sxe__wrote(s);
        }
    }
}

void
sxe__send_held(void)
{
    send_held(true);
    sxe__finish();
}

void
sxe__hold_staged(void)
{
    SXE *s = CONTEXT->staged;
    size_t copied = (size_t)(CONTEXT->stage - CONTEXT->stages) + CONTEXT->stage_used;

    if (s == NULL || CONTEXT->held_max < 2)
        return;
    close_piece();
    if (copied > SXE__HELD_SIZE ||
        CONTEXT->vector + CONTEXT->vector_used > CONTEXT->tables->vectors + SXE__HELD_VECTOR) {
        send_held(true);
        return;
    }
    CONTEXT->tables->held[CONTEXT->held_end++] =
        (struct sxe__held){.socket = s,
                           .vector = CONTEXT->vector,
                           .vector_used = CONTEXT->vector_used,
                           .copied = CONTEXT->stage_used,
                           .bytes = CONTEXT->stage_used + CONTEXT->lent_bytes};
    s->flags |= SXE__HELD;
    CONTEXT->stage += CONTEXT->stage_used;
    CONTEXT->vector += CONTEXT->vector_used;
    sxe__unstage(s);
    if (CONTEXT->held_end >= CONTEXT->held_max)
        send_held(true);
}

/* The held entry of socket s. */
static struct sxe__held *
held_of(const SXE *s)
{
    struct sxe__held *held = &CONTEXT->tables->held[CONTEXT->held_first];

    while (held->socket != s)
        held++;
    return held;
}

size_t
sxe__drop_written(SXE *s)
{
    struct sxe__held *held;
    size_t bytes = 0;

    if (CONTEXT->staged == s) {
        bytes = CONTEXT->stage_used + CONTEXT->lent_bytes;
        sxe__unstage(s);
    }
    if (SXE_LIKELY(!(s->flags & SXE__HELD)))
        return bytes;
    held = held_of(s);
    s->flags &= (uint16_t)~SXE__HELD;
    held->socket = NULL;
    return held->bytes;
}

static void
stage_bytes(const void *data, size_t length)
{
    memcpy(CONTEXT->stage + CONTEXT->stage_used, data, length);
    CONTEXT->stage_used += (uint32_t)length;
    CONTEXT->reserved = 0;
}

/* Stage the held output of socket s again, if it is short, so that one write sends it and what
 * follows: several events may give commands to one connection. False: it is not short. */
static bool
take_back(SXE *s)
{
    struct sxe__held *held = held_of(s);

    if (held->vector_used != 1 || held->bytes != held->copied || held->bytes > COPY_MAX)
        return false;
    held->socket = NULL;
    s->flags &= (uint16_t)~SXE__HELD;
    CONTEXT->staged = s;
    stage_bytes(held->vector->iov_base, held->bytes);
    return true;
}

/* Before socket s writes: send the staged output of any other socket now, without calling a
 * callback. */
static void
flush_other_socket(SXE *s)
{
    SXE *other = CONTEXT->staged;

    if (SXE_LIKELY(other == s))
        return;
    if (SXE_UNLIKELY(other != NULL)) {
        if (!is_anything_staged()) {
            sxe__unstage(other);
            sxe__write_more(other);
        } else if (write_staged(other) == 0) {
            sxe__wrote(other);
        }
    }
    if (SXE_UNLIKELY(s->flags & SXE__HELD) && !take_back(s))
        send_held(false);
}

static bool
is_socket_writable(const SXE *s)
{
    enum sxe_state state = sxe__state(s);

    return state >= SXE_STATE_IDLE && state <= SXE_STATE_STARVED && !(s->flags & SXE__END_SENT);
}

static int
check_writable(const SXE *s)
{
    if (s == NULL)
        return -ENOTCONN;
    if (!is_socket_writable(s)) {
        SXE_WARN_ID(s->id, "cannot write: the socket is %s",
                    s->flags & SXE__END_SENT ? "shut down" : sxe_state_to_string(sxe__state(s)));
        return -ENOTCONN;
    }
    return 0;
}

/* The most room that the queue needs for the staged output and one more record. Lent memory is not
 * copied into chunks. */
static size_t
room_for_staged(void)
{
    size_t pieces = CONTEXT->vector_used + (CONTEXT->stage_used > CONTEXT->stage_open);

    return CONTEXT->stage_used + (pieces + 1) * SXE__CHUNK_SIZE_MIN;
}

/* Write bytes for which the stage has no room: offer them to the kernel in pieces now, and queue
 * the rest. */
static int
write_large(SXE *s, const char *data, size_t length)
{
    if (sxe__queue_room(s) < room_for_staged() + length)
        return -ENOBUFS;
    while (length > 0) {
        size_t piece = length < SXE__STAGE_SIZE ? length : SXE__STAGE_SIZE;
        int result;

        if (is_anything_staged() && (result = write_staged(s)) < 0)
            return result;
        /* Have the end of the event settle the socket, whether or not the kernel took all. */
        CONTEXT->staged = s;
        if (!sxe__queue_is_empty(s))
            return sxe__queue_bytes(s, data, length);
        stage_bytes(data, piece);
        data += piece;
        length -= piece;
    }
    return 0;
}

SXE_RETURN
sxe_write(SXE *this, const void *data, unsigned length)
{
    int result = check_writable(this);

    if (SXE_UNLIKELY(result < 0 || length == 0))
        return result;
    flush_other_socket(this);
    if (SXE_UNLIKELY(length > CONTEXT->tables->config.output_max - sxe_unsent(this)))
        return -ENOBUFS;
    if (SXE_UNLIKELY(!sxe__queue_is_empty(this)))
        return sxe__queue_bytes(this, data, length);
    if (SXE_UNLIKELY(length > SXE__STAGE_SIZE - CONTEXT->stage_used))
        return write_large(this, data, length);
    CONTEXT->staged = this;
    stage_bytes(data, length);
    return 0;
}

/* Let socket s have the stage. Also set stage_limit, so that sxe_reserve need not check again until
 * the socket changes its state or writes in another way. Returns whether length bytes fit. */
static bool
open_stage(SXE *s, unsigned length)
{
    if (s == NULL || !is_socket_writable(s))
        return false;
    flush_other_socket(s);
    if (!sxe__queue_is_empty(s))
        return false;
    CONTEXT->staged = s;
    /* The queue is empty, so only staged bytes count for output_max. */
    CONTEXT->stage_limit = CONTEXT->tables->config.output_max < SXE__STAGE_SIZE
                               ? CONTEXT->tables->config.output_max
                               : SXE__STAGE_SIZE;
    return length <= CONTEXT->stage_limit - CONTEXT->stage_used;
}

void *
sxe_reserve(SXE *this, unsigned length)
{
    size_t end = (size_t)CONTEXT->stage_used + length;

    if (SXE_UNLIKELY(CONTEXT->staged != this || end >= CONTEXT->stage_limit) &&
        !open_stage(this, length))
        return NULL;
    CONTEXT->reserved = length;
    return CONTEXT->stage + CONTEXT->stage_used;
}

void
sxe_commit(SXE *this, unsigned length)
{
    SXE_ASSERT_ID(this->id, CONTEXT->staged == this && length <= CONTEXT->reserved,
                  "sxe_commit(%u): only %u bytes are reserved", length,
                  CONTEXT->staged == this ? CONTEXT->reserved : 0);
    CONTEXT->reserved = 0;
    CONTEXT->stage_used += length;
}

SXE_RETURN
sxe_write_static(SXE *this, const void *data, size_t length)
{
    int result;

    if (length <= COPY_MAX)
        return sxe_write(this, data, (unsigned)length);
    result = check_writable(this);
    if (result < 0)
        return result;
    flush_other_socket(this);
    close_piece();
    /* Leave a place in vector for the next piece of the stage, see close_piece. */
    if (CONTEXT->vector_used + 1 >= SXE__STAGE_VECTOR && (result = write_staged(this)) < 0)
        return result;
    CONTEXT->staged = this;
    if (!sxe__queue_is_empty(this))
        return sxe__queue_borrowed(this, data, length, NULL);
    CONTEXT->reserved = 0;
    CONTEXT->vector[CONTEXT->vector_used++] = (struct iovec){(char *)(uintptr_t)data, length};
    CONTEXT->lent_bytes += length;
    return 0;
}

/* Move staged output into the queue, before a record that only the queue can hold; the end of the
 * event then writes all of it at once. */
static int
prepare_queue(SXE *s)
{
    int result = check_writable(s);

    if (result < 0)
        return result;
    flush_other_socket(s);
    if (is_anything_staged()) {
        if (sxe__queue_room(s) < room_for_staged())
            return -ENOBUFS;
        close_piece();
        result = queue_vector(s, CONTEXT->vector, CONTEXT->vector_used, 0);
    }
    sxe__unstage(s);
    CONTEXT->staged = s;
    return result;
}

SXE_RETURN
sxe_send(SXE *this, const void *data, size_t length, SXE_OUT_EVENT_SENT on_sent)
{
    int result = prepare_queue(this);

    return result < 0 ? result : sxe__queue_borrowed(this, data, length, on_sent);
}

SXE_RETURN
sxe_sendfile(SXE *this, int fd, off_t offset, size_t length, SXE_OUT_EVENT_SENT on_sent)
{
    int result = fd < 0 ? -EBADF : prepare_queue(this);

    return result < 0 ? result : sxe__queue_file(this, fd, offset, length, on_sent);
}

SXE_RETURN
sxe_shutdown(SXE *this)
{
    int result = prepare_queue(this);

    if (result == 0)
        result = sxe__queue_end(this);
    if (result == 0)
        this->flags |= SXE__END_SENT;
    return result;
}

unsigned
sxe_unsent(const SXE *this)
{
    if (CONTEXT->staged == this)
        return this->u.open.out_copied + CONTEXT->stage_used;
    if (SXE_UNLIKELY(this->flags & SXE__HELD))
        return this->u.open.out_copied + held_of(this)->copied;
    return sxe__state(this) <= SXE_STATE_NEW ? 0 : this->u.open.out_copied;
}

bool
sxe_io_has_output(const SXE *this)
{
    if (this->flags & SXE__HELD || (CONTEXT->staged == this && is_anything_staged()))
        return true;
    return sxe__state(this) >= SXE_STATE_IDLE && (this->io_owes || !sxe__queue_is_empty(this));
}

/* The queue is empty, but the io table has output that the kernel did not take: write that. */
static int
write_owed(SXE *s)
{
    ssize_t n = s->io->write(s, NULL, 0, false);

    return n < 0 ? sxe__write_failed((int)n) : 0;
}

void
sxe__writable(SXE *s)
{
    int result =
        SXE_UNLIKELY(s->io_owes) && sxe__queue_is_empty(s) ? write_owed(s) : sxe__queue_write(s);

    if (result < 0) { /* the socket or the file failed: not all output was sent */
        sxe__fail_writing(s, -result);
        return;
    }
    if (sxe__state(s) == SXE_STATE_CLOSED)
        return;
    /* Output that on_sent wrote is sent later, so that a peer that reads fast keeps no others
     * waiting. */
    if (CONTEXT->staged == s && !is_anything_staged()) {
        sxe__unstage(s);
        result = 1;
    }
    if (sxe__queue_is_empty(s))
        SXE_PROBE_FLUSHED(s->id);
    if (result > 0)
        sxe__write_more(s);
    sxe__wrote(s);
}

void
sxe__flush_staged(SXE *s)
{
    if (SXE_UNLIKELY(!is_anything_staged())) {
        sxe__unstage(s);
        sxe__writable(s);
    } else if (SXE_LIKELY(write_staged(s) == 0)) {
        sxe__wrote(s);
    }
}
