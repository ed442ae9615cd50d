/* SPDX-License-Identifier: MIT
 *
 * What: a socket for NOTIFY_SOCKET, which receives the messages of sxe-httpd to its service
 * manager.
 *
 * Limits: one mailbox; the kernel keeps some ten messages.
 */
#ifndef MAILBOX_H
#define MAILBOX_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
    char name[64]; /* the value of NOTIFY_SOCKET */
    int fd;
} mailbox;

/* Open a mailbox. first: '/' for a path below /tmp, '@' for an abstract name. */
static inline void
open_mailbox(char first)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 600};
    size_t length;

    snprintf(mailbox.name, sizeof(mailbox.name), "%ctmp/sxe-mailbox-%d", first, getpid());
    length = strlen(mailbox.name);
    memcpy(un.sun_path, mailbox.name, length);
    if (first == '@')
        un.sun_path[0] = '\0';
    mailbox.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(mailbox.fd, (struct sockaddr *)&un,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
                     0);
    ck_assert_int_eq(setsockopt(mailbox.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
                     0);
    setenv("NOTIFY_SOCKET", mailbox.name, 1);
}

/* Wait for the next message; the limit of time only ends a hang. */
static inline const char *
message(void)
{
    static char text[256];
    ssize_t length = recv(mailbox.fd, text, sizeof(text) - 1, 0);

    ck_assert_int_ge(length, 0);
    text[length] = '\0';
    return text;
}

static inline bool
mailbox_is_empty(void)
{
    char byte;

    return recv(mailbox.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
}

#endif
