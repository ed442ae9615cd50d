/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include <string.h>
#include <strings.h>

#include "sxe-util.h"

/* What a step answers, where it does not count bytes. */
enum { BAD = -1, MORE = 0, OK = 1 };

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The line at the front of data, without its end: its length with its end, MORE or BAD. */
static ssize_t
take_line(const char *data, size_t length, struct sxe_span *line)
{
    size_t max = length < HTTP_REPLY_HEAD_MAX ? length : HTTP_REPLY_HEAD_MAX;
    const char *end = memchr(data, '\n', max);

    if (end == NULL)
        return length < HTTP_REPLY_HEAD_MAX ? MORE : BAD;
    line->base = data;
    line->length = (size_t)(end - data);
    if (line->length > 0 && end[-1] == '\r')
        line->length--;
    return end - data + 1;
}

/* ---- The head ---- */

/* What its fields said; conclude() says what they mean together. */
struct fields {
    uint64_t length;
    bool has_length;
    bool has_encoding; /* Transfer-Encoding */
    bool chunked;      /* is the last of them */
    bool close;
    bool keep_alive;
    bool is_1_0;
};

/* HTTP/1.d SP ddd [SP reason] (RFC 9112, 4). */
static int
status_line(struct sxe_span line, struct http_reply *reply, struct fields *fields)
{
    static const char pattern[] = "HTTP/1.d ddd";
    size_t size = sizeof(pattern) - 1;

    if (line.length < size || (line.length > size && line.base[size] != ' '))
        return BAD;
    for (size_t i = 0; i < size; i++) {
        if (pattern[i] == 'd' ? !is_digit(line.base[i]) : line.base[i] != pattern[i])
            return BAD;
    }
    fields->is_1_0 = line.base[7] == '0';
    reply->status =
        (uint16_t)((line.base[9] - '0') * 100 + (line.base[10] - '0') * 10 + (line.base[11] - '0'));
    return reply->status >= 100 ? OK : BAD;
}

static struct sxe_span
trimmed(const char *base, const char *end)
{
    while (base < end && is_blank(*base))
        base++;
    while (end > base && is_blank(end[-1]))
        end--;
    return (struct sxe_span){base, (size_t)(end - base)};
}

static bool
is_named(struct sxe_span name, const char *lower)
{
    return name.length == strlen(lower) && strncasecmp(name.base, lower, name.length) == 0;
}

/* Digits; copies must agree (RFC 9112, 6.3). */
static int
length_field(struct sxe_span value, struct fields *fields)
{
    uint64_t length = 0;

    for (size_t i = 0; i < value.length; i++) {
        if (!is_digit(value.base[i]) || length > UINT64_MAX / 100)
            return BAD;
        length = length * 10 + (uint64_t)(value.base[i] - '0');
    }
    if (value.length == 0 || (fields->has_length && length != fields->length))
        return BAD;
    fields->has_length = true;
    fields->length = length;
    return OK;
}

/* The next element of a comma-separated list, taken off its front. */
static struct sxe_span
next_in_list(struct sxe_span *list)
{
    const char *comma = memchr(list->base, ',', list->length);
    const char *end = list->base + list->length;
    struct sxe_span element = trimmed(list->base, comma != NULL ? comma : end);

    list->base = comma != NULL ? comma + 1 : end;
    list->length = (size_t)(end - list->base);
    return element;
}

/* RFC 9112, 6.1: chunked comes last, and once; a field of this name goes on where one before it
 * ended. */
static int
encoding_field(struct sxe_span value, struct fields *fields)
{
    fields->has_encoding = true;
    while (value.length > 0) {
        struct sxe_span coding = next_in_list(&value);

        if (coding.length == 0)
            continue;
        if (fields->chunked)
            return BAD;
        fields->chunked = is_named(coding, "chunked");
    }
    return OK;
}

static int
connection_field(struct sxe_span value, struct fields *fields)
{
    while (value.length > 0) {
        struct sxe_span option = next_in_list(&value);

        fields->close |= is_named(option, "close");
        fields->keep_alive |= is_named(option, "keep-alive");
    }
    return OK;
}

static int
header_field(struct sxe_span line, struct fields *fields)
{
    const char *colon = memchr(line.base, ':', line.length);
    struct sxe_span name = {line.base, 0};
    struct sxe_span value;

    if (colon == NULL || colon == line.base || is_blank(line.base[0]) || is_blank(colon[-1]))
        return BAD;
    name.length = (size_t)(colon - line.base);
    value = trimmed(colon + 1, line.base + line.length);
    if (is_named(name, "content-length"))
        return length_field(value, fields);
    if (is_named(name, "transfer-encoding"))
        return encoding_field(value, fields);
    return is_named(name, "connection") ? connection_field(value, fields) : OK;
}

/* How long the body is (RFC 9112, 6.3), and whether the connection persists (9.3). Two lengths, or
 * a transfer encoding before 1.1, are what response splitting is made of: no reply. We ask for no
 * other protocol, so 101 is none either. */
