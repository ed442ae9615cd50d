/* SPDX-License-Identifier: MIT
 *
 * Paths and queries: normal form, decoding, parameters, escapes for HTML and URIs.
 */
#include "sxe-http-uri.h"

#include <errno.h>
#include <string.h>

enum { BAD_ESCAPE = -1, ESCAPE_LENGTH = 3 };

static const char hex_digits[] = "0123456789ABCDEF";

/* Whether the byte is unreserved (RFC 3986, 2.3): letters, digits and -._~ */
static bool
is_unreserved(unsigned byte)
{
    static const uint64_t set[2] = {UINT64_C(0x03ff600000000000), UINT64_C(0x47fffffe87fffffe)};

    return byte < 0x80 && (set[byte >> 6] >> (byte & 63) & 1) != 0;
}

/* Whether a segment may contain the byte unescaped: unreserved bytes, !$&'()*+,;=:@ (RFC 3986,
 * 3.3), and []|, which the parser accepts. */
static bool
is_plain_in_segment(unsigned byte)
{
    static const uint64_t set[2] = {UINT64_C(0x2fff7fd200000000), UINT64_C(0x57fffffeafffffff)};

    return byte < 0x80 && (set[byte >> 6] >> (byte & 63) & 1) != 0;
}

/* The value of a hexadecimal digit, 0 to 15; above 15: the byte is no digit. */
static unsigned
hex_value(char digit)
{
    unsigned decimal = (unsigned)(uint8_t)digit - '0';
    unsigned letter = ((unsigned)(uint8_t)digit | 0x20) - 'a';

    if (decimal <= 9)
        return decimal;
    return letter < 6 ? letter + 10 : 16;
}

/* The byte for which an escape stands, or BAD_ESCAPE. */
static int
byte_of_escape(const char *escape, const char *end)
{
    unsigned high;
    unsigned low;

    if (end - escape < ESCAPE_LENGTH)
        return BAD_ESCAPE;
    high = hex_value(escape[1]);
    low = hex_value(escape[2]);
    return high > 15 || low > 15 ? BAD_ESCAPE : (int)(high << 4 | low);
}

/* Take a byte or an escape. Returns the byte that it stands for, or BAD_ESCAPE. */
static inline int
take_uri_byte(const char **text, const char *end)
{
    const char *p = *text;
    int byte = (uint8_t)*p;

    *text = p + 1;
    if (byte != '%')
        return byte;
    byte = byte_of_escape(p, end);
    if (byte != BAD_ESCAPE)
        *text = p + ESCAPE_LENGTH;
    return byte;
}

/* Take a byte or an escape. A % that begins no escape is text, as it is for browsers (WHATWG URL,
 * 1.3). */
static int
take_lenient_byte(const char **text, const char *end)
{
    int byte = take_uri_byte(text, end);

    return byte == BAD_ESCAPE ? '%' : byte;
}

/* Take a byte of a name or value of a query, where "+" is a blank. */
static int
take_form_byte(const char **text, const char *end)
{
    if (**text != '+')
        return take_lenient_byte(text, end);
    ++*text;
    return ' ';
}

static void
put_escape(char escape[ESCAPE_LENGTH], unsigned byte)
{
    escape[0] = '%';
    escape[1] = hex_digits[byte >> 4];
    escape[2] = hex_digits[byte & 15];
}

/* Take the part before the first separator, and the separator. If there is no separator, take all,
 * and set the remaining text's `base` to NULL. */
static struct sxe_span
take_uri_part(struct sxe_span *text, char separator)
{
    struct sxe_span part = *text;
    const char *end = memchr(part.base, separator, part.length);

    if (end == NULL) {
        *text = (struct sxe_span){NULL, 0};
        return part;
    }
    part.length = (size_t)(end - part.base);
    *text = (struct sxe_span){end + 1, text->length - part.length - 1};
    return part;
}

/* ---- Targets ---- */

/* Take the scheme and the authority off an absolute URI. False: the text is not an absolute URI. */
static bool
take_authority(struct sxe_span *uri, struct sxe_span *authority)
{
    const char *end = uri->base + uri->length;
    const char *scheme_end = memmem(uri->base, uri->length, "://", 3);
    const char *path;

    if (scheme_end == NULL)
        return false;
    *authority = (struct sxe_span){scheme_end + 3, (size_t)(end - scheme_end) - 3};
    path = memchr(authority->base, '/', authority->length);
    if (path != NULL)
        authority->length = (size_t)(path - authority->base);
    *uri = (struct sxe_span){authority->base + authority->length,
                             (size_t)(end - authority->base) - authority->length};
    return true;
}

