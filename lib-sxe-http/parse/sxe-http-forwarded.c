/* SPDX-License-Identifier: MIT
 *
 * Reading the fields of proxies from the right.
 */
#include "sxe-http-forwarded.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "sxe-http-list.h"
#include "sxe-http-private.h"

#define PORT_DIGITS 5

static bool
is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool
is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool
is_equal(struct sxe_span text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.base, word, text.length) == 0;
}

/* ---- Nodes: RFC 7239, 6 ---- */

/* Take bytes off the front of a text. */
static struct sxe_span
text_after(struct sxe_span text, size_t bytes)
{
    return (struct sxe_span){text.base + bytes, text.length - bytes};
}

/* Whether the text is an obfuscated identifier: "_", then letters, digits, ".", "_" or "-". */
static bool
is_obfuscated(struct sxe_span text)
{
    for (size_t i = 1; i < text.length; i++) {
        if (!is_letter(text.base[i]) && !is_digit(text.base[i]) &&
            memchr("._-", text.base[i], 3) == NULL)
            return false;
    }
    return text.length > 1 && text.base[0] == '_';
}

/* Read nothing, or a colon and a port. */
static bool
read_port(struct sxe_span text, in_port_t *port)
{
    unsigned long value = 0;

    *port = 0;
    if (text.length == 0)
        return true;
    if (text.base[0] != ':')
        return false;
    text = text_after(text, 1);
    if (is_obfuscated(text))
        return true;
    for (size_t i = 0; i < text.length; i++) {
        if (!is_digit(text.base[i]) || i == PORT_DIGITS)
            return false;
        value = value * 10 + (unsigned long)(text.base[i] - '0');
    }
    *port = htons((uint16_t)value);
    return text.length > 0 && value <= UINT16_MAX;
}

/* Call inet_pton for a text without a final NUL. */
static bool
read_address(int family, struct sxe_span text, void *to)
{
    char copy[INET6_ADDRSTRLEN];

    if (text.length >= sizeof(copy) || memchr(text.base, '\0', text.length) != NULL)
        return false;
    memcpy(copy, text.base, text.length);
    copy[text.length] = '\0';
    return inet_pton(family, copy, to) == 1;
}

static bool
read_ipv4(struct sxe_span text, struct sxe_http_hop *hop)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    const char *colon = memchr(text.base, ':', text.length);
    const size_t length = colon == NULL ? text.length : (size_t)(colon - text.base);

    if (!read_address(AF_INET, (struct sxe_span){text.base, length}, &in.sin_addr) ||
        !read_port(text_after(text, length), &in.sin_port))
        return false;
    memcpy(&hop->address, &in, sizeof(in));
    hop->address_length = sizeof(in);
    return true;
}

static bool
read_ipv6(struct sxe_span address, struct sxe_span port, struct sxe_http_hop *hop)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (!read_address(AF_INET6, address, &in6.sin6_addr) || !read_port(port, &in6.sin6_port))
        return false;
    memcpy(&hop->address, &in6, sizeof(in6));
    hop->address_length = sizeof(in6);
    return true;
}

static bool
read_bracketed(struct sxe_span text, struct sxe_http_hop *hop)
{
    const char *end = memchr(text.base, ']', text.length);
    const size_t length = end == NULL ? 0 : (size_t)(end - text.base);

    return length > 0 && read_ipv6((struct sxe_span){text.base + 1, length - 1},
                                   text_after(text, length + 1), hop);
}

/* Read a node that hides its address ("unknown", or an obfuscated identifier), perhaps with a
 * port. */
static bool
is_hidden_node(struct sxe_span text)
{
    const char *colon = memchr(text.base, ':', text.length);
    const size_t length = colon == NULL ? text.length : (size_t)(colon - text.base);
    const struct sxe_span name = {text.base, length};
    in_port_t port;

    return (is_equal(name, "unknown") || is_obfuscated(name)) &&
           read_port(text_after(text, length), &port);
}

static bool
read_node(struct sxe_span text, struct sxe_http_hop *hop)
{
    if (text.length == 0)
        return false;
    if (text.base[0] == '[')
        return read_bracketed(text, hop);
    return is_digit(text.base[0]) ? read_ipv4(text, hop) : is_hidden_node(text);
}

/* ---- Forwarded ---- */

enum { FOR = 1, PROTO = 2, HOST = 4, BY = 8 };

static void
drop_blanks(struct sxe_span *rest)
{
    while (rest->length > 0 &&
           (rest->base[rest->length - 1] == ' ' || rest->base[rest->length - 1] == '\t'))
        rest->length--;
}

/* Whether the text ends with this byte. */
static bool
ends_with(struct sxe_span rest, char byte)
{
    return rest.length > 0 && rest.base[rest.length - 1] == byte;
}

static bool
is_name_byte(const char *byte)
{
    return sxe_http_is_token((struct sxe_span){byte, 1});
}

