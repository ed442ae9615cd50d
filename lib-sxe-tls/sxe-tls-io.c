/* SPDX-License-Identifier: MIT
 *
 * Holds the table of sxe-io.h for TLS: bytes of the socket go through OpenSSL to the program, and
 * back.
 *
 *     read   recv(2) -> in -> BIO -> SSL_read -> the program's buffer
 *     write  the program's bytes -> SSL_write -> BIO -> out -> send(2), unsent records -> kept
 *
 * Records that the kernel did not take cannot be made a second time. They are kept, and their plain
 * text counts as not written (`owed`) until they are sent: so a timeout or a close that waits for
 * the output also waits for the records.
 *
 * The records that end a handshake are held until the loop is about to wait, so that they leave
 * together with what the program writes by then. close_notify leaves together with the last bytes
 * of a closing socket.
 */
#include "sxe-tls-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDED 1 /* a value of c->result: the peer sends nothing more */

/* ---- Sending records ---- */

static bool
is_for_later(ssize_t error)
{
    return error == -EAGAIN || error == -EINTR || error == -ENOBUFS || error == -ENOMEM;
}

static void
drop_kept(SXE *s, struct sxe__tls_connection *c)
{
    free(c->kept);
    sxe__tls_loop->kept -= c->kept_length;
    c->kept = NULL;
    c->kept_at = c->kept_length = 0;
    c->is_held = false;
    s->io_owes = false;
}

/* Send the kept records. 0: none is left; or -errno. */
static ssize_t
send_kept(SXE *s, struct sxe__tls_connection *c)
{
    while (c->kept != NULL) {
        struct iovec rest = {c->kept + c->kept_at, c->kept_length - c->kept_at};
        ssize_t n = sxe_io_of_sockets()->write(s, &rest, 1, false);

        if (n < 0)
            return n;
        c->kept_at += (uint32_t)n;
        if (c->kept_at == c->kept_length)
            drop_kept(s, c);
    }
    return 0;
}

/* Keep the records from `at` on; an alert may follow records that are kept. 0; -ECONNABORTED. */
static int
keep_records(SXE *s, struct sxe__tls_connection *c, uint32_t at)
{
    uint32_t before = c->kept_length - c->kept_at;
    uint32_t length = sxe__tls_loop->out_length - at;
    char *kept = before > SXE__TLS_OUT_SIZE ? NULL : malloc(before + length);

    if (kept == NULL)
        return -ECONNABORTED;
    if (before > 0)
        memcpy(kept, c->kept + c->kept_at, before);
    memcpy(kept + before, sxe__tls_loop->out + at, length);
    drop_kept(s, c);
    c->kept = kept;
    c->kept_length = before + length;
    sxe__tls_loop->kept += c->kept_length;
    s->io_owes = true;
    return 0;
}

/* Send all records that OpenSSL made. 0; -errno as of send(2), with the unsent records kept if it
 * is_for_later; another -errno: the connection is over. */
static ssize_t
flush_records(SXE *s, struct sxe__tls_connection *c, bool more)
{
    uint32_t at = 0;
    ssize_t n = send_kept(s, c);
    int result = 0;

    while (n >= 0 && at < sxe__tls_loop->out_length) {
        struct iovec rest = {sxe__tls_loop->out + at, sxe__tls_loop->out_length - at};

        n = sxe_io_of_sockets()->write(s, &rest, 1, more);
        at += n > 0 ? (uint32_t)n : 0;
    }
    if (n < 0 && is_for_later(n) && at < sxe__tls_loop->out_length)
        result = keep_records(s, c, at);
    if (result < 0)
        SXE_WARN_ID(s->id, "closing: no memory for %u bytes that its peer does not read",
                    sxe__tls_loop->out_length - at);
    sxe__tls_loop->out_length = 0;
    return result < 0 ? result : n < 0 ? n : 0;
}

/* Hold the records that ended a handshake. sxe__tls_shaken asks lib-sxe to call write before the
 * loop waits, and that call sends them. False: they cannot be held. */
static bool
hold_records(SXE *s, struct sxe__tls_connection *c)
{
    c->is_held = c->result == 0 && c->kept == NULL &&
                 sxe__tls_loop->out_length <= SXE__TLS_HELD_MAX && keep_records(s, c, 0) == 0;
    return c->is_held;
}

