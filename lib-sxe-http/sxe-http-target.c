/* SPDX-License-Identifier: MIT */
#include "sxe-http-private.h"

#include <arpa/inet.h>
#include <string.h>

enum { PORT_MAX = 65535, SHORT_PORT = 4 /* digits that cannot exceed it */, IPV6_MAX = 45 };

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
static bool
is_name(char c)
{
    return is_letter(c) || is_digit(c) || (c != '\0' && strchr("-._~!$&'()*+,;=", c) != NULL);
}

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
        while (p < end && is_name(*p))
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

/* Of 8 bytes, the highest bit of each that is no letter, digit, dot or hyphen. A sum has that bit
 * from the first byte of a range on; it carries only if the byte has it too, and is odd by that. */
static uint64_t
odd_bytes(const char *bytes)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t word;
    uint64_t small;
    uint64_t letter;
    uint64_t digit;

    memcpy(&word, bytes, sizeof(word));
    small = word | each * 0x20;
    letter = (small + each * (0x80 - 'a')) & ~(small + each * (0x7f - 'z'));
    digit = (word + each * (0x80 - '-')) & ~(word + each * (0x7f - '9')); /* and -./ */
    digit &= (word ^ each * '/') + each * 0x7f;
    return (word | ~(letter | digit)) & each * 0x80;
}

/* The usual: a name of letters, digits, dots and hyphens, perhaps a port. It takes 8 bytes at a
 * time, because a loop over the bytes of its host was a quarter of what a short request cost. */
static bool
is_usual_host(const char *host, size_t length)
{
    size_t name = length;
    uint64_t odd = 0;

    while (name > 0 && is_digit(host[name - 1]))
        name--;
    name = name > 0 && host[name - 1] == ':' && length - name <= SHORT_PORT ? name - 1 : length;
    if (name < sizeof(odd))
        return false;
    for (size_t i = 0; i + sizeof(odd) < name; i += sizeof(odd))
        odd |= odd_bytes(host + i);
    return (odd | odd_bytes(host + name - sizeof(odd))) == 0;
}

bool
sxe__http_host(const char *host, size_t length)
{
    const char *end = host + length;
    const char *p;

    if (is_usual_host(host, length))
        return true;
    p = host_end(host, end);
    if (p == end)
        return true;
    /* Nothing at all is a host, but a port alone is none (RFC 9110, 4.2.1). */
    return p != NULL && p != host && is_port(p, end);
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
