/* SPDX-License-Identifier: MIT
 *
 * Parsing a URL of the command line, and resolving its host.
 */
#include "url.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "sxe-http-client.h"
#include "wrong.h"

#define HTTP      "http://"
#define HTTPS     "https://"
#define LOAD_UNIX "http+unix://"
#define UNIX      "unix:"

enum { PORT_MAX = 65535, HEAD_ROOM = 8192, PROBE_MS = 250 };

static bool
has_prefix(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

/* Copy a part of the URL. size is at least 1. False: the part does not fit. */
static bool
copy_url_part(char *room, size_t size, const char *bytes, size_t length)
{
    if (length >= size)
        return false;
    memcpy(room, bytes, length);
    room[length] = '\0';
    return true;
}

/* Whether authority and target can be written into a request. Braces are allowed here, because
 * placeholders are replaced later. */
static bool
is_writable_url(const char *authority, const char *target)
{
    char head[HEAD_ROOM];
    char plain[sizeof(((struct load_url *)NULL)->target_text)];
    struct sxe_http_request_head request = {.host = sxe_http_span(authority)};

    snprintf(plain, sizeof(plain), "%s", target);
    for (char *p = plain; *p != '\0'; p++)
        *p = *p == '{' || *p == '}' ? '_' : *p;
    request.target = sxe_http_span(plain);
    return sxe_http_request_write(&request, head, sizeof(head)) > 0;
}

/* Read path and query; a fragment is cut off. */
static const char *
set_target(struct load_url *url, const char *text)
{
    size_t length = strcspn(text, "#");
    char *room = url->target_text;

    url->target = room;
    *room = '/';
    if (*text == '/')
        text++, length--;
    if (!copy_url_part(room + 1, sizeof(url->target_text) - 1, text, length))
        return load_wrong("the path is longer than %zu bytes: write it to a --request-file",
                          sizeof(url->target_text) - 2);
    if (!is_writable_url("", room))
        return load_wrong("'%.100s' has a byte or an escape that cannot be sent: write %%20 for a "
                          "blank, %%25 for a percent sign",
                          room);
    return NULL;
}

static uint16_t
default_port(const struct load_url *url)
{
    return url->is_tls ? 443 : 80;
}

/* Read the text after the host: "" or ":8000". */
static const char *
set_port(struct load_url *url, const char *text, size_t length)
{
    unsigned port = 0;

    url->port = default_port(url);
    if (length == 0)
        return NULL;
    for (size_t i = 1; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';

        port = digit > 9 || port > PORT_MAX ? PORT_MAX + 1 : port * 10 + digit;
    }
    if (port == 0 || port > PORT_MAX)
        return load_wrong("the port in '%.*s' is not a number from 1 to 65535", (int)length, text);
    url->port = (uint16_t)port;
    return NULL;
}

/* Read "[::1]", perhaps with a zone, whose percent sign may be written as %25 (RFC 6874). The Host
 * field gets the address without its zone. */
static bool
set_ipv6(struct load_url *url, const char *text, size_t length)
{
    const char *zone = memchr(text, '%', length);
    size_t address = zone == NULL ? length : (size_t)(zone - text);

    if (!copy_url_part(url->host, sizeof(url->host), text, length))
        return false;
    snprintf(url->authority, sizeof(url->authority), "[%.*s]", (int)address, text);
    if (zone != NULL && strncmp(zone, "%25", 3) == 0 && length > address + 3)
        snprintf(url->host + address, sizeof(url->host) - address, "%%%.*s",
                 (int)(length - address - 3), zone + 3);
    return true;
}

/* Read the authority, which comes before the path: a host, or a host and a port. */
static const char *
set_url_host(struct load_url *url, const char *text, size_t length)
{
    const char *close = *text == '[' ? memchr(text, ']', length) : NULL;
    size_t host = strcspn(text, "/?#:");
    const char *wrong;
    bool fits;

    if (memchr(text, '@', length) != NULL)
        return "a user in a URL is not sent: give -H 'Authorization: Basic ...'";
    if (close != NULL) {
        host = (size_t)(close + 1 - text);
        fits = set_ipv6(url, text + 1, host - 2);
    } else {
        fits = copy_url_part(url->host, sizeof(url->host), text, host);
        snprintf(url->authority, sizeof(url->authority), "%s", url->host);
    }
    if (!fits || host == 0)
        return load_wrong("a host of 1 to %zu bytes is needed: http://127.0.0.1:8000/",
                          sizeof(url->host) - 1);
    if (close == NULL && length > host && memchr(text + host + 1, ':', length - host - 1) != NULL)
        return "an IPv6 address in a URL has brackets around it: http://[::1]:8000/";
    if (length > host && text[host] != ':')
        return load_wrong("'%.*s' is not a host with a port", (int)length, text);
    wrong = set_port(url, text + host, length - host);
    if (wrong != NULL)
        return wrong;
    if (!is_writable_url(url->authority, "/"))
        return load_wrong("'%.*s' is not a host", (int)host, text);
    host = strlen(url->authority);
    if (url->port != default_port(url))
        snprintf(url->authority + host, sizeof(url->authority) - host, ":%u", url->port);
    return NULL;
}

/* Read the URL of a unix socket, after its scheme: path, or path:/target. */
static const char *
set_unix(struct load_url *url, const char *text)
{
    const char *colon = strstr(text, ":/");
    size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);

    if ((*text != '/' && *text != '@') || length < 2)
        return "a unix socket is unix:/path/of/socket:/target, or unix:@name:/target";
    if (!copy_url_part(url->path, sizeof(url->path), text, length))
        return load_wrong("the path of a unix socket has at most %zu bytes", sizeof(url->path) - 1);
    snprintf(url->authority, sizeof(url->authority), "localhost");
    return set_target(url, colon == NULL ? "/" : colon + 1);
}