/* Put the records that are held before those that will be made. */
static void
take_held_records(SXE *s, struct sxe__tls_connection *c)
{
    if (!c->is_held)
        return;
    memcpy(sxe__tls_loop->out, c->kept, c->kept_length);
    sxe__tls_loop->out_length = c->kept_length;
    drop_kept(s, c);
}

/* ---- Reading ---- */

/* The value for c->result after a call of OpenSSL that returned no bytes. */
static int
result_of(SXE *s, struct sxe__tls_connection *c)
{
    switch (SSL_get_error(c->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        /* The peer sent close_notify or, to a server, only the end of the socket:
         * SSL_OP_IGNORE_UNEXPECTED_EOF makes these equal. */
        c->is_cut = sxe__tls_loop->in_is_over;
        break;
    default:
        c->is_broken = true;
        break;
    }
    if (!c->is_broken && SSL_is_init_finished(c->ssl))
        return ENDED;
    if (sxe__tls_loop->in_is_over && !s->io_shakes) {
        ERR_clear_error();
        sxe__tls_note_failure(c, "the server ended without close_notify: bytes may be missing");
        return -ECONNRESET;
    }
    c->is_broken = true;
    sxe__tls_log_failure(s, "closing");
    return -EPROTO;
}

static void
make_current(struct sxe__tls_connection *c)
{
    sxe__tls_loop->current = c;
    /* Looking into the queue costs less than clearing it. */
    if (SXE_UNLIKELY(ERR_peek_error() != 0))
        ERR_clear_error();
}

/* Begin a call of the table. Records that an earlier, failed call left belong to another
 * connection: drop them. */
static void
enter_connection(struct sxe__tls_connection *c)
{
    sxe__tls_loop->out_length = 0;
    make_current(c);
}

static bool
is_flood(const struct sxe__tls_connection *c)
{
    return c->records > (SSL_is_init_finished(c->ssl) ? SXE__TLS_EMPTY_RECORDS_MAX
                                                      : SXE__TLS_SHAKING_RECORDS_MAX);
}

/* Decrypt the bytes in `in` and in OpenSSL. Returns the number of bytes of plain text. */
static size_t
decrypt_records(SXE *s, struct sxe__tls_connection *c, char *buffer, size_t size)
{
    bool was_shaking = s->io_shakes;
    size_t done = 0;
    size_t n;

    do {
        if (SSL_read_ex(c->ssl, buffer + done, size - done, &n) != 1) {
            c->result = (int16_t)result_of(s, c);
            break;
        }
        done += n;
    } while (done < size &&
             (sxe__tls_loop->in_at < sxe__tls_loop->in_length || SSL_pending(c->ssl) > 0));
    c->is_pending = done == size && SSL_pending(c->ssl) > 0;
    if (was_shaking && SSL_is_init_finished(c->ssl))
        sxe__tls_shaken(s, c);
    if (done > 0)
        c->records = 0;
    /* OpenSSL takes all bytes of `in`, unless too many records in a row have no data. Bytes that it
     * does not take cannot be kept, see sxe-tls-bio.c: so the connection ends. */
    if (c->result == 0 && (is_flood(c) || sxe__tls_loop->in_at < sxe__tls_loop->in_length)) {
        SXE_DEBUG_ID(s->id, "closing: %u records without a byte", c->records);
        sxe__tls_note_failure(c, "too many records in a row without data");
        c->result = -EPROTO;
    }
    return done;
}

/* How many bytes to receive: as many as give plain text that fits into `room`, but at least the
 * rest of the present record, even if OpenSSL then has to keep a part of its plain text. */
static size_t
most_to_receive(const struct sxe__tls_connection *c, size_t room)
{
    uint32_t has = sxe__tls_record_has(c);
    uint32_t needs = sxe__tls_record_needs(c);
    size_t fits = room + c->overhead > has ? room + c->overhead - has : 0;

    fits = fits > needs ? fits : needs;
    return fits < SXE__TLS_IN_SIZE ? fits : SXE__TLS_IN_SIZE;
}

static ssize_t
receive_records(SXE *s, size_t most)
{
    struct sxe__tls_loop *loop = sxe__tls_loop;
    ssize_t n = sxe_io_of_sockets()->read(s, loop->in, most);

    loop->in_at = 0;
    loop->in_length = n > 0 ? (uint32_t)n : 0;
    loop->in_is_over = n == 0;
    return n;
}

/* Refuse a client that does not speak TLS; if it may speak HTTP, send it plain_reply. Returns
 * whether it was refused. */
static bool
refuse_plain(SXE *s, struct sxe__tls_connection *c, const struct sxe__tls_loop *loop)
{
    const char *reply = c->tls->config.plain_reply;
    struct iovec all;

    if (c->is_client || loop->in_length == 0 || loop->in[0] == SSL3_RT_HANDSHAKE)
        return false;
    if (reply != NULL && loop->in[0] >= 'A' && loop->in[0] <= 'Z') {
        all = (struct iovec){(char *)(uintptr_t)reply, strlen(reply)};
        (void)!sxe_io_of_sockets()->write(s, &all, 1, false);
    }
    SXE_DEBUG_ID(s->id, "closing: it does not speak %s", "TLS");
    return true;
}

/* The first bytes of a client came: make its SSL. 0, or the value for c->result. */
static int
begin_handshake(SXE *s, struct sxe__tls_connection *c)
{
    if (refuse_plain(s, c, sxe__tls_loop))
        return ENDED;
    make_current(c);
    if (sxe__tls_has_memory(c->tls))
        c->ssl = sxe__tls_ssl(c->tls);
    if (c->ssl != NULL)
        return 0;
    sxe__tls_log_failure(s, "closing: no memory for a handshake");
    return -ECONNABORTED;
}

/* Call recv(2) once, and decrypt; add the bytes of plain text to *done. True: the socket may have
 * more bytes now. */
static bool
read_once(SXE *s, struct sxe__tls_connection *c, char *buffer, size_t size, size_t *done,
          ssize_t *received)
{
    size_t most = most_to_receive(c, size - *done);

    *received = receive_records(s, most);
    if (*received < 0) {
        c->result = (int16_t)(is_for_later(*received) ? 0 : *received);
        return false;
    }
    if (c->ssl == NULL)
        c->result = (int16_t)(*received == 0 ? ENDED : begin_handshake(s, c));
    if (c->result == 0)
        *done += decrypt_records(s, c, buffer + *done, size - *done);
    return c->result == 0 && *received == (ssize_t)most;
}

/* Receive up to SXE__TLS_READS_MAX times: one recv(2) may bring no plain text, as in a handshake or
 * within a record, although the socket has more bytes. */
static ssize_t
read_some(SXE *s, struct sxe__tls_connection *c, char *buffer, size_t size)
{
    ssize_t received = 0;
    size_t done = 0;
    bool more = true;

    if (c->is_pending) {
        sxe__tls_loop->in_at = sxe__tls_loop->in_length = 0;
        sxe__tls_loop->in_is_over = false;
        done = decrypt_records(s, c, buffer, size);
    }
    for (unsigned i = 0; more && c->result == 0 && done < size; i++) {
        more = read_once(s, c, buffer, size, &done, &received);
        if (i + 1 == SXE__TLS_READS_MAX)
            break;
    }
    s->io_more = more || c->result != 0;
    if (done > 0)
        return (ssize_t)done;
    if (c->result != 0)
        return c->result == ENDED ? 0 : c->result;
    if (received < 0)
        return received;
    return more || (received > 0 && sxe_io_is_end_near(s)) ? -EINTR : -EAGAIN;
}

static ssize_t
tls_read(SXE *s, void *buffer, size_t size)
{
    struct sxe__tls_connection *c = sxe__tls_of(s);
    bool was_shaking = s->io_shakes;
    ssize_t n;
    ssize_t sent = 0;

    if (c->result != 0)
        return c->result == ENDED ? 0 : c->result;
    if (SXE_UNLIKELY(c->end_sent && sxe_get_state(s) == SXE_STATE_CLOSING)) {
        s->io_more = false;
        /* do not decrypt: lib-sxe drops all bytes that a closing socket receives */
        return sxe_io_of_sockets()->read(s, buffer, size);
    }
    if (s->io_shakes && !sxe__tls_may_shake(c))
        return -EINTR;
    sxe__tls_wake(c);
    enter_connection(c);
    n = read_some(s, c, buffer, size);
    if (sxe__tls_loop->out_length > 0 && !(was_shaking && !s->io_shakes && hold_records(s, c)))
        sent = flush_records(s, c, false);
    if (sent < 0 && !is_for_later(sent) && c->result == 0) {
        c->result = (int16_t)sent;
        s->io_more = true;
        return n > 0 ? n : sent;
    }
    return n;
}

/* ---- Writing ---- */

/* Make a close_notify, unless one was made or none is possible. */
static void
say_end(struct sxe__tls_connection *c)
{
    if (c->end_sent || c->is_broken || c->ssl == NULL || !SSL_is_init_finished(c->ssl))
        return;
    (void)SSL_shutdown(c->ssl);
    ERR_clear_error();
    c->end_sent = true;
}

/* The bytes that the program wrote and that are not in records yet. */
struct plain {
    const struct iovec *vector;
    int count;
    size_t skip;  /* how many bytes of the first iovec are in records already */
    bool is_last; /* the socket is closing, and no other bytes follow these ones */
};

/* Take the bytes of the next record: in place if they are in one piece, else copied to loop->plain.
 * Returns their number; 0: none are left. */
static size_t
next_record(struct plain *plain, const char **data)
{
    size_t length = 0;

    while (plain->count > 0 && length < SXE__TLS_RECORD) {
        const char *base = (const char *)plain->vector->iov_base + plain->skip;
        size_t left = plain->vector->iov_len - plain->skip;
        size_t part = left < SXE__TLS_RECORD - length ? left : SXE__TLS_RECORD - length;
        bool is_whole = length == 0 && (part == SXE__TLS_RECORD || plain->count == 1);

        *data = is_whole ? base : sxe__tls_loop->plain;
        if (!is_whole && part > 0) /* an empty piece may be at NULL */
            memcpy(sxe__tls_loop->plain + length, base, part);
        length += part;
        plain->skip += part;
        if (part == left) {
            plain->vector++;
            plain->count--;
            plain->skip = 0;
        }
        if (is_whole)
            break;
    }
    return length;
}

/* Make records of plain bytes, up to a batch. Returns how many bytes are in them, or
 * -EPROTO. */
static ssize_t
encrypt_bytes(SXE *s, struct sxe__tls_connection *c, struct plain *plain)
{
    size_t most = c->is_slow ? SXE__TLS_RECORD : SXE__TLS_BATCH;
    size_t done = 0;
    const char *data = NULL;
    size_t length;
    size_t n;

    /* A failed SSL_write_ex always ends the connection, so old errors in the queue do no harm. */
    sxe__tls_loop->current = c;
    sxe__tls_loop->out_length = 0;
    take_held_records(s, c);
    while (done < most && (length = next_record(plain, &data)) > 0) {
        if (SSL_write_ex(c->ssl, data, length, &n) != 1) {
            c->is_broken = true;
            sxe__tls_log_failure(s, "closing");
            return -EPROTO;
        }
        done += length;
    }
    return (ssize_t)done;
}

/* Encrypt and send. Returns the bytes that count as written, `skipped` ones included, or -errno. */
static ssize_t
write_new(SXE *s, struct sxe__tls_connection *c, struct plain *plain, size_t skipped, bool more)
{
    ssize_t done = encrypt_bytes(s, c, plain);
    ssize_t sent;

    if (done < 0)
        return done;
    if (plain->is_last && plain->count == 0)
        say_end(c);
    sent = flush_records(s, c, more);
    c->is_slow = sent < 0;
    if (sent == 0)
        return (ssize_t)skipped + done;
    if (c->kept == NULL)
        return sent;
    c->owed = (uint32_t)done;
    return skipped > 0 ? (ssize_t)skipped : sent;
}

/* Whether the connection can take `total` bytes of plain text now: 0, or -errno. */
static ssize_t
prepare_to_write(SXE *s, struct sxe__tls_connection *c, size_t total)
{
    ssize_t sent = c->is_held && total > 0 ? 0 : send_kept(s, c);

    if (sent < 0)
        return sent;
    if (c->is_broken)
        return -EPROTO;
    if (s->io_shakes)
        return -EAGAIN; /* sxe__tls_shaken will call write again */
    sxe__tls_wake(c);
    return 0;
}

/* The program writes `total` bytes, of which the owed ones are the first. Returns how many of them
 * are in kept records, which have been sent by now. */
static size_t
settle_owed(struct sxe__tls_connection *c, size_t total)
{
    size_t part = c->owed < total ? c->owed : total;

    c->owed -= (uint32_t)part;
    return part;
}

static ssize_t
tls_write(SXE *s, const struct iovec *vector, int count, bool more)
{
    struct sxe__tls_connection *c = sxe__tls_of(s);
    struct plain plain = {vector, count, 0, !more && sxe_get_state(s) == SXE_STATE_CLOSING};
    size_t total = 0;
    size_t skipped;
    ssize_t ready;

    for (int i = 0; i < count; i++)
        total += vector[i].iov_len;
    ready = prepare_to_write(s, c, total);
    if (ready < 0)
        return count == 0 && ready == -EAGAIN && c->kept == NULL ? 0 : ready;
    skipped = settle_owed(c, total);
    if (skipped == total)
        return (ssize_t)skipped;
    plain.skip = skipped;
    while (plain.skip >= plain.vector->iov_len) {
        plain.skip -= plain.vector->iov_len;
        plain.vector++;
        plain.count--;
    }
    return write_new(s, c, &plain, skipped, more);
}

static ssize_t
tls_sendfile(SXE *s, int fd, off_t offset, size_t length)
{
    struct sxe__tls_connection *c = sxe__tls_of(s);
    size_t most = c->is_slow ? SXE__TLS_RECORD : SXE__TLS_BATCH;
    ssize_t n = prepare_to_write(s, c, length);
    struct plain plain;
    struct iovec piece;

    if (n < 0)
        return n;
    if (c->owed > 0)
        return (ssize_t)settle_owed(c, length);
    n = pread(fd, sxe__tls_loop->plain, length < most ? length : most, offset);
    if (n <= 0)
        return n < 0 ? -errno : 0;
    piece = (struct iovec){sxe__tls_loop->plain, (size_t)n};
    plain = (struct plain){&piece, 1, 0, false};
    return write_new(s, c, &plain, 0, false);
}

/* ---- Ending ---- */

static int
tls_finish(SXE *s)
{
    struct sxe__tls_connection *c = sxe__tls_of(s);
    int done = sxe__tls_needs_peer_end(s, c);

    enter_connection(c);
    say_end(c);
    return is_for_later(flush_records(s, c, false)) ? -EAGAIN : done;
}

static int
tls_end(SXE *s)
{
    return sxe_io_of_sockets()->end(s);
}

static void
tls_cork(SXE *s, bool wanted)
{
    sxe_io_of_sockets()->cork(s, wanted);
}

/* Begin a connection. A server's SSL is made only when its client has sent bytes. */
static int
tls_start(SXE *s, const SXE *listener)
{
    struct sxe__tls_connection *c = sxe__tls_of(s);
    ssize_t sent;

    s->io_shakes = true;
    sxe_pool_move(sxe__tls_loop->connections, s->id, SXE__TLS_FREE, SXE__TLS_SHAKING);
    if (listener != NULL) {
        c->tls = sxe__tls_of(listener)->tls;
        return 0;
    }
    if (c->ssl == NULL)
        return -EINVAL;
    enter_connection(c);
    sxe__tls_loop->in_at = sxe__tls_loop->in_length = 0;
    sxe__tls_loop->in_is_over = false;
    c->result = (int16_t)(SSL_do_handshake(c->ssl) == 1 ? 0 : result_of(s, c));
    sent = flush_records(s, c, false);
    if (c->result < 0)
        return c->result;
    return sent < 0 && !is_for_later(sent) ? (int)sent : 0;
}

static void
tls_close(SXE *s)
{
    struct sxe__tls_connection *c = sxe__tls_of(s);

    if (sxe_get_state(s) == SXE_STATE_CLOSED && sxe_error(s) == 0 && c->kept == NULL &&
        s->fd >= 0) {
        enter_connection(c);
        say_end(c);
        (void)!flush_records(s, c, false);
    }
    if (c->kept != NULL)
        drop_kept(s, c);
    sxe__tls_forget(c);
}

const struct sxe_io_table sxe__tls_io = {
    .read = tls_read,
    .write = tls_write,
    .sendfile = tls_sendfile,
    .cork = tls_cork,
    .end = tls_end,
    .start = tls_start,
    .finish = tls_finish,
    .close = tls_close,
};
