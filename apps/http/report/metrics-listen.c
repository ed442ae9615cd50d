/* SPDX-License-Identifier: MIT
 *
 * Parsing the address of --metrics, and listening at it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "metrics.h"

#define BACKLOG 16

static const char *
parse_path(const char *path, struct sockaddr_storage *address, socklen_t *length)
{
    struct sockaddr_un *un = (struct sockaddr_un *)address;
    size_t size = strlen(path);

    if (size >= sizeof(un->sun_path))
        return "the path is longer than a unix socket's may be, 107 bytes";
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, size);
    if (*path == '@')
        un->sun_path[0] = '\0';
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (*path != '@'));
    return NULL;
}

/* Parse an address such as "127.0.0.1" or "[::1]". */
static bool
parse_listen_ip(const char *ip, size_t size, in_port_t port, struct sockaddr_storage *address,
                socklen_t *length)
{
    struct sockaddr_in *in4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
    char text[INET6_ADDRSTRLEN];
    bool is_6 = size > 2 && ip[0] == '[' && ip[size - 1] == ']';

    ip += is_6;
    size -= is_6 ? 2 : 0;
    if (size >= sizeof(text))
        return false;
    memcpy(text, ip, size);
    text[size] = '\0';
    if (is_6) {
        *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
        *length = sizeof(*in6);
        return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1;
    }
    *in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
    *length = sizeof(*in4);
    return inet_pton(AF_INET, text, &in4->sin_addr) == 1;
}

const char *
load_metrics_parse(const char *text, struct sockaddr_storage *address, socklen_t *length)
{
    const char *colon = strrchr(text, ':');
    const char *digits = colon != NULL ? colon + 1 : text;
    const char *ip = colon != NULL ? text : "127.0.0.1";
    size_t ip_size = colon != NULL ? (size_t)(colon - text) : strlen(ip);
    unsigned long port = strtoul(digits, NULL, 10);

    memset(address, 0, sizeof(*address));
    if (strncmp(text, "unix:", 5) == 0)
        return parse_path(text + 5, address, length);
    if (strchr(text, '/') != NULL || *text == '@')
        return parse_path(text, address, length);
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits) || port > UINT16_MAX ||
        !parse_listen_ip(ip, ip_size, htons((uint16_t)port), address, length))
        return "it must be PORT, 192.0.2.1:PORT, [2001:db8::1]:PORT, or the path of a unix socket";
    return NULL;
}

static int
bind_metrics_socket(int fd, const struct sockaddr_storage *address, socklen_t length)
{
    return bind(fd, (const struct sockaddr *)address, length) < 0 ? -errno : 0;
}

/* Remove a stale socket file and bind again; never touch anything else at that path. */
static int
bind_socket_again(int fd, const struct sockaddr_storage *address, socklen_t length)
{
    const char *path = ((const struct sockaddr_un *)address)->sun_path;
    struct stat found;
    int error = -EADDRINUSE;
    int probe;

    if (address->ss_family != AF_UNIX || lstat(path, &found) < 0 || !S_ISSOCK(found.st_mode))
        return error;
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return -errno;
    if (connect(probe, (const struct sockaddr *)address, length) < 0 && errno == ECONNREFUSED &&
        unlink(path) == 0)
        error = bind_metrics_socket(fd, address, length);
    close(probe);
    return error;
}

int
load_metrics_listen(const struct sockaddr_storage *address, socklen_t length)
{
    static const int one = 1;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -errno;
    /* Let the socket be bound although connections of an earlier run are in TIME_WAIT. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    error = bind_metrics_socket(fd, address, length);
    if (error == -EADDRINUSE)
        error = bind_socket_again(fd, address, length);
    if (error == 0 && listen(fd, BACKLOG) < 0)
        error = -errno;
    if (error == 0)
        return fd;
    close(fd);
    return error;
}
