/* SPDX-License-Identifier: MIT
 *
 * What: requests and replies of FastCGI, for the client: a request's parameters become records, and
 * the head that a script writes (RFC 3875, 6) becomes the head of an HTTP response, which the
 * parser then reads as it reads all others.
 *
 *     Status: 404 Not Found       HTTP/1.1 404
 *     Content-type: a/b      -->  Content-type: a/b
 *     (empty line)                (empty line)
 *
 * The lines of a script end with LF or CRLF. A connection carries one request at a time. Its id
 * changes with each request, so that a record that comes after the end of one request is wrong in
 * the next, and never a part of another client's reply.
 */
#include "sxe-http-client-private.h"
#include "sxe-http-private.h"

#include <errno.h>
#include <string.h>

#define ID_MAX 255u /* small, since applications may have a table of the requests */

/* the first line of each response; the status is written over 200 */
static const char first_line[] = "HTTP/1.1 200 \r\n";

enum { FIRST_LINE = sizeof(first_line) - 1, STATUS_AT = 9 };

/* ---- Requests ---- */

/* Write the pairs. Returns their length or -errno. */
static ssize_t
put_parameters(const struct sxe_http_request_head *request, char *room, size_t size)
{
    size_t used = 0;

    for (unsigned i = 0; i < request->fields_number; i++) {
        const ssize_t length = sxe_http_fastcgi_put_pair(
            room + used, size - used, request->fields[i].name, request->fields[i].value);

        if (length < 0)
            return length == -ENOBUFS ? -EMSGSIZE : length;
        used += (size_t)length;
    }
    return (ssize_t)used;
}

ssize_t
sxe__http_records_write(const struct sxe_http_request_head *request, bool keep, char *room,
                        size_t size, struct sxe__http_asked *asked)
{
    /* BEGIN_REQUEST, the head of PARAMS; the ends of PARAMS and STDIN */
    const size_t before = 2 * SXE_HTTP_FASTCGI_HEAD + SXE_HTTP_FASTCGI_HEAD;
    const size_t after = 2 * SXE_HTTP_FASTCGI_HEAD;
    size_t most = size - before - after;
    ssize_t length;
    char *to;

    if (size < before + after)
        return -EMSGSIZE;
    if (most > SXE_HTTP_FASTCGI_CONTENT_MAX)
        most = SXE_HTTP_FASTCGI_CONTENT_MAX;
    asked->method = (uint8_t)sxe__http_method_of(request->method.base, request->method.length);
    asked->keep_alive = keep;
    asked->upgrade = false;
    if (asked->method == SXE_HTTP_CONNECT)
        return -EINVAL;
    length = put_parameters(request, room + before, most);
    if (length < 0)
        return length;
    /* the ids follow when the request has a connection */
    sxe_http_fastcgi_put_begin(room, 1, SXE_HTTP_FASTCGI_RESPONDER, keep);
    sxe_http_fastcgi_put_head(room + 16, SXE_HTTP_FASTCGI_PARAMS, 1, (uint16_t)length, 0);
    to = room + before + length;
    sxe_http_fastcgi_put_head(to, SXE_HTTP_FASTCGI_PARAMS, 1, 0, 0);
    to += SXE_HTTP_FASTCGI_HEAD;
    if (request->body_length == 0) {
        sxe_http_fastcgi_put_head(to, SXE_HTTP_FASTCGI_STDIN, 1, 0, 0);
        to += SXE_HTTP_FASTCGI_HEAD;
    }
    return to - room;
}

void
sxe__http_records_put_input(const struct sxe__http_records *records, char to[SXE_HTTP_FASTCGI_HEAD],
                            size_t length)
{
    sxe_http_fastcgi_put_head(to, SXE_HTTP_FASTCGI_STDIN, records->id, (uint16_t)length, 0);
}

/* ---- Records of a reply ---- */

void
sxe__http_records_begin(struct sxe__http_records *records, bool is_reused, char *request,
                        size_t length)
{
    const uint16_t id = is_reused ? (uint16_t)(records->id % ID_MAX + 1) : 1;

    *records = (struct sxe__http_records){.id = id};
    sxe_http_fastcgi_init(&records->reader, SXE_HTTP_FASTCGI_OF_SERVER);
    for (size_t at = 0; at < length;) { /* these records have no padding */
        request[at + 3] = (char)id;
        at += SXE_HTTP_FASTCGI_HEAD +
              ((size_t)(uint8_t)request[at + 4] << 8 | (uint8_t)request[at + 5]);
    }
}

/* A part of a stream, which ends with an empty record. False: the stream has ended before. */
static bool
take_stream_part(const struct sxe_http_fastcgi *reader, bool *is_ended)
{
    if (!reader->is_first)
        return true;
    if (*is_ended)
        return false;
    *is_ended = reader->length == 0;
    return true;
}

static const char *
check_end(struct sxe_span content)
{
    uint32_t application;
    uint8_t protocol;

    sxe_http_fastcgi_get_end(content.base, &application, &protocol);
    switch (protocol) {
    case SXE_HTTP_FASTCGI_REQUEST_COMPLETE:
        return NULL;
    case SXE_HTTP_FASTCGI_CANT_MPX_CONN:
    case SXE_HTTP_FASTCGI_OVERLOADED:
        return "it is overloaded";
    default:
        return "it refuses the role of a responder";
    }
}

