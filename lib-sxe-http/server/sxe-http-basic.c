/* SPDX-License-Identifier: MIT
 *
 * The credentials of a request (RFC 7617).
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "sxe-http-server-private.h"

/* The value of a digit of base64 (RFC 4648, 4); -1: the byte is no digit of base64. */
static int
digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decode base64 whose padding may be missing. Returns the number of bytes; -EINVAL: the text is no
 * base64, or its last digit has bits that belong to no byte. */
static ssize_t
decode_credentials(struct sxe_span text, char *room)
{
    size_t padding = 0;
    size_t used = 0;
    uint32_t bits = 0;

    while (text.length % 4 == 0 && padding < 2 && padding < text.length &&
           text.base[text.length - padding - 1] == '=')
        padding++;
    text.length -= padding;
    if (text.length % 4 == 1)
        return -EINVAL;
    for (size_t i = 0; i < text.length; i++) {
        const int digit = digit_of(text.base[i]);

        if (digit < 0)
            return -EINVAL;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 0)
            room[used++] = (char)(bits >> (6 - i % 4 * 2));
    }
    return (bits & ((1u << (text.length % 4 * 6 % 8)) - 1)) != 0 ? -EINVAL : (ssize_t)used;
}

static bool
has_control_byte(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return true;
    }
    return false;
}

int
sxe_http_basic(const struct sxe_http_request *request, struct sxe_http_basic *basic)
{
    const struct sxe_http_field *field =
        sxe_http_known(&request->head, SXE_HTTP_FIELD_AUTHORIZATION);
    struct sxe_span text = sxe_http_known_value(request, SXE_HTTP_FIELD_AUTHORIZATION);
    const char *colon;
    ssize_t length;

    if (field == NULL)
        return -ENOENT;
    if (sxe_http_field_next(&request->head, request->data, field) != NULL)
        return -EINVAL;
    if (text.length < 6 || strncasecmp(text.base, "Basic ", 6) != 0)
        return -ENOENT;
    for (text.base += 6, text.length -= 6; text.length > 0 && *text.base == ' '; text.length--)
        text.base++;
    if (text.length > sizeof(basic->room) / 3 * 4)
        return -EINVAL;
    length = decode_credentials(text, basic->room);
    colon = length < 0 ? NULL : memchr(basic->room, ':', (size_t)length);
    if (colon == NULL || has_control_byte(basic->room, (size_t)length))
        return -EINVAL;
    basic->user = (struct sxe_span){basic->room, (size_t)(colon - basic->room)};
    basic->password = (struct sxe_span){colon + 1, (size_t)(basic->room + length - colon) - 1};
    return 0;
}

struct sxe_span
sxe_http_user(const struct sxe_http_request *request, struct sxe_http_basic *basic)
{
    if (request->is_authenticated && sxe_http_basic(request, basic) == 0)
        return basic->user;
    return (struct sxe_span){NULL, 0};
}
