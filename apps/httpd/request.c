/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <string.h>

/* Sets of bytes, a bit each. */
struct bytes {
    uint64_t has[4];
};

/* RFC 9110, 5.6.2: letters, digits and !#$%&'*+-.^_`|~ */
static const struct bytes token = {
    {UINT64_C(0x03ff6cfa00000000), UINT64_C(0x57ffffffc7fffffe), 0, 0}};
/* RFC 3986, 3.2.2, with the port: letters, digits and -._~!$&'()*+,;=%:[] */
static const struct bytes host = {
    {UINT64_C(0x2fff7ff200000000), UINT64_C(0x47fffffeaffffffe), 0, 0}};

static bool
is_in(const struct bytes *set, char c)
{
    unsigned char byte = (unsigned char)c;

    return (set->has[byte >> 6] >> (byte & 63)) & 1;
}

/* RFC 9110, 5.5: visible characters, blanks, and bytes of unknown encoding. */
static bool
is_value(char c)
{
    unsigned char byte = (unsigned char)c;

    return (byte >= ' ' && byte != 0x7F) || byte == '\t';
}

/* The bytes being read: at <= end. */
struct cursor {
    const char *at;
    const char *end;
};

/* What each step answers. */
enum { BAD = -1, MORE = 0, OK = 1 };

static int
refuse(struct httpd_request *request, unsigned status)
{
    request->status = status;
    return BAD;
}

/* The end of a line, which is CR LF and nothing else (RFC 9112, 2.2). */
static int
line_end(struct cursor *in, struct httpd_request *request)
{
    if (in->at < in->end && *in->at != '\r')
        return refuse(request, 400);
    if (in->end - in->at < 2)
        return MORE;
    if (in->at[1] != '\n')
        return refuse(request, 400);
    in->at += 2;
    return OK;
}

/* HTTP-version (RFC 9112, 2.3). Any minor version of 1 above 0 is spoken to as 1.1. */
static int
version(struct cursor *in, struct httpd_request *request)
{
    static const char pattern[] = "HTTP/d.d";
    const char *p = in->at;

    for (size_t i = 0; i < sizeof(pattern) - 1; i++, p++) {
        if (p == in->end)
            return MORE;
        if (pattern[i] == 'd' ? *p < '0' || *p > '9' : *p != pattern[i])
            return refuse(request, 400);
    }
    if (in->at[5] != '1')
        return refuse(request, 505);
    request->is_1_0 = in->at[7] == '0';
    request->keep_alive = !request->is_1_0;
    in->at = p;
    return OK;
}

static int
request_line(struct cursor *in, struct httpd_request *request)
{
    const char *start = in->at;
    const char *p = start;
    int result;

    while (p < in->end && is_in(&token, *p))
        p++;
    if (p < in->end && (*p != ' ' || p == start))
        return refuse(request, 400);
    request->is_head = p - start == 4 && memcmp(start, "HEAD", 4) == 0;
    for (start = ++p; p<in->end && * p> ' ' && *p < 0x7F; p++)
        continue;
    if (p < in->end && (*p != ' ' || p == start))
        return refuse(request, 400);
    if (p >= in->end)
        return MORE;
    in->at = p + 1;
    result = version(in, request);
    return result == OK ? line_end(in, request) : result;
}

/* What the header fields said; each is checked when all are known. */
struct fields {
    unsigned hosts;
    unsigned lengths;
    uint64_t length;
    bool transfer_encoding;
    bool close;
    bool keep_alive;
};

/* Names are tokens, and of those only letters change by the bit that makes a letter small into one of
 * our names. */
static bool
is_named(struct httpd_span name, const char *lower)
{
    if (name.length != strlen(lower))
        return false;
    for (size_t i = 0; i < name.length; i++) {
        if ((name.base[i] | 0x20) != lower[i])
            return false;
    }
    return true;
}

/* RFC 9112, 3.2: one, and valid; an empty one is. */
static int
host_field(struct httpd_span value, struct fields *fields)
{
    for (size_t i = 0; i < value.length; i++) {
        if (!is_in(&host, value.base[i]))
            return BAD;
    }
    return fields->hosts++ == 0 ? OK : BAD;
}

/* RFC 9110, 8.6: digits; copies must agree. */
static int
length_field(struct httpd_span value, struct fields *fields)
{
    uint64_t length = 0;

    for (size_t i = 0; i < value.length; i++) {
        if (value.base[i] < '0' || value.base[i] > '9' || length > UINT64_MAX / 100)
            return BAD;
        length = length * 10 + (uint64_t)(value.base[i] - '0');
    }
    if (value.length == 0 || (fields->lengths++ > 0 && length != fields->length))
        return BAD;
    fields->length = length;
    return OK;
}

