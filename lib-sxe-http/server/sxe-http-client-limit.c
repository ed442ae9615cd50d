/* SPDX-License-Identifier: MIT
 *
 * What: how many connections an address has: a hash table with open addressing and linear probing,
 * twice as large as there can be connections. A removal moves later entries up, so there are no
 * tombstones.
 */
#include "sxe-http-server-private.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct entry {
    uint64_t key; /* 0: free */
    uint32_t count;
};

struct sxe__http_clients {
    uint64_t secret; /* so that nobody chooses addresses that meet in one place */
    uint32_t mask;
    struct entry entries[];
};

#define IPV4 (UINT64_C(0xffff) << 32) /* as if it were ::ffff:a.b.c.d, and no network is so */

uint64_t
sxe__http_client_key(const struct sockaddr_storage *address, socklen_t length)
{
    struct sockaddr_in6 in6 = {0};
    struct sockaddr_in in = {0};
    uint64_t network = 0;
    uint32_t ip;

    if (length >= sizeof(in6) && address->ss_family == AF_INET6) {
        memcpy(&in6, address, sizeof(in6));
        if (IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr))
            return 0;
        if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
            memcpy(&network, &in6.sin6_addr, sizeof(network));
            return network == 0 ? 1 : be64toh(network);
        }
        memcpy(&ip, in6.sin6_addr.s6_addr + 12, sizeof(ip));
    } else if (length >= sizeof(in) && address->ss_family == AF_INET) {
        memcpy(&in, address, sizeof(in));
        ip = in.sin_addr.s_addr;
    } else {
        return 0;
    }
    ip = ntohl(ip);
    return ip >> 24 == IN_LOOPBACKNET ? 0 : IPV4 | ip;
}

static uint32_t
place_of(const struct sxe__http_clients *clients, uint64_t key)
{
    uint64_t hash = (key ^ clients->secret) * UINT64_C(0x9e3779b97f4a7c15);

    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(hash >> 32) & clients->mask;
}

int
sxe__http_clients_new(struct sxe_http *http)
{
    uint32_t size = 16;
    struct sxe__http_clients *clients;

    while (size < 2 * http->config.connections)
        size *= 2;
    clients = calloc(1, sizeof(*clients) + size * sizeof(struct entry));
    if (clients == NULL)
        return -ENOMEM;
    clients->mask = size - 1;
    /* Without randomness the table still counts right. */
    (void)!getrandom(&clients->secret, sizeof(clients->secret), GRND_NONBLOCK);
    http->clients = clients;
    return 0;
}

/* The key's entry, or the free one where it would be. */
static struct entry *
find(struct sxe__http_clients *clients, uint64_t key)
{
    uint32_t at = place_of(clients, key);

    while (clients->entries[at].key != key && clients->entries[at].key != 0)
        at = (at + 1) & clients->mask;
    return &clients->entries[at];
}

uint32_t
sxe__http_clients_add(struct sxe__http_clients *clients, uint64_t key)
{
    struct entry *entry = find(clients, key);

    entry->key = key;
    return ++entry->count;
}

/* Fill the hole with a later entry that found no free place nearer to its own. */
static void
close_hole(struct sxe__http_clients *clients, uint32_t hole)
{
    uint32_t mask = clients->mask;

    for (uint32_t at = (hole + 1) & mask; clients->entries[at].key != 0; at = (at + 1) & mask) {
        uint32_t wanted = place_of(clients, clients->entries[at].key);

        if (((at - wanted) & mask) >= ((at - hole) & mask)) {
            clients->entries[hole] = clients->entries[at];
            hole = at;
        }
    }
    clients->entries[hole] = (struct entry){0};
}

void
sxe__http_clients_remove(struct sxe__http_clients *clients, uint64_t key)
{
    struct entry *entry = find(clients, key);

    if (--entry->count == 0)
        close_hole(clients, (uint32_t)(entry - clients->entries));
}
