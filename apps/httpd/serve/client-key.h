/* SPDX-License-Identifier: MIT
 *
 * What: tells which addresses count as the same client. A client is an IPv4 address, or the first
 * 64 bits of an IPv6 address; all clients of unix sockets count as one.
 *
 * Place: rate-limit.c counts the requests of a client, and basic-auth.c its attempts to log in.
 */
#ifndef CLIENT_KEY_H
#define CLIENT_KEY_H

#include <stdint.h>
#include <sys/socket.h>

struct client_key {
    uint64_t family; /* 4, 6, or 0 for a unix socket */
    unsigned char bytes[8];
};

/* The client that has this address, which sxe_http_peer returned. */
struct client_key client_key_of(const struct sockaddr_storage *address, socklen_t length);

#endif