/* RFC 9110, 7.6.1: a list of options; two of them are for us. */
static int
connection_field(struct httpd_span value, struct fields *fields)
{
    const char *p = value.base;
    const char *end = value.base + value.length;

    while (p < end) {
        struct httpd_span option = {p, 0};

        while (p < end && is_in(&token, *p))
            p++;
        option.length = (size_t)(p - option.base);
        fields->close |= is_named(option, "close");
        fields->keep_alive |= is_named(option, "keep-alive");
        if (p < end && *p != ',' && *p != ' ' && *p != '\t')
            return BAD;
        p += p < end;
    }
    return OK;
}

static int
known_field(struct httpd_span name, struct httpd_span value, struct fields *fields)
{
    switch (name.length) {
    case 4:
        return is_named(name, "host") ? host_field(value, fields) : OK;
    case 10:
        return is_named(name, "connection") ? connection_field(value, fields) : OK;
    case 14:
        return is_named(name, "content-length") ? length_field(value, fields) : OK;
    case 17:
        fields->transfer_encoding |= is_named(name, "transfer-encoding");
        return OK;
    default:
        return OK;
    }
}

static struct httpd_span
trimmed(const char *base, const char *end)
{
    while (base < end && (*base == ' ' || *base == '\t'))
        base++;
    while (end > base && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct httpd_span){base, (size_t)(end - base)};
}

/* field-name ":" OWS field-value OWS CR LF. No blank before the colon, no line that goes on (RFC
 * 9112, 5). */
static int
header_field(struct cursor *in, struct httpd_request *request, struct fields *fields)
{
    const char *p = in->at;
    struct httpd_span name = {p, 0};
    int result;

    while (p < in->end && is_in(&token, *p))
        p++;
    name.length = (size_t)(p - name.base);
    if (p < in->end && (*p != ':' || name.length == 0))
        return refuse(request, 400);
    for (in->at = p < in->end ? p + 1 : p; in->at < in->end && is_value(*in->at); in->at++)
        continue;
    if (in->at == in->end)
        return MORE;
    p = p + 1;
    result = known_field(name, trimmed(p, in->at), fields);
    return result == OK ? line_end(in, request) : refuse(request, 400);
}

/* What the fields mean together. */
static int
conclude(struct httpd_request *request, const struct fields *fields)
{
    if (fields->transfer_encoding)
        return refuse(request, fields->lengths > 0 || request->is_1_0 ? 400 : 501);
    if (fields->hosts == 0 && !request->is_1_0)
        return refuse(request, 400);
    if (fields->length > HTTPD_BODY_MAX)
        return refuse(request, 413);
    request->body = (uint32_t)fields->length;
    request->keep_alive = !fields->close && (request->keep_alive || fields->keep_alive);
    return OK;
}

/* More is needed; but there is a limit to it. */
static int
within_limits(const char *line, size_t length, struct httpd_request *request)
{
    if (length < HTTPD_LINE_MAX)
        return 0;
    if (memchr(line, '\n', HTTPD_LINE_MAX) == NULL)
        return refuse(request, 414);
    return length < HTTPD_HEAD_MAX ? 0 : refuse(request, 431);
}

int
httpd_request_parse(const char *data, size_t length, struct httpd_request *request)
{
    struct cursor in = {data, data + length};
    struct fields fields = {0};
    int result = OK;

    memset(request, 0, sizeof(*request));
    /* An empty line in front is forgiven (RFC 9112, 2.2). */
    if (in.at < in.end && *in.at == '\r')
        result = line_end(&in, request);
    if (result == OK)
        result = request_line(&in, request);
    if (result == OK && in.at - data > (ptrdiff_t)HTTPD_LINE_MAX)
        return refuse(request, 414);
    while (result == OK && in.at < in.end && *in.at != '\r')
        result = header_field(&in, request, &fields);
    if (result == OK)
        result = line_end(&in, request);
    if (result == MORE)
        return within_limits(data, length, request);
    if (result == OK && in.at - data > (ptrdiff_t)HTTPD_HEAD_MAX)
        result = refuse(request, 431);
    if (result == OK)
        result = conclude(request, &fields);
    return result == OK ? (int)(in.at - data) : BAD;
}
