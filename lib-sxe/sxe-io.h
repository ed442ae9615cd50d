/* SPDX-License-Identifier: MIT
 *
 * What: tables of functions by which bytes get in and out of a connection: one for plain sockets,
 * another one for TLS. For libraries that put a protocol between the socket and its program.
 *
 * Place: lib-sxe calls the table at the only places that touch a connection's descriptor;
 * lib-sxe-tls has its own table. Programs do not need this header.
 *
 * Shape:
 *     accepted, connected   start     once; a listener's table is that of its connections
 *     readable              read      into the loop's buffer, or a chunk
 *     end of an event       write     what is staged, or the queue; sendfile likewise
 *     half-close, close     finish    the protocol's own end, while it can still be sent
 *                           end       the socket's half-close
 *     on_close has run      close     the protocol's state of the connection is given back
 *
 * A table that decrypts cannot leave what it read in the kernel: without peek a chunk is taken
 * before each read, and a connection that gets none waits (STARVED). A table that encrypts may hold
 * output that the kernel did not take: it sets io_owes, and write is called again, with no bytes if
 * nothing else waits. While it has to read before it can write, it sets io_shakes: then a closing
 * connection is read, too, and so is one that the program has paused or whose output waits. Bytes
 * that come with the end of the handshake are kept until the program reads again.
 *
 * Limits: nothing is allocated here.
 */
#ifndef SXE_IO_H
#define SXE_IO_H

#include <sys/uio.h>

#include "sxe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All return -errno on failure. read and write behave like recv(2) and send(2) of a socket that
 * does not block: after -EAGAIN lib-sxe calls them again when epoll reports a change, after -EINTR
 * soon. */
struct sxe_io_table {
    /* Less than `size`: the kernel has no more bytes now, unless read set io_more. 0: the peer has
     * ended its output. */
    ssize_t (*read)(SXE *s, void *buffer, size_t size);
    /* NULL: the table cannot peek; a chunk is then taken before each read. */
    ssize_t (*peek)(SXE *s, void *buffer, size_t size);

    /* Returns how many bytes were taken. After -EAGAIN, or if not all were taken, the next call
     * begins with the bytes that are left. more: other output follows. */
    ssize_t (*write)(SXE *s, const struct iovec *vector, int count, bool more);
    ssize_t (*sendfile)(SXE *s, int fd, off_t offset, size_t length);
    /* wanted: the kernel sends only full segments, until a call with false */
    void (*cork)(SXE *s, bool wanted);
    int (*end)(SXE *s); /* send our half-close */

    /* The three functions below may be NULL. */
    /* listener is NULL for a connection that this side opened. For an accepted connection it is the
     * listener, and then start must return 0. */
    int (*start)(SXE *s, const SXE *listener);
    /* End the protocol (TLS: close_notify) before the half-close or an orderly close. 0; -EAGAIN:
     * lib-sxe calls again later; 1: the peer may still send bytes of the protocol itself, which no
     * program sees. Such bytes would make the kernel reset a closed connection, so the close waits
     * for the peer's end, as that of sxe_close_lingering; it succeeds without that end if the
     * peer's kernel has all output. */
    int (*finish)(SXE *s);
    /* May be called more than once for a socket, and for a socket that never started. */
    void (*close)(SXE *s);
};

/* The table of plain sockets: recv(2), send(2) and so on. */
SXE_PUBLIC const struct sxe_io_table *sxe_io_of_sockets(void);

/* Use this table, which is borrowed for ever. Call it before sxe_connect; or for a listener: then
 * it applies to the connections that are accepted from now on. */
SXE_PUBLIC void sxe_io_set(SXE *this_, const struct sxe_io_table *io);

/* Whether epoll has reported that the peer's end, or an error, follows the bytes that the kernel
 * has. epoll reports that only once. So if this is true, a read function that took bytes, but
 * decrypted none for the program, returns -EINTR, and lib-sxe calls it again. */
SXE_PUBLIC bool sxe_io_is_end_near(const SXE *this_);

/* Whether the kernel has not taken all output yet: copied, borrowed, of files, or encrypted. */
SXE_PUBLIC bool sxe_io_has_output(const SXE *this_);

/* Whether more than 64 KiB of output are unacknowledged by the peer's kernel. After an orderly
 * close our kernel would keep those bytes for a peer that does not read. False for sockets that are
 * not TCP. */
SXE_PUBLIC bool sxe_io_is_unread(const SXE *this_);

/* Bytes of output that the peer's kernel has not acknowledged: those that wait for our kernel, and
 * those that it has. 0: none, or the socket is not connected. */
SXE_PUBLIC size_t sxe_io_unacknowledged(const SXE *this_);

/* If a write fails because the peer has closed, drop the output and read on to the end, so that
 * on_read gets what the peer sent before it closed; then on_close is called, with the error of the
 * write. For a client that sends a long request, to which the reply may come early (RFC 9112, 9.5).
 * If it is not wanted, as by default, the socket ends when the write fails. */
SXE_PUBLIC void sxe_io_read_rest(SXE *this_, bool wanted);

/* Move the unread bytes into memory of the program, and read what else the kernel has straight into
 * it, as far as there is room: for a program that wants more than a chunk. Returns the number of
 * bytes; on_read is not called for them. Not inside on_read of this socket. If the table cannot
 * peek, only the unread bytes are moved. */
SXE_PUBLIC size_t sxe_io_take(SXE *this_, void *memory, size_t room);

/* Before a listener is closed: accept the connections that wait in the kernel for it, as far as
 * there are free sockets, and no more than config.backlog. The kernel resets the connections that
 * are left. */
SXE_PUBLIC void sxe_io_accept_rest(SXE *this_);

/* After a write returned -EAGAIN: have lib-sxe call write again later in this turn of the loop,
 * without waiting for epoll. */
SXE_PUBLIC void sxe_io_write_again(SXE *this_);

/* End the connection at once, with this errno. For timeouts, and for the functions of a table. */
SXE_PUBLIC void sxe_io_fail(SXE *this_, int error);

/* Connect two NEW unix sockets of this loop with each other: for a library that gives one end to a
 * part of the program which serves connections, and speaks for a client at the other end. Neither
 * connected callback is called. Such sockets have no timeouts: an end that waits for the other one
 * waits for this program. 0; -errno: both sockets are closed, without on_close. */
SXE_PUBLIC SXE_RETURN sxe_io_pair(SXE *one, SXE *other);

/* For a library that handed a connection to its program and its callbacks, and still counts it. */
struct sxe_io_follower {
    void (*on_gone)(struct sxe_io_follower *follower);
};

/* Call on_gone once, when the connection has closed, after its on_close. The follower is borrowed
 * until then, or until sxe_fini, which does not call it. A connection has one follower. */
SXE_PUBLIC void sxe_io_follow(SXE *this_, struct sxe_io_follower *follower);

/* The socket with this id, in any state. */
SXE_PUBLIC SXE *sxe_io_socket(unsigned id);

/* How many sockets this thread's loop has: every id is below this number. 0 before sxe_init. */
SXE_PUBLIC unsigned sxe_io_sockets(void);

#ifdef __cplusplus
}
#endif

#endif
