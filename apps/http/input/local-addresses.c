/* SPDX-License-Identifier: MIT
 *
 * Parsing local addresses. All are handled as IPv6 addresses; an IPv4 address is handled as an
 * address in ::ffff:0:0/96, as in sxe-cidr.h.
 */
#include "local-addresses.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sxe-cidr.h"
#include "wrong.h"

#define PART_MAX  100 /* room for a part of the list: two addresses and a hyphen fit */
#define BLANKS    " \t"
#define TRIES_MAX 1000u
/* the most addresses that a range may have, so that the sum of all ranges fits into 64 bits; no
 * test needs as many */
#define RANGE_MAX (UINT64_C(1) << 56)

enum { IPV4_AT = 12, ADDRESS_BITS = 128 };

static const unsigned char ipv4_prefix[IPV4_AT] = {[10] = 0xff, [11] = 0xff};

static uint64_t
half_of_address(const unsigned char address[16], unsigned which)
{
    uint64_t word;

    memcpy(&word, address + which * sizeof(word), sizeof(word));
    return be64toh(word);
}

static void
advance_address(unsigned char address[16], uint64_t by)
{
    uint64_t low = half_of_address(address, 1) + by;
    uint64_t high = htobe64(half_of_address(address, 0) + (low < by));

    low = htobe64(low);
    memcpy(address, &high, sizeof(high));
    memcpy(address + sizeof(high), &low, sizeof(low));
}

static int
family_of_local(const unsigned char address[16])
{
    return memcmp(address, ipv4_prefix, sizeof(ipv4_prefix)) == 0 ? AF_INET : AF_INET6;
}

/* Add an address or a network. NULL, or a text that says what is wrong. */
static const char *
parse_local_network(const char *text, struct sxe_cidr *network)
{
    struct sxe_cidr_list list = {0};

    if (strchr(text, ',') != NULL || sxe_cidr_add(&list, text, NULL) < 0 || list.has_unix)
        return load_wrong("'%s' is not an address or network (127.0.0.1, 127.0.0.1-127.0.0.8, "
                          "127.0.0.0/28, ::1); after the prefix a network's bits are zero",
                          text);
    *network = list.networks[0];
    return NULL;
}

/* Add the range "first-last". NULL, or what is wrong. This function writes a zero byte over the
 * hyphen. */
static const char *
parse_range(char *text, char *hyphen, unsigned char first[16], uint64_t *number)
{
    struct sxe_cidr from = {0};
    struct sxe_cidr to = {0};
    const char *wrong;
    uint64_t distance;

    *hyphen = '\0';
    wrong = parse_local_network(text, &from);
    if (wrong == NULL)
        wrong = parse_local_network(hyphen + 1, &to);
    *hyphen = '-';
    if (wrong != NULL)
        return wrong;
    if (from.bits != ADDRESS_BITS || to.bits != ADDRESS_BITS)
        return load_wrong("'%s' is a range of networks; give the first and the last address", text);
    if (family_of_local(from.address) != family_of_local(to.address))
        return load_wrong("'%s' begins with IPv4 and ends with IPv6, or the reverse", text);
    if (memcmp(from.address, to.address, sizeof(to.address)) > 0)
        return load_wrong("'%s' is the wrong way round: the first address is after the last", text);
    memcpy(first, from.address, sizeof(from.address));
    distance = half_of_address(to.address, 1) - half_of_address(from.address, 1);
    *number =
        half_of_address(from.address, 0) != half_of_address(to.address, 0) || distance >= RANGE_MAX
            ? RANGE_MAX
            : distance + 1;
    return NULL;
}

/* If a network has more than two addresses, leave out the first and the last, because no host may
 * have them. */
static void
take_network(const struct sxe_cidr *network, unsigned char first[16], uint64_t *number)
{
    unsigned free_bits = ADDRESS_BITS - network->bits;
    uint64_t size = free_bits < 57 ? UINT64_C(1) << free_bits : RANGE_MAX + 2;

    memcpy(first, network->address, sizeof(network->address));
    *number = size;
    if (size > 2) {
        advance_address(first, 1);
        *number = size - 2;
    }
}

/* Read one part of the list. NULL, or what is wrong. */
static const char *
add_local_part(struct load_local_addresses *local, char *text)
{
    char *hyphen = strchr(text, '-');
    unsigned char *first = local->range[local->ranges].first;
    uint64_t *number = &local->range[local->ranges].number;
    struct sxe_cidr network = {0};
    const char *wrong;

    if (hyphen != NULL) {
        wrong = parse_range(text, hyphen, first, number);
    } else {
        wrong = parse_local_network(text, &network);
        if (wrong == NULL)
            take_network(&network, first, number);
    }
    if (wrong != NULL)
        return wrong;
    if (local->ranges > 0 && family_of_local(first) != local->family)
        return load_wrong("'%s' is not of the same family as those before it: one server is "
                          "connected to from IPv4 or from IPv6",
                          text);
    local->family = family_of_local(first);
    local->number += *number;
    local->ranges++;
    return NULL;
}

const char *
load_local_addresses_parse(struct load_local_addresses *local, const char *text)
{
    *local = (struct load_local_addresses){0};
    for (;;) {
        const char *base = text + strspn(text, BLANKS);
        size_t length = strcspn(base, ",");
        const char *wrong;
        char part[PART_MAX];

        text = base + length;
        while (length > 0 && strchr(BLANKS, base[length - 1]) != NULL)
            length--;
        if (length >= sizeof(part))
            return load_wrong("'%.40s...' is too long for an address", base);
        memcpy(part, base, length);
        part[length] = '\0';
        if (local->ranges == LOAD_LOCAL_ADDRESSES_MAX)
            return load_wrong("'%s' is one too many: give at most %d parts; a part may be a range",
                              part, LOAD_LOCAL_ADDRESSES_MAX);
        wrong = add_local_part(local, part);
        if (wrong != NULL)
            return wrong;
        if (*text == '\0')
            return NULL;
        text++;
    }
}

void
load_local_addresses_text(const struct load_local_addresses *local, uint64_t nth, char *text,
                          size_t size)
{
    unsigned char address[16];
    bool is_ipv4 = local->family == AF_INET;
    unsigned i = 0;

    nth %= local->number;
    while (nth >= local->range[i].number)
        nth -= local->range[i++].number;
    memcpy(address, local->range[i].first, sizeof(address));
    advance_address(address, nth);
    inet_ntop(local->family, is_ipv4 ? address + IPV4_AT : address, text, (socklen_t)size);
}

/* Whether this machine has the address: whether a socket can be bound to it. Also true if the test
 * fails for another reason, because connecting reports that reason. */
static bool
is_here(int family, const char *address)
{
    union {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } name = {.any.sa_family = (sa_family_t)family};
    bool is_ipv4 = family == AF_INET;
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_refused;

    inet_pton(family, address, is_ipv4 ? (void *)&name.ipv4.sin_addr : &name.ipv6.sin6_addr);
    is_refused = fd >= 0 && bind(fd, &name.any, sizeof(name)) < 0 && errno == EADDRNOTAVAIL;
    if (fd >= 0)
        close(fd);
    return !is_refused;
}

const char *
load_local_addresses_try(const struct load_local_addresses *local, uint64_t number)
{
    number = number < local->number ? number : local->number;
    for (uint64_t i = 0; i < number && i < TRIES_MAX; i++) {
        char address[INET6_ADDRSTRLEN];

        load_local_addresses_text(local, i, address, sizeof(address));
        if (!is_here(local->family, address))
            return load_wrong("'%s' is no address of this machine", address);
    }
    return NULL;
}