static int
conclude(struct http_reply *reply, const struct fields *fields)
{
    if (fields->has_encoding && (fields->has_length || fields->is_1_0))
        return BAD;
    if (reply->status < 200) {
        bool is_interim = reply->status != 101;

        reply->status = 0;
        return is_interim ? OK : BAD;
    }
    reply->keep_alive = !fields->close && (!fields->is_1_0 || fields->keep_alive);
    reply->left = fields->length;
    if (reply->status == 204 || reply->status == 304)
        reply->part = HTTP_REPLY_WHOLE;
    else if (fields->chunked)
        reply->part = HTTP_REPLY_CHUNK_LINE;
    else if (fields->has_length)
        reply->part = fields->length > 0 ? HTTP_REPLY_BODY : HTTP_REPLY_WHOLE;
    else
        reply->part = HTTP_REPLY_UNTIL_CLOSE;
    if (reply->part == HTTP_REPLY_UNTIL_CLOSE)
        reply->keep_alive = false;
    return OK;
}

/* No head ends in these bytes; can it still become one? */
static ssize_t
unfinished(const char *data, size_t length)
{
    static const char start[] = "HTTP/1.";
    size_t size = length < sizeof(start) - 1 ? length : sizeof(start) - 1;

    return length < HTTP_REPLY_HEAD_MAX && memcmp(data, start, size) == 0 ? MORE : BAD;
}

static ssize_t
take_head(struct http_reply *reply, const char *data, size_t length)
{
    struct fields fields = {0};
    struct sxe_span line;
    size_t used = 0;

    for (;;) {
        ssize_t n = take_line(data + used, length - used, &line);
        int result;

        if (n == MORE)
            return unfinished(data, length);
        if (n == BAD || used + (size_t)n > HTTP_REPLY_HEAD_MAX)
            return BAD;
        if (used > 0 && line.length == 0)
            return conclude(reply, &fields) == OK ? (ssize_t)used + n : BAD;
        result = used == 0 ? status_line(line, reply, &fields) : header_field(line, &fields);
        if (result == BAD)
            return BAD;
        used += (size_t)n;
    }
}

/* ---- The body ---- */

static int
hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | ('a' - 'A'));
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 1*HEXDIG, then nothing or an extension, which is ignored (RFC 9112, 7.1). */
static int
chunk_size(struct sxe_span line, uint64_t *size)
{
    const char *end = line.base + line.length;
    const char *p = line.base;

    *size = 0;
    for (; p < end && hex_digit(*p) >= 0; p++) {
        if (*size > UINT64_MAX / 32)
            return BAD;
        *size = *size * 16 + (uint64_t)hex_digit(*p);
    }
    if (p == line.base)
        return BAD;
    line = trimmed(p, end);
    return line.length == 0 || *line.base == ';' ? OK : BAD;
}

/* A line that is not body: a chunk's size, the end of a chunk, a trailer. */
static ssize_t
take_framing(struct http_reply *reply, const char *data, size_t length)
{
    struct sxe_span line;
    ssize_t n = take_line(data, length, &line);

    if (n <= 0)
        return n;
    if (reply->part == HTTP_REPLY_CHUNK_LINE) {
        if (chunk_size(line, &reply->left) == BAD)
            return BAD;
        reply->part = reply->left > 0 ? HTTP_REPLY_CHUNK : HTTP_REPLY_TRAILER;
    } else if (reply->part == HTTP_REPLY_CHUNK_END) {
        if (line.length > 0)
            return BAD;
        reply->part = HTTP_REPLY_CHUNK_LINE;
    } else if (line.length == 0) {
        reply->part = HTTP_REPLY_WHOLE;
    }
    return n;
}

static ssize_t
take_counted(struct http_reply *reply, size_t length)
{
    size_t part = length < reply->left ? length : (size_t)reply->left;

    reply->left -= part;
    if (reply->left == 0)
        reply->part = reply->part == HTTP_REPLY_BODY ? HTTP_REPLY_WHOLE : HTTP_REPLY_CHUNK_END;
    return (ssize_t)part;
}

static ssize_t
take_part(struct http_reply *reply, const char *data, size_t length)
{
    switch ((enum http_reply_part)reply->part) {
    case HTTP_REPLY_HEAD:
        return take_head(reply, data, length);
    case HTTP_REPLY_BODY:
    case HTTP_REPLY_CHUNK:
        return take_counted(reply, length);
    case HTTP_REPLY_CHUNK_LINE:
    case HTTP_REPLY_CHUNK_END:
    case HTTP_REPLY_TRAILER:
        return take_framing(reply, data, length);
    case HTTP_REPLY_UNTIL_CLOSE:
        return (ssize_t)length;
    case HTTP_REPLY_WHOLE:
        break;
    }
    return 0;
}

ssize_t
http_reply_scan(struct http_reply *reply, const char *data, size_t length)
{
    size_t taken = 0;

    while (taken < length) {
        ssize_t n = take_part(reply, data + taken, length - taken);

        if (n < 0)
            return BAD;
        if (n == 0)
            break;
        taken += (size_t)n;
    }
    return (ssize_t)taken;
}
