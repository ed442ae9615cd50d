/* SPDX-License-Identifier: MIT */
#include "sxe-http-private.h"

#include <arpa/inet.h>
#include <string.h>

enum { PORT_MAX = 65535, IPV6_MAX = 45 };

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
    return (uint8_t)((c | 0x20) - 'a') < 26;
}

static bool
is_hex(char c)
{
    return is_digit(c) || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

/* What a registered name has besides escapes, and an address of version 4 too (RFC 3986, 3.2.2). */
#define IS_NAME(c)                                                                             \
    (((c) >= 'a' && (c) <= 'z') || ((c) >= 'A' && (c) <= 'Z') || ((c) >= '0' && (c) <= '9') || \
     (c) == '-' || (c) == '.' || (c) == '_' || (c) == '~' || (c) == '!' || (c) == '$' ||       \
     ((c) >= '&' && (c) <= ',') || (c) == ';' || (c) == '=')
#define IS_NAME_4(c)  IS_NAME(c), IS_NAME((c) + 1), IS_NAME((c) + 2), IS_NAME((c) + 3)
#define IS_NAME_16(c) IS_NAME_4(c), IS_NAME_4((c) + 4), IS_NAME_4((c) + 8), IS_NAME_4((c) + 12)
#define IS_NAME_64(c) \
    IS_NAME_16(c), IS_NAME_16((c) + 16), IS_NAME_16((c) + 32), IS_NAME_16((c) + 48)

/* A table, because every request has a host, and few instructions a byte are many in all. */
static const bool is_name[256] = {IS_NAME_64(0), IS_NAME_64(64)};

bool
sxe__http_is_escape(const char *digits)
{
    return is_hex(digits[0]) && is_hex(digits[1]);
}

/* The ] of an address in brackets, which begins at `p`, or NULL. Of the future ones of RFC 3986
 * there are none yet. */
SXE__HTTP_SELDOM static const char *
ipv6_end(const char *p, const char *end)
{
    const char *close = memchr(p, ']', (size_t)(end - p));
    char text[IPV6_MAX + 1] = "";
    struct in6_addr address;

    if (close == NULL || close - p - 1 > IPV6_MAX)
        return NULL;
    memcpy(text, p + 1, (size_t)(close - p - 1));
    return inet_pton(AF_INET6, text, &address) == 1 ? close : NULL;
}

/* Where the host ends that begins at `p`, an empty one too, or NULL: it is none. */
static const char *
host_end(const char *p, const char *end)
{
    if (p < end && *p == '[') {
        p = ipv6_end(p, end);
        return p == NULL ? NULL : p + 1;
    }
    for (;;) {
        while (p < end && is_name[(uint8_t)*p])
            p++;
        if (p == end || *p != '%')
            return p;
        if (end - p < 3 || !sxe__http_is_escape(p + 1))
            return NULL;
        p += 3;
    }
}

/* [ ":" port ], and nothing more. */
static bool
is_port(const char *p, const char *end)
{
    unsigned port = 0;

    if (p == end)
        return true;
    if (*p++ != ':')
        return false;
    for (; p < end; p++) {
        unsigned digit = (unsigned)(uint8_t)*p - '0';

        port = port * 10 + digit;
        if (digit > 9 || port > PORT_MAX)
            return false;
    }
    return true;
}

bool
sxe__http_host(const char *host, size_t length)
{
    const char *end = host + length;
    const char *p = host_end(host, end);

    /* Nothing at all is a host, but a port alone is not (RFC 9110, 4.2.1). */
    return p != NULL && (p != host || p == end) && is_port(p, end);
}

/* uri-host ":" port, both there (RFC 9112, 3.2.3). */
static bool
is_authority(const char *p, const char *end)
{
    const char *port = host_end(p, end);

    return port != NULL && port != p && end - port > 1 && is_port(port, end);
}

/* scheme "://" host [ ":" port ], then a path or a query or nothing. No user: RFC 9110, 4.2.4. */
static bool
is_absolute(const char *p, const char *end)
{
    const char *host;
    const char *rest;

    if (!is_letter(*p))
        return false;
    while (p < end && (is_letter(*p) || is_digit(*p) || *p == '+' || *p == '-' || *p == '.'))
        p++;
    if (end - p < 3 || memcmp(p, "://", 3) != 0)
        return false;
    host = p + 3;
    for (rest = host; rest < end && *rest != '/' && *rest != '?'; rest++)
        continue;
    p = host_end(host, rest);
    return p != NULL && p != host && is_port(p, rest);
}

bool
sxe__http_target(struct sxe_http_parser *parser, const char *data)
{
    const char *target = data + parser->target.offset;
    const char *end = target + parser->target.length;

    if (parser->method == SXE_HTTP_CONNECT) {
        parser->form = SXE_HTTP_FORM_AUTHORITY;
        return is_authority(target, end);
    }
    if (*target == '/') {
        parser->form = SXE_HTTP_FORM_ORIGIN;
        return true;
    }
    if (*target == '*') {
        parser->form = SXE_HTTP_FORM_ASTERISK;
        return parser->method == SXE_HTTP_OPTIONS && end - target == 1;
    }
    parser->form = SXE_HTTP_FORM_ABSOLUTE;
    return is_absolute(target, end);
}
