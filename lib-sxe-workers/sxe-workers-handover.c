/* SPDX-License-Identifier: MIT
 *
 * Messages between supervisor and serving processes, and the table of listening sockets.
 */
#include "sxe-workers-handover-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sxe-log.h"
#include "sxe-workers-balance-private.h"
#include "sxe-workers-changes-private.h"
#include "sxe-workers-file-internal.h"

struct kept {
    struct sockaddr_storage address;
    socklen_t length;
    struct sxe__socket_file file;
    int fd;            /* the socket; -1 in a serving process after sxe_listen has taken it */
    bool is_used;      /* whether a process that serves listens at it */
    bool is_wanted;    /* whether a process that is starting listens at it */
    bool is_inherited; /* whether it came from the program that started this one */
    /* whether it came from the sxe-httpd before this one, which goes on serving at it if this
     * program fails */
    bool is_lent;
    /* whether this serving process opened it, but has not sent it to the supervisor yet */
    bool is_new;
};

/* The table of sockets. A forked child has a copy of the table, and inherits the descriptors. */
static struct {
    struct kept sockets[SXE__HANDOVER_SOCKETS];
    unsigned number;
    int link; /* -1: this process does not serve under a supervisor */
    bool leaves_files;
} handover = {.link = -1};

/* ---- Messages ---- */

int
sxe__handover_send(int link, const struct sxe__handover_message *message, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof(*message)};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    if (fd >= 0) {
        packet.msg_control = &control;
        packet.msg_controllen = sizeof(control);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    do
        sent = sendmsg(link, &packet, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int
sxe__handover_say(int link, enum sxe__handover_kind kind)
{
    struct sxe__handover_message message = {.kind = kind};

    return sxe__handover_send(link, &message, -1);
}

void
sxe__handover_name_file(int link, const char *path)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_FILE};

    snprintf(message.u.path, sizeof(message.u.path), "%s", path);
    clock_gettime(CLOCK_REALTIME_COARSE, &message.u.seen); /* the clock of the times of files */
    message.u.stamp = sxe__stamp_of(path);
    (void)sxe__handover_send(link, &message, -1);
}

