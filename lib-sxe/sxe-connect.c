/* SPDX-License-Identifier: MIT
 *
 * What: how a socket comes to have a peer or an address: connect, pair, listen.
 */
#include "sxe-private.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Writes " 127.0.0.1 port 80" or " /run/socket" to text, and returns it. */
static const char *
address_text(char text[SXE__IP_SIZE + 20], const struct sockaddr_storage *address, socklen_t length)
{
    char ip[SXE__IP_SIZE];

    snprintf(text, SXE__IP_SIZE + 20, address->ss_family == AF_UNIX ? " %s" : " %s port %u",
             sxe__address_ip(ip, address, length), (unsigned)sxe__address_port(address));
    return text;
}

/* After a failure to open the socket: make it NEW again, with its address, and log the error.
 * Returns `error`. */
static SXE_RETURN
undo_open(SXE *s, const SXE *before, int error, const char *what, const char *where)
{
    sxe__socket_close(s);
    s->u = before->u;
    s->in = before->in;
    SXE_WARN_ID(s->id, "cannot %s%s: %s", what, where, strerror(-error));
    return error;
}

static bool
is_new(const SXE *s, const char *what)
{
    if (s != NULL && sxe__state(s) == SXE_STATE_NEW)
        return true;
    SXE_WARN_ID(s == NULL ? SXE_NO_ID : s->id, "cannot %s: the socket is %s", what,
                s == NULL ? "NULL" : sxe_state_to_string(sxe__state(s)));
    return false;
}

/* ---- Connecting ---- */

/* Bind to the address given at creation, unless it is "any". Leave the choice of a port (port 0) to
 * connect(2): one source address then has 64 K ports for each peer, not for all peers together. */
static int
bind_source(SXE *s, const SXE *before)
{
    struct sockaddr_storage from = {0};
    struct sockaddr_storage any = {0};
    int one = 1;

    memcpy(&from, before->u.address, sizeof(before->u.address));
    any.ss_family = from.ss_family;
    if (!(before->flags & SXE__ADDRESS) || memcmp(&from, &any, sizeof(any)) == 0)
        return 0;
    if (sxe__address_port(&from) == 0 &&
        setsockopt(s->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one)) < 0)
        return -errno;
    return bind(s->fd, (struct sockaddr *)&from, sxe__address_length(&from)) < 0 ? -errno : 0;
}

static int
connect_to_address(SXE *s, const SXE *before, const struct sockaddr_storage *to, socklen_t length)
{
    int result = sxe__socket_open(s, to->ss_family);

    if (result == 0 && to->ss_family != AF_UNIX)
        result = bind_source(s, before);
    if (result == 0 && connect(s->fd, (const struct sockaddr *)to, length) < 0 &&
        errno != EINPROGRESS)
        result = -errno;
    if (result == 0)
        result = sxe__watch(s, SXE__CONNECTION);
    return result;
}

static SXE_RETURN
begin_connect(SXE *s, const struct sockaddr_storage *to, socklen_t length)
{
    char where[SXE__IP_SIZE + 20];
    SXE before = *s;
    int result;

    sxe__open(s);
    result = connect_to_address(s, &before, to, length);
    if (result < 0)
        return undo_open(s, &before, result, "connect to", address_text(where, to, length));
    s->flags = (uint16_t)((s->flags & ~SXE__ADDRESS) | SXE__PEER);
    sxe__move(s, SXE_STATE_CONNECTING);
    return 0;
}

SXE_RETURN
sxe_connect(SXE *this, const char *ip, unsigned short port)
{
    struct sockaddr_storage to;
    int result;

    if (!is_new(this, "connect") || this->kind != SXE__TCP)
        return -EINVAL;
    result = sxe__address_parse(&to, ip, port);
    if (result < 0) {
        SXE_WARN_ID(this->id, "cannot connect to '%s': not an IPv4 or IPv6 address", ip);
        return result;
    }
    return begin_connect(this, &to, sxe__address_length(&to));
}

SXE_RETURN
sxe_connect_unix(SXE *this)
{
    struct sockaddr_storage to;
    socklen_t length;
    int result;

    if (!is_new(this, "connect") || this->kind != SXE__UNIX)
        return -EINVAL;
    result = sxe__address_parse_path(&to, &length, this->u.path);
    return result < 0 ? result : begin_connect(this, &to, length);
}

void
sxe__report_connected(SXE *s, const SXE *listener)
{
    int result = SXE_LIKELY(s->io->start == NULL) ? 0 : s->io->start(s, listener);

    if (result < 0) {
        sxe__end(s, -result);
        return;
    }
    sxe__move(s, SXE_STATE_IDLE);
    s->on_connected(s);
    sxe__wrote(s);
}

void
sxe__connected(SXE *s)
{
    int error = sxe__socket_error(s);

    if (error != 0)
        sxe__end(s, error);
    else
        sxe__report_connected(s, NULL);
}

static int
watch_pair(SXE *one, SXE *other)
{
    int result = sxe__watch(one, SXE__CONNECTION);

    return result < 0 ? result : sxe__watch(other, SXE__CONNECTION);
}

static void
open_end_of_pair(SXE *s, int fd)
{
    sxe__open(s);
    s->fd = fd;
    s->is_paired = true;
    s->flags |= SXE__PEER;
}

