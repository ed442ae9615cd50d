/* SPDX-License-Identifier: MIT
 *
 * What: which client an address belongs to: an IPv4 address, or the first 64 bits of an IPv6
 * address. All clients of unix sockets are one.
 *
 * Place: rate-limit.c counts requests by it, basic-auth.c attempts to log in.
 */
#ifndef CLIENT_KEY_H
#define CLIENT_KEY_H

#include <stdint.h>
#include <sys/socket.h>

struct client_key {
    uint64_t family; /* 4, 6, or 0 for unix sockets */
    unsigned char bytes[8];
};

/* The client at an address that sxe_http_peer returned. */
struct client_key client_key_of(const struct sockaddr_storage *address, socklen_t length);

#endif