int
sxe__handover_receive(int link, struct sxe__handover_message *message, int *fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            /* Only one descriptor has room here; the kernel closes further ones
                             * that come. */
                            .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t length = recvmsg(link, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    /* If the other end closed while a message to it was unread, the kernel reports this error once,
     * and then returns what the other end has sent. */
    if (length < 0 && errno == ECONNRESET)
        length = recvmsg(link, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *fd = -1;
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (length == 0)
        return -ECONNRESET;
    if (packet.msg_controllen > 0)
        memcpy(fd, CMSG_DATA(&control.header), sizeof(*fd));
    if (length != (ssize_t)sizeof(*message))
        message->kind = 0; /* 0 is no valid kind: the packet was shorter or longer than a message */
    return 1;
}

/* ---- In the supervisor ---- */

static void
mark_socket(struct kept *socket, bool is_next)
{
    if (is_next)
        socket->is_wanted = true;
    else
        socket->is_used = true;
}

void
sxe__handover_leave_files(void)
{
    handover.leaves_files = true;
}

/* Get the value of a socket option; -1: getsockopt(2) failed. */
static int
option_of(int fd, int name)
{
    int value;
    socklen_t size = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

/* Whether a message that offers a socket is valid. The process that sent it runs scripts, and
 * parses what clients send, so it is not trusted. */
static bool
is_sound(const struct sxe__handover_message *message, int fd)
{
    if (message->kind == SXE__HANDOVER_USE)
        return fd < 0 && message->value < handover.number;
    return message->kind == SXE__HANDOVER_KEEP && fd >= 0 &&
           message->length >= sizeof(sa_family_t) &&
           message->length <= sizeof(message->u.address) && option_of(fd, SO_TYPE) == SOCK_STREAM &&
           option_of(fd, SO_DOMAIN) == message->u.address.ss_family;
}

void
sxe__handover_note(const struct sxe__handover_message *message, int fd, bool is_next)
{
    struct kept *socket = &handover.sockets[handover.number];

    if (!is_sound(message, fd)) {
        SXE_WARN("ignored an invalid message from a serving process: kind %u, socket %u of %u, "
                 "%u bytes of address",
                 (unsigned)message->kind, (unsigned)message->value, handover.number,
                 (unsigned)message->length);
        if (fd >= 0)
            close(fd);
        return;
    }
    if (message->kind == SXE__HANDOVER_USE) {
        mark_socket(&handover.sockets[message->value], is_next);
        return;
    }
    if (handover.number == SXE__HANDOVER_SOCKETS) {
        SXE_WARN("a listening socket will not survive a reload: %u sockets are kept already",
                 SXE__HANDOVER_SOCKETS);
        close(fd);
        return;
    }
    *socket = (struct kept){.address = message->u.address, .length = message->length, .fd = fd};
    if (!handover.leaves_files)
        sxe__socket_file_note_address(&socket->file, (const struct sockaddr *)&socket->address,
                                      socket->length);
    mark_socket(socket, is_next);
    handover.number++;
}

static bool
is_kept_at(const struct kept *socket, const struct sockaddr *address, socklen_t length)
{
    return socket->length == length && memcmp(&socket->address, address, length) == 0;
}

/* Add a socket to the table. 0, or -ENFILE: the table is full, and the socket was closed. */
static int
add_own_socket(struct kept socket)
{
    if (handover.number == SXE__HANDOVER_SOCKETS) {
        close(socket.fd);
        return -ENFILE;
    }
    socket.is_used = true;
    handover.sockets[handover.number++] = socket;
    return 0;
}

int
sxe__handover_open(const struct sockaddr *address, socklen_t length)
{
    struct kept socket = {.length = length, .is_new = handover.link >= 0};

    for (unsigned i = 0; i < handover.number; i++) {
        struct kept *kept = &handover.sockets[i];

        if (!is_kept_at(kept, address, length))
            continue;
        if (handover.leaves_files && !kept->is_inherited)
            sxe__socket_file_note_address(&kept->file, address, length);
        return 0;
    }
    memcpy(&socket.address, address, length);
    socket.fd = sxe_bind_listener(address, length);
    if (socket.fd < 0)
        return socket.fd;
    sxe__socket_file_note_address(&socket.file, address, length);
    return add_own_socket(socket);
}

static const char digits[] = "0123456789abcdef";

/* the names in LISTEN_FDNAMES of sockets that a sxe-httpd opened begin with this prefix */
#define PREFIX "sxe-"

/* Parse the address that a name contains, in hexadecimal, after PREFIX. Returns its length; 0: the
 * name is not of this form. */
static socklen_t
parse_socket_name(const char *name, size_t length, struct sockaddr_storage *address)
{
    const size_t before = sizeof(PREFIX) - 1;
    unsigned char *bytes = (unsigned char *)address;

    if (length <= before || length > before + 2 * sizeof(*address) || length % 2 != 0 ||
        memcmp(name, PREFIX, before) != 0)
        return 0;
    for (size_t i = 0; i < length - before; i++) {
        const char *digit = memchr(digits, name[before + i], 16);

        if (digit == NULL)
            return 0;
        bytes[i / 2] = (unsigned char)(bytes[i / 2] << 4 | (digit - digits));
    }
    return (socklen_t)((length - before) / 2);
}

/* Append the name of a socket to a list, in which there are colons between names. Returns the end
 * of the list. */
static char *
write_socket_name(char *at, bool is_first, const struct kept *socket)
{
    const unsigned char *bytes = (const unsigned char *)&socket->address;

    if (!is_first)
        *at++ = ':';
    if (socket->is_inherited)
        return stpcpy(at, "socket");
    at = stpcpy(at, PREFIX);
    for (socklen_t i = 0; i < socket->length; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    return at;
}

/* First duplicate all descriptors to numbers above the targets, so that dup2 does not overwrite a
 * descriptor that still has to be copied. */
int
sxe__handover_export(int first, int link, const char *link_name, char names[SXE__HANDOVER_NAMES])
{
    int fds[SXE__HANDOVER_SOCKETS + 1];
    int number = (int)handover.number;
    char *at = names;

    for (int i = 0; i < number; i++) {
        at = write_socket_name(at, i == 0, &handover.sockets[i]);
        fds[i] = handover.sockets[i].fd;
    }
    fds[number] = link;
    snprintf(at, SXE__HANDOVER_NAMES - (size_t)(at - names), "%s%s", number == 0 ? "" : ":",
             link_name);
    for (int i = 0; i <= number; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first + number + 1);
        if (fds[i] < 0)
            return errno == EINVAL ? -EMFILE : -errno; /* EINVAL: above the limit */
    }
    for (int i = 0; i <= number; i++)
        (void)dup2(fds[i], first + i);
    return number + 1;
}

int
sxe__handover_adopt(int fd, const char *name, size_t length)
{
    struct kept socket = {.length = sizeof(socket.address), .fd = fd};
    struct sockaddr_storage asked = {0};
    socklen_t asked_length = parse_socket_name(name, length, &asked);
    int one = 1;

    if (option_of(fd, SO_ACCEPTCONN) != 1 || option_of(fd, SO_TYPE) != SOCK_STREAM ||
        getsockname(fd, (struct sockaddr *)&socket.address, &socket.length) < 0)
        return -ENOTSOCK;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    if (socket.address.ss_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    socket.is_inherited = asked_length == 0;
    socket.is_lent = !socket.is_inherited;
    if (!socket.is_inherited) {
        socket.address = asked;
        socket.length = asked_length;
        if (!handover.leaves_files)
            sxe__socket_file_note_address(&socket.file, (const struct sockaddr *)&asked,
                                          asked_length);
    }
    return add_own_socket(socket);
}

unsigned
sxe__handover_inherited(struct sockaddr_storage addresses[SXE__HANDOVER_SOCKETS])
{
    unsigned number = 0;

    for (unsigned i = 0; i < handover.number; i++) {
        if (handover.sockets[i].is_inherited && handover.sockets[i].fd >= 0)
            addresses[number++] = handover.sockets[i].address;
    }
    return number;
}

void
sxe__handover_own_files(void)
{
    for (unsigned i = 0; i < handover.number; i++)
        handover.sockets[i].is_lent = false;
}

static void
remove_file(struct kept *socket)
{
    if (!socket->is_lent)
        sxe__socket_file_remove(&socket->file);
}

void
sxe__handover_settle(bool is_ready)
{
    unsigned number = 0;

    for (unsigned i = 0; i < handover.number; i++) {
        struct kept socket = handover.sockets[i];

        socket.is_used = is_ready ? socket.is_wanted : socket.is_used;
        socket.is_wanted = false;
        if (socket.is_used) {
            handover.sockets[number++] = socket;
            continue;
        }
        remove_file(&socket);
        close(socket.fd);
    }
    handover.number = number;
}

void
sxe__handover_join(void)
{
    for (unsigned i = 0; i < handover.number; i++) {
        handover.sockets[i].is_used |= handover.sockets[i].is_wanted;
        handover.sockets[i].is_wanted = false;
    }
}

/* ---- In a process that serves ---- */

void
sxe__handover_begin(int link)
{
    handover.link = link;
}

static void
keep_socket(const struct sockaddr *address, socklen_t length, int fd)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_KEEP, .length = length};

    memcpy(&message.u.address, address, length);
    if (handover.link >= 0)
        (void)sxe__handover_send(handover.link, &message, fd);
}

static void
tell_use(const struct kept *socket, unsigned index)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_USE, .value = index};

    if (socket->is_new)
        keep_socket((const struct sockaddr *)&socket->address, socket->length, socket->fd);
    else if (handover.link >= 0)
        (void)sxe__handover_send(handover.link, &message, -1);
}

static int
find_kept_socket(const struct sockaddr *address, socklen_t length)
{
    for (unsigned i = 0; i < handover.number; i++) {
        struct kept *socket = &handover.sockets[i];
        int fd = socket->fd;

        if (fd < 0 || !is_kept_at(socket, address, length))
            continue;
        tell_use(socket, i);
        socket->fd = -1;
        return fd;
    }
    return -1;
}

const struct sxe_listeners sxe__handover_listeners = {
    .find = find_kept_socket, .keep = keep_socket, .may_accept = sxe__balance_may_accept};

void
sxe__handover_close_others(void)
{
    for (unsigned i = 0; i < handover.number; i++) {
        if (handover.sockets[i].fd >= 0)
            close(handover.sockets[i].fd);
        handover.sockets[i].fd = -1;
    }
    handover.number = 0;
}

void
sxe__handover_remove_files(void)
{
    for (unsigned i = 0; i < handover.number; i++)
        remove_file(&handover.sockets[i]);
}
