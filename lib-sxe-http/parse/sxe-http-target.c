/* SPDX-License-Identifier: MIT
 *
 * Checks the target of a request in each of its forms, and hosts (RFC 9112, 3.2; RFC 3986).
 */
#include "sxe-http-private.h"

#include <arpa/inet.h>
#include <string.h>

#include "sxe-http-list.h"

enum {
    PORT_MAX = 65535,
    SHORT_PORT = 4 /* a port of at most this many digits is always <= PORT_MAX */,
    ADDRESS_MAX = 45
};

static bool
is_port_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_scheme_letter(char c)
{
    return (uint8_t)((c | 0x20) - 'a') < 26;
}

static bool
is_hex(char c)
{
    return is_port_digit(c) || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

/* Whether a registered name may contain the byte unescaped (RFC 3986, 3.2.2). */
static bool
is_host_name_byte(char c)
{
    return is_scheme_letter(c) || is_port_digit(c) ||
           (c != '\0' && strchr("-._~!$&'()*+,;=", c) != NULL);
}

bool
sxe__http_is_escape(const char *digits)
{
    return is_hex(digits[0]) && is_hex(digits[1]);
}

/* ---- Hosts (RFC 3986, 3.2.2) ---- */

SXE__HTTP_COLD static bool
is_ip_between(int family, const char *p, const char *end)
{
    char text[ADDRESS_MAX + 1] = "";
    /* large enough for an address of IPv6 or IPv4 */
    struct in6_addr address;

    if (end - p > ADDRESS_MAX)
        return false;
    memcpy(text, p, (size_t)(end - p));
    return inet_pton(family, text, &address) == 1;
}

/* Whether the text is an address of a future version: v, its number, a dot and anything. */
static bool
is_future_address(const char *p, const char *end)
{
    const char *version = p + 1;

    if (p == end || (*p != 'v' && *p != 'V'))
        return false;
    for (p = version; p < end && is_hex(*p); p++)
        continue;
    if (p == version || end - p < 2 || *p != '.')
        return false;
    for (p++; p < end && (is_host_name_byte(*p) || *p == ':'); p++)
        continue;
    return p == end;
}

/* Find the ] of an address in brackets, which begins at `p`. NULL: the text in brackets is no
 * address. */
static const char *
literal_end(const char *p, const char *end)
{
    const char *close = memchr(p, ']', (size_t)(end - p));

    if (close == NULL ||
        !(is_ip_between(AF_INET6, p + 1, close) || is_future_address(p + 1, close)))
        return NULL;
    return close;
}

/* Whether a label is empty. The empty label of the root, after the last dot (RFC 1034, 3.1), does
 * not count. */
static bool
has_empty_label(const char *name, const char *end)
{
    return *name == '.' || memmem(name, (size_t)(end - name), "..", 2) != NULL;
}

/* Find the end of the host that begins at `host`, which may be empty. NULL: the text is no host. */
static const char *
host_end(const char *host, const char *end)
{
    const char *p = host;

    if (p < end && *p == '[') {
        p = literal_end(p, end);
        return p == NULL ? NULL : p + 1;
    }
    for (; p < end && (is_host_name_byte(*p) || *p == '%'); p++) {
        if (*p != '%')
            continue;
        if (end - p < 3 || !sxe__http_is_escape(p + 1))
            return NULL;
        p += 2;
    }
    return p == host || !has_empty_label(host, p) ? p : NULL;
}

/* Whether the text is [ ":" port ], and nothing more. */
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

/* Mark, by its highest bit, each of 8 bytes that is no letter, digit, dot or hyphen, or that is a
 * dot or hyphen after a dot or hyphen. Adding a constant sets the highest bit of each byte that is
 * at or above the start of a range. The addition carries only out of a byte whose highest bit is
 * set already; such a byte is no ASCII, and is marked anyway. */
static uint64_t
odd_bytes(const char *bytes)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t word;
    uint64_t small;
    uint64_t other; /* the bytes that are neither letters nor digits */
    uint64_t mark;

    memcpy(&word, bytes, sizeof(word));
    small = word | each * 0x20;
    other = (small + each * (0x80 - 'a')) & ~(small + each * (0x7f - 'z'));
    other |= (word + each * (0x80 - '0')) & ~(word + each * (0x7f - '9'));
    other = ~other & each * 0x80;
    mark = (word + each * (0x80 - '-')) & ~(word + each * (0x7f - '.'));
    return (word & each * 0x80) | (other & (~mark | other << 8));
}

