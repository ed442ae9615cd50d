/* SPDX-License-Identifier: MIT
 *
 * What: the head of a reply, and replies that are whole: one copy of head and body, next to each
 * other, straight into the loop's output.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sxe-http-private.h"

#define HEAD_EXTRA 192 /* bytes of status line, Date, Connection, and length or coding */

#define STATUSES(X)                           \
    X(100, "Continue")                        \
    X(101, "Switching Protocols")             \
    X(103, "Early Hints")                     \
    X(200, "OK")                              \
    X(201, "Created")                         \
    X(202, "Accepted")                        \
    X(203, "Non-Authoritative Information")   \
    X(204, "No Content")                      \
    X(205, "Reset Content")                   \
    X(206, "Partial Content")                 \
    X(207, "Multi-Status")                    \
    X(208, "Already Reported")                \
    X(226, "IM Used")                         \
    X(300, "Multiple Choices")                \
    X(301, "Moved Permanently")               \
    X(302, "Found")                           \
    X(303, "See Other")                       \
    X(304, "Not Modified")                    \
    X(305, "Use Proxy")                       \
    X(307, "Temporary Redirect")              \
    X(308, "Permanent Redirect")              \
    X(400, "Bad Request")                     \
    X(401, "Unauthorized")                    \
    X(402, "Payment Required")                \
    X(403, "Forbidden")                       \
    X(404, "Not Found")                       \
    X(405, "Method Not Allowed")              \
    X(406, "Not Acceptable")                  \
    X(407, "Proxy Authentication Required")   \
    X(408, "Request Timeout")                 \
    X(409, "Conflict")                        \
    X(410, "Gone")                            \
    X(411, "Length Required")                 \
    X(412, "Precondition Failed")             \
    X(413, "Content Too Large")               \
    X(414, "URI Too Long")                    \
    X(415, "Unsupported Media Type")          \
    X(416, "Range Not Satisfiable")           \
    X(417, "Expectation Failed")              \
    X(421, "Misdirected Request")             \
    X(422, "Unprocessable Content")           \
    X(423, "Locked")                          \
    X(424, "Failed Dependency")               \
    X(425, "Too Early")                       \
    X(426, "Upgrade Required")                \
    X(428, "Precondition Required")           \
    X(429, "Too Many Requests")               \
    X(431, "Request Header Fields Too Large") \
    X(451, "Unavailable For Legal Reasons")   \
    X(500, "Internal Server Error")           \
    X(501, "Not Implemented")                 \
    X(502, "Bad Gateway")                     \
    X(503, "Service Unavailable")             \
    X(504, "Gateway Timeout")                 \
    X(505, "HTTP Version Not Supported")      \
    X(506, "Variant Also Negotiates")         \
    X(507, "Insufficient Storage")            \
    X(508, "Loop Detected")                   \
    X(511, "Network Authentication Required")

struct reason {
    uint16_t status;
    const char *text;
};

static const struct reason reasons[] = {
#define REASON(status, text) {status, text},
    STATUSES(REASON)
#undef REASON
};

const char *
sxe_http_reason(unsigned status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "";
}

/* ---- The head ---- */

static char *
put(char *to, const void *from, size_t length)
{
    memcpy(to, from, length);
    return to + length;
}

#define PUT_LITERAL(to, text) put((to), (text), SXE_LITERAL_LENGTH(text))

static char *
put_number(char *to, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return put(to, digits + at, sizeof(digits) - at);
}

static char *
put_status_line(char *to, unsigned status)
{
    const char *reason;

    if (SXE_LIKELY(status == 200))
        return PUT_LITERAL(to, "HTTP/1.1 200 OK\r\n");
    reason = sxe_http_reason(status);
    to = PUT_LITERAL(to, "HTTP/1.1 ");
    to = put_number(to, status);
    *to++ = ' ';
    to = put(to, reason, strlen(reason));
    return PUT_LITERAL(to, "\r\n");
}

/* Date and the configured lines, made once a second. */
static char *
put_common(struct sxe_http *http, char *to)
{
    to = PUT_LITERAL(to, "Date: ");
    to = put(to, sxe_http_date(&http->date, sxe_time_turn_ns()), SXE_HTTP_DATE_LENGTH);
    return put(to, http->common, http->common_length);
}

/* RFC 9112, 9.3: 1.1 goes on unless it says otherwise, 1.0 ends unless it does. RFC 9110, 7.8: an
 * Upgrade is about this connection only. */