ssize_t
sxe__http_records_read(struct sxe__http_records *records, const char *data, size_t length,
                       struct sxe_span *content, enum sxe__http_record_kind *kind,
                       const char **complaint)
{
    struct sxe_http_fastcgi *reader = &records->reader;
    const ssize_t n = sxe_http_fastcgi_read(reader, data, length, content);
    bool is_good = true;

    *complaint = NULL;
    *kind = SXE__HTTP_RECORD_NOTHING;
    if (n < 0)
        *complaint = sxe_http_fastcgi_refusal_text((enum sxe_http_fastcgi_refusal)reader->refusal);
    if (n <= 0)
        return n;
    if (reader->is_first && reader->id != records->id) {
        *complaint =
            reader->id == 0 ? "a record that answers no question" : "a record of another request";
        return -1;
    }
    if (reader->type == SXE_HTTP_FASTCGI_STDOUT) {
        is_good = take_stream_part(reader, &records->is_out_ended);
        *kind = content->length > 0 ? SXE__HTTP_RECORD_OUTPUT : SXE__HTTP_RECORD_NOTHING;
    } else if (reader->type == SXE_HTTP_FASTCGI_STDERR) {
        is_good = take_stream_part(reader, &records->is_error_ended);
        *kind = content->length > 0 ? SXE__HTTP_RECORD_ERRORS : SXE__HTTP_RECORD_NOTHING;
    } else if (reader->is_last) {
        *complaint = check_end(*content);
        *kind = SXE__HTTP_RECORD_END;
    }
    if (is_good)
        return n;
    *complaint = "a stream goes on after its end";
    return -1;
}

/* ---- The head that a script writes ---- */

static bool
has_name(const char *line, size_t length, const char *name)
{
    const size_t size = strlen(name);

    return length > size && line[size] == ':' && sxe__http_is_same(line, name, size);
}

/* Read the value of Status: three digits, and text after a blank. */
static bool
read_script_status(struct sxe__http_records *records, const char *value, size_t length)
{
    unsigned status = 0;

    while (length > 0 && (*value == ' ' || *value == '\t')) {
        value++;
        length--;
    }
    if (records->status != 0 || length < 3 || (length > 3 && value[3] != ' '))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
        status = status * 10 + (unsigned)(value[i] - '0');
    }
    records->status = (uint16_t)status;
    return status >= 200 && status <= 599;
}

/* A line of the script's head is whole, without its end. Status becomes the first line, and
 * Transfer-Encoding is left out: records frame the body. NULL, or a complaint. */
static const char *
end_head_line(struct sxe__http_records *records, char *room, size_t size)
{
    static const char status[] = "Status";
    const char *line = room + records->line;
    const size_t length = records->used - records->line;

    if (has_name(line, length, status)) {
        if (!read_script_status(records, line + sizeof(status), length - sizeof(status)))
            return "its Status is not one from 200 to 599";
        records->used = records->line;
    } else if (has_name(line, length, "Transfer-Encoding")) {
        records->used = records->line;
    } else {
        if (size - records->used < 2)
            return "its head is too long";
        records->has_location |= has_name(line, length, "Location");
        memcpy(room + records->used, "\r\n", 2);
        records->used += 2;
    }
    records->has_field = true;
    records->line = records->used;
    return NULL;
}

/* The empty line has come. */
static const char *
end_script_head(struct sxe__http_records *records, char *room, size_t size)
{
    const unsigned status = records->status != 0    ? records->status
                            : records->has_location ? 302
                                                    : 200;

    if (!records->has_field)
        return "its head has no field";
    if (size - records->used < 2)
        return "its head is too long";
    memcpy(room + records->used, "\r\n", 2);
    records->used += 2;
    room[STATUS_AT] = (char)('0' + status / 100);
    room[STATUS_AT + 1] = (char)('0' + status / 10 % 10);
    room[STATUS_AT + 2] = (char)('0' + status % 10);
    return NULL;
}

ssize_t
sxe__http_records_head(struct sxe__http_records *records, struct sxe_span data, char *room,
                       size_t size, bool *is_whole, const char **complaint)
{
    size_t taken = 0;

    *is_whole = false;
    *complaint = size < FIRST_LINE ? "its head is too long" : NULL;
    if (records->used == 0 && *complaint == NULL) {
        memcpy(room, first_line, FIRST_LINE);
        records->used = records->line = FIRST_LINE;
    }
    while (*complaint == NULL && taken < data.length && !*is_whole) {
        const char *from = data.base + taken;
        const char *end = memchr(from, '\n', data.length - taken);
        const size_t length = end != NULL ? (size_t)(end - from) : data.length - taken;

        if (length > size - records->used) {
            *complaint = "its head is too long";
            break;
        }
        memcpy(room + records->used, from, length);
        records->used += (uint32_t)length;
        taken += length + (end != NULL);
        if (end == NULL)
            break;
        if (records->used > records->line && room[records->used - 1] == '\r')
            records->used--;
        *is_whole = records->used == records->line;
        *complaint =
            *is_whole ? end_script_head(records, room, size) : end_head_line(records, room, size);
    }
    return *complaint != NULL ? -1 : (ssize_t)taken;
}