/* Fast path: a name of letters, digits, dots and hyphens, perhaps a port. Reads 8 bytes at a time;
 * the last one is read again as the first of the next 8. A loop over single bytes took a quarter of
 * the time of a short request. */
static bool
is_usual_host(const char *host, size_t length)
{
    size_t name = length;
    uint64_t odd = 0;
    size_t last;

    while (name > 0 && is_port_digit(host[name - 1]))
        name--;
    name = name > 0 && host[name - 1] == ':' && length - name <= SHORT_PORT ? name - 1 : length;
    if (name < sizeof(odd) || *host == '.')
        return false;
    last = name - sizeof(odd);
    for (size_t at = 0;; at = last - at > sizeof(odd) - 1 ? at + sizeof(odd) - 1 : last) {
        odd |= odd_bytes(host + at);
        if (at == last)
            return odd == 0;
    }
}

SXE__HTTP_COLD static bool
is_any_host(const char *host, const char *end)
{
    const char *p = host_end(host, end);

    if (p == end)
        return true;
    /* An empty host is valid, but not if a port follows (RFC 9110, 4.2.1). */
    return p != NULL && p != host && is_port(p, end);
}

bool
sxe__http_host(const char *host, size_t length)
{
    return is_usual_host(host, length) || is_any_host(host, host + length);
}

bool
sxe_http_is_host(struct sxe_span text)
{
    return sxe__http_host(text.base, text.length);
}

/* Whether a label is a number that inet_aton(3) accepts, which may be octal or hexadecimal. */
static bool
is_number(const char *p, const char *end)
{
    const bool is_hexadecimal = end - p >= 2 && p[0] == '0' && (p[1] | 0x20) == 'x';

    if (is_hexadecimal)
        p += 2;
    while (p < end && (is_hexadecimal ? is_hex(*p) : is_port_digit(*p)))
        p++;
    return p == end;
}

/* Whether the last label is a number, but the whole text is no address, such as 127.1. One program
 * may take that text for a name, and another one may connect to 127.0.0.1 (RFC 3986, 7.4). No valid
 * name ends with a number (RFC 1123, 2.1). */
static bool
is_rare_address(const char *name, const char *end)
{
    const char *last = end[-1] == '.' ? end - 1 : end;
    const char *p = last;

    while (p > name && p[-1] != '.')
        p--;
    return p < last && is_number(p, last) && !is_ip_between(AF_INET, name, end);
}

/* Like host_end, but returns NULL also if no client can connect to the host: it is empty, or
 * is_rare_address. */
static const char *
server_end(const char *host, const char *end)
{
    const char *p = host_end(host, end);

    return p == NULL || p == host || is_rare_address(host, p) ? NULL : p;
}

/* Whether the text is uri-host ":" port, where neither is empty (RFC 9112, 3.2.3). */
SXE__HTTP_COLD static bool
is_authority(const char *p, const char *end)
{
    const char *port = server_end(p, end);

    return port != NULL && end - port > 1 && is_port(port, end);
}

/* Check an absolute URI: scheme "://" host [ ":" port ], then a path or a query or nothing. A user
 * is refused (RFC 9110, 4.2.4). */
SXE__HTTP_COLD static bool
is_absolute(const char *p, const char *end)
{
    const char *host;
    const char *rest;

    if (!is_scheme_letter(*p))
        return false;
    while (p < end &&
           (is_scheme_letter(*p) || is_port_digit(*p) || *p == '+' || *p == '-' || *p == '.'))
        p++;
    if (end - p < 3 || memcmp(p, "://", 3) != 0)
        return false;
    host = p + 3;
    for (rest = host; rest < end && *rest != '/' && *rest != '?'; rest++)
        continue;
    p = server_end(host, rest);
    return p != NULL && is_port(p, rest);
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