static char *
put_connection(const struct sxe__http_slot *slot, char *to)
{
    if (SXE_UNLIKELY(slot->offers_upgrade))
        to = PUT_LITERAL(to, "Connection: upgrade\r\n");
    if (slot->close)
        return PUT_LITERAL(to, "Connection: close\r\n");
    if (slot->request.head.minor == 0)
        return PUT_LITERAL(to, "Connection: keep-alive\r\n");
    return to;
}

/* RFC 9110, 8.6, 15.3.6 and 15.4.5: none in 204; 0 in 205; in 304 it would be that of a 200. */
static char *
put_length(const struct sxe__http_slot *slot, char *to, uint64_t length)
{
    if (slot->status == 204 || slot->status == 304)
        return to;
    if (slot->is_chunked)
        return PUT_LITERAL(to, "Transfer-Encoding: chunked\r\n");
    if (slot->status == 205)
        length = 0;
    if (length == SXE_HTTP_LENGTH_UNKNOWN)
        return to;
    to = PUT_LITERAL(to, "Content-Length: ");
    to = put_number(to, length);
    return PUT_LITERAL(to, "\r\n");
}

size_t
sxe__http_head_max(const struct sxe__http_slot *slot)
{
    return HEAD_EXTRA + slot->request.http->common_length + slot->fields_used;
}

char *
sxe__http_put_head(struct sxe__http_slot *slot, char *to, uint64_t length)
{
    struct sxe_http *http = slot->request.http;

    to = put_status_line(to, slot->status);
    to = put_common(http, to);
    to = put(to, (char *)slot + http->reply_at, slot->fields_used);
    to = put_length(slot, to, length);
    to = put_connection(slot, to);
    return PUT_LITERAL(to, "\r\n");
}

/* Whether a reply of this status may have a body (RFC 9110, 15.3.5, 15.3.6 and 15.4.5). */
bool
sxe__http_may_have_body(unsigned status)
{
    return status != 204 && status != 205 && status != 304;
}

bool
sxe__http_sends_body(const struct sxe__http_slot *slot)
{
    return slot->request.head.method != SXE_HTTP_HEAD && sxe__http_may_have_body(slot->status);
}

int
sxe_http_set_status(struct sxe_http_response *response, unsigned status)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    if (slot->progress != SXE__HTTP_UNANSWERED || status < 200 || status > 599)
        return -EINVAL;
    slot->status = (uint16_t)status;
    return 0;
}

void
sxe_http_close(struct sxe_http_response *response)
{
    SXE__HTTP_SLOT_OF_RESPONSE(response)->close = true;
}

/* ---- Fields ---- */

/* These are short, so a byte at a time is faster than the parser's 64. RFC 9110, 5.5. */
static bool
is_value(struct sxe_span value)
{
    bool is_bad = false;

    for (size_t i = 0; i < value.length; i++) {
        uint8_t byte = (uint8_t)value.base[i];

        is_bad |= (byte < ' ' && byte != '\t') || byte == 0x7F;
    }
    return !is_bad;
}

/* RFC 9110, 5.6.2 */
static bool
is_token(const char *name, size_t length)
{
    static const uint64_t set[4] = {UINT64_C(0x3ff6cfa00000000), UINT64_C(0x57ffffffc7fffffe)};
    uint64_t all = 1;

    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)name[i];

        all &= set[byte >> 6] >> (byte & 63);
    }
    return length > 0 && all != 0;
}

/* Those that say where a message ends, or that the library sends itself. */
static bool
is_reserved(enum sxe_http_field_id id)
{
    return id == SXE_HTTP_FIELD_CONNECTION || id == SXE_HTTP_FIELD_CONTENT_LENGTH ||
           id == SXE_HTTP_FIELD_DATE || id == SXE_HTTP_FIELD_TRANSFER_ENCODING;
}

/* RFC 9110, 6.5.1: no framing, routing, authentication or content format; of the names that are
 * known here, these are left. */
static bool
may_trail(enum sxe_http_field_id id)
{
    return id == SXE_HTTP_FIELD_OTHER || id == SXE_HTTP_FIELD_ETAG ||
           id == SXE_HTTP_FIELD_LAST_MODIFIED;
}

int
sxe__http_add_line(struct sxe__http_slot *slot, const char *name, struct sxe_span value)
{
    const struct sxe_http *http = slot->request.http;
    size_t name_length = strlen(name);
    size_t length = name_length + value.length + 4;
    char *to = (char *)slot + http->reply_at + slot->fields_used;
    enum sxe_http_field_id id;

    if (!is_token(name, name_length) || !is_value(value))
        return -EINVAL;
    id = sxe__http_field_id_of(name, name_length);
    if (is_reserved(id) || (slot->progress == SXE__HTTP_BEGUN && !may_trail(id)))
        return -EINVAL;
    if (length > http->config.fields_max - slot->fields_used)
        return -ENOBUFS;
    to = put(to, name, name_length);
    to = PUT_LITERAL(to, ": ");
    if (value.length > 0)
        to = put(to, value.base, value.length);
    PUT_LITERAL(to, "\r\n");
    slot->fields_used += (uint32_t)length;
    slot->offers_upgrade |= id == SXE_HTTP_FIELD_UPGRADE;
    return 0;
}

