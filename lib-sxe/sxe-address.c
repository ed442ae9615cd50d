/* SPDX-License-Identifier: MIT
 *
 * Addresses as text and as bytes: IPv4, IPv6 with zones, paths of unix sockets.
 */
#include "sxe-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

/* A link-local address ends in a zone, the name of an interface: "fe80::1%eth0". inet_pton(3) does
 * not know zones, so cut the zone off. */
static int
parse_ipv6(struct sockaddr_in6 *in6, const char *ip)
{
    char text[INET6_ADDRSTRLEN];
    const char *zone = strchr(ip, '%');
    size_t length = zone != NULL ? (size_t)(zone - ip) : strlen(ip);

    if (length >= sizeof(text))
        return -EINVAL;
    memcpy(text, ip, length);
    text[length] = '\0';
    if (inet_pton(AF_INET6, text, &in6->sin6_addr) != 1)
        return -EINVAL;
    in6->sin6_scope_id = zone != NULL ? if_nametoindex(zone + 1) : 0;
    return zone != NULL && in6->sin6_scope_id == 0 ? -EINVAL : 0;
}

int
sxe__address_parse(struct sockaddr_storage *address, const char *ip, unsigned short port)
{
    struct sockaddr_in *in4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof(*address));
    if (ip == NULL || *ip == '\0' || strcmp(ip, SXE_IP_ADDR_ANY) == 0)
        ip = "0.0.0.0";
    if (inet_pton(AF_INET, ip, &in4->sin_addr) == 1) {
        in4->sin_family = AF_INET;
        in4->sin_port = htons(port);
        return 0;
    }
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    return parse_ipv6(in6, ip);
}

int
sxe__address_parse_path(struct sockaddr_storage *address, socklen_t *length, const char *path)
{
    struct sockaddr_un *un = (struct sockaddr_un *)address;
    size_t size = strlen(path);

    memset(address, 0, sizeof(*address));
    if (size == 0)
        return -EINVAL;
    if (size >= sizeof(un->sun_path))
        return -ENAMETOOLONG;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, size);
    if (un->sun_path[0] == '@')
        un->sun_path[0] = '\0';
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (*path != '@'));
    return 0;
}

socklen_t
sxe__address_length(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

const char *
sxe__address_ip(char text[SXE__IP_SIZE], const struct sockaddr_storage *address, socklen_t length)
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    const struct sockaddr_un *un = (const struct sockaddr_un *)address;
    size_t path = offsetof(struct sockaddr_un, sun_path);

    memset(text, 0, SXE__IP_SIZE);
    if (length <= path)
        return text;
    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &in4->sin_addr, text, SXE__IP_SIZE);
    else if (address->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &in6->sin6_addr, text, SXE__IP_SIZE);
    else
        memcpy(text, un->sun_path, length - path);
    if (address->ss_family == AF_UNIX && text[0] == '\0')
        text[0] = '@';
    return text;
}

unsigned short
sxe__address_port(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    return address->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)address)->sin6_port)
                                          : 0;
}
