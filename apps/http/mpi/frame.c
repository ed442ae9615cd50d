/* SPDX-License-Identifier: MIT */
#include "frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "sxe-util.h"

uint32_t
http_frame_build(void)
{
    static const char version[] = SXE_VERSION;
    uint32_t build = (uint32_t)sizeof(struct http_result);

    for (unsigned i = 0; i < sizeof(version); i++)
        build = build * 31 + (unsigned char)version[i];
    return build;
}

bool
http_frame_send(int channel, const struct http_frame *frame, size_t bytes)
{
    return send(channel, frame, HTTP_FRAME_HEAD + bytes, MSG_NOSIGNAL) > 0;
}

int
http_frame_receive(int channel, struct http_frame *frame)
{
    ssize_t got = recv(channel, frame, sizeof(*frame), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    return got < (ssize_t)HTTP_FRAME_HEAD ? -2 : (int)got - (int)HTTP_FRAME_HEAD;
}

bool
http_frame_send_text(int channel, enum http_frame_type type, const char *text)
{
    struct http_frame frame = {.type = type, .number = http_frame_build()};
    size_t length = strnlen(text, HTTP_FRAME_BYTES - 1);

    memcpy(frame.bytes, text, length);
    return http_frame_send(channel, &frame, length);
}

const char *
http_frame_text(struct http_frame *frame, int bytes)
{
    frame->bytes[bytes < HTTP_FRAME_BYTES ? bytes : HTTP_FRAME_BYTES - 1] = '\0';
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
http_frame_send_descriptor(int channel, int descriptor)
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
http_frame_receive_descriptor(int channel)
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
