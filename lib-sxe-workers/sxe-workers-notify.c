/* SPDX-License-Identifier: MIT
 *
 * Messages to the program that started this one, as with sd_notify(3).
 */
#include "sxe-workers-notify-internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sxe-log.h"

static int
send_to_manager(const char *path, const char *lines)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    ssize_t sent;
    int error;
    int fd;

    if (length >= sizeof(to.sun_path) || (*path != '/' && *path != '@'))
        return -EAFNOSUPPORT;
    memcpy(to.sun_path, path, length);
    if (*path == '@')
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    sent = sendto(fd, lines, strlen(lines), MSG_NOSIGNAL | MSG_DONTWAIT,
                  (const struct sockaddr *)&to, size);
    error = errno;
    close(fd);
    return sent < 0 && error != EAGAIN ? -error : 0;
}

void
sxe__notify_send(const char *lines)
{
    static int last_error;
    const char *path = getenv("NOTIFY_SOCKET");
    int error = path == NULL || *path == '\0' ? 0 : -send_to_manager(path, lines);

    if (error != 0 && error != last_error)
        SXE_WARN("cannot reach the service manager at NOTIFY_SOCKET=%s: %s; it may believe that "
                 "this server does not start",
                 path, strerror(error));
    last_error = error;
}

void
sxe__notify_ready(unsigned workers)
{
    char lines[64];

    snprintf(lines, sizeof(lines), "READY=1\nSTATUS=Serving with %u process%s", workers,
             workers == 1 ? "" : "es");
    sxe__notify_send(lines);
}

void
sxe__notify_reloading(void)
{
    char lines[96];

    snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Loading again",
             (unsigned long long)(sxe_time_ns() / SXE_NS_PER_US));
    sxe__notify_send(lines);
}

void
sxe__notify_stopping(void)
{
    sxe__notify_send("STOPPING=1\nSTATUS=Finishing the requests in progress");
}

uint64_t
sxe__notify_period_ns(void)
{
    const char *pid = getenv("WATCHDOG_PID");
    const char *period = getenv("WATCHDOG_USEC");

    if (period == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
        return 0;
    return strtoull(period, NULL, 10) * SXE_NS_PER_US / 2;
}

void
sxe__notify_alive(void)
{
    sxe__notify_send("WATCHDOG=1");
}
