/* SPDX-License-Identifier: MIT
 *
 * The system calls of a socket: the table of reading and writing, opening, closing, registration.
 */
#include "sxe-private.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <unistd.h>

static ssize_t
or_error(ssize_t result)
{
    return result < 0 ? -errno : result;
}

/* recv(2) and send(2) cost the kernel less than read(2) and write(2). */
static ssize_t
socket_read(SXE *s, void *buffer, size_t size)
{
    return or_error(recv(s->fd, buffer, size, 0));
}

static ssize_t
socket_peek(SXE *s, void *buffer, size_t size)
{
    return or_error(recv(s->fd, buffer, size, MSG_PEEK));
}

/* `more` sets MSG_MORE: the kernel waits for further bytes to fill the segment. */
static ssize_t
socket_write(SXE *s, const struct iovec *vector, int count, bool more)
{
    int flags = more ? MSG_MORE | MSG_NOSIGNAL : MSG_NOSIGNAL;
    struct msghdr message;

    if (SXE_LIKELY(count == 1))
        return or_error(send(s->fd, vector->iov_base, vector->iov_len, flags));
    message =
        (struct msghdr){.msg_iov = (struct iovec *)(uintptr_t)vector, .msg_iovlen = (size_t)count};
    return or_error(sendmsg(s->fd, &message, flags));
}

static ssize_t
socket_sendfile(SXE *s, int fd, off_t offset, size_t length)
{
    return or_error(sendfile(s->fd, fd, &offset, length));
}

static void
socket_cork(SXE *s, bool wanted)
{
    int value = wanted;

    if (s->kind == SXE__TCP)
        (void)setsockopt(s->fd, IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
}

static int
socket_end(SXE *s)
{
    return (int)or_error(shutdown(s->fd, SHUT_WR));
}

const struct sxe_io_table sxe__io_socket = {
    .read = socket_read,
    .peek = socket_peek,
    .write = socket_write,
    .sendfile = socket_sendfile,
    .cork = socket_cork,
    .end = socket_end,
};

int
sxe__socket_open(SXE *s, int family)
{
    int one = 1;
    int type = (s->kind == SXE__UDP ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;

    s->fd = socket(family, type, 0);
    if (s->fd < 0)
        return -errno;
    /* Accepted connections inherit TCP_NODELAY from the listener, without a call of their own. */
    if (s->kind == SXE__TCP && setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0) {
        int error = -errno;
        sxe__socket_close(s);
        return error;
    }
    return 0;
}

SXE_RETURN
sxe_write_to(SXE *this, const void *data, unsigned length, const struct sockaddr *to,
             socklen_t to_length)
{
    if (this == NULL || this->kind != SXE__UDP || this->fd < 0)
        return -ENOTCONN;
    return sendto(this->fd, data, length, 0, to, to_length) < 0 ? -errno : 0;
}

const struct sxe_io_table *
sxe_io_of_sockets(void)
{
    return &sxe__io_socket;
}

void
sxe_io_set(SXE *this, const struct sxe_io_table *io)
{
    this->io = io;
}

void
sxe_io_follow(SXE *this, struct sxe_io_follower *follower)
{
    this->follower = follower;
}

void
sxe__socket_close(SXE *s)
{
    if (SXE_UNLIKELY(s->io->close != NULL))
        s->io->close(s);
    /* close(2) alone would leave the registration in place while a forked child still holds the
     * socket. */
    if (s->watched != SXE__NOTHING)
        (void)epoll_ctl(CONTEXT->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    s->watched = 0;
}

int
sxe__socket_error(const SXE *s)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return errno;
    return error;
}