int
sxe_http_add_field_span(struct sxe_http_response *response, const char *name, struct sxe_span value)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    return slot->progress == SXE__HTTP_UNANSWERED ? sxe__http_add_line(slot, name, value) : -EINVAL;
}

int
sxe_http_add_field(struct sxe_http_response *response, const char *name, const char *value)
{
    return sxe_http_add_field_span(response, name, (struct sxe_span){value, strlen(value)});
}

struct sxe_span
sxe__http_lines(const struct sxe_http_response *response)
{
    const struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    return (struct sxe_span){(const char *)slot + slot->request.http->reply_at, slot->fields_used};
}

int
sxe__http_add_lines(struct sxe_http_response *response, struct sxe_span lines)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    const struct sxe_http *http = slot->request.http;

    if (lines.length > http->config.fields_max - slot->fields_used)
        return -ENOBUFS;
    put((char *)slot + http->reply_at + slot->fields_used, lines.base, lines.length);
    slot->fields_used += (uint32_t)lines.length;
    return 0;
}

/* ---- Whole replies ---- */

void
sxe__http_ended(struct sxe__http_slot *slot)
{
    slot->progress = SXE__HTTP_ENDED;
    sxe__http_changed(slot->connection);
}

int
sxe__http_break(struct sxe__http_slot *slot)
{
    if (slot->progress == SXE__HTTP_UNANSWERED)
        slot->status = 0;
    slot->close = true;
    slot->is_sending = true; /* it is over when the socket is closed, which says why */
    sxe_abort(slot->connection->sxe);
    sxe__http_ended(slot);
    return -ENOTCONN;
}

int
sxe__http_cannot_write(struct sxe__http_slot *slot, int error)
{
    return error == -ENOBUFS ? error : sxe__http_break(slot);
}

void
sxe_http_abort(struct sxe_http_response *response)
{
    sxe__http_break(SXE__HTTP_SLOT_OF_RESPONSE(response));
}

bool
sxe__http_has_room(const struct sxe__http_slot *slot, size_t own, size_t length)
{
    size_t room = sxe_get_config()->output_max - sxe_unsent(slot->connection->sxe);

    return own <= room && length <= room - own;
}

/* A connection whose request has more body than is worth reading ends, and the reply says so; they
 * all do when the server stops. */
void
sxe__http_decide_close(struct sxe__http_slot *slot)
{
    if (slot->request.http->stopping || (!slot->body_whole && !sxe__http_body_can_be_dropped(slot)))
        slot->close = true;
}

/* By way of a buffer of the server's, when the loop's has not so much room. */
static int
write_in_parts(struct sxe__http_slot *slot, const void *body, size_t length, size_t sent)
{
    SXE *s = slot->connection->sxe;
    char *head = slot->request.http->scratch;
    char *end;
    int result;

    if (!sxe__http_has_room(slot, sxe__http_head_max(slot), sent))
        return -ENOBUFS;
    end = sxe__http_put_head(slot, head, length);
    result = sxe_write(s, head, (unsigned)(end - head));
    if (result < 0)
        return sxe__http_cannot_write(slot, result);
    return sxe_write(s, body, (unsigned)sent) < 0 ? sxe__http_break(slot) : 0;
}

static int
write_whole(struct sxe__http_slot *slot, const void *body, size_t length)
{
    SXE *s = slot->connection->sxe;
    size_t sent = sxe__http_sends_body(slot) ? length : 0;
    size_t most = sxe__http_head_max(slot) + sent;
    char *to = sent <= INT32_MAX ? sxe_reserve(s, (unsigned)most) : NULL;
    char *end;

    slot->body_sent = sent;
    if (SXE_UNLIKELY(to == NULL))
        return write_in_parts(slot, body, length, sent);
    end = sxe__http_put_head(slot, to, length);
    if (sent > 0)
        end = put(end, body, sent);
    sxe_commit(s, (unsigned)(end - to));
    return 0;
}

int
sxe_http_end(struct sxe_http_response *response, const void *body, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result;

    if (slot->progress != SXE__HTTP_UNANSWERED)
        return sxe__http_end_begun(slot, body, length);
    sxe__http_decide_close(slot);
    result = write_whole(slot, body, length);
    if (result == 0)
        sxe__http_ended(slot);
    return result;
}
