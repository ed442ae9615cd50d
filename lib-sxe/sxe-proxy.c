/* SPDX-License-Identifier: MIT
 *
 * Reads and writes headers of the PROXY protocol, versions 1 and 2.
 */
#include "sxe-proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define LINE_MAX_V1  107 /* the longest line of version 1, with its CR LF */
#define SIGNATURE_V1 "PROXY "
#define SIGNATURE_V2 "\r\n\r\n\0\r\nQUIT\n"
/* bytes of a header of version 2 before the addresses; its last two bytes hold the length */
#define FIXED_SIZE_V2 16

#define TLV_HEAD        3
#define TLV_TYPE_CRC32C 3
#define CRC32C_SIZE     4

#define PATH_SIZE 108

enum { FAMILY_UNSPEC, FAMILY_INET, FAMILY_INET6, FAMILY_UNIX, FAMILIES };
enum { TRANSPORT_UNSPEC, TRANSPORT_STREAM, TRANSPORT_DGRAM, TRANSPORTS };

/* How many bytes of a header of version 2 hold source and destination, by family. */
static const uint8_t addresses_size[FAMILIES] = {0, 2 * (4 + 2), 2 * (16 + 2), 2 * PATH_SIZE};

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == PATH_SIZE,
               "paths are as on the wire");
_Static_assert(SXE_PROXY_WRITE_MAX == FIXED_SIZE_V2 + 2 * PATH_SIZE, "room for the longest header");

/* ---- Version 1 ---- */

/* The length of the line with its CR LF; 0: more bytes are needed; -1: the line does not end in CR
 * LF, or is too long. */
static int
line_length(const char *data, size_t length)
{
    size_t limit = length < LINE_MAX_V1 ? length : LINE_MAX_V1;
    size_t at = 0;

    while (at < limit && data[at] != '\r' && data[at] != '\n')
        at++;
    if (at + 1 < limit)
        return data[at] == '\r' && data[at + 1] == '\n' ? (int)at + 2 : -1;
    return limit == LINE_MAX_V1 || (at < limit && data[at] == '\n') ? -1 : 0;
}

/* Read a number from 0 to 65535 without leading zeros; -1: the text is no such number. */
static int
parse_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    long port;

    if (digits == 0 || digits > 5 || text[digits] != '\0' || (*text == '0' && digits > 1))
        return -1;
    port = strtol(text, NULL, 10);
    return port <= UINT16_MAX ? (int)port : -1;
}

static bool
parse_endpoint(struct sockaddr_storage *address, int family, const char *ip, const char *port_text)
{
    struct sockaddr_in *in4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
    int port = parse_port(port_text);

    if (port < 0)
        return false;
    address->ss_family = (sa_family_t)family;
    if (family == AF_INET) {
        in4->sin_port = htons((uint16_t)port);
        return inet_pton(AF_INET, ip, &in4->sin_addr) == 1;
    }
    in6->sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1;
}

/* Read the rest of a line after "PROXY TCP4 " or "PROXY TCP6 ": two addresses and two ports. The
 * rest is shorter than LINE_MAX_V1, so `text` has room for it. */
static bool
parse_words(const char *line, size_t length, int family, struct sxe_proxy *proxy)
{
    char text[LINE_MAX_V1];
    char *rest = text;
    char *word[4];

    memcpy(text, line, length);
    text[length] = '\0';
    if (strlen(text) != length)
        return false;
    for (unsigned i = 0; i < 4; i++) {
        word[i] = strsep(&rest, " ");
        if (word[i] == NULL)
            return false;
    }
    return rest == NULL && parse_endpoint(&proxy->source, family, word[0], word[2]) &&
           parse_endpoint(&proxy->destination, family, word[1], word[3]);
}

static bool
begins_with_words(const char *line, size_t length, const char *words)
{
    return length >= strlen(words) && memcmp(line, words, strlen(words)) == 0;
}

static int
parse_v1(const char *data, size_t length, struct sxe_proxy *proxy)
{
    static const size_t skipped = SXE_LITERAL_LENGTH(SIGNATURE_V1 "TCP4 ");
    int result = line_length(data, length);
    size_t line = (size_t)result;
    bool good;

    if (result <= 0)
        return result;
    *proxy = (struct sxe_proxy){.version = 1, .command = SXE_PROXY_PROXY};
    if (begins_with_words(data, line, SIGNATURE_V1 "TCP4 "))
        good = parse_words(data + skipped, line - skipped - 2, AF_INET, proxy);
    else if (begins_with_words(data, line, SIGNATURE_V1 "TCP6 "))
        good = parse_words(data + skipped, line - skipped - 2, AF_INET6, proxy);
    else
        good = begins_with_words(data, line, SIGNATURE_V1 "UNKNOWN\r") ||
               begins_with_words(data, line, SIGNATURE_V1 "UNKNOWN ");
    return good ? result : -1;
}