SXE_RETURN
sxe_io_pair(SXE *one, SXE *other)
{
    int fds[2] = {-1, -1};
    int result = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);

    open_end_of_pair(one, fds[0]);
    open_end_of_pair(other, fds[1]);
    result = result < 0 ? -errno : watch_pair(one, other);
    if (result < 0) {
        SXE_WARN_ID(one->id, "cannot make a pair of sockets: %s", strerror(-result));
        sxe__socket_close(one);
        sxe__socket_close(other);
        sxe__give(one);
        sxe__give(other);
        return result;
    }
    sxe__move(one, SXE_STATE_IDLE);
    sxe__move(other, SXE_STATE_IDLE);
    return 0;
}

/* ---- Listening ---- */

/* Remove a stale socket file; never touch anything else at that path. To find out, connect with a
 * socket of another type: if a process has the file open, the kernel refuses the type, and that
 * process does not notice; if no process has it open, the error is ECONNREFUSED. */
static int
bind_path(int fd, const struct sockaddr *at, socklen_t length)
{
    const char *path = ((const struct sockaddr_un *)(const void *)at)->sun_path;
    int result = bind(fd, at, length) < 0 ? -errno : 0;
    struct stat status;
    int probe;

    if (result != -EADDRINUSE || lstat(path, &status) < 0 || !S_ISSOCK(status.st_mode))
        return result;
    probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return -errno;
    if (connect(probe, at, length) < 0 && errno == ECONNREFUSED && unlink(path) == 0)
        result = bind(fd, at, length) < 0 ? -errno : 0;
    close(probe);
    return result;
}

static int
bind_ip(int fd, const struct sockaddr *at, socklen_t length)
{
    int one = 1;

    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
                   bind(fd, at, length) < 0
               ? -errno
               : 0;
}

/* Do not set SO_REUSEADDR: the last socket bound to the port would get all datagrams, even if it is
 * another user's. If processes of this program share listeners, set SO_REUSEPORT: then their
 * sockets at this port share the datagrams. */
static int
bind_udp(int fd, const struct sockaddr *at, socklen_t length)
{
    int one = 1;

    if (CONTEXT->tables->config.listeners != NULL &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
        return -errno;
    return bind(fd, at, length) < 0 ? -errno : 0;
}

/* Accepted connections inherit TCP_NODELAY from the listener, so it costs them no call. */
int
sxe_bind_listener(const struct sockaddr *address, socklen_t length)
{
    bool is_path = address->sa_family == AF_UNIX;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    int result;

    if (fd < 0)
        return -errno;
    if (!is_path && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
        result = -errno;
    else
        result = (is_path ? bind_path : bind_ip)(fd, address, length);
    if (result == 0)
        return fd;
    close(fd);
    return result;
}

static int
address_of_socket(const SXE *s, struct sockaddr_storage *at, socklen_t *length)
{
    if (!(s->flags & SXE__ADDRESS))
        return sxe__address_parse_path(at, length, s->u.path);
    memcpy(at, s->u.address, sizeof(s->u.address));
    *length = sxe__address_length(at);
    return 0;
}

static int
bind_new_descriptor(SXE *s, const struct sockaddr *at, socklen_t length)
{
    int result;

    if (s->kind == SXE__UDP) {
        result = sxe__socket_open(s, at->sa_family);
        return result < 0 ? result : bind_udp(s->fd, at, length);
    }
    result = sxe_bind_listener(at, length);
    s->fd = result < 0 ? -1 : result;
    return result < 0 ? result : 0;
}

static int
listen_at_address(SXE *s, const struct sockaddr_storage *at, socklen_t length)
{
    const struct sxe_listeners *kept =
        s->kind == SXE__UDP ? NULL : CONTEXT->tables->config.listeners;
    const struct sockaddr *address = (const struct sockaddr *)at;
    int result = 0;
    bool is_found;

    if (kept != NULL && kept->find != NULL)
        s->fd = kept->find(address, length);
    is_found = s->fd >= 0;
    if (!is_found)
        result = bind_new_descriptor(s, address, length);
    if (result == 0 && s->kind != SXE__UDP &&
        listen(s->fd, (int)CONTEXT->tables->config.backlog) < 0)
        result = -errno;
    if (result == 0)
        result = sxe__watch(s, SXE__LISTENER);
    if (result == 0 && kept != NULL && kept->keep != NULL && !is_found)
        kept->keep(address, length, s->fd);
    return result;
}

SXE_RETURN
sxe_listen(SXE *this)
{
    struct sockaddr_storage at = {0};
    char where[SXE__IP_SIZE + 20];
    socklen_t length = 0;
    SXE before;
    int result;

    if (!is_new(this, "listen"))
        return -EINVAL;
    before = *this;
    sxe__open(this);
    result = address_of_socket(&before, &at, &length);
    if (result == 0)
        result = listen_at_address(this, &at, length);
    if (result < 0)
        return undo_open(this, &before, result, "listen on",
                         length > 0 ? address_text(where, &at, length) : "");
    sxe__move(this, SXE_STATE_LISTENING);
    return 0;
}

SXE_RETURN
sxe_listen_oneshot(SXE *this)
{
    SXE_RETURN result = sxe_listen(this);

    if (result == 0)
        this->flags |= SXE__ONESHOT;
    return result;
}
