/* SPDX-License-Identifier: MIT
 *
 * Messages between supervisor and serving processes, and the listening sockets that are kept.
 */
#include "handover.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "balance.h"
#include "socket-file.h"
#include "sxe-log.h"

struct kept {
    struct sockaddr_storage address;
    socklen_t length;
    struct socket_file file;
    int fd;         /* -1: in a serving process, after sxe_listen took it */
    bool is_used;   /* by the serving process */
    bool is_wanted; /* by the process that will replace it */
};

/* A forked child inherits a copy, and the descriptors in it. */
static struct {
    struct kept sockets[HANDOVER_SOCKETS];
    unsigned number;
    int link;
} handover;

/* ---- Messages ---- */

int
handover_send(int link, const struct handover_message *message, int fd)
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
handover_say(int link, enum handover_kind kind)
{
    struct handover_message message = {.kind = kind};

    return handover_send(link, &message, -1);
}

int
handover_receive(int link, struct handover_message *message, int *fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    ssize_t length = recvmsg(link, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    *fd = -1;
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (length == 0)
        return -ECONNRESET;
    if (packet.msg_controllen > 0)
        memcpy(fd, CMSG_DATA(&control.header), sizeof(*fd));
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

/* A serving process runs scripts and parses what clients send, so its messages are not trusted. */
static bool
is_sound(const struct handover_message *message, int fd)
{
    if (message->kind == HANDOVER_USE)
        return fd < 0 && message->number < handover.number;
    return message->kind == HANDOVER_KEEP && fd >= 0 && message->length >= sizeof(sa_family_t) &&
           message->length <= sizeof(message->u.address);
}

void
handover_note(const struct handover_message *message, int fd, bool is_next)
{
    struct kept *socket = &handover.sockets[handover.number];

    if (!is_sound(message, fd)) {
        SXE_WARN("ignored an invalid message from a serving process: kind %u, socket %u of %u, "
                 "%u bytes of address",
                 (unsigned)message->kind, (unsigned)message->number, handover.number,
                 (unsigned)message->length);
        if (fd >= 0)
            close(fd);
        return;
    }
    if (message->kind == HANDOVER_USE) {
        mark_socket(&handover.sockets[message->number], is_next);
        return;
    }
    if (handover.number == HANDOVER_SOCKETS) {
        SXE_WARN("a listening socket will not survive a reload: %u sockets are kept already",
                 HANDOVER_SOCKETS);
        close(fd);
        return;
    }
    *socket = (struct kept){.address = message->u.address, .length = message->length, .fd = fd};
    socket_file_note_address(&socket->file, (const struct sockaddr *)&socket->address,
                             socket->length);
    mark_socket(socket, is_next);
    handover.number++;
}

void
handover_settle(bool is_ready)
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
        socket_file_remove(&socket.file);
        close(socket.fd);
    }
    handover.number = number;
}

void
handover_join(void)
{
    for (unsigned i = 0; i < handover.number; i++) {
        handover.sockets[i].is_used |= handover.sockets[i].is_wanted;
        handover.sockets[i].is_wanted = false;
    }
}

/* ---- In a process that serves ---- */

void
handover_begin(int link)
{
    handover.link = link;
}

static int
find(const struct sockaddr *address, socklen_t length)
{
    for (unsigned i = 0; i < handover.number; i++) {
        struct kept *socket = &handover.sockets[i];
        struct handover_message message = {.kind = HANDOVER_USE, .number = i};
        int fd = socket->fd;

        if (fd < 0 || socket->length != length || memcmp(&socket->address, address, length) != 0)
            continue;
        socket->fd = -1;
        (void)handover_send(handover.link, &message, -1);
        return fd;
    }
    return -1;
}

static void
keep(const struct sockaddr *address, socklen_t length, int fd)
{
    struct handover_message message = {.kind = HANDOVER_KEEP, .length = length};

    memcpy(&message.u.address, address, length);
    (void)handover_send(handover.link, &message, fd);
}

const struct sxe_listeners handover_listeners = {
    .find = find, .keep = keep, .may_accept = balance_may_accept};

void
handover_close_others(void)
{
    for (unsigned i = 0; i < handover.number; i++) {
        if (handover.sockets[i].fd >= 0)
            close(handover.sockets[i].fd);
        handover.sockets[i].fd = -1;
    }
    handover.number = 0;
}

void
handover_remove_files(void)
{
    for (unsigned i = 0; i < handover.number; i++)
        socket_file_remove(&handover.sockets[i].file);
}
