/* SPDX-License-Identifier: MIT
 *
 * Reads the places of upstreams, and looks their names up.
 */
#include "sxe-http-place-internal.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char https[] = "https://";

bool
sxe__http_place_has_scheme(const char *text)
{
    return strncmp(text, https, sizeof(https) - 1) == 0;
}

static bool
read_place_weight(const char *text, uint16_t *weight)
{
    static const char name[] = " weight=";
    char *end = NULL;
    unsigned long value;

    if (*text == '\0')
        return true;
    if (strncmp(text, name, sizeof(name) - 1) != 0)
        return false;
    text += sizeof(name) - 1;
    value = strtoul(text, &end, 10);
    *weight = (uint16_t)value;
    return *text >= '0' && *text <= '9' && *end == '\0' && value >= 1 && value <= 1000;
}

static bool
read_place_port(const char *text, size_t length, char port[8])
{
    if (length == 0 || length > 5 || strspn(text, "0123456789") < length)
        return false;
    snprintf(port, 8, "%.*s", (int)length, text);
    return strtoul(port, NULL, 10) >= 1 && strtoul(port, NULL, 10) <= 65535;
}

bool
sxe__http_place_read(const char *text, struct sxe__http_place *place)
{
    static const char of_name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_";
    const bool is_tls = sxe__http_place_has_scheme(text);

    text += is_tls ? sizeof(https) - 1 : 0;
    const size_t length = strcspn(text, " ");
    const bool is_bracketed = *text == '[';
    const size_t host = strcspn(text, is_bracketed ? "]" : ":");
    const char *start = text + is_bracketed;
    const size_t host_length = host - is_bracketed;
    const char *colon = text + host + is_bracketed;

    *place = (struct sxe__http_place){.weight = 1};
    if (!is_tls && (*text == '/' || *text == '@')) {
        snprintf(place->path, sizeof(place->path), "%.*s", (int)length, text);
        return length <= SXE__HTTP_PLACE_PATH_MAX &&
               read_place_weight(text + length, &place->weight);
    }
    if (host >= length || host_length == 0 || host_length >= sizeof(place->host) ||
        strspn(start, is_bracketed ? "0123456789abcdefABCDEF:." : of_name) < host_length ||
        *colon != ':' ||
        !read_place_port(colon + 1, length - (size_t)(colon + 1 - text), place->port))
        return false;
    snprintf(place->host, sizeof(place->host), "%.*s", (int)host_length, start);
    return read_place_weight(text + length, &place->weight);
}

int
sxe__http_place_find(const struct sxe__http_place *place, unsigned most,
                     struct sxe__http_found *found)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    const unsigned end = found->number + most;
    struct addrinfo *all = NULL;
    int error;

    if (*place->path != '\0') {
        found->addresses[found->number++] =
            (struct sxe_http_upstream_address){.path = place->path, .weight = place->weight};
        return 0;
    }
    error = getaddrinfo(place->host, place->port, &wanted, &all);
    for (const struct addrinfo *one = all; one != NULL && found->number < end; one = one->ai_next) {
        char *text = found->texts[found->number];

        if (getnameinfo(one->ai_addr, one->ai_addrlen, text, SXE__HTTP_PLACE_IP_SIZE, NULL, 0,
                        NI_NUMERICHOST) == 0 &&
            /* a link-local address is not usable without its interface */
            strchr(text, '%') == NULL)
            found->addresses[found->number++] =
                (struct sxe_http_upstream_address){.ip = text,
                                                   .port = (uint16_t)strtoul(place->port, NULL, 10),
                                                   .weight = place->weight,
                                                   .tls_name = place->host};
    }
    if (all != NULL)
        freeaddrinfo(all);
    return error;
}
