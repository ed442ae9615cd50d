/* SPDX-License-Identifier: MIT
 *
 * Clients by their addresses.
 */
#include "client-key.h"

#include <netinet/in.h>
#include <string.h>

struct client_key
client_key_of(const struct sockaddr_storage *address, socklen_t length)
{
    const struct sockaddr_in6 *in6 = (const void *)address;
    const struct sockaddr_in *in4 = (const void *)address;
    struct client_key key = {.family = 0};

    if (length == 0)
        return key;
    key.family = 4;
    if (address->ss_family == AF_INET) {
        memcpy(key.bytes, &in4->sin_addr, 4);
    } else if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        memcpy(key.bytes, in6->sin6_addr.s6_addr + 12, 4);
    } else {
        memcpy(key.bytes, in6->sin6_addr.s6_addr, 8);
        key.family = 6;
    }
    return key;
}