/* ---- Version 2 ---- */

static uint16_t
get_16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t
get_32(const uint8_t *bytes)
{
    return (uint32_t)get_16(bytes) << 16 | get_16(bytes + 2);
}

/* The checksum CRC32c (RFC 9260, appendix A), four bits at a time. The header holds its own
 * checksum in the four bytes at `hole`; they count as zero. */
static uint32_t
crc32c_of_header(const uint8_t *bytes, size_t size, size_t hole)
{
    static const uint32_t table[] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= i >= hole && i < hole + CRC32C_SIZE ? 0 : bytes[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* Whether the TLVs (extra values with type and length), which begin at `at`, fill a header of
 * `size` bytes exactly, and the checksum among them, if there is one, is right. */
static bool
has_valid_tlvs(const uint8_t *header, size_t size, size_t at)
{
    size_t checksum = 0;

    while (at < size) {
        size_t value = at + TLV_HEAD;
        size_t length;

        if (value > size)
            return false;
        length = get_16(header + at + 1);
        if (length > size - value)
            return false;
        if (header[at] == TLV_TYPE_CRC32C && (checksum != 0 || length != CRC32C_SIZE))
            return false;
        if (header[at] == TLV_TYPE_CRC32C)
            checksum = value;
        at = value + length;
    }
    return checksum == 0 || crc32c_of_header(header, size, checksum) == get_32(header + checksum);
}

/* Read the address and the port of the source or of the destination. The header has both addresses
 * first, then both ports. */
static void
get_endpoint(struct sockaddr_storage *address, unsigned family, const uint8_t *bytes, unsigned nth)
{
    struct sockaddr_in *in4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
    struct sockaddr_un *un = (struct sockaddr_un *)address;

    if (family == FAMILY_INET) {
        in4->sin_family = AF_INET;
        memcpy(&in4->sin_addr, bytes + nth * 4, 4);
        memcpy(&in4->sin_port, bytes + 8 + nth * 2, 2);
    } else if (family == FAMILY_INET6) {
        in6->sin6_family = AF_INET6;
        memcpy(&in6->sin6_addr, bytes + nth * 16, 16);
        memcpy(&in6->sin6_port, bytes + 32 + nth * 2, 2);
    } else {
        un->sun_family = AF_UNIX;
        memcpy(un->sun_path, bytes + nth * PATH_SIZE, PATH_SIZE);
    }
}

/* Read the addresses and TLVs, which follow the fixed part. The whole header has arrived. */
static int
parse_block(const uint8_t *header, size_t size, unsigned family, struct sxe_proxy *proxy)
{
    const uint8_t *addresses = header + FIXED_SIZE_V2;

    *proxy = (struct sxe_proxy){.version = 2, .command = header[12] & 15};
    if (family == FAMILY_UNSPEC)
        return (int)size;
    if (!has_valid_tlvs(header, size, FIXED_SIZE_V2 + addresses_size[family]))
        return -1;
    get_endpoint(&proxy->source, family, addresses, 0);
    get_endpoint(&proxy->destination, family, addresses, 1);
    return (int)size;
}

static int
parse_v2(const uint8_t *data, size_t length, struct sxe_proxy *proxy)
{
    unsigned family = FAMILY_UNSPEC;
    unsigned command;
    size_t size;

    if (length < FIXED_SIZE_V2 - 3)
        return 0;
    command = data[12] & 15;
    if (data[12] >> 4 != 2 || command > SXE_PROXY_PROXY)
        return -1;
    if (length < FIXED_SIZE_V2 - 2)
        return 0;
    if (command == SXE_PROXY_PROXY) {
        family = data[13] >> 4;
        if (family >= FAMILIES || (data[13] & 15) >= TRANSPORTS)
            return -1;
        if ((data[13] & 15) == TRANSPORT_UNSPEC)
            family = FAMILY_UNSPEC;
    }
    if (length < FIXED_SIZE_V2)
        return 0;
    size = FIXED_SIZE_V2 + (size_t)get_16(data + 14);
    if (size > SXE_PROXY_MAX || size < FIXED_SIZE_V2 + (size_t)addresses_size[family])
        return -1;
    return length < size ? 0 : parse_block(data, size, family, proxy);
}

/* ---- Both versions ---- */

static bool
begins_like(const char *data, size_t length, const char *signature, size_t size)
{
    return memcmp(data, signature, length < size ? length : size) == 0;
}

int
sxe_proxy_parse(const char *data, size_t length, struct sxe_proxy *proxy)
{
    if (length == 0)
        return 0;
    if (begins_like(data, length, SIGNATURE_V1, SXE_LITERAL_LENGTH(SIGNATURE_V1)))
        return parse_v1(data, length, proxy);
    if (begins_like(data, length, SIGNATURE_V2, SXE_LITERAL_LENGTH(SIGNATURE_V2)))
        return parse_v2((const uint8_t *)data, length, proxy);
    return -1;
}

/* ---- Writing ---- */

/* Write an address; an IPv6 address as eight groups: inet_ntop(3) would write some with dots, which
 * the specification does not allow. */
static void
ip_text(const struct sockaddr_storage *address, char *text, size_t size)
{
    const uint8_t *ip = ((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr;

    if (address->ss_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, (socklen_t)size);
        return;
    }
    snprintf(text, size, "%x:%x:%x:%x:%x:%x:%x:%x", get_16(ip), get_16(ip + 2), get_16(ip + 4),
             get_16(ip + 6), get_16(ip + 8), get_16(ip + 10), get_16(ip + 12), get_16(ip + 14));
}

/* sin_port and sin6_port have the same offset. */
static in_port_t
port_of(const struct sockaddr_storage *address)
{
    return ((const struct sockaddr_in *)address)->sin_port;
}

static size_t
write_v1(const struct sxe_proxy *proxy, unsigned family, char *to)
{
    char source[INET6_ADDRSTRLEN];
    char destination[INET6_ADDRSTRLEN];
    int length;

    if (family != FAMILY_INET && family != FAMILY_INET6)
        return (size_t)snprintf(to, SXE_PROXY_WRITE_MAX, SIGNATURE_V1 "UNKNOWN\r\n");
    ip_text(&proxy->source, source, sizeof(source));
    ip_text(&proxy->destination, destination, sizeof(destination));
    length = snprintf(to, SXE_PROXY_WRITE_MAX, SIGNATURE_V1 "TCP%c %s %s %u %u\r\n",
                      family == FAMILY_INET ? '4' : '6', source, destination,
                      ntohs(port_of(&proxy->source)), ntohs(port_of(&proxy->destination)));
    return (size_t)length;
}

static void
put_endpoint(const struct sockaddr_storage *address, unsigned family, char *to, unsigned nth)
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    const struct sockaddr_un *un = (const struct sockaddr_un *)address;

    if (family == FAMILY_INET) {
        memcpy(to + nth * 4, &in4->sin_addr, 4);
        memcpy(to + 8 + nth * 2, &in4->sin_port, 2);
    } else if (family == FAMILY_INET6) {
        memcpy(to + nth * 16, &in6->sin6_addr, 16);
        memcpy(to + 32 + nth * 2, &in6->sin6_port, 2);
    } else if (family == FAMILY_UNIX) {
        memcpy(to + nth * PATH_SIZE, un->sun_path, PATH_SIZE);
    }
}

static size_t
write_v2(const struct sxe_proxy *proxy, unsigned family, char *to)
{
    unsigned transport = family == FAMILY_UNSPEC ? TRANSPORT_UNSPEC : TRANSPORT_STREAM;

    memcpy(to, SIGNATURE_V2, SXE_LITERAL_LENGTH(SIGNATURE_V2));
    to[12] = (char)(2 << 4 | (int)proxy->command);
    to[13] = (char)(family << 4 | transport);
    to[14] = 0;
    to[15] = (char)addresses_size[family];
    put_endpoint(&proxy->source, family, to + FIXED_SIZE_V2, 0);
    put_endpoint(&proxy->destination, family, to + FIXED_SIZE_V2, 1);
    return FIXED_SIZE_V2 + (size_t)addresses_size[family];
}

/* The address family as on the wire, or -EINVAL. */
static int
family_of_proxy(const struct sxe_proxy *proxy)
{
    if (proxy->command == SXE_PROXY_LOCAL)
        return FAMILY_UNSPEC;
    if (proxy->source.ss_family != proxy->destination.ss_family)
        return -EINVAL;
    switch (proxy->source.ss_family) {
    case AF_UNSPEC:
        return FAMILY_UNSPEC;
    case AF_INET:
        return FAMILY_INET;
    case AF_INET6:
        return FAMILY_INET6;
    case AF_UNIX:
        return FAMILY_UNIX;
    default:
        return -EINVAL;
    }
}

ssize_t
sxe_proxy_write(const struct sxe_proxy *proxy, char *to, size_t size)
{
    char header[SXE_PROXY_WRITE_MAX];
    int family = family_of_proxy(proxy);
    size_t length;

    if (family < 0 || (proxy->version != 1 && proxy->version != 2))
        return -EINVAL;
    length = proxy->version == 1 ? write_v1(proxy, (unsigned)family, header)
                                 : write_v2(proxy, (unsigned)family, header);
    if (length > size)
        return -ENOSPC;
    memcpy(to, header, length);
    return (ssize_t)length;
}