/* Take a token off the end of the text. */
static bool
take_last_token(struct sxe_span *rest, struct sxe_span *token)
{
    const size_t end = rest->length;

    while (rest->length > 0 && is_name_byte(rest->base + rest->length - 1))
        rest->length--;
    *token = (struct sxe_span){rest->base + rest->length, end - rest->length};
    return token->length > 0;
}

/* Take a quoted string off the end of the text, and drop its quotes. */
static bool
take_last_string(struct sxe_span *rest, struct sxe_span *string)
{
    const size_t end = --rest->length;

    while (rest->length > 0 && rest->base[rest->length - 1] != '"') {
        const char byte = rest->base[--rest->length];

        if (byte < ' ' || byte > '~' || byte == '\\')
            return false;
    }
    *string = (struct sxe_span){rest->base + rest->length, end - rest->length};
    return rest->length-- > 0;
}

/* Take name=value off the end of the text. */
static bool
take_element_pair(struct sxe_span *rest, struct sxe_span *name, struct sxe_span *value)
{
    if (!(ends_with(*rest, '"') ? take_last_string(rest, value) : take_last_token(rest, value)) ||
        !ends_with(*rest, '='))
        return false;
    rest->length--;
    return take_last_token(rest, name);
}

/* Whether the text is a scheme (RFC 3986, 3.1). */
static bool
is_scheme(struct sxe_span text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (!is_letter(text.base[i]) &&
            (i == 0 || (!is_digit(text.base[i]) && memchr("+-.", text.base[i], 3) == NULL)))
            return false;
    }
    return text.length > 0;
}

/* Store a pair of the element. *seen: which names the element had before. */
static bool
store_pair(struct sxe_http_hop *hop, struct sxe_span name, struct sxe_span value, unsigned *seen)
{
    const unsigned known = is_equal(name, "for")     ? FOR
                           : is_equal(name, "proto") ? PROTO
                           : is_equal(name, "host")  ? HOST
                           : is_equal(name, "by")    ? BY
                                                     : 0;
    struct sxe_http_hop by;

    if ((*seen & known) != 0)
        return false;
    *seen |= known;
    switch (known) {
    case FOR:
        return read_node(value, hop);
    case BY:
        return read_node(value, &by);
    case PROTO:
        hop->proto = value;
        return is_scheme(value);
    case HOST:
        hop->host = value;
        return value.length > 0 && sxe__http_host(value.base, value.length);
    default:
        return true;
    }
}

/* Take the pairs of the last element. Sets *is_there if it has any; an element may be empty. False:
 * the text is not made of pairs. */
static bool
take_element_pairs(struct sxe_span *rest, struct sxe_http_hop *hop, bool *is_there)
{
    struct sxe_span name;
    struct sxe_span value;
    unsigned seen = 0;

    for (;; rest->length--) {
        drop_blanks(rest);
        if (rest->length > 0 && !ends_with(*rest, ';') && !ends_with(*rest, ',')) {
            if (!take_element_pair(rest, &name, &value) || !store_pair(hop, name, value, &seen))
                return false;
            *is_there = true;
            drop_blanks(rest);
        }
        if (!ends_with(*rest, ';'))
            return rest->length == 0 || ends_with(*rest, ',');
    }
}

int
sxe_http_forwarded_last(struct sxe_span *rest, struct sxe_http_hop *hop)
{
    struct sxe_span left = *rest;
    bool is_there = false;

    *hop = (struct sxe_http_hop){.address_length = 0};
    while (!is_there && left.length > 0) {
        if (!take_element_pairs(&left, hop, &is_there))
            return -EINVAL;
        if (left.length > 0)
            left.length--; /* drop the comma before the element */
    }
    *rest = left;
    return is_there;
}

/* ---- X-Forwarded-For ---- */

/* Read an address without brackets. A text with two colons or more is an address of IPv6, without a
 * port. */
static bool
read_plain_node(struct sxe_span text, struct sxe_http_hop *hop)
{
    const char *colon = memchr(text.base, ':', text.length);

    if (colon != NULL && text.base[0] != '[' &&
        memchr(colon + 1, ':', (size_t)(text.base + text.length - colon - 1)) != NULL)
        return read_ipv6(text, text_after(text, text.length), hop);
    return read_node(text, hop);
}

int
sxe_http_forwarded_for_last(struct sxe_span *rest, struct sxe_http_hop *hop)
{
    struct sxe_span left = *rest;

    *hop = (struct sxe_http_hop){.address_length = 0};
    while (left.length > 0) {
        const char *comma = memrchr(left.base, ',', left.length);
        const size_t start = comma == NULL ? 0 : (size_t)(comma + 1 - left.base);
        const struct sxe_span element = sxe_http_without_blanks(text_after(left, start));

        left.length = start == 0 ? 0 : start - 1;
        if (element.length == 0)
            continue;
        if (!read_plain_node(element, hop))
            return -EINVAL;
        *rest = left;
        return 1;
    }
    *rest = left;
    return 0;
}