int
sxe_http_split_target(struct sxe_span target, struct sxe_http_target *parts)
{
    bool is_asterisk = target.length == 1 && *target.base == '*';

    if (target.length == 0)
        return -EINVAL;
    *parts = (struct sxe_http_target){.query = target};
    parts->path = take_uri_part(&parts->query, '?');
    if (*target.base != '/' && !is_asterisk && !take_authority(&parts->path, &parts->authority))
        return -EINVAL;
    if (parts->path.length == 0)
        parts->path = (struct sxe_span){"/", 1};
    return 0;
}

/* ---- Paths ---- */

/* Mark each byte of the word that is zero, by the byte's highest bit. */
static uint64_t
mark_zero_bytes_of_uri(uint64_t word)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);

    return ~(((word & low) + low) | word | low);
}

/* Whether 8 bytes contain a %, or a slash followed by a slash or a dot. "." and "/" differ only in
 * the lowest bit. */
static bool
is_odd_word(const char *bytes)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t word;
    uint64_t slash;

    memcpy(&word, bytes, sizeof(word));
    slash = mark_zero_bytes_of_uri(word ^ each * '/');
    return (mark_zero_bytes_of_uri(word ^ each * '%') |
            (slash << 8 & mark_zero_bytes_of_uri((word | each) ^ each * '/'))) != 0;
}

static bool
is_odd_pair(const char *bytes)
{
    return bytes[1] == '%' || (bytes[0] == '/' && (bytes[1] == '/' || bytes[1] == '.'));
}

/* Whether the path has no escape, no empty segment and no segment that begins with a dot. Reads 8
 * bytes at a time; the last one is read again as the first of the next 8. */
static bool
is_normal(struct sxe_span path)
{
    const size_t step = sizeof(uint64_t) - 1;
    size_t at = 0;

    for (; path.length - at > step; at += step) {
        if (is_odd_word(path.base + at))
            return false;
    }
    for (; at + 1 < path.length; at++) {
        if (is_odd_pair(path.base + at))
            return false;
    }
    return true;
}

/* If the last written segment is "." or "..", remove it, and for ".." its parent, too (RFC 3986,
 * 5.2.4). Returns the new end; NULL: ".." leads above the root. */
static char *
resolve_dots(char *segment, char *out, const char *room)
{
    size_t length = (size_t)(out - segment);

    if (length == 1 && segment[0] == '.')
        return segment;
    if (length != 2 || segment[0] != '.' || segment[1] != '.')
        return out;
    if (segment == room + 1)
        return NULL;
    return (char *)memrchr(room, '/', (size_t)(segment - 1 - room)) + 1;
}

/* Take a byte or an escape, and write its normal form. Returns the new end; NULL: the escape is
 * bad. */
static char *
put_normal(char *out, const char **text, const char *end)
{
    bool is_escape = **text == '%';
    int byte = take_uri_byte(text, end);

    if (byte == BAD_ESCAPE)
        return NULL;
    if (is_escape && !is_plain_in_segment((unsigned)byte)) {
        put_escape(out, (unsigned)byte);
        return out + ESCAPE_LENGTH;
    }
    *out = (char)byte;
    return out + 1;
}

int
sxe_http_normalise_path(struct sxe_span path, char *room, size_t size, struct sxe_span *normal)
{
    const char *p = path.base;
    char *out = room;

    if (path.length == 0 || *p != '/')
        return -EINVAL;
    *normal = path;
    if (is_normal(path))
        return 0;
    if (size < path.length)
        return -ENOBUFS;
    for (const char *end = p + path.length; p < end;) {
        char *segment;

        p++;
        /* An empty segment, or "." or "..", leaves the "/" that was written before it. */
        if (out == room || out[-1] != '/')
            *out++ = '/';
        segment = out;
        while (p < end && *p != '/') {
            out = put_normal(out, &p, end);
            if (out == NULL)
                return -EILSEQ;
        }
        out = resolve_dots(segment, out, room);
        if (out == NULL)
            return -EINVAL;
    }
    *normal = (struct sxe_span){room, (size_t)(out - room)};
    return 0;
}

/* Whether a segment is one or two dots. */
static bool
is_dots(const char *segment, const char *end)
{
    return (end - segment == 1 && segment[0] == '.') ||
           (end - segment == 2 && segment[0] == '.' && segment[1] == '.');
}

ssize_t
sxe_http_decode_path(struct sxe_span path, char *room, size_t size)
{
    const char *p = path.base;
    char *segment = room;
    char *out = room;

    for (size_t left = path.length; left > 0; left = path.length - (size_t)(p - path.base)) {
        bool is_slash = *p == '/';
        int byte = take_uri_byte(&p, path.base + path.length);

        if (byte == BAD_ESCAPE)
            return -EILSEQ;
        if (byte == '\0' || byte == '\\' || (byte == '/' && !is_slash))
            return -EINVAL;
        if (is_slash && is_dots(segment, out))
            return -EINVAL;
        if ((size_t)(out - room) == size)
            return -ENOBUFS;
        *out++ = (char)byte;
        segment = is_slash ? out : segment;
    }
    return is_dots(segment, out) ? -EINVAL : out - room;
}