const char *
load_url_parse(struct load_url *url, const char *text)
{
    const char *rest = text;
    size_t length;
    const char *wrong;

    url->host[0] = url->path[0] = '\0';
    url->port = 0;
    url->is_tls = has_prefix(text, HTTPS);
    if (has_prefix(text, LOAD_UNIX))
        return set_unix(url, text + strlen(LOAD_UNIX));
    if (has_prefix(text, UNIX))
        return set_unix(url, text + strlen(UNIX));
    if (has_prefix(text, HTTP))
        rest = text + strlen(HTTP);
    else if (url->is_tls)
        rest = text + strlen(HTTPS);
    length = strcspn(rest, "/?#");
    if (rest == text && length > 0 && strncmp(rest + length - 1, "://", 3) == 0)
        return load_wrong("'%.*s' is not a scheme of ours: http:// or https://host:port/path, "
                          "host:port/path or unix:/path/of/socket:/path",
                          (int)(length - 1), text);
    wrong = set_url_host(url, rest, length);
    return wrong != NULL ? wrong : set_target(url, rest + length);
}

bool
load_url_accepts(const struct sockaddr *address, socklen_t length)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd writable = {.fd = fd, .events = POLLOUT};
    socklen_t error_length = sizeof(int);
    int error = 0;

    if (fd < 0)
        return false;
    if (connect(fd, address, length) < 0)
        error = errno;
    if (error == EINPROGRESS && (poll(&writable, 1, PROBE_MS) != 1 ||
                                 getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length) < 0))
        error = ETIMEDOUT;
    close(fd);
    return error == 0;
}

/* Whether an address of this family (IPv4 or IPv6) accepts a connection. */
static bool
is_family_accepting(const struct addrinfo *found, int family)
{
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        if (a->ai_family == family && load_url_accepts(a->ai_addr, a->ai_addrlen))
            return true;
    }
    return false;
}

static bool
is_of_family(const char *ip, int family)
{
    return (strchr(ip, ':') != NULL) == (family == AF_INET6);
}

static bool
has_family(const struct load_addresses *addresses, int family)
{
    unsigned i = 0;

    while (i < addresses->number && !is_of_family(addresses->ip[i], family))
        i++;
    return i < addresses->number;
}

static bool
is_there(const struct load_addresses *addresses, const char *ip)
{
    unsigned i = 0;

    while (i < addresses->number && strcmp(addresses->ip[i], ip) != 0)
        i++;
    return i < addresses->number;
}

/* Add the addresses as text, each once. 0, or an error of getnameinfo. */
static int
add_addresses(struct load_addresses *addresses, const struct addrinfo *found)
{
    int error = 0;

    addresses->number = 0;
    while (found != NULL && addresses->number < LOAD_ADDRESSES_MAX && error == 0) {
        char *ip = addresses->ip[addresses->number];

        error = getnameinfo(found->ai_addr, found->ai_addrlen, ip, LOAD_IP_SIZE, NULL, 0,
                            NI_NUMERICHOST);
        if (error == 0 && !is_there(addresses, ip))
            addresses->number++;
        found = found->ai_next;
    }
    addresses->used = addresses->number;
    return error;
}

void
load_url_use_family(struct load_addresses *addresses, int family)
{
    struct load_addresses all = *addresses;
    unsigned others = 0;

    if (!has_family(&all, family))
        return;
    addresses->used = 0;
    for (unsigned i = 0; i < all.number; i++) {
        if (is_of_family(all.ip[i], family))
            memcpy(addresses->ip[addresses->used++], all.ip[i], LOAD_IP_SIZE);
    }
    for (unsigned i = 0; i < all.number; i++) {
        if (!is_of_family(all.ip[i], family))
            memcpy(addresses->ip[addresses->used + others++], all.ip[i], LOAD_IP_SIZE);
    }
}

static void
choose_family(struct load_addresses *addresses, const struct addrinfo *found)
{
    bool is_ipv4, is_ipv6;

    if (!has_family(addresses, AF_INET) || !has_family(addresses, AF_INET6))
        return;
    is_ipv4 = is_family_accepting(found, AF_INET);
    is_ipv6 = is_family_accepting(found, AF_INET6);
    if (is_ipv4 != is_ipv6)
        load_url_use_family(addresses, is_ipv4 ? AF_INET : AF_INET6);
}

const char *
load_url_resolve(const char *host, uint16_t port, struct load_addresses *addresses)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    char service[8];
    int error;

    snprintf(service, sizeof(service), "%u", port);
    error = getaddrinfo(host, service, &hints, &found);
    if (error == 0) {
        error = add_addresses(addresses, found);
        choose_family(addresses, found);
        freeaddrinfo(found);
    }
    return error == 0 ? NULL : gai_strerror(error);
}
