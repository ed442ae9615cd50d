/* SPDX-License-Identifier: MIT
 *
 * What: names whose addresses the test makes: the test's own getaddrinfo, and listeners at
 * loopback addresses with one port.
 *
 * Shape: each letter of a name, up to a dot, is an address, 127.0.0.2 for the first, 127.0.0.3 for
 * the second and so on, and says what is there:
 *
 *     o    a listener that accepts           r    nothing: connections are refused
 *     d    a deaf one: the kernel ignores connections, because its backlog is full
 *     x    an address that cannot be connected to: 255.255.255.255
 *
 *     "none" has no address.
 *
 * Example:
 *     hosts_open("do", &port);                             listeners for the name
 *     sxe_dial(&dial, "do.example", port);
 *     int peer = peer_accept(hosts[1].listener);
 *     hosts_close();
 */
#ifndef NAMED_HOSTS_H
#define NAMED_HOSTS_H

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-fixture.h"
#include "test-main.h"

#define HOSTS_MAX 8

int __real_socket(int family, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *address, socklen_t length);
int __real_listen(int fd, int backlog);
int __real_close(int fd);

static struct named_host {
    int listener;
    int filling; /* the connection that fills the backlog of a deaf host */
} hosts[HOSTS_MAX];
static unsigned hosts_number;
static atomic_uint hosts_asked; /* how many times getaddrinfo was called */

static inline struct sockaddr_in
named_address(unsigned index, char kind)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_addr.s_addr = kind == 'x' ? INADDR_BROADCAST : htonl(INADDR_LOOPBACK + 1 + index)};
}

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **list)
{
    const unsigned number = (unsigned)strcspn(name, ".");

    (void)service;
    (void)hints;
    hosts_asked++;
    if (strcmp(name, "none") == 0)
        return EAI_NONAME;
    for (unsigned i = number; i-- > 0;) {
        struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_in));
        struct sockaddr_in *in = (struct sockaddr_in *)(void *)(info + 1);

        *in = named_address(i, name[i]);
        info->ai_addr = (struct sockaddr *)in;
        info->ai_addrlen = sizeof(*in);
        info->ai_next = *list;
        *list = info;
    }
    return 0;
}

void
freeaddrinfo(struct addrinfo *list)
{
    while (list != NULL) {
        struct addrinfo *next = list->ai_next;

        free(list);
        list = next;
    }
}

/* Returns a listener; -1: the port is in use. */
static inline int
named_listener(unsigned index, char kind, in_port_t number)
{
    struct sockaddr_in at = named_address(index, kind);
    int fd = __real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    at.sin_port = number;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (__real_bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
        __real_listen(fd, kind == 'd' ? 0 : 100) == 0)
        return fd;
    __real_close(fd);
    return -1;
}

static inline void
fill_backlog(struct named_host *host)
{
    struct sockaddr_in at = {0};
    socklen_t length = sizeof(at);

    ck_assert_int_eq(getsockname(host->listener, (struct sockaddr *)&at, &length), 0);
    host->filling = __real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(host->filling, (struct sockaddr *)&at, sizeof(at)), 0);
}

static inline void
hosts_close(void)
{
    for (unsigned i = 0; i < hosts_number; i++) {
        if (hosts[i].filling >= 0)
            __real_close(hosts[i].filling);
        if (hosts[i].listener >= 0)
            __real_close(hosts[i].listener);
    }
    hosts_number = 0;
}

/* Make the listeners for the addresses of a name, at this port. False: it is in use. */
static inline bool
hosts_open_at(const char *kinds, in_port_t number)
{
    hosts_number = (unsigned)strlen(kinds);
    for (unsigned i = 0; i < hosts_number; i++)
        hosts[i] = (struct named_host){-1, -1};
    for (unsigned i = 0; i < hosts_number; i++) {
        if (kinds[i] != 'o' && kinds[i] != 'd')
            continue;
        hosts[i].listener = named_listener(i, kinds[i], number);
        if (hosts[i].listener < 0)
            return false;
        if (kinds[i] == 'd')
            fill_backlog(&hosts[i]);
    }
    return true;
}

/* Make the listeners for the addresses of a name. A listener at 127.0.0.1, which is closed again,
 * chooses the port for all. */
static inline void
hosts_open(const char *kinds, unsigned short *number)
{
    bool is_open = false;

    for (unsigned i = 0; i < 100 && !is_open; i++) {
        struct sockaddr_in at;
        socklen_t length = sizeof(at);
        int reserved = named_listener((unsigned)-1, 'o', 0);

        ck_assert_int_eq(getsockname(reserved, (struct sockaddr *)&at, &length), 0);
        *number = ntohs(at.sin_port);
        is_open = hosts_open_at(kinds, at.sin_port);
        if (!is_open)
            hosts_close();
        __real_close(reserved);
    }
    ck_assert(is_open);
}

/* Let a deaf host hear: it accepts connections from now on. */
static inline void
hosts_undeafen(unsigned index)
{
    ck_assert_int_eq(__real_listen(hosts[index].listener, 100), 0);
}

#endif
