/* SPDX-License-Identifier: MIT
 *
 * Building, sending and receiving frames between envoys and agents.
 */
#include "frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "sxe-util.h"

uint32_t
load_frame_build(void)
{
    static const char version[] = SXE_VERSION;
    uint32_t build = (uint32_t)sizeof(struct load_result);

    for (unsigned i = 0; i < sizeof(version); i++)
        build = build * 31 + (unsigned char)version[i];
    return build;
}

bool
load_frame_send(int channel, const struct load_frame *frame, size_t bytes)
{
    return send(channel, frame, LOAD_FRAME_HEAD + bytes, MSG_NOSIGNAL) > 0;
}

int
load_frame_receive(int channel, struct load_frame *frame)
{
    ssize_t got = recv(channel, frame, sizeof(*frame), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    return got < (ssize_t)LOAD_FRAME_HEAD ? -2 : (int)got - (int)LOAD_FRAME_HEAD;
}

bool
load_frame_send_text(int channel, enum load_frame_type type, const char *text)
{
    struct load_frame frame = {.type = type, .value = load_frame_build()};
    size_t length = strnlen(text, LOAD_FRAME_BYTES - 1);

    memcpy(frame.bytes, text, length);
    return load_frame_send(channel, &frame, length);
}

const char *
load_frame_text(struct load_frame *frame, int bytes)
{
    frame->bytes[bytes < LOAD_FRAME_BYTES ? bytes : LOAD_FRAME_BYTES - 1] = '\0';
    return frame->bytes;
}

/* ---- Descriptors ---- */

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

static struct msghdr
message_of(union control *control, struct iovec *byte)
{
    return (struct msghdr){.msg_iov = byte,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof(*control)};
}

bool
load_frame_send_descriptor(int channel, int descriptor)
{
    char byte = 0;
    union control control = {.room = {0}};
    struct iovec bytes = {&byte, 1};
    struct msghdr message = message_of(&control, &bytes);

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(int));
    return sendmsg(channel, &message, MSG_NOSIGNAL) == 1;
}

int
load_frame_receive_descriptor(int channel)
{
    char byte;
    union control control = {.room = {0}};
    struct iovec bytes = {&byte, 1};
    struct msghdr message = message_of(&control, &bytes);
    int descriptor = -1;

    if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) == 1 &&
        control.header.cmsg_type == SCM_RIGHTS && message.msg_controllen > 0)
        memcpy(&descriptor, CMSG_DATA(&control.header), sizeof(int));
    return descriptor;
}
