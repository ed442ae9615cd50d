/* SPDX-License-Identifier: MIT
 *
 * Lists of networks: parsing them, and finding an address in them.
 */
#include "sxe-cidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS    " \t"
#define IPV6_BITS 128
/* the length of ::ffff:0:0/96, the prefix that makes an IPv4 address an IPv6 one */
#define IPV4_BITS 96

static const uint8_t ipv4_prefix[IPV4_BITS / 8] = {[10] = 0xff, [11] = 0xff};

static bool
is_ipv4(const uint8_t address[16])
{
    return memcmp(address, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

/* Copy an IP address as an IPv6 address; `address` need not be aligned. False: its family is not an
 * IP family. */
static bool
get_ip(uint8_t ip[16], const struct sockaddr *address)
{
    const char *bytes = (const char *)address;

    if (address == NULL)
        return false;
    if (address->sa_family == AF_INET) {
        memcpy(ip, ipv4_prefix, sizeof(ipv4_prefix));
        memcpy(ip + sizeof(ipv4_prefix), bytes + offsetof(struct sockaddr_in, sin_addr), 4);
        return true;
    }
    if (address->sa_family == AF_INET6)
        memcpy(ip, bytes + offsetof(struct sockaddr_in6, sin6_addr), 16);
    return address->sa_family == AF_INET6;
}

/* Whether the first `bits` bits of a and b are equal. */
static bool
is_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned mask = 0xff00u >> bits % 8 & 0xff;

    if (memcmp(a, b, bits / 8) != 0)
        return false;
    return bits % 8 == 0 || ((a[bits / 8] ^ b[bits / 8]) & mask) == 0;
}

/* Read a number from 0 to max that has at most three digits. -1: the text is no such number. */
static int
parse_bits(const char *text, int max)
{
    size_t digits = strspn(text, "0123456789");
    int bits = digits > 0 && digits <= 3 && text[digits] == '\0' ? (int)strtol(text, NULL, 10) : -1;

    return bits <= max ? bits : -1;
}

static bool
ends_in_zeros(const struct sxe_cidr *network)
{
    for (unsigned bit = network->bits; bit < 8 * sizeof(network->address); bit++) {
        if ((network->address[bit / 8] & 0x80 >> bit % 8) != 0)
            return false;
    }
    return true;
}

/* Parse "10.0.0.0/8" or an address. This function overwrites the slash in `text` with a NUL. */
static bool
parse_cidr(struct sxe_cidr *network, char *text)
{
    char *slash = strchr(text, '/');
    int front = 0;
    int bits;

    if (slash != NULL)
        *slash = '\0';
    if (inet_pton(AF_INET, text, network->address + sizeof(ipv4_prefix)) == 1) {
        memcpy(network->address, ipv4_prefix, sizeof(ipv4_prefix));
        front = IPV4_BITS;
    } else if (inet_pton(AF_INET6, text, network->address) != 1) {
        return false;
    }
    bits = slash != NULL ? parse_bits(slash + 1, IPV6_BITS - front) : IPV6_BITS - front;
    network->bits = (uint8_t)(front + bits);
    return bits >= 0 && ends_in_zeros(network);
}

static int
add_one_network(struct sxe_cidr_list *list, const char *base, size_t length)
{
    char text[INET6_ADDRSTRLEN + sizeof("/128")];
    struct sxe_cidr network;

    if (length >= sizeof(text))
        return -EINVAL;
    memcpy(text, base, length);
    text[length] = '\0';
    if (strcmp(text, "unix") == 0) {
        list->has_unix = true;
        return 0;
    }
    if (!parse_cidr(&network, text))
        return -EINVAL;
    if (list->number == SXE_CIDR_MAX)
        return -ENOSPC;
    list->networks[list->number++] = network;
    return 0;
}

int
sxe_cidr_add(struct sxe_cidr_list *list, const char *text, struct sxe_span *wrong)
{
    unsigned number = list->number;
    bool has_unix = list->has_unix;

    for (;;) {
        const char *base = text + strspn(text, BLANKS);
        size_t length = strcspn(base, "," BLANKS);
        const char *end = base + length + strspn(base + length, BLANKS);
        int result = *end == ',' || *end == '\0' ? add_one_network(list, base, length) : -EINVAL;

        if (result < 0) {
            list->number = number;
            list->has_unix = has_unix;
            if (wrong != NULL)
                *wrong = (struct sxe_span){base, length};
            return result;
        }
        if (*end == '\0')
            return 0;
        text = end + 1;
    }
}

bool
sxe_cidr_match(const struct sxe_cidr_list *list, const struct sockaddr *address)
{
    uint8_t ip[16];

    if (address != NULL && address->sa_family == AF_UNIX)
        return list->has_unix;
    if (!get_ip(ip, address))
        return false;
    for (unsigned i = 0; i < list->number; i++) {
        const struct sxe_cidr *network = &list->networks[i];

        if (is_ipv4(ip) == is_ipv4(network->address) &&
            is_prefix(ip, network->address, network->bits))
            return true;
    }
    return false;
}

/* ---- The internet ---- */

struct range {
    uint32_t first;
    unsigned bits;
};

/* Ranges that are not public (RFC 6890 and its successors): this host, private networks, links,
 * tests, multicast, and reserved ones. */
static const struct range private_ranges[] = {
    {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},  {0xa9fe0000, 16},
    {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24}, {0xc0a80000, 16}, {0xc6120000, 15},
    {0xc6336400, 24}, {0xcb007100, 24}, {0xe0000000, 3},
};

static bool
is_public_v4(uint32_t address)
{
    for (unsigned i = 0; i < sizeof(private_ranges) / sizeof(private_ranges[0]); i++) {
        if ((address ^ private_ranges[i].first) >> (32 - private_ranges[i].bits) == 0)
            return false;
    }
    return true;
}

static uint32_t
word_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Only 2000::/3 is global unicast. In it, 2001::/23 is for protocols, and 2001:db8::/32 and
 * 3fff::/20 are for documents (RFC 9637). An address in 2002::/16, 64:ff9b::/96 or ::ffff:0:0/96
 * holds an address of IPv4. */
static bool
is_public_v6(const unsigned char a[16])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const unsigned char translated[12] = {0, 0x64, 0xff, 0x9b};

    if (memcmp(a, mapped, 12) == 0 || memcmp(a, translated, 12) == 0)
        return is_public_v4(word_at(a + 12));
    if (a[0] == 0x20 && a[1] == 0x02)
        return is_public_v4(word_at(a + 2));
    return (a[0] & 0xe0) == 0x20 && !(word_at(a) >> 9 == 0x20010000 >> 9) &&
           word_at(a) != 0x20010db8 && word_at(a) >> 12 != 0x3fff0;
}

bool
sxe_cidr_is_public(const char *ip)
{
    unsigned char address[16] = {0};

    if (inet_pton(AF_INET, ip, address) == 1)
        return is_public_v4(word_at(address));
    return inet_pton(AF_INET6, ip, address) == 1 && is_public_v6(address);
}
