/* SPDX-License-Identifier: MIT
 *
 * What: how many connections an address has: a hash table with open addressing and linear probing,
 * twice as large as there can be connections. A removal moves later entries up, so there are no
 * tombstones.
 *
 * Processes that share their counts have a table each, in memory that all of them see. A process
 * writes only its own table and adds up what it reads in all of them, so there is no lock to
 * recover when a process dies: its table is emptied. The version of a table is odd while a removal
 * moves its entries; a process that reads the table meanwhile reads it again.
 */
#include "sxe-http-server-private.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/* how often to read a table again while it changes: the process that changes it may have died */
#define READS_MAX 1000

struct entry {
    uint64_t key; /* the key of a client; 0: the entry is free */
    uint32_t count;
};

struct sxe__http_clients {
    uint64_t secret; /* random, so that no attacker can choose addresses that collide */
    uint32_t mask;
    uint32_t version;
    /* the shares to which this table belongs; NULL: it is not shared */
    struct sxe_http_shares *shares;
    struct entry entries[];
};

/* Each process has its own copy of this struct, from fork; only the tables are shared. */
struct sxe_http_shares {
    char *tables;  /* memory that all processes share */
    size_t stride; /* how many bytes after a table the next table begins */
    uint32_t size; /* how many entries a table has */
    unsigned number;
};

/* the key of an IPv4 address has this prefix, which no IPv6 network has */
#define IPV4 (UINT64_C(0xffff) << 32)

#define READ(word)         __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define WRITE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

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
place_of_key(const struct sxe__http_clients *clients, uint64_t key)
{
    uint64_t hash = (key ^ clients->secret) * UINT64_C(0x9e3779b97f4a7c15);

    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(hash >> 32) & clients->mask;
}

/* ---- Tables ---- */

/* How many entries a table needs for that many connections: a power of 2. */
static uint32_t
size_for(uint32_t connections)
{
    uint32_t size = 16;

    while (size < 2 * connections)
        size *= 2;
    return size;
}

static void
prepare_table(struct sxe__http_clients *clients, uint32_t size)
{
    clients->mask = size - 1;
    /* Without randomness the table still counts correctly. */
    (void)!getrandom(&clients->secret, sizeof(clients->secret), GRND_NONBLOCK);
}

static struct sxe__http_clients *
table_of(struct sxe_http_shares *shares, unsigned share)
{
    return (void *)(shares->tables + share * shares->stride);
}

static int
use_share(struct sxe_http *http)
{
    struct sxe_http_shares *shares = http->config.shares;

    if (http->config.share >= shares->number || shares->size < size_for(http->config.connections)) {
        SXE_ERROR(
            "cannot make an HTTP server: share must be one of the %u of shares, and these for "
            "as many connections as config.connections",
            shares->number);
        return -EINVAL;
    }
    http->clients = table_of(shares, http->config.share);
    return 0;
}

int
sxe__http_clients_new(struct sxe_http *http)
{
    uint32_t size = size_for(http->config.connections);
    struct sxe__http_clients *clients;

    if (http->config.shares != NULL)
        return use_share(http);
    clients = calloc(1, sizeof(*clients) + size * sizeof(struct entry));
    if (clients == NULL)
        return -ENOMEM;
    prepare_table(clients, size);
    http->clients = clients;
    return 0;
}

void
sxe__http_clients_delete(struct sxe_http *http)
{
    if (http->config.shares == NULL)
        free(http->clients);
}

struct sxe_http_shares *
sxe_http_shares_new(unsigned processes, uint32_t connections)
{
    uint32_t size = size_for(connections);
    size_t stride =
        (sizeof(struct sxe__http_clients) + size * sizeof(struct entry) + 63) & ~(size_t)63;
    struct sxe_http_shares *shares = malloc(sizeof(*shares));

    if (shares == NULL)
        return NULL;
    *shares = (struct sxe_http_shares){.stride = stride, .size = size, .number = processes};
    shares->tables = mmap(NULL, processes * stride, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shares->tables == MAP_FAILED) {
        free(shares);
        return NULL;
    }
    for (unsigned i = 0; i < processes; i++) {
        prepare_table(table_of(shares, i), size);
        table_of(shares, i)->shares = shares;
    }
    return shares;
}