ssize_t
sxe_http_path_to_file(struct sxe_span path, char *room, size_t size)
{
    struct sxe_span normal;
    ssize_t length =
        size > path.length ? sxe_http_normalise_path(path, room, size, &normal) : -ENOBUFS;

    if (length < 0)
        return length;
    length =
        sxe_http_decode_path((struct sxe_span){normal.base + 1, normal.length - 1}, room, size - 1);
    if (length < 0)
        return length;
    if (length == 0)
        room[length++] = '.';
    room[length] = '\0';
    return length;
}

/* Decode a text; `take` decodes the next byte. */
static ssize_t
decode_text(struct sxe_span text, int (*take)(const char **text, const char *end), char *room,
            size_t size)
{
    const char *p = text.base;
    size_t length = 0;

    if (text.length == 0)
        return 0;
    for (const char *end = p + text.length; p < end; length++) {
        int byte = take(&p, end);

        if (byte == BAD_ESCAPE)
            return -EILSEQ;
        if (length == size)
            return -ENOBUFS;
        room[length] = (char)byte;
    }
    return (ssize_t)length;
}

ssize_t
sxe_http_decode(struct sxe_span text, char *room, size_t size)
{
    return decode_text(text, take_uri_byte, room, size);
}

ssize_t
sxe_http_decode_lenient(struct sxe_span text, char *room, size_t size)
{
    return decode_text(text, take_lenient_byte, room, size);
}

/* ---- Queries ---- */

ssize_t
sxe_http_decode_form(struct sxe_span text, char *room, size_t size)
{
    return decode_text(text, take_form_byte, room, size);
}

bool
sxe_http_query_next(struct sxe_http_query *query)
{
    while (query->rest.length > 0) {
        query->value = take_uri_part(&query->rest, '&');
        if (query->value.length > 0) {
            query->name = take_uri_part(&query->value, '=');
            return true;
        }
    }
    return false;
}

bool
sxe_http_query_is(const struct sxe_http_query *query, const char *name)
{
    const char *p = query->name.base;
    const char *end = p + query->name.length;

    while (p < end) {
        int byte = take_form_byte(&p, end);

        if (*name == '\0' || byte != (uint8_t)*name)
            return false;
        name++;
    }
    return *name == '\0';
}

ssize_t
sxe_http_query_find(struct sxe_span text, const char *name, char *room, size_t size)
{
    struct sxe_http_query query;

    sxe_http_query_start(&query, text);
    while (sxe_http_query_next(&query)) {
        if (sxe_http_query_is(&query, name))
            return sxe_http_decode_form(query.value, room, size);
    }
    return -ENOENT;
}

/* ---- Writing ---- */

/* Escape all bytes but the unreserved ones and `kept`. */
static ssize_t
encode_text(struct sxe_span text, char kept, char *room, size_t size)
{
    size_t length = 0;

    for (size_t i = 0; i < text.length; i++) {
        uint8_t byte = (uint8_t)text.base[i];
        bool is_plain = is_unreserved(byte) || byte == (uint8_t)kept;
        size_t needed = is_plain ? 1 : ESCAPE_LENGTH;

        if (size - length < needed)
            return -ENOBUFS;
        if (is_plain)
            room[length] = (char)byte;
        else
            put_escape(room + length, byte);
        length += needed;
    }
    return (ssize_t)length;
}

ssize_t
sxe_http_encode_segment(struct sxe_span text, char *room, size_t size)
{
    return encode_text(text, '-', room, size);
}

ssize_t
sxe_http_encode_path(struct sxe_span text, char *room, size_t size)
{
    return encode_text(text, '/', room, size);
}

/* The text that stands for the byte in HTML. */
static struct sxe_span
html_of(const char *byte)
{
#define HTML(text) ((struct sxe_span){text, SXE_LITERAL_LENGTH(text)})
    switch (*byte) {
    case '&':
        return HTML("&amp;");
    case '<':
        return HTML("&lt;");
    case '>':
        return HTML("&gt;");
    case '"':
        return HTML("&quot;");
    case '\'':
        return HTML("&#39;");
    default:
        return (struct sxe_span){byte, 1};
    }
#undef HTML
}

ssize_t
sxe_http_escape_html(struct sxe_span text, char *room, size_t size)
{
    size_t length = 0;

    for (size_t i = 0; i < text.length; i++) {
        struct sxe_span html = html_of(text.base + i);

        if (size - length < html.length)
            return -ENOBUFS;
        memcpy(room + length, html.base, html.length);
        length += html.length;
    }
    return (ssize_t)length;
}