void
sxe_http_shares_delete(struct sxe_http_shares *shares)
{
    if (shares == NULL)
        return;
    munmap(shares->tables, shares->number * shares->stride);
    free(shares);
}

void
sxe_http_shares_clear(struct sxe_http_shares *shares, unsigned share)
{
    struct sxe__http_clients *clients = table_of(shares, share);

    for (uint32_t at = 0; at < shares->size; at++) {
        if (clients->entries[at].key != 0)
            clients->entries[at] = (struct entry){0};
    }
    WRITE(clients->version, 0);
}

/* ---- Counting ---- */

/* Find the entry of a key, or the free entry where the key belongs. */
static struct entry *
find_entry(struct sxe__http_clients *clients, uint64_t key)
{
    uint32_t at = place_of_key(clients, key);

    for (uint32_t looks = 0; looks < clients->mask; looks++) {
        uint64_t found = READ(clients->entries[at].key);

        if (found == key || found == 0)
            break;
        at = (at + 1) & clients->mask;
    }
    return &clients->entries[at];
}

/* How many connections a client has in another process. */
static uint32_t
look_up_count(struct sxe__http_clients *clients, uint64_t key)
{
    uint32_t count = 0;

    for (unsigned i = 0; i < READS_MAX; i++) {
        uint32_t version = __atomic_load_n(&clients->version, __ATOMIC_ACQUIRE);
        const struct entry *entry = find_entry(clients, key);

        count = READ(entry->key) == key ? READ(entry->count) : 0;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (version % 2 == 0 && READ(clients->version) == version)
            break;
    }
    return count;
}

uint32_t
sxe__http_clients_add(struct sxe__http_clients *clients, uint64_t key)
{
    struct entry *entry = find_entry(clients, key);
    uint32_t sum;

    WRITE(entry->count, entry->count + 1);
    WRITE(entry->key, key);
    sum = entry->count;
    if (clients->shares == NULL)
        return sum;
    /* Of two processes that add at the same time, at least one sees the other's count. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < clients->shares->number; i++) {
        struct sxe__http_clients *other = table_of(clients->shares, i);

        if (other != clients)
            sum += look_up_count(other, key);
    }
    return sum;
}

/* Fill the hole that a removal left with a later entry whose own place is the hole, or is before
 * it. The moved entry leaves a hole, which is filled in the same way. */
static void
close_hole(struct sxe__http_clients *clients, uint32_t hole)
{
    uint32_t mask = clients->mask;

    for (uint32_t at = (hole + 1) & mask; clients->entries[at].key != 0; at = (at + 1) & mask) {
        const struct entry entry = clients->entries[at];
        uint32_t wanted = place_of_key(clients, entry.key);

        if (((at - wanted) & mask) >= ((at - hole) & mask)) {
            WRITE(clients->entries[hole].count, entry.count);
            WRITE(clients->entries[hole].key, entry.key);
            hole = at;
        }
    }
    WRITE(clients->entries[hole].key, 0);
    WRITE(clients->entries[hole].count, 0);
}

void
sxe__http_clients_remove(struct sxe__http_clients *clients, uint64_t key)
{
    struct entry *entry = find_entry(clients, key);

    if (entry->count > 1) {
        WRITE(entry->count, entry->count - 1);
        return;
    }
    WRITE(clients->version, clients->version + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    close_hole(clients, (uint32_t)(entry - clients->entries));
    __atomic_store_n(&clients->version, clients->version + 1, __ATOMIC_RELEASE);
}

void
sxe__http_uncount(struct sxe__http_connection *connection)
{
    if (connection->address != 0)
        sxe__http_clients_remove(connection->http->clients, connection->address);
    connection->address = 0;
}
